//! Valid tables as programs export them, and broken ones.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::transcript::{FieldMapping, FieldMappings, ReadTally, TranscriptFile, parse_native};

const MAP: &str = "id: id, input: q, output: a";

type Row = Result<(String, String, String), String>;

fn read(bytes: &[u8]) -> Vec<Row> {
    read_by(MAP, bytes).0
}

fn read_by(map: &str, bytes: &[u8]) -> (Vec<Row>, ReadTally) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.csv");
    std::fs::write(&path, bytes).expect("written");
    let mut file = open(&path, map).expect("a table");
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            let default = file.default_id(record.span.number);
            match record.parse(bytes, &default) {
                Ok(read) => {
                    assert_eq!(file.read_native(record.span).expect("again"), bytes);
                    let text = |at: usize| read.messages.get(at).map(|m| m.text().into_owned());
                    all.push(Ok((
                        read.id.to_string(),
                        text(0).unwrap_or_default(),
                        text(1).unwrap_or_default(),
                    )));
                }
                Err(bad) => {
                    assert!(file.read_native(record.span).is_err(), "as before");
                    all.push(Err(bad.why));
                }
            }
        }
    }
    let tally = file.tally().expect("counted").clone();
    (all, tally)
}

fn open(path: &Path, map: &str) -> Result<TranscriptFile, TranscriptError> {
    let map = Arc::new(FieldMapping::parse_inline(map).expect("a map"));
    FieldMappings {
        by_path: [(path.to_owned(), map)].into(),
        joins_pairs: false,
    }
    .open(path)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among rows that are none"
)]
fn row(id: &str, q: &str, a: &str) -> Row {
    Ok((id.to_owned(), q.to_owned(), a.to_owned()))
}

#[test]
fn quotes_line_breaks_marks_and_separators_are_understood() {
    let expected = [
        row("1", "say \"hi\"", "a, b;\tc"),
        row("2", "two\nlines", ""),
    ];
    for text in [
        "id,q,a\n1,\"say \"\"hi\"\"\",\"a, b;\tc\"\n2,\"two\nlines\",\n",
        "\u{feff}id,q,a\r\n1,\"say \"\"hi\"\"\",\"a, b;\tc\"\r\n2,\"two\nlines\",\"\"",
        "id;q;a\r\n1;\"say \"\"hi\"\"\";\"a, b;\tc\"\r\n\r\n2;\"two\nlines\";\r\n",
        "id\tq\ta\n1\tsay \"hi\"\t\"a, b;\tc\"\n2\t\"two\nlines\"\t\n",
        "sep=;\r\nid;q;a\r\n1;\"say \"\"hi\"\"\";\"a, b;\tc\"\r\n2;\"two\nlines\";\r\n",
        "id|q|a\n1|say \"hi\"|a, b;\tc\n2|\"two\nlines\"|\n",
        "\n\nid,q,a\r1,\"say \"\"hi\"\"\",\"a, b;\tc\"\r2,\"two\nlines\",\r",
    ] {
        assert_eq!(read(text.as_bytes()), expected, "{text:?}");
    }
}

#[test]
fn invalid_rows_are_faults_and_other_rows_are_read() {
    let (found, tally) = read_by(
        MAP,
        b"id,q,a\n1,x,y\n2,x\n3,x,y,z\n,,\n4,\xff,y\n5,x,y\n6,\"x,y\n7,x,y\n",
    );
    assert_eq!(
        found,
        [
            row("1", "x", "y"),
            Err("it has 2 cells, and the table 3 columns".to_owned()),
            Err("it has 4 cells, and the table 3 columns".to_owned()),
            Err("\"q\" is not UTF-8 at byte 0; if the file has another encoding, name it with `encoding` in `map`".to_owned()),
            row("5", "x", "y"),
            Err("a quote in it is never closed: the rest of the file is in one cell".to_owned()),
        ]
    );
    assert_eq!((tally.records, tally.unknown_count()), (7, 1), "{tally:?}");
    // An empty id is none; numbers stay texts.
    assert_eq!(
        read(b"id,q,a\n,x,007\n12,x,1e3\n"),
        [row("t:1", "x", "007"), row("12", "x", "1e3")]
    );
}

