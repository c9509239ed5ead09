//! The ratings of people in tables of other tools: Langfuse scores, LangSmith feedback, Label Studio and Argilla; and
//! tables whose columns `map` names.
//!
//! Responsible for the records and their values. Ratings of programs are counted and are not labels. A rating that is
//! not pass or fail needs the cut-off of `pass`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::label_columns::LabelColumns;
use super::label_file::LabelFileReader;
use super::table_rows::{check_row_length, read_rows};
use crate::diag::SourceSpan;
use crate::model::{Label, WallTime, make_visible, pluralize};
use crate::query::JmesPathQuery;
use crate::transcript::find_missing_pages;

/// The number of types of unread results that get a warning of their own.
const MAX_NAMED_TYPES: usize = 8;
/// The number of characters of a type that a warning shows.
const MAX_TYPE_CHARS: usize = 40;

/// The tool that wrote a table of ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RatingTool {
    /// Scores of Langfuse: `traceId`, `name`, `value`.
    Langfuse,
    /// Feedback of LangSmith: `run_id`, `key`, `score`, `value`.
    LangSmith,
    /// Tasks of Label Studio with `annotations`.
    LabelStudio,
    /// Records of Argilla with `responses`.
    Argilla,
    /// Any table, with the columns of `map`.
    Mapped,
}

/// A rating before it is pass or fail.
#[derive(Debug, Default)]
struct Rating {
    transcript: Option<String>,
    rubric: Option<String>,
    eval: Option<String>,
    value: Value,
    /// The number that the tool states next to the value. It is the score, and decides if the value cannot.
    number: Value,
    score: Option<f64>,
    by: Option<String>,
    at: Option<String>,
    note: Option<String>,
}

/// A record of the file with its place.
struct RatingRecord {
    value: Value,
    span: SourceSpan,
}

/// Returns the tool of a table with these columns or keys.
pub(super) fn detect_tool<'n>(
    names: &(impl Iterator<Item = &'n str> + Clone),
) -> Option<RatingTool> {
    let has = |wanted: &str| names.clone().any(|name| name == wanted);
    if (has("traceId") || has("trace_id"))
        && has("name")
        && (has("value") || has("stringValue") || has("string_value"))
    {
        return Some(RatingTool::Langfuse);
    }
    if has("run_id") && has("key") && (has("score") || has("value")) {
        return Some(RatingTool::LangSmith);
    }
    if has("annotations") && has("data") {
        return Some(RatingTool::LabelStudio);
    }
    let is_argilla = has("fields") || has("external_id") || has("inputs");
    (has("responses") && is_argilla).then_some(RatingTool::Argilla)
}

/// Returns the tool of a JSON document or of JSON lines.
pub(super) fn detect_json_tool(text: &str) -> Option<RatingTool> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let first = values.next()?.ok()?;
    let first = match &first {
        Value::Array(items) => items.first()?,
        // A page of an API: `{"data": [...]}`.
        Value::Object(map) => match map.get("data") {
            Some(Value::Array(items)) => items.first()?,
            _ => &first,
        },
        _ => return None,
    };
    detect_tool(&first.as_object()?.keys().map(String::as_str))
}

