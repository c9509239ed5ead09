//! The facts that can be looked up in a text without understanding it: numbers, versions, dates, URLs, quoted
//! phrases, sentences.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::prose::normalize_phrase;

/// A kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FactKind {
    Number,
    Version,
    Date,
    Amount,
    Url,
    Quote,
}

impl FactKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Number,
        Self::Version,
        Self::Date,
        Self::Amount,
        Self::Url,
        Self::Quote,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Number => "number",
            Self::Version => "version",
            Self::Date => "date",
            Self::Amount => "amount",
            Self::Url => "URL",
            Self::Quote => "quoted phrase",
        }
    }
}

/// A day, with its year if it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CalendarDay {
    pub(crate) year: Option<u32>,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// A fact found in a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FoundFact {
    pub(crate) kind: FactKind,
    /// The bytes of the fact in its text.
    pub(crate) range: Range<usize>,
    pub(super) value: FactValue,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum FactValue {
    /// The digits, without thousands separators and unneeded zeros.
    Number(Vec<String>),
    Version(String),
    Date(CalendarDay),
    Text(String),
}

// ASCII word boundaries: with those of Unicode, one `é` in a text would disable the fast search engine.
macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        pub(super) static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a valid pattern"));
    };
}

pattern!(URL, r#"(?i)(?-u:\b)https?://[^\s<>"“”'`\\{}|^\])]+"#);
// The length limit keeps an unclosed quotation mark from matching a long text.
pattern!(
    QUOTE,
    "[“\u{201e}]([^“”\u{201e}\n]{2,400})[”“]|\"([^\"\n]{2,400})\"|«([^«»\n]{2,400})»"
);
pattern!(
    ISO_DATE,
    r"(?-u:\b)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?-u:\b)"
);
pattern!(
    MONTH_DAY,
    r"(?i)(?-u:\b)(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ember|ober)?\.?\s+(\d{1,2})(?:st|nd|rd|th)?(?:,?\s+(\d{4}))?(?-u:\b)"
);
pattern!(
    DAY_MONTH,
    r"(?i)(?-u:\b)(\d{1,2})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)(?:uary|ruary|ch|il|e|y|ust|tember|ember|ober)?(?-u:\b)\.?(?:,?\s+(\d{4}))?"
);
// Two or three points, or a leading `v`: `2.9` alone may be a decimal number.
pattern!(
    VERSION,
    r"(?-u:\b)[vV]?(\d+(?:\.\d+){2,3}(?:[-+][0-9A-Za-z.]*[0-9A-Za-z])?)(?-u:\b)|(?-u:\b)[vV](\d+(?:\.\d+)?)(?-u:\b)"
);
pattern!(NUMBER, r"\d+(?:[.,'’\u{202f}\u{a0}]\d+)*");
pattern!(LIST_MARK, r"(?m)^[ \t]*(?:[-*+][ \t]+)?\(?\d{1,3}[.)][ \t]");
pattern!(UNIT, r"(?i)^\s?(thousand|k|million|mn|m|billion|bn)\b");

/// Ranges that do not overlap, in an ordered map, so that each hit in a long text does not compare with all others.
#[derive(Default)]
struct OccupiedRanges(BTreeMap<usize, usize>);

impl OccupiedRanges {
    fn is_free(&self, at: &Range<usize>) -> bool {
        let before = self.0.range(..at.end).next_back();
        before.is_none_or(|(_, end)| *end <= at.start)
    }

    /// Takes a range if all of it is free; returns `true` if it was.
    fn try_occupy(&mut self, at: &Range<usize>) -> bool {
        let free = self.is_free(at);
        if free {
            self.0.insert(at.start, at.end);
        }
        free
    }
}

/// Returns all facts of these kinds in a text, in order. A number inside a URL, a date or a version is not listed
/// again.
pub(crate) fn find_facts(text: &str, kinds: &[FactKind]) -> Vec<FoundFact> {
    let mut found = Vec::new();
    let mut taken = OccupiedRanges::default();
    let figures = has_digit(text);
    if figures {
        for mark in LIST_MARK.find_iter(text) {
            // The number of a list item is not a fact, so its range is taken first.
            taken.try_occupy(&mark.range());
        }
    }
    if kinds.contains(&FactKind::Quote) {
        for quote in QUOTE.captures_iter(text) {
            if let Some(inner) = quote.get(1).or(quote.get(2)).or(quote.get(3)) {
                let value = FactValue::Text(normalize_phrase(inner.as_str()));
                found.push(FoundFact {
                    kind: FactKind::Quote,
                    range: inner.range(),
                    value,
                });
            }
        }
    }
    // URLs come before numbers, so that digits in a link are not facts.
    // A substring search is much faster than the pattern, and most texts have no URL.
    let may_link = memchr::memmem::find(text.as_bytes(), b"://").is_some();
    for url in URL.find_iter(if may_link { text } else { "" }) {
        // Punctuation after a link belongs to the sentence.
        let link = url
            .as_str()
            .trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '_']);
        let at = url.start()..url.start() + link.len();
        taken.try_occupy(&at);
        // Case and a trailing slash do not matter in a comparison.
        let value = FactValue::Text(link.trim_end_matches('/').to_lowercase());
        found.push(FoundFact {
            kind: FactKind::Url,
            range: at,
            value,
        });
    }
    let text_of_figures = if figures { text } else { "" };
    // From the longest form to the shortest: each kind takes its ranges, so that the parts of a date or a version are
    // not numbers.
    for (at, day) in find_dates(text_of_figures) {
        if taken.try_occupy(&at) {
            let value = FactValue::Date(day);
            found.push(FoundFact {
                kind: FactKind::Date,
                range: at,
                value,
            });
        }
    }
    for version in VERSION.captures_iter(text_of_figures) {
        let (Some(whole), Some(inner)) = (version.get(0), version.get(1).or(version.get(2))) else {
            continue;
        };
        if taken.try_occupy(&whole.range()) {
            let value = FactValue::Version(inner.as_str().to_owned());
            found.push(FoundFact {
                kind: FactKind::Version,
                range: whole.range(),
                value,
            });
        }
    }
    for number in NUMBER.find_iter(text_of_figures) {
        let at = number.range();
        // A part of a URL, a date, a version or a list number.
        if !taken.is_free(&at) {
            continue;
        }
        let fact = if is_amount(text, &at) {
            FactKind::Amount
        } else {
            FactKind::Number
        };
        // A number can have two readings (`1.234`), and a unit adds a third: `1.2 million`.
        let mut readings = parse_number_readings(number.as_str());
        if let Some(unit) = UNIT.captures(&text[at.end..])
            && let Some(zeros) = readings.first().and_then(|n| scale_by_unit(n, &unit[1]))
        {
            readings.push(zeros);
        }
        found.push(FoundFact {
            kind: fact,
            range: at,
            value: FactValue::Number(readings),
        });
    }
    // `2.9` looks like a number and may be a version after a name, so it counts as both.
    let wanted = |f: &FoundFact| {
        kinds.contains(&f.kind)
            || (f.kind == FactKind::Number
                && kinds.contains(&FactKind::Version)
                && text[f.range.clone()].contains('.'))
            || (kinds.contains(&FactKind::Number)
                && matches!(f.kind, FactKind::Amount | FactKind::Version))
    };
    found.retain(wanted);
    found.sort_by_key(|f| f.range.start);
    found
}

