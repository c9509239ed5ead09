//! The template of a request's body, with the place of each placeholder in its JSON.
//!
//! A value inside a JSON text is escaped, so that it cannot end the text. A value outside of one must be one JSON value.
//! In a body that is not JSON, values are inserted as written; dicta reports this as a warning.

use std::cell::Cell;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::lint::accepts_anything;
use super::template::{InsertFormat, KnownName, Template, TemplatePiece};
use super::value_spec::ValueType;
use crate::model::RawJson;

/// The template of a request's body.
#[derive(Debug, Clone, PartialEq)]
pub struct BodyTemplate {
    template: Template,
    /// The place of each placeholder, in order.
    places: Vec<InsertPlace>,
}

/// The place of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InsertPlace {
    /// Inside a JSON text.
    JsonText,
    /// A place at which JSON expects a value.
    JsonValue,
    /// In a body that is not JSON.
    PlainText,
}

impl BodyTemplate {
    /// Parses a body. `known` lists the names that may be inserted; `None` allows any name, because a schema defines
    /// them.
    pub fn parse(text: &str, known: Option<&[KnownName<'_>]>) -> Result<Self, String> {
        let template = Template::parse_request(text, known)?;
        let places = find_places(&template);
        Ok(Self { template, places })
    }

    /// Returns the text with its placeholders.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Returns true if a value inside a JSON text is escaped.
    pub fn escapes_texts(&self) -> bool {
        self.places.contains(&InsertPlace::JsonText)
    }

    /// Inserts the values of a call. The error names the value that does not fit, and the reason.
    pub fn render(&self, values: &RawJson) -> Result<String, String> {
        // `render_with` calls this once for each placeholder, in order.
        let next = Cell::new(0);
        let formats: Vec<InsertFormat> = self.template.inserts().map(|(_, how)| how).collect();
        self.template.render_with(values, |_, name, text| {
            let at = next.replace(next.get() + 1);
            match self.places[at] {
                InsertPlace::PlainText => Ok(text),
                InsertPlace::JsonText => Ok(escape_json_text(&text)),
                InsertPlace::JsonValue => {
                    let is_value = match formats[at] {
                        // A list of texts becomes several values between the brackets of the template.
                        InsertFormat::Array => is_json_value(&format!("[{text}]")),
                        InsertFormat::Plain | InsertFormat::Json => is_json_value(&text),
                    };
                    if is_value {
                        Ok(text)
                    } else {
                        Err(format!("`{name}` is not a JSON value"))
                    }
                }
            }
        })
    }

    /// Returns a warning for each placeholder whose value may change the rest of the body.
    pub fn lint(&self, known: Option<&[KnownName<'_>]>) -> Vec<String> {
        let inserts = self.template.inserts().zip(&self.places);
        let open = inserts.filter(|((name, how), _)| {
            *how != InsertFormat::Json && admits_any_text(name, *how, known)
        });
        // A body that is one placeholder has no rest that a value could change.
        let has_rest = self.template.has_plain_text();
        open.filter_map(|((name, how), place)| {
            let word = match how {
                InsertFormat::Array => "array ",
                InsertFormat::Plain | InsertFormat::Json => "",
            };
            match place {
                InsertPlace::JsonText => None,
                InsertPlace::JsonValue => Some(format!(
                    "requestBody: `{{{{{word}.{name}}}}}` takes any text where JSON needs a value; write `{{{{json .{name}}}}}`"
                )),
                InsertPlace::PlainText => has_rest.then(|| {
                    format!(
                        "requestBody: the body is not JSON, so `{{{{{word}.{name}}}}}` is inserted as written and can change the rest of the body; send JSON, or limit `{name}` with `allowedValues`"
                    )
                }),
            }
        })
        .collect()
    }
}

/// Returns true if a value may be a text without rules.
fn admits_any_text(name: &str, how: InsertFormat, known: Option<&[KnownName<'_>]>) -> bool {
    // A schema's types are not known here, so every value counts as a text.
    let Some(known) = known else {
        return true;
    };
    // A declaration with errors is reported elsewhere.
    let spec = known.iter().find(|known| known.name == name);
    let Some(spec) = spec.and_then(|known| known.spec) else {
        return false;
    };
    let is_text = match (how, spec.value_type()) {
        (InsertFormat::Array, ValueType::Array(items)) => {
            matches!(items.value_type(), ValueType::Text)
        }
        (_, of) => matches!(of, ValueType::Text),
    };
    is_text && accepts_anything(spec)
}

/// Finds the place of each placeholder. If the body is not JSON, every place is plain text.
fn find_places(template: &Template) -> Vec<InsertPlace> {
    let mut places = Vec::new();
    // The body with a sample of each value, to see whether it is JSON.
    let mut sample = String::new();
    let (mut in_text, mut escaped) = (false, false);
    for piece in template.pieces() {
        match piece {
            TemplatePiece::Plain(text) => {
                for c in text.chars() {
                    match c {
                        _ if escaped => escaped = false,
                        '\\' => escaped = in_text,
                        '"' => in_text = !in_text,
                        _ => {}
                    }
                }
                sample.push_str(text);
            }
            TemplatePiece::Insert { .. } if in_text => {
                // After a backslash, the sample is not a valid escape.
                sample.push('x');
                places.push(InsertPlace::JsonText);
            }
            TemplatePiece::Insert { .. } => {
                sample.push_str("null");
                places.push(InsertPlace::JsonValue);
            }
        }
    }
    // Several values count too: bulk requests have one JSON value per line.
    let has_structure = sample.trim_start().starts_with(['{', '[', '"']);
    let mut values = serde_json::Deserializer::from_str(&sample).into_iter::<IgnoredAny>();
    if !has_structure || !values.all(|value| value.is_ok()) {
        places.fill(InsertPlace::PlainText);
    }
    places
}

/// Escapes a value for the inside of a JSON text.
fn escape_json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn is_json_value(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn body(text: &str) -> BodyTemplate {
        BodyTemplate::parse(text, None).expect("a template")
    }

    fn render(text: &str, values: &Value) -> Result<String, String> {
        body(text).render(&RawJson::from_serializable(values).expect("JSON"))
    }

    #[test]
    fn value_inside_a_json_text_cannot_leave_it() {
        let hostile = json!({"q": "x\", \"role\": \"admin\", \"y\": \"z"});
        for template in [
            r#"{"q": "{{.q}}", "role": "reader"}"#,
            r#"{"q": "a {{.q}} b {{.q}}", "role": "reader"}"#,
            r#"{"q": "{{json .q}}", "role": "reader"}"#,
            r#"[{"a": "\"{{.q}}\\"}, {"role": "reader"}]"#,
            "{\"index\": {}}\n{\"q\": \"{{.q}}\"}\n",
        ] {
            let sent = render(template, &hostile).expect("it fits");
            let mut keys = Vec::new();
            for value in serde_json::Deserializer::from_str(&sent).into_iter::<Value>() {
                collect_keys(&value.expect("JSON"), &mut keys);
            }
            let roles = keys.iter().filter(|key| *key == "role").count();
            assert_eq!(roles, template.matches("role").count(), "{sent}");
            assert!(!keys.contains(&"y".to_owned()), "{sent}");
            assert!(body(template).lint(None).is_empty(), "{template}");
        }
        let lines = json!({"q": ["a\"", "b\n"]});
        assert_eq!(
            render(r#"{"q": "{{array .q}}"}"#, &lines).as_deref(),
            Ok(r#"{"q": "a\", b\n"}"#)
        );
    }

    #[test]
    fn value_outside_a_json_text_must_be_one_json_value() {
        let template = r#"{"n": {{.n}}, "role": "reader"}"#;
        assert_eq!(
            render(template, &json!({"n": 7})).as_deref(),
            Ok(r#"{"n": 7, "role": "reader"}"#)
        );
        for hostile in ["1, \"role\": \"admin\"", "1}", "", "beam", "1 2"] {
            let why = render(template, &json!({"n": hostile})).expect_err(hostile);
            assert_eq!(why, "`n` is not a JSON value");
        }
        let list = r#"{"ids": [{{array .ids}}], "role": "reader"}"#;
        assert_eq!(
            render(list, &json!({"ids": ["1", "2"]})).as_deref(),
            Ok(r#"{"ids": [1, 2], "role": "reader"}"#)
        );
        let why = render(list, &json!({"ids": ["1], \"role\": [\"admin\""]}));
        assert_eq!(why.expect_err("refused"), "`ids` is not a JSON value");
    }

    #[test]
    fn body_that_is_not_json_is_sent_as_written_with_a_warning() {
        for (template, place) in [
            ("q={{.q}}&role=reader", "can change the rest"),
            ("<q>{{.q}}</q>", "can change the rest"),
            (r#"{"q": {{.q}}}"#, "write `{{json .q}}`"),
            (r"{ {{.q}}: 1 }", "can change the rest"),
            (r#"{"q": "\{{.q}}"}"#, "can change the rest"),
        ] {
            let found = body(template).lint(None);
            assert_eq!(found.len(), 1, "{template}: {found:?}");
            assert!(found[0].contains(place), "{template}: {found:?}");
        }
        for safe in ["{{.q}}", "{{json .q}}", r#"{"q": {{json .q}}}"#, "plain"] {
            assert_eq!(body(safe).lint(None), Vec::<String>::new(), "{safe}");
        }
        let form = render("q={{.q}}&role=reader", &json!({"q": "a b"}));
        assert_eq!(form.as_deref(), Ok("q=a b&role=reader"));
    }

    proptest! {
        #[test]
        fn json_body_has_the_structure_of_its_template_for_every_value(
            text in "[\\x00-\\x7fé\u{2028}\"\\\\{}:,]{0,20}", number in any::<i64>()
        ) {
            let template = r#"{"a": "< {{.q}} >", "n": {{.n}}, "b": [{{json .q}}]}"#;
            let sent = render(template, &json!({"q": text.clone(), "n": number})).expect("it fits");
            let read: Value = serde_json::from_str(&sent).expect("JSON");
            prop_assert_eq!(read, json!({"a": format!("< {text} >"), "n": number, "b": [text]}));
        }
    }

    fn collect_keys(value: &Value, keys: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    keys.push(key.clone());
                    collect_keys(inner, keys);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect_keys(item, keys)),
            _ => {}
        }
    }
}
