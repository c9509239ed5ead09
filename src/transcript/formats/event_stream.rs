//! Files that contain streamed replies alone: server-sent events as a server sent them, one chunk per line, or a list
//! of chunks.
//!
//! Responsible for the boundaries between replies. Does not put them together: that is `streamed_reply.rs`.

use serde_json::Value;

use super::super::detect::FilePreview;
use super::super::fields::compact_json;
use super::super::reader::{
    PerSessionReader, RecordCx, RecordParser as _, SessionParser, TranscriptReader, TranscriptSink,
    record_text,
};
use super::anthropic;
use super::api_log::ApiLogParser;
use super::streamed_reply::{assemble_reply, is_chunk};

/// Returns true if a file begins with an event whose data is JSON, or with a chunk of a reply.
pub(super) fn is_stream(preview: &FilePreview<'_>) -> bool {
    let has_field = |field: &[u8]| {
        let mut lines = preview.records.iter().map(|seen| seen.bytes.trim_ascii());
        lines.any(|line| {
            let data = line.strip_prefix(field).map(<[u8]>::trim_ascii_start);
            data.is_some_and(|data| data.starts_with(b"{"))
        })
    };
    let starts_event = preview.records.first().is_some_and(|first| {
        let fields: [&[u8]; 3] = [b"data:", b"event:", b":"];
        fields.iter().any(|field| first.bytes.starts_with(field))
    });
    (starts_event && has_field(b"data:"))
        || is_chunk(preview.first_outline())
        || begins_with_partial_reply(preview)
}

/// Returns true if the first record is a part of a reply of Gemini or Ollama. A complete reply has the same keys, and
/// states its end.
fn begins_with_partial_reply(preview: &FilePreview<'_>) -> bool {
    let first = preview.first_outline();
    if first["done"] == false && first["model"].is_string() {
        return first["message"].is_object() || first["response"].is_string();
    }
    // A log has a request next to the reply, or a key of the record.
    let is_log = ["request", "key"].iter().any(|key| !first[*key].is_null());
    let Some(second) = preview.records.get(1).filter(|_| !is_log) else {
        return false;
    };
    let first = gemini_chunk(first);
    let next = gemini_chunk(second.sniff.outline(second.bytes));
    first["candidates"].is_array()
        && !states_end(first)
        && (next["candidates"].is_array() || !next["usageMetadata"].is_null())
        && response_id(first) == response_id(next)
}

/// Returns a chunk of Gemini without the wrapper of Google's Code Assist.
fn gemini_chunk(event: &Value) -> &Value {
    match event.get("response") {
        Some(inner) if inner.is_object() => inner,
        _ => event,
    }
}

fn response_id(chunk: &Value) -> Option<&str> {
    let keys = ["responseId", "response_id"];
    keys.iter().find_map(|key| chunk[*key].as_str())
}

/// Returns true if a chunk of Gemini is the last one with content.
fn states_end(chunk: &Value) -> bool {
    let keys = ["finishReason", "finish_reason"];
    let mut candidates = chunk["candidates"].as_array().into_iter().flatten();
    candidates.any(|candidate| keys.iter().any(|key| candidate[*key].is_string()))
}

/// Returns a reader of the replies of a file.
pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    Box::new(PerSessionReader::new(
        preview.record_walker(),
        StreamParser::default(),
    ))
}

/// The parser of replies, with the position in the current one.
#[derive(Debug, Default)]
struct StreamParser {
    /// True if the line before ended a reply.
    has_ended: bool,
    /// True between the first and the last event of a message of Anthropic.
    is_in_message: bool,
    /// The id of the chunks of the current reply.
    id: Option<String>,
}

impl StreamParser {
    /// Returns true if a chunk of Gemini begins a reply. Older chunks have no id, so the end before them decides.
    fn starts_gemini_reply(&mut self, chunk: &Value, ended: bool) -> bool {
        let id = response_id(chunk);
        let starts = match (&self.id, id) {
            (Some(before), Some(id)) => before != id,
            // The token counts may follow the end.
            _ => ended && chunk["candidates"].is_array(),
        };
        self.has_ended = states_end(chunk) || (ended && !starts);
        if let Some(id) = id {
            self.id = Some(id.to_owned());
        }
        starts
    }
}

