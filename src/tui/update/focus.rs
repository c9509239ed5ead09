//! Loads what the focused item needs: the trace of its newest run, the transcript, the visible
//! texts.
//!
//! [`request_focused`] runs after every update and only compares. So nothing is ordered twice, and a result for
//! another item is ignored. A result for the live session may also arrive while a replay is visible.

mod citations;
mod finding_marks;
mod steps;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::panes;
use crate::model::{Blob, RunId, TranscriptRef};
use crate::theme::StyledSpan;
use crate::transcript::FieldMapping;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::cells::{CellsRow, RowId, SlotId};
use crate::tui::state::document::{DocumentState, TranscriptDocument, TranscriptPane};
use crate::tui::state::judge_trace::{
    CellRef, LastShown, LastShownCall, RecordedCell, RecordedCellRef, RecordedCellState,
    RequestState, StepSelection, find_shown_call, find_shown_turn, find_streaming_call,
};
use crate::tui::state::overlay::Overlay;
use crate::tui::state::pane::Pane;
use crate::tui::state::piece_range::PieceRange;
use crate::tui::state::readable_request::{ReadableRequest, RequestKey};
use crate::tui::state::session_view::SessionView;
use crate::tui::state::shown_cell::{TraceLocation, locate_trace, resolve_shown_cell};
use crate::tui::state::transcript_source::{SourceOverlay, TranscriptSourceText};
use crate::tui::task_failure::TaskFailure;
use crate::tui::widget::flow::{BlockPosition, ScrollState};

pub(super) use finding_marks::handle_marks_found;
pub(crate) use steps::{
    move_message_by, move_step_by, select_adjacent_slot, select_step, toggle_raw,
};

/// Orders what the focused cell needs and is not ordered yet. Called after every update.
pub(super) fn request_focused(app: &mut App) -> Vec<Effect> {
    // The order matters: the trace and the transcript belong to the row, and the texts to the trace.
    update_focused_row(app.session_mut());
    let mut effects = Vec::new();
    effects.extend(request_trace(app));
    effects.extend(request_transcript(app));
    // Before the texts are requested, because the focus can decide which panes are visible.
    panes::leave_empty_pane(app);
    scroll_changed_panes(app);
    effects.extend(request_readable_request(app));
    request_texts(app, &mut effects);
    citations::locate_quotes(app);
    effects.extend(finding_marks::request_marks(app));
    effects
}

/// Focuses the row under the cursor.
fn update_focused_row(session: &mut SessionView) {
    let row = session.cells.selected_row();
    let held = row
        .and_then(|row| session.cells.row(row))
        .is_some_and(|row| row.slot(session.trace_panes.slot).is_some());
    let shown = row.and_then(|row| session.cells.row(row));
    let first = shown.map_or(0, CellsRow::first_shown_slot);
    let attempt = shown.and_then(CellsRow::interrupted_attempt);
    let trace = &mut session.trace_panes;
    // The recordings are read after the first frame. Then the row still shows its first cell, unless the user chose another.
    let is_left_behind = attempt == Some(first) && trace.slot == 0 && trace.first_slot == 0;
    if trace.row != row {
        trace.row = row;
        trace.slot = first;
        trace.first_slot = first;
        clear_positions(session);
    } else if !held && trace.slot > 0 || is_left_behind {
        trace.slot = first;
        trace.first_slot = first;
        clear_positions(session);
    }
}

/// Clears the positions in the texts of the cell before.
fn clear_positions(session: &mut SessionView) {
    session.trace_panes.step = StepSelection::Newest;
    session.trace_screen = session.trace_screen.for_another_cell();
    session.trace_panes.selected_citation = None;
    session.trace_panes.awaited_citation = None;
    session.trace_panes.selected_quote = None;
    session.transcript_pane.selected_quote = None;
}

