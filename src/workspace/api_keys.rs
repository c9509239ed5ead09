//! The API keys of judges.
//!
//! Responsible for reading keys from environment variables and key files, and for hiding keys in texts that are
//! shown. Does not send keys.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use thiserror::Error;

use super::files::{self, TextFileError};
use super::{CONFIG_FILE, Env, google};
use crate::diag::yaml::{self, YamlDoc, YamlLimits};
use crate::diag::{SECRET_KEYS, mask_ranges};
use crate::event::REDACTED;
use crate::model::{
    ApiKeySource, JudgeConfig, escape_pointer_step, find_body_secrets, list_header_secrets,
};
use crate::rubric::find_tool_secrets;
use crate::tools::is_variable_name;

/// The maximum size of a key file, in bytes. A key is one line, so a larger file is not a key file.
const MAX_KEY_FILE: u64 = 64 << 10;

/// The reason why a judge has no key. The text does not contain the key.
#[derive(Debug, Error)]
pub enum ApiKeyError {
    /// The environment variable is not set.
    #[error("judge `{judge}` needs a key: set {variable}, or api_key_file")]
    Missing {
        /// The name of the judge.
        judge: String,
        /// The environment variable.
        variable: String,
    },
    /// dicta cannot read the key file.
    #[error("judge `{judge}` needs a key: its api_key_file {} {source}", .path.display())]
    File {
        /// The name of the judge.
        judge: String,
        /// The key file.
        path: PathBuf,
        /// The problem.
        source: TextFileError,
    },
    /// Other users can read the key file.
    #[error(
        "judge `{judge}` needs a key: its api_key_file {} can be read by others (mode {mode:03o}): chmod 600 it",
        .path.display()
    )]
    OpenToOthers {
        /// The name of the judge.
        judge: String,
        /// The key file.
        path: PathBuf,
        /// The permissions of the file.
        mode: u32,
    },
    /// The key file is empty.
    #[error("judge `{judge}` needs a key: its api_key_file {} is empty", .path.display())]
    EmptyFile {
        /// The name of the judge.
        judge: String,
        /// The key file.
        path: PathBuf,
    },
    /// The text cannot be a key.
    #[error("judge `{judge}`: {from} does not hold a key (blank, or with control characters)")]
    Invalid {
        /// The name of the judge.
        judge: String,
        /// The environment variable or the key file.
        from: String,
    },
    /// The judge has no usable Google credentials.
    #[error(transparent)]
    Google(#[from] google::CredentialsLoadError),
}

/// Returns a judge's key from its environment variable or its file with mode 0600.
///
/// Google credentials are not a key, so the result is `None`. The function still checks that they exist and can be
/// read.
pub fn resolve_key(judge: &JudgeConfig, env: &Env) -> Result<Option<String>, ApiKeyError> {
    match &judge.key {
        ApiKeySource::None => Ok(None),
        ApiKeySource::Google(_) => {
            google::load_google_credentials(judge, env)?;
            Ok(None)
        }
        ApiKeySource::EnvIfSet(name) => env
            .get(name)
            .map(|key| clean_key(key, name, judge))
            .transpose(),
        ApiKeySource::Env(name) => match env.get(name) {
            Some(key) => clean_key(key, name, judge).map(Some),
            None => Err(ApiKeyError::Missing {
                judge: judge.name.clone(),
                variable: name.clone(),
            }),
        },
        ApiKeySource::File(path) => read_key_file(judge, path).map(Some),
    }
}

fn read_key_file(judge: &JudgeConfig, path: &Path) -> Result<String, ApiKeyError> {
    use std::os::unix::fs::PermissionsExt as _;
    let unreadable = |source| ApiKeyError::File {
        judge: judge.name.clone(),
        path: path.to_owned(),
        source,
    };
    let meta = path
        .metadata()
        .map_err(|error| unreadable(TextFileError::Io(error)))?;
    // The mask keeps the permission bits; the rest of the mode is the kind of the file.
    let mode = meta.permissions().mode() & 0o777;
    // Security: any right of the group or of others exposes the key, so dicta refuses the file like ssh does.
    if mode & 0o077 != 0 {
        return Err(ApiKeyError::OpenToOthers {
            judge: judge.name.clone(),
            path: path.to_owned(),
            mode,
        });
    }
    let text = files::read_text(path, MAX_KEY_FILE).map_err(unreadable)?;
    if text.trim().is_empty() {
        return Err(ApiKeyError::EmptyFile {
            judge: judge.name.clone(),
            path: path.to_owned(),
        });
    }
    clean_key(&text, &path.display().to_string(), judge)
}

