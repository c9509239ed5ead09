//! The part of Go's text/template that tools use: `{{.name}}`, `{{array .name}}`, trimming and comments.
//!
//! The path and body of a request also support `{{json .name}}`. Anything else is an error when the file is read, so
//! that no call fails because of a template. Values are inserted verbatim, because rules and `escape` were applied
//! before. [`super::BodyTemplate`] escapes the values inside the texts of a JSON body.

use super::value_filter::{format_go_number, truncate_value_text};
use super::{ToolParam, ToolParams, ValueSpec, ValueType};
use crate::diag::find_nearest;
use crate::model::RawJson;
use crate::tools::json::JsonNode;

/// A text with placeholders. A text without `{{` is unchanged.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    pieces: Vec<TemplatePiece>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TemplatePiece {
    Plain(String),
    Insert { name: String, how: InsertFormat },
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum InsertFormat {
    /// A text as it is, a number or boolean as Go prints it.
    Plain,
    /// The texts of a list, joined with `, `.
    Array,
    /// A JSON value.
    Json,
}

impl Template {
    /// Parses a statement into which template parameters are inserted. The error states the place and the reason.
    pub fn parse(text: &str, params: &ToolParams) -> Result<Self, String> {
        let known: Vec<KnownName<'_>> = params.template.iter().map(known_name_of).collect();
        TemplateParser {
            text,
            // Only template parameters: a bound parameter in the text would be a different mistake.
            known: Some(&known),
            bound_params: &params.bound,
            allows_json: false,
        }
        .parse_template()
    }

    /// Parses the path or body of a request. `known` lists the names that may be inserted; `None` allows any name,
    /// because a schema defines them.
    pub fn parse_request(text: &str, known: Option<&[KnownName<'_>]>) -> Result<Self, String> {
        TemplateParser {
            text,
            known,
            bound_params: &[],
            allows_json: true,
        }
        .parse_template()
    }

    /// Returns true if the template inserts no value.
    pub fn is_plain(&self) -> bool {
        self.pieces
            .iter()
            .all(|p| matches!(p, TemplatePiece::Plain(_)))
    }

    /// Iterates over the inserted names in order, with repetitions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Insert { name, .. } => Some(name.as_str()),
            TemplatePiece::Plain(_) => None,
        })
    }

    /// Returns true if the template has text other than blanks around its values.
    pub(super) fn has_plain_text(&self) -> bool {
        let plain = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Plain(text) if !text.trim().is_empty());
        self.pieces.iter().any(plain)
    }

    /// Returns the parts of the template in order.
    pub(super) fn pieces(&self) -> &[TemplatePiece] {
        &self.pieces
    }

    /// Iterates over the inserted names and their formats in order, with repetitions.
    pub(super) fn inserts(&self) -> impl Iterator<Item = (&str, InsertFormat)> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Insert { name, how } => Some((name.as_str(), *how)),
            TemplatePiece::Plain(_) => None,
        })
    }

    /// Returns the text with an `x` for each value. A value may be other text, but never a dot or slash.
    pub fn sample_text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            TemplatePiece::Plain(text) => text.as_str(),
            TemplatePiece::Insert { .. } => "x",
        });
        texts.collect()
    }

    /// Inserts values in the form of [`super::BoundParams::values`]. A missing value or `null` is an error, except
    /// for `json`.
    pub fn render(&self, values: &RawJson) -> Result<String, String> {
        self.render_with(values, |_, _, text| Ok(text))
    }

    /// Works like [`Self::render`]. `encode` converts each inserted text; it receives the text before it and the
    /// parameter's name.
    pub fn render_with(
        &self,
        values: &RawJson,
        encode: impl Fn(&str, &str, String) -> Result<String, String>,
    ) -> Result<String, String> {
        let values = match JsonNode::parse(values.get(), &mut Vec::new())? {
            JsonNode::Object(pairs) => pairs,
            other => {
                return Err(format!(
                    "values are an object, not {}",
                    other.describe_type()
                ));
            }
        };
        let null = JsonNode::Literal("null".to_owned());
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Plain(text) => out.push_str(text),
                TemplatePiece::Insert { name, how } => {
                    let value = values.iter().find(|(key, _)| key == name).map(|(_, v)| v);
                    let value = value.unwrap_or(&null);
                    if *value == null && *how != InsertFormat::Json {
                        return Err(explain_missing_value(name));
                    }
                    let text = encode(&out, name, format_inserted(name, value, *how)?)?;
                    out.push_str(&text);
                }
            }
        }
        Ok(out)
    }
}

