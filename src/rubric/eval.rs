//! The reader of one eval: its own keys, then its params by its type.

use serde_json::{Value, json};

use super::allowed_lints::allowed_lints_schema;
use super::example::examples_schema;
use super::ids::check_id;
use super::other_tools::find_param_of_foreign_key;
use super::params::ParamsReader;
use super::refs::REF_KEY;
use super::trigger::TRIGGERS;
use super::when::when_schema;
use super::wrapper::{read_threshold, threshold_schema};
use super::{
    Eval, EvalTypeAlias, EvalTypeSpec, RubricCx, Selector, SubEval, Trigger, WhenCondition,
    allowed_lints, digest, panel,
};
use crate::diag::yaml::{
    ConfigKey, MappingDecoder, any_text_schema, choice_names, text_list_schema, text_schema,
};
use crate::model::{EvalWhole, PAIRWISE_EVAL_TYPE, compares_pairs};

/// The default of `sample_percentage`, from PromptKit.
const SAMPLE_PERCENTAGE: u8 = 5;
/// The maximum of `repeat`. A larger number is more likely an error than a measurement.
const MAX_REPEAT: i64 = 1000;

/// The keys of an eval.
#[rustfmt::skip]
pub(super) const EVAL_KEYS: &[ConfigKey] = &[
    ConfigKey::new("id", "The id of the eval, unique within the rubric.", text_schema),
    ConfigKey::new(REF_KEY, "Another eval, FILE#EVAL-ID or #EVAL-ID, whose keys this eval takes unless it writes its own.", |doc| {
        json!({"type": "string", "pattern": "#.", "description": doc})
    }),
    ConfigKey::new("type", "The eval type; `dicta eval-types` lists them.", |doc| json!({"enum": [], "description": doc})),
    ConfigKey::new("trigger", "The rule for when the eval runs.", |doc| {
        json!({"enum": choice_names(TRIGGERS), "default": Trigger::default().as_str(), "description": doc})
    }),
    ConfigKey::new("params", "The settings of the eval, as its type defines them.", |doc| {
        json!({"type": ["object", "null"], "description": doc})
    }),
    ConfigKey::new("judge", "The judge; by default the judge of the rubric.", text_schema),
    ConfigKey::new("jury", "The jury of the eval.", |doc| json!({"$ref": "#/$defs/jury", "description": doc})),
    ConfigKey::new("cascade", "The cascade of the eval.", |doc| json!({"$ref": "#/$defs/cascade", "description": doc})),
    ConfigKey::new("description", "A text for people.", any_text_schema),
    ConfigKey::new("message", "A text that dicta puts before the reason of a failure.", text_schema),
    ConfigKey::new("groups", "Names to choose evals by: --where group:NAME.", text_list_schema),
    ConfigKey::new("when", "Conditions that must all hold before the eval runs; otherwise dicta skips it.", when_schema),
    ConfigKey::new("not", "Whether the eval passes if its check fails. Not for judged evals.", |doc| {
        json!({"type": "boolean", "default": false, "description": doc})
    }),
    ConfigKey::new("threshold", "Bounds of the score, like min_score and max_score in params.", threshold_schema),
    ConfigKey::new("enabled", "Whether the eval runs; false: dicta skips its cells.", |doc| {
        json!({"type": "boolean", "default": true, "description": doc})
    }),
    ConfigKey::new("sample_percentage", "The share that the sampling triggers choose, in percent.", |doc| {
        json!({"type": "number", "minimum": 0, "maximum": 100, "default": SAMPLE_PERCENTAGE, "description": doc})
    }),
    ConfigKey::new("repeat", "How often a judge decides each cell. The majority decides; a tie fails.", |doc| {
        json!({"type": "integer", "minimum": 1, "maximum": MAX_REPEAT, "default": 1, "description": doc})
    }),
    ConfigKey::new("weight", "The factor of the eval in the rubric score.", |doc| {
        json!({"type": "number", "exclusiveMinimum": 0, "default": 1, "description": doc})
    }),
    ConfigKey::new("required", "Whether the rubric fails if the eval fails.", |doc| {
        json!({"type": "boolean", "default": false, "description": doc})
    }),
    ConfigKey::new("allow_na", "Whether the judge may answer \"not applicable\".", |doc| {
        json!({"type": "boolean", "default": false, "description": doc})
    }),
    ConfigKey::new("applies_to", "The transcripts that the eval is for, among those of the rubric.", |doc| {
        json!({"$ref": "#/$defs/selector", "description": doc})
    }),
    ConfigKey::new("allow", "Warnings of `dicta check` that dicta doesn't report for this eval.", allowed_lints_schema),
    ConfigKey::new("examples", "Texts or transcripts with the verdict that the eval must give.", examples_schema),
    ConfigKey::new("reference", "An eval of this rubric that code decides and that asks the same question: its verdicts serve as labels in `dicta agree`.", text_schema),
    ConfigKey::new("metric", "PromptKit's metric, which dicta keeps as written.", |doc| {
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "description": doc})
    }),
];

