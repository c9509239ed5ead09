//! Lints of parameters: patterns that admit more than they seem to, and templates that admit anything.

use super::value_filter::{ValueMatcher, truncate_value_text};
use super::value_spec::{ValueSpec, ValueType};
use crate::tools::json::JsonNode;

/// Words that may contain another by accident. Real words make a warning easy to understand.
const SAMPLE_WORDS: [&str; 6] = [
    "hundred",
    "inactive",
    "reopened",
    "unpaid",
    "superuser",
    "evergreen",
];

/// For each unanchored pattern of an allow list, finds a text that it admits in addition, if there is one.
pub(super) fn find_overbroad_patterns(shape: &ValueSpec) -> Vec<(usize, String)> {
    let patterns = shape.filter.allowed.iter().enumerate();
    patterns
        .filter_map(|(at, entry)| match entry {
            ValueMatcher::Pattern(pattern) if !pattern.anchored => {
                let witness = pattern
                    .sample_matches()
                    .iter()
                    .find_map(|sample| find_overbroad_value(shape, sample))?;
                let written = &pattern.source;
                let unanchored = written.trim_start_matches('^').trim_end_matches('$');
                let fixed = if written.contains('|') {
                    format!("^(?:{written})$")
                } else {
                    format!("^{unanchored}$")
                };
                let (source, fixed) = (truncate_value_text(written), truncate_value_text(&fixed));
                Some((
                    at,
                    format!(
                        "`{source}` also admits `{witness}`; write `{fixed}` or `anchored: true`"
                    ),
                ))
            }
            _ => None,
        })
        .collect()
}

/// Finds a value that the parameter accepts although no entry of its allow list matches the whole value.
fn find_overbroad_value(shape: &ValueSpec, sample: &str) -> Option<String> {
    let around = match shape.of {
        ValueType::Text => {
            let mut all: Vec<String> = SAMPLE_WORDS
                .iter()
                // Words that contain the sample show in a familiar way what an unanchored pattern also
                // admits.
                .filter(|word| word.contains(sample) && sample.len() > 2)
                .map(|word| (*word).to_owned())
                .collect();
            all.extend([
                format!("not-{sample}"),
                format!("{sample}-old"),
                format!("x{sample}"),
                format!("{sample}x"),
                // An example of an injection through an unanchored pattern.
                format!("{sample}; --"),
                format!("{sample} 1"),
            ]);
            all
        }
        ValueType::Integer => vec![
            format!("1{sample}"),
            format!("{sample}0"),
            format!("-{sample}"),
        ],
        ValueType::Float => vec![
            format!("1{sample}"),
            format!("{sample}5"),
            format!("{sample}.5"),
        ],
        ValueType::Boolean | ValueType::Array(_) | ValueType::Map(_) => Vec::new(),
    };
    around.into_iter().find(|text| {
        let node = match shape.of {
            ValueType::Text => JsonNode::Text(text.clone()),
            _ => JsonNode::Literal(text.clone()),
        };
        // Another entry of the list may allow the value on purpose.
        let is_known = shape.filter.allowed.iter().any(|entry| match entry {
            ValueMatcher::Pattern(pattern) => pattern.matches_whole(text),
            ValueMatcher::Equal(same) => *same == node,
        });
        !is_known
            && shape
                .check_and_convert(&node, &mut super::value_spec::ConversionCx::default())
                .is_ok()
    })
}

/// Returns true if a template parameter accepts any text.
pub(super) fn accepts_anything(shape: &ValueSpec) -> bool {
    let has_rule = !shape.filter.allowed.is_empty()
        || shape.escape.is_some()
        || shape.min.is_some()
        || shape.max.is_some();
    match &shape.of {
        ValueType::Boolean => false,
        ValueType::Array(items) => !has_rule && accepts_anything(items),
        _ => !has_rule,
    }
}
