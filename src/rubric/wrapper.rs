//! PromptKit's types `assertion` and `guardrail`, which contain another type, and `threshold`, which sets bounds
//! outside of the params.
//!
//! Responsible for unwrapping. A loaded rubric contains only the inner eval.

use serde_json::{Value, json};

use super::{EvalTypeAlias, EvalTypeSpec, RubricCx};
use crate::diag::yaml::{ConfigKey, MappingDecoder, properties_schema};

/// The types that contain another type.
pub(super) const WRAPPERS: [&str; 2] = ["assertion", "guardrail"];
/// The names of bounds.
const BOUNDS: [&str; 2] = ["min_score", "max_score"];

/// A bound that is written outside of the params that it belongs to.
pub(super) struct OuterBound {
    pub(super) name: &'static str,
    pub(super) value: Value,
    /// The pointer to the place where it is written.
    pub(super) pointer: String,
}

/// An eval without its wrapper.
pub(super) struct UnwrappedEval<'d> {
    pub(super) eval_type: &'d EvalTypeSpec,
    pub(super) alias: Option<&'d EvalTypeAlias>,
    /// The pointer of its params.
    pub(super) params_pointer: String,
    pub(super) bounds: Vec<OuterBound>,
    /// An addition to the description, such as `guardrail, action block`.
    pub(super) note: Option<String>,
}

impl<'d> RubricCx<'d> {
    /// Returns the eval's type and params, without a wrapper if it has one.
    pub(super) fn unwrap_eval(
        &self,
        kind: &'d EvalTypeSpec,
        alias: Option<&'d EvalTypeAlias>,
        at: &str,
    ) -> Option<UnwrappedEval<'d>> {
        let params = format!("{at}/params");
        // No wrapper: the eval itself.
        if !WRAPPERS.contains(&kind.name) {
            return Some(UnwrappedEval {
                eval_type: kind,
                alias,
                params_pointer: params,
                bounds: Vec::new(),
                note: None,
            });
        }
        let outer = kind.name;
        let of_eval = MappingDecoder::new(self.doc, at, self.problems);
        if !of_eval.has("params") {
            let message = format!("{outer} needs params with `eval_type`");
            of_eval.error_at_mapping("missing", message);
            return None;
        }
        let mut fields = MappingDecoder::new(self.doc, &params, self.problems);
        if !fields.is_mapping() {
            return None;
        }
        let guards = outer == "guardrail";
        let (mut key, mut name) = ("eval_type", fields.text("eval_type"));
        let mut note = outer.to_owned();
        // Only `guardrail` has `validator` and `action`.
        if guards {
            if fields.has("validator") {
                if fields.has("eval_type") {
                    let message = "`validator` says the same as `eval_type`: give one of them";
                    fields.error("validator", "param", message);
                }
                (key, name) = ("validator", fields.text("validator"));
            }
            // PromptKit takes this action in a live conversation; dicta only judges recorded ones.
            if let Some(action) = fields.text("action") {
                note = format!("{outer}, action {action}");
            }
        }
        // The bounds of a wrapper apply to the eval inside.
        let mut bounds = Vec::new();
        for bound in BOUNDS {
            if let Some(value) = fields.value(bound) {
                bounds.push(OuterBound {
                    name: bound,
                    value: value.clone(),
                    pointer: fields.pointer(bound),
                });
            }
        }
        // `eval_params` is a known key; its content is read as the params of the inner eval.
        fields.value("eval_params");
        if !fields.has(key) {
            fields.error_at_mapping(
                "missing",
                format!("`eval_type` is missing; {outer} needs it"),
            );
        }
        let kind_at = fields.pointer(key);
        fields.finish();
        let (kind, alias) = self.find_type(&name?, &kind_at)?;
        // A wrapper in a wrapper would need two levels of bounds, which PromptKit does not have.
        if WRAPPERS.contains(&kind.name) {
            let message = format!(
                "{outer} contains a check or a judged type, not {}",
                kind.name
            );
            let span = self.doc.span(&kind_at);
            self.problems.error(span, "param", message);
            return None;
        }
        Some(UnwrappedEval {
            eval_type: kind,
            alias,
            params_pointer: format!("{params}/eval_params"),
            bounds,
            note: Some(note),
        })
    }
}

/// The keys of an eval's `threshold`.
const THRESHOLD_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "passed",
        "The check must pass, which is the default.",
        |doc| json!({"const": true, "description": doc}),
    ),
    ConfigKey::new("min_score", "The lowest score that passes.", score_schema),
    ConfigKey::new("max_score", "The highest score that passes.", score_schema),
];

fn score_schema(doc: &str) -> Value {
    json!({"type": "number", "minimum": 0, "maximum": 1, "description": doc})
}

/// Returns the JSON Schema of an eval's `threshold`.
pub(super) fn threshold_schema(doc: &str) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(THRESHOLD_KEYS),
        "minProperties": 1,
        "additionalProperties": false,
    })
}

/// Reads the bounds of an eval's `threshold`. PromptKit ignores them; dicta applies them.
pub(super) fn read_threshold(fields: &mut MappingDecoder<'_>) -> Vec<OuterBound> {
    // The decoder has reported a wrong type.
    let Some(decoder) = fields.mapping("threshold") else {
        return Vec::new();
    };
    let mut decoder = decoder.accepting(THRESHOLD_KEYS);
    let mut bounds = Vec::new();
    for name in BOUNDS {
        if let Some(value) = decoder.value(name) {
            bounds.push(OuterBound {
                name,
                value: value.clone(),
                pointer: decoder.pointer(name),
            });
        }
    }
    // `passed: false` reverses the check, which dicta expresses with `not`.
    match decoder.boolean("passed") {
        Some(false) => {
            let message =
                "threshold.passed: false would pass what fails; write `not: true` at the eval";
            decoder.error("passed", "value", message);
        }
        Some(true) if !bounds.is_empty() => {
            let message =
                "the score decides where min_score or max_score is given: leave `passed` out";
            decoder.error("passed", "value", message);
        }
        _ => {}
    }
    if decoder.is_mapping() && bounds.is_empty() && !decoder.has("passed") {
        decoder.error_at_mapping(
            "empty",
            "threshold must not be empty: give min_score or max_score",
        );
    }
    decoder.finish();
    bounds
}

/// Explains a bound for a type without a score, in which a pass counts as 1 and a fail as 0. The flag is true
/// for an error and false for a warning about a bound that changes nothing.
pub(super) fn explain_bound_without_score(kind: &str, bound: &OuterBound) -> (bool, String) {
    let Some(x) = bound.value.as_f64() else {
        return (true, format!("{} must be a number", bound.name));
    };
    let name = bound.name;
    // A pass counts as 1: a lower bound above 0 and an upper bound of 1 change nothing.
    let same = match name {
        "min_score" => x > 0.0 && x <= 1.0,
        _ => x >= 1.0,
    };
    if same {
        let message = format!("{name} has no effect: {kind} gives no score, only pass or fail");
        return (false, message);
    }
    let message = match name {
        "min_score" => {
            format!("{name} {x} could not fail: {kind} gives no score, only pass (1) or fail (0)")
        }
        _ => format!(
            "{name} {x} would pass what fails: {kind} gives no score; write `not: true` at the eval"
        ),
    };
    (true, message)
}
