//! Parquet files: the rows of a file as JSON lines, which the readers of the other formats then read.
//!
//! Responsible for the rows. A Parquet file stores columns, so dicta writes its rows to a temporary file without a name, a
//! few rows in memory at a time. Detection, field mappings and all readers see that file. dicta keeps it while the
//! program runs and the Parquet file does not change. A reader opens the file again for each transcript that a person reads.
//!
//! A file can be hostile: the library can panic, and few bytes can expand to many rows. Both are errors of the file.

use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use parquet::errors::ParquetError;
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use serde_json::{Map, Value};

use super::parquet_limits::LimitedFile;
use super::unix::FileState;

/// The first bytes of a Parquet file.
pub(super) const MAGIC: &[u8] = b"PAR1";
/// The number of rows whose values of a column the library reads at once. Each can have a million of them.
const BATCH_SIZE: usize = 8;
/// The number of files whose rows are kept.
const MAX_KEPT: usize = 4;
/// The limit on the rows as JSON, in bytes: this many times the size of the file, and [`MIN_LIMIT`] more. A column of equal
/// texts, such as a system prompt, has a high ratio.
const MAX_RATIO: u64 = 1000;
/// See [`MAX_RATIO`].
const MIN_LIMIT: u64 = 256 * 1024 * 1024;

/// The number of milliseconds in a day.
const MILLIS_OF_DAY: i64 = 86_400_000;

/// The rows of a file.
#[derive(Debug, Clone)]
struct KeptRows {
    state: FileState,
    rows: Arc<File>,
}

/// The rows of the files that were opened last, the newest at the end.
static KEPT: Mutex<VecDeque<KeptRows>> = Mutex::new(VecDeque::new());

/// Returns the rows of a Parquet file as JSON lines. The error is a sentence fragment.
pub(super) fn open_rows(file: &File, meta: &Metadata) -> Result<Arc<File>, String> {
    let state = FileState::from(meta);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.iter().find(|known| known.state == state) {
        return Ok(Arc::clone(&known.rows));
    }
    // The lock is held while dicta writes the rows, so that two readers of one file do not write them twice.
    let rows = Arc::new(write_rows(file, meta.len())?);
    if kept.len() >= MAX_KEPT {
        kept.pop_front();
    }
    kept.push_back(KeptRows {
        state,
        rows: Arc::clone(&rows),
    });
    Ok(rows)
}

/// Writes the rows to a temporary file.
fn write_rows(file: &File, size: u64) -> Result<File, String> {
    let refuse =
        |error: io::Error| format!("its rows cannot be written to a temporary file: {error}");
    let input = file.try_clone().map_err(refuse)?;
    let mut output = tempfile::tempfile().map_err(refuse)?;
    let limit = size.saturating_mul(MAX_RATIO).saturating_add(MIN_LIMIT);
    // The library has assertions about the content of a file.
    let written = catch_unwind(AssertUnwindSafe(|| copy_rows(input, &mut output, limit)));
    written.unwrap_or_else(|_| Err("this Parquet file is damaged".to_owned()))?;
    Ok(output)
}

fn copy_rows(input: File, output: &mut File, limit: u64) -> Result<(), String> {
    let damaged = |error: ParquetError| match error {
        ParquetError::General(why) => format!("this Parquet file cannot be read: {why}"),
        other => format!("this Parquet file cannot be read: {other}"),
    };
    let reader = LimitedFile::open(input).map_err(damaged)?;
    reader.check_repeated_texts().map_err(damaged)?;
    let rows = RowIter::from_file(None, &reader).map_err(damaged)?;
    let mut out = BufWriter::new(output);
    let mut written = 0_u64;
    for row in rows.with_batch_size(BATCH_SIZE) {
        let record = Value::Object(row_to_json(&row.map_err(damaged)?)).to_string();
        written = written.saturating_add(record.len() as u64 + 1);
        if written > limit {
            return Err(format!(
                "the rows of this Parquet file have more than {limit} bytes, {MAX_RATIO} times the size of the file"
            ));
        }
        let line = out.write_all(record.as_bytes());
        line.and_then(|()| out.write_all(b"\n"))
            .map_err(|error| format!("its rows cannot be written to a temporary file: {error}"))?;
    }
    out.flush()
        .map_err(|error| format!("its rows cannot be written to a temporary file: {error}"))
}

