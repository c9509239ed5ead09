//! The reader of people's marks in promptfoo's viewer: a component of type `human` in a result's grading. The
//! transcript's id is the one of promptfoo's reader.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::label_file::{LabelFileReader, new_label};
use crate::diag::SourceSpan;
use crate::transcript::promptfoo_id;

#[derive(Deserialize)]
struct PromptfooRatingsDocument<'d> {
    #[serde(rename = "evalId", default)]
    eval_id: Option<String>,
    #[serde(borrow)]
    results: &'d RawValue,
}

#[derive(Deserialize)]
struct PromptfooRatingsResults<'d> {
    #[serde(borrow)]
    results: Vec<&'d RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptfooRatedResult {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    test_idx: Option<u64>,
    #[serde(default)]
    prompt_idx: Option<u64>,
    #[serde(default)]
    grading_result: Option<PromptfooRatedGrading>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptfooRatedGrading {
    #[serde(default)]
    component_results: Option<Vec<PromptfooRatedComponent>>,
    #[serde(default)]
    comment: Option<String>,
}

#[derive(Deserialize)]
struct PromptfooRatedComponent {
    #[serde(default)]
    pass: Option<bool>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    comment: Option<String>,
    #[serde(default)]
    assertion: Option<PromptfooRatedAssertion>,
}

impl PromptfooRatedComponent {
    /// Returns true if a person gave the mark.
    fn is_human(&self) -> bool {
        let assertion = self.assertion.as_ref();
        assertion.is_some_and(|assertion| assertion.r#type.as_deref() == Some("human"))
    }
}

#[derive(Deserialize)]
struct PromptfooRatedAssertion {
    #[serde(default)]
    r#type: Option<String>,
    #[serde(default)]
    metric: Option<String>,
}

/// Returns true if a text over several lines is a document of results.
pub(super) fn is_results_document(text: &str) -> bool {
    serde_json::from_str::<PromptfooRatingsDocument<'_>>(text.trim_start_matches('\u{feff}'))
        .is_ok()
}

/// Reads a document of results, or one result per line.
pub(super) fn read(reader: &mut LabelFileReader<'_>) {
    let text = Arc::clone(reader.text);
    let text_without_bom = text.trim_start_matches('\u{feff}');
    let skip = text.len() - text_without_bom.len();
    let mut marks = 0;
    if let Ok(document) = serde_json::from_str::<PromptfooRatingsDocument<'_>>(text_without_bom) {
        let raw_results = document.results.get();
        // promptfoo has two layouts: the results directly under `results`, or under `results.results`.
        let results = if raw_results.trim_start().starts_with('[') {
            serde_json::from_str::<Vec<&RawValue>>(raw_results)
        } else {
            serde_json::from_str::<PromptfooRatingsResults<'_>>(raw_results)
                .map(|inner| inner.results)
        };
        let results = match results {
            Ok(results) => results,
            Err(error) => {
                return reader.error(
                    reader.line_span(1, 0),
                    format!("no promptfoo results: {error}"),
                );
            }
        };
        let eval = document.eval_id.unwrap_or_else(|| reader.stem());
        let (mut line, mut counted) = (1, 0);
        for result in results {
            // A raw value borrows from the text, so its address gives its position in the file.
            let start = result.get().as_ptr() as usize - text_without_bom.as_ptr() as usize;
            line += text_without_bom[counted..start].matches('\n').count() as u64;
            counted = start;
            let span = reader.line_span(line, skip + start);
            marks += read_result(reader, result.get(), &eval, &span);
        }
    } else {
        let eval = reader.stem();
        let mut start = skip;
        for (line, number) in text_without_bom.split_inclusive('\n').zip(1..) {
            let span = reader.line_span(number, start);
            start += line.len();
            if !line.trim().is_empty() {
                marks += read_result(reader, line.trim(), &eval, &span);
            }
        }
    }
    if marks == 0 {
        let message = "these promptfoo results hold no marks of people: rate some in its viewer and export again";
        reader.warning(reader.line_span(1, 0), message);
    }
}

/// Reads a result. Returns the number of its marks.
fn read_result(
    reader: &mut LabelFileReader<'_>,
    json: &str,
    eval_id: &str,
    span: &SourceSpan,
) -> u64 {
    let result: PromptfooRatedResult = match serde_json::from_str(json) {
        Ok(result) => result,
        Err(error) => {
            reader.error(span.clone(), format!("no promptfoo result: {error}"));
            return 0;
        }
    };
    let Some(grading) = result.grading_result else {
        return 0;
    };
    let transcript = promptfoo_id(
        result.id.as_deref(),
        eval_id,
        result.test_idx,
        result.prompt_idx,
    );
    let mut marks = 0;
    let Some(transcript) = transcript else {
        if grading
            .component_results
            .iter()
            .flatten()
            // Only a mark of a person is worth an error; results without one are skipped.
            .any(PromptfooRatedComponent::is_human)
        {
            let message = "a mark on a result without `id`, `testIdx` and `promptIdx`: nothing says which transcript it is about; export the eval again with a newer promptfoo";
            reader.error(span.clone(), message);
            marks += 1;
        }
        return marks;
    };
    for component in grading.component_results.into_iter().flatten() {
        // The other components are promptfoo's own assertions, which are not labels.
        if !component.is_human() {
            continue;
        }
        let Some(assertion) = component.assertion else {
            continue;
        };
        marks += 1;
        let Some(passed) = component.pass else {
            let message = format!("the mark on `{transcript}` says neither pass nor fail");
            reader.error(span.clone(), message);
            continue;
        };
        // A mark without a metric is about the whole result, so only dicta.yaml can name its eval.
        let Some(eval) = assertion.metric.or_else(|| reader.defaults.eval.clone()) else {
            reader.error(
                span.clone(),
                "promptfoo's marks are about a whole result: name the eval that they label in dicta.yaml, `labels: { path: …, eval: … }`",
            );
            return marks;
        };
        let mut found = new_label(&transcript, &eval, passed);
        // promptfoo allows any number as a score; dicta's scores are from 0 to 1.
        found.score = component.score.filter(|score| (0.0..=1.0).contains(score));
        if found.score.is_none()
            && let Some(score) = component.score
        {
            let message = format!(
                "the score of the mark on `{transcript}` is not between 0 and 1 (got {score}), so its label has no score"
            );
            reader.warning(span.clone(), message);
        }
        found.note = component.comment.or_else(|| grading.comment.clone());
        reader.add_label(found, span.clone());
    }
    marks
}
