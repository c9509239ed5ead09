//! Files of other programs that resemble a format of dicta, but lack a part of the conversation: their names, and what
//! to save in their place.
//!
//! Responsible for the reason of a refusal. Only a file without a matching format comes here, so a name hides no
//! format. Does not read the files.

use serde_json::Value;

/// A file that dicta names and does not read.
struct UnreadFile {
    /// Returns true if the outline of the first record is that of such a file.
    matches: fn(&Value) -> bool,
    /// The name, and what to do, as a sentence fragment.
    why: &'static str,
}

const UNREAD_FILES: &[UnreadFile] = &[
    UnreadFile {
        matches: is_claude_result,
        why: "it looks like the result that `claude -p --output-format json` prints, which has the last answer \
              alone; save what `claude -p --output-format stream-json --verbose` prints, or open the session in \
              `~/.claude/projects`",
    },
    UnreadFile {
        matches: is_promptfoo_rating,
        why: "it looks like answers that people rated in promptfoo, without their prompts; write the results with \
              `promptfoo export eval -o out.json`",
    },
    UnreadFile {
        matches: is_partial_langfuse_trace,
        why: "it looks like a trace of Langfuse without some of the fields that its API returns; save the reply of \
              `/api/public/traces/ID`",
    },
    UnreadFile {
        matches: is_langsmith_batch,
        why: "it looks like a batch that LangSmith's SDK sends, which has parts of runs; save whole runs, for example \
              those of `Client.list_runs`",
    },
    UnreadFile {
        matches: is_openai_eval_run,
        why: "it looks like a run of OpenAI's evals without its output items; save the reply of \
              `/v1/evals/EVAL/runs/RUN/output_items`",
    },
    UnreadFile {
        matches: is_terminal_bench_result,
        why: "it looks like results of Terminal-Bench, which have no conversation; open the session that the agent \
              wrote, or the `trajectory.json` of a run of Harbor",
    },
    UnreadFile {
        matches: is_gaia_task,
        why: "it looks like tasks of GAIA, which have no conversation; open the log of the run that answered them",
    },
    UnreadFile {
        matches: is_deepeval_cache,
        why: "it looks like the cache of DeepEval's metrics; open the test run in `.deepeval/.latest_run_full.json`",
    },
    UnreadFile {
        matches: is_table_by_columns,
        why: "it looks like a table that pandas wrote column by column; write its rows with \
              `to_json(FILE, orient=\"records\")`",
    },
];

/// Returns the name of a file and what to do, as a sentence fragment. `record` is the outline of the first record.
pub(super) fn name_unread_file(record: &Value) -> Option<&'static str> {
    let found = UNREAD_FILES.iter().find(|file| (file.matches)(record));
    found.map(|file| file.why)
}

fn is_claude_result(record: &Value) -> bool {
    record["type"] == "result" && record["subtype"].is_string() && record["session_id"].is_string()
}

fn is_promptfoo_rating(record: &Value) -> bool {
    let first = &record["data"][0];
    first["text"].is_string() && first.get("manualGrading").is_some()
}

fn is_partial_langfuse_trace(record: &Value) -> bool {
    // Other programs observe things, too, so an observation must have a key or a type of Langfuse.
    let first = &record["observations"][0];
    let keys = ["traceId", "trace_id", "parentObservationId"];
    let kinds = ["SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN"];
    let kind = first["type"].as_str();
    record["id"].is_string()
        && (keys.iter().any(|key| first.get(*key).is_some())
            || kind.is_some_and(|kind| kinds.contains(&kind)))
}

fn is_langsmith_batch(record: &Value) -> bool {
    let keys = ["run_type", "dotted_order", "trace_id"];
    let has_run = |list: &str| {
        let first = &record[list][0];
        keys.iter().any(|key| first[*key].is_string())
    };
    has_run("post") || has_run("patch")
}

fn is_openai_eval_run(record: &Value) -> bool {
    [record, &record["data"][0]]
        .iter()
        .any(|run| run["object"] == "eval.run" && run["eval_id"].is_string())
}

fn is_terminal_bench_result(record: &Value) -> bool {
    let is_trial = |trial: &Value| {
        trial["trial_name"].is_string()
            && trial["task_id"].is_string()
            && trial["instruction"].is_string()
            && trial.get("is_resolved").is_some()
    };
    is_trial(record) || is_trial(&record["results"][0])
}

fn is_gaia_task(record: &Value) -> bool {
    record["task_id"].is_string()
        && record["Question"].is_string()
        && record.get("Level").is_some()
        && record.get("Final answer").is_some()
}

fn is_deepeval_cache(record: &Value) -> bool {
    record["test_cases_lookup_map"].is_object()
}

/// Returns true if each value is an object whose first keys are the numbers of the rows.
fn is_table_by_columns(record: &Value) -> bool {
    let columns = record.as_object();
    columns.is_some_and(|columns| {
        columns.len() > 1 && columns.values().all(|column| column.get("0").is_some())
    })
}
