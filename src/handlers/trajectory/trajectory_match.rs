//! `trajectory_match`: compares the agent's calls with a list of expected calls, in the modes of `LangChain`'s
//! agentevals.
//!
//! Unlike agentevals, which assigns calls greedily, it finds an assignment if one exists. A name alone, or a call
//! without `args`, ignores arguments. A written `count` applies in every mode.

use std::collections::HashMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::align::{AlignmentLine, CallFit, ExpectedSlot, SlotRule, align};
use super::assign::{SlotCapacity, assign};
use super::diff;
use super::expected_args::ArgsMode;
use super::expected_calls::{ExpectedCall, ExpectedCallSpec, compile_expected};
use super::fit_table::CallFitTable;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::EscapedName;
use crate::handlers::{Check, CompiledEval, Finding, Subject, TranscriptSpan};
use crate::model::pluralize;
use crate::rubric::{EvalTypeAlias, ParamProblem};

/// The mode in which the two lists compare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(in crate::handlers) enum TrajectoryMode {
    #[default]
    Strict,
    Exact,
    Unordered,
    Subset,
    Superset,
}

impl TrajectoryMode {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Exact => "exact",
            Self::Unordered => "unordered",
            Self::Subset => "subset",
            Self::Superset => "superset",
        }
    }

    const fn is_ordered(self) -> bool {
        matches!(self, Self::Strict | Self::Exact)
    }
}

/// Params of `trajectory_match`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct TrajectoryMatch {
    /// The expected calls in order. Each is a tool's name, or a mapping of `tool`, `args`, `args_mode`,
    /// `arg_matchers` and `count`. Empty if the agent must call nothing.
    expected: Vec<ExpectedCallSpec>,
    /// `strict` (`exact` means the same): these calls in this order and no others. `unordered`: these and no others,
    /// in any order. `subset`: only calls from this list. `superset`: at least these.
    #[serde(default)]
    mode: TrajectoryMode,
    /// The mode in which the `args` of an expected call compare with a call's arguments. `exact`: equal. `subset`:
    /// the call has no others. `superset`: the call has at least these. `regex`: patterns, each matches a part of the
    /// argument's text. `ignore`: not compared. Only the outermost level may have more or fewer arguments; values
    /// compare as a whole.
    #[serde(default)]
    args_mode: ArgsMode,
    /// Argument modes of single tools, by name. A call's own `args_mode` overrides them.
    #[serde(default)]
    args_modes: IndexMap<String, ArgsMode>,
    /// Pairs of tools `[a, b]`. If `b` is called, `a` must be called before. Every call of `a` must come before the
    /// first call of `b`. Calls of one message are in the order in which they occur there.
    #[serde(default)]
    #[schemars(inner(length(min = 2, max = 2), inner(length(min = 1))))]
    before: Vec<Vec<String>>,
}

