//! What is worth knowing of rubrics that load: an eval that cannot fail, a tool that nobody calls. One file a family.
//!
//! Owns the finding and the place of each lint; their names stand with `allow:` in [`crate::rubric::LINTS`]. A lint is a
//! warning and refuses nothing. Those that need no transcript are told at load ([`of_rubrics`]); those that do, on a pass
//! over all of them ([`Observer`]); those that need verdicts, after a run or from the board ([`same_verdict`]). Disabled
//! evals are left alone.

mod bounds;
mod duplicates;
mod examples;
#[cfg(test)]
mod name_tests;
mod observer;
mod patterns;
#[cfg(test)]
mod tests;
mod tools;
mod urls;
mod verdicts;

use std::cell::OnceCell;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::diag::yaml::{self, YamlDoc};
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::JudgeConfig;
use crate::rubric::{Eval, EvalTypeCatalog, Rubric};

pub use examples::{
    ExampleResult, ExampleStatus, ExampleSummary, count_by_status, describe_outcome, report_misses,
    run_code_examples,
};
pub use observer::TranscriptLinter;
pub use verdicts::{EvalTally, MIN_DECISIONS_TO_LINT, lint_same_verdict};

/// What can be said of rubrics without reading a transcript. `judges` may be empty where they are not known.
pub fn lint_rubrics(
    rubrics: &[Arc<Rubric>],
    judges: &IndexMap<String, JudgeConfig>,
    default: Option<&str>,
    catalog: &dyn EvalTypeCatalog,
) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    for rubric in rubrics {
        let mut lints = RubricLints::new(rubric);
        bounds::lint_threshold(&mut lints);
        for (at, eval) in enabled_evals(rubric) {
            let of = LintedEval { index: at, eval };
            bounds::lint_bounds(&mut lints, of);
            patterns::lint_patterns(&mut lints, of);
            if catalog
                .eval_type(&eval.eval_type)
                .is_some_and(|kind| kind.judged)
            {
                let court = eval.assign_judges(rubric, default).into_iter();
                let members = court.flat_map(|by| by.judges);
                let seated: Vec<&JudgeConfig> =
                    members.filter_map(|name| judges.get(name)).collect();
                urls::lint_urls(&mut lints, of, &seated);
            }
        }
        duplicates::lint_duplicates(&mut lints);
        all.extend(lints.finish());
    }
    all
}

/// The evals that run, with their positions.
fn enabled_evals(rubric: &Rubric) -> impl Iterator<Item = (usize, &Eval)> {
    let evals = rubric.evals.iter().enumerate();
    evals.filter(|(_, eval)| eval.enabled)
}

/// An eval and its position in the rubric.
#[derive(Debug, Clone, Copy)]
struct LintedEval<'r> {
    index: usize,
    eval: &'r Eval,
}

/// What a lint says.
struct LintMessage {
    /// One of [`crate::rubric::LINTS`].
    lint: &'static str,
    message: String,
    help: String,
}

/// The lints of one rubric, as they are found.
struct RubricLints<'r> {
    rubric: &'r Rubric,
    doc: OnceCell<Option<YamlDoc>>,
    found: Vec<Diagnostic>,
}

impl<'r> RubricLints<'r> {
    fn new(rubric: &'r Rubric) -> Self {
        Self {
            rubric,
            doc: OnceCell::new(),
            found: Vec::new(),
        }
    }

    /// Says something of an eval, at a pointer inside it (`/params/pattern`), unless it is allowed.
    fn report_for_eval(&mut self, of: LintedEval<'_>, inside: &str, said: LintMessage) {
        if !of.eval.allow.contains(&said.lint) {
            let span = self.span_inside(of, inside);
            self.push(span, said);
        }
    }

    /// Says something of the rubric itself, at a pointer into its file.
    fn rubric(&mut self, pointer: &str, said: LintMessage) {
        let span = self
            .doc()
            .map_or_else(SourceSpan::default, |doc| doc.span(pointer));
        self.push(span, said);
    }

    fn push(&mut self, span: SourceSpan, said: LintMessage) {
        let LintMessage {
            lint,
            message,
            help,
        } = said;
        debug_assert!(
            crate::rubric::LINTS.iter().any(|(name, _)| *name == lint),
            "a lint that files can name"
        );
        if self.rubric.allow.contains(&lint) {
            return;
        }
        let help = format!("{help}; if it is meant so: `allow: [{lint}]`");
        let warning = Diagnostic::warning(lint, &self.rubric.path, message)
            .with_span(span, &self.rubric.source)
            .help(help);
        self.found.push(warning);
    }

    fn doc(&self) -> Option<&YamlDoc> {
        let read = || yaml::read_document(&self.rubric.source, &self.rubric.path).ok();
        self.doc.get_or_init(read).as_ref()
    }

    /// The place inside an eval, as near as the file tells; an eval that came another way (a prompt's, in a pack) has its
    /// own place alone.
    fn span_inside(&self, of: LintedEval<'_>, inside: &str) -> SourceSpan {
        let lists = ["/evals", "/spec/evals"];
        let found = self.doc().and_then(|doc| {
            let at = lists.iter().map(|list| format!("{list}/{}", of.index));
            let mut at = at.filter(|at| doc.value.pointer(at).is_some());
            let at = at.find(|at| doc.key_span(at) == of.eval.span)?;
            Some(doc.span(&format!("{at}{inside}")))
        });
        found.unwrap_or_else(|| of.eval.span.clone())
    }

    /// By place.
    fn finish(mut self) -> Vec<Diagnostic> {
        self.found
            .sort_by_key(|d| d.span.as_ref().map(|s| (s.line, s.column)));
        self.found
    }
}

/// Params whose content is the agent's and its tools', not ours.
const AGENT_CONTENT_PARAMS: &[&str] = &[
    "args",
    "arguments",
    "expected_args",
    "excluded_args",
    "forbidden_args",
];

/// Every text within a value with its pointer, depth first, but not below keys of which `into` says no.
fn for_each_text<'v>(
    value: &'v serde_json::Value,
    pointer: &str,
    into: &dyn Fn(&str) -> bool,
    each: &mut dyn FnMut(&str, &'v str),
) {
    match value {
        serde_json::Value::String(text) => each(pointer, text),
        serde_json::Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                for_each_text(item, &format!("{pointer}/{at}"), into, each);
            }
        }
        serde_json::Value::Object(map) => {
            for (key, item) in map.iter().filter(|(key, _)| into(key)) {
                let step = crate::model::escape_pointer_step(key);
                for_each_text(item, &format!("{pointer}/{step}"), into, each);
            }
        }
        _ => {}
    }
}