/// Returns `true` if a text may contain a digit. Without a digit it has no date, version or number.
fn has_digit(text: &str) -> bool {
    // The patterns also match digits outside of ASCII.
    text.bytes().any(|b| b.is_ascii_digit() || !b.is_ascii())
}

fn is_amount(text: &str, at: &Range<usize>) -> bool {
    // Words after a number are compared at the start, so `dollars` and `euros` match as well.
    const WORDS: [&str; 10] = [
        "usd", "eur", "gbp", "chf", "dollar", "euro", "pound", "cent", "€", "$",
    ];
    let before = text[..at.start].trim_end_matches(' ');
    let after = text[at.end..].trim_start_matches([' ', '\u{a0}']);
    before.ends_with(['$', '€', '£', '¥'])
        || ["USD", "EUR", "GBP", "CHF"]
            .iter()
            .any(|c| before.ends_with(c))
        || WORDS.iter().any(|w| {
            after
                .get(..w.len())
                .is_some_and(|a| a.eq_ignore_ascii_case(w))
        })
        || after.starts_with(['€', '£', '%'])
}

/// Returns the possible values of `1,234.50`, `1.234,50` or `1234.5`, without separators and unneeded zeros.
pub(super) fn parse_number_readings(text: &str) -> Vec<String> {
    // Most numbers have no separator, and then one reading.
    if text.bytes().all(|b| b.is_ascii_digit()) {
        let digits = text.trim_start_matches('0');
        return vec![if digits.is_empty() { "0" } else { digits }.to_owned()];
    }
    parse_separated_number(text)
}

