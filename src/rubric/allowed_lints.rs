//! The names of lints, and `allow:`, which silences some of them.
//!
//! Responsible for the names, because rubric files use them. Does not find lints; `workspace::lint` does.

use serde_json::{Value, json};

use crate::diag::find_nearest;
use crate::diag::yaml::{MappingDecoder, choice_names};

/// The lints: each name, with a short description of the problem.
pub const LINTS: &[(&str, &str)] = &[
    (
        "cannot-fail",
        "an eval or a threshold that every transcript passes, such as a bound of 0",
    ),
    ("cannot-pass", "an eval that no transcript passes"),
    (
        "empty-match",
        "a pattern that matches the empty text, so that an agent passes by saying nothing",
    ),
    (
        "misses-example",
        "an eval that decides one of its `examples` otherwise than you expect",
    ),
    ("same-digest", "two evals of a rubric that check the same"),
    (
        "same-verdict",
        "after a run: an eval with the same verdict in all of 10 decisions or more",
    ),
    (
        "selects-nothing",
        "applies_to, or a sample, that leaves no transcript",
    ),
    (
        "unknown-tool",
        "a tool that no transcript calls; dicta names the nearest one that is called",
    ),
    (
        "unreachable-url",
        "criteria that name an address, for a judge without `fetch_url`",
    ),
];

/// Returns the JSON Schema of `allow`: the name of a lint, or a list of names.
pub(super) fn allowed_lints_schema(doc: &str) -> Value {
    let names = choice_names(LINTS);
    json!({
        "description": doc,
        "anyOf": [{"enum": names}, {"type": "array", "items": {"enum": names}}],
    })
}

/// Reads the `allow` of a mapping: names of lints, each known.
pub(super) fn read_allowed_lints(fields: &mut MappingDecoder<'_>) -> Vec<&'static str> {
    let written = fields.texts("allow").unwrap_or_default();
    let mut allowed = Vec::with_capacity(written.len());
    for (at, (name, _)) in written.iter().enumerate() {
        if let Some((known, _)) = LINTS.iter().find(|(known, _)| known == name) {
            allowed.push(*known);
            continue;
        }
        // A closure, because the names are needed twice.
        let names = || LINTS.iter().map(|(name, _)| *name);
        let message = if let Some(near) = find_nearest(name, names()) {
            format!("unknown lint `{name}`; did you mean `{near}`?")
        } else {
            let names: Vec<&str> = names().collect();
            format!("unknown lint `{name}`; known: {}", names.join(", "))
        };
        // `allow` may be one text; the problem then has no index.
        let one = fields.value("allow").is_some_and(Value::is_string);
        let inside = if one {
            "allow".to_owned()
        } else {
            format!("allow/{at}")
        };
        fields.error_at(&inside, "unknown-lint", message);
    }
    allowed
}
