//! The eval whose text an edit changes in a rubric file.
//!
//! Responsible for reading the file and finding the eval. Does not change text.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::RubricFormat;
use super::formats::{DetectedFile, detect_rubric_format};
use crate::diag::yaml::{self, YamlDoc};

/// The reason why dicta cannot edit an eval in a rubric file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EditTargetError {
    /// The file does not parse.
    #[error("the file does not load: {0}")]
    Unreadable(String),
    /// The file has the format of another tool.
    #[error("it is {0}, and dicta edits only its own format")]
    OtherFormat(RubricFormat),
    /// No eval of the file has the id.
    #[error("it has no eval with the id `{0}`")]
    NoEval(String),
}

/// An eval in the text of its rubric file.
pub(super) struct EditTarget {
    /// The file.
    pub(super) doc: YamlDoc,
    /// The position of the eval in `evals`.
    pub(super) at: usize,
}

impl EditTarget {
    /// Finds an eval by its id in the text of a rubric file.
    pub(super) fn find(
        source: &Arc<str>,
        path: &Path,
        eval: &str,
    ) -> Result<Self, EditTargetError> {
        let doc = read_file(source, path)?;
        if let Some(DetectedFile::Rubric(format)) = detect_rubric_format(&doc.value)
            && format != RubricFormat::Native
        {
            return Err(EditTargetError::OtherFormat(format));
        }
        let evals = doc.value.get("evals").and_then(Value::as_array);
        let at = evals
            .and_then(|evals| {
                let id = |one: &Value| one.get("id").and_then(Value::as_str) == Some(eval);
                evals.iter().position(id)
            })
            .ok_or_else(|| EditTargetError::NoEval(eval.to_owned()))?;
        Ok(Self { doc, at })
    }
}

/// Parses the text of a rubric file.
pub(super) fn read_file(source: &Arc<str>, path: &Path) -> Result<YamlDoc, EditTargetError> {
    yaml::read_document(source, path).map_err(|problems| {
        let first = problems.first().map(ToString::to_string);
        EditTargetError::Unreadable(first.unwrap_or_default())
    })
}
