//! What is open: a workspace, a bare file, a recording.

use std::path::Path;
use std::sync::Arc;

use super::{examples, labels};
use crate::model::{make_visible, pluralize};
use crate::tui::effect::Effect;
use crate::tui::listing::Listed;
use crate::tui::model::bare::Bare;
use crate::tui::model::cells::Entry;
use crate::tui::model::desk::Desk;
use crate::tui::model::examples::Examples;
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::saves::Saves;
use crate::tui::model::{Model, Place};
use crate::workspace::Workspace;

/// What is asked for when the workbench opens, or opens something else.
pub(super) fn opened(model: &mut Model) -> Vec<Effect> {
    match model.place.clone() {
        Place::Workspace(workspace) => workspace_opened(model, workspace),
        Place::Bare(file) => {
            model.bare = Bare {
                listing: true,
                ..Bare::default()
            };
            vec![Effect::ListTranscripts { file, after: 0 }]
        }
        Place::Recording => match model.opening.read.take() {
            Some((run, dir)) => vec![Effect::ReadReplay {
                run,
                workspace: None,
                dir,
            }],
            None => Vec::new(),
        },
    }
}

fn workspace_opened(model: &mut Model, workspace: Arc<Workspace>) -> Vec<Effect> {
    model.generation += 1;
    let generation = model.generation;
    for warning in &workspace.warnings {
        let text = make_visible(&warning.to_string(), false).into_owned();
        model.notices.tell(model.now, Level::Warning, text);
    }
    labels::problems(model, None, &workspace);
    if workspace.is_demo {
        let text = format!(
            "this is the demo, unpacked at {} (yours to edit)",
            shown(&workspace.root)
        );
        model.notices.tell(model.now, Level::Info, text);
    }
    let mut effects: Vec<Effect> = examples::opened(model, &workspace).into_iter().collect();
    effects.extend([
        Effect::Watch(Arc::clone(&workspace)),
        Effect::Outline {
            generation,
            workspace: Arc::clone(&workspace),
        },
        Effect::ReadBoard {
            generation,
            workspace: Arc::clone(&workspace),
            decided_by: workspace,
        },
    ]);
    effects
}

/// Some more of the bare file was listed.
pub(super) fn listed(model: &mut Model, file: &Path, listed: Listed) -> Vec<Effect> {
    if !matches!(&model.place, Place::Bare(open) if open == file) {
        return Vec::new();
    }
    let bare = &mut model.bare;
    let mut refs = listed.refs;
    for found in &mut refs {
        found.id = bare.ids.make_unique(std::mem::take(&mut found.id)).0;
    }
    bare.listed += refs.len() as u64 + listed.bad;
    bare.counted = bare.counted.max(listed.counted);
    bare.bad += listed.bad;
    bare.listing &= !listed.page;
    bare.whole |= listed.whole;
    if !refs.is_empty() {
        model.live.cells.list_bare(&refs);
    }
    let cells = &mut model.live.cells;
    cells.complete = bare.whole;
    if cells.list.selected.is_none() && !cells.rows.is_empty() {
        cells.list.selected = Some(Entry::Row(crate::tui::model::cells::RowId(0)));
    }
    if let Some(why) = listed.why.filter(|_| bare.bad == listed.bad) {
        let text = make_visible(&why, false).into_owned();
        model.notices.tell(model.now, Level::Warning, text);
    }
    let missed = listed.missed.is_some();
    if let Some(told) = listed.missed {
        let told = make_visible(&told, false).into_owned();
        model.notices.tell(model.now, Level::Info, told);
    }
    if let Some(why) = listed.problem {
        model.bare.mappable = listed.mappable;
        let why = make_visible(&why, false).into_owned();
        model.bare.problem = Some(why.clone());
        model.notices.tell(model.now, Level::Error, why);
    } else if listed.whole {
        let text = summary(&model.bare, missed);
        model.notices.tell(model.now, Level::Info, text);
    }
    Vec::new()
}

fn summary(bare: &Bare, missed: bool) -> String {
    let mut text = pluralize(bare.counted, "transcript");
    if bare.bad > 0 {
        text = format!(
            "{}, {} of them could not be read",
            pluralize(bare.counted, "record"),
            bare.bad
        );
    }
    if missed {
        text += ", some records not understood (L says which)";
    }
    text + "; W makes a workspace with a first rubric around this file"
}

/// After every update: more rows of a bare file, where one looks at the last ones that are there.
pub(super) fn near_the_end(model: &mut Model) -> Vec<Effect> {
    /// So many rows before the end of the list the next page is asked for.
    const NEAR: usize = 300;
    let Place::Bare(file) = &model.place else {
        return Vec::new();
    };
    let cells = &model.live.cells;
    let at = match cells.list.selected {
        Some(Entry::Row(row)) => row.0 as usize,
        _ => 0,
    };
    let bare = &mut model.bare;
    let more = bare.listed < bare.counted && !bare.listing && bare.problem.is_none();
    let near = cells.list.top.max(at) + NEAR >= cells.rows.len();
    if !(more && near) {
        return Vec::new();
    }
    bare.listing = true;
    vec![Effect::ListTranscripts {
        file: file.clone(),
        after: bare.listed,
    }]
}

/// A workspace around the bare file, if one is open.
pub(super) fn make_workspace(model: &mut Model) -> Vec<Effect> {
    let problem = model.bare.problem.as_ref().filter(|_| !model.bare.mappable);
    match (&model.place, problem) {
        (Place::Bare(file), None) => vec![Effect::MakeWorkspace { file: file.clone() }],
        (Place::Bare(_), Some(why)) => {
            let text = format!("no workspace can be made around this file: {why}");
            model.notices.tell(model.now, Level::Warning, text);
            Vec::new()
        }
        _ => {
            let text = "this is for a file of transcripts without a workspace: dicta open FILE";
            model.notices.tell(model.now, Level::Info, text);
            Vec::new()
        }
    }
}

/// A workspace was made around a bare file.
pub(super) fn made(model: &mut Model, made: Result<Arc<Workspace>, String>) -> Vec<Effect> {
    let workspace = match made {
        Ok(workspace) => workspace,
        Err(why) => {
            let text = make_visible(&why, false).into_owned();
            model.notices.tell(model.now, Level::Error, text);
            return Vec::new();
        }
    };
    let root = shown(&workspace.root);
    model.place = Place::Workspace(workspace);
    model.live = Desk::default();
    model.saves = Saves::default();
    model.examples = Examples::default();
    model.bare = Bare::default();
    model.ui.tab = Pane::Verdict;
    let effects = opened(model);
    let text = format!("made a workspace in {root}: R judges it, e edits its first rubric");
    model.notices.tell(model.now, Level::Info, text);
    effects
}

fn shown(path: &Path) -> String {
    make_visible(&path.to_string_lossy(), false).into_owned()
}

#[cfg(test)]
mod tests;
