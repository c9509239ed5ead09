//! The reader of a label's fields.
//!
//! Written by hand, because `#[serde(flatten)]` makes a copy of every field before it reads the first one. That doubles the
//! time of a file with 100,000 labels.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

use super::Label;

/// The keys of a label that dicta reads.
pub const LABEL_KEYS: [&str; 16] = [
    "transcript",
    "rubric",
    "eval",
    "passed",
    "score",
    "by",
    "at",
    "note",
    "blind",
    "seen",
    "transcript_digest",
    "question_digest",
    "sample",
    "earlier",
    "cause",
    "clause",
];

/// A key of a label.
enum LabelKey {
    /// The position in [`LABEL_KEYS`].
    Known(usize),
    /// The key of another program.
    Other(String),
}

impl<'de> Deserialize<'de> for LabelKey {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = LabelKey;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the key of a label")
            }

            fn visit_str<E: de::Error>(self, key: &str) -> Result<LabelKey, E> {
                let known = LABEL_KEYS.iter().position(|name| *name == key);
                Ok(known.map_or_else(|| LabelKey::Other(key.to_owned()), LabelKey::Known))
            }
        }

        from.deserialize_identifier(KeyVisitor)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct LabelVisitor;

        impl<'de> Visitor<'de> for LabelVisitor {
            type Value = Label;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a label, which is an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, fields: M) -> Result<Label, M::Error> {
                read_fields(fields)
            }
        }

        from.deserialize_map(LabelVisitor)
    }
}

fn read_fields<'de, M: MapAccess<'de>>(mut fields: M) -> Result<Label, M::Error> {
    let mut seen = [false; LABEL_KEYS.len()];
    let mut label = Label::default();
    let mut other = Map::new();
    while let Some(key) = fields.next_key::<LabelKey>()? {
        let known = match key {
            LabelKey::Known(known) => known,
            LabelKey::Other(key) => {
                other.insert(key, fields.next_value::<Value>()?);
                continue;
            }
        };
        let Some(is_seen) = seen.get_mut(known) else {
            fields.next_value::<IgnoredAny>()?;
            continue;
        };
        let key = LABEL_KEYS[known];
        if std::mem::replace(is_seen, true) {
            return Err(de::Error::duplicate_field(key));
        }
        match key {
            "transcript" => label.transcript = fields.next_value()?,
            "rubric" => label.rubric = fields.next_value()?,
            "eval" => label.eval = fields.next_value()?,
            "passed" => label.passed = fields.next_value()?,
            "score" => label.score = fields.next_value()?,
            "by" => label.by = fields.next_value()?,
            "at" => label.at = fields.next_value()?,
            "note" => label.note = fields.next_value()?,
            "blind" => label.blind = fields.next_value()?,
            "seen" => label.seen = fields.next_value()?,
            "transcript_digest" => label.transcript_digest = fields.next_value()?,
            "question_digest" => label.question_digest = fields.next_value()?,
            "sample" => label.sample = fields.next_value()?,
            "earlier" => label.earlier = fields.next_value()?,
            "cause" => label.cause = fields.next_value()?,
            _ => label.clause = fields.next_value()?,
        }
    }
    // A verdict may be null, so its absence is not an undecided answer.
    for required in ["transcript", "eval", "passed"] {
        let known = LABEL_KEYS.iter().position(|name| *name == required);
        if !known.is_some_and(|known| seen[known]) {
            return Err(de::Error::missing_field(required));
        }
    }
    label.other = other;
    Ok(label)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_of_a_label_is_written_and_read_again() {
        let written = json!({
            "transcript": "t", "rubric": "r", "eval": "e", "passed": null, "score": 0.5, "by": "ann",
            "at": "2026-01-01T00:00:00Z", "note": "why", "blind": true, "seen": "this_judge",
            "transcript_digest": "aa", "question_digest": "bb",
            "sample": {"plan": "random", "p": 0.5},
            "earlier": [{"question_digest": "cc", "passed": false}],
            "cause": "rubric", "clause": "the second", "of_another_program": [1, 2],
        });
        // Each key that dicta reads is in the example, and nothing else but the one of another program.
        let keys = written.as_object().expect("an object").keys();
        let known: Vec<&str> = keys
            .map(String::as_str)
            .filter(|key| *key != "of_another_program")
            .collect();
        assert_eq!(known, LABEL_KEYS);
        let label: Label = serde_json::from_value(written.clone()).expect("a label");
        assert_eq!(
            label.other,
            *json!({"of_another_program": [1, 2]})
                .as_object()
                .expect("an object")
        );
        assert_eq!(serde_json::to_value(&label).expect("JSON"), written);
    }

    #[test]
    fn label_without_a_required_key_or_with_a_key_twice_is_an_error() {
        let error = |text: &str| {
            let found = serde_json::from_str::<Label>(text);
            found.expect_err("no label").to_string()
        };
        assert!(error(r#"{"eval":"e","passed":true}"#).starts_with("missing field `transcript`"));
        assert!(error(r#"{"transcript":"t","passed":true}"#).starts_with("missing field `eval`"));
        assert!(error(r#"{"transcript":"t","eval":"e"}"#).starts_with("missing field `passed`"));
        let twice = r#"{"transcript":"t","eval":"e","passed":true,"passed":false}"#;
        assert!(error(twice).starts_with("duplicate field `passed`"));
        let wrong = r#"{"transcript":"t","eval":"e","passed":"yes"}"#;
        assert!(error(wrong).starts_with("invalid type: string \"yes\", expected a boolean"));
    }

    #[test]
    fn null_of_an_optional_field_is_its_absence() {
        let text = r#"{"transcript":"t","eval":"e","passed":true,"rubric":null,"note":null}"#;
        let label: Label = serde_json::from_str(text).expect("a label");
        assert_eq!(label, Label::new("t", "e", Some(true)));
    }
}
