//! Input that parsers often change without a word: duplicate keys, large integers, invalid UTF-8, half surrogate pairs,
//! byte order marks, and YAML's other spellings of values. dicta keeps it, or reports it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use dicta::diag::yaml;
use dicta::model::{TranscriptPart, VerdictMode};
use dicta::tools::parse_arguments;
use dicta::transcript::TranscriptFile;
use tempfile::TempDir;

use crate::{Campaign, Measured};

/// The content of a file, as a reader returns it.
struct Content {
    /// All transcripts as text.
    text: String,
    /// The first text of a message that the file contains once, in one piece.
    first: Option<String>,
    transcripts: usize,
    /// The faults and the counted parts that were not understood, by their kind.
    reports: BTreeMap<String, u64>,
}

impl Content {
    /// Returns true if a kind of report has a higher count than before. A damaged record may hide another report.
    fn reports_more_than(&self, before: &Self) -> bool {
        let is_new =
            |(kind, count): (&String, &u64)| before.reports.get(kind).is_none_or(|old| count > old);
        self.reports.iter().any(is_new)
    }
}

/// U2.
pub(crate) fn judge_changes(campaign: &Campaign) -> Measured {
    let mut checked = 0;
    let mut silent = Vec::new();
    check_transcripts(campaign, &mut checked, &mut silent);
    check_native(&mut checked, &mut silent);
    check_arguments(&mut checked, &mut silent);
    check_yaml(&mut checked, &mut silent);
    check_verdicts(&mut checked, &mut silent);
    let figure = format!("{checked} inputs: {} change without a report", silent.len());
    if silent.is_empty() {
        Measured::Reached(figure)
    } else {
        Measured::Missed(format!("{figure}: {}", silent.join("; ")))
    }
}

/// Every fixture of every format, with one such change in the text of a message, or at its beginning.
fn check_transcripts(campaign: &Campaign, checked: &mut usize, silent: &mut Vec<String>) {
    let folder = TempDir::new().expect("a temporary folder");
    let fixtures = campaign.repository.join("tests/fixtures");
    let before = *checked;
    for entry in walkdir::WalkDir::new(&fixtures).sort_by_file_name() {
        let Ok(entry) = entry else { continue };
        let ending = entry.path().extension().and_then(|ending| ending.to_str());
        if !matches!(ending, Some("json" | "jsonl" | "csv")) {
            continue;
        }
        let name = entry.path().strip_prefix(&fixtures).expect("below it");
        let path = folder.path().join(entry.file_name());
        let bytes = std::fs::read(entry.path()).expect("a fixture");
        let Some(before) = read(&path, &bytes) else {
            continue;
        };
        // A mark at the beginning changes nothing.
        *checked += 1;
        let marked = read(&path, &[b"\xef\xbb\xbf", &bytes[..]].concat());
        if marked.is_none_or(|after| after.text != before.text) {
            silent.push(format!("{}: a byte order mark before it", name.display()));
        }
        let Some(first) = &before.first else { continue };
        let at = memchr::memmem::find(&bytes, first.as_bytes()).expect("it was found before");
        let at = at + 1;
        let quoted = ending != Some("csv");
        let injected: [(&str, &[u8], &[&str]); 4] = [
            (
                "a byte order mark in a text",
                "\u{feff}".as_bytes(),
                &["\u{feff}", "\\u{feff}"],
            ),
            ("half a surrogate pair", br"\ud800", &["\\ud800"]),
            ("invalid UTF-8", b"\xff", &[]),
            ("a NUL", br"\u0000", &["\\0", "\0", "\\u0000", "\\u{0}"]),
        ];
        for (what, piece, kept) in injected {
            if !quoted && piece[0] == b'\\' {
                continue;
            }
            *checked += 1;
            let changed = [&bytes[..at], piece, &bytes[at..]].concat();
            // A file that is refused is reported.
            let Some(after) = read(&path, &changed) else {
                continue;
            };
            let is_kept = kept.iter().any(|form| after.text.contains(form));
            let is_reported =
                after.reports_more_than(&before) || after.transcripts < before.transcripts;
            if !is_kept && !is_reported {
                silent.push(format!("{}: {what}", name.display()));
            }
        }
    }
    if *checked - before < 100 {
        silent.push("too few fixtures are read".to_owned());
    }
}

