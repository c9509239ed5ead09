//! The parts of a verdict, such as numbered criteria: their schema, their instructions, and their parsing.
//!
//! Parsing is as strict as for the verdict itself: each number occurs exactly once, and counts are present.
//! The result of the parts is computed, not asked for. The texts are part of the prompt and of the cache key.

use serde::Deserialize;
use serde_json::{Value, json};

use super::verdict_error::{VerdictParseError, describe_type_error, present, verdict_error};
use crate::handlers::VerdictPartsSpec;
use crate::model::VerdictPart;

/// The version of this parser; part of the cache key of verdicts with parts. Increase it if a reply could be read
/// differently.
pub(super) const VERSION: u32 = 1;

/// The most goals that a judge may name. More means that it lists steps.
const MOST_GOALS: usize = 50;
/// The highest count that is plausible; above it the judge made a slip.
const MOST_COUNTED: f64 = 10_000.0;

/// The kind of parts that a verdict has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartsFormat {
    /// Criteria by number, from 1 to this count.
    Criteria(usize),
    /// Goals by number; `None` if the judge names them.
    Goals(Option<usize>),
    /// Tool calls by number.
    Calls(usize),
    /// The counts of [`VerdictPartsSpec::BEHAVIORS`].
    Behaviors,
}

#[derive(Deserialize)]
struct RawVerdictParts {
    #[serde(default, deserialize_with = "present")]
    criteria: Option<Vec<RawNumberedPart>>,
    #[serde(default, deserialize_with = "present")]
    goals: Option<Vec<RawGoalPart>>,
    #[serde(default, deserialize_with = "present")]
    calls: Option<Vec<RawNumberedPart>>,
    #[serde(default, deserialize_with = "present")]
    hallucinations: Option<RawCountPart>,
    #[serde(default, deserialize_with = "present")]
    clarifications: Option<RawCountPart>,
}

#[derive(Deserialize)]
struct RawNumberedPart {
    index: f64,
    #[serde(default)]
    reasoning: String,
    passed: bool,
}

#[derive(Deserialize)]
struct RawGoalPart {
    #[serde(default, deserialize_with = "present")]
    index: Option<f64>,
    #[serde(default, rename = "goal")]
    name: String,
    #[serde(default)]
    reasoning: String,
    met: bool,
}

#[derive(Deserialize)]
struct RawCountPart {
    #[serde(default)]
    reasoning: String,
    count: f64,
}

impl PartsFormat {
    /// The format of an eval's parts; `None` if it has none.
    pub fn from_parts(parts: &VerdictPartsSpec) -> Option<Self> {
        Some(match parts {
            VerdictPartsSpec::SingleVerdict => return None,
            VerdictPartsSpec::Criteria(texts) => Self::Criteria(texts.len()),
            VerdictPartsSpec::Goals(texts) => Self::Goals(Some(texts.len()).filter(|n| *n > 0)),
            VerdictPartsSpec::Calls(texts) => Self::Calls(texts.len()),
            VerdictPartsSpec::Behaviors => Self::Behaviors,
        })
    }

    /// Computes passed and score of the parts, as [`VerdictPartsSpec::aggregate`].
    pub(super) fn aggregate(self, parts: &[VerdictPart]) -> Option<(bool, f64)> {
        match self {
            Self::Behaviors => VerdictPartsSpec::Behaviors.aggregate(parts),
            // All other kinds aggregate like criteria, and the texts don't matter for that.
            _ => VerdictPartsSpec::Criteria(Vec::new()).aggregate(parts),
        }
    }