fn row_to_json(row: &Row) -> Map<String, Value> {
    row.get_column_iter()
        .map(|(name, field)| (name.clone(), field_to_json(field)))
        .collect()
}

fn field_to_json(field: &Field) -> Value {
    match field {
        // Older writers do not mark texts as such.
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) => text.into(),
            Err(_) => field.to_json_value(),
        },
        Field::Group(row) => Value::Object(row_to_json(row)),
        Field::ListInternal(list) => list.elements().iter().map(field_to_json).collect(),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().map(|(key, value)| {
                let key = match field_to_json(key) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                (key, field_to_json(value))
            });
            Value::Object(entries.collect())
        }
        // The library panics at a time without a year in its calendar. Databases write one for infinity.
        Field::Date(days) if !has_calendar_year(i64::from(*days) * MILLIS_OF_DAY) => (*days).into(),
        Field::TimestampMillis(millis) if !has_calendar_year(*millis) => (*millis).into(),
        Field::TimestampMicros(micros) if !has_calendar_year(*micros / 1000) => (*micros).into(),
        other => other.to_json_value(),
    }
}

/// Returns true if a time in milliseconds since 1970 is in the years -9999 to 9999.
fn has_calendar_year(millis: i64) -> bool {
    jiff::Timestamp::from_millisecond(millis).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use parquet::record::Field;
    use serde_json::{Value, json};

    use super::field_to_json;
    use crate::transcript::{TranscriptError, TranscriptFile};

    fn fixture(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fixtures/parquet")
            .join(name)
    }

    /// The samples, written by pyarrow: the file, its format, and the first transcript's roles.
    const SAMPLES: [(&str, &str, &[&str]); 5] = [
        (
            "chat.snappy.parquet",
            "native",
            &["system", "user", "assistant", "tool", "assistant"],
        ),
        (
            "sharegpt.zstd.parquet",
            "ShareGPT conversations",
            &["user", "assistant", "user", "assistant"],
        ),
        (
            "alpaca.gzip.parquet",
            "Alpaca instructions",
            &["user", "assistant"],
        ),
        (
            "preference.lz4.parquet",
            "answers that were compared or rated",
            &["user", "assistant"],
        ),
        (
            "trl.plain.parquet",
            "answers that were compared or rated",
            &["user", "assistant"],
        ),
    ];

    fn read(path: &Path) -> Result<(&'static str, Vec<Value>), TranscriptError> {
        let mut file = TranscriptFile::open(path)?;
        let mut records = Vec::new();
        while let Some(block) = file.next_block()? {
            for (record, bytes) in block.records() {
                if record.fault.is_none() {
                    let again = file.read_native(record.span)?;
                    assert_eq!(again, bytes, "a record is found again");
                    records.push(serde_json::from_slice(bytes).expect("native JSON"));
                }
            }
        }
        Ok((file.format(), records))
    }

    #[test]
    fn time_without_a_year_is_its_number() {
        for (field, value) in [
            (
                Field::TimestampMillis(0),
                json!("1970-01-01 00:00:00.000 +00:00"),
            ),
            (Field::TimestampMillis(i64::MAX), json!(i64::MAX)),
            (Field::TimestampMicros(i64::MIN), json!(i64::MIN)),
            (
                Field::TimestampMicros(1_000_000),
                json!("1970-01-01 00:00:01.000000 +00:00"),
            ),
            (Field::Date(i32::MAX), json!(i32::MAX)),
            (Field::Date(1), json!("1970-01-02")),
        ] {
            assert_eq!(field_to_json(&field), value, "{field:?}");
        }
    }

    #[test]
    fn rows_of_chat_datasets_are_transcripts() {
        for (name, format, roles) in SAMPLES {
            let (found, records) = read(&fixture(name)).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(found, format, "{name}");
            let messages = records[0]["messages"].as_array().expect("messages");
            let found: Vec<&str> = messages
                .iter()
                .map(|message| message["role"].as_str().expect("a role"))
                .collect();
            assert_eq!(found, roles, "{name}");
        }
    }

    #[test]
    fn line_of_a_row_is_its_number() {
        let mut file = TranscriptFile::open(&fixture("alpaca.gzip.parquet")).expect("the sample");
        let mut offsets = Vec::new();
        while let Some(block) = file.next_block().expect("a block") {
            offsets.extend(block.records().map(|(record, _)| record.span.offset));
        }
        let rows = u32::try_from(offsets.len()).expect("few");
        let lines = file.find_lines(&offsets).into_iter().map(|span| span.line);
        assert_eq!(lines.collect::<Vec<u32>>(), (1..=rows).collect::<Vec<_>>());
    }

    #[test]
    fn few_bytes_that_need_much_memory_are_refused() {
        for (name, why) in [
            ("many_values", "more than 1048576 values in a column"),
            ("repeated_text", "texts of a row have more than 128 MiB"),
            ("large_page", "pages need more than 512 MiB"),
        ] {
            let path = fixture(&format!("hostile/{name}.parquet"));
            let problem = read(&path).expect_err(name).to_string();
            assert!(problem.contains(why), "{name}: {problem}");
        }
    }

    #[test]
    fn calls_and_numbers_of_a_row_keep_their_values() {
        let (_, records) = read(&fixture("chat.snappy.parquet")).expect("the sample");
        assert_eq!(records.len(), 40);
        let call = &records[0]["messages"][2]["tool_calls"][0];
        assert_eq!(call["function"]["name"], "get_order");
        assert_eq!(call["function"]["arguments"], "{\"id\": 0}");
        assert_eq!(records[39]["id"], "row-39");
    }

    #[test]
    fn field_mapping_names_columns() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.parquet");
        std::fs::copy(fixture("table.parquet"), &path).expect("copied");
        let error = TranscriptFile::open(&path).expect_err("it needs a map");
        assert!(matches!(error, TranscriptError::Unmapped { .. }), "{error}");
    }

    #[test]
    fn rows_beyond_the_limit_are_refused() {
        let input = std::fs::File::open(fixture("chat.snappy.parquet")).expect("a sample");
        let mut output = tempfile::tempfile().expect("a file");
        let error = super::copy_rows(input, &mut output, 1000).expect_err("it has more");
        assert!(error.contains("more than 1000 bytes"), "{error}");
    }

    #[test]
    fn changed_file_is_read_again() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.parquet");
        for (name, count) in [("chat.snappy.parquet", 40), ("sharegpt.zstd.parquet", 5)] {
            std::fs::copy(fixture(name), &path).expect("copied");
            let (_, records) = read(&path).expect("a sample");
            assert_eq!(records.len(), count, "{name}");
        }
    }

    #[test]
    fn damaged_file_is_refused_or_read_and_never_breaks_the_program() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("odd.parquet");
        let mut state = 7_u64;
        let mut below = |end: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).expect("31 bits") % end.max(1)
        };
        for (name, _, _) in SAMPLES {
            let original = std::fs::read(fixture(name)).expect("a sample");
            for variant in 0..100 {
                let mut bytes = original.clone();
                match variant % 3 {
                    0 => bytes.truncate(below(original.len())),
                    1 => {
                        let at = below(bytes.len());
                        bytes[at] = u8::try_from(below(256)).expect("below 256");
                    }
                    _ => {
                        // The end of the file describes its columns, so most of its bytes decide something.
                        let at = bytes.len() - 1 - below(bytes.len() / 2);
                        bytes[at] ^= 1 << below(8);
                    }
                }
                std::fs::write(&path, &bytes).expect("written");
                let _refused = read(&path);
            }
        }
    }
}
