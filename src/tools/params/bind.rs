//! From canonical arguments to values, parameter by parameter in the order of the file. Every one that fails is told.

use super::shape::{Taking, value_cut};
use super::{Bound, Claims, Param, Params};
use crate::model::{ArgumentChange, RawJson, Rejection, escape_pointer_step};
use crate::tools::json::Node;

/// Where a parameter's value comes from.
enum Given<'a> {
    /// The model.
    Argument(&'a Node),
    /// The file. Whether a `null` stood in the arguments.
    Default(&'a Node, bool),
    /// A verified token, and the claim's name.
    Claim(Node, &'a str),
    Nothing,
}

/// Why there is no value: for the model, and whether a token is to blame.
struct Refused {
    why: String,
    is_auth: bool,
}

impl Params {
    /// Checks canonical arguments; the rejection lists every parameter that fails.
    pub fn bind(
        &self,
        tool: &str,
        canonical: &RawJson,
        coerce: bool,
        claims: &Claims,
    ) -> Result<Bound, Rejection> {
        let reject = |rule: &str, why: &str| Rejection {
            rule: rule.to_owned(),
            text: format!("Error parsing arguments for `{tool}`: {why}"),
        };
        let node =
            Node::parse(canonical.get(), &mut Vec::new()).map_err(|why| reject("parse", &why))?;
        let Node::Object(arguments) = node else {
            let why = format!("expected an object, got {}", node.kind());
            return Err(reject("parse", &why));
        };
        let binding = Binding {
            params: self,
            arguments: &arguments,
            claims,
        };
        let (mut values, mut coerced, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for param in self.all() {
            match binding.value(param, coerce, &mut coerced) {
                Ok(value) => values.push((param.name.clone(), value)),
                Err(refused) => failed.push(refused),
            }
        }
        if !failed.is_empty() {
            let is_auth = failed.iter().all(|refused| refused.is_auth);
            let rule = if is_auth { "auth" } else { "parameters" };
            let all: Vec<String> = failed.into_iter().map(|refused| refused.why).collect();
            return Err(reject(rule, &all.join("; ")));
        }
        let values = RawJson::parse(&Node::Object(values).compact())
            .map_err(|error| reject("parse", &error.to_string()))?;
        Ok(Bound { values, coerced })
    }
}

struct Binding<'a> {
    params: &'a Params,
    arguments: &'a [(String, Node)],
    claims: &'a Claims,
}

impl<'a> Binding<'a> {
    fn value(
        &self,
        param: &'a Param,
        coerce: bool,
        coerced: &mut Vec<ArgumentChange>,
    ) -> Result<Node, Refused> {
        // Another's failure is told where it happened, and a copy is never required.
        let given = match &param.copied {
            Some(name) => self.copied(name).unwrap_or(Given::Nothing),
            None => self.given(param)?,
        };
        let mut taking = Taking {
            coerce,
            path: format!("/{}", escape_pointer_step(&param.name)),
            changes: Vec::new(),
        };
        let taken = match &given {
            Given::Nothing => return Ok(Node::Plain("null".to_owned())),
            Given::Argument(value) => param.shape.take(value, &mut taking),
            Given::Default(value, was_null) => {
                taking.coerce = false;
                if coerce && *was_null {
                    taking.changes.push(ArgumentChange {
                        path: taking.path.clone(),
                        what: format!("null read as the default {}", value_cut(value)),
                    });
                }
                param.shape.take(value, &mut taking)
            }
            Given::Claim(value, field) => {
                taking.coerce = false;
                // The claim is hidden from the model, so its value is not told.
                let taken = param.shape.take(value, &mut taking);
                taken.map_err(|_| format!("the claim {field} does not fit it"))
            }
        };
        if param.copied.is_none() {
            coerced.append(&mut taking.changes);
        }
        taken.map_err(|why| Refused {
            why: format!("unable to parse value for {:?}: {why}", param.name),
            is_auth: matches!(given, Given::Claim(..)),
        })
    }

    fn given(&self, param: &'a Param) -> Result<Given<'a>, Refused> {
        if !param.claims.is_empty() {
            return self.claim(param);
        }
        let argument = self.arguments.iter().find(|(key, _)| *key == param.name);
        let is_null = |node: &Node| matches!(node, Node::Plain(word) if word == "null");
        match (argument, &param.default) {
            (Some((_, value)), _) if !is_null(value) => Ok(Given::Argument(value)),
            (was, Some(default)) => Ok(Given::Default(default, was.is_some())),
            _ if param.required => Err(Refused {
                why: format!("parameter {:?} is required", param.name),
                is_auth: false,
            }),
            _ => Ok(Given::Nothing),
        }
    }

    /// The first service that is verified decides, whatever a later one claims.
    fn claim(&self, param: &'a Param) -> Result<Given<'a>, Refused> {
        let refuse = |why: String| Refused {
            why: format!(
                "error parsing authenticated parameter {:?}: {why}",
                param.name
            ),
            is_auth: true,
        };
        let verified = param.claims.iter().find_map(|claim| {
            let found = self.claims.of(&claim.service)?;
            Some((found, claim.field.as_str()))
        });
        let Some((found, field)) = verified else {
            return Err(refuse("missing or invalid authentication".to_owned()));
        };
        match found.get(field) {
            None | Some(serde_json::Value::Null) => {
                Err(refuse(format!("no field named {field} in claims")))
            }
            Some(value) => Node::parse(&value.to_string(), &mut Vec::new())
                .map(|node| Given::Claim(node, field))
                .map_err(refuse),
        }
    }

    /// What the parameter that this one copies was given, over any number of steps; circles were refused when read.
    fn copied(&self, name: &str) -> Option<Given<'a>> {
        let mut source = self.params.all().find(|param| param.name == name)?;
        for _ in 0..self.params.all().count() {
            match &source.copied {
                None => return self.given(source).ok(),
                Some(next) => source = self.params.all().find(|param| param.name == *next)?,
            }
        }
        None
    }
}
