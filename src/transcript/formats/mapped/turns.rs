//! Texts that contain several turns, by `split` of a field mapping.
//!
//! Responsible for the division of a text at words at the start of a line. Text before the first word is instructions,
//! because no person or agent is named for it.

use serde_json::{Value, json};

use crate::model::MessageRole;
use crate::transcript::field_mapping::TurnWord;

/// Returns the messages of a text as JSON; `None` if no line begins with one of the words.
pub(super) fn split_turns(text: &str, words: &[TurnWord]) -> Option<String> {
    let mut turns: Vec<(&MessageRole<'static>, String)> = Vec::new();
    let mut before = String::new();
    for line in text.split_inclusive('\n') {
        let indented = line.trim_start_matches([' ', '\t']);
        match words.iter().find(|turn| indented.starts_with(&turn.word)) {
            Some(turn) => turns.push((&turn.role, indented[turn.word.len()..].to_owned())),
            None => match turns.last_mut() {
                Some((_, content)) => content.push_str(line),
                None => before.push_str(line),
            },
        }
    }
    if turns.is_empty() {
        return None;
    }
    let system = (!before.trim().is_empty()).then_some((&MessageRole::System, before));
    let last = turns.len() - 1;
    let messages: Vec<Value> = system
        .into_iter()
        .chain(
            turns
                .into_iter()
                .enumerate()
                // A prompt ends with the word of the agent, before its answer.
                .filter(|(at, (_, content))| *at < last || !content.trim().is_empty())
                .map(|(_, turn)| turn),
        )
        .map(|(role, content)| json!({"role": role.as_str(), "content": content.trim()}))
        .collect();
    Some(Value::Array(messages).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words() -> Vec<TurnWord> {
        [
            ("Human:", MessageRole::User),
            ("AI:", MessageRole::Assistant),
        ]
        .map(|(word, role)| TurnWord {
            word: word.to_owned(),
            role,
        })
        .to_vec()
    }

    fn split(text: &str) -> Option<Value> {
        split_turns(text, &words()).map(|json| serde_json::from_str(&json).expect("JSON"))
    }

    #[test]
    fn word_at_the_start_of_a_line_begins_a_turn() {
        assert_eq!(
            split("\n\nHuman: Hi, AI: you?\nline 2\n\nAI: Yes\n\nHuman: ok\n\nAI:"),
            Some(json!([
                {"role": "user", "content": "Hi, AI: you?\nline 2"},
                {"role": "assistant", "content": "Yes"},
                {"role": "user", "content": "ok"},
            ]))
        );
        assert_eq!(
            split("Be brief.\nHuman: Hi"),
            Some(json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
            ]))
        );
        assert_eq!(split("nothing here"), None);
    }

    proptest! {
        #[test]
        fn every_word_of_the_text_is_in_a_message(text in "(Human: |AI: |[a-z]{1,4}|\n| ){0,30}") {
            let Some(Value::Array(messages)) = split(&text) else { return Ok(()) };
            let read: String = messages
                .iter()
                .map(|message| message["content"].as_str().expect("a text"))
                .collect();
            let letters = |text: &str| text.chars().filter(char::is_ascii_lowercase).count();
            let words = text.matches("Human:").count() * 4;
            prop_assert!(letters(&read) + words >= letters(&text));
        }
    }
}
