//! Figures in JSON. Does not compute them.

use serde_json::{Value, json};

use crate::compare::statistics::{Estimate, Figure, Interval};

/// Returns a figure; `null` without a value.
pub(super) fn figure_to_json(figure: Figure) -> Value {
    figure.map_or(Value::Null, Value::from)
}

/// Returns the limits of an interval; `null` without one.
pub(super) fn interval_to_json(interval: Option<Interval>) -> (Option<f64>, Option<f64>) {
    (
        interval.map(|interval| interval.lower),
        interval.map(|interval| interval.upper),
    )
}

/// Returns the numbers of common answers of two people, and of equal ones.
pub(super) fn people_to_json((first, second): (&str, &str), (common, same): (u64, u64)) -> Value {
    json!({
        "type": "people",
        "first": first,
        "second": second,
        "common": common,
        "same": same,
    })
}

/// Returns an estimate with its interval and its labels.
pub(super) fn estimate_to_json(estimate: &Estimate) -> Value {
    json!({
        "value": figure_to_json(estimate.point),
        "undefined": estimate.point.err().map(|why| why.to_string()),
        "lower": estimate.interval.lower,
        "upper": estimate.interval.upper,
        "further_lower": estimate.further.lower,
        "further_upper": estimate.further.upper,
        "labels": estimate.labels,
        "effective_labels": estimate.effective_labels,
    })
}