#[test]
fn a_table_larger_than_a_block_is_read_row_by_row_wherever_a_row_ends() {
    let mut text = "id,q,a\n".to_owned();
    let long = "line\n\"\"quoted\"\", and more\r\n".repeat(40);
    for number in 0..3000 {
        let _infallible = writeln!(text, "{number},\"{long}\",answer {number}");
    }
    let found = read(text.as_bytes());
    assert_eq!(found.len(), 3000);
    for (number, row) in found.iter().enumerate() {
        let (id, q, a) = row.as_ref().expect("a row");
        assert_eq!(
            (id.parse(), &**a),
            (Ok(number), &*format!("answer {number}"))
        );
        assert_eq!(q.len(), long.replace("\"\"", "\"").len());
    }
}

#[test]
fn header_without_column_names_is_refused() {
    let dir = tempfile::tempdir().expect("a folder");
    for (text, why) in [
        ("id,q,q\n1,2,3\n", "its column \"q\" occurs twice"),
        ("id,\"q\n1,2\n", "a quote in its first line is never closed"),
        ("PK\u{3}\u{4}", "and `map` is for JSON and tables of text"),
    ] {
        let path = dir.path().join("t.csv");
        std::fs::write(&path, text).expect("written");
        let refused = open(&path, MAP).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
    let path = dir.path().join("t.csv");
    std::fs::write(&path, format!("id,{}\n1,2\n", "x".repeat(2 * BLOCK_SIZE))).expect("written");
    let refused = open(&path, MAP).expect_err("refused").to_string();
    assert!(
        refused.contains("its first line is longer than"),
        "{refused}"
    );
}

#[test]
fn a_table_without_a_map_is_named_with_the_command_that_guesses() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.csv");
    for text in [
        "Customer question,Agent answer\nhi,hello\n",
        "id;question\n1;x\n2;y\n",
        "a\tb\n1\t2\n",
        "a,b\n1,2\nshort\n3,4\n",
    ] {
        std::fs::write(&path, text).expect("written");
        let refused = TranscriptFile::open(&path)
            .expect_err("refused")
            .to_string();
        assert!(
            refused.contains("it is a table with the columns"),
            "{text:?}: {refused}"
        );
        assert!(refused.contains("`dicta map "), "{refused}");
    }
    for prose in [
        "Hello, world\n",
        "Hello, world\nhow are you?\n",
        "# Notes\n\n- one\n",
    ] {
        std::fs::write(&path, prose).expect("written");
        let refused = TranscriptFile::open(&path)
            .expect_err("refused")
            .to_string();
        assert!(!refused.contains("table"), "{prose:?}: {refused}");
    }
}

#[test]
fn parser_does_not_panic_on_any_text() {
    for text in [
        "\"",
        "\"\"",
        ",",
        "\n",
        ";;;\n\"",
        "a\"b,c\n\"d\"e,f\n",
        "sep=",
        "sep=;\n",
        "\u{feff}",
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.csv");
        std::fs::write(&path, text).expect("written");
        if let Ok(mut file) = open(&path, "output: a") {
            while let Some(block) = file.next_block().expect("a block") {
                for (record, bytes) in block.records() {
                    let _either = parse_native(bytes, record.span.number, "x");
                }
            }
        }
    }
}

#[test]
fn torn_row_is_described_with_the_right_number() {
    for (cells, columns, text) in [
        (1, 4, "the row has 1 cell, the table 4 columns"),
        (2, 1, "the row has 2 cells, the table 1 column"),
    ] {
        assert_eq!(describe_torn_row(cells, columns), text);
    }
}
