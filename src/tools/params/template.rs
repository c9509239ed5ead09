//! The part of Go's text/template that tools use: `{{.name}}`, `{{array .name}}`, trimming and comments; in the path and
//! body of a request `{{json .name}}` too.
//!
//! Refuses the rest when the file is read, with the place and the reason, so that no call fails for a template's sake.
//! What is inserted is inserted verbatim: rules and `escape` have done their work before.

use super::rules::{cut, go_number};
use super::{Param, Params, Shape, Type};
use crate::diag::find_nearest;
use crate::model::RawJson;
use crate::tools::json::Node;

/// A text with places for values. A text without `{{` stays as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Plain(String),
    Insert { name: String, how: How },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    /// A text as it is, a number or boolean as Go prints it.
    Plain,
    /// A list's texts with `, ` between them.
    Array,
    /// As JSON.
    Json,
}

impl Template {
    /// Reads a statement, which template parameters are inserted into. The error says where and why.
    pub fn parse(text: &str, params: &Params) -> Result<Self, String> {
        let known: Vec<Known<'_>> = params.template.iter().map(name_and_shape).collect();
        Reader {
            text,
            known: Some(&known),
            bound: &params.bound,
            json: false,
        }
        .read()
    }

    /// Reads the path or body of a request, which these values are inserted into: names, and what is known of what they
    /// hold. `None`: any name may be, for a schema decides.
    pub fn of_request(text: &str, known: Option<&[Known<'_>]>) -> Result<Self, String> {
        Reader {
            text,
            known,
            bound: &[],
            json: true,
        }
        .read()
    }

    /// Whether nothing is inserted.
    pub fn is_plain(&self) -> bool {
        self.pieces.iter().all(|p| matches!(p, Piece::Plain(_)))
    }

    /// Names of what is inserted, in order, each as often as it is.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Insert { name, .. } => Some(name.as_str()),
            Piece::Plain(_) => None,
        })
    }

    /// The text as written, with an `x` for each value: what a value may be, but never a dot or slash.
    pub fn literal(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Plain(text) => text.as_str(),
            Piece::Insert { .. } => "x",
        });
        texts.collect()
    }

    /// Inserts values as [`super::Bound::values`] holds them. A value that is missing or `null` is an error, but where
    /// it is written as JSON.
    pub fn render(&self, values: &RawJson) -> Result<String, String> {
        self.render_with(values, |_, _, text| Ok(text))
    }

    /// The same; each text to be inserted goes through `encode`, which is told what stands before it and the
    /// parameter's name.
    pub fn render_with(
        &self,
        values: &RawJson,
        encode: impl Fn(&str, &str, String) -> Result<String, String>,
    ) -> Result<String, String> {
        let values = match Node::parse(values.get(), &mut Vec::new())? {
            Node::Object(pairs) => pairs,
            other => return Err(format!("values are an object, not {}", other.kind())),
        };
        let null = Node::Plain("null".to_owned());
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(text) => out.push_str(text),
                Piece::Insert { name, how } => {
                    let value = values.iter().find(|(key, _)| key == name).map(|(_, v)| v);
                    let value = value.unwrap_or(&null);
                    if *value == null && *how != How::Json {
                        return Err(missing(name));
                    }
                    let text = encode(&out, name, inserted(name, value, *how)?)?;
                    out.push_str(&text);
                }
            }
        }
        Ok(out)
    }
}

/// A name that may be inserted, and what it holds where that is known.
pub type Known<'a> = (&'a str, Option<&'a Shape>);

fn name_and_shape(param: &Param) -> Known<'_> {
    (&param.name, Some(&param.shape))
}

fn missing(name: &str) -> String {
    format!("the template needs a value for `{name}`, and there is none")
}

fn inserted(name: &str, value: &Node, how: How) -> Result<String, String> {
    match (how, value) {
        (How::Json, value) => Ok(value.compact()),
        (How::Plain, Node::Text(text)) => Ok(text.clone()),
        (How::Plain, Node::Plain(plain)) => Ok(go_number(plain)),
        (How::Array, Node::List(items)) => {
            let texts: Result<Vec<&str>, String> = items
                .iter()
                .map(|item| match item {
                    Node::Text(text) => Ok(text.as_str()),
                    other => Err(format!(
                        "`array .{name}` joins texts, and one is {}",
                        other.kind()
                    )),
                })
                .collect();
            Ok(texts?.join(", "))
        }
        (How::Plain | How::Array, other) => Err(format!(
            "`{name}` cannot be inserted: it is {}",
            other.kind()
        )),
    }
}

struct Reader<'a> {
    text: &'a str,
    /// `None`: any name.
    known: Option<&'a [Known<'a>]>,
    /// Names that would be a plausible mistake.
    bound: &'a [Param],
    json: bool,
}

/// What an action between `{{` and `}}` says.
enum Action {
    Comment,
    Insert { name: String, how: How },
}