fn read(path: &Path, bytes: &[u8]) -> Option<Content> {
    std::fs::write(path, bytes).expect("the folder takes files");
    let mut file = TranscriptFile::open(path).ok()?;
    let mut content = Content {
        text: String::new(),
        first: None,
        transcripts: 0,
        reports: BTreeMap::new(),
    };
    while let Some(block) = file.next_block().ok()? {
        for (record, line) in block.records() {
            let id = file.default_id(record.span.number);
            let Ok(transcript) = record.parse(line, &id) else {
                *content.reports.entry("a fault".to_owned()).or_default() += 1;
                continue;
            };
            content.transcripts += 1;
            writeln!(content.text, "{transcript:?}").expect("a string takes any text");
            let parts = transcript
                .messages
                .iter()
                .flat_map(|message| &message.parts);
            let texts = parts.filter_map(|part| match part {
                TranscriptPart::Text(text) => Some(text.to_string()),
                _ => None,
            });
            let mut found = texts.filter(|text| {
                text.len() > 3 && memchr::memmem::find_iter(bytes, text.as_bytes()).count() == 1
            });
            content.first = content.first.or_else(|| found.next());
        }
    }
    if let Some(tally) = file.tally() {
        for (kind, count) in tally.unknown.iter().chain(&tally.missing) {
            *content.reports.entry(kind.clone()).or_default() += count;
        }
    }
    Some(content)
}

