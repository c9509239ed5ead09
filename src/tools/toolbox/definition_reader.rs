//! The reader of one tool of a file: the keys that all kinds share. The tool's source reads the other keys.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::file_formats::ToolboxEntry;
use super::{INLINE_SERVER, ToolOrigin, kind_lookup};
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, describe_value};
use crate::diag::{Diagnostic, Severity, find_nearest};
use crate::model::{SUBMIT_VERDICT, ToolDeclaration};
use crate::schema::CompiledSchema;
use crate::tools::auth::AuthService;
use crate::tools::params::{ParamsCx, REQUEST_PARAM_KEYS, ToolParams};
use crate::tools::source::{SourceProvided, ToolDefinition, ToolInput, ToolSource};

/// The length of the longest tool name that every provider accepts.
const MAX_NAME: usize = 64;
/// The upper limit of `maxCalls`.
const MAX_CALLS: i64 = 1000;

/// The keys of the toolbox that restrict or fill calls in ways that dicta does not support. A tool that uses one is
/// refused, because dicta would ignore a restriction.
const UNSUPPORTED_TOOL_KEYS: &[&str] = &[
    "scopesRequired",
    "secure",
    "embeddedBy",
    "clientAuth",
    "useClientOAuth",
];

/// The context in which tools are read.
pub(super) struct DefineToolCx<'a> {
    /// The sources by name; `Err` describes the problem of a broken one.
    pub(super) sources: &'a IndexMap<String, Result<Arc<dyn ToolSource>, String>>,
    pub(super) auth: &'a IndexMap<String, Arc<AuthService>>,
}

/// Reads a tool. Its errors are also in [`ToolDefinition::errors`].
pub(super) fn define_tool(
    entry: &ToolboxEntry,
    around: &DefineToolCx<'_>,
) -> (ToolDefinition, ToolOrigin, Vec<Diagnostic>) {
    let problems = DiagnosticCollector::from_doc(&entry.doc);
    let mut reading = ToolDefinitionReader {
        entry,
        cx: around,
        fields: MappingDecoder::new(&entry.doc, "", &problems),
        problems: &problems,
        outside_errors: Vec::new(),
        has_read_all_keys: false,
    };
    let (mut definition, mut about) = reading.read_definition();
    let ToolDefinitionReader {
        fields,
        outside_errors: mut broken,
        has_read_all_keys: is_whole,
        ..
    } = reading;
    // After an earlier error the kind's keys are unread, so an unknown key would be a false report.
    if is_whole {
        fields.finish();
    }
    let found = problems.into_sorted();
    let errors = found.iter().filter(|d| d.severity == Severity::Error);
    definition.errors = errors.map(ToString::to_string).collect();
    definition.errors.append(&mut broken);
    let lints = found.iter().filter(|d| d.severity != Severity::Error);
    about.lints = lints.map(ToString::to_string).collect();
    (definition, about, found)
}

struct ToolDefinitionReader<'a> {
    entry: &'a ToolboxEntry,
    cx: &'a DefineToolCx<'a>,
    fields: MappingDecoder<'a>,
    problems: &'a DiagnosticCollector,
    /// Errors of other entries that affect this tool; they are reported there.
    outside_errors: Vec<String>,
    /// True if the kind has read its keys, so that any other key is unknown.
    has_read_all_keys: bool,
}

