//! Files that grow, for every reader: the samples of `tests/fixtures`, with repeated records or repeated items of a list.
//!
//! Responsible for the registry: a format with a reader has such a file, or a case of its own in `formats.rs`. A test of
//! `tests/it` fails for a reader that has neither, so the benchmark forgets no reader. Does not measure.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use dicta::transcript::TranscriptFile;
use serde_json::Value;

/// The formats whose files cannot grow by text, with a word of the names of their cases.
pub(crate) const OWN_CASES: [(&str, &str); 7] = [
    ("native", "native"),
    ("an Inspect log (.eval)", "inspect eval"),
    ("a CSV table", "csv with a mapping"),
    ("an SQLite database", "sqlite"),
    ("a Harbor trajectory (ATIF)", "harbor trajectory"),
    ("a streamed reply (server-sent events)", "streamed replies"),
    ("a chat history of Aider", "aider history"),
];

/// The size of a file at the smallest size of its case, in bytes.
const UNIT_BYTES: usize = 60_000;
/// The two sizes that show whether a file grows, in elements.
const SMALL: usize = 8;
const LARGE: usize = 32;

/// The way in which a file grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Growth {
    /// More records, or more rows.
    Records,
    /// More items in the largest list of a record, such as its messages.
    Items,
}

/// A sample that grows.
#[derive(Debug, Clone)]
pub(crate) struct GrowingFile {
    /// The format, as its reader names it.
    pub(crate) format: &'static str,
    growth: Growth,
    ending: String,
    text: String,
}

impl GrowingFile {
    /// Returns the name of the case.
    pub(crate) fn name(&self) -> String {
        let growth = match self.growth {
            Growth::Records => "many records",
            Growth::Items => "a long list",
        };
        format!("{}, {growth}", self.format)
    }

    /// Returns the ending of the file's name.
    pub(crate) fn ending(&self) -> &str {
        &self.ending
    }

    /// Returns the number of elements at the smallest size.
    pub(crate) fn unit(&self) -> usize {
        let bytes = self.make(SMALL).map_or(1, |bytes| bytes.len());
        // A build without optimization measures an eighth of it.
        (UNIT_BYTES * SMALL / bytes.max(1)).max(2 * SMALL)
    }

    /// Returns the file with `n` elements; `None` if the sample has nothing to repeat.
    pub(crate) fn make(&self, n: usize) -> Option<Vec<u8>> {
        let text = match self.growth {
            Growth::Records if self.ending == "csv" => repeat_rows(&self.text, n)?,
            Growth::Records => repeat_records(&self.text, n),
            Growth::Items => repeat_items(&self.text, n)?,
        };
        Some(text.into_bytes())
    }

    /// Returns true if a larger file has more content for its reader.
    fn grows(&self) -> bool {
        let count = |n| {
            let bytes = self.make(n)?;
            let dir = tempfile::tempdir().ok()?;
            let path = dir.path().join(format!("file.{}", self.ending));
            std::fs::write(&path, bytes).ok()?;
            let file = TranscriptFile::open(&path).ok()?;
            (file.format() == self.format).then(|| count_content(file))
        };
        match (count(SMALL), count(LARGE)) {
            (Some(small), Some(large)) => small > 0 && large >= 2 * small,
            _ => false,
        }
    }
}

/// Returns the number of records, transcripts and messages of a file.
pub(crate) fn count_content(mut file: TranscriptFile) -> usize {
    let mut count = 0;
    while let Ok(Some(block)) = file.next_block() {
        for (record, bytes) in block.records() {
            count += record
                .parse(bytes, "default")
                .map_or(0, |transcript| 1 + transcript.messages.len());
        }
    }
    let records = file.tally().map_or(0, |tally| tally.records);
    count + usize::try_from(records).unwrap_or(usize::MAX)
}

