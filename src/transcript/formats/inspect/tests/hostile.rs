//! Logs that are torn, lie, or are something else.

use proptest::prelude::*;

use super::*;

#[test]
fn torn_zip_file_has_an_error_with_a_fix() {
    let archive = log_of(SAMPLE);
    for len in [
        archive.len() - 1,
        archive.len() - 60,
        archive.len() / 2,
        30,
        4,
    ] {
        let why = refusal("a.eval", &archive[..len]);
        assert!(
            why.contains("torn") && why.contains("inspect log recover"),
            "{len}: {why}"
        );
    }
    let mut damaged = archive.clone();
    let directory = damaged
        .windows(4)
        .position(|b| b == b"PK\x01\x02")
        .expect("a directory");
    damaged[directory + 46] = b'P';
    damaged[directory..directory + 4].fill(0);
    assert!(refusal("a.eval", damaged).contains("damaged"));
}

#[test]
fn a_zip_file_of_something_else_is_named() {
    let zip = Zip::default().add("word/document.xml", "<x/>", Method::Deflate);
    let why = refusal("a.docx", zip.finish());
    assert!(why.contains("not an Inspect log"), "{why}");
    let zip = Zip::default().add("header.json", HEADER, Method::Stored);
    let why = refusal("a.eval", zip.finish());
    assert!(why.contains("without samples"), "{why}");
    for log in [
        r#"{"version":2,"status":"success","eval":{}}"#,
        r#"{"version":2,"status":"error","eval":{},"samples":[ ]}"#,
        r#"{"eval":{},"status":"x","samples":null}"#,
    ] {
        assert!(
            refusal("log.json", log).contains("without samples"),
            "{log}"
        );
    }
}

#[test]
fn zip_bomb_is_a_bad_record_and_other_samples_are_read() {
    // A mebibyte of nothing, written over and over; honest about its size, then not.
    let frame = packed::frame(&vec![b' '; 1024 * 1024]);
    let bomb = frame.repeat(MAX_RECORD / (1024 * 1024) + 1);
    let good = r#"{"id":"ok","epoch":1,"messages":[]}"#;
    for (size, expected) in [
        (
            MAX_RECORD + 1024 * 1024,
            "the limit for a file of this size",
        ),
        (10, "cannot be unpacked"),
    ] {
        let zip = Zip::default()
            .add_packed("samples/bomb_epoch_1.json", 93, 0, size, &bomb)
            .add("samples/ok_epoch_1.json", good, Method::Stored);
        let zip = zip.finish();
        assert!(zip.len() < 200_000, "small when packed");
        let (_dir, path) = written("a.eval", zip);
        let read = all(&path);
        let why = read[0].as_ref().expect_err("too large");
        assert!(why.contains(expected), "{why}");
        assert_eq!(&*read[1].as_ref().expect("read").id, "ok");
    }
}

