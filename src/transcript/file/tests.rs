//! Odd files, each decided.

use std::io::Write as _;

use super::super::{MAX_RECORD, parse_native};
use super::*;

fn file(name: &str, bytes: impl AsRef<[u8]>) -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    (dir, path)
}

/// Number, and the record's text, of every record; each read twice, in its block and by its span.
fn records(path: &Path) -> Vec<(u64, String)> {
    let mut open = TranscriptFile::open(path).expect("a file of transcripts");
    let mut all = Vec::new();
    while let Some(block) = open.next_block().expect("a block") {
        assert!(!block.records.is_empty());
        for (found, record) in block.records() {
            assert_eq!(open.read_native(found.span).expect("read again"), record);
            all.push((
                found.span.number,
                String::from_utf8_lossy(record).into_owned(),
            ));
        }
    }
    assert_eq!(
        open.next_block().expect("the end"),
        None,
        "the end stays the end"
    );
    all
}

#[test]
fn every_layout_gives_the_same_records() {
    let (a, b, c) = (
        r#"{"messages":[]}"#,
        r#"{"id":"}]\"","messages":[]}"#,
        r#"{"x":[{}],"messages":[]}"#,
    );
    let expected: Vec<(u64, String)> = [(1, a), (2, b), (3, c)]
        .map(|(n, r)| (n, r.to_owned()))
        .into();
    for layout in [
        format!("{a}\n{b}\n{c}\n"),
        format!("{a}\n{b}\n{c}"),
        format!("\u{feff}{a}\r\n\r\n  \r\n{b}\r\n{c}\r\n"),
        format!("[{a},{b},{c}]"),
        format!(" \n[\n  {a},\n  {b},\n  {c}\n]\n"),
        format!("\u{feff}[{a}\n,{b},,{c}"),
    ] {
        let (_dir, path) = file("t.jsonl", &layout);
        assert_eq!(records(&path), expected, "{layout:?}");
    }
}

#[test]
fn an_object_over_several_lines_is_one_record() {
    let one = "{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"a }\"}\n  ]\n}";
    let (_dir, path) = file("t.json", format!("{one}\n{one}\n"));
    assert_eq!(records(&path), [(1, one.to_owned()), (2, one.to_owned())]);
}

#[test]
fn bad_record_does_not_affect_other_records() {
    let good = r#"{"messages":[]}"#;
    let text = format!("{good}\nnot json\n{good}\n{{\"messages\":[{{\"role\":\"us");
    let (_dir, path) = file("runs.jsonl", text);
    let all = records(&path);
    let parsed: Vec<bool> = all
        .iter()
        .map(|(n, record)| parse_native(record.as_bytes(), *n, "t").is_ok())
        .collect();
    assert_eq!(parsed, [true, false, true, false]);
    let (_dir, path) = file("runs.json", format!("[{good}, 5, \"x\", {good}] trailing"));
    let kept: Vec<String> = records(&path)
        .into_iter()
        .map(|(_, record)| record)
        .collect();
    assert_eq!(kept, [good, "5", "\"x\"", good, "trailing"]);
    assert_eq!(
        TranscriptFile::open(&path).expect("open").default_id(3),
        "runs:3"
    );
}

#[test]
fn records_across_blocks_stay_complete() {
    let record = |n: usize, size: usize| {
        format!(
            "{{\"id\":{n},\"messages\":[],\"pad\":\"{}\"}}",
            "x\\\"}\u{fc}".repeat(size / 6)
        )
    };
    let sizes = [
        10, 700_000, 700_000, 40, 3_000_000, 900_000, 0, 1_100_000, 50,
    ];
    let all: Vec<String> = sizes
        .iter()
        .enumerate()
        .map(|(n, size)| record(n, *size))
        .collect();
    for text in [
        all.join("\n"),
        format!("[{}]", all.join(", ")),
        format!("[\n{}", all.join(",\n")),
    ] {
        let (_dir, path) = file("big", &text);
        let got: Vec<String> = records(&path)
            .into_iter()
            .map(|(_, record)| record)
            .collect();
        assert!(
            got == all,
            "records differ in a file of {} bytes",
            text.len()
        );
    }
}

#[test]
fn memory_is_bounded_by_the_block() {
    let line = format!("{{\"messages\":[],\"pad\":\"{}\"}}\n", "x".repeat(8000));
    let (_dir, path) = file("many.jsonl", line.repeat(600));
    let mut open = TranscriptFile::open(&path).expect("open");
    let mut blocks = 0;
    while let Some(block) = open.next_block().expect("a block") {
        assert!(block.bytes.len() <= 1024 * 1024);
        blocks += 1;
    }
    assert_eq!(blocks, 5);
}