/// Returns the possible values of a number with separators.
fn parse_separated_number(text: &str) -> Vec<String> {
    let plain: String = text
        .chars()
        // These characters only ever separate thousands, so they are dropped in every reading.
        .filter(|c| !matches!(c, '\'' | '’' | '\u{202f}' | '\u{a0}'))
        .collect();
    // Removes zeros that do not change the value: `1.50` and `1.5`, `007` and `7`.
    let tidy = |n: &str| {
        let n = match n.split_once('.') {
            Some((whole, part)) => {
                let part = part.trim_end_matches('0');
                if part.is_empty() {
                    whole.to_owned()
                } else {
                    format!("{whole}.{part}")
                }
            }
            None => n.to_owned(),
        };
        let trimmed = n.trim_start_matches('0');
        if trimmed.is_empty() || trimmed.starts_with('.') {
            format!("0{trimmed}")
        } else {
            trimmed.to_owned()
        }
    };
    let english = plain.replace(',', "");
    let mut all = Vec::new();
    // A text with two points, such as `1.234.567`, is not an English decimal.
    if english.matches('.').count() <= 1 {
        all.push(tidy(&english));
    }
    // The continental reading swaps the roles of point and comma.
    let continental = plain.replace('.', "").replace(',', ".");
    let grouped = plain
        .split(['.', ','])
        .skip(1)
        .all(|group| group.len() == 3);
    // One comma, or groups of three digits, can be continental separators.
    if plain.contains(',') && plain.matches(',').count() == 1 || grouped {
        let other = tidy(&continental);
        // With both separators, the last one is the decimal mark: `1.234,50` and not `1,234.50`.
        if !all.contains(&other)
            && (!plain.contains('.') || grouped || plain.rfind(',') > plain.rfind('.'))
        {
            all.push(other);
        }
    }
    // Neither reading fits, as in `1.2.3.4`, so the text counts as written.
    if all.is_empty() {
        all.push(plain);
    }
    all
}

fn scale_by_unit(number: &str, unit: &str) -> Option<String> {
    let zeros: usize = match unit.to_ascii_lowercase().as_str() {
        "thousand" | "k" => 3,
        "million" | "mn" | "m" => 6,
        // `billion` and `bn`.
        _ => 9,
    };
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    // `None` if the number has more decimals than the unit has zeros.
    let pad = zeros.checked_sub(part.len())?;
    Some(
        format!("{whole}{part}{}", "0".repeat(pad))
            .trim_start_matches('0')
            .to_owned(),
    )
}

/// Returns every date in a text.
pub(crate) fn find_dates(text: &str) -> Vec<(Range<usize>, CalendarDay)> {
    const MONTHS: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    // `starts_with`, so that `sept` and full names match.
    let month = |name: &str| {
        let name = name.to_ascii_lowercase();
        (1_u32..)
            .zip(MONTHS)
            .find(|(_, m)| name.starts_with(m))
            .map(|(n, _)| n)
    };
    // A coarse check, without the lengths of months.
    let is_valid =
        |date: &CalendarDay| (1..=12).contains(&date.month) && (1..=31).contains(&date.day);
    let mut all: Vec<(Range<usize>, CalendarDay)> = Vec::new();
    let mut taken = OccupiedRanges::default();
    let mut add = |at: Range<usize>, day: Option<CalendarDay>| {
        if let Some(day) = day.filter(is_valid)
            && taken.try_occupy(&at)
        {
            all.push((at, day));
        }
    };
    for c in ISO_DATE.captures_iter(text) {
        let day = c[1]
            .parse()
            .ok()
            .zip(c[2].parse().ok())
            .zip(c[3].parse().ok());
        add(
            c.get(0).expect("whole match").range(),
            day.map(|((year, month), day)| CalendarDay {
                year: Some(year),
                month,
                day,
            }),
        );
    }
    // Month first: the first match takes its range, so an ambiguous text such as `5 May 6` is one date.
    for c in MONTH_DAY.captures_iter(text) {
        let day = month(&c[1]).zip(c[2].parse().ok());
        let year = c.get(3).and_then(|y| y.as_str().parse().ok());
        add(
            c.get(0).expect("whole match").range(),
            day.map(|(month, day)| CalendarDay { year, month, day }),
        );
    }
    for c in DAY_MONTH.captures_iter(text) {
        let day = month(&c[2]).zip(c[1].parse().ok());
        let year = c.get(3).and_then(|y| y.as_str().parse().ok());
        add(
            c.get(0).expect("whole match").range(),
            day.map(|(month, day)| CalendarDay { year, month, day }),
        );
    }
    all.sort_by_key(|(at, _)| at.start);
    all
}

