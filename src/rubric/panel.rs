//! `jury` and `cascade`: several judges on one eval, as a rubric writes them.
//!
//! Owns reading both, and who judges an eval where the eval, its rubric and the workspace may each say so. Refuses to know
//! which judges exist: the workspace does.

use super::{Eval, Rubric};
use crate::diag::yaml::Fields;
use crate::model::Rule;

/// A score nearer to what decides than this is unsure, where a cascade does not say otherwise.
pub(super) const MARGIN: f64 = 0.15;

/// The default, first.
const BY: &[(&str, Rule)] = &[("majority", Rule::Majority), ("unanimity", Rule::Unanimity)];

/// Several judges by name, and how they decide.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedPanel {
    /// How.
    pub rule: Rule,
    /// In the order in which they are asked; two or more, none twice.
    pub judges: Vec<String>,
}

/// Who judges an eval.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedBy<'r> {
    /// `None`: one judge.
    pub rule: Option<Rule>,
    /// In the order in which they are asked.
    pub judges: Vec<&'r str>,
}

impl<'r> JudgedBy<'r> {
    fn one(judge: &'r str) -> Self {
        Self {
            rule: None,
            judges: vec![judge],
        }
    }

    fn several(panel: &'r NamedPanel) -> Self {
        Self {
            rule: Some(panel.rule),
            judges: panel.judges.iter().map(String::as_str).collect(),
        }
    }
}

impl Eval {
    /// Who judges it: as it says, else as its rubric does, else the workspace's judge. `None` where nobody is named.
    pub fn judged_by<'r>(
        &'r self,
        rubric: &'r Rubric,
        default: Option<&'r str>,
    ) -> Option<JudgedBy<'r>> {
        let said = |judge: &'r Option<String>, panel: &'r Option<NamedPanel>| {
            let one = judge.as_deref().map(JudgedBy::one);
            one.or_else(|| panel.as_ref().map(JudgedBy::several))
        };
        said(&self.judge, &self.panel)
            .or_else(|| said(&rubric.judge, &rubric.panel))
            .or_else(|| default.map(JudgedBy::one))
    }
}

/// Reads `jury` or `cascade` of an eval or a rubric; only one of them and `judge` is written.
pub(super) fn read(fields: &mut Fields<'_>) -> Option<NamedPanel> {
    let jury = fields.mapping("jury").and_then(jury);
    let cascade = fields.mapping("cascade").and_then(cascade);
    let written: Vec<&str> = ["judge", "jury", "cascade"]
        .into_iter()
        .filter(|key| fields.has(key))
        .collect();
    if let [first, .., last] = written[..] {
        let message = format!("`{first}` and `{last}` both say who judges; leave one of them out");
        fields.error_at_key(last, "conflict", message);
        return None;
    }
    jury.or(cascade)
}

fn jury(mut fields: Fields<'_>) -> Option<NamedPanel> {
    let judges = judges(&mut fields, "jury");
    let rule = fields.choice("by", BY).unwrap_or(Rule::Majority);
    finish(fields, rule, judges)
}

fn cascade(mut fields: Fields<'_>) -> Option<NamedPanel> {
    let judges = judges(&mut fields, "cascade");
    let margin = fields.number("margin", "between 0 and 1", |x| (0.0..=1.0).contains(&x));
    let margin = margin.unwrap_or(MARGIN);
    finish(fields, Rule::Cascade { margin }, judges)
}

fn finish(fields: Fields<'_>, rule: Rule, judges: Option<Vec<String>>) -> Option<NamedPanel> {
    fields.finish();
    judges.map(|judges| NamedPanel { rule, judges })
}

/// Two or more, each once.
fn judges(fields: &mut Fields<'_>, what: &str) -> Option<Vec<String>> {
    if !fields.is_mapping() {
        return None;
    }
    if !fields.has("judges") {
        fields.error_here("missing", format!("a {what} needs `judges`: two or more"));
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
    if names.len() < 2 && !twice {
        let message = format!(
            "a {what} needs two judges or more (got {}); `judge:` names one",
            names.len()
        );
        fields.error("judges", "too-few", message);
    }
    (names.len() > 1).then_some(names)
}
