//! From a verdict to the places it cites.

use std::ops::Range;
use std::sync::Arc;

use super::{reveal, show};
use crate::judge::{CitedPlace, cited_place};
use crate::model::{Citation, make_visible};
use crate::tui::content;
use crate::tui::effect::Effect;
use crate::tui::model::Model;
use crate::tui::model::document::{Doc, QuotesOf, find_quote};
use crate::tui::model::notices::Level;
use crate::tui::model::pane::Pane;
use crate::tui::model::trace::{Step, StepAt, fetch, shown, steps};
use crate::tui::widget::flow::Place;

/// So many bytes are searched for a verdict's quotes before it is on the screen; more waits for the key.
const SEARCHED: usize = 1 << 20;

/// The next place the shown verdict cites.
pub(super) fn next_citation(model: &mut Model) -> Vec<Effect> {
    let Some(shown) = shown(model) else {
        return say(
            model,
            Level::Info,
            "no cell is selected: j and k move in the cells",
        );
    };
    let count = content::verdict::of(&shown).map(|verdict| verdict.citations.len());
    match count {
        None => say(
            model,
            Level::Info,
            "no verdict yet that could cite anything",
        ),
        Some(0) => say(model, Level::Info, "this verdict cites nothing"),
        Some(count) => {
            let next = model.desk().trace.citation.map_or(0, |at| at + 1) % count;
            go_to(model, next)
        }
    }
}

/// To one citation: its quote, or at least the place it names.
pub(super) fn go_to(model: &mut Model, at: usize) -> Vec<Effect> {
    let citation =
        shown(model).and_then(|shown| content::verdict::of(&shown)?.citations.get(at).cloned());
    let Some(citation) = citation else {
        return Vec::new();
    };
    let desk = model.desk_mut();
    desk.trace.citation = Some(at);
    desk.trace.quoted = None;
    desk.document.quoted = None;
    match cited_place(&citation.source) {
        Some(CitedPlace::Message(number)) => to_message(model, number, &citation),
        Some(CitedPlace::Fetch(number)) => to_fetch(model, at, number, &citation),
        Some(CitedPlace::Rubric) => {
            let end = if citation.found {
                "e opens it"
            } else {
                "it does not stand there"
            };
            let text = format!("cites the rubric: {}; {end}", quoted(&citation));
            say(model, level(&citation), text)
        }
        None => {
            let source = make_visible(&citation.source, false);
            let text =
                format!("the verdict cites `{source}`, which names no message, fetch or rubric");
            say(model, Level::Warning, text)
        }
    }
}

fn to_message(model: &mut Model, number: usize, citation: &Citation) -> Vec<Effect> {
    let Some(doc) = model.desk().document.here().cloned() else {
        return say(
            model,
            Level::Info,
            "the transcript is not here yet: press c again",
        );
    };
    let Some(first) = doc.messages.get(number).copied() else {
        let text = format!("the verdict cites message {number}, and there is none of that number");
        return say(model, Level::Warning, text);
    };
    let found = quote_in(&doc, number, &citation.quote, usize::MAX).0;
    let (piece, byte) = match &found {
        Some((piece, range)) => (*piece, range.start + doc.head_of(*piece)),
        None => (first as usize, 0),
    };
    show(model, Pane::Transcript, Place { block: piece, byte });
    let missing = found.is_none();
    model.desk_mut().document.quoted = found;
    if missing || !citation.found {
        return not_found(model, citation);
    }
    Vec::new()
}

