//! The sources of facts: texts with their messages, indexed for lookups.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use memchr::memmem;

use super::facts::{
    CalendarDay, FactKind, FactValue, FoundFact, NUMBER, find_dates, parse_number_readings,
    parse_version,
};
use super::prose::normalize_phrase;

/// The largest number of version parts that are indexed as prefixes. A "version" of a million parts must not cost
/// more.
const MAX_VERSION_PARTS: usize = 8;

/// Texts to look facts up in. Each index is built on first use, once for all lookups. It keeps the first message that
/// contains a fact, so it serves prefixes of the transcript as well.
#[derive(Debug)]
pub(crate) struct GroundingSources<'t> {
    /// The texts in order of messages.
    texts: Vec<GroundingText<'t>>,
    phrases: OnceCell<PhraseIndex>,
    number_index: OnceCell<NumberIndex>,
    days: OnceCell<DayIndex>,
}

/// One of the texts.
#[derive(Debug, Clone, Copy)]
struct GroundingText<'t> {
    /// The position of its message.
    message: usize,
    text: &'t str,
}

/// By month and day: the years that occur with them, and the first message.
type DayIndex = HashMap<MonthDay, HashMap<Option<u32>, usize>>;

/// A day of any year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MonthDay {
    month: u32,
    day: u32,
}

/// The first message with a fact, by the fact's value.
#[derive(Debug, Default)]
struct NumberIndex {
    numbers: HashMap<String, usize>,
    versions: HashMap<Vec<u64>, usize>,
    /// By version prefix of two or more parts: `2.9` of `2.9.3`.
    version_prefixes: HashMap<Vec<u64>, usize>,
}

/// All texts in normalized form, one below the other.
#[derive(Debug, Default)]
struct PhraseIndex {
    joined_text: String,
    /// The ends of the texts in it.
    ends: Vec<TextEnd>,
    /// The phrases that were looked up, and the first message with each.
    lookup_cache: RefCell<HashMap<String, Option<usize>>>,
}

/// The end of a text in the joined text.
#[derive(Debug)]
struct TextEnd {
    end: usize,
    /// The message of the text.
    message: usize,
}

impl<'t> GroundingSources<'t> {
    /// Creates sources without positions.
    pub(crate) fn new(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self::from_messages(texts.into_iter().map(|text| (0, text)))
    }

    /// Creates sources from texts with their messages, in order.
    pub(crate) fn from_messages(texts: impl IntoIterator<Item = (usize, &'t str)>) -> Self {
        Self {
            texts: texts
                .into_iter()
                .map(|(message, text)| GroundingText { message, text })
                .collect(),
            phrases: OnceCell::new(),
            number_index: OnceCell::new(),
            days: OnceCell::new(),
        }
    }

    /// Returns the number of bytes of the texts in messages before `end`; `None` if no such text exists.
    pub(super) fn bytes_before(&self, end: usize) -> Option<usize> {
        // The texts are in order of messages, so a binary search finds the end.
        let count = self.texts.partition_point(|known| known.message < end);
        let texts = self.texts[..count].iter();
        (count > 0).then(|| texts.map(|known| known.text.len()).sum())
    }

    /// Returns `true` if a fact of another text occurs here.
    pub(crate) fn contains(&self, found: &FoundFact) -> bool {
        self.find_first_message(found).is_some()
    }

    /// Returns the first message with a fact of another text.
    pub(super) fn find_first_message(&self, found: &FoundFact) -> Option<usize> {
        match &found.value {
            // `2.9` was read as a number, but a source may have it as a version.
            FactValue::Number(readings) => {
                let dotted = readings.iter().any(|n| n.contains('.'));
                let numbers = &self.number_index().numbers;
                let number = readings.iter().filter_map(|n| numbers.get(n).copied());
                let as_version = dotted && found.kind == FactKind::Number;
                let version = readings.iter().filter(|_| as_version);
                number
                    .chain(version.filter_map(|n| self.find_version(n)))
                    .min()
            }
            FactValue::Version(version) => self.find_version(version),
            FactValue::Date(day) => self.find_day(*day),
            FactValue::Text(text) => self.find_phrase(text),
        }
    }

    fn find_day(&self, wanted: CalendarDay) -> Option<usize> {
        let CalendarDay { year, month, day } = wanted;
        let days = self.days.get_or_init(|| {
            let mut days = DayIndex::new();
            for GroundingText { message, text } in &self.texts {
                for (_, CalendarDay { year, month, day }) in find_dates(text) {
                    let years = days.entry(MonthDay { month, day }).or_default();
                    // `or_insert` keeps the first message, which serves every later end of the transcript.
                    years.entry(year).or_insert(*message);
                }
            }
            days
        });
        let years = days.get(&MonthDay { month, day })?;
        // The text names no year, so any year of that day matches.
        if year.is_none() {
            return years.values().min().copied();
        }
        // A source without a year can mean any year.
        let both = [years.get(&None), years.get(&year)];
        both.into_iter().flatten().min().copied()
    }

    /// Returns the first message with the same version, or with a longer one: `2.9` is found in `2.9.3`.
    fn find_version(&self, version: &str) -> Option<usize> {
        let (wanted, _) = parse_version(version);
        let figures = self.number_index();
        let both = [
            figures.versions.get(&wanted),
            figures.version_prefixes.get(&wanted),
        ];
        both.into_iter().flatten().min().copied()
    }

    fn number_index(&self) -> &NumberIndex {
        self.number_index.get_or_init(|| {
            let mut figures = NumberIndex::default();
            let texts = self.texts.iter();
            let all = texts.flat_map(|GroundingText { message, text }| {
                NUMBER.find_iter(text).map(move |number| (*message, number))
            });
            // A long table repeats the same few values: each is parsed once, where it comes first.
            let mut read: HashSet<&str> = HashSet::new();
            for (message, number) in all {
                if !read.insert(number.as_str()) {
                    continue;
                }
                for reading in parse_number_readings(number.as_str()) {
                    figures.numbers.entry(reading).or_insert(message);
                }
                let version = parse_version(number.as_str()).0;
                // From 2: a prefix of one part (`2` of `2.9.3`) would match almost every number.
                for parts in 2..version.len().min(MAX_VERSION_PARTS + 1) {
                    let beginning = version[..parts].to_vec();
                    figures.version_prefixes.entry(beginning).or_insert(message);
                }
                figures.versions.entry(version).or_insert(message);
            }
            figures
        })
    }

    fn find_phrase(&self, text: &str) -> Option<usize> {
        let phrases = self.phrases.get_or_init(|| {
            let mut phrases = PhraseIndex::default();
            for GroundingText { message, text } in &self.texts {
                phrases.joined_text.push_str(&normalize_phrase(text));
                // A line break, so that no phrase matches across two texts: normalized phrases have none.
                phrases.joined_text.push('\n');
                phrases.ends.push(TextEnd {
                    end: phrases.joined_text.len(),
                    message: *message,
                });
            }
            phrases
        });
        // Each turn asks for the same phrases again, and a search reads all sources.
        if let Some(known) = phrases.lookup_cache.borrow().get(text) {
            return *known;
        }
        let at = memmem::find(phrases.joined_text.as_bytes(), text.as_bytes());
        let first = at.map(|at| {
            // Each end is after its line break, so the first end beyond the hit belongs to its text.
            let index = phrases.ends.partition_point(|text| text.end <= at);
            phrases.ends[index].message
        });
        phrases
            .lookup_cache
            .borrow_mut()
            .insert(text.to_owned(), first);
        first
    }
}