/// Native records: a value is as written, or the record is bad.
fn check_native(checked: &mut usize, silent: &mut Vec<String>) {
    let folder = TempDir::new().expect("a temporary folder");
    let path = folder.path().join("t.jsonl");
    let cases = [
        (
            "a large integer",
            r#""metadata":{"n":123456789012345678901234567890}"#,
            "123456789012345678901234567890",
        ),
        (
            "a long fraction",
            r#""metadata":{"n":0.1000000000000000055511151231257827}"#,
            "0.1000000000000000055511151231257827",
        ),
        ("a large exponent", r#""metadata":{"n":1e400}"#, "1e400"),
        (
            "a key twice in metadata",
            r#""metadata":{"k":1,"k":2}"#,
            "\"k\\\":1,\\\"k\\\":2",
        ),
        ("an id twice", r#""id":"u""#, "?"),
        (
            "messages twice",
            r#""messages":[{"role":"user","content":"other"}]"#,
            "?",
        ),
    ];
    for (what, member, kept) in cases {
        *checked += 1;
        let line = format!(
            "{{\"id\":\"t\",\"messages\":[{{\"role\":\"assistant\",\"content\":\"ok\"}}],{member}}}\n"
        );
        let Some(after) = read(&path, line.as_bytes()) else {
            continue;
        };
        let is_kept = after.text.contains(kept) || after.text.contains(&kept.replace('\\', ""));
        if !is_kept && after.reports.is_empty() {
            silent.push(format!("native: {what}: {}", after.text));
        }
        // What dicta keeps of the record is the record, byte for byte.
        let mut file = TranscriptFile::open(&path).expect("it was read before");
        if let Ok(Some(block)) = file.next_block() {
            let (record, bytes) = block.records().next().expect("a record");
            if record.fault.is_none() && bytes != line.trim_end().as_bytes() {
                silent.push(format!("native: {what}: other bytes"));
            }
        }
    }
}

/// Arguments of a tool: as written, or with a change that dicta records.
fn check_arguments(checked: &mut usize, silent: &mut Vec<String>) {
    let cases = [
        (
            "a large integer",
            r#"{"n":123456789012345678901234567890}"#,
            true,
        ),
        (
            "a long fraction",
            r#"{"n":0.1000000000000000055511151231257827}"#,
            true,
        ),
        ("a large exponent", r#"{"n":1e400}"#, true),
        ("negative zero", r#"{"n":-0}"#, true),
        ("a key twice", r#"{"k":1,"k":2}"#, false),
        ("an empty key", r#"{"":1}"#, true),
        ("half a surrogate pair", r#"{"k":"a\ud800b"}"#, false),
        ("a byte order mark", "\u{feff}{\"k\":1}", false),
        ("a byte order mark in a text", "{\"k\":\"\u{feff}\"}", true),
        ("a text after it", r#"{"k":1} and so on"#, false),
    ];
    for (what, raw, keeps) in cases {
        *checked += 1;
        // A rejected call is reported.
        let Ok(read) = parse_arguments("t", raw) else {
            continue;
        };
        let is_kept = read.canonical.get() == raw;
        let is_reported = !read.changes.is_empty()
            || read.has_duplicate_keys
            || read.was_truncated
            || read.has_surrounding_text;
        if !is_kept && (keeps || !is_reported) {
            silent.push(format!("arguments: {what}: {}", read.canonical.get()));
        }
    }
}

/// YAML files: a text is as written, and anything else is an error with its line.
fn check_yaml(checked: &mut usize, silent: &mut Vec<String>) {
    let kept = [
        ("no", "\"no\""),
        ("yes", "\"yes\""),
        ("on", "\"on\""),
        ("12:30:45", "\"12:30:45\""),
        ("2026-01-01", "\"2026-01-01\""),
        ("0123abc", "\"0123abc\""),
        ("v1.10", "\"v1.10\""),
        ("9007199254740993", "9007199254740993"),
        ("18446744073709551615", "18446744073709551615"),
        ("\"\u{feff}x\"", "\"\u{feff}x\""),
        ("\"1.10\"", "\"1.10\""),
    ];
    for (written, value) in kept {
        *checked += 1;
        let source = format!("k: {written}\n");
        match yaml::read_document(&source.as_str().into(), Path::new("f.yaml")) {
            Ok(doc) if json_text(&doc.value["k"]) == value => {}
            Ok(doc) => silent.push(format!("yaml: {written} is {}", doc.value["k"])),
            Err(problems) if problems.iter().all(|problem| problem.span.is_some()) => {}
            Err(_) => silent.push(format!("yaml: {written} is refused without a place")),
        }
    }
    let refused = [
        ("a key twice", "k: 1\nk: 2\n"),
        ("a key twice below", "a:\n  k: 1\n  k: 2\n"),
        ("a larger integer", "k: 123456789012345678901234567890\n"),
        ("half a surrogate pair", "k: \"\\ud800\"\n"),
        ("a NUL", "k: a\u{0}b\n"),
        ("a control character", "k: a\u{7}b\n"),
    ];
    for (what, source) in refused {
        *checked += 1;
        match yaml::read_document(&source.into(), Path::new("f.yaml")) {
            Ok(doc) => {
                let value = doc.value.to_string();
                let is_kept = value.contains("123456789012345678901234567890")
                    || value.contains("\\u0000")
                    || value.contains("\\u0007");
                if !is_kept {
                    silent.push(format!("yaml: {what}: {value}"));
                }
            }
            Err(problems) if problems.iter().all(|problem| problem.span.is_some()) => {}
            Err(_) => silent.push(format!("yaml: {what} is refused without a place")),
        }
    }
    *checked += 1;
    let marked = yaml::read_document(&"\u{feff}k: 1\n".into(), Path::new("f.yaml"));
    if marked.is_ok_and(|doc| doc.value["k"] != 1) {
        silent.push("yaml: a byte order mark before it".to_owned());
    }
}

/// The value as JSON, in which `1` and `"1"` differ.
fn json_text(value: &serde_json::Value) -> String {
    value.to_string()
}

/// Verdicts: nothing that a parser may read in two ways is one.
fn check_verdicts(checked: &mut usize, silent: &mut Vec<String>) {
    let format = dicta::judge::VerdictFormat {
        allow_na: false,
        scale: None,
        needs_score: false,
        parts: None,
        pair_order: None,
    };
    let cases = [
        r#"{"citations":[],"reasoning":"r","passed":true,"passed":false,"score":1}"#,
        r#"{"citations":[],"reasoning":"r","passed":true,"score":1,"score":0}"#,
        r#"{"citations":[],"reasoning":"r","passed":true,"score":1e999}"#,
        r#"{"citations":[],"reasoning":"r","passed":true,"score":1.0000000000000001}"#,
        r#"{"citations":[],"reasoning":"r","passed":1,"score":1}"#,
        r#"{"citations":[],"reasoning":"r","pas\ud800sed":true,"score":1}"#,
    ];
    for text in cases {
        *checked += 1;
        let read = dicta::judge::parse_verdict_text(text, &format, VerdictMode::Text, |_| false);
        // The nearest number to the fourth score is 1, which every JSON reader reads.
        if read.is_ok() && !text.contains("1.0000000000000001") {
            silent.push(format!("verdict: {text}"));
        }
    }
}
