//! promptfoo's tests as a table: a row is a test, a column a variable, and `__expected` an assertion in one text.
//!
//! Responsible for the columns with a meaning and for the short form of an assertion (`icontains: yes`,
//! `not-similar(0.8): text`). A row becomes a test as YAML would write it, with the place of the row.

use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::assertion_value::number_text;
use crate::diag::SourceSpan;
use crate::diag::yaml::{self, MovedPointer, YamlDoc, YamlLimits};

/// The largest number of rows of a table of tests.
const MAX_ROWS: usize = 10_000;

/// A row of a file: its byte range, its line and its test.
struct TestRow {
    bytes: std::ops::Range<usize>,
    line: u32,
    test: Value,
}

/// Reads a table of tests. The error is a sentence fragment.
pub(super) fn read_csv_tests(text: &Arc<str>, path: &Path) -> Result<Rc<YamlDoc>, String> {
    let body = text.trim_start_matches('\u{feff}');
    let skipped = text.len() - body.len();
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .has_headers(true)
        .from_reader(body.as_bytes());
    let names = reader.headers().map_err(|why| why.to_string())?.clone();
    let mut rows = Vec::new();
    let (mut counted, mut line) = (0, 1_u32);
    for row in reader.records() {
        let row = row.map_err(|why| format!("its table is broken: {why}"))?;
        if row.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        // The reader's position is before the empty lines that it skips.
        let start = row.position().map_or(0, csv::Position::byte);
        let start = usize::try_from(start).unwrap_or(0).min(body.len());
        let blank = body[start..].len() - body[start..].trim_start_matches(['\r', '\n']).len();
        let start = start + blank;
        let between = body.get(counted..start).unwrap_or_default();
        line += u32::try_from(between.matches('\n').count()).unwrap_or(0);
        counted = start;
        let end = body[start..].find('\n').map_or(body.len(), |at| start + at);
        rows.push(TestRow {
            bytes: start + skipped..end + skipped,
            line,
            test: build_test(&names, &row)
                .map_err(|why| format!("line {line} of `{}`: {why}", path.display()))?,
        });
        if rows.len() > MAX_ROWS {
            return Err(format!("its table has more than {MAX_ROWS} rows"));
        }
    }
    build_doc(&rows, text, path)
}

/// Reads a file with one test per line. The error is a sentence fragment.
pub(super) fn read_json_lines(text: &Arc<str>, path: &Path) -> Result<Rc<YamlDoc>, String> {
    let mut rows = Vec::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let bytes = start..start + line.trim_end().len();
        start += line.len();
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let parsed: Value = serde_json::from_str(line)
            .map_err(|why| format!("line {number} of `{}` is not JSON: {why}", path.display()))?;
        rows.push(TestRow {
            bytes,
            line: u32::try_from(number).unwrap_or(u32::MAX),
            test: parsed,
        });
    }
    rows_to_tests(build_doc(&rows, text, path)?)
}

/// The keys of a test, of which promptfoo requires one, and those of a scenario.
const TEST_KEYS: [&str; 9] = [
    "assert",
    "vars",
    "options",
    "metadata",
    "provider",
    "providerOutput",
    "threshold",
    "config",
    "tests",
];

/// Returns the entries of a file as tests. An entry without a key of a test is a row of variables, as older versions of
/// promptfoo read all of them. The error is a sentence fragment.
pub(super) fn rows_to_tests(doc: Rc<YamlDoc>) -> Result<Rc<YamlDoc>, String> {
    let items = doc.value.as_array().map(Vec::as_slice).unwrap_or_default();
    if !items.iter().any(is_row) {
        return Ok(doc);
    }
    let to_test = |item: &Value| match item {
        Value::Object(row) if is_row(item) => build_row_test(row.clone()),
        _ => Ok(item.clone()),
    };
    let tests: Vec<Value> = items.iter().map(to_test).collect::<Result<_, _>>()?;
    let place = |at: usize| MovedPointer::new(format!("/{at}"), format!("/{at}"));
    let moved: Vec<MovedPointer> = (0..tests.len()).map(place).collect();
    Ok(Rc::new(doc.with_value(Value::Array(tests), moved)))
}

fn is_row(item: &Value) -> bool {
    let has_test_key =
        |row: &Map<String, Value>| TEST_KEYS.iter().any(|key| row.contains_key(*key));
    item.as_object()
        .is_some_and(|row| !row.is_empty() && !has_test_key(row))
}