/// Reads the ratings of a file.
pub(super) fn read(reader: &mut LabelFileReader<'_>, tool: RatingTool) {
    let records = read_records(reader);
    let mut skipped: BTreeMap<&'static str, (u64, SourceSpan)> = BTreeMap::new();
    let mut unread: BTreeMap<String, (u64, SourceSpan)> = BTreeMap::new();
    let mut drafts: Option<(u64, SourceSpan)> = None;
    let mut off_scale: Option<(u64, SourceSpan)> = None;
    for RatingRecord { value, span } in records {
        let mut ratings = Vec::new();
        let result = match tool {
            RatingTool::Langfuse => add_langfuse(&value, &mut ratings),
            RatingTool::LangSmith => add_langsmith(&value, &mut ratings),
            RatingTool::LabelStudio => add_label_studio(&value, &mut ratings, &mut |kind| {
                unread.entry(kind).or_insert((0, span.clone())).0 += 1;
            }),
            RatingTool::Argilla => add_argilla(&value, &mut ratings, &mut || {
                drafts.get_or_insert((0, span.clone())).0 += 1;
            }),
            RatingTool::Mapped => {
                ratings.push(Rating::default());
                Ok(())
            }
        };
        if let Err(what) = result {
            let (count, _) = skipped.entry(what).or_insert((0, span.clone()));
            *count += 1;
            continue;
        }
        for mut rating in ratings {
            let columns = reader.defaults.map.clone().unwrap_or_default();
            if let Err(why) = apply_columns(&columns, &value, &mut rating) {
                reader.error(span.clone(), why);
                continue;
            }
            add_rating(reader, rating, &span, &mut || {
                off_scale.get_or_insert((0, span.clone())).0 += 1;
            });
        }
    }
    for (what, (count, span)) in skipped {
        let records = pluralize(count, "record");
        let hold = if count == 1 { "holds" } else { "hold" };
        reader.warning(
            span,
            format!("{records} {hold} no label of a person: {what}"),
        );
    }
    warn_about_unread(reader, unread);
    if let Some((count, span)) = off_scale {
        let scores = pluralize(count, "score");
        let are = if count == 1 { "is" } else { "are" };
        reader.warning(
            span,
            format!(
                "{scores} {are} not between 0 and 1, and dicta leaves out such a score: state the `scale` of `pass`"
            ),
        );
    }
    if let Some((count, span)) = drafts {
        let responses = pluralize(count, "response");
        let author = if count == 1 {
            "that its author has"
        } else {
            "that their authors have"
        };
        reader.warning(
            span,
            format!("dicta does not read {responses} {author} not submitted (`status`)"),
        );
    }
}

/// Warns about results that no label can have, by their type. A file can name any number of types, so only some are named.
fn warn_about_unread(
    reader: &mut LabelFileReader<'_>,
    mut unread: BTreeMap<String, (u64, SourceSpan)>,
) {
    const EXPECTED: &str = "a label is a choice, a taxonomy, a rating, a number or a pair";
    let mut named = 0;
    while let Some((kind, (count, span))) = unread.pop_first() {
        let results = pluralize(count, "result");
        let kind: String = make_visible(&kind, false)
            .chars()
            .take(MAX_TYPE_CHARS)
            .collect();
        reader.warning(
            span,
            format!("dicta does not read {results} of the type `{kind}`: {EXPECTED}"),
        );
        named += 1;
        if named == MAX_NAMED_TYPES {
            break;
        }
    }
    let Some((_, (_, span))) = unread.first_key_value() else {
        return;
    };
    let span = span.clone();
    let results = pluralize(
        unread.values().map(|(count, _)| count).sum::<u64>(),
        "result",
    );
    let types = pluralize(unread.len() as u64, "other type");
    reader.warning(
        span,
        format!("dicta does not read {results} of {types}: {EXPECTED}"),
    );
}

/// Returns the value of an expression; null if it finds nothing.
fn search(query: Option<&JmesPathQuery>, record: &Value) -> Result<Value, String> {
    match query {
        None => Ok(Value::Null),
        Some(query) => query
            .search(record)
            .map_err(|why| format!("`{}`: {why}", query.as_str())),
    }
}

/// Returns a value as text; `None` for null, an empty text, and lists.
fn to_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn text_at(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer).and_then(to_text)
}

/// Replaces parts of a rating by the columns that the user named.
fn apply_columns(
    columns: &LabelColumns,
    record: &Value,
    rating: &mut Rating,
) -> Result<(), String> {
    for (query, part) in [
        (&columns.transcript, &mut rating.transcript),
        (&columns.rubric, &mut rating.rubric),
        (&columns.eval, &mut rating.eval),
        (&columns.by, &mut rating.by),
        (&columns.at, &mut rating.at),
        (&columns.note, &mut rating.note),
    ] {
        if let Some(query) = query {
            *part = to_text(&search(Some(query), record)?);
        }
    }
    if columns.passed.is_some() {
        rating.value = search(columns.passed.as_ref(), record)?;
    }
    if columns.score.is_some() {
        let score = to_text(&search(columns.score.as_ref(), record)?);
        rating.score = score.map(|score| parse_score(&score)).transpose()?;
    }
    Ok(())
}

/// Parses a score. As in the tables of dicta, a decimal comma or a percent sign is an error and not a guess.
fn parse_score(text: &str) -> Result<f64, String> {
    let score = text.parse::<f64>().ok().filter(|score| score.is_finite());
    score.ok_or_else(|| {
        format!(
            "score must be a number (got `{}`)",
            make_visible(text, false)
        )
    })
}