    /// The fields that contain the parts.
    pub(super) fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Criteria(_) => &["criteria"],
            Self::Goals(_) => &["goals"],
            Self::Calls(_) => &["calls"],
            Self::Behaviors => &VerdictPartsSpec::BEHAVIORS,
        }
    }

    /// The word for one part.
    const fn noun(self) -> &'static str {
        match self {
            Self::Criteria(_) => "criterion",
            Self::Goals(_) => "goal",
            Self::Calls(_) => "call",
            Self::Behaviors => "count",
        }
    }

    /// The number of numbered parts.
    pub(super) const fn numbered_count(self) -> Option<usize> {
        match self {
            Self::Criteria(n) | Self::Calls(n) | Self::Goals(Some(n)) => Some(n),
            Self::Goals(None) | Self::Behaviors => None,
        }
    }

    /// The field that states whether a part is met.
    pub(super) const fn met_key(self) -> &'static str {
        match self {
            Self::Goals(_) => "met",
            _ => "passed",
        }
    }

    /// The description of that field in the schema.
    fn describe_fields(self) -> &'static str {
        match self {
            Self::Criteria(_) => "Whether this criterion is met. Follows from its reasoning.",
            Self::Goals(_) => "Whether this goal is met in full. Follows from its reasoning.",
            Self::Calls(_) => "Whether this call has no issue. Follows from its reasoning.",
            Self::Behaviors => "",
        }
    }

    /// Returns the fields of the schema.
    pub(super) fn schema_properties(self) -> Vec<(&'static str, Value)> {
        let text = |what: &str| json!({"type": "string", "description": what});
        let object = |properties: Value| {
            // Structured output in strict mode requires every property.
            let required: Vec<String> = properties
                .as_object()
                .into_iter()
                .flat_map(|map| map.keys().cloned())
                .collect();
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false
            })
        };
        let why = text("One to three sentences: the facts that decide.");
        // Behaviors are single objects with a count; all other kinds are arrays of parts.
        if self == Self::Behaviors {
            return VerdictPartsSpec::BEHAVIORS
                .map(|name| {
                    let counted = object(json!({
                        "reasoning": text("What was counted: where each stands, and why it is one."),
                        "count": {"type": "integer", "description": format!("How many {name} there are; 0 for none.")}
                    }));
                    (name, counted)
                })
                .to_vec();
        }
        let (one, key) = (self.noun(), self.keys()[0]);
        let (whose, what) = match self.numbered_count() {
            Some(n) => (
                (
                    "index",
                    json!({"type": "integer", "description": format!("The number of the {one}, from 1 to {n}.")}),
                ),
                format!("One entry for each {one}, in order."),
            ),
            None => (
                ("goal", text("The goal, in a few words.")),
                "One entry for each goal of the user's request, in order.".to_owned(),
            ),
        };
        let entry = json!({
            (whose.0): whose.1,
            "reasoning": why,
            (self.met_key()): {"type": "boolean", "description": self.describe_fields()}
        });
        vec![(
            key,
            json!({"type": "array", "description": what, "items": object(entry)}),
        )]
    }

    /// Returns the fields as an example for servers without structured output.
    pub(super) fn example(self) -> String {
        match (self, self.numbered_count()) {
            (Self::Behaviors, _) => {
                let counted = VerdictPartsSpec::BEHAVIORS.map(|name| {
                    format!("\"{name}\": {{\"reasoning\": \"…\", \"count\": a whole number}}")
                });
                counted.join(", ")
            }
            (_, Some(n)) => format!(
                "\"{}\": [{{\"index\": 1 to {n}, \"reasoning\": \"…\", \"{}\": true or false}}]",
                self.keys()[0],
                self.met_key()
            ),
            (_, None) => {
                "\"goals\": [{\"goal\": \"…\", \"reasoning\": \"…\", \"met\": true or false}]"
                    .to_owned()
            }
        }
    }

    /// Returns the prompt's text about the fields.
    pub(super) fn render_instructions(self) -> String {
        let each = match self {
            Self::Criteria(n) => format!(
                "- `criteria`: one entry for each of the {n} numbered criteria, in order: `index`, its number; `reasoning`, \
                 one to three sentences with the facts that decide it; `passed`, true only if this criterion is met. Judge \
                 each by itself: what you think of one is no evidence for another.\n"
            ),
            Self::Goals(Some(n)) => format!(
                "- `goals`: one entry for each of the {n} numbered goals, in order: `index`, its number; `reasoning`, one to \
                 three sentences with the facts that decide it; `met`, true only if the goal is met in full.\n"
            ),
            Self::Goals(None) => "- `goals`: one entry for each goal of the user's request, in the order of the \
                 conversation: `goal`, in a few words; `reasoning`, one to three sentences with the facts that decide it; \
                 `met`, true only if it is met in full.\n"
                .to_owned(),
            Self::Calls(n) => format!(
                "- `calls`: one entry for each of the {n} numbered calls, in order: `index`, its number; `reasoning`, the \
                 issues found, or why there is none; `passed`, true only if the call has no issue.\n"
            ),
            Self::Behaviors => "- `hallucinations`, `clarifications`: each with `reasoning`, where each one stands and why it \
                 counts, and `count`, a whole number; 0 for none.\n"
                .to_owned(),
        };
        format!(
            "{each}- `reasoning`: two to six sentences for the rubric's author: what decided. State no overall verdict and \
             no score of your own: they follow from the entries.\n"
        )
    }

    /// Parses the parts of a verdict. Numbered parts have no text yet.
    pub(super) fn parse_parts(self, json: &str) -> Result<Vec<VerdictPart>, VerdictParseError> {
        // A second pass over the JSON: the caller has read the fields that every format has.
        let stated: RawVerdictParts =
            serde_json::from_str(json).map_err(|error| describe_type_error(json, &error))?;
        let missing = |key: &str| VerdictParseError(format!("the verdict has no `{key}`"));
        match self {
            Self::Behaviors => {
                let counted = [stated.hallucinations, stated.clarifications];
                let pairs = VerdictPartsSpec::BEHAVIORS.into_iter().zip(counted);
                pairs
                    .map(|(name, stated)| to_count_part(name, stated.ok_or_else(|| missing(name))?))
                    .collect()
            }
            Self::Criteria(n) => {
                let all = stated.criteria.ok_or_else(|| missing("criteria"))?;
                self.order_by_number(n, all.into_iter().map(to_numbered_part).collect())
            }
            Self::Calls(n) => {
                let all = stated.calls.ok_or_else(|| missing("calls"))?;
                self.order_by_number(n, all.into_iter().map(to_numbered_part).collect())
            }
            Self::Goals(Some(n)) => {
                let all = stated.goals.ok_or_else(|| missing("goals"))?;
                let to_part = |goal: RawGoalPart| NumberedPart {
                    index: goal.index,
                    part: new_part(goal.name, goal.reasoning, goal.met),
                };
                self.order_by_number(n, all.into_iter().map(to_part).collect())
            }
            Self::Goals(None) => to_goal_parts(stated.goals.ok_or_else(|| missing("goals"))?),
        }
    }

    /// Orders parts by number; each number from 1 to `n` must occur exactly once.
    fn order_by_number(
        self,
        n: usize,
        stated: Vec<NumberedPart>,
    ) -> Result<Vec<VerdictPart>, VerdictParseError> {
        let one = self.noun();
        let mut parts: Vec<Option<VerdictPart>> = vec![None; n];
        for NumberedPart { index, part } in stated {
            let Some(index) = index else {
                return verdict_error(format!("a {one} of the verdict has no `index`"));
            };
            // Models write `1.0` for 1, so the number is parsed as a float and compared here.
            let slot = (1..=n).find(|at| (index - *at as f64).abs() < f64::EPSILON);
            let Some(slot) = slot else {
                return verdict_error(format!(
                    "the verdict speaks of {one} {index}, and they are numbered from 1 to {n}"
                ));
            };
            // Choosing one of two verdicts on a part would be a guess.
            if parts[slot - 1].replace(part).is_some() {
                return verdict_error(format!("{one} {slot} has two verdicts"));
            }
        }
        let missing = parts.iter().position(Option::is_none);
        match missing {
            Some(at) => verdict_error(format!("{one} {} of {n} has no verdict", at + 1)),
            None => Ok(parts.into_iter().flatten().collect()),
        }
    }

    /// Returns the format that a schema of dicta describes.
    ///
    /// The `rules` judge receives only the schema, and learns the format from it.
    pub(super) fn from_schema(schema: &Value) -> Option<Self> {
        // The words of the schema's descriptions carry the counts; `schema_properties` writes them.
        let properties = &schema["properties"];
        let numbers = |key: &str| {
            let index = &properties[key]["items"]["properties"]["index"]["description"];
            let [_, to] = find_words_after(index.as_str()?, ["from", "to"])?;
            to.parse::<usize>().ok()
        };
        let has_property = |key: &str| properties[key].is_object();
        // The keys are unique to each kind, so the first match decides.
        if has_property("criteria") {
            return numbers("criteria").map(Self::Criteria);
        }
        if has_property("calls") {
            return numbers("calls").map(Self::Calls);
        }
        if has_property("goals") {
            return Some(Self::Goals(numbers("goals")));
        }
        has_property(VerdictPartsSpec::BEHAVIORS[0]).then_some(Self::Behaviors)
    }
}

