//! Aligns two lists of calls in order, with the least number of differences.
//!
//! A line costs 0 if a call is as expected. A missing call, an unexpected call, and the right tool with other
//! arguments cost 1 each. The time is quadratic and bounded.

/// The largest number of cells of the table; each takes a byte.
const MAX_CELLS: usize = 1 << 24;

/// One row of the expected calls: one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpectedSlot {
    pub(super) expected: usize,
    pub(super) rule: SlotRule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotRule {
    /// Must occur.
    Required,
    /// May occur once.
    Optional,
    /// May occur any number of times.
    Repeatable,
}

/// The relation of a call to an expected call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallFit {
    Exact,
    /// The right tool with other arguments.
    ToolOnly,
    Mismatch,
}

/// One line of the alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AlignmentLine {
    Same {
        expected: usize,
        call: usize,
    },
    Differs {
        expected: usize,
        call: usize,
    },
    Missing {
        expected: usize,
    },
    Extra {
        call: usize,
    },
    /// A call that is not expected, where further calls are allowed.
    Allowed {
        call: usize,
    },
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum AlignmentStep {
    /// The call is not expected.
    ExtraCall,
    /// The slot stays empty.
    EmptySlot,
    /// The call takes the slot.
    FillSlot,
    /// The call is one of any number for the slot.
    RepeatSlot,
}

/// Aligns the lists. `fit` writes, for a call, its relation to each expected call. Returns `None` if the table would
/// be too large.
pub(super) fn align(
    slots: &[ExpectedSlot],
    expected: usize,
    calls: usize,
    mut fit: impl FnMut(usize, &mut [CallFit]),
) -> Option<Vec<AlignmentLine>> {
    let width = slots.len() + 1;
    // The table is checked before it is allocated.
    width.checked_mul(calls + 1).filter(|n| *n <= MAX_CELLS)?;
    let mut ways: Vec<AlignmentStep> = Vec::with_capacity(width * (calls + 1));
    // One row of costs is enough; only the steps of the table are kept for the way back.
    let mut row: Vec<u32> = Vec::with_capacity(width);
    row.push(0);
    ways.push(AlignmentStep::ExtraCall);
    // The first row: no call yet, so every required slot is empty.
    for (at, slot) in slots.iter().enumerate() {
        row.push(row[at] + u32::from(slot.rule == SlotRule::Required));
        ways.push(AlignmentStep::EmptySlot);
    }
    let mut fits = vec![CallFit::Mismatch; expected];
    for call in 0..calls {
        fits.fill(CallFit::Mismatch);
        fit(call, &mut fits);
        // The next row of costs, from the row before.
        let mut next = Vec::with_capacity(width);
        next.push(row[0] + 1);
        ways.push(AlignmentStep::ExtraCall);
        for (at, slot) in slots.iter().enumerate() {
            // The three steps: the call is extra, the slot stays empty, or the call takes the slot.
            let fit = fits[slot.expected];
            let extra = row[at + 1] + 1;
            let empty = next[at] + u32::from(slot.rule == SlotRule::Required);
            // A repeatable slot stays open, so its cost comes from the same column.
            let (from, way) = match slot.rule {
                SlotRule::Repeatable => (row[at + 1], AlignmentStep::RepeatSlot),
                _ => (row[at], AlignmentStep::FillSlot),
            };
            let takes = match fit {
                CallFit::Exact => from,
                CallFit::ToolOnly => from + 1,
                // A call of another tool can never take the slot.
                CallFit::Mismatch => u32::MAX,
            };
            // If several calls fit, the first is the expected one and the later ones are extra.
            let first = takes < extra || (takes == extra && slot.rule == SlotRule::Repeatable);
            let (cost, way) = if first && takes <= empty {
                (takes, way)
            } else if extra <= empty {
                (extra, AlignmentStep::ExtraCall)
            } else {
                (empty, AlignmentStep::EmptySlot)
            };
            next.push(cost);
            ways.push(way);
        }
        row = next;
    }
    Some(trace_back(slots, calls, &ways, fit, expected))
}

