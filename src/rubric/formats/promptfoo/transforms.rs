//! The programs that change an output before promptfoo looks at it: `transform` of an assertion, of a test, of `defaultTest`.
//!
//! promptfoo's results have the output after the program of the test, so that the evals of such a test are for transcripts of
//! promptfoo alone. They have the output before the program of an assertion, which a `script` eval runs, see [`super::code`].

use serde_json::{Value, json};

use super::super::conversion::{ConversionError, EvalConverter};
use super::super::doc_location::DocLocation;
use crate::diag::{Diagnostic, Severity};

/// The keys of such a program. `postprocess` is the older name.
const KEYS: [&str; 2] = ["transform", "postprocess"];

/// Returns the program of an assertion, or of a test's `options`.
pub(super) fn find_transform(at: &DocLocation) -> Option<DocLocation> {
    KEYS.into_iter()
        .filter_map(|key| at.get(key))
        .find(|place| !place.value().is_null())
}

/// Limits a selector to transcripts from promptfoo's results.
pub(super) fn bind_to_results(applies_to: &mut Option<Value>) {
    let selector = applies_to.get_or_insert_with(|| json!({"metadata": {}}));
    selector["metadata"]["source"] = json!("promptfoo");
}

/// Returns the warning about a program of a test. `at` is the first one of the file.
pub(super) fn result_binding_warning(at: &DocLocation) -> Diagnostic {
    let message = "the assertions of a test with `transform` are for transcripts from promptfoo's results, which have the output after it";
    at.problem(Severity::Warning, "bound", message.to_owned())
        .help("a transcript's metadata then holds `source: promptfoo`")
}

/// Reports a program that changes the context of model-graded assertions. No eval uses it.
pub(super) fn report_context_transform(
    options: &DocLocation,
    name: &str,
    converter: &mut EvalConverter<'_>,
) {
    if let Some(place) = options.get("contextTransform") {
        let error = ConversionError::new(
            "it changes the context of assertions that read one from promptfoo's variables",
            "evals with contexts of the transcript, such as `faithfulness`",
        );
        converter.report_error(&place, name, error);
    }
}

/// Reports a program that changes the variables. dicta does not run it, so an eval can name values that no transcript has.
pub(super) fn report_variable_transform(
    options: &DocLocation,
    name: &str,
    converter: &mut EvalConverter<'_>,
) {
    if let Some(place) = options.get("transformVars") {
        let error = ConversionError::new(
            "it changes the variables, and the transcripts have those after it",
            "`applies_to` with the variables of the transcripts",
        );
        converter.report_error(&place, name, error);
    }
}

/// Returns the code of a program.
pub(super) fn read_code(at: &DocLocation) -> Result<String, ConversionError> {
    let Some(code) = at.value().as_str().filter(|code| !code.trim().is_empty()) else {
        return Err(ConversionError::new(
            "its `transform` must be code as text",
            "write JavaScript",
        ));
    };
    if code.starts_with("file://") {
        return Err(ConversionError::new(
            "its `transform` is in another file",
            "write the code here",
        ));
    }
    if super::is_template(code) {
        return Err(ConversionError::new(
            "its `transform` contains a template that promptfoo fills in",
            "read the variable in the code: `context.vars.NAME`",
        ));
    }
    Ok(code.to_owned())
}