/// Returns the key without surrounding blanks. The error reports characters that an HTTP header cannot contain; it
/// never shows the key.
fn clean_key(key: &str, from: &str, judge: &JudgeConfig) -> Result<String, ApiKeyError> {
    let key = key.trim();
    // A line break inside a key could add a header to the request.
    if key.is_empty() || key.chars().any(|c| c.is_control() || !c.is_ascii()) {
        return Err(ApiKeyError::Invalid {
            judge: judge.name.clone(),
            from: from.to_owned(),
        });
    }
    Ok(key.to_owned())
}

/// Replaces the values of judges' headers and of keys that hold secrets with stars, byte for byte.
pub(super) fn mask_secrets(doc: &YamlDoc, source: &str) -> Arc<str> {
    let mut secret: Vec<String> = Vec::new();
    let judges = doc.value.get("judges").and_then(Value::as_object);
    for (name, judge) in judges.into_iter().flatten() {
        let at = format!("/judges/{}", escape_pointer_step(name));
        // A judge that is a path to a model config has no keys here.
        let Some(judge) = judge.as_object() else {
            continue;
        };
        secret.extend(
            judge
                .keys()
                .filter(|key| SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str()))
                .map(|key| format!("{at}/{}", escape_pointer_step(key))),
        );
        if judge
            .get("api_key_env")
            .and_then(Value::as_str)
            .is_some_and(|text| !is_variable_name(text))
        {
            secret.push(format!("{at}/api_key_env"));
        }
        secret.extend(find_setting_secrets(judge, &at, |_, _| true));
    }
    mask_ranges(source, secret.iter().map(|pointer| doc.span(pointer).bytes))
}

/// Returns the JSON pointers of a judge's headers that `is_secret` selects, and of the secrets in its request body.
fn find_setting_secrets(
    judge: &serde_json::Map<String, Value>,
    at: &str,
    is_secret: impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    let headers = judge.get("headers").and_then(Value::as_object);
    // A header often holds a key, and its name does not show which one does.
    let headers = headers.into_iter().flatten().filter(|(name, value)| {
        let text = value.as_str().unwrap_or_default();
        is_secret(name, text)
    });
    let mut found: Vec<String> = headers
        .map(|(name, _)| format!("{at}/headers/{}", escape_pointer_step(name)))
        .collect();
    if let Some(body) = judge.get("extra_body") {
        let secrets = find_body_secrets(body).into_iter();
        found.extend(secrets.map(|pointer| format!("{at}/extra_body{pointer}")));
    }
    found
}

/// Returns the text of dicta.yaml without the headers and body secrets of judges, however the YAML spells them.
pub(super) fn mask_config_for_recording(text: &Arc<str>) -> Arc<str> {
    // A text that can't be parsed has no known secrets; the run's redactor checks it as well.
    let Ok(doc) = yaml::read_document(text, Path::new(CONFIG_FILE)) else {
        return Arc::clone(text);
    };
    let mut ranges = Vec::new();
    let judges = doc.value.get("judges").and_then(Value::as_object);
    for (name, judge) in judges.into_iter().flatten() {
        let at = format!("/judges/{}", escape_pointer_step(name));
        let secret = |name: &str, value: &str| !list_header_secrets(name, value).is_empty();
        let found = judge
            .as_object()
            .map(|judge| find_setting_secrets(judge, &at, secret));
        ranges.extend(
            found
                .into_iter()
                .flatten()
                .map(|pointer| doc.span(&pointer).bytes),
        );
    }
    replace_for_recording(text, ranges)
}

/// Returns the text of another tool's file, such as a config of promptfoo, without the secrets of its settings.
pub(super) fn mask_tool_file_for_recording(text: &Arc<str>, path: &Path) -> Arc<str> {
    match yaml::read_limited_document(text, path, YamlLimits::GENERATED) {
        Ok(doc) => replace_for_recording(text, find_tool_secrets(&doc)),
        Err(_) => Arc::clone(text),
    }
}

