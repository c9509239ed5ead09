//! The quotes and numbers of a verdict, and the places where each occurs: messages, tool responses, the rubric.
//!
//! Pure. Does not read texts: `update/trace_screen.rs` collects them once per verdict.

use std::ops::Range;

use super::agent_comparison::AgentComparison;
use super::document::{TranscriptDocument, find_quote};
use super::judge_trace::CallPosition;
use super::piece_range::PieceRange;
use crate::judge::{CitedPlace, cited_place};
use crate::model::Verdict;

/// The largest number of claims that are searched.
const MAX_CLAIMS: usize = 40;
/// The largest number of listed places of a claim.
const MAX_PLACES: usize = 8;
/// The number of bytes that are searched for all claims together, so that a huge transcript does not block keys.
const MAX_SEARCHED_BYTES: usize = 8 << 20;
/// The largest number of fields of one response that are listed. The step of the response compares all of them.
const MAX_FIELDS: usize = 5;
/// The longest value of a field that is shown in full, in characters.
const MAX_VALUE_CHARS: usize = 40;
/// The longest text that counts as a quote, in bytes.
const MAX_QUOTE_BYTES: usize = 400;

/// A quote or a number on which a verdict rests.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VerdictClaim {
    /// The quote or the number, as the judge wrote it.
    pub(crate) text: String,
    pub(crate) kind: ClaimKind,
    /// The source that the judge cites, as written; `None` for a text of the reasoning without a citation.
    pub(crate) cited: Option<String>,
    /// The places where it occurs, the cited place first.
    pub(crate) places: Vec<ClaimPlace>,
    pub(crate) finding: ClaimFinding,
    /// The value in the response to the agent, and the message with it, if that differs.
    pub(crate) agent: Option<(String, u32)>,
}

/// The kind of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimKind {
    /// A citation, or a quote in the reasoning.
    Quote,
    /// A number in the reasoning.
    Number,
    /// A field of a tool response: `total 190.25`.
    Field,
}

/// The result of the search for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimFinding {
    /// It occurs where the judge cites it, or anywhere if the judge cites no place.
    Found,
    /// It occurs, but not where the judge cites it.
    FoundElsewhere,
    /// It occurs nowhere.
    NotFound,
    /// The texts are too large to search all of them.
    NotSearched,
    /// A field of a response to the judge has another value than in the agent's similar call.
    AgentDiffers,
}

/// A place where a claim occurs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClaimPlace {
    /// A message of the transcript.
    Message {
        /// The number of the message, from 0.
        number: u32,
        range: PieceRange,
    },
    /// A tool response of the judge.
    Response {
        position: CallPosition,
        /// The number by which a judge cites it; `None` for an error.
        number: Option<usize>,
        range: Range<usize>,
    },
    /// The rubric.
    Rubric,
}

impl ClaimPlace {
    /// Returns the place as judges cite it: `message 4`, `fetch 1`, `rubric`.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Message { number, .. } => format!("message {number}"),
            Self::Response {
                number: Some(number),
                ..
            } => format!("fetch {number}"),
            Self::Response { position, .. } => format!(
                "response of turn {} call {}",
                position.turn + 1,
                position.call + 1
            ),
            Self::Rubric => "rubric".to_owned(),
        }
    }

    fn is_cited(&self, cited: CitedPlace) -> bool {
        match (self, cited) {
            (Self::Message { number, .. }, CitedPlace::Message(at)) => *number as usize == at,
            (Self::Response { number, .. }, CitedPlace::Fetch(at)) => *number == Some(at),
            (Self::Rubric, CitedPlace::Rubric) => true,
            _ => false,
        }
    }
}

