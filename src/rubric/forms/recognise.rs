//! Which form a file is in, from its keys.

use serde_json::Value;

use super::Form;

/// What a file of YAML or JSON was recognised as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recognised {
    /// A rubric in this form.
    Rubric(Form),
    /// Another tool's file that holds none: what it is, and what to do with it.
    NoRubric {
        /// `promptfoo results`.
        what: &'static str,
        /// A sentence.
        help: &'static str,
    },
}

/// The form of a document; `None` for what no tool we know writes.
pub fn recognise(value: &Value) -> Option<Recognised> {
    let has = |key: &str| value.get(key).is_some();
    let list = |key: &str| value.get(key).is_some_and(Value::is_array);
    let map = |key: &str| value.get(key).is_some_and(Value::is_object);
    let rubric = |form| Some(Recognised::Rubric(form));
    if let Value::Array(items) = value {
        return bare_list(items);
    }
    if let Some(found) = promptkit(value) {
        return Some(found);
    }
    if map("prompts") || has("template_engine") || schema_of(value).contains("promptpack") {
        return rubric(Form::Pack);
    }
    // Before other tools' keys: whoever writes `evals` writes a rubric of ours.
    if has("evals") {
        return rubric(Form::Own);
    }
    if list("testing_criteria") || openai_page(value) {
        return rubric(Form::OpenaiEval);
    }
    if let Some(what) = results(value) {
        return Some(what);
    }
    let scorers = map("scorers") || value.get("scorers").is_some_and(Value::is_null);
    if has("dataset_config") || (scorers && (has("orchestrator") || has("model_config"))) {
        return rubric(Form::EvalbenchRun);
    }
    if list("scenarios")
        && value["scenarios"]
            .as_array()
            .is_some_and(|s| s.iter().any(is_scenario))
    {
        return rubric(Form::Evalset);
    }
    if has("generator") && (has("vertex_model") || has("base_prompt")) {
        return Some(no_rubric(
            "an evalbench model config",
            "name it under `judges:` of dicta.yaml: `house: judges/this.yaml`",
        ));
    }
    if list("assert")
        || has("defaultTest")
        || (has("tests") && (has("prompts") || has("providers") || has("targets")))
    {
        return rubric(Form::Promptfoo);
    }
    if let Value::Object(map) = value
        && map
            .get("tests")
            .and_then(Value::as_array)
            .is_some_and(|tests| tests.iter().any(is_test))
    {
        return rubric(Form::Promptfoo);
    }
    if has("transcripts") && has("rubrics") {
        return Some(no_rubric(
            "a dicta workspace",
            "dicta check looks through a whole one",
        ));
    }
    if list("messages") {
        return Some(no_rubric(
            "a transcript",
            "list it under `transcripts:` of dicta.yaml",
        ));
    }
    None
}

const fn no_rubric(what: &'static str, help: &'static str) -> Recognised {
    Recognised::NoRubric { what, help }
}

fn schema_of(value: &Value) -> &str {
    value
        .get("$schema")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn promptkit(value: &Value) -> Option<Recognised> {
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
    match kind {
        "PromptConfig" => Some(Recognised::Rubric(Form::PromptConfig)),
        "Scenario" if ours || asserts(spec) => Some(Recognised::Rubric(Form::ArenaScenario)),
        "Eval" if ours || asserts(spec) => Some(Recognised::Rubric(Form::ArenaEval)),
        "Arena" if ours => Some(no_rubric(
            "a PromptKit Arena config",
            "the scenarios and prompt configs it names hold the checks",
        )),
        "Provider" if ours => Some(no_rubric(
            "a PromptKit provider",
            "a judge is written under `judges:` of dicta.yaml",
        )),
        _ if ours => Some(no_rubric(
            "a PromptKit file of another kind",
            "checks stand in prompt configs, packs, scenarios and evals",
        )),
        _ => None,
    }
}

/// Results of other tools: verdicts, not what decides them.
fn results(value: &Value) -> Option<Recognised> {
    let has = |key: &str| value.get(key).is_some();
    let inner = value.get("results");
    let promptfoo = (has("evalId") && has("results"))
        || (has("promptIdx") && has("testIdx"))
        || inner.is_some_and(|r| {
            r.get("table").is_some() || (r.get("stats").is_some() && r.get("version").is_some())
        });
    if promptfoo {
        return Some(no_rubric(
            "promptfoo results",
            "they hold verdicts; the config they were made with (promptfooconfig.yaml) holds the assertions",
        ));
    }
    let object = value
        .get("object")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if object.starts_with("eval.run") {
        return Some(no_rubric(
            "results of an OpenAI eval run",
            "the eval itself holds the `testing_criteria`",
        ));
    }
    None
}

/// A page of evals, as the API lists them.
fn openai_page(value: &Value) -> bool {
    let data = value.get("data").and_then(Value::as_array);
    data.is_some_and(|data| {
        data.iter()
            .any(|eval| eval.get("testing_criteria").is_some())
    })
}

/// An evalset's scenario; promptfoo's have `config` and `tests`.
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

fn is_test(value: &Value) -> bool {
    value.get("assert").is_some_and(Value::is_array) && (value.get("type").is_none())
}

fn bare_list(items: &[Value]) -> Option<Recognised> {
    let all = |is: &dyn Fn(&Value) -> bool| !items.is_empty() && items.iter().all(is);
    let kind = |value: &Value| value.get("type").and_then(Value::as_str).map(str::to_owned);
    if items.iter().any(|item| item.get("nl_prompt").is_some()) {
        return Some(no_rubric(
            "an evalbench SQL evalset",
            "its checks run SQL; dicta reads what an agent said and called",
        ));
    }
    if items.iter().any(is_test) {
        return Some(Recognised::Rubric(Form::Promptfoo));
    }
    let openai = |value: &Value| {
        kind(value).is_some_and(|kind| super::openai::TYPES.contains(&kind.as_str()))
            && value.get("name").is_some()
    };
    if all(&openai) {
        return Some(Recognised::Rubric(Form::OpenaiEval));
    }
    // An eval of ours has an id; an assertion has none.
    let assertion = |value: &Value| {
        value.get("id").is_none()
            && (kind(value).is_some_and(|kind| super::promptfoo::is_type(&kind))
                || value.get("$ref").is_some())
    };
    if items.iter().any(assertion) {
        return Some(Recognised::Rubric(Form::Promptfoo));
    }
    None
}
