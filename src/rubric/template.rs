//! Variables in the texts for a judge: `{{ metadata.topic }}` in criteria, scoring guide and system prompt.
//!
//! Responsible for the set of variables (`metadata`, `transcript.id`, `tags`), for strictness and for limits. Does
//! not read files or other templates and does not escape, because prompts are plain text. This is the only module
//! that imports `minijinja`.
//!
//! Values are untrusted text of the transcript's author. In criteria and scoring guide they are between the prompt's
//! delimiters, which they cannot contain. A system prompt has no delimiters, so there a value must be one short line.

mod allowed_syntax;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;
use std::string::FromUtf8Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Value, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior};

use crate::diag::find_nearest;
use crate::model::Transcript;

/// The maximum number of template steps, in minijinja's fuel units, for small metadata.
const FUEL: u64 = 50_000;
/// The number of template steps that are allowed for metadata of any size.
const MIN_FUEL: u64 = 500;
/// The size of metadata, in bytes, up to which [`FUEL`] is not reduced.
const FREE_METADATA_BYTES: u64 = 64 << 10;
/// The maximum length of the rendered text, in bytes.
const MAX_OUTPUT_BYTES: usize = 1 << 20;
/// The maximum length of a value in a system prompt, in characters.
const MAX_VALUE_CHARS: usize = 200;
/// The variables of a template.
const VARIABLES: [&str; 3] = ["metadata", "transcript", "tags"];

/// The error of a text that is not a valid template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The line in the text, from 1.
    pub line: usize,
    /// The explanation, a sentence.
    pub message: String,
}

/// The reason why the variables of a text cannot be replaced by the values of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateRenderError {
    /// The text is not a valid template.
    #[error("{reason}")]
    Syntax {
        /// The reason of the template library.
        reason: String,
    },
    /// The transcript has no value for a variable.
    #[error("{name} is not in this transcript")]
    MissingValue {
        /// The variable as written.
        name: String,
    },
    /// The template needs too many instructions.
    #[error("the template computes too long")]
    TooMuchWork,
    /// The rendered text is too long.
    #[error("the filled in text is longer than {MAX_OUTPUT_BYTES} bytes")]
    TooLong,
    /// A part of the template cannot be evaluated with these values.
    #[error("{reason}{}", format_place(.place.as_deref()))]
    Failed {
        /// The reason of the template library.
        reason: String,
        /// The part of the template, if the template library reports it.
        place: Option<String>,
    },
    /// The rendered text is not UTF-8.
    #[error("{source}")]
    NotUtf8 {
        /// The reason of the standard library.
        source: FromUtf8Error,
    },
}

fn format_place(place: Option<&str>) -> String {
    place.map_or_else(String::new, |place| format!(" at `{place}`"))
}

/// The position of a text in the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextPlacement {
    /// Between the prompt's delimiters.
    Delimited,
    /// Outside of the delimiters, in the system prompt.
    SystemPrompt,
}

/// Returns true if a text contains a variable or a statement.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Checks that a text can be rendered once a transcript is known.
pub fn check(text: &str) -> Result<(), TemplateError> {
    if !is_template(text) {
        return Ok(());
    }
    let env = build_environment(TextPlacement::Delimited);
    // minijinja reports the first syntax error, with its line.
    let template = env.template_from_str(text).map_err(|error| TemplateError {
        line: error.line().unwrap_or(1),
        message: describe_error(&error),
    })?;
    // Then the syntax that minijinja accepts but dicta does not.
    allowed_syntax::check_tags(text)?;
    // Then the variables, so that a typing error is found without a transcript.
    let mut unknown: Vec<(usize, String)> = template
        .undeclared_variables(true)
        .into_iter()
        .filter_map(|name| {
            let why = explain_unknown_variable(&env, &name)?;
            // The line of the first occurrence is enough, because minijinja gives only the name.
            let at = text.find(&name).unwrap_or(0);
            Some((text[..at].matches('\n').count() + 1, why))
        })
        .collect();
    // By line, so that the first problem in the text is reported.
    unknown.sort();
    match unknown.into_iter().next() {
        Some((line, why)) => Err(TemplateError { line, message: why }),
        None => Ok(()),
    }
}

