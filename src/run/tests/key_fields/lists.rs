//! The lists: for each field, whether it changes a cache key, and a change that shows it.

/// A field of a file.
pub(super) struct Field {
    pub(super) path: &'static str,
    /// `true` if a change makes other keys. `false` also for fields that only select cells.
    pub(super) changes: bool,
    /// Pointers and JSON values that both sides of the comparison have.
    pub(super) given: &'static [(&'static str, &'static str)],
    /// The change: pointers and JSON values. `null` removes a key.
    pub(super) set: &'static [(&'static str, &'static str)],
    /// The reason, if a change alone can't show it.
    pub(super) why: &'static str,
}

type Values = &'static [(&'static str, &'static str)];

/// A field that changes the key.
const fn key(path: &'static str, set: Values) -> Field {
    Field {
        path,
        changes: true,
        given: &[],
        set,
        why: "",
    }
}

/// A field that does not change the key.
const fn same(path: &'static str, set: Values) -> Field {
    Field {
        path,
        changes: false,
        given: &[],
        set,
        why: "",
    }
}

/// A field that changes the key, where both sides have `given`.
const fn key_given(path: &'static str, given: Values, set: Values) -> Field {
    Field {
        path,
        changes: true,
        given,
        set,
        why: "",
    }
}

/// A field that does not change the key, where both sides have `given`.
const fn same_given(path: &'static str, given: Values, set: Values) -> Field {
    Field {
        path,
        changes: false,
        given,
        set,
        why: "",
    }
}

/// A field that changes the key, which another test checks.
const fn key_elsewhere(path: &'static str, why: &'static str) -> Field {
    Field {
        path,
        changes: true,
        given: &[],
        set: &[],
        why,
    }
}

/// A field that does not change the key, for a reason that no change of a file shows.
const fn same_because(path: &'static str, why: &'static str) -> Field {
    Field {
        path,
        changes: false,
        given: &[],
        set: &[],
        why,
    }
}

const FIELDS_OF_IT: &str = "a mapping or list, whose fields are listed";
const MAPPED: &str =
    "it shapes the transcript, whose digest is in the key; the tests of mappings check the shape";
const REFERENCE: &str = "it compares verdicts afterwards, and never reaches a judge";
const LABELS: &str = "only shots show labels to a judge, and the key of their eval has them";
const NO_ENGINE: &str = "a judge of this provider sends no request, and its verdicts have no key";
const ONLY_ERRORS: &str =
    "it decides only whether a call fails, and no verdict on a failed call is cached";
const MCP: &str =
    "a server is necessary to open it; the tests of its secrets and of its digest check it";
const CLAIMS: &str =
    "the verified claims of the user are in the digest of each tool, whatever proves them";
const TOKEN: &str =
    "the verified claims are in the digest of each tool, whatever token proves them";

