//! Params by their type: unknown ones with the nearest name, then the type's schema, then what the type itself checks.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::eval::Params;
use super::{Catalog, KindSpec};
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
    pub(super) fn read(&mut self, kind: &KindSpec, at: &str) -> Option<Params> {
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
        let mut faults = self.unknown(kind, at, written, properties);
        let mut known = written.clone();
        known.retain(|key, _| properties.is_some_and(|p| p.contains_key(key)));
        let mut from_metadata: Vec<String> = Vec::new();
        for (key, value) in &known {
            if is_from_metadata(value) {
                let pointer = format!("/{}", pointer_step(key));
                let message = format!(
                    "`{key}: {{ from: … }}` (a value from the transcript's metadata) is not in this version yet"
                );
                self.error(&format!("{at}{pointer}"), "not-yet", message);
                from_metadata.push(pointer);
            }
        }
        faults |= !from_metadata.is_empty();
        let value = Value::Object(known.clone());
        let compiled = self.compiled(kind, at)?;
        for (pointer, message) in compiled.errors(&value) {
            let is_from = from_metadata
                .iter()
                .any(|from| pointer.starts_with(from.as_str()));
            if is_from {
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
        let problems = self.catalog.check(kind.name, &value);
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

fn is_from_metadata(value: &Value) -> bool {
    let Some(map) = value.as_object().filter(|map| map.len() == 1) else {
        return false;
    };
    map.get("from")
        .and_then(Value::as_str)
        .is_some_and(|path| path == "metadata" || path.starts_with("metadata."))
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
