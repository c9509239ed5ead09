//! What an eval of any type may say around its check: bounds on the score, `not: true`, a `message`, params from the
//! transcript's metadata and what of it is filled into a judge's texts.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;

use super::eval_type::EvalTypeDef;
use super::subject::CheckCacheKey;
use super::{Check, CompileCx, CompiledEval, ExecutionMode, Finding, JudgedParams, Subject};
use crate::model::{Outcome, ScoreBounds, Transcript};
use crate::rubric::template::{self, TextPlacement};
use crate::schema;

/// Decides from the score, both bounds included. An error stays as it is; a verdict without a score is one: nothing passes
/// a bound that was not held against it.
#[derive(Debug)]
pub(super) struct BoundedCheck {
    pub(super) inner: Box<dyn Check>,
    pub(super) bounds: ScoreBounds,
}

impl Check for BoundedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
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

/// `not: true`: passes where the check fails, and the reverse. An error stays one. The score is the check's, not that of
/// its negation: it is left out, or a rubric's score would sink with what passes.
#[derive(Debug)]
pub(super) struct NegatedCheck(pub(super) Box<dyn Check>);

impl Check for NegatedCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.0.check(subject);
        let Some(passed) = finding.outcome.passed() else {
            return finding;
        };
        finding.outcome = Outcome::from_passed(!passed);
        finding.score = None;
        let was = if passed { "passes" } else { "fails" };
        finding.explanation = format!("not: the check itself {was}: {}", finding.explanation);
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.0.execution_mode()
    }
}

/// `message`: said with a failure, before why.
#[derive(Debug)]
pub(super) struct FailureMessageCheck {
    pub(super) inner: Box<dyn Check>,
    pub(super) message: String,
}

impl Check for FailureMessageCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
        if finding.outcome == Outcome::Fail {
            finding.explanation = format!("{}: {}", self.message, finding.explanation);
        }
        finding
    }

    fn execution_mode(&self) -> ExecutionMode {
        self.inner.execution_mode()
    }
}

/// Params of which some come from the transcript: taken from its metadata (`{ from: metadata.expected }`), or with
/// variables to fill in (`{{ metadata.topic }}`, judged evals only).
#[derive(Debug, Clone)]
pub(super) struct DeferredParams {
    /// As written.
    pub(super) params: Arc<Value>,
    /// Of all params of the type.
    pub(super) schema: schema::CompiledSchema,
    pub(super) eval_type: &'static EvalTypeDef,
    pub(super) compile_cx: CompileCx,
    /// Whether texts are filled in: where a judge reads them.
    pub(super) renders_templates: bool,
}

/// The one param of a judge that stands outside of the prompt's markers.
const UNFRAMED_PARAM: &str = "system_prompt";

/// Fills in the variables of a param, wherever in it a text has some. What comes from the metadata is none of this: it is
/// never read as a template.
fn render_templates(
    name: &str,
    value: &mut Value,
    transcript: &Transcript<'_>,
) -> Result<(), String> {
    match value {
        Value::String(text) if template::is_template(text) => {
            let said = if name == UNFRAMED_PARAM {
                TextPlacement::SystemPrompt
            } else {
                TextPlacement::Delimited
            };
            let filled = template::render(text, said, transcript);
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

/// Whether any text of some params has variables.
pub(super) fn has_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => template::is_template(text),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(map) => map.values().any(has_variables),
        _ => false,
    }
}

impl DeferredParams {
    /// The eval with the params of this transcript. The error is a sentence.
    fn compile(&self, subject: &Subject<'_>) -> Result<CompiledEval, String> {
        let mut params = (*self.params).clone();
        let written = params.as_object_mut().into_iter().flatten();
        for (name, value) in written {
            let Some(path) = crate::rubric::metadata_param_path(value) else {
                if self.renders_templates && name != "model" {
                    render_templates(name, value, subject.transcript)?;
                }
                continue;
            };
            *value = subject.metadata(path).cloned().ok_or_else(|| {
                format!("{name} comes from metadata.{path}, which this transcript does not have")
            })?;
        }
        let errors = self.schema.errors(&params);
        if let Some((pointer, why)) = errors.first() {
            let name = pointer.trim_start_matches('/').replace('/', ".");
            return Err(format!("{name} from the transcript's metadata {why}"));
        }
        (self.eval_type.compile)(&params, &self.compile_cx).map_err(|problems| {
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
        let compiled =
            subject.check_cache::<OnceCell<Result<CompiledEval, String>>>(&self.cache_key);
        match compiled.get_or_init(|| self.deferred.compile(subject)) {
            Ok(CompiledEval::Check(check)) => check.check(subject),
            Ok(CompiledEval::Judged(_)) => Finding::check_error("this eval is a judge's"),
            Err(why) => Finding::check_error(why),
        }
    }

    fn execution_mode(&self) -> ExecutionMode {
        (self.deferred.eval_type.execution_mode)(&self.deferred.compile_cx)
    }
}

/// What only a transcript can complete: what it says, what its metadata holds.
pub(super) trait ParamsCompleter: Send + Sync + std::fmt::Debug {
    /// The params for this transcript, or how the cell ends without a judge: what is missing (`check_error`), that there
    /// is nothing to judge (`not_applicable`), or a fail that needs no judge. Never a pass.
    fn complete(&self, subject: &Subject<'_>, known: JudgedParams)
    -> Result<JudgedParams, Finding>;
}

/// A judged eval, ready to be asked about any transcript.
#[derive(Debug, Clone)]
pub struct JudgedEval {
    /// What is known without a transcript; with params from metadata, all but the model is missing here.
    pub known_params: JudgedParams,
    deferred: Option<DeferredParams>,
    completer: Option<Arc<dyn ParamsCompleter>>,
}

impl JudgedEval {
    /// One whose params are all known.
    pub fn new(known_params: JudgedParams) -> Self {
        Self {
            known_params,
            deferred: None,
            completer: None,
        }
    }

    /// One that looks into the transcript first.
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
            // Judges are built for their models before any transcript is read.
            model: model.map(str::to_owned),
            ..JudgedParams::default()
        };
        Self {
            deferred: Some(late),
            ..Self::new(known)
        }
    }

    /// What a judge is asked about this transcript, or how the cell ends without one.
    pub fn resolve(&self, subject: &Subject<'_>) -> Result<JudgedParams, Finding> {
        match (&self.deferred, &self.completer) {
            (Some(late), _) => match late.compile(subject).map_err(Finding::check_error)? {
                CompiledEval::Judged(eval) => eval.resolve(subject),
                CompiledEval::Check(_) => Err(Finding::check_error("this eval is no judge's")),
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
    fn an_error_is_neither_negated_nor_told_as_a_failure() {
        let transcript = Transcript::default();
        let error = || Box::new(Found(Finding::check_error("no data")));
        let told = FailureMessageCheck {
            inner: Box::new(NegatedCheck(error())),
            message: "Wrong".to_owned(),
        };
        let found = told.check(&Subject::new(&transcript));
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Outcome::CheckError, "no data")
        );
    }
}
