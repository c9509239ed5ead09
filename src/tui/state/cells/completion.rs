//! The completion of the pane's filter: the keys and values that can continue the word under the cursor.
//!
//! Responsible for finding them and for the text after a choice. Does not parse or apply filters; [`super::filter`]
//! does.

use std::collections::BTreeSet;
use std::ops::Range;

use super::CellsState;
use super::filter::STATUS_TERMS;
use crate::model::Outcome;
use crate::run::LabelFilter;

/// The maximum number of offers that a list shows; more letters narrow it.
const MAX_OFFERS: usize = 100;

/// The keys with the description of their values, in the order of the list.
const KEYS: [(&str, &str); 10] = [
    ("outcome", "the newest outcome"),
    ("is", "the state of the decision"),
    ("label", "your label"),
    ("eval", "the id of the eval"),
    ("rubric", "the id of the rubric"),
    ("judge", "a judge of the eval"),
    ("group", "a group of the eval"),
    ("tag", "a tag of the transcript"),
    ("transcript", "the id of the transcript"),
    ("cell", "the name of the decision"),
];

/// The offers for a typed filter, and the chosen one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FilterCompletion {
    /// The offers, best first.
    pub(crate) offers: Vec<FilterOffer>,
    /// The number of matches, which can exceed the number of offers.
    pub(crate) total: usize,
    /// The chosen offer. Its text is in the line.
    pub(crate) chosen: Option<usize>,
    /// The text before a choice.
    typed: String,
    /// The part of `typed` that an offer replaces.
    replaced: Range<usize>,
}

/// A key or a value that can continue a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilterOffer {
    /// The text as the list shows it: `outcome:`, `fail`, `eval:tone`.
    pub(crate) text: String,
    /// The description.
    pub(crate) note: &'static str,
    /// The text that replaces the typed part.
    inserted: String,
    /// True for a key, which needs a value.
    pub(crate) is_key: bool,
}

impl FilterCompletion {
    /// Chooses the next or the previous offer. Returns the new text and its cursor.
    pub(crate) fn choose_next(&mut self, forward: bool) -> Option<(String, usize)> {
        let count = self.offers.len();
        let next = match (self.chosen, forward) {
            (None, true) => 0,
            (Some(at), true) => (at + 1) % count.max(1),
            (None | Some(0), false) => count.checked_sub(1)?,
            (Some(at), false) => at - 1,
        };
        self.choose(next)
    }

    /// Chooses an offer by position. Returns the new text and its cursor.
    pub(crate) fn choose(&mut self, at: usize) -> Option<(String, usize)> {
        let offer = self.offers.get(at)?;
        self.chosen = Some(at);
        let (before, after) = (
            &self.typed[..self.replaced.start],
            &self.typed[self.replaced.end..],
        );
        let cursor = before.len() + offer.inserted.len();
        Some((format!("{before}{}{after}", offer.inserted), cursor))
    }

    /// Returns the chosen offer.
    pub(crate) fn chosen_offer(&self) -> Option<&FilterOffer> {
        self.offers.get(self.chosen?)
    }
}

/// The word under the cursor of a filter.
#[derive(Debug, PartialEq, Eq)]
struct FilterPrefix<'t> {
    /// The key, if the word has a colon.
    key: Option<&'t str>,
    /// The letters before the cursor that an offer must match: of a list of values, the last one.
    letters: String,
    /// The part of the text that an offer replaces.
    replaced: Range<usize>,
    /// True if the letters continue a quoted list, whose quote an offer must close.
    in_quoted_list: bool,
}

