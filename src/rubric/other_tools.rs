//! The words of other tools that users write into a rubric, and the words of dicta for them.
//!
//! Responsible for the help texts only: dicta does not accept these words. `rubric::formats` converts whole files of
//! other tools.

use super::EvalTypeSpec;

/// An eval type of another tool.
pub(super) struct ForeignType {
    /// The tool, as users name it.
    tool: &'static str,
    /// The name of the type there.
    name: &'static str,
    /// The eval type of dicta.
    pub(super) eval_type: &'static str,
    /// The param of dicta that contains the other tool's `value`; empty if no param does.
    param: &'static str,
}

const fn foreign(
    tool: &'static str,
    name: &'static str,
    eval_type: &'static str,
    param: &'static str,
) -> ForeignType {
    ForeignType {
        tool,
        name,
        eval_type,
        param,
    }
}

/// The types of other tools. Names with `-` and with `_` are the same.
const FOREIGN_TYPES: &[ForeignType] = &[
    foreign("promptfoo", "llm-rubric", "llm_judge", "criteria"),
    foreign("promptfoo", "g-eval", "llm_judge", "criteria"),
    foreign(
        "promptfoo",
        "model-graded-closedqa",
        "llm_judge",
        "criteria",
    ),
    foreign(
        "promptfoo",
        "model-graded-factuality",
        "llm_rater",
        "expected",
    ),
    foreign("promptfoo", "factuality", "llm_rater", "expected"),
    foreign("promptfoo", "equals", "exact_match", "expected"),
    foreign("promptfoo", "icontains", "contains", "patterns"),
    foreign("promptfoo", "contains-all", "contains", "patterns"),
    foreign("promptfoo", "icontains-all", "contains", "patterns"),
    foreign("promptfoo", "contains-any", "contains_any", "patterns"),
    foreign("promptfoo", "icontains-any", "contains_any", "patterns"),
    foreign("promptfoo", "not-contains", "content_excludes", "patterns"),
    foreign("promptfoo", "not-icontains", "content_excludes", "patterns"),
    foreign("promptfoo", "starts-with", "regex", "pattern"),
    foreign("promptfoo", "is-json", "json_valid", ""),
    foreign("promptfoo", "contains-json", "json_valid", ""),
    foreign("promptfoo", "javascript", "script", "command"),
    foreign("promptfoo", "python", "script", "command"),
    foreign("promptfoo", "answer-relevance", "answer_relevancy", ""),
    foreign("promptfoo", "context-faithfulness", "faithfulness", ""),
    foreign(
        "promptfoo",
        "context-recall",
        "contextual_recall",
        "reference",
    ),
    foreign("promptfoo", "context-relevance", "contextual_relevancy", ""),
    foreign("promptfoo", "latency", "latency_budget", ""),
    foreign("promptfoo", "cost", "cost_budget", ""),
    foreign(
        "promptfoo",
        "trajectory:tool-used",
        "tools_called",
        "tool_names",
    ),
    foreign(
        "promptfoo",
        "trajectory:goal-success",
        "goal_completion",
        "",
    ),
    foreign("Inspect", "model_graded_qa", "llm_judge", "criteria"),
    foreign("Inspect", "model_graded_fact", "llm_rater", "expected"),
    foreign("Inspect", "includes", "contains", "patterns"),
    foreign("Inspect", "exact", "exact_match", "expected"),
    foreign("Inspect", "match", "exact_match", "expected"),
    foreign("Inspect", "pattern", "regex", "pattern"),
    foreign("DeepEval", "GEval", "llm_judge", "criteria"),
];

/// Returns the type of another tool with this name.
pub(super) fn find_foreign_type(written: &str) -> Option<&'static ForeignType> {
    let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let wanted = plain(written);
    let mut types = FOREIGN_TYPES.iter();
    types.find(|foreign| plain(foreign.name) == wanted)
}

/// Explains which eval type has the purpose of another tool's type; `None` for an unknown name.
pub fn explain_foreign_type(written: &str) -> Option<String> {
    find_foreign_type(written).map(ForeignType::explain)
}

/// Returns the name of every foreign type, with the eval type and the param of dicta.
#[cfg(test)]
pub(crate) fn list_foreign_types() -> Vec<(&'static str, &'static str, &'static str)> {
    let types = FOREIGN_TYPES.iter();
    types
        .map(|one| (one.name, one.eval_type, one.param))
        .collect()
}

impl ForeignType {
    /// Explains which eval type and param have the same purpose.
    pub(super) fn explain(&self) -> String {
        let Self {
            tool,
            name,
            eval_type,
            param,
        } = self;
        // Only promptfoo has the key `value`.
        let value = match (*tool, *param) {
            (_, "") => String::new(),
            ("promptfoo", param) => format!("; its `value` is `params.{param}`"),
            (_, param) => format!(" with `params.{param}`"),
        };
        format!(
            "{tool}'s `{name}` is `{eval_type}`{value} (`dicta eval-types {eval_type}` documents it)"
        )
    }
}

/// Returns the param of an eval type that contains what another tool writes under a key.
pub(super) fn find_param_of_foreign_key(kind: &EvalTypeSpec, key: &str) -> Option<&'static str> {
    let has = |param: &str| kind.schema["properties"].get(param).is_some();
    let candidates: &[&'static str] = match key {
        "value" => &[
            "criteria",
            "patterns",
            "pattern",
            "expected",
            "tool_names",
            "command",
        ],
        // promptfoo's threshold is the lowest score that passes.
        "threshold" => &["min_score"],
        _ => &[],
    };
    candidates.iter().copied().find(|param| has(param))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rubric::EvalTypeCatalog as _;
    use crate::rubric::tests_support::FakeCatalog;

    #[test]
    fn foreign_type_is_found_in_both_spellings() {
        for name in ["llm-rubric", "llm_rubric", "LLM-Rubric"] {
            let found = find_foreign_type(name).expect("known");
            assert_eq!(found.eval_type, "llm_judge");
            assert!(
                found.explain().starts_with(
                    "promptfoo's `llm-rubric` is `llm_judge`; its `value` is `params.criteria`"
                ),
                "{}",
                found.explain()
            );
        }
        assert!(find_foreign_type("llm_judge").is_none());
    }

    #[test]
    fn only_promptfoo_has_the_key_value() {
        for foreign in FOREIGN_TYPES.iter().filter(|one| one.tool != "promptfoo") {
            assert!(!foreign.explain().contains("`value`"), "{}", foreign.name);
        }
        let found = find_foreign_type("model_graded_qa").expect("known");
        assert!(
            found
                .explain()
                .starts_with("Inspect's `model_graded_qa` is `llm_judge` with `params.criteria` ("),
            "{}",
            found.explain()
        );
    }

    #[test]
    fn value_is_the_param_that_the_type_has() {
        let catalog = FakeCatalog::new();
        for (name, param) in [
            ("llm_judge", Some("criteria")),
            ("contains", Some("patterns")),
            ("regex", Some("pattern")),
        ] {
            let kind = catalog.eval_type(name).expect(name);
            assert_eq!(find_param_of_foreign_key(kind, "value"), param, "{name}");
            assert_eq!(find_param_of_foreign_key(kind, "colour"), None);
        }
    }
}
