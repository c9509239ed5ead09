//! The opened item: a workspace, a file of transcripts, or a recording.

use std::path::Path;
use std::sync::Arc;

use super::{examples, first_judging, labels, warnings};
use crate::model::{make_visible, pluralize};
use crate::tui::effect::Effect;
use crate::tui::listing::ListingUpdate;
use crate::tui::msg::MadeWorkspace;
use crate::tui::state::cells::CellsEntry;
use crate::tui::state::examples::ExamplesState;
use crate::tui::state::first_judging::FirstJudging;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::opened_file::OpenedFileState;
use crate::tui::state::pane::Pane;
use crate::tui::state::saves::SavesState;
use crate::tui::state::session_view::SessionView;
use crate::tui::state::{App, OpenedItem};
use crate::tui::task_failure::TaskFailure;
use crate::workspace::Workspace;

/// Returns the effects that load the opened item.
pub(super) fn request_initial_data(app: &mut App) -> Vec<Effect> {
    match app.opened.clone() {
        OpenedItem::Workspace(workspace) => open_workspace(app, workspace),
        OpenedItem::TranscriptFile(file) => {
            app.opened_file = OpenedFileState {
                is_listing: true,
                ..OpenedFileState::default()
            };
            vec![Effect::ListTranscripts { file, after: 0 }]
        }
        // `run_workbench` orders the recording with its own effect.
        OpenedItem::Recording => Vec::new(),
    }
}

fn open_workspace(app: &mut App, workspace: Arc<Workspace>) -> Vec<Effect> {
    app.generation += 1;
    let generation = app.generation;
    app.first_judging = app.judges_on_open.then(FirstJudging::default);
    app.past_verdict_wait.begin();
    // Without a choice in this workspace, a new session has the default order.
    if let Some(sort) = app.ui.choices.order_in(&workspace.root) {
        app.live_session.cells.sort = sort;
    }
    warnings::report_new(app, &workspace.warnings);
    labels::report_problems(app, None, &workspace);
    if workspace.is_demo {
        let text = format!(
            "this is the demo, unpacked at {} (yours to edit)",
            display_path(&workspace.root)
        );
        app.notices.push(app.now, NoticeLevel::Info, text);
    }
    let mut effects = examples::try_after_open(app, &workspace);
    effects.extend([
        Effect::WatchWorkspace(Arc::clone(&workspace)),
        Effect::CheckKeys(Arc::clone(&workspace)),
        Effect::ComputeOutline {
            generation,
            workspace: Arc::clone(&workspace),
        },
        Effect::ReadNewestVerdicts {
            generation,
            workspace: Arc::clone(&workspace),
            decided_by: Arc::clone(&workspace),
            renames: Vec::new(),
        },
        Effect::ReadEdit { workspace },
    ]);
    effects
}

/// Adds a page of transcripts of the opened file.
pub(super) fn handle_listed(app: &mut App, file: &Path, listed: ListingUpdate) -> Vec<Effect> {
    // The user may have created a workspace while the file was listed.
    if !matches!(&app.opened, OpenedItem::TranscriptFile(open) if open == file) {
        return Vec::new();
    }
    let opened_file = &mut app.opened_file;
    let mut refs = listed.refs;
    // Records of a foreign file may repeat an id, but each row needs its own.
    for found in &mut refs {
        found.id = opened_file.ids.make_unique(std::mem::take(&mut found.id)).0;
    }
    opened_file.listed_records += refs.len() as u64 + listed.bad;
    // Messages of one page may arrive with older counts.
    opened_file.counted_records = opened_file.counted_records.max(listed.counted);
    opened_file.invalid_records += listed.bad;
    opened_file.is_listing &= !listed.page_complete;
    opened_file.fully_counted |= listed.fully_counted;
    if !refs.is_empty() {
        app.live_session.cells.add_unjudged_rows(&refs);
    }
    let cells = &mut app.live_session.cells;
    cells.outline_complete = opened_file.fully_counted;
    // The first row is selected at once, so that its transcript is shown.
    if cells.list.selected.is_none() && !cells.rows.is_empty() {
        cells.list.selected = Some(CellsEntry::Row(crate::tui::state::cells::RowId(0)));
    }
    // Only the first page with invalid records gives its reason. Otherwise, every page would add a notice.
    if let Some(why) = listed
        .why
        .filter(|_| opened_file.invalid_records == listed.bad)
    {
        let text = make_visible(&why, false).into_owned();
        app.notices.push(app.now, NoticeLevel::Warning, text);
    }
    let some_skipped = listed.not_understood.is_some();
    if let Some(notice) = listed.not_understood {
        let notice = make_visible(&notice, false).into_owned();
        app.notices.push(app.now, NoticeLevel::Info, notice);
    }
    // The message may contain text of the file, so it is escaped.
    if let Some(why) = listed.problem {
        app.opened_file.needs_field_mapping = listed.mappable;
        let why = make_visible(&why, false).into_owned();
        app.opened_file.problem = Some(why.clone());
        app.notices.push(app.now, NoticeLevel::Error, why);
    } else if listed.fully_counted {
        let mut text = summarize_listing(&app.opened_file, some_skipped);
        let is_reading = app.review.open;
        if !is_reading {
            text += "; V reads and notes them first, W creates a workspace with a first rubric";
        }
        // The reading screen has its own progress, so it needs the sentence only for a problem.
        if !is_reading || app.opened_file.invalid_records > 0 || some_skipped {
            app.notices.push(app.now, NoticeLevel::Info, text);
        }
    }
    Vec::new()
}

