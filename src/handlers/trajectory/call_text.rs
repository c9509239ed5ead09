//! Formats calls for explanations: short, and safe for a terminal whatever the transcript contains.

use serde_json::{Map, Value};

use crate::handlers::Subject;
use crate::handlers::explain::{EscapedName, ShortJson};

/// The largest number of arguments that are shown.
const MAX_SHOWN_ARGS: usize = 4;

/// Formats a call with its arguments: `get_order(id=7)`.
pub(super) fn format_call(name: &str, args: Result<&Map<String, Value>, &str>) -> String {
    match args {
        Ok(args) => {
            let all = args.iter();
            let listed =
                all.map(|(arg, value)| format!("{}={}", EscapedName(arg), ShortJson(value)));
            format_with_args(name, listed)
        }
        // The reason is not shown here; the mismatches state it.
        Err(_) => format!("{}(unreadable arguments)", EscapedName(name)),
    }
}

/// Formats a name with the first of its formatted arguments.
pub(super) fn format_with_args(name: &str, args: impl Iterator<Item = String>) -> String {
    // One more than the limit, to know whether something is left out.
    let mut first: Vec<String> = args.take(MAX_SHOWN_ARGS + 1).collect();
    if first.len() > MAX_SHOWN_ARGS {
        "…".clone_into(&mut first[MAX_SHOWN_ARGS]);
    }
    format!("{}({})", EscapedName(name), first.join(", "))
}

/// Formats `subject.calls()[ix]` with its arguments.
pub(super) fn format_subject_call(subject: &Subject<'_>, ix: usize) -> String {
    format_call(&subject.calls()[ix].call.name, subject.arguments(ix))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_shortened_and_escaped() {
        let args = json!({"a": 1, "b": "x", "c": null, "d": 2.5, "e": 5, "f": 6});
        assert_eq!(
            format_call("t", args.as_object().ok_or("no object")),
            r#"t(a=1, b="x", c=null, d=2.5, …)"#
        );
        assert_eq!(format_call("t", Err("no JSON")), "t(unreadable arguments)");
    }
}
