//! The search tools of clause checks: patterns of things in a text, whole-word search, and the newest version on a
//! page.

use std::sync::LazyLock;

use regex::Regex;

use crate::handlers::grounding::{find_dates, parse_version};
use crate::handlers::grounding::{normalize_phrase, split_sentences};

pattern!(
    SORRY,
    r"(?i)\b(?:sorry|apolog(?:y|ies|ise[sd]?|ize[sd]?|ising|izing)|(?:i|we) regret|forgive (?:me|us)|my mistake|our mistake)\b"
);
pattern!(CODE, r"(?m)^[ \t]*```[^\n]*\n");
pattern!(BULLETS, r"(?m)^[ \t]*(?:[-*+•]|\(?\d{1,3}[.)])[ \t]+\S");
pattern!(TABLE, r"(?m)^[ \t]*\|.*\|[ \t]*\n[ \t]*\|[ :|-]+\|");
pattern!(
    EMOJI,
    r"[\x{1F300}-\x{1FAFF}\x{2600}-\x{27BF}\x{1F1E6}-\x{1F1FF}]"
);
pattern!(PARAGRAPHS, r"\n[ \t]*\n");
pattern!(
    VERSION,
    r"\b[vV]?\d+(?:\.\d+)+(?:-[0-9A-Za-z]+(?:\.[0-9A-Za-z]+)*)?\b"
);
pattern!(
    CONFIRM,
    r"(?i)\b(?:confirm|confirmation|shall i|should i|may i|can i go ahead|do you want me|would you like me|want me to|like me to|ok to|okay to|is that (?:ok|okay|right|correct|fine)|go ahead|proceed|approve|approval|permission|does that work|sound good|your ok)\b"
);
pattern!(
    CONFIRM_ORDER,
    r"(?i)\b(?:please (?:confirm|approve)|(?:can|could|would|will) you (?:please )?confirm|let me know (?:if|whether|when)|tell me (?:if|whether)|reply (?:with )?[“\x22']?(?:yes|ok|confirm)|say [“\x22']?(?:yes|ok)|i need your (?:confirmation|approval|ok|permission|go-ahead)|once you confirm|if you confirm|waiting for your)\b"
);
pattern!(
    REQUEST,
    r"(?i)\b(?:please|send|share|provide|enter|give|tell|type|reply with|submit|supply|state|need|require|verify|confirm|what is|what's|could you|can you|would you|let me (?:have|know))\b"
);

/// Iterates over the sentences that end in a question mark.
pub(super) fn find_questions(text: &str) -> impl Iterator<Item = &str> {
    split_sentences(text)
        .into_iter()
        .filter(|s| s.trim_end_matches(['"', '”', ')', '*', ' ']).ends_with('?'))
}

/// Returns whether a sentence declines the thing it names: "never share your password", "I do not need your PIN".
pub(super) fn is_declined(sentence: &str, what: &str) -> bool {
    static NOT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\b(?:never|not|don['’]t|doesn['’]t|won['’]t|without|no need|nor|no one|nobody|cannot|can['’]t|shouldn['’]t)\b").expect("a valid pattern")
    });
    let Some(at) = find_phrase(sentence, what).and_then(|found| sentence.find(found)) else {
        return false;
    };
    // The negation must be in the same clause as the thing it declines.
    let clause = sentence[..at]
        .rsplit([';', ',', ':', '–', '—'])
        .next()
        .unwrap_or_default();
    NOT.is_match(clause)
}