fn replace_for_recording(text: &Arc<str>, mut ranges: Vec<Range<usize>>) -> Arc<str> {
    if ranges.is_empty() {
        return Arc::clone(text);
    }
    ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
    // Two judges may share an anchor, which has one place.
    ranges.dedup();
    let mut masked = text.to_string();
    for range in ranges {
        let Some(written) = masked.get(range.clone()) else {
            continue;
        };
        // The place of a block of text ends at the next key. The indentation of that key stays, so that a resumed run
        // can read the text again.
        let end = range.start + written.trim_end().len();
        masked.replace_range(range.start..end, &format!("'{REDACTED}'"));
    }
    masked.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProviderKind;
    use std::os::unix::fs::PermissionsExt as _;

    fn judge(key: ApiKeySource) -> JudgeConfig {
        JudgeConfig {
            key,
            ..JudgeConfig::new("gemini", ProviderKind::Gemini)
        }
    }

    fn env(value: &str) -> Env {
        Env([("K".to_owned(), value.to_owned())].into())
    }

    fn read_key(judge: &JudgeConfig, env: &Env) -> Result<Option<String>, String> {
        resolve_key(judge, env).map_err(|error| error.to_string())
    }

    #[test]
    fn key_in_place_of_a_variable_is_refused_and_not_shown() {
        for name in [
            "OPENAI_API_KEY",
            "_key2",
            "azureOpenaiKey4",
            "MY_OPENAI_GPT4_EASTUS2_KEY",
        ] {
            assert!(is_variable_name(name), "{name}");
        }
        for key in [
            "AIzaSyD4711hushhush",
            "gsk_4711hushhushhushhushhushhushhush",
            "hf_hushhushhushhushhushhushhush4711",
            "4711hushhushhush",
            "sk-hush-4711",
        ] {
            assert!(!is_variable_name(key), "{key}");
            let text = format!("judges:\n  a:\n    api_key_env: {key}\n    model: m\n");
            let doc = yaml::read_document(&Arc::from(&*text), Path::new(CONFIG_FILE));
            let masked = mask_secrets(&doc.expect("YAML"), &text);
            assert!(!masked.contains("hush"), "{masked}");
            assert!(masked.contains("model: m"), "{masked}");
        }
    }

    #[test]
    fn api_key_comes_from_the_configured_source() {
        let needs = judge(ApiKeySource::Env("K".into()));
        let may = judge(ApiKeySource::EnvIfSet("K".into()));
        assert_eq!(read_key(&judge(ApiKeySource::None), &env("x")), Ok(None));
        assert_eq!(read_key(&needs, &env(" x\n")), Ok(Some("x".into())));
        assert_eq!(read_key(&may, &env("x")), Ok(Some("x".into())));
        assert_eq!(read_key(&may, &env("")), Ok(None));
        assert_eq!(
            read_key(&needs, &Env::default()),
            Err("judge `gemini` needs a key: set K, or api_key_file".into())
        );
        let broken = read_key(&needs, &env("sk-\u{1b}secret")).expect_err("no header");
        assert!(!broken.contains("secret"), "{broken}");
    }

    #[test]
    fn the_environment_has_no_empty_variables() {
        assert_eq!(env("").get("K"), None);
    }

    #[test]
    fn api_key_file_must_be_private() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("key");
        let file = judge(ApiKeySource::File(path.clone()));
        let error = read_key(&file, &Env::default()).expect_err("missing");
        assert!(error.ends_with("key does not exist"), "{error}");
        std::fs::write(&path, "sk-1\n").expect("a file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("mode");
        let error = read_key(&file, &Env::default()).expect_err("readable by others");
        assert!(error.ends_with("(mode 644): chmod 600 it"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("mode");
        assert_eq!(read_key(&file, &Env::default()), Ok(Some("sk-1".into())));
    }

    #[test]
    fn recorded_config_has_no_headers_and_body_secrets_in_any_spelling() {
        let text = r#"transcripts: [t.jsonl]
judges:
  one:
    provider: openai
    headers: {X-Portal: "hush-\x41-hush", Accept: application/json, X-B: hush-b-hush}
    extra_body:
      api_key: >-
        hush-c
        hush
      user: me
  two: judges/x.yaml
"#;
        let masked = mask_config_for_recording(&Arc::from(text));
        assert!(!masked.contains("hush"), "{masked}");
        let doc = yaml::read_document(&masked, Path::new(CONFIG_FILE)).expect("valid YAML");
        let one = &doc.value["judges"]["one"];
        assert_eq!(one["headers"]["Accept"], "application/json");
        assert_eq!(one["headers"]["X-Portal"], REDACTED);
        assert_eq!(one["extra_body"]["user"], "me");
        assert_eq!(doc.value["judges"]["two"], "judges/x.yaml");
        assert_eq!(mask_config_for_recording(&masked), masked);
    }
}
