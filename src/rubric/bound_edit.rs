//! A new bound of an eval in the text of its rubric file. Comments, order and layout stay.
//!
//! Responsible for finding the place and for changing nothing else: it reads the new text again and compares the values.
//! Does not read or write files.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::edit_target::{EditTarget, EditTargetError, read_file};
use crate::diag::yaml::YamlDoc;

/// The reason why dicta does not write a bound into a rubric file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BoundEditError {
    /// The file cannot be edited, or the eval is not in it.
    #[error(transparent)]
    Target(#[from] EditTargetError),
    /// The bound is written several times.
    #[error("`{0}` is written at several places of the eval")]
    SeveralPlaces(String),
    /// The value is not written as a number.
    #[error("`{bound}` in line {line} is not a plain number")]
    NotPlain {
        /// The bound.
        bound: String,
        /// The line of the value.
        line: u32,
    },
    /// The eval does not write the bound, and has no `params` mapping for it.
    #[error("the eval sets no `{0}`, and has no params to add it to")]
    NoPlace(String),
    /// The change would alter other values.
    #[error("`{0}` shares its value with another place (an anchor or alias)")]
    Shared(String),
}

/// The pointers, relative to an eval, at which a bound can be written.
const PLACES: [&str; 3] = ["threshold", "params", "params/eval_params"];

/// Returns the text of a rubric file with a new value for a bound (`min_score` or `max_score`) of an eval. If the eval
/// does not write the bound, it becomes the first entry of its `params`.
pub fn set_bound(
    source: &Arc<str>,
    path: &Path,
    eval: &str,
    bound: &str,
    value: f64,
) -> Result<String, BoundEditError> {
    let EditTarget { doc, at } = EditTarget::find(source, path, eval)?;
    let number = value.to_string();
    let pointers = PLACES.map(|place| format!("/evals/{at}/{place}/{bound}"));
    let written: Vec<&String> = pointers
        .iter()
        .filter(|pointer| doc.value.pointer(pointer).is_some())
        .collect();
    let (pointer, range, text) = match written.as_slice() {
        [pointer] => {
            let range = find_number(&doc, pointer, bound)?;
            ((*pointer).clone(), range, number)
        }
        [] => {
            let params = format!("/evals/{at}/params");
            let (offset, text) = find_insertion(&doc, &params, bound, &number)
                .ok_or_else(|| BoundEditError::NoPlace(bound.to_owned()))?;
            (format!("{params}/{bound}"), offset..offset, text)
        }
        _ => return Err(BoundEditError::SeveralPlaces(bound.to_owned())),
    };
    let mut edited = source.to_string();
    edited.replace_range(range, &text);
    let edited: Arc<str> = edited.into();
    let shared = || BoundEditError::Shared(bound.to_owned());
    let mut read_back = read_file(&edited, path).map_err(|_| shared())?.value;
    // Everything except the bound must be as before. An anchor or a merge key would change more.
    let mut before = doc.value.clone();
    let new = read_back.pointer(&pointer).and_then(Value::as_f64);
    if new != Some(value) {
        return Err(shared());
    }
    remove_entry(&mut before, &pointer);
    remove_entry(&mut read_back, &pointer);
    if before != read_back {
        return Err(shared());
    }
    Ok(edited.to_string())
}

/// Returns the bytes of a number that is written as a plain scalar.
fn find_number(doc: &YamlDoc, pointer: &str, bound: &str) -> Result<Range<usize>, BoundEditError> {
    let span = doc.span(pointer);
    let not_plain = || BoundEditError::NotPlain {
        bound: bound.to_owned(),
        line: span.line,
    };
    let value = doc.value.pointer(pointer).and_then(Value::as_f64);
    let value = value.ok_or_else(not_plain)?;
    // The place of an alias is the alias, and the place of a value may contain its anchor.
    let rest = doc.source.get(span.bytes.start..).ok_or_else(not_plain)?;
    let end = rest
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '-' | '+' | 'e' | 'E' | '_'))
        .unwrap_or(rest.len());
    match rest[..end].parse::<f64>() {
        #[expect(clippy::float_cmp, reason = "the same text gives the same number")]
        Ok(written) if written == value => Ok(span.bytes.start..span.bytes.start + end),
        _ => Err(not_plain()),
    }
}

/// Returns the byte at which a bound can be inserted as the first entry of a mapping, and the inserted text.
fn find_insertion(
    doc: &YamlDoc,
    params: &str,
    bound: &str,
    number: &str,
) -> Option<(usize, String)> {
    let entries = doc.value.pointer(params)?.as_object()?;
    let places = entries
        .keys()
        .map(|key| doc.key_span(&format!("{params}/{}", escape_pointer(key))));
    let first = places.map(|span| span.bytes.start).min()?;
    let line_start = doc.source[..first].rfind('\n').map_or(0, |at| at + 1);
    let before = &doc.source[line_start..first];
    if before.chars().all(|c| c == ' ') {
        return Some((first, format!("{bound}: {number}\n{before}")));
    }
    before
        .trim_end()
        .ends_with('{')
        .then(|| (first, format!("{bound}: {number}, ")))
}

