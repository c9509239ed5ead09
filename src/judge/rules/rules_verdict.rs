//! The verdict of `rules`: the clauses it reads, and the verdict they yield, whole or in parts.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::FETCH;
use super::clause::Clause;
use super::clause_check::{ClauseResult, SourceQuote};
use super::grammar;
use super::prompt_material::{self, PromptMaterial};
use crate::judge::{PartsFormat, ScoreRange};
use crate::model::RULES_HEAD;

/// The parts of a verdict that `rules` can state.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RequestedParts {
    field: String,
    flag: String,
    /// The number of parts; `None` if they aren't numbered texts, which are all that `rules` can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbered: Option<usize>,
}

impl RequestedParts {
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        let format = PartsFormat::from_schema(schema)?;
        Some(Self {
            field: format.keys()[0].to_owned(),
            flag: format.met_key().to_owned(),
            numbered: match format {
                // Calls are numbered too, but no clause states what is asked of them.
                PartsFormat::Calls(_) => None,
                format => format.numbered_count(),
            },
        })
    }
}

/// Collects the clauses, and for each the numbered criterion (from 0) that it belongs to.
///
/// A criterion without a clause has one that can't be read.
pub(super) fn collect_clauses(
    material: &PromptMaterial,
    asks: Option<&RequestedParts>,
) -> (Vec<Clause>, Vec<usize>) {
    // The first line is enough: such criteria are often long prose for models.
    let unreadable = |text: &str, why: &str| Clause {
        text: text.lines().next().unwrap_or_default().to_owned(),
        whole_conversation: false,
        negated: false,
        check: Err(why.to_owned()),
    };
    // `rules` can't judge calls, so one unreadable clause makes the verdict "not applicable".
    if material.judges_calls {
        let why = "rules reads what was said, and this eval is about calls";
        return (vec![unreadable(&material.criteria, why)], vec![0]);
    }
    let Some(asks) = asks else {
        return (
            grammar::parse_clauses(&material.criteria, &material.guide),
            Vec::new(),
        );
    };
    let Some(count) = asks.numbered else {
        let why = format!("rules checks clauses and cannot state `{}`", asks.field);
        return (vec![unreadable(&material.criteria, &why)], vec![0]);
    };
    let (mut clauses, mut owners) = (Vec::new(), Vec::new());
    let criteria = prompt_material::parse_numbered_list(&material.criteria, count);
    for (owner, criterion) in criteria.iter().enumerate() {
        let mut criterion_clauses = grammar::parse_clauses(criterion, "");
        if criterion_clauses.is_empty() {
            criterion_clauses.push(unreadable(criterion, "it holds no clause"));
        }
        // One owner for each new clause, so that both lists stay in step.
        owners.resize(owners.len() + criterion_clauses.len(), owner);
        clauses.append(&mut criterion_clauses);
    }
    (clauses, owners)
}

/// The verdict of `rules`.
pub(super) struct RulesJudgeVerdict {
    /// Clause by clause.
    pub(super) explanation: String,
    /// The verdict's arguments.
    pub(super) json: Value,
}

/// The clauses with their results.
struct ClauseResults {
    lines: Vec<String>,
    /// The things found or missed, by clause.
    reasons: Vec<String>,
    citations: Vec<Value>,
    /// The result by clause; `None` if the clause can't be checked.
    holds: Vec<Option<bool>>,
}

fn report_clauses(clauses: &[Clause], clause_results: &[ClauseResult]) -> ClauseResults {
    let mut report = ClauseResults {
        lines: Vec::new(),
        reasons: Vec::new(),
        citations: Vec::new(),
        holds: Vec::new(),
    };
    for (clause, clause_result) in clauses.iter().zip(clause_results) {
        // Declared here, because `why` borrows it until the end of the iteration.
        let not_yet;
        let (mark, why) = match clause_result {
            ClauseResult::Checked { holds, why, quotes } => {
                report.holds.push(Some(*holds));
                for SourceQuote { source, quote } in quotes {
                    let citation = json!({"source": source, "quote": quote});
                    if !report.citations.contains(&citation) {
                        report.citations.push(citation);
                    }
                }
                (if *holds { "✓" } else { "✗" }, why)
            }
            ClauseResult::Unclear(why) => {
                report.holds.push(None);
                ("?", why)
            }
            ClauseResult::NeedsPage(url) => {
                report.holds.push(None);
                not_yet = format!(
                    "it needs {url}, and this judge may not use {FETCH} (add `tools: [{FETCH}]` to it)"
                );
                ("?", &not_yet)
            }
        };
        report.lines.push(format!("{mark} {}: {why}", clause.text));
        report.reasons.push(why.clone());
    }
    report
}

