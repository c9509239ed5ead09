//! The types of JSON that a message's `content` may have, read without copies.
//!
//! Responsible for the shape only. Does not interpret the parts.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::SourceText;

/// The `content` of a message.
#[derive(Debug)]
pub(super) enum RawContent<'a> {
    /// A string.
    Text(SourceText<'a>),
    /// A list with each element as written.
    Parts(Vec<&'a RawValue>),
    /// An object, as compact JSON with its values as written. Some programs write tool results as objects.
    Object(String),
}

impl<'de: 'a, 'a> Deserialize<'de> for RawContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawContentVisitor)
    }
}

/// The visitor for [`RawContent`].
struct RawContentVisitor;

// `null` has no visitor here: `Option<RawContent>` consumes it before serde calls this visitor.
impl<'de> Visitor<'de> for RawContentVisitor {
    type Value = RawContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list of parts or null as content")
    }

    fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(RawContent::Text(SourceText::from(v)))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Self::Value, E> {
        // serde passes a borrowed text if the JSON string has no escapes, else a decoded copy.
        Ok(RawContent::Text(SourceText::from(v.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Ok(RawContent::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut json = String::from("{");
        // Raw values keep numbers and escapes exactly as the program wrote them.
        while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(key.get());
            json.push(':');
            json.push_str(value.get());
        }
        json.push('}');
        Ok(RawContent::Object(json))
    }
}

/// A struct that deserializes only from an object. serde's derive would also accept a list, field by field.
#[derive(Debug)]
pub(super) struct ObjectOnly<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectOnly<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = ObjectOnly<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(ObjectOnly)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(std::marker::PhantomData))
    }
}
