//! How a miss is shown: the two lists of calls as one, bounded.
//!
//! `  ` as expected, `- ` expected and missing, `+ ` called and not expected, `~ ` called with other arguments, `! ` in the
//! wrong order. Long runs of what is as expected are folded; what is not comes first when lines run out.

use std::fmt::Write as _;

use super::align::Line;
use super::expected::Expected;
use super::show::call_of;
use crate::handlers::explain::{Name, list};
use crate::handlers::{Mark, Subject};

/// How many lines that are not as expected are shown.
const FAULTS: usize = 12;
/// How many lines as expected are kept around each of them.
const CONTEXT: usize = 2;

/// One call in place of another, in words.
fn told(line: Line, expected: &[Expected], subject: &Subject<'_>) -> String {
    let message = |call: usize| subject.calls()[call].message;
    match line {
        Line::Same { call, .. } | Line::Allowed { call } => format!("  {}", call_of(subject, call)),
        Line::Missing { expected: at } => {
            let one = &expected[at];
            format!("- expected {}", one.args.told(&one.tool))
        }
        Line::Extra { call } => {
            let what = call_of(subject, call);
            format!("+ called {what} in message {}", message(call))
        }
        Line::Differs { expected: at, call } => {
            let misses = expected[at].args.misses(subject.arguments(call));
            let (tool, misses) = (Name(&expected[at].tool), list(misses.take(6)));
            let message = message(call);
            format!("~ {tool} args differ in message {message}: {misses}")
        }
    }
}

fn is_fault(line: Line) -> bool {
    !matches!(line, Line::Same { .. } | Line::Allowed { .. })
}

/// The lines, each after a line break; nothing where all is as expected.
pub(super) fn shown(lines: &[Line], expected: &[Expected], subject: &Subject<'_>) -> String {
    let faults: Vec<usize> = (0..lines.len()).filter(|at| is_fault(lines[*at])).collect();
    let (first, rest) = faults.split_at(faults.len().min(FAULTS));
    if first.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    // From where on nothing is written yet.
    let mut next = 0;
    for (nth, &fault) in first.iter().enumerate() {
        fold(
            &mut out,
            next,
            fault.saturating_sub(CONTEXT).max(next),
            |at| told(lines[at], expected, subject),
        );
        let from = fault.saturating_sub(CONTEXT).max(next);
        let following = faults.get(nth + 1).copied().unwrap_or(lines.len());
        let to = (fault + 1 + CONTEXT).min(following);
        for line in &lines[from..to] {
            let _ok = write!(out, "\n{}", told(*line, expected, subject));
        }
        next = to;
    }
    if rest.is_empty() {
        fold(&mut out, next, lines.len(), |at| {
            told(lines[at], expected, subject)
        });
    } else {
        let _ok = write!(out, "\n  … {} more not as expected", rest.len());
    }
    out
}

/// Calls that are as expected, as a number; one alone takes no more room than its number.
fn fold(out: &mut String, from: usize, to: usize, told: impl Fn(usize) -> String) {
    // Writing to a String cannot fail.
    let _ok = match to - from {
        0 => Ok(()),
        1 => write!(out, "\n{}", told(from)),
        n => write!(out, "\n  … {n} calls"),
    };
}

/// The calls a miss rests on, or those of a pass.
pub(super) fn marks(lines: &[Line], subject: &Subject<'_>, passed: bool) -> Vec<Mark> {
    let call = |line: &Line| match *line {
        Line::Same { call, .. } => passed.then_some(call),
        Line::Extra { call } | Line::Differs { call, .. } => Some(call),
        Line::Missing { .. } | Line::Allowed { .. } => None,
    };
    let all = lines.iter().filter_map(call);
    all.take(crate::handlers::Finding::MARKS)
        .map(|call| subject.mark_call(call))
        .collect()
}
