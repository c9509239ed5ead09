//! Reading before any rubric: notes on transcripts, failure modes, their shares, and evals that grow out of them.
//!
//! Responsible for the sample of transcripts to read, the two files `notes.jsonl` and `modes.yaml`, groups of notes, and
//! the counts per mode. Does not draw a screen and does not parse a command line. Only [`SuggestionOrder`] calls a model.
//!
//! # Files
//!
//! Both files are next to dicta.yaml. For a file of transcripts without a workspace, they are in the folder in which the
//! key `W` creates its workspace.
//!
//! - `notes.jsonl` has one record per line and only grows at its end. Of several records with one id, the newest
//!   counts. Unknown fields stay.
//! - `modes.yaml` is a list of modes. dicta changes only the entries that differ, so comments between entries stay.
//! - `notes.draws.jsonl` has the draws in the format of `labels.draws.jsonl`: which transcripts could be drawn, and
//!   which were.
//!
//! # Counts
//!
//! - `no_failure` answers "no" for every mode. A note on the first failure answers only for the modes that it names.
//! - A share uses [`crate::compare::statistics`] over sampling cells. Transcripts picked by hand are never part of it.

mod answers;
mod block_groups;
mod catalog;
mod check;
mod counts;
mod eval_candidates;
mod eval_draft;
mod eval_write;
mod files;
mod grouping;
mod judge_suggestions;
mod linkage;
mod mode_file;
mod modes;
mod note;
mod outliers;
mod place;
mod read;
mod report;
mod report_html;
mod report_json;
mod sampling;
mod session;
mod similarity;
mod suggestion;
mod terms;
#[cfg(test)]
mod tests;
mod undo;
mod undo_journal;

pub use answers::{Disagreement, ModeAnswer, ReviewBook};
pub use catalog::{CatalogEntry, ReviewCatalog, TranscriptFeatures};
pub use check::{NotedTranscript, check_review};
pub use counts::{ModeCounts, ModeTable, Saturation, count_modes};
pub use eval_draft::{
    DraftHits, EvalDraft, EvalDraftKind, ExampleCandidate, add_eval_to_rubric, count_hits,
    describe_judge_draft, draft_evals, mode_labels, rank_drafts,
};
pub use eval_write::{
    EvalUndo, EvalUndoError, EvalWriteError, WrittenEval, default_rubric_name, undo_eval,
    write_eval,
};
pub use files::{ReviewFileError, ReviewFiles, ReviewText, append_notes, write_modes};
pub use grouping::{GroupingChange, GroupingWrite, plan_change};
pub use judge_suggestions::{JudgeSuggestions, JudgeSuggestionsError, SuggestionOrder};
pub use mode_file::{edit_modes_text, parse_modes};
pub use modes::{FailureMode, FormerMode, ModeList};
pub use note::{NoteLine, NoteOutcome, NoteSample, ReviewNote, new_note_id, parse_notes};
pub use place::{ReviewPlace, ReviewPlaceError};
pub use read::{ReadReviewError, ReviewFilesCheck, check_review_files};
pub use report::{ReviewReport, describe_table, format_share, render_markdown};
pub use report_html::render_html;
pub use report_json::render_json;
pub use sampling::{MixError, ReviewMix, ReviewQueueItem, SampleRequest, draw_sample, list_queue};
pub use session::{ReviewError, ReviewSession, open_session};
pub use similarity::{DEFAULT_CUT, NoteGroup, suggest_groups};
pub use suggestion::{
    ReadSuggestions, Suggestion, SuggestionError, SuggestionPrompt, parse_suggestions,
    read_last_suggestions, record_suggestions, render_suggestion_prompt,
};
pub use undo::{ModeChange, NoteChange, UndoError, UndoStep};
pub use undo_journal::{UNDO_FOLDER, UndoJournal};
