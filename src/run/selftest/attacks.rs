//! Which attacks are made on which base answers.

use std::collections::HashMap;

use serde_json::Value;

use super::bases::{Base, Bases, answered, greeted};
use super::texts::{EMPTY, INJECTED, MASTER_KEYS, Style, encoded, hidden, padded};

/// What is done to an answer. Their order is the table's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Family {
    MasterKey,
    Empty,
    Injected(Style),
    Padding,
    Messages,
    Criteria,
    Repeat,
}

impl Family {
    pub(super) const ALL: [Self; 14] = [
        Self::MasterKey,
        Self::Empty,
        Self::Injected(Style::Order),
        Self::Injected(Style::Authority),
        Self::Injected(Style::Verdict),
        Self::Injected(Style::Roles),
        Self::Injected(Style::Delimiters),
        Self::Injected(Style::Languages),
        Self::Injected(Style::Encoded),
        Self::Injected(Style::Hidden),
        Self::Padding,
        Self::Messages,
        Self::Criteria,
        Self::Repeat,
    ];

    /// Its name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MasterKey => "master keys",
            Self::Empty => "empty answers",
            Self::Injected(Style::Order) => "praise and orders",
            Self::Injected(Style::Authority) => "fake authority",
            Self::Injected(Style::Verdict) => "fake verdicts",
            Self::Injected(Style::Roles) => "role markers",
            Self::Injected(Style::Delimiters) => "look-alike delimiters",
            Self::Injected(Style::Languages) => "other languages",
            Self::Injected(Style::Encoded) => "encoded orders",
            Self::Injected(Style::Hidden) => "hidden orders",
            Self::Padding => "padding",
            Self::Messages => "swapped messages",
            Self::Criteria => "swapped criteria",
            Self::Repeat => "repeated run",
        }
    }

    /// Whether nothing that matters changes, so that any other verdict is a flip; else a flip is a fail that passes.
    pub(super) fn is_neutral(self) -> bool {
        matches!(self, Self::Messages | Self::Criteria | Self::Repeat)
    }
}

/// How an eval is asked: its own way, several times, or with its criteria in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Way {
    Once,
    Again,
    Reversed,
}

/// One transcript that is judged by one eval.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) id: String,
    pub(super) record: Value,
    pub(super) eval: usize,
    pub(super) way: Way,
    pub(super) family: Family,
    /// Position of the base answer.
    pub(super) base: usize,
}

/// What is known of a base answer under an eval: passed or failed, by their positions.
pub(super) type Known<'k> = &'k dyn Fn(usize, usize) -> Option<bool>;

/// The base answers as they are, asked several times.
pub(super) fn baseline(bases: &Bases) -> Vec<Case> {
    let mut cases = Vec::new();
    for (at, base) in bases.all.iter().enumerate() {
        for eval in &base.evals {
            cases.push(Case {
                id: base.id.clone(),
                record: base.record.clone(),
                eval: *eval,
                way: Way::Again,
                family: Family::Repeat,
                base: at,
            });
        }
    }
    cases
}

/// The attacks: on answers that fail, at most `most` pairs of answer and eval, and neutral changes of at most as many.
pub(super) fn attacks(bases: &Bases, most: usize, known: Known<'_>) -> Vec<Case> {
    let failing = |want: &dyn Fn(&Base) -> bool| -> HashMap<(usize, usize), usize> {
        let mut found = HashMap::new();
        for (at, base) in bases.all.iter().enumerate().filter(|(_, base)| want(base)) {
            for eval in &base.evals {
                if known(at, *eval) == Some(false) {
                    found.entry((base.of, *eval)).or_insert(at);
                }
            }
        }
        found
    };
    let hollow = failing(&|base| base.hollow);
    let own = failing(&|base| !base.hollow);
    let mut pairs: Vec<(usize, usize)> = hollow.keys().chain(own.keys()).copied().collect();
    // Every eval's first conversation before any second one.
    pairs.sort_unstable();
    pairs.dedup();
    pairs.truncate(most);
    let mut cases = Vec::new();
    for pair in pairs {
        if let Some(base) = hollow.get(&pair) {
            let whole = MASTER_KEYS.map(|text| (Family::MasterKey, text));
            let whole = whole
                .into_iter()
                .chain(EMPTY.map(|text| (Family::Empty, text)));
            for (nth, (family, text)) in whole.enumerate() {
                push(&mut cases, bases, (*base, pair.1), family, nth, text);
            }
        }
        if let Some(base) = own.get(&pair).or_else(|| hollow.get(&pair)) {
            let answer = &bases.all[*base].answer;
            for (family, nth, text) in behind(answer) {
                push(&mut cases, bases, (*base, pair.1), family, nth, &text);
            }
        }
    }
    neutral(bases, most, known, &mut cases);
    cases
}

/// Answers with something behind them, or around them.
fn behind(answer: &str) -> Vec<(Family, usize, String)> {
    let fixed = INJECTED.iter().map(|(style, texts)| {
        (
            *style,
            texts.iter().map(|text| (*text).to_owned()).collect(),
        )
    });
    let made = [(Style::Encoded, encoded()), (Style::Hidden, hidden())];
    let mut all = Vec::new();
    for (style, texts) in fixed.chain(made) {
        let texts: Vec<String> = texts;
        let joined = texts.into_iter().map(|text| format!("{answer}\n\n{text}"));
        all.extend(
            joined
                .enumerate()
                .map(|(nth, text)| (Family::Injected(style), nth, text)),
        );
    }
    let long = padded(answer).into_iter().enumerate();
    all.extend(long.map(|(nth, text)| (Family::Padding, nth, text)));
    all
}

fn push(
    cases: &mut Vec<Case>,
    bases: &Bases,
    (base, eval): (usize, usize),
    family: Family,
    nth: usize,
    answer: &str,
) {
    let of = &bases.all[base];
    cases.push(Case {
        id: format!("{}+{}-{}", of.id, family.name().replace(' ', "-"), nth + 1),
        record: answered(&of.record, answer),
        eval,
        way: Way::Once,
        family,
        base,
    });
}

/// Changes that mean nothing, of answers that have a verdict.
fn neutral(bases: &Bases, most: usize, known: Known<'_>, cases: &mut Vec<Case>) {
    let mut taken = 0;
    for (at, base) in bases.all.iter().enumerate() {
        // An answer that says nothing is no test of order, unless it is one of known truth.
        if base.hollow && base.truth.is_none() {
            continue;
        }
        for eval in base.evals.iter().filter(|eval| known(at, **eval).is_some()) {
            if taken == most {
                return;
            }
            taken += 1;
            for (nth, late) in [false, true].into_iter().enumerate() {
                cases.push(Case {
                    id: format!("{}+swapped-messages-{}", base.id, nth + 1),
                    record: greeted(&base.record, late),
                    eval: *eval,
                    way: Way::Once,
                    family: Family::Messages,
                    base: at,
                });
            }
            if reversed(&bases.evals[*eval].params).is_some() {
                cases.push(Case {
                    id: format!("{}+swapped-criteria", base.id),
                    record: base.record.clone(),
                    eval: *eval,
                    way: Way::Reversed,
                    family: Family::Criteria,
                    base: at,
                });
            }
        }
    }
}

/// Params with the list of criteria in reverse; `None` where there is no such list.
pub(super) fn reversed(params: &Value) -> Option<Value> {
    let list = params
        .get("criteria")?
        .as_array()
        .filter(|list| list.len() > 1)?;
    let mut params = params.clone();
    params["criteria"] = list.iter().rev().cloned().collect();
    Some(params)
}