fn request_trace(app: &mut App) -> Option<Effect> {
    let session = app.session();
    let row = session.trace_panes.row;
    let place = row.map(|row| locate_trace(session, row, session.trace_panes.slot));
    let wanted = match place {
        // The turns are in another run than the result, for a cached cell.
        Some(
            TraceLocation::Memory {
                cached: Some(wanted),
                ..
            }
            | TraceLocation::Recording(wanted),
        ) => wanted,
        Some(TraceLocation::NeverRun | TraceLocation::Memory { cached: None, .. }) | None => {
            app.session_mut().trace_panes.recorded = RecordedCellState::Unloaded;
            return None;
        }
    };
    if session.trace_panes.recorded.is_of(&wanted) {
        return None;
    }
    let (state, effect) = order_trace(app, row?, wanted);
    app.session_mut().trace_panes.recorded = state;
    effect
}

/// Orders the trace that is shown next to the focused one, if its run is not in memory.
pub(super) fn request_other_trace(app: &mut App) -> Option<Effect> {
    let session = app.session();
    let (row, slot) = (session.trace_panes.row?, session.trace_screen.other_slot?);
    let wanted = match locate_trace(session, row, slot) {
        TraceLocation::Memory {
            cached: Some(wanted),
            ..
        }
        | TraceLocation::Recording(wanted) => wanted,
        TraceLocation::NeverRun | TraceLocation::Memory { cached: None, .. } => return None,
    };
    if session.trace_screen.other.is_of(&wanted) {
        return None;
    }
    let (state, effect) = order_trace(app, row, wanted);
    app.session_mut().trace_screen.other = state;
    effect
}

/// Returns the loading state of a trace and the effect that reads it, or the reason why nothing can read it.
fn order_trace(
    app: &App,
    row: RowId,
    wanted: RecordedCellRef,
) -> (RecordedCellState, Option<Effect>) {
    let workspace = app.workspace().cloned();
    // A recording without a workspace may be next to the run that it refers to.
    let sibling_dir = app
        .replay
        .as_ref()
        .and_then(|replay| sibling_run_dir(&replay.dir, &wanted.run));
    let dir = sibling_dir.filter(|_| workspace.is_none());
    if workspace.is_none() && dir.is_none() {
        let why = format!(
            "run {}, which holds the trace, is not at hand",
            wanted.run.letters()
        );
        return (RecordedCellState::Failed { wanted, why }, None);
    }
    // Stored before the result arrives, so that the next update does not order it again.
    let state = RecordedCellState::Loading(wanted.clone());
    let effect = Effect::ReadTrace {
        row,
        run: wanted.run,
        cell: wanted.cell,
        workspace,
        dir,
    };
    (state, Some(effect))
}

/// Returns the folder of a run next to another one. An id from a recording is untrusted, so it must be a single file
/// name.
fn sibling_run_dir(dir: &Path, run: &RunId) -> Option<PathBuf> {
    let mut parts = Path::new(&run.0).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if name == run.0.as_str() => {
            Some(dir.parent()?.join(name))
        }
        _ => None,
    }
}

fn request_transcript(app: &mut App) -> Option<Effect> {
    let session = app.session();
    let row = session.cells.row(session.trace_panes.row?)?;
    let transcript = session.cells.transcripts.get(row.transcript as usize)?;
    // A reference with another digest is another transcript, so an edited file is read again.
    if session.transcript_pane.transcript.as_ref() == Some(transcript) {
        return None;
    }
    let transcript = transcript.clone();
    let (placed, run_dir) = resolve_transcript_source(app, &transcript);
    app.session_mut().transcript_pane = TranscriptPane {
        transcript: Some(transcript),
        document: DocumentState::Loading,
        ..TranscriptPane::default()
    };
    Some(Effect::ReadDocument {
        map: find_field_map(app, &placed.path),
        transcript: placed,
        run_dir,
    })
}

/// Opens the file's own record of the shown transcript in an overlay.
pub(super) fn show_source(app: &mut App) -> Vec<Effect> {
    let Some(transcript) = app.session().transcript_pane.transcript.clone() else {
        return Vec::new();
    };
    let (placed, _) = resolve_transcript_source(app, &transcript);
    let view = SourceOverlay::new_loading(placed.clone());
    app.overlays.push(Overlay::Source(view));
    let map = find_field_map(app, &placed.path);
    vec![Effect::ReadSource {
        transcript: placed,
        map,
    }]
}

