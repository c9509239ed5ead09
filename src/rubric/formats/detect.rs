//! The detection of a file's format from its keys.

use serde_json::Value;

use super::RubricFormat;

/// The result of detecting a YAML or JSON file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetectedFile {
    /// A rubric in this format.
    Rubric(RubricFormat),
    /// A known file of another tool without a rubric: its name, and what to do with it.
    NotARubric {
        /// The name of the file type, such as `promptfoo results`.
        what: &'static str,
        /// The advice, a sentence.
        help: &'static str,
    },
}

/// Returns the format of a document; `None` if it is not a known one.
pub fn detect_rubric_format(value: &Value) -> Option<DetectedFile> {
    let has_key = |key: &str| value.get(key).is_some();
    let list = |key: &str| value.get(key).is_some_and(Value::is_array);
    let map = |key: &str| value.get(key).is_some_and(Value::is_object);
    let rubric = |format| Some(DetectedFile::Rubric(format));
    // The order matters: from keys that only one tool has to keys that several tools have.
    if let Value::Array(items) = value {
        return detect_bare_list(items);
    }
    // PromptKit files have `kind` and `spec`.
    if let Some(found) = detect_promptkit(value) {
        return Some(found);
    }
    if map("prompts") || has_key("template_engine") || schema_of(value).contains("promptpack") {
        return rubric(RubricFormat::Pack);
    }
    // Checked before other tools' keys, because a file with `evals` is a rubric in dicta's format.
    if has_key("evals") {
        return rubric(RubricFormat::Native);
    }
    if list("testing_criteria") || is_openai_page(value) {
        return rubric(RubricFormat::OpenaiEval);
    }
    // Results of other tools also have keys of their configs, so they come before the configs.
    if let Some(what) = detect_results(value) {
        return Some(what);
    }
    // `scorers:` without a value is null; such a file is still a run config.
    let scorers = map("scorers") || value.get("scorers").is_some_and(Value::is_null);
    if has_key("dataset_config")
        || (scorers && (has_key("orchestrator") || has_key("model_config")))
    {
        return rubric(RubricFormat::EvalbenchRun);
    }
    // promptfoo has `scenarios`, too, so their items decide.
    if list("scenarios")
        && value["scenarios"]
            .as_array()
            .is_some_and(|s| s.iter().any(is_scenario))
    {
        return rubric(RubricFormat::Evalset);
    }
    if has_key("generator") && (has_key("vertex_model") || has_key("base_prompt")) {
        return Some(not_a_rubric(
            "an evalbench model config",
            "name it under `judges:` of dicta.yaml: `house: judges/this.yaml`",
        ));
    }
    // `tests` alone is too general: it needs another key of promptfoo, or a test below.
    let prompts = value.get("prompts").and_then(Value::as_array);
    let has_prompts = prompts.is_some_and(|all| !all.is_empty() && all.iter().all(is_prompt));
    let has_source = has_key("prompts") && (has_key("providers") || has_key("targets"));
    if list("assert")
        || has_key("defaultTest")
        // A config can consist of its prompts, or generate its tests.
        || has_prompts
        || (has_key("redteam") && (has_key("targets") || has_key("providers")))
        || (has_source && !map("prompts"))
        || (has_key("tests") && (has_key("prompts") || has_key("providers") || has_key("targets")))
    {
        return rubric(RubricFormat::Promptfoo);
    }
    if let Value::Object(map) = value
        && map
            .get("tests")
            .and_then(Value::as_array)
            .is_some_and(|tests| tests.iter().any(is_test))
    {
        return rubric(RubricFormat::Promptfoo);
    }
    // Known files without a rubric last, for a helpful message instead of "unknown key".
    if has_key("transcripts") && has_key("rubrics") {
        return Some(not_a_rubric(
            "a dicta workspace",
            "dicta check looks through a whole one",
        ));
    }
    if list("messages") {
        return Some(not_a_rubric(
            "a transcript",
            "list it under `transcripts:` of dicta.yaml",
        ));
    }
    None
}

const fn not_a_rubric(what: &'static str, help: &'static str) -> DetectedFile {
    DetectedFile::NotARubric { what, help }
}