impl Reader<'_> {
    fn read(&self) -> Result<Template, String> {
        let mut pieces: Vec<Piece> = Vec::new();
        let (mut at, mut trim) = (0, false);
        loop {
            let rest = &self.text[at..];
            let open = rest.find("{{");
            let mut plain = &rest[..open.unwrap_or(rest.len())];
            if trim {
                plain = plain.trim_start_matches(BLANK);
            }
            let Some(open) = open else {
                push(&mut pieces, plain);
                return Ok(Template { pieces });
            };
            let inside = at + open + 2;
            let body = &self.text[inside..];
            let close = self.close(at + open, body)?;
            let (action, left, right) = self.action(at + open, &body[..close])?;
            if left {
                plain = plain.trim_end_matches(BLANK);
            }
            push(&mut pieces, plain);
            if let Action::Insert { name, how } = action {
                pieces.push(Piece::Insert { name, how });
            }
            (at, trim) = (inside + close + 2, right);
        }
    }

    /// Where the `}}` of an action stands; one inside a comment is part of the comment.
    fn close(&self, at: usize, body: &str) -> Result<usize, String> {
        let head = body.strip_prefix("- ").unwrap_or(body).trim_start();
        let from = match head.strip_prefix("/*") {
            Some(comment) => {
                let end = comment
                    .find("*/")
                    .ok_or_else(|| self.bad(at, "a comment begins here and never ends"))?;
                body.len() - comment.len() + end
            }
            None => 0,
        };
        body[from..]
            .find("}}")
            .map(|close| from + close)
            .ok_or_else(|| self.bad(at, "`{{` without `}}`"))
    }

    fn action(&self, at: usize, body: &str) -> Result<(Action, bool, bool), String> {
        let (body, left) = match body.strip_prefix('-') {
            Some(rest) if rest.starts_with(BLANK) => (rest, true),
            _ => (body, false),
        };
        let (body, right) = match body.strip_suffix('-') {
            Some(rest) if rest.ends_with(BLANK) => (rest, true),
            _ => (body, false),
        };
        let body = body.trim_matches(BLANK);
        if body.starts_with("/*") {
            return if body.ends_with("*/") {
                Ok((Action::Comment, left, right))
            } else {
                Err(self.bad(at, "a comment stands alone in its braces"))
            };
        }
        let words: Vec<&str> = body.split(BLANK).filter(|w| !w.is_empty()).collect();
        let (how, field) = match words.as_slice() {
            [] => return Err(self.bad(at, "nothing stands between the braces")),
            [field] if field.starts_with('.') => (How::Plain, *field),
            ["array", field] if field.starts_with('.') => (How::Array, *field),
            ["json", field] | [field, "|", "json"] if self.json && field.starts_with('.') => {
                (How::Json, *field)
            }
            _ => return Err(self.bad(at, &self.refusal(body))),
        };
        let name = &field[1..];
        let is_name = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            return Err(self.bad(at, &self.refusal(body)));
        }
        self.check(at, name, how)?;
        let name = name.to_owned();
        Ok((Action::Insert { name, how }, left, right))
    }

    fn refusal(&self, body: &str) -> String {
        let known = if self.json {
            "`{{.name}}`, `{{array .name}}` and `{{json .name}}`"
        } else {
            "`{{.name}}` and `{{array .name}}`"
        };
        format!("`{{{{{}}}}}` is not supported; {known} are", cut(body))
    }

    fn check(&self, at: usize, name: &str, how: How) -> Result<(), String> {
        let Some(known) = self.known else {
            return Ok(());
        };
        let Some((_, shape)) = known.iter().find(|(known, _)| *known == name) else {
            if self.bound.iter().any(|param| param.name == name) {
                let why = format!(
                    "`{name}` is bound, not inserted: declare it under templateParameters, or use a placeholder"
                );
                return Err(self.bad(at, &why));
            }
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let why = match find_nearest(name, names.iter().copied()) {
                Some(near) => format!("unknown name `{name}`; did you mean `{near}`?"),
                None if names.is_empty() => {
                    format!("unknown name `{name}`: there are no parameters to insert")
                }
                None => format!("unknown name `{name}`; there are {}", names.join(", ")),
            };
            return Err(self.bad(at, &why));
        };
        let Some(shape) = shape else {
            return Ok(());
        };
        let why = match (how, shape.of()) {
            (How::Array, Type::Array(items)) if matches!(items.of(), Type::Text) => return Ok(()),
            (How::Array, Type::Array(_)) => {
                format!("`array .{name}` joins texts, and `{name}` holds other items")
            }
            (How::Array, _) => {
                format!("`array` is for parameters of type array; write `{{{{.{name}}}}}`")
            }
            (How::Plain, Type::Array(_) | Type::Map(_)) if self.json => {
                format!("`{name}` is no single value; write `{{{{json .{name}}}}}`")
            }
            (How::Plain, Type::Array(_)) => {
                format!("`{name}` is an array; write `{{{{array .{name}}}}}`")
            }
            (How::Plain, Type::Map(_)) => format!("`{name}` is a map and cannot be inserted"),
            (How::Plain | How::Json, _) => return Ok(()),
        };
        Err(self.bad(at, &why))
    }

    fn bad(&self, at: usize, why: &str) -> String {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |n| n + 1);
        let column = before[start..].chars().count() + 1;
        format!("line {line}, column {column} of it: {why}")
    }
}

/// What Go's trimming takes.
const BLANK: [char; 4] = [' ', '\t', '\r', '\n'];

fn push(pieces: &mut Vec<Piece>, plain: &str) {
    if plain.is_empty() {
        return;
    }
    match pieces.last_mut() {
        Some(Piece::Plain(text)) => text.push_str(plain),
        _ => pieces.push(Piece::Plain(plain.to_owned())),
    }
}
