//! The cases of eventsource-parser's and `LaunchDarkly`'s test suites as data, by category, each at every split of its
//! bytes.
//!
//! dicta differs on purpose in three points. It ignores `id` and `retry`, which have no meaning in a reply to a POST. It
//! keeps lines that aren't fields as strays. It flags an event without its blank line instead of dropping it.

use crate::provider::sse::{SseFrame, SseParser};

/// Name, data.
type Event = (&'static str, &'static str);

const fn just(data: &'static str) -> Event {
    ("", data)
}

/// Name, stream, and its complete events.
const CASES: &[(&str, &str, &[Event])] = &[
    // Byte order mark.
    ("bom at the start", "\u{feff}data: a\n\n", &[just("a")]),
    (
        "bom twice",
        "\u{feff}\u{feff}data: a\n\ndata: b\n\n",
        &[just("b")],
    ),
    (
        "bom in the middle",
        "data: a\n\n\u{feff}data: b\n\ndata: c\n\n",
        &[just("a"), just("c")],
    ),
    (
        "bom before a comment",
        "\u{feff}: hi\ndata: a\n\n",
        &[just("a")],
    ),
    (
        "bom inside data",
        "data: \u{feff}a\n\n",
        &[just("\u{feff}a")],
    ),
    ("bom and nothing else", "\u{feff}", &[]),
    // Comments.
    ("a comment", ": hi\n\ndata: a\n\n", &[just("a")]),
    ("an empty comment", ":\n\ndata: a\n\n", &[just("a")]),
    (
        "a comment between lines of data",
        "data: a\n: hi\ndata: b\n\n",
        &[just("a\nb")],
    ),
    ("a comment without an end", "data: a\n\n: hi", &[just("a")]),
    ("a comment that looks like data", ":data: a\n\n", &[]),
    (
        "many comments",
        ":a\n:b\r\n:c\r:d\ndata: e\n\n",
        &[just("e")],
    ),
    (
        "a heartbeat between events",
        "data: a\n\n:\n\n:\n\ndata: b\n\n",
        &[just("a"), just("b")],
    ),
    // Line ends.
    ("lf", "data: a\n\ndata: b\n\n", &[just("a"), just("b")]),
    (
        "cr lf",
        "data: a\r\n\r\ndata: b\r\n\r\n",
        &[just("a"), just("b")],
    ),
    ("cr", "data: a\r\rdata: b\r\r", &[just("a"), just("b")]),
    (
        "lf then cr lf",
        "data: a\n\r\ndata: b\n\r\n",
        &[just("a"), just("b")],
    ),
    (
        "cr lf then lf",
        "data: a\r\n\ndata: b\r\n\n",
        &[just("a"), just("b")],
    ),
    ("cr then lf lf", "data: a\r\n\n", &[just("a")]),
    (
        "cr lf in lines of data",
        "data: a\r\ndata: b\r\n\r\n",
        &[just("a\nb")],
    ),
    (
        "all three",
        "data: a\ndata: b\rdata: c\r\n\n",
        &[just("a\nb\nc")],
    ),
    ("empty lines first", "\n\n\r\n\rdata: a\n\n", &[just("a")]),
    (
        "empty lines between",
        "data: a\n\n\n\n\r\n\r\ndata: b\n\n",
        &[just("a"), just("b")],
    ),
    // Data.
    ("no space", "data:a\n\n", &[just("a")]),
    ("one space is taken off", "data: a\n\n", &[just("a")]),
    ("two spaces leave one", "data:  a\n\n", &[just(" a")]),
    ("a tab stays", "data:\ta\n\n", &[just("\ta")]),
    ("space behind stays", "data: a \n\n", &[just("a ")]),
    ("colons", "data: a:b: c\n\n", &[just("a:b: c")]),
    ("a colon first", "data::\n\n", &[just(":")]),
    ("empty", "data:\n\n", &[just("")]),
    ("empty with a space", "data: \n\n", &[just("")]),
    ("no colon", "data\n\n", &[just("")]),
    ("two without a colon", "data\ndata\n\n", &[just("\n")]),
    (
        "empty lines of data",
        "data:\ndata: a\ndata:\n\n",
        &[just("\na\n")],
    ),
    (
        "several lines",
        "data: YHOO\ndata: +2\ndata: 10\n\n",
        &[just("YHOO\n+2\n10")],
    ),
    (
        "json over lines",
        "data: {\ndata: \"a\": 1\ndata: }\n\n",
        &[just("{\n\"a\": 1\n}")],
    ),
    (
        "many bytes a character",
        "data: 豆腐🐈é\n\n",
        &[just("豆腐🐈é")],
    ),
    ("a null byte", "data: a\0b\n\n", &[just("a\0b")]),
    (
        "line separators of Unicode",
        "data: a\u{2028}b\u{85}c\n\n",
        &[just("a\u{2028}b\u{85}c")],
    ),
    // Names.
    ("a name", "event: add\ndata: 1\n\n", &[("add", "1")]),
    (
        "a name behind the data",
        "data: 1\nevent: add\n\n",
        &[("add", "1")],
    ),
    (
        "a name without data",
        "event: add\n\ndata: 1\n\n",
        &[just("1")],
    ),
    (
        "a name for one event alone",
        "event: add\ndata: 1\n\ndata: 2\n\n",
        &[("add", "1"), just("2")],
    ),
    (
        "the last name counts",
        "event: a\nevent: b\ndata: 1\n\n",
        &[("b", "1")],
    ),
    ("an empty name", "event:\ndata: 1\n\n", &[just("1")]),
    (
        "a name without a space",
        "event:add\ndata:1\n\n",
        &[("add", "1")],
    ),
    (
        "a name with a colon",
        "event: a:b\ndata: 1\n\n",
        &[("a:b", "1")],
    ),
    // Ids and retries.
    ("an id", "id: 1\ndata: a\n\n", &[just("a")]),
    (
        "an empty id",
        "id\ndata: a\n\nid:\ndata: b\n\n",
        &[just("a"), just("b")],
    ),
    (
        "an id with a null byte",
        "id: 1\0\ndata: a\n\n",
        &[just("a")],
    ),
    ("an id alone", "id: 1\n\ndata: a\n\n", &[just("a")]),
    ("a retry", "retry: 7000\ndata: a\n\n", &[just("a")]),
    (
        "a retry that is no number",
        "retry: soon\ndata: a\n\n",
        &[just("a")],
    ),
    (
        "all fields",
        "id: 1\nevent: e\nretry: 5\ndata: a\n\n",
        &[("e", "a")],
    ),
    // Ends.
    (
        "without its blank line",
        "data: a\n\ndata: b\n",
        &[just("a")],
    ),
    ("without its line's end", "data: a\n\ndata: b", &[just("a")]),
    ("inside a field's name", "data: a\n\nda", &[just("a")]),
    ("nothing", "", &[]),
];