/// Stores a record if its overlay is still open.
pub(super) fn handle_source_read(
    app: &mut App,
    transcript: &TranscriptRef,
    record: &Result<Arc<TranscriptSourceText>, TaskFailure>,
) {
    for overlay in &mut app.overlays {
        if let Overlay::Source(view) = overlay
            && view.transcript == *transcript
        {
            view.record = Some(record.clone());
        }
    }
}

/// Returns the field mapping of a file.
fn find_field_map(app: &App, path: &Path) -> Option<Arc<FieldMapping>> {
    app.workspace()?
        .field_maps
        .by_path
        .get(path)
        .map(Arc::clone)
}

/// Returns the transcript with its whole path, and the folder of the run that may contain a copy.
fn resolve_transcript_source(
    app: &App,
    transcript: &TranscriptRef,
) -> (TranscriptRef, Option<PathBuf>) {
    let shown_cell = resolve_shown_cell(app);
    let header = shown_cell.and_then(|shown_cell| shown_cell.header);
    // A recording may come from another workspace than the open one.
    let root = match (&app.replay, app.workspace()) {
        (Some(_), _) | (None, None) => header.map(|header| header.workspace.clone()),
        (None, Some(workspace)) => Some(workspace.root.clone()),
    };
    let run_dir = match &app.replay {
        // A replay has one folder, also if the shown trace is from another run.
        Some(replay) => Some(replay.dir.clone()),
        None => shown_cell
            .and_then(|shown_cell| shown_cell.dir)
            .map(Path::to_owned),
    };
    let placed = TranscriptRef {
        path: root.map_or_else(
            || transcript.path.clone(),
            |root| root.join(&transcript.path),
        ),
        ..transcript.clone()
    };
    (placed, run_dir)
}

/// Goes to the next text that the verdict rests on: a citation, or the mark of a check.
pub(crate) fn go_to_next_reference(app: &mut App) -> Vec<Effect> {
    match finding_marks::go_to_next_mark(app) {
        Some(effects) => effects,
        None => citations::go_to_next_citation(app),
    }
}

/// Scrolls panes with new content to the top. A pane with a stream stays at its end.
fn scroll_changed_panes(app: &mut App) {
    let shown_cell = resolve_shown_cell(app);
    let trace = &app.session().trace_panes;
    let turns = shown_cell.map_or(&[][..], |shown_cell| shown_cell.turns());
    let live = shown_cell.is_some_and(|shown_cell| shown_cell.is_live());
    let seen = LastShown {
        cell: trace.row.map(|row| SlotId {
            row,
            slot: trace.slot,
        }),
        run: shown_cell.and_then(|shown_cell| shown_cell.run.cloned()),
        turn: find_shown_turn(trace, turns),
        call: match find_streaming_call(trace, turns) {
            Some((turn, _)) => Some(LastShownCall::Streaming { turn }),
            None => find_shown_call(trace, turns).map(LastShownCall::Listed),
        },
        ended: shown_cell.is_some_and(|shown_cell| shown_cell.result.is_some()),
    };
    if seen == trace.last_shown {
        return;
    }
    let trace = &mut app.session_mut().trace_panes;
    // Another cell or another run resets every pane; another turn only some.
    let other = (&seen.cell, &seen.run) != (&trace.last_shown.cell, &trace.last_shown.run);
    if other || seen.turn != trace.last_shown.turn {
        trace.prompt = ScrollState::top();
    }
    if other || seen.call != trace.last_shown.call {
        let streams = matches!(seen.call, Some(LastShownCall::Streaming { .. }));
        trace.call = if streams {
            ScrollState::tail()
        } else {
            ScrollState::top()
        };
        trace.fetched = ScrollState::top();
    }
    // A pane that followed the stream shows the beginning of the verdict.
    let ends = seen.ended && !trace.last_shown.ended && trace.verdict.follow;
    let elsewhere = seen.turn != trace.last_shown.turn && !live;
    if other || ends || elsewhere {
        trace.verdict = if live {
            ScrollState::tail()
        } else {
            ScrollState::top()
        };
    }
    trace.last_shown = seen;
}

