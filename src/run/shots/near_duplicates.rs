//! Texts that are nearly equal: word 13-grams, word 5-grams and the word edit distance.
//!
//! Responsible for the rules and their thresholds. Overlap is the number of common grams divided by the number of grams
//! of the smaller text. So an excerpt and its source overlap completely.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart, normalize_words};

/// The length of the long grams. Longer texts that share most of them are copies with few changes.
const LONG_GRAM: usize = 13;
/// The length of the short grams, which also catch changed copies of short texts.
const SHORT_GRAM: usize = 5;
/// The least number of transcripts that share a gram before it counts as common text. In a smaller workspace, a
/// near-duplicate could count as text that most transcripts share.
const MIN_COMMON: usize = 8;
/// The longest text in words whose edit distance dicta computes, as the work grows with its square.
const MAX_EDIT_WORDS: usize = 20_000;

/// The rule by which equal texts are nearly equal.
const SAME_WORDS: &str = "the same words";

/// A text prepared for comparisons.
#[derive(Debug, Clone, Default)]
pub(super) struct ComparedText {
    words: Vec<u64>,
    long_grams: HashSet<u64>,
    short_grams: HashSet<u64>,
}

/// The grams that most transcripts share, such as a system prompt.
#[derive(Debug, Default)]
pub(super) struct CommonGrams {
    counts: HashMap<u64, usize>,
    texts: usize,
}

impl CommonGrams {
    /// Counts the grams of a transcript.
    pub(super) fn add(&mut self, text: &ComparedText) {
        self.texts += 1;
        for gram in text.long_grams.iter().chain(&text.short_grams) {
            *self.counts.entry(*gram).or_default() += 1;
        }
    }

    /// Keeps the grams of more than half of the transcripts.
    pub(super) fn finish(&mut self) {
        let least = (self.texts / 2 + 1).max(MIN_COMMON);
        self.counts.retain(|_, count| *count >= least);
    }

    fn contains(&self, gram: u64) -> bool {
        self.counts.contains_key(&gram)
    }
}

impl ComparedText {
    /// Prepares the messages of a transcript.
    pub(super) fn of_transcript(transcript: &Transcript<'_>) -> Self {
        Self::of_messages(&transcript.messages)
    }

    /// Prepares messages as one text.
    pub(super) fn of_messages(messages: &[TranscriptMessage<'_>]) -> Self {
        let mut text = String::new();
        for part in messages.iter().flat_map(|message| &message.parts) {
            let own: &str = match part {
                TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => text,
                TranscriptPart::ToolCall(call) => &call.arguments,
                TranscriptPart::ToolResult(result) => &result.content,
                TranscriptPart::Media { .. } | TranscriptPart::Other(_) => continue,
            };
            text.push_str(own);
            text.push('\n');
        }
        Self::new(&text)
    }

    /// Prepares a text.
    pub(super) fn new(text: &str) -> Self {
        let normal = normalize_words(text);
        let words: Vec<u64> = normal.split_ascii_whitespace().map(hash_word).collect();
        Self {
            long_grams: hash_grams(&words, LONG_GRAM),
            short_grams: hash_grams(&words, SHORT_GRAM),
            words,
        }
    }

    /// Removes the grams that most transcripts share, because they would make all of them similar.
    pub(super) fn remove_common(&mut self, common: &CommonGrams) {
        self.long_grams.retain(|gram| !common.contains(*gram));
        self.short_grams.retain(|gram| !common.contains(*gram));
    }

    /// Returns the rule by which two texts are nearly equal, as a phrase; `None` if they are not.
    pub(super) fn find_likeness(&self, other: &Self) -> Option<&'static str> {
        if self.words.is_empty() || other.words.is_empty() {
            return None;
        }
        if self.words == other.words {
            return Some(SAME_WORDS);
        }
        if overlaps(&self.long_grams, &other.long_grams, 4, 5) {
            return Some("4 of 5 runs of 13 words are the same");
        }
        if overlaps(&self.short_grams, &other.short_grams, 3, 5) {
            return Some("3 of 5 runs of 5 words are the same");
        }
        let shorter = self.words.len().min(other.words.len());
        is_within_edits(&self.words, &other.words, shorter / 5)
            .then_some("at most 1 of 5 words differs")
    }
}

