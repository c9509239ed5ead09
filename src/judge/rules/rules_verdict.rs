//! What `rules` states: the clauses it was asked about, and the verdict they amount to, whole or in parts.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::clause::Clause;
use super::clause_check::ClauseResult;
use super::grammar;
use super::prompt_material::{self, PromptMaterial};
use super::{FETCH, HEAD};
use crate::judge::PartsFormat;

/// The parts a judge is asked for, as far as `rules` cares.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct RequestedParts {
    field: String,
    flag: String,
    /// Absent: they are no numbered texts, which are all that `rules` can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbered: Option<usize>,
}

impl RequestedParts {
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        let form = PartsFormat::from_schema(schema)?;
        Some(Self {
            field: form.keys()[0].to_owned(),
            flag: form.met_key().to_owned(),
            numbered: match form {
                // Calls are numbered too, but what is asked of them stands in no clause.
                PartsFormat::Calls(_) => None,
                form => form.numbered_count(),
            },
        })
    }
}

/// The clauses, and of which numbered criterion each is, from 0. A criterion without a clause has one that cannot be read.
pub(super) fn collect_clauses(
    material: &PromptMaterial,
    asks: Option<&RequestedParts>,
) -> (Vec<Clause>, Vec<usize>) {
    // Prose for models need not be repeated whole.
    let unreadable = |text: &str, why: &str| Clause {
        text: text.lines().next().unwrap_or_default().to_owned(),
        whole_conversation: false,
        negated: false,
        check: Err(why.to_owned()),
    };
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
        let mut own = grammar::parse_clauses(criterion, "");
        if own.is_empty() {
            own.push(unreadable(criterion, "it holds no clause"));
        }
        owners.resize(owners.len() + own.len(), owner);
        clauses.append(&mut own);
    }
    (clauses, owners)
}

/// What `rules` states.
pub(super) struct RulesVerdict {
    /// Clause by clause.
    pub(super) explanation: String,
    /// The verdict's arguments.
    pub(super) json: Value,
}

/// The clauses with what became of them.
struct ClauseReport {
    lines: Vec<String>,
    /// What was found or missed, alone.
    reasons: Vec<String>,
    citations: Vec<Value>,
    /// By clause; `None`: it cannot be checked.
    holds: Vec<Option<bool>>,
}

fn report_clauses(clauses: &[Clause], rulings: &[ClauseResult]) -> ClauseReport {
    let mut told = ClauseReport {
        lines: Vec::new(),
        reasons: Vec::new(),
        citations: Vec::new(),
        holds: Vec::new(),
    };
    for (clause, ruling) in clauses.iter().zip(rulings) {
        let not_yet;
        let (mark, why) = match ruling {
            ClauseResult::Checked { holds, why, quotes } => {
                told.holds.push(Some(*holds));
                for (source, quote) in quotes {
                    let citation = json!({"source": source, "quote": quote});
                    if !told.citations.contains(&citation) {
                        told.citations.push(citation);
                    }
                }
                (if *holds { "✓" } else { "✗" }, why)
            }
            ClauseResult::Unclear(why) => {
                told.holds.push(None);
                ("?", why)
            }
            ClauseResult::NeedsPage(url) => {
                told.holds.push(None);
                not_yet = format!(
                    "it needs {url}, and this judge may not use {FETCH} (add `tools: [{FETCH}]` to it)"
                );
                ("?", &not_yet)
            }
        };
        told.lines.push(format!("{mark} {}: {why}", clause.text));
        told.reasons.push(why.clone());
    }
    told
}

/// What cannot be checked makes it all undecided.
fn undecided_verdict(holds: &[Option<bool>], lines: &str) -> Option<Value> {
    let (open, total) = (holds.iter().filter(|h| h.is_none()).count(), holds.len());
    let why = match (open, total) {
        (_, 0) => "The rubric holds no clause.".to_owned(),
        (0, _) => return None,
        _ => format!(
            "{open} of {total} clauses cannot be checked, so nothing is decided; a model could judge this."
        ),
    };
    Some(json!({
        "citations": [],
        "reasoning": format!("{HEAD}\n{lines}{why}"),
        "applicable": false
    }))
}

pub(super) fn state_verdict(
    clauses: &[Clause],
    rulings: &[ClauseResult],
    (low, high): (f64, f64),
) -> RulesVerdict {
    let told = report_clauses(clauses, rulings);
    let lines = number_lines(&told.lines);
    let holding = told.holds.iter().filter(|h| **h == Some(true)).count();
    let total = clauses.len();
    let json = undecided_verdict(&told.holds, &lines).unwrap_or_else(|| {
        json!({
            "citations": told.citations,
            "reasoning": format!("{HEAD}\n{lines}{holding} of {total} clauses hold."),
            "passed": holding == total,
            "score": low + (high - low) * holding as f64 / total as f64,
            "applicable": true
        })
    });
    RulesVerdict {
        explanation: lines,
        json,
    }
}

/// As [`verdict`], a part for each numbered criterion: it holds if all its clauses do.
pub(super) fn state_verdict_in_parts(
    clauses: &[Clause],
    rulings: &[ClauseResult],
    owners: &[usize],
    asks: &RequestedParts,
) -> RulesVerdict {
    let told = report_clauses(clauses, rulings);
    let lines = number_lines(&told.lines);
    let json = undecided_verdict(&told.holds, &lines).unwrap_or_else(|| {
        let count = asks.numbered.unwrap_or_default();
        let entries: Vec<_> = (0..count)
            .map(|criterion| {
                let mine = |at: &usize| owners.get(*at) == Some(&criterion);
                let mine: Vec<usize> = (0..clauses.len()).filter(mine).collect();
                // A criterion of one clause is its own heading.
                let told_of = if mine.len() == 1 {
                    &told.reasons
                } else {
                    &told.lines
                };
                let why: Vec<&str> = mine.iter().map(|at| told_of[*at].as_str()).collect();
                let holds = mine.iter().all(|at| told.holds[*at] == Some(true));
                json!({
                    "index": criterion + 1,
                    "reasoning": why.join("; "),
                    (asks.flag.as_str()): holds
                })
            })
            .collect();
        json!({
            "citations": told.citations,
            (asks.field.as_str()): entries,
            "reasoning": HEAD,
            "applicable": true
        })
    });
    RulesVerdict {
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