impl VerdictClaim {
    /// Returns the finding in words: `cited message 4, found in message 6`.
    pub(crate) fn describe_finding(&self) -> String {
        let places: Vec<String> = self.places.iter().map(ClaimPlace::describe).collect();
        let places = places.join(", ");
        if let Some((value, message)) = &self.agent {
            return format!("{places}, but the agent got {value} in message {message}");
        }
        match (self.finding, &self.cited) {
            (ClaimFinding::Found, Some(source)) => format!("{source}: found"),
            (ClaimFinding::Found, None) => format!("uncited, found in {places}"),
            (ClaimFinding::FoundElsewhere, Some(source)) => {
                format!("cited {source}, found in {places}")
            }
            (ClaimFinding::FoundElsewhere, None) => format!("found in {places}"),
            (ClaimFinding::NotFound | ClaimFinding::AgentDiffers, Some(source)) => {
                format!("cited {source}, not found")
            }
            (ClaimFinding::NotFound | ClaimFinding::AgentDiffers, None) => "not found".to_owned(),
            (ClaimFinding::NotSearched, Some(source)) => {
                format!("cited {source}, not searched: the texts are too large")
            }
            (ClaimFinding::NotSearched, None) => "not searched: the texts are too large".to_owned(),
        }
    }
}

/// A tool response to search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedResponse<'a> {
    pub(crate) position: CallPosition,
    pub(crate) number: Option<usize>,
    pub(crate) text: &'a str,
}

/// The texts in which claims are searched.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SearchedTexts<'a> {
    pub(crate) document: Option<&'a TranscriptDocument>,
    pub(crate) responses: &'a [SearchedResponse<'a>],
    /// The criteria and the scoring guide.
    pub(crate) rubric: &'a [&'a str],
}

/// Collects the claims of a verdict and finds them: the citations, then the quotes and numbers of the reasoning.
pub(crate) fn collect_claims(verdict: &Verdict, texts: &SearchedTexts<'_>) -> Vec<VerdictClaim> {
    let mut left = MAX_SEARCHED_BYTES;
    let mut claims: Vec<VerdictClaim> = Vec::new();
    for citation in verdict.citations.iter().take(MAX_CLAIMS) {
        let cited = cited_place(&citation.source);
        let (places, complete) =
            find_places(&citation.quote, ClaimKind::Quote, cited, texts, &mut left);
        let at_place = cited.is_some_and(|cited| places.iter().any(|one| one.is_cited(cited)));
        // The check of the judge used the full texts, so it decides about the cited place.
        let finding = match (citation.found || at_place, places.is_empty(), complete) {
            (true, _, _) => ClaimFinding::Found,
            (false, false, _) => ClaimFinding::FoundElsewhere,
            (false, true, true) => ClaimFinding::NotFound,
            (false, true, false) => ClaimFinding::NotSearched,
        };
        claims.push(VerdictClaim {
            text: citation.quote.clone(),
            kind: ClaimKind::Quote,
            cited: Some(citation.source.clone()),
            places,
            finding,
            agent: None,
        });
    }
    for (text, kind) in list_reasoning_claims(&verdict.reasoning) {
        let is_known = |claim: &VerdictClaim| match kind {
            ClaimKind::Quote => claim.text.contains(text),
            ClaimKind::Number | ClaimKind::Field => claim.kind == kind && claim.text == text,
        };
        if claims.len() >= MAX_CLAIMS {
            break;
        }
        if claims.iter().any(is_known) {
            continue;
        }
        let (places, complete) = find_places(text, kind, None, texts, &mut left);
        let finding = match (places.is_empty(), complete) {
            (false, _) => ClaimFinding::Found,
            (true, true) => ClaimFinding::NotFound,
            (true, false) => ClaimFinding::NotSearched,
        };
        claims.push(VerdictClaim {
            text: text.to_owned(),
            kind,
            cited: None,
            places,
            finding,
            agent: None,
        });
    }
    claims
}

