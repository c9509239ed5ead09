//! What a message's `content` may be, read without copying: text, a list of parts, an object, nothing.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::SourceText;

/// `content` as it stands in a message.
#[derive(Debug)]
pub(super) enum RawContent<'a> {
    /// A string.
    Text(SourceText<'a>),
    /// A list, each entry as written.
    Parts(Vec<&'a RawValue>),
    /// An object, as compact JSON with its values as written (some write tool results so).
    Object(String),
}

impl<'de: 'a, 'a> Deserialize<'de> for RawContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawContentVisitor)
    }
}

struct RawContentVisitor;

impl<'de> Visitor<'de> for RawContentVisitor {
    type Value = RawContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list of parts or null as content")
    }

    fn visit_borrowed_str<E: Error>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(RawContent::Text(SourceText::from(v)))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<Self::Value, E> {
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

/// A struct that is read from an object only; serde's derive would take a list for one, field by field.
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
