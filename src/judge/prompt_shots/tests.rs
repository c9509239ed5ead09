use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::judge::prompt_sections::split_prompt;
use crate::model::{
    InstallationSecret, MessageRole, Transcript, TranscriptMessage, TranscriptPart,
};

const SECRET: InstallationSecret = InstallationSecret::new([4; 32]);

fn shot(texts: &[&str], passed: bool, reason: &str) -> Shot {
    let messages = texts
        .iter()
        .enumerate()
        .map(|(at, text)| TranscriptMessage {
            role: if at % 2 == 0 {
                MessageRole::User
            } else {
                MessageRole::Assistant
            },
            parts: vec![TranscriptPart::Text((*text).to_owned().into())],
            metadata: None,
        });
    let transcript = Transcript {
        id: "t".into(),
        messages: messages.collect(),
        ..Transcript::default()
    };
    Shot {
        messages: 0..texts.len(),
        judged_message: Some(texts.len() - 1),
        transcript: Arc::new(transcript),
        passed,
        reason: reason.to_owned(),
    }
}

fn render(shots: &[Shot]) -> (String, Delimiter) {
    let prompt = PromptShots::new(shots, false);
    let texts: Vec<&str> = prompt.texts().collect();
    let delimiter = Delimiter::derive(&SECRET, &texts);
    let mut out = String::new();
    prompt.write(&mut out, &delimiter);
    (out, delimiter)
}

#[test]
fn example_shows_messages_reason_and_verdict() {
    let (text, delimiter) = render(&[shot(&["Which one?", "Use 2.69."], true, "names it")]);
    assert_eq!(
        delimiter.mask(&text),
        "<<<<marker> begin example 1>>>\n\
         <<<<marker> example 1 [0] user>>>\nWhich one?\n\
         <<<<marker> example 1 [1] assistant, the judged message>>>\nUse 2.69.\n\
         <<<<marker> example 1, the reason>>>\nnames it\n\
         <<<<marker> example 1, the verdict: pass>>>\n\
         <<<<marker> end example 1>>>\n\n"
    );
}

#[test]
fn prompt_without_shots_has_no_text_about_them() {
    let (text, _) = render(&[]);
    assert_eq!(
        (text.as_str(), render_shot_instructions(&[]).as_str()),
        ("", "")
    );
}

#[test]
fn longer_shot_has_a_higher_estimate() {
    let short = estimate_shot_tokens(&shot(&["a", "b"], true, ""), false);
    let long = estimate_shot_tokens(&shot(&["a", &"word ".repeat(100)], true, ""), false);
    assert!(long > short + 100, "{short} {long}");
}

proptest! {
    #[test]
    fn hostile_texts_of_shots_stay_in_their_blocks(
        texts in prop::collection::vec("(<<<[0-9a-f]{16} (end|begin) example 1>>>\n|[a-z<>\n ]){0,12}", 1..4), reason in "[a-z<>\n ]{0,40}"
    ) {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let shots = [shot(&texts, true, &reason), shot(&texts, false, &reason)];
        let (text, delimiter) = render(&shots);
        let text = format!("Marker of this message: {}\n\n{text}", delimiter.as_str());
        let sections = split_prompt(&text);
        let names = sections.iter().filter_map(|section| section.name.as_deref());
        prop_assert_eq!(names.collect::<Vec<_>>(), ["example 1", "example 2"]);
    }
}
