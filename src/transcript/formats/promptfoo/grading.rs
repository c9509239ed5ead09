//! promptfoo's verdicts on a result, as source verdicts of the judge `promptfoo`.
//!
//! There is one verdict per leaf of `componentResults`, with the name of its assertion's metric, else its type; a
//! second one of the same name is `name~2`. A component with an assertion is a leaf. A component without one (an
//! assert-set) represents those in it. promptfoo also writes these next to the set; the copies do not count. The last
//! verdict is `overall`: the result's own pass, score and reason.
//!
//! If a grader (`metadata.graderError`) or the provider failed, the verdict is an error. Responsible for promptfoo's
//! verdicts only: **a human rating is a label**. So a component of type `human` is left out, and with it `overall`,
//! which repeats it.

use std::collections::{HashMap, HashSet};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::{RawJson, SourceText, SourceVerdict};
use crate::transcript::content::ObjectOnly;
use crate::transcript::native::parse_or_none;

/// The maximum depth of nested components.
const MAX_DEPTH: u8 = 32;

#[derive(Deserialize, Default)]
struct PromptfooGradingNode<'a> {
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
struct PromptfooAssertionNode<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<SourceText<'a>>,
    #[serde(borrow, default)]
    metric: Option<SourceText<'a>>,
}

#[derive(Deserialize)]
struct PromptfooGraderMetadata<'a> {
    #[serde(borrow, default, rename = "graderError")]
    error: Option<&'a RawValue>,
}

/// The verdict of a result itself, for a missing grading.
#[derive(Debug, Default)]
pub(super) struct PromptfooOutcome<'a> {
    pub(super) pass: Option<&'a RawValue>,
    pub(super) score: Option<&'a RawValue>,
    /// The reason why the provider failed; then every verdict is an error.
    pub(super) provider_error: Option<String>,
}

/// Returns the verdicts of one result. The error is a sentence fragment about an invalid grading.
pub(super) fn parse_verdicts(
    grading: Option<&RawValue>,
    outcome: &PromptfooOutcome<'_>,
) -> Result<Vec<SourceVerdict>, String> {
    let root = match grading.filter(|raw| raw.get() != "null") {
        Some(raw) => parse_grading(raw).ok_or("its `gradingResult` is not an object")?,
        None => PromptfooGradingNode::default(),
    };
    let mut collected = GradingVerdicts::default();
    collected.add_components(root.components, MAX_DEPTH);
    let GradingVerdicts {
        verdicts: mut all,
        human,
        ..
    } = collected;
    // With a person's rating, `overall` repeats that rating, which is a label.
    if !human {
        let root = PromptfooGradingNode {
            pass: root.pass.or(outcome.pass),
            score: root.score.or(outcome.score),
            ..root
        };
        let mut overall = root.to_verdict("overall".to_owned());
        if let Some(why) = &outcome.provider_error {
            overall = with_error(overall, why.clone());
        }
        // A result without any statement of pass or score has no verdict.
        if overall.passed.is_some() || overall.score.is_some() || overall.error.is_some() {
            all.push(overall);
        }
    }
    Ok(all)
}

#[derive(Default)]
struct GradingVerdicts {
    verdicts: Vec<SourceVerdict>,
    names: HashMap<String, u32>,
    human: bool,
}

