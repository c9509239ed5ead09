//! Records in any JSON or CSV layout, read with a field mapping.
//!
//! Responsible for the evaluation of a mapping. An expression that is only a path (`data.turns`) returns the value as
//! written. Any other expression goes through JMESPath, which loses the order of object keys. Messages have OpenAI's
//! shapes, with other names for roles (`human`, `gpt`, `bot` …). A record without its required part (messages, an
//! output) is a fault. A missing optional part is counted. Does not parse `map:`: that is `field_mapping.rs`.

mod conversation;
mod group;
mod join;
mod pair;
mod place;
mod record;
mod table;
mod turns;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use self::conversation::{is_message, parse_conversation, single_message_list};
use self::group::MappedGroups;
use self::join::JoinedFile;
use self::pair::{PairDetails, TIE};
use self::place::RecordPlace;
use self::record::{ExpressionValue, MappedRecord, RawMappedRecord, format_serde_error};
use self::table::CsvTableReader;
use self::turns::split_turns;
use super::record_readers::GroupedReader;
use crate::model::{JsonText, Label, SourceText, Transcript, parse_pass_or_fail};
use crate::query::JmesPathQuery;
use crate::transcript::MAX_RECORD;
use crate::transcript::content::ObjectOnly;
use crate::transcript::detect::DetectError;
use crate::transcript::field_mapping::{
    ConversationMapping, FieldMapping, LabelMapping, MetadataMapping, TurnWord,
};
use crate::transcript::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use crate::transcript::source::SourceFile;
use crate::transcript::text_encoding::TextEncoding;
use crate::transcript::walk::RecordWalker;

/// Returns the name of the format and the reader of a file with a field mapping.
pub(in crate::transcript) fn open(
    source: &SourceFile,
    head: &[u8],
    map: &Arc<FieldMapping>,
) -> Result<(&'static str, Box<dyn TranscriptReader>), DetectError> {
    let place = RecordPlace::find(source, head, &map.records)?;
    let joins = map.records.joins.iter();
    let joins: Result<Vec<JoinedFile>, String> = joins
        .map(|join| JoinedFile::open(join, map.records.encoding))
        .collect();
    let rules = Arc::new(MappedRules {
        map: Arc::clone(map),
        joins: joins.map_err(DetectError::Unknown)?,
        stem: source.stem().to_owned(),
    });
    let name = match place {
        RecordPlace::Json { .. } => "JSON, read by a map",
        RecordPlace::Rows(_) => "a table, read by a map",
    };
    if let Some(group) = &map.records.group {
        if matches!(&place, RecordPlace::Json { inner, .. } if !inner.is_empty()) {
            return Err(DetectError::Unknown(
                "`group` needs all records in one list, and `records` finds a list in each of several objects"
                    .to_owned(),
            ));
        }
        let start = place.start();
        let groups = MappedGroups::new(rules, place, group.clone());
        return Ok((name, Box::new(GroupedReader::new(start, groups))));
    }
    let reader: Box<dyn TranscriptReader> = match place {
        RecordPlace::Json {
            layout,
            start,
            encoding,
            inner,
        } => {
            let walk = RecordWalker::new(layout, start);
            let parser = MappedRecordParser {
                rules,
                encoding,
                inner,
            };
            Box::new(PerRecordReader::new(walk, parser))
        }
        RecordPlace::Rows(layout) => Box::new(CsvTableReader::new(layout, rules)),
    };
    Ok((name, reader))
}

/// A field mapping with the files that it joins.
#[derive(Debug)]
struct MappedRules {
    map: Arc<FieldMapping>,
    joins: Vec<JoinedFile>,
    /// The stem of the file, for ids of pairs.
    stem: String,
}

impl MappedRules {
    /// Adds the transcripts that the mapping finds in a record. An empty `default_id` is the id of the record number.
    fn write_transcript(
        &self,
        mut record: MappedRecord<'_>,
        default_id: &str,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let mut missing = Vec::new();
        for join in &self.joins {
            join.add_to(&mut record, &mut missing)?;
        }
        record.write_transcripts(self, default_id, missing, out)
    }
}

/// The parser of one JSON record.
#[derive(Debug)]
struct MappedRecordParser {
    rules: Arc<MappedRules>,
    encoding: TextEncoding,
    /// The keys to the list of records in each value; empty if each value is a record.
    inner: Vec<String>,
}