/// Returns a path of choices as one text, as Label Studio shows a choice of a taxonomy: `Tone / friendly`. Returns any other
/// value unchanged.
fn join_path(choice: Value) -> Value {
    let steps = choice.as_array();
    let steps: Option<Vec<&str>> =
        steps.and_then(|steps| steps.iter().map(Value::as_str).collect());
    let joined = steps.map(|steps| steps.join(" / "));
    joined.map_or(choice, Value::String)
}

/// Adds the label of a rating. Calls `leave_out` if its number is not a score.
fn add_rating(
    reader: &mut LabelFileReader<'_>,
    rating: Rating,
    span: &SourceSpan,
    leave_out: &mut dyn FnMut(),
) {
    let value = match rating.value {
        // A list of choices with one choice.
        Value::Array(mut choices) if choices.len() == 1 => join_path(choices.remove(0)),
        value => value,
    };
    let is_blank = match &value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(choices) => choices.is_empty(),
        _ => false,
    };
    if is_blank {
        return reader.blank(span.clone());
    }
    if value.is_array() {
        let message = "this record has several values for one eval, and a label has one";
        return reader.error(span.clone(), message);
    }
    let Some(transcript) = rating.transcript else {
        let message = "this record names no transcript; name its place in dicta.yaml: `map: { transcript: … }`";
        return reader.error(span.clone(), message);
    };
    let Some(eval) = reader.defaults.eval.clone().or(rating.eval) else {
        let message = "this record names no eval: say in dicta.yaml `labels: { path: …, eval: … }`";
        return reader.error(span.clone(), message);
    };
    let rule = reader.defaults.pass.clone().unwrap_or_default();
    let rated = rule.rate(&value).or_else(|why| {
        if rating.number.is_null() {
            return Err(why);
        }
        rule.rate(&rating.number).map_err(|_| why)
    });
    match rated {
        Ok(found) => {
            let score = rating.score.map(|score| rule.convert_score(score));
            let number = to_text(&rating.number).and_then(|text| parse_score(&text).ok());
            let number = number.map(|number| rule.convert_score(number));
            let fitting = number.filter(|number| (0.0..=1.0).contains(number));
            if score.is_none() && number.is_some() && fitting.is_none() {
                leave_out();
            }
            let label = Label {
                rubric: rating.rubric,
                score: score.or(fitting).or(found.score),
                by: rating.by,
                at: rating.at.map(WallTime),
                note: rating.note,
                ..Label::new(&transcript, &eval, found.passed)
            };
            reader.add_label(label, span.clone());
        }
        Err(why) => reader.error(span.clone(), why),
    }
}

fn add_langfuse(record: &Value, ratings: &mut Vec<Rating>) -> Result<(), &'static str> {
    let text = |names: &[&str]| names.iter().find_map(|name| to_text(&record[*name]));
    // Scores of evaluators and programs are not labels of people.
    if text(&["source"]).is_some_and(|source| !source.eq_ignore_ascii_case("annotation")) {
        return Err("a score of a program (`source` is not ANNOTATION)");
    }
    let kind = text(&["dataType", "data_type"]).unwrap_or_default();
    let category = text(&["stringValue", "string_value"]);
    let value = match category {
        Some(category) if kind.eq_ignore_ascii_case("categorical") || record["value"].is_null() => {
            category.into()
        }
        _ if kind.eq_ignore_ascii_case("boolean") => match to_text(&record["value"]) {
            // A word such as `True` is read as any other verdict, so that no unknown word becomes a fail.
            Some(text) => match text.parse::<f64>().ok().filter(|n| n.is_finite()) {
                Some(number) => Value::Bool(number > 0.5),
                None => text.into(),
            },
            None => record["value"].clone(),
        },
        _ => record["value"].clone(),
    };
    ratings.push(Rating {
        transcript: text(&["traceId", "trace_id"]),
        eval: text(&["name"]),
        value,
        by: text(&["authorUserName", "authorUserId", "author_user_id"]),
        at: text(&["timestamp", "createdAt", "created_at"]),
        note: text(&["comment"]),
        ..Rating::default()
    });
    Ok(())
}

