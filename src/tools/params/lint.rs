//! What an author would get wrong: patterns that admit more than they seem to, templates that admit anything.

use super::rules::{Entry, cut};
use super::shape::{Shape, Type};
use crate::tools::json::Node;

/// Words that hold others by accident, so that a warning reads well.
const WORDS: [&str; 6] = [
    "hundred",
    "inactive",
    "reopened",
    "unpaid",
    "superuser",
    "evergreen",
];

/// For each pattern of an allow list that is not anchored: what else it admits, if something was found.
pub(super) fn admits_more(shape: &Shape) -> Vec<(usize, String)> {
    let patterns = shape.rules.allowed.iter().enumerate();
    patterns
        .filter_map(|(at, entry)| match entry {
            Entry::Pattern(pattern) if !pattern.anchored => {
                let witness = pattern
                    .samples()
                    .iter()
                    .find_map(|sample| witness(shape, sample))?;
                let written = &pattern.written;
                let bare = written.trim_start_matches('^').trim_end_matches('$');
                let fixed = if written.contains('|') {
                    format!("^(?:{written})$")
                } else {
                    format!("^{bare}$")
                };
                let (shown, fixed) = (cut(written), cut(&fixed));
                Some((
                    at,
                    format!(
                        "`{shown}` also admits `{witness}`; write `{fixed}` or `anchored: true`"
                    ),
                ))
            }
            _ => None,
        })
        .collect()
}

/// A value that the shape takes although no entry of its allow list matches the whole of it.
fn witness(shape: &Shape, sample: &str) -> Option<String> {
    let around = match shape.of {
        Type::Text => {
            let mut all: Vec<String> = WORDS
                .iter()
                .filter(|word| word.contains(sample) && sample.len() > 2)
                .map(|word| (*word).to_owned())
                .collect();
            all.extend([
                format!("not-{sample}"),
                format!("{sample}-old"),
                format!("x{sample}"),
                format!("{sample}x"),
                format!("{sample}; --"),
                format!("{sample} 1"),
            ]);
            all
        }
        Type::Integer => vec![
            format!("1{sample}"),
            format!("{sample}0"),
            format!("-{sample}"),
        ],
        Type::Float => vec![
            format!("1{sample}"),
            format!("{sample}5"),
            format!("{sample}.5"),
        ],
        Type::Boolean | Type::Array(_) | Type::Map(_) => Vec::new(),
    };
    around.into_iter().find(|text| {
        let node = match shape.of {
            Type::Text => Node::Text(text.clone()),
            _ => Node::Plain(text.clone()),
        };
        let is_known = shape.rules.allowed.iter().any(|entry| match entry {
            Entry::Pattern(pattern) => pattern.matches_whole(text),
            Entry::Same(same) => *same == node,
        });
        !is_known
            && shape
                .take(&node, &mut super::shape::Taking::default())
                .is_ok()
    })
}

/// Whether a template parameter takes anything whatever.
pub(super) fn is_unchecked(shape: &Shape) -> bool {
    let has_rule = !shape.rules.allowed.is_empty()
        || shape.escape.is_some()
        || shape.low.is_some()
        || shape.high.is_some();
    match &shape.of {
        Type::Boolean => false,
        Type::Array(items) => !has_rule && is_unchecked(items),
        _ => !has_rule,
    }
}
