use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{Clock, FakeClock};
use crate::event::{Emitter, MemoryBlobs, RedactedEvent, Redactor};
use crate::model::{CellIx, TurnIx, is_invisible};
use crate::tools::{PreparedCall, ToolSet, prepare_call};

fn leaf(message: usize, label: &str, text: &str) -> MessagePart {
    MessagePart {
        message,
        label: format!("[{message}] {label}"),
        text: text.to_owned(),
    }
}

fn judged_messages(leaves: Vec<MessagePart>, messages: usize) -> Arc<JudgedMessages> {
    Arc::new(JudgedMessages {
        parts: leaves,
        message_count: messages,
        delimiter: LineDelimiter {
            start: "<<<m ".to_owned(),
            end: ">>>".to_owned(),
        },
    })
}

fn beam_transcript() -> Arc<JudgedMessages> {
    judged_messages(
        vec![
            leaf(0, "user", "which\nrelease?"),
            leaf(1, "assistant calls search (c1)", "search({\"q\":\"beam\"})"),
            leaf(1, "assistant", "Let me look."),
            leaf(3, "assistant", "Use 2.69.0."),
        ],
        4,
    )
}

async fn call_tool(
    book: &Arc<JudgedMessages>,
    name: &str,
    args: &str,
) -> Result<ToolResponse, String> {
    let set = ToolSet {
        tools: transcript_tools_for(book),
    };
    let PreparedCall { outcome, .. } = prepare_call(&set, name, args, &SeenUrls::default());
    let prepared = outcome.map_err(|rejection| rejection.text)?;
    let (out, _facts) = mpsc::channel::<RedactedEvent>(10);
    let cx = CallCx {
        out: Emitter::new(
            out,
            Arc::new(MemoryBlobs::default()),
            Arc::new(Redactor::default()),
        ),
        clock: Arc::new(FakeClock::new()) as Arc<dyn Clock>,
        cancel: CancellationToken::new(),
        cell: CellIx(0),
        turn: TurnIx(0),
    };
    let tool = set.get(name).expect("one of the three");
    Ok(tool.call(&prepared, CallIx(0), &cx).await)
}

