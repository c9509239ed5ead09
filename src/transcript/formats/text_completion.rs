//! Completions of a text, as models of Amazon Bedrock, Ollama and older APIs return them: Titan, Llama, Mistral, Jurassic,
//! and Claude 2.
//!
//! Responsible for one prompt and its completion, which may be a list of the chunks of a stream. Does not read the
//! recording around them: that is `http_recording.rs`.

use serde_json::Value;

use super::super::metadata::SourceUsage;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::MessageRole;

/// Returns the transcript of a prompt and its first completion; `None` if the values are not such a pair. Further
/// completions are counted.
pub(super) fn build_transcript(
    source: &str,
    request: &Value,
    reply: &Value,
) -> Option<TranscriptBuilder> {
    let prompt = ["prompt", "inputText"];
    let prompt = prompt.iter().find_map(|key| request[*key].as_str())?;
    let chunks = match reply {
        Value::Array(chunks) => &chunks[..],
        whole => std::slice::from_ref(whole),
    };
    let texts: Option<Vec<&str>> = chunks.iter().map(completion_text).collect();
    let texts = texts.filter(|texts| !texts.is_empty())?;
    let mut built = TranscriptBuilder::new(source, None);
    built.push_text(MessageRole::User, prompt);
    let thoughts: String = chunks
        .iter()
        .filter_map(|chunk| chunk["thinking"].as_str())
        .collect();
    let mut parts = vec![text_part(&texts.concat())];
    if !thoughts.is_empty() {
        parts.insert(0, reasoning_part(&thoughts));
    }
    built.push(MessageRole::Assistant, parts);
    let further = chunks.iter().map(count_further).max().unwrap_or_default();
    built.count_unknown("a further completion", further);
    let stop = last_value(chunks, stop_reason);
    let usage = SourceUsage {
        input: last_value(chunks, input_tokens).and_then(Value::as_u64),
        output: last_value(chunks, output_tokens).and_then(Value::as_u64),
        ..SourceUsage::default()
    };
    let answer = built.messages.last_mut().map(|answer| &mut answer.meta);
    for meta in answer.into_iter().chain([&mut built.meta]) {
        meta.set("usage", usage.to_json());
        meta.set("stop_reason", stop.cloned().unwrap_or_default());
    }
    Some(built)
}

/// The keys of lists of completions.
const LISTS: [&str; 3] = ["results", "outputs", "completions"];

/// Returns the first of several completions of a reply: its own object, or the reply.
fn completion(reply: &Value) -> &Value {
    let found = LISTS.iter().find_map(|key| reply[*key].get(0));
    found.unwrap_or(reply)
}

/// Returns the number of completions of a reply after the first one.
fn count_further(reply: &Value) -> usize {
    let lists = LISTS.iter().filter_map(|key| reply[*key].as_array());
    let sizes = lists.map(|all| all.len().saturating_sub(1));
    sizes.max().unwrap_or_default()
}

fn completion_text(reply: &Value) -> Option<&str> {
    let first = completion(reply);
    // A log of a search also has `results` with texts.
    let is_listed = !std::ptr::eq(first, reply);
    let keys = ["completion", "generation", "outputText"];
    let text = keys.iter().find_map(|key| first[*key].as_str());
    // Ollama; other tools have answers to something else under `response`.
    let is_of_ollama = first["done"].is_boolean();
    text.or_else(|| first["response"].as_str().filter(|_| is_of_ollama))
        .or_else(|| first["data"]["text"].as_str())
        .or_else(|| first["text"].as_str().filter(|_| is_listed))
}

fn stop_reason(reply: &Value) -> &Value {
    let first = completion(reply);
    let keys = ["stop_reason", "completionReason", "done_reason"];
    let found = keys.iter().find_map(|key| first.get(*key));
    found.unwrap_or(&first["finishReason"]["reason"])
}

fn input_tokens(reply: &Value) -> &Value {
    let keys = ["inputTextTokenCount", "prompt_eval_count"];
    let found = keys.iter().find_map(|key| reply.get(*key));
    found.unwrap_or(&reply["prompt_token_count"])
}

fn output_tokens(reply: &Value) -> &Value {
    let keys = [
        "totalOutputTextTokenCount",
        "generation_token_count",
        "eval_count",
    ];
    let found = keys.iter().find_map(|key| reply.get(*key));
    found.unwrap_or(&completion(reply)["tokenCount"])
}

