//! One eval of a list: its own keys, then its params by its type.

use indexmap::IndexMap;
use serde_json::Value;

use super::load::check_id;
use super::params::ParamsReader;
use super::{Alias, Catalog, Eval, Example, Expanded, KindSpec, Selector, Trigger, digest, lints};
use crate::diag::nearest;
use crate::diag::yaml::{Doc, Fields, Problems};
use crate::model::Outcome;

const TRIGGERS: &[(&str, Trigger)] = &[
    ("every_turn", Trigger::EveryTurn),
    ("on_session_complete", Trigger::OnSessionComplete),
    ("sample_turns", Trigger::SampleTurns),
    ("sample_sessions", Trigger::SampleSessions),
];

const EXPECTATIONS: &[(&str, Outcome)] = &[
    ("pass", Outcome::Pass),
    ("fail", Outcome::Fail),
    ("na", Outcome::NotApplicable),
];

/// PromptKit's default.
const SAMPLE_PERCENTAGE: f64 = 5.0;
/// More repeats than this are a mistake, not a measurement.
const MAX_REPEAT: i64 = 1000;

/// Reads the evals of one file.
pub(super) struct EvalReader<'d> {
    doc: &'d Doc,
    problems: &'d Problems,
    catalog: &'d dyn Catalog,
    params: ParamsReader<'d>,
}

impl<'d> EvalReader<'d> {
    pub(super) fn new(doc: &'d Doc, problems: &'d Problems, catalog: &'d dyn Catalog) -> Self {
        Self {
            doc,
            problems,
            catalog,
            params: ParamsReader::new(doc, problems, catalog),
        }
    }

    /// The eval at a pointer, or those it stands for. None where it has no id or no known type; the problems say why.
    pub(super) fn read(&mut self, at: &str) -> Vec<Eval> {
        let Some(eval) = self.one(at) else {
            return Vec::new();
        };
        let params = format!("{at}/params");
        match self.catalog.expand(&eval.kind, &eval.params) {
            Ok(all) if all.is_empty() => vec![eval],
            Ok(all) => self.expanded(&eval, all, at),
            Err(problem) => {
                let span = self.doc.span(&format!("{params}{}", problem.pointer));
                self.problems.error(span, "param", problem.message);
                Vec::new()
            }
        }
    }

    /// The evals that one stands for.
    fn expanded(&self, eval: &Eval, all: Vec<Expanded>, at: &str) -> Vec<Eval> {
        if !eval.examples.is_empty() {
            let message = format!(
                "examples do not say which of the {} evals they are of that this one stands for",
                all.len()
            );
            let span = self.doc.key_span(&format!("{at}/examples"));
            self.problems.error(span, "examples", message);
            return Vec::new();
        }
        let decides = self.catalog.kind(&eval.kind).map_or(&[][..], |k| k.decides);
        let numbered = all.into_iter().zip(1..);
        numbered
            .map(|(own, number)| {
                let id = format!("{}.{number}", eval.id);
                if let Err(why) = check_id(&id) {
                    let span = self.doc.span(&format!("{at}/id"));
                    let message = format!("the id `{id}` that this eval stands for {why}");
                    self.problems.error(span, "id", message);
                }
                let description = match &*eval.description {
                    "" => own.description,
                    written => format!("{written}: {}", own.description),
                };
                Eval {
                    id,
                    digest: digest::of_eval(
                        &eval.kind,
                        &own.params,
                        decides,
                        eval.trigger,
                        eval.sample_percentage,
                        eval.allow_na,
                        eval.negate,
                    ),
                    description,
                    params: own.params,
                    span: self.doc.span(&format!("{at}/params{}", own.pointer)),
                    ..eval.clone()
                }
            })
            .collect()
    }

