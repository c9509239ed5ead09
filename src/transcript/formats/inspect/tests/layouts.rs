//! The layouts of logs on disk.

use super::*;
use crate::transcript::TranscriptIndexEntry;

fn sample(id: &str, epoch: u64, answer: &str) -> String {
    format!(
        r#"{{"id":"{id}","epoch":{epoch},"messages":[{{"role":"assistant","content":"{answer}"}}],"scores":{{"s":{{"value":"C"}}}}}}"#
    )
}

fn answers(path: &Path) -> Vec<(String, String)> {
    let row = |read: Result<Transcript<'_>, String>| {
        let read = read.expect("a transcript");
        (read.id.to_string(), read.messages[0].text().into_owned())
    };
    all(path).into_iter().map(row).collect()
}

fn entries(path: &Path) -> Vec<TranscriptIndexEntry> {
    let mut file = TranscriptFile::open(path).expect("a log");
    let entries = file.read_index().expect("read").expect("a directory");
    assert_eq!(
        file.tally().map(|tally| tally.records),
        Some(0),
        "no sample was read"
    );
    entries
}

#[test]
fn members_are_unpacked_however_they_are_packed() {
    for method in [
        Method::Stored,
        Method::Deflate,
        Method::Zstd(1),
        Method::Zstd(7),
    ] {
        let zip = Zip::default()
            .add("samples/a_epoch_1.json", sample("a", 1, "packed"), method)
            .add("header.json", r#"{"eval":{}}"#, method);
        let expected = [("a".to_owned(), "packed".to_owned())];
        let (_dir, path) = written("a.eval", zip.finish());
        assert_eq!(answers(&path), expected, "{method:?}");
    }
    let zip = Zip::default().add(
        "samples/a_epoch_1.json",
        sample("a", 1, "large"),
        Method::Stored,
    );
    let (_dir, path) = written("a.eval", zip.finish_64());
    assert_eq!(
        answers(&path)[0].1,
        "large",
        "the directory of a large file"
    );
}

#[test]
fn a_member_that_was_written_again_counts_once_as_it_was_last() {
    let zip = Zip::default()
        .add(
            "samples/a_epoch_1.json",
            sample("a", 1, "first"),
            Method::Deflate,
        )
        .add(
            "samples/b_epoch_1.json",
            sample("b", 1, "other"),
            Method::Deflate,
        )
        .add(
            "samples/a_epoch_1.json",
            sample("a", 1, "last"),
            Method::Deflate,
        )
        .add(
            "header.json",
            r#"{"eval":{"config":{"epochs":1}}}"#,
            Method::Stored,
        );
    let (_dir, path) = written("a.eval", zip.finish());
    let expected =
        [("a", "last"), ("b", "other")].map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(answers(&path), expected);
}

#[test]
fn crashed_run_is_read_from_its_journal() {
    let start = r#"{"version":2,"eval":{"task":"t","model":"m","config":{"epochs":1}},"plan":{}}"#;
    let summary = |value: &str| {
        format!(r#"[{{"id":"a","epoch":1,"input":"x","scores":{{"s":{{"value":{value}}}}}}}]"#)
    };
    let zip = Zip::default()
        .add("_journal/start.json", start, Method::Deflate)
        .add(
            "samples/a_epoch_1.json",
            sample("a", 1, "said"),
            Method::Deflate,
        )
        .add(
            "_journal/summaries/10.json",
            summary(r#""C""#),
            Method::Deflate,
        )
        .add("_journal/summaries/9.json", summary("NaN"), Method::Deflate)
        .add(
            "samples/b/c_epoch_1.json",
            sample("b/c", 1, "too"),
            Method::Deflate,
        );
    let (_dir, path) = written("a.eval", zip.finish());
    let listed = entries(&path);
    let ids: Vec<&str> = listed.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(ids, ["a", "b/c"], "one without a summary goes by its name");
    assert_eq!(
        listed[0].verdicts[0].passed,
        Some(true),
        "the later summary"
    );
    assert!(listed[1].verdicts.is_empty());
    assert_eq!(answers(&path).len(), 2);
    let meta = metadata(all(&path)[0].as_ref().expect("read").metadata.as_ref());
    assert_eq!(meta["task"], "t");
}

#[test]
fn index_agrees_with_samples_without_reading_them() {
    let zip = Zip::default()
        .add("samples/with/slash_epoch_1.json", sample("with/slash", 1, "x"), Method::Deflate)
        .add("samples/with/slash_epoch_2.json", "{ broken", Method::Deflate)
        .add("samples/8_epoch_1.json", sample("8", 1, "y").replace(r#""8""#, "8"), Method::Deflate)
        .add(
            "summaries.json",
            r#"[{"id":"with/slash","epoch":1,"scores":{"s":{"value":"C"}}}, {"id":"with/slash","epoch":2,"scores":null},
               {"id":8,"epoch":1,"input":[{"role":"user","content":"]}\""}],"scores":{"s":{"value":{"k":NaN}}}}, 3, {"id":"gone","epoch":1}]"#,
            Method::Zstd(3),
        )
        .add("header.json", HEADER, Method::Stored);
    let (_dir, path) = written("a.eval", zip.finish());
    let listed = entries(&path);
    let ids: Vec<&str> = listed.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(
        ids,
        ["with/slash_epoch_1", "with/slash_epoch_2", "8_epoch_1"]
    );
    assert_eq!(listed[2].verdicts[0].eval, "s/k");
    let mut file = TranscriptFile::open(&path).expect("a log");
    file.read_index().expect("read");
    let unknown = file.tally().map(|tally| tally.unknown.clone());
    assert_eq!(
        unknown.and_then(|all| all.get("a summary without its sample").copied()),
        Some(2)
    );
    for (entry, sample) in listed.iter().zip(all(&path)) {
        let again = file.read_native(entry.span);
        match sample {
            Ok(sample) => {
                let again = again.expect("read by its place");
                let read = crate::transcript::parse_native(&again, 1, "x").expect("a transcript");
                assert_eq!(
                    (&*read.id, &read.verdicts.is_empty()),
                    (&*entry.id, &entry.verdicts.is_empty())
                );
                assert_eq!(sample.id, read.id);
            }
            Err(why) => assert!(why.contains("with/slash_epoch_2"), "{why}"),
        }
    }
    let raw = file.read_raw(listed[2].span).expect("raw");
    assert!(raw.starts_with(br#"{"id":8"#), "as the member has it");
}

#[test]
fn a_sample_in_parts_is_put_together() {
    let message =
        |role: &str, text: &str| format!(r#"{{"id":"{text}","role":"{role}","content":"{text}"}}"#);
    let shell = r#"{"id":"big","epoch":1,"input":"q","scores":{"s":{"value":"I"}},"message_refs":[[0,1],[2,4]]}"#;
    let below = "samples/big_epoch_1";
    let zip = Zip::default()
        .add(&format!("{below}/sample.json"), shell, Method::Deflate)
        .add(&format!("{below}/metadata.json"), r#"{"group":"g","n":NaN}"#, Method::Deflate)
        .add(&format!("{below}/skeleton.json"), "{}", Method::Deflate)
        .add(&format!("{below}/messages/2.json"), format!("[{},{}]", message("assistant", "attachment://1"), message("user", "attachment://9")), Method::Deflate)
        .add(&format!("{below}/messages/0.json"), format!("[{},{}]", message("user", "q"), message("system", "not this")), Method::Deflate)
        .add(&format!("{below}/events/0.json"), r#"[{"event":"model","output":{"time":1,"choices":[{"message":{"id":"attachment://1","role":"assistant"}}]}}]"#, Method::Deflate)
        .add(&format!("{below}/events/stats.json"), "{}", Method::Deflate)
        .add(&format!("{below}/attachments/0.json"), r#"["zero"]"#, Method::Deflate)
        .add(&format!("{below}/attachments/1.json"), r#"["one","two"]"#, Method::Deflate)
        .add("samples/small_epoch_1.json", sample("small", 1, "x"), Method::Deflate)
        .add("header.json", r#"{"eval":{"task":"t"}}"#, Method::Stored);
    let (_dir, path) = written("a.eval", zip.finish());
    let mut read = all(&path);
    assert_eq!(read.len(), 2, "both kinds in one log");
    let big = read.remove(0).expect("a transcript");
    let texts: Vec<_> = big.messages.iter().map(|m| m.text().into_owned()).collect();
    assert_eq!(texts, ["q", "one", "attachment://9"]);
    assert_eq!(
        metadata(big.messages[1].metadata.as_ref())["latency_ms"],
        1000.0
    );
    let meta = metadata(big.metadata.as_ref());
    assert_eq!(
        (
            &meta["group"],
            &meta["non_finite_numbers"],
            &meta["missing_attachments"]
        ),
        (&"g".into(), &1.into(), &1.into())
    );
    assert_eq!((&*big.id, big.verdicts[0].passed), ("big", Some(false)));
}

#[test]
fn a_log_that_is_one_object_is_read_sample_by_sample() {
    let (_dir, path) = written("log.json", LOG);
    let mut read: Vec<_> = all(&path)
        .into_iter()
        .map(|read| read.expect("read"))
        .collect();
    let two = read.pop().expect("two");
    let one = read.pop().expect("one");
    assert_eq!((&*one.id, &*two.id, &*one.tags[0]), ("one", "2", "small"));
    let TranscriptPart::ToolCall(call) = &one.messages[1].parts[0] else {
        panic!("a call")
    };
    assert_eq!(
        &*call.arguments, r#"{"x":1,"s":"a  b\n"}"#,
        "its own text, on one line"
    );
    assert_eq!(
        two.messages[0].text(),
        "2 + 2?",
        "no conversation: what went in, what came out"
    );
    assert_eq!(two.messages[1].text(), "5");
    assert_eq!(two.verdicts[0].passed, Some(false));
    let meta = metadata(one.metadata.as_ref());
    assert_eq!(
        (&meta["task"], &meta["target"]),
        (&"sums".into(), &"3".into())
    );

    // On one line, with a byte order mark, the facts behind the list.
    let log: Value = serde_json::from_str(&LOG.replace("NaN", "0")).expect("JSON");
    let mut turned = serde_json::Map::new();
    for key in ["version", "status", "samples", "eval", "results"] {
        turned.insert(key.to_owned(), log[key].clone());
    }
    let (_dir, path) = written("log.json", format!("\u{feff}{}\r\n", Value::Object(turned)));
    let again: Vec<_> = all(&path)
        .into_iter()
        .map(|read| read.expect("read"))
        .collect();
    assert_eq!(again, [one, two]);
}