/// Explains an unknown variable; `None` if it exists.
fn explain_unknown_variable(env: &Environment<'_>, name: &str) -> Option<String> {
    let (root, rest) = name
        .split_once('.')
        .map_or((name, None), |(root, rest)| (root, Some(rest)));
    // A function of minijinja, not a variable.
    if env.globals().any(|(global, _)| global == root) {
        return None;
    }
    match (root, rest) {
        ("metadata" | "tags", _) | ("transcript", None | Some("id")) => None,
        ("transcript", Some(_)) => Some(format!(
            "there is no `{name}`: the variables are `transcript.id`, `metadata` and `tags`"
        )),
        _ => Some(match find_nearest(root, VARIABLES) {
            Some(near) => format!("there is no variable `{root}`; did you mean `{near}`?"),
            None => format!(
                "there is no variable `{root}`: write {{{{ metadata.{name} }}}}, or {{% raw %}} around text that is not a template"
            ),
        }),
    }
}

/// Renders a text with the variables of a transcript.
pub fn render(
    text: &str,
    placement: TextPlacement,
    transcript: &Transcript<'_>,
) -> Result<String, TemplateRenderError> {
    let mut env = build_environment(placement);
    // Less fuel for large metadata; see `compute_fuel`.
    env.set_fuel(Some(compute_fuel(transcript)));
    let template = env
        .template_from_str(text)
        .map_err(|error| TemplateRenderError::Syntax {
            reason: describe_error(&error),
        })?;
    // The buffer bounds the output while it is written.
    let mut out = BoundedBuffer::default();
    template
        .render_captured_to(build_variables(transcript), &mut out)
        .map_err(|error| classify_error(&error, text))?;
    // The renderer writes only text, so the conversion succeeds.
    String::from_utf8(out.bytes).map_err(|source| TemplateRenderError::NotUtf8 { source })
}

/// Returns the number of steps for a transcript. A step may read all of the metadata, so larger metadata allows fewer
/// steps.
fn compute_fuel(transcript: &Transcript<'_>) -> u64 {
    let metadata = transcript.metadata.as_ref();
    let size = metadata.map_or(0, |metadata| metadata.get().len() as u64);
    FUEL.saturating_mul(FREE_METADATA_BYTES) / size.max(FREE_METADATA_BYTES) + MIN_FUEL
}

fn build_environment<'s>(placement: TextPlacement) -> Environment<'s> {
    let mut env = Environment::new();
    // Strict: a missing value is an error, never an empty text in a judge's prompt.
    env.set_undefined_behavior(UndefinedBehavior::Strict);
    // No escaping, because a prompt is plain text and not HTML.
    env.set_auto_escape_callback(|_| AutoEscape::None);
    // The text of the author stays unchanged, up to its last line break.
    env.set_keep_trailing_newline(true);
    // Fuel bounds loops; the recursion limit bounds nested expressions.
    env.set_fuel(Some(FUEL));
    env.set_recursion_limit(50);
    // Debug mode gives errors their range in the text.
    env.set_debug(true);
    allowed_syntax::restrict(&mut env);
    bound_filters(&mut env);
    // Every inserted value passes through the formatter, so no value avoids the check below.
    env.set_formatter(move |out, _, value| {
        let text = format_value(value);
        if placement == TextPlacement::SystemPrompt {
            check_system_prompt_value(&text)
                .map_err(|why| Error::new(ErrorKind::InvalidOperation, why))?;
        }
        out.write_str(&text)
            .map_err(|_| Error::new(ErrorKind::WriteFailure, "too long"))
    });
    env
}