/// Finds the word before a cursor; `None` if it is a quoted text, for which there are no offers.
fn find_prefix(text: &str, cursor: usize) -> Option<FilterPrefix<'_>> {
    let cursor = text.floor_char_boundary(cursor);
    let (mut word, mut part, mut colon, mut quote) = (0, 0, None, None);
    for (at, c) in text[..cursor].char_indices() {
        let next = at + c.len_utf8();
        match c {
            '"' if quote.is_some() => quote = None,
            '"' => quote = Some(at),
            c if c.is_whitespace() && quote.is_none() => (word, part, colon) = (next, next, None),
            '!' if at == word => (word, part) = (next, next),
            ':' if colon.is_none() && !text[word..].starts_with('"') => {
                colon = Some(at);
                part = next;
            }
            // Commas separate values also between quotes.
            ',' if colon.is_some() => part = next,
            _ => {}
        }
    }
    if text[word..cursor].starts_with('"') {
        return None;
    }
    let ends =
        |c: char| c.is_whitespace() || matches!(c, ',' | '"') || (colon.is_none() && c == ':');
    let after = &text[cursor..];
    let mut end = cursor + after.find(ends).unwrap_or(after.len());
    // A new key replaces the colon of the old one, too.
    if colon.is_none() && text[end..].starts_with(':') {
        end += 1;
    }
    Some(FilterPrefix {
        key: colon.map(|colon| &text[word..colon]),
        letters: text[part..cursor].replace('"', ""),
        replaced: part..end,
        in_quoted_list: quote.is_some_and(|quote| quote < part),
    })
}

/// Collects the values that match some letters: those that begin with them first.
struct OfferList<'l> {
    letters: &'l str,
    first: Vec<FilterOffer>,
    others: Vec<FilterOffer>,
    total: usize,
}

impl OfferList<'_> {
    fn add(&mut self, value: &str, make: impl FnOnce() -> FilterOffer) {
        let list = match find_ignoring_case(value, self.letters) {
            Some(0) => &mut self.first,
            Some(_) => &mut self.others,
            None => return,
        };
        self.total += 1;
        if list.len() < MAX_OFFERS {
            list.push(make());
        }
    }

    fn finish(self) -> (Vec<FilterOffer>, usize) {
        let mut offers = self.first;
        offers.extend(self.others);
        offers.truncate(MAX_OFFERS);
        (offers, self.total)
    }
}

/// Returns the position of lower-case letters in a text, in any letter case.
fn find_ignoring_case(text: &str, letters: &str) -> Option<usize> {
    if letters.is_empty() {
        return Some(0);
    }
    text.to_lowercase().find(letters)
}

/// Writes a value so that the filter reads it as one value.
fn write_value(key: &str, value: &str, in_quoted_list: bool) -> String {
    let value = if key == "cell" {
        value.replace(',', "%2C").replace('"', "%22")
    } else {
        // A comma or quote ends a value, but the glob `?` matches both.
        value.replace([',', '"'], "?")
    };
    if in_quoted_list {
        return format!("{value}\"");
    }
    if value.is_empty() || value.contains(char::is_whitespace) {
        return format!("\"{value}\"");
    }
    value
}

impl CellsState {
    /// Returns the keys and values that can continue a filter at a cursor.
    pub(crate) fn complete_filter(&self, text: &str, cursor: usize) -> FilterCompletion {
        let Some(prefix) = find_prefix(text, cursor) else {
            return FilterCompletion::default();
        };
        let letters = prefix.letters.to_lowercase();
        let mut list = OfferList {
            letters: &letters,
            first: Vec::new(),
            others: Vec::new(),
            total: 0,
        };
        match prefix.key {
            Some(key) => self.visit_values(key, &letters, &mut |value, note| {
                list.add(value, || FilterOffer {
                    text: value.to_owned(),
                    note,
                    inserted: write_value(key, value, prefix.in_quoted_list),
                    is_key: false,
                });
            }),
            None => self.offer_keys(&mut list),
        }
        let (mut offers, total) = list.finish();
        // A word that is complete needs no list.
        if let [only] = &offers[..]
            && prefix.key.is_some()
            && only.text == prefix.letters
        {
            offers.clear();
        }
        FilterCompletion {
            offers,
            total,
            chosen: None,
            typed: text.to_owned(),
            replaced: prefix.replaced,
        }
    }