/// Returns a row of a file as a test. Its keys have the meaning of a table's columns.
fn build_row_test(row: Map<String, Value>) -> Result<Value, String> {
    let (columns, vars): (Map<String, Value>, Map<String, Value>) = row
        .into_iter()
        .partition(|(name, _)| name.starts_with("__"));
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Number(number) => number_text(number),
        other => other.to_string(),
    };
    let names: Vec<&String> = columns.keys().collect();
    let cells: Vec<String> = columns.values().map(cell).collect();
    let mut test = build_test(&names.into(), &cells.into())?;
    test["vars"] = vars.into();
    Ok(test)
}

/// Returns a document with one test per row. Each test has the place of its row.
fn build_doc(rows: &[TestRow], text: &Arc<str>, path: &Path) -> Result<Rc<YamlDoc>, String> {
    // One line per row, so that the line of a place leads back to its row.
    let mut written = String::from("[\n");
    for row in rows {
        push_json(&mut written, &row.test);
        written.push_str(",\n");
    }
    written.push(']');
    let doc =
        yaml::read_limited_document(&Arc::from(written.as_str()), path, YamlLimits::GENERATED)
            .map_err(|problems| {
                let first = problems.first().map(|problem| problem.message.clone());
                format!("its tests cannot be read: {}", first.unwrap_or_default())
            })?;
    let place = |span: &SourceSpan| {
        let row = usize::try_from(span.line).unwrap_or(0).checked_sub(2);
        match row.and_then(|row| rows.get(row)) {
            Some(row) => SourceSpan {
                bytes: row.bytes.clone(),
                line: row.line,
                column: 1,
            },
            None => SourceSpan {
                bytes: 0..0,
                line: 1,
                column: 1,
            },
        }
    };
    Ok(Rc::new(doc.map_spans(text, place)))
}

/// Adds a value as JSON that is YAML, too. Characters that YAML refuses, or reads as line breaks, become escapes.
fn push_json(out: &mut String, value: &Value) {
    for c in value.to_string().chars() {
        if matches!(
            c,
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        ) {
            let _infallible = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
}

fn build_test(names: &csv::StringRecord, row: &csv::StringRecord) -> Result<Value, String> {
    let mut vars = Map::new();
    let mut metadata = Map::new();
    let mut asserts: Vec<Value> = Vec::new();
    let mut metric = None;
    let mut thresholds: Vec<(usize, f64)> = Vec::new();
    let mut test = Map::new();
    for (name, written) in names.iter().zip(row) {
        let (name, cell) = (name.trim(), written.trim());
        match name {
            "__description" if !cell.is_empty() => {
                test.insert("description".to_owned(), cell.into());
            }
            "__metric" if !cell.is_empty() => metric = Some(cell),
            "__threshold" if !cell.is_empty() => {
                let number: f64 = cell
                    .parse()
                    .map_err(|_| format!("`__threshold` must be a number (got `{cell}`)"))?;
                test.insert("threshold".to_owned(), json!(number));
            }
            // These columns change how promptfoo calls its provider; the transcript exists already.
            "" | "__prefix" | "__suffix" | "__providerOutput" | "__provider" | "__providers" => {}
            _ if name.starts_with("__metadata:") && !cell.is_empty() => {
                let key = name.trim_start_matches("__metadata:");
                if let Some(key) = key.strip_suffix("[]") {
                    let items: Vec<&str> = cell.split(',').map(str::trim).collect();
                    metadata.insert(key.to_owned(), json!(items));
                } else {
                    metadata.insert(key.to_owned(), written.into());
                }
            }
            _ if name.starts_with("__expected") => {
                if !cell.is_empty() {
                    asserts.push(parse_short_assertion(cell));
                }
            }
            _ if name.starts_with("__config:") && !cell.is_empty() => {
                thresholds.push(parse_threshold_column(name, cell)?);
            }
            _ if name.starts_with("__") => {
                if !cell.is_empty() {
                    return Err(format!("its column `{name}` has no equivalent in dicta"));
                }
            }
            // The blanks around a value stay, as in promptfoo's results.
            _ => {
                vars.insert(name.to_owned(), written.into());
            }
        }
    }
    for (index, threshold) in thresholds {
        if let Some(assertion) = asserts.get_mut(index) {
            assertion["threshold"] = json!(threshold);
        }
    }
    if let Some(metric) = metric {
        for assertion in &mut asserts {
            assertion["metric"] = metric.into();
        }
    }
    test.insert("vars".to_owned(), vars.into());
    if !metadata.is_empty() {
        test.insert("metadata".to_owned(), metadata.into());
    }
    test.insert("assert".to_owned(), asserts.into());
    Ok(Value::Object(test))
}

/// Reads a column such as `__config:__expected2:threshold`: the index of the assertion, and its threshold. As in promptfoo,
/// the index counts the assertions of the row.
fn parse_threshold_column(name: &str, cell: &str) -> Result<(usize, f64), String> {
    let number = name
        .strip_prefix("__config:__expected")
        .and_then(|rest| rest.strip_suffix(":threshold"));
    let index = match number {
        Some("") => Some(0),
        Some(number) => number
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1)),
        None => None,
    };
    let index = index.ok_or_else(|| format!("its column `{name}` has no equivalent in dicta"))?;
    match cell.parse::<f64>() {
        Ok(threshold) if threshold.is_finite() => Ok((index, threshold)),
        _ => Err(format!("`{name}` must be a number (got `{cell}`)")),
    }
}