/// Reads the evals of one file.
pub(super) struct EvalReader<'d> {
    pub(super) cx: RubricCx<'d>,
    params: ParamsReader<'d>,
}

impl<'d> EvalReader<'d> {
    pub(super) fn new(cx: RubricCx<'d>) -> Self {
        Self {
            cx,
            params: ParamsReader::new(cx),
        }
    }

    /// Reads the eval at a pointer, or the evals that replace it. Returns nothing and reports problems if it has no
    /// id or no known type.
    pub(super) fn read(&mut self, at: &str) -> Vec<Eval> {
        // The reader reports the problems; here `None` only means that there is no eval.
        let Some(eval) = self.read_eval(at) else {
            return Vec::new();
        };
        let params = format!("{at}/params");
        match self.cx.catalog.expand_params(&eval.eval_type, &eval.params) {
            Ok(all) if all.is_empty() => vec![eval],
            Ok(all) => self.build_sub_evals(&eval, all, at),
            Err(problem) => {
                let span = self.cx.doc.span(&format!("{params}{}", problem.pointer));
                self.cx.problems.error(span, "param", problem.message);
                Vec::new()
            }
        }
    }

    /// Builds the evals that replace one.
    fn build_sub_evals(&self, eval: &Eval, all: Vec<SubEval>, at: &str) -> Vec<Eval> {
        if !eval.examples.is_empty() {
            let message = format!(
                "examples do not name one of the {} evals that replace this one",
                all.len()
            );
            let span = self.cx.doc.key_span(&format!("{at}/examples"));
            self.cx.problems.error(span, "examples", message);
            return Vec::new();
        }
        // The type is known at this point; an unknown one has no decision params.
        let kind = self.cx.catalog.eval_type(&eval.eval_type);
        let decides = kind.map_or(&[][..], |kind| kind.decision_params);
        let numbered = all.into_iter().zip(1..);
        numbered
            .map(|(sub_eval, number)| {
                let id = format!("{}.{number}", eval.id);
                // A suffix can make a valid id too long.
                if let Err(why) = check_id(&id) {
                    let span = self.cx.doc.span(&format!("{at}/id"));
                    let message = format!("the id `{id}` of an eval that replaces this one {why}");
                    self.cx.problems.error(span, "id", message);
                }
                let description = match &*eval.description {
                    "" => sub_eval.description,
                    written => format!("{written}: {}", sub_eval.description),
                };
                Eval {
                    id,
                    part_of: Some(EvalWhole {
                        id: eval.id.clone(),
                        question: eval.question.clone(),
                    }),
                    question: kind.map_or_else(
                        || eval.question.clone(),
                        |kind| {
                            digest::digest_question(
                                kind,
                                &sub_eval.params,
                                eval.trigger,
                                eval.negate,
                            )
                        },
                    ),
                    // A digest of its own, because each part has other params.
                    digest: digest::digest_eval(
                        &eval.eval_type,
                        &sub_eval.params,
                        decides,
                        eval.trigger,
                        eval.sample_percentage,
                        eval.allow_na,
                        eval.negate,
                        eval.when.as_ref(),
                    ),
                    description,
                    params: sub_eval.params,
                    span: self
                        .cx
                        .doc
                        .span(&format!("{at}/params{}", sub_eval.pointer)),
                    // The other keys, such as weight and judge, apply to each part.
                    ..eval.clone()
                }
            })
            .collect()
    }