/// A name that a template may insert.
#[derive(Debug, Clone, Copy)]
pub struct KnownName<'a> {
    /// The name.
    pub name: &'a str,
    /// The type of the value; `None` if the file does not declare it.
    pub spec: Option<&'a ValueSpec>,
}

fn known_name_of(param: &ToolParam) -> KnownName<'_> {
    KnownName {
        name: &param.name,
        spec: Some(&param.spec),
    }
}

fn explain_missing_value(name: &str) -> String {
    format!("the template needs a value for `{name}`, and there is none")
}

fn format_inserted(name: &str, value: &JsonNode, how: InsertFormat) -> Result<String, String> {
    // A model's value is inserted in the form in which Go's templates print it.
    match (how, value) {
        (InsertFormat::Json, value) => Ok(value.to_compact_json()),
        (InsertFormat::Plain, JsonNode::Text(text)) => Ok(text.clone()),
        (InsertFormat::Plain, JsonNode::Literal(plain)) => Ok(format_go_number(plain)),
        (InsertFormat::Array, JsonNode::List(items)) => {
            let texts: Result<Vec<&str>, String> = items
                .iter()
                .map(|item| match item {
                    JsonNode::Text(text) => Ok(text.as_str()),
                    other => Err(format!(
                        "`array .{name}` joins texts, and one is {}",
                        other.describe_type()
                    )),
                })
                .collect();
            Ok(texts?.join(", "))
        }
        (InsertFormat::Plain | InsertFormat::Array, other) => Err(format!(
            "`{name}` cannot be inserted: it is {}",
            other.describe_type()
        )),
    }
}

struct TemplateParser<'a> {
    text: &'a str,
    /// The known names; `None` allows any name.
    known: Option<&'a [KnownName<'a>]>,
    /// Other parameters of the tool, for error messages about a plausible confusion.
    bound_params: &'a [ToolParam],
    allows_json: bool,
}

/// The content of an action between `{{` and `}}`.
enum TemplateAction {
    Comment,
    Insert { name: String, how: InsertFormat },
}