impl RecordParser for MappedRecordParser {
    fn parse_record(
        &self,
        record: &str,
        _: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        if self.inner.is_empty() {
            let record = MappedRecord::from_json(record)?;
            return self.rules.write_transcript(record, "", out);
        }
        let path = self.inner.join(".");
        let list = MappedRecord::from_json(record)?
            .follow_keys(&self.inner)
            .ok_or_else(|| format!("`records` ({path}) finds nothing"))?;
        let items: Vec<&RawValue> =
            serde_json::from_str(list).map_err(|_| format!("`records` ({path}) finds no list"))?;
        if items.is_empty() {
            out.count_missing(&format!("an empty list `records` ({path})"));
        }
        // The reader counts the outer value as one record.
        out.count_records((items.len() as u64).saturating_sub(1));
        for item in items {
            let written = MappedRecord::from_json(item.get())
                .and_then(|record| self.rules.write_transcript(record, "", out));
            if let Err(why) = written {
                out.push_fault(why);
            }
        }
        Ok(())
    }

    fn decode<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, str>, String> {
        if bytes.len() >= MAX_RECORD {
            let limit = MAX_RECORD / (1024 * 1024);
            return Err(format!("the record is {limit} MiB or longer"));
        }
        self.encoding.decode(bytes)
    }
}

/// The name of an answer, and the list of its messages as JSON.
type AnswerList<'l> = (&'l str, Cow<'l, str>);

