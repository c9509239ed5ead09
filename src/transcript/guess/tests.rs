//! Guesses at files as people have them. What is printed is read again, and finds the conversation.

use std::sync::Arc;

use super::super::FieldMapping;
use super::*;

fn guessed(text: &str) -> (String, bool) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.data");
    std::fs::write(&path, text).expect("written");
    match guess_mapping(&path, "t.data").expect("a guess") {
        MappingGuess::Entry { yaml, complete } => {
            if complete {
                let (_, map) = yaml.split_once("map:\n").expect("a map");
                let map = Arc::new(
                    FieldMapping::parse_inline(map).unwrap_or_else(|why| panic!("{yaml}{why:?}")),
                );
                let mut file = TranscriptFile::open_mapped(&path, Some(&map)).expect("it opens");
                let block = file.next_block().expect("read").expect("a block");
                let (record, bytes) = block.records().next().expect("one");
                let read = record.parse(bytes, "x").expect("a transcript");
                assert!(!read.messages.is_empty(), "{yaml}");
            }
            (yaml, complete)
        }
        MappingGuess::AlreadyReadable(format) => (format.to_owned(), true),
    }
}

#[test]
fn guess_uses_names_and_values() {
    let cases: [(&str, &[&str]); 6] = [
        (
            "conversation_id,Customer question,Agent answer,latency_ms,human_ok\nc1,hi,hello,12,yes\nc2,ho,hu,7,no\n",
            &[
                "id: conversation_id ",
                "input: '\"Customer question\"' ",
                "output: '\"Agent answer\"' ",
                "latency_ms: to_number(latency_ms) ",
                "passed: human_ok ",
            ],
        ),
        (
            "prompt;completion\nhi;ho\nha;he\n",
            &["`;` between", "input: prompt ", "output: completion "],
        ),
        (
            r#"{"uuid": "a", "conversations": [{"from": "human", "value": "x"}]}"#,
            &[
                "id: uuid ",
                "messages: 'conversations[].{role: from, content: value}' ",
            ],
        ),
        (
            r#"[{"data": {"chat": [{"role": "user", "content": "x"}]}, "model": "m"}]"#,
            &["messages: data.chat ", "model: model "],
        ),
        (
            r#"{"log": [{"speaker": "bot", "text": "x"}], "inputs": "y"}"#,
            &[
                "messages: 'log[].{role: speaker, content: text}' ",
                "by what it holds",
            ],
        ),
        (
            r#"{"questionId": 1, "userInput": "x", "modelOutput": "y", "category": "z"}"#,
            &[
                "id: questionId ",
                "input: userInput ",
                "output: modelOutput ",
                "tags: category ",
            ],
        ),
    ];
    for (text, lines) in cases {
        let (yaml, complete) = guessed(text);
        assert!(complete, "{yaml}");
        for line in lines {
            assert!(yaml.contains(line), "{line}\n{yaml}");
        }
    }
}

#[test]
fn unknown_conversation_is_left_to_the_user() {
    let (yaml, complete) = guessed("alpha,beta\n1,2\n3,4\n");
    assert!(!complete);
    assert!(
        yaml.contains("output: '' ") && yaml.contains("FILL IN") && yaml.contains("alpha, beta"),
        "{yaml}"
    );
    let (format, _) = guessed("{\"messages\": []}\n");
    assert_eq!(format, "native");
}

#[test]
fn hostile_names_stay_on_their_lines() {
    let text = "{\"out\\nput: evil\": \"x\", \"\u{202e}answer\": \"y\", \"a'b\": \"#\", \"answer\": \"z\"}";
    let (yaml, complete) = guessed(text);
    assert!(complete && yaml.contains("output: answer "), "{yaml}");
    assert!(
        !yaml.contains('\u{202e}') && !yaml.contains("\nput"),
        "{yaml}"
    );
}
