//! The toolbox's parameters: what a tool takes, checked value by value.
//!
//! Owns the reading of `parameters` and `templateParameters` with everything an author can get wrong, their declaration
//! to the model, and the way from canonical arguments to values. Refuses to call anything.

use serde_json::Value;

use super::auth::Claims;
use crate::diag::yaml::Fields;
use crate::model::{Change, RawJson, Rejection};

/// What a tool takes, in the order written.
#[derive(Debug, Clone, Default)]
pub struct Params {
    /// Bound to the statement or request.
    pub bound: Vec<Param>,
    /// Written into the text of the statement.
    pub template: Vec<Param>,
}

/// One parameter.
#[derive(Debug, Clone)]
pub struct Param {
    /// Its name.
    pub name: String,
}

/// Values, and how they came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// An object with every parameter, `null` where nothing was given.
    pub values: RawJson,
    /// What `coerce: true` changed.
    pub coerced: Vec<Change>,
}

/// What surrounds a tool's parameters.
pub struct ParamsCx<'a> {
    /// Names of the auth services there are.
    pub auth: &'a [&'a str],
    /// Whether the source may be written to: a template parameter without rules is then an error.
    pub writable: bool,
}

impl Params {
    /// Reads `parameters`, `templateParameters` and `allowUncheckedTemplates` of a tool. Problems are told through
    /// `fields`.
    pub fn read(fields: &mut Fields<'_>, cx: &ParamsCx<'_>) -> Self {
        let _ = (
            fields.value("parameters"),
            fields.value("templateParameters"),
            cx.auth,
            cx.writable,
        );
        Self::default()
    }

    /// JSON Schema of the arguments, rules included, hidden parameters left out.
    pub fn schema(&self) -> Value {
        serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false})
    }

    /// Checks canonical arguments; the rejection lists every parameter that fails.
    pub fn bind(
        &self,
        tool: &str,
        canonical: &RawJson,
        coerce: bool,
        claims: &Claims,
    ) -> Result<Bound, Rejection> {
        let _ = (tool, coerce, claims);
        Ok(Bound {
            values: canonical.clone(),
            coerced: Vec::new(),
        })
    }
}

/// A text that template parameters are written into.
#[derive(Debug, Clone, PartialEq)]
pub struct Template(String);

impl Template {
    /// Reads a statement; the error says where and why.
    pub fn parse(text: &str, _params: &Params) -> Result<Self, String> {
        Ok(Self(text.to_owned()))
    }

    /// Whether nothing is inserted.
    pub fn is_plain(&self) -> bool {
        !self.0.contains("{{")
    }

    /// Inserts values.
    pub fn render(&self, _values: &RawJson) -> Result<String, String> {
        Ok(self.0.clone())
    }
}
