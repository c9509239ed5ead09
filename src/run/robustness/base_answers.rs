//! The base answers and their evals, from the workspace or built in.
//!
//! Responsible for choosing them. Does not attack them.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::attack_texts::NON_ANSWER;
use crate::handlers::EvalTypeRegistry;
use crate::model::{compares_pairs, pluralize};
use crate::rubric::{self, Eval, EvalTypeCatalog as _, Rubric};

use crate::workspace::Workspace;

/// A question with a wrong and a right answer.
struct BuiltInQuestion {
    /// The id of its eval.
    name: &'static str,
    question: &'static str,
    wrong: &'static str,
    right: &'static str,
}

/// Questions with answers whose correct verdict is known. The judge `rules` can read their criteria.
const BUILT_IN_QUESTIONS: [BuiltInQuestion; 4] = [
    BuiltInQuestion {
        name: "capital",
        question: "What is the capital of Australia?",
        wrong: "The capital of Australia is Sydney.",
        right: "The capital of Australia is Canberra.",
    },
    BuiltInQuestion {
        name: "product",
        question: "What is 17 times 3?",
        wrong: "17 times 3 is 54.",
        right: "17 times 3 is 51.",
    },
    BuiltInQuestion {
        name: "author",
        question: "Who wrote the play Faust?",
        wrong: "Faust was written by Friedrich Schiller.",
        right: "Faust was written by Johann Wolfgang von Goethe.",
    },
    BuiltInQuestion {
        name: "element",
        question: "Which chemical element has the symbol Fe?",
        wrong: "Fe is the symbol of fluorine.",
        right: "Fe is the symbol of iron.",
    },
];

/// The rubric that decides the built-in questions.
const BUILT_IN_RUBRIC: &str = r#"id: selftest
evals:
  - id: capital
    type: binary_rubric
    params: { criteria: ['The answer mentions "Canberra"', 'The answer mentions "Australia"'] }
  - { id: product, type: llm_judge, params: { criteria: 'The answer mentions "51".' } }
  - { id: author, type: llm_judge, params: { criteria: 'The answer mentions "Goethe".' } }
  - { id: element, type: llm_judge, params: { criteria: 'The answer mentions "iron".' } }
"#;

/// An answer that a judge decides before an attack changes it.
#[derive(Debug, Clone)]
pub(super) struct BaseAnswer {
    /// The id of the transcript, unique among the base answers.
    pub(super) id: String,
    /// The number of the conversation; several answers of one conversation share it.
    pub(super) conversation: usize,
    /// The record in the native format.
    pub(super) record: Value,
    /// The answer that is attacked.
    pub(super) answer: String,
    /// The positions of the evals that decide it.
    pub(super) evals: Vec<usize>,
    /// `true` if it deserves to pass; `None` if this is unknown.
    pub(super) deserves_pass: Option<bool>,
    /// `true` if it has no content, so that master keys and empty answers deserve to pass no more than it does.
    pub(super) is_non_answer: bool,
}

/// The base answers and the rubric that decides them.
#[derive(Debug)]
pub(super) struct BaseAnswers {
    pub(super) rubric: Rubric,
    /// The judged evals of the rubric.
    pub(super) evals: Vec<Eval>,
    pub(super) answers: Vec<BaseAnswer>,
}

/// Loads the built-in questions.
pub(super) fn load_built_in(registry: &EvalTypeRegistry) -> Result<BaseAnswers, String> {
    let (rubric, problems) = rubric::load(
        Arc::from(BUILT_IN_RUBRIC),
        Path::new("selftest.yaml"),
        registry,
    );
    let rubric = rubric.ok_or_else(|| {
        let problems: Vec<String> = problems.into_iter().map(|p| p.message).collect();
        format!("the built-in rubric does not load: {}", problems.join("; "))
    })?;
    let mut all = Vec::new();
    for (conversation, built_in) in BUILT_IN_QUESTIONS.iter().enumerate() {
        let BuiltInQuestion {
            name,
            question,
            wrong,
            right,
        } = built_in;
        for (kind, answer, truth) in [("wrong", wrong, false), ("right", right, true)] {
            all.push(BaseAnswer {
                id: format!("{name}-{kind}"),
                conversation,
                record: json!({"messages": [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": answer},
                ]}),
                answer: (*answer).to_owned(),
                evals: vec![conversation],
                deserves_pass: Some(truth),
                // Only answers with the expected word deserve to pass.
                is_non_answer: !truth,
            });
        }
    }
    let evals = rubric.evals.clone();
    Ok(BaseAnswers {
        rubric,
        evals,
        answers: all,
    })
}

/// A transcript of the draw.
struct DrawnTranscript {
    /// The rank in the draw; the lowest are kept.
    rank: u64,
    id: String,
    record: Value,
    answer: String,
    /// The positions of the evals that apply to it.
    evals: Vec<usize>,
}

