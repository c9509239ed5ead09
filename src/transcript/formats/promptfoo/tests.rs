//! Results of three generations, and odd ones.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{MessageRole, SourceVerdict, Transcript, TranscriptPart};
use crate::transcript::{TranscriptFile, promptfoo_id};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/promptfoo")
        .join(name)
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("out.json");
    std::fs::write(&path, text).expect("written");
    (dir, path)
}

/// Every transcript or fault, each read twice, and what was not understood.
fn read(path: &Path) -> (Vec<Result<Transcript<'static>, String>>, u64) {
    let mut file = TranscriptFile::open(path).expect("results");
    assert_eq!(file.format(), "promptfoo results");
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            if record.fault.is_none() {
                assert_eq!(file.read_native(record.span).expect("again"), bytes);
            }
            let raw = file.read_raw(record.span).expect("raw");
            assert!(raw.is_empty() || raw.starts_with(b"{"), "one result");
            let default = file.default_id(record.span.number);
            let parsed = record.parse(bytes, &default);
            all.push(parsed.map(Transcript::into_owned).map_err(|bad| bad.why));
        }
    }
    (all, file.tally().expect("a tally").unknown_count())
}

fn good(path: &Path) -> Vec<Transcript<'static>> {
    let (all, unknown) = read(path);
    assert_eq!(unknown, 0);
    all.into_iter()
        .map(|one| one.expect("a transcript"))
        .collect()
}

fn meta(transcript: &Transcript<'_>) -> Value {
    transcript
        .metadata
        .as_ref()
        .expect("metadata")
        .parse_value()
}

fn verdict<'t>(transcript: &'t Transcript<'_>, eval: &str) -> &'t SourceVerdict {
    let found = transcript.verdicts.iter().find(|v| v.eval == eval);
    found.unwrap_or_else(|| panic!("{eval} of {:?}", names(transcript)))
}

fn names<'t>(transcript: &'t Transcript<'_>) -> Vec<&'t str> {
    transcript.verdicts.iter().map(|v| &*v.eval).collect()
}

#[test]
fn third_format_gives_prompt_output_and_metrics() {
    let all = good(&fixture("v3.json"));
    assert_eq!(all.len(), 7);
    // An object is its JSON on one line, as promptfoo compares it.
    let object = &all[1];
    assert_eq!(object.id.len(), 36, "the result's own id");
    assert_eq!(object.messages.len(), 2);
    let json = object.messages[1].text();
    assert!(json.starts_with("{\""), "{json}");
    assert!(!json.contains('\n'), "{json}");
    let reply_metadata = object.messages[1]
        .metadata
        .as_ref()
        .expect("numbers")
        .parse_value();
    assert_eq!(reply_metadata["output_type"], "json");
    assert_eq!(reply_metadata["latency_ms"], 3);
    assert_eq!(reply_metadata["cost_usd"], 0.002);
    assert_eq!(reply_metadata["usage"]["total"], 12);
    let metadata = meta(object);
    assert_eq!(metadata["source"], "promptfoo");
    assert_eq!(metadata["provider"], "made:object");
    assert_eq!(metadata["provider_label"], "object provider");
    assert_eq!(metadata["prompt_label"], "Say {{word}}");
    assert!(
        metadata["vars"]["word"]
            .as_str()
            .expect("a var")
            .contains("comma")
    );
    assert_eq!(metadata["suite"], "made", "the result's own metadata");
    assert!(
        metadata.get("error").is_none(),
        "a failed assertion is no error of the run"
    );
}

#[test]
fn assert_set_counts_once_and_repeated_names_get_numbers() {
    let all = good(&fixture("v3.json"));
    let set = &all[0];
    assert_eq!(
        names(set),
        ["javascript", "contains", "contains~2", "overall"]
    );
    assert_eq!(verdict(set, "contains").passed, Some(true));
    assert_eq!(verdict(set, "contains~2").passed, Some(false));
    assert_eq!(verdict(set, "overall").score, Some(0.25));
    let failed = &all[1];
    assert_eq!(names(failed), ["exact", "icontains", "overall"]);
    let exact = verdict(failed, "exact");
    assert_eq!((exact.passed, exact.score), (Some(false), Some(0.0)));
    assert!(
        exact
            .reasoning
            .as_deref()
            .expect("why")
            .starts_with("Expected")
    );
}