fn escape_pointer(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

fn remove_entry(value: &mut Value, pointer: &str) {
    if let Some((parent, key)) = pointer.rsplit_once('/')
        && let Some(Value::Object(entries)) = value.pointer_mut(parent)
    {
        entries.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str, bound: &str, value: f64) -> Result<String, BoundEditError> {
        set_bound(&text.into(), Path::new("r.yaml"), "tone", bound, value)
    }

    const RUBRIC: &str = "# The tone.\nevals:\n  - id: other\n    type: llm_judge\n    params: {criteria: x, min_score: 0.5}\n  - id: tone   # ours\n    type: llm_judge\n    params:\n        # strict since May\n        criteria: |\n          min_score: 0.9 is no bound here\n        min_score:   0.75   # was 0.5\n";

    #[test]
    fn number_is_replaced_and_everything_else_stays() {
        let edited = set(RUBRIC, "min_score", 0.6).expect("edited");
        assert_eq!(edited, RUBRIC.replace("0.75", "0.6"));
    }

    #[test]
    fn missing_bound_becomes_the_first_param() {
        let without = RUBRIC.replace("        min_score:   0.75   # was 0.5\n", "");
        let edited = set(&without, "min_score", 0.6).expect("edited");
        let place = "        criteria: |";
        let with = without.replace(place, &format!("        min_score: 0.6\n{place}"));
        assert_eq!(edited, with);
        let flow = "evals:\n  - { id: tone, type: llm_judge, params: { criteria: x } }\n";
        let edited = set(flow, "min_score", 1.0).expect("edited");
        assert_eq!(
            edited,
            "evals:\n  - { id: tone, type: llm_judge, params: { min_score: 1, criteria: x } }\n"
        );
    }

    #[test]
    fn bound_of_a_threshold_mapping_is_found() {
        let text = "evals:\n- id: tone\n  type: llm_judge\n  threshold:\n    max_score: 3e-1\n  params:\n    criteria: x\n";
        let edited = set(text, "max_score", 0.25).expect("edited");
        assert_eq!(edited, text.replace("3e-1", "0.25"));
    }

    #[test]
    fn places_that_are_no_plain_number_are_refused_with_a_reason() {
        let eval = |params: &str| {
            format!("evals:\n  - id: tone\n    type: llm_judge\n    params:\n{params}")
        };
        let refusal = |text: &str| {
            set(text, "min_score", 0.6)
                .expect_err("refused")
                .to_string()
        };
        assert_eq!(
            refusal(&eval("      min_score: \"0.5\"\n")),
            "`min_score` in line 5 is not a plain number"
        );
        assert!(refusal("evals:\n  - id: tune\n").contains("no eval with the id `tone`"));
        assert!(refusal("evals:\n  - id: tone\n    type: x\n").contains("no params"));
        let anchored = "evals:\n  - id: tone\n    params:\n      min_score: &low 0.5\n  - id: b\n    params:\n      min_score: *low\n";
        let why = refusal(anchored);
        assert!(
            why.contains("shares") || why.contains("not a plain"),
            "{why}"
        );
        let aliased = "evals:\n  - id: b\n    params:\n      min_score: &low 0.5\n  - id: tone\n    params:\n      min_score: *low\n";
        let why = refusal(aliased);
        assert!(
            why.contains("shares") || why.contains("not a plain"),
            "{why}"
        );
        let merged = "base: &base\n  min_score: 0.5\nevals:\n  - id: tone\n    params:\n      <<: *base\n      criteria: x\n  - id: b\n    params:\n      <<: *base\n";
        let why = refusal(merged);
        assert!(
            why.contains("shares") || why.contains("not a plain"),
            "{why}"
        );
        let twice =
            "evals:\n  - id: tone\n    threshold: {min_score: 0.5}\n    params: {min_score: 0.5}\n";
        assert!(refusal(twice).contains("several places"));
        assert!(refusal("evals: [").contains("does not load"));
    }

    proptest! {
        #[test]
        fn only_the_bound_changes(
            before in 0.0..1.0_f64,
            after in 0.0..1.0_f64,
            gap in "[ ]{1,5}",
            comment in "( #[a-z :#{}-]{0,20})?",
            key in "[a-z]{3,8}",
        ) {
            let text = format!(
                "evals:\n  - id: tone\n    type: t\n    params:\n      {key}x: [1, 2]\n      min_score:{gap}{before}{comment}\n      last: z\n"
            );
            let edited = set(&text, "min_score", after).expect("a plain number");
            let expected = text.replacen(&format!("{gap}{before}"), &format!("{gap}{after}"), 1);
            prop_assert_eq!(edited, expected);
        }
    }
}
