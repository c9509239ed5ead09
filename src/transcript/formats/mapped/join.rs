//! The other files that `join` of a field mapping names.
//!
//! Responsible for the index of the other file, from keys to the locations of records, and for the lookup. Memory holds
//! the keys and locations, not the records.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::place::RecordPlace;
use super::record::{ExpressionValue, MappedRecord};
use crate::transcript::RecordSpan;
use crate::transcript::detect::DetectError;
use crate::transcript::field_mapping::{JoinMapping, RecordMapping};
use crate::transcript::source::{BLOCK_SIZE, SourceFile};
use crate::transcript::text_encoding::TextEncoding;

/// The other file of a join.
#[derive(Debug)]
pub(super) struct JoinedFile {
    mapping: JoinMapping,
    source: SourceFile,
    place: RecordPlace,
    index: HashMap<String, RecordLocation>,
    /// The number of records without a readable key.
    unread: u64,
}

#[derive(Debug)]
struct RecordLocation {
    offset: u64,
    len: u64,
    /// True if other records have the same key.
    is_repeated: bool,
}

impl JoinedFile {
    /// Opens the other file and reads its keys. The error is a sentence fragment.
    pub(super) fn open(mapping: &JoinMapping, encoding: TextEncoding) -> Result<Self, String> {
        let path = mapping.path.display();
        let failed = |why: &dyn std::fmt::Display| format!("its `join` can't read {path}: {why}");
        let source = SourceFile::open(&mapping.path).map_err(|error| failed(&error))?;
        let mut head = Vec::new();
        source
            .fill_buffer(0, &mut head, BLOCK_SIZE)
            .map_err(|error| failed(&error))?;
        let records = RecordMapping {
            encoding,
            ..RecordMapping::default()
        };
        let place =
            RecordPlace::find(&source, &head, &records).map_err(|refusal| match refusal {
                DetectError::Unknown(why) | DetectError::Unmapped(why) => failed(&why),
                DetectError::Unsupported(format) => failed(&format),
            })?;
        let mut index = HashMap::new();
        let mut unread = 0;
        let mut walk = place.walk_from(place.start());
        while let Some(raw) = walk.next_block(&source).map_err(|error| failed(&error))? {
            for span in &raw.spans {
                let key = place.to_json(&raw.bytes[raw.byte_range(*span)]).ok();
                let key = key.and_then(|json| {
                    let record = MappedRecord::from_json(&json).ok()?;
                    record.evaluate(&mapping.key, false).ok()?.into_key()
                });
                let Some(key) = key else {
                    unread += 1;
                    continue;
                };
                match index.entry(key) {
                    Entry::Vacant(free) => {
                        free.insert(RecordLocation {
                            offset: span.offset,
                            len: span.len,
                            is_repeated: false,
                        });
                    }
                    Entry::Occupied(mut taken) => taken.get_mut().is_repeated = true,
                }
            }
        }
        Ok(Self {
            mapping: mapping.clone(),
            source,
            place,
            index,
            unread,
        })
    }

    /// Adds the other record to a record. Pushes the description of what is missing.
    pub(super) fn add_to(
        &self,
        record: &mut MappedRecord<'_>,
        missing: &mut Vec<String>,
    ) -> Result<(), String> {
        let on = self.mapping.on.as_str();
        let name = self.mapping.path.file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        let key = record
            .evaluate(&self.mapping.on, false)?
            .into_key()
            .ok_or_else(|| format!("`join.on` ({on}) finds no text or number"));
        let found = match key {
            Err(why) => {
                missing.push(why);
                None
            }
            Ok(key) => {
                let found = self.index.get(&key);
                if found.is_none() {
                    let unread = match self.unread {
                        0 => String::new(),
                        count => format!(" ({count} of its records have no readable key)"),
                    };
                    missing.push(format!("no record of {name} has the same key{unread}"));
                }
                found
            }
        };
        let Some(at) = found else { return Ok(()) };
        if at.is_repeated {
            missing.push(format!(
                "several records of {name} have the same key, and the first one counts"
            ));
        }
        let span = RecordSpan {
            offset: at.offset,
            len: at.len,
            part: 0,
            number: 0,
        };
        let bytes = self
            .source
            .read_span(span)
            .map_err(|error| error.to_string())?;
        record.add_joined(&self.mapping.name, self.place.to_json(&bytes)?);
        Ok(())
    }
}

impl ExpressionValue<'_> {
    /// Returns the value as the key of a group or a join: a text that is not empty, or a number.
    pub(super) fn into_key(self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => {
                let key = text.trim();
                (!key.is_empty()).then(|| key.to_owned())
            }
            Self::Json(json) if json.starts_with(['[', '{']) => None,
            Self::Json(json) => Some(json.into_owned()),
        }
    }
}
