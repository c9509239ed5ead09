//! The reader of params. It checks for unknown names, then against the type's schema, then with the type's own
//! checks.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::other_tools::find_param_of_foreign_key;
use super::wrapper::{UnwrappedEval, explain_bound_without_score};
use super::{EvalTypeSpec, RubricCx};
use crate::diag::find_nearest;
use crate::diag::yaml::describe_value;
use crate::model::escape_pointer_step;
use crate::schema::CompiledSchema;

/// The length in characters above which a message does not repeat a value.
const MAX_SHOWN_CHARS: usize = 40;

/// Reads the params of one file's evals; compiles each type's schema once.
pub(super) struct ParamsReader<'d> {
    cx: RubricCx<'d>,
    compiled: HashMap<&'static str, CompiledSchema>,
}

/// The result of [`ParamsReader`].
pub(super) struct ResolvedParams {
    /// The params with the type's defaults.
    pub(super) resolved: Value,
    /// The decision settings as written.
    pub(super) decision_settings: IndexMap<String, Value>,
}

/// Params as the author wrote them, under the names of the schema.
pub(super) struct WrittenParams {
    /// The pointer of the params in the document.
    at: String,
    pub(super) params: Map<String, Value>,
    /// The pointers of params that are elsewhere in the file, or have another name there.
    places: HashMap<String, String>,
}

impl WrittenParams {
    /// Converts a pointer into the params to a pointer into the document.
    pub(super) fn pointer_in_file(&self, pointer: &str) -> String {
        let inside = pointer.strip_prefix('/').unwrap_or(pointer);
        let name = inside.split('/').next().unwrap_or_default();
        // The first step is the name of the param; the rest is inside its value.
        match self.places.get(name) {
            Some(place) => format!("{place}{}", &inside[name.len()..]),
            None => format!("{}{pointer}", self.at),
        }
    }
}

impl<'d> ParamsReader<'d> {
    pub(super) fn new(cx: RubricCx<'d>) -> Self {
        Self {
            cx,
            compiled: HashMap::new(),
        }
    }

