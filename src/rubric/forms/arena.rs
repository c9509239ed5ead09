//! PromptKit Arena: the assertions of scenarios and of offline evals. Types and params are PromptKit's, so ours.
//!
//! An assertion of one turn among several is about that turn alone, which no trigger of ours says: it is told. A
//! scenario's assertions are for its own transcripts, so they are bound by its id.

use std::rc::Rc;

use serde_json::{Value, json};

use super::Form;
use super::at::At;
use super::make::{Lost, Maker, NewEval, globs};
use crate::diag::yaml::YamlDoc;
use crate::rubric::{Rubric, Selector};

/// Keys of an assertion that are read here.
const KNOWN: &[&str] = &[
    "type",
    "params",
    "message",
    "when",
    "id",
    "description",
    "pass_threshold",
];

pub(super) fn read(doc: &Rc<YamlDoc>, form: Form, rubric: &mut Rubric, maker: &mut Maker<'_>) {
    let root = At::root(doc);
    let spec = root.child("spec");
    let name = spec.text("id").or_else(|| {
        root.value()
            .pointer("/metadata/name")
            .and_then(Value::as_str)
    });
    if let Some(text) = spec.text("description") {
        text.clone_into(&mut rubric.description);
    }
    if let Some(name) = name {
        rubric.applies_to = bound_to(name, &spec);
    }
    let turns = spec.child("turns").items();
    if form == Form::ArenaEval {
        for at in spec.child("assertions").items() {
            assertion(&at, None, maker);
        }
        for turn in &turns {
            match turn.get("all_turns") {
                Some(all) => each(&all, Some("every_turn"), maker),
                None => one_turn(turn, maker),
            }
        }
    } else {
        let asking = |turn: &&At| turn.text("role").is_none_or(|role| role == "user");
        let questions = turns.iter().filter(asking).count();
        for turn in &turns {
            // The only question's answer is the session's output.
            if questions == 1 {
                each(turn, None, maker);
            } else {
                one_turn(turn, maker);
            }
        }
    }
    for at in spec.child("conversation_assertions").items() {
        // Some versions nest a list under a mapping, as turns do.
        match at.get("assertions") {
            Some(_) => each(&at, None, maker),
            None => assertion(&at, None, maker),
        }
    }
}

/// The scenario's own transcripts: named by its id, or by its recording.
fn bound_to(name: &str, spec: &At) -> Selector {
    let mut ids = globs(&[name.to_owned()]);
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
        ids.extend([stem.clone(), format!("{stem}:*")]);
    }
    Selector {
        ids,
        ..Selector::default()
    }
}

fn each(holder: &At, trigger: Option<&str>, maker: &mut Maker<'_>) {
    for at in holder.child("assertions").items() {
        assertion(&at, trigger, maker);
    }
}

fn one_turn(turn: &At, maker: &mut Maker<'_>) {
    for at in turn.child("assertions").items() {
        let called = at.text("type").unwrap_or("assertion").to_owned();
        let why = "it is about one turn alone";
        let instead = "with `trigger: every_turn` it holds for each answer, without for the last one and the session";
        maker.lose(&at, &called, Lost::new(why, instead));
    }
}

fn assertion(at: &At, trigger: Option<&str>, maker: &mut Maker<'_>) {
    let Some(kind) = at.text("type").map(str::to_owned) else {
        let lost = Lost::new("it has no `type`", "");
        return maker.lose(at, "assertion", lost);
    };
    let mut eval = NewEval::new(&kind, &kind, at);
    let params = at.child("params");
    let mut message = at.get("message").or_else(|| at.get("description"));
    for (key, value) in params.entries() {
        match key.as_str() {
            // Old files have the message among the params.
            "message" => message = message.or(Some(value)),
            "judge" => {
                let why = "it names a judge of the Arena config";
                let instead = "name one of dicta.yaml's with `judge:` of the workspace";
                maker.lose(&value, "judge", Lost::new(why, instead));
            }
            _ => eval = eval.param(&key, value.value().clone(), &value),
        }
    }
    if let Some(message) = &message
        && let Some(text) = message.value().as_str()
    {
        eval = eval.field("description", text, message);
    }
    if let Some(trigger) = trigger {
        eval = eval.field("trigger", json!(trigger), at);
    }
    if let Some(when) = at.get("when") {
        eval = eval.field("when", when.value().clone(), &when);
    }
    if let Some(share) = at.get("pass_threshold") {
        let why =
            "it is the share of repeated trials that must pass, and a transcript is one trial";
        let instead = "the rates over transcripts are in the run's summary";
        maker.lose(&share, "pass_threshold", Lost::new(why, instead));
    }
    for (key, value) in at.entries() {
        if !KNOWN.contains(&key.as_str()) {
            maker.lose(
                &value,
                &key,
                Lost::new("no eval of ours has such a key", ""),
            );
        }
    }
    let id = at.text("id").unwrap_or(&kind).to_owned();
    maker.add(&id, eval);
}