fn request_readable_request(app: &mut App) -> Option<Effect> {
    let shown_cell = resolve_shown_cell(app)?;
    let turns = shown_cell.turns();
    let at = find_shown_turn(&app.session().trace_panes, turns)?;
    let turn = turns.get(at)?;
    let asked = &app.session().trace_panes.request;
    let same = |key: &RequestKey| {
        (&key.run, key.cell, key.turn)
            == (shown_cell.run.unwrap_or(&key.run), shown_cell.number, at)
    };
    // A turn without a stored request has nothing to show.
    if turn.request.is_empty() || asked.key().is_some_and(same) {
        return None;
    }
    let key = RequestKey {
        run: shown_cell.run?.clone(),
        cell: shown_cell.number,
        turn: at,
    };
    // The first turn has no request before it.
    let before = at.checked_sub(1).and_then(|before| turns.get(before));
    let effect = Effect::ReadRequest {
        key: key.clone(),
        dir: shown_cell.dir.map(Path::to_owned),
        request: turn.request.clone(),
        before: before.map(|turn| turn.request.clone()).unwrap_or_default(),
    };
    app.session_mut().trace_panes.request = RequestState::Loading(key);
    Some(effect)
}

/// Orders the visible blobs and colors that are not loaded.
fn request_texts(app: &mut App, effects: &mut Vec<Effect>) {
    let wanted = content::find_missing(app);
    // The row of an eval has no cell; the rubric that it shows is in the folder of the opened run.
    let dir = resolve_shown_cell(app)
        .and_then(|shown_cell| shown_cell.dir)
        .or_else(|| app.replay.as_ref().map(|replay| replay.dir.as_path()))
        .map(Path::to_owned);
    for page in wanted.hidden_text {
        app.texts.start_highlight(page.key);
        effects.extend(dir.clone().map(|dir| Effect::FindUnshown { dir, page }));
    }
    if !wanted.blobs.is_empty() {
        // Without a folder the blob fails at once, so that the pane gives the reason.
        for blob in wanted.blobs {
            app.texts.start_blob(&blob.hash.0);
            if let Some(dir) = dir.clone() {
                effects.push(Effect::ReadBlob { dir, blob });
            } else {
                let why = "the folder of its run is not known".into();
                app.texts.finish_blob(&blob.hash.0, Err(why));
            }
        }
    }
    for content::HighlightRequest { key, lang, text } in wanted.highlights {
        // Two panes may show the same text.
        if !app.texts.highlights.contains_key(&key) {
            app.texts.start_highlight(key);
            effects.push(Effect::Highlight { key, lang, text });
        }
    }
}

/// Returns the sessions that may wait for a result: the visible one, and the live one behind a replay.
fn sessions_mut(app: &mut App) -> impl Iterator<Item = &mut SessionView> {
    let replay = app.replay.as_mut().map(|replay| &mut replay.session);
    std::iter::once(&mut app.live_session).chain(replay)
}

/// Stores a recorded trace.
pub(super) fn handle_trace_read(
    app: &mut App,
    row: RowId,
    recorded: Result<Arc<RecordedCell>, TaskFailure>,
) -> Vec<Effect> {
    // The answer must be the ordered one: the user may have moved to another cell meanwhile.
    let waits = |state: &RecordedCellState| match (state, &recorded) {
        (RecordedCellState::Loading(wanted), Ok(recorded)) => {
            let meant = match &wanted.cell {
                CellRef::Ix(number) => recorded.cell == *number,
                CellRef::Named(named) => recorded.transcript.id == named.name.transcript,
            };
            wanted.run == recorded.run && meant
        }
        // A failure does not name its cell, so the row identifies it.
        (RecordedCellState::Loading(..), Err(_)) => true,
        _ => false,
    };
    let of_row = sessions_mut(app).filter(|session| session.trace_panes.row == Some(row));
    // The trace next to the focused one is ordered after it.
    let mut states = of_row.flat_map(|session| {
        [
            &mut session.trace_panes.recorded,
            &mut session.trace_screen.other,
        ]
    });
    if let Some(state) = states.find(|state| waits(state)) {
        // Taken out to move its reference into the new state.
        let asked = std::mem::take(state);
        *state = match (asked, recorded) {
            (RecordedCellState::Loading(wanted), Ok(recorded)) => RecordedCellState::Loaded {
                cell: wanted.cell,
                recorded,
            },
            (RecordedCellState::Loading(wanted), Err(why)) => RecordedCellState::Failed {
                wanted,
                why: why.into(),
            },
            (other, _) => other,
        };
    }
    Vec::new()
}

