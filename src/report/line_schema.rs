//! The JSON Schema of the lines of `--format jsonl`.
//!
//! Responsible for the keys and their meanings, for editors, programs and documentation. Does not write lines; `jsonl`
//! does. A test compares the schema with the output of the built program, key by key.

use serde_json::{Map, Value, json};

use crate::model::Outcome;

/// A key of a line: its name, its meaning, and the JSON Schema of its value.
type LineKey = (&'static str, &'static str, Value);

/// Keys that a line has only if they are not empty.
const OPTIONAL_KEYS: &[&str] = &["calibrated", "hidden", "failed_rerun", "edited", "shot"];

/// Returns the JSON Schema (2020-12) of one line. A later version may add keys, so readers must ignore unknown keys.
pub fn result_schema() -> Value {
    let lines = [
        line("result", "The result of one cell.", result_keys()),
        line(
            "decision",
            "The decision of several cells: repeats, a jury or a cascade.",
            decision_keys(),
        ),
        line(
            "rubric",
            "The rubric score of one transcript.",
            vec![
                ("transcript", "The id of the transcript.", text()),
                ("rubric", "The id of the rubric.", text()),
                (
                    "passed",
                    "Whether the rubric passed; null without a decided eval.",
                    or_null("boolean"),
                ),
                ("score", "The rubric score from 0 to 1.", or_null("number")),
                (
                    "edited",
                    "True if it rests on a verdict whose judge trace a person changed.",
                    json!({"type": "boolean"}),
                ),
            ],
        ),
        line("judge", "The statistics of one judge.", judge_keys()),
        line("tool", "The statistics of one tool.", tool_keys()),
        line(
            "summary",
            "The last line: the run as a whole.",
            summary_keys(),
        ),
    ];
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dicta result line",
        "oneOf": lines,
        "$defs": {
            "votes": mapping(vec![
                ("pass", "Cells that passed.", count()),
                ("fail", "Cells that failed.", count()),
                ("na", "Cells that do not apply.", count()),
                ("error", "Cells without a verdict, which abstain.", count()),
            ]),
            "usage": mapping(vec![
                ("input", "Prompt tokens.", or_null("integer")),
                ("output", "Reply tokens.", or_null("integer")),
                ("cached", "Prompt tokens that the provider had cached.", or_null("integer")),
                ("thinking", "Reply tokens for thinking.", or_null("integer")),
                ("calls", "Model calls.", count()),
            ]),
        },
    })
}

fn line(name: &str, doc: &str, keys: Vec<LineKey>) -> Value {
    let mut all = vec![("type", "The kind of line.", json!({"const": name}))];
    all.extend(keys);
    let mut schema = mapping(all);
    schema["description"] = doc.into();
    schema
}

