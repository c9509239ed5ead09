//! The reading screen: one transcript with one input line, groups of notes, and questions about modes.
//!
//! Responsible for what is selected and typed. Does not draw and does not write: see `update/review.rs`.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet, VecDeque};

use super::document::DocumentState;
use crate::model::WallTime;
use crate::review::{
    DEFAULT_CUT, DraftHits, EvalDraft, JudgeSuggestions, ModeTable, NoteGroup, ReviewNote,
    ReviewPlace, ReviewQueueItem, ReviewSession, Saturation, Suggestion, UndoStep,
};
use crate::tui::key_chord::KeyChord;
use crate::tui::widget::flow::ScrollState;

/// The view of the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ReviewView {
    /// One transcript.
    #[default]
    Reading,
    /// Notes and modes.
    Modes,
    /// Yes or no per mode.
    Answers,
    /// Drafts of an eval for a mode.
    Drafts,
    /// The table of modes.
    Counts,
}

/// The side of the view of modes that has the focus.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ModesSide {
    /// The notes without a mode, or those of the opened mode.
    #[default]
    Notes,
    /// The modes.
    Modes,
}

/// A text that is typed on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReviewText {
    /// The note on this transcript.
    Note(String),
    /// The name of a new mode with these notes.
    NewMode(Vec<String>),
    /// Another name of a mode.
    Rename(String),
    /// The definition of a mode.
    Define(String),
    /// The name of the mode that the chosen notes of a mode become.
    Split(String),
    /// The name of the judge that suggests groups.
    AskJudge,
    /// The rubric that the selected draft of an eval goes into.
    EvalRubric,
}

impl ReviewText {
    /// Returns the words before the line. A note is about the focused message.
    pub(crate) fn label(&self, message: u32) -> Cow<'static, str> {
        let label = match self {
            Self::Note(_) => return format!(" first failure, at message {message}: ").into(),
            Self::NewMode(_) => " new mode: ",
            Self::Rename(_) => " name: ",
            Self::Define(_) => " occurs when: ",
            Self::Split(_) => " split off as: ",
            Self::AskJudge => " judge: ",
            Self::EvalRubric => " into the rubric: ",
        };
        label.into()
    }

    /// Returns true if a canceled line keeps its text for the next time.
    pub(crate) const fn is_kept(&self) -> bool {
        !matches!(self, Self::AskJudge | Self::EvalRubric)
    }
}

/// The drafts of an eval for a mode.
#[derive(Debug, Clone, Default)]
pub(crate) struct DraftList {
    pub(crate) mode: String,
    pub(crate) drafts: Vec<EvalDraft>,
    /// The hits of each draft, or the reason why they are unknown; `None` while dicta counts.
    pub(crate) hits: Vec<Option<Result<Option<DraftHits>, String>>>,
    pub(crate) selected: usize,
    /// True after the user moved the selection.
    pub(crate) has_moved: bool,
}

/// The table of modes, and the sentences below it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CountedModes {
    pub(crate) table: ModeTable,
    pub(crate) facts: Vec<String>,
}

/// The view with the table of modes.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountsView {
    /// Increases with each order to count. Older results are ignored.
    pub(crate) number: u64,
    /// The table, or the reason why there is none; `None` while dicta counts.
    pub(crate) counted: Option<Result<Box<CountedModes>, String>>,
    /// The view to which `esc` goes back.
    pub(crate) came_from: ReviewView,
}

impl SuggestedGroup<'_> {
    /// Returns the group as a suggestion that the user can accept.
    pub(crate) fn to_suggestion(self) -> Suggestion {
        Suggestion {
            name: self.name.to_owned(),
            definition: self.definition.to_owned(),
            notes: self.notes.to_vec(),
        }
    }
}

/// The view of modes.
#[derive(Debug, Clone)]
pub(crate) struct ModesView {
    pub(crate) side: ModesSide,
    pub(crate) selected_note: usize,
    pub(crate) selected_mode: usize,
    /// The ids of marked notes.
    pub(crate) marked: BTreeSet<String>,
    /// The mode whose notes are listed instead of those without a mode.
    pub(crate) opened: Option<String>,
    /// The mode that the next selected mode takes in.
    pub(crate) merges: Option<String>,
    /// The groups of similar words.
    pub(crate) groups: Vec<NoteGroup>,
    /// Increases with each order to group by words. Older results are ignored.
    pub(crate) groups_number: u64,
    /// The eval that was written last. The notices of the saved files would hide it at once.
    pub(crate) written: Option<String>,
    /// True while a background task groups notes by words.
    pub(crate) is_grouping: bool,
    /// The distance up to which notes are grouped.
    pub(crate) cut: f64,
}