#[tokio::test]
async fn list_messages_shows_numbers_sizes_and_previews() {
    let answer = call_tool(&beam_transcript(), LIST_MESSAGES, "{}")
        .await
        .expect("an answer");
    assert_eq!(
        answer.text,
        "<<<m 4 messages in all>>>\n\
         [0] user, 14 bytes: \"which release?\"\n\
         [1] assistant calls search (c1), 20 bytes: \"search({\\\"q\\\":\\\"beam\\\"})\"\n\
         [1] assistant, 12 bytes: \"Let me look.\"\n\
         [2] left out\n\
         [3] assistant, 11 bytes: \"Use 2.69.0.\"\n"
    );
    assert!(!answer.truncated);
    let some = call_tool(&beam_transcript(), LIST_MESSAGES, r#"{"from":2,"limit":1}"#).await;
    let some = some.expect("an answer");
    assert!(some.truncated);
    assert_eq!(
        some.text,
        "<<<m 4 messages in all>>>\n[2] left out\n<<<m more: list_messages with from: 3 goes on>>>\n"
    );
}

#[tokio::test]
async fn read_message_returns_parts_in_pages() {
    let full_message = call_tool(&beam_transcript(), READ_MESSAGE, r#"{"message":1}"#).await;
    assert_eq!(
        full_message.expect("an answer").text,
        "<<<m [1] assistant calls search (c1)>>>\nsearch({\"q\":\"beam\"})\n<<<m [1] assistant>>>\nLet me look.\n"
    );
    let page = call_tool(
        &beam_transcript(),
        READ_MESSAGE,
        r#"{"message":1,"from":15,"limit":8}"#,
    )
    .await;
    let page = page.expect("an answer");
    assert_eq!((page.bytes, page.truncated), (8, true));
    assert_eq!(
        page.text,
        "<<<m [1] assistant calls search (c1), continued>>>\nam\"})\n<<<m [1] assistant>>>\nLet\n\
         <<<m cut at byte 23 of 32: read_message with message: 1, from: 23 goes on>>>\n"
    );
    let left_out = call_tool(&beam_transcript(), READ_MESSAGE, r#"{"message":2}"#).await;
    assert_eq!(left_out.expect("an answer").text, "<<<m [2] left out>>>\n");
}

#[tokio::test]
async fn search_finds_text_and_regex_matches() {
    let found = call_tool(
        &beam_transcript(),
        SEARCH_TRANSCRIPT,
        r#"{"query":"USE 2.69"}"#,
    )
    .await;
    let found = found.expect("an answer");
    assert_eq!(
        found.text,
        "<<<m 1 place found>>>\n[3] assistant, byte 0: \"Use 2.69.0.\"\n"
    );
    for (args, count) in [
        (
            r#"{"query":"use 2.69","match_case":true}"#,
            "no place found",
        ),
        (r#"{"query":"[a-z]+\\?"}"#, "no place found"),
        (r#"{"query":"[a-z]+\\?","regex":true}"#, "1 place found"),
        (r#"{"query":"e","from":1,"limit":1}"#, "4 places found"),
        (r#"{"query":"^use","regex":true}"#, "1 place found"),
    ] {
        let text = call_tool(&beam_transcript(), SEARCH_TRANSCRIPT, args)
            .await
            .expect("an answer")
            .text;
        assert!(
            text.starts_with(&format!("<<<m {count}>>>\n")),
            "{args}: {text}"
        );
    }
    // The second part's places count on from the first's, as `read_message` does.
    let text = call_tool(&beam_transcript(), SEARCH_TRANSCRIPT, r#"{"query":"look"}"#).await;
    assert!(
        text.expect("an answer")
            .text
            .contains("[1] assistant, byte 27: ")
    );
}

#[tokio::test]
async fn search_limits_matches_per_message() {
    let book = judged_messages(
        vec![leaf(0, "user", &"x ".repeat(50)), leaf(1, "user", "x")],
        2,
    );
    let text = call_tool(&book, SEARCH_TRANSCRIPT, r#"{"query":"x"}"#)
        .await
        .expect("an answer")
        .text;
    assert!(text.starts_with("<<<m 51 places found>>>\n"), "{text}");
    assert!(
        text.contains("[0] and 45 more places in this message\n[1] user, byte 0: \"x\"\n"),
        "{text}"
    );
}

#[tokio::test]
async fn match_across_two_slices_is_found_once() {
    let text = format!(
        "{}needle{}",
        "a".repeat(search::SLICE_BYTES - 3),
        "b".repeat(10)
    );
    let book = judged_messages(vec![leaf(0, "user", &text)], 1);
    let found = call_tool(&book, SEARCH_TRANSCRIPT, r#"{"query":"needle"}"#)
        .await
        .expect("an answer");
    assert!(
        found.text.starts_with("<<<m 1 place found>>>\n"),
        "{}",
        found.text
    );
    assert_eq!(found.bytes, text.len() as u64);
}

#[tokio::test]
async fn invalid_arguments_are_rejected_with_valid_range() {
    for (name, args, why) in [
        (
            READ_MESSAGE,
            r#"{"message":4}"#,
            "there is no message 4: messages are numbered 0 to 3",
        ),
        (READ_MESSAGE, r#"{"message":1e30}"#, "there is no message"),
        (READ_MESSAGE, r#"{"message":-1}"#, "message"),
        (READ_MESSAGE, r#"{"message":0.5}"#, "message"),
        (READ_MESSAGE, r#"{"message":"0"}"#, "message"),
        (
            READ_MESSAGE,
            r#"{"message":3,"from":11}"#,
            "message 3 ends before byte 11: it has 11 bytes",
        ),
        (READ_MESSAGE, r#"{"message":3,"limit":999999}"#, "limit"),
        (READ_MESSAGE, "{}", "message"),
        (
            READ_MESSAGE,
            r#"{"message":0,"path":"/etc/passwd"}"#,
            "path",
        ),
        (LIST_MESSAGES, r#"{"from":4}"#, "there is no message 4"),
        (SEARCH_TRANSCRIPT, r#"{"query":""}"#, "query"),
        (
            SEARCH_TRANSCRIPT,
            r#"{"query":"(","regex":true}"#,
            "no regular expression",
        ),
        (
            SEARCH_TRANSCRIPT,
            r#"{"query":"a*","regex":true}"#,
            "finds the empty text everywhere",
        ),
        (
            SEARCH_TRANSCRIPT,
            r#"{"query":"(\\w{100}){100}","regex":true}"#,
            "the pattern is too large",
        ),
    ] {
        let refused = call_tool(&beam_transcript(), name, args)
            .await
            .expect_err(args);
        assert!(
            refused.starts_with("Error") && refused.contains(why),
            "{args}: {refused}"
        );
    }
    let empty = judged_messages(Vec::new(), 0);
    assert!(call_tool(&empty, LIST_MESSAGES, "{}").await.is_ok());
    let refused = call_tool(&empty, READ_MESSAGE, r#"{"message":0}"#)
        .await
        .expect_err("none");
    assert!(
        refused.contains("the transcript holds no messages"),
        "{refused}"
    );
}

#[tokio::test]
async fn responses_are_bounded_for_any_transcript() {
    let long = "é\u{200b}\"\n".repeat(100_000);
    let mut leaves: Vec<MessagePart> = (0..3000).map(|_| leaf(0, "user", &long[..420])).collect();
    leaves.extend((1..3000).map(|n| leaf(n, "user", &long[..3500])));
    leaves.push(leaf(3000, "user", &long));
    let book = judged_messages(leaves, 3001);
    for (name, args) in [
        (LIST_MESSAGES, r#"{"limit":200}"#),
        (LIST_MESSAGES, r#"{"from":1,"limit":200}"#),
        (READ_MESSAGE, r#"{"message":3000}"#),
        (SEARCH_TRANSCRIPT, r#"{"query":"é","limit":50}"#),
    ] {
        let answer = call_tool(&book, name, args).await.expect("an answer");
        assert!(answer.truncated, "{name}");
        assert!(
            answer.text.len() < 2 * MAX_RESPONSE_BYTES,
            "{name}: {}",
            answer.text.len()
        );
    }
}

/// Reads a message to its end, page by page.
async fn all_of(book: &Arc<JudgedMessages>, message: usize, limit: usize) -> String {
    let (mut text, mut from) = (String::new(), 0);
    for _ in 0..10_000 {
        let args = json!({"message": message, "from": from, "limit": limit}).to_string();
        let answer = call_tool(book, READ_MESSAGE, &args)
            .await
            .expect("an answer");
        for line in answer
            .text
            .split_inclusive('\n')
            .filter(|line| !line.starts_with("<<<m "))
        {
            text.push_str(line.trim_end_matches('\n'));
        }
        if !answer.truncated {
            return text;
        }
        let (_, rest) = answer.text.rsplit_once("from: ").expect("how to go on");
        from = rest
            .split(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .expect("a byte");
    }
    panic!("the pages do not end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A message is read completely and without repetition, wherever pages are cut.
    #[test]
    fn pages_make_the_message(texts in prop::collection::vec("[a-zé🙂]{0,20}", 1..4), limit in 1usize..9) {
        let leaves = texts.iter().map(|text| leaf(0, "user", text)).collect();
        let book = judged_messages(leaves, 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        prop_assert_eq!(runtime.block_on(all_of(&book, 0, limit)), texts.concat());
    }

    /// A preview stays on one line and cannot look like a line of dicta.
    #[test]
    fn what_is_quoted_stays_on_its_line(text in any::<String>(), max in 1usize..50) {
        let quoted = quote_preview(&text, max);
        prop_assert!(!quoted.chars().any(|c| c == '\n' || c == '\r' || is_invisible(c)));
        prop_assert!(quoted.starts_with('"'));
        let inner: String = serde_json::from_str(quoted.trim_end_matches('…')).expect("a JSON string");
        prop_assert!(inner.chars().count() <= max);
    }
}
