//! Samples of lm-evaluation-harness (`samples_TASK_TIME.jsonl`, written with `--log_samples`).
//!
//! Responsible for one sample per record. The prompt is a user message, or the messages of a chat template; the reply is
//! the model's own text, not the filtered one. For a choice among texts, the reply is the text with the highest
//! likelihood, as for the harness the first of equal ones. A likelihood of one text is not a reply, unless the model would
//! write that text. Metrics are verdicts of the judge `lm-eval`; the gold answer is in the metadata, as `target`.

use serde_json::value::RawValue;

use super::super::detect::FilePreview;
use super::super::fields::{RawFields, list_items};
use super::super::native::{json_string, text_or_json};
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::foreign_message::add_messages;
use super::record_readers::open_records;
use super::transcript_builder::{TranscriptBuilder, is_boolean_or_number, text_part, verdict_of};
use crate::model::MessageRole;

/// The keys of a sample that are not metrics.
const KEYS: [&str; 14] = [
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "task_name",
    "schema",
    "multiple_inputs",
];

/// Returns true if the first record is a sample.
pub(super) fn is_samples(preview: &FilePreview<'_>) -> bool {
    preview.first_matches(|s| {
        s.has("doc_id") && s.has("resps") && (s.has("arguments") || s.has("doc"))
    })
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_records(preview, parse_sample)
}

fn parse_sample(record: &str, cx: RecordCx<'_>, out: &mut TranscriptSink) -> Result<(), String> {
    let fields = RawFields::parse(record)?;
    let doc = fields.id_text("doc_id").unwrap_or_default();
    // The file is one task; a document occurs once for each filter.
    let filter = fields.text("filter").filter(|filter| &**filter != "none");
    let id = match &filter {
        Some(filter) => format!("{}:{}:{}", cx.source.stem(), &*doc, &**filter),
        None => format!("{}:{}", cx.source.stem(), &*doc),
    };
    let mut built = TranscriptBuilder::new("lm-eval", Some(id.into()));
    let arguments = list_arguments(&fields);
    let replies = list_replies(&fields);
    let likelihoods: Vec<Likelihood> = replies
        .iter()
        .filter_map(|reply| likelihood(reply))
        .collect();
    let unread = replies.len() - likelihoods.len();
    if !likelihoods.is_empty() && unread > 0 {
        // Without one of the likelihoods, the choice is not known.
        built.count_unknown("a likelihood that is not a number", unread);
        if let Some((context, _)) = arguments.first() {
            add_prompt(context, &mut built);
        }
    } else if !likelihoods.is_empty() {
        let mut best = 0;
        for (at, likelihood) in likelihoods.iter().enumerate() {
            if likelihood.log > likelihoods[best].log {
                best = at;
            }
        }
        // One text was no choice: it is the gold answer, whose likelihood the task measures.
        let is_reply = likelihoods.len() > 1 || likelihoods[0].is_greedy;
        if !is_reply {
            out.count_missing(NO_REPLY);
        }
        if let Some((context, continuation)) = arguments.get(best) {
            add_prompt(context, &mut built);
            if let Some(text) = continuation.and_then(json_string).filter(|_| is_reply) {
                built.push(MessageRole::Assistant, vec![text_part(text.trim_start())]);
            }
        }
        if likelihoods.len() > 1 {
            built.meta.set("choice", best);
        }
    } else if is_rolling(&arguments, &replies) {
        if let Some((text, _)) = arguments.first() {
            add_prompt(text, &mut built);
        }
        out.count_missing(NO_REPLY);
    } else {
        if let Some((context, _)) = arguments.first() {
            add_prompt(context, &mut built);
        }
        // With repeats, the first reply is the answer that the default filter takes.
        if let Some(reply) = replies.first() {
            let texts = list_items(reply).unwrap_or_else(|| vec![reply]);
            if let Some(text) = texts.first() {
                built.push(MessageRole::Assistant, vec![text_part(&text_or_json(text))]);
            }
            if texts.len() > 1 {
                out.count_missing("a further reply of a repeated request is not read");
            }
        }
    }
    for key in [
        "target",
        "doc",
        "filtered_resps",
        "filter",
        "doc_id",
        "task_name",
    ] {
        built.meta.set_readable(key, fields.get(key));
    }
    add_metrics(&fields, &mut built);
    built.finish(out);
    Ok(())
}

/// Returns the context of each request and the continuation, or the settings of the generation.
fn list_arguments<'a>(fields: &RawFields<'a>) -> Vec<(&'a RawValue, Option<&'a RawValue>)> {
    // Newer versions write an object: `{gen_args_0: {arg_0, arg_1}}`.
    if let Some(object) = fields.object("arguments") {
        let requests = object.iter().filter_map(|(_, raw)| {
            let request = RawFields::from_raw(raw)?;
            Some((request.get("arg_0")?, request.get("arg_1")))
        });
        return requests.collect();
    }
    let requests = fields.list("arguments").unwrap_or_default();
    let requests = requests.into_iter().filter_map(|raw| {
        let request = list_items(raw)?;
        Some((*request.first()?, request.get(1).copied()))
    });
    requests.collect()
}

fn list_replies<'a>(fields: &RawFields<'a>) -> Vec<&'a RawValue> {
    fields.list("resps").unwrap_or_default()
}

