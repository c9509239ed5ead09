//! The reader of PromptKit's prompt configs and packs. Their `evals:` lists are already in dicta's format.

use std::collections::HashMap;

use serde_json::Value;

use crate::diag::yaml::{DiagnosticCollector, YamlDoc};
use crate::rubric::Rubric;
use crate::rubric::check_id;
use crate::rubric::eval::EvalReader;
use crate::rubric::load::read_evals;

/// Reads `spec.evals` of a prompt config.
pub(super) fn read_prompt_config(
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
    evals: &mut EvalReader<'_>,
    rubric: &mut Rubric,
) {
    rubric.evals = read_evals(doc, problems, evals, "/spec/evals");
}

/// Reads a pack and ignores all keys except the evals. Evals of pack and prompts merge by id: a prompt's eval
/// replaces the pack's in place. Evals that only a prompt has come last.
pub(super) fn read_pack(
    doc: &YamlDoc,
    problems: &DiagnosticCollector,
    evals: &mut EvalReader<'_>,
    rubric: &mut Rubric,
) {
    if let Some(id) = doc
        .value
        .get("id")
        .and_then(Value::as_str)
        // A pack's id is for machines and can contain characters that dicta does not allow.
        .filter(|id| check_id(id).is_ok())
    {
        id.clone_into(&mut rubric.id);
    }
    if let Some(text) = doc.value.get("description").and_then(Value::as_str) {
        text.clone_into(&mut rubric.description);
    }
    // The evals of the pack first, then those of its prompts.
    if doc.value.get("evals").is_some() {
        rubric.evals = read_evals(doc, problems, evals, "/evals");
    }
    let mut from_prompts: HashMap<String, String> = HashMap::new();
    let prompts = doc.value.get("prompts").and_then(Value::as_object);
    let mut found = doc.value.get("evals").is_some();
    for (name, prompt) in prompts.into_iter().flatten() {
        if prompt.get("evals").is_none() {
            continue;
        }
        found = true;
        let at = format!("/prompts/{}/evals", crate::model::escape_pointer_step(name));
        // Two prompts with the same id: neither replaces the other silently.
        for eval in read_evals(doc, problems, evals, &at) {
            if let Some(other) = from_prompts.insert(eval.id.clone(), name.clone())
                && other != *name
            {
                let message = format!(
                    "the prompts `{other}` and `{name}` both have an eval `{}`",
                    eval.id
                );
                problems.error(eval.span.clone(), "duplicate-id", message);
                continue;
            }
            // A prompt's eval replaces the pack's eval with the same id.
            match rubric.evals.iter_mut().find(|e| e.id == eval.id) {
                Some(of_pack) => *of_pack = eval,
                None => rubric.evals.push(eval),
            }
        }
    }
    if !found {
        problems.push(doc.error("", "no-evals", "this pack has no `evals`"));
    }
}
