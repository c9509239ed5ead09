//! The wrappers that an eval of any type may have around its check.
//!
//! Responsible for bounds on the score, `not: true`, `message`, and params that depend on the transcript. Does not know
//! any eval type.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;

use super::eval_type::EvalTypeDef;
use super::explain::NO_ANSWER;
use super::subject::CheckCacheKey;
use super::{Check, CompileCx, CompiledEval, ExecutionMode, Finding, JudgedParams, Subject};
use crate::model::{Outcome, ScoreBounds, Transcript};
use crate::rubric::template::{self, TextPlacement};
use crate::schema;

/// Decides from the score, both bounds included. An error stays unchanged. A verdict without a score becomes an error,
/// because nothing may pass a bound without a comparison.
#[derive(Debug)]
pub(super) struct BoundedCheck {
    pub(super) inner: Box<dyn Check>,
    pub(super) bounds: ScoreBounds,
}

impl Check for BoundedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
        // Errors and "not applicable" have no score to compare.
        if !finding.outcome.is_verdict() {
            return finding;
        }
        let Some(score) = finding.score else {
            let why = format!(
                "the check gave no score, and min_score or max_score decides from it ({})",
                finding.explanation
            );
            return Finding::check_error(why);
        };
        finding.outcome = Outcome::from_passed(self.bounds.contains(score));
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.inner.execution_mode()
    }
}

/// `not: true`: passes where the check fails, and the reverse. An error stays an error. The score is dropped: it belongs
/// to the inner check, and would lower the rubric score of an eval that passes.
#[derive(Debug)]
pub(super) struct NegatedCheck(pub(super) Box<dyn Check>);

impl Check for NegatedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.0.check(subject);
        // An error says nothing about the reverse.
        let Some(passed) = finding.outcome.passed() else {
            return finding;
        };
        finding.outcome = Outcome::from_passed(!passed);
        finding.score = None;
        // The explanation is about the inner check, so it must say that the outcome is reversed.
        let was = if passed { "passes" } else { "fails" };
        finding.explanation = format!("not: the check itself {was}: {}", finding.explanation);
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.0.execution_mode()
    }
}

/// The reason why an eval of promptfoo decides nothing about an output of calls.
const CALLS_AS_OUTPUT: &str = "the output is calls, and promptfoo compares their JSON, which the transcript does not contain; check the calls instead, for example with tools_called";

/// Decides nothing about an output of calls, because the check needs the text that the other tool compares.
#[derive(Debug)]
pub(super) struct TextOutputCheck(pub(super) Box<dyn Check>);

impl Check for TextOutputCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        if subject.has_calls_as_output() {
            return Finding::check_error(CALLS_AS_OUTPUT);
        }
        self.0.check(subject)
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.0.execution_mode()
    }
}

/// Names the missing answer in a pass of a transcript without an assistant message. Such a transcript has the empty text
/// as output, so a check can pass although the agent did nothing.
#[derive(Debug)]
pub(super) struct NoAnswerCheck(pub(super) Box<dyn Check>);

impl Check for NoAnswerCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.0.check(subject);
        if finding.outcome != Outcome::Pass
            || subject.has_answer()
            || finding.explanation.contains(NO_ANSWER)
        {
            return finding;
        }
        // The first line is the summary.
        let end = finding.explanation.find('\n');
        let end = end.unwrap_or(finding.explanation.len());
        finding
            .explanation
            .insert_str(end, &format!(" ({NO_ANSWER})"));
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.0.execution_mode()
    }
}

/// `message`: adds the eval's message in front of a failure's explanation.
#[derive(Debug)]
pub(super) struct FailureMessageCheck {
    pub(super) inner: Box<dyn Check>,
    pub(super) message: String,
}

impl Check for FailureMessageCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
        // Only for a failure: the message explains what is wrong.
        if finding.outcome == Outcome::Fail {
            finding.explanation = format!("{}: {}", self.message, finding.explanation);
        }
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.inner.execution_mode()
    }
}

/// Params that depend on the transcript: values from its metadata (`{ from: metadata.expected }`), or texts with
/// variables (`{{ metadata.topic }}`, judged evals only).
#[derive(Debug, Clone)]
pub(super) struct DeferredParams {
    /// The params as written.
    pub(super) params: Arc<Value>,
    /// The schema of all params of the type.
    pub(super) schema: schema::CompiledSchema,
    pub(super) eval_type: &'static EvalTypeDef,
    pub(super) compile_cx: CompileCx,
    /// `true` if texts with variables are rendered, because a judge reads them.
    pub(super) renders_templates: bool,
}

/// The param of a judge that the prompt does not enclose in delimiters.
const UNFRAMED_PARAM: &str = "system_prompt";