/// Limits `join` and `replace`. One step of these filters can produce much text from little, so together they may produce at
/// most [`MAX_OUTPUT_BYTES`].
fn bound_filters(env: &mut Environment<'_>) {
    // Shared by both filters and by all their calls in one rendering.
    let left = Arc::new(AtomicUsize::new(MAX_OUTPUT_BYTES));
    let too_long = || Error::new(ErrorKind::WriteFailure, "too long");
    let take = move |length: Option<usize>| {
        // `None`, an overflow of the length, does not fit either.
        let fits = |left: usize| left.checked_sub(length?);
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        taken.map(|_| ()).map_err(|_| too_long())
    };
    let taken = take.clone();
    env.add_filter(
        "replace",
        move |text: Cow<'_, str>, from: Cow<'_, str>, to: Cow<'_, str>| {
            // Computed before the replacement, so that nothing large is ever built.
            let times = text.matches(&*from).count();
            taken(
                times
                    .checked_mul(to.len())
                    .and_then(|more| more.checked_add(text.len())),
            )?;
            Ok::<_, Error>(text.replace(&*from, &to))
        },
    );
    env.add_filter(
        "join",
        move |list: &Value, between: Option<Cow<'_, str>>| {
            let mut out = String::new();
            for (at, value) in list.try_iter()?.enumerate() {
                let between = between.as_deref().filter(|_| at > 0).unwrap_or_default();
                let value = format_value(&value);
                // Before `push_str`, for the same reason.
                take(Some(between.len() + value.len()))?;
                out.push_str(between);
                out.push_str(&value);
            }
            Ok::<_, Error>(out)
        },
    );
}

/// Formats a value for a judge: texts unchanged, lists and mappings as JSON.
fn format_value(value: &Value) -> String {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            // JSON for lists and mappings, because a judge reads it more easily than Rust's format.
            serde_json::to_string(value).unwrap_or_else(|_| value.to_string())
        }
        _ => value.to_string(),
    }
}

/// Checks a value of the transcript's author that a system prompt contains. The error is a sentence.
pub fn check_system_prompt_value(text: &str) -> Result<(), &'static str> {
    // A line break could end the instruction and begin one of the transcript's author.
    if text.chars().any(char::is_control) || crate::model::make_visible(text, false) != text {
        return Err("a value in a system_prompt must be one line, without hidden characters");
    }
    if text.chars().count() > MAX_VALUE_CHARS {
        return Err("a value in a system_prompt must be short (200 characters)");
    }
    Ok(())
}

fn build_variables(transcript: &Transcript<'_>) -> serde_json::Value {
    let metadata = transcript.metadata.as_ref();
    // Without metadata every `metadata.x` is missing, which is an error in strict mode.
    let metadata = metadata.map_or_else(
        || serde_json::json!({}),
        |metadata| without_nulls(metadata.parse_value()),
    );
    let tags: Vec<&str> = transcript.tags.iter().map(|tag| &**tag).collect();
    serde_json::json!({"metadata": metadata, "transcript": {"id": &*transcript.id}, "tags": tags})
}

/// Removes null values. `null` counts as absent, as in every param.
fn without_nulls(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(map) => map
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key, without_nulls(value)))
            .collect(),
        other => other,
    }
}

fn classify_error(error: &Error, text: &str) -> TemplateRenderError {
    let place = error.range().and_then(|range: Range<usize>| {
        // For a path, minijinja reports the range of the last step only.
        let before = text.get(..range.start)?;
        let part = |c: char| c.is_alphanumeric() || "_.[]'\"".contains(c);
        let start = before.trim_end_matches(part).len();
        // The name as written is enough; 80 characters bound a computed expression.
        let word = text.get(start..range.end)?.trim();
        (!word.is_empty()).then(|| word.chars().take(80).collect::<String>())
    });
    match (error.kind(), place) {
        (ErrorKind::UndefinedError, Some(name)) => TemplateRenderError::MissingValue { name },
        (ErrorKind::OutOfFuel, _) => TemplateRenderError::TooMuchWork,
        (ErrorKind::WriteFailure, _) => TemplateRenderError::TooLong,
        (_, place) => TemplateRenderError::Failed {
            reason: describe_error(error),
            place,
        },
    }
}

fn describe_error(error: &Error) -> String {
    let mut text = match error.kind() {
        // minijinja's own word, "syntax error", does not say what was expected.
        ErrorKind::SyntaxError => "no valid template".to_owned(),
        kind => kind.to_string(),
    };
    if let Some(detail) = error.detail() {
        let _infallible = write!(text, ": {detail}");
    }
    text
}

/// A buffer of at most [`MAX_OUTPUT_BYTES`].
#[derive(Default)]
struct BoundedBuffer {
    bytes: Vec<u8>,
}