impl ToolDefinitionReader<'_> {
    fn read_definition(&mut self) -> (ToolDefinition, ToolOrigin) {
        // Every check runs, so that one pass reports all problems of the tool.
        self.check_name();
        // The kind decides which source the tool needs and which keys it has.
        let kind = self.fields.text("type");
        let name = &self.entry.name;
        if kind.is_none() && !self.fields.has("type") {
            let message = format!("the tool `{name}` needs a `kind` (`type` in the flat form)");
            self.fields.error_at_mapping("missing", message);
        }
        let known = kind.as_deref().and_then(|kind| {
            let known = kind_lookup::find_tool_kind(kind);
            known
                .map_err(|why| self.fields.error("type", "kind", why))
                .ok()
        });
        let (source_name, source) = self.read_source(known.is_some());
        // The server describes its own tools, so the file may omit the description.
        let is_served = kind.as_deref() == Some(INLINE_SERVER)
            || source.as_ref().is_some_and(|s| s.has_own_tools());
        let says = |keys: &[&str]| keys.iter().any(|key| self.fields.has(key));
        let left = SourceProvided {
            description: is_served && !says(&["description"]),
            input: is_served && !says(&["parameters", "templateParameters", "inputSchema"]),
        };
        if !is_served && !self.fields.has("description") {
            let message =
                format!("the tool `{name}` needs a `description`: it is what a model goes by");
            self.fields.error_at_mapping("missing", message);
        }
        let description = self.fields.text("description").unwrap_or_default();
        // The kinds of the tool and of its source must match, or the source would misread the keys.
        if let (Some(kind), Some(known), Some(source)) = (&kind, known, &source)
            && known.source != source.kind()
        {
            let message = format!(
                "a tool of kind `{kind}` works on a source of kind `{}`, and `{source_name}` is of kind `{}`",
                known.source,
                source.kind()
            );
            self.fields.error("source", "kind", message);
        }
        let fits = known
            .zip(source.as_ref())
            .is_some_and(|(k, s)| k.source == s.kind());
        let source = source.filter(|_| fits);
        // The arguments: parameters or a schema.
        let auth: Vec<&str> = self.cx.auth.keys().map(String::as_str).collect();
        let cx = ParamsCx {
            auth: &auth,
            writable: source.as_ref().is_some_and(|source| source.is_writable()),
        };
        let of_request = kind.as_deref() == Some("http");
        let (mut input, mut schema) = self.read_input(of_request, &cx);
        // Until the source is asked, any object is accepted.
        if left.input {
            schema = serde_json::json!({"type": "object"});
            input = CompiledSchema::compile(&schema).map_or(input, ToolInput::Schema);
        }
        let auth_required = self.read_auth_required();
        // The services of claims count as needed, even if `authRequired` does not list them.
        let mut services = auth_required.clone();
        collect_claim_services(&self.entry.doc.value, &mut services);
        // A tool that may change data is never reused, whatever `cache` says.
        let hint = self.read_annotations();
        let mut definition = ToolDefinition {
            decl: ToolDeclaration {
                name: name.clone(),
                description,
                schema,
            },
            auth_required,
            from_source: left,
            prerequisites: self.read_texts("after"),
            cache: self.read_cache() && hint,
            coerce: self.fields.boolean("coerce").unwrap_or(false),
            max_calls: self
                .fields
                // Before `finish`, which would otherwise report these keys as unknown.
                .integer("maxCalls", 1..=MAX_CALLS)
                .and_then(|n| u32::try_from(n).ok()),
            ..ToolDefinition::default()
        };
        self.refuse_unsupported();
        if let Some(source) = source {
            // The source reads last, because it takes the remaining keys.
            definition.executor = source.read_tool(name, &mut self.fields, &input);
            self.has_read_all_keys = true;
        }
        definition.input = input;
        (
            definition,
            ToolOrigin {
                source: source_name,
                services,
                lints: Vec::new(),
            },
        )
    }

    fn check_name(&self) {
        let name = &self.entry.name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let report = |message: String| {
            self.problems
                .error(self.entry.name_span.clone(), "id", message);
        };
        // The strictest rule among the providers.
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            report(format!(
                "`{name}` is not a valid tool name: use letters, digits, `_` and `-`, at most {MAX_NAME}"
            ));
        }
        // The judge's own functions must stay unambiguous.
        if name == SUBMIT_VERDICT || crate::tools::is_built_in_tool(name) {
            report(format!("`{name}` is built in; give this tool another name"));
        }
    }

    /// Reads the source's name, and finds the source if it can be used.
    fn read_source(&mut self, needed: bool) -> (String, Option<Arc<dyn ToolSource>>) {
        let Some(name) = self.fields.text("source") else {
            if needed && !self.fields.has("source") {
                let message = format!("the tool `{}` needs a `source`", self.entry.name);
                self.fields.error_at_mapping("missing", message);
            }
            return (String::new(), None);
        };
        let source = match self.cx.sources.get(&name) {
            Some(Ok(source)) => Some(Arc::clone(source)),
            Some(Err(why)) => {
                // The source's error is reported at the source, so the tool only refers to it.
                self.outside_errors
                    .push(format!("its source `{name}` cannot be used: {why}"));
                None
            }
            None => {
                let known: Vec<&str> = self.cx.sources.keys().map(String::as_str).collect();
                let message = explain_unknown_name("source", &name, &known);
                self.fields.error("source", "unknown-source", message);
                None
            }
        };
        (name, source)
    }

    /// Reads the parameters. `of_request` is true if the parts of a request have parameters too.
    fn read_input(&mut self, of_request: bool, cx: &ParamsCx<'_>) -> (ToolInput, Value) {
        let further: &[&'static str] = if of_request { &REQUEST_PARAM_KEYS } else { &[] };
        let params = ToolParams::read_groups(&mut self.fields, further, cx);
        let Some(written) = self.fields.value("inputSchema") else {
            let schema = params.schema();
            return (ToolInput::Parameters(params), schema);
        };
        if let Some(key) = ["parameters", "templateParameters"]
            .into_iter()
            .find(|key| self.fields.has(key))
        {
            let message = format!("a tool has either `{key}` or `inputSchema`");
            self.fields.error("inputSchema", "value", message);
        }
        if self.fields.has("coerce") {
            let why = "coerce does nothing here: arguments under an inputSchema are handed on as they are written";
            self.fields.warning("coerce", "no-coerce", why);
        }
        match compile_input_schema(written) {
            Ok(compiled) => (ToolInput::Schema(compiled), written.clone()),
            Err(why) => {
                self.fields
                    .error("inputSchema", "schema", format!("inputSchema: {why}"));
                (ToolInput::default(), serde_json::json!({"type": "object"}))
            }
        }
    }

    fn read_texts(&mut self, key: &'static str) -> Vec<String> {
        let texts = self.fields.texts(key).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text).collect()
    }

    fn read_auth_required(&mut self) -> Vec<String> {
        let services = self.read_texts("authRequired");
        let known: Vec<&str> = self.cx.auth.keys().map(String::as_str).collect();
        for (index, service) in services.iter().enumerate() {
            if !known.contains(&service.as_str()) {
                let at = format!("authRequired/{index}");
                let message = explain_unknown_name("auth service", service, &known);
                self.fields.error_at(&at, "unknown-auth", message);
            }
        }
        services
    }

    /// Reads the toolbox's annotations. Returns false if they forbid the reuse of responses.
    fn read_annotations(&mut self) -> bool {
        let Some(mut hints) = self.fields.mapping("annotations") else {
            return true;
        };
        hints.text_or_empty("title");
        for hint in ["destructiveHint", "idempotentHint", "openWorldHint"] {
            hints.boolean(hint);
        }
        let read_only = hints.boolean("readOnlyHint");
        hints.finish();
        // A missing hint does not forbid reuse; the source decides then.
        read_only != Some(false)
    }

    /// Reads `cache`. YAML's `on` and `off` are texts here.
    fn read_cache(&mut self) -> bool {
        match self.fields.value("cache") {
            None => true,
            Some(Value::Bool(on)) => *on,
            Some(Value::String(word)) if word == "on" || word == "off" => word == "on",
            Some(other) => {
                let message = format!("cache must be on or off (got {})", describe_value(other));
                self.fields.error("cache", "type", message);
                true
            }
        }
    }

    fn refuse_unsupported(&mut self) {
        for key in UNSUPPORTED_TOOL_KEYS.iter().copied() {
            if !self.fields.has(key) {
                continue;
            }
            self.fields.ignore_key(key);
            // An empty list restricts nothing.
            let asks = !matches!(self.entry.doc.value.get(key), Some(Value::Array(list)) if list.is_empty());
            if asks {
                let message = format!(
                    "`{key}` is not supported by dicta, and the tool is not run without it"
                );
                self.fields.error_at_key(key, "unsupported", message);
            }
        }
    }
}

