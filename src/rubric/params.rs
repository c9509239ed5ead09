//! Params by their type: unknown ones with the nearest name, then the type's schema, then what the type itself checks.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::eval::Params;
use super::{Alias, Catalog, KindSpec};
use crate::diag::nearest;
use crate::diag::yaml::{Doc, Problems, describe};
use crate::model::pointer_step;
use crate::schema::Compiled;

/// Reads the params of one file's evals; a type's schema is compiled once.
pub(super) struct ParamsReader<'d> {
    doc: &'d Doc,
    problems: &'d Problems,
    catalog: &'d dyn Catalog,
    compiled: HashMap<&'static str, Compiled>,
}

impl<'d> ParamsReader<'d> {
    pub(super) fn new(doc: &'d Doc, problems: &'d Problems, catalog: &'d dyn Catalog) -> Self {
        Self {
            doc,
            problems,
            catalog,
            compiled: HashMap::new(),
        }
    }

    /// The params at a pointer, resolved. `None` where they do not satisfy the type; the problems say why.
    pub(super) fn read(
        &mut self,
        kind: &KindSpec,
        alias: Option<&Alias>,
        at: &str,
    ) -> Option<Params> {
        let nothing = Map::new();
        let written = match self.doc.value.pointer(at) {
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(map)) => map,
            Some(other) => {
                let message = format!("params must be a mapping (got {})", describe(other));
                self.error(at, "type", message);
                return None;
            }
        };
        let properties = kind.schema.get("properties").and_then(Value::as_object);
        let spelled = self.canonical(kind, at, written);
        let written = spelled.as_ref().unwrap_or(written);
        let mut faults = self.unknown(kind, at, written, properties);
        let mut known = written.clone();
        known.retain(|key, _| properties.is_some_and(|p| p.contains_key(key)));
        for (key, json) in alias.into_iter().flat_map(|alias| alias.sets) {
            // What an alias sets is ours, and JSON.
            let value = serde_json::from_str(json).unwrap_or_default();
            known.entry(*key).or_insert(value);
        }
        let mut late: Vec<String> = Vec::new();
        for (key, value) in &known {
            if from_metadata(value).is_some() {
                late.push(format!("/{}", pointer_step(key)));
            }
        }
        let value = Value::Object(known.clone());
        let compiled = self.compiled(kind, at)?;
        for (pointer, message) in compiled.errors(&value) {
            // Known only with a transcript.
            if late.iter().any(|late| is_within(&pointer, late)) {
                continue;
            }
            faults = true;
            let message = match name_of(&pointer) {
                None => format!("{message}; {} needs it", kind.name),
                Some(name) => format!("{name} {message}"),
            };
            self.error(&format!("{at}{pointer}"), "param", message);
        }
        faults |= self.bounds(kind, at, &known);
        if faults {
            return None;
        }
        let problems = if late.is_empty() {
            self.catalog.check(kind.name, &value)
        } else {
            Vec::new()
        };
        for problem in &problems {
            let pointer = format!("{at}{}", problem.pointer);
            let mut told = self.doc.error(&pointer, "param", &problem.message);
            told.help.clone_from(&problem.help);
            self.problems.push(told);
        }
        let decides: IndexMap<String, Value> = known
            .iter()
            .filter(|(key, _)| kind.decides.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        add_defaults(&mut known, properties);
        problems.is_empty().then_some(Params {
            resolved: Value::Object(known),
            decides,
        })
    }

    /// The params under their own names, where one is written by another. A pointer into them leads nowhere in the file
    /// then; problems fall back to the params.
    fn canonical(
        &self,
        kind: &KindSpec,
        at: &str,
        written: &Map<String, Value>,
    ) -> Option<Map<String, Value>> {
        let own = |key: &str| {
            let mut aliases = kind.param_aliases.iter();
            aliases
                .find(|(other, _)| *other == key)
                .map(|(_, own)| *own)
        };
        if !written.keys().any(|key| own(key).is_some()) {
            return None;
        }
        let mut renamed = Map::new();
        for (key, value) in written {
            let name = own(key).unwrap_or(key);
            if renamed.insert(name.to_owned(), value.clone()).is_some() {
                let message = format!("`{key}` says the same as `{name}`: give one of them");
                let pointer = format!("{at}/{}", pointer_step(key));
                self.error(&pointer, "param", message);
            }
        }
        Some(renamed)
    }