impl SessionParser for StreamParser {
    fn starts_session(&mut self, line: &[u8]) -> bool {
        let line = line.trim_ascii();
        let data = line.strip_prefix(b"data:").unwrap_or(line).trim_ascii();
        let ended = std::mem::take(&mut self.has_ended);
        if data == b"[DONE]" {
            self.has_ended = true;
            return false;
        }
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            // The name of an event comes before its data.
            self.has_ended = ended;
            return false;
        };
        let kind = event["type"].as_str().unwrap_or_default();
        let chunk = gemini_chunk(&event);
        if chunk["candidates"].is_array() || !chunk["usageMetadata"].is_null() {
            return self.starts_gemini_reply(chunk, ended);
        }
        let ends = [
            "message_stop",
            "message-end",
            "response.completed",
            "response.failed",
            "finish",
        ];
        self.has_ended =
            ends.contains(&kind) || event["done"] == true || event["is_finished"] == true;
        // A gateway that tries again sends a second start without the end of the first message.
        let is_start = kind == "message_start";
        let is_retry = is_start && self.is_in_message;
        self.is_in_message = is_start || (self.is_in_message && !self.has_ended);
        // The first chunk of Azure, with the results of its filter, has an empty id.
        let id = event["id"].as_str().filter(|id| !id.is_empty());
        let id = id.filter(|_| event["choices"].is_array());
        let is_other = matches!((&self.id, id), (Some(before), Some(id)) if before != id);
        if let Some(id) = id {
            self.id = Some(id.to_owned());
        }
        ended || is_other || is_retry
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut text = String::new();
        for line in lines {
            match record_text(line) {
                // A chunk of a list may extend over several lines. As an event, it needs no other chunk next to it.
                Ok(line) if line.trim_start().starts_with('{') => {
                    text.push_str("data: ");
                    text.push_str(&compact_json(line));
                    text.push_str("\n\n");
                }
                Ok(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                Err(why) => return out.push_fault(why),
            }
        }
        let parsed = match assemble_reply(&text) {
            None => Err("it does not contain a streamed reply".to_owned()),
            Some(Err(why)) => Err(why),
            Some(Ok(reply)) if reply.is_anthropic => anthropic::parse_transcript(&reply.json)
                .map(|transcript| out.push_transcript(&transcript)),
            // A list of chunks and a reply of Ollama are replies only below `response`.
            Some(Ok(reply)) if reply.is_partial_record => {
                let record = format!("{{\"response\":{}}}", reply.json);
                ApiLogParser.parse_record(&record, cx, out)
            }
            Some(Ok(reply)) => ApiLogParser.parse_record(&reply.json, cx, out),
        };
        if let Err(why) = parsed {
            out.push_fault(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{lines_of_each, message_lines, read};

    #[test]
    fn file_of_events_is_one_transcript_per_reply() {
        let chunk = |id: &str, text: &str| {
            format!(
                "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            )
        };
        let file = [chunk("a", "He"), chunk("a", "y"), chunk("b", "Ho")].concat();
        let (all, _) = read(format!("{file}data: [DONE]\n\n{}", chunk("b", "No")).as_bytes());
        let texts = lines_of_each(&all);
        assert_eq!(
            texts,
            [["assistant Hey"], ["assistant Ho"], ["assistant No"]]
        );
    }

    #[test]
    fn file_of_anthropic_events_is_a_message() {
        let file = concat!(
            "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\"}}\n\n",
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\n",
            "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        );
        let (all, _) = read(file.as_bytes());
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            ["assistant Hi"]
        );
    }

    #[test]
    fn chunks_of_gemini_are_one_reply_as_events_lines_or_a_list() {
        let chunk = |id: &str, text: &str, end: &str| {
            format!(
                "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}],\"role\":\"model\"}}{end}}}],\"usageMetadata\":{{\"promptTokenCount\":9}},\"responseId\":\"{id}\"}}"
            )
        };
        let end = ",\"finishReason\":\"STOP\"";
        let all = [
            chunk("a", "There are ", ""),
            chunk("a", "3.", end),
            chunk("b", "Four.", end),
        ];
        let events = format!("data: {}\r\n\r\n", all.join("\r\n\r\ndata: "));
        let list = format!("[{}]", all.join(",\n")).replace(":[", ":\n [");
        for file in [events, all.join("\n"), list] {
            let (found, tally) = read(file.as_bytes());
            let texts = lines_of_each(&found);
            assert_eq!(
                texts,
                [["assistant There are 3."], ["assistant Four."]],
                "{file}"
            );
            assert_eq!(tally.unknown_count(), 0, "{file}");
        }
    }

    #[test]
    fn calls_of_gemini_whose_arguments_arrive_in_pieces_are_one_call_each() {
        let parts = [
            r#"{"functionCall":{"name":"weather","willContinue":true},"thoughtSignature":"CiMB"}"#,
            r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Bos","willContinue":true}],"willContinue":true}}"#,
            r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"ton"}],"willContinue":true}}"#,
            r#"{"functionCall":{}}"#,
            r#"{"functionCall":{"name":"theme"}}"#,
            r#"{"functionCall":{"name":"weather","willContinue":true}}"#,
            r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.days","numberValue":2}],"willContinue":true}}"#,
        ];
        let chunks = parts.map(|part| {
            format!("{{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}}}],\"responseId\":\"r\"}}")
        });
        for file in [
            chunks.join("\n"),
            format!("data: {}\n\n", chunks.join("\n\ndata: ")),
        ] {
            let (all, tally) = read(file.as_bytes());
            assert_eq!(all.len(), 1);
            assert_eq!(
                message_lines(all[0].as_ref().expect("a transcript")),
                [r#"assistant weather({"city":"Boston"}) | theme({}) | weather({"days":2})"#]
            );
            assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        }
    }

    #[test]
    fn arguments_of_gemini_in_the_first_part_of_a_call_are_kept() {
        let parts = [
            r#"{"functionCall":{"name":"weather","args":{"city":"Oslo"},"willContinue":true}}"#,
            r#"{"functionCall":{}}"#,
            r#"{"functionCall":{"name":"theme","partialArgs":[{"jsonPath":"$.dark","boolValue":true}]}}"#,
            r#"{"functionCall":{"name":"weather","partialArgs":[{"jsonPath":"$.days","numberValue":2}],"willContinue":true}}"#,
            r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#,
        ];
        let chunks = parts.map(|part| {
            format!("{{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{part}]}}}}],\"responseId\":\"r\"}}")
        });
        let (all, tally) = read(chunks.join("\n").as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            [
                r#"assistant weather({"city":"Oslo"}) | theme({"dark":true}) | weather({"days":2}) | code_execution({"language":"PYTHON","code":"1"})"#
            ]
        );
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    }

    #[test]
    fn first_chunk_of_azure_belongs_to_the_reply() {
        let chunks = [
            r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}"#,
            r#"{"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":1762317021,"id":"chatcmpl-1","model":"gpt-5-nano","object":"chat.completion.chunk"}"#,
            r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null,"index":0}],"created":1762317021,"id":"chatcmpl-1","model":"gpt-5-nano","object":"chat.completion.chunk"}"#,
        ];
        for file in [
            chunks.join("\n"),
            format!("data: {}\n\n", chunks.join("\n\ndata: ")),
        ] {
            let (all, _) = read(file.as_bytes());
            assert_eq!(all.len(), 1);
            let reply = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(reply), ["assistant Hi"]);
        }
    }

    #[test]
    fn second_start_of_a_message_begins_another_reply() {
        let start =
            r#"{"type":"message_start","message":{"id":"m","role":"assistant","content":[]}}"#;
        let delta = |index: u64, text: &str| {
            format!(
                "{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}"
            )
        };
        let (before, cut, again) = (delta(0, "One. "), delta(1, "Tw"), delta(0, "Two."));
        let stop = r#"{"type":"message_stop"}"#;
        let file = [start, &before, &cut, start, &again, stop].join("\n");
        let (all, _) = read(file.as_bytes());
        let texts = lines_of_each(&all);
        assert_eq!(texts.len(), 2);
        assert_eq!(texts[1], ["assistant Two."]);
    }

    #[test]
    fn chunks_of_ollama_are_one_reply() {
        let file = concat!(
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"The\"},\"done\":false}\n",
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\" sky\"},\"done\":false}\n",
            "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"prompt_eval_count\":26,\"eval_count\":2}\n",
        );
        let (all, _) = read(file.as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            ["assistant The sky"]
        );
    }

    #[test]
    fn reply_of_one_chunk_is_read() {
        let line = |id: &str, text: &str| {
            format!(
                "{{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n"
            )
        };
        let (all, _) = read([line("a", "x"), line("b", "y")].concat().as_bytes());
        let texts = lines_of_each(&all);
        assert_eq!(texts, [["assistant x"], ["assistant y"]]);
    }

    #[test]
    fn chunk_per_line_is_one_reply() {
        let line = |text: &str| {
            format!(
                "{{\"id\":\"a\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n"
            )
        };
        let (all, _) = read([line("x"), line("y")].concat().as_bytes());
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            ["assistant xy"]
        );
    }
}