impl MappedRecord<'_> {
    /// Adds the transcripts that a mapping finds in the record. The error is a sentence fragment.
    fn write_transcripts(
        &self,
        rules: &MappedRules,
        default_id: &str,
        mut missing: Vec<String>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        let map = &*rules.map;
        let words = &map.records.turns;
        let id = match self.find_id(map)? {
            written if written.is_empty() => Cow::Borrowed(default_id),
            written => written,
        };
        // All lookups come first, because a record is either a transcript or a fault.
        let mut message_lists: Vec<AnswerList<'_>> = Vec::new();
        if let Some(system) = &map.system {
            match self.evaluate(system, false)?.into_text() {
                Some(text) if !text.is_empty() => {
                    message_lists.push(("system", single_message_list("system", &text)));
                }
                _ => missing.push(format!("`system` ({}) finds nothing", system.as_str())),
            }
        }
        let mut answers: Vec<AnswerList<'_>> = Vec::new();
        let mut better_answer = None;
        match &map.conversation {
            ConversationMapping::Messages(query) => {
                message_lists.push(("messages", self.find_conversation(query, words)?));
            }
            ConversationMapping::Pair { input, output } => {
                self.add_input(input.as_ref(), words, &mut message_lists, &mut missing)?;
                let output_messages = self.find_messages("output", "assistant", output, words)?;
                let not_found = || format!("`output` ({}) finds nothing", output.as_str());
                message_lists.push(("output", output_messages.ok_or_else(not_found)?));
            }
            ConversationMapping::Answers {
                input,
                answers: written,
                better,
            } => {
                self.add_input(input.as_ref(), words, &mut message_lists, &mut missing)?;
                for (name, query) in written {
                    match self.find_messages(name, "assistant", query, words)? {
                        Some(list) => answers.push((name, list)),
                        None => missing.push(format!(
                            "`answers.{name}` ({}) finds nothing",
                            query.as_str()
                        )),
                    }
                }
                if answers.is_empty() {
                    return Err("`answers` finds nothing".to_owned());
                }
                if let Some(query) = better {
                    better_answer = self.find_better(query, written, &mut missing)?;
                }
            }
        }
        let metadata = self.build_metadata(map, &mut missing)?;
        let tags = self.find_tags(map, &mut missing)?;
        // The wrapper reuses the native parser, so mapped messages follow the same rules as native ones.
        let wrap = |lists: Vec<AnswerList<'_>>| -> Vec<(String, String)> {
            lists
                .into_iter()
                .map(|(name, list)| (name.to_owned(), format!("{{\"messages\":{list}}}")))
                .collect()
        };
        let (wrapped, wrapped_answers) = (wrap(message_lists), wrap(answers));
        let parse = |(name, list): &'_ (String, String)| -> Result<(), String> {
            parse_conversation(list)
                .map(|_| ())
                .map_err(|why| format!("`{name}`: {why}"))
        };
        // A record with a broken answer is a fault as a whole, so all are parsed before the first is written.
        wrapped_answers.iter().try_for_each(parse)?;
        let mut messages = Vec::new();
        for (name, list_json) in &wrapped {
            messages
                .extend(parse_conversation(list_json).map_err(|why| format!("`{name}`: {why}"))?);
        }
        // The transcript comes before its counts and labels, which refer to the last transcript.
        if wrapped_answers.is_empty() {
            out.push_transcript(&Transcript {
                id: SourceText(id.clone()),
                messages,
                metadata,
                tags,
                verdicts: Vec::new(),
            });
        } else {
            let pair = match &*id {
                // Without an id, the content names the pair: a number would change with the file.
                "" => format!("{}:{:016x}", rules.stem, self.hash_content()),
                id => id.to_owned(),
            };
            for (name, list_json) in &wrapped_answers {
                let answer = parse_conversation(list_json)?;
                let details = PairDetails {
                    pair: pair.clone(),
                    choice: name,
                    better: better_answer.clone(),
                };
                out.push_transcript(&details.build(&messages, answer, metadata.as_ref(), &tags));
            }
        }
        for what in missing {
            out.count_missing(&what);
        }
        // An unreadable label must not make the transcript a fault, so it is only counted.
        for label in &map.labels {
            let mut unread = Vec::new();
            match self.find_label(label, &id, &mut unread) {
                Ok(Some(label)) => out.attach_label(label),
                Ok(None) => {}
                Err(why) => unread.push(why),
            }
            for what in unread {
                out.count_missing(&what);
            }
        }
        Ok(())
    }

    fn add_input<'s>(
        &'s self,
        input: Option<&JmesPathQuery>,
        words: &[TurnWord],
        lists: &mut Vec<AnswerList<'s>>,
        missing: &mut Vec<String>,
    ) -> Result<(), String> {
        let Some(input) = input else { return Ok(()) };
        match self.find_messages("input", "user", input, words)? {
            Some(list) => lists.push(("input", list)),
            None => missing.push(format!("`input` ({}) finds nothing", input.as_str())),
        }
        Ok(())
    }

    /// Finds the whole conversation: a list of messages, or a text with several turns.
    fn find_conversation(
        &self,
        query: &JmesPathQuery,
        words: &[TurnWord],
    ) -> Result<Cow<'_, str>, String> {
        let value = self.evaluate(query, true)?;
        let describe_query = || format!("`messages` ({}) finds", query.as_str());
        if let ExpressionValue::Text(text) = &value
            && !words.is_empty()
            && !text.trim_start().starts_with('[')
        {
            return split_turns(text, words).map(Cow::Owned).ok_or_else(|| {
                format!(
                    "{} a text in which no line begins with a word of `split`",
                    describe_query()
                )
            });
        }
        value
            .into_list()
            .map_err(|what| format!("{} {what}", describe_query()))
    }

    /// Finds the name of the better answer, or `tie`. A number is the place of the answer from 1.
    fn find_better(
        &self,
        query: &JmesPathQuery,
        answers: &[(String, JmesPathQuery)],
        missing: &mut Vec<String>,
    ) -> Result<Option<String>, String> {
        let Some(word) = self.evaluate(query, false)?.into_key() else {
            missing.push(format!("`better` ({}) finds nothing", query.as_str()));
            return Ok(None);
        };
        let named = answers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(&word));
        let place = || {
            let number = word.parse::<f64>().ok()?;
            (0..answers.len()).find(|at| (number - (*at + 1) as f64).abs() < f64::EPSILON)
        };
        let found = named.or_else(|| place().and_then(|at| answers.get(at)));
        if let Some((name, _)) = found {
            return Ok(Some(name.clone()));
        }
        let lower = word.to_lowercase();
        if lower.starts_with("tie") || ["draw", "both", "equal", "same", "0"].contains(&&*lower) {
            return Ok(Some(TIE.to_owned()));
        }
        missing.push(format!(
            "`better` ({}) is neither the name of an answer nor `tie`",
            query.as_str()
        ));
        Ok(None)
    }

    fn find_id(&self, map: &FieldMapping) -> Result<Cow<'_, str>, String> {
        let Some(query) = &map.id else {
            return Ok(Cow::Borrowed(""));
        };
        let value = self.evaluate(query, false)?;
        match value {
            ExpressionValue::Nothing => Ok(Cow::Borrowed("")),
            // Cells of spreadsheets often have white space around an id.
            ExpressionValue::Text(text) => Ok(match text {
                Cow::Borrowed(text) => Cow::Borrowed(text.trim()),
                Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
            }),
            value @ ExpressionValue::Json(_) if value.describe_type() == "a number" => {
                Ok(value.into_text().unwrap_or_default())
            }
            value @ ExpressionValue::Json(_) => Err(format!(
                "`id` ({}) finds {}, not a text or a number",
                query.as_str(),
                value.describe_type()
            )),
        }
    }

    /// Finds the input or output: a list of messages as it is, or one message of `role`.
    fn find_messages(
        &self,
        name: &str,
        role: &str,
        query: &JmesPathQuery,
        words: &[TurnWord],
    ) -> Result<Option<Cow<'_, str>>, String> {
        Ok(match self.evaluate(query, false)? {
            ExpressionValue::Nothing => None,
            ExpressionValue::Json(json) if json.starts_with('[') => Some(json),
            // One message: `{"role": "assistant", "content": "…"}`.
            ExpressionValue::Json(json) if is_message(&json) => Some(format!("[{json}]").into()),
            value => {
                // An empty input cell means that the input is absent. An empty output is a valid output.
                let text = value.into_text().unwrap_or_default();
                let is_absent = name == "input" && text.is_empty();
                let turns = split_turns(&text, words).map(Cow::Owned);
                turns.or_else(|| (!is_absent).then(|| single_message_list(role, &text)))
            }
        })
    }

    fn build_metadata(
        &self,
        map: &FieldMapping,
        missing: &mut Vec<String>,
    ) -> Result<Option<JsonText<'_>>, String> {
        match &map.metadata {
            None => Ok(None),
            Some(MetadataMapping::Expression(query)) => {
                let value = self.evaluate(query, true)?;
                let kind = value.describe_type();
                match value {
                    ExpressionValue::Nothing => {
                        missing.push(format!("`metadata` ({}) finds nothing", query.as_str()));
                        Ok(None)
                    }
                    // An empty cell is an absent value.
                    ExpressionValue::Text(text) if text.is_empty() => Ok(None),
                    ExpressionValue::Text(text) | ExpressionValue::Json(text) => {
                        parse_object(&text).map(Some).ok_or_else(|| {
                            format!(
                                "`metadata` ({}) finds {kind}, not an object",
                                query.as_str()
                            )
                        })
                    }
                }
            }
            Some(named) => {
                let value = self.find_metadata(named, "metadata", missing)?;
                Ok((!value.is_null()).then(|| JsonText::from_value(&value)))
            }
        }
    }

    /// Finds metadata; null if there is none.
    fn find_metadata(
        &self,
        meta: &MetadataMapping,
        name: &str,
        missing: &mut Vec<String>,
    ) -> Result<Value, String> {
        match meta {
            MetadataMapping::Expression(query) => {
                let value = match self.evaluate(query, false)? {
                    ExpressionValue::Nothing => Value::Null,
                    ExpressionValue::Text(text) => Value::String(text.into_owned()),
                    ExpressionValue::Json(json) => {
                        serde_json::from_str(&json).map_err(|why| format_serde_error(&why))?
                    }
                };
                if value.is_null() {
                    missing.push(format!("`{name}` ({}) finds nothing", query.as_str()));
                }
                Ok(value)
            }
            MetadataMapping::Named(all) => {
                let mut map = Map::new();
                for (name, meta) in all {
                    let value = self.find_metadata(meta, name, missing)?;
                    // An absent value leaves its key out, so that `metadata.x` is absent and not null.
                    if !value.is_null() {
                        map.insert(name.clone(), value);
                    }
                }
                Ok(if map.is_empty() {
                    Value::Null
                } else {
                    Value::Object(map)
                })
            }
        }
    }

    fn find_tags(
        &self,
        map: &FieldMapping,
        missing: &mut Vec<String>,
    ) -> Result<Vec<SourceText<'_>>, String> {
        let Some(query) = &map.tags else {
            return Ok(Vec::new());
        };
        let value = self.evaluate(query, true)?;
        let split_commas = |text: &str| -> Vec<SourceText<'static>> {
            let tags = text.split(',').map(str::trim).filter(|tag| !tag.is_empty());
            tags.map(|tag| SourceText::from(tag.to_owned())).collect()
        };
        let mut parse_list = |json: &str| {
            let all: Option<Vec<Value>> = serde_json::from_str(json).ok();
            let is_tag = |value: &Value| value.is_string() || value.is_number();
            if all.iter().flatten().any(|value| !is_tag(value)) {
                missing.push(format!(
                    "a tag of `tags` ({}) is neither a text nor a number",
                    query.as_str()
                ));
            }
            let tag = |value: Value| match value {
                Value::String(tag) => Some(SourceText::from(tag)),
                Value::Number(n) => Some(SourceText::from(n.to_string())),
                _ => None,
            };
            all.map(|all| all.into_iter().filter_map(tag).collect::<Vec<_>>())
        };
        match value {
            ExpressionValue::Nothing => Ok(Vec::new()),
            // A cell contains all tags in one text.
            ExpressionValue::Text(text) if matches!(self.raw, RawMappedRecord::Row { .. }) => {
                Ok(parse_list(&text).unwrap_or_else(|| split_commas(&text)))
            }
            ExpressionValue::Text(text) if text.is_empty() => Ok(Vec::new()),
            ExpressionValue::Text(text) => Ok(vec![SourceText::from(text.into_owned())]),
            // A path such as `[tag]` gives a list; any other JSON cannot be tags.
            ExpressionValue::Json(json) => parse_list(&json).ok_or_else(|| {
                format!(
                    "`tags` ({}) finds neither a text nor a list",
                    query.as_str()
                )
            }),
        }
    }

    /// Finds a label. The error describes a label that dicta can't read; `unread` gets what it can't read of a label.
    fn find_label(
        &self,
        map: &LabelMapping,
        id: &str,
        unread: &mut Vec<String>,
    ) -> Result<Option<Label>, String> {
        let query = &map.passed;
        let value = self
            .evaluate(query, false)
            .map_err(|why| format!("label: {why}"))?;
        let passed = match value {
            ExpressionValue::Nothing => return Ok(None),
            ExpressionValue::Text(text) | ExpressionValue::Json(text) => {
                match parse_pass_or_fail(&text) {
                    Some(passed) => passed,
                    // An empty cell: no one has labelled this record.
                    None if text.trim().is_empty() => return Ok(None),
                    None => {
                        let word: String = text.trim().chars().take(20).collect();
                        return Err(format!(
                            "the label `{}` is {word:?}, neither pass nor fail",
                            query.as_str()
                        ));
                    }
                }
            }
        };
        let by = self.find_label_text("by", map.by.as_ref(), unread);
        let note = self.find_label_text("note", map.note.as_ref(), unread);
        Ok(Some(Label {
            transcript: id.to_owned(),
            rubric: map.rubric.clone(),
            eval: map.eval.clone(),
            passed: Some(passed),
            score: self.find_label_score(map, unread),
            by,
            at: None,
            note,
            ..Label::default()
        }))
    }

    /// Finds the score of a label. Adds the reason to `unread` if a value has no score from 0 to 1.
    fn find_label_score(&self, map: &LabelMapping, unread: &mut Vec<String>) -> Option<f64> {
        let text = self.find_label_text("score", map.score.as_ref(), unread)?;
        let score: Option<f64> = text.trim().parse().ok();
        let on_scale = score.filter(|score| (0.0..=1.0).contains(score));
        if on_scale.is_none() {
            // Without the value, because each value would be a count of its own.
            let kind = match score {
                Some(_) => "outside 0 to 1",
                None => "not a number",
            };
            unread.push(format!(
                "the score of a label is {kind} (`{}`)",
                map.score.as_ref().map_or("", JmesPathQuery::as_str)
            ));
        }
        on_scale
    }

    /// Finds a text of a label; `None` if the record has none. Adds the reason to `unread` if dicta can't read it.
    fn find_label_text(
        &self,
        key: &str,
        query: Option<&JmesPathQuery>,
        unread: &mut Vec<String>,
    ) -> Option<String> {
        let value = self
            .evaluate(query?, false)
            .map_err(|why| unread.push(format!("`{key}` of a label: {why}")))
            .ok()?;
        let text = value.into_text()?;
        (!text.trim().is_empty()).then(|| text.into_owned())
    }
}

fn parse_object(json: &str) -> Option<JsonText<'static>> {
    // The first parse checks that it is an object; the second keeps the numbers as written.
    let ObjectOnly(_) = serde_json::from_str::<ObjectOnly<serde::de::IgnoredAny>>(json).ok()?;
    let json_text: JsonText<'_> = serde_json::from_str(json).ok()?;
    Some(json_text.into_owned())
}

#[cfg(test)]
mod tests;
