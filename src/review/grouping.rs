//! Changes to groups: pure functions from notes and modes to new records and new modes.

use std::collections::BTreeMap;

use super::answers::ReviewBook;
use super::modes::{FailureMode, FormerMode, ModeList};
use super::note::ReviewNote;
use crate::model::{WallTime, pluralize};

/// A change to groups. Modes are named by their current ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupingChange {
    /// Notes show a mode.
    Group {
        /// The ids of the notes.
        notes: Vec<String>,
        /// The mode.
        mode: String,
    },
    /// Notes no longer show a mode.
    Ungroup {
        /// The ids of the notes.
        notes: Vec<String>,
        /// The mode.
        mode: String,
    },
    /// A new mode with these notes.
    Create {
        /// The name.
        name: String,
        /// The definition.
        definition: String,
        /// The ids of the notes.
        notes: Vec<String>,
    },
    /// Another name. The id stays.
    Rename {
        /// The mode.
        mode: String,
        /// The name.
        name: String,
    },
    /// Another definition.
    Define {
        /// The mode.
        mode: String,
        /// The definition.
        definition: String,
    },
    /// One mode becomes a part of another. Its id stays known.
    Merge {
        /// The mode that disappears.
        from: String,
        /// The mode that stays.
        into: String,
    },
    /// Some notes of a mode become a mode of their own.
    Split {
        /// The mode.
        mode: String,
        /// The ids of the notes that leave.
        notes: Vec<String>,
        /// The name of the new mode.
        name: String,
    },
}

impl GroupingChange {
    /// Describes the change: `2 notes into Wrong price`.
    pub fn describe(&self, modes: &ModeList) -> String {
        let name = |id: &str| {
            let mode = modes.find(id);
            mode.map_or_else(|| id.to_owned(), |mode| mode.name.clone())
        };
        let count = |notes: &[String]| pluralize(notes.len() as u64, "note");
        match self {
            Self::Group { notes, mode } => format!("{} into {}", count(notes), name(mode)),
            Self::Ungroup { notes, mode } => format!("{} out of {}", count(notes), name(mode)),
            Self::Create { name, notes, .. } => {
                format!("the new mode {name} with {}", count(notes))
            }
            Self::Rename { mode, name: new } => format!("the name {new} of {}", name(mode)),
            Self::Define { mode, .. } => format!("the definition of {}", name(mode)),
            Self::Merge { from, into } => {
                format!("the merge of {} into {}", name(from), name(into))
            }
            Self::Split {
                mode, name: new, ..
            } => {
                format!("the split of {new} off {}", name(mode))
            }
        }
    }
}

/// The files after a change: what to write.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupingWrite {
    /// The modes, if they change.
    pub modes: Option<ModeList>,
    /// The records to add.
    pub notes: Vec<ReviewNote>,
}

/// Returns what a change writes. `None` if the change has no effect.
pub fn plan_change(
    book: &ReviewBook,
    change: &GroupingChange,
    at: &WallTime,
) -> Option<GroupingWrite> {
    let day = at.0.get(..10).map(str::to_owned);
    let mut modes = book.modes.clone();
    let mut write = GroupingWrite::default();
    let set = |id: &String, edit: &dyn Fn(&mut BTreeMap<String, bool>)| -> Option<ReviewNote> {
        let old = book.find(id)?;
        let mut new = old.clone();
        edit(&mut new.modes);
        if new.modes == old.modes {
            return None;
        }
        new.at = Some(at.clone());
        Some(new)
    };
    match change {
        GroupingChange::Group { notes, mode } => {
            modes.find(mode)?;
            let add = |answers: &mut BTreeMap<String, bool>| {
                answers.insert(mode.clone(), true);
            };
            write.notes = notes.iter().filter_map(|id| set(id, &add)).collect();
        }
        GroupingChange::Ungroup { notes, mode } => {
            let remove = |answers: &mut BTreeMap<String, bool>| {
                answers.retain(|id, _| modes.resolve(id) != Some(mode.as_str()));
            };
            write.notes = notes.iter().filter_map(|id| set(id, &remove)).collect();
        }
        GroupingChange::Create {
            name,
            definition,
            notes,
        } => {
            let id = add_mode(&mut modes, name, definition, day, notes);
            let add = |answers: &mut BTreeMap<String, bool>| {
                answers.insert(id.clone(), true);
            };
            write.notes = notes.iter().filter_map(|note| set(note, &add)).collect();
            write.modes = Some(modes);
        }
        GroupingChange::Rename { mode, name } => {
            find_mut(&mut modes, mode)?.name.clone_from(name);
            write.modes = (modes != book.modes).then_some(modes);
        }
        GroupingChange::Define { mode, definition } => {
            find_mut(&mut modes, mode)?
                .definition
                .clone_from(definition);
            write.modes = (modes != book.modes).then_some(modes);
        }
        GroupingChange::Merge { from, into } => {
            if from == into {
                return None;
            }
            let place = modes.modes.iter().position(|mode| mode.id == *from)?;
            modes.find(into)?;
            let gone = modes.modes.remove(place);
            let kept = find_mut(&mut modes, into)?;
            kept.formerly.push(FormerMode {
                id: gone.id,
                name: gone.name,
                definition: gone.definition,
                merged: day,
            });
            kept.formerly.extend(gone.formerly);
            for example in gone.examples {
                if !kept.examples.contains(&example) {
                    kept.examples.push(example);
                }
            }
            write.modes = Some(modes);
        }
        GroupingChange::Split { mode, notes, name } => {
            modes.find(mode)?;
            let of_mode: Vec<String> = book
                .notes_of_mode(mode)
                .into_iter()
                .map(|note| note.id.clone())
                .filter(|id| notes.contains(id))
                .collect();
            if of_mode.is_empty() {
                return None;
            }
            let id = add_mode(&mut modes, name, "", day, &of_mode);
            if let Some(old) = find_mut(&mut modes, mode) {
                old.examples.retain(|example| !of_mode.contains(example));
            }
            let move_note = |answers: &mut BTreeMap<String, bool>| {
                answers.retain(|known, _| book.modes.resolve(known) != Some(mode.as_str()));
                answers.insert(id.clone(), true);
            };
            write.notes = of_mode
                .iter()
                .filter_map(|note| set(note, &move_note))
                .collect();
            write.modes = Some(modes);
        }
    }
    (write != GroupingWrite::default()).then_some(write)
}

fn find_mut<'m>(modes: &'m mut ModeList, id: &str) -> Option<&'m mut FailureMode> {
    modes.modes.iter_mut().find(|mode| mode.id == id)
}

fn add_mode(
    modes: &mut ModeList,
    name: &str,
    definition: &str,
    since: Option<String>,
    notes: &[String],
) -> String {
    let id = modes.new_id(name);
    modes.modes.push(FailureMode {
        id: id.clone(),
        name: name.to_owned(),
        definition: definition.to_owned(),
        since,
        examples: notes.iter().take(3).cloned().collect(),
        ..FailureMode::default()
    });
    id
}
