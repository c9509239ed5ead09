//! A ground: the texts that facts are looked up in, each with the message it stands in.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};

use memchr::memmem;

use super::facts::{
    CalendarDay, FactKind, FactValue, FoundFact, NUMBER, find_dates, parse_number_readings,
    parse_version,
};
use super::prose::normalize_phrase;

/// A version is the beginning of another one up to so many parts: a "version" of a million parts must cost no more.
const MAX_VERSION_PARTS: usize = 8;

/// Texts to be looked things up in. Each way of looking is prepared when it is first needed, once for all that is looked
/// up, whichever of the texts count for it: what is kept is the first message that has a fact.
#[derive(Debug)]
pub(crate) struct GroundingSources<'t> {
    /// With the message, in order of messages.
    texts: Vec<(usize, &'t str)>,
    phrases: OnceCell<PhraseIndex>,
    number_index: OnceCell<NumberIndex>,
    days: OnceCell<DayIndex>,
}

/// By month and day: the years they are named with, and where first.
type DayIndex = HashMap<(u32, u32), HashMap<Option<u32>, usize>>;

/// The first message that has it, by what it is.
#[derive(Debug, Default)]
struct NumberIndex {
    numbers: HashMap<String, usize>,
    versions: HashMap<Vec<u64>, usize>,
    /// Of versions, two parts or more: `2.9` of `2.9.3`.
    version_prefixes: HashMap<Vec<u64>, usize>,
}

/// All texts as phrases are compared, one below the other.
#[derive(Debug, Default)]
struct PhraseIndex {
    joined_text: String,
    /// Where the texts end in it, with their messages.
    ends: Vec<(usize, usize)>,
    /// What was looked for, and the first message that has it.
    lookup_cache: RefCell<HashMap<String, Option<usize>>>,
}

impl<'t> GroundingSources<'t> {
    /// Texts that stand nowhere in particular.
    pub(crate) fn new(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self::from_messages(texts.into_iter().map(|text| (0, text)))
    }

    /// Texts with their messages, in order.
    pub(crate) fn from_messages(texts: impl IntoIterator<Item = (usize, &'t str)>) -> Self {
        Self {
            texts: texts.into_iter().collect(),
            phrases: OnceCell::new(),
            number_index: OnceCell::new(),
            days: OnceCell::new(),
        }
    }

    /// The bytes of the texts in messages before one; `None`: there is no such text.
    pub(super) fn bytes_before(&self, end: usize) -> Option<usize> {
        let count = self.texts.partition_point(|(at, _)| *at < end);
        (count > 0).then(|| self.texts[..count].iter().map(|(_, text)| text.len()).sum())
    }

    /// Whether a fact of another text stands here.
    pub(crate) fn contains(&self, found: &FoundFact) -> bool {
        self.find_first_message(found).is_some()
    }

    /// The first message in which a fact of another text stands.
    pub(super) fn find_first_message(&self, found: &FoundFact) -> Option<usize> {
        match &found.value {
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

    fn find_day(&self, (year, month, day): CalendarDay) -> Option<usize> {
        let days = self.days.get_or_init(|| {
            let mut days = DayIndex::new();
            for (message, text) in &self.texts {
                for (_, (year, month, day)) in find_dates(text) {
                    let years = days.entry((month, day)).or_default();
                    years.entry(year).or_insert(*message);
                }
            }
            days
        });
        let years = days.get(&(month, day))?;
        if year.is_none() {
            return years.values().min().copied();
        }
        let both = [years.get(&None), years.get(&year)];
        both.into_iter().flatten().min().copied()
    }

    /// The same version, or one it is the beginning of: `2.9` for `2.9.3`.
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
            let all = texts.flat_map(|(at, text)| NUMBER.find_iter(text).map(move |n| (*at, n)));
            // A long table says the same few again and again: each is read once, where it comes first.
            let mut read: HashSet<&str> = HashSet::new();
            for (message, number) in all {
                if !read.insert(number.as_str()) {
                    continue;
                }
                for reading in parse_number_readings(number.as_str()) {
                    figures.numbers.entry(reading).or_insert(message);
                }
                let version = parse_version(number.as_str()).0;
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
            for (message, text) in &self.texts {
                phrases.joined_text.push_str(&normalize_phrase(text));
                phrases.joined_text.push('\n');
                phrases.ends.push((phrases.joined_text.len(), *message));
            }
            phrases
        });
        if let Some(known) = phrases.lookup_cache.borrow().get(text) {
            return *known;
        }
        let at = memmem::find(phrases.joined_text.as_bytes(), text.as_bytes());
        let first = at.map(|at| {
            let of = phrases.ends.partition_point(|(end, _)| *end <= at);
            phrases.ends[of].1
        });
        phrases
            .lookup_cache
            .borrow_mut()
            .insert(text.to_owned(), first);
        first
    }
}
