//! The conversion of canonical arguments to values, parameter by parameter in the order of the file.

use super::value_spec::{ConversionCx, format_value_truncated};
use super::{BoundParams, ToolParam, ToolParams, VerifiedClaims};
use crate::model::{ArgumentChange, RawJson, Rejection, escape_pointer_step};
use crate::tools::json::JsonNode;

/// The source of a parameter's value.
enum ParamValueSource<'a> {
    /// The language model's argument.
    Argument(&'a JsonNode),
    /// The default of the file.
    Default {
        value: &'a JsonNode,
        /// True if the arguments contained `null`.
        was_null: bool,
    },
    /// A claim of a verified token.
    Claim {
        value: JsonNode,
        /// The name of the claim.
        field: &'a str,
    },
    Nothing,
}

/// The reason why a parameter has no value. Records a text for the language model and whether a token is missing.
struct ParamError {
    message: String,
    is_auth: bool,
}

impl ToolParams {
    /// Checks canonical arguments. The rejection lists every invalid parameter.
    pub fn bind(
        &self,
        tool: &str,
        canonical: &RawJson,
        coerce: bool,
        claims: &VerifiedClaims,
    ) -> Result<BoundParams, Rejection> {
        let reject = |rule: &str, why: &str| Rejection {
            rule: rule.to_owned(),
            text: format!("Error parsing arguments for `{tool}`: {why}"),
        };
        let node = JsonNode::parse(canonical.get(), &mut Vec::new())
            .map_err(|why| reject("parse", &why))?;
        let JsonNode::Object(arguments) = node else {
            let why = format!("expected an object, got {}", node.describe_type());
            return Err(reject("parse", &why));
        };
        let binding = ParamBinder {
            params: self,
            arguments: &arguments,
            claims,
        };
        // All parameters are checked, so that a model can correct every mistake at once.
        let (mut values, mut coerced, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for param in self.all_params() {
            match binding.bind_param(param, coerce, &mut coerced) {
                Ok(value) => values.push((param.name.clone(), value)),
                Err(refused) => failed.push(refused),
            }
        }
        if !failed.is_empty() {
            // A rejection counts as an authentication failure only if the arguments themselves are right.
            let is_auth = failed.iter().all(|refused| refused.is_auth);
            let rule = if is_auth { "auth" } else { "parameters" };
            let all: Vec<String> = failed.into_iter().map(|refused| refused.message).collect();
            return Err(reject(rule, &all.join("; ")));
        }
        let values = RawJson::parse(&JsonNode::Object(values).to_compact_json())
            .map_err(|error| reject("parse", &error.to_string()))?;
        Ok(BoundParams { values, coerced })
    }
}

struct ParamBinder<'a> {
    params: &'a ToolParams,
    arguments: &'a [(String, JsonNode)],
    claims: &'a VerifiedClaims,
}

impl<'a> ParamBinder<'a> {
    fn bind_param(
        &self,
        param: &'a ToolParam,
        coerce: bool,
        coerced: &mut Vec<ArgumentChange>,
    ) -> Result<JsonNode, ParamError> {
        // The failure of the copied parameter is reported there. A copy is never required.
        let given = match &param.copied_from {
            Some(name) => self
                .find_copied_value(name)
                .unwrap_or(ParamValueSource::Nothing),
            None => self.find_value(param)?,
        };
        let mut conversion = ConversionCx {
            coerce,
            path: format!("/{}", escape_pointer_step(&param.name)),
            changes: Vec::new(),
        };
        let taken = match &given {
            ParamValueSource::Nothing => return Ok(JsonNode::Literal("null".to_owned())),
            ParamValueSource::Argument(value) => {
                param.spec.check_and_convert(value, &mut conversion)
            }
            ParamValueSource::Default { value, was_null } => {
                // The author wrote the default with its type, so no conversion applies.
                conversion.coerce = false;
                if coerce && *was_null {
                    conversion.changes.push(ArgumentChange {
                        path: conversion.path.clone(),
                        what: format!("null read as the default {}", format_value_truncated(value)),
                    });
                }
                param.spec.check_and_convert(value, &mut conversion)
            }
            ParamValueSource::Claim { value, field } => {
                // `coerce` corrects mistakes of the language model; a claim is not one.
                conversion.coerce = false;
                // The claim is hidden from the language model, so the error must not contain its value.
                let taken = param.spec.check_and_convert(value, &mut conversion);
                taken.map_err(|_| format!("the claim {field} does not fit it"))
            }
        };
        // The changes of a copied value are already recorded at the parameter that it comes from.
        if param.copied_from.is_none() {
            coerced.append(&mut conversion.changes);
        }
        taken.map_err(|why| ParamError {
            message: format!("unable to parse value for {:?}: {why}", param.name),
            is_auth: matches!(given, ParamValueSource::Claim { .. }),
        })
    }

    fn find_value(&self, param: &'a ToolParam) -> Result<ParamValueSource<'a>, ParamError> {
        // A parameter that a claim fills ignores the model's argument, which could forge the claim.
        if !param.claim_refs.is_empty() {
            return self.find_claim(param);
        }
        let argument = self.arguments.iter().find(|(key, _)| *key == param.name);
        // A model may write null for a parameter that it leaves out.
        let is_null = |node: &JsonNode| matches!(node, JsonNode::Literal(word) if word == "null");
        match (argument, &param.default) {
            (Some((_, value)), _) if !is_null(value) => Ok(ParamValueSource::Argument(value)),
            (written, Some(default)) => Ok(ParamValueSource::Default {
                value: default,
                was_null: written.is_some(),
            }),
            _ if param.required => Err(ParamError {
                message: format!("parameter {:?} is required", param.name),
                is_auth: false,
            }),
            _ => Ok(ParamValueSource::Nothing),
        }
    }

    /// Finds the claim for a parameter. The first verified service decides, even if its token lacks the claim.
    fn find_claim(&self, param: &'a ToolParam) -> Result<ParamValueSource<'a>, ParamError> {
        let refuse = |why: String| ParamError {
            message: format!(
                "error parsing authenticated parameter {:?}: {why}",
                param.name
            ),
            is_auth: true,
        };
        // The services in the order of the file; the first one with a verified token fills the parameter.
        let verified = param.claim_refs.iter().find_map(|claim| {
            let found = self.claims.get(&claim.service)?;
            Some((found, claim.field.as_str()))
        });
        let Some((found, field)) = verified else {
            return Err(refuse("missing or invalid authentication".to_owned()));
        };
        match found.get(field) {
            None | Some(serde_json::Value::Null) => {
                Err(refuse(format!("no field named {field} in claims")))
            }
            Some(value) => JsonNode::parse(&value.to_string(), &mut Vec::new())
                .map(|value| ParamValueSource::Claim { value, field })
                .map_err(refuse),
        }
    }

    /// Finds the value of the parameter that this one copies, over any number of steps. The reader has refused
    /// cycles.
    fn find_copied_value(&self, name: &str) -> Option<ParamValueSource<'a>> {
        let mut source = self.params.all_params().find(|param| param.name == name)?;
        // The bound ends a cycle; the reader reports cycles, but such a tool still exists.
        for _ in 0..self.params.all_params().count() {
            match &source.copied_from {
                None => return self.find_value(source).ok(),
                Some(next) => {
                    source = self.params.all_params().find(|param| param.name == *next)?;
                }
            }
        }
        None
    }
}