/// Follows the table back from its end to collect the lines.
fn trace_back(
    slots: &[ExpectedSlot],
    calls: usize,
    ways: &[AlignmentStep],
    mut fit: impl FnMut(usize, &mut [CallFit]),
    expected: usize,
) -> Vec<AlignmentLine> {
    let width = slots.len() + 1;
    let (mut at, mut call) = (slots.len(), calls);
    let mut fits = vec![CallFit::Mismatch; expected];
    let mut lines = Vec::new();
    // From the last cell to the first; the lines come out in reverse.
    while at > 0 || call > 0 {
        match ways[call * width + at] {
            AlignmentStep::ExtraCall => {
                call -= 1;
                lines.push(AlignmentLine::Extra { call });
            }
            AlignmentStep::EmptySlot => {
                at -= 1;
                // An empty optional slot is not a difference.
                if slots[at].rule == SlotRule::Required {
                    let expected = slots[at].expected;
                    lines.push(AlignmentLine::Missing { expected });
                }
            }
            way @ (AlignmentStep::FillSlot | AlignmentStep::RepeatSlot) => {
                call -= 1;
                let expected = slots[at - 1].expected;
                // The fits are computed again, because keeping them for every call would need a table of their own.
                fits.fill(CallFit::Mismatch);
                fit(call, &mut fits);
                lines.push(match fits[expected] {
                    CallFit::Exact => AlignmentLine::Same { expected, call },
                    _ => AlignmentLine::Differs { expected, call },
                });
                // A repeatable slot can take the call before this one, too.
                at -= usize::from(matches!(way, AlignmentStep::FillSlot));
            }
        }
    }
    lines.reverse();
    move_missing_last(&mut lines);
    lines
}

/// Equal expected calls are interchangeable. Marks the last of them as missing, next to the call in its place.
fn move_missing_last(lines: &mut [AlignmentLine]) {
    // From the end, so that a line can move over several equal calls.
    for from in (1..lines.len()).rev() {
        let mut at = from;
        while let (
            Some(AlignmentLine::Missing { expected: gone }),
            Some(AlignmentLine::Same { expected, .. }),
        ) = (lines.get(at - 1), lines.get(at))
            && gone == expected
        {
            lines.swap(at - 1, at);
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Aligns texts: `a?` may come, `a*` any number of times; a capital letter is the tool with other arguments.
    fn lines(expected: &[&str], calls: &str) -> String {
        let kind = |text: &str| match &text[1..] {
            "?" => SlotRule::Optional,
            "*" => SlotRule::Repeatable,
            _ => SlotRule::Required,
        };
        let slots: Vec<ExpectedSlot> = expected
            .iter()
            .enumerate()
            .map(|(expected, text)| ExpectedSlot {
                expected,
                rule: kind(text),
            })
            .collect();
        let calls: Vec<String> = calls.chars().map(String::from).collect();
        let found = align(&slots, slots.len(), calls.len(), |call, fits| {
            for (fit, text) in fits.iter_mut().zip(expected) {
                let expected = &text[..1];
                *fit = if expected == calls[call] {
                    CallFit::Exact
                } else if expected.eq_ignore_ascii_case(&calls[call]) {
                    CallFit::ToolOnly
                } else {
                    CallFit::Mismatch
                };
            }
        });
        let lines_text = found.expect("small").into_iter().map(|line| match line {
            AlignmentLine::Same { call, .. } | AlignmentLine::Allowed { call } => {
                format!(" {}", calls[call])
            }
            AlignmentLine::Differs { call, .. } => format!("~{}", calls[call]),
            AlignmentLine::Missing { expected: at } => format!("-{}", &expected[at][..1]),
            AlignmentLine::Extra { call } => format!("+{}", calls[call]),
        });
        lines_text.collect()
    }

    #[test]
    fn alignment_has_the_fewest_differences_and_missing_calls_first() {
        for (expected, calls, lines_text) in [
            (&["a", "b"][..], "ab", " a b"),
            (&["a", "b"], "ba", "-a b+a"),
            (&["a"], "b", "-a+b"),
            (&["a", "b"], "aab", " a+a b"),
            (&["a"], "AA", "~A+A"),
            (&["a", "b", "c"], "axc", " a-b+x c"),
            (&["a", "b"], "aB", " a~B"),
            (&[], "ab", "+a+b"),
            (&["a", "b"], "", "-a-b"),
            (&["a", "b?", "c"], "ac", " a c"),
            (&["a", "b?", "c"], "abbc", " a b+b c"),
            (&["a*", "b"], "aaab", " a a a b"),
            (&["a*", "b"], "b", " b"),
            (&["a*", "b"], "aAab", " a~A a b"),
        ] {
            assert_eq!(lines(expected, calls), lines_text, "{expected:?} {calls}");
        }
    }

    #[test]
    fn too_large_table_is_refused_before_the_alignment() {
        let slot = ExpectedSlot {
            expected: 0,
            rule: SlotRule::Required,
        };
        let never = |_: usize, _: &mut [CallFit]| {};
        assert_eq!(align(&[slot; 500], 1, 40_000, never), None);
    }
}