/// Returns a version as numbers, and `true` if it is a pre-release.
pub(crate) fn parse_version(version: &str) -> (Vec<u64>, bool) {
    let version = version.trim_start_matches(['v', 'V']);
    let (numbers, tail) = version.split_once(['-', '+']).unwrap_or((version, ""));
    let mut parts: Vec<u64> = numbers.split('.').map_while(|n| n.parse().ok()).collect();
    // `2.9.0` and `2.9` are the same version, so trailing zeros do not count.
    while parts.len() > 1 && parts.last() == Some(&0) {
        parts.pop();
    }
    (parts, !tail.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::GroundingSources;
    use super::*;

    #[test]
    fn number_without_a_separator_has_one_reading() {
        for (text, value) in [
            ("42", "42"),
            ("007", "7"),
            ("0", "0"),
            ("000", "0"),
            ("1234567", "1234567"),
        ] {
            assert_eq!(parse_number_readings(text), [value], "{text}");
            assert_eq!(parse_separated_number(text), [value], "{text}");
        }
    }

    fn listed(text: &str, kinds: &[FactKind]) -> Vec<String> {
        find_facts(text, kinds)
            .into_iter()
            .map(|f| text[f.range].to_owned())
            .collect()
    }

    #[test]
    fn each_fact_is_found_once() {
        let text = "1. Beam 2.69.0 came on October 6, 2026 for $1,200.50 (3 nodes), see https://a.example/v2.1.0/x?n=5.";
        assert_eq!(
            listed(text, &FactKind::ALL),
            [
                "2.69.0",
                "October 6, 2026",
                "1,200.50",
                "3",
                "https://a.example/v2.1.0/x?n=5"
            ]
        );
        assert_eq!(
            listed("He said “late rows wait”.", &[FactKind::Quote]),
            ["late rows wait"]
        );
        assert_eq!(
            listed("Use 2.9 now, in 3 steps", &[FactKind::Version]),
            ["2.9"]
        );
    }

    #[test]
    fn spelling_of_numbers_dates_and_versions_does_not_matter() {
        for (answer, source, holds) in [
            ("1,200 items", "1200", true),
            ("1.200,50 EUR", "1200.5", true),
            ("$49.90", "{\"total\": 49.9}", true),
            ("$49.90", "49.09", false),
            ("1.2 million users", "1200000", true),
            ("October 6, 2026", "2026-10-06", true),
            ("6 Oct", "2026-10-06", true),
            ("7 Oct", "2026-10-06", false),
            ("October 6, 2025", "2026-10-06", false),
            ("Beam 2.9", "Beam 2.9.3", true),
            ("Beam 2.9", "Beam 2.91", false),
            ("v2.9.0", "2.9", true),
            ("2.60.0", "2.6.0", false),
            ("order NW-20931", "id: NW-20931", true),
            ("“Late rows  wait.”", "the late rows wait here", true),
            ("https://a.example/x/", "see https://a.example/x", true),
        ] {
            let found = find_facts(answer, &FactKind::ALL);
            let ground = GroundingSources::new([source]);
            assert!(!found.is_empty(), "{answer}");
            assert_eq!(
                found.iter().all(|f| ground.contains(f)),
                holds,
                "{answer} in {source}: {found:?}"
            );
        }
    }
}
