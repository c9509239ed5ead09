//! What promptfoo decided of a result, as verdicts of the judge `promptfoo`.
//!
//! One verdict a leaf of `componentResults`, called by its assertion's metric, else by its type; the second of the same
//! name is `name~2`. A component with an assertion is a leaf, whatever it is made of; one without stands for those within
//! it (an assert-set), and since promptfoo writes these a second time beside the set, those are not counted again. Then
//! `overall`: the result's own pass, score and reason.
//!
//! A grader that failed (`metadata.graderError`) and a result whose provider failed decided nothing: their verdict is an
//! error. **A human's rating is a label, no verdict of promptfoo's**: a component of type `human` is left out, and with it
//! `overall`, which then repeats the human's word.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{RawJson, SourceVerdict, Text};
use crate::transcript::content::Object;
use crate::transcript::native::of;

/// How deep components within components are followed.
const DEEP: u8 = 32;

#[derive(Deserialize, Default)]
struct Grading<'a> {
    #[serde(borrow, default)]
    pass: Option<&'a RawValue>,
    #[serde(borrow, default)]
    score: Option<&'a RawValue>,
    #[serde(borrow, default)]
    reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    assertion: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "componentResults")]
    components: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Assertion<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, default)]
    metric: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct GraderMeta<'a> {
    #[serde(borrow, default, rename = "graderError")]
    error: Option<&'a RawValue>,
}

/// A result's own word, where its grading says nothing.
#[derive(Debug, Default)]
pub(super) struct Own<'a> {
    pub(super) pass: Option<&'a RawValue>,
    pub(super) score: Option<&'a RawValue>,
    /// Why the provider failed: then nothing was decided.
    pub(super) failed: Option<String>,
}

/// The verdicts of one result. The error is a sentence: a grading that is none.
pub(super) fn verdicts(
    grading: Option<&RawValue>,
    own: &Own<'_>,
) -> Result<Vec<SourceVerdict>, String> {
    let whole = match grading.filter(|raw| raw.get() != "null") {
        Some(raw) => read(raw).ok_or("its `gradingResult` is no object")?,
        None => Grading::default(),
    };
    let mut found = Found::default();
    found.components(whole.components, DEEP);
    let Found { mut all, human, .. } = found;
    if !human {
        let whole = Grading {
            pass: whole.pass.or(own.pass),
            score: whole.score.or(own.score),
            ..whole
        };
        let mut overall = whole.verdict("overall".to_owned());
        if let Some(why) = &own.failed {
            overall = failed(overall, why.clone());
        }
        if overall.passed.is_some() || overall.score.is_some() || overall.error.is_some() {
            all.push(overall);
        }
    }
    Ok(all)
}

#[derive(Default)]
struct Found {
    all: Vec<SourceVerdict>,
    names: HashMap<String, u32>,
    human: bool,
}

impl Found {
    fn components(&mut self, list: Option<&RawValue>, deep: u8) {
        let Some(list) = list.filter(|_| deep > 0) else {
            return;
        };
        let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
        for raw in &list {
            let Some(one) = read(raw) else { continue };
            let assertion = one.assertion();
            let kind = assertion.as_ref().and_then(|assertion| assertion.kind());
            if kind == Some("human") {
                self.human = true;
                continue;
            }
            let within: Vec<&RawValue> = one
                .components
                .and_then(|within| serde_json::from_str(within.get()).ok())
                .unwrap_or_default();
            if assertion.is_some() || within.is_empty() {
                let name = assertion.as_ref().and_then(Assertion::name);
                let name = self.name(name.unwrap_or("component"));
                self.all.push(one.verdict(name));
                continue;
            }
            // Those of a set stand beside it once more, indented otherwise.
            let beside = |raw: &&RawValue| {
                let wanted = value(raw);
                wanted.is_some() && list.iter().any(|other| value(other) == wanted)
            };
            if !within.iter().all(beside) {
                self.components(one.components, deep - 1);
            }
        }
    }

    fn name(&mut self, name: &str) -> String {
        let count = self.names.entry(name.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => name.to_owned(),
            n => format!("{name}~{n}"),
        }
    }
}

fn value(raw: &RawValue) -> Option<serde_json::Value> {
    serde_json::from_str(raw.get()).ok()
}

fn read(raw: &RawValue) -> Option<Grading<'_>> {
    let Object(grading) = serde_json::from_str(raw.get()).ok()?;
    Some(grading)
}

impl<'a> Grading<'a> {
    fn assertion(&self) -> Option<Assertion<'a>> {
        let Object(assertion) = of::<Object<Assertion<'a>>>(self.assertion)?;
        Some(assertion)
    }

    fn verdict(&self, eval: String) -> SourceVerdict {
        let reasoning: Option<String> = of(self.reason);
        let score = self.score.filter(|raw| raw.get() != "null");
        let verdict = SourceVerdict {
            judge: "promptfoo".to_owned(),
            eval,
            passed: of(self.pass),
            score: of(score).filter(|score| (0.0..=1.0).contains(score)),
            value: score.and_then(|raw| RawJson::parse(raw.get()).ok()),
            reasoning: reasoning.filter(|reason| !reason.is_empty()),
            error: None,
        };
        let reason = verdict.reasoning.as_deref();
        match self.grader_error(reason.unwrap_or("the grader failed")) {
            Some(why) => failed(verdict, why),
            None => verdict,
        }
    }

    /// Why the grader failed, if the metadata says that it did; `reason` where it says no more.
    fn grader_error(&self, reason: &str) -> Option<String> {
        let Object(meta) = of::<Object<GraderMeta<'_>>>(self.metadata)?;
        match meta.error?.get() {
            "true" => Some(reason.to_owned()),
            "false" | "null" | "\"\"" => None,
            text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
        }
    }
}

impl Assertion<'_> {
    fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    fn name(&self) -> Option<&str> {
        let metric = self.metric.as_deref().filter(|metric| !metric.is_empty());
        metric.or_else(|| self.kind())
    }
}

fn failed(verdict: SourceVerdict, why: String) -> SourceVerdict {
    SourceVerdict {
        passed: None,
        score: None,
        value: None,
        reasoning: None,
        error: Some(why),
        ..verdict
    }
}