/// The question to a judge about groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct JudgeGroups {
    /// Increases with each question. Older answers are ignored.
    pub(crate) number: u64,
    /// The judge and the progress of a question under way.
    pub(crate) asking: Option<(String, String)>,
    /// The answer.
    pub(crate) answer: Option<JudgeSuggestions>,
    /// The discarded groups: the number of changes that could be undone then, the position, and the group.
    pub(crate) discarded: Vec<(usize, usize, Suggestion)>,
}

/// A suggested group of notes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SuggestedGroup<'a> {
    /// The number on the screen, from 0.
    pub(crate) number: usize,
    pub(crate) name: &'a str,
    /// The definition; empty for a group of similar words.
    pub(crate) definition: &'a str,
    pub(crate) notes: &'a [String],
    /// The judge that suggests it; `None` for a group of similar words.
    pub(crate) judge: Option<&'a str>,
}

impl Default for ModesView {
    fn default() -> Self {
        Self {
            side: ModesSide::default(),
            selected_note: 0,
            selected_mode: 0,
            marked: BTreeSet::new(),
            opened: None,
            merges: None,
            groups: Vec::new(),
            groups_number: 0,
            written: None,
            is_grouping: false,
            cut: DEFAULT_CUT,
        }
    }
}

/// The state of loading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ReviewLoading {
    /// Nothing was requested.
    #[default]
    Idle,
    /// The files are being read.
    Reading,
    /// The review does not open, for these reasons.
    Failed(Vec<String>),
}

/// The kind of a write in progress: what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReviewWriteKind {
    /// A note on the shown transcript; the next transcript follows.
    Note,
    /// A change of groups.
    Groups,
    /// An answer; the next question follows.
    Answer,
    /// An eval in a rubric.
    Eval,
    /// An undone change.
    Undo,
}

/// The state of the screen.
#[derive(Debug, Default)]
pub(crate) struct ReviewScreen {
    pub(crate) open: bool,
    pub(crate) view: ReviewView,
    /// The place that the command line chose.
    pub(crate) place: Option<ReviewPlace>,
    /// Increases with each order to read. Older results are ignored.
    pub(crate) number: u64,
    pub(crate) loading: ReviewLoading,
    /// The number of the last write when dicta began to read the files again for the same view.
    pub(crate) rereads_since: Option<u64>,
    /// The size of the sample when `+` began to draw more.
    pub(crate) size_before_draw: Option<usize>,
    pub(crate) session: Option<Box<ReviewSession>>,
    /// The time at which the review was read.
    pub(crate) opened_at: Option<WallTime>,
    /// The position in the queue.
    pub(crate) at: usize,
    /// The transcript whose document is requested.
    pub(crate) shown: Option<String>,
    pub(crate) document: DocumentState,
    pub(crate) scroll: ScrollState,
    /// The focused message.
    pub(crate) message: u32,
    /// The number of the write in progress, and its kind.
    pub(crate) writing: Option<(u64, ReviewWriteKind)>,
    pub(crate) last_write: u64,
    /// The keys that were pressed during a write. They count after it, so that fast presses lose nothing.
    pub(crate) held: VecDeque<KeyChord>,
    /// The changes that can be undone, also those before the last restart. The newest one is last.
    pub(crate) undo: Vec<UndoStep>,
    /// The texts of canceled lines, each with its purpose.
    pub(crate) kept_texts: Vec<(ReviewText, String)>,
    /// The number of visited transcripts, and the new modes.
    pub(crate) visited: usize,
    pub(crate) saturation: Saturation,
    /// The number of questions that no reader has answered.
    pub(crate) open_questions: usize,
    pub(crate) modes: ModesView,
    pub(crate) judged: JudgeGroups,
    pub(crate) drafts: DraftList,
    pub(crate) counts: CountsView,
    /// The open questions, and the position in them.
    pub(crate) questions: Vec<(String, String)>,
    pub(crate) question: usize,
}