#[test]
fn members_that_lie_or_cannot_be_read_are_bad_records() {
    let text = r#"{"id":"a","epoch":1,"messages":[]}"#;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    for (what, member, why) in [
        (
            "another checksum",
            (0, 7, text.len(), text.as_bytes().to_vec()),
            "cannot be unpacked",
        ),
        (
            "no deflate",
            (8, 0, 9, b"\xff\xffgarbage".to_vec()),
            "cannot be unpacked",
        ),
        (
            "a method nobody knows",
            (77, 0, 9, b"x".to_vec()),
            "cannot be unpacked",
        ),
    ] {
        let (method, crc, size, packed) = member;
        let zip = Zip::default()
            .add_packed("samples/a_epoch_1.json", method, crc, size, &packed)
            .add("header.json", HEADER, Method::Stored);
        let (_dir, path) = written("a.eval", zip.finish());
        let read = all(&path);
        let found = read[0].as_ref().expect_err(what);
        assert!(
            found.contains("a_epoch_1") && found.contains(why),
            "{what}: {found}"
        );
    }
    for (text, why) in [
        ("{\"id\":\"a\",\"messages\":[", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "no `id`"),
        (r#"{"id":"a","messages":3}"#, "messages"),
        (
            r#"{"id":"a","messages":[{"content":"x"}]}"#,
            "message 0: it has no `role`",
        ),
        (
            r#"{"id":"a","messages":[{"role":"user","content":3}]}"#,
            "message 0",
        ),
        (r#"{"id":"a","scores":[1]}"#, "its scores cannot be read"),
        ("\u{feff}{}", "cannot be read"),
    ] {
        let (_dir, path) = written("a.eval", log_of(text));
        let read = all(&path);
        let found = read[0].as_ref().expect_err(text);
        assert!(found.contains(why), "{text}: {found}");
    }
    let latin = b"{\"id\":\"caf\xe9\"}";
    let zip = Zip::default().add("samples/a_epoch_1.json", latin, Method::Stored);
    let (_dir, path) = written("a.eval", zip.finish());
    assert!(all(&path)[0].as_ref().expect_err("bad").contains("UTF-8"));
    // Nested a hundred and a thousand deep, a number of a hundred digits: kept, however deep one reads.
    for depth in [100, 1000] {
        let huge = "9".repeat(100);
        let text = format!(
            r#"{{"id":{huge},"epoch":1,"messages":[{{"role":"assistant","tool_calls":[{{"id":1,"function":"f","arguments":{}}}],"metadata":{{"d":{}}}}}],"metadata":{{"m":{}}}}}"#,
            deep(depth),
            deep(depth),
            deep(depth)
        );
        let (_dir, path) = written("a.eval", log_of(&text));
        let read = only(&path);
        assert_eq!(&*read.id, format!("{huge}_epoch_1"));
        assert!(
            matches!(&read.messages[0].parts[0], TranscriptPart::ToolCall(call) if call.arguments.len() == 2 * depth)
        );
    }
}

#[test]
fn metadata_that_is_nested_too_deeply_hides_no_other_key() {
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let text = format!(
        r#"{{"id":"a","epoch":1,"messages":[{{"role":"user","content":"x","metadata":{{"d":{deep},"k":1}}}}],"metadata":{{"m":{deep},"k":2,"k":3,"epoch":7}},"store":{deep}}}"#
    );
    let (_dir, path) = written("a.eval", log_of(&text));
    let read = only(&path);
    let meta = metadata(read.metadata.as_ref());
    assert_eq!((&meta["k"], &meta["epoch"]), (&3.into(), &1.into()));
    assert_eq!(meta["original"]["epoch"], 7);
    assert_eq!(meta["m"], deep);
    assert_eq!(meta["store"], deep);
    assert_eq!(metadata(read.messages[0].metadata.as_ref())["k"], 1);
}

#[test]
fn large_error_of_a_sample_stays_text_and_builds_no_tree() {
    let error = format!(r#"{{"message":"m","all":[0{}]}}"#, ",0".repeat(600_000));
    let text = format!(r#"{{"id":"a","epoch":1,"messages":[],"error":{error}}}"#);
    let (_dir, path) = written("a.eval", log_of(&text));
    assert_eq!(metadata(only(&path).metadata.as_ref())["error"], error);
}

#[test]
fn a_torn_log_of_one_object_has_the_samples_before_the_tear() {
    let cut = LOG.find(r#""2 + 2?""#).expect("the second sample");
    let (_dir, path) = written("log.json", &LOG[..cut]);
    let read = all(&path);
    assert_eq!(read.len(), 2);
    assert_eq!(&*read[0].as_ref().expect("whole").id, "one");
    assert!(
        read[1]
            .as_ref()
            .expect_err("torn")
            .contains("cannot be read")
    );
}

#[test]
fn unreadable_summaries_are_counted_and_ids_come_from_member_names() {
    for summaries in ["{ \"no\": \"list\" }", "[{\"id\":", "NaN", "[[[["] {
        let zip = Zip::default()
            .add(
                "samples/a b_epoch_3.json",
                r#"{"id":"a b","epoch":3}"#,
                Method::Stored,
            )
            .add("summaries.json", summaries, Method::Stored)
            .add("header.json", "{ not JSON", Method::Stored);
        let (_dir, path) = written("a.eval", zip.finish());
        let mut file = TranscriptFile::open(&path).expect("a log");
        let listed = file.read_index().expect("read").expect("a directory");
        assert_eq!(listed[0].id, "a b_epoch_3");
        let unknown = file
            .tally()
            .map(crate::transcript::ReadTally::unknown_count);
        assert!(unknown.is_some_and(|count| count >= 1), "{summaries}");
    }
}

#[test]
fn header_zip_bomb_is_counted_and_samples_are_read() {
    let bomb = format!("{{\"eval\":[1{}]}}", ",1".repeat(9 * 1024 * 1024));
    let zip = Zip::default()
        .add("header.json", &bomb, Method::Deflate)
        .add("samples/a_epoch_1.json", SAMPLE, Method::Stored);
    let (_dir, path) = written("a.eval", zip.finish());
    let mut file = TranscriptFile::open(&path).expect("a log");
    let block = file.next_block().expect("read").expect("a block");
    assert!(block.records[0].fault.is_none());
    let tally = file.tally().expect("a tally");
    assert_eq!((tally.records, tally.unknown_count()), (2, 1));
}

/// A sample whose messages refer to one attachment of a mebibyte, in one piece and in parts.
fn logs_with_repeated_attachment(references: usize) -> [Vec<u8>; 2] {
    let text = "x".repeat(1024 * 1024);
    let message = r#"{"role":"user","content":"attachment://0"}"#;
    let messages = vec![message; references].join(",");
    let whole =
        format!(r#"{{"id":"a","epoch":1,"messages":[{messages}],"attachments":{{"0":"{text}"}}}}"#);
    let refs = vec!["[0,1]"; references].join(",");
    let shell = format!(r#"{{"id":"a","epoch":1,"message_refs":[{refs}]}}"#);
    let parts = Zip::default()
        .add("samples/a_epoch_1/sample.json", shell, Method::Deflate)
        .add(
            "samples/a_epoch_1/messages/0.json",
            format!("[{message}]"),
            Method::Stored,
        )
        .add(
            "samples/a_epoch_1/attachments/0.json",
            format!("[\"{text}\"]"),
            Method::Deflate,
        )
        .add("header.json", HEADER, Method::Stored);
    [log_of(&whole), parts.finish()]
}

#[test]
fn repeated_references_to_an_attachment_count_against_the_limit() {
    for log in logs_with_repeated_attachment(3) {
        let (_dir, path) = written("a.eval", log);
        let read = only(&path);
        assert_eq!(read.messages[2].text().len(), 1024 * 1024);
    }
    for log in logs_with_repeated_attachment(200) {
        let (_dir, path) = written("a.eval", log);
        let why = all(&path)[0].as_ref().expect_err("200 MiB").clone();
        assert!(why.contains("expand to more than 128 MiB"), "{why}");
    }
}

#[test]
fn repeated_references_in_one_media_part_count_against_the_limit() {
    let text = "\\n".repeat(512 * 1024);
    let fields: Vec<String> = (0..200)
        .map(|n| format!(r#""f{n}":"attachment://0""#))
        .collect();
    let sample = format!(
        r#"{{"id":"a","epoch":1,"messages":[{{"role":"user","content":[{{"type":"image",{}}}]}}],"attachments":{{"0":"{text}"}}}}"#,
        fields.join(",")
    );
    let (_dir, path) = written("a.eval", log_of(&sample));
    let why = all(&path)[0].as_ref().expect_err("200 MiB").clone();
    assert!(why.contains("expand to more than 128 MiB"), "{why}");
}

#[test]
fn repeated_long_message_counts_against_the_limit() {
    let message = format!(
        r#"{{"role":"user","content":"{}"}}"#,
        "x".repeat(1024 * 1024)
    );
    let refs = vec!["[0,1]"; 200].join(",");
    let shell = format!(r#"{{"id":"a","epoch":1,"message_refs":[{refs}]}}"#);
    let zip = Zip::default()
        .add("samples/a_epoch_1/sample.json", shell, Method::Stored)
        .add(
            "samples/a_epoch_1/messages/0.json",
            format!("[{message}]"),
            Method::Deflate,
        );
    let (_dir, path) = written("a.eval", zip.finish());
    let why = all(&path)[0].as_ref().expect_err("200 MiB").clone();
    assert!(
        why.contains("more messages than a sample can hold"),
        "{why}"
    );
}

#[test]
fn members_with_the_same_data_are_refused() {
    let good = r#"{"id":"ok","epoch":1,"messages":[]}"#;
    let zip = Zip::default()
        .add("samples/ok_epoch_1.json", good, Method::Stored)
        .add("samples/a_epoch_1.json", good, Method::Deflate)
        .add_alias("samples/b_epoch_1.json")
        .add_alias("samples/c_epoch_1.json");
    let (_dir, path) = written("a.eval", zip.finish());
    let read = all(&path);
    assert_eq!(read.len(), 4);
    assert_eq!(&*read[0].as_ref().expect("its own data").id, "ok");
    for one in &read[1..] {
        let why = one.as_ref().expect_err("overlaps");
        assert!(why.contains("overlaps that of another member"), "{why}");
    }
}

#[test]
fn all_members_together_have_a_limit_that_depends_on_the_file() {
    let mebibyte = vec![b' '; 1024 * 1024];
    let packed = packed::frame(&mebibyte);
    let mut crc = flate2::Crc::new();
    crc.update(&mebibyte);
    let mut zip = Zip::default();
    for n in 0..100 {
        let name = format!("samples/{n}_epoch_1.json");
        zip = zip.add_packed(&name, 93, crc.sum(), mebibyte.len(), &packed);
    }
    let zip = zip.finish();
    assert!(zip.len() < 30_000, "{}", zip.len());
    let (_dir, path) = written("a.eval", zip);
    let mut file = TranscriptFile::open(&path).expect("a log");
    let mut refused = 0;
    while let Some(block) = file.next_block().expect("a block") {
        let faults = block.records.iter().filter_map(|one| one.fault.as_ref());
        refused += faults
            .filter(|why| why.contains("the limit for a file of this size"))
            .count();
    }
    assert!((60..70).contains(&refused), "{refused}");
}

#[test]
fn repeated_message_range_stops_at_the_limit() {
    let shell = r#"{"id":"big","message_refs":[[0,18446744073709551615]]}"#;
    let zip = Zip::default()
        .add("samples/big_epoch_1/sample.json", shell, Method::Stored)
        .add(
            "samples/big_epoch_1/messages/0.json",
            "[{\"role\":\"user\"}]",
            Method::Stored,
        );
    let (_dir, path) = written("a.eval", zip.finish());
    let why = all(&path)[0].as_ref().expect_err("too many").clone();
    assert!(why.contains("message 1 is missing"), "{why}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn parser_does_not_panic_on_any_bytes(at in 0usize..2000, byte: u8, cut in 0usize..3000, json: bool) {
        let mut bytes = if json {
            LOG.as_bytes().to_vec()
        } else {
            let sample = r#"{"id":"a","epoch":1,"messages":[{"role":"user","content":"x"}],"scores":{"s":{"value":NaN}}}"#;
            Zip::default()
                .add("samples/a_epoch_1.json", sample, Method::Stored)
                .add("samples/b_epoch_1/sample.json", sample, Method::Deflate)
                .add("samples/b_epoch_1/messages/0.json", "[]", Method::Zstd(2))
                .add("summaries.json", r#"[{"id":"a","epoch":1}]"#, Method::Stored)
                .add("header.json", HEADER, Method::Deflate)
                .finish()
        };
        let len = bytes.len();
        bytes[at % len] = byte;
        bytes.truncate(cut.max(1));
        let (_dir, path) = written("a.eval", bytes);
        if let Ok(mut file) = TranscriptFile::open(&path) {
            let listed = file.read_index();
            while let Ok(Some(block)) = file.next_block() {
                for (record, bytes) in block.records() {
                    let _either = record.parse(bytes, "x");
                    let _either = file.read_native(record.span);
                }
            }
            if let Ok(Some(listed)) = listed {
                for entry in listed {
                    let _either = file.read_raw(entry.span);
                }
            }
        }
    }
}