/// The words for a sample in which the model wrote nothing.
const NO_REPLY: &str = "the answer is missing (the task measures the likelihood of a text)";

/// The likelihood of a text.
struct Likelihood {
    /// The logarithm.
    log: f64,
    /// True if the model would write this text.
    is_greedy: bool,
}

/// Returns true if the reply is the likelihood of the prompt itself: `[["-123.4"]]` without a text or settings to
/// continue with.
fn is_rolling(arguments: &[(&RawValue, Option<&RawValue>)], replies: &[&RawValue]) -> bool {
    let is_likelihood = |reply: &&RawValue| {
        let items = list_items(reply).unwrap_or_else(|| vec![*reply]);
        let mut numbers = items.iter().map(|item| text_or_json(item).parse::<f64>());
        !items.is_empty() && numbers.all(|number| number.is_ok_and(|number| number < 0.0))
    };
    !arguments.is_empty()
        && !replies.is_empty()
        && arguments.iter().all(|(_, next)| next.is_none())
        && replies.iter().all(is_likelihood)
}

/// Returns the log-likelihood of a reply, if it is one: `[[-3.2, false]]`, with numbers or texts.
fn likelihood(reply: &RawValue) -> Option<Likelihood> {
    let first = list_items(reply)?.first().copied()?;
    let pair = list_items(first)?;
    let [number, greedy] = pair[..] else {
        return None;
    };
    let greedy = text_or_json(greedy).to_ascii_lowercase();
    if !["true", "false"].contains(&&*greedy) {
        return None;
    }
    let log: f64 = text_or_json(number).parse().ok()?;
    // NaN is neither more nor less likely than another text.
    if log.is_nan() {
        return None;
    }
    Some(Likelihood {
        log,
        is_greedy: greedy == "true",
    })
}

fn add_prompt(raw: &RawValue, built: &mut TranscriptBuilder) {
    let Some(text) = json_string(raw) else {
        return add_messages(raw, &MessageRole::User, built);
    };
    // A chat template without tokenization is a list of messages as JSON.
    if text.trim_start().starts_with("[{\"role\"")
        && let Ok(messages) = serde_json::from_str(text.trim())
    {
        return add_messages(messages, &MessageRole::User, built);
    }
    built.push_text(MessageRole::User, &text);
}

fn add_metrics(fields: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let names = fields.list("metrics").unwrap_or_default();
    let names: Vec<_> = names.iter().filter_map(|raw| json_string(raw)).collect();
    for (key, raw) in fields.iter() {
        let is_named = names.iter().any(|name| &**name == key);
        if !KEYS.contains(&key)
            && raw.get() != "null"
            && (is_named || names.is_empty() && is_boolean_or_number(raw))
        {
            built.push_verdict(verdict_of("lm-eval", key, Some(raw), None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    #[test]
    fn likelihood_of_one_text_is_no_answer() {
        let sample = |greedy: &str| {
            format!(
                r#"{{"doc_id":0,"doc":{{}},"target":" shop","arguments":{{"gen_args_0":{{"arg_0":"To the","arg_1":" shop"}}}},"resps":[[["-5.2","{greedy}"]]],"metrics":["acc"],"acc":0.0}}"#
            )
        };
        let rolling = r#"{"doc_id":1,"doc":{},"target":"A text","arguments":{"gen_args_0":{"arg_0":"A text"}},"resps":[["-123.4"]],"metrics":["word_perplexity"]}"#;
        let file = format!("{}\n{}\n{rolling}\n", sample("False"), sample("True"));
        let (all, tally) = read(file.as_bytes());
        let lines = |at: usize| message_lines(all[at].as_ref().expect("a transcript"));
        assert_eq!(lines(0), ["user To the"]);
        assert_eq!(lines(1), ["user To the", "assistant shop"]);
        assert_eq!(lines(2), ["user A text"]);
        assert_eq!(tally.missing[super::NO_REPLY], 2);
    }

    #[test]
    fn first_of_equally_likely_texts_is_the_choice() {
        let file = r#"{"doc_id":0,"doc":{},"target":0,"arguments":[["Q:"," A"],["Q:"," B"]],"resps":[[[-5.0,false]],[[-5.0,false]]],"acc":1.0}"#;
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user Q:", "assistant A"]);
    }

    #[test]
    fn choice_with_an_unreadable_likelihood_has_no_answer() {
        for damaged in ["null", "NaN", r#""nan""#] {
            let file = format!(
                r#"{{"doc_id":0,"doc":{{}},"target":0,"arguments":[["Q:"," A"],["Q:"," B"]],"resps":[[[-5.0,false]],[[{damaged},false]]],"acc":1.0}}"#
            );
            let (all, tally) = read(format!("{file}\n").as_bytes());
            let one = all[0].as_ref().expect("a transcript");
            assert_eq!(message_lines(one), ["user Q:"], "{damaged}");
            assert_eq!(tally.unknown["a likelihood that is not a number"], 1);
        }
    }

    #[test]
    fn number_that_the_model_wrote_is_an_answer() {
        let file = r#"{"doc_id":0,"doc":{},"target":"4","arguments":[["2+2=",{"until":["\n"]}]],"resps":[["4"]]}"#;
        let (all, _) = read(format!("{file}\n").as_bytes());
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(message_lines(one), ["user 2+2=", "assistant 4"]);
    }
}