/// Returns the assertion that promptfoo's short form means.
pub(super) fn parse_short_assertion(text: &str) -> Value {
    for (prefix, kind) in [
        ("javascript:", "javascript"),
        ("fn:", "javascript"),
        ("eval:", "javascript"),
        ("python:", "python"),
        ("grade:", "llm-rubric"),
    ] {
        if let Some(code) = text.strip_prefix(prefix) {
            return json!({"type": kind, "value": code.trim()});
        }
    }
    if let Some(path) = text.strip_prefix("file://") {
        let file = path.split(':').next().unwrap_or(path);
        let kind = match Path::new(file).extension() {
            Some(ending) if ending == "py" => "python",
            _ => "javascript",
        };
        return json!({"type": kind, "value": text});
    }
    // `TYPE`, `TYPE(THRESHOLD)`, `TYPE: VALUE`, `TYPE(THRESHOLD): VALUE`.
    let head_end = text.find(['(', ':']).unwrap_or(text.len());
    let mut kind = text[..head_end].trim();
    let mut rest = &text[head_end..];
    // Types such as `trajectory:tool-used` contain a colon.
    if let Some(("", after)) = rest.split_once(':') {
        let end = after.find(['(', ':']).unwrap_or(after.len());
        let long = &text[..head_end + 1 + end];
        if super::is_type(long) {
            kind = long;
            rest = &text[long.len()..];
        }
    }
    if !super::is_type(kind) || kind == "assert-set" {
        return json!({"type": "equals", "value": text});
    }
    let mut assertion = json!({"type": kind});
    if let Some((number, after)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')'))
        && let Ok(threshold) = number.trim().parse::<f64>()
    {
        assertion["threshold"] = json!(threshold);
        rest = after;
    }
    let value = rest.strip_prefix(':').unwrap_or(rest).trim();
    if value.is_empty() {
        let needs_no_value = ["json", "latency", "cost"]
            .iter()
            .any(|end| kind.ends_with(end));
        let has_threshold = assertion.get("threshold").is_some();
        // The answer may be a word that is also a type, such as `contains`.
        if !needs_no_value && !has_threshold && rest.is_empty() {
            return json!({"type": "equals", "value": text});
        }
        return assertion;
    }
    let is_list = kind.ends_with("-all") || kind.ends_with("-any");
    assertion["value"] = if is_list {
        split_list(value).into()
    } else {
        value.into()
    };
    if let (None, Some(threshold)) = (assertion.get("threshold"), default_threshold(kind)) {
        assertion["threshold"] = json!(threshold);
    }
    assertion
}

/// Returns the threshold of a short form without one. It differs from that of an assertion in YAML.
fn default_threshold(kind: &str) -> Option<f64> {
    match kind.strip_prefix("not-").unwrap_or(kind) {
        "similar" => Some(0.8),
        "answer-relevance" => Some(0.75),
        _ => None,
    }
}