/// One message of a transcript, prepared for comparisons with single messages of others.
#[derive(Debug, Clone)]
pub(super) struct ComparedMessage {
    /// True for a message of the assistant, and for a person's note about it. Two transcripts may have the same question.
    is_answer: bool,
    /// True for the last message of the assistant, which most evals judge.
    is_last_answer: bool,
    /// True for an answer with at least half of the words that the assistant wrote.
    is_half_of_answers: bool,
    text: ComparedText,
}

impl ComparedMessage {
    /// Prepares the messages of a transcript that are in a range. Shorter ones than the shortest gram are left out,
    /// because a text such as "Yes." is not a copy.
    pub(super) fn list(messages: &[TranscriptMessage<'_>], range: Range<usize>) -> Vec<Self> {
        let is_answer = |message: &TranscriptMessage<'_>| message.role == MessageRole::Assistant;
        let last = messages.iter().rposition(is_answer);
        let mut all: Vec<Self> = messages
            .iter()
            .enumerate()
            .map(|(at, message)| Self {
                is_answer: is_answer(message),
                is_last_answer: last == Some(at),
                is_half_of_answers: false,
                text: ComparedText::of_messages(std::slice::from_ref(message)),
            })
            .collect();
        let answers = all.iter().filter(|message| message.is_answer);
        let words: usize = answers.map(|answer| answer.text.words.len()).sum();
        for message in all.iter_mut().filter(|message| message.is_answer) {
            message.is_half_of_answers = 2 * message.text.words.len() >= words;
        }
        let all = all.into_iter().enumerate();
        all.filter(|(at, message)| range.contains(at) && message.is_long_enough())
            .map(|(_, message)| message)
            .collect()
    }

    /// Prepares a person's note; `None` for a short one.
    pub(super) fn of_note(note: &str) -> Option<Self> {
        let note = Self {
            is_answer: true,
            is_last_answer: false,
            is_half_of_answers: false,
            text: ComparedText::new(note),
        };
        note.is_long_enough().then_some(note)
    }

    /// Removes the grams that most transcripts share.
    pub(super) fn remove_common(&mut self, common: &CommonGrams) {
        self.text.remove_common(common);
    }

    /// Returns true if an eval decides mostly about this message: an answer with half of what the assistant wrote, or the
    /// last answer. An eval of a whole conversation does not, because its last answer is often a stock phrase.
    pub(super) const fn is_judged(&self, is_session: bool) -> bool {
        self.is_half_of_answers || (self.is_last_answer && !is_session)
    }

    /// Returns the rule by which one message repeats the other, as a phrase; `None` if it does not, or if both are
    /// questions. Messages under 13 words count only if they are equal and both are the last answer, because short
    /// ones such as greetings repeat often.
    pub(super) fn find_repeat(&self, other: &Self) -> Option<&'static str> {
        if !(self.is_answer || other.is_answer) {
            return None;
        }
        let (one, two) = (&self.text, &other.text);
        // A text of common grams alone is a phrase that most transcripts have.
        if one.short_grams.is_empty() || two.short_grams.is_empty() {
            return None;
        }
        if one.words.len().min(two.words.len()) >= LONG_GRAM {
            return one.find_likeness(two);
        }
        (self.is_last_answer && other.is_last_answer && one.words == two.words)
            .then_some(SAME_WORDS)
    }

    fn is_long_enough(&self) -> bool {
        self.text.words.len() >= SHORT_GRAM
    }
}

