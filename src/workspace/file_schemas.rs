//! dicta.yaml, a transcript and a line of a run's log as JSON Schemas, for editors. What they accept the loaders accept, but for what no schema
//! can say (files that exist, judges that are named).

use serde_json::{Map, Value, json};

use super::judges;
use crate::model::ProviderKind;

const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The JSON Schema (2020-12) of dicta.yaml.
pub fn json_schema() -> Value {
    let globs = |description: &str| {
        json!({
            "description": description,
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}},
            ],
        })
    };
    json!({
        "$schema": DRAFT,
        "title": "dicta workspace",
        "type": "object",
        "properties": {
            "transcripts": transcripts_schema(),
            "rubrics": globs("Globs, relative to this file, absolute or from home (`~/`)."),
            "tools": {
                "description": "Files that declare tools for judges, as the MCP toolbox has them: files, folders, globs.",
                "anyOf": [
                    {"type": "null"},
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}},
                ],
            },
            "labels": {
                "description": "Human verdicts: files or globs, labels.jsonl by default; never shown to a judge.",
                "anyOf": [
                    {"type": "null"},
                    labels_schema(),
                    {"type": "array", "items": labels_schema()},
                ],
            },
            "runs": text_schema("Where runs are recorded; the data directory by default."),
            "frozen": text_schema("Answer judges' tool calls from this run's evidence."),
            "allow_scripts": {
                "type": "boolean",
                "default": false,
                "description": "Whether evals of type `script` may run their programs. Say true only where you trust the rubrics: they run as you.",
            },
            "judge": text_schema("The default judge."),
            "judges": {
                "type": ["object", "null"],
                "additionalProperties": {"anyOf": [
                    {"type": "string", "minLength": 1, "description": "An evalbench model config."},
                    judge_schema(),
                ]},
            },
            "limits": {
                "type": "object",
                "properties": {
                    "concurrency": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 8},
                    "max_cost_usd": {"type": "number", "minimum": 0, "description": "USD a run. Judges without known prices then need `prices:`."},
                    "max_tokens": {"type": "integer", "minimum": 0, "description": "Tokens a run, prompts and replies together."},
                    "max_calls": {"type": "integer", "minimum": 0, "description": "Model calls a run, failed attempts included."},
                    "max_minutes": {"type": "number", "minimum": 0, "description": "Minutes a run; no call is begun after them."},
                    "soft": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.8, "description": "From this share of a limit on, judges are asked to conclude."},
                    "cell": {
                        "type": "object",
                        "description": "The same limits for each cell.",
                        "properties": {
                            "max_cost_usd": {"type": "number", "minimum": 0},
                            "max_tokens": {"type": "integer", "minimum": 0},
                            "max_calls": {"type": "integer", "minimum": 0},
                            "max_minutes": {"type": "number", "minimum": 0},
                        },
                        "additionalProperties": false,
                    },
                    "requests_per_minute": {"type": "integer", "minimum": 1},
                },
                "additionalProperties": false,
            },
        },
        "required": ["transcripts", "rubrics"],
        "additionalProperties": false,
        "$defs": {
            "metadata": {
                "description": "JMESPath: an object; or a mapping of names to expressions.",
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/metadata"}},
                ],
            },
        },
    })
}

