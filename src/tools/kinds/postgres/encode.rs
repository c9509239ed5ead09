//! The conversion of JSON to a parameter's text. The server parses it like a literal of the expected type and reports
//! errors.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::types::{Format, IsNull, Kind, ToSql, Type, to_sql_checked};

use crate::tools::json::JsonNode;

/// A JSON value for a parameter of any type.
#[derive(Debug)]
pub(super) struct PostgresLiteral<'a>(pub(super) &'a str);

impl ToSql for PostgresLiteral<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let node = JsonNode::parse(self.0, &mut Vec::new())?;
        Ok(match to_literal_text(ty, &node) {
            // A JSON null is an SQL null, whatever the type is.
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
        // The text format lets the server convert values, as it does for literals in a statement.
        Format::Text
    }

    to_sql_checked!();
}

/// Returns the literal; `None` is null.
fn to_literal_text(ty: &Type, node: &JsonNode) -> Option<String> {
    match (ty.kind(), node) {
        (_, JsonNode::Literal(word)) if word == "null" => None,
        (Kind::Domain(base), _) => to_literal_text(base, node),
        (Kind::Array(of), JsonNode::List(items)) => Some(to_array_literal(of, items)),
        (_, JsonNode::Text(text)) => Some(text.clone()),
        (_, JsonNode::Literal(word)) => Some(word.clone()),
        (_, JsonNode::List(_) | JsonNode::Object(_)) => Some(node.to_compact_json()),
    }
}

/// Formats an array literal: `{"a",NULL,{1,2}}`.
fn to_array_literal(of: &Type, items: &[JsonNode]) -> String {
    let mut out = String::from("{");
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        // A nested list is another dimension, unless the items are JSON themselves.
        let is_json = [Type::JSON, Type::JSONB].contains(of);
        match (item, to_literal_text(of, item)) {
            (JsonNode::List(inner), _) if !is_json => out.push_str(&to_array_literal(of, inner)),
            (_, None) => out.push_str("NULL"),
            (_, Some(text)) => {
                out.push('"');
                // The array syntax of PostgreSQL quotes with double quotes and escapes with backslashes.
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
        to_literal_text(ty, &JsonNode::parse(json, &mut Vec::new()).expect("JSON"))
    }

    #[test]
    fn values_become_literals_of_the_parameter_type() {
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