fn summarize_listing(opened_file: &OpenedFileState, some_skipped: bool) -> String {
    let mut text = pluralize(opened_file.counted_records, "transcript");
    if opened_file.invalid_records > 0 {
        text = format!(
            "{}, {} of them could not be read",
            pluralize(opened_file.counted_records, "record"),
            opened_file.invalid_records
        );
    }
    if some_skipped {
        text += ", some records not understood (L says which)";
    }
    text
}

/// Lists more transcripts of the opened file if the cursor is near the end of the list. Called after every update.
pub(super) fn list_more_if_needed(app: &mut App) -> Vec<Effect> {
    /// The distance in rows from the end of the list at which the next page is ordered.
    const NEAR: usize = 300;
    let OpenedItem::TranscriptFile(file) = &app.opened else {
        return Vec::new();
    };
    let cells = &app.live_session.cells;
    // A selected group is at the top of the list.
    let at = match cells.list.selected {
        Some(CellsEntry::Row(row)) => row.0 as usize,
        _ => 0,
    };
    let opened_file = &mut app.opened_file;
    let more = opened_file.listed_records < opened_file.counted_records
        && !opened_file.is_listing
        && opened_file.problem.is_none();
    // The user may have scrolled further than the cursor.
    let near = cells.list.top.max(at) + NEAR >= cells.rows.len();
    if !(more && near) {
        return Vec::new();
    }
    // Set before the first result, so that the page is ordered once.
    opened_file.is_listing = true;
    vec![Effect::ListTranscripts {
        file: file.clone(),
        after: opened_file.listed_records,
    }]
}

/// Creates a workspace around the opened file.
pub(super) fn make_workspace(app: &mut App) -> Vec<Effect> {
    // A missing field mapping does not prevent a workspace, because the workspace provides one.
    let problem = app
        .opened_file
        .problem
        .as_ref()
        .filter(|_| !app.opened_file.needs_field_mapping);
    match (&app.opened, problem) {
        (OpenedItem::TranscriptFile(file), None) => {
            vec![Effect::MakeWorkspace { file: file.clone() }]
        }
        (OpenedItem::TranscriptFile(_), Some(why)) => {
            let text = format!("no workspace can be made around this file: {why}");
            app.notices.push(app.now, NoticeLevel::Warning, text);
            Vec::new()
        }
        _ => {
            let text = "this is for a file of transcripts without a workspace: dicta open FILE";
            app.notices.push(app.now, NoticeLevel::Info, text);
            Vec::new()
        }
    }
}

/// Opens a workspace that was created around a file.
pub(super) fn handle_workspace_made(
    app: &mut App,
    made: Result<MadeWorkspace, TaskFailure>,
) -> Vec<Effect> {
    let MadeWorkspace { workspace, is_new } = match made {
        Ok(made) => made,
        Err(why) => {
            let text = make_visible(why.as_str(), false).into_owned();
            app.notices.push(app.now, NoticeLevel::Error, text);
            return Vec::new();
        }
    };
    let root = display_path(&workspace.root);
    let judges = if app.judges_on_open && first_judging::is_any_eval_allowed(&workspace) {
        "dicta judges it"
    } else {
        "R judges it"
    };
    app.opened = OpenedItem::Workspace(workspace);
    // The rows and results of the file do not belong to the workspace.
    app.live_session = SessionView::default();
    app.saves = SavesState::default();
    app.examples = ExamplesState::default();
    app.opened_file = OpenedFileState::default();
    app.ui.tab_pane = Pane::Verdict;
    let effects = request_initial_data(app);
    let text = if is_new {
        format!("made a workspace in {root}: {judges}, e edits its first rubric")
    } else {
        format!("opened the workspace that you made in {root}")
    };
    app.notices.push(app.now, NoticeLevel::Info, text);
    effects
}

fn display_path(path: &Path) -> String {
    make_visible(&path.to_string_lossy(), false).into_owned()
}

#[cfg(test)]
mod tests;