/// Files, and what the fields of foreign ones mean.
fn transcripts_schema() -> Value {
    let expression = |description: &str| text_schema(&format!("JMESPath: {description}"));
    let label = json!({
        "type": "object",
        "properties": {
            "eval": text_schema("The id of the eval that it is about."),
            "rubric": text_schema("The rubric's id; any rubric with that eval without one."),
            "passed": expression("true or false, yes or no, pass or fail, 1 or 0."),
            "score": expression("a number."),
            "by": expression("who said so."),
            "note": expression("why."),
        },
        "required": ["eval", "passed"],
        "additionalProperties": false,
    });
    let mapped = json!({
        "type": "object",
        "description": "Files of a foreign shape: CSV, JSON lines, a JSON array. `dicta map FILE` prints a guess.",
        "properties": {
            "path": text_schema("A file or a glob, relative to this file, absolute or from home (`~/`)."),
            "map": {
                "type": "object",
                "properties": {
                    "id": expression("a text or a number."),
                    "messages": expression("the conversation, a list of messages in OpenAI's shapes."),
                    "input": expression("what the user said: a text, or messages."),
                    "output": expression("what the agent answered: a text, or messages."),
                    "system": expression("instructions that stand before the conversation."),
                    "metadata": {"$ref": "#/$defs/metadata"},
                    "tags": expression("a text or a list of texts."),
                    "label": {"anyOf": [label, {"type": "array", "items": label}]},
                },
                "oneOf": [
                    {"required": ["messages"], "not": {"anyOf": [{"required": ["input"]}, {"required": ["output"]}]}},
                    {"required": ["output"], "not": {"required": ["messages"]}},
                ],
                "additionalProperties": false,
            },
        },
        "required": ["path", "map"],
        "additionalProperties": false,
    });
    json!({
        "description": "Files or globs, relative to this file, absolute or from home (`~/`).",
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string", "minLength": 1}, mapped]}},
        ],
    })
}

fn text_schema(description: &str) -> Value {
    json!({"type": "string", "minLength": 1, "description": description})
}

fn judge_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "provider": {"enum": judges::provider_names(|_| true)},
            "model": text_schema("The model's name."),
            "base_url": text_schema("Where to send, without the path of the call: http://127.0.0.1:8080/v1"),
            "api_key_env": {"type": ["string", "null"], "description": "The variable that holds the key; null: no key. Never a key here."},
            "api_key_file": text_schema("A file with the key, mode 0600."),
            "tools": {
                "type": ["array", "null"],
                "description": "Opt-in; without it the judge has no tools. Built-in tools, tools and toolsets of the tools files, MCP servers.",
                "items": {"anyOf": [
                    {"type": "string"},
                    {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": ["object", "null"]}},
                ]},
            },
            "max_turns": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5, "description": "Model calls, the last one for the verdict alone."},
            "verdict": {"enum": ["auto", "call", "schema", "text"], "default": "auto"},
            "temperature": {"type": ["number", "null"], "minimum": 0, "maximum": 2, "default": 0},
            "max_output_tokens": {"type": ["integer", "null"], "minimum": 1, "default": 4096},
            "reasoning": {
                "description": "low, high …, or a budget in tokens, where the model has it.",
                "anyOf": [{"type": "string", "minLength": 1}, {"type": "integer", "minimum": 0}],
            },
            "seed": {"type": "integer"},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "extra_body": {"type": "object", "description": "Merged into the request."},
            "timeout_s": {"type": "number", "exclusiveMinimum": 0, "maximum": 86400, "default": 120, "description": "A cell, not a call."},
            "prices": {
                "type": "object",
                "description": "USD per million tokens.",
                "properties": {
                    "input": {"type": "number", "minimum": 0},
                    "output": {"type": "number", "minimum": 0},
                    "cached": {"type": "number", "minimum": 0},
                },
                "required": ["input", "output"],
                "additionalProperties": false,
            },
            "stream": {"type": "boolean", "default": true},
            "requests_per_minute": {"type": "integer", "minimum": 1, "description": "Of this judge, evenly spaced."},
            "tokens_per_minute": {"type": "integer", "minimum": 1, "description": "Of the key, prompts and replies together."},
            "max_attempts": {"type": "integer", "minimum": 1, "maximum": 20, "default": 4, "description": "Of one request, in all."},
            "context_window": {"type": "integer", "minimum": 1, "description": "Tokens of prompt and reply together; a table knows some models."},
            "transcript": {"enum": ["auto", "whole", "tools"], "default": "auto", "description": "How the transcript is shown: whole, or a summary and tools that read the rest."},
            "run": text_schema("For replay: the run whose recorded traces answer."),
            "of": text_schema("For source: whose verdicts count (inspect, promptfoo, evalbench, arena, otel); anyone's by default."),
            "scorer": text_schema("For source: which of the verdicts answers; the one called as the eval, or the only one, by default."),
            "base_prompt": {"type": "string", "description": "Put in front of the prompt."},
            "project": text_schema("For vertex: the Google Cloud project; GOOGLE_CLOUD_PROJECT or the credentials' own by default."),
            "location": text_schema("For vertex: a region, global, us or eu; GOOGLE_CLOUD_LOCATION by default."),
            "credentials_file": text_schema("For vertex: a service account's key or gcloud's user file; found as Google's libraries do by default."),
        },
        "required": ["provider"],
        "additionalProperties": false,
        "allOf": [
            if_provider(&judges::provider_names(ProviderKind::is_model), &json!({"required": ["model"]})),
            if_provider(&judges::provider_names(|kind| !kind.is_model()), &forbid_keys(judges::MODEL_KEYS)),
            if_provider(&json!(["replay"]), &json!({"required": ["run"]})),
            if_provider(&judges::provider_names(|kind| kind != ProviderKind::Replay), &forbid_keys(&["run"])),
            if_provider(&judges::provider_names(|kind| kind != ProviderKind::Source), &forbid_keys(judges::source::SOURCE_KEYS)),
            if_provider(&json!(["source"]), &forbid_keys(judges::source::UNSUPPORTED_KEYS)),
            if_provider(
                &judges::provider_names(|kind| kind != ProviderKind::Vertex),
                &forbid_keys(&["project", "location", "credentials_file"]),
            ),
            if_provider(&judges::provider_names(ProviderKind::is_decisions), &allow_empty_keys(judges::keys_unsupported_with_calibration())),
        ],
    })
}

