//! The content of transcripts that dicta did not read, and the counts that `check`, `import` and a run report.
//!
//! Responsible for the rule that a record counts as understood only if dicta read its messages, calls, results and
//! answer. One type counts for all commands, so that their numbers agree. Does not read files.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ReadTally;
use super::reader::count_kind;
use crate::model::{MessageRole, Transcript, TranscriptMessage, TranscriptPart};

/// The types of parts that contain state of a service, but no text, call or result.
const STATE_TYPES: [&str; 10] = [
    "compaction",
    "container_upload",
    "image_generation_call",
    "item_reference",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_list_tools",
    "redacted_reasoning",
    "redacted_thinking",
    "step-start",
];

/// The roles that readers assign to messages about the session.
const SESSION_ROLES: [&str; 2] = ["agent_handoff", "agent_config_update"];

/// The content of one transcript that dicta did not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadContent {
    /// The number of unread parts and roles, by kind.
    pub kinds: BTreeMap<String, u64>,
    /// The number of messages that have any.
    pub messages: u64,
    /// The number of assistant messages without content or call.
    pub empty_replies: u64,
    /// True if it has messages, and none of them is the assistant's.
    pub lacks_answer: bool,
    /// True if it has no message.
    pub lacks_messages: bool,
}

impl UnreadContent {
    /// Returns what dicta did not read of a transcript.
    pub fn find(transcript: &Transcript<'_>) -> Self {
        let mut all = Self::default();
        for message in &transcript.messages {
            all.add_message(message);
        }
        let is_answer = |message: &TranscriptMessage<'_>| message.role == MessageRole::Assistant;
        all.lacks_messages = transcript.messages.is_empty();
        all.lacks_answer = !all.lacks_messages && !transcript.messages.iter().any(is_answer);
        all
    }

    fn add_message(&mut self, message: &TranscriptMessage<'_>) {
        let mut is_unread = false;
        for part in &message.parts {
            if let TranscriptPart::Other(raw) = part
                && let Some(kind) = describe_unread_part(raw.get())
            {
                count_kind(&mut self.kinds, &kind);
                is_unread = true;
            }
        }
        // An unread part is counted already, and some readers use its type as the role.
        if let MessageRole::Other(role) = &message.role
            && !SESSION_ROLES.contains(&&**role)
            && !is_unread
        {
            count_kind(
                &mut self.kinds,
                &format!("a message of the role `{}`", &**role),
            );
            is_unread = true;
        }
        self.messages += u64::from(is_unread);
        let is_empty = message.parts.iter().all(|part| match part {
            TranscriptPart::Text(text) | TranscriptPart::Reasoning(text) => text.trim().is_empty(),
            TranscriptPart::ToolCall(_)
            | TranscriptPart::ToolResult(_)
            | TranscriptPart::Media { .. }
            | TranscriptPart::Other(_) => false,
        });
        self.empty_replies += u64::from(is_empty && message.role == MessageRole::Assistant);
    }

    /// Returns true if dicta read at least one part of a message whose role it knows.
    pub(super) fn has_read_any(transcript: &Transcript<'_>) -> bool {
        transcript.messages.iter().any(|message| {
            !matches!(message.role, MessageRole::Other(_))
                && message
                    .parts
                    .iter()
                    .any(|part| !matches!(part, TranscriptPart::Other(_)))
        })
    }
}

/// Names the kind of a part that is kept as written; `None` if it contains only state of a service.
fn describe_unread_part(raw: &str) -> Option<String> {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    // Readers wrap a block whose type the native format would interpret.
    let value = match (value["type"].as_str(), value.get("block")) {
        (Some("unread"), Some(block)) => block.clone(),
        _ => value,
    };
    let Value::Object(fields) = &value else {
        return Some("a part that is not an object".to_owned());
    };
    match fields.get("type").and_then(Value::as_str) {
        Some(kind) if STATE_TYPES.contains(&kind) => None,
        // A part with only a type has no content.
        Some(_) if fields.len() == 1 => None,
        Some(kind) => Some(format!("a part of the type `{kind}`")),
        None => {
            let keys: Vec<String> = fields
                .keys()
                .take(4)
                .map(|key| format!("`{key}`"))
                .collect();
            Some(format!("a part with the keys {}", keys.join(", ")))
        }
    }
}

/// The counts of reading one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// The number of transcripts.
    pub transcripts: u64,
    /// The number of records that are not transcripts.
    pub bad_records: u64,
    /// The unread parts and roles, by kind.
    pub unread: BTreeMap<String, u64>,
    /// The number of transcripts with an assistant message that has neither content nor a call.
    pub empty_replies: u64,
    /// The number of transcripts with messages, but without one of the assistant.
    pub without_answer: u64,
    /// The number of transcripts without a message.
    pub without_messages: u64,
    partly_read: u64,
    unread_messages: u64,
}

impl ReadCounts {
    /// Returns the counts of transcripts whose content was not read.
    pub(crate) fn of_transcripts(transcripts: u64) -> Self {
        Self {
            transcripts,
            ..Self::default()
        }
    }

    /// Counts a transcript.
    pub fn add_transcript(&mut self, unread: &UnreadContent) {
        self.transcripts += 1;
        self.partly_read += u64::from(!unread.kinds.is_empty());
        self.unread_messages += unread.messages;
        self.empty_replies += u64::from(unread.empty_replies > 0);
        self.without_answer += u64::from(unread.lacks_answer);
        self.without_messages += u64::from(unread.lacks_messages);
        for (kind, count) in &unread.kinds {
            *self.unread.entry(kind.clone()).or_default() += count;
        }
    }

