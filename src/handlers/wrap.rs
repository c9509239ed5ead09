//! What an eval of any type may say around its check: bounds on the score, `not: true`, params from the transcript's
//! metadata. Each is a check itself.

use std::sync::Arc;

use serde_json::Value;

use super::registry::TypeDef;
use super::{Check, Compiled, Finding, Home, JudgedParams, Nature, Subject};
use crate::model::{Outcome, Transcript};
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

/// A judged eval, ready to be asked about any transcript.
#[derive(Debug, Clone)]
pub struct JudgedEval {
    /// What is known without a transcript; with params from metadata, those are missing here.
    pub known: JudgedParams,
    late: Option<Late>,
}

impl JudgedEval {
    /// One whose params are all known.
    pub fn of(known: JudgedParams) -> Self {
        Self { known, late: None }
    }

    pub(super) fn late(late: Late) -> Self {
        Self {
            known: JudgedParams::default(),
            late: Some(late),
        }
    }

    /// What a judge is asked about this transcript. The error says what it lacks: a `check_error`.
    pub fn resolve(&self, transcript: &Transcript<'_>) -> Result<JudgedParams, String> {
        let Some(late) = &self.late else {
            return Ok(self.known.clone());
        };
        match late.compile(&Subject::new(transcript))? {
            Compiled::Judged(eval) => Ok(eval.known),
            Compiled::Check(_) => Err("this eval is no judge's".to_owned()),
        }
    }
}
