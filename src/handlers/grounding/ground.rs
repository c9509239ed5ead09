//! A ground: the texts that facts are looked up in.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use memchr::memmem;

use super::facts::{Day, Fact, Found, NUMBER, Value, dates, numbers, version_parts};
use super::prose::loose;

/// A version is the beginning of another one up to so many parts: a "version" of a million parts must cost no more.
const MAX_PARTS: usize = 8;

/// Texts to be looked things up in. Each way of looking is prepared when it is first needed.
pub(crate) struct Ground<'t> {
    texts: Vec<&'t str>,
    text: OnceCell<String>,
    figures: OnceCell<Figures>,
    days: OnceCell<Days>,
}

/// By month and day: the years they are named with.
type Days = HashMap<(u32, u32), HashSet<Option<u32>>>;

#[derive(Default)]
struct Figures {
    numbers: HashSet<String>,
    versions: HashSet<Vec<u64>>,
    /// Of versions, two parts or more: `2.9` of `2.9.3`.
    beginnings: HashSet<Vec<u64>>,
}

impl<'t> Ground<'t> {
    pub(crate) fn new(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self {
            texts: texts.into_iter().collect(),
            text: OnceCell::new(),
            figures: OnceCell::new(),
            days: OnceCell::new(),
        }
    }

    /// Whether a fact of another text stands here.
    pub(crate) fn holds(&self, found: &Found) -> bool {
        match &found.value {
            Value::Number(readings) => {
                let dotted = readings.iter().any(|n| n.contains('.'));
                let numbers = &self.figures().numbers;
                readings.iter().any(|n| numbers.contains(n))
                    || (dotted
                        && found.fact == Fact::Number
                        && readings.iter().any(|n| self.has_version(n)))
            }
            Value::Version(version) => self.has_version(version),
            Value::Date((year, month, day)) => self.has_day((*year, *month, *day)),
            Value::Text(text) => memmem::find(self.text().as_bytes(), text.as_bytes()).is_some(),
        }
    }

    fn has_day(&self, (year, month, day): Day) -> bool {
        let days = self.days.get_or_init(|| {
            let mut days = Days::new();
            let all = self.texts.iter().flat_map(|text| dates(text));
            for (_, (year, month, day)) in all {
                days.entry((month, day)).or_default().insert(year);
            }
            days
        });
        days.get(&(month, day))
            .is_some_and(|years| year.is_none() || years.contains(&None) || years.contains(&year))
    }

    /// The same version, or one it is the beginning of: `2.9` for `2.9.3`.
    fn has_version(&self, version: &str) -> bool {
        let (wanted, _) = version_parts(version);
        let figures = self.figures();
        figures.versions.contains(&wanted) || figures.beginnings.contains(&wanted)
    }

    fn figures(&self) -> &Figures {
        self.figures.get_or_init(|| {
            let mut figures = Figures::default();
            let all = self.texts.iter().flat_map(|text| NUMBER.find_iter(text));
            // A long table says the same few again and again: each is read once.
            let mut read: HashSet<&str> = HashSet::new();
            for number in all {
                if !read.insert(number.as_str()) {
                    continue;
                }
                figures.numbers.extend(numbers(number.as_str()));
                let version = version_parts(number.as_str()).0;
                for parts in 2..version.len().min(MAX_PARTS + 1) {
                    figures.beginnings.insert(version[..parts].to_vec());
                }
                figures.versions.insert(version);
            }
            figures
        })
    }

    fn text(&self) -> &str {
        self.text.get_or_init(|| {
            let mut all = String::new();
            for text in &self.texts {
                all.push_str(&loose(text));
                all.push('\n');
            }
            all
        })
    }
}
