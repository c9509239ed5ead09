//! A guess as text: an entry of dicta.yaml, every line with its reason behind it. What would not be seen is spelled out.

use std::fmt::Write as _;

use serde_json::Value;

use super::{MappingGuess, MappingGuessBuilder};

impl MappingGuessBuilder {
    /// The entry; `what` was looked at, in words.
    pub(super) fn into_guess(self, written: &str, what: &str, records: usize) -> MappingGuess {
        let mut out = String::new();
        let seen = crate::model::pluralize(records as u64, "record");
        let _infallible = writeln!(
            out,
            "# A guess from the first {seen} of {}: {what}. Correct it, then `dicta check` shows the first transcript.",
            crate::model::make_visible(written, false)
        );
        let _infallible = writeln!(
            out,
            "transcripts:\n  - path: {}\n    map:",
            quote_yaml(written)
        );
        let mut line = |depth: usize, key: &str, value: &str, why: &str| {
            let head = format!("{:depth$}{}: {value}", "", quote_yaml(key));
            let why = crate::model::make_visible(why, false);
            let _infallible = if why.is_empty() {
                writeln!(out, "{head}")
            } else {
                writeln!(out, "{head:<54}  # {why}")
            };
        };
        for (key, expression, why) in &self.lines {
            line(6, key, &quote_yaml(expression), why);
        }
        if !self.complete {
            let names: Vec<&str> = self.names.iter().take(12).map(String::as_str).collect();
            let why = format!(
                "FILL IN: where the answer stands; there is {}",
                names.join(", ")
            );
            line(6, "output", "''", &why);
        }
        if !self.metadata.is_empty() {
            line(
                6,
                "metadata",
                "",
                "for evals and filters; no judge sees it unless a rubric names it",
            );
            for (key, expression, why) in &self.metadata {
                line(8, key, &quote_yaml(expression), why);
            }
        }
        if let Some((expression, why)) = &self.label {
            // Not in force yet: a label of an eval that is not there would refuse every run.
            let mut labels = String::new();
            let mut line = |text: &str, why: &str| {
                let why = crate::model::make_visible(why, false);
                let _infallible = writeln!(labels, "{text:<54}  # {why}");
            };
            line("      # label:", "what people said: labels");
            line(
                "      #   eval: CHANGE",
                "the id of the eval of yours that it is about",
            );
            line(
                &format!("      #   passed: {}", quote_yaml(expression)),
                why,
            );
            out.push_str(&labels);
        }
        MappingGuess::Entry {
            yaml: out,
            complete: self.complete,
        }
    }
}

/// A key as JMESPath writes it.
pub(super) fn quote_jmespath_key(key: &str) -> String {
    let bare = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if bare {
        key.to_owned()
    } else {
        Value::from(key).to_string()
    }
}

/// A text as YAML writes it: bare where that says the same.
fn quote_yaml(text: &str) -> String {
    let bare = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_./()".contains(&b))
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if bare {
        return text.to_owned();
    }
    if crate::model::make_visible(text, false) != *text {
        // What would not be seen is spelled out.
        let escaped = Value::from(text).to_string();
        let plain = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            c if u32::from(c) > 0xffff => format!("\\U{:08x}", u32::from(c)),
            c => format!("\\u{:04x}", u32::from(c)),
        };
        return escaped.chars().map(plain).collect();
    }
    format!("'{}'", text.replace('\'', "''"))
}