    /// Reads and resolves the params of an eval. Returns `None` and reports problems if they do not satisfy the type.
    pub(super) fn read(&mut self, eval: &UnwrappedEval<'_>) -> Option<ResolvedParams> {
        let kind = eval.eval_type;
        // Read the params and drop the unknown ones, so that the schema does not report them again.
        let (mut written, mut faults) = self.read_written(eval)?;
        let properties = kind.schema.get("properties").and_then(Value::as_object);
        let meant = self.find_meant_params(eval, &written, properties);
        faults |= self.report_unknown_params(kind, &written, properties);
        written
            .params
            .retain(|key, _| properties.is_some_and(|p| p.contains_key(key)));
        // Bounds outside of the params count as params from here on.
        faults |= !self.apply_outer_bounds(eval, &mut written);
        // Texts of judged evals can be in files.
        if kind.judged {
            faults |= !self.cx.resolve_texts(kind, &mut written);
        }
        // Params from the metadata have no value yet, so the checks skip them.
        let late = self.find_metadata_params(&written, properties, &mut faults);
        let value = Value::Object(written.params.clone());
        // Check against the schema.
        let compiled = self.compiled(kind, &written.at)?;
        for (pointer, message) in compiled.errors(&value) {
            // The value is known only with a transcript, or its problem has been reported.
            if late.iter().any(|late| is_within(&pointer, late)) {
                continue;
            }
            faults = true;
            // The error about the unknown key names this param already.
            let is_missing = |name: &&str| message == format!("`{name}` is missing");
            if pointer.is_empty() && meant.iter().any(|name| is_missing(&name.as_str())) {
                continue;
            }
            let message = match format_param_path(&pointer) {
                None => format!("{message}; {} needs it", kind.name),
                Some(name) => format!("{name} {message}"),
            };
            let place = written.pointer_in_file(&pointer);
            let help = suggest_fix(&kind.schema, &value, &pointer)
                .unwrap_or_else(|| format!("`dicta eval-types {}` lists its params", kind.name));
            let diagnostic = self.cx.doc.error(&place, "param", message);
            self.cx.problems.push(diagnostic.help(help));
        }
        // Then the checks that the schema cannot express.
        faults |= self.report_invalid_bounds(kind, &written);
        if faults {
            return None;
        }
        // The checks of a type need all values, so they wait for a transcript if some are missing.
        let problems = if late.is_empty() {
            self.cx.catalog.check_params(kind.name, &value)
        } else {
            Vec::new()
        };
        for problem in &problems {
            let pointer = written.pointer_in_file(&problem.pointer);
            let mut diagnostic = self.cx.doc.error(&pointer, "param", &problem.message);
            diagnostic.help.clone_from(&problem.help);
            self.cx.problems.push(diagnostic);
        }
        // Separate the decision settings as written, before the defaults are added.
        let mut known = written.params;
        let decides: IndexMap<String, Value> = known
            .iter()
            .filter(|(key, _)| kind.decision_params.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        add_defaults(&mut known, properties);
        problems.is_empty().then_some(ResolvedParams {
            resolved: Value::Object(known),
            decision_settings: decides,
        })
    }

    /// Reads the params under the names of the schema, with the presets of the type's alias. The flag is true if a
    /// problem was reported.
    fn read_written(&self, eval: &UnwrappedEval<'_>) -> Option<(WrittenParams, bool)> {
        let nothing = Map::new();
        let at = &eval.params_pointer;
        let map = match self.cx.doc.value.pointer(at) {
            // `params:` without a value is null in YAML and counts as empty.
            None | Some(Value::Null) => &nothing,
            Some(Value::Object(map)) => map,
            Some(other) => {
                let name = at.rsplit('/').next().unwrap_or_default();
                let message = format!("{name} must be a mapping (got {})", describe_value(other));
                self.report_error(at, "type", message);
                return None;
            }
        };
        let mut written = WrittenParams {
            at: at.clone(),
            params: Map::new(),
            places: HashMap::new(),
        };
        let mut faults = false;
        for (key, value) in map {
            let pointer = format!("{at}/{}", escape_pointer_step(key));
            let mut aliases = eval.eval_type.param_aliases.iter();
            let alias = aliases.find(|(other, _)| other == key);
            // An alias of a param counts under its name in the schema.
            let name = alias.map_or(key.as_str(), |(_, alias)| alias);
            if written.params.contains_key(name) {
                // The param is present under two names; the first stays.
                faults = true;
                let before = written.places.get(name);
                let before = before.and_then(|at| at.rsplit('/').next()).unwrap_or(name);
                let message = format!("`{key}` says the same as `{before}`: give one of them");
                self.report_error(&pointer, "param", message);
                continue;
            }
            written.params.insert(name.to_owned(), value.clone());
            // Only a renamed param needs a place of its own.
            if name != key {
                written.places.insert(name.to_owned(), pointer);
            }
        }
        for (key, json) in eval.alias.into_iter().flat_map(|alias| alias.preset_params) {
            // The presets are in dicta's source, so they are valid JSON.
            let value = serde_json::from_str(json).unwrap_or_default();
            // `or_insert`: a written param has priority over a preset.
            written.params.entry(*key).or_insert(value);
        }
        Some((written, faults))
    }

    /// Adds the bounds that the file has outside of the params. Returns false if a problem was reported.
    fn apply_outer_bounds(&self, eval: &UnwrappedEval<'_>, written: &mut WrittenParams) -> bool {
        let mut good = true;
        for bound in &eval.bounds {
            let span = || self.cx.doc.span(&bound.pointer);
            // The type has no score, or does not decide by it.
            if !eval.eval_type.decision_params.contains(&bound.name) {
                let (wrong, message) = explain_bound_without_score(eval.eval_type.name, bound);
                if wrong {
                    good = false;
                    self.report_error(&bound.pointer, "value", message);
                } else {
                    self.cx.problems.warning(span(), "no-effect", message);
                }
            } else if written.params.contains_key(bound.name) {
                // The bound is in the params as well.
                good = false;
                let message = format!("{} is given twice; write it once", bound.name);
                self.report_error(&bound.pointer, "param", message);
            } else {
                written
                    .params
                    .insert(bound.name.to_owned(), bound.value.clone());
                written
                    .places
                    .insert(bound.name.to_owned(), bound.pointer.clone());
            }
        }
        good
    }

    /// Returns the pointers of the params that refer to the metadata.
    fn find_metadata_params(
        &self,
        written: &WrittenParams,
        properties: Option<&Map<String, Value>>,
        faults: &mut bool,
    ) -> Vec<String> {
        let mut late: Vec<String> = Vec::new();
        for (key, value) in &written.params {
            let pointer = format!("/{}", escape_pointer_step(key));
            if metadata_param_path(value).is_some() {
                // A whole param from the metadata.
                late.push(pointer);
                continue;
            }
            let property = properties.and_then(|p| p.get(key));
            // A param that takes objects may contain a key `from` of its own.
            let takes_objects = property
                .and_then(|p| p.get("type"))
                .is_none_or(|t| t == "object");
            let fault = match explain_invalid_metadata_ref(value, takes_objects) {
                Some(why) => Some((pointer.clone(), why)),
                None => find_nested_metadata_ref(value, &pointer).map(|at| {
                    let why = "only a whole param can come from the metadata: write `PARAM: { from: metadata.NAME }`";
                    (at, why.to_owned())
                }),
            };
            if let Some((at, why)) = fault {
                *faults = true;
                self.report_error(
                    &written.pointer_in_file(&at),
                    "from",
                    format!("{key}: {why}"),
                );
                // Added so that the schema check reports nothing else about this param.
                late.push(pointer);
            }
        }
        late
    }

    /// Returns the params that the author probably means with unknown names, in the params or next to them.
    fn find_meant_params(
        &self,
        eval: &UnwrappedEval<'_>,
        written: &WrittenParams,
        properties: Option<&Map<String, Value>>,
    ) -> Vec<String> {
        let names: Vec<&str> = properties
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        let around = eval.params_pointer.rsplit_once('/');
        let around = around.and_then(|(above, _)| self.cx.doc.value.pointer(above)?.as_object());
        let outer = around.into_iter().flatten().map(|(key, _)| key);
        let foreign = written.params.keys().chain(outer);
        let foreign = foreign.filter_map(|key| find_param_of_foreign_key(eval.eval_type, key));
        let inner = written.params.keys();
        let similar = inner
            .filter(|key| !names.contains(&key.as_str()))
            .filter_map(|key| find_nearest(key, names.iter().copied()));
        foreign.chain(similar).map(str::to_owned).collect()
    }

    fn report_unknown_params(
        &self,
        kind: &EvalTypeSpec,
        written: &WrittenParams,
        properties: Option<&Map<String, Value>>,
    ) -> bool {
        let names: Vec<&str> = properties
            .into_iter()
            .flatten()
            .map(|(k, _)| k.as_str())
            .collect();
        let mut any = false;
        for key in written
            .params
            .keys()
            .filter(|key| !names.contains(&key.as_str()))
        {
            any = true;
            let what = format!("unknown param `{key}` of {}", kind.name);
            let pointer = written.pointer_in_file(&format!("/{}", escape_pointer_step(key)));
            let mut problem = self.cx.doc.error(
                &pointer,
                "unknown-param",
                match (
                    find_param_of_foreign_key(kind, key),
                    find_nearest(key, names.iter().copied()),
                ) {
                    (Some(param), _) => {
                        format!("{what}; promptfoo's `{key}` is `params.{param}` here")
                    }
                    (None, Some(near)) => format!("{what}; did you mean `{near}`?"),
                    (None, None) => what,
                },
            );
            // The key and not the value, because the name is wrong.
            problem.span = Some(self.cx.doc.key_span(&pointer));
            problem = problem.help(if names.is_empty() {
                format!("{} takes no params", kind.name)
            } else {
                let (kind, names) = (kind.name, names.join(", "));
                format!("{kind} takes: {names} (`dicta eval-types {kind}` documents them)")
            });
            self.cx.problems.push(problem);
        }
        any
    }

    /// Reports scores outside of 0 to 1, whatever the type's schema accepts.
    fn report_invalid_bounds(&self, kind: &EvalTypeSpec, written: &WrittenParams) -> bool {
        let bound = |key: &str| {
            // A bound counts only if it is a decision setting of the type.
            let known = kind.decision_params.contains(&key);
            let value = written.params.get(key).filter(|_| known);
            value.and_then(Value::as_f64)
        };
        let mut any = false;
        for key in ["min_score", "max_score"] {
            if let Some(x) = bound(key).filter(|x| !(0.0..=1.0).contains(x)) {
                any = true;
                let message = format!("{key} must be between 0 and 1 (got {x})");
                let pointer = written.pointer_in_file(&format!("/{key}"));
                // The type's schema may already have reported it.
                if !self.cx.problems.has_problem_at(&self.cx.doc.span(&pointer)) {
                    self.report_error(&pointer, "range", message);
                }
            }
        }
        if let (Some(min), Some(max)) = (bound("min_score"), bound("max_score"))
            && min > max
        {
            any = true;
            let message =
                format!("min_score ({min}) is above max_score ({max}): nothing could pass");
            self.report_error(&written.pointer_in_file("/min_score"), "range", message);
        }
        any
    }

    fn compiled(&mut self, kind: &EvalTypeSpec, at: &str) -> Option<CompiledSchema> {
        // One compilation for each type and file: most rubrics use a type several times.
        if let Some(compiled) = self.compiled.get(kind.name) {
            return Some(compiled.clone());
        }
        match CompiledSchema::compile(&kind.schema) {
            Ok(compiled) => {
                self.compiled.insert(kind.name, compiled.clone());
                Some(compiled)
            }
            // A schema of a built-in type always compiles; this is a defect of dicta.
            Err(why) => {
                self.report_error(
                    at,
                    "internal",
                    format!("the schema of type {} is broken: {why}", kind.name),
                );
                None
            }
        }
    }

    fn report_error(&self, pointer: &str, code: &'static str, message: String) {
        self.cx
            .problems
            .error(self.cx.doc.span(pointer), code, message);
    }
}

/// Returns the dotted path of a param that is `{ from: metadata.PATH }`.
pub fn metadata_param_path(value: &Value) -> Option<&str> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let path = map.get("from")?.as_str()?.strip_prefix("metadata.")?;
    // Every step needs a name: `metadata..x` is a typing error.
    path.split('.').all(|step| !step.is_empty()).then_some(path)
}