/// Returns the complete events of these chunks, and all other frames.
fn read(chunks: &[&[u8]]) -> (Vec<(String, String)>, Vec<SseFrame>) {
    let (mut framer, mut all) = (SseParser::default(), Vec::new());
    for chunk in chunks {
        framer.push(chunk, &mut all).expect("within the caps");
    }
    framer.finish(&mut all).expect("within the caps");
    let (mut events, mut rest) = (Vec::new(), Vec::new());
    for frame in all {
        match frame {
            SseFrame::Event {
                name,
                data,
                complete: true,
            } => events.push((name, data)),
            other => rest.push(other),
        }
    }
    (events, rest)
}

#[test]
fn every_split_of_a_conformance_case_gives_the_same_frames() {
    for (what, stream, expected) in CASES {
        let bytes = stream.as_bytes();
        let whole_stream = read(&[bytes]);
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(name, data)| ((*name).to_owned(), (*data).to_owned()))
            .collect();
        assert_eq!(whole_stream.0, expected, "{what}");
        for cut in 0..=bytes.len() {
            let (one, two) = bytes.split_at(cut);
            assert_eq!(read(&[one, two]), whole_stream, "{what}, cut at {cut}");
            assert_eq!(
                read(&[one, &[], two]),
                whole_stream,
                "{what}, an empty chunk at {cut}"
            );
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole_stream, "{what}, byte by byte");
    }
}

#[test]
fn lines_outside_sse_are_kept_and_hide_no_event() {
    // (the stream, strays, events)
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("dat: a\n\ndata: b\n\n", &["dat: a"], &["b"]),
        ("Data: a\n\ndata: b\n\n", &["Data: a"], &["b"]),
        (" data: a\n\ndata: b\n\n", &[" data: a"], &["b"]),
        ("event : e\ndata: b\n\n", &["event : e"], &["b"]),
        ("unknown\ndata: b\n\n", &["unknown"], &["b"]),
    ];
    for (stream, strays, events) in cases {
        let (read, rest) = read(&[stream.as_bytes()]);
        let data: Vec<&str> = read.iter().map(|(_, data)| data.as_str()).collect();
        assert_eq!(data, *events, "{stream:?}");
        let kept: Vec<&str> = rest
            .iter()
            .map(|frame| match frame {
                SseFrame::Stray { text, .. } => text.as_str(),
                SseFrame::Event { .. } => panic!("not complete: {frame:?}"),
            })
            .collect();
        assert_eq!(kept, *strays, "{stream:?}");
    }
}
