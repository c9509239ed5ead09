//! The quotes and numbers of a verdict, and the places where each occurs: messages, tool responses, the rubric. The screen
//! and the printed judge trace show the same places.
//!
//! Pure. Does not read texts: callers collect them once per verdict.

use std::ops::Range;

use super::citations::{CitationTarget, list_quotable_texts, parse_citation_target};
use super::prompt_sections::{PromptSection, split_prompt};
use crate::event::CallPosition;
use crate::model::{Transcript, Verdict};

/// The largest number of claims that are searched.
const MAX_CLAIMS: usize = 40;
/// The largest number of listed places of a claim.
const MAX_PLACES: usize = 8;
/// The number of bytes that are searched for all claims together, so that a huge transcript does not block keys.
const MAX_SEARCHED_BYTES: usize = 8 << 20;
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
        /// The text: its [`SearchedMessage::piece`].
        piece: usize,
        range: Range<usize>,
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

    fn is_cited(&self, cited: CitationTarget) -> bool {
        match (self, cited) {
            (Self::Message { number, .. }, CitationTarget::Message(at)) => *number as usize == at,
            (Self::Response { number, .. }, CitationTarget::Fetch(at)) => *number == Some(at),
            (Self::Rubric, CitationTarget::Rubric) => true,
            _ => false,
        }
    }
}

impl VerdictClaim {
    /// Returns where a quote occurs that its source lacks: `found in message 6`. `None` if it occurs nowhere else.
    pub(crate) fn describe_elsewhere(&self) -> Option<String> {
        let is_elsewhere = self.finding == ClaimFinding::FoundElsewhere;
        is_elsewhere.then(|| format!("found in {}", self.list_places()))
    }

    fn list_places(&self) -> String {
        let places: Vec<String> = self.places.iter().map(ClaimPlace::describe).collect();
        places.join(", ")
    }

    /// Returns the finding in words: `cited message 4, found in message 6`.
    pub(crate) fn describe_finding(&self) -> String {
        let places = self.list_places();
        if let Some((value, message)) = &self.agent {
            return format!("{places}, but the agent got {value} in message {message}");
        }
        match (self.finding, &self.cited) {
            (ClaimFinding::Found, Some(source)) => format!("found in {source}"),
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

/// A text of a message to search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedMessage<'a> {
    /// The number of the message, from 0.
    pub(crate) number: u32,
    /// The number of the text in the transcript. A message can have several.
    pub(crate) piece: usize,
    pub(crate) text: &'a str,
}

/// A tool response to search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedResponse<'a> {
    pub(crate) position: CallPosition,
    pub(crate) number: Option<usize>,
    pub(crate) text: &'a str,
}

/// The texts in which claims are searched.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchedTexts<'a, M> {
    /// The texts of the messages, in order. Copied for each claim, so that a huge transcript needs no list.
    pub(crate) messages: M,
    pub(crate) responses: &'a [SearchedResponse<'a>],
    /// The criteria and the scoring guide.
    pub(crate) rubric: &'a [&'a str],
}

/// Returns the texts of a transcript's messages, each with the number of its message.
pub(crate) fn list_citable_texts(transcript: &Transcript<'_>) -> Vec<(u32, String)> {
    let messages = (0..).zip(&transcript.messages);
    let texts = messages.flat_map(|(number, message)| {
        let texts = list_quotable_texts(message).into_iter();
        texts.map(move |text| (number, text))
    });
    texts.collect()
}

/// Returns the criteria and the scoring guide in a request, as it was sent.
pub(crate) fn list_rubric_texts(body: &str) -> Vec<String> {
    let read = super::rules::explain_request_body(body)
        .or_else(|| crate::provider::explain_request_body(body));
    let items = read.into_iter().flat_map(|read| read.items);
    let parts = items.flat_map(|item| item.parts);
    let texts = parts.flat_map(|part| {
        let sections = split_prompt(&part.text).into_iter();
        let rubric = sections.filter(PromptSection::is_rubric);
        let texts = rubric.map(|section| part.text[section.range].to_owned());
        texts.collect::<Vec<_>>()
    });
    texts.collect()
}

