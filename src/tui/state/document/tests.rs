use super::*;
use crate::judge::find_quote;
use crate::model::{ToolCall, ToolResult};

fn call(id: &str) -> TranscriptPart<'static> {
    TranscriptPart::ToolCall(ToolCall {
        id: id.to_owned().into(),
        name: "search".into(),
        arguments: format!(r#"{{"q":"{id}"}}"#).into(),
    })
}

fn result(id: &str, is_error: Option<bool>) -> TranscriptPart<'static> {
    TranscriptPart::ToolResult(ToolResult {
        call_id: id.to_owned().into(),
        content: format!("found {id}").into(),
        is_error,
        duration_ms: None,
    })
}

fn message<'a>(role: MessageRole<'a>, parts: Vec<TranscriptPart<'a>>) -> TranscriptMessage<'a> {
    TranscriptMessage {
        role,
        parts,
        metadata: None,
    }
}

fn sample() -> Transcript<'static> {
    Transcript {
        id: "t".into(),
        messages: vec![
            message(
                MessageRole::System,
                vec![TranscriptPart::Text("Be kind.".into())],
            ),
            message(
                MessageRole::User,
                vec![TranscriptPart::Text("Which\nrelease?".into())],
            ),
            message(
                MessageRole::Assistant,
                vec![TranscriptPart::Reasoning("hm".into()), call("a"), call("b")],
            ),
            message(MessageRole::Tool, vec![result("b", Some(true))]),
            message(MessageRole::Tool, vec![result("a", None)]),
            message(MessageRole::Tool, vec![result("nobody", None)]),
            message(MessageRole::Assistant, Vec::new()),
        ],
        ..Transcript::default()
    }
}

#[test]
fn result_follows_its_call_and_messages_keep_numbers() {
    let doc = TranscriptDocument::from_transcript(&sample());
    let lines: Vec<(u32, &str)> = doc
        .pieces
        .iter()
        .map(|piece| (piece.message, doc.text_with_heading(piece)))
        .collect();
    assert_eq!(
        lines,
        [
            (0, "system  Be kind."),
            (1, "user  Which\nrelease?"),
            (2, "assistant thinks  hm"),
            (2, r#"calls  search({"q":"a"})"#),
            (4, "result  found a"),
            (2, r#"calls  search({"q":"b"})"#),
            (3, "error  found b"),
            (5, "tool result  found nobody"),
            (6, "assistant  "),
        ]
    );
    assert_eq!(doc.first_pieces, [0, 1, 2, 6, 4, 7, 8]);
    assert_eq!(
        doc.message_text(2),
        "hm\nsearch({\"q\":\"a\"})\nsearch({\"q\":\"b\"})"
    );
    let leads: Vec<bool> = (0..doc.pieces.len())
        .map(|at| doc.starts_message(at))
        .collect();
    assert_eq!(
        leads,
        [true, true, true, false, true, false, true, true, true]
    );
}

#[test]
fn quote_is_found_despite_other_white_space() {
    let text = "The  newest\n release is 2.69, the newest release";
    assert_eq!(find_quote(text, "newest release"), Some(5..20));
    assert_eq!(find_quote(text, "the newest release"), Some(30..48));
    assert_eq!(find_quote(text, " 2.69, the "), Some(24..33));
    assert_eq!(find_quote(text, "newestrelease"), None);
    assert_eq!(find_quote(text, "  "), None);
    assert_eq!(find_quote("", "x"), None);
    assert_eq!(find_quote("aaa b", "aa b"), Some(1..5));
}

#[test]
fn document_of_million_messages_builds_fast() {
    let messages = (0..1_000_000)
        .map(|n| {
            let role = if n % 2 == 0 {
                MessageRole::User
            } else {
                MessageRole::Assistant
            };
            message(role, vec![TranscriptPart::Text("hello".into())])
        })
        .collect();
    let doc = TranscriptDocument::from_transcript(&Transcript {
        id: "long".into(),
        messages,
        ..Transcript::default()
    });
    assert_eq!(doc.pieces.len(), 1_000_000);
    assert_eq!(doc.first_pieces[999_999], 999_999);
    assert_eq!(doc.message_text(999_999), "hello");
    assert_eq!(doc.pieces_of(500_000).count(), 1);
}

#[test]
fn judged_pieces_are_what_the_check_reads() {
    let text = |text: &'static str| vec![TranscriptPart::Text(text.into())];
    let mut transcript = sample();
    transcript.messages[6] = message(MessageRole::Assistant, text("2.11"));
    transcript
        .messages
        .insert(2, message(MessageRole::Assistant, text("I look.")));
    let doc = TranscriptDocument::from_transcript(&transcript);
    let texts = |part, message| -> Vec<&str> {
        let pieces = doc.judged_pieces(part, message).iter();
        pieces
            .map(|piece| doc.text_of(&doc.pieces[*piece as usize]))
            .collect()
    };
    assert_eq!(texts(JudgedPart::Output, None), ["2.11"]);
    assert_eq!(texts(JudgedPart::Output, Some(2)), ["I look."]);
    assert_eq!(texts(JudgedPart::Answers, None), ["I look.", "2.11"]);
    assert_eq!(texts(JudgedPart::Answers, Some(7)), ["2.11"]);
    assert_eq!(texts(JudgedPart::Transcript, None), [""; 0]);
    let calls = texts(JudgedPart::Calls, None);
    assert_eq!(calls.len(), 5, "two calls and three results: {calls:?}");
    assert_eq!(
        texts(JudgedPart::Calls, Some(2)),
        [""; 0],
        "before the calls"
    );
    let empty = TranscriptDocument::default();
    assert!(empty.judged_pieces(JudgedPart::Output, None).is_empty());
}
