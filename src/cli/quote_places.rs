//! The places of quotes that their sources lack, for printed judge traces: the same as on the screen.
//!
//! Responsible for the texts of a recorded cell. Does not search them; `judge` does.

use crate::event::{BlobSource, CallPosition, CellState, RunState, number_fetch};
use crate::judge::{
    ClaimFinding, SearchedMessage, SearchedResponse, SearchedTexts, collect_claims,
    list_citable_texts, list_rubric_texts,
};
use crate::model::{CellIx, Digest, SUBMIT_VERDICT};
use crate::report::{QuotePlaces, read_piece, read_rope};
use crate::transcript::parse_native;

/// Returns the places for a cell of a run.
pub(super) fn find_places_in_run(
    state: &RunState,
    cell: CellIx,
    blobs: &dyn BlobSource,
) -> QuotePlaces {
    let Some(found) = state.cells.get(cell.index()) else {
        return QuotePlaces::new();
    };
    let planned = found.planned.map(|planned| planned.transcript as usize);
    let transcript = planned.and_then(|at| state.transcripts.get(at));
    find_quote_places(found, transcript.map(|known| &known.source.digest), blobs)
}

/// Returns the places for a cell. `transcript` is the digest of its transcript, of which the run has a copy.
pub(super) fn find_quote_places(
    cell: &CellState,
    transcript: Option<&Digest>,
    blobs: &dyn BlobSource,
) -> QuotePlaces {
    let result = cell.result.as_deref();
    let Some(verdict) = result.and_then(|result| result.verdict.as_deref()) else {
        return QuotePlaces::new();
    };
    if verdict.citations.iter().all(|citation| citation.found) {
        return QuotePlaces::new();
    }
    // Step: collect the texts. A text that cannot be read is not searched.
    let bytes = transcript.and_then(|digest| blobs.get(digest).ok());
    let bytes = bytes.unwrap_or_default();
    let messages = parse_native(&bytes, 1, "").map(|read| list_citable_texts(&read));
    let messages = messages.unwrap_or_default();
    let turns = &cell.judge_trace;
    let mut responses: Vec<(CallPosition, String)> = Vec::new();
    for (turn, state) in turns.iter().enumerate() {
        for (call, made) in state.calls.iter().enumerate() {
            if let Some(finished) = made
                .finished
                .as_ref()
                .filter(|_| made.name != SUBMIT_VERDICT)
            {
                let text = read_piece(&finished.response.text, blobs);
                responses.push((CallPosition { turn, call }, text));
            }
        }
    }
    let responses: Vec<SearchedResponse<'_>> = responses
        .iter()
        .map(|(position, text)| SearchedResponse {
            position: *position,
            number: number_fetch(turns, *position),
            text,
        })
        .collect();
    let request = turns.first().map(|turn| read_rope(&turn.request, blobs));
    let rubric = request.map_or_else(Vec::new, |body| list_rubric_texts(&body));
    let rubric: Vec<&str> = rubric.iter().map(String::as_str).collect();
    // Step: search them.
    let texts = SearchedTexts {
        messages: messages
            .iter()
            .enumerate()
            .map(|(piece, (number, text))| SearchedMessage {
                number: *number,
                piece,
                text,
            }),
        responses: &responses,
        rubric: &rubric,
    };
    let claims = collect_claims(verdict, &texts);
    // The claims begin with the citations, in order.
    let citations = verdict.citations.iter().zip(&claims).enumerate();
    citations
        .filter(|(_, (citation, _))| !citation.found)
        .filter_map(|(at, (_, claim))| match claim.finding {
            ClaimFinding::NotSearched => Some((
                at,
                "and not searched elsewhere: the texts are too large".to_owned(),
            )),
            _ => Some((at, claim.describe_elsewhere()?)),
        })
        .collect()
}
