//! `pairwise_preference`: the better one of the two transcripts of a pair.
//!
//! The transcript of such an eval is a joined pair. Its answers become two blocks of the prompt, whose order the run
//! chooses for each cell.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{SCORING_GUIDE_ALIASES, check_not_empty, common_problems};
use crate::handlers::eval_type::EvalType;
use crate::handlers::wrap::ParamsCompleter;
use crate::handlers::{
    CompiledEval, Finding, JudgedEval, JudgedParams, JudgedPart, PromptBlock, Subject,
};
use crate::model::{
    ComparedPair, PAIRWISE_EVAL_TYPE, PairMember, PairOrder, TranscriptMessage, TranscriptPart,
};
use crate::rubric::ParamProblem;

/// The task of the judge.
const TASK: &str = "Compare `answer A` and `answer B`: two continuations of the conversation above. Decide which one meets \
    the criteria better, or that neither does.";

/// Params of `pairwise_preference`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairwisePreference {
    /// The criteria by which one answer is better than the other, in plain words.
    #[schemars(length(min = 1))]
    criteria: String,
    /// The scoring guide: what decides between two answers.
    #[serde(default)]
    scoring_guide: Option<String>,
    /// A model that replaces the judge's own.
    #[serde(default)]
    #[schemars(length(min = 1))]
    model: Option<String>,
    /// Replaces the opening of the judge's prompt, never its frame.
    #[serde(default)]
    #[schemars(length(min = 1))]
    system_prompt: Option<String>,
}

impl EvalType for PairwisePreference {
    const NAME: &'static str = PAIRWISE_EVAL_TYPE;
    const JUDGED_PART: Option<JudgedPart> = Some(JudgedPart::Transcript);
    const SUMMARY: &'static str = "A judge compares the two transcripts of a pair (metadata `pair`), in both orders. Passes if the \
                                   first one is better in both. The score is 1, 0, or 0.5 for a tie.";
    const EXAMPLE: &'static str =
        "criteria: The answer that a customer can act on at once is better";
    const JUDGED: bool = true;
    const SCORED: bool = true;
    const PARAM_ALIASES: &'static [(&'static str, &'static str)] = SCORING_GUIDE_ALIASES;

    fn compile(self) -> Result<CompiledEval, Vec<ParamProblem>> {
        let known = JudgedParams {
            criteria: self.criteria,
            guide: self.scoring_guide.unwrap_or_default(),
            model: self.model,
            system_prompt: self.system_prompt,
            // The judge reads the conversation as the context of both answers.
            session: true,
            task: Some(TASK),
            pair_order: Some(PairOrder::FirstIsA),
            ..JudgedParams::default()
        };
        let mut problems = common_problems(&known);
        check_not_empty("criteria", Some(&known.criteria), &mut problems);
        if problems.is_empty() {
            Ok(CompiledEval::Judged(JudgedEval::with_completer(
                known,
                PairedAnswers,
            )))
        } else {
            Err(problems)
        }
    }
}

/// The answers of a joined pair, as blocks of the prompt.
#[derive(Debug)]
struct PairedAnswers;

impl ParamsCompleter for PairedAnswers {
    fn complete(
        &self,
        subject: &Subject<'_>,
        known: JudgedParams,
    ) -> Result<JudgedParams, Finding> {
        let Some(pair) = ComparedPair::find(subject.transcript) else {
            return Err(Finding::check_error(
                "this transcript is not a pair: two transcripts of one file have the same metadata.pair",
            ));
        };
        let block = |label: &str, member: &PairMember| PromptBlock {
            label: label.to_owned(),
            text: format_answer(&subject.transcript.messages[member.messages.clone()]),
        };
        let mut prompt_blocks = known.prompt_blocks;
        prompt_blocks.push(block("answer A", &pair.first));
        prompt_blocks.push(block("answer B", &pair.second));
        Ok(JudgedParams {
            prompt_blocks,
            ..known
        })
    }
}

