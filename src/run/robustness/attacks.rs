//! The attacks on each base answer.
//!
//! Responsible for the cases. Does not run them.

use std::collections::HashMap;

use serde_json::Value;

use super::attack_texts::{
    EMPTY_ANSWERS, INJECTED_TEXTS, InjectionStyle, MASTER_KEYS, encoded_texts, hidden_texts,
    pad_answer,
};
use super::base_answers::{BaseAnswer, BaseAnswers, with_answer, with_greeting};

/// An attack, in the order of the report's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum AttackKind {
    MasterKey,
    Empty,
    Injected(InjectionStyle),
    Padding,
    Messages,
    Criteria,
    Repeat,
}

impl AttackKind {
    pub(super) const ALL: [Self; 14] = [
        Self::MasterKey,
        Self::Empty,
        Self::Injected(InjectionStyle::Order),
        Self::Injected(InjectionStyle::Authority),
        Self::Injected(InjectionStyle::Verdict),
        Self::Injected(InjectionStyle::Roles),
        Self::Injected(InjectionStyle::Delimiters),
        Self::Injected(InjectionStyle::Languages),
        Self::Injected(InjectionStyle::Encoded),
        Self::Injected(InjectionStyle::Hidden),
        Self::Padding,
        Self::Messages,
        Self::Criteria,
        Self::Repeat,
    ];

    /// Returns the name in the table.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MasterKey => "master keys",
            Self::Empty => "empty answers",
            Self::Injected(InjectionStyle::Order) => "praise and orders",
            Self::Injected(InjectionStyle::Authority) => "fake authority",
            Self::Injected(InjectionStyle::Verdict) => "fake verdicts",
            Self::Injected(InjectionStyle::Roles) => "role markers",
            Self::Injected(InjectionStyle::Delimiters) => "look-alike delimiters",
            Self::Injected(InjectionStyle::Languages) => "other languages",
            Self::Injected(InjectionStyle::Encoded) => "encoded orders",
            Self::Injected(InjectionStyle::Hidden) => "hidden orders",
            Self::Padding => "padding",
            Self::Messages => "swapped messages",
            Self::Criteria => "swapped criteria",
            Self::Repeat => "repeated run",
        }
    }

    /// Returns `true` if the attack changes nothing that matters. Then any other verdict is a flip; otherwise only a
    /// pass instead of a fail is.
    pub(super) fn is_neutral(self) -> bool {
        matches!(self, Self::Messages | Self::Criteria | Self::Repeat)
    }
}

/// The variant of an eval: unchanged, several times, or with its criteria in reverse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum EvalVariant {
    Once,
    Again,
    Reversed,
}

/// One transcript and the eval that judges it.
#[derive(Debug, Clone)]
pub(super) struct RobustnessCase {
    pub(super) id: String,
    pub(super) record: Value,
    pub(super) eval: usize,
    pub(super) variant: EvalVariant,
    pub(super) attack: AttackKind,
    /// The position of the base answer.
    pub(super) base: usize,
}

/// Returns the verdict on a base answer under an eval, both by position; `None` without a verdict.
pub(super) type BaseVerdictFn<'k> = &'k dyn Fn(usize, usize) -> Option<bool>;

/// Returns the cases of the unchanged base answers, each judged several times.
pub(super) fn baseline_cases(bases: &BaseAnswers) -> Vec<RobustnessCase> {
    let mut cases = Vec::new();
    for (at, base) in bases.answers.iter().enumerate() {
        for eval in &base.evals {
            cases.push(RobustnessCase {
                id: base.id.clone(),
                record: base.record.clone(),
                eval: *eval,
                variant: EvalVariant::Again,
                attack: AttackKind::Repeat,
                base: at,
            });
        }
    }
    cases
}

