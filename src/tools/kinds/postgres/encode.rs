//! JSON to a parameter's text: the server reads it as it reads a literal of the type it wants, and says what is wrong.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::tools::json::Node;

/// A value as JSON text, for a parameter of any type.
#[derive(Debug)]
pub(super) struct Literal<'a>(pub(super) &'a str);

impl ToSql for Literal<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let node = Node::parse(self.0, &mut Vec::new())?;
        Ok(match text(ty, &node) {
            None => IsNull::Yes,
            Some(text) => {
                out.extend_from_slice(text.as_bytes());
                IsNull::No
            }
        })
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

/// The literal; `None` is null.
fn text(ty: &Type, node: &Node) -> Option<String> {
    match (ty.kind(), node) {
        (_, Node::Plain(word)) if word == "null" => None,
        (Kind::Domain(base), _) => text(base, node),
        (Kind::Array(of), Node::List(items)) => Some(list(of, items)),
        (_, Node::Text(text)) => Some(text.clone()),
        (_, Node::Plain(word)) => Some(word.clone()),
        (_, Node::List(_) | Node::Object(_)) => Some(node.compact()),
    }
}

/// `{"a",NULL,{1,2}}`
fn list(of: &Type, items: &[Node]) -> String {
    let mut out = String::from("{");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        // A list in a list is another dimension, except where the items themselves are JSON.
        let is_json = [Type::JSON, Type::JSONB].contains(of);
        match (item, text(of, item)) {
            (Node::List(inner), _) if !is_json => out.push_str(&list(of, inner)),
            (_, None) => out.push_str("NULL"),
            (_, Some(text)) => {
                out.push('"');
                out.push_str(&text.replace('\\', "\\\\").replace('"', "\\\""));
                out.push('"');
            }
        }
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(ty: &Type, json: &str) -> Option<String> {
        text(ty, &Node::parse(json, &mut Vec::new()).expect("JSON"))
    }

    #[test]
    fn values_are_literals_of_the_type_that_is_wanted() {
        for (ty, json, expected) in [
            (Type::INT4, "5", Some("5")),
            (
                Type::NUMERIC,
                "12345678901234567890.10",
                Some("12345678901234567890.10"),
            ),
            (Type::TEXT, "\"it's\"", Some("it's")),
            (Type::TEXT, "5", Some("5")),
            (Type::BOOL, "true", Some("true")),
            (Type::TEXT, "null", None),
            (
                Type::JSONB,
                "{\"b\": 1, \"a\": [1.0]}",
                Some("{\"b\":1,\"a\":[1.0]}"),
            ),
            (Type::JSONB, "[1, 2]", Some("[1,2]")),
            (Type::JSONB, "\"{}\"", Some("{}")),
            (Type::INT4_ARRAY, "[1, null, 3]", Some("{\"1\",NULL,\"3\"}")),
            (
                Type::INT4_ARRAY,
                "[[1, 2], [3, 4]]",
                Some("{{\"1\",\"2\"},{\"3\",\"4\"}}"),
            ),
            (Type::INT4_ARRAY, "[]", Some("{}")),
            (
                Type::TEXT_ARRAY,
                "[\"a,b\", \"c\\\"}\", \"\\\\\", \"NULL\", \"\"]",
                Some("{\"a,b\",\"c\\\"}\",\"\\\\\",\"NULL\",\"\"}"),
            ),
            (
                Type::JSONB_ARRAY,
                "[{\"a\": \"b\"}, [1]]",
                Some("{\"{\\\"a\\\":\\\"b\\\"}\",\"[1]\"}"),
            ),
        ] {
            assert_eq!(literal(&ty, json).as_deref(), expected, "{ty} {json}");
        }
    }
}
