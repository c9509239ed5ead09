//! The toolbox's parameters: what a tool takes, checked value by value.
//!
//! Owns the reading of `parameters` and `templateParameters` with everything an author can get wrong, their declaration
//! to the model, the way from canonical arguments to values, and the templates that values are written into. Refuses to
//! call anything. Where the toolbox does otherwise than its documentation says, the documentation wins.

mod between;
mod bind;
mod coerce;
mod escape;
mod lint;
mod pattern;
mod read;
mod rules;
mod schema;
mod shape;
mod template;

use super::auth::Claims;
use super::json::Node;
use crate::diag::yaml::MappingDecoder;
use crate::model::{ArgumentChange, RawJson};

pub use shape::{Scalar, Shape, Type};
pub use template::{Known, Template};

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
    /// The key of the tool it stands under: `parameters`, `templateParameters`, `queryParams` …
    pub group: &'static str,
    /// What it may be.
    pub shape: Shape,
    required: bool,
    /// Passed its own checks already; not escaped.
    default: Option<Node>,
    /// Filled from the first of these services that is verified.
    claims: Vec<ClaimOf>,
    /// Filled with another's value.
    copied: Option<String>,
}

/// A claim that fills a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClaimOf {
    service: String,
    field: String,
}

impl Param {
    /// Whether the model is not told of it: a claim or another parameter's value fills it.
    pub fn is_hidden(&self) -> bool {
        !self.claims.is_empty() || self.copied.is_some()
    }

    /// Whether the model must give it.
    fn is_asked_for(&self) -> bool {
        self.required && self.default.is_none() && !self.is_hidden()
    }
}

/// Values, and how they came about.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// An object with every parameter, `null` where nothing was given: those of [`Params::bound`], then those of
    /// [`Params::template`], in order. Texts with `escape` are escaped; numbers as written, a float's with a dot.
    pub values: RawJson,
    /// What `coerce: true` changed.
    pub coerced: Vec<ArgumentChange>,
}

/// Where the parameters of an `http` tool's request stand, beside `parameters`.
pub const REQUEST: [&str; 4] = ["pathParams", "queryParams", "bodyParams", "headerParams"];

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
        groups.push(read::TEMPLATE);
        read::params(fields, &groups, cx)
    }

    /// All, those that are bound first.
    pub fn all(&self) -> impl Iterator<Item = &Param> {
        self.bound.iter().chain(&self.template)
    }

    /// Those that stand under a key of the tool, in order.
    pub fn of_group<'p>(&'p self, group: &'p str) -> impl Iterator<Item = &'p Param> {
        self.all().filter(move |param| param.group == group)
    }
}

#[cfg(test)]
mod tests;
