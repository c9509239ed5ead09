//! The format of a verdict: its schema, the declaration of `submit_verdict`, and its example.
//!
//! Citations and reasoning come before the verdict, so that a model writes the verdict after its reasons. The schema
//! uses plain types and no unions, so that every provider's structured output accepts it. Its texts are part of the
//! cache key.

use serde_json::{Value, json};

use super::parts::{PartsFormat, find_words_after};
use crate::handlers::JudgedParams;
use crate::model::{PairOrder, SUBMIT_VERDICT, ToolDeclaration};

/// The lowest and the highest valid score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScoreRange {
    /// The lowest score.
    pub low: f64,
    /// The highest score.
    pub high: f64,
}

impl ScoreRange {
    /// The range of an eval without its own scale.
    pub const DEFAULT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// A range from its lowest and its highest score.
    pub const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }
}

/// The format of the verdict of one eval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VerdictFormat {
    /// `true` if the judge may answer "not applicable".
    pub allow_na: bool,
    /// The range of the eval's own scale, if it has one.
    pub scale: Option<ScoreRange>,
    /// `true` if a bound decides from the score: then `score` is required and `passed` is not.
    pub needs_score: bool,
    /// The parts, if there are any: then `passed` and `score` follow from them.
    pub parts: Option<PartsFormat>,
    /// The order of the answers, if the judge compares a pair: then the score decides which one is better.
    pub pair_order: Option<PairOrder>,
}

impl VerdictFormat {
    /// The format of an eval's verdict.
    pub fn from_params(params: &JudgedParams, allow_na: bool) -> Self {
        Self {
            allow_na,
            scale: params
                .scale
                .map(|scale| ScoreRange::new(scale.low, scale.high)),
            needs_score: params.min_score.is_some() || params.max_score.is_some(),
            parts: PartsFormat::from_parts(&params.parts_spec),
            pair_order: params.pair_order,
        }
    }

    /// Returns the lowest and the highest valid score.
    pub fn score_range(&self) -> ScoreRange {
        self.scale.unwrap_or(ScoreRange::DEFAULT)
    }