    /// Offers the keys, and terms whose value begins with the letters: `ton` is a part of `eval:tone`.
    fn offer_keys(&self, list: &mut OfferList<'_>) {
        for (key, note) in KEYS {
            let text = format!("{key}:");
            // A key is found by its beginning, because `e` occurs in almost all of them.
            if !text.starts_with(list.letters) {
                continue;
            }
            list.add(&text, || FilterOffer {
                text: text.clone(),
                note,
                inserted: text.clone(),
                is_key: true,
            });
        }
        if list.letters.is_empty() {
            return;
        }
        let letters = list.letters.to_owned();
        for (key, _) in KEYS {
            // There can be a hundred thousand of these, so they are offered after their keys only.
            if matches!(key, "transcript" | "cell") {
                continue;
            }
            self.visit_values(key, &letters, &mut |value, note| {
                if find_ignoring_case(value, &letters) != Some(0) {
                    return;
                }
                list.add(value, || {
                    let term = format!("{key}:{}", write_value(key, value, false));
                    FilterOffer {
                        text: term.clone(),
                        note,
                        inserted: term,
                        is_key: false,
                    }
                });
            });
        }
    }

    /// Visits the values of a key with their descriptions. Of long lists, it visits only those that can match.
    fn visit_values(&self, key: &str, letters: &str, visit: &mut dyn FnMut(&str, &'static str)) {
        match key {
            "outcome" => {
                for outcome in Outcome::ALL {
                    visit(outcome.as_str(), outcome.meaning());
                }
                visit("error", "any error outcome");
                visit("none", "no result yet");
            }
            "is" => {
                for (term, status) in STATUS_TERMS {
                    visit(term, status.meaning());
                }
            }
            "label" => {
                for (term, label) in LabelFilter::ALL {
                    visit(term, label.meaning());
                }
            }
            "eval" | "rubric" | "group" => {
                for value in self.eval_values(key) {
                    visit(value, "");
                }
            }
            "judge" => {
                for judge in self.listed_judges() {
                    visit(judge, "");
                }
            }
            "tag" => {
                for tag in self.tags.known() {
                    visit(tag, "");
                }
            }
            "transcript" => {
                for transcript in &self.transcripts {
                    visit(&transcript.id, "");
                }
            }
            "cell" => self.visit_names(letters, visit),
            _ => {}
        }
    }

    /// Returns the names of the judges of the listed rows, each once. Other judges of the workspace judge nothing here, so
    /// a filter by them finds no row.
    pub(super) fn listed_judges(&self) -> Vec<&str> {
        let mut is_used = vec![false; self.judges.len()];
        for row in self.rows.iter().filter(|row| !row.bookkeeping.removed) {
            for judge in row.slots.iter().filter_map(|slot| slot.judge) {
                if let Some(used) = is_used.get_mut(judge as usize) {
                    *used = true;
                }
            }
        }
        let judges = self.judges.iter().zip(is_used).filter(|(_, used)| *used);
        let mut names: Vec<&str> = Vec::new();
        for (judge, _) in judges {
            // A judge whose settings changed is listed twice.
            if !names.contains(&judge.name.as_str()) {
                names.push(&judge.name);
            }
        }
        names
    }

    /// Returns the ids of the listed evals, of their rubrics, or their groups, each once.
    pub(super) fn eval_values(&self, key: &str) -> BTreeSet<&str> {
        let listed = self.evals.iter().zip(&self.groups);
        // Evals of earlier revisions have no rows any more.
        let listed = listed.filter(|(_, group)| group.counts.rows > 0);
        match key {
            "eval" => listed.map(|(eval, _)| eval.id.as_str()).collect(),
            "rubric" => listed.map(|(eval, _)| eval.rubric.as_str()).collect(),
            _ => listed
                .flat_map(|(eval, _)| &eval.groups)
                .map(String::as_str)
                .collect(),
        }
    }

    /// Visits the names of decisions whose transcript can match.
    fn visit_names(&self, letters: &str, visit: &mut dyn FnMut(&str, &'static str)) {
        let transcript = letters.split('/').next().unwrap_or_default();
        let mut visited = 0;
        for (at, row) in self.rows.iter().enumerate() {
            let known = self.transcripts.get(row.transcript as usize);
            // Formatting a name is slow, so the transcript is compared first.
            if row.bookkeeping.removed
                || known.is_none_or(|known| find_ignoring_case(&known.id, transcript).is_none())
            {
                continue;
            }
            let row = super::RowId(u32::try_from(at).unwrap_or(u32::MAX));
            if let Some(name) = self.decision_name(row) {
                visit(&name.to_string(), "");
            }
            visited += 1;
            // More names than a list shows; the next letters narrow them.
            if visited == 20 * MAX_OFFERS {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