    fn unknown(
        &self,
        kind: &KindSpec,
        at: &str,
        written: &Map<String, Value>,
        properties: Option<&Map<String, Value>>,
    ) -> bool {
        let names: Vec<&str> = properties
            .into_iter()
            .flatten()
            .map(|(k, _)| k.as_str())
            .collect();
        let mut any = false;
        for key in written.keys().filter(|key| !names.contains(&key.as_str())) {
            any = true;
            let what = format!("unknown param `{key}` of {}", kind.name);
            let pointer = format!("{at}/{}", pointer_step(key));
            let mut problem = self.doc.error(
                &pointer,
                "unknown-param",
                match nearest(key, names.iter().copied()) {
                    Some(near) => format!("{what}; did you mean `{near}`?"),
                    None => what,
                },
            );
            problem.span = Some(self.doc.key_span(&pointer));
            problem = problem.help(if names.is_empty() {
                format!("{} takes no params", kind.name)
            } else {
                format!("{} takes: {}", kind.name, names.join(", "))
            });
            self.problems.push(problem);
        }
        any
    }

    /// Scores are between 0 and 1, whatever a type's own schema says of them.
    fn bounds(&self, kind: &KindSpec, at: &str, params: &Map<String, Value>) -> bool {
        let bound = |key: &str| {
            let known = kind.decides.contains(&key);
            params.get(key).filter(|_| known).and_then(Value::as_f64)
        };
        let mut any = false;
        for key in ["min_score", "max_score"] {
            if let Some(x) = bound(key).filter(|x| !(0.0..=1.0).contains(x)) {
                any = true;
                let message = format!("{key} must be between 0 and 1 (got {x})");
                let pointer = format!("{at}/{key}");
                // The type's schema may have said so already.
                if !self.problems.is_told(&self.doc.span(&pointer)) {
                    self.error(&pointer, "range", message);
                }
            }
        }
        if let (Some(min), Some(max)) = (bound("min_score"), bound("max_score"))
            && min > max
        {
            any = true;
            let message =
                format!("min_score ({min}) is above max_score ({max}): nothing could pass");
            self.error(&format!("{at}/min_score"), "range", message);
        }
        any
    }

    fn compiled(&mut self, kind: &KindSpec, at: &str) -> Option<Compiled> {
        if let Some(compiled) = self.compiled.get(kind.name) {
            return Some(compiled.clone());
        }
        match Compiled::compile(&kind.schema) {
            Ok(compiled) => {
                self.compiled.insert(kind.name, compiled.clone());
                Some(compiled)
            }
            Err(why) => {
                self.error(
                    at,
                    "internal",
                    format!("the schema of type {} is broken: {why}", kind.name),
                );
                None
            }
        }
    }

    fn error(&self, pointer: &str, code: &'static str, message: String) {
        self.problems.error(self.doc.span(pointer), code, message);
    }
}

/// The dotted path of a param that is `{ from: metadata.PATH }`.
pub fn from_metadata(value: &Value) -> Option<&str> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let path = map.get("from")?.as_str()?.strip_prefix("metadata.")?;
    (!path.is_empty()).then_some(path)
}

/// Whether a pointer is another, or leads below it.
fn is_within(pointer: &str, of: &str) -> bool {
    pointer
        .strip_prefix(of)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// `/patterns/0` as `patterns[0]`; `None` for the params themselves.
fn name_of(pointer: &str) -> Option<String> {
    let mut name = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if !name.is_empty() && step.bytes().all(|b| b.is_ascii_digit()) {
            name = format!("{name}[{step}]");
        } else if name.is_empty() {
            name = step;
        } else {
            name = format!("{name}.{step}");
        }
    }
    (!name.is_empty()).then_some(name)
}

/// What a type's schema gives as default counts as written, so that writing it out changes nothing.
fn add_defaults(params: &mut Map<String, Value>, properties: Option<&Map<String, Value>>) {
    for (key, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default").filter(|d| !d.is_null())
            && !params.contains_key(key)
        {
            params.insert(key.clone(), default.clone());
        }
    }
}