/// Returns the words that follow these, each searched after the one before, without punctuation at their ends.
pub(super) fn find_words_after<'t>(text: &'t str, after: [&str; 2]) -> Option<[&'t str; 2]> {
    let mut words = text.split_whitespace();
    let mut next = |word: &str| {
        words.find(|w| *w == word)?;
        Some(words.next()?.trim_end_matches([',', '.']))
    };
    let first = next(after[0])?;
    Some([first, next(after[1])?])
}

fn new_part(text: String, reasoning: String, met: bool) -> VerdictPart {
    VerdictPart {
        text,
        reasoning,
        met,
        ..VerdictPart::default()
    }
}

/// A part with the number that the judge gave it.
struct NumberedPart {
    index: Option<f64>,
    part: VerdictPart,
}

fn to_numbered_part(stated: RawNumberedPart) -> NumberedPart {
    NumberedPart {
        index: Some(stated.index),
        part: new_part(String::new(), stated.reasoning, stated.passed),
    }
}

fn to_goal_parts(goals: Vec<RawGoalPart>) -> Result<Vec<VerdictPart>, VerdictParseError> {
    if goals.is_empty() {
        return verdict_error("the verdict names no goal");
    }
    if goals.len() > MOST_GOALS {
        let n = goals.len();
        return verdict_error(format!(
            "the verdict names {n} goals, more than {MOST_GOALS}"
        ));
    }
    let goals = goals.into_iter().zip(1..);
    goals
        .map(|(goal, number)| {
            if goal.name.trim().is_empty() {
                return verdict_error(format!(
                    "goal {number} of the verdict does not say which it is"
                ));
            }
            Ok(new_part(goal.name, goal.reasoning, goal.met))
        })
        .collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole and between 0 and 10,000"
)]
fn to_count_part(name: &str, stated: RawCountPart) -> Result<VerdictPart, VerdictParseError> {
    let n = stated.count;
    if n.fract() != 0.0 || !(0.0..=MOST_COUNTED).contains(&n) {
        return verdict_error(format!(
            "the count of {name} must be a whole number from 0 to {MOST_COUNTED} (got {n})"
        ));
    }
    Ok(VerdictPart {
        count: Some(n as u32),
        ..new_part(name.to_owned(), stated.reasoning, n == 0.0)
    })
}

#[cfg(test)]
mod tests;