/// Returns the last value of the chunks that is not null.
fn last_value(chunks: &[Value], value_of: fn(&Value) -> &Value) -> Option<&Value> {
    let mut values = chunks.iter().rev().map(value_of);
    values.find(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the last text of a pair with its tokens and stop reason.
    fn read(request: &Value, reply: &Value) -> Option<(String, String)> {
        let built = build_transcript("bedrock", request, reply)?;
        let last = built.messages.last()?;
        let text = match &last.parts[..] {
            [crate::model::TranscriptPart::Text(text)] => text.to_string(),
            other => panic!("{other:?}"),
        };
        let meta = last.meta.clone().finish();
        Some((
            text,
            meta.map(|meta| meta.get().to_owned()).unwrap_or_default(),
        ))
    }

    #[test]
    fn completions_of_each_model_are_read() {
        let prompt = json!({"prompt": "Hi"});
        let titan = json!({"inputTextTokenCount": 8, "results": [{"tokenCount": 2, "outputText": "Ho", "completionReason": "FINISH"}]});
        let llama = json!({"generation": "Ho", "prompt_token_count": 8, "generation_token_count": 2, "stop_reason": "stop"});
        let mistral = json!({"outputs": [{"text": "Ho", "stop_reason": "stop"}]});
        let jurassic = json!({"id": 1, "prompt": {"text": "Hi"}, "completions": [{"data": {"text": "Ho"}, "finishReason": {"reason": "endoftext"}}]});
        let claude = json!({"completion": "Ho", "stop_reason": "stop_sequence"});
        for (request, reply, meta) in [
            (
                json!({"inputText": "Hi"}),
                titan,
                r#"{"usage":{"input":8,"output":2},"stop_reason":"FINISH"}"#,
            ),
            (
                prompt.clone(),
                llama,
                r#"{"usage":{"input":8,"output":2},"stop_reason":"stop"}"#,
            ),
            (prompt.clone(), mistral, r#"{"stop_reason":"stop"}"#),
            (prompt.clone(), jurassic, r#"{"stop_reason":"endoftext"}"#),
            (prompt.clone(), claude, r#"{"stop_reason":"stop_sequence"}"#),
        ] {
            assert_eq!(
                read(&request, &reply),
                Some(("Ho".to_owned(), meta.to_owned()))
            );
        }
        let stream = json!([
            {"generation": "H", "prompt_token_count": 8, "generation_token_count": 1, "stop_reason": null},
            {"generation": "o", "prompt_token_count": null, "generation_token_count": 2, "stop_reason": "stop"},
        ]);
        let meta = r#"{"usage":{"input":8,"output":2},"stop_reason":"stop"}"#;
        assert_eq!(
            read(&prompt, &stream),
            Some(("Ho".to_owned(), meta.to_owned()))
        );
    }

    #[test]
    fn completion_of_ollama_is_read() {
        let request = json!({"model": "m", "prompt": "Hi", "raw": true});
        let chunk = |text: &str, thought: Option<&str>, done: bool| {
            let count = done.then_some(2);
            json!({"model": "m", "done": done, "done_reason": done.then_some("stop"), "response": text,
                "thinking": thought, "prompt_eval_count": count.map(|count| count * 4), "eval_count": count})
        };
        let meta = r#"{"usage":{"input":8,"output":2},"stop_reason":"stop"}"#;
        let expected = Some(("Ho".to_owned(), meta.to_owned()));
        assert_eq!(read(&request, &chunk("Ho", None, true)), expected);
        let stream = json!([chunk("H", None, false), chunk("o", None, true)]);
        assert_eq!(read(&request, &stream), expected);
        let thinking = json!([chunk("", Some("Hm."), false), chunk("Ho", None, true)]);
        let built = build_transcript("http", &request, &thinking).expect("a transcript");
        let answer = built.messages.last().expect("an answer");
        assert!(
            matches!(&answer.parts[..], [crate::model::TranscriptPart::Reasoning(thought), _] if &**thought == "Hm."),
            "{answer:?}"
        );
        assert_eq!(read(&request, &json!({"response": "Ho"})), None);
    }

    #[test]
    fn further_completions_are_counted() {
        let reply = json!({"results": [{"outputText": "Ho"}, {"outputText": "He"}]});
        let built = build_transcript("bedrock", &json!({"inputText": "Hi"}), &reply);
        let built = built.expect("a transcript");
        assert_eq!(built.messages.len(), 2);
        assert_eq!(built.unknown, ["a further completion"]);
    }

    #[test]
    fn other_pairs_are_not_completions() {
        for (request, reply) in [
            (
                json!({"prompt": "Hi"}),
                json!({"choices": [{"text": "Ho"}]}),
            ),
            (json!({"query": "Hi"}), json!({"completion": "Ho"})),
            (json!({"prompt": "Hi"}), json!([])),
            (json!({"prompt": "Hi"}), json!([{"completion": "Ho"}, 3])),
        ] {
            assert_eq!(read(&request, &reply), None, "{reply}");
        }
    }
}