#[test]
fn failed_provider_is_an_error_without_verdict() {
    let all = good(&fixture("v3.json"));
    let erred = &all[2];
    assert_eq!(meta(erred)["error"], "the provider failed on purpose");
    assert_eq!(erred.messages.len(), 1, "it said nothing");
    let overall = verdict(erred, "overall");
    assert_eq!((overall.passed, overall.score), (None, None));
    assert_eq!(
        overall.error.as_deref(),
        Some("the provider failed on purpose")
    );
}

#[test]
fn human_rating_is_not_a_source_verdict() {
    let all = good(&fixture("v3.json"));
    let rated = &all[3];
    assert_eq!(names(rated), ["has_word", "long_enough"]);
    assert!(all.iter().flat_map(names).all(|name| name != "human"));
}

#[test]
fn a_chat_is_its_messages_and_calls_are_calls() {
    let all = good(&fixture("v3.json"));
    let chat = all.last().expect("the last");
    assert_eq!(&*chat.id, "eval-abc-2026-11-21T17:35:12:9:1");
    let roles: Vec<_> = chat.messages.iter().map(|m| m.role.as_str()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user", "assistant"]);
    let answer = &chat.messages[4];
    assert_eq!(answer.role, MessageRole::Assistant);
    let [TranscriptPart::ToolCall(call)] = &answer.parts[..] else {
        panic!("{answer:?}")
    };
    assert_eq!(
        (&*call.name, &*call.arguments),
        ("get_weather", "{\"city\": \"Ulm\"}")
    );
    let reply_metadata = answer.metadata.as_ref().expect("numbers").parse_value();
    assert_eq!(reply_metadata["output_type"], "calls");
    // Another answer has no numbers: so the transcript has them, too.
    assert_eq!(meta(chat)["latency_ms"], 1234);
    assert_eq!(meta(chat)["cost_usd"], 0.25);
    assert_eq!(meta(chat)["usage"]["thinking"], 4);
    let polite = verdict(chat, "polite");
    assert_eq!(polite.error.as_deref(), Some("the grader is away"));
    assert_eq!((polite.passed, polite.score), (None, None));
    let four = verdict(chat, "javascript");
    assert_eq!(
        (four.passed, four.score),
        (Some(true), None),
        "4 is no share"
    );
    assert_eq!(four.value.as_ref().expect("as written").get(), "4");
}

#[test]
fn line_with_two_results_is_read_and_torn_line_is_a_fault() {
    let (all, unknown) = read(&fixture("rows.jsonl"));
    assert_eq!(unknown, 1, "an object that is not a result");
    assert_eq!(all.len(), 4);
    assert!(all[..3].iter().all(Result::is_ok), "{all:?}");
    assert!(all[3].as_ref().expect_err("torn").contains("EOF"));
}

#[test]
fn the_second_format_is_read_with_and_without_its_list() {
    let list = good(&fixture("v2.json"));
    let table = good(&fixture("v2_table.json"));
    assert_eq!((list.len(), table.len()), (4, 4));
    assert_eq!(&*list[0].id, "v2:1", "it says neither test nor prompt");
    let answer = |all: &[Transcript<'_>], prompt: &str| {
        let found = all.iter().find(|t| t.messages[0].text() == prompt);
        let found = found.expect(prompt);
        let reply_metadata = found.messages[1]
            .metadata
            .as_ref()
            .expect("numbers")
            .parse_value();
        assert_eq!(reply_metadata["cost_usd"], 0.001);
        assert_eq!(reply_metadata["usage"]["input"], 5);
        (
            found.messages[1].text().into_owned(),
            names(found)
                .into_iter()
                .map(str::to_owned)
                .collect::<Vec<_>>(),
            meta(found)["vars"].clone(),
            meta(found)["provider"].clone(),
        )
    };
    for prompt in ["Say other", "Say hello", "Repeat: other, please"] {
        assert_eq!(answer(&list, prompt), answer(&table, prompt), "{prompt}");
    }
    assert_eq!(
        answer(&table, "Say other").0,
        "Say other",
        "the reason before it is cut"
    );
    let hello = answer(&list, "Say hello").1;
    assert_eq!(hello, ["has_word", "javascript", "overall"]);
}

#[test]
fn truncated_file_keeps_its_records_and_reports_the_end() {
    let row =
        r#"{"id":"a","promptIdx":0,"testIdx":0,"prompt":{"raw":"x"},"response":{"output":"y"}}"#;
    for (torn, faults) in [
        (
            format!(r#"{{"evalId":"e","results":{{"results":[{row},"#),
            1,
        ),
        (format!(r#"{{"evalId":"e","results":{{"results":[{row}"#), 1),
        (
            format!(r#"{{"evalId":"e","results":{{"results":[{row},{{"id":"b","#),
            1,
        ),
        (
            format!(r#"{{"evalId":"e","results":{{"results":[{row}],"stats":"#),
            0,
        ),
        (
            format!(r#"{{"evalId":"e","results":{{"results":[{row}]}},"config":{{"a":[{row}]}}}}"#),
            0,
        ),
    ] {
        let (_dir, path) = written(&torn);
        let (all, _) = read(&path);
        assert_eq!(
            all.iter().filter(|one| one.is_err()).count(),
            faults,
            "{torn}"
        );
        assert_eq!(all.iter().filter(|one| one.is_ok()).count(), 1, "{torn}");
    }
}

#[test]
fn odd_results_are_faults_or_read_never_a_panic() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let deep_grading = format!(
        "{}null{}",
        r#"{"componentResults":[{"score":1,"componentResults":["#.repeat(40),
        "]}]}".repeat(40)
    );
    for (field, ok) in [
        (format!(r#""vars":{{"x":{deep}}}"#), true),
        (format!(r#""gradingResult":{deep_grading}"#), true),
        (r#""gradingResult":7"#.to_owned(), false),
        (r#""latencyMs":99999999999999999999999999"#.to_owned(), true),
        (r#""score":NaN"#.to_owned(), false),
        (r#""prompt":"as text","provider":"echo""#.to_owned(), true),
        (r#""prompt":{"raw":"[not a chat"}"#.to_owned(), true),
        (
            r#""cost":"free","error":{"message":"odd"}"#.to_owned(),
            true,
        ),
    ] {
        let prompt = if field.contains("prompt") {
            ""
        } else {
            r#""prompt":{"raw":"x"},"#
        };
        let row =
            format!(r#"{{"promptIdx":0,"testIdx":0,{prompt}"response":{{"output":"y"}},{field}}}"#);
        let (_dir, path) = written(&row);
        let (all, _) = read(&path);
        assert_eq!(all.len(), 1, "{row}");
        assert_eq!(all[0].is_ok(), ok, "{row}: {:?}", all[0]);
    }
    let (_dir, path) = written(r#"{"evalId":"e","results":{"version":3}}"#);
    let why = TranscriptFile::open(&path)
        .expect_err("nothing in it")
        .to_string();
    assert!(why.contains("promptfoo export"), "{why}");
}

#[test]
fn half_a_surrogate_pair_keeps_the_output() {
    let (_dir, path) = written(
        r#"{"version":3,"results":{"version":3,"results":[{"prompt":{"raw":"Hi \ud83d"},"response":{"output":"cut \ud83d"},"success":true}]}}"#,
    );
    let all = good(&path);
    let texts: Vec<_> = all[0].messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, [r"Hi \ud83d", r"cut \ud83d"]);
}

#[test]
fn result_id_falls_back_to_its_position_in_the_eval() {
    let id = |id, test, prompt| promptfoo_id(id, "eval-1", test, prompt);
    assert_eq!(id(Some("a"), Some(1), Some(2)).as_deref(), Some("a"));
    assert_eq!(
        id(Some(""), Some(1), Some(2)).as_deref(),
        Some("eval-1:1:2")
    );
    assert_eq!(id(None, Some(1), Some(0)).as_deref(), Some("eval-1:1:0"));
    assert_eq!(id(None, Some(1), None), None);
}

#[test]
fn eval_that_was_shared_below_data_is_read() {
    let row = r#"{"prompt":{"raw":"Hi"},"vars":{},"response":{"output":"Hello"},"success":true}"#;
    let (_dir, path) = written(&format!(
        r#"{{"data":{{"version":3,"createdAt":"2024-11-01","author":null,"results":{{"version":2,"results":[{row}],"stats":{{}}}},"config":{{}}}}}}"#
    ));
    let all = good(&path);
    let texts: Vec<_> = all[0].messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["Hi", "Hello"]);
}
