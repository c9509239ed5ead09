//! The providers of the fault matrix, and the spelling of faults in each of them.

use crate::support::wire::Dialect;

/// A body that only one dialect has: what it is, the stream, the outcome.
type Own = (&'static str, &'static str, &'static str);

/// A dialect.
pub(super) struct Protocol {
    /// `provider:` in dicta.yaml.
    pub(super) provider: &'static str,
    /// Further settings of the judge.
    pub(super) settings: &'static str,
    pub(super) dialect: Dialect,
    /// The finish reason of a reply that hit its token limit.
    pub(super) length: &'static str,
    /// The finish reasons of replies that the provider blocked.
    pub(super) blocked: &'static [&'static str],
    /// Bodies that only this dialect has: what, the stream, the outcome.
    pub(super) own: &'static [Own],
    /// True if a call's arguments are sent as text, so that they can be broken.
    pub(super) text_arguments: bool,
}

pub(super) const PROTOCOLS: &[Protocol] = &[
    Protocol {
        provider: "openai",
        settings: ", model: m",
        dialect: Dialect::Openai,
        length: "length",
        blocked: &["content_filter"],
        own: &[
            (
                "refusal",
                "data: {\"choices\":[{\"delta\":{\"refusal\":\"I cannot.\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
                "judge_error",
            ),
            (
                "an end without a reason and a mark",
                "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"passed\\\":true,\\\"score\\\":1}\"}}]}\n\n",
                "truncated",
            ),
            (
                "an error event",
                "data: {\"choices\":[{\"delta\":{\"content\":\"{\\\"passed\\\":true}\"}}]}\n\nevent: error\ndata: {\"message\":\"boom\"}\n\n",
                "judge_error",
            ),
            (
                "an error beside a finish",
                "data: {\"error\":{\"code\":400,\"message\":\"boom\"},\"choices\":[{\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
                "judge_error",
            ),
            (
                "no choices",
                "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
                "truncated",
            ),
        ],
        text_arguments: true,
    },
    Protocol {
        provider: "gemini",
        settings: ", model: m",
        dialect: Dialect::Gemini,
        length: "MAX_TOKENS",
        blocked: GEMINI_BLOCKED,
        own: GEMINI_OWN,
        text_arguments: false,
    },
    Protocol {
        provider: "vertex",
        settings: ", model: m, api_key_env: GEMINI_API_KEY",
        dialect: Dialect::Gemini,
        length: "MAX_TOKENS",
        blocked: GEMINI_BLOCKED,
        own: GEMINI_OWN,
        text_arguments: false,
    },
    Protocol {
        provider: "vertex",
        settings: ", model: claude-opus-5, api_key_env: GEMINI_API_KEY",
        dialect: Dialect::Anthropic,
        length: "max_tokens",
        blocked: &["refusal", "pause_turn"],
        own: ANTHROPIC_OWN,
        text_arguments: true,
    },
    Protocol {
        provider: "anthropic",
        settings: ", model: m",
        dialect: Dialect::Anthropic,
        length: "model_context_window_exceeded",
        blocked: &["refusal", "pause_turn"],
        own: ANTHROPIC_OWN,
        text_arguments: true,
    },
    Protocol {
        provider: "openai-responses",
        settings: ", model: m",
        dialect: Dialect::Responses,
        length: "max_output_tokens",
        blocked: &["content_filter"],
        own: RESPONSES_OWN,
        text_arguments: true,
    },
];

const GEMINI_BLOCKED: &[&str] = &["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST"];

const GEMINI_OWN: &[Own] = &[
    (
        "a blocked prompt",
        "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n",
        "judge_error",
    ),
    (
        "an error after a reason",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"{\\\"passed\\\":true}\"}]},\"finishReason\":\"STOP\"}]}\n\n{\"error\": {\"code\": 499, \"message\": \"boom\"}}\n",
        "judge_error",
    ),
    (
        "no candidates",
        "data: {\"candidates\":[]}\n\n",
        "truncated",
    ),
];

const ANTHROPIC_OWN: &[Own] = &[
    (
        "an error event",
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"boom\"}}\n\n",
        "judge_error",
    ),
    (
        "an end without message_stop",
        "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"{\\\"passed\\\":true,\\\"score\\\":1}\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
        "truncated",
    ),
    (
        "an end without a reason and a mark",
        "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"{\\\"passed\\\":true,\\\"score\\\":1}\"}}\n\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
        "truncated",
    ),
    (
        "only pings",
        "event: ping\ndata: {\"type\":\"ping\"}\n\n",
        "truncated",
    ),
];

const RESPONSES_OWN: &[Own] = &[
    (
        "a refusal",
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"refusal\",\"refusal\":\"I cannot.\"}]}]}}\n\n",
        "judge_error",
    ),
    (
        "a flat error",
        "event: error\ndata: {\"type\":\"error\",\"code\":\"x\",\"message\":\"boom\"}\n\n",
        "judge_error",
    ),
    (
        "a failed response",
        "data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"boom\"}}}\n\n",
        "judge_error",
    ),
    (
        "a cancelled response",
        "data: {\"type\":\"response.cancelled\",\"response\":{\"status\":\"cancelled\"}}\n\n",
        "truncated",
    ),
    (
        "an item that never ended",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"item_id\":\"m\",\"delta\":\"{\\\"passed\\\":true,\\\"score\\\":1}\"}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        "truncated",
    ),
    (
        "[DONE] in the place of its last event",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"{\\\"passed\\\":true,\\\"score\\\":1}\"}]}}\n\ndata: [DONE]\n\n",
        "truncated",
    ),
    (
        "a completed response of no items",
        "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
        "unparsed",
    ),
];

/// Two protocols without a dialect of the server's own: their replies are written out. With a good answer and bad ones.
pub(super) const DECIDERS: [(&Protocol, &str, &[&str]); 2] = [
    (
        &Protocol {
            provider: "openai-decisions",
            settings: ", model: m",
            dialect: Dialect::Openai,
            length: "",
            blocked: &[],
            own: &[],
            text_arguments: false,
        },
        r#"[{"type":"predicate","probability":0.93}]"#,
        &[
            "[]",
            "null",
            "{}",
            r#"[{"type":"predicate"}]"#,
            r#"[{"type":"predicate","probability":null}]"#,
            r#"[{"type":"predicate","probability":"0.93"}]"#,
            r#"[{"type":"predicate","probability":NaN}]"#,
            r#"[{"type":"predicate","probability":1e999}]"#,
            r#"[{"type":"predicate","probability":1.5}]"#,
            r#"[{"type":"predicate","probability":-0.1}]"#,
            r#"[{"type":"choice","probability":0.93}]"#,
            r#"[{"type":"predicate","probability":0.93},{"type":"predicate","probability":0.1}]"#,
        ],
    ),
    (
        &Protocol {
            provider: "gemini-decisions",
            settings: ", model: m",
            dialect: Dialect::Gemini,
            length: "",
            blocked: &[],
            own: &[],
            text_arguments: false,
        },
        r#"{"met":{"noul":0.93}}"#,
        &[
            "[]",
            "null",
            "{}",
            r#"{"met":{}}"#,
            r#"{"met":{"noul":null}}"#,
            r#"{"met":{"noul":"0.93"}}"#,
            r#"{"met":{"noul":NaN}}"#,
            r#"{"met":{"noul":1e999}}"#,
            r#"{"met":{"noul":1.5}}"#,
            r#"{"met":{"noul":-0.1}}"#,
            r#"{"unmet":{"noul":0.93}}"#,
            r#"{"met":{"choice":0.93}}"#,
        ],
    ),
];
