//! Files that contain streamed replies alone: server-sent events as a server sent them, or one chunk per line.
//!
//! Responsible for the boundaries between replies. Does not put them together: that is `streamed_reply.rs`.

use serde_json::Value;

use super::super::detect::FilePreview;
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
    (starts_event && has_field(b"data:")) || is_chunk(preview.first_outline())
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
    /// The id of the chunks of the current reply.
    id: Option<String>,
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
        let ends = ["message_stop", "response.completed", "response.failed"];
        self.has_ended = ends.contains(&kind);
        let id = event["id"].as_str().filter(|_| event["choices"].is_array());
        let is_other = matches!((&self.id, id), (Some(before), Some(id)) if before != id);
        if let Some(id) = id {
            self.id = Some(id.to_owned());
        }
        ended || is_other
    }

    fn parse_session(&self, lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
        let mut text = String::new();
        for line in lines {
            match record_text(line) {
                Ok(line) => {
                    text.push_str(line);
                    text.push('\n');
                }
                Err(why) => return out.push_fault(why),
            }
        }
        // A chunk alone in its reply is not followed by another line.
        text.push_str("data: [DONE]\n");
        let parsed = match assemble_reply(&text) {
            None => Err("it does not contain a streamed reply".to_owned()),
            Some(Err(why)) => Err(why),
            Some(Ok(reply)) if reply.is_anthropic => anthropic::parse_transcript(&reply.json)
                .map(|transcript| out.push_transcript(&transcript)),
            Some(Ok(reply)) => ApiLogParser.parse_record(&reply.json, cx, out),
        };
        if let Err(why) = parsed {
            out.push_fault(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn file_of_events_is_one_transcript_per_reply() {
        let chunk = |id: &str, text: &str| {
            format!(
                "data: {{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            )
        };
        let file = [chunk("a", "He"), chunk("a", "y"), chunk("b", "Ho")].concat();
        let (all, _) = read(format!("{file}data: [DONE]\n\n{}", chunk("b", "No")).as_bytes());
        let texts: Vec<_> = all
            .iter()
            .map(|one| message_lines(one.as_ref().expect("a transcript")))
            .collect();
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
