//! `--format`: one meaning on every command that lists or reports.
//!
//! Responsible for the names of the formats, the formats of each command, and lists of JSON objects. Does not know the
//! content of any report.

use std::fmt::{Display, Write as _};
use std::path::Path;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde_json::Value;

use crate::report::{ReportFormat, format_csv};

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// Text for people; may change in any version.
    Human,
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// For pull requests and documentation.
    Markdown,
    /// `JUnit` XML, for CI servers.
    Junit,
    /// A table with a header row.
    Csv,
    /// Annotations of a GitHub workflow.
    Github,
    /// One page that needs neither network nor script.
    Html,
}

/// All formats.
const ALL_FORMATS: &[Format] = &[
    Format::Human,
    Format::Json,
    Format::Jsonl,
    Format::Markdown,
    Format::Junit,
    Format::Csv,
    Format::Github,
    Format::Html,
];

/// The error of a format that options of a command do not support.
#[derive(Debug, thiserror::Error)]
#[error("{what} has no format {format}; use --format {supported}")]
pub(super) struct UnsupportedFormat {
    what: String,
    format: &'static str,
    supported: String,
}

/// The formats of a command that prints results.
pub(super) const RESULT_FORMATS: &[Format] = &[
    Format::Human,
    Format::Json,
    Format::Jsonl,
    Format::Markdown,
    Format::Junit,
    Format::Csv,
    Format::Github,
];
/// The formats of a command that prints a list or a document.
pub(super) const LIST_FORMATS: &[Format] = &[Format::Human, Format::Json, Format::Jsonl];
/// The formats of `dicta review report`.
pub(super) const REVIEW_FORMATS: &[Format] = &[Format::Markdown, Format::Html, Format::Json];
/// The formats of a list whose entries are rows of a table.
pub(super) const TABLE_FORMATS: &[Format] =
    &[Format::Human, Format::Json, Format::Jsonl, Format::Csv];
/// The formats of a list that documentation contains.
pub(super) const DOCUMENTED_FORMATS: &[Format] =
    &[Format::Human, Format::Json, Format::Jsonl, Format::Markdown];
/// The formats of `dicta compare`.
pub(super) const COMPARE_FORMATS: &[Format] = &[
    Format::Human,
    Format::Json,
    Format::Jsonl,
    Format::Markdown,
    Format::Junit,
    Format::Html,
];
/// The formats of `dicta history`.
pub(super) const HISTORY_FORMATS: &[Format] = &[
    Format::Human,
    Format::Json,
    Format::Jsonl,
    Format::Markdown,
    Format::Csv,
];
/// The formats of `dicta check`.
pub(super) const CHECK_FORMATS: &[Format] =
    &[Format::Human, Format::Json, Format::Jsonl, Format::Github];

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        ALL_FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(match self {
            Self::Human => value.alias("text"),
            Self::Jsonl => value.alias("ndjson"),
            Self::Markdown => value.alias("md"),
            _ => value,
        })
    }
}

impl Format {
    /// Returns the name on the command line.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Jsonl => "jsonl",
            Self::Markdown => "markdown",
            Self::Junit => "junit",
            Self::Csv => "csv",
            Self::Github => "github",
            Self::Html => "html",
        }
    }

    /// Returns the format with this name, or with a further accepted one.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        <Self as ValueEnum>::from_str(name, false).ok()
    }

    /// Reports an error unless this is one of the formats of `what`, which options of a command select.
    pub(super) fn require(self, formats: &[Self], what: &str) -> Result<(), UnsupportedFormat> {
        if formats.contains(&self) {
            return Ok(());
        }
        let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
        Err(UnsupportedFormat {
            what: what.to_owned(),
            format: self.name(),
            supported: join_alternatives(&names),
        })
    }
}

/// Joins names with commas and `or`.
fn join_alternatives(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

impl From<Format> for ReportFormat {
    fn from(format: Format) -> Self {
        match format {
            // No command that prints result rows accepts `html`.
            Format::Human | Format::Html => Self::Human,
            Format::Json => Self::Json,
            Format::Jsonl => Self::Jsonl,
            Format::Markdown => Self::Markdown,
            Format::Junit => Self::Junit,
            Format::Csv => Self::Csv,
            Format::Github => Self::Github,
        }
    }
}

/// Returns the parser of `--format` for a command with these formats. An error of it lists them, as does the help.
pub(super) fn accept(formats: &'static [Format]) -> impl TypedValueParser<Value = Format> {
    let values = formats.iter().filter_map(ValueEnum::to_possible_value);
    PossibleValuesParser::new(values)
        .try_map(|name| Format::from_name(&name).ok_or("unknown format"))
}

/// Splits the value `FORMAT=FILE` of `-o`; `None` for a file alone. Only a word before `=` is a format; another text belongs
/// to the name of the file.
pub(super) fn split_named_format(option: &Path) -> Option<(&str, &str)> {
    let (name, path) = option.to_str()?.split_once('=')?;
    let is_word = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_word.then_some((name, path))
}

/// Formats a list: JSON objects as one array or as lines, a table, or `human` for people.
pub(super) fn format_list(
    format: Format,
    rows: impl FnOnce() -> Vec<Value>,
    human: impl FnOnce() -> String,
) -> String {
    match format {
        Format::Json => format!("{:#}\n", Value::from(rows())),
        Format::Jsonl => join_lines(rows()),
        Format::Csv => format_csv(&rows()),
        Format::Human | Format::Markdown | Format::Junit | Format::Github | Format::Html => human(),
    }
}

/// Formats values as lines.
pub(super) fn join_lines(lines: impl IntoIterator<Item: Display>) -> String {
    let mut out = String::new();
    for line in lines {
        // A write into a string cannot fail.
        let _infallible = writeln!(out, "{line}");
    }
    out
}

/// Formats one JSON document, on several lines or on one.
pub(super) fn format_document(format: Format, document: &Value) -> String {
    match format {
        Format::Jsonl => format!("{document}\n"),
        _ => format!("{document:#}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_format_has_one_name_and_is_found_by_it() {
        for format in ALL_FORMATS {
            assert_eq!(Format::from_name(format.name()), Some(*format));
        }
        assert_eq!(Format::from_name("md"), Some(Format::Markdown));
        assert_eq!(Format::from_name("yaml"), None);
    }

    #[test]
    fn unsupported_format_is_an_error_that_lists_the_supported_ones() {
        let error = Format::Junit
            .require(LIST_FORMATS, "a dry run")
            .expect_err("not supported");
        assert_eq!(
            error.to_string(),
            "a dry run has no format junit; use --format human, json or jsonl"
        );
        assert!(Format::Json.require(LIST_FORMATS, "a dry run").is_ok());
    }

    #[test]
    fn list_has_the_same_objects_in_each_format() {
        let rows = || vec![json!({"a": 1}), json!({"a": 2})];
        let print = |format| format_list(format, rows, || "people".to_owned());
        assert_eq!(print(Format::Human), "people");
        assert_eq!(print(Format::Jsonl), "{\"a\":1}\n{\"a\":2}\n");
        assert_eq!(print(Format::Csv), "a\n1\n2\n");
        let array: Value = serde_json::from_str(&print(Format::Json)).expect("one document");
        assert_eq!(array, Value::from(rows()));
    }
}