/// A file of labels.
fn labels_schema() -> Value {
    json!({"anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {
                "path": text_schema("A file or glob."),
                "eval": text_schema("What labels are about that name no eval."),
                "rubric": text_schema("Which rubric's, where they name none."),
                "by": text_schema("Who said so, where they do not say."),
            },
            "required": ["path"],
            "additionalProperties": false,
        },
    ]})
}

/// What holds for judges of these providers.
fn if_provider(providers: &Value, then: &Value) -> Value {
    json!({"if": {"properties": {"provider": {"enum": providers}}, "required": ["provider"]}, "then": then})
}

/// Keys that must not be there.
fn forbid_keys(keys: &[&str]) -> Value {
    let keys = keys.iter().map(|key| ((*key).to_owned(), json!(false)));
    json!({"properties": keys.collect::<Map<_, _>>()})
}

/// Keys that may be there as long as they ask for nothing.
fn allow_empty_keys<'k>(keys: impl Iterator<Item = &'k str>) -> Value {
    let keys = keys.map(|key| (key.to_owned(), json!({"enum": [null, []]})));
    json!({"properties": keys.collect::<Map<_, _>>()})
}

/// The JSON Schema (2020-12) of one native transcript, a line of a JSONL file. Unknown keys are allowed: they stay
/// reachable as raw.
pub fn transcript_schema() -> Value {
    json!({
        "$schema": DRAFT,
        "title": "dicta transcript",
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "`<file stem>:<record number>` where none is written."},
            "messages": {"type": "array", "items": {"$ref": "#/$defs/message"}},
            "metadata": {"type": ["object", "null"], "description": "Never shown to a judge unless the rubric names it. Evals read `latency_ms`, `usage`, `cost_usd`."},
            "tags": {"type": ["array", "null"], "items": {"type": "string"}},
            "verdicts": {
                "type": ["array", "null"],
                "description": "What another tool decided of it; never shown to a judge.",
                "items": {"$ref": "#/$defs/verdict"},
            },
        },
        "required": ["messages"],
        "$defs": {
            "part": part_schema(),
            "verdict": {
                "type": "object",
                "properties": {
                    "judge": {"type": "string", "description": "Who decided: inspect, promptfoo, evalbench, arena, otel …"},
                    "eval": {"type": "string", "description": "What: the scorer's, assertion's or metric's name."},
                    "passed": {"type": ["boolean", "null"], "description": "Where the source says pass or fail."},
                    "score": {"type": ["number", "null"], "description": "From 0 to 1."},
                    "value": {"description": "As the source writes it."},
                    "reasoning": {"type": ["string", "null"]},
                    "error": {"type": ["string", "null"], "description": "Why there is no verdict: the grader failed."},
                },
                "required": ["judge", "eval"],
            },
            "message": {
                "type": "object",
                "properties": {
                    "role": {"type": "string", "description": "system, user, assistant, tool …"},
                    "content": {
                        "description": "Text, or parts.",
                        "anyOf": [
                            {"type": ["string", "null"]},
                            {"type": "array", "items": {"$ref": "#/$defs/part"}},
                        ],
                    },
                    "tool_calls": {
                        "type": ["array", "null"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "id": {"type": "string"},
                                "function": {
                                    "type": "object",
                                    "properties": {
                                        "name": {"type": "string"},
                                        "arguments": {"type": "string", "description": "A JSON object as text."},
                                    },
                                    "required": ["name"],
                                },
                            },
                        },
                    },
                    "tool_call_id": {"type": ["string", "null"]},
                    "metadata": {"type": ["object", "null"], "description": "`is_error` and `duration_ms` of a tool message; `timestamp`, `latency_ms`, `usage`, `cost_usd`, `model`, `stop_reason` of an answer."},
                },
                "required": ["role"],
            },
        },
    })
}