    fn read_eval(&mut self, at: &str) -> Option<Eval> {
        let mut fields =
            MappingDecoder::new(self.cx.doc, at, self.cx.problems).accepting(EVAL_KEYS);
        if !fields.is_mapping() || fields.value(REF_KEY).is_some() {
            // `refs` has already reported a reference that it could not resolve.
            return None;
        }
        // Read all keys first, so that all problems of the eval are reported at once.
        let id = Self::read_id(&mut fields);
        let inner = self
            .read_type(&mut fields)
            .and_then(|(kind, alias)| self.cx.unwrap_eval(kind, alias, at));
        let kind = inner.as_ref().map(|inner| inner.eval_type);
        let trigger = fields.choice("trigger", TRIGGERS).unwrap_or_default();
        let judge = fields.text("judge");
        let panel = panel::read(&mut fields);
        let mut description = fields.text_or_empty("description").unwrap_or_default();
        let message = fields.text("message").unwrap_or_default();
        let groups = read_groups(&mut fields);
        let when = WhenCondition::read(&mut fields);
        let limits = read_threshold(&mut fields);
        let enabled = fields.boolean("enabled").unwrap_or(true);
        let sample_percentage = fields
            .number("sample_percentage", "between 0 and 100", |x| {
                (0.0..=100.0).contains(&x)
            })
            .unwrap_or(f64::from(SAMPLE_PERCENTAGE));
        let repeat = fields.integer("repeat", 1..=MAX_REPEAT);
        // `weighted` records whether the author set one of them, because the defaults cannot tell.
        let weighted = fields.has("weight") || fields.has("required");
        let weight = fields
            .number("weight", "more than 0", |x| x > 0.0 && x.is_finite())
            .unwrap_or(1.0);
        let required = fields.boolean("required").unwrap_or(false);
        let allow_na = fields.boolean("allow_na").unwrap_or(false);
        let negate = fields.boolean("not").unwrap_or(false);
        let applies_to = Selector::read(&mut fields);
        let allow = allowed_lints::read_allowed_lints(&mut fields);
        let examples = self.cx.read_examples(&mut fields);
        let metric = read_metric(&mut fields);
        let reference = fields.text("reference");
        // `params` is a known key; `ParamsReader` reads it below.
        fields.value("params");
        // Report keys that have no effect or contradict the type.
        match kind {
            Some(kind) if !kind.judged => warn_without_judge(&fields, kind.name),
            Some(kind) if negate => {
                let message = format!(
                    "not: true negates a check, and a judge decides {}: write criteria that state the opposite",
                    kind.name
                );
                fields.error("not", "param", message);
            }
            _ => {}
        }
        if kind.is_some_and(|kind| compares_pairs(kind.name)) {
            refuse_keys_of_comparison(&fields, trigger);
        }
        if fields.has("sample_percentage") && !trigger.is_sampled() {
            fields.warning(
                "sample_percentage",
                "no-effect",
                format!(
                    "sample_percentage has no effect with trigger {}",
                    trigger.as_str()
                ),
            );
        }
        // These refuse keys with a better message and mark them as known, so they come before `finish`.
        refuse_pass_threshold(&mut fields);
        if let Some(kind) = kind {
            refuse_params_outside(&mut fields, kind);
        }
        fields.finish();
        // From here on only a complete eval continues.
        let mut inner = inner?;
        // A wrapper's bounds, then those of `threshold`.
        inner.bounds.extend(limits);
        if let Some(note) = &inner.note {
            let blank = if description.is_empty() { "" } else { " " };
            description = format!("{description}{blank}({note})");
        }
        let kind = inner.eval_type;
        let params = self.params.read(&inner)?;
        // The id last: an eval without an id still gets its params checked.
        let id = id?;
        Some(Eval {
            question: digest::digest_question(kind, &params.resolved, trigger, negate),
            part_of: None,
            digest: digest::digest_eval(
                kind.name,
                &params.resolved,
                kind.decision_params,
                trigger,
                sample_percentage,
                allow_na,
                negate,
                when.as_ref(),
            ),
            id,
            eval_type: kind.name.to_owned(),
            trigger,
            params: params.resolved,
            judge,
            panel,
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
            reference,
            negate,
            needs_text_output: false,
            when,
            groups,
            message,
            decision_settings: params.decision_settings,
            span: self.cx.doc.key_span(at),
        })
    }