#[rustfmt::skip]
pub(super) const WORKSPACE: &[Field] = &[
    key("/transcripts", &[("/transcripts", r#"["other.jsonl"]"#)]),
    key("/transcripts/[]/path", &[("/transcripts/1", r#"{"path": "other.jsonl", "map": {"messages": "messages"}}"#)]),
    same_because("/transcripts/[]/map", FIELDS_OF_IT),
    same("/transcripts/[]/map/id", &[("/transcripts/1/map/id", r#""a""#)]),
    key("/transcripts/[]/map/messages", &[("/transcripts/1/map", r#"{"messages": "list"}"#)]),
    key("/transcripts/[]/map/input", &[("/transcripts/1/map/input", r#""b""#)]),
    key("/transcripts/[]/map/output", &[("/transcripts/1/map/output", r#""b""#)]),
    key("/transcripts/[]/map/system", &[("/transcripts/1/map/system", r#""b""#)]),
    same("/transcripts/[]/map/metadata", &[("/transcripts/1/map/metadata", r#"{"x": "b"}"#)]),
    same_because("/transcripts/[]/map/answers", MAPPED),
    same_because("/transcripts/[]/map/better", MAPPED),
    same_because("/transcripts/[]/map/encoding", MAPPED),
    same_because("/transcripts/[]/map/group", MAPPED),
    same_because("/transcripts/[]/map/group/by", MAPPED),
    same_because("/transcripts/[]/map/group/order", MAPPED),
    same_because("/transcripts/[]/map/join", MAPPED),
    same_because("/transcripts/[]/map/join/[]/as", MAPPED),
    same_because("/transcripts/[]/map/join/[]/key", MAPPED),
    same_because("/transcripts/[]/map/join/[]/on", MAPPED),
    same_because("/transcripts/[]/map/join/[]/path", MAPPED),
    same_because("/transcripts/[]/map/join/as", MAPPED),
    same_because("/transcripts/[]/map/join/key", MAPPED),
    same_because("/transcripts/[]/map/join/on", MAPPED),
    same_because("/transcripts/[]/map/join/path", MAPPED),
    same_because("/transcripts/[]/map/records", MAPPED),
    same_because("/transcripts/[]/map/split", MAPPED),
    same_because("/transcripts/[]/map/split/assistant", MAPPED),
    same_because("/transcripts/[]/map/split/system", MAPPED),
    same_because("/transcripts/[]/map/split/tool", MAPPED),
    same_because("/transcripts/[]/map/split/user", MAPPED),
    same("/transcripts/[]/map/tags", &[("/transcripts/1/map/tags", r#""b""#)]),
    same("/transcripts/[]/map/label", &[("/transcripts/1/map/label", "null")]),
    same("/transcripts/[]/map/label/eval", &[("/transcripts/1/map/label", r#"{"eval": "b", "passed": "ok"}"#)]),
    same_because("/transcripts/[]/map/label/rubric", LABELS),
    same_because("/transcripts/[]/map/label/passed", LABELS),
    same_because("/transcripts/[]/map/label/score", LABELS),
    same_because("/transcripts/[]/map/label/by", LABELS),
    same_because("/transcripts/[]/map/label/note", LABELS),
    same("/transcripts/[]/map/label/[]/eval", &[("/transcripts/1/map/label/0/eval", r#""b""#)]),
    same("/transcripts/[]/map/label/[]/rubric", &[("/transcripts/1/map/label/0/rubric", "null")]),
    same("/transcripts/[]/map/label/[]/passed", &[("/transcripts/1/map/label/0/passed", r#""n""#)]),
    same("/transcripts/[]/map/label/[]/score", &[("/transcripts/1/map/label/0/score", "null")]),
    same("/transcripts/[]/map/label/[]/by", &[("/transcripts/1/map/label/0/by", r#""a""#)]),
    same("/transcripts/[]/map/label/[]/note", &[("/transcripts/1/map/label/0/note", r#""a""#)]),
    key("/rubrics", &[("/rubrics", r#""other.yaml""#)]),
    key_given("/tools", &[("/judges/j/tools", r"[]")], &[("/judges/j/tools", r#"["get"]"#)]),
    same("/labels", &[("/labels", r#""labels.jsonl""#)]),
    same_because("/labels/path", LABELS),
    same_because("/labels/eval", LABELS),
    same_because("/labels/rubric", LABELS),
    same_because("/labels/by", LABELS),
    same_because("/labels/[]/path", LABELS),
    same_because("/labels/[]/eval", LABELS),
    same_because("/labels/[]/rubric", LABELS),
    same_because("/labels/[]/by", LABELS),
    same_because("/labels/map", LABELS),
    same_because("/labels/map/at", LABELS),
    same_because("/labels/map/by", LABELS),
    same_because("/labels/map/eval", LABELS),
    same_because("/labels/map/note", LABELS),
    same_because("/labels/map/passed", LABELS),
    same_because("/labels/map/records", LABELS),
    same_because("/labels/map/rubric", LABELS),
    same_because("/labels/map/score", LABELS),
    same_because("/labels/map/transcript", LABELS),
    same_because("/labels/pass", LABELS),
    same_because("/labels/pass/at_least", LABELS),
    same_because("/labels/pass/at_most", LABELS),
    same_because("/labels/pass/scale", LABELS),
    same_because("/labels/pass/unsure", LABELS),
    same_because("/labels/pass/values", LABELS),
    same_because("/labels/split", LABELS),
    same_because("/labels/split/by", LABELS),
    same_because("/labels/split/dev", LABELS),
    same_because("/labels/split/seed", LABELS),
    same_because("/labels/split/test", LABELS),
    same_because("/labels/split/train", LABELS),
    same_because("/labels/[]/map", LABELS),
    same_because("/labels/[]/map/at", LABELS),
    same_because("/labels/[]/map/by", LABELS),
    same_because("/labels/[]/map/eval", LABELS),
    same_because("/labels/[]/map/note", LABELS),
    same_because("/labels/[]/map/passed", LABELS),
    same_because("/labels/[]/map/records", LABELS),
    same_because("/labels/[]/map/rubric", LABELS),
    same_because("/labels/[]/map/score", LABELS),
    same_because("/labels/[]/map/transcript", LABELS),
    same_because("/labels/[]/pass", LABELS),
    same_because("/labels/[]/pass/at_least", LABELS),
    same_because("/labels/[]/pass/at_most", LABELS),
    same_because("/labels/[]/pass/scale", LABELS),
    same_because("/labels/[]/pass/unsure", LABELS),
    same_because("/labels/[]/pass/values", LABELS),
    same_because("/labels/[]/split", LABELS),
    same_because("/labels/[]/split/by", LABELS),
    same_because("/labels/[]/split/dev", LABELS),
    same_because("/labels/[]/split/seed", LABELS),
    same_because("/labels/[]/split/test", LABELS),
    same_because("/labels/[]/split/train", LABELS),
    same("/runs", &[("/runs", r#""elsewhere""#)]),
    same_because("/replay_tools", "the cache compares the recorded responses of each verdict with those of this run"),
    same_because("/frozen", "the former name of `replay_tools`"),
    same("/allow_scripts", &[("/allow_scripts", "true")]),
    key("/judge", &[("/judge", r#""k""#)]),
    same_because("/judges", FIELDS_OF_IT),
    key("/judges/*/provider", &[("/judges/j/provider", r#""anthropic""#)]),
    key("/judges/*/model", &[("/judges/j/model", r#""m2""#)]),
    key("/judges/*/base_url", &[("/judges/j/base_url", r#""https://other.example/v1""#)]),
    same("/judges/*/api_key_env", &[("/judges/j/api_key_env", r#""OTHER_KEY""#)]),
    same("/judges/*/api_key_file", &[("/judges/j/api_key_file", r#""/nowhere/key""#)]),
    key("/judges/*/tools", &[("/judges/j/tools/4", r#"{"fetch_url": {"max_bytes": 11}}"#)]),
    key("/judges/*/max_turns", &[("/judges/j/max_turns", "9")]),
    key("/judges/*/verdict", &[("/judges/k/verdict", r#""text""#)]),
    key("/judges/*/temperature", &[("/judges/j/temperature", "0.5")]),
    key("/judges/*/max_output_tokens", &[("/judges/j/max_output_tokens", "7")]),
    key("/judges/*/reasoning", &[("/judges/j/reasoning", r#""high""#)]),
    key("/judges/*/seed", &[("/judges/j/seed", "7")]),
    key("/judges/*/headers", &[("/judges/j/headers/X-Author", r#""b""#)]),
    key("/judges/*/extra_body", &[("/judges/j/extra_body/user/keyword", r#""b""#)]),
    same("/judges/*/timeout_s", &[("/judges/j/timeout_s", "7")]),
    same("/judges/*/prices", &[("/judges/j/prices", r#"{"input": 1, "output": 2}"#)]),
    same_given("/judges/*/prices/input", &[("/judges/j/prices", r#"{"input": 1, "output": 2}"#)], &[("/judges/j/prices/input", "3")]),
    same_given("/judges/*/prices/output", &[("/judges/j/prices", r#"{"input": 1, "output": 2}"#)], &[("/judges/j/prices/output", "3")]),
    same_given("/judges/*/prices/cached", &[("/judges/j/prices", r#"{"input": 1, "output": 2}"#)], &[("/judges/j/prices/cached", "0.5")]),
    same("/judges/*/stream", &[("/judges/j/stream", "false")]),
    same("/judges/*/requests_per_minute", &[("/judges/j/requests_per_minute", "7")]),
    same("/judges/*/tokens_per_minute", &[("/judges/j/tokens_per_minute", "70000")]),
    same("/judges/*/max_attempts", &[("/judges/j/max_attempts", "7")]),
    // A window in which the transcript fits changes nothing; a smaller one changes the prompt.
    same("/judges/*/context_window", &[("/judges/j/context_window", "1000000")]),
    key("/judges/*/transcript", &[("/judges/j/transcript", r#""tools""#)]),
    same_because("/judges/*/run", NO_ENGINE),
    same_because("/judges/*/of", NO_ENGINE),
    same_because("/judges/*/scorer", NO_ENGINE),
    key("/judges/*/base_prompt", &[("/judges/j/base_prompt", r#""Read.""#)]),
    same_because("/judges/*/project", "it decides who pays; the tests of the judge's fields check it"),
    key_elsewhere("/judges/*/location", "it needs Google credentials; the tests of the judge's fields check it"),
    same_because("/judges/*/credentials_file", "it is the judge's own key"),
    same_because("/limits", FIELDS_OF_IT),
    same("/limits/concurrency", &[("/limits", r#"{"concurrency": 3}"#)]),
    same("/limits/max_cost_usd", &[("/limits", r#"{"max_cost_usd": 3}"#)]),
    same("/limits/confirm_usd", &[("/limits", r#"{"confirm_usd": 0.05}"#)]),
    same("/limits/max_tokens", &[("/limits", r#"{"max_tokens": 300000}"#)]),
    same("/limits/max_calls", &[("/limits", r#"{"max_calls": 300}"#)]),
    same("/limits/max_minutes", &[("/limits", r#"{"max_minutes": 3}"#)]),
    same("/limits/soft", &[("/limits", r#"{"max_calls": 300, "soft": 0.5}"#)]),
    same_because("/limits/cell", FIELDS_OF_IT),
    same("/limits/cell/max_cost_usd", &[("/limits", r#"{"cell": {"max_cost_usd": 3}}"#)]),
    same("/limits/cell/max_tokens", &[("/limits", r#"{"cell": {"max_tokens": 300000}}"#)]),
    same("/limits/cell/max_calls", &[("/limits", r#"{"cell": {"max_calls": 30}}"#)]),
    same("/limits/cell/max_minutes", &[("/limits", r#"{"cell": {"max_minutes": 3}}"#)]),
    same("/limits/requests_per_minute", &[("/limits", r#"{"requests_per_minute": 3}"#)]),
];

const MAPPED_ONLY: Values = &[("/applies_to", r#"{"ids": ["m1"]}"#)];
const FIRST_ONLY: Values = &[("/applies_to", r#"{"ids": ["t1"]}"#)];
const JURY: Values = &[("/jury", r#"{"judges": ["k", "j"]}"#)];
const CASCADE: Values = &[("/cascade", r#"{"judges": ["k", "j"]}"#)];
const EVAL_JURY: Values = &[("/evals/0/jury", r#"{"judges": ["k", "j"]}"#)];
const EVAL_CASCADE: Values = &[("/evals/0/cascade", r#"{"judges": ["k", "j"]}"#)];
const EXAMPLE: Values = &[(
    "/evals/0/examples",
    r#"[{"text": "Hi.", "expect": "pass"}]"#,
)];

#[rustfmt::skip]
pub(super) const RUBRIC: &[Field] = &[
    same("/id", &[("/id", r#""other""#)]),
    same("/description", &[("/description", r#""Other.""#)]),
    same("/threshold", &[("/threshold", "0.5")]),
    key("/judge", &[("/judge", r#""k""#)]),
    key("/jury", JURY),
    key("/jury/judges", JURY),
    same_given("/jury/by", JURY, &[("/jury/by", r#""unanimity""#)]),
    key("/cascade", CASCADE),
    key("/cascade/judges", CASCADE),
    same_given("/cascade/margin", CASCADE, &[("/cascade/margin", "0.3")]),
    same("/applies_to", FIRST_ONLY),
    same("/applies_to/ids", FIRST_ONLY),
    same("/applies_to/tags", &[("/applies_to", r#"{"tags": ["gold"]}"#)]),
    same("/applies_to/metadata", &[("/applies_to", r#"{"metadata": {"tier": "gold"}}"#)]),
    same("/applies_to/has_tool", &[("/applies_to", r#"{"has_tool": ["search"]}"#)]),
    same("/allow", &[("/allow", r#""unknown-tool""#)]),
    same_because("/evals", FIELDS_OF_IT),
    same("/evals/[]/id", &[("/evals/0/id", r#""other""#)]),
    // The keys of the named eval take effect, and its question is the same.
    same("/evals/[]/$ref", &[("/evals/0", r##"{"id": "c", "$ref": "#b"}"##)]),
    key("/evals/[]/type", &[("/evals/0/type", r#""llm_judge_session""#)]),
    // It selects messages; the mapped transcript has one.
    same_given("/evals/[]/trigger", MAPPED_ONLY, &[("/evals/0/trigger", r#""every_turn""#)]),
    same_because("/evals/[]/params", FIELDS_OF_IT),
    key("/evals/[]/judge", &[("/evals/0/judge", r#""k""#)]),
    key("/evals/[]/jury", EVAL_JURY),
    key("/evals/[]/jury/judges", EVAL_JURY),
    same_given("/evals/[]/jury/by", EVAL_JURY, &[("/evals/0/jury/by", r#""unanimity""#)]),
    key("/evals/[]/cascade", EVAL_CASCADE),
    key("/evals/[]/cascade/judges", EVAL_CASCADE),
    same_given("/evals/[]/cascade/margin", EVAL_CASCADE, &[("/evals/0/cascade/margin", "0.3")]),
    same("/evals/[]/description", &[("/evals/0/description", r#""Other.""#)]),
    same("/evals/[]/message", &[("/evals/0/message", r#""Other.""#)]),
    same("/evals/[]/groups", &[("/evals/0/groups", r#"["other"]"#)]),
    same_because("/evals/[]/when", FIELDS_OF_IT),
    same("/evals/[]/when/tool_called", &[("/evals/0/when", r#"{"tool_called": "search"}"#)]),
    same("/evals/[]/when/tool_called_pattern", &[("/evals/0/when", r#"{"tool_called_pattern": "sea"}"#)]),
    same("/evals/[]/when/any_tool_called", &[("/evals/0/when", r#"{"any_tool_called": true}"#)]),
    same("/evals/[]/when/min_tool_calls", &[("/evals/0/when", r#"{"min_tool_calls": 1}"#)]),
    same_because("/evals/[]/not", "dicta refuses it for judged evals"),
    same_because("/evals/[]/threshold", FIELDS_OF_IT),
    same("/evals/[]/threshold/passed", &[("/evals/0/threshold", r#"{"passed": true}"#)]),
    same("/evals/[]/threshold/min_score", &[("/evals/0/threshold", r#"{"min_score": 0.5}"#)]),
    same("/evals/[]/threshold/max_score", &[("/evals/0/threshold", r#"{"max_score": 0.5}"#)]),
    same("/evals/[]/enabled", &[("/evals/0/enabled", "false")]),
    same_given("/evals/[]/sample_percentage", &[("/evals/0/trigger", r#""sample_sessions""#), ("/evals/0/sample_percentage", "100")], &[("/evals/0/sample_percentage", "1")]),
    // The first repeat keeps its key, and the others ask again.
    key("/evals/[]/repeat", &[("/evals/0/repeat", "3")]),
    same("/evals/[]/weight", &[("/evals/0/weight", "3")]),
    same_because("/evals/[]/reference", REFERENCE),
    same("/evals/[]/required", &[("/evals/0/required", "true")]),
    key("/evals/[]/allow_na", &[("/evals/0/allow_na", "true")]),
    same("/evals/[]/applies_to", &[("/evals/0/applies_to", r#"{"ids": ["t1"]}"#)]),
    same("/evals/[]/applies_to/ids", &[("/evals/0/applies_to", r#"{"ids": ["t1"]}"#)]),
    same("/evals/[]/applies_to/tags", &[("/evals/0/applies_to", r#"{"tags": ["gold"]}"#)]),
    same("/evals/[]/applies_to/metadata", &[("/evals/0/applies_to", r#"{"metadata": {"tier": "gold"}}"#)]),
    same("/evals/[]/applies_to/has_tool", &[("/evals/0/applies_to", r#"{"has_tool": ["search"]}"#)]),
    same("/evals/[]/allow", &[("/evals/0/allow", r#""unknown-tool""#)]),
    same("/evals/[]/examples", EXAMPLE),
    same_given("/evals/[]/examples/[]/text", EXAMPLE, &[("/evals/0/examples/0/text", r#""Ho.""#)]),
    same_given("/evals/[]/examples/[]/transcript", EXAMPLE, &[("/evals/0/examples/0", r#"{"transcript": {"messages": [{"role": "assistant", "content": "Ho."}]}, "expect": "pass"}"#)]),
    same_given("/evals/[]/examples/[]/expect", EXAMPLE, &[("/evals/0/examples/0/expect", r#""fail""#)]),
    same_given("/evals/[]/examples/[]/why", EXAMPLE, &[("/evals/0/examples/0/why", r#""Short.""#)]),
    same("/evals/[]/metric", &[("/evals/0/metric", r#"{"name": "m"}"#)]),
    same("/evals/[]/metric/name", &[("/evals/0/metric", r#"{"name": "n"}"#)]),
];

#[rustfmt::skip]
pub(super) const TRANSCRIPT: &[Field] = &[
    same("/id", &[("/id", r#""other""#)]),
    same_because("/messages", FIELDS_OF_IT),
    key("/messages/[]/role", &[("/messages/0/role", r#""system""#)]),
    key("/messages/[]/content", &[("/messages/0/content", r#""ho""#)]),
    key("/messages/[]/content/[]/type", &[("/messages/3/content/0", r#"{"type": "reasoning", "reasoning": "thanks"}"#)]),
    key("/messages/[]/content/[]/text", &[("/messages/3/content/0/text", r#""ho""#)]),
    key("/messages/[]/content/[]/reasoning", &[("/messages/3/content/1/reasoning", r#""ho""#)]),
    key("/messages/[]/content/[]/id", &[("/messages/3/content/2/id", r#""c3""#)]),
    key("/messages/[]/content/[]/name", &[("/messages/3/content/2/name", r#""close""#)]),
    key("/messages/[]/content/[]/arguments", &[("/messages/3/content/2/arguments", r#""{\"a\":1}""#)]),
    key("/messages/[]/content/[]/tool_call_id", &[("/messages/3/content/3/tool_call_id", r#""c1""#)]),
    key("/messages/[]/content/[]/content", &[("/messages/3/content/3/content", r#""no""#)]),
    key("/messages/[]/content/[]/is_error", &[("/messages/3/content/3/is_error", "true")]),
    same("/messages/[]/content/[]/duration_ms", &[("/messages/3/content/3/duration_ms", "9")]),
    key("/messages/[]/content/[]/kind", &[("/messages/3/content/4/kind", r#""input_audio""#)]),
    key("/messages/[]/content/[]/raw", &[("/messages/3/content/5/raw", r#"{"type": "x", "v": 2}"#)]),
    same_because("/messages/[]/tool_calls", FIELDS_OF_IT),
    key("/messages/[]/tool_calls/[]/id", &[("/messages/1/tool_calls/0/id", r#""c3""#)]),
    same_because("/messages/[]/tool_calls/[]/function", FIELDS_OF_IT),
    key("/messages/[]/tool_calls/[]/function/name", &[("/messages/1/tool_calls/0/function/name", r#""find""#)]),
    key("/messages/[]/tool_calls/[]/function/arguments", &[("/messages/1/tool_calls/0/function/arguments", r#""{}""#)]),
    key("/messages/[]/tool_call_id", &[("/messages/2/tool_call_id", r#""c3""#)]),
    // Except `is_error` of a tool message, which the prompt shows.
    same("/messages/[]/metadata", &[("/messages/2/metadata", r#"{"duration_ms": 9, "x": 1}"#)]),
    // Without a rubric that names it.
    same("/metadata", &[("/metadata", r#"{"tier": "red"}"#)]),
    same("/tags", &[("/tags", r#"["red"]"#)]),
    same("/verdicts", &[("/verdicts", "null")]),
    same("/verdicts/[]/judge", &[("/verdicts/0/judge", r#""arena""#)]),
    same("/verdicts/[]/eval", &[("/verdicts/0/eval", r#""b""#)]),
    same("/verdicts/[]/passed", &[("/verdicts/0/passed", "false")]),
    same("/verdicts/[]/score", &[("/verdicts/0/score", "0.5")]),
    same("/verdicts/[]/value", &[("/verdicts/0/value", r#""I""#)]),
    same("/verdicts/[]/reasoning", &[("/verdicts/0/reasoning", r#""no""#)]),
    same("/verdicts/[]/error", &[("/verdicts/0/error", r#""no""#)]),
];

const TEMPLATE: Values = &[
    (
        "/tools/find/templateParameters",
        r#"[{"name": "t", "type": "string", "description": "third", "allowedValues": ["x", "y"]}]"#,
    ),
    ("/tools/find/statement", r#""SELECT ?, ?, '{{.t}}'""#),
];

/// The model does not see the first parameter, which copies another.
const COPIED: Values = &[
    ("/tools/find/statement", r#""SELECT ?, ?, ?""#),
    (
        "/tools/find/parameters",
        r#"[
        {"name": "a", "type": "integer", "description": "first", "valueFromParam": "n"},
        {"name": "n", "type": "integer", "description": "second"},
        {"name": "m", "type": "integer", "description": "third"}
    ]"#,
    ),
];

#[rustfmt::skip]
pub(super) const TOOLS: &[Field] = &[
    same_because("http source/type", "one kind has another key than another by its tools"),
    key("http source/baseUrl", &[("/sources/api/baseUrl", r#""https://api.example/v2""#)]),
    key("http source/headers", &[("/sources/api/headers/X-Api-Key", r#""b""#)]),
    key("http source/queryParams", &[("/sources/api/queryParams/keyword", r#""b""#)]),
    same("http source/timeout", &[("/sources/api/timeout", r#""7s""#)]),
    same("http source/disableSslVerification", &[("/sources/api/disableSslVerification", "false")]),
    key("http source/returnFullError", &[("/sources/api/returnFullError", "true")]),
    same("http source/allowPrivate", &[("/sources/api/allowPrivate", "true")]),
    key("http source/maxBytes", &[("/sources/api/maxBytes", "7")]),
    same_because("http source/caFile", ONLY_ERRORS),
    same_because("sqlite source/type", "one kind has another key than another by its tools"),
    same("sqlite source/timeout", &[("/sources/db/timeout", r#""7s""#)]),
    key("sqlite source/writable", &[("/sources/db/writable", "true")]),
    key("sqlite source/database", &[("/sources/db/database", r#""y.db""#)]),
    same_because("postgres source/type", "one kind has another key than another by its tools"),
    key("postgres source/host", &[("/sources/pg/host", r#""other.example""#)]),
    key("postgres source/port", &[("/sources/pg/port", "5433")]),
    key("postgres source/user", &[("/sources/pg/user", r#""v""#)]),
    key("postgres source/password", &[("/sources/pg/password", r#""b""#)]),
    key("postgres source/database", &[("/sources/pg/database", r#""e""#)]),
    key("postgres source/writable", &[("/sources/pg/writable", "true")]),
    same("postgres source/timeout", &[("/sources/pg/timeout", r#""7s""#)]),
    key("postgres source/queryParams", &[("/sources/pg/queryParams", r#"{"options": "-c search_path=b"}"#)]),
    key_elsewhere("mcp source/type", MCP),
    key_elsewhere("mcp source/command", MCP),
    key_elsewhere("mcp source/url", MCP),
    key_elsewhere("mcp source/headers", MCP),
    key_elsewhere("mcp source/args", MCP),
    key_elsewhere("mcp source/cwd", MCP),
    key_elsewhere("mcp source/env", MCP),
    same_because("mcp source/allowPrivate", ONLY_ERRORS),
    same_because("mcp source/timeout", ONLY_ERRORS),
    same_because("mcp source/startTimeout", ONLY_ERRORS),
    key_elsewhere("mcp source/allow", MCP),
    key_elsewhere("mcp source/prefix", MCP),
    key_elsewhere("auth service/type", CLAIMS),
    same_because("auth service/tokenEnv", TOKEN),
    same_because("auth service/tokenFile", TOKEN),
    same_because("auth service/jwks", TOKEN),
    key_elsewhere("auth service/clientId", CLAIMS),
    key_elsewhere("auth service/audience", CLAIMS),
    key_elsewhere("auth service/issuer", CLAIMS),
    key_elsewhere("auth service/authorizationServer", CLAIMS),
    key("http tool/type", &[("/tools/get", r#"{"kind": "sqlite-sql", "source": "db", "statement": "SELECT 1", "description": "reads"}"#)]),
    key("http tool/source", &[("/sources/api2", r#"{"kind": "http", "baseUrl": "https://api2.example/v1"}"#), ("/tools/get/source", r#""api2""#)]),
    key("http tool/description", &[("/tools/get/description", r#""opens""#)]),
    key("http tool/parameters", &[("/tools/get/parameters/0/name", r#""b""#)]),
    key("http tool/pathParams", &[("/tools/post/pathParams", r#"[{"name": "p", "type": "string", "description": "path"}]"#), ("/tools/post/path", r#""/p/{{.p}}""#)]),
    key("http tool/queryParams", &[("/tools/post/queryParams", r#"[{"name": "p", "type": "string", "description": "query"}]"#)]),
    key("http tool/bodyParams", &[("/tools/post/bodyParams/0/name", r#""b""#)]),
    key("http tool/headerParams", &[("/tools/post/headerParams", r#"[{"name": "X-P", "type": "string", "description": "header"}]"#)]),
    same_because("http tool/templateParameters", "dicta refuses it for this kind"),
    same_because("http tool/allowUncheckedTemplates", "it only permits a file to load"),
    key("http tool/inputSchema", &[("/tools/get/parameters", "null"), ("/tools/get/inputSchema", r#"{"type": "object"}"#)]),
    key_elsewhere("http tool/authRequired", CLAIMS),
    same_because("http tool/annotations", FIELDS_OF_IT),
    key("http tool/after", &[("/tools/get/after", r#"["find"]"#)]),
    key("http tool/cache", &[("/tools/get/cache", r#""off""#)]),
    key("http tool/coerce", &[("/tools/get/coerce", "true")]),
    key("http tool/maxCalls", &[("/tools/get/maxCalls", "7")]),
    key("http tool/method", &[("/tools/get/method", r#""HEAD""#)]),
    key("http tool/headers", &[("/tools/get/headers", r#"{"X-Api-Key": "b"}"#)]),
    key("http tool/maxBytes", &[("/tools/get/maxBytes", "7")]),
    key("http tool/path", &[("/tools/get/path", r#""/y""#)]),
    key("http tool/requestBody", &[("/tools/post/requestBody", r#""{\"b\": 1}""#), ("/tools/post/bodyParams", "null")]),
    key("sqlite tool/type", &[("/tools/find", r#"{"kind": "http", "source": "api", "method": "GET", "path": "/f", "description": "finds"}"#)]),
    key("sqlite tool/source", &[("/sources/db2", r#"{"kind": "sqlite", "database": "y.db"}"#), ("/tools/find/source", r#""db2""#)]),
    key("sqlite tool/description", &[("/tools/find/description", r#""seeks""#)]),
    key("sqlite tool/parameters", &[("/tools/find/parameters/1/name", r#""m""#)]),
    key("sqlite tool/templateParameters", TEMPLATE),
    same_given("sqlite tool/allowUncheckedTemplates", TEMPLATE, &[("/tools/find/allowUncheckedTemplates", r#"["t"]"#)]),
    key("sqlite tool/inputSchema", &[("/tools/ask/inputSchema", r#"{"type": "object", "properties": {"z": {"type": "string"}}}"#), ("/tools/ask/statement", r#""SELECT $1""#)]),
    key_elsewhere("sqlite tool/authRequired", CLAIMS),
    same_because("sqlite tool/annotations", FIELDS_OF_IT),
    key("sqlite tool/after", &[("/tools/find/after", r#"["get"]"#)]),
    key("sqlite tool/cache", &[("/tools/find/cache", r#""off""#)]),
    key("sqlite tool/coerce", &[("/tools/find/coerce", "true")]),
    key("sqlite tool/maxCalls", &[("/tools/find/maxCalls", "7")]),
    key("sqlite tool/maxRows", &[("/tools/find/maxRows", "7")]),
    key("sqlite tool/statement", &[("/tools/find/statement", r#""SELECT ?, ?, 1""#)]),
    key("postgres tool/type", &[("/tools/ask", r#"{"kind": "sqlite-sql", "source": "db", "statement": "SELECT 1", "description": "asks"}"#)]),
    key("postgres tool/source", &[("/sources/pg2", r#"{"kind": "postgres", "host": "pg2.example", "port": 5432, "user": "u", "password": "a", "database": "d"}"#), ("/tools/ask/source", r#""pg2""#)]),
    key("postgres tool/description", &[("/tools/ask/description", r#""begs""#)]),
    key("postgres tool/parameters", &[("/tools/ask/parameters", r#"[{"name": "a", "type": "string", "description": "first"}]"#), ("/tools/ask/statement", r#""SELECT $1""#)]),
    key("postgres tool/templateParameters", &[("/tools/ask/templateParameters", r#"[{"name": "t", "type": "string", "description": "t", "allowedValues": ["x"]}]"#), ("/tools/ask/statement", r#""SELECT '{{.t}}'""#)]),
    same_because("postgres tool/allowUncheckedTemplates", "it only permits a file to load"),
    key("postgres tool/inputSchema", &[("/tools/ask/inputSchema", r#"{"type": "object", "properties": {"z": {"type": "string"}}}"#), ("/tools/ask/statement", r#""SELECT $1""#)]),
    key_elsewhere("postgres tool/authRequired", CLAIMS),
    same_because("postgres tool/annotations", FIELDS_OF_IT),
    key("postgres tool/after", &[("/tools/ask/after", r#"["get"]"#)]),
    key("postgres tool/cache", &[("/tools/ask/cache", r#""off""#)]),
    key("postgres tool/coerce", &[("/tools/ask/coerce", "true")]),
    key("postgres tool/maxCalls", &[("/tools/ask/maxCalls", "7")]),
    key("postgres tool/maxRows", &[("/tools/ask/maxRows", "7")]),
    key("postgres tool/statement", &[("/tools/ask/statement", r#""SELECT 2""#)]),
    key_elsewhere("mcp tool/type", MCP),
    key_elsewhere("mcp tool/source", MCP),
    key_elsewhere("mcp tool/description", MCP),
    key_elsewhere("mcp tool/parameters", MCP),
    key_elsewhere("mcp tool/templateParameters", MCP),
    same_because("mcp tool/allowUncheckedTemplates", "it only permits a file to load"),
    key_elsewhere("mcp tool/inputSchema", MCP),
    key_elsewhere("mcp tool/authRequired", CLAIMS),
    same_because("mcp tool/annotations", FIELDS_OF_IT),
    key_elsewhere("mcp tool/after", MCP),
    key_elsewhere("mcp tool/cache", MCP),
    key_elsewhere("mcp tool/coerce", MCP),
    key_elsewhere("mcp tool/maxCalls", MCP),
    key_elsewhere("mcp tool/readOnly", MCP),
    key_elsewhere("mcp tool/tool", MCP),
    same("annotations/title", &[("/tools/get/annotations", r#"{"title": "Get"}"#)]),
    same("annotations/destructiveHint", &[("/tools/get/annotations", r#"{"destructiveHint": false}"#)]),
    same("annotations/idempotentHint", &[("/tools/get/annotations", r#"{"idempotentHint": true}"#)]),
    same("annotations/openWorldHint", &[("/tools/get/annotations", r#"{"openWorldHint": true}"#)]),
    key("annotations/readOnlyHint", &[("/tools/get/annotations", r#"{"readOnlyHint": false}"#)]),
    key("parameter/name", &[("/tools/find/parameters/0/name", r#""b""#)]),
    key("parameter/description", &[("/tools/find/parameters/0/description", r#""other""#)]),
    key("parameter/required", &[("/tools/find/parameters/0/required", "false")]),
    key_given("parameter/valueFromParam", COPIED, &[("/tools/find/parameters/0/valueFromParam", r#""m""#)]),
    key_elsewhere("parameter/authServices", CLAIMS),
    key_elsewhere("parameter/authSources", CLAIMS),
    key("parameter/default", &[("/tools/find/parameters/0/default", r#""z""#)]),
    key("parameter/type", &[("/tools/find/parameters/0/type", r#""boolean""#)]),
    key("parameter/minValue", &[("/tools/find/parameters/1/minValue", "1")]),
    key("parameter/maxValue", &[("/tools/find/parameters/1/maxValue", "9")]),
    key_given("parameter/escape", TEMPLATE, &[("/tools/find/templateParameters/0/escape", r#""single-quotes""#)]),
    key_given("parameter/anchored", &[("/tools/find/parameters/0/allowedValues", r#"["x", "y"]"#)], &[("/tools/find/parameters/0/anchored", "true")]),
    key("parameter/allowedValues", &[("/tools/find/parameters/0/allowedValues", r#"["x"]"#)]),
    key("parameter/excludedValues", &[("/tools/find/parameters/0/excludedValues", r#"["x"]"#)]),
];

/// A param of judged eval types.
pub(super) struct Param {
    pub(super) name: &'static str,
    /// The types that it is about; empty for all others.
    pub(super) types: &'static [&'static str],
    pub(super) changes: bool,
    /// A value that no example has.
    pub(super) value: &'static str,
    /// True if the base workspace refuses it, so that another test checks its keys.
    pub(super) is_refused: bool,
    /// The params that it excludes.
    pub(super) instead_of: &'static [&'static str],
}

const fn param(name: &'static str, value: &'static str) -> Param {
    Param {
        name,
        types: &[],
        changes: true,
        value,
        is_refused: false,
        instead_of: &[],
    }
}

const CONTEXTS: &[&str] = &["contexts", "context", "context_field"];

#[rustfmt::skip]
pub(super) const EVAL_PARAMS: &[Param] = &[
    param("criteria", r#""It is other.""#),
    Param { types: &["binary_rubric"], ..param("criteria", r#"["It is other.", "It is new."]"#) },
    param("scoring_guide", r#""1 all, 0 none""#),
    Param { instead_of: &["scoring_guide"], ..param("rubric", r#""1 all, 0 none""#) },
    param("scale", "[1, 7]"),
    param("model", r#""m9""#),
    param("system_prompt", r#""Be strict.""#),
    // The base workspace has no split; `run::shots` tests that shots change keys.
    Param { is_refused: true, ..param("shots", r#"{"pass": 1}"#) },
    Param { changes: false, ..param("min_score", "0.3") },
    Param { changes: false, instead_of: &["min_score"], ..param("max_score", "0.9") },
    param("question", r#""Which one?""#),
    Param { instead_of: CONTEXTS, ..param("contexts", r#"["another"]"#) },
    Param { instead_of: CONTEXTS, ..param("context", r#""another""#) },
    Param { instead_of: CONTEXTS, ..param("context_field", r#""other""#) },
    param("reference", r#""Use 2.70.""#),
    Param { instead_of: &["reference", "expected"], ..param("expected_output", r#""Use 2.70.""#) },
    Param { instead_of: &["expected"], ..param("golden", r#""Use 2.70.""#) },
    param("expected", r#""Use 2.70.""#),
    param("allow_extra", "false"),
    param("grouping", r#""per_criterion""#),
    param("include_tool_calls", "false"),
    param("sub_goals", r#"["Another goal"]"#),
    param("conversation_plan", r#""Ask twice.""#),
    param("tools", r#"["search", "book_flight"]"#),
    param("agent_role", r#""A clerk.""#),
];
