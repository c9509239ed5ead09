//! The secrets in the settings of other tools' files, such as the keys of promptfoo's providers.
//!
//! Responsible for finding them and for hiding them in snippets. dicta uses none of these settings, but it shows lines of
//! the files and records them.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::{DetectedFile, RubricFormat, detect_rubric_format};
use crate::diag::yaml::YamlDoc;
use crate::diag::{mask_ranges, mask_secrets};
use crate::model::{MIN_UNNAMED_SECRET_LEN, is_secret_key, list_header_secrets, visit_children};

/// The keys whose values are settings of a model or of a server.
const SETTINGS_KEYS: &[&str] = &[HEADERS, "config", "env", "provider", "providers", "targets"];
const HEADERS: &str = "headers";

/// The keys of a test's own data. A key there is content, such as a schema with the property `config`. A resumed run
/// reads the recorded text, so it must have this data.
const CONTENT_KEYS: &[&str] = &["value", "vars"];

/// Returns the byte ranges of the secrets in the settings of another tool's file, sorted. A file in dicta's own format has
/// none.
pub fn find_tool_secrets(doc: &YamlDoc) -> Vec<Range<usize>> {
    if !has_settings(&doc.value) {
        return Vec::new();
    }
    let mut pointers = Vec::new();
    let root = ValuePlace {
        key: "",
        is_named: false,
        is_in_settings: false,
    };
    collect_secrets(&doc.value, root, &mut String::new(), &mut pointers);
    let mut found: Vec<Range<usize>> = pointers.iter().map(|at| doc.span(at).bytes).collect();
    found.sort_by_key(|range| range.start);
    // Aliases of one anchor have one place.
    found.dedup();
    found
}

/// Returns the text of a document with stars in place of the secrets in its settings; `None` if it has none.
pub(in crate::rubric) fn mask_tool_secrets(doc: &YamlDoc) -> Option<Arc<str>> {
    let secrets = find_tool_secrets(doc);
    (!secrets.is_empty()).then(|| mask_ranges(&doc.source, secrets))
}

/// Returns true for a file of another tool that may have settings. The evals of PromptKit are evals of dicta, and a param of
/// theirs may have any name.
fn has_settings(value: &Value) -> bool {
    match detect_rubric_format(value) {
        None => false,
        Some(DetectedFile::NotARubric { .. }) => true,
        Some(DetectedFile::Rubric(format)) => !matches!(
            format,
            RubricFormat::Native | RubricFormat::PromptConfig | RubricFormat::Pack
        ),
    }
}

/// The place of a value in a document.
#[derive(Debug, Clone, Copy)]
struct ValuePlace<'v> {
    /// The key of the nearest mapping.
    key: &'v str,
    /// True if its key, or a key above it, denotes a secret.
    is_named: bool,
    /// True if a key above it has settings.
    is_in_settings: bool,
}

fn collect_secrets(value: &Value, place: ValuePlace<'_>, at: &mut String, found: &mut Vec<String>) {
    // The keys of the file itself are settings, too. Deeper keys may be those of a test.
    let may_name = place.is_in_settings || at.is_empty();
    match value {
        Value::String(text) => {
            // A provider may be an address with a password or a key.
            let holds_secret = || place.is_in_settings && mask_secrets(text) != *text;
            if !text.is_empty() && (place.is_named || holds_secret()) {
                found.push(at.clone());
            }
        }
        // A short number is a count, and not a key.
        Value::Number(number)
            if place.is_named && number.to_string().len() >= MIN_UNNAMED_SECRET_LEN =>
        {
            found.push(at.clone());
        }
        _ => visit_children(value, at, |key, child, at| {
            let Some(key) = key else {
                collect_secrets(child, place, at, found);
                return;
            };
            let is_setting = place.is_in_settings || place.is_named;
            if !is_setting && CONTENT_KEYS.contains(&key) {
                return;
            }
            let text = child.as_str().filter(|_| place.key == HEADERS);
            let is_header = text.is_some_and(|text| !list_header_secrets(key, text).is_empty());
            let inner = ValuePlace {
                key,
                is_named: place.is_named || (may_name && is_secret_key(key)) || is_header,
                is_in_settings: place.is_in_settings || SETTINGS_KEYS.contains(&key),
            };
            collect_secrets(child, inner, at, found);
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::diag::yaml;

    fn mask(text: &str) -> Option<String> {
        let doc = yaml::read_document(&text.into(), Path::new("c.yaml")).expect("YAML");
        mask_tool_secrets(&doc).map(|masked| masked.to_string())
    }

    #[test]
    fn keys_of_providers_are_masked_and_assertions_are_not() {
        let config = "\
prompts: [x]
providers:
  - id: http://h.example/?api_key=hush1
    config: { apiKey: hush2, headers: { X-Tenant: hush-hush-3, Accept: a/b }, temperature: 0 }
env: { OPENAI_API_KEY: hush4 }
tests:
  - vars: { token: word }
    assert:
      - { type: contains, value: 'token: word', provider: { id: a, config: { apiKey: hush5 } } }
";
        let masked = mask(config).expect("it has secrets");
        assert_eq!(masked.len(), config.len(), "places stay valid");
        assert!(!masked.contains("hush"), "{masked}");
        for kept in [
            "token: word }",
            "'token: word'",
            "temperature: 0",
            "Accept: a/b",
        ] {
            assert!(masked.contains(kept), "{kept}: {masked}");
        }
    }

    #[test]
    fn data_of_a_test_with_the_names_of_settings_stays() {
        let config = "\
prompts: [x]
providers: [{ id: a, config: { value: { apiKey: hush }, vars: { token: hush } } }]
tests:
  - vars: { config: { token: word }, env: { PASSWORD: '123456789' } }
    assert:
      - { type: is-json, value: { properties: { headers: { properties: { token: { const: word } } } } } }
      - { type: equals, value: { config: { api_key: word } }, provider: { config: { apiKey: hush } } }
";
        let masked = mask(config).expect("it has secrets");
        assert_eq!(masked, config.replace("hush", "****"));
    }

    #[test]
    fn literal_key_of_a_model_config_is_masked() {
        let masked = mask("generator: gcp_vertex_gemini\nbase_prompt: p\napi_key: hush\n");
        let masked = masked.expect("it has a secret");
        assert!(
            masked.ends_with("base_prompt: p\napi_key: ****\n"),
            "{masked}"
        );
    }

    #[test]
    fn rubric_of_dicta_has_no_settings() {
        let own = "evals:\n  - { id: a, type: contains, params: { patterns: [x], config: { token: abc } } }\n";
        assert_eq!(mask(own), None);
    }
}