impl ReviewScreen {
    /// Returns the transcript of the view: that of the queue, or that of the question.
    pub(crate) fn current_transcript(&self) -> Option<&str> {
        let session = self.session.as_ref()?;
        match self.view {
            ReviewView::Answers => self
                .questions
                .get(self.question)
                .map(|(transcript, _)| transcript.as_str()),
            _ => session
                .queue
                .get(self.at)
                .map(|item| item.transcript.as_str()),
        }
    }

    /// Returns the item of the queue.
    pub(crate) fn current_item(&self) -> Option<&ReviewQueueItem> {
        self.session.as_ref()?.queue.get(self.at)
    }

    /// Returns the reader's own note on the shown transcript.
    pub(crate) fn current_note(&self) -> Option<&ReviewNote> {
        let session = self.session.as_ref()?;
        let reader = session.reader.as_deref();
        session.book.own_note(self.current_transcript()?, reader)
    }

    /// Returns the notes of the left side: those of the opened mode, else those without a mode, by similarity.
    pub(crate) fn listed_notes(&self) -> Vec<&ReviewNote> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let book = &session.book;
        if let Some(mode) = &self.modes.opened {
            return book.notes_of_mode(mode);
        }
        let groups = self.suggested_groups();
        let grouped = groups.iter().flat_map(|group| group.notes);
        let mut notes: Vec<&ReviewNote> = grouped
            .filter_map(|id| book.find(id))
            .filter(|note| note.is_ungrouped())
            .collect();
        let listed: HashSet<&str> = notes.iter().map(|note| note.id.as_str()).collect();
        let rest: Vec<&ReviewNote> = book
            .ungrouped()
            .into_iter()
            .filter(|note| !listed.contains(note.id.as_str()))
            .collect();
        notes.extend(rest);
        notes
    }

    /// Returns the suggested groups with notes that have no mode: those of the judge, else those of similar words.
    pub(crate) fn suggested_groups(&self) -> Vec<SuggestedGroup<'_>> {
        let Some(session) = &self.session else {
            return Vec::new();
        };
        let is_open = |id: &String| {
            let note = session.book.find(id);
            note.is_some_and(ReviewNote::is_ungrouped)
        };
        if let Some(answer) = &self.judged.answer {
            let groups = answer.groups.iter().enumerate();
            let groups: Vec<SuggestedGroup<'_>> = groups
                .filter(|(_, group)| group.notes.iter().any(is_open))
                .map(|(number, group)| SuggestedGroup {
                    number,
                    name: &group.name,
                    definition: &group.definition,
                    notes: &group.notes,
                    judge: Some(&answer.judge),
                })
                .collect();
            // Once all groups of the judge are accepted or discarded, similar words take over.
            if !groups.is_empty() {
                return groups;
            }
        }
        let groups = self.modes.groups.iter().enumerate();
        let groups = groups.map(|(number, group)| SuggestedGroup {
            number,
            name: &group.name,
            definition: "",
            notes: &group.notes,
            judge: None,
        });
        groups.collect()
    }

    /// Returns the suggested group of a note.
    pub(crate) fn group_of(&self, note: &str) -> Option<SuggestedGroup<'_>> {
        let groups = self.suggested_groups().into_iter();
        let mut of_note = groups.filter(|group| group.notes.iter().any(|id| id == note));
        of_note.next()
    }

    /// Returns the suggested group of the selected note.
    pub(crate) fn selected_group(&self) -> Option<SuggestedGroup<'_>> {
        if self.modes.opened.is_some() {
            return None;
        }
        let listed = self.listed_notes();
        let note = listed.get(self.modes.selected_note)?;
        let id = note.id.clone();
        self.group_of(&id)
    }

    /// Returns the id of the selected mode.
    pub(crate) fn selected_mode(&self) -> Option<&str> {
        let modes = &self.session.as_ref()?.book.modes.modes;
        modes
            .get(self.modes.selected_mode)
            .map(|mode| mode.id.as_str())
    }

    /// Returns the chosen notes: the marked ones, else the selected one.
    pub(crate) fn chosen_notes(&self) -> Vec<String> {
        if !self.modes.marked.is_empty() {
            return self.modes.marked.iter().cloned().collect();
        }
        let listed = self.listed_notes();
        let selected = listed.get(self.modes.selected_note);
        selected
            .map(|note| vec![note.id.clone()])
            .unwrap_or_default()
    }
}
