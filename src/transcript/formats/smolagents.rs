//! Lists of smolagents' messages, such as the memory of an agent as messages.
//!
//! Responsible for files that are such lists. Does not read the texts with calls: that is `smolagents_roles.rs`, also for
//! messages in spans.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::super::walk::RecordLayout;
use super::message_record::parse_message_list;
use super::record_readers::open_lists;
use super::smolagents_roles::{CALL_ROLE, RESULT_ROLE};

/// Returns true if the file is a list of messages with roles of smolagents, or has such a list per line. A record with
/// `messages` stays native: dicta writes such records.
pub(super) fn is_messages(preview: &FilePreview<'_>) -> bool {
    let has_role = |message: &Value| {
        let role = message["role"].as_str();
        role.is_some_and(|role| [CALL_ROLE, RESULT_ROLE].contains(&role))
    };
    if let Some(list) = preview.first_outline().as_array() {
        return list.iter().any(has_role);
    }
    let mut first = preview.records.iter().take(32);
    preview.layout == (RecordLayout::Values { array: true })
        && first.any(|seen| seen.sniff.has("role") && has_role(seen.sniff.outline(seen.bytes)))
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_lists(preview, parse_record)
}

fn parse_record(record: &str, _: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    parse_message_list("smolagents", record, out)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{message_lines, read};

    /// Returns the attributes of messages as `OpenInference` flattens them.
    fn flatten(
        side: &str,
        messages: &[(&str, &str)],
        attributes: &mut serde_json::Map<String, Value>,
    ) {
        for (at, (role, text)) in messages.iter().enumerate() {
            let prefix = format!("llm.{side}_messages.{at}.message");
            attributes.insert(format!("{prefix}.role"), json!(role));
            let content = format!("{prefix}.contents.0.message_content");
            attributes.insert(format!("{content}.type"), json!("text"));
            attributes.insert(format!("{content}.text"), json!(text));
        }
    }

    #[test]
    fn steps_in_spans_of_smolagents_are_one_conversation() {
        let thought = "Thought: search.\n<code>\nweb_search(\"Tokyo\")\n";
        let kept = format!("{thought}</code>");
        let calls = r#"Calling tools:
[{'id': 'call_1', 'type': 'function', 'function': {'name': 'python_interpreter', 'arguments': 'web_search("Tokyo")'}}]"#;
        let task = ("user", "New task:\nHow many?");
        let span = |at: u64, input: &[(&str, &str)], output: &str| {
            let mut attributes = serde_json::Map::new();
            attributes.insert("openinference.span.kind".to_owned(), json!("LLM"));
            flatten("input", input, &mut attributes);
            flatten("output", &[("assistant", output)], &mut attributes);
            json!({"trace_id": "t", "span_id": format!("s{at}"), "name": "generate", "attributes": attributes,
                "start_time": 1_784_230_697_000_000_000_u64 + at * 1_000_000_000, "end_time": 1_784_230_697_500_000_000_u64 + at * 1_000_000_000})
        };
        let second = [
            task,
            ("assistant", &*kept),
            ("tool-call", calls),
            ("tool-response", "Observation:\n14 million"),
        ];
        let file = json!([
            span(1, &[task], thought),
            span(2, &second, "Thought: done."),
        ]);
        let (all, tally) = read(file.to_string().as_bytes());
        assert_eq!(all.len(), 1, "one thread");
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user New task:\nHow many?".to_owned(),
                format!("assistant {thought}"),
                r#"assistant python_interpreter(web_search("Tokyo"))"#.to_owned(),
                "tool Observation:\n14 million".to_owned(),
                "assistant Thought: done.".to_owned(),
            ]
        );
        assert_eq!(one["messages"][3]["tool_call_id"], "call_1");
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn error_names_its_call() {
        let file = json!([
            {"role": "user", "content": "Go."},
            {"role": "tool-call", "content": [{"type": "text", "text": "Calling tools:\n[{'id': 'c9', 'type': 'function', 'function': {'name': 'find', 'arguments': {'q': None}}}]"}]},
            {"role": "tool-response", "content": [{"type": "text", "text": "Call id: c9\nError:\nNo such thing"}]},
            {"role": "tool-call", "content": "Calling tools: [{"},
            {"role": "tool-response", "content": "Observation:\nNothing"},
        ]);
        let (all, _) = read(file.to_string().as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user Go.",
                r#"assistant find({"q":null})"#,
                "tool Error:\nNo such thing",
                "tool-call Calling tools: [{",
                "tool Observation:\nNothing",
            ]
        );
        assert_eq!(one["messages"][2]["tool_call_id"], "c9");
        assert_eq!(one["messages"][2]["metadata"]["is_error"], true);
        let of_unread_call = &one["messages"][4]["tool_call_id"];
        assert!(of_unread_call.as_str().is_none_or(str::is_empty), "{one}");
    }
}
