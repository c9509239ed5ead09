//! `trajectory_matcher`: evalbench's comparison of tool names, as sets or in order. Its score of 100 is 1 here.

use std::fmt::Write as _;

use indexmap::IndexSet;
use schemars::JsonSchema;
use serde::Deserialize;

use super::align::{AlignmentLine, CallFit, ExpectedSlot, SlotRule, align};
use super::check_tool_names;
use crate::handlers::eval_type::{EvalType, param_problem};
use crate::handlers::explain::{EscapedName, format_list};
use crate::handlers::{Check, CompiledEval, Finding, Subject};
use crate::model::pluralize;
use crate::rubric::ParamProblem;

/// The largest product of the lengths of two lists. Comparing in order is quadratic.
const MAX_PAIRS: usize = 1 << 24;

/// Params of `trajectory_matcher`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::handlers) struct TrajectoryMatcher {
    /// The expected tools, in order. Empty if the agent must call no tool.
    #[schemars(inner(length(min = 1)))]
    expected_trajectory: Vec<String>,
    /// `false`: compares sets, so that order and repeats do not count; the score is the share of tools that both
    /// have. `true`: the score is 1 minus the edits (insert, remove, replace) between the lists, divided by the
    /// length of the longer list.
    #[serde(default)]
    enforce_order: bool,
    /// Ignores, on both sides, every tool whose name does not have the form `<server>__<tool>`.
    #[serde(default = "yes")]
    filter_native_tools: bool,
}

const fn yes() -> bool {
    true
}

/// Returns `true` if a tool belongs to a server and not to the agent itself.
fn is_server_tool(name: &str) -> bool {
    // A native tool of the agent has no server in its name.
    matches!(name.split_once("__"), Some((server, tool)) if !server.is_empty() && !tool.is_empty())
}

impl EvalType for TrajectoryMatcher {
    const NAME: &'static str = "trajectory_matcher";
    const SUMMARY: &'static str = "The names of the called tools are the expected ones, as sets or in order. The score is their similarity. \
        Only 1 passes unless `min_score` is lower.";
    const EXAMPLE: &'static str =
        "expected_trajectory: [shop__get_order, shop__refund]\nenforce_order: true";
    const SCORED: bool = true;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let mut problems =
            check_tool_names("/expected_trajectory", &self.expected_trajectory, true);
        let all = self.expected_trajectory.len();
        let counts = |name: &String| !self.filter_native_tools || is_server_tool(name);
        let expected: Vec<String> = self
            .expected_trajectory
            .into_iter()
            .filter(counts)
            .collect();
        // Everything was filtered out, so the eval would expect no tool at all.
        if expected.is_empty() && all > 0 {
            let what = "has no <server>__<tool> name, and filter_native_tools ignores all others: set it to false";
            problems.push(param_problem("/expected_trajectory", what));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(CompiledEval::Check(Box::new(TrajectoryMatcherCheck {
            filtered_count: all - expected.len(),
            expected,
            in_order: self.enforce_order,
            server_tools_only: self.filter_native_tools,
        })))
    }
}

#[derive(Debug)]
struct TrajectoryMatcherCheck {
    expected: Vec<String>,
    filtered_count: usize,
    in_order: bool,
    server_tools_only: bool,
}

impl Check for TrajectoryMatcherCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let calls = subject.calls().iter().enumerate();
        let counts = |name: &str| !self.server_tools_only || is_server_tool(name);
        // Filter the calls as the expected names.
        let calls: Vec<(usize, &str)> = calls
            .map(|(ix, call)| (ix, &*call.call.name))
            .filter(|(_, name)| counts(name))
            .collect();
        let mut finding = if self.in_order {
            self.compare_in_order(subject, &calls)
        } else {
            self.compare_sets(subject, &calls)
        };
        // Ignored names are reported, because a reader sees them in the transcript.
        let native = subject.calls().len() - calls.len();
        let left_out = [(native, "call"), (self.filtered_count, "expected tool")];
        for (n, what) in left_out.into_iter().filter(|(n, _)| *n > 0) {
            let listed = format!("; ignored {} without a server", pluralize(n, what));
            // Before the list of lines, at the end of the summary.
            let first = finding.explanation.find('\n');
            let at = first.unwrap_or(finding.explanation.len());
            finding.explanation.insert_str(at, &listed);
        }
        finding
    }
}

