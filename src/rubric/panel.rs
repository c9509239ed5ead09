//! `jury` and `cascade`: several judges for one eval.
//!
//! Responsible for reading both, and for the choice of judges if the eval, its rubric and the workspace each name
//! some. Does not know which judges exist; the workspace does.

use serde_json::{Value, json};

use super::{Eval, Rubric};
use crate::diag::yaml::{ConfigKey, MappingDecoder, choice_names, properties_schema};
use crate::model::{PanelRule, UNCERTAIN_MARGIN};

/// The vote rules, the default first.
const VOTE_RULES: &[(&str, PanelRule)] = &[
    ("majority", PanelRule::Majority),
    ("unanimity", PanelRule::Unanimity),
];

/// The keys of `jury`.
const JURY_KEYS: &[ConfigKey] = &[
    ConfigKey::new("judges", "The members; two or more.", judge_list_schema),
    ConfigKey::new(
        "by",
        "The vote rule: most votes win and ties fail, or every member must pass it.",
        |doc| json!({"enum": choice_names(VOTE_RULES), "default": "majority", "description": doc}),
    ),
];

/// The keys of `cascade`.
const CASCADE_KEYS: &[ConfigKey] = &[
    ConfigKey::new(
        "judges",
        "The members, the cheapest first; two or more.",
        judge_list_schema,
    ),
    ConfigKey::new(
        "margin",
        "A score within this distance of the deciding score is uncertain.",
        |doc| json!({"type": "number", "minimum": 0, "maximum": 1, "default": UNCERTAIN_MARGIN, "description": doc}),
    ),
];

fn judge_list_schema(doc: &str) -> Value {
    json!({
        "type": "array",
        "minItems": 2,
        "uniqueItems": true,
        "items": {"type": "string", "minLength": 1},
        "description": doc,
    })
}

/// Returns the JSON Schema of `jury`.
pub(super) fn jury_schema() -> Value {
    panel_schema(
        "A panel in which every member judges and their votes decide.",
        JURY_KEYS,
    )
}

/// Returns the JSON Schema of `cascade`.
pub(super) fn cascade_schema() -> Value {
    panel_schema(
        "A panel whose members judge in order until one is certain.",
        CASCADE_KEYS,
    )
}

fn panel_schema(doc: &str, keys: &[ConfigKey]) -> Value {
    json!({
        "type": "object",
        "description": doc,
        "properties": properties_schema(keys),
        "required": ["judges"],
        "additionalProperties": false,
    })
}

/// Several judges by name, and how they decide.
#[derive(Debug, Clone, PartialEq)]
pub struct PanelSpec {
    /// The rule that combines their verdicts.
    pub rule: PanelRule,
    /// The names, in the order in which the judges are called; at least two, all different.
    pub judges: Vec<String>,
}

/// The judges of an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeAssignment<'r> {
    /// The vote rule; `None` for a single judge.
    pub rule: Option<PanelRule>,
    /// The names, in the order in which the judges are called.
    pub judges: Vec<&'r str>,
}

impl<'r> JudgeAssignment<'r> {
    fn single(judge: &'r str) -> Self {
        Self {
            rule: None,
            judges: vec![judge],
        }
    }

    fn from_panel(panel: &'r PanelSpec) -> Self {
        Self {
            rule: Some(panel.rule),
            judges: panel.judges.iter().map(String::as_str).collect(),
        }
    }
}

impl Eval {
    /// Returns the eval's own judges, else those of its rubric, else the workspace's default judge. `None` if none of
    /// them names a judge.
    pub fn assign_judges<'r>(
        &'r self,
        rubric: &'r Rubric,
        default: Option<&'r str>,
    ) -> Option<JudgeAssignment<'r>> {
        // A place names a judge or a panel; the loader refuses both at once.
        let assignment_of = |judge: &'r Option<String>, panel: &'r Option<PanelSpec>| {
            let one = judge.as_deref().map(JudgeAssignment::single);
            one.or_else(|| panel.as_ref().map(JudgeAssignment::from_panel))
        };
        assignment_of(&self.judge, &self.panel)
            .or_else(|| assignment_of(&rubric.judge, &rubric.panel))
            .or_else(|| default.map(JudgeAssignment::single))
    }
}