impl EvalType for TrajectoryMatch {
    const NAME: &'static str = "trajectory_match";
    const SUMMARY: &'static str = "The agent's calls are the expected calls: in order, in any order, at most or at least \
        these. A failure shows both lists as one. The score is the share that is as expected.";
    const EXAMPLE: &'static str = "mode: superset\nexpected:\n  - get_policy\n  - { tool: refund, args: { order: 7 } }\n\
        before: [[get_policy, refund]]";
    const SCORED: bool = true;
    const ALIASES: &'static [EvalTypeAlias] = &[
        EvalTypeAlias::new("trajectory"),
        EvalTypeAlias {
            name: "trajectory_strict_match",
            preset_params: &[("mode", "\"strict\"")],
        },
        EvalTypeAlias {
            name: "trajectory_subset",
            preset_params: &[("mode", "\"subset\"")],
        },
        EvalTypeAlias {
            name: "trajectory_superset",
            preset_params: &[("mode", "\"superset\"")],
        },
        EvalTypeAlias {
            name: "trajectory_unordered_match",
            preset_params: &[("mode", "\"unordered\"")],
        },
    ];
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("args", "args_mode"),
        ("tool_args_match_mode", "args_mode"),
        ("tool_args_match_overrides", "args_modes"),
        ("trajectory_match_mode", "mode"),
    ];

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems = self.check_before_pairs();
        // A superset of nothing without pairs passes for every transcript.
        if self.mode == TrajectoryMode::Superset
            && self.expected.is_empty()
            && self.before.is_empty()
        {
            problems.push(param_problem(
                "/expected",
                "is empty: every list of calls contains at least that",
            ));
        }
        // Problems of both params are reported together.
        let expected = match compile_expected(self.expected, self.args_mode, &self.args_modes) {
            Ok(expected) if problems.is_empty() => expected,
            Ok(_) => return Err(problems),
            Err(more) => {
                problems.extend(more);
                return Err(problems);
            }
        };
        // `check_before_pairs` has refused all lists that are not pairs.
        let before = self.before.into_iter().filter_map(|pair| {
            let [first, then] = <[String; 2]>::try_from(pair).ok()?;
            Some(ToolOrder { first, then })
        });
        Ok(CompiledEval::Check(Box::new(TrajectoryMatchCheck {
            slots: expand_slots(&expected),
            expected,
            mode: self.mode,
            before: before.collect(),
        })))
    }
}

impl TrajectoryMatch {
    /// Returns the problems of `before`.
    fn check_before_pairs(&self) -> Vec<ParamProblem> {
        let mut problems = Vec::new();
        // Ordered modes already fix the order of all calls.
        if self.mode.is_ordered() && !self.before.is_empty() {
            let what = format!(
                "has no effect: {} already checks the order",
                self.mode.as_str()
            );
            problems.push(param_problem("/before", what));
        }
        for (at, pair) in self.before.iter().enumerate() {
            let at = format!("/before/{at}");
            match pair.as_slice() {
                [first, then] if first == then => {
                    problems.push(param_problem(at, "names one tool twice"));
                }
                [first, then] if first.is_empty() || then.is_empty() => {
                    problems.push(param_problem(at, "has an empty name"));
                }
                [first, then] => {
                    // Pairs in both directions can never hold together.
                    let reverse = |other: &&Vec<String>| matches!(other.as_slice(), [a, b] if a == then && b == first);
                    if self.before.iter().any(|other| reverse(&other)) {
                        problems.push(param_problem(at, "is also in the list in reverse order"));
                    }
                }
                _ => problems.push(param_problem(at, "must be two tools: [first, then]")),
            }
        }
        problems
    }
}

/// Returns the expected calls one by one, for an alignment.
fn expand_slots(expected: &[ExpectedCall]) -> Vec<ExpectedSlot> {
    let mut slots = Vec::new();
    for (at, one) in expected.iter().enumerate() {
        // One slot for each call, so that the alignment has a row for each.
        let slot = |kind| ExpectedSlot {
            expected: at,
            rule: kind,
        };
        slots.extend(std::iter::repeat_n(slot(SlotRule::Required), one.min));
        match one.max {
            None => slots.push(slot(SlotRule::Repeatable)),
            Some(max) => slots.extend(std::iter::repeat_n(slot(SlotRule::Optional), max - one.min)),
        }
    }
    slots
}

#[derive(Debug)]
struct TrajectoryMatchCheck {
    expected: Vec<ExpectedCall>,
    slots: Vec<ExpectedSlot>,
    mode: TrajectoryMode,
    before: Vec<ToolOrder>,
}

/// A pair of `before`: if `then` is called, `first` must be called before.
#[derive(Debug)]
struct ToolOrder {
    first: String,
    then: String,
}

/// A pair of `before` that does not hold, with the reason and the call that is too early or too late.
struct OrderViolation {
    why: String,
    span: TranscriptSpan,
}