    fn read_id(fields: &mut MappingDecoder<'_>) -> Option<String> {
        if !fields.has("id") {
            fields.error_at_mapping("missing", "an eval needs an `id`");
        }
        let id = fields.text("id")?;
        if let Err(why) = check_id(&id) {
            fields.error("id", "id", format!("id {why}"));
        }
        Some(id)
    }

    /// Reads the type, and the alias if the file uses one.
    fn read_type(
        &self,
        fields: &mut MappingDecoder<'_>,
    ) -> Option<(&'d EvalTypeSpec, Option<&'d EvalTypeAlias>)> {
        if !fields.has("type") {
            fields.error_at_mapping("missing", "an eval needs a `type`");
        }
        let name = fields.text("type")?;
        self.cx.find_type(&name, &fields.pointer("type"))
    }
}

/// Reads PromptKit's metric, which dicta keeps as written. It must be a mapping with a name.
fn read_metric(fields: &mut MappingDecoder<'_>) -> Option<Value> {
    match fields.value("metric")? {
        // A metric with a name is kept exactly as written.
        metric @ Value::Object(map) if map.get("name").is_some_and(Value::is_string) => {
            Some(metric.clone())
        }
        _ => {
            fields.error("metric", "type", "metric must be a mapping with a `name`");
            None
        }
    }
}

fn warn_without_judge(fields: &MappingDecoder<'_>, kind: &str) {
    // Keys about judges have no effect on a check: only a warning, because the eval still works.
    for key in [
        "judge",
        "jury",
        "cascade",
        "repeat",
        "allow_na",
        "reference",
    ] {
        if fields.has(key) {
            fields.warning(
                key,
                "no-effect",
                format!("{key} has no effect: {kind} is decided without a judge"),
            );
        }
    }
}

/// Refuses keys that have no meaning if a judge compares the transcripts of a pair.
fn refuse_keys_of_comparison(fields: &MappingDecoder<'_>, trigger: Trigger) {
    if trigger.is_per_turn() {
        let message = format!(
            "{PAIRWISE_EVAL_TYPE} compares whole transcripts, so its trigger is on_session_complete or sample_sessions"
        );
        fields.error("trigger", "value", message);
    }
    if fields.has("examples") {
        let message = format!(
            "an example is one answer, and {PAIRWISE_EVAL_TYPE} compares two: leave `examples` out"
        );
        fields.error("examples", "examples", message);
    }
}

/// Reads the names for the selection of evals.
fn read_groups(fields: &mut MappingDecoder<'_>) -> Vec<String> {
    let mut groups = Vec::new();
    // Invalid names are reported, duplicates are dropped.
    for (group, _) in fields.texts("groups").unwrap_or_default() {
        if let Err(why) = check_id(&group) {
            fields.error("groups", "id", format!("a group {why}"));
        } else if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Refuses params that the author wrote next to `params` instead of in it.
fn refuse_params_outside(fields: &mut MappingDecoder<'_>, kind: &EvalTypeSpec) {
    // Only unknown keys: a param may have the name of a key.
    for key in fields.unknown_keys() {
        let is_param = kind.schema["properties"].get(key).is_some()
            || kind.param_aliases.iter().any(|(other, _)| *other == key);
        if is_param {
            let message = format!(
                "`{key}` is a param of {}: write it under `params`",
                kind.name
            );
            fields.error_at_key(key, "unknown-key", message);
            // Reported here with a better message, so `finish` must not report it again.
            fields.ignore_key(key);
            continue;
        }
        // The keys of promptfoo's assertions.
        let here = match key {
            "provider" => Some("judge".to_owned()),
            _ => find_param_of_foreign_key(kind, key).map(|param| format!("params.{param}")),
        };
        if let Some(here) = here {
            let message = format!("unknown key `{key}`; promptfoo's `{key}` is `{here}` here");
            fields.error_at_key(key, "unknown-key", message);
            fields.ignore_key(key);
        }
    }
}

/// Refuses PromptKit's share of trials that must pass, because a recorded transcript is a single trial.
fn refuse_pass_threshold(fields: &mut MappingDecoder<'_>) {
    if fields.has("pass_threshold") {
        fields.ignore_key("pass_threshold");
        fields.error(
            "pass_threshold",
            "value",
            "pass_threshold is a share of trials, and a recorded transcript is one trial; use `repeat` for a majority vote, or the rubric's `threshold`",
        );
    }
}