/// Reads `jury` or `cascade` of an eval or a rubric. Reports more than one of `judge`, `jury` and `cascade`.
pub(super) fn read(fields: &mut MappingDecoder<'_>) -> Option<PanelSpec> {
    let jury = fields.mapping("jury").and_then(read_jury);
    let cascade = fields.mapping("cascade").and_then(read_cascade);
    let written: Vec<&str> = ["judge", "jury", "cascade"]
        .into_iter()
        .filter(|key| fields.has(key))
        .collect();
    // More than one of them is ambiguous, so dicta uses no panel.
    if let [first, .., last] = written[..] {
        let message = format!("`{first}` and `{last}` both say who judges; leave one of them out");
        fields.error_at_key(last, "conflict", message);
        return None;
    }
    jury.or(cascade)
}

fn read_jury(fields: MappingDecoder<'_>) -> Option<PanelSpec> {
    let mut fields = fields.accepting(JURY_KEYS);
    let judges = read_judges(&mut fields, "jury");
    let rule = fields
        .choice("by", VOTE_RULES)
        .unwrap_or(PanelRule::Majority);
    finish_panel(fields, rule, judges)
}

fn read_cascade(fields: MappingDecoder<'_>) -> Option<PanelSpec> {
    let mut fields = fields.accepting(CASCADE_KEYS);
    let judges = read_judges(&mut fields, "cascade");
    let margin = fields.number("margin", "between 0 and 1", |x| (0.0..=1.0).contains(&x));
    let margin = margin.unwrap_or(UNCERTAIN_MARGIN);
    finish_panel(fields, PanelRule::Cascade { margin }, judges)
}

fn finish_panel(
    fields: MappingDecoder<'_>,
    rule: PanelRule,
    judges: Option<Vec<String>>,
) -> Option<PanelSpec> {
    // `finish` reports unknown keys, also if the judges are missing.
    fields.finish();
    judges.map(|judges| PanelSpec { rule, judges })
}