    /// Counts a record that is not a transcript.
    pub fn add_bad_record(&mut self) {
        self.bad_records += 1;
    }

    /// Adds the counts of another file.
    pub fn merge(&mut self, other: Self) {
        self.transcripts += other.transcripts;
        self.bad_records += other.bad_records;
        self.empty_replies += other.empty_replies;
        self.without_answer += other.without_answer;
        self.without_messages += other.without_messages;
        self.partly_read += other.partly_read;
        self.unread_messages += other.unread_messages;
        for (kind, count) in other.unread {
            *self.unread.entry(kind).or_default() += count;
        }
    }

    /// Returns a sentence on the records that dicta did not understand, with the kinds of content that it names. `whose`
    /// precedes the number of all records, as `the file's `.
    pub(crate) fn describe_missed(
        &self,
        tally: Option<&ReadTally>,
        whose: &str,
        kinds: &[String],
    ) -> String {
        let (records, missed) = self.records(tally);
        let were = if missed == 1 { "was" } else { "were" };
        let kinds = kinds.join(", ");
        format!("{missed} of {whose}{records} records {were} not understood: {kinds}")
    }

    /// Returns the number of records of the file, and how many of them dicta did not understand. `tally` is the reader's.
    pub fn records(&self, tally: Option<&ReadTally>) -> (u64, u64) {
        let found = self.transcripts + self.bad_records;
        let Some(tally) = tally else {
            return (found, self.bad_records + self.partly_read);
        };
        // The records of a session are its lines, so a message is closer to a record than the transcript is.
        let partly_read = if tally.records > found {
            self.unread_messages
        } else {
            self.partly_read
        };
        // The lines of a session are not understood if no transcript came of them.
        if self.transcripts == 0 {
            return (tally.records, tally.records);
        }
        let missed = tally.unknown_count() + self.bad_records + partly_read;
        // One record may contain several unread parts.
        (tally.records, missed.min(tally.records))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::parse_native;

    fn unread(messages: &str) -> UnreadContent {
        let record = format!(r#"{{"messages":{messages}}}"#);
        UnreadContent::find(&parse_native(record.as_bytes(), 1, "").expect("a native record"))
    }

    #[test]
    fn unknown_parts_and_roles_are_named_with_counts() {
        let found = unread(
            r#"[{"role":"user","content":[{"type":"tool-call","n":1},{"toolUse":{}},{"type":"tool-call","n":2},{"type":"text-end"}]},{"role":"gemini","content":"x"}]"#,
        );
        let kinds: Vec<(&str, u64)> = found.kinds.iter().map(|(k, n)| (&**k, *n)).collect();
        assert_eq!(
            kinds,
            [
                ("a message of the role `gemini`", 1),
                ("a part of the type `tool-call`", 2),
                ("a part with the keys `toolUse`", 1),
            ]
        );
        assert_eq!(found.messages, 2);
    }

    #[test]
    fn state_of_a_service_is_not_unread_content() {
        let found =
            unread(r#"[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"}]}]"#);
        assert_eq!(found, UnreadContent::default());
    }

    #[test]
    fn assistant_message_without_content_and_call_is_an_empty_reply() {
        let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}"#;
        let found = unread(&format!(
            r#"[{{"role":"assistant","content":" "}},{{"role":"assistant"}},{{"role":"user"}},{call}]"#
        ));
        assert_eq!((found.empty_replies, found.kinds.len()), (2, 0));
    }

    #[test]
    fn transcript_without_the_assistant_lacks_an_answer() {
        let mut counts = ReadCounts::default();
        counts.add_transcript(&unread(r#"[{"role":"user","content":"x"}]"#));
        counts.add_transcript(&unread(r#"[{"role":"assistant","content":"x"}]"#));
        let mut all = ReadCounts::default();
        all.merge(counts);
        assert_eq!((all.without_answer, all.transcripts), (1, 2));
    }

    #[test]
    fn transcript_without_any_message_is_counted_apart_from_one_without_an_answer() {
        let mut counts = ReadCounts::default();
        counts.add_transcript(&unread("[]"));
        counts.add_transcript(&unread(r#"[{"role":"user","content":"x"}]"#));
        let mut all = ReadCounts::default();
        all.merge(counts);
        assert_eq!((all.without_messages, all.without_answer), (1, 1));
    }

    #[test]
    fn partly_read_record_is_not_understood() {
        let mut counts = ReadCounts::default();
        counts.add_transcript(&unread(r#"[{"role":"user","content":"x"}]"#));
        counts.add_transcript(&unread(
            r#"[{"role":"bot","content":"x"},{"role":"bot","content":"x"}]"#,
        ));
        counts.add_bad_record();
        assert_eq!(counts.records(None), (3, 2));
        let session = ReadTally {
            records: 100,
            ..ReadTally::default()
        };
        assert_eq!(counts.records(Some(&session)), (100, 3), "two messages");
    }

    #[test]
    fn without_a_transcript_no_record_is_understood() {
        let mut counts = ReadCounts::default();
        counts.add_bad_record();
        let session = ReadTally {
            records: 176,
            ..ReadTally::default()
        };
        assert_eq!(counts.records(Some(&session)), (176, 176));
        let empty = ReadTally::default();
        assert_eq!(ReadCounts::default().records(Some(&empty)), (0, 0));
    }
}
