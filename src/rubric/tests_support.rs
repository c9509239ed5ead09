//! A catalog of eval types for tests of loaders.

use serde_json::{Value, json};

use super::{EvalTypeCatalog, EvalTypeSpec, ParamProblem};

/// A catalog of five types, enough for loading.
pub(crate) struct FakeCatalog(Vec<EvalTypeSpec>);

impl FakeCatalog {
    pub(crate) fn new() -> Self {
        let judge = json!({
            "type": "object",
            "properties": {
                "criteria": {"type": "string", "minLength": 1},
                "scoring_guide": {"type": "string"},
                "min_score": {"type": "number"},
                "max_score": {"type": "number"},
            },
            "required": ["criteria"],
            "additionalProperties": false,
        });
        let kind = |name, schema, judged| EvalTypeSpec {
            name,
            family: "text",
            summary: "A type.",
            schema,
            example: "",
            judged,
            scored: judged,
            decision_params: if judged {
                &["min_score", "max_score"]
            } else {
                &[]
            },
            aliases: &[],
            param_aliases: if judged {
                &[("rubric", "scoring_guide")]
            } else {
                &[]
            },
        };
        let patterns = json!({
            "type": "object",
            "properties": {"patterns": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}},
            "required": ["patterns"],
            "additionalProperties": false,
        });
        let tools = json!({
            "type": "object",
            "properties": {"tool_names": {"type": "array", "minItems": 1, "items": {"type": "string", "minLength": 1}}},
            "required": ["tool_names"],
            "additionalProperties": false,
        });
        let regex = json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string", "minLength": 1},
                "expect_match": {"type": "boolean", "default": true},
            },
            "required": ["pattern"],
            "additionalProperties": false,
        });
        Self(vec![
            kind("contains", patterns, false),
            kind("llm_judge", judge.clone(), true),
            kind("llm_judge_session", judge, true),
            kind("regex", regex, false),
            kind("tools_called", tools, false),
        ])
    }
}

impl EvalTypeCatalog for FakeCatalog {
    fn eval_types(&self) -> Vec<&EvalTypeSpec> {
        self.0.iter().collect()
    }
    fn eval_type(&self, name: &str) -> Option<&EvalTypeSpec> {
        self.0.iter().find(|kind| kind.name == name)
    }
    fn check_params(&self, kind: &str, params: &Value) -> Vec<ParamProblem> {
        let pattern = params["pattern"].as_str().unwrap_or_default();
        if kind == "regex" && regex::Regex::new(pattern).is_err() {
            return vec![ParamProblem {
                pointer: "/pattern".to_owned(),
                message: "pattern does not compile".to_owned(),
                help: Some("escape it".to_owned()),
            }];
        }
        Vec::new()
    }
}
