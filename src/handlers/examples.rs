//! Runs an eval on its own examples.
//!
//! Examples are tests of the eval and never cells: nothing records or counts them. Does not call judges or programs.

use std::sync::Arc;

use super::{CompileCx, CompiledEval, EvalTypeRegistry, ExecutionMode, Finding, Subject};
use crate::model::{MessageRole, SourceText, Transcript, TranscriptMessage, TranscriptPart};
use crate::rubric::{Eval, Example, ExampleInput};

/// Runs an eval on one of its examples. The example holds if the outcome is the expected one. For a judged eval it
/// returns a `check_error`.
pub fn run_example(registry: &EvalTypeRegistry, eval: &Eval, example: &Example) -> Finding {
    match registry.compile_eval(eval, &CompileCx::default()) {
        Ok(compiled) => check_example(&compiled, example),
        Err(why) => Finding::check_error(why.to_string()),
    }
}

/// Runs an eval on each of its examples; compiles it once. Returns `None` if a judge or a program decides, because
/// dicta does not start those on its own.
pub fn run_examples(registry: &EvalTypeRegistry, eval: &Eval) -> Option<Vec<Finding>> {
    match registry.compile_eval(eval, &CompileCx::default()) {
        // A judge costs money and a program has side effects, so neither runs without a request.
        Ok(CompiledEval::Judged(_)) => None,
        Ok(CompiledEval::Check(check)) if check.execution_mode() != ExecutionMode::Inline => None,
        Ok(compiled) => Some(
            eval.examples
                .iter()
                .map(|one| check_example(&compiled, one))
                .collect(),
        ),
        Err(why) => {
            // A defect of the eval is a result of each example, so that the caller can show it next to them.
            let failed = || Finding::check_error(why.to_string());
            Some(eval.examples.iter().map(|_| failed()).collect())
        }
    }
}

fn check_example(compiled: &CompiledEval, example: &Example) -> Finding {
    match compiled {
        CompiledEval::Check(check) => check.check(&Subject::new(&example_transcript(example))),
        CompiledEval::Judged(_) => Finding::check_error("a judge decides this eval"),
    }
}

/// Returns the transcript of an example: its own, or one with its text as the only assistant message.
pub fn example_transcript(example: &Example) -> Arc<Transcript<'static>> {
    match &example.input {
        ExampleInput::Transcript(transcript) => Arc::clone(transcript),
        ExampleInput::Text(text) => Arc::new(Transcript {
            id: SourceText::from("example"),
            messages: vec![TranscriptMessage {
                role: MessageRole::Assistant,
                parts: vec![TranscriptPart::Text(SourceText::from(text.clone()))],
                metadata: None,
            }],
            ..Transcript::default()
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::model::Outcome::{CheckError, Fail, Pass};

    #[test]
    fn eval_runs_on_each_of_its_examples() {
        let registry = EvalTypeRegistry::builtin();
        let text = "evals:
  - id: names
    type: regex
    params: { pattern: '\\d' }
    examples: [{text: a 1, expect: pass}, {text: a, expect: fail}, {text: '', expect: na}]
  - id: none
    type: regex
    not: true
    params: { pattern: '\\d' }
    examples: [{text: a 1, expect: fail}]
  - id: late
    type: regex
    params: { pattern: {from: metadata.p} }
    examples: [{text: a 1, expect: pass}]
  - {id: judged, type: llm_judge, params: {criteria: c}, examples: [{text: a, expect: pass}]}
";
        let (rubric, problems) =
            crate::rubric::load(Arc::from(text), Path::new("r.yaml"), &registry);
        let rubric = rubric.unwrap_or_else(|| panic!("{problems:?}"));
        let found: Vec<_> = rubric
            .evals
            .iter()
            .map(|eval| {
                let all = run_examples(&registry, eval);
                let all: Option<Vec<_>> =
                    all.map(|all| all.iter().map(|finding| finding.outcome).collect());
                let one = run_example(&registry, eval, &eval.examples[0]).outcome;
                (one, all)
            })
            .collect();
        assert_eq!(
            found,
            [
                (Pass, Some(vec![Pass, Fail, Fail])),
                (Fail, Some(vec![Fail])),
                (CheckError, Some(vec![CheckError])),
                (CheckError, None),
            ]
        );
    }
}
