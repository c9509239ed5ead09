//! The circuit breakers of a run's judges: after several equal errors in a row, the run stops calling a judge.
//!
//! Responsible for counting errors, and for the rule which errors are equal. Does not end cells: the scheduler does.
//!
//! - A cell counts if its call failed: a `judge_error` after a call, or a reply that the server cut.
//! - A verdict and any other result begin a new row. Cells without a call and cancelled cells do not count.
//! - Errors are equal after dicta removes what differs between requests: ids, times and other numbers. An error that
//!   states that the request itself is wrong (400, 413, 422) keeps its numbers, because it can be about one transcript:
//!   `the prompt has 210000 tokens`.
//! - Each model of a judge has its own breaker. So an eval that names a model that does not exist stops only its own
//!   cells.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::model::{CellResult, Outcome};

/// The number of equal errors in a row that stops a judge.
pub(in crate::run) const MAX_EQUAL_ERRORS: u32 = 5;
/// The beginning of the error of a reply that the server cut. In that case no limit of the judge was reached.
const CUT_REPLY: &str = "the reply was cut";
/// The number of characters from which a word without a number counts as an id.
const MIN_ID_CHARS: usize = 20;

/// The breakers of one judge, by model.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct CircuitBreakers {
    own_model: String,
    by_model: Arc<Mutex<HashMap<String, Arc<CircuitBreaker>>>>,
}

impl CircuitBreakers {
    /// Returns the breakers of a judge with this model.
    pub(in crate::run) fn new(own_model: &str) -> Self {
        Self {
            own_model: own_model.to_owned(),
            by_model: Arc::default(),
        }
    }

    /// Returns the breaker of a model; `None` is the judge's own model.
    pub(in crate::run) fn of_model(&self, model: Option<&str>) -> Arc<CircuitBreaker> {
        let model = model.unwrap_or(&self.own_model);
        let mut all = self.by_model.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(model) {
            return Arc::clone(known);
        }
        Arc::clone(all.entry(model.to_owned()).or_default())
    }
}

/// The breaker of one model of a judge. It is closed while the run calls the judge, and open after it stopped.
#[derive(Debug, Default)]
pub(in crate::run) struct CircuitBreaker {
    row: Mutex<ErrorRow>,
    /// Cancelled once the breaker is open.
    opened: CancellationToken,
}

/// The equal errors in a row.
#[derive(Debug, Default)]
struct ErrorRow {
    count: u32,
    /// The error without what differs between requests.
    normalized: String,
    /// The error of the last cell.
    last: String,
}

impl CircuitBreaker {
    /// Counts the result of a cell. Returns true if it opens the breaker.
    pub(in crate::run) fn record(&self, result: &CellResult) -> bool {
        let evidence = classify_result(result);
        if evidence == ServerEvidence::None {
            return false;
        }
        let mut row = self.row();
        // Cells that were under way when it opened change nothing.
        if self.is_open() {
            return false;
        }
        let ServerEvidence::Failed(error) = evidence else {
            *row = ErrorRow::default();
            return false;
        };
        let normalized = normalize_error(error);
        if row.normalized != normalized {
            *row = ErrorRow::default();
        }
        *row = ErrorRow {
            count: row.count + 1,
            normalized,
            last: error.to_owned(),
        };
        let opens = row.count >= MAX_EQUAL_ERRORS;
        drop(row);
        if opens {
            self.opened.cancel();
        }
        opens
    }

    /// Reports whether the run stopped calling the judge.
    pub(in crate::run) fn is_open(&self) -> bool {
        self.opened.is_cancelled()
    }

    /// Waits until the breaker is open.
    pub(in crate::run) async fn wait_until_open(&self) {
        self.opened.cancelled().await;
    }

    /// Returns the last error of the row.
    pub(in crate::run) fn last_error(&self) -> String {
        self.row().last.clone()
    }

    /// Explains why a cell's judge is not called.
    pub(in crate::run) fn explain(&self) -> String {
        let row = self.row();
        format!(
            "not called, because {} cells in a row ended in the same error: {}",
            row.count, row.last
        )
    }