/// A part of a message's content. Kinds that are not told here are kept as written.
fn part_schema() -> Value {
    json!({"anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "type": {
                    "type": "string",
                    "description": "text, reasoning, tool_call, tool_result; image_url, input_audio, file …; media and verbatim hold in `raw` what would be read as something else.",
                },
                "text": {"description": "Of `text`."},
                "reasoning": {"description": "Of `reasoning`."},
                "id": {"description": "Of `tool_call`: the call's."},
                "name": {"type": ["string", "null"], "description": "Of `tool_call`: the tool's."},
                "arguments": {"description": "Of `tool_call`: a JSON object as text."},
                "tool_call_id": {"description": "Of `tool_result`: the call that it answers."},
                "content": {"description": "Of `tool_result`: the answer as text."},
                "is_error": {"description": "Of `tool_result`: true or false, where the source says it."},
                "duration_ms": {"description": "Of `tool_result`: a number, where the source says it."},
                "kind": {"description": "Of `media`: image_url, input_audio, file …"},
                "raw": {"description": "Of `media` and `verbatim`: the part as the source has it."},
            },
        },
    ]})
}

/// The JSON Schema (2020-12) of one event, a line of a run's `events.jsonl`: the envelope, and which kinds there are. A
/// kind of a newer minor version is allowed, as it is when reading.
pub fn event_schema() -> Value {
    let kinds = [
        ("run_started", "The header: what the run began with."),
        (
            "blob_stored",
            "A blob is in the store; comes before any event that names it.",
        ),
        (
            "cells_planned",
            "A transcript was reached and its cells numbered.",
        ),
        (
            "cells_settled",
            "Deterministic, skipped and cached cells of one transcript, as pairs of number and result.",
        ),
        ("cell_started", "A judge began a cell."),
        ("cell_finished", "A judge cell ended."),
        ("turn", "Something about a model call."),
        ("tool", "Something about a tool call."),
        ("paused", "A trace stands still at a boundary."),
        ("resumed", "A paused trace goes on."),
        ("budget_reached", "A budget was reached."),
        (
            "note",
            "Something worth telling that is none of the others.",
        ),
        (
            "run_finished",
            "The last event of a run that was not interrupted.",
        ),
    ];
    let properties: serde_json::Map<String, Value> = kinds
        .iter()
        .map(|(name, what)| ((*name).to_owned(), json!({"description": what})))
        .collect();
    json!({
        "$schema": DRAFT,
        "title": "dicta run event",
        "type": "object",
        "properties": {
            "seq": {"type": "integer", "minimum": 0, "description": "From 0, without gaps."},
            "at": {"type": "integer", "minimum": 0, "description": "Milliseconds since the run began."},
            "kind": {
                "description": "One key: what happened.",
                "anyOf": [
                    {"type": "object", "minProperties": 1, "maxProperties": 1, "properties": properties},
                    {"type": "string"},
                ],
            },
        },
        "required": ["seq", "at", "kind"],
    })
}