fn to_fetch(model: &mut Model, at: usize, number: usize, citation: &Citation) -> Vec<Effect> {
    let place = shown(model).and_then(|shown| {
        let turns = shown.turns();
        let (turn, call) = fetch(turns, number)?;
        let step = steps(turns).position(|step| step == Step::Call(turn, call))?;
        Some((turn, call, step))
    });
    let Some((turn, call, step)) = place else {
        let text =
            format!("the verdict cites fetch {number}, and nothing was fetched under that number");
        return say(model, Level::Warning, text);
    };
    let trace = &mut model.desk_mut().trace;
    trace.step = StepAt::At(step);
    // The quote stands in the text as the model got it, and not in the body.
    trace.raw = false;
    // The pane begins at its top for another call; where the quote stands comes after that.
    super::top_what_is_new(model);
    let found = shown(model).and_then(|shown| {
        let call = shown.turns().get(turn)?.calls.get(call)?;
        let text = content::fetched::answer(model, call)?;
        Some(text.map(|text| find_quote(text, &citation.quote)))
    });
    match found {
        Some(Err(())) => {
            model.desk_mut().trace.awaited = Some(at);
            reveal(model, Pane::FetchedContent);
            Vec::new()
        }
        Some(Ok(Some(range))) => {
            let block = content::of(model, Pane::FetchedContent)
                .len()
                .saturating_sub(1);
            let byte = range.start;
            model.desk_mut().trace.quoted = Some((turn, call, range));
            show(model, Pane::FetchedContent, Place { block, byte });
            Vec::new()
        }
        Some(Ok(None)) | None => {
            reveal(model, Pane::FetchedContent);
            not_found(model, citation)
        }
    }
}

fn not_found(model: &mut Model, citation: &Citation) -> Vec<Effect> {
    let source = make_visible(&citation.source, false);
    let text = format!("{} was not found in {source}", quoted(citation));
    say(model, Level::Warning, text)
}

fn level(citation: &Citation) -> Level {
    if citation.found {
        Level::Info
    } else {
        Level::Warning
    }
}

/// The quote, short enough for one line.
fn quoted(citation: &Citation) -> String {
    const MAX: usize = 60;
    let text = make_visible(&citation.quote, false);
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("“{}…”", &text[..at]),
        None => format!("“{text}”"),
    }
}

fn say(model: &mut Model, level: Level, text: impl Into<String>) -> Vec<Effect> {
    model.notices.tell(model.now, level, text);
    Vec::new()
}

/// Where a message holds a quote; and how many bytes were searched.
fn quote_in(
    doc: &Doc,
    message: usize,
    quote: &str,
    most: usize,
) -> (Option<(usize, Range<usize>)>, usize) {
    let mut searched = 0;
    for (at, piece) in doc.pieces_of(message) {
        let text = doc.text_of(piece);
        searched += text.len();
        if searched > most {
            break;
        }
        if let Some(range) = find_quote(text, quote) {
            return (Some((at, range)), searched);
        }
    }
    (None, searched)
}

/// Looks up where the shown verdict's quotes stand in the transcript, once a verdict and transcript.
pub(super) fn look_up(model: &mut Model) {
    let Some(doc) = model.desk().document.here().map(Arc::clone) else {
        return;
    };
    let shown = shown(model);
    let verdict = shown.as_ref().and_then(content::verdict::of);
    let citations = verdict.map_or(&[][..], |verdict| &verdict.citations);
    let of = model.desk().document.quotes_of.as_ref();
    let same = |of: &QuotesOf| {
        let known = of.sources.iter().map(|(source, quote)| (source, quote));
        of.id == doc.id && known.eq(citations.iter().map(|c| (&c.source, &c.quote)))
    };
    if of.is_some_and(same) {
        return;
    }
    let mut left = SEARCHED;
    let mut quotes = Vec::new();
    for citation in citations.iter().filter(|citation| citation.found) {
        if let Some(CitedPlace::Message(number)) = cited_place(&citation.source) {
            let (found, searched) = quote_in(&doc, number, &citation.quote, left);
            left = left.saturating_sub(searched);
            quotes.extend(found);
        }
    }
    quotes.sort_by_key(|(piece, range)| (*piece, range.start));
    let sources = citations
        .iter()
        .map(|c| (c.source.clone(), c.quote.clone()));
    let of = QuotesOf {
        id: doc.id.clone(),
        sources: sources.collect(),
    };
    let document = &mut model.desk_mut().document;
    document.quotes = quotes;
    document.quotes_of = Some(of);
}