    fn row(&self) -> MutexGuard<'_, ErrorRow> {
        self.row.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The information in a result about the judge's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerEvidence<'r> {
    /// The cell ended for another reason.
    None,
    /// The server replied, which ends a row of errors.
    Replied,
    /// A call failed with this error.
    Failed(&'r str),
}

/// Returns the information in a result about the judge's server.
fn classify_result(result: &CellResult) -> ServerEvidence<'_> {
    let error = result.error.as_deref().unwrap_or_default();
    let has_called = result.usage.is_some_and(|usage| usage.calls > 0);
    let is_cut = result.outcome == Outcome::Truncated && error.starts_with(CUT_REPLY);
    match result.outcome {
        Outcome::Cancelled | Outcome::Budget | Outcome::Skipped => ServerEvidence::None,
        _ if result.outcome != Outcome::JudgeError && !is_cut => ServerEvidence::Replied,
        _ if has_called => ServerEvidence::Failed(error),
        _ => ServerEvidence::None,
    }
}

/// Removes what differs between requests that fail for the same reason.
fn normalize_error(error: &str) -> String {
    // The status, as in `429 from https://…: message`.
    let status = error.split_once(" from ").map_or("", |(status, _)| status);
    let is_about_request = matches!(status, "400" | "413" | "422");
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut text = String::with_capacity(error.len());
    let mut rest = error;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, after) = rest.split_at(end);
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
        let is_status = text.is_empty() && word == status;
        let is_id =
            (has_digit && !(is_number && is_about_request)) || word.chars().count() >= MIN_ID_CHARS;
        if is_id && !is_status {
            text.push('#');
        } else {
            text.push_str(&word.to_lowercase());
        }
        rest = after;
    }
    // A number with a fraction, a time and an address are one value each.
    for separator in ["#.#", "#:#", "#,#"] {
        while text.contains(separator) {
            text = text.replace(separator, "#");
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TokenUsage;

    fn failed(error: &str) -> CellResult {
        CellResult {
            usage: Some(TokenUsage {
                calls: 4,
                ..TokenUsage::default()
            }),
            ..CellResult::from_error(Outcome::JudgeError, error)
        }
    }

    fn count_until_open(results: impl IntoIterator<Item = CellResult>) -> Option<usize> {
        let breaker = CircuitBreaker::default();
        let mut results = results.into_iter();
        let at = results.position(|result| breaker.record(&result));
        assert_eq!(breaker.is_open(), at.is_some());
        at.map(|at| at + 1)
    }

    #[test]
    fn errors_that_differ_in_ids_and_times_are_equal() {
        for (one, other) in [
            (
                "429 from https://api.example/v1: limit reached in org-7f3. Try again in 20s. (req_01A)",
                "429 from https://api.example/v1: limit reached in org-7f3. Try again in 1.25s. (req_77B)",
            ),
            (
                "401 from https://api.example/v1: no such key (request abcdefghijklmnopqrstuvwx)",
                "401 from https://api.example/v1: no such key (request zyxwvutsrqponmlkjihgfedc)",
            ),
            (
                "400 from https://api.example/v1: API key not valid [id 0a1b]",
                "400 from https://api.example/v1: API key not valid [id 9f9f]",
            ),
        ] {
            assert_eq!(normalize_error(one), normalize_error(other));
        }
    }

    #[test]
    fn errors_of_different_causes_are_different() {
        let url = "from https://api.example/v1:";
        for (one, other) in [
            (format!("500 {url} internal"), format!("503 {url} internal")),
            (
                format!("500 {url} internal"),
                format!("500 {url} overloaded"),
            ),
            (
                format!("400 {url} the prompt has 210000 tokens"),
                format!("400 {url} the prompt has 310000 tokens"),
            ),
            (
                format!("413 {url} 9 MB are too many"),
                format!("413 {url} 12 MB are too many"),
            ),
        ] {
            assert_ne!(normalize_error(&one), normalize_error(&other));
        }
    }

    #[test]
    fn five_equal_errors_in_a_row_open_the_breaker() {
        let busy = |n: usize| failed(&format!("429 from http://x: wait {n} s"));
        assert_eq!(count_until_open((0..9).map(busy)), Some(5));
        assert_eq!(count_until_open((0..4).map(busy)), None);
        let verdict = CellResult::new(Outcome::Fail, "no");
        let parted = (0..9).map(|n| if n == 4 { verdict.clone() } else { busy(n) });
        assert_eq!(count_until_open(parted), None, "a verdict in between");
        let other = (0..9).map(|n| {
            if n % 3 == 2 {
                failed("500 from http://x: oh")
            } else {
                busy(n)
            }
        });
        assert_eq!(count_until_open(other), None, "another error in between");
    }

    #[test]
    fn cancelled_cells_and_cells_without_call_do_not_count() {
        let uncalled = CellResult::from_error(Outcome::JudgeError, "no trace in this run");
        assert_eq!(count_until_open((0..9).map(|_| uncalled.clone())), None);
        let results = (0..9).map(|n| match n % 2 {
            0 => failed("cannot reach http://x: refused"),
            _ if n % 4 == 1 => CellResult::cancelled(),
            _ => uncalled.clone(),
        });
        assert_eq!(count_until_open(results), Some(9), "the fifth failed call");
    }

    #[test]
    fn replies_that_the_server_cuts_count_and_long_replies_do_not() {
        let truncated = |error: &str| CellResult {
            outcome: Outcome::Truncated,
            ..failed(error)
        };
        let cut = truncated("the reply was cut: connection reset");
        assert_eq!(count_until_open((0..9).map(|_| cut.clone())), Some(5));
        let long = truncated("the reply hit its token limit before it was complete");
        assert_eq!(count_until_open((0..9).map(|_| long.clone())), None);
    }

    #[test]
    fn each_model_has_its_own_breaker() {
        let breakers = CircuitBreakers::new("small");
        let own = breakers.of_model(None);
        assert!(Arc::ptr_eq(&own, &breakers.of_model(Some("small"))));
        assert!(!Arc::ptr_eq(
            &own,
            &breakers.clone().of_model(Some("large"))
        ));
        for _ in 0..MAX_EQUAL_ERRORS {
            own.record(&failed("404 from http://x: no such model"));
        }
        assert!(own.is_open());
        assert!(!breakers.of_model(Some("large")).is_open());
    }
}