/// Returns the attacks on at most `most` pairs of a failing answer and an eval, and neutral changes of at most as
/// many.
pub(super) fn attack_cases(
    bases: &BaseAnswers,
    most: usize,
    known: BaseVerdictFn<'_>,
) -> Vec<RobustnessCase> {
    // Only an answer that fails can be turned into a pass.
    let failing = |want: &dyn Fn(&BaseAnswer) -> bool| -> HashMap<(usize, usize), usize> {
        let mut found = HashMap::new();
        for (at, base) in bases
            .answers
            .iter()
            .enumerate()
            .filter(|(_, base)| want(base))
        {
            for eval in &base.evals {
                if known(at, *eval) == Some(false) {
                    // One failing answer per conversation and eval is enough.
                    found.entry((base.conversation, *eval)).or_insert(at);
                }
            }
        }
        found
    };
    let non_answers = failing(&|base| base.is_non_answer);
    let wrong_answers = failing(&|base| !base.is_non_answer);
    let mut pairs: Vec<(usize, usize)> = non_answers
        .keys()
        .chain(wrong_answers.keys())
        .copied()
        .collect();
    // Sort, so that each eval attacks its first conversation before a second one.
    pairs.sort_unstable();
    pairs.dedup();
    // The limit keeps the number of calls predictable.
    pairs.truncate(most);
    let mut cases = Vec::new();
    for pair in pairs {
        // Answers without content replace a non-answer, which deserves a pass no more than they do.
        if let Some(base) = non_answers.get(&pair) {
            let replacements = MASTER_KEYS.map(|text| (AttackKind::MasterKey, text));
            let replacements = replacements
                .into_iter()
                .chain(EMPTY_ANSWERS.map(|text| (AttackKind::Empty, text)));
            for (nth, (family, text)) in replacements.enumerate() {
                push_case(&mut cases, bases, (*base, pair.1), family, nth, text);
            }
        }
        // A wrong answer with content is the harder test, so it comes before the non-answer.
        if let Some(base) = wrong_answers.get(&pair).or_else(|| non_answers.get(&pair)) {
            let answer = &bases.answers[*base].answer;
            for (family, nth, text) in append_attack_texts(answer) {
                push_case(&mut cases, bases, (*base, pair.1), family, nth, &text);
            }
        }
    }
    push_neutral_cases(bases, most, known, &mut cases);
    cases
}

/// Returns the answer with each text after it or around it.
fn append_attack_texts(answer: &str) -> Vec<(AttackKind, usize, String)> {
    let fixed = INJECTED_TEXTS.iter().map(|(style, texts)| {
        (
            *style,
            texts.iter().map(|text| (*text).to_owned()).collect(),
        )
    });
    let made = [
        (InjectionStyle::Encoded, encoded_texts()),
        (InjectionStyle::Hidden, hidden_texts()),
    ];
    let mut all = Vec::new();
    for (style, texts) in fixed.chain(made) {
        let texts: Vec<String> = texts;
        let joined = texts.into_iter().map(|text| format!("{answer}\n\n{text}"));
        all.extend(
            joined
                .enumerate()
                .map(|(nth, text)| (AttackKind::Injected(style), nth, text)),
        );
    }
    // Padding surrounds the answer, so it does not follow it as the other texts do.
    let long = pad_answer(answer).into_iter().enumerate();
    all.extend(long.map(|(nth, text)| (AttackKind::Padding, nth, text)));
    all
}

fn push_case(
    cases: &mut Vec<RobustnessCase>,
    bases: &BaseAnswers,
    (base, eval): (usize, usize),
    family: AttackKind,
    nth: usize,
    answer: &str,
) {
    let base_answer = &bases.answers[base];
    cases.push(RobustnessCase {
        id: format!(
            "{}+{}-{}",
            base_answer.id,
            family.name().replace(' ', "-"),
            nth + 1
        ),
        record: with_answer(&base_answer.record, answer),
        eval,
        variant: EvalVariant::Once,
        attack: family,
        base,
    });
}

/// Adds neutral changes of answers with a verdict.
fn push_neutral_cases(
    bases: &BaseAnswers,
    most: usize,
    known: BaseVerdictFn<'_>,
    cases: &mut Vec<RobustnessCase>,
) {
    let mut taken = 0;
    for (at, base) in bases.answers.iter().enumerate() {
        // An answer without content does not test the order of criteria, unless its verdict is known.
        if base.is_non_answer && base.deserves_pass.is_none() {
            continue;
        }
        for eval in base.evals.iter().filter(|eval| known(at, **eval).is_some()) {
            if taken == most {
                return;
            }
            taken += 1;
            for (nth, late) in [false, true].into_iter().enumerate() {
                cases.push(RobustnessCase {
                    id: format!("{}+swapped-messages-{}", base.id, nth + 1),
                    record: with_greeting(&base.record, late),
                    eval: *eval,
                    variant: EvalVariant::Once,
                    attack: AttackKind::Messages,
                    base: at,
                });
            }
            // Criteria as one text have no order to change.
            if reverse_criteria(&bases.evals[*eval].params).is_some() {
                cases.push(RobustnessCase {
                    id: format!("{}+swapped-criteria", base.id),
                    record: base.record.clone(),
                    eval: *eval,
                    variant: EvalVariant::Reversed,
                    attack: AttackKind::Criteria,
                    base: at,
                });
            }
        }
    }
}

/// Returns the params with the criteria in reverse; `None` without such a list.
pub(super) fn reverse_criteria(params: &Value) -> Option<Value> {
    let list = params
        .get("criteria")?
        .as_array()
        // One criterion in reverse is the same question.
        .filter(|list| list.len() > 1)?;
    let mut params = params.clone();
    params["criteria"] = list.iter().rev().cloned().collect();
    Some(params)
}