fn hash_word(word: &str) -> u64 {
    let digest = blake3::hash(word.as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

fn hash_grams(words: &[u64], length: usize) -> HashSet<u64> {
    words
        .windows(length)
        .map(|gram| {
            // The length is part of the hash, so that grams of both lengths can share a map.
            let start = length as u64;
            gram.iter().fold(start, |hash, word| {
                (hash.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            })
        })
        .collect()
}

/// Returns true if at least `share / of` of the smaller set is in the other one. Whole numbers, without rounding.
fn overlaps(one: &HashSet<u64>, other: &HashSet<u64>, share: usize, of: usize) -> bool {
    let (small, large) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    let common = small.iter().filter(|gram| large.contains(gram)).count();
    !small.is_empty() && of * common >= share * small.len()
}

/// Returns true if the word edit distance is at most `limit`. Computes only the diagonal band of the table that can
/// hold such a distance.
fn is_within_edits(one: &[u64], other: &[u64], limit: usize) -> bool {
    if one.len().abs_diff(other.len()) > limit || one.len().max(other.len()) > MAX_EDIT_WORDS {
        return false;
    }
    // Words that the other text lacks need an edit each. This rejects most pairs without the table.
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for word in other {
        *counts.entry(*word).or_default() += 1;
    }
    let mut common = 0;
    for word in one {
        if let Some(left) = counts.get_mut(word).filter(|left| **left > 0) {
            *left -= 1;
            common += 1;
        }
    }
    if one.len().max(other.len()) - common > limit {
        return false;
    }
    let far = limit + 1;
    let mut row: Vec<usize> = (0..=other.len()).map(|at| at.min(far)).collect();
    for (at, word) in one.iter().enumerate() {
        let from = at.saturating_sub(limit);
        let to = (at + limit + 1).min(other.len());
        let mut diagonal = row[from];
        // Outside the band a distance is too large to matter.
        let mut left = if from == 0 { at + 1 } else { far };
        row[from] = left.min(far);
        let mut least = left;
        for column in from..to {
            let above = row[column + 1];
            let above = if column + 1 == at + limit + 1 {
                far
            } else {
                above
            };
            let substituted = diagonal + usize::from(other[column] != *word);
            diagonal = row[column + 1];
            left = substituted.min(left + 1).min(above + 1).min(far);
            row[column + 1] = left;
            least = least.min(left);
        }
        if least > limit {
            return false;
        }
    }
    row[other.len()] <= limit
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(count: usize) -> Vec<String> {
        (0..count).map(|n| format!("w{n}")).collect()
    }

    fn likeness(one: &[String], other: &[String]) -> Option<&'static str> {
        ComparedText::new(&one.join(" ")).find_likeness(&ComparedText::new(&other.join(" ")))
    }

    fn long_overlap(one: &[String], other: &[String]) -> bool {
        let [one, other] = [one, other].map(|words| ComparedText::new(&words.join(" ")));
        overlaps(&one.long_grams, &other.long_grams, 4, 5)
    }

    #[test]
    fn one_changed_word_is_caught_by_13_grams_from_77_words() {
        for (count, is_caught) in [(77, true), (76, false)] {
            let one = words(count);
            let mut other = one.clone();
            other[count / 2] = "changed".to_owned();
            assert_eq!(long_overlap(&one, &other), is_caught, "{count}");
            // The other rules catch it at any length.
            assert!(likeness(&one, &other).is_some(), "{count}");
        }
    }

    #[test]
    fn two_changes_in_100_words_and_short_copies_are_caught() {
        let one = words(100);
        let mut other = one.clone();
        other[30] = "a".to_owned();
        other[70] = "b".to_owned();
        assert!(!long_overlap(&one, &other) && likeness(&one, &other).is_some());
        assert!(likeness(&words(4), &words(4)).is_some());
        assert!(likeness(&one, &["other".to_owned()]).is_none());
        // An excerpt overlaps its source completely.
        assert!(likeness(&one[20..60], &one).is_some());
    }

    #[test]
    fn normal_form_ignores_case_signs_and_widths() {
        let [one, other] = ["Hello, ＷＯＲＬＤ!", "hello world"].map(ComparedText::new);
        assert_eq!(one.find_likeness(&other), Some("the same words"));
        let empty = ComparedText::new("…");
        assert_eq!(empty.find_likeness(&empty), None);
    }

    #[test]
    fn text_that_most_transcripts_share_makes_none_of_them_similar() {
        let shared = words(300).join(" ");
        let own = |n: usize| {
            let own: Vec<String> = (0..60).map(|word| format!("t{n}x{word}")).collect();
            ComparedText::new(&format!("{shared} {}", own.join(" ")))
        };
        let mut common = CommonGrams::default();
        (0..20).for_each(|n| common.add(&own(n)));
        common.finish();
        let [mut one, mut other] = [own(1), own(2)];
        assert!(one.find_likeness(&other).is_some(), "with the shared text");
        one.remove_common(&common);
        other.remove_common(&common);
        assert!(!overlaps(&one.long_grams, &other.long_grams, 4, 5));
        assert!(!overlaps(&one.short_grams, &other.short_grams, 3, 5));
    }

    proptest! {
        #[test]
        fn banded_distance_equals_the_whole_table(
            one in prop::collection::vec(0_u64..4, 0..20), other in prop::collection::vec(0_u64..4, 0..20), limit in 0_usize..8
        ) {
            let distance = strsim::generic_levenshtein(&one, &other);
            prop_assert_eq!(is_within_edits(&one, &other, limit), distance <= limit);
        }
    }
}