/// Reads the names of at least two judges, all different.
fn read_judges(fields: &mut MappingDecoder<'_>, what: &str) -> Option<Vec<String>> {
    if fields.is_mapping() && !fields.has("judges") {
        fields.error_at_mapping("missing", format!("a {what} needs `judges`: two or more"));
    }
    let written = fields.texts("judges")?;
    let (mut names, mut twice): (Vec<String>, bool) = (Vec::new(), false);
    for (at, (name, _)) in written.iter().enumerate() {
        if names.contains(name) {
            let message = format!(
                "the judge `{name}` is named twice: a {what} asks each once, and `repeat` asks it again"
            );
            fields.error_at(&format!("judges/{at}"), "duplicate-judge", message);
            twice = true;
        } else {
            names.push(name.clone());
        }
    }
    // A duplicate is already reported and would explain the low number.
    if names.len() < 2 && !twice {
        let message = format!(
            "a {what} needs two judges or more (got {}); `judge:` names one",
            names.len()
        );
        fields.error("judges", "too-few", message);
    }
    // One name is not a panel, and the problem is reported above.
    (names.len() > 1).then_some(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::rubric::load;
    use crate::rubric::tests_support::FakeCatalog;

    fn read(text: &str) -> Result<Rubric, Vec<String>> {
        let (rubric, problems) = load(Arc::from(text), Path::new("r.yaml"), &FakeCatalog::new());
        rubric.ok_or_else(|| problems.iter().map(ToString::to_string).collect())
    }

    fn eval(keys: &str) -> String {
        format!("evals:\n  - {{id: a, type: llm_judge, params: {{criteria: x}}, {keys}}}\n")
    }

    #[test]
    fn a_jury_and_a_cascade_are_read_with_their_defaults() {
        for (keys, rule) in [
            ("jury: {judges: [p, q]}", PanelRule::Majority),
            (
                "jury: {judges: [p, q], by: unanimity}",
                PanelRule::Unanimity,
            ),
            (
                "cascade: {judges: [p, q]}",
                PanelRule::Cascade {
                    margin: UNCERTAIN_MARGIN,
                },
            ),
            (
                "cascade: {judges: [p, q], margin: 0.3}",
                PanelRule::Cascade { margin: 0.3 },
            ),
        ] {
            let rubric = read(&eval(keys)).expect(keys);
            let panel = rubric.evals[0].panel.as_ref().expect("a panel");
            assert_eq!(
                (panel.rule, panel.judges.join(" ")),
                (rule, "p q".to_owned())
            );
        }
    }

    #[test]
    fn nearest_judge_setting_applies() {
        let text = format!("jury: {{judges: [p, q]}}\n{}", eval("judge: z"));
        let loaded = read(&text).expect("loads");
        let by = loaded.evals[0]
            .assign_judges(&loaded, Some("d"))
            .expect("someone");
        assert_eq!((by.rule, by.judges), (None, vec!["z"]));
        let text = format!("jury: {{judges: [p, q]}}\n{}", eval("weight: 1"));
        let of_rubric = read(&text).expect("loads");
        let by = of_rubric.evals[0]
            .assign_judges(&of_rubric, Some("d"))
            .expect("someone");
        assert_eq!(
            (by.rule, by.judges),
            (Some(PanelRule::Majority), vec!["p", "q"])
        );
    }

    #[test]
    fn judges_and_vote_rule_keep_the_digest() {
        let digest = |keys: &str| read(&eval(keys)).expect("loads").evals[0].digest.clone();
        assert_eq!(
            digest("judge: p"),
            digest("jury: {judges: [p, q], by: unanimity}")
        );
        assert_eq!(
            digest("judge: p"),
            digest("cascade: {judges: [q, p], margin: 0.4}")
        );
    }

    #[test]
    fn invalid_panels_are_refused_at_their_place() {
        for (keys, want) in [
            (
                "jury: {judges: [p]}",
                "a jury needs two judges or more (got 1); `judge:` names one",
            ),
            (
                "jury: {judges: p}",
                "a jury needs two judges or more (got 1); `judge:` names one",
            ),
            ("jury: {by: majority}", "a jury needs `judges`: two or more"),
            (
                "jury: {judges: [p, q, p]}",
                "the judge `p` is named twice: a jury asks each once, and `repeat` asks it again",
            ),
            (
                "jury: {judges: [p, q], by: majorty}",
                "unknown by `majorty`; did you mean `majority`?",
            ),
            (
                "jury: {judges: [p, q], margin: 0.1}",
                "unknown key `margin`",
            ),
            ("jury: [p, q]", "jury must be a mapping (got a list)"),
            (
                "jurry: {judges: [p, q]}",
                "unknown key `jurry`; did you mean `jury`?",
            ),
            (
                "cascade: {judges: [p, q], margin: 2}",
                "margin must be between 0 and 1 (got 2)",
            ),
            (
                "judge: p, jury: {judges: [p, q]}",
                "`judge` and `jury` both say who judges; leave one of them out",
            ),
            (
                "jury: {judges: [p, q]}, cascade: {judges: [p, q]}",
                "`jury` and `cascade` both say who judges; leave one of them out",
            ),
        ] {
            let problems = read(&eval(keys)).expect_err(keys);
            assert_eq!(problems.len(), 1, "{keys}: {problems:?}");
            let problem = &problems[0];
            assert!(
                problem.starts_with("r.yaml:2:") && problem.ends_with(want),
                "{keys}: {problem}"
            );
        }
    }
}
