//! What is focused is read: the trace of its newest run, the transcript, the texts that are visible, their colours.
//!
//! [`look`] runs after every update and only compares: nothing is asked for twice, and what comes for something else is
//! ignored. Both desks may wait: an answer for the live one also arrives while a recording plays.

mod citations;
mod marks;
mod steps;

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::model::{Blob, RunId, TranscriptRef};
use crate::theme::Role;
use crate::transcript::FieldMapping;
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::cells::RowId;
use crate::tui::model::desk::Desk;
use crate::tui::model::document::{Doc, Document, Shown as Read};
use crate::tui::model::overlay::Overlay;
use crate::tui::model::pane::Pane;
use crate::tui::model::request::{Request, RequestKey};
use crate::tui::model::source::{RawRecord, SourceView};
use crate::tui::model::trace::{
    Asked, Loaded, Recorded, Seen, StepAt, Whereabouts, Which, call_at, forming, shown, turn_at,
    whereabouts,
};
use crate::tui::widget::flow::{Place, Scroll};

pub(super) use marks::found as marks_found;
pub(crate) use steps::{message_by, select_step, step_by, toggle_raw};

/// After every update: asks for what the focused cell needs and nobody asked for yet. Does nothing if nothing moved.
pub(super) fn look(model: &mut Model) -> Vec<Effect> {
    focus(model.desk_mut());
    let mut effects = Vec::new();
    effects.extend(ask_trace(model));
    effects.extend(ask_transcript(model));
    top_what_is_new(model);
    effects.extend(ask_request(model));
    ask_texts(model, &mut effects);
    citations::look_up(model);
    effects.extend(marks::ask(model));
    effects
}

/// The row under the cursor is the focused one.
fn focus(desk: &mut Desk) {
    let row = desk.cells.selected();
    let held = row
        .and_then(|row| desk.cells.row(row))
        .is_some_and(|row| row.slot(desk.trace.slot).is_some());
    let trace = &mut desk.trace;
    if trace.row != row {
        trace.row = row;
        trace.slot = 0;
        turn_away(desk);
    } else if !held && trace.slot > 0 {
        trace.slot = 0;
        turn_away(desk);
    }
}

/// Another cell: what was gone to in the one before means nothing here.
fn turn_away(desk: &mut Desk) {
    desk.trace.step = StepAt::Newest;
    desk.trace.citation = None;
    desk.trace.awaited = None;
    desk.trace.quoted = None;
    desk.document.quoted = None;
}

fn ask_trace(model: &mut Model) -> Option<Effect> {
    let desk = model.desk();
    let row = desk.trace.row;
    let place = row.map(|row| whereabouts(desk, row, desk.trace.slot));
    let (run, which) = match place {
        Some(Whereabouts::Memory(_, Some(wanted))) => wanted,
        Some(Whereabouts::Recording(run, which)) => (run, which),
        Some(Whereabouts::Never | Whereabouts::Memory(_, None)) | None => {
            model.desk_mut().trace.recorded = Loaded::Not;
            return None;
        }
    };
    if desk.trace.recorded.is_of(&run, &which) {
        return None;
    }
    let workspace = model.workspace().cloned();
    let beside = model
        .replay
        .as_ref()
        .and_then(|replay| sibling(&replay.dir, &run));
    let dir = beside.filter(|_| workspace.is_none());
    let trace = &mut model.desk_mut().trace;
    if workspace.is_none() && dir.is_none() {
        let why = format!(
            "run {}, which holds the trace, is not at hand",
            run.letters()
        );
        trace.recorded = Loaded::Failed(run, which, why);
        return None;
    }
    trace.recorded = Loaded::Reading(run.clone(), which.clone());
    Some(Effect::ReadTrace {
        row: row?,
        run,
        cell: which,
        workspace,
        dir,
    })
}

/// The folder of a run that is kept beside another. An id from a recording is untrusted: it must be one plain name.
fn sibling(dir: &Path, run: &RunId) -> Option<PathBuf> {
    let mut parts = Path::new(&run.0).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if name == run.0.as_str() => {
            Some(dir.parent()?.join(name))
        }
        _ => None,
    }
}

fn ask_transcript(model: &mut Model) -> Option<Effect> {
    let desk = model.desk();
    let row = desk.cells.row(desk.trace.row?)?;
    let transcript = desk.cells.transcripts.get(row.transcript as usize)?;
    if desk.document.of.as_ref() == Some(transcript) {
        return None;
    }
    let transcript = transcript.clone();
    let (placed, run_dir) = where_read(model, &transcript);
    model.desk_mut().document = Document {
        of: Some(transcript),
        doc: Read::Reading,
        ..Document::default()
    };
    Some(Effect::ReadDocument {
        map: map_of(model, &placed.path),
        transcript: placed,
        run_dir,
    })
}