fn mapping(keys: Vec<LineKey>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, doc, mut schema) in keys {
        if !OPTIONAL_KEYS.contains(&name) {
            required.push(name);
        }
        schema["description"] = doc.into();
        properties.insert(name.to_owned(), schema);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn text() -> Value {
    json!({"type": "string"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn or_null(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn outcome() -> Value {
    json!({"enum": Outcome::ALL.map(Outcome::as_str)})
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// The keys that name a question.
fn name_keys() -> Vec<LineKey> {
    vec![
        ("transcript", "The id of the transcript.", text()),
        ("rubric", "The id of the rubric.", text()),
        ("eval", "The id of the eval.", text()),
        ("eval_type", "The eval type.", text()),
        (
            "kind",
            "A copy of `eval_type` under its former name.",
            text(),
        ),
        (
            "message",
            "The number of the judged message; null for a whole transcript.",
            or_null("integer"),
        ),
    ]
}

fn result_keys() -> Vec<LineKey> {
    let citation = mapping(vec![
        (
            "source",
            "The source as the judge wrote it: `message 4`, `fetch 1` or `rubric`.",
            text(),
        ),
        ("quote", "The quoted text.", text()),
        ("found", "Whether the quote occurs in the source.", flag()),
    ]);
    let change = mapping(vec![
        ("path", "The JSON pointer into the arguments.", text()),
        ("what", "The change.", text()),
    ]);
    let part = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text that the judge decided on."},
            "reasoning": {"type": "string", "description": "The judge's reasoning."},
            "met": {"type": "boolean", "description": "Whether the part is met."},
            "count": {"type": "integer", "description": "The count, for a counted part."},
            "probability": {"type": "number", "description": "The probability that the part is met."},
        },
        "required": ["text", "met"],
    });
    let mut keys = vec![("cell", "The name of the cell.", text())];
    keys.extend(name_keys());
    keys.extend([
        (
            "judge",
            "The judge; null for a code check.",
            or_null("string"),
        ),
        (
            "repeat",
            "The number of the repeat, from 1; null without repeats.",
            or_null("integer"),
        ),
        ("outcome", "The outcome.", outcome()),
        (
            "passed",
            "True for pass, false for fail, else null.",
            or_null("boolean"),
        ),
        ("score", "The score from 0 to 1.", or_null("number")),
        (
            "explanation",
            "The finding of the check, or the judge's reasoning.",
            text(),
        ),
        (
            "error",
            "The error, for an error outcome.",
            or_null("string"),
        ),
        ("citations", "The quotes of the judge.", list(&citation)),
        (
            "parts",
            "The parts of a verdict: criteria, goals, calls, counted errors.",
            list(&part),
        ),
        (
            "calibrated",
            "The probabilities of a judge that states no reasons.",
            json!({"type": "object"}),
        ),
        (
            "contradiction",
            "The conflict between the reasoning and the result.",
            or_null("string"),
        ),
        (
            "repaired",
            "The repairs of the verdict's arguments.",
            list(&change),
        ),
        (
            "hidden",
            "Hidden text that the judge read, counted.",
            list(&text()),
        ),
        (
            "usage",
            "The tokens; null without a model call.",
            json!({"anyOf": [{"type": "null"}, reference("usage")]}),
        ),
        (
            "cost_usd",
            "The cost in USD; null if it is unknown or there was no call.",
            or_null("number"),
        ),
        ("duration_ms", "The duration in milliseconds.", count()),
        (
            "cached",
            "Whether the verdict comes from an earlier run.",
            flag(),
        ),
        ("cached_from", "That run.", or_null("string")),
        (
            "failed_rerun",
            "The last attempt to judge the decision of a state again, if it ended without a verdict; the result is older.",
            mapping(vec![
                ("run", "The run of the attempt.", text()),
                ("outcome", "Its outcome.", outcome()),
                ("error", "Its error.", or_null("string")),
            ]),
        ),
        (
            "edited",
            "True if a person changed the judge trace; such a result enters no statistics.",
            json!({"type": "boolean"}),
        ),
        (
            "label",
            "The label: true for pass, false for fail, else null.",
            or_null("boolean"),
        ),
        (
            "shot",
            "True if the prompts show the transcript or a copy of it as an example; the result measures nothing.",
            json!({"type": "boolean"}),
        ),
        (
            "digest",
            "The digest of the cell: its transcript, question, message, judge and repeat.",
            text(),
        ),
        (
            "digests",
            "The digests by which `dicta compare` identifies the decision.",
            mapping(vec![
                ("transcript", "The digest of the transcript.", text()),
                (
                    "eval",
                    "The digest of the eval's question, without its id.",
                    text(),
                ),
                (
                    "judge",
                    "The digest of the judge's settings and tools; null for a code check.",
                    or_null("string"),
                ),
            ]),
        ),
    ]);
    keys
}

fn decision_keys() -> Vec<LineKey> {
    let member = mapping(vec![
        ("judge", "The judge.", text()),
        ("outcome", "The outcome of its vote.", outcome()),
        ("score", "Its score.", or_null("number")),
        ("votes", "The votes of its repeats.", reference("votes")),
        (
            "unsure",
            "The reason for which a judge of a cascade is unsure.",
            or_null("string"),
        ),
    ]);
    let mut keys = name_keys();
    keys.extend([
        ("outcome", "The outcome of the decision.", outcome()),
        (
            "passed",
            "True for pass, false for fail, else null.",
            or_null("boolean"),
        ),
        (
            "score",
            "The score, or the median of the scores.",
            or_null("number"),
        ),
        ("votes", "The votes.", reference("votes")),
        (
            "share",
            "The share of the winning votes; null if nothing won.",
            or_null("number"),
        ),
        (
            "by",
            "The vote rule.",
            json!({"enum": ["repeats", "majority", "unanimity", "cascade"]}),
        ),
        ("members", "The members of a panel.", list(&member)),
        (
            "decided_by",
            "The judge of a cascade that decided.",
            or_null("string"),
        ),
        (
            "edited",
            "True if a person changed one of the judge traces; such a decision enters no statistics.",
            json!({"type": "boolean"}),
        ),
        (
            "label",
            "The label: true for pass, false for fail, else null.",
            or_null("boolean"),
        ),
        (
            "shot",
            "True if the prompts show the transcript or a copy of it as an example; the result measures nothing.",
            json!({"type": "boolean"}),
        ),
    ]);
    keys
}

fn judge_keys() -> Vec<LineKey> {
    vec![
        ("judge", "The judge.", text()),
        ("model", "Its model; empty without one.", text()),
        ("cells", "Cells that it decided.", count()),
        (
            "cached",
            "Cells with a verdict from an earlier run.",
            count(),
        ),
        ("errors", "Cells that ended in an error.", count()),
        ("calls", "HTTP requests, failed ones included.", count()),
        ("failed", "Failed requests.", count()),
        (
            "repaired",
            "Verdicts whose arguments were repaired.",
            count(),
        ),
        ("rejected", "Replies without a valid verdict.", count()),
        (
            "p50_ms",
            "The median duration of a call.",
            or_null("integer"),
        ),
        ("p95_ms", "The 95th percentile.", or_null("integer")),
        ("sent_bytes", "Bytes sent.", count()),
        ("bytes", "Bytes received.", count()),
        ("usage", "The tokens.", reference("usage")),
        (
            "cost_usd",
            "The cost in USD; null if a part is unknown.",
            or_null("number"),
        ),
        (
            "known_usd",
            "The known part of the cost.",
            json!({"type": "number"}),
        ),
        ("unknown_calls", "Calls with an unknown cost.", count()),
        (
            "prices_as_of",
            "The date of dicta's own prices, if they were used.",
            or_null("string"),
        ),
    ]
}

fn tool_keys() -> Vec<LineKey> {
    vec![
        ("tool", "The tool.", text()),
        ("calls", "Calls.", count()),
        ("repaired", "Calls with repaired arguments.", count()),
        (
            "coerced",
            "Calls with values that `coerce: true` changed.",
            count(),
        ),
        ("rejected", "Calls that dicta refused.", count()),
        ("retried", "Calls that dicta made twice.", count()),
        (
            "cached",
            "Calls with a recorded response, or with the response of an identical call.",
            count(),
        ),
        ("errors", "Calls that ended in an error.", count()),
        ("p50_ms", "The median duration.", or_null("integer")),
        ("p95_ms", "The 95th percentile.", or_null("integer")),
        ("bytes", "Bytes received.", count()),
        ("text_bytes", "Bytes of text for judges.", count()),
        (
            "tokens_estimate",
            "The tokens of that text, estimated.",
            count(),
        ),
        (
            "cost_usd",
            "Always null: dicta does not know the cost of a tool.",
            or_null("number"),
        ),
    ]
}

/// The schema of the settings of an eval.
fn eval_settings() -> Value {
    let judge = mapping(vec![
        ("judge", "The name.", text()),
        ("digest", "The digest of its settings and tools.", text()),
    ]);
    let whole = mapping(vec![
        ("id", "The id of the eval, as the rubric writes it.", text()),
        (
            "question",
            "The digest of the text that labels answer.",
            text(),
        ),
    ]);
    mapping(vec![
        ("rubric", "The id of the rubric.", text()),
        ("eval", "The id of the eval.", text()),
        ("digest", "The digest of its question.", text()),
        (
            "question",
            "The digest of the text that labels answer; null if the run did not record it.",
            or_null("string"),
        ),
        (
            "part_of",
            "The eval that this one replaces together with others, which labels are about; else null.",
            json!({"anyOf": [whole, {"type": "null"}]}),
        ),
        (
            "min_score",
            "The lowest score that passes.",
            or_null("number"),
        ),
        (
            "max_score",
            "The highest score that passes.",
            or_null("number"),
        ),
        ("repeat", "The number of repeats.", count()),
        (
            "by",
            "The vote rule of a panel; null without a panel.",
            json!({"enum": ["majority", "unanimity", "cascade", null]}),
        ),
        ("margin", "The margin of a cascade.", or_null("number")),
        ("judges", "The judges.", list(&judge)),
    ])
}

fn summary_keys() -> Vec<LineKey> {
    let stopped = mapping(vec![
        ("judge", "The judge.", text()),
        (
            "model",
            "The model that an eval names; null for the judge's own.",
            or_null("string"),
        ),
        ("errors", "The equal errors in a row.", count()),
        ("error", "The last of them.", text()),
    ]);
    let other_model = mapping(vec![
        ("judge", "The judge.", text()),
        ("requested", "The model that dicta asked for.", text()),
        ("replied", "The model that the replies name.", text()),
    ]);
    let budget = mapping(vec![
        ("limit", "The limit.", text()),
        ("hard", "Whether it ended the run.", flag()),
        ("max", "Its value.", or_null("number")),
        ("spent", "What was used.", or_null("number")),
    ]);
    let agreement = mapping(vec![
        ("n", "Labelled decisions with a verdict.", count()),
        ("true_pass", "Pass with the label pass.", count()),
        ("false_pass", "Pass with the label fail.", count()),
        ("true_fail", "Fail with the label fail.", count()),
        ("false_fail", "Fail with the label pass.", count()),
        (
            "without_verdict",
            "Labelled decisions without a verdict.",
            count(),
        ),
        (
            "to_confirm",
            "Decisions whose label counts nowhere, because the question or the transcript changed.",
            count(),
        ),
        (
            "shots",
            "Decisions whose label the judge saw as an example, so that it measures nothing.",
            count(),
        ),
    ]);
    let mut keys = vec![
        ("run", "The id of the run.", text()),
        ("demo", "Whether the workspace is the demo.", flag()),
        ("cells", "Cells of the run.", count()),
        ("pending", "Decisions that are not made yet.", count()),
        ("interrupted", "Whether the run ended early.", flag()),
    ];
    keys.extend(Outcome::ALL.map(|one| (one.as_str(), "Decisions with this outcome.", count())));
    keys.extend([
        (
            "undecided_rubrics",
            "Rubrics that a required eval leaves undecided, one per transcript.",
            count(),
        ),
        ("flagged", "Cells with a flagged verdict.", count()),
        (
            "edited_by_hand",
            "Decisions among them whose judge traces a person changed. They enter no statistics.",
            count(),
        ),
        ("transcripts", "Transcripts.", count()),
        (
            "records",
            "Records of the transcript files that the run read.",
            count(),
        ),
        (
            "records_not_understood",
            "Records that dicta did not understand, bad records included.",
            count(),
        ),
        ("bad_records", "Records that are not transcripts.", count()),
        (
            "broken_files",
            "Files that dicta could not read, or without a readable record.",
            count(),
        ),
        ("voted", "Decisions by a vote.", count()),
        ("unanimous", "Votes without a dissent.", count()),
        (
            "mean_share",
            "The mean share of the winning votes.",
            or_null("number"),
        ),
        ("cascades", "Decisions by a cascade.", count()),
        ("escalated", "Cascades that asked a second judge.", count()),
        ("usage", "The tokens.", reference("usage")),
        (
            "cost_usd",
            "The cost in USD; null if a part is unknown or there was no call.",
            or_null("number"),
        ),
        (
            "known_usd",
            "The known part of the cost.",
            json!({"type": "number"}),
        ),
        ("unknown_calls", "Calls with an unknown cost.", count()),
        (
            "prices_as_of",
            "The date of dicta's own prices, if they were used.",
            or_null("string"),
        ),
        ("budgets", "The limits that the run reached.", list(&budget)),
        (
            "stopped_judges",
            "The judges that the run stopped calling after equal errors.",
            list(&stopped),
        ),
        (
            "other_models",
            "The judges whose replies name another model than the one that dicta asked for.",
            list(&other_model),
        ),
        ("duration_ms", "The duration in milliseconds.", count()),
        (
            "frozen",
            "The runs with recorded tool responses; null if all calls were live.",
            json!({"type": ["array", "null"], "items": text()}),
        ),
        (
            "frozen_answers",
            "Tool calls with a recorded response.",
            or_null("integer"),
        ),
        (
            "frozen_misses",
            "Tool calls without one.",
            or_null("integer"),
        ),
        (
            "labels",
            "The agreement with labels, by `rubric/eval`.",
            json!({"type": "object", "additionalProperties": agreement}),
        ),
        (
            "revision",
            "The digest of the revision: everything that determines verdicts.",
            or_null("string"),
        ),
        ("evals", "What decides each eval.", list(&eval_settings())),
    ]);
    keys
}
