//! The parser of a clause's object: a limit, a phrase to find, a thing to ask for, or a page.

use regex::Captures;

use super::clause::{AskTarget, ClauseCheck, ContentKind, CountUnit, LimitBound};
use super::clause_patterns::{
    AND_OR, ARTICLE, ASK_CONFIRM, ASK_FOR, ASK_QUESTION, NOUN, QUOTED, mask_quoted,
};
use crate::handlers::grounding::FactKind;

/// Words of a clause that don't name a product.
const GENERIC_WORDS: [&str; 12] = [
    "release",
    "releases",
    "version",
    "versions",
    "date",
    "number",
    "stable",
    "of",
    "the",
    "its",
    "published",
    "entry",
];

/// Words that join a second thought to an object. `rules` doesn't parse such an object.
const JOINING_WORDS: [&str; 14] = [
    "and", "or", "if", "when", "before", "after", "unless", "that", "which", "who", "to", "in",
    "on", "without",
];

/// Parses `the newest version of X on PAGE`.
pub(super) fn parse_newest(c: &Captures<'_>) -> Result<ClauseCheck, String> {
    let Some(address) = c.get(2) else {
        return Err("it names no page to look on: add `on https://…`".to_owned());
    };
    // Punctuation of the sentence isn't part of the address.
    let address = address.as_str().trim_end_matches(['.', ',', ';']);
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("https://{address}")
    };
    let words: Vec<&str> = c[1].split_whitespace().collect();
    let product = words
        .iter()
        .filter(|w| !GENERIC_WORDS.contains(&w.to_ascii_lowercase().as_str()))
        .map(|w| w.trim_matches(['`', '"', '“', '”']).to_owned())
        .collect();
    // "The newest release date" asks for a date, anything else for a version.
    let date = words.last().is_some_and(|w| w.eq_ignore_ascii_case("date"));
    Ok(ClauseCheck::Newest { date, product, url })
}

/// Parses the thing that the agent must ask for; `None` if it is more than a short phrase.
pub(super) fn parse_ask_target(what: &str) -> Option<AskTarget> {
    if ASK_QUESTION.is_match(what) {
        return Some(AskTarget::Question);
    }
    if ASK_CONFIRM.is_match(what) {
        return Some(AskTarget::Confirmation);
    }
    let c = ASK_FOR.captures(what)?;
    let object = ARTICLE.replace(c[2].trim(), "");
    let object = parse_quoted(&object).unwrap_or_else(|| object.into_owned());
    let simple = |w: &str| w.chars().all(|c| c.is_alphanumeric() || "-'’".contains(c));
    let words: Vec<&str> = object.split_whitespace().collect();
    // A longer object is a condition in prose, which `rules` can't check.
    let plain = words.len() <= 3
        && words
            .iter()
            .all(|w| simple(w) && !JOINING_WORDS.contains(&w.to_ascii_lowercase().as_str()));
    if words.is_empty() || !plain {
        return None;
    }
    Some(if c[1].eq_ignore_ascii_case("for") {
        AskTarget::For(object)
    } else {
        AskTarget::About(object)
    })
}

/// Parses a limit such as `at most 3 sentences`; `None` if it isn't one.
pub(super) fn parse_limit(c: &Captures<'_>) -> Option<ClauseCheck> {
    const WORDS: [(&str, usize); 16] = [
        ("a", 1),
        ("an", 1),
        ("one", 1),
        ("two", 2),
        ("three", 3),
        ("four", 4),
        ("five", 5),
        ("six", 6),
        ("seven", 7),
        ("eight", 8),
        ("nine", 9),
        ("ten", 10),
        ("twelve", 12),
        ("fifteen", 15),
        ("twenty", 20),
        ("fifty", 50),
    ];
    let number = c[2].to_ascii_lowercase();
    let count = number.parse().ok().or_else(|| match number.as_str() {
        "eleven" => Some(11),
        "thirty" => Some(30),
        hundred if hundred.ends_with("hundred") => Some(100),
        word => WORDS.iter().find(|(w, _)| *w == word).map(|(_, n)| *n),
    })?;
    let word = |n: usize| c.get(n).map(|m| m.as_str().to_ascii_lowercase());
    let quantifier = word(1).unwrap_or_default();
    let first = quantifier.split_whitespace().collect::<Vec<_>>().join(" ");
    // The pattern allows `or fewer` before or after the noun.
    let tail = word(3).or(word(5)).unwrap_or_default();
    let (bound, count) = match first.as_str() {
        "" if tail.contains("more") => (LimitBound::AtLeast, count),
        "" if tail.contains("fewer") || tail.contains("less") => (LimitBound::AtMost, count),
        // `contains a question` is another clause; `a` counts only after a bound.
        "" if number == "a" || number == "an" => return None,
        "" | "exactly" | "precisely" => (LimitBound::Exactly, count),
        // Strict bounds become inclusive ones, so that there are only three kinds.
        "fewer than" | "less than" | "under" | "below" | "shorter than" => {
            (LimitBound::AtMost, count.checked_sub(1)?)
        }
        "more than" | "longer than" | "over" | "exceed" | "exceeds" => {
            (LimitBound::AtLeast, count + 1)
        }
        "at least" | "no fewer than" | "no less than" | "a minimum of" | "minimum" => {
            (LimitBound::AtLeast, count)
        }
        _ => (LimitBound::AtMost, count),
    };
    let unit = match c[4].to_ascii_lowercase().as_str() {
        "sentence" => CountUnit::Sentences,
        "word" => CountUnit::Words,
        "character" => CountUnit::Characters,
        "line" => CountUnit::Lines,
        "paragraph" => CountUnit::Paragraphs,
        "question" => CountUnit::Questions,
        "link" => CountUnit::Links,
        // The pattern allows no other noun here.
        _ => CountUnit::Bullets,
    };
    Some(ClauseCheck::Limit { bound, count, unit })
}

