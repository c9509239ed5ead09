//! What an eval of any type may say around its check: bounds on the score, `not: true`, a `message`, params from the
//! transcript's metadata and what of it is filled into a judge's texts.

use std::cell::OnceCell;
use std::sync::Arc;

use serde_json::Value;

use super::registry::TypeDef;
use super::subject::Memo;
use super::{Check, Compiled, Finding, Home, JudgedParams, Nature, Subject};
use crate::model::{Outcome, ScoreBounds, Transcript};
use crate::rubric::template::{self, TextPlacement};
use crate::schema;

/// Decides from the score, both bounds included. An error stays as it is; a verdict without a score is one: nothing passes
/// a bound that was not held against it.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) inner: Box<dyn Check>,
    pub(super) bounds: ScoreBounds,
}

impl Check for Bounded {
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

    fn nature(&self) -> Nature {
        self.inner.nature()
    }
}

/// `not: true`: passes where the check fails, and the reverse. An error stays one. The score is the check's, not that of
/// its negation: it is left out, or a rubric's score would sink with what passes.
#[derive(Debug)]
pub(super) struct Not(pub(super) Box<dyn Check>);

impl Check for Not {
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

    fn nature(&self) -> Nature {
        self.0.nature()
    }
}

/// `message`: said with a failure, before why.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) inner: Box<dyn Check>,
    pub(super) message: String,
}

impl Check for Told {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
        if finding.outcome == Outcome::Fail {
            finding.explanation = format!("{}: {}", self.message, finding.explanation);
        }
        finding
    }

    fn nature(&self) -> Nature {
        self.inner.nature()
    }
}

/// Params of which some come from the transcript: taken from its metadata (`{ from: metadata.expected }`), or with
/// variables to fill in (`{{ metadata.topic }}`, judged evals only).
#[derive(Debug, Clone)]
pub(super) struct Late {
    /// As written.
    pub(super) params: Arc<Value>,
    /// Of all params of the type.
    pub(super) schema: schema::CompiledSchema,
    pub(super) def: &'static TypeDef,
    pub(super) home: Home,
    /// Whether texts are filled in: where a judge reads them.
    pub(super) fills: bool,
}

/// The one param of a judge that stands outside of the prompt's markers.
const BARE: &str = "system_prompt";