    /// Returns the JSON Schema of a verdict. Decision settings don't change it, and so don't change the cache key.
    pub fn schema(&self) -> Value {
        let mut properties = json!({
            "citations": {
                "type": "array",
                "description": "The passages the verdict rests on; empty if there is nothing to quote.",
                "items": {
                    "type": "object",
                    "properties": {
                        "source": {
                            "type": "string",
                            "description": "Where the quote stands: \"message N\", \"fetch N\" or \"rubric\"."
                        },
                        "quote": {
                            "type": "string",
                            "description": "Copied character by character, without ellipses or corrections."
                        }
                    },
                    "required": ["source", "quote"],
                    "additionalProperties": false
                }
            }
        });
        // Models write fields in schema order: first quotes and reasons, then the verdict that follows from
        // them.
        let mut required = vec!["citations"];
        let mut add_field = |name: &'static str, field: Value| {
            properties[name] = field;
            required.push(name);
        };
        for (name, field) in self
            .parts
            .into_iter()
            .flat_map(PartsFormat::schema_properties)
        {
            add_field(name, field);
        }
        let reasoning = match self.parts {
            None => "Two to six sentences: the facts that decide, then the conclusion.",
            Some(_) => "Two to six sentences: what decided.",
        };
        add_field(
            "reasoning",
            json!({"type": "string", "description": reasoning}),
        );
        if self.parts.is_none() {
            let ScoreRange { low, high } = self.score_range();
            add_field(
                "passed",
                json!({
                    "type": "boolean",
                    "description": "Whether the criteria are met. Follows from the reasoning."
                }),
            );
            add_field(
                "score",
                json!({
                    "type": "number",
                    "description": format!("From {low} to {high}, from not at all to fully, by the scoring guide where there is one.")
                }),
            );
        }
        if self.allow_na {
            let description = match self.parts {
                None => {
                    "false only if the criteria cannot be applied to this conversation at all; then passed and score do not count."
                }
                Some(_) => {
                    "false only if none of it can be applied to this conversation at all; then no entry counts."
                }
            };
            add_field(
                "applicable",
                json!({"type": "boolean", "description": description}),
            );
        }
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false
        })
    }

    /// Returns the score range that a schema of dicta describes.
    ///
    /// The `rules` judge receives only the schema, and learns the range from it.
    pub(super) fn score_range_from_schema(schema: &Value) -> ScoreRange {
        let text = schema["properties"]["score"]["description"]
            .as_str()
            .unwrap_or_default();
        find_words_after(text, ["From", "to"])
            // Both numbers or neither: half a range has no meaning.
            .and_then(|[low, high]| Some(ScoreRange::new(low.parse().ok()?, high.parse().ok()?)))
            .unwrap_or(ScoreRange::DEFAULT)
    }

    /// Returns the declaration of `submit_verdict`.
    pub fn submit_tool_decl(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: SUBMIT_VERDICT.to_owned(),
            description: "States your verdict and ends the evaluation. Call it once, alone, when you have read every \
                          result you asked for."
                .to_owned(),
            schema: self.schema(),
        }
    }

    /// Returns an example for servers without structured output.
    pub fn example(&self) -> String {
        let applicable = if self.allow_na {
            ", \"applicable\": true or false"
        } else {
            ""
        };
        let citations = "\"citations\": [{\"source\": \"message N\", \"quote\": \"…\"}]";
        if let Some(parts) = self.parts {
            let parts = parts.example();
            return format!("{{{citations}, {parts}, \"reasoning\": \"…\"{applicable}}}");
        }
        let ScoreRange { low, high } = self.score_range();
        format!(
            "{{{citations}, \"reasoning\": \"…\", \"passed\": true or false, \"score\": a number from {low} to \
             {high}{applicable}}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdict_schema_lists_evidence_first_and_the_verdict_last() {
        let schema = VerdictFormat::default().schema();
        let keys: Vec<&String> = schema["properties"]
            .as_object()
            .expect("an object")
            .keys()
            .collect();
        assert_eq!(keys, ["citations", "reasoning", "passed", "score"]);
        assert_eq!(
            schema["required"],
            json!(["citations", "reasoning", "passed", "score"])
        );
    }

    #[test]
    fn schema_returns_the_score_range_that_it_was_built_from() {
        for scale in [
            None,
            Some(ScoreRange::new(1.0, 5.0)),
            Some(ScoreRange::new(-1.5, 2.5)),
        ] {
            let format = VerdictFormat {
                scale,
                ..VerdictFormat::default()
            };
            assert_eq!(
                VerdictFormat::score_range_from_schema(&format.schema()),
                format.score_range()
            );
        }
    }

    #[test]
    fn decision_settings_do_not_change_the_verdict_format() {
        let plain = VerdictFormat::from_params(&JudgedParams::default(), false);
        let bound = JudgedParams {
            min_score: Some(0.7),
            ..JudgedParams::default()
        };
        assert_eq!(
            plain.submit_tool_decl(),
            VerdictFormat::from_params(&bound, false).submit_tool_decl()
        );
        assert_ne!(
            plain.submit_tool_decl(),
            VerdictFormat::from_params(&bound, true).submit_tool_decl()
        );
    }

    #[test]
    fn each_bound_needs_a_score() {
        for (min_score, max_score, needs_score) in [
            (None, None, false),
            (Some(0.7), None, true),
            (None, Some(0.3), true),
            (Some(0.3), Some(0.7), true),
        ] {
            let params = JudgedParams {
                min_score,
                max_score,
                ..JudgedParams::default()
            };
            let format = VerdictFormat::from_params(&params, false);
            assert_eq!(
                format.needs_score, needs_score,
                "{min_score:?} {max_score:?}"
            );
        }
    }

    #[test]
    fn example_lists_the_fields_of_the_schema_in_their_order() {
        let scale = Some(ScoreRange::new(1.0, 5.0));
        let parts = Some(PartsFormat::Criteria(2));
        for allow_na in [false, true] {
            for (scale, parts) in [(None, None), (scale, None), (None, parts)] {
                let format = VerdictFormat {
                    allow_na,
                    scale,
                    parts,
                    ..VerdictFormat::default()
                };
                let example = format.example();
                let mut rest = example.as_str();
                for name in format.schema()["required"].as_array().expect("a list") {
                    let name = format!("{name}:");
                    let at = rest
                        .find(&name)
                        .unwrap_or_else(|| panic!("{name} {example}"));
                    rest = &rest[at..];
                }
                assert_eq!(example.contains("applicable"), allow_na, "{example}");
                let has_scale = example.contains("a number from 1 to 5");
                assert_eq!(has_scale, scale.is_some(), "{example}");
            }
        }
    }
}
