//! Records that together are one transcript, by `group` of a field mapping.
//!
//! Responsible for the keys and the order of a group. A group becomes the record `{"group": KEY, "records": [...]}`, on
//! which the expressions are evaluated. Memory holds one group and the locations of all records.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::sync::Arc;

use super::super::record_readers::{GroupParser, WalkRecords};
use super::MappedRules;
use super::place::RecordPlace;
use super::record::{ExpressionValue, MappedRecord};
use crate::query::JmesPathQuery;
use crate::transcript::field_mapping::GroupMapping;
use crate::transcript::reader::{RecordCx, TranscriptSink};

/// The parser of the groups of a file.
#[derive(Debug)]
pub(super) struct MappedGroups {
    pub(super) rules: Arc<MappedRules>,
    pub(super) place: RecordPlace,
    pub(super) group: GroupMapping,
    /// The kind of a record without a group, for its count.
    without_group: String,
}

/// The position of a record in its group.
#[derive(Debug, PartialEq)]
enum GroupPosition {
    Number(f64),
    Text(String),
    /// The record does not state it, so it comes last.
    Unknown,
}

impl GroupPosition {
    fn of(value: ExpressionValue<'_>) -> Self {
        match value.into_key() {
            None => Self::Unknown,
            Some(key) => match key.parse::<f64>() {
                Ok(number) if number.is_finite() => Self::Number(number),
                _ => Self::Text(key),
            },
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Text(_) => 1,
            Self::Unknown => 2,
        }
    }
}

impl MappedGroups {
    pub(super) fn new(rules: Arc<MappedRules>, place: RecordPlace, group: GroupMapping) -> Self {
        Self {
            without_group: format!(
                "a record without a readable `group` ({})",
                group.by.as_str()
            ),
            rules,
            place,
            group,
        }
    }

    fn find_text(json: &str, query: &JmesPathQuery) -> Option<String> {
        let record = MappedRecord::from_json(json).ok()?;
        record.evaluate(query, false).ok()?.into_key()
    }
}

impl GroupParser for MappedGroups {
    fn walk_from(&self, offset: u64) -> Box<dyn WalkRecords> {
        self.place.walk_from(offset)
    }

    fn key(&self, record: &[u8]) -> Result<Option<String>, String> {
        let json = self.place.to_json(record)?;
        Ok(Self::find_text(&json, &self.group.by))
    }

    fn parse(&self, records: &[&[u8]], _: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut all: Vec<(GroupPosition, String)> = Vec::with_capacity(records.len());
        let mut key = None;
        for record in records {
            // A record without a readable key belongs to no group, so this one is readable.
            let Ok(json) = self.place.to_json(record) else {
                continue;
            };
            key = key.or_else(|| Self::find_text(&json, &self.group.by));
            let position = self.group.order.as_ref().map(|order| {
                let record = MappedRecord::from_json(&json).ok();
                let value = record
                    .as_ref()
                    .and_then(|record| record.evaluate(order, false).ok());
                let position = value.map_or(GroupPosition::Unknown, GroupPosition::of);
                if position == GroupPosition::Unknown {
                    out.count_missing(&format!("`group.order` ({}) finds nothing", order.as_str()));
                }
                position
            });
            all.push((position.unwrap_or(GroupPosition::Unknown), json));
        }
        // The sort is stable, so records of one position keep the order of the file.
        all.sort_by(|(a, _), (b, _)| a.compare(b));
        let key = key.unwrap_or_default();
        let mut json = format!(
            "{{\"group\":{},\"records\":[",
            serde_json::Value::from(&*key)
        );
        for (at, (_, record)) in all.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let _infallible = write!(json, "{comma}{}", record.trim());
        }
        json.push_str("]}");
        let written = MappedRecord::from_json(&json)
            .and_then(|record| self.rules.write_transcript(record, &key, out));
        if let Err(why) = written {
            out.push_fault(why);
        }
    }

    fn without_group(&self, _: &[u8]) -> &str {
        &self.without_group
    }
}