/// Returns the files that grow: at most one of each format and each way.
pub(crate) fn growing_files() -> Vec<GrowingFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths = Vec::new();
    collect_files(&root, &mut paths);
    paths.sort();
    let mut found: BTreeMap<(&'static str, Growth), GrowingFile> = BTreeMap::new();
    for path in paths {
        let Ok(format) = TranscriptFile::open(&path).map(|file| file.format()) else {
            continue;
        };
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        // Python writes `NaN`, which is not JSON.
        let text = text.replace(": NaN", ": null");
        let ending = path
            .extension()
            .map_or_else(String::new, |ending| ending.to_string_lossy().into_owned());
        for growth in [Growth::Records, Growth::Items] {
            if found.contains_key(&(format, growth)) {
                continue;
            }
            let file = GrowingFile {
                format,
                growth,
                ending: ending.clone(),
                text: text.clone(),
            };
            if file.grows() {
                found.insert((format, growth), file);
            }
        }
    }
    found.into_values().collect()
}

/// Returns the formats that have a reader, and no file that grows and no case of their own.
pub(crate) fn list_missing_formats(files: &[GrowingFile]) -> Vec<&'static str> {
    let covered: BTreeSet<&str> = files
        .iter()
        .map(|file| file.format)
        .chain(OWN_CASES.map(|(format, _)| format))
        .collect();
    dicta::untrusted::transcript_formats()
        .into_iter()
        .filter(|format| !covered.contains(format))
        .collect()
}

/// Collects the files below a folder. Recorded runs are no transcripts.
fn collect_files(folder: &Path, all: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() && !path.ends_with("recordings") {
            collect_files(&path, all);
        } else if path.is_file() {
            all.push(path);
        }
    }
}

/// Repeats the rows of a table below its header.
fn repeat_rows(text: &str, n: usize) -> Option<String> {
    let (header, rows) = text.split_once('\n')?;
    let row = format!("{}\n", rows.trim_end());
    Some(format!("{header}\n{}", row.repeat(n)))
}

/// Repeats the lines of a file, the elements of its list, or its only value.
fn repeat_records(text: &str, n: usize) -> String {
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => Value::Array(repeat(&items, n)).to_string(),
        Ok(value) => to_lines(&repeat(&[value], n)),
        Err(_) => to_lines(&repeat(&parse_lines(text), n)),
    }
}

/// Repeats the items of the largest list of a file, or of its largest line.
fn repeat_items(text: &str, n: usize) -> Option<String> {
    let mut value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(_) => parse_lines(text)
            .into_iter()
            .max_by_key(|line| line.to_string().len())?,
    };
    let (_, pointer) = find_largest_list(&value, "")?;
    let list = value.pointer_mut(&pointer)?;
    let items = repeat(list.as_array()?, n);
    *list = Value::Array(items);
    Some(value.to_string())
}

fn parse_lines(text: &str) -> Vec<Value> {
    // A sample may have a broken line.
    text.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

fn to_lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    lines.join("\n")
}

/// Returns `n` values: the given ones in turn, with other ids in each turn.
fn repeat(values: &[Value], n: usize) -> Vec<Value> {
    let count = values.len().max(1);
    let turns = (0..n).filter_map(|at| Some((at / count, values.get(at % count)?)));
    turns
        .map(|(turn, value)| {
            let mut value = value.clone();
            if turn > 0 {
                rename_ids(&mut value, "", turn);
            }
            value
        })
        .collect()
}

/// Adds a number to each text below a key that ends with `id`. Without it, readers would drop the repeated values.
fn rename_ids(value: &mut Value, key: &str, turn: usize) {
    match value {
        Value::String(text) if key.to_ascii_lowercase().ends_with("id") => {
            *text = format!("{text}-{turn}");
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| rename_ids(item, key, turn)),
        Value::Object(fields) => {
            for (key, field) in fields {
                rename_ids(field, key, turn);
            }
        }
        _ => {}
    }
}

/// Returns the size and the JSON Pointer of the largest list of objects.
fn find_largest_list(value: &Value, pointer: &str) -> Option<(usize, String)> {
    let step = |key: &str| format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Array(items) => {
            let inner = items
                .iter()
                .enumerate()
                .filter_map(|(at, item)| find_largest_list(item, &step(&at.to_string())));
            let is_list = !items.is_empty() && items.iter().all(Value::is_object);
            // An outer list is larger than the lists in it.
            if is_list {
                return Some((value.to_string().len(), pointer.to_owned()));
            }
            inner.max()
        }
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(key, field)| find_largest_list(field, &step(key)))
            .max(),
        _ => None,
    }
}
