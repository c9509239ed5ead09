//! What an eval of any type may say around its check: bounds on the score, `not: true`, params from the transcript's
//! metadata. Each is a check itself.

use std::sync::Arc;

use serde_json::Value;

use super::registry::TypeDef;
use super::{Check, Compiled, Finding, Home, JudgedParams, Nature, Subject};
use crate::model::Outcome;
use crate::schema;

/// Decides from the score, both bounds included. A finding without a score, or that is an error, stays as it is.
#[derive(Debug)]
pub(super) struct Bounded {
    pub(super) inner: Box<dyn Check>,
    pub(super) min: Option<f64>,
    pub(super) max: Option<f64>,
}

impl Check for Bounded {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.inner.check(subject);
        let Some(score) = finding.score.filter(|_| finding.outcome.is_verdict()) else {
            return finding;
        };
        let passed =
            self.min.is_none_or(|min| score >= min) && self.max.is_none_or(|max| score <= max);
        finding.outcome = Outcome::of(passed);
        finding
    }

    fn nature(&self) -> Nature {
        self.inner.nature()
    }
}

/// `not: true`: passes where the check fails, and the reverse. An error stays one.
#[derive(Debug)]
pub(super) struct Not(pub(super) Box<dyn Check>);

impl Check for Not {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        let mut finding = self.0.check(subject);
        let Some(passed) = finding.outcome.passed() else {
            return finding;
        };
        finding.outcome = Outcome::of(!passed);
        let was = if passed { "passes" } else { "fails" };
        finding.explanation = format!("not: the check itself {was}: {}", finding.explanation);
        finding
    }

    fn nature(&self) -> Nature {
        self.0.nature()
    }
}

/// Params of which some come from the transcript's metadata (`{ from: metadata.expected }`).
#[derive(Debug, Clone)]
pub(super) struct Late {
    /// As written.
    pub(super) params: Arc<Value>,
    /// Of all params of the type.
    pub(super) schema: schema::Compiled,
    pub(super) def: &'static TypeDef,
    pub(super) home: Home,
}

impl Late {
    /// The eval with the params of this transcript. The error is a sentence.
    fn compile(&self, subject: &Subject<'_>) -> Result<Compiled, String> {
        let mut params = (*self.params).clone();
        let written = params.as_object_mut().into_iter().flatten();
        for (name, value) in written {
            let Some(path) = crate::rubric::from_metadata(value) else {
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

/// A check that is compiled for each transcript.
#[derive(Debug)]
pub(super) struct LateCheck(pub(super) Late);

impl Check for LateCheck {
    fn check(&self, subject: &Subject<'_>) -> Finding {
        match self.0.compile(subject) {
            Ok(Compiled::Check(check)) => check.check(subject),
            Ok(Compiled::Judged(_)) => Finding::check_error("this eval is a judge's"),
            Err(why) => Finding::check_error(why),
        }
    }

    fn nature(&self) -> Nature {
        (self.0.def.nature)(&self.0.home)
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
