//! The reader of PromptKit Arena: the assertions of scenarios and of offline evals. Types and params are PromptKit's,
//! which dicta shares.
//!
//! An assertion on one turn among several does not carry over, because no trigger selects one turn. The reader
//! reports it. A scenario's assertions apply only to its own transcripts, by the scenario's id.

use std::rc::Rc;

use serde_json::{Value, json};

use super::RubricFormat;
use super::conversion::{ConversionError, ConvertedEval, EvalConverter, literal_globs};
use super::doc_location::DocLocation;
use crate::diag::yaml::YamlDoc;
use crate::rubric::{Rubric, Selector};

/// The keys of an assertion that this reader reads.
const KNOWN_KEYS: &[&str] = &[
    "type",
    "params",
    "message",
    "when",
    "id",
    "description",
    "pass_threshold",
];

pub(super) fn read(
    doc: &Rc<YamlDoc>,
    format: RubricFormat,
    rubric: &mut Rubric,
    converter: &mut EvalConverter<'_>,
) {
    let root = DocLocation::root(doc);
    let spec = root.child("spec");
    // Scenarios have `spec.id`; configs in the Kubernetes style have `metadata.name`.
    let name = spec.text("id").or_else(|| {
        root.value()
            .pointer("/metadata/name")
            .and_then(Value::as_str)
    });
    if let Some(text) = spec.text("description") {
        text.clone_into(&mut rubric.description);
    }
    if let Some(name) = name {
        rubric.applies_to = scenario_selector(name, &spec);
    }
    let turns = spec.child("turns").items();
    // An offline eval has its assertions in a list of its own; a scenario has them in its turns.
    if format == RubricFormat::ArenaEval {
        for at in spec.child("assertions").items() {
            convert_assertion(&at, None, converter);
        }
        for turn in &turns {
            match turn.get("all_turns") {
                Some(all) => convert_assertions(&all, Some("every_turn"), converter),
                None => report_turn_assertions(turn, converter),
            }
        }
    } else {
        // A turn without a role is a question of the user.
        let asking = |turn: &&DocLocation| turn.text("role").is_none_or(|role| role == "user");
        let questions = turns.iter().filter(asking).count();
        for turn in &turns {
            // The answer to a single question is the output of the session.
            if questions == 1 {
                convert_assertions(turn, None, converter);
            } else {
                report_turn_assertions(turn, converter);
            }
        }
    }
    for at in spec.child("conversation_assertions").items() {
        // Some versions nest a list under a mapping, as turns do.
        match at.get("assertions") {
            Some(_) => convert_assertions(&at, None, converter),
            None => convert_assertion(&at, None, converter),
        }
    }
}

/// Returns the selector of the scenario's own transcripts, which are named by its id or its recording.
fn scenario_selector(name: &str, spec: &DocLocation) -> Selector {
    // Globs: the id itself, then the recordings.
    let mut ids = literal_globs(&[name.to_owned()]);
    let recording = spec
        .value()
        .pointer("/recording/path")
        .and_then(Value::as_str);
    let file = recording.and_then(|path| path.rsplit('/').next());
    if let Some(stem) = file
        .and_then(|file| file.rsplit_once('.'))
        .map(|(stem, _)| stem)
    {
        let stem = globset::escape(stem);
        // A file with several transcripts numbers them: `stem:1`.
        ids.extend([stem.clone(), format!("{stem}:*")]);
    }
    Selector {
        ids,
        ..Selector::default()
    }
}

fn convert_assertions(
    holder: &DocLocation,
    trigger: Option<&str>,
    converter: &mut EvalConverter<'_>,
) {
    for at in holder.child("assertions").items() {
        convert_assertion(&at, trigger, converter);
    }
}

fn report_turn_assertions(turn: &DocLocation, converter: &mut EvalConverter<'_>) {
    for at in turn.child("assertions").items() {
        let source_name = at.text("type").unwrap_or("assertion").to_owned();
        let why = "it is about one turn alone";
        let instead = "with `trigger: every_turn` it holds for each answer, without for the last one and the session";
        converter.report_error(&at, &source_name, ConversionError::new(why, instead));
    }
}

fn convert_assertion(at: &DocLocation, trigger: Option<&str>, converter: &mut EvalConverter<'_>) {
    let Some(kind) = at.text("type").map(str::to_owned) else {
        let error = ConversionError::new("it has no `type`", "");
        return converter.report_error(at, "assertion", error);
    };
    let mut eval = ConvertedEval::new(&kind, &kind, at);
    let params = at.child("params");
    // dicta shows one text for people; `message` has priority.
    let mut message = at.get("message").or_else(|| at.get("description"));
    for (key, value) in params.entries() {
        match key.as_str() {
            // Old files have the message among the params.
            "message" => message = message.or(Some(value)),
            // The judge of an Arena config is unknown to dicta.
            "judge" => {
                let why = "it names a judge of the Arena config";
                let instead = "name one of dicta.yaml's with `judge:` of the workspace";
                converter.report_error(&value, "judge", ConversionError::new(why, instead));
            }
            _ => eval = eval.with_param(&key, value.value().clone(), &value),
        }
    }
    if let Some(message) = &message
        && let Some(text) = message.value().as_str()
    {
        eval = eval.with_field("description", text, message);
    }
    if let Some(trigger) = trigger {
        eval = eval.with_field("trigger", json!(trigger), at);
    }
    if let Some(when) = at.get("when") {
        eval = eval.with_field("when", when.value().clone(), &when);
    }
    if let Some(share) = at.get("pass_threshold") {
        let why =
            "it is the share of repeated trials that must pass, and a transcript is one trial";
        let instead = "the rates over transcripts are in the run's summary";
        converter.report_error(&share, "pass_threshold", ConversionError::new(why, instead));
    }
    // Unknown keys are reported, because nothing is dropped silently.
    for (key, value) in at.entries() {
        if !KNOWN_KEYS.contains(&key.as_str()) {
            converter.report_error(
                &value,
                &key,
                ConversionError::new("dicta's evals have no such key", ""),
            );
        }
    }
    // Assertions rarely have an id, so the type is the id, with a number if it repeats.
    let id = at.text("id").unwrap_or(&kind).to_owned();
    converter.add(&id, eval);
}