impl std::io::Write for BoundedBuffer {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + more.len() > MAX_OUTPUT_BYTES {
            return Err(std::io::Error::other("too long"));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::JsonText;

    fn transcript() -> Transcript<'static> {
        Transcript {
            id: "t<1>".into(),
            metadata: Some(JsonText::from_value(&json!({
                "topic": "refunds & <b>", "n": 2, "none": null, "list": ["a", 1],
                "deep": {"x": true}, "long": "x\ny"}))),
            tags: vec!["beam".into(), "de".into()],
            ..Transcript::default()
        }
    }

    #[test]
    fn variables_are_filled_in_as_they_are() {
        for (text, expected) in [
            ("{{ metadata.topic }}\n", "refunds & <b>\n"),
            ("{{ transcript.id }}: {{ tags }}", r#"t<1>: ["beam","de"]"#),
            (
                "{{ metadata.list }} {{ metadata.deep }}",
                r#"["a",1] {"x":true}"#,
            ),
            (
                "{% for tag in tags %}{{ tag|upper }} {% endfor %}",
                "BEAM DE ",
            ),
            (
                "{% if metadata.other is defined %}a{% else %}b{% endif %}",
                "b",
            ),
            ("{{ metadata.other|default('no') }}", "no"),
            ("{% raw %}{{ x }}{% endraw %} {{ metadata.n }}", "{{ x }} 2"),
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
            let out = render(text, TextPlacement::Delimited, &transcript());
            assert_eq!(out.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn missing_variable_is_named() {
        for (text, expected) in [
            (
                "{{ metadata.other }}",
                "metadata.other is not in this transcript",
            ),
            (
                "{{ metadata.none }}",
                "metadata.none is not in this transcript",
            ),
            (
                "{{ metadata.deep.y }}",
                "metadata.deep.y is not in this transcript",
            ),
        ] {
            let out = render(text, TextPlacement::Delimited, &transcript());
            let out = out.map_err(|error| error.to_string());
            assert_eq!(out, Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn invalid_template_is_reported_with_its_line() {
        for (text, line, expected) in [
            ("a\n{{ metadata.x", 2, "no valid template"),
            ("{% if tags %}", 1, "no valid template"),
            ("a\n\n{{ metdata.x }}", 3, "did you mean `metadata`?"),
            ("{{ customer }}", 1, "write {{ metadata.customer }}"),
            (
                "{{ transcript.messages }}",
                1,
                "there is no `transcript.messages`",
            ),
            ("{% include 'x' %}", 1, "no valid template"),
        ] {
            let fault = check(text).expect_err(text);
            assert_eq!(fault.line, line, "{text} {}", fault.message);
            assert!(
                fault.message.contains(expected),
                "{text}: {}",
                fault.message
            );
        }
    }

    #[test]
    fn template_work_and_output_are_bounded() {
        let text =
            "{% for a in range(90000) %}{% for b in range(90000) %}x{% endfor %}{% endfor %}";
        let why = render(text, TextPlacement::Delimited, &transcript()).expect_err("fuel");
        assert_eq!(why.to_string(), "the template computes too long");
        let long = "x".repeat(1000);
        for text in [
            format!("{{% for a in range(5000) %}}{long}{{% endfor %}}"),
            format!("{{{{ range(5000)|join('{long}')|length }}}}"),
            format!("{{{{ '{long}'|replace('x', '{long}')|replace('x', '{long}')|length }}}}"),
            format!("{{{{ range(9000)|map('replace', '1', '{long}')|list|length }}}}"),
        ] {
            let why = render(&text, TextPlacement::Delimited, &transcript()).expect_err("size");
            assert!(why.to_string().contains("longer than"), "{text}: {why}");
        }
    }

    #[test]
    fn system_prompt_values_must_be_one_line() {
        let render_text = |text| render(text, TextPlacement::SystemPrompt, &transcript());
        assert_eq!(
            render_text("for\n{{ metadata.n }}").as_deref(),
            Ok("for\n2")
        );
        let why = render_text("{{ metadata.long }}").expect_err("two lines");
        assert!(why.to_string().contains("must be one line"), "{why}");
    }
}