impl Check for TrajectoryMatchCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Compare the two lists.
        let lines = match self.align_calls(subject) {
            Ok(lines) => lines,
            Err(why) => return Finding::check_error(why),
        };
        let (held, disorder) = self.check_order(subject);
        // Count the lines of each kind.
        let count =
            |is_kind: fn(&AlignmentLine) -> bool| lines.iter().filter(|line| is_kind(line)).count();
        let same = count(|line| matches!(line, AlignmentLine::Same { .. }));
        let missing = count(|line| matches!(line, AlignmentLine::Missing { .. }));
        let extra = count(|line| matches!(line, AlignmentLine::Extra { .. }));
        let differs = count(|line| matches!(line, AlignmentLine::Differs { .. }));
        let allowed = count(|line| matches!(line, AlignmentLine::Allowed { .. }));
        let faults = missing + extra + differs + disorder.len();
        // Pairs of `before` count like calls: pairs that hold are as expected. A pair whose second tool is not called
        // does not count, because an agent that does nothing has done nothing well.
        let good = same + held;
        let score = if faults == 0 {
            1.0
        } else {
            good as f64 / (good + faults) as f64
        };
        // Explain the result: a summary, then both lists as one, then the pairs.
        let mode = self.mode.as_str();
        let mut why = if faults == 0 {
            let further = if allowed == 0 {
                String::new()
            } else {
                format!(", and {allowed} more")
            };
            format!("{mode}: {} as expected{further}", pluralize(same, "call"))
        } else {
            let kinds = [
                (missing, "missing"),
                (extra, "not expected"),
                (differs, "with other arguments"),
                (disorder.len(), "out of order"),
            ];
            // Only the kinds that occur are listed.
            let kinds = kinds.iter().filter(|(n, _)| *n > 0);
            let listed: Vec<String> = kinds.map(|(n, what)| format!("{n} {what}")).collect();
            format!(
                "not {mode}: {}; {} as expected",
                listed.join(", "),
                pluralize(same, "call")
            )
        };
        why.push_str(&diff::render_diff(&lines, &self.expected, subject));
        for broken in &disorder {
            why.push_str("\n! ");
            why.push_str(&broken.why);
        }
        let marks = diff::collect_spans(&lines, subject, faults == 0);
        Finding::new(faults == 0, why)
            .with_score(score)
            // Pairs first, because the spans are limited and a wrong order has few.
            .with_spans(disorder.into_iter().map(|broken| broken.span))
            .with_spans(marks)
    }
}

impl TrajectoryMatchCheck {
    fn align_calls(&self, subject: &Subject<'_>) -> Result<Vec<AlignmentLine>, String> {
        let table = CallFitTable::new(&self.expected, subject)?;
        if self.mode.is_ordered() {
            self.align_in_order(&table, subject.calls().len())
        } else {
            self.align_in_any_order(&table, subject)
        }
    }

    fn align_in_order(
        &self,
        table: &CallFitTable,
        calls: usize,
    ) -> Result<Vec<AlignmentLine>, String> {
        // The alignment asks for one call at a time, so the fits are not stored twice.
        let fit = |call: usize, fits: &mut [CallFit]| {
            for pair in &table.0[call] {
                fits[pair.expected] = if pair.fits {
                    CallFit::Exact
                } else {
                    CallFit::ToolOnly
                };
            }
        };
        let lines = align(&self.slots, self.expected.len(), calls, fit);
        lines.ok_or_else(|| {
            let slots = self.slots.len();
            format!("{calls} calls are too many to align with {slots} expected ones")
        })
    }