/// Stores a readable request.
pub(super) fn handle_request_read(
    app: &mut App,
    key: &RequestKey,
    request: Result<Arc<ReadableRequest>, TaskFailure>,
) -> Vec<Effect> {
    let waits =
        |state: &RequestState| matches!(state, RequestState::Loading(asked) if asked == key);
    let read = match request {
        Ok(request) => RequestState::Loaded(request),
        Err(why) => RequestState::Failed {
            key: key.clone(),
            why: why.into(),
        },
    };
    // The panes and the trace screen can show the same request.
    for session in sessions_mut(app) {
        let of_screen = session.trace_screen.requests.get_mut(&key.turn);
        let of_panes = [&mut session.trace_panes.request];
        for state in of_screen.into_iter().chain(of_panes) {
            if waits(state) {
                *state = read.clone();
            }
        }
    }
    Vec::new()
}

/// Stores a blob.
pub(super) fn handle_text_read(
    app: &mut App,
    blob: &Blob,
    text: Result<Arc<str>, TaskFailure>,
) -> Vec<Effect> {
    app.texts.finish_blob(&blob.hash.0, text);
    // A jump to a citation may wait for this text.
    match app.session_mut().trace_panes.awaited_citation.take() {
        Some(citation) => citations::go_to_citation(app, citation),
        None => Vec::new(),
    }
}

/// Stores the highlighting of a text.
pub(super) fn handle_highlighted(app: &mut App, key: u64, spans: Vec<StyledSpan>) -> Vec<Effect> {
    app.texts.finish_highlight(key, spans);
    Vec::new()
}

/// Stores a transcript.
pub(super) fn handle_document_read(
    app: &mut App,
    id: &str,
    doc: Result<Arc<TranscriptDocument>, TaskFailure>,
) -> Vec<Effect> {
    let waits = |session: &SessionView| {
        matches!(session.transcript_pane.document, DocumentState::Loading)
            && session
                .transcript_pane
                .transcript
                .as_ref()
                .is_some_and(|transcript| transcript.id == id)
    };
    if let Some(session) = sessions_mut(app).find(|session| waits(session)) {
        session.transcript_pane.document = match doc {
            Ok(doc) => DocumentState::Loaded(doc),
            Err(why) => DocumentState::Failed(why.into()),
        };
        // The positions of quotes depend on the document.
        session.transcript_pane.quotes_key = None;
    }
    Vec::new()
}

/// Shows a range of the transcript with its mark.
pub(super) fn show_transcript_range(app: &mut App, range: PieceRange) {
    let document = app.session().transcript_pane.loaded_document();
    let head = document.map_or(0, |doc| doc.heading_len(range.piece));
    let place = BlockPosition {
        block: range.piece,
        byte: range.range.start + head,
    };
    scroll_into_view(app, Pane::Transcript, place);
    app.session_mut().transcript_pane.selected_quote = Some(range);
}

/// Scrolls a pane to a position and makes the pane visible.
fn scroll_into_view(app: &mut App, pane: Pane, place: BlockPosition) {
    reveal_pane(app, pane);
    let area = app.layout().inner_size(pane);
    // Copied, because the text source borrows the app.
    let mut scroll: ScrollState = content::pane_scroll(app, pane).cloned().unwrap_or_default();
    scroll.reveal(&*content::pane_source(app, pane), area, place);
    if let Some(there) = content::pane_scroll_mut(app, pane) {
        *there = scroll;
    }
}

/// Makes a pane visible: as the tab, or by focus if only the focused pane is visible.
fn reveal_pane(app: &mut App, pane: Pane) {
    if app.layout().pane_area(pane).is_none() {
        app.ui.tab_pane = pane;
    }
    // Without tabs, only the focused pane is visible.
    if app.layout().pane_area(pane).is_none() {
        app.ui.focus = pane;
    }
}

#[cfg(test)]
mod tests;