fn add_langsmith(record: &Value, ratings: &mut Vec<Rating>) -> Result<(), &'static str> {
    let source = &record["feedback_source"];
    // LangSmith's own evaluators have the source `model` or `auto_eval`.
    let kind = text_at(source, "/type")
        .or_else(|| to_text(source))
        .unwrap_or_default();
    if ["model", "auto_eval", "evaluator"].contains(&kind.as_str()) {
        return Err("feedback of an evaluator (`feedback_source`)");
    }
    // A category has its name in `value`, and its number in `score`.
    let mut stated = [&record["value"], &record["score"]]
        .into_iter()
        .filter(|value| to_text(value).is_some() || value.is_boolean());
    let (value, number) = (stated.next(), stated.next());
    ratings.push(Rating {
        transcript: text_at(record, "/run_id"),
        eval: text_at(record, "/key"),
        value: value.cloned().unwrap_or(Value::Null),
        number: number.cloned().unwrap_or(Value::Null),
        by: text_at(source, "/user_name")
            .or_else(|| text_at(source, "/user_id"))
            .or_else(|| text_at(record, "/user_id")),
        at: text_at(record, "/created_at"),
        note: text_at(record, "/comment"),
        ..Rating::default()
    });
    Ok(())
}

/// Adds the ratings of a task. Calls `skip` with the type of each result that is neither a rating nor a note.
fn add_label_studio(
    record: &Value,
    ratings: &mut Vec<Rating>,
    skip: &mut dyn FnMut(String),
) -> Result<(), &'static str> {
    let transcript = ["/data/transcript", "/data/transcript_id", "/data/id", "/id"];
    let transcript = transcript
        .iter()
        .find_map(|pointer| text_at(record, pointer));
    let annotations = record["annotations"]
        .as_array()
        .ok_or("a task without annotations")?;
    let mut is_cancelled = !annotations.is_empty();
    for annotation in annotations {
        if annotation["was_cancelled"] == true {
            continue;
        }
        is_cancelled = false;
        let by = text_at(annotation, "/completed_by/email")
            .or_else(|| text_at(annotation, "/completed_by/id"))
            .or_else(|| text_at(annotation, "/completed_by"));
        let results = annotation["result"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        // Texts of one control are notes about the others.
        let note = results
            .iter()
            .find_map(|result| text_at(result, "/value/text/0"));
        for result in results {
            let value = &result["value"];
            let value = [
                &value["choices"],
                &value["taxonomy"],
                &value["rating"],
                &value["number"],
                &value["selected"],
            ]
            .into_iter()
            .find(|value| !value.is_null());
            let Some(value) = value else {
                // A note is a list of texts. A marked span of a text has its text, too.
                if !result["value"]["text"].is_array() {
                    skip(text_at(result, "/type").unwrap_or_else(|| "unknown".to_owned()));
                }
                continue;
            };
            ratings.push(Rating {
                transcript: transcript.clone(),
                eval: text_at(result, "/from_name"),
                value: value.clone(),
                by: by.clone(),
                at: text_at(annotation, "/updated_at"),
                note: note.clone(),
                ..Rating::default()
            });
        }
    }
    match (ratings.is_empty(), is_cancelled) {
        (false, _) => Ok(()),
        (true, true) => Err("a task that every person skipped"),
        (true, false) => Err("a task without a choice, a rating or a number"),
    }
}

/// Adds the ratings of a record. Calls `skip` for each response that its author has not submitted.
fn add_argilla(
    record: &Value,
    ratings: &mut Vec<Rating>,
    skip: &mut dyn FnMut(),
) -> Result<(), &'static str> {
    let transcript = ["/external_id", "/metadata/transcript", "/id"];
    let transcript = transcript
        .iter()
        .find_map(|pointer| text_at(record, pointer));
    let mut add = |eval: &str, value: &Value, by: Option<String>, at: Option<String>| {
        ratings.push(Rating {
            transcript: transcript.clone(),
            eval: Some(eval.to_owned()),
            value: value.clone(),
            by,
            at,
            ..Rating::default()
        });
    };
    let mut is_submitted = |status: &Value| {
        let is_submitted = status.as_str().is_none_or(|status| status == "submitted");
        if !is_submitted {
            skip();
        }
        is_submitted
    };
    match &record["responses"] {
        // Version 2: `{question: [{value, user_id}]}`.
        Value::Object(questions) => {
            for (question, answers) in questions {
                for answer in answers.as_array().into_iter().flatten() {
                    if is_submitted(&answer["status"]) {
                        add(
                            question,
                            &answer["value"],
                            text_at(answer, "/user_id"),
                            None,
                        );
                    }
                }
            }
        }
        // Version 1: `[{user_id, status, values: {question: {value}}}]`.
        Value::Array(answers) => {
            for answer in answers
                .iter()
                .filter(|answer| is_submitted(&answer["status"]))
            {
                let values: Option<&Map<String, Value>> = answer["values"].as_object();
                for (question, value) in values.into_iter().flatten() {
                    add(
                        question,
                        &value["value"],
                        text_at(answer, "/user_id"),
                        text_at(answer, "/updated_at"),
                    );
                }
            }
        }
        _ => {}
    }
    if ratings.is_empty() {
        return Err("a record without a submitted response");
    }
    Ok(())
}