/// Splits a list at its commas; a part in quotes may contain commas. Empty parts are left out, as in promptfoo.
fn split_list(value: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for c in value.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => parts.push(String::new()),
            c => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    let parts = parts.iter().map(|part| part.trim());
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_form_names_type_threshold_and_value() {
        for (text, wanted) in [
            ("Paris", json!({"type": "equals", "value": "Paris"})),
            (
                "icontains: par, is",
                json!({"type": "icontains", "value": "par, is"}),
            ),
            (
                "not-contains: x",
                json!({"type": "not-contains", "value": "x"}),
            ),
            (
                "icontains-any: a,, \"b, c\",",
                json!({"type": "icontains-any", "value": ["a", "b, c"]}),
            ),
            (
                "similar(0.8): hello",
                json!({"type": "similar", "threshold": 0.8, "value": "hello"}),
            ),
            (
                "similar: hello",
                json!({"type": "similar", "threshold": 0.8, "value": "hello"}),
            ),
            ("similar", json!({"type": "equals", "value": "similar"})),
            (
                "answer-relevance: hello",
                json!({"type": "answer-relevance", "threshold": 0.75, "value": "hello"}),
            ),
            (
                "latency(1000)",
                json!({"type": "latency", "threshold": 1000.0}),
            ),
            ("is-json", json!({"type": "is-json"})),
            (
                "grade: is polite",
                json!({"type": "llm-rubric", "value": "is polite"}),
            ),
            (
                "fn: output.length > 3",
                json!({"type": "javascript", "value": "output.length > 3"}),
            ),
            (
                "file://check.py:grade",
                json!({"type": "python", "value": "file://check.py:grade"}),
            ),
            (
                "Note: see below",
                json!({"type": "equals", "value": "Note: see below"}),
            ),
            ("contains", json!({"type": "equals", "value": "contains"})),
            (
                "trajectory:tool-used: search",
                json!({"type": "trajectory:tool-used", "value": "search"}),
            ),
        ] {
            assert_eq!(parse_short_assertion(text), wanted, "{text}");
        }
    }

    #[test]
    fn entry_without_a_key_of_a_test_is_a_row() {
        let text: Arc<str> = Arc::from(
            "{\"q\": \"Is it 'Piano'?\", \"n\": 3, \"__expected\": \"icontains: no\"}\n{\"vars\": {\"q\": \"x\"}}\n{}\n",
        );
        let doc = read_json_lines(&text, Path::new("t.jsonl")).expect("read");
        assert_eq!(
            doc.value,
            json!([
                {"vars": {"q": "Is it 'Piano'?", "n": 3}, "assert": [{"type": "icontains", "value": "no"}]},
                {"vars": {"q": "x"}},
                {},
            ])
        );
        assert_eq!(
            (doc.span("/0/assert").line, doc.span("/1/vars").line),
            (1, 2)
        );
    }

    #[test]
    fn control_characters_of_a_table_stay() {
        let text: Arc<str> = Arc::from("q,__expected\n\"a \u{96} b\u{7f}\",c \u{85}\u{96}\n");
        let doc = read_csv_tests(&text, Path::new("t.csv")).expect("read");
        assert_eq!(doc.value[0]["vars"], json!({"q": "a \u{96} b\u{7f}"}));
        assert_eq!(doc.value[0]["assert"][0]["value"], "c \u{85}\u{96}");
    }

    #[test]
    fn variable_of_a_row_keeps_its_blanks() {
        let text: Arc<str> =
            Arc::from("q , __expected,__metadata:a,__metadata:b[]\n x , contains: y ,,\n");
        let doc = read_csv_tests(&text, Path::new("t.csv")).expect("read");
        assert_eq!(
            doc.value[0],
            json!({"vars": {"q": " x "}, "assert": [{"type": "contains", "value": "y"}]})
        );
    }

    #[test]
    fn row_is_a_test_with_its_place() {
        let text: Arc<str> = Arc::from(
            "\u{feff}city,__expected,__expected2,__metric,__description,__metadata:topic\nRome,icontains: rome,is-json,geo,the capital,travel\n\n\"Par\nis\",Paris,,,,\n",
        );
        let doc = read_csv_tests(&text, Path::new("t.csv")).expect("read");
        assert_eq!(
            doc.value[0],
            json!({
                "description": "the capital",
                "vars": {"city": "Rome"},
                "metadata": {"topic": "travel"},
                "assert": [
                    {"type": "icontains", "value": "rome", "metric": "geo"},
                    {"type": "is-json", "metric": "geo"},
                ],
            })
        );
        assert_eq!(doc.value[1]["vars"], json!({"city": "Par\nis"}));
        assert_eq!(
            (doc.span("/0/vars").line, doc.span("/1/assert").line),
            (2, 4)
        );
        let text = "a,__expected1,__expected2,__config:__expected:threshold,__config:__expected2:threshold\n\
                    x,contains: y,llm-rubric: z,0.9,0.8\n";
        let doc = read_csv_tests(&Arc::from(text), Path::new("t.csv")).expect("read");
        assert_eq!(
            doc.value[0]["assert"],
            json!([
                {"type": "contains", "value": "y", "threshold": 0.9},
                {"type": "llm-rubric", "value": "z", "threshold": 0.8},
            ])
        );
        let error = read_csv_tests(&Arc::from("a,__threshold\nx,high\n"), Path::new("t.csv"));
        assert_eq!(
            error.expect_err("no number"),
            "line 2 of `t.csv`: `__threshold` must be a number (got `high`)"
        );
    }
}