/// Explains why a param `{ from: … }` is not a reference to the metadata. A param that accepts mappings may have its
/// own key `from`.
fn explain_invalid_metadata_ref(value: &Value, takes_objects: bool) -> Option<String> {
    let map = value.as_object().filter(|map| map.len() == 1)?;
    let written = map.get("from")?.as_str()?;
    if takes_objects && !written.starts_with("metadata") {
        return None;
    }
    let steps: Vec<&str> = written.split('.').filter(|step| !step.is_empty()).collect();
    let path = match steps.as_slice() {
        [] | ["metadata"] => "NAME".to_owned(),
        ["metadata", rest @ ..] => rest.join("."),
        // `meta.x` and similar: the first step is a misspelled `metadata`.
        [first, rest @ ..] if !rest.is_empty() && find_nearest(first, ["metadata"]).is_some() => {
            rest.join(".")
        }
        all => all.join("."),
    };
    Some(format!(
        "`{written}` is not a path into the metadata; write {{ from: metadata.{path} }}"
    ))
}

/// Finds a `{ from: metadata.… }` inside a value, where dicta would take it literally.
fn find_nested_metadata_ref(value: &Value, at: &str) -> Option<String> {
    let below = |step: &str, value: &Value| {
        let at = format!("{at}/{step}");
        match metadata_param_path(value) {
            Some(_) => Some(at),
            None => find_nested_metadata_ref(value, &at),
        }
    };
    match value {
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| below(&index.to_string(), item))
        }
        Value::Object(map) => map
            .iter()
            .find_map(|(key, value)| below(&escape_pointer_step(key), value)),
        _ => None,
    }
}

