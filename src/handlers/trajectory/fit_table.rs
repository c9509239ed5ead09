//! The table of which calls fit which expected calls. It compares every pair with the same tool once, within a bound.

use std::collections::HashMap;

use super::expected_calls::ExpectedCall;
use crate::handlers::Subject;

/// The largest work of the comparison, in bytes of arguments. A tool with 500 expected calls and 1,000 small calls
/// uses a twentieth of it.
const MAX_COMPARED_BYTES: usize = 1 << 28;
/// The cost of one comparison however short the arguments are.
const BASE_COST_BYTES: usize = 256;

/// The relation of a call to an expected call of its tool. The table has no pairs of different tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallPair {
    pub(super) expected: usize,
    /// `true` if the arguments meet all conditions.
    pub(super) fits: bool,
}

/// By call, in order of the expected calls.
#[derive(Debug)]
pub(super) struct CallFitTable(pub(super) Vec<Vec<CallPair>>);

impl CallFitTable {
    /// Compares all pairs. The error is a sentence: the work exceeds the bound.
    pub(super) fn new(expected: &[ExpectedCall], subject: &Subject<'_>) -> Result<Self, String> {
        // By tool, so that only calls of the same tool are compared.
        let mut of_tool: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, one) in expected.iter().enumerate() {
            of_tool.entry(&one.tool).or_default().push(at);
        }
        let calls = subject.calls();
        let mut work = 0_usize;
        let mut table = Vec::with_capacity(calls.len());
        // A comparison can be long, so it stops between calls.
        for (ix, call) in calls.iter().enumerate() {
            if subject.is_cancelled() {
                return Err("the comparison was cancelled".to_owned());
            }
            // No expected call has this tool, so the call fits nothing.
            let Some(same) = of_tool.get(&*call.call.name) else {
                table.push(Vec::new());
                continue;
            };
            // Before the comparison, so that arguments of megabytes are not compared at all.
            work = work.saturating_add(same.len() * (BASE_COST_BYTES + call.call.arguments.len()));
            if work > MAX_COMPARED_BYTES {
                return Err(format!(
                    "{} calls are too many, or too large, to compare with {} expected ones",
                    calls.len(),
                    expected.len()
                ));
            }
            let args = subject.arguments(ix);
            let pairs = same.iter().map(|&at| CallPair {
                expected: at,
                fits: expected[at].args.accepts(args),
            });
            table.push(pairs.collect());
        }
        Ok(Self(table))
    }

    /// Returns the expected calls that a call fits.
    pub(super) fn matching_expected(&self, call: usize) -> impl Iterator<Item = usize> {
        let fit = self.0[call].iter().filter(|pair| pair.fits);
        fit.map(|pair| pair.expected)
    }
}