/// What the file itself has of the shown transcript, in an overlay.
pub(super) fn show_source(model: &mut Model) -> Vec<Effect> {
    let Some(of) = model.desk().document.of.clone() else {
        return Vec::new();
    };
    let (placed, _) = where_read(model, &of);
    let view = SourceView::reading(placed.clone());
    model.overlays.push(Overlay::Source(view));
    let map = map_of(model, &placed.path);
    vec![Effect::ReadSource { of: placed, map }]
}

/// It was read: whoever still looks at it sees it.
pub(super) fn source_read(
    model: &mut Model,
    of: &TranscriptRef,
    record: &Result<Arc<RawRecord>, String>,
) {
    for overlay in &mut model.overlays {
        if let Overlay::Source(view) = overlay
            && view.of == *of
        {
            view.read = Some(record.clone());
        }
    }
}

/// What dicta.yaml says of a file's fields.
fn map_of(model: &Model, path: &Path) -> Option<Arc<FieldMapping>> {
    model.workspace()?.field_maps.0.get(path).map(Arc::clone)
}

/// A transcript with its whole path, and the folder of the run that may hold a copy.
fn where_read(model: &Model, transcript: &TranscriptRef) -> (TranscriptRef, Option<PathBuf>) {
    let shown = shown(model);
    let header = shown.and_then(|shown| shown.header);
    let root = match (&model.replay, model.workspace()) {
        (Some(_), _) | (None, None) => header.map(|header| header.workspace.clone()),
        (None, Some(workspace)) => Some(workspace.root.clone()),
    };
    let run_dir = match &model.replay {
        Some(replay) => Some(replay.dir.clone()),
        None => shown.and_then(|shown| shown.dir).map(Path::to_owned),
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

/// The next place that what is shown rests on: a judge's citation, or where a check found what it says.
pub(crate) fn next_citation(model: &mut Model) -> Vec<Effect> {
    match marks::next(model) {
        Some(effects) => effects,
        None => citations::next_citation(model),
    }
}

/// Panes that show something else than before begin at its top; a stream is followed.
fn top_what_is_new(model: &mut Model) {
    let shown = shown(model);
    let trace = &model.desk().trace;
    let turns = shown.map_or(&[][..], |shown| shown.turns());
    let live = shown.is_some_and(|shown| shown.is_live());
    let seen = Seen {
        at: trace.row.map(|row| (row, trace.slot)),
        run: shown.and_then(|shown| shown.run.cloned()),
        turn: turn_at(trace, turns),
        // Arguments that form are a call that has no number yet.
        call: match forming(trace, turns) {
            Some((turn, _)) => Some((turn, usize::MAX)),
            None => call_at(trace, turns),
        },
        ended: shown.is_some_and(|shown| shown.result.is_some()),
    };
    if seen == trace.seen {
        return;
    }
    let trace = &mut model.desk_mut().trace;
    let other = (&seen.at, &seen.run) != (&trace.seen.at, &trace.seen.run);
    if other || seen.turn != trace.seen.turn {
        trace.prompt = Scroll::top();
    }
    if other || seen.call != trace.seen.call {
        let streams = matches!(seen.call, Some((_, usize::MAX)));
        trace.call = if streams {
            Scroll::tail()
        } else {
            Scroll::top()
        };
        trace.fetched = Scroll::top();
    }
    let ends = seen.ended && !trace.seen.ended && trace.verdict.follow;
    let elsewhere = seen.turn != trace.seen.turn && !live;
    if other || ends || elsewhere {
        trace.verdict = if live { Scroll::tail() } else { Scroll::top() };
    }
    trace.seen = seen;
}

fn ask_request(model: &mut Model) -> Option<Effect> {
    let shown = shown(model)?;
    let turns = shown.turns();
    let at = turn_at(&model.desk().trace, turns)?;
    let turn = turns.get(at)?;
    let asked = &model.desk().trace.request;
    let same = |key: &RequestKey| {
        (&key.run, key.cell, key.turn) == (shown.run.unwrap_or(&key.run), shown.number, at)
    };
    if turn.request.is_empty() || asked.key().is_some_and(same) {
        return None;
    }
    let key = RequestKey {
        run: shown.run?.clone(),
        cell: shown.number,
        turn: at,
    };
    let before = at.checked_sub(1).and_then(|before| turns.get(before));
    let effect = Effect::ReadRequest {
        key: key.clone(),
        dir: shown.dir.map(Path::to_owned),
        request: turn.request.clone(),
        before: before.map(|turn| turn.request.clone()).unwrap_or_default(),
    };
    model.desk_mut().trace.request = Asked::Reading(key);
    Some(effect)
}

/// Blobs and colours that are shown and not here.
fn ask_texts(model: &mut Model, effects: &mut Vec<Effect>) {
    let wanted = content::wanted(model);
    let dir = shown(model).and_then(|shown| shown.dir).map(Path::to_owned);
    for page in wanted.unshown {
        model.texts.looking(page.key);
        effects.extend(dir.clone().map(|dir| Effect::FindUnshown { dir, page }));
    }
    if !wanted.blobs.is_empty() {
        for blob in wanted.blobs {
            model.texts.reading(&blob.hash.0);
            if let Some(dir) = dir.clone() {
                effects.push(Effect::ReadText { dir, blob });
            } else {
                let why = "the folder of its run is not known".to_owned();
                model.texts.read(&blob.hash.0, Err(why));
            }
        }
    }
    for (key, lang, text) in wanted.looks {
        // The same text may stand in two panes.
        if !model.texts.looks.contains_key(&key) {
            model.texts.looking(key);
            effects.push(Effect::Highlight { key, lang, text });
        }
    }
}

/// The desks that may wait for an answer: the shown one, and the live one behind a replay.
fn desks(model: &mut Model) -> impl Iterator<Item = &mut Desk> {
    let replay = model.replay.as_mut().map(|replay| &mut replay.desk);
    std::iter::once(&mut model.live).chain(replay)
}

/// A recorded trace is here.
pub(super) fn trace_read(
    model: &mut Model,
    row: RowId,
    recorded: Result<Arc<Recorded>, String>,
) -> Vec<Effect> {
    let waits = |desk: &Desk| match (&desk.trace.recorded, &recorded) {
        (Loaded::Reading(run, which), Ok(recorded)) => {
            let meant = match which {
                Which::Number(number) => recorded.cell == *number,
                Which::Named(name) => recorded.transcript.id == name.transcript,
            };
            desk.trace.row == Some(row) && *run == recorded.run && meant
        }
        (Loaded::Reading(..), Err(_)) => desk.trace.row == Some(row),
        _ => false,
    };
    if let Some(desk) = desks(model).find(|desk| waits(desk)) {
        let asked = std::mem::take(&mut desk.trace.recorded);
        desk.trace.recorded = match (asked, recorded) {
            (Loaded::Reading(_, which), Ok(recorded)) => Loaded::Here(which, recorded),
            (Loaded::Reading(run, which), Err(why)) => Loaded::Failed(run, which, why),
            (other, _) => other,
        };
    }
    Vec::new()
}

/// A request was made readable.
pub(super) fn request_read(
    model: &mut Model,
    key: &RequestKey,
    request: Result<Arc<Request>, String>,
) -> Vec<Effect> {
    let waits =
        |desk: &&mut Desk| matches!(&desk.trace.request, Asked::Reading(asked) if asked == key);
    if let Some(desk) = desks(model).find(waits) {
        desk.trace.request = match request {
            Ok(request) => Asked::Here(request),
            Err(why) => Asked::Failed(key.clone(), why),
        };
    }
    Vec::new()
}

/// A blob is here.
pub(super) fn text_read(
    model: &mut Model,
    blob: &Blob,
    text: Result<Arc<str>, String>,
) -> Vec<Effect> {
    model.texts.read(&blob.hash.0, text);
    match model.desk_mut().trace.awaited.take() {
        Some(citation) => citations::go_to(model, citation),
        None => Vec::new(),
    }
}

/// A text's looks are known.
pub(super) fn highlighted(
    model: &mut Model,
    key: u64,
    spans: Vec<(Range<usize>, Role)>,
) -> Vec<Effect> {
    model.texts.looked(key, spans);
    Vec::new()
}

/// A transcript is here.
pub(super) fn document_read(
    model: &mut Model,
    id: &str,
    doc: Result<Arc<Doc>, String>,
) -> Vec<Effect> {
    let waits = |desk: &Desk| {
        matches!(desk.document.doc, Read::Reading)
            && desk.document.of.as_ref().is_some_and(|of| of.id == id)
    };
    if let Some(desk) = desks(model).find(|desk| waits(desk)) {
        desk.document.doc = match doc {
            Ok(doc) => Read::Here(doc),
            Err(why) => Read::Failed(why),
        };
        desk.document.quotes_of = None;
    }
    Vec::new()
}

/// Makes a place of a pane visible, and the pane.
fn show(model: &mut Model, pane: Pane, place: Place) {
    reveal(model, pane);
    let area = model.layout().inside(pane);
    let mut scroll: Scroll = content::scroll(model, pane).cloned().unwrap_or_default();
    scroll.show(&*content::of(model, pane), area, place);
    if let Some(there) = content::scroll_mut(model, pane) {
        *there = scroll;
    }
}

/// A pane that is not shown becomes the shown tab; where only the focused one is shown, the focused one.
fn reveal(model: &mut Model, pane: Pane) {
    if model.layout().area(pane).is_none() {
        model.ui.tab = pane;
    }
    if model.layout().area(pane).is_none() {
        model.ui.focus = pane;
    }
}

#[cfg(test)]
mod tests;