    /// Returns the lines in the order of the calls; missing expected calls come last.
    fn align_in_any_order(
        &self,
        table: &CallFitTable,
        subject: &Subject<'_>,
    ) -> Result<Vec<AlignmentLine>, String> {
        let calls = subject.calls();
        // Each expected call has a number of places, each call may need one.
        let places: Vec<SlotCapacity> = self
            .expected
            .iter()
            .map(|one| self.slot_capacity(one, calls.len()))
            .collect();
        let must: Vec<bool> = (0..calls.len())
            .map(|call| {
                let mut fitting = table.matching_expected(call).map(|at| &self.expected[at]);
                // In a superset further calls are allowed, so only calls of a bounded count need a place.
                self.mode != TrajectoryMode::Superset
                    || fitting.any(|one| one.has_count && one.max.is_some())
            })
            .collect();
        let assigned = assign(table, &places, &must).ok_or_else(|| {
            let (calls, expected) = (calls.len(), self.expected.len());
            format!("{calls} calls fit {expected} expected ones in too many ways to decide")
        })?;
        // A missing call and an extra call of the same tool are one difference: other arguments.
        let mut missing: HashMap<&str, Vec<usize>> = HashMap::new();
        // In reverse, because `pop` returns the last entry: the first missing call is paired first.
        for (at, one) in self.expected.iter().enumerate().rev() {
            let short = places[at].min.saturating_sub(assigned.call_counts[at]);
            let of_tool = missing.entry(&one.tool).or_default();
            of_tool.extend(std::iter::repeat_n(at, short));
        }
        let mut lines: Vec<AlignmentLine> = Vec::with_capacity(calls.len());
        // One line for each call, in the order of the transcript.
        for (call, assigned_to) in assigned.expected_by_call.iter().enumerate() {
            let name: &str = &calls[call].call.name;
            lines.push(match assigned_to {
                Some(expected) => AlignmentLine::Same {
                    expected: *expected,
                    call,
                },
                None => match missing.get_mut(name).and_then(Vec::pop) {
                    Some(expected) => AlignmentLine::Differs { expected, call },
                    None if must[call] => AlignmentLine::Extra { call },
                    // Other calls that need no place are allowed.
                    None => AlignmentLine::Allowed { call },
                },
            });
        }
        let mut rest: Vec<usize> = missing.into_values().flatten().collect();
        // The order of a hash map is random.
        rest.sort_unstable();
        lines.extend(
            rest.into_iter()
                .map(|expected| AlignmentLine::Missing { expected }),
        );
        Ok(lines)
    }

    /// Returns the number of calls that an expected call takes. A subset may be incomplete, but a written count
    /// applies.
    fn slot_capacity(&self, one: &ExpectedCall, calls: usize) -> SlotCapacity {
        let need_not = self.mode == TrajectoryMode::Subset && !one.has_count;
        SlotCapacity {
            min: if need_not { 0 } else { one.min },
            // Any number of calls: at most all that the transcript has.
            max: one.max.unwrap_or(calls.max(one.min)),
        }
    }

    /// Returns the number of pairs of `before` that hold with both tools called, and the pairs that do not hold.
    fn check_order(&self, subject: &Subject<'_>) -> (usize, Vec<OrderViolation>) {
        let mut held = 0;
        if self.before.is_empty() {
            return (held, Vec::new());
        }
        // By tool: its first and its last call.
        let mut of_tool: HashMap<&str, (usize, usize)> = HashMap::new();
        for (ix, call) in subject.calls().iter().enumerate() {
            // `or_insert` sets the first call, and the assignment to `.1` moves the last.
            of_tool.entry(&call.call.name).or_insert((ix, ix)).1 = ix;
        }
        let pairs = self.before.iter();
        let disorder = pairs
            .filter_map(|ToolOrder { first, then }| {
                // If the second tool is not called, the pair holds without effect.
                let (opening, _) = *of_tool.get(then.as_str())?;
                let message = |ix: usize| subject.calls()[ix].message;
                let (first, then) = (EscapedName(first), EscapedName(then));
                let of_then = format!("{then} in message {}", message(opening));
                // The first tool is missing, or its last call is too late.
                match of_tool.get(first.0) {
                    None => Some(OrderViolation {
                        why: format!("{first} must come before {of_then}, and is not called"),
                        span: subject.call_span(opening),
                    }),
                    Some((_, last)) if *last > opening => Some(OrderViolation {
                        why: format!(
                            "{first} in message {} must come before {of_then}",
                            message(*last)
                        ),
                        span: subject.call_span(*last),
                    }),
                    Some(_) => {
                        held += 1;
                        None
                    }
                }
            })
            .collect();
        (held, disorder)
    }
}

#[cfg(test)]
mod tests;