impl GradingVerdicts {
    fn add_components(&mut self, list: Option<&RawValue>, deep: u8) {
        // The limit on depth protects the stack.
        let Some(list) = list.filter(|_| deep > 0) else {
            return;
        };
        let list: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
        // Filled for the first set, because most lists contain none.
        let mut listed: Option<HashSet<String>> = None;
        for raw in &list {
            let Some(component) = parse_grading(raw) else {
                continue;
            };
            let assertion = component.assertion();
            let kind = assertion.as_ref().and_then(|assertion| assertion.kind());
            if kind == Some("human") {
                self.human = true;
                continue;
            }
            let nested: Vec<&RawValue> = component
                .components
                .and_then(|nested| serde_json::from_str(nested.get()).ok())
                .unwrap_or_default();
            // A leaf, or a set that names its own assertion.
            if assertion.is_some() || nested.is_empty() {
                let name = assertion.as_ref().and_then(PromptfooAssertionNode::name);
                let name = self.unique_name(name.unwrap_or("component"));
                self.verdicts.push(component.to_verdict(name));
                continue;
            }
            // promptfoo repeats the components of a set next to it, with other white space.
            let listed = listed.get_or_insert_with(|| {
                let texts = list.iter().filter_map(|raw| canonical_text(raw));
                texts.collect()
            });
            let is_copied =
                |raw: &&RawValue| canonical_text(raw).is_some_and(|text| listed.contains(&text));
            if !nested.iter().all(is_copied) {
                self.add_components(component.components, deep - 1);
            }
        }
    }

    fn unique_name(&mut self, name: &str) -> String {
        let count = self.names.entry(name.to_owned()).or_default();
        *count += 1;
        match *count {
            1 => name.to_owned(),
            n => format!("{name}~{n}"),
        }
    }
}

/// Returns JSON without white space and with sorted keys, so that equal values have equal texts.
fn canonical_text(raw: &RawValue) -> Option<String> {
    let mut value: serde_json::Value = serde_json::from_str(raw.get()).ok()?;
    value.sort_all_objects();
    Some(value.to_string())
}

fn parse_grading(raw: &RawValue) -> Option<PromptfooGradingNode<'_>> {
    let ObjectOnly(grading) = serde_json::from_str(raw.get()).ok()?;
    Some(grading)
}

impl<'a> PromptfooGradingNode<'a> {
    fn assertion(&self) -> Option<PromptfooAssertionNode<'a>> {
        let ObjectOnly(assertion) =
            parse_or_none::<ObjectOnly<PromptfooAssertionNode<'a>>>(self.assertion)?;
        Some(assertion)
    }

    fn to_verdict(&self, eval: String) -> SourceVerdict {
        let reasoning: Option<String> = parse_or_none(self.reason);
        // A null score is absent.
        let score = self.score.filter(|raw| raw.get() != "null");
        let verdict = SourceVerdict {
            judge: "promptfoo".to_owned(),
            eval,
            passed: parse_or_none(self.pass),
            // A score on another scale is only in `value`.
            score: parse_or_none(score).filter(|score| (0.0..=1.0).contains(score)),
            value: score.and_then(|raw| RawJson::parse(raw.get()).ok()),
            reasoning: reasoning.filter(|reason| !reason.is_empty()),
            error: None,
        };
        let reason = verdict.reasoning.as_deref();
        match self.grader_error(reason.unwrap_or("the grader failed")) {
            Some(why) => with_error(verdict, why),
            None => verdict,
        }
    }

    /// Returns the reason why the grader failed, if the metadata states it; `reason` if the metadata has no text.
    fn grader_error(&self, reason: &str) -> Option<String> {
        let ObjectOnly(meta) =
            parse_or_none::<ObjectOnly<PromptfooGraderMetadata<'_>>>(self.metadata)?;
        // `graderError` is true or a message.
        match meta.error?.get() {
            "true" => Some(reason.to_owned()),
            "false" | "null" | "\"\"" => None,
            text => Some(serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())),
        }
    }
}

impl PromptfooAssertionNode<'_> {
    fn kind(&self) -> Option<&str> {
        self.kind.as_deref()
    }

    fn name(&self) -> Option<&str> {
        let metric = self.metric.as_deref().filter(|metric| !metric.is_empty());
        metric.or_else(|| self.kind())
    }
}

fn with_error(verdict: SourceVerdict, why: String) -> SourceVerdict {
    SourceVerdict {
        passed: None,
        score: None,
        value: None,
        reasoning: None,
        error: Some(why),
        ..verdict
    }
}
