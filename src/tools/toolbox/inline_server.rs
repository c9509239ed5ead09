//! A server declared in a judge's `tools:`: `- mcp: {command: …, allow: [read_file]}`.
//!
//! A recording contains the judge's settings as written. A secret must therefore come from the environment, as
//! `${NAME}`; a literal secret is refused.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;

use super::env_placeholders::{SubstitutedFile, UnsetVariable, substitute_env};
use super::secrets::FoundSecret;
use super::toolbox_reader::ToolboxCx;
use super::{Toolbox, kind_lookup, secrets, source_reach};
use crate::diag::has_errors;
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, MovedPointer, YamlDoc};
use crate::model::escape_pointer_step;
use crate::tools::source::{SourceCx, ToolSource};

/// The name of such an entry, which is also the kind of the source.
pub const INLINE_SERVER: &str = "mcp";
/// The setting that belongs to the judge and not to the server.
pub const ALLOW_SETTING: &str = "allow";

impl Toolbox {
    /// Returns the server of an entry with these settings.
    pub fn inline_server(
        &self,
        settings: &IndexMap<String, Value>,
    ) -> Option<&Arc<dyn ToolSource>> {
        self.inline_servers.get(&server_key(settings))
    }

    /// Reads the entry whose settings are at a JSON pointer, once for all judges with equal settings.
    pub fn read_inline_server(
        &mut self,
        doc: &YamlDoc,
        at: &str,
        settings: &IndexMap<String, Value>,
        problems: &DiagnosticCollector,
        cx: &ToolboxCx<'_>,
    ) {
        let key = server_key(settings);
        // Several judges may list the same server; it is started once.
        if self.inline_servers.contains_key(&key) {
            return;
        }
        let map = settings.iter().filter(|(name, _)| *name != ALLOW_SETTING);
        let written = Value::Object(map.map(|(k, v)| (k.clone(), v.clone())).collect());
        let mut filling = SettingsSubstitution {
            base_pointer: at.to_owned(),
            cx,
            doc,
            problems,
            moved_pointers: vec![MovedPointer::new("", at)],
            substituted_files: Vec::new(),
            secrets: Vec::new(),
        };
        // dicta.yaml is shared and recorded, so a secret in it would spread.
        for FoundSecret { pointer, .. } in secrets::find_secrets(&written) {
            let text = written.pointer(&pointer).and_then(Value::as_str);
            if text.is_none_or(|text| !text.contains("${")) {
                let message = "a secret does not belong in this file: write ${NAME}, a variable that holds it";
                problems.error(doc.key_span(&format!("{at}{pointer}")), "secret", message);
            }
        }
        let filled = filling.substitute_value(&written, "");
        let SettingsSubstitution {
            moved_pointers: pairs,
            substituted_files: fillings,
            secrets: env_secrets,
            ..
        } = filling;
        self.secrets.extend(env_secrets);
        // The substituted document keeps the places of dicta.yaml for messages.
        let made = doc.with_value(filled, pairs);
        // Substituted values are secrets by their position, whatever the names of their variables are.
        for found in secrets::find_secrets(&made.value) {
            self.secrets.extend(found.secrets);
        }
        for filled in &fillings {
            self.secrets.extend(filled.secrets().map(str::to_owned));
        }
        let server_problems = DiagnosticCollector::from_doc(&made);
        let mut fields = MappingDecoder::new(&made, "", &server_problems);
        let source = kind_lookup::find_source_kind(INLINE_SERVER)
            .map_err(|why| fields.error_at_mapping("kind", why))
            .ok()
            .and_then(|kind| kind.read)
            .and_then(|read| {
                let cx = SourceCx {
                    name: INLINE_SERVER,
                    folder: cx.root,
                    resolver: &cx.resolver,
                    secrets: &self.secrets,
                };
                let source = read(&mut fields, &cx);
                // Reports the unknown keys.
                fields.finish();
                source
            });
        let found = server_problems.into_sorted();
        let is_good = !has_errors(&found);
        for problem in found {
            // A message may quote a value that came from the environment.
            problems.push(
                fillings
                    .iter()
                    .fold(problem, |p, filled| filled.redact_diagnostic(p)),
            );
        }
        if let Some(source) = source.filter(|_| is_good) {
            self.secrets.extend(source.secrets());
            self.inline_servers.insert(key.clone(), source);
            source_reach::add_inline_reach(self, &key, &fillings);
        }
    }
}

/// Returns the key of a server: its settings without those of the judge.
pub(super) fn server_key(settings: &IndexMap<String, Value>) -> String {
    let server_settings = settings.iter().filter(|(name, _)| *name != ALLOW_SETTING);
    let server_settings: serde_json::Map<String, Value> = server_settings
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    Value::Object(server_settings).to_string()
}

/// Settings under substitution from the environment, with the places of their parts.
struct SettingsSubstitution<'a> {
    base_pointer: String,
    cx: &'a ToolboxCx<'a>,
    doc: &'a YamlDoc,
    problems: &'a DiagnosticCollector,
    moved_pointers: Vec<MovedPointer>,
    substituted_files: Vec<SubstitutedFile>,
    /// The values of the environment that may be secrets.
    secrets: Vec<String>,
}

impl SettingsSubstitution<'_> {
    fn substitute_value(&mut self, value: &Value, pointer: &str) -> Value {
        let home = format!("{}{pointer}", self.base_pointer);
        self.moved_pointers.push(MovedPointer::new(pointer, &home));
        match value {
            Value::Object(map) => {
                let filled = map.iter().map(|(key, inner)| {
                    let pointer = format!("{pointer}/{}", escape_pointer_step(key));
                    (key.clone(), self.substitute_value(inner, &pointer))
                });
                Value::Object(filled.collect())
            }
            Value::Array(items) => {
                let filled = items.iter().enumerate();
                let filled = filled
                    .map(|(i, inner)| self.substitute_value(inner, &format!("{pointer}/{i}")));
                Value::Array(filled.collect())
            }
            Value::String(text) if text.contains("${") => {
                let (filled, unset) = substitute_env(&Arc::from(text.as_str()), self.cx.env);
                for UnsetVariable { name, .. } in unset {
                    let message =
                        format!("${{{name}}} is not set in the environment, and has no default");
                    self.problems
                        .error(self.doc.span(&home), "variable", message);
                }
                let value = filled.text.to_string();
                let whole = 0..text.len();
                for part in filled.possible_secrets_in(&whole) {
                    self.secrets
                        .extend(secrets::find_env_secrets(pointer, &value, part));
                }
                self.substituted_files.push(filled);
                value.into()
            }
            other => other.clone(),
        }
    }
}