/// Renders the variables in all texts of a param. Values from the metadata are never read as templates.
fn render_templates(
    name: &str,
    value: &mut Value,
    transcript: &Transcript<'_>,
) -> Result<(), String> {
    match value {
        Value::String(text) if template::is_template(text) => {
            // The system prompt has no delimiters, so untrusted values need stricter rules there.
            let placement = if name == UNFRAMED_PARAM {
                TextPlacement::SystemPrompt
            } else {
                TextPlacement::Delimited
            };
            let filled = template::render(text, placement, transcript);
            *text = filled.map_err(|why| format!("{name}: {why}"))?;
            Ok(())
        }
        Value::Array(items) => items
            .iter_mut()
            .try_for_each(|item| render_templates(name, item, transcript)),
        Value::Object(map) => map
            .values_mut()
            .try_for_each(|item| render_templates(name, item, transcript)),
        _ => Ok(()),
    }
}

/// Checks each text of a system prompt that comes from the metadata.
fn check_texts(value: &Value) -> Result<(), &'static str> {
    match value {
        Value::String(text) => template::check_system_prompt_value(text),
        Value::Array(items) => items.iter().try_for_each(check_texts),
        Value::Object(map) => map.values().try_for_each(check_texts),
        _ => Ok(()),
    }
}

/// Returns `true` if any text of the params has variables.
pub(super) fn has_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => template::is_template(text),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(map) => map.values().any(has_variables),
        _ => false,
    }
}

impl DeferredParams {
    /// Compiles the eval with the params of this transcript. The error is a sentence.
    fn compile(&self, subject: &Subject<'_>) -> Result<CompiledEval, String> {
        let mut params = (*self.params).clone();
        // Fill the values that come from the metadata, and render the others.
        let written = params.as_object_mut().into_iter().flatten();
        for (name, value) in written {
            let Some(path) = crate::rubric::metadata_param_path(value) else {
                // The model is not a text for the judge: it selects the judge.
                if self.renders_templates && name != "model" {
                    render_templates(name, value, subject.transcript)?;
                }
                continue;
            };
            let filled = subject.metadata(path).cloned().ok_or_else(|| {
                format!("{name} comes from metadata.{path}, which this transcript does not have")
            })?;
            // The same rule as for `{{ metadata.x }}`: the transcript's author wrote the whole value.
            if name == UNFRAMED_PARAM {
                check_texts(&filled)
                    .map_err(|why| format!("{name} comes from metadata.{path}: {why}"))?;
            }
            *value = filled;
        }
        // Metadata can have any type, so the filled params are checked against the schema again.
        let errors = self.schema.errors(&params);
        if let Some((pointer, why)) = errors.first() {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            return Err(format!("{name} from the transcript's metadata {why}"));
        }
        // Then the checks that a schema cannot express.
        self.eval_type
            .compile(&params, &self.compile_cx)
            .map_err(|problems| {
                let all: Vec<String> = problems.into_iter().map(|p| p.message).collect();
                format!("params from the transcript's metadata: {}", all.join("; "))
            })
    }
}

/// A check that is compiled for each transcript, once for all its messages.
#[derive(Debug)]
pub(super) struct DeferredCheck {
    deferred: DeferredParams,
    cache_key: CheckCacheKey,
}

impl DeferredCheck {
    pub(super) fn new(deferred: DeferredParams) -> Self {
        Self {
            deferred,
            cache_key: CheckCacheKey::new(),
        }
    }
}

impl Check for DeferredCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        // Compiled once for each transcript: the first message of an eval with `every_turn` pays for all.
        let compiled =
            subject.check_cache::<OnceCell<Result<CompiledEval, String>>>(&self.cache_key);
        match compiled.get_or_init(|| self.deferred.compile(subject)) {
            Ok(CompiledEval::Check(check)) => check.check(subject),
            Ok(CompiledEval::Judged(_)) => Finding::check_error("a judge decides this eval"),
            Err(why) => Finding::check_error(why),
        }
    }

    fn execution_mode(&self) -> ExecutionMode {
        (self.deferred.eval_type.execution_mode)(&self.deferred.compile_cx)
    }
}

/// Code that completes the params of a judged eval from the text and metadata of a transcript.
pub(super) trait ParamsCompleter: Send + Sync + std::fmt::Debug {
    /// Returns the params for this transcript, or the end of the cell without a judge. That is a `check_error` for
    /// missing data, `not_applicable` if there is nothing to judge, or a fail. Never a pass.
    fn complete(&self, subject: &Subject<'_>, known: JudgedParams)
    -> Result<JudgedParams, Finding>;
}

/// A judged eval, ready for any transcript.
#[derive(Debug, Clone)]
pub struct JudgedEval {
    /// The params that are known without a transcript. If some come from metadata, only the model is known.
    pub known_params: JudgedParams,
    deferred: Option<DeferredParams>,
    completer: Option<Arc<dyn ParamsCompleter>>,
    /// `true` if the judge decides nothing about an output of calls.
    needs_text_output: bool,
}

impl JudgedEval {
    /// Creates an eval whose params are all known.
    pub fn new(known_params: JudgedParams) -> Self {
        Self {
            known_params,
            deferred: None,
            completer: None,
            needs_text_output: false,
        }
    }