/// Returns the verdict "not applicable" if a clause can't be checked.
fn undecided_verdict(holds: &[Option<bool>], lines: &str) -> Option<Value> {
    let (open, total) = (holds.iter().filter(|h| h.is_none()).count(), holds.len());
    let why = match (open, total) {
        // This case is first: without clauses, 0 open ones would look like a verdict.
        (_, 0) => "The rubric holds no clause.".to_owned(),
        (0, _) => return None,
        (_, 1) => "The clause cannot be checked, so nothing is decided; a model could judge this."
            .to_owned(),
        _ => format!(
            "{open} of {total} clauses cannot be checked, so nothing is decided; a model could judge this."
        ),
    };
    Some(json!({
        "citations": [],
        "reasoning": format!("{RULES_HEAD}\n{lines}{why}"),
        "applicable": false
    }))
}

/// Returns a sentence with the number of clauses that hold.
fn describe_holding(holding: usize, total: usize) -> String {
    match (holding, total) {
        (1, 1) => "The clause holds.".to_owned(),
        (_, 1) => "The clause does not hold.".to_owned(),
        (1, _) => format!("1 of {total} clauses holds."),
        _ => format!("{holding} of {total} clauses hold."),
    }
}

pub(super) fn state_verdict(
    clauses: &[Clause],
    clause_results: &[ClauseResult],
    ScoreRange { low, high }: ScoreRange,
) -> RulesJudgeVerdict {
    let report = report_clauses(clauses, clause_results);
    let lines = number_lines(&report.lines);
    let holding = report.holds.iter().filter(|h| **h == Some(true)).count();
    let total = clauses.len();
    let json = undecided_verdict(&report.holds, &lines).unwrap_or_else(|| {
        json!({
            "citations": report.citations,
            "reasoning": format!("{RULES_HEAD}\n{lines}{}", describe_holding(holding, total)),
            "passed": holding == total,
            // The share of clauses that hold, on the eval's scale. `total` is not 0 here.
            "score": low + (high - low) * holding as f64 / total as f64,
            "applicable": true
        })
    });
    RulesJudgeVerdict {
        explanation: lines,
        json,
    }
}

/// As [`state_verdict`], with a part for each numbered criterion, which holds if all its clauses do.
pub(super) fn state_verdict_in_parts(
    clauses: &[Clause],
    clause_results: &[ClauseResult],
    owners: &[usize],
    asks: &RequestedParts,
) -> RulesJudgeVerdict {
    let report = report_clauses(clauses, clause_results);
    let lines = number_lines(&report.lines);
    let json = undecided_verdict(&report.holds, &lines).unwrap_or_else(|| {
        let count = asks.numbered.unwrap_or_default();
        let entries: Vec<_> = (0..count)
            .map(|criterion| {
                let mine = |at: &usize| owners.get(*at) == Some(&criterion);
                let mine: Vec<usize> = (0..clauses.len()).filter(mine).collect();
                // A criterion with one clause doesn't need the clause as a heading.
                let reason_source = if mine.len() == 1 {
                    &report.reasons
                } else {
                    &report.lines
                };
                let why: Vec<&str> = mine.iter().map(|at| reason_source[*at].as_str()).collect();
                let holds = mine.iter().all(|at| report.holds[*at] == Some(true));
                json!({
                    "index": criterion + 1,
                    "reasoning": why.join("; "),
                    (asks.flag.as_str()): holds
                })
            })
            .collect();
        json!({
            "citations": report.citations,
            (asks.field.as_str()): entries,
            "reasoning": RULES_HEAD,
            "applicable": true
        })
    });
    RulesJudgeVerdict {
        explanation: lines,
        json,
    }
}

fn number_lines(lines: &[String]) -> String {
    let mut text = String::new();
    for (number, line) in (1..).zip(lines) {
        _ = writeln!(text, "{number}. {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_clauses_agrees_with_its_verb() {
        for (holding, total, text) in [
            (1, 1, "The clause holds."),
            (0, 1, "The clause does not hold."),
            (1, 2, "1 of 2 clauses holds."),
            (0, 2, "0 of 2 clauses hold."),
            (2, 2, "2 of 2 clauses hold."),
        ] {
            assert_eq!(describe_holding(holding, total), text);
        }
        let open = |holds: &[Option<bool>]| {
            let verdict = undecided_verdict(holds, "").expect("not decided");
            verdict["reasoning"].as_str().expect("a text").to_owned()
        };
        assert!(open(&[None]).contains("\nThe clause cannot be checked, so"));
        assert!(open(&[None, Some(true)]).contains("\n1 of 2 clauses cannot be checked, so"));
    }
}