/// Returns the fields of a response that have another value in the response to the agent's similar call.
pub(crate) fn list_differing_fields(
    found: &AgentComparison,
    response: &SearchedResponse<'_>,
) -> Vec<VerdictClaim> {
    let differing = found.fields.iter().filter(|field| field.differs());
    let claims = differing.filter_map(|field| {
        let (judge, agent) = field.judge.as_ref().zip(field.agent.as_ref())?;
        Some(VerdictClaim {
            text: format!("{} {}", field.name, shorten_value(judge)),
            kind: ClaimKind::Field,
            cited: None,
            places: vec![ClaimPlace::Response {
                position: response.position,
                number: response.number,
                range: 0..0,
            }],
            finding: ClaimFinding::AgentDiffers,
            agent: Some((shorten_value(agent), found.message)),
        })
    });
    claims.take(MAX_FIELDS).collect()
}

/// Cuts a long value, and puts it on one line.
fn shorten_value(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_VALUE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

/// Returns the quotes and the numbers of a text, in order.
fn list_reasoning_claims(text: &str) -> Vec<(&str, ClaimKind)> {
    let mut out: Vec<(usize, &str, ClaimKind)> = Vec::new();
    for (open, close) in [('“', '”'), ('"', '"'), ('`', '`'), ('«', '»'), ('„', '“')] {
        let mut from = 0;
        while let Some(begin) = text[from..].find(open) {
            let begin = from + begin + open.len_utf8();
            let Some(len) = text[begin..].find(close) else {
                break;
            };
            let quote = &text[begin..begin + len];
            from = begin + len + close.len_utf8();
            // A longer text is a whole paragraph between two unrelated marks.
            let fits = quote.trim().len() >= 3 && quote.len() <= MAX_QUOTE_BYTES;
            if fits && !quote.contains('\n') {
                out.push((begin, quote, ClaimKind::Quote));
            }
        }
    }
    let quoted: Vec<Range<usize>> = out.iter().map(|one| one.0..one.0 + one.1.len()).collect();
    for range in list_numbers(text) {
        let number = &text[range.clone()];
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        let in_quote = quoted.iter().any(|quote| quote.contains(&range.start));
        // One digit occurs everywhere, and the number of a message is a place.
        if digits >= 2 && !in_quote && !names_a_place(&text[..range.start]) {
            out.push((range.start, number, ClaimKind::Number));
        }
    }
    out.sort_by_key(|one| one.0);
    out.into_iter()
        .map(|(_, text, kind)| (text, kind))
        .collect()
}

/// Reports whether the number after this text names a place, such as a message.
fn names_a_place(before: &str) -> bool {
    let word = before.trim_end_matches([' ', '[', '#', '(']);
    let at = word
        .rfind(|c: char| !c.is_alphanumeric())
        .map_or(0, |at| at + 1);
    let word = word.get(at..).unwrap_or_default().to_lowercase();
    [
        "message", "messages", "fetch", "turn", "step", "score", "part",
    ]
    .contains(&word.as_str())
}

/// Returns the end of the date that begins here: `2026-12-05`.
fn find_date_end(bytes: &[u8], at: usize) -> Option<usize> {
    let date = bytes.get(at..at + 10)?;
    let is_date = date.iter().enumerate().all(|(nth, byte)| match nth {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    let ends = !bytes.get(at + 10).is_some_and(u8::is_ascii_digit);
    (is_date && ends).then_some(at + 10)
}

/// Returns the ranges of the numbers in a text: digits with points and commas between them, and dates.
fn list_numbers(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        if let Some(end) = find_date_end(bytes, at) {
            at = end;
            if !text[..start].chars().next_back().is_some_and(is_word) {
                out.push(start..end);
            }
            continue;
        }
        while at < bytes.len() {
            let next_is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            let joins = matches!(bytes[at], b'.' | b',') && next_is_digit;
            if !bytes[at].is_ascii_digit() && !joins {
                break;
            }
            at += 1;
        }
        // Digits within a word, such as a version or an order id, are no number of their own.
        let before = text[..start].chars().next_back();
        let after = text[at..].chars().next();
        if !before.is_some_and(is_word) && !after.is_some_and(is_word) {
            out.push(start..at);
        }
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// Returns a number without the separators of thousands and trailing zeros, for comparison.
fn normalize_number(text: &str) -> String {
    // `1,234` separates thousands; `12,5` is a decimal comma.
    let mut out = text.to_owned();
    let groups: Vec<&str> = text.split(',').collect();
    if groups.len() > 1 {
        let thousands = groups[1..]
            .iter()
            .all(|group| group.split('.').next().is_some_and(|head| head.len() == 3));
        out = if thousands {
            groups.concat()
        } else {
            text.replace(',', ".")
        };
    }
    if out.contains('.') {
        let trimmed = out.trim_end_matches('0').trim_end_matches('.').len();
        out.truncate(trimmed);
    }
    out
}

/// Returns the first place of a number in a text.
fn find_number(text: &str, number: &str) -> Option<Range<usize>> {
    let wanted = normalize_number(number);
    list_numbers(text)
        .into_iter()
        .find(|range| normalize_number(&text[range.clone()]) == wanted)
}

/// Returns the places of a claim, the cited one first, and true if all texts were searched.
fn find_places(
    claim: &str,
    kind: ClaimKind,
    cited: Option<CitedPlace>,
    texts: &SearchedTexts<'_>,
    left: &mut usize,
) -> (Vec<ClaimPlace>, bool) {
    let mut complete = true;
    let mut search = |text: &str| -> Option<Range<usize>> {
        if text.len() > *left {
            complete = false;
            return None;
        }
        *left -= text.len();
        match kind {
            ClaimKind::Quote => find_quote(text, claim),
            ClaimKind::Number | ClaimKind::Field => find_number(text, claim),
        }
    };
    let mut places: Vec<ClaimPlace> = Vec::new();
    if texts.rubric.iter().any(|text| search(text).is_some()) {
        places.push(ClaimPlace::Rubric);
    }
    for response in texts.responses {
        if let Some(range) = search(response.text) {
            places.push(ClaimPlace::Response {
                position: response.position,
                number: response.number,
                range,
            });
        }
    }
    for (piece, shown) in texts
        .document
        .iter()
        .flat_map(|doc| doc.pieces.iter().enumerate())
    {
        let Some(document) = texts.document else {
            break;
        };
        // The facts above the first message belong to no message.
        if shown.message == u32::MAX || places.len() >= MAX_PLACES {
            continue;
        }
        let is_listed = places.iter().any(
            |place| matches!(place, ClaimPlace::Message { number, .. } if *number == shown.message),
        );
        if !is_listed && let Some(range) = search(document.text_of(shown)) {
            places.push(ClaimPlace::Message {
                number: shown.message,
                range: PieceRange { piece, range },
            });
        }
    }
    places.sort_by_key(|place| !cited.is_some_and(|cited| place.is_cited(cited)));
    (places, complete)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Citation;
    use crate::tui::state::agent_comparison::ComparedField;
    use crate::tui::state::document::{DocumentPiece, PieceKind};

    fn document(messages: &[&str]) -> TranscriptDocument {
        let mut doc = TranscriptDocument::default();
        for (number, text) in (0_u32..).zip(messages) {
            let from = doc.text.len();
            doc.text.push_str(text);
            doc.first_pieces.push(number);
            doc.pieces.push(DocumentPiece {
                message: number,
                part: 0,
                kind: PieceKind::Assistant,
                heading_len: 0,
                range: from..doc.text.len(),
            });
        }
        doc
    }

    fn verdict(reasoning: &str, citations: &[(&str, &str, bool)]) -> Verdict {
        let citation = |(source, quote, found): &(&str, &str, bool)| Citation {
            source: (*source).to_owned(),
            quote: (*quote).to_owned(),
            found: *found,
        };
        Verdict {
            reasoning: reasoning.to_owned(),
            citations: citations.iter().map(citation).collect(),
            ..Verdict::default()
        }
    }

    const POSITION: CallPosition = CallPosition { turn: 0, call: 0 };

    #[test]
    fn date_is_a_claim_and_an_id_with_a_date_is_none() {
        let text = "on 2026-12-05T10Z it says 190.25, for TF-2026-12-05";
        let found: Vec<&str> = list_numbers(text)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(found, ["2026-12-05", "190.25"]);
        assert_eq!(
            findings(
                &verdict("2026-12-05 is in no tool result", &[]),
                &["expected 2026-12-05"],
                "2026-12-06"
            ),
            ["2026-12-05: uncited, found in message 0"]
        );
    }

    #[test]
    fn fields_with_other_values_than_the_agent_got_are_listed() {
        let field = |name: &str, judge: &str, agent: &str| ComparedField {
            name: name.to_owned(),
            agent_name: None,
            judge: Some(judge.to_owned()),
            agent: Some(agent.to_owned()),
        };
        let found = AgentComparison {
            message: 2,
            piece: 0,
            call: String::new(),
            result: String::new(),
            fields: vec![
                field("city", "Cork", "Cork"),
                field("total", "190.25", "195.25"),
            ],
        };
        let response = SearchedResponse {
            position: POSITION,
            number: Some(1),
            text: "",
        };
        let claims = list_differing_fields(&found, &response);
        let listed: Vec<String> = claims
            .iter()
            .map(|claim| format!("{}: {}", claim.text, claim.describe_finding()))
            .collect();
        assert_eq!(
            listed,
            ["total 190.25: fetch 1, but the agent got 195.25 in message 2"]
        );
    }

    fn findings(verdict: &Verdict, messages: &[&str], response: &str) -> Vec<String> {
        let doc = document(messages);
        let responses = [SearchedResponse {
            position: POSITION,
            number: Some(1),
            text: response,
        }];
        let texts = SearchedTexts {
            document: Some(&doc),
            responses: &responses,
            rubric: &[],
        };
        collect_claims(verdict, &texts)
            .iter()
            .map(|claim| format!("{}: {}", claim.text, claim.describe_finding()))
            .collect()
    }

    #[test]
    fn quote_in_another_message_is_found_elsewhere() {
        let judged = verdict(
            "",
            &[
                ("message 1", "EUR 205.25", false),
                ("message 0", "hello", true),
            ],
        );
        assert_eq!(
            findings(&judged, &["hello there", "no", "it was EUR  205.25"], ""),
            [
                "EUR 205.25: cited message 1, found in message 2",
                "hello: message 0: found"
            ]
        );
    }

    #[test]
    fn quote_that_occurs_nowhere_is_not_found() {
        let judged = verdict(
            "It says “never written” there.",
            &[("fetch 1", "free shipping", false)],
        );
        assert_eq!(
            findings(&judged, &["hello"], "paid shipping"),
            [
                "free shipping: cited fetch 1, not found",
                "never written: not found"
            ]
        );
    }

    #[test]
    fn number_of_the_reasoning_is_searched_as_a_number() {
        let judged = verdict(
            "The tool says 190.25, the answer 1,205.50 in message 12, order TF-4107, 1 item.",
            &[],
        );
        assert_eq!(
            findings(
                &judged,
                &["it costs 1205.5", "2190.25"],
                "{\"total\": 190.250}"
            ),
            [
                "190.25: uncited, found in fetch 1",
                "1,205.50: uncited, found in message 0"
            ]
        );
    }

    #[test]
    fn text_too_large_to_search_is_not_called_missing() {
        let judged = verdict("", &[("message 0", "x y", false)]);
        let huge = "a".repeat(MAX_SEARCHED_BYTES + 1);
        assert_eq!(
            findings(&judged, &[&huge], ""),
            ["x y: cited message 0, not searched: the texts are too large"]
        );
    }

    proptest::proptest! {
        #[test]
        fn any_reasoning_has_claims_within_it(text in "\\PC{0,80}") {
            for (claim, _) in list_reasoning_claims(&text) {
                proptest::prop_assert!(text.contains(claim));
            }
        }
    }
}
