//! An outline of a record for the detection of formats: its structure, with short texts and short lists.
//!
//! Responsible for a record that may be incomplete, as the last one of a preview is. What follows a cut is absent. The
//! outline has limits on depth, length and texts, so its size does not depend on the record. Does not know any format.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The depth below which values are null.
const MAX_DEPTH: usize = 8;
/// The number of elements of a list, and of keys of an object, that the outline contains.
const MAX_ITEMS: usize = 128;
/// The number of bytes of a text.
const MAX_TEXT: usize = 256;

/// Returns the outline of a record. Text that is not JSON has the outline null.
pub(super) fn outline(record: &[u8]) -> Value {
    let mut value = Value::Null;
    let mut reader = serde_json::Deserializer::from_slice(record);
    // An error is harmless: the values before it remain.
    let _ = OutlineSeed {
        out: &mut value,
        depth: 0,
    }
    .deserialize(&mut reader);
    value
}

/// Writes a value to `out` while it reads it.
struct OutlineSeed<'o> {
    out: &'o mut Value,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for OutlineSeed<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            return reader.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OutlineSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, v: bool) -> Result<(), E> {
        *self.out = Value::Bool(v);
        Ok(())
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<(), E> {
        *self.out = v.into();
        Ok(())
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<(), E> {
        *self.out = v.into();
        Ok(())
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<(), E> {
        *self.out = v.into();
        Ok(())
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<(), E> {
        *self.out = Value::from(&v[..v.floor_char_boundary(MAX_TEXT)]);
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        *self.out = Value::Array(Vec::new());
        let Value::Array(items) = self.out else {
            return Ok(());
        };
        loop {
            if items.len() == MAX_ITEMS {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(());
            }
            items.push(Value::Null);
            let out = items.last_mut().expect("one was added");
            let depth = self.depth + 1;
            match seq.next_element_seed(OutlineSeed { out, depth }) {
                Ok(Some(())) => {}
                Ok(None) => {
                    items.pop();
                    return Ok(());
                }
                Err(why) => return Err(why),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        *self.out = Value::Object(Map::new());
        let Value::Object(fields) = self.out else {
            return Ok(());
        };
        while let Some(key) = map.next_key::<String>()? {
            if fields.len() == MAX_ITEMS {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let out = fields.entry(key).or_insert(Value::Null);
            let depth = self.depth + 1;
            map.next_value_seed(OutlineSeed { out, depth })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outline_of_a_cut_record_has_what_comes_before_the_cut() {
        let record = br#"{"a": [1, {"b": "x", "c": {"d": null, "e": "cu"#;
        assert_eq!(
            outline(record),
            json!({"a": [1, {"b": "x", "c": {"d": null, "e": null}}]})
        );
        assert_eq!(outline(b"no JSON"), Value::Null);
    }

    #[test]
    fn outline_is_small_for_any_record() {
        let deep = "[".repeat(100_000);
        assert!(outline(deep.as_bytes()).to_string().len() < 100);
        let long = format!("[{}1]", "\"long\",".repeat(100_000));
        assert!(outline(long.as_bytes()).to_string().len() < 2_000);
        let text = format!("\"{}\"", "é".repeat(100_000));
        assert!(outline(text.as_bytes()).to_string().len() < 1_000);
    }
}