impl TrajectoryMatcherCheck {
    /// Computes the Jaccard similarity: the tools that both have, divided by the tools that either has.
    fn compare_sets(&self, subject: &Subject<'_>, calls: &[(usize, &str)]) -> Finding {
        // Sets: repeated calls count once.
        let expected: IndexSet<&str> = self.expected.iter().map(String::as_str).collect();
        let called: IndexSet<&str> = calls.iter().map(|(_, name)| *name).collect();
        let missing: Vec<EscapedName<'_>> = expected
            .difference(&called)
            .map(|n| EscapedName(n))
            .collect();
        let extra: Vec<EscapedName<'_>> = called
            .difference(&expected)
            .map(|n| EscapedName(n))
            .collect();
        let both = expected.len() - missing.len();
        let either = both + missing.len() + extra.len();
        // Two empty sets are equal.
        let score = if either == 0 {
            1.0
        } else {
            both as f64 / either as f64
        };
        let passed = both == either;
        let mut why = match (either, passed) {
            (0, _) => "no tool is expected and none was called".to_owned(),
            (_, true) => format!("called the {} expected", pluralize(both, "tool")),
            _ => format!("{both} of {} on both sides", pluralize(either, "tool")),
        };
        for (what, names) in [("missing", missing), ("not expected", extra)] {
            if !names.is_empty() {
                // Writing to a String cannot fail.
                let _ok = write!(why, "; {what}: {}", format_list(names));
            }
        }
        // A pass marks all calls, a failure those that are not expected.
        let listed = calls
            .iter()
            .filter(|(_, name)| passed || !expected.contains(name));
        let marks: Vec<_> = listed
            .take(Finding::MAX_SPANS)
            .map(|(ix, _)| subject.call_span(*ix))
            .collect();
        Finding::new(passed, why)
            .with_score(score)
            .with_spans(marks)
    }

    /// Computes the Levenshtein distance over names, divided by the length of the longer list.
    fn compare_in_order(&self, subject: &Subject<'_>, calls: &[(usize, &str)]) -> Finding {
        let longer = self.expected.len().max(calls.len());
        // Every expected name is one required slot.
        let slot = |expected| ExpectedSlot {
            expected,
            rule: SlotRule::Required,
        };
        let slots: Vec<ExpectedSlot> = (0..self.expected.len()).map(slot).collect();
        let fit = |call: usize, fits: &mut [CallFit]| {
            for (fit, name) in fits.iter_mut().zip(&self.expected) {
                if name == calls[call].1 {
                    *fit = CallFit::Exact;
                }
            }
        };
        // The alignment has its own limit; `MAX_PAIRS` bounds the edit distance below.
        let lines = align(&slots, slots.len(), calls.len(), fit);
        let Some(lines) = lines.filter(|_| self.expected.len() * calls.len() <= MAX_PAIRS) else {
            return Finding::check_error(format!(
                "{} are too many to compare in order with {} expected",
                pluralize(calls.len(), "call"),
                self.expected.len()
            ));
        };
        let called: Vec<&str> = calls.iter().map(|(_, name)| *name).collect();
        // The score is the edit distance, as in evalbench. The alignment only explains it; it has no
        // replacement.
        let edits = strsim::generic_levenshtein(&self.expected_names(), &called);
        let score = if longer == 0 {
            1.0
        } else {
            (longer - edits) as f64 / longer as f64
        };
        let mut why = match (longer, edits) {
            (0, _) => "no tool is expected and none was called".to_owned(),
            (_, 0) => format!(
                "called the {} expected, in order",
                pluralize(longer, "tool")
            ),
            _ => format!(
                "{} from the expected order, over {}",
                pluralize(edits, "edit"),
                pluralize(longer, "call")
            ),
        };
        // List the lines, and mark the calls.
        let mut marks = Vec::new();
        let mut line_count = 0;
        for line in lines {
            let listed = match line {
                AlignmentLine::Missing { expected } => {
                    format!("- expected {}", EscapedName(&self.expected[expected]))
                }
                AlignmentLine::Extra { call } => {
                    let (ix, name) = calls[call];
                    marks.push(subject.call_span(ix));
                    format!(
                        "+ called {} in message {}",
                        EscapedName(name),
                        subject.calls()[ix].message
                    )
                }
                AlignmentLine::Same { call, .. }
                | AlignmentLine::Differs { call, .. }
                | AlignmentLine::Allowed { call } => {
                    // In a failure only the differing calls are marked.
                    if edits == 0 {
                        marks.push(subject.call_span(calls[call].0));
                    }
                    format!("  {}", EscapedName(calls[call].1))
                }
            };
            line_count += 1;
            // A pass needs no list.
            if edits > 0 && line_count <= MAX_SHOWN_LINES {
                why.push('\n');
                why.push_str(&listed);
            }
        }
        if edits > 0 && line_count > MAX_SHOWN_LINES {
            let _ok = write!(
                why,
                "\n  … {} more",
                pluralize(line_count - MAX_SHOWN_LINES, "line")
            );
        }
        Finding::new(edits == 0, why)
            .with_score(score)
            .with_spans(marks)
    }

    fn expected_names(&self) -> Vec<&str> {
        self.expected.iter().map(String::as_str).collect()
    }
}

/// The largest number of lines of a comparison.
const MAX_SHOWN_LINES: usize = 24;