/// Parses the kinds of facts that a text names.
pub(super) fn parse_fact_kinds(text: &str) -> Vec<FactKind> {
    let text = text.to_ascii_lowercase();
    let mut kinds = Vec::new();
    for (word, fact) in [
        ("number", FactKind::Number),
        ("figure", FactKind::Number),
        ("version", FactKind::Version),
        ("date", FactKind::Date),
        ("amount", FactKind::Amount),
        ("price", FactKind::Amount),
        ("sum", FactKind::Amount),
        ("percent", FactKind::Amount),
        ("url", FactKind::Url),
        ("link", FactKind::Url),
        ("quot", FactKind::Quote),
    ] {
        // `version number` names one kind.
        let there = if word == "number" {
            text.replace("version number", "version").contains(word)
        } else {
            text.contains(word)
        };
        if there && !kinds.contains(&fact) {
            kinds.push(fact);
        }
    }
    kinds
}

/// Returns the kind of content that a noun names; an unknown noun is a list.
pub(super) fn parse_content_kind(name: &str) -> ContentKind {
    match name.to_ascii_lowercase().as_str() {
        "number" | "figure" | "digit" => ContentKind::Fact(FactKind::Number),
        "date" => ContentKind::Fact(FactKind::Date),
        "amount" | "price" => ContentKind::Fact(FactKind::Amount),
        "link" | "url" => ContentKind::Fact(FactKind::Url),
        "quote" | "quotation" | "quoted phrase" => ContentKind::Fact(FactKind::Quote),
        "code" | "code block" => ContentKind::Code,
        "table" => ContentKind::Table,
        "emoji" => ContentKind::Emoji,
        "question" | "question mark" => ContentKind::Question,
        name if name.starts_with("version") => ContentKind::Fact(FactKind::Version),
        _ => ContentKind::List,
    }
}

/// Returns the inside of a text that is exactly one quotation.
pub(super) fn parse_quoted(text: &str) -> Option<String> {
    let text = text.trim();
    let m = QUOTED
        .find(text)
        .filter(|m| m.start() == 0 && m.end() == text.len())?;
    let mut inner = m.as_str().chars();
    // Quotation marks can have several bytes, so remove characters and not bytes.
    inner.next();
    inner.next_back();
    Some(inner.as_str().trim().to_owned()).filter(|s| !s.is_empty())
}

/// Parses the phrases to find: quotations, names, versions and addresses; unless `strict`, also one plain word.
pub(super) fn parse_literals(text: &str, strict: bool) -> Result<ClauseCheck, String> {
    const HINT: &str = "put the text to find in quotation marks";
    let named = NOUN.is_match(text);
    let text = NOUN.replace(text.trim(), "");
    let text = text.trim();
    // An "and" inside quotation marks belongs to the phrase.
    let masked = mask_quoted(text);
    let (mut phrases, mut ands, mut ors, mut from) = (Vec::new(), 0, 0, 0);
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for join in AND_OR.captures_iter(&masked) {
        match join
            .get(1)
            .or(join.get(2))
            .map(|w| w.as_str().to_ascii_lowercase())
            .as_deref()
        {
            Some("and") => ands += 1,
            Some(_) => ors += 1,
            None => {}
        }
        let joint = join.get(0).expect("whole match");
        cuts.push((joint.start(), joint.end()));
    }
    // Without parentheses, "a and b or c" has two meanings.
    if ands > 0 && ors > 0 {
        return Err("it joins with both \"and\" and \"or\"".to_owned());
    }
    // A last cut at the end, so that the loop also handles the last piece.
    cuts.push((text.len(), text.len()));
    for (start, end) in cuts {
        let piece = text[from..start].trim();
        from = end;
        let words = piece.split_whitespace().count();
        let name = |w: &str| {
            let w = w.trim_matches(['(', ')']);
            w.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
                || w.contains("://")
                || is_host_like(w)
        };
        // A name has capitals or digits in every word; prose doesn't.
        let proper = words > 0 && words <= 5 && piece.split_whitespace().all(name);
        let word = words == 1
            && (named || !strict)
            && piece.chars().all(|c| c.is_alphanumeric() || c == '-');
        let phrase = match parse_quoted(piece) {
            Some(inner) => inner,
            None if proper || word => piece.to_owned(),
            None => return Err(HINT.to_owned()),
        };
        phrases.push(phrase);
    }
    Ok(ClauseCheck::Mentions {
        phrases,
        every: ors == 0,
    })
}

fn is_host_like(word: &str) -> bool {
    word.split('.').count() > 1
        && word.split(['.', '/']).all(|p| {
            !p.is_empty()
                && p.chars()
                    .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}
