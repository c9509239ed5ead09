//! The param `shots` of judged evals: the labelled transcripts that the prompt shows as examples.
//!
//! Responsible for the settings. The run chooses the transcripts, because only it reads labels.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::diag::find_nearest;
use crate::handlers::eval_type::param_problem;
use crate::rubric::ParamProblem;

/// The name of the param.
pub const SHOTS_PARAM: &str = "shots";
/// The largest number of shots of one class. More examples fill the prompt and teach little.
const MAX_SHOTS: u32 = 20;
/// The default token budget of one shot.
const DEFAULT_MAX_TOKENS: u64 = 600;

/// The labelled transcripts that a judge sees as examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShotsSpec {
    /// The part of the labels that gives the shots: `train`. The labels of `dev` and `test` measure the judge.
    #[serde(default = "default_source")]
    pub from: String,
    /// The number of shots whose label is a pass. With `pick` as a list of ids: all of them by default.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    pub pass: Option<u32>,
    /// The number of shots whose label is a fail. With `pick` as a list of ids: all of them by default.
    #[serde(default)]
    #[schemars(range(min = 0, max = 20))]
    pub fail: Option<u32>,
    /// The labels to prefer: `clear` (all people agree), `noted` (a note gives the reason), `random`, or a list of
    /// transcript ids.
    #[serde(default)]
    pub pick: ShotPick,
    /// The seed that orders equal labels.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// The most tokens of one shot, by dicta's estimate. A shot shows as many messages around the judged one as fit.
    #[serde(default = "default_max_tokens")]
    #[schemars(range(min = 1))]
    pub max_tokens: u64,
}

/// The rule that chooses shots among the labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ShotPick {
    /// A rule with a name.
    Rule(ShotRule),
    /// These transcripts, in this order.
    Ids(Vec<String>),
    /// A word that names no rule. [`ShotsSpec::problems`] reports it.
    Unknown(String),
    /// The default rule.
    #[default]
    #[serde(skip)]
    Default,
}

/// A named rule that chooses shots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShotRule {
    /// Labels on which all people agree, and whose disagreement with the judge has no cause `unclear`.
    Clear,
    /// Labels with a note, which the prompt shows as the reason.
    Noted,
    /// Any labels.
    Random,
}

impl ShotRule {
    const NAMES: [(&'static str, Self); 3] = [
        ("clear", Self::Clear),
        ("noted", Self::Noted),
        ("random", Self::Random),
    ];
}

// Written by hand as one type for a word and a list instead of `anyOf`, so that an error has its exact place.
impl JsonSchema for ShotPick {
    fn schema_name() -> Cow<'static, str> {
        "ShotPick".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
    }
}

impl<'de> Deserialize<'de> for ShotPick {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) => {
                let mut known = ShotRule::NAMES.into_iter();
                let rule = known.find(|(name, _)| *name == word);
                Ok(rule.map_or(Self::Unknown(word), |(_, rule)| Self::Rule(rule)))
            }
            list => {
                let ids = serde_json::from_value(list);
                ids.map(Self::Ids).map_err(D::Error::custom)
            }
        }
    }
}

fn default_source() -> String {
    "train".to_owned()
}

const fn default_seed() -> u64 {
    1
}

const fn default_max_tokens() -> u64 {
    DEFAULT_MAX_TOKENS
}

impl ShotsSpec {
    /// Returns the settings among the params of an eval; `None` without shots.
    pub fn from_params(params: &Value) -> Option<Self> {
        let written = params.get(SHOTS_PARAM).filter(|value| !value.is_null())?;
        serde_json::from_value(written.clone()).ok()
    }

    /// Returns the rule; `None` for a list of ids.
    pub fn rule(&self) -> Option<ShotRule> {
        match &self.pick {
            ShotPick::Rule(rule) => Some(*rule),
            // A run refuses an unknown word before it chooses.
            ShotPick::Default | ShotPick::Unknown(_) => Some(ShotRule::Clear),
            ShotPick::Ids(_) => None,
        }
    }

    /// Returns the named transcripts; `None` for a rule.
    pub fn pick_ids(&self) -> Option<&[String]> {
        match &self.pick {
            ShotPick::Ids(ids) => Some(ids),
            ShotPick::Rule(_) | ShotPick::Default | ShotPick::Unknown(_) => None,
        }
    }

    /// Returns the problems of the settings.
    pub(super) fn problems(&self) -> Vec<ParamProblem> {
        let mut problems = Vec::new();
        let mut add = |key: &str, why: String| {
            problems.push(ParamProblem {
                message: format!("{SHOTS_PARAM}.{key} {why}"),
                ..param_problem(format!("/{SHOTS_PARAM}/{key}"), "")
            });
        };
        match self.from.as_str() {
            "train" => {}
            "dev" | "test" => add(
                "from",
                format!(
                    "must be `train`: labels of `{}` measure the judge, so it must not see them",
                    self.from
                ),
            ),
            other => add(
                "from",
                format!("must be `train` (got `{other}`): only labels of train may teach"),
            ),
        }
        for (name, count) in [("pass", self.pass), ("fail", self.fail)] {
            if let Some(count) = count.filter(|count| *count > MAX_SHOTS) {
                add(name, format!("must be at most {MAX_SHOTS} (got {count})"));
            }
        }
        if self.max_tokens == 0 {
            add("max_tokens", "must be at least 1".to_owned());
        }
        let count = self.pass.unwrap_or_default() + self.fail.unwrap_or_default();
        match &self.pick {
            ShotPick::Ids(ids) => {
                if ids.is_empty() || ids.len() > 2 * MAX_SHOTS as usize {
                    let most = 2 * MAX_SHOTS;
                    add("pick", format!("needs 1 to {most} ids (got {})", ids.len()));
                }
                if let Some(twice) = (1..ids.len()).find(|at| ids[..*at].contains(&ids[*at])) {
                    add("pick", format!("names `{}` twice", ids[twice]));
                }
            }
            ShotPick::Unknown(word) => {
                let names = ShotRule::NAMES.map(|(name, _)| name);
                let hint = find_nearest(word, names)
                    .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                let names = names.join(", ");
                let why = format!("must be {names} or a list of ids (got `{word}`){hint}");
                add("pick", why);
            }
            _ if count == 0 => add(
                "pass",
                "must be at least 1, or `fail` must: without both, the judge sees no shot"
                    .to_owned(),
            ),
            _ => {}
        }
        problems
    }
}