fn compile_input_schema(written: &Value) -> Result<CompiledSchema, String> {
    // Providers require an object at the top of a tool's schema.
    match written.get("type") {
        Some(Value::String(kind)) if kind == "object" => {
            CompiledSchema::compile(written).map_err(|error| error.to_string())
        }
        _ if written.is_object() => Err("arguments are an object: say `type: object`".to_owned()),
        other => Err(format!(
            "must be a JSON Schema (got {})",
            describe_value(other.unwrap_or(written))
        )),
    }
}

/// Collects the auth services whose claims fill a parameter.
fn collect_claim_services(tool: &Value, services: &mut Vec<String>) {
    let params = tool.as_object().into_iter().flatten();
    // A property named like a key in `inputSchema` is not a parameter.
    let params = params.filter(|(key, _)| *key != "inputSchema");
    let params = params.filter_map(|(_, list)| list.as_array()).flatten();
    for param in params {
        for key in ["authServices", "authSources"] {
            let named = param
                .get(key)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for name in named.filter_map(|service| service.get("name")?.as_str()) {
                if !services.iter().any(|known| known == name) {
                    services.push(name.to_owned());
                }
            }
        }
    }
}

/// Formats `unknown source `x`; did you mean `y`?`
pub(super) fn explain_unknown_name(what: &str, written: &str, known: &[&str]) -> String {
    match find_nearest(written, known.iter().copied()) {
        Some(near) => format!("unknown {what} `{written}`; did you mean `{near}`?"),
        None if known.is_empty() => format!("unknown {what} `{written}`; there is none"),
        None => format!("unknown {what} `{written}`; known: {}", known.join(", ")),
    }
}
