//! Two lists of calls side by side, in order: the alignment that leaves least over.
//!
//! A line costs nothing where a call is as expected, and 1 where it is not: an expected call that is missing, a call that
//! is not expected, a call of the right tool with other arguments. Quadratic, and bounded.

/// More cells than these are not computed; each takes a byte.
const MOST_CELLS: usize = 1 << 24;

/// One row of what is expected: a call, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) expected: usize,
    pub(super) kind: SlotKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotKind {
    /// Must come.
    Must,
    /// May come.
    May,
    /// May come any number of times.
    Any,
}

/// What a call is to an expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    As,
    /// Its tool, other arguments.
    Tool,
    Not,
}

/// One line of the alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
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
    /// Neither expected nor a fault: more than the expected ones are allowed.
    Allowed {
        call: usize,
    },
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Way {
    /// The call is not expected.
    Extra,
    /// The slot stays empty.
    Empty,
    /// The call takes the slot.
    Takes,
    /// The call is one of any number.
    Stays,
}

/// Aligns. `fit` fills in, for a call, what it is to each expected call. `None`: there is too much of it.
pub(super) fn align(
    slots: &[Slot],
    expected: usize,
    calls: usize,
    mut fit: impl FnMut(usize, &mut [Fit]),
) -> Option<Vec<Line>> {
    let width = slots.len() + 1;
    width.checked_mul(calls + 1).filter(|n| *n <= MOST_CELLS)?;
    let mut ways: Vec<Way> = Vec::with_capacity(width * (calls + 1));
    let mut row: Vec<u32> = Vec::with_capacity(width);
    row.push(0);
    ways.push(Way::Extra);
    for (at, slot) in slots.iter().enumerate() {
        row.push(row[at] + u32::from(slot.kind == SlotKind::Must));
        ways.push(Way::Empty);
    }
    let mut fits = vec![Fit::Not; expected];
    for call in 0..calls {
        fits.fill(Fit::Not);
        fit(call, &mut fits);
        let mut next = Vec::with_capacity(width);
        next.push(row[0] + 1);
        ways.push(Way::Extra);
        for (at, slot) in slots.iter().enumerate() {
            let fit = fits[slot.expected];
            let extra = row[at + 1] + 1;
            let empty = next[at] + u32::from(slot.kind == SlotKind::Must);
            let (from, way) = match slot.kind {
                SlotKind::Any => (row[at + 1], Way::Stays),
                _ => (row[at], Way::Takes),
            };
            let takes = match fit {
                Fit::As => from,
                Fit::Tool => from + 1,
                Fit::Not => u32::MAX,
            };
            // Of several calls that would do, the first is the expected one and the later ones are extra.
            let first = takes < extra || (takes == extra && slot.kind == SlotKind::Any);
            let (cost, way) = if first && takes <= empty {
                (takes, way)
            } else if extra <= empty {
                (extra, Way::Extra)
            } else {
                (empty, Way::Empty)
            };
            next.push(cost);
            ways.push(way);
        }
        row = next;
    }
    Some(trace(slots, calls, &ways, fit, expected))
}

/// Walks back from the end.
fn trace(
    slots: &[Slot],
    calls: usize,
    ways: &[Way],
    mut fit: impl FnMut(usize, &mut [Fit]),
    expected: usize,
) -> Vec<Line> {
    let width = slots.len() + 1;
    let (mut at, mut call) = (slots.len(), calls);
    let mut fits = vec![Fit::Not; expected];
    let mut lines = Vec::new();
    while at > 0 || call > 0 {
        match ways[call * width + at] {
            Way::Extra => {
                call -= 1;
                lines.push(Line::Extra { call });
            }
            Way::Empty => {
                at -= 1;
                if slots[at].kind == SlotKind::Must {
                    let expected = slots[at].expected;
                    lines.push(Line::Missing { expected });
                }
            }
            way @ (Way::Takes | Way::Stays) => {
                call -= 1;
                let expected = slots[at - 1].expected;
                fits.fill(Fit::Not);
                fit(call, &mut fits);
                lines.push(match fits[expected] {
                    Fit::As => Line::Same { expected, call },
                    _ => Line::Differs { expected, call },
                });
                at -= usize::from(matches!(way, Way::Takes));
            }
        }
    }
    lines.reverse();
    settle(&mut lines);
    lines
}

/// Of equal expected calls it is all one which is missing: the last, next to what was called in its place.
fn settle(lines: &mut [Line]) {
    for from in (1..lines.len()).rev() {
        let mut at = from;
        while let (Some(Line::Missing { expected: gone }), Some(Line::Same { expected, .. })) =
            (lines.get(at - 1), lines.get(at))
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
            "?" => SlotKind::May,
            "*" => SlotKind::Any,
            _ => SlotKind::Must,
        };
        let slots: Vec<Slot> = expected
            .iter()
            .enumerate()
            .map(|(expected, text)| Slot {
                expected,
                kind: kind(text),
            })
            .collect();
        let calls: Vec<String> = calls.chars().map(String::from).collect();
        let found = align(&slots, slots.len(), calls.len(), |call, fits| {
            for (fit, text) in fits.iter_mut().zip(expected) {
                let own = &text[..1];
                *fit = if own == calls[call] {
                    Fit::As
                } else if own.eq_ignore_ascii_case(&calls[call]) {
                    Fit::Tool
                } else {
                    Fit::Not
                };
            }
        });
        let told = found.expect("small").into_iter().map(|line| match line {
            Line::Same { call, .. } | Line::Allowed { call } => format!(" {}", calls[call]),
            Line::Differs { call, .. } => format!("~{}", calls[call]),
            Line::Missing { expected: at } => format!("-{}", &expected[at][..1]),
            Line::Extra { call } => format!("+{}", calls[call]),
        });
        told.collect()
    }

    #[test]
    fn least_is_left_over_and_what_is_missing_comes_first() {
        for (expected, calls, told) in [
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
            assert_eq!(lines(expected, calls), told, "{expected:?} {calls}");
        }
    }

    #[test]
    fn what_is_too_large_is_not_begun() {
        let slot = Slot {
            expected: 0,
            kind: SlotKind::Must,
        };
        let never = |_: usize, _: &mut [Fit]| {};
        assert_eq!(align(&[slot; 500], 1, 40_000, never), None);
    }
}
