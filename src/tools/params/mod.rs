//! The parameters of tools in tools.yaml, with the rules of the MCP toolbox.
//!
//! Responsible for reading `parameters` and `templateParameters` strictly, for their declaration to the language
//! model, for the conversion of canonical arguments to values, and for templates. Does not call tools. Where the
//! toolbox's behavior differs from its documentation, this module follows the documentation.

mod bind;
mod body_template;
mod cross_checks;
mod escape;
mod lint;
mod number_literal;
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

pub use body_template::BodyTemplate;
pub use param_reader::TYPE_NAMES;
pub use template::{KnownName, Template};
pub use value_spec::{ScalarType, ValueSpec, ValueType};

/// The parameters of a tool, in the order of the file.
#[derive(Debug, Clone, Default)]
pub struct ToolParams {
    /// The parameters that are bound to the statement or request.
    pub bound: Vec<ToolParam>,
    /// The parameters that are inserted into the text of the statement.
    pub template: Vec<ToolParam>,
}

/// One parameter.
#[derive(Debug, Clone)]
pub struct ToolParam {
    /// The parameter's name.
    pub name: String,
    /// The key of the tool that contains it: `parameters`, `templateParameters`, `queryParams` …
    pub group: &'static str,
    /// The type and rules of its value.
    pub spec: ValueSpec,
    required: bool,
    /// The checked default, not escaped.
    default: Option<JsonNode>,
    /// The claims that fill the parameter; the first verified service decides.
    claim_refs: Vec<ClaimRef>,
    /// The name of the parameter whose value this one copies.
    copied_from: Option<String>,
}

/// A reference to a claim of an auth service.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimRef {
    service: String,
    field: String,
}

impl ToolParam {
    /// Returns true if the language model does not see the parameter, because a claim or another parameter fills it.
    pub fn is_hidden(&self) -> bool {
        !self.claim_refs.is_empty() || self.copied_from.is_some()
    }

    /// Returns true if the language model must supply the parameter.
    fn is_required_of_model(&self) -> bool {
        self.required && self.default.is_none() && !self.is_hidden()
    }
}

/// The values of a call, with the changes that produced them.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundParams {
    /// An object with every parameter, `null` for those without a value: first [`ToolParams::bound`], then
    /// [`ToolParams::template`], in order. Texts with `escape` are escaped. Numbers are as written, a float's with a
    /// dot.
    pub values: RawJson,
    /// The changes that `coerce: true` made.
    pub coerced: Vec<ArgumentChange>,
}

/// The keys of an `http` tool that contain parameters, in addition to `parameters`.
pub const REQUEST_PARAM_KEYS: [&str; 4] =
    ["pathParams", "queryParams", "bodyParams", "headerParams"];

/// The key of the parameters that are inserted into the text of a statement.
const TEMPLATE_PARAMETERS: &str = "templateParameters";

/// Returns the values of `escape`.
pub fn escape_names() -> [&'static str; 4] {
    escape::DelimiterEscape::NAMES.map(|(name, _)| name)
}

/// The context in which parameters are read.
pub struct ParamsCx<'a> {
    /// The names of the known auth services.
    pub auth: &'a [&'a str],
    /// True if the source may be written to. A template parameter without rules is then an error.
    pub writable: bool,
}

impl ToolParams {
    /// Reads `parameters`, `templateParameters` and `allowUncheckedTemplates` of a tool. Reports problems through
    /// `fields`.
    pub fn read(fields: &mut MappingDecoder<'_>, cx: &ParamsCx<'_>) -> Self {
        Self::read_groups(fields, &[], cx)
    }

    /// Works like [`Self::read`], with the parameters under further keys ([`REQUEST_PARAM_KEYS`], for example) after
    /// `parameters`.
    pub fn read_groups(
        fields: &mut MappingDecoder<'_>,
        further: &[&'static str],
        cx: &ParamsCx<'_>,
    ) -> Self {
        let mut groups = vec!["parameters"];
        groups.extend(further);
        groups.push(TEMPLATE_PARAMETERS);
        param_reader::read_tool_params(fields, &groups, cx)
    }

    /// Iterates over all parameters, the bound ones first.
    pub fn all_params(&self) -> impl Iterator<Item = &ToolParam> {
        self.bound.iter().chain(&self.template)
    }

    /// Describes the rules that change a call and that the declaration for the language model does not show: where
    /// hidden values come from, and escapes. Empty if there are none.
    pub fn describe_undeclared_rules(&self) -> Vec<String> {
        let undeclared = |param: &&ToolParam| param.is_hidden() || param.spec.has_escape();
        let params = self.all_params().filter(undeclared);
        // The debug format contains every rule, so a new one can't be forgotten here.
        params.map(|param| format!("{param:?}")).collect()
    }

    /// Iterates over the parameters under one key of the tool, in order.
    pub fn in_group<'p>(&'p self, group: &'p str) -> impl Iterator<Item = &'p ToolParam> {
        self.all_params().filter(move |param| param.group == group)
    }
}

#[cfg(test)]
mod tests;