impl TemplateParser<'_> {
    fn parse_template(&self) -> Result<Template, String> {
        // The loop follows Go's `text/template`: plain text, then an action in braces.
        let mut pieces: Vec<TemplatePiece> = Vec::new();
        let (mut at, mut trim) = (0, false);
        loop {
            let rest = &self.text[at..];
            let open = rest.find("{{");
            let mut plain = &rest[..open.unwrap_or(rest.len())];
            if trim {
                plain = plain.trim_start_matches(GO_TRIM_CHARS);
            }
            let Some(open) = open else {
                push_plain_text(&mut pieces, plain);
                return Ok(Template { pieces });
            };
            let inside = at + open + 2;
            let body = &self.text[inside..];
            let close = self.find_action_end(at + open, body)?;
            let (action, left, right) = self.parse_action(at + open, &body[..close])?;
            // `{{-` removes the white space before the action, and `-}}` that after it.
            if left {
                plain = plain.trim_end_matches(GO_TRIM_CHARS);
            }
            push_plain_text(&mut pieces, plain);
            if let TemplateAction::Insert { name, how } = action {
                pieces.push(TemplatePiece::Insert { name, how });
            }
            (at, trim) = (inside + close + 2, right);
        }
    }

    /// Finds the `}}` of an action; one inside a comment belongs to the comment.
    fn find_action_end(&self, at: usize, body: &str) -> Result<usize, String> {
        // Only a comment may contain closing braces.
        let head = body.strip_prefix("- ").unwrap_or(body).trim_start();
        let from = match head.strip_prefix("/*") {
            Some(comment) => {
                let end = comment
                    .find("*/")
                    .ok_or_else(|| self.error_at(at, "a comment begins here and never ends"))?;
                body.len() - comment.len() + end
            }
            None => 0,
        };
        body[from..]
            .find("}}")
            .map(|close| from + close)
            .ok_or_else(|| self.error_at(at, "`{{` without `}}`"))
    }

    fn parse_action(&self, at: usize, body: &str) -> Result<(TemplateAction, bool, bool), String> {
        let (body, left) = match body.strip_prefix('-') {
            // A minus without a space belongs to the action, as in Go.
            Some(rest) if rest.starts_with(GO_TRIM_CHARS) => (rest, true),
            _ => (body, false),
        };
        let (body, right) = match body.strip_suffix('-') {
            Some(rest) if rest.ends_with(GO_TRIM_CHARS) => (rest, true),
            _ => (body, false),
        };
        let body = body.trim_matches(GO_TRIM_CHARS);
        if body.starts_with("/*") {
            return if body.ends_with("*/") {
                Ok((TemplateAction::Comment, left, right))
            } else {
                Err(self.error_at(at, "a comment must be alone in its braces"))
            };
        }
        let words: Vec<&str> = body
            .split(GO_TRIM_CHARS)
            .filter(|w| !w.is_empty())
            .collect();
        let (how, field) = match words.as_slice() {
            [] => return Err(self.error_at(at, "there is nothing between the braces")),
            [field] if field.starts_with('.') => (InsertFormat::Plain, *field),
            ["array", field] if field.starts_with('.') => (InsertFormat::Array, *field),
            ["json", field] | [field, "|", "json"]
                if self.allows_json && field.starts_with('.') =>
            {
                (InsertFormat::Json, *field)
            }
            _ => return Err(self.error_at(at, &self.explain_unsupported(body))),
        };
        // Go requires a name after the dot; a digit at its beginning is a number.
        let name = &field[1..];
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            return Err(self.error_at(at, &self.explain_unsupported(body)));
        }
        self.check_insert(at, name, how)?;
        let name = name.to_owned();
        Ok((TemplateAction::Insert { name, how }, left, right))
    }

    fn explain_unsupported(&self, body: &str) -> String {
        let known = if self.allows_json {
            "`{{.name}}`, `{{array .name}}` and `{{json .name}}`"
        } else {
            "`{{.name}}` and `{{array .name}}`"
        };
        format!(
            "`{{{{{}}}}}` is not supported; {known} are",
            truncate_value_text(body)
        )
    }

    fn check_insert(&self, at: usize, name: &str, how: InsertFormat) -> Result<(), String> {
        // A schema declares the arguments, so any name may exist.
        let Some(known) = self.known else {
            return Ok(());
        };
        let Some(KnownName { spec: shape, .. }) = known.iter().find(|known| known.name == name)
        else {
            if self.bound_params.iter().any(|param| param.name == name) {
                let why = format!(
                    "`{name}` is bound, not inserted: declare it under templateParameters, or use a placeholder"
                );
                return Err(self.error_at(at, &why));
            }
            let names: Vec<&str> = known.iter().map(|known| known.name).collect();
            let why = match find_nearest(name, names.iter().copied()) {
                Some(near) => format!("unknown name `{name}`; did you mean `{near}`?"),
                None if names.is_empty() => {
                    format!("unknown name `{name}`: there are no parameters to insert")
                }
                None => format!("unknown name `{name}`; there are {}", names.join(", ")),
            };
            return Err(self.error_at(at, &why));
        };
        let Some(shape) = shape else {
            return Ok(());
        };
        // Each combination that cannot be printed gets a message with the right form.
        let why = match (how, shape.value_type()) {
            (InsertFormat::Array, ValueType::Array(items))
                if matches!(items.value_type(), ValueType::Text) =>
            {
                return Ok(());
            }
            (InsertFormat::Array, ValueType::Array(_)) => {
                format!("`array .{name}` joins texts, and `{name}` holds other items")
            }
            (InsertFormat::Array, _) => {
                format!("`array` is for parameters of type array; write `{{{{.{name}}}}}`")
            }
            (InsertFormat::Plain, ValueType::Array(_) | ValueType::Map(_)) if self.allows_json => {
                format!("`{name}` is not a single value; write `{{{{json .{name}}}}}`")
            }
            (InsertFormat::Plain, ValueType::Array(_)) => {
                format!("`{name}` is an array; write `{{{{array .{name}}}}}`")
            }
            (InsertFormat::Plain, ValueType::Map(_)) => {
                format!("`{name}` is a map and cannot be inserted")
            }
            (InsertFormat::Plain | InsertFormat::Json, _) => return Ok(()),
        };
        Err(self.error_at(at, &why))
    }

    fn error_at(&self, at: usize, why: &str) -> String {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let column = before[start..].chars().count() + 1;
        format!("line {line}, column {column} of it: {why}")
    }
}

/// The characters that Go's trim markers remove.
const GO_TRIM_CHARS: [char; 4] = [' ', '\t', '\r', '\n'];

fn push_plain_text(pieces: &mut Vec<TemplatePiece>, plain: &str) {
    if plain.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(TemplatePiece::Plain(text)) => text.push_str(plain),
        _ => pieces.push(TemplatePiece::Plain(plain.to_owned())),
    }
}