/// Returns an answer as text. An answer of one text is that text; others name the role of each message.
fn format_answer(messages: &[TranscriptMessage<'_>]) -> String {
    if let [only] = messages
        && let [TranscriptPart::Text(text)] = &only.parts[..]
    {
        return text.to_string();
    }
    let mut out = String::new();
    for message in messages {
        let role = message.role.as_str();
        for part in &message.parts {
            let _infallible = match part {
                TranscriptPart::Text(text) => writeln!(out, "[{role}] {}", &**text),
                TranscriptPart::Reasoning(text) => writeln!(out, "[{role} thinks] {}", &**text),
                TranscriptPart::ToolCall(call) => {
                    writeln!(out, "[{role} calls] {}({})", &*call.name, &*call.arguments)
                }
                TranscriptPart::ToolResult(result) => {
                    let error = if result.is_error == Some(true) {
                        ", an error"
                    } else {
                        ""
                    };
                    writeln!(out, "[{role} result{error}] {}", &*result.content)
                }
                TranscriptPart::Media { kind, .. } => {
                    writeln!(out, "[{role} attaches {}, not shown]", &**kind)
                }
                TranscriptPart::Other(_) => writeln!(out, "[{role}, a part of another kind]"),
            };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::handlers::EvalTypeRegistry;
    use crate::handlers::testing::refused;
    use crate::model::{JsonText, MessageRole, ToolCall, Transcript};

    fn compile() -> JudgedEval {
        let params = json!({"criteria": "Shorter is better"});
        match EvalTypeRegistry::builtin().compile(PAIRWISE_EVAL_TYPE, &params) {
            Ok(CompiledEval::Judged(eval)) => eval,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_change_places_and_labels_stay() {
        let member = |id: &str, start: usize| json!({"id": id, "choice": id, "messages": {"start": start, "end": start + 1}});
        let text = |text: &str| TranscriptPart::Text(text.to_owned().into());
        let message = |role, parts| TranscriptMessage {
            role,
            parts,
            metadata: None,
        };
        let call = TranscriptPart::ToolCall(ToolCall {
            id: "c".into(),
            name: "f".into(),
            arguments: "{}".into(),
        });
        let transcript = Transcript {
            id: "q1".into(),
            messages: vec![
                message(MessageRole::User, vec![text("hi")]),
                message(MessageRole::Assistant, vec![text("one")]),
                message(MessageRole::Assistant, vec![text("two"), call]),
            ],
            metadata: Some(JsonText::from_value(
                &json!({"compared": [member("a", 1), member("b", 2)]}),
            )),
            ..Transcript::default()
        };
        let mut params = compile()
            .resolve(&Subject::new(&transcript))
            .expect("a pair");
        let blocks = |params: &JudgedParams| -> Vec<(String, String)> {
            let blocks = params.prompt_blocks.iter();
            blocks
                .map(|block| (block.label.clone(), block.text.clone()))
                .collect()
        };
        let (one, two) = (
            "one".to_owned(),
            "[assistant] two\n[assistant calls] f({})\n".to_owned(),
        );
        let (a, b) = ("answer A".to_owned(), "answer B".to_owned());
        let in_file_order = vec![(a.clone(), one.clone()), (b.clone(), two.clone())];
        assert_eq!(blocks(&params), in_file_order);
        params.set_pair_order(PairOrder::SecondIsA);
        assert_eq!(blocks(&params), [(a, two), (b, one)]);
        params.set_pair_order(PairOrder::FirstIsA);
        assert_eq!(blocks(&params), in_file_order);
    }

    #[test]
    fn transcript_that_is_not_a_pair_is_an_error_of_the_data() {
        let transcript = Transcript::default();
        let found = compile()
            .resolve(&Subject::new(&transcript))
            .expect_err("no pair");
        assert_eq!(found.outcome, crate::model::Outcome::CheckError);
    }

    #[test]
    fn bounds_are_refused_because_the_choice_decides() {
        for params in [
            json!({}),
            json!({"criteria": " "}),
            json!({"criteria": "x", "min_score": 0.5}),
        ] {
            assert!(!refused(PAIRWISE_EVAL_TYPE, &params).is_empty(), "{params}");
        }
    }
}