#[test]
fn a_file_that_became_shorter_is_an_error_not_other_bytes() {
    let good = r#"{"messages":[]}"#;
    let (_dir, path) = file("t.jsonl", format!("{good}\n{good}\n"));
    let mut open = TranscriptFile::open(&path).expect("open");
    let block = open.next_block().expect("a block").expect("records");
    std::fs::write(&path, good).expect("rewritten");
    assert!(open.read_native(block.records[0].span).is_ok());
    let gone = open
        .read_native(block.records[1].span)
        .expect_err("gone")
        .to_string();
    assert!(
        gone.ends_with("record 2 is gone: the file became shorter"),
        "{gone}"
    );
}

#[test]
fn a_growing_file_is_read_to_its_end() {
    let good = r#"{"messages":[]}"#;
    let (_dir, path) = file("live.jsonl", format!("{good}\n"));
    let mut open = TranscriptFile::open(&path).expect("open");
    let mut more = std::fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .expect("append");
    write!(more, "{good}\n{good}").expect("written");
    let mut count = 0;
    while let Some(block) = open.next_block().expect("a block") {
        count += block.records.len();
    }
    assert_eq!(count, 3);
}

#[test]
fn special_files_are_refused_without_blocking() {
    let dir = tempfile::tempdir().expect("a folder");
    let fifo = dir.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .expect("a pipe");
    let circle = dir.path().join("circle");
    std::os::unix::fs::symlink(&circle, &circle).expect("a link");
    let what = |path: &Path| match TranscriptFile::open(path) {
        Err(TranscriptError::NotAFile { what, .. }) => what,
        other => panic!("{}: {other:?}", path.display()),
    };
    assert_eq!(what(dir.path()), "a directory");
    assert_eq!(what(&fifo), "a pipe");
    assert_eq!(what(&circle), "a circle of symbolic links");
    assert_eq!(what(Path::new("/dev/zero")), "a device");
    let missing = TranscriptFile::open(&dir.path().join("missing")).expect_err("missing");
    assert!(matches!(missing, TranscriptError::Io { .. }));
    let (_dir, empty) = file("empty.jsonl", "");
    let why = TranscriptFile::open(&empty).expect_err("empty").to_string();
    assert!(
        why.ends_with("empty.jsonl holds no transcripts: it is empty"),
        "{why}"
    );
    let (_dir, empty) = file("empty.json", "\u{feff}[ \n]\n");
    let why = TranscriptFile::open(&empty).expect_err("empty").to_string();
    assert!(
        why.ends_with("empty.json holds no transcripts: its list is empty"),
        "{why}"
    );
}

proptest::proptest! {
    #[test]
    fn parser_does_not_panic_on_any_bytes(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200), head in "\\PC{0,4}") {
        let _any = parse_native(&bytes, 1, "t");
        let mut text = head.into_bytes();
        text.extend_from_slice(b"{\"messages\":[]}\n");
        text.extend_from_slice(&bytes);
        let (_dir, path) = file("t", &text);
        if let Ok(mut open) = TranscriptFile::open(&path) {
            while let Some(block) = open.next_block().expect("a block") {
                for (span, record) in block.records() {
                    let _any = parse_native(record, span.span.number, "t");
                }
            }
        }
    }
}

#[test]
fn record_above_the_size_limit_is_bad_and_the_next_is_read() {
    let good = r#"{"messages":[]}"#;
    let hole = MAX_RECORD as u64 + 3_000_000;
    let layouts = [
        (format!("{good}\n{{\"x\":\""), format!("\"}}\n{good}\n")),
        (format!("[{good},{{\"x\":\""), format!("\"}},{good}]")),
    ];
    for (before, after) in layouts {
        let (_dir, path) = file("huge", &before);
        let sparse = std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .expect("open");
        sparse.set_len(before.len() as u64 + hole).expect("a hole");
        let mut end = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .expect("append");
        end.write_all(after.as_bytes()).expect("written");
        let mut open = TranscriptFile::open(&path).expect("a file of transcripts");
        let mut why = Vec::new();
        while let Some(block) = open.next_block().expect("a block") {
            for (span, record) in block.records() {
                why.push(
                    parse_native(record, span.span.number, "t")
                        .err()
                        .map(|bad| (bad.number, bad.why)),
                );
            }
        }
        assert_eq!(
            why,
            [
                None,
                Some((2, "the record is 128 MiB or longer".to_owned())),
                None
            ]
        );
    }
}

#[test]
fn offset_that_the_file_does_not_have_gets_no_line() {
    let (_dir, path) = file("t.jsonl", "{\"messages\":[]}\n\n{\"messages\":[]}\n");
    let mut open = TranscriptFile::open(&path).expect("a file of transcripts");
    let mut offsets = Vec::new();
    while let Some(block) = open.next_block().expect("a block") {
        offsets.extend(block.records().map(|(record, _)| record.span.offset));
    }
    let lines = open.find_lines(&offsets).into_iter().map(|span| span.line);
    assert_eq!(lines.collect::<Vec<u32>>(), [1, 3]);
    // An offset that the file does not have gets no line, and a wrong order is not counted wrongly.
    let spans = open.find_lines(&[18, 0, 1 << 40]);
    let lines = spans.iter().map(|span| span.line);
    assert_eq!(lines.collect::<Vec<u32>>(), [3, 0, 0]);
}
