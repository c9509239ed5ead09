//! Formats the differences between two lists of calls as one list of bounded length.
//!
//! The marks of a line: `  ` as expected, `- ` expected and missing, `+ ` called and not expected, `~ ` called with
//! other arguments, `! ` in the wrong order. Long runs of expected calls are folded. If there are too many lines, the
//! differences come first.

use std::fmt::Write as _;

use super::align::AlignmentLine;
use super::call_text::format_subject_call;
use super::expected_calls::ExpectedCall;
use crate::handlers::explain::{EscapedName, format_list};
use crate::handlers::{Subject, TranscriptSpan};

/// The largest number of lines with differences.
const MAX_FAULT_LINES: usize = 12;
/// The number of expected lines kept around each difference.
const CONTEXT_LINES: usize = 2;

/// Formats one line of the alignment.
fn describe_line(line: AlignmentLine, expected: &[ExpectedCall], subject: &Subject<'_>) -> String {
    let message = |call: usize| subject.calls()[call].message;
    match line {
        AlignmentLine::Same { call, .. } | AlignmentLine::Allowed { call } => {
            format!("  {}", format_subject_call(subject, call))
        }
        AlignmentLine::Missing { expected: at } => {
            let one = &expected[at];
            format!("- expected {}", one.args.describe_call(&one.tool))
        }
        AlignmentLine::Extra { call } => {
            let what = format_subject_call(subject, call);
            format!("+ called {what} in message {}", message(call))
        }
        AlignmentLine::Differs { expected: at, call } => {
            // Six mismatches, because a call can have hundreds of arguments.
            let misses = expected[at].args.mismatches(subject.arguments(call));
            let (tool, misses) = (EscapedName(&expected[at].tool), format_list(misses.take(6)));
            let message = message(call);
            format!("~ {tool} args differ in message {message}: {misses}")
        }
    }
}

fn is_fault(line: AlignmentLine) -> bool {
    !matches!(
        line,
        AlignmentLine::Same { .. } | AlignmentLine::Allowed { .. }
    )
}

/// Formats the lines, each after a line break; empty without differences.
pub(super) fn render_diff(
    lines: &[AlignmentLine],
    expected: &[ExpectedCall],
    subject: &Subject<'_>,
) -> String {
    // The first differences are written; the others are only counted.
    let faults: Vec<usize> = (0..lines.len()).filter(|at| is_fault(lines[*at])).collect();
    let (first, rest) = faults.split_at(faults.len().min(MAX_FAULT_LINES));
    if first.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    // The first line that is not written yet.
    let mut next = 0;
    for (nth, &fault) in first.iter().enumerate() {
        // Fold the expected calls before the difference, except for its context.
        push_unchanged(
            &mut out,
            next,
            fault.saturating_sub(CONTEXT_LINES).max(next),
            |at| describe_line(lines[at], expected, subject),
        );
        let from = fault.saturating_sub(CONTEXT_LINES).max(next);
        // The context ends where the next difference begins.
        let following = faults.get(nth + 1).copied().unwrap_or(lines.len());
        let to = (fault + 1 + CONTEXT_LINES).min(following);
        for line in &lines[from..to] {
            let _ok = write!(out, "\n{}", describe_line(*line, expected, subject));
        }
        next = to;
    }
    // The calls after the last difference. If differences are left out, their number is written instead.
    if rest.is_empty() {
        push_unchanged(&mut out, next, lines.len(), |at| {
            describe_line(lines[at], expected, subject)
        });
    } else {
        let _ok = write!(out, "\n  … {} more not as expected", rest.len());
    }
    out
}

/// Formats expected calls as their number. A single call is written out, because it takes no more room.
fn push_unchanged(
    out: &mut String,
    from: usize,
    to: usize,
    format_line_at: impl Fn(usize) -> String,
) {
    // Writing to a String cannot fail.
    let _ok = match to - from {
        0 => Ok(()),
        1 => write!(out, "\n{}", format_line_at(from)),
        n => write!(out, "\n  … {n} calls"),
    };
}

/// Returns the spans of the differing calls, or of all calls without differences.
pub(super) fn collect_spans(
    lines: &[AlignmentLine],
    subject: &Subject<'_>,
    passed: bool,
) -> Vec<TranscriptSpan> {
    // A failure marks the differing calls, a pass all expected ones.
    let call = |line: &AlignmentLine| match *line {
        AlignmentLine::Same { call, .. } => passed.then_some(call),
        AlignmentLine::Extra { call } | AlignmentLine::Differs { call, .. } => Some(call),
        AlignmentLine::Missing { .. } | AlignmentLine::Allowed { .. } => None,
    };
    let all = lines.iter().filter_map(call);
    all.take(crate::handlers::Finding::MAX_SPANS)
        .map(|call| subject.call_span(call))
        .collect()
}
