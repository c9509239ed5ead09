//! Reading what a clause is about: a limit, a phrase to look for, what is asked for, which page.

use regex::Captures;

use super::grammar::{Ask, Bound, Check, Thing, Unit, mask};
use super::patterns::{AND_OR, ARTICLE, ASK_CONFIRM, ASK_FOR, ASK_QUESTION, NOUN, QUOTED};
use crate::handlers::grounding::FactKind;

/// Words of a clause that name no product.
const GENERAL: [&str; 12] = [
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

/// Words that join a second thought to an object; such an object is not read.
const JOINS: [&str; 14] = [
    "and", "or", "if", "when", "before", "after", "unless", "that", "which", "who", "to", "in",
    "on", "without",
];

pub(super) fn newest(c: &Captures<'_>) -> Result<Check, String> {
    let Some(address) = c.get(2) else {
        return Err("it names no page to look on: add `on https://…`".to_owned());
    };
    let address = address.as_str().trim_end_matches(['.', ',', ';']);
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("https://{address}")
    };
    let words: Vec<&str> = c[1].split_whitespace().collect();
    let product = words
        .iter()
        .filter(|w| !GENERAL.contains(&w.to_ascii_lowercase().as_str()))
        .map(|w| w.trim_matches(['`', '"', '“', '”']).to_owned())
        .collect();
    let date = words.last().is_some_and(|w| w.eq_ignore_ascii_case("date"));
    Ok(Check::Newest { date, product, url })
}

pub(super) fn asks(what: &str) -> Option<Ask> {
    if ASK_QUESTION.is_match(what) {
        return Some(Ask::Question);
    }
    if ASK_CONFIRM.is_match(what) {
        return Some(Ask::Confirmation);
    }
    let c = ASK_FOR.captures(what)?;
    let object = ARTICLE.replace(c[2].trim(), "");
    let object = quoted(&object).unwrap_or_else(|| object.into_owned());
    let simple = |w: &str| w.chars().all(|c| c.is_alphanumeric() || "-'’".contains(c));
    let words: Vec<&str> = object.split_whitespace().collect();
    let plain = words.len() <= 3
        && words
            .iter()
            .all(|w| simple(w) && !JOINS.contains(&w.to_ascii_lowercase().as_str()));
    if words.is_empty() || !plain {
        return None;
    }
    Some(if c[1].eq_ignore_ascii_case("for") {
        Ask::For(object)
    } else {
        Ask::About(object)
    })
}

pub(super) fn limit(c: &Captures<'_>) -> Option<Check> {
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
    let tail = word(3).or(word(5)).unwrap_or_default();
    let (bound, count) = match first.as_str() {
        "" if tail.contains("more") => (Bound::AtLeast, count),
        "" if tail.contains("fewer") || tail.contains("less") => (Bound::AtMost, count),
        // `contains a question` is another clause; `a` counts only after a bound.
        "" if number == "a" || number == "an" => return None,
        "" | "exactly" | "precisely" => (Bound::Exactly, count),
        "fewer than" | "less than" | "under" | "below" | "shorter than" => {
            (Bound::AtMost, count.checked_sub(1)?)
        }
        "more than" | "longer than" | "over" | "exceed" | "exceeds" => (Bound::AtLeast, count + 1),
        "at least" | "no fewer than" | "no less than" | "a minimum of" | "minimum" => {
            (Bound::AtLeast, count)
        }
        _ => (Bound::AtMost, count),
    };
    let unit = match c[4].to_ascii_lowercase().as_str() {
        "sentence" => Unit::Sentences,
        "word" => Unit::Words,
        "character" => Unit::Characters,
        "line" => Unit::Lines,
        "paragraph" => Unit::Paragraphs,
        "question" => Unit::Questions,
        "link" => Unit::Links,
        _ => Unit::Bullets,
    };
    Some(Check::Limit { bound, count, unit })
}

pub(super) fn kinds(text: &str) -> Vec<FactKind> {
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

pub(super) fn thing(name: &str) -> Thing {
    match name.to_ascii_lowercase().as_str() {
        "number" | "figure" | "digit" => Thing::Fact(FactKind::Number),
        "date" => Thing::Fact(FactKind::Date),
        "amount" | "price" => Thing::Fact(FactKind::Amount),
        "link" | "url" => Thing::Fact(FactKind::Url),
        "quote" | "quotation" | "quoted phrase" => Thing::Fact(FactKind::Quote),
        "code" | "code block" => Thing::Code,
        "table" => Thing::Table,
        "emoji" => Thing::Emoji,
        "question" | "question mark" => Thing::Question,
        name if name.starts_with("version") => Thing::Fact(FactKind::Version),
        _ => Thing::List,
    }
}

/// A text that is one quotation and nothing else: its inside.
pub(super) fn quoted(text: &str) -> Option<String> {
    let text = text.trim();
    let m = QUOTED
        .find(text)
        .filter(|m| m.start() == 0 && m.end() == text.len())?;
    let mut inner = m.as_str().chars();
    inner.next();
    inner.next_back();
    Some(inner.as_str().trim().to_owned()).filter(|s| !s.is_empty())
}

/// What is looked for literally: quotations, names, versions and addresses; or, where it is wanted, one plain word.
pub(super) fn literals(text: &str, strict: bool) -> Result<Check, String> {
    const HINT: &str = "what to look for has to stand in quotation marks";
    let named = NOUN.is_match(text);
    let text = NOUN.replace(text.trim(), "");
    let text = text.trim();
    let masked = mask(text);
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
        let whole = join.get(0).expect("whole match");
        cuts.push((whole.start(), whole.end()));
    }
    if ands > 0 && ors > 0 {
        return Err("it joins with both \"and\" and \"or\"".to_owned());
    }
    cuts.push((text.len(), text.len()));
    for (start, end) in cuts {
        let piece = text[from..start].trim();
        from = end;
        let words = piece.split_whitespace().count();
        let name = |w: &str| {
            let w = w.trim_matches(['(', ')']);
            w.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
                || w.contains("://")
                || host_like(w)
        };
        let proper = words > 0 && words <= 5 && piece.split_whitespace().all(name);
        let word = words == 1
            && (named || !strict)
            && piece.chars().all(|c| c.is_alphanumeric() || c == '-');
        let phrase = match quoted(piece) {
            Some(inner) => inner,
            None if proper || word => piece.to_owned(),
            None => return Err(HINT.to_owned()),
        };
        phrases.push(phrase);
    }
    Ok(Check::Mentions {
        phrases,
        every: ors == 0,
    })
}

fn host_like(word: &str) -> bool {
    word.split('.').count() > 1
        && word.split(['.', '/']).all(|p| {
            !p.is_empty()
                && p.chars()
                    .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}