    fn one(&mut self, at: &str) -> Option<Eval> {
        let mut fields = Fields::of(self.doc, at, self.problems);
        if !fields.is_mapping() {
            return None;
        }
        let id = Self::id(&mut fields);
        let (kind, alias) = self.kind(&mut fields).unzip();
        let trigger = fields.choice("trigger", TRIGGERS).unwrap_or_default();
        let judge = fields.text("judge");
        let description = fields.text_or_empty("description").unwrap_or_default();
        let enabled = fields.boolean("enabled").unwrap_or(true);
        let sample_percentage = fields
            .number("sample_percentage", "between 0 and 100", |x| {
                (0.0..=100.0).contains(&x)
            })
            .unwrap_or(SAMPLE_PERCENTAGE);
        let repeat = fields.integer("repeat", 1..=MAX_REPEAT);
        let weighted = fields.has("weight") || fields.has("required");
        let weight = fields
            .number("weight", "more than 0", |x| x > 0.0 && x.is_finite())
            .unwrap_or(1.0);
        let required = fields.boolean("required").unwrap_or(false);
        let allow_na = fields.boolean("allow_na").unwrap_or(false);
        let negate = fields.boolean("not").unwrap_or(false);
        let applies_to = Selector::read(&mut fields);
        let allow = lints::read(&mut fields);
        let examples = self.examples(&mut fields);
        let metric = metric(&mut fields);
        fields.value("params");
        match kind {
            Some(kind) if !kind.judged => warn_without_judge(&fields, kind.name),
            Some(kind) if negate => {
                let message = format!(
                    "not: true negates a check; {} is a judge's: turn its criteria round",
                    kind.name
                );
                fields.error("not", "param", message);
            }
            _ => {}
        }
        if fields.has("sample_percentage") && !trigger.samples() {
            fields.warning(
                "sample_percentage",
                "no-effect",
                format!(
                    "sample_percentage has no effect with trigger {}",
                    trigger.as_str()
                ),
            );
        }
        report_later_keys(&mut fields);
        fields.finish();
        let kind = kind?;
        let params = self
            .params
            .read(kind, alias.flatten(), &format!("{at}/params"))?;
        let id = id?;
        Some(Eval {
            digest: digest::of_eval(
                kind.name,
                &params.resolved,
                kind.decides,
                trigger,
                sample_percentage,
                allow_na,
                negate,
            ),
            id,
            kind: kind.name.to_owned(),
            trigger,
            params: params.resolved,
            judge,
            description,
            enabled,
            sample_percentage,
            repeat: repeat.and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
            weight,
            required,
            weighted,
            allow_na,
            applies_to,
            allow,
            examples,
            metric,
            negate,
            decides: params.decides,
            span: self.doc.key_span(at),
        })
    }

    fn id(fields: &mut Fields<'_>) -> Option<String> {
        if !fields.has("id") {
            fields.error_here("missing", "an eval needs an `id`");
        }
        let id = fields.text("id")?;
        if let Err(why) = check_id(&id) {
            fields.error("id", "id", format!("id {why}"));
        }
        Some(id)
    }

    /// The type, and the other name it is written by.
    fn kind(&self, fields: &mut Fields<'_>) -> Option<(&'d KindSpec, Option<&'d Alias>)> {
        if !fields.has("type") {
            fields.error_here("missing", "an eval needs a `type`");
        }
        let name = fields.text("type")?;
        if let Some(kind) = self.catalog.kind(&name) {
            let alias = kind.aliases.iter().find(|alias| alias.name == name);
            return Some((kind, alias));
        }
        let known: Vec<&str> = self.catalog.kinds().iter().map(|kind| kind.name).collect();
        let mut problem = self.doc.error(
            &fields.pointer("type"),
            "unknown-type",
            match nearest(&name, known.iter().copied()) {
                Some(near) => format!("unknown type `{name}`; did you mean `{near}`?"),
                None => format!("unknown type `{name}`"),
            },
        );
        problem = problem.help(format!("known types: {}", known.join(", ")));
        self.problems.push(problem);
        None
    }

    fn examples(&self, fields: &mut Fields<'_>) -> Vec<Example> {
        let mut examples = Vec::new();
        for (at, _) in fields.list("examples").unwrap_or_default() {
            let mut own = Fields::of(self.doc, &at, self.problems);
            if !own.is_mapping() {
                continue;
            }
            for key in ["text", "expect"] {
                if !own.has(key) {
                    own.error_here("missing", format!("an example needs `{key}`"));
                }
            }
            let text = own.text_or_empty("text");
            let expect = own.choice("expect", EXPECTATIONS);
            let why = own.text_or_empty("why").unwrap_or_default();
            own.finish();
            if let (Some(text), Some(expect)) = (text, expect) {
                examples.push(Example {
                    text,
                    expect,
                    why,
                    span: self.doc.key_span(&at),
                });
            }
        }
        examples
    }
}

/// PromptKit's metric is kept as written; that it is a mapping with a name is all that is asked of it.
fn metric(fields: &mut Fields<'_>) -> Option<Value> {
    match fields.value("metric")? {
        metric @ Value::Object(map) if map.get("name").is_some_and(Value::is_string) => {
            Some(metric.clone())
        }
        _ => {
            fields.error("metric", "type", "metric must be a mapping with a `name`");
            None
        }
    }
}

fn warn_without_judge(fields: &Fields<'_>, kind: &str) {
    for key in ["judge", "repeat", "allow_na"] {
        if fields.has(key) {
            fields.warning(
                key,
                "no-effect",
                format!("{key} has no effect: {kind} is decided without a judge"),
            );
        }
    }
}

/// Keys of newer PromptKit versions that would change what is checked: better refused than passed over.
fn report_later_keys(fields: &mut Fields<'_>) {
    for key in ["threshold", "when", "groups", "message"] {
        if fields.has(key) {
            fields.value(key);
            fields.error(
                key,
                "not-yet",
                format!("{key} of an eval is not in this version yet"),
            );
        }
    }
}

/// What [`ParamsReader`] gives.
pub(super) struct Params {
    /// With the type's defaults.
    pub(super) resolved: Value,
    /// As written.
    pub(super) decides: IndexMap<String, Value>,
}
