//! The texts for a judge, in the rubric or in a file next to it: criteria, scoring guide, system prompt.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::params::WrittenParams;
use super::referenced_files::{normalize_path, parse_file_reference};
use super::{EvalTypeSpec, RubricCx, metadata_param_path, template};
use crate::diag::Diagnostic;
use crate::diag::yaml::SpanOffset;

/// The params whose texts may be in a file: a text, or each text of a list.
const TEXT_PARAMS: [&str; 4] = ["criteria", "scoring_guide", "sub_goals", "system_prompt"];
/// The param with a model's name, which is not checked as a template.
const LITERAL_PARAM: &str = "model";

/// A file that a text came from.
struct ReferencedText {
    path: PathBuf,
    text: Arc<str>,
}

/// The files that texts came from, by the text's pointer in the params.
type TextSources = HashMap<String, ReferencedText>;

impl RubricCx<'_> {
    /// Replaces file names with the files' content, and checks the templates. Returns true if there is no problem.
    pub(super) fn resolve_texts(&self, kind: &EvalTypeSpec, written: &mut WrittenParams) -> bool {
        let mut from = TextSources::new();
        let mut good = true;
        for name in TEXT_PARAMS {
            let Some(place) = written.params.get_mut(name) else {
                continue;
            };
            // Taken out of the map, because `written` is read while the value changes.
            let mut value = std::mem::take(place);
            let pointer = format!("/{name}");
            good &= self.read_referenced_text(&pointer, name, &mut value, written, &mut from);
            // Lists of texts, such as the criteria of `binary_rubric`, can name a file for each entry.
            if let Value::Array(items) = &mut value {
                for (index, item) in items.iter_mut().enumerate() {
                    let (pointer, name) =
                        (format!("{pointer}/{index}"), format!("{name}[{index}]"));
                    good &= self.read_referenced_text(&pointer, &name, item, written, &mut from);
                }
            }
            written.params.insert(name.to_owned(), value);
        }
        // Templates are checked after the files are read, so that a file can be a template, too.
        for (name, value) in &written.params {
            // Bounds, the model, and values from the metadata are not templates.
            if kind.decision_params.contains(&name.as_str())
                || name == LITERAL_PARAM
                || metadata_param_path(value).is_some()
            {
                continue;
            }
            good &= self.check_templates(name, &format!("/{name}"), value, written, &from);
        }
        good
    }

    /// Replaces a text that names a file with the file's content.
    fn read_referenced_text(
        &self,
        pointer: &str,
        name: &str,
        value: &mut Value,
        written: &WrittenParams,
        from: &mut TextSources,
    ) -> bool {
        let Some(file) = value.as_str().and_then(parse_file_reference) else {
            // A text that names no file stays as it is.
            return true;
        };
        let at = written.pointer_in_file(pointer);
        match self.read_text_file(file, &at) {
            Ok(referenced) => {
                *value = Value::String(referenced.text.to_string());
                from.insert(pointer.to_owned(), referenced);
                true
            }
            Err(why) => {
                let message = format!("{name} names a file, and `{file}` {why}");
                let problem = self.doc.error(&at, "file", message).help(
                    "dicta reads it from the rubric's folder; a text that is not a path has blanks or several lines",
                );
                self.problems.push(problem);
                false
            }
        }
    }

    fn read_text_file(&self, file: &str, at: &str) -> Result<ReferencedText, String> {
        // Relative to the file that contains the text, because a `$ref` can take it from another folder.
        let source_file = self.layers.file(&self.doc.span(at));
        let path = source_file.parent().unwrap_or(Path::new("")).join(file);
        let text = self.files.read(&path).map_err(|error| error.to_string())?;
        // An empty file would give the judge no criteria.
        if text.trim().is_empty() {
            return Err("is empty".to_owned());
        }
        Ok(ReferencedText {
            path: normalize_path(&path),
            text,
        })
    }

    fn check_templates(
        &self,
        name: &str,
        pointer: &str,
        value: &Value,
        written: &WrittenParams,
        from: &TextSources,
    ) -> bool {
        match value {
            Value::String(text) => {
                let Err(fault) = template::check(text) else {
                    return true;
                };
                // The problem is in the text's own file, if it has one.
                let problem = if let Some(ReferencedText { path, text }) = from.get(pointer) {
                    let place = SpanOffset::default().line_span(text, fault.line);
                    Diagnostic::error("template", path, format!("{name}: {}", fault.message))
                        .with_span(place, text)
                } else {
                    // A text of several lines has only one place in the YAML file, so the line is in the
                    // message.
                    let line = match fault.line {
                        1 => String::new(),
                        line => format!("line {line} of the text: "),
                    };
                    let message = format!("{name}: {line}{}", fault.message);
                    self.doc
                        .error(&written.pointer_in_file(pointer), "template", message)
                };
                self.problems.push(problem.help(
                    "{{ metadata.NAME }} is filled in from each transcript; {% raw %}…{% endraw %} keeps a text as it is",
                ));
                false
            }
            Value::Array(items) => {
                let mut good = true;
                for (index, item) in items.iter().enumerate() {
                    let pointer = format!("{pointer}/{index}");
                    good &= self.check_templates(name, &pointer, item, written, from);
                }
                good
            }
            Value::Object(map) => {
                let mut good = true;
                for (key, item) in map {
                    let pointer = format!("{pointer}/{}", crate::model::escape_pointer_step(key));
                    good &= self.check_templates(name, &pointer, item, written, from);
                }
                good
            }
            _ => true,
        }
    }
}
