//! `reference: EVAL` of a judged eval: the eval of the same rubric whose verdicts, decided by code, are its labels.
//!
//! Responsible for the check of the name, which needs all evals of the rubric.

use serde_json::Value;

use super::{Eval, RubricCx};
use crate::diag::find_nearest;

/// Reports references that name no eval, the eval itself, or a judged eval.
pub(super) fn check_references(cx: RubricCx<'_>, at: &str, items: &[Value], all: &[Eval]) {
    let is_judged = |eval: &Eval| {
        let kind = cx.catalog.eval_type(&eval.eval_type);
        kind.is_some_and(|kind| kind.judged)
    };
    for (nth, item) in items.iter().enumerate() {
        let (Some(name), id) = (
            item.get("reference").and_then(Value::as_str),
            item.get("id").and_then(Value::as_str),
        ) else {
            continue;
        };
        let named = all.iter().find(|eval| eval.id == name);
        let message = match named {
            _ if id == Some(name) => format!(
                "the reference of `{name}` is `{name}` itself; name an eval that code decides"
            ),
            Some(eval) if is_judged(eval) => format!(
                "the reference `{name}` has a judge, and a judge cannot label; name an eval that code decides"
            ),
            Some(_) => continue,
            // The named eval has a problem of its own, so its type is unknown here.
            None if items
                .iter()
                .any(|item| item.get("id").and_then(Value::as_str) == Some(name)) =>
            {
                continue;
            }
            None => {
                let checks = all.iter().filter(|eval| !is_judged(eval));
                let near = find_nearest(name, checks.map(|eval| eval.id.as_str()));
                let near =
                    near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                format!("the reference `{name}` is not an eval of this rubric{near}")
            }
        };
        let span = cx.doc.span(&format!("{at}/{nth}/reference"));
        cx.problems.error(span, "reference", message);
    }
}