/// Collects the claims of a verdict and finds them: the citations, then the quotes and numbers of the reasoning.
pub(crate) fn collect_claims<'a, M>(
    verdict: &Verdict,
    texts: &SearchedTexts<'a, M>,
) -> Vec<VerdictClaim>
where
    M: Iterator<Item = SearchedMessage<'a>> + Clone,
{
    let mut left = MAX_SEARCHED_BYTES;
    let mut claims: Vec<VerdictClaim> = Vec::new();
    for citation in verdict.citations.iter().take(MAX_CLAIMS) {
        let cited = parse_citation_target(&citation.source);
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
    // The quotes in the order of their starts, as the numbers, so that each is visited once.
    let mut quoted: Vec<Range<usize>> = out.iter().map(|one| one.0..one.0 + one.1.len()).collect();
    quoted.sort_unstable_by_key(|quote| quote.start);
    let mut quoted = quoted.into_iter().peekable();
    let mut quoted_to = 0;
    for range in list_numbers(text) {
        let number = &text[range.clone()];
        let digits = number.bytes().filter(u8::is_ascii_digit).count();
        while let Some(quote) = quoted.next_if(|quote| quote.start <= range.start) {
            quoted_to = quoted_to.max(quote.end);
        }
        let in_quote = range.start < quoted_to;
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
fn find_places<'a, M>(
    claim: &str,
    kind: ClaimKind,
    cited: Option<CitationTarget>,
    texts: &SearchedTexts<'a, M>,
    left: &mut usize,
) -> (Vec<ClaimPlace>, bool)
where
    M: Iterator<Item = SearchedMessage<'a>> + Clone,
{
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
    for message in texts.messages.clone() {
        if places.len() >= MAX_PLACES {
            break;
        }
        let number = message.number;
        let is_listed = places.iter().any(
            |place| matches!(place, ClaimPlace::Message { number: listed, .. } if *listed == number),
        );
        if !is_listed && let Some(range) = search(message.text) {
            places.push(ClaimPlace::Message {
                number,
                piece: message.piece,
                range,
            });
        }
    }
    places.sort_by_key(|place| !cited.is_some_and(|cited| place.is_cited(cited)));
    (places, complete)
}

/// Finds a quote in a text. White space may differ, as in the check of citations.
pub(crate) fn find_quote(text: &str, quote: &str) -> Option<Range<usize>> {
    let mut words = quote.split_whitespace();
    let first = words.next()?;
    let words: Vec<&str> = words.collect();
    let finder = memchr::memmem::Finder::new(first);
    let mut from = 0;
    // Overlapping matches count too: `aa b` occurs in `aaa b`.
    while let Some(at) = finder.find(text.as_bytes().get(from..)?) {
        let begin = from + at;
        if let Some(end) = match_following_words(text, begin + first.len(), &words) {
            return Some(begin..end);
        }
        from = begin + 1;
    }
    None
}

/// Returns the end of the words that follow a position, separated by white space.
fn match_following_words(text: &str, mut end: usize, words: &[&str]) -> Option<usize> {
    for word in words {
        // `get` returns None at the end of the text or inside a character.
        let rest = text.get(end..)?;
        let gap = rest.len() - rest.trim_start().len();
        if gap == 0 || !rest[gap..].starts_with(word) {
            return None;
        }
        end += gap + word.len();
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Citation;

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

    fn findings(verdict: &Verdict, messages: &[&str], response: &str) -> Vec<String> {
        let messages = messages
            .iter()
            .zip(0..)
            .map(|(text, number)| SearchedMessage {
                number,
                piece: number as usize,
                text,
            });
        let responses = [SearchedResponse {
            position: POSITION,
            number: Some(1),
            text: response,
        }];
        let texts = SearchedTexts {
            messages,
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
                "hello: found in message 0"
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
