//! A run of an agent, a run of SQL, evalsets, and tables that hold no transcripts.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::model::{Transcript, TranscriptPart};
use crate::transcript::TranscriptFile;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/evalbench")
        .join(name)
}

/// Every transcript or fault, each read twice.
fn read(path: &Path) -> Vec<Result<Transcript<'static>, String>> {
    let mut file = TranscriptFile::open(path).expect("of evalbench");
    assert!(file.format().contains("evalbench"), "{}", file.format());
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            if record.fault.is_none() {
                assert_eq!(file.read_native(record.span).expect("again"), bytes);
            }
            let default = file.default_id(record.span.number);
            let parsed = record.parse(bytes, &default);
            all.push(parsed.map(Transcript::into_owned).map_err(|bad| bad.why));
        }
    }
    all
}

fn meta(transcript: &Transcript<'_>) -> Value {
    transcript
        .metadata
        .as_ref()
        .expect("metadata")
        .parse_value()
}

fn roles(transcript: &Transcript<'_>) -> Vec<String> {
    let roles = transcript.messages.iter().map(|m| m.role.as_str());
    roles.map(str::to_owned).collect()
}

fn refused(path: &Path) -> String {
    TranscriptFile::open(path).expect_err("none").to_string()
}

#[test]
fn an_agents_run_is_its_conversation_with_calls_answers_and_sums() {
    let all = read(&fixture("run/evals.csv"));
    assert_eq!(all.len(), 5);
    let run = all[0].as_ref().expect("a run");
    assert_eq!(&*run.id, "beam-01");
    assert_eq!(
        roles(run),
        [
            "user",
            "assistant",
            "tool",
            "tool",
            "assistant",
            "user",
            "assistant"
        ]
    );
    let [TranscriptPart::ToolCall(list), TranscriptPart::ToolCall(_)] = &run.messages[1].parts[..]
    else {
        panic!("{:?}", run.messages[1])
    };
    assert_eq!(&*list.name, "cloud-sql__list_instances");
    assert_eq!(&*list.arguments, r#"{"project":"p"}"#);
    let results: Vec<_> = run.messages[2..4]
        .iter()
        .map(|message| match &message.parts[..] {
            [TranscriptPart::ToolResult(result)] => {
                (&*result.call_id, result.is_error, result.duration_ms)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        results,
        [
            ("c1", Some(false), Some(420.0)),
            ("c2", Some(true), Some(30.0))
        ]
    );
    assert_eq!(run.messages[6].text(), "The first is \"a\",\nin Belgium.");
    let metadata = meta(run);
    assert_eq!(metadata["usage"]["input"], 250);
    assert_eq!(metadata["cost_usd"], 0.03);
    assert_eq!(metadata["latency_ms"], 2000.0);
    assert_eq!(metadata["scenario"]["conversation_plan"], "ask where it's");
    assert_eq!(metadata["metadata"]["scorers"]["turn_count"], Value::Null);
    assert!(
        metadata.get("stdout").is_none(),
        "it is the last answer once more"
    );
    assert!(metadata.get("error").is_none());
}

#[test]
fn scores_next_to_a_run_are_its_verdicts() {
    let all = read(&fixture("run/evals.csv"));
    let run = all[0].as_ref().expect("a run");
    let verdicts: Vec<_> = run
        .verdicts
        .iter()
        .map(|v| (&*v.eval, v.passed, v.score))
        .collect();
    assert_eq!(
        verdicts,
        [
            ("binary_rubric_scorer_0", Some(true), Some(1.0)),
            ("binary_rubric_scorer_1", Some(false), Some(0.0)),
            ("trajectory_matcher", None, Some(0.5)),
            ("turn_count", None, None),
            ("goal_completion", None, None),
            ("trajectory_matcher~2", None, Some(1.0)),
        ]
    );
    let why = run.verdicts[0].reasoning.as_deref();
    assert_eq!(why, Some("PASS\nIt listed \"a\"."));
    assert_eq!(run.verdicts[3].value.as_ref().expect("2").get(), "2");
    assert_eq!(
        run.verdicts[4].error.as_deref(),
        Some("429 RESOURCE_EXHAUSTED")
    );
    assert!(run.verdicts.iter().all(|v| v.judge == "evalbench"));
    assert_eq!(all[1].as_ref().expect("a run").verdicts.len(), 1);
}

#[test]
fn older_failed_plain_and_broken_runs_are_distinguished() {
    let all = read(&fixture("run/evals.csv"));
    let old = all[1].as_ref().expect("without a list of calls");
    assert_eq!(roles(old), ["user", "assistant", "assistant"]);
    assert_eq!(old.messages[1].parts.len(), 2, "two calls by their name");
    assert_eq!(
        meta(old)["scenario"],
        "{'id': 'beam-02', 'at': datetime.date(2026, 1, 1)}"
    );
    assert!(meta(old).get("cost_usd").is_none(), "it has no prices");
    let failed = all[2].as_ref().expect("a failed run");
    assert_eq!(roles(failed), ["user"]);
    assert_eq!(
        meta(failed)["error"],
        "the agent ended with code 124: TimeoutError: too slow"
    );
    let plain = all[3].as_ref().expect("text");
    assert_eq!(plain.messages[1].text(), "plain words, no JSON");
    assert_eq!(meta(plain)["stdout"], "plain words");
    assert!(
        all[4]
            .as_ref()
            .expect_err("no JSON")
            .contains("conversation_history")
    );
}

#[test]
fn sql_run_becomes_question_and_query() {
    let all = read(&fixture("sql/evals.csv"));
    let run = all[0].as_ref().expect("a run");
    assert_eq!(&*run.id, "7");
    assert_eq!(roles(run), ["user", "assistant"]);
    assert_eq!(run.messages[1].text(), "SELECT COUNT(*)\nFROM pubs");
    let metadata = meta(run);
    assert_eq!(metadata["golden_sql"][0], "SELECT 3");
    assert_eq!(metadata["generated_result"][0]["n"], 3);
    let tags: Vec<&str> = run.tags.iter().map(|tag| &**tag).collect();
    assert_eq!(tags, ["easy", "dql"]);
    let broken = all[1].as_ref().expect("a run");
    assert_eq!(roles(broken), ["user"]);
    assert_eq!(meta(broken)["error"], "no such table: x");
}

#[test]
fn an_evalset_has_prompts_and_no_answers() {
    let all = read(&fixture("agents.evalset.json"));
    let first = all[0].as_ref().expect("a scenario");
    assert_eq!((&*first.id, first.messages.len()), ("a", 1));
    assert_eq!(meta(first)["answered"], false);
    assert_eq!(meta(first)["binary_rubric"][0], "names 2.70");
    assert!(
        all[1]
            .as_ref()
            .expect_err("no prompt")
            .contains("starting_prompt")
    );
    let all = read(&fixture("sql.evalset.json"));
    let first = all[0].as_ref().expect("a question");
    assert_eq!(
        (&*first.id, &*first.messages[0].text()),
        ("1", "How many pubs?")
    );
}

#[test]
fn tables_without_transcripts_name_the_file_to_open() {
    let why = refused(&fixture("run/scores.csv"));
    assert!(why.contains("open `evals.csv`"), "{why}");
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("summary.csv");
    std::fs::write(&path, "metric_name,metric_score,job_id\nexecutable,1,j\n").expect("written");
    assert!(refused(&path).contains("evals.csv"));
}

#[test]
fn odd_tables_are_faults_never_a_panic() {
    let header = "eval_id,prompt,conversation_history";
    for (table, expected) in [
        (
            format!(
                "\u{feff}{header}\r\na,x,\"[{{\"\"user\"\":\"\"x\"\",\"\"agent\"\":\"\"y\"\"}}]\"\r\n"
            ),
            "ok",
        ),
        (format!("{header}\na,x\n"), "2 cells"),
        (format!("{header}\na,x,\"[{{"), "not a JSON list"),
        (
            format!("{header}\na,x,\"{}\"\n", "[".repeat(200)),
            "not a JSON list",
        ),
        (format!("{header}\n\n,x,\n"), "ok"),
        (format!("{header}\na,x,7\n"), "not a JSON list"),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("evals.csv");
        std::fs::write(&path, &table).expect("written");
        let all = read(&path);
        assert_eq!(all.len(), 1, "{table}");
        match &all[0] {
            Ok(run) => assert_eq!((expected, run.messages[0].text().as_ref()), ("ok", "x")),
            Err(why) => assert!(why.contains(expected), "{table}: {why}"),
        }
    }
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("evals.csv");
    std::fs::write(&path, format!("{header}\na,x,\n")).expect("written");
    std::fs::write(dir.path().join("scores.csv"), "what,is,this\n").expect("written");
    assert!(refused(&path).contains("comparator"));
    std::fs::write(&path, [header.as_bytes(), b"\na,\xff\xfe,\n"].concat()).expect("written");
    std::fs::write(dir.path().join("scores.csv"), "").expect("written");
    assert!(
        read(&path)[0]
            .as_ref()
            .expect_err("no text")
            .contains("UTF-8")
    );
}
