//! The toolbox's parameters: what a tool takes, checked value by value.
//!
//! Owns the reading of `parameters` and `templateParameters` with everything an author can get wrong, their declaration
//! to the model, the way from canonical arguments to values, and the templates that values are written into. Refuses to
//! call anything. Where the toolbox does otherwise than its documentation says, the documentation wins.

mod bind;
mod coerce;
mod cross_checks;
mod escape;
mod lint;
mod param_reader;
mod re2_pattern;
mod schema;
mod template;
mod value_filter;
mod value_spec;

use super::auth::VerifiedClaims;
use super::json::JsonNode;
use crate::diag::yaml::MappingDecoder;
use crate::model::{ArgumentChange, RawJson};

pub use template::{KnownName, Template};
pub use value_spec::{ScalarType, ValueSpec, ValueType};

/// What a tool takes, in the order written.
#[derive(Debug, Clone, Default)]
pub struct ToolParams {
    /// Bound to the statement or request.
    pub bound: Vec<ToolParam>,
    /// Written into the text of the statement.
    pub template: Vec<ToolParam>,
}

/// One parameter.
#[derive(Debug, Clone)]
pub struct ToolParam {
    /// Its name.
    pub name: String,
    /// The key of the tool it stands under: `parameters`, `templateParameters`, `queryParams` …
    pub group: &'static str,
    /// What it may be.
    pub spec: ValueSpec,
    required: bool,
    /// Passed its own checks already; not escaped.
    default: Option<JsonNode>,
    /// Filled from the first of these services that is verified.
    claim_refs: Vec<ClaimRef>,
    /// Filled with another's value.
    copied_from: Option<String>,
}

/// A claim that fills a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimRef {
    service: String,
    field: String,
}

impl ToolParam {
    /// Whether the model is not told of it: a claim or another parameter's value fills it.
    pub fn is_hidden(&self) -> bool {
        !self.claim_refs.is_empty() || self.copied_from.is_some()
    }

    /// Whether the model must give it.
    fn is_required_of_model(&self) -> bool {
        self.required && self.default.is_none() && !self.is_hidden()
    }
}

/// Values, and how they came about.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundParams {
    /// An object with every parameter, `null` where nothing was given: those of [`Params::bound`], then those of
    /// [`Params::template`], in order. Texts with `escape` are escaped; numbers as written, a float's with a dot.
    pub values: RawJson,
    /// What `coerce: true` changed.
    pub coerced: Vec<ArgumentChange>,
}

/// Where the parameters of an `http` tool's request stand, beside `parameters`.
pub const REQUEST_PARAM_KEYS: [&str; 4] =
    ["pathParams", "queryParams", "bodyParams", "headerParams"];

/// What surrounds a tool's parameters.
pub struct ParamsCx<'a> {
    /// Names of the auth services there are.
    pub auth: &'a [&'a str],
    /// Whether the source may be written to: a template parameter without rules is then an error.
    pub writable: bool,
}

impl ToolParams {
    /// Reads `parameters`, `templateParameters` and `allowUncheckedTemplates` of a tool. Problems are told through
    /// `fields`.
    pub fn read(fields: &mut MappingDecoder<'_>, cx: &ParamsCx<'_>) -> Self {
        Self::read_groups(fields, &[], cx)
    }

    /// The same, with the parameters under further keys of the tool ([`REQUEST`], say) behind `parameters`.
    pub fn read_groups(
        fields: &mut MappingDecoder<'_>,
        further: &[&'static str],
        cx: &ParamsCx<'_>,
    ) -> Self {
        let mut groups = vec!["parameters"];
        groups.extend(further);
        groups.push(param_reader::TEMPLATE_PARAMETERS);
        param_reader::read_tool_params(fields, &groups, cx)
    }

    /// All, those that are bound first.
    pub fn all_params(&self) -> impl Iterator<Item = &ToolParam> {
        self.bound.iter().chain(&self.template)
    }

    /// Those that stand under a key of the tool, in order.
    pub fn in_group<'p>(&'p self, group: &'p str) -> impl Iterator<Item = &'p ToolParam> {
        self.all_params().filter(move |param| param.group == group)
    }
}

#[cfg(test)]
mod tests;