/// Returns true if a pointer equals another, or is below it.
fn is_within(pointer: &str, ancestor: &str) -> bool {
    pointer
        .strip_prefix(ancestor)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Formats `/patterns/0` as `patterns[0]`; returns `None` for the params themselves.
fn format_param_path(pointer: &str) -> Option<String> {
    let mut name = String::new();
    for step in pointer.split('/').skip(1) {
        // A pointer escapes `/` and `~`; the order matters, because `~01` means `~1`.
        let step = step.replace("~1", "/").replace("~0", "~");
        // A number after a name is an index; a number first is a name.
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

/// Adds the defaults of the schema. A written default and an absent param then have the same digest.
fn add_defaults(params: &mut Map<String, Value>, properties: Option<&Map<String, Value>>) {
    for (key, schema) in properties.into_iter().flatten() {
        // A null default means that the schema has none.
        if let Some(default) = schema.get("default").filter(|d| !d.is_null())
            && !params.contains_key(key)
        {
            params.insert(key.clone(), default.clone());
        }
    }
}

/// Suggests what to write instead of the value at `pointer` of the params. Returns `None` if it is not certain.
fn suggest_fix(schema: &Value, params: &Value, pointer: &str) -> Option<String> {
    let value = params.pointer(pointer)?;
    let (above, key) = pointer.rsplit_once('/')?;
    let outer = schema_at(schema, above)?;
    // The schema does not know the key, so the keys that it knows are the best help.
    let Some(wanted) = schema_at(schema, pointer) else {
        return list_known_keys(outer, key);
    };
    let takes = |kind: &str| match &wanted["type"] {
        Value::String(one) => one == kind,
        Value::Array(several) => several.iter().any(|one| one == kind),
        _ => false,
    };
    // An entry of a list has an index and no name to write.
    let name = key.bytes().all(|b| b.is_ascii_digit());
    let name = if name {
        String::new()
    } else {
        format!("{key}: ")
    };
    let excerpt = match value.to_string() {
        // A long value would hide the suggestion.
        long if long.chars().count() > MAX_SHOWN_CHARS => "…".to_owned(),
        excerpt => excerpt,
    };
    match value {
        Value::Object(_) => None,
        // A mapping instead of something else: no certain fix.
        _ if takes("object") && !takes("string") => Some(describe_mapping(wanted)),
        Value::Array(_) | Value::Null => None,
        // `command` runs without a shell, so nothing would split the text.
        Value::String(text) if key == "command" && takes("array") => {
            let words: Vec<&str> = text.split_whitespace().collect();
            Some(format!("a list: write `command: {words:?}`"))
        }
        _ if takes("array") && !takes("string") => {
            Some(format!("a list: write `{name}[{excerpt}]`"))
        }
        Value::Number(_) | Value::Bool(_) if takes("string") => {
            Some(format!("a text: write `{name}\"{excerpt}\"`"))
        }
        // A number in quotes is a frequent YAML mistake.
        Value::String(text) if takes("number") || takes("integer") => {
            let number: f64 = text.trim().parse().ok()?;
            number
                .is_finite()
                .then(|| format!("without quotes: `{name}{}`", text.trim()))
        }
        Value::String(text) if takes("boolean") => {
            let word = match text.to_lowercase().as_str() {
                // The words that YAML 1.1 reads as booleans.
                "true" | "yes" | "on" => "true",
                "false" | "no" | "off" => "false",
                _ => return None,
            };
            Some(format!("write `{name}{word}`"))
        }
        _ => None,
    }
}

fn describe_mapping(schema: &Value) -> String {
    let keys = schema["properties"].as_object().into_iter().flatten();
    let keys: Vec<&str> = keys.map(|(key, _)| key.as_str()).collect();
    match keys.as_slice() {
        [] => "a mapping: `{ name: value }`".to_owned(),
        keys => format!("a mapping, of: {}", keys.join(", ")),
    }
}

/// Lists the keys of a mapping, the nearest first if one is near.
fn list_known_keys(schema: &Value, key: &str) -> Option<String> {
    let known: Vec<&str> = schema["properties"]
        .as_object()?
        .keys()
        .map(String::as_str)
        .collect();
    let near = find_nearest(key, known.iter().copied());
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Some(format!("{near}known here: {}", known.join(", ")))
}

/// Returns the part of a schema that applies to the value at a pointer.
fn schema_at<'s>(schema: &'s Value, pointer: &str) -> Option<&'s Value> {
    pointer.split('/').skip(1).try_fold(schema, |schema, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        let property = schema["properties"].get(&step);
        let item = || {
            schema
                .get("items")
                .filter(|_| step.parse::<usize>().is_ok())
        };
        let other = || schema.get("additionalProperties");
        // A named property, then an item of a list, then any other property.
        let found = property.or_else(item).or_else(other)?;
        found.is_object().then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn param_mistake_suggests_a_fix() {
        let schema = json!({"properties": {
            "patterns": {"type": "array", "items": {"type": "string"}},
            "max": {"type": "integer"},
            "whole": {"type": "boolean"},
            "free": {},
            "args": {"type": "object"},
            "count": {"type": "object", "properties": {"min": {}, "max": {}}},
            "command": {"type": "array", "items": {"type": "string"}},
            "expected": {"type": "array", "items": {"type": ["string", "object"], "properties": {"tool": {"type": "string"}, "args": {}}}},
        }});
        for (params, pointer, hint_is) in [
            (
                json!({"patterns": "x"}),
                "/patterns",
                Some("a list: write `patterns: [\"x\"]`"),
            ),
            (
                json!({"patterns": [7]}),
                "/patterns/0",
                Some("a text: write `\"7\"`"),
            ),
            (
                json!({"max": " 20"}),
                "/max",
                Some("without quotes: `max: 20`"),
            ),
            (json!({"max": "few"}), "/max", None),
            (
                json!({"whole": "Yes"}),
                "/whole",
                Some("write `whole: true`"),
            ),
            (json!({"whole": "so"}), "/whole", None),
            (
                json!({"expected": [{"tol": "x"}]}),
                "/expected/0/tol",
                Some("did you mean `tool`? known here: tool, args"),
            ),
            (
                json!({"expected": [{"q": 1}]}),
                "/expected/0/q",
                Some("known here: tool, args"),
            ),
            (
                json!({"count": 2}),
                "/count",
                Some("a mapping, of: min, max"),
            ),
            (
                json!({"args": [1]}),
                "/args",
                Some("a mapping: `{ name: value }`"),
            ),
            (
                json!({"command": "python3 a.py"}),
                "/command",
                Some("a list: write `command: [\"python3\", \"a.py\"]`"),
            ),
            (json!({"free": 1}), "/free", None),
            (json!({}), "", None),
        ] {
            assert_eq!(
                suggest_fix(&schema, &params, pointer).as_deref(),
                hint_is,
                "{params}"
            );
        }
    }
}