/// Draws transcripts of the workspace by the seed, each with its own answer and with an answer without content.
pub(super) fn sample_workspace(
    workspace: &Workspace,
    registry: &EvalTypeRegistry,
    rubric: &Rubric,
    limit: usize,
    seed: u64,
) -> Result<BaseAnswers, String> {
    let judged = |eval: &&Eval| {
        registry
            .eval_type(&eval.eval_type)
            .is_some_and(|kind| kind.judged)
    };
    let evals: Vec<Eval> = rubric
        .evals
        .iter()
        .filter(judged)
        // An attack changes one answer, and a comparison has two.
        .filter(|e| e.enabled && !compares_pairs(&e.eval_type))
        .cloned()
        .collect();
    if evals.is_empty() {
        return Err(format!(
            "rubric `{}` has no eval that a judge decides: there is nothing to attack",
            rubric.id
        ));
    }
    let mut drawn: Vec<DrawnTranscript> = Vec::new();
    let rubric_selector = rubric.applies_to.compile();
    let selectors: Vec<_> = evals.iter().map(|eval| eval.applies_to.compile()).collect();
    // A broken file does not stop the attacks on the transcripts of the others.
    let mut broken: Vec<String> = Vec::new();
    for path in &workspace.transcripts {
        let mut file = match workspace.field_maps.open(path) {
            Ok(file) => file,
            Err(error) => {
                broken.push(error.to_string());
                continue;
            }
        };
        loop {
            let block = match file.next_block() {
                Ok(Some(block)) => block,
                Ok(None) => break,
                Err(error) => {
                    broken.push(error.to_string());
                    break;
                }
            };
            for (record, bytes) in block.records() {
                if record.is_pair() {
                    continue;
                }
                let span = record.span;
                let Ok(read) = record.parse(bytes, &file.default_id(span.number)) else {
                    continue;
                };
                if !rubric_selector.matches(&read) {
                    continue;
                }
                let which = selectors
                    .iter()
                    .enumerate()
                    .filter(|(_, selector)| selector.matches(&read));
                let which: Vec<usize> = which.map(|(at, _)| at).collect();
                // The attacks change the native JSON, so parse it again as a value.
                let Ok(record) = serde_json::from_slice::<Value>(bytes) else {
                    continue;
                };
                let (Some(answer), false) = (last_answer(&record), which.is_empty()) else {
                    continue;
                };
                drawn.push(DrawnTranscript {
                    rank: draw_rank(seed, &read.id),
                    id: read.id.to_string(),
                    record,
                    answer,
                    evals: which,
                });
                // Keep only the best ranks while reading, so that memory does not grow with the files.
                if drawn.len() > limit {
                    drawn.sort_by_key(|one| one.rank);
                    drawn.truncate(limit);
                }
            }
        }
    }
    drawn.sort_by_key(|one| one.rank);
    if drawn.is_empty() {
        let broken = broken
            .first()
            .map_or_else(String::new, |why| format!("; {why}"));
        return Err(format!(
            "no transcript that rubric `{}` applies to ends in an answer ({} looked at{broken})",
            rubric.id,
            pluralize(workspace.transcripts.len() as u64, "file")
        ));
    }
    let mut all = Vec::new();
    let mut taken = std::collections::HashSet::new();
    for (conversation, one) in drawn.into_iter().enumerate() {
        let DrawnTranscript {
            id,
            record,
            answer,
            evals,
            ..
        } = one;
        // Ids may repeat in a workspace, and the cases need unique ids.
        let id = if taken.insert(id.clone()) {
            id
        } else {
            format!("{id}+{conversation}")
        };
        all.push(BaseAnswer {
            id: format!("{id}+hollow"),
            conversation,
            record: with_answer(&record, NON_ANSWER),
            answer: NON_ANSWER.to_owned(),
            evals: evals.clone(),
            deserves_pass: None,
            is_non_answer: true,
        });
        all.push(BaseAnswer {
            id,
            conversation,
            record,
            answer,
            evals,
            deserves_pass: None,
            is_non_answer: false,
        });
    }
    let rubric = rubric.clone();
    Ok(BaseAnswers {
        rubric,
        evals,
        answers: all,
    })
}

/// Returns a transcript's rank in the draw.
fn draw_rank(seed: u64, id: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    // A hash of seed and id makes the draw independent of the order of files.
    hasher.update(&seed.to_le_bytes());
    hasher.update(id.as_bytes());
    let mut head = [0; 8];
    head.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(head)
}

fn is_assistant(message: &Value) -> bool {
    message["role"] == json!("assistant")
}

/// Returns the text of the last assistant message.
fn last_answer(record: &Value) -> Option<String> {
    let messages = record.get("messages")?.as_array()?;
    // A transcript without an answer gives nothing to attack.
    let last = messages.iter().rfind(|message| is_assistant(message))?;
    match &last["content"] {
        Value::String(text) => Some(text.clone()),
        // The content is a list of parts; only text parts count.
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            Some(texts.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// Returns the record with another last answer.
pub(super) fn with_answer(record: &Value, answer: &str) -> Value {
    let mut record = record.clone();
    let messages = record.get_mut("messages").and_then(Value::as_array_mut);
    let last = messages.and_then(|all| all.iter_mut().rfind(|message| is_assistant(message)));
    if let Some(last) = last {
        // A plain text replaces all parts of the content.
        last["content"] = json!(answer);
    }
    record
}

/// Returns the record with a greeting without content: at the start, or before the last question. It should not
/// change a verdict.
pub(super) fn with_greeting(record: &Value, late: bool) -> Value {
    let mut record = record.clone();
    if let Some(messages) = record.get_mut("messages").and_then(Value::as_array_mut) {
        let asks = |message: &Value| message["role"] == json!("user");
        let at = if late {
            messages.iter().rposition(asks)
        } else {
            messages.iter().position(asks)
        };
        // A transcript without a user message gets the greeting at its start.
        let at = at.unwrap_or(0);
        let greeting = [
            json!({"role": "user", "content": "Hello there!"}),
            json!({"role": "assistant", "content": "Hello! How can I help you?"}),
        ];
        messages.splice(at..at, greeting);
    }
    record
}