/// Returns the first place where a phrase occurs as whole words, ignoring case and spacing.
///
/// `2.6` is not found in `2.69` or `2.6.1`.
pub(super) fn find_phrase<'t>(text: &'t str, phrase: &str) -> Option<&'t str> {
    // The phrase is the author's text, so its special characters must match literally.
    let words: Vec<String> = phrase.split_whitespace().map(regex::escape).collect();
    // Typographic and plain apostrophes are equal.
    let pattern = words.join(r"\s+").replace('\'', "['’]");
    let pattern = Regex::new(&format!("(?i){pattern}")).ok()?;
    let digit_end = phrase.ends_with(|c: char| c.is_ascii_digit());
    let mut at = 0;
    while let Some(found) = pattern.find_at(text, at) {
        let before = text[..found.start()].chars().next_back();
        let mut after = text[found.end()..].chars();
        let (next, second) = (after.next(), after.next());
        let edge = |inside: Option<char>, outside: Option<char>| {
            !(inside.is_some_and(char::is_alphanumeric)
                && outside.is_some_and(char::is_alphanumeric))
        };
        let is_whole_word = edge(found.as_str().chars().next(), before)
            && edge(found.as_str().chars().next_back(), next);
        // `2.6` is not in `2.6.1`, which is another version.
        let longer = digit_end && next == Some('.') && second.is_some_and(|c| c.is_ascii_digit());
        // `69` is not in `2.69`.
        let tail = before == Some('.')
            && text[..found.start() - 1].ends_with(|c: char| c.is_ascii_digit());
        let inner = tail && phrase.starts_with(|c: char| c.is_ascii_digit());
        if is_whole_word && !longer && !inner {
            return Some(found.as_str());
        }
        // Continue after this match, at least one byte later.
        at = found.end().max(found.start() + 1);
        if found.is_empty() || !text.is_char_boundary(at) {
            return None;
        }
    }
    None
}

/// A version on a page.
struct FoundVersion<'t> {
    /// `true` if the product's name is before it.
    is_named: bool,
    /// `false` for a pre-release.
    is_final: bool,
    numbers: Vec<u64>,
    version: &'t str,
    /// The version with the product's name, as on the page.
    quote: &'t str,
}

impl FoundVersion<'_> {
    /// The order of preference: after the product's name, final, highest number.
    fn rank(&self) -> (bool, bool, &[u64]) {
        (self.is_named, self.is_final, &self.numbers)
    }
}

/// The newest version on a page.
pub(super) struct NewestVersion<'t> {
    pub(super) version: &'t str,
    /// The version with the product's name, as on the page.
    pub(super) quote: &'t str,
    /// Every version the page lists.
    pub(super) listed: Vec<Vec<u64>>,
}

/// Finds the highest version of a page; final versions come before pre-releases, and dates don't count.
///
/// If any version follows the product's name, only those count.
pub(super) fn find_newest_version<'t>(
    page: &'t str,
    product: &[String],
) -> Option<NewestVersion<'t>> {
    let days = find_dates(page);
    let name: Vec<String> = product.iter().map(|w| regex::escape(w)).collect();
    let after_name = (!name.is_empty())
        .then(|| {
            Regex::new(&format!(
                r"(?i)\b{}\s+(?:(?:version|release)\s+)?$",
                name.join(r"\s+")
            ))
            .ok()
        })
        .flatten();
    let mut all: Vec<FoundVersion<'_>> = Vec::new();
    for found in VERSION.find_iter(page) {
        if days
            .iter()
            .any(|(at, _)| at.start < found.end() && found.start() < at.end)
        {
            continue;
        }
        let (parts, pre) = parse_version(found.as_str());
        // A product's name is close to its version; 120 bytes bound the search.
        let mut from = found.start().saturating_sub(120);
        // The subtraction can end inside a character.
        while !page.is_char_boundary(from) {
            from -= 1;
        }
        let name = after_name
            .as_ref()
            .and_then(|n| n.find(&page[from..found.start()]));
        let start = name.map_or(found.start(), |n| from + n.start());
        all.push(FoundVersion {
            is_named: name.is_some(),
            is_final: !pre,
            numbers: parts,
            version: found.as_str(),
            quote: &page[start..found.end()],
        });
    }
    let best = all.iter().max_by(|a, b| a.rank().cmp(&b.rank()))?;
    if !product.is_empty() && !best.is_named {
        // The page may list other products' versions: only a page about the product alone may omit its name.
        let named = normalize_phrase(page).contains(&normalize_phrase(&product.join(" ")));
        if !named {
            return None;
        }
    }
    Some(NewestVersion {
        version: best.version,
        quote: best.quote,
        listed: all
            .iter()
            .filter(|found| found.is_named == best.is_named)
            .map(|found| found.numbers.clone())
            .collect(),
    })
}