/// Returns the records of a table, of JSON lines, or of a JSON document.
fn read_records(reader: &mut LabelFileReader<'_>) -> Vec<RatingRecord> {
    let text = std::sync::Arc::clone(reader.text);
    let body = text.trim_start_matches('\u{feff}').trim_start();
    if body.starts_with(['{', '[']) {
        return read_json_records(reader, body);
    }
    let mut rows = read_rows(reader).into_iter();
    let Some(header) = rows.next() else {
        return Vec::new();
    };
    let names = header.cells;
    let mut records = Vec::new();
    for row in rows {
        if check_row_length(reader, &row, names.len()) {
            let cells = names.iter().zip(row.cells);
            let cells = cells.map(|(name, cell)| (name.trim().to_owned(), Value::String(cell)));
            records.push(RatingRecord {
                value: Value::Object(cells.collect()),
                span: row.span,
            });
        }
    }
    records
}

fn read_json_records(reader: &mut LabelFileReader<'_>, body: &str) -> Vec<RatingRecord> {
    let text = std::sync::Arc::clone(reader.text);
    let mut records = Vec::new();
    // The offsets ascend, so each line is counted once.
    let (mut counted, mut line) = (0, 1);
    let mut place = |raw: &RawValue| {
        let at = raw.get().as_ptr() as usize - text.as_ptr() as usize;
        line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..at]).count();
        counted = at;
        SourceSpan {
            bytes: at..at + raw.get().len(),
            line: u32::try_from(line).unwrap_or(u32::MAX),
            column: 1,
        }
    };
    let path = reader
        .defaults
        .map
        .as_ref()
        .and_then(|map| map.records.clone());
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<&RawValue>();
    let mut missing = None;
    loop {
        let raw = match values.next() {
            None => break,
            Some(Ok(raw)) => raw,
            Some(Err(error)) => {
                let span = reader.line_span(line as u64, counted);
                reader.error(span, format!("it is not JSON: {error}"));
                break;
            }
        };
        // Only the last page of a file states that further ones are missing.
        missing = find_keys_of_page(raw).and_then(|keys| find_missing_pages(&keys));
        let items = list_raw_items(raw, path.is_none());
        for raw in items {
            let span = place(raw);
            match (serde_json::from_str::<Value>(raw.get()), &path) {
                (Ok(value), None) => records.push(RatingRecord { value, span }),
                (Ok(value), Some(path)) => {
                    if let Ok(Value::Array(items)) = path.search(&value) {
                        let located = |value| RatingRecord {
                            value,
                            span: span.clone(),
                        };
                        records.extend(items.into_iter().map(located));
                    } else {
                        let message = format!("`records` ({}) finds no list", path.as_str());
                        reader.error(span, message);
                    }
                }
                (Err(error), _) => reader.error(span, format!("it is not JSON: {error}")),
            }
        }
    }
    if let Some(what) = missing {
        let span = reader.line_span(line as u64, counted);
        let message = format!("this file lacks {what}: save them, too, because their labels count");
        reader.warning(span, message);
    }
    records
}

/// Returns the keys of a page of an API next to its list `data`; `None` for any other value.
fn find_keys_of_page(raw: &RawValue) -> Option<Value> {
    let mut keys: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(raw.get()).ok()?;
    let list = keys.remove("data")?;
    if !list.get().starts_with('[') {
        return None;
    }
    let entries = keys.into_iter().map(|(key, raw)| {
        Some((
            key.into_owned(),
            serde_json::from_str::<Value>(raw.get()).ok()?,
        ))
    });
    entries.collect::<Option<Map<_, _>>>().map(Value::Object)
}

/// Returns the elements of a list, or of the list `data` in a page of an API; else the value itself.
fn list_raw_items(raw: &RawValue, opens_pages: bool) -> Vec<&RawValue> {
    #[derive(serde::Deserialize)]
    struct Page<'p> {
        #[serde(borrow)]
        data: Vec<&'p RawValue>,
    }
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
        return items;
    }
    match serde_json::from_str::<Page<'_>>(raw.get()) {
        Ok(page) if opens_pages => page.data,
        _ => vec![raw],
    }
}

#[cfg(test)]
mod tests;
