//! The form a verdict is asked for in, and the function `submit_verdict` that carries it.
//!
//! Evidence and reasons come before the verdict, so that the verdict follows from them (users.md #7). Plain types and no
//! unions: every provider's structured output takes it.

use serde_json::{Value, json};

use super::parts::{PartsFormat, find_words_after};
use crate::handlers::JudgedParams;
use crate::model::{SUBMIT_VERDICT, ToolDeclaration};

/// What a verdict has to look like for one eval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct VerdictFormat {
    /// Whether "not applicable" may be answered.
    pub allow_na: bool,
    /// Lowest and highest score, where the eval has its own scale; else 0 and 1.
    pub scale: Option<(f64, f64)>,
    /// Whether a bound decides from the score: then `score` must be there and `passed` need not.
    pub needs_score: bool,
    /// Its parts, where it has some: then `passed` and `score` follow from them and are not asked for.
    pub parts: Option<PartsFormat>,
}

impl VerdictFormat {
    /// The form of an eval.
    pub fn from_params(params: &JudgedParams, allow_na: bool) -> Self {
        Self {
            allow_na,
            scale: params.scale,
            needs_score: params.min_score.is_some() || params.max_score.is_some(),
            parts: PartsFormat::from_parts(&params.parts_spec),
        }
    }

    /// Lowest and highest score that may be stated.
    pub fn score_range(&self) -> (f64, f64) {
        self.scale.unwrap_or((0.0, 1.0))
    }

    /// JSON Schema of a verdict. What only decides is no part of it, so that it is no part of the cache key.
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
        let mut required = vec!["citations"];
        let mut ask = |name: &'static str, field: Value| {
            properties[name] = field;
            required.push(name);
        };
        for (name, field) in self
            .parts
            .into_iter()
            .flat_map(PartsFormat::schema_properties)
        {
            ask(name, field);
        }
        let reasoning = match self.parts {
            None => "Two to six sentences: the facts that decide, then the conclusion.",
            Some(_) => "Two to six sentences: what decided.",
        };
        ask(
            "reasoning",
            json!({"type": "string", "description": reasoning}),
        );
        if self.parts.is_none() {
            let (low, high) = self.score_range();
            ask(
                "passed",
                json!({
                    "type": "boolean",
                    "description": "Whether the criteria are met. Follows from the reasoning."
                }),
            );
            ask(
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
            ask(
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

    /// The bounds a schema of ours states: how the built-in judge, which is sent the schema alone, learns them.
    pub(super) fn score_range_from_schema(schema: &Value) -> (f64, f64) {
        let text = schema["properties"]["score"]["description"]
            .as_str()
            .unwrap_or_default();
        find_words_after(text, ["From", "to"])
            .and_then(|[low, high]| low.parse().ok().zip(high.parse().ok()))
            .unwrap_or((0.0, 1.0))
    }

    /// `submit_verdict` as the model is told.
    pub fn submit_tool_decl(&self) -> ToolDeclaration {
        ToolDeclaration {
            name: SUBMIT_VERDICT.to_owned(),
            description: "States your verdict and ends the evaluation. Call it once, alone, when you have read every \
                          result you asked for."
                .to_owned(),
            schema: self.schema(),
        }
    }

    /// The form as it is shown where the server has no structured output.
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
        let (low, high) = self.score_range();
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
    fn evidence_comes_first_and_the_verdict_last() {
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
    fn the_bounds_are_read_back_from_the_schema() {
        for scale in [None, Some((1.0, 5.0)), Some((-1.5, 2.5))] {
            let form = VerdictFormat {
                scale,
                ..VerdictFormat::default()
            };
            assert_eq!(
                VerdictFormat::score_range_from_schema(&form.schema()),
                form.score_range()
            );
        }
    }

    #[test]
    fn what_only_decides_does_not_change_the_form_that_is_sent() {
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
}
