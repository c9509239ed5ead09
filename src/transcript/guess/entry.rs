//! The text of a guess: an entry of dicta.yaml with a reason for each line.
//!
//! Responsible for YAML's notation and for the layout. Does not guess.

use std::fmt::Write as _;

use serde_json::Value;

use super::{MappingGuess, MappingGuessBuilder};

impl MappingGuessBuilder {
    /// Writes the entry. `what` describes the file in words.
    pub(super) fn into_guess(self, written: &str, what: &str, records: usize) -> MappingGuess {
        let mut out = String::new();
        let count = crate::model::pluralize(records as u64, "record");
        let _infallible = writeln!(
            out,
            "# A guess from the first {count} of {}: {what}. Correct it, then `dicta check` shows the first transcript.",
            crate::model::make_visible(written, false)
        );
        let _infallible = writeln!(
            out,
            "transcripts:\n  - path: {}\n    map:",
            quote_yaml(written)
        );
        // A fixed column keeps the reasons in one line below each other.
        let mut line = |depth: usize, key: &str, value: &str, why: &str| {
            let key = if key.starts_with('#') {
                key.to_owned()
            } else {
                quote_yaml(key)
            };
            let head = format!("{:depth$}{key}: {value}", "");
            // A reason may contain names from the file, so invisible characters are shown.
            let why = crate::model::make_visible(why, false);
            let _infallible = if why.is_empty() {
                writeln!(out, "{head}")
            } else {
                writeln!(out, "{head:<54}  # {why}")
            };
        };
        for guessed in &self.lines {
            let value = if guessed.is_yaml {
                guessed.expression.clone()
            } else {
                quote_yaml(&guessed.expression)
            };
            line(6, &guessed.key, &value, &guessed.reason);
        }
        if let Some(key) = &self.join_key {
            let value = format!("{{path: CHANGE, on: {}, as: question}}", quote_yaml(key));
            let why = "if another file contains the question, with `input: question.NAME`";
            line(6, "# join", &value, why);
        }
        if !self.complete {
            let names: Vec<&str> = self.names.iter().take(12).map(String::as_str).collect();
            let why = format!(
                "FILL IN: the field with the answer; the fields are {}",
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
            for guessed in &self.metadata {
                line(
                    8,
                    &guessed.key,
                    &quote_yaml(&guessed.expression),
                    &guessed.reason,
                );
            }
        }
        if let Some(label) = &self.label {
            // The label is a comment, because a label of an unknown eval would make every run fail.
            let mut labels = String::new();
            let mut line = |text: &str, why: &str| {
                let why = crate::model::make_visible(why, false);
                let _infallible = writeln!(labels, "{text:<54}  # {why}");
            };
            line("      # label:", "labels of people");
            line(
                "      #   eval: CHANGE",
                "the id of the eval that the label is about",
            );
            line(
                &format!("      #   {}: {}", label.key, quote_yaml(&label.expression)),
                &label.reason,
            );
            out.push_str(&labels);
        }
        MappingGuess::Entry {
            yaml: out,
            complete: self.complete,
        }
    }
}

/// Returns a text in YAML's notation, without quotes if they aren't necessary.
pub(super) fn quote_yaml(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_./()".contains(&b))
        // YAML reads these words as null or Booleans.
        && !matches!(
            text.to_ascii_lowercase().as_str(),
            "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if is_plain {
        return text.to_owned();
    }
    if crate::model::make_visible(text, false) != *text {
        // Escapes make invisible characters visible.
        let escaped = Value::from(text).to_string();
        let escape_char = |c: char| match c {
            c if c.is_ascii() => c.to_string(),
            // YAML has a longer escape for characters outside of the basic plane.
            c if u32::from(c) > 0xffff => format!("\\U{:08x}", u32::from(c)),
            c => format!("\\u{:04x}", u32::from(c)),
        };
        return escaped.chars().map(escape_char).collect();
    }
    // In single quotes, YAML has only one escape: a doubled quote.
    format!("'{}'", text.replace('\'', "''"))
}