fn schema_of(value: &Value) -> &str {
    value
        .get("$schema")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn detect_promptkit(value: &Value) -> Option<DetectedFile> {
    let kind = value.get("kind").and_then(Value::as_str)?;
    let ours = value
        .get("apiVersion")
        .and_then(Value::as_str)
        .is_some_and(|version| version.starts_with("promptkit"));
    let spec = value.get("spec")?;
    let asserts = |spec: &Value| {
        ["assertions", "conversation_assertions", "turns"]
            .iter()
            .any(|key| spec.get(key).is_some())
    };
    // Kubernetes-style files of other programs also have `kind`, so the version or the assertions decide.
    match kind {
        "PromptConfig" => Some(DetectedFile::Rubric(RubricFormat::PromptConfig)),
        "Scenario" if ours || asserts(spec) => {
            Some(DetectedFile::Rubric(RubricFormat::ArenaScenario))
        }
        "Eval" if ours || asserts(spec) => Some(DetectedFile::Rubric(RubricFormat::ArenaEval)),
        "Arena" if ours => Some(not_a_rubric(
            "a PromptKit Arena config",
            "the scenarios and prompt configs it names hold the checks",
        )),
        "Provider" if ours => Some(not_a_rubric(
            "a PromptKit provider",
            "a judge is written under `judges:` of dicta.yaml",
        )),
        _ if ours => Some(not_a_rubric(
            "a PromptKit file of another kind",
            "checks are in prompt configs, packs, scenarios and evals",
        )),
        _ => None,
    }
}

/// Detects results of other tools: they contain verdicts, not checks.
fn detect_results(value: &Value) -> Option<DetectedFile> {
    let has_key = |key: &str| value.get(key).is_some();
    let inner = value.get("results");
    // promptfoo writes whole results, single rows, or a table.
    let promptfoo = (has_key("evalId") && has_key("results"))
        || (has_key("promptIdx") && has_key("testIdx"))
        || inner.is_some_and(|r| {
            r.get("table").is_some() || (r.get("stats").is_some() && r.get("version").is_some())
        })
        || inner.and_then(Value::as_array).is_some_and(|rows| {
            has_key("stats")
                || (has_key("config") && has_key("prompts"))
                || rows.iter().any(is_promptfoo_result)
        });
    if promptfoo {
        return Some(not_a_rubric(
            "promptfoo results",
            "they hold verdicts; the config they were made with (promptfooconfig.yaml) holds the assertions",
        ));
    }
    let object = value
        .get("object")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if object.starts_with("eval.run") {
        return Some(not_a_rubric(
            "results of an OpenAI eval run",
            "the eval itself holds the `testing_criteria`",
        ));
    }
    None
}

/// Returns true for a result in a summary of promptfoo, which has the `prompts` of a config next to its results.
fn is_promptfoo_result(row: &Value) -> bool {
    let any = |keys: &[&str]| keys.iter().any(|key| row.get(key).is_some());
    any(&["prompt", "promptIdx"]) && any(&["response", "gradingResult", "success", "error"])
}

/// Returns true for a page of evals, as the API lists them.
fn is_openai_page(value: &Value) -> bool {
    let data = value.get("data").and_then(Value::as_array);
    data.is_some_and(|data| {
        data.iter()
            .any(|eval| eval.get("testing_criteria").is_some())
    })
}

/// Returns true for a scenario of an evalset. promptfoo's scenarios have `config` and `tests` instead.
fn is_scenario(value: &Value) -> bool {
    let any = |keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    value.get("id").is_some()
        && any(&[
            "starting_prompt",
            "conversation_plan",
            "expected_trajectory",
            "binary_rubric",
            "max_turns",
            "expected_skills",
        ])
}

/// Returns true for a prompt of promptfoo: a text, or a mapping with one of these keys. Other tools have lists of prompts, too.
fn is_prompt(value: &Value) -> bool {
    let any = |keys: &[&str]| keys.iter().any(|key| value.get(key).is_some());
    value.is_string() || any(&["id", "raw", "label", "file", "display"])
}

fn is_test(value: &Value) -> bool {
    // An assertion set also has `assert`, and has a type.
    value.get("assert").is_some_and(Value::is_array) && (value.get("type").is_none())
}

fn detect_bare_list(items: &[Value]) -> Option<DetectedFile> {
    let all = |is: &dyn Fn(&Value) -> bool| !items.is_empty() && items.iter().all(is);
    let kind = |value: &Value| value.get("type").and_then(Value::as_str).map(str::to_owned);
    // Lists: from the most specific item to the most general.
    if items.iter().any(|item| item.get("nl_prompt").is_some()) {
        return Some(not_a_rubric(
            "an evalbench SQL evalset",
            "its checks run SQL; dicta reads what an agent said and called",
        ));
    }
    if items.iter().any(is_test) {
        return Some(DetectedFile::Rubric(RubricFormat::Promptfoo));
    }
    // A `type` alone could be an eval of dicta; OpenAI's graders always have a name.
    let openai = |value: &Value| {
        kind(value).is_some_and(|kind| super::openai::GRADER_TYPES.contains(&kind.as_str()))
            && value.get("name").is_some()
    };
    if all(&openai) {
        return Some(DetectedFile::Rubric(RubricFormat::OpenaiEval));
    }
    // An eval in dicta's format has an id; an assertion has none.
    // LangChain's messages have types, too, such as `human`.
    let is_message = |value: &Value| {
        ["data", "content", "role", "kwargs"]
            .iter()
            .any(|key| value.get(key).is_some())
    };
    let assertion = |value: &Value| {
        value.get("id").is_none()
            && !is_message(value)
            && (kind(value).is_some_and(|kind| super::promptfoo::is_type(&kind))
                || value.get("$ref").is_some())
    };
    if items.iter().any(assertion) {
        return Some(DetectedFile::Rubric(RubricFormat::Promptfoo));
    }
    None
}