    /// Returns the eval for outputs of text alone.
    pub(super) fn for_text_output(self) -> Self {
        Self {
            needs_text_output: true,
            ..self
        }
    }

    /// Creates an eval whose params the completer completes for each transcript.
    pub(super) fn with_completer(
        known: JudgedParams,
        fill: impl ParamsCompleter + 'static,
    ) -> Self {
        Self {
            completer: Some(Arc::new(fill)),
            ..Self::new(known)
        }
    }

    pub(super) fn from_deferred(late: DeferredParams) -> Self {
        let model = late.params.get("model").and_then(Value::as_str);
        let known = JudgedParams {
            // A judge is built for its model before dicta reads a transcript.
            model: model.map(str::to_owned),
            ..JudgedParams::default()
        };
        Self {
            deferred: Some(late),
            ..Self::new(known)
        }
    }

    /// Returns the params of the judge's question about this transcript, or the end of the cell without a judge.
    pub fn resolve(&self, subject: &Subject<'_>) -> Result<JudgedParams, Finding> {
        if self.needs_text_output && subject.has_calls_as_output() {
            return Err(Finding::check_error(CALLS_AS_OUTPUT));
        }
        match (&self.deferred, &self.completer) {
            // Deferred params first: compiling them gives an eval with its own completer.
            (Some(late), _) => match late.compile(subject).map_err(Finding::check_error)? {
                // The compiled eval can have a completer of its own, hence the recursion.
                CompiledEval::Judged(eval) => eval.resolve(subject),
                CompiledEval::Check(_) => Err(Finding::check_error("no judge decides this eval")),
            },
            (None, Some(fill)) => fill.complete(subject, self.known_params.clone()),
            (None, None) => Ok(self.known_params.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Found(Finding);

    impl Check for Found {
        fn check(&self, _: &Subject<'_>) -> Finding {
            self.0.clone()
        }
    }

    fn bounded(finding: Finding, min: Option<f64>, max: Option<f64>) -> Outcome {
        let transcript = Transcript::default();
        let inner = Box::new(Found(finding));
        let bounds = ScoreBounds { min, max };
        let check = BoundedCheck { inner, bounds };
        check.check(&Subject::new(&transcript)).outcome
    }

    #[test]
    fn both_bounds_are_inclusive_and_decide_nothing_without_a_score() {
        let half = || Finding::new(false, "").with_score(0.5);
        for (min, max, outcome) in [
            (Some(0.5), None, Outcome::Pass),
            (Some(0.51), None, Outcome::Fail),
            (None, Some(0.5), Outcome::Pass),
            (None, Some(0.49), Outcome::Fail),
            (Some(0.2), Some(0.8), Outcome::Pass),
        ] {
            assert_eq!(bounded(half(), min, max), outcome, "{min:?} {max:?}");
        }
        let without = Finding::new(true, "");
        assert_eq!(bounded(without, Some(0.5), None), Outcome::CheckError);
        let nothing = Finding::not_applicable("");
        assert_eq!(bounded(nothing, Some(0.5), None), Outcome::NotApplicable);
        let error = Finding::check_error("no data").with_score(1.0);
        assert_eq!(bounded(error, Some(0.5), None), Outcome::CheckError);
    }

    #[test]
    fn pass_without_an_answer_names_what_is_missing() {
        let explain = |finding: Finding, transcript: &Transcript<'_>| {
            let check = NoAnswerCheck(Box::new(Found(finding)));
            check.check(&Subject::new(transcript)).explanation
        };
        let none = Transcript::default();
        let named = "0 characters (there is no assistant message)";
        assert_eq!(explain(Finding::new(true, "0 characters"), &none), named);
        assert_eq!(explain(Finding::new(true, named), &none), named);
        let details = explain(Finding::new(true, "0 calls\nlist"), &none);
        assert_eq!(details, "0 calls (there is no assistant message)\nlist");
        assert_eq!(
            explain(Finding::new(false, "0 characters"), &none),
            "0 characters"
        );
        let answered = super::super::testing::transcript(
            &serde_json::json!({"messages": [{"role": "assistant", "content": ""}]}),
        );
        let found = explain(Finding::new(true, "0 characters"), &answered);
        assert_eq!(found, "0 characters");
    }

    #[test]
    fn error_is_neither_negated_nor_prefixed_with_the_message() {
        let transcript = Transcript::default();
        let error = || Box::new(Found(Finding::check_error("no data")));
        let check = FailureMessageCheck {
            inner: Box::new(NegatedCheck(error())),
            message: "Wrong".to_owned(),
        };
        let found = check.check(&Subject::new(&transcript));
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Outcome::CheckError, "no data")
        );
    }
}