/// Fills in the variables of a param, wherever in it a text has some. What comes from the metadata is none of this: it is
/// never read as a template.
fn fill(name: &str, value: &mut Value, transcript: &Transcript<'_>) -> Result<(), String> {
    match value {
        Value::String(text) if template::is_template(text) => {
            let said = if name == BARE {
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
            .try_for_each(|item| fill(name, item, transcript)),
        Value::Object(map) => map
            .values_mut()
            .try_for_each(|item| fill(name, item, transcript)),
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

impl Late {
    /// The eval with the params of this transcript. The error is a sentence.
    fn compile(&self, subject: &Subject<'_>) -> Result<Compiled, String> {
        let mut params = (*self.params).clone();
        let written = params.as_object_mut().into_iter().flatten();
        for (name, value) in written {
            let Some(path) = crate::rubric::metadata_param_path(value) else {
                if self.fills && name != "model" {
                    fill(name, value, subject.transcript)?;
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
        (self.def.compile)(&params, &self.home).map_err(|problems| {
            let all: Vec<String> = problems.into_iter().map(|p| p.message).collect();
            format!("params from the transcript's metadata: {}", all.join("; "))
        })
    }
}

/// A check that is compiled for each transcript, once for all its messages.
#[derive(Debug)]
pub(super) struct LateCheck {
    late: Late,
    memo: Memo,
}

impl LateCheck {
    pub(super) fn new(late: Late) -> Self {
        Self {
            late,
            memo: Memo::new(),
        }
    }
}

impl Check for LateCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let compiled = subject.memo::<OnceCell<Result<Compiled, String>>>(&self.memo);
        match compiled.get_or_init(|| self.late.compile(subject)) {
            Ok(Compiled::Check(check)) => check.check(subject),
            Ok(Compiled::Judged(_)) => Finding::check_error("this eval is a judge's"),
            Err(why) => Finding::check_error(why),
        }
    }

    fn nature(&self) -> Nature {
        (self.late.def.nature)(&self.late.home)
    }
}

/// What only a transcript can complete: what it says, what its metadata holds.
pub(super) trait Fill: Send + Sync + std::fmt::Debug {
    /// The params for this transcript, or how the cell ends without a judge: what is missing (`check_error`), that there
    /// is nothing to judge (`not_applicable`), or a fail that needs no judge. Never a pass.
    fn fill(&self, subject: &Subject<'_>, known: JudgedParams) -> Result<JudgedParams, Finding>;
}

/// A judged eval, ready to be asked about any transcript.
#[derive(Debug, Clone)]
pub struct JudgedEval {
    /// What is known without a transcript; with params from metadata, all but the model is missing here.
    pub known: JudgedParams,
    late: Option<Late>,
    fill: Option<Arc<dyn Fill>>,
}

impl JudgedEval {
    /// One whose params are all known.
    pub fn of(known: JudgedParams) -> Self {
        Self {
            known,
            late: None,
            fill: None,
        }
    }

    /// One that looks into the transcript first.
    pub(super) fn filled(known: JudgedParams, fill: impl Fill + 'static) -> Self {
        Self {
            fill: Some(Arc::new(fill)),
            ..Self::of(known)
        }
    }

    pub(super) fn late(late: Late) -> Self {
        let model = late.params.get("model").and_then(Value::as_str);
        let known = JudgedParams {
            // Judges are built for their models before any transcript is read.
            model: model.map(str::to_owned),
            ..JudgedParams::default()
        };
        Self {
            late: Some(late),
            ..Self::of(known)
        }
    }

    /// What a judge is asked about this transcript, or how the cell ends without one.
    pub fn resolve(&self, subject: &Subject<'_>) -> Result<JudgedParams, Finding> {
        match (&self.late, &self.fill) {
            (Some(late), _) => match late.compile(subject).map_err(Finding::check_error)? {
                Compiled::Judged(eval) => eval.resolve(subject),
                Compiled::Check(_) => Err(Finding::check_error("this eval is no judge's")),
            },
            (None, Some(fill)) => fill.fill(subject, self.known.clone()),
            (None, None) => Ok(self.known.clone()),
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
        let check = Bounded { inner, bounds };
        check.check(&Subject::new(&transcript)).outcome
    }

    #[test]
    fn both_bounds_are_inclusive_and_decide_nothing_without_a_score() {
        let half = || Finding::of(false, "").scored(0.5);
        for (min, max, outcome) in [
            (Some(0.5), None, Outcome::Pass),
            (Some(0.51), None, Outcome::Fail),
            (None, Some(0.5), Outcome::Pass),
            (None, Some(0.49), Outcome::Fail),
            (Some(0.2), Some(0.8), Outcome::Pass),
        ] {
            assert_eq!(bounded(half(), min, max), outcome, "{min:?} {max:?}");
        }
        let without = Finding::of(true, "");
        assert_eq!(bounded(without, Some(0.5), None), Outcome::CheckError);
        let nothing = Finding::not_applicable("");
        assert_eq!(bounded(nothing, Some(0.5), None), Outcome::NotApplicable);
        let error = Finding::check_error("no data").scored(1.0);
        assert_eq!(bounded(error, Some(0.5), None), Outcome::CheckError);
    }

    #[test]
    fn an_error_is_neither_negated_nor_told_as_a_failure() {
        let transcript = Transcript::default();
        let error = || Box::new(Found(Finding::check_error("no data")));
        let told = Told {
            inner: Box::new(Not(error())),
            message: "Wrong".to_owned(),
        };
        let found = told.check(&Subject::new(&transcript));
        assert_eq!(
            (found.outcome, found.explanation.as_str()),
            (Outcome::CheckError, "no data")
        );
    }
}
