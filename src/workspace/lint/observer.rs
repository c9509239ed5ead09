//! Lints that need all transcripts: `selects-nothing` and `unknown-tool`.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{LintMessage, LintedEval, RubricLints, enabled_evals, tools};
use crate::diag::{Diagnostic, find_nearest};
use crate::model::{Transcript, TranscriptPart};
use crate::rubric::{CompiledSelector, Rubric, Selector};

/// The maximum number of tags and of tools that are kept. With more tools, `unknown-tool` is not reported, because
/// the list is incomplete.
const MAX_REMEMBERED: usize = 10_000;

/// The linter that reads every transcript of a workspace once.
pub struct TranscriptLinter {
    rubrics: Vec<ObservedRubric>,
    transcripts: u64,
    tools: BTreeSet<String>,
    tags: BTreeSet<String>,
}

struct ObservedRubric {
    rubric: Arc<Rubric>,
    rubric_hit: SelectorHit,
    evals: Vec<SelectorHit>,
}

/// A selector, and whether it has selected a transcript.
struct SelectorHit {
    /// The compiled selector; `None` if it selects every transcript.
    matcher: Option<CompiledSelector>,
    has_matched: bool,
}

impl SelectorHit {
    fn new(selector: &Selector) -> Self {
        Self {
            matcher: (!selector.is_empty()).then(|| selector.compile()),
            has_matched: false,
        }
    }

    fn selects(&mut self, transcript: &Transcript<'_>) -> bool {
        let matcher = self.matcher.as_ref();
        let selects = matcher.is_none_or(|matcher| matcher.matches(transcript));
        self.has_matched |= selects;
        selects
    }
}

impl TranscriptLinter {
    /// Creates a linter for these rubrics.
    pub fn new(rubrics: &[Arc<Rubric>]) -> Self {
        let watched = |rubric: &Arc<Rubric>| ObservedRubric {
            rubric_hit: SelectorHit::new(&rubric.applies_to),
            evals: rubric
                .evals
                .iter()
                .map(|e| SelectorHit::new(&e.applies_to))
                .collect(),
            rubric: Arc::clone(rubric),
        };
        Self {
            rubrics: rubrics.iter().map(watched).collect(),
            transcripts: 0,
            tools: BTreeSet::new(),
            tags: BTreeSet::new(),
        }
    }

    /// Records one transcript.
    pub fn observe(&mut self, transcript: &Transcript<'_>) {
        self.transcripts += 1;
        for part in transcript
            .messages
            .iter()
            .flat_map(|message| &message.parts)
        {
            if let TranscriptPart::ToolCall(call) = part {
                remember(&mut self.tools, &call.name);
            }
        }
        for tag in &transcript.tags {
            remember(&mut self.tags, tag);
        }
        for watched in &mut self.rubrics {
            // A selector that has matched needs no further test. In most workspaces, that is soon true of
            // all.
            let open = |hit: &SelectorHit| !hit.has_matched;
            if !open(&watched.rubric_hit) && !watched.evals.iter().any(open) {
                continue;
            }
            if watched.rubric_hit.selects(transcript) {
                for eval in watched.evals.iter_mut().filter(|hit| open(hit)) {
                    eval.selects(transcript);
                }
            }
        }
    }

    /// Returns the lints. In a workspace without transcripts, these are only samples of 0 percent.
    pub fn finish(self) -> Vec<Diagnostic> {
        let mut all = Vec::new();
        for watched in &self.rubrics {
            let mut lints = RubricLints::new(&watched.rubric);
            for (at, eval) in enabled_evals(&watched.rubric) {
                let linted = LintedEval { index: at, eval };
                if eval.trigger.is_sampled() && eval.sample_percentage == 0.0 {
                    let lint_message = LintMessage {
                        lint: "selects-nothing",
                        message: "sample_percentage is 0: nothing is sampled".to_owned(),
                        help: "raise it, or say `enabled: false`".to_owned(),
                    };
                    lints.report_for_eval(linted, "/sample_percentage", lint_message);
                }
                if self.transcripts == 0 {
                    continue;
                }
                // If the rubric's own selector matches nothing, one lint about the rubric is enough.
                if watched.rubric_hit.has_matched && !watched.evals[at].has_matched {
                    lints.report_for_eval(
                        linted,
                        "/applies_to",
                        self.selects_nothing_lint(&eval.applies_to),
                    );
                }
                // A tool that is missing from an incomplete list may still be called.
                if self.tools.len() < MAX_REMEMBERED {
                    tools::lint_tools(&mut lints, linted, &self.tools);
                }
            }
            if self.transcripts > 0 && !watched.rubric_hit.has_matched {
                lints.rubric(
                    "/applies_to",
                    self.selects_nothing_lint(&watched.rubric.applies_to),
                );
            }
            all.extend(lints.finish());
        }
        all
    }

    fn selects_nothing_lint(&self, selector: &Selector) -> LintMessage {
        let slip = |written: &[String], known: &BTreeSet<String>, what: &str| {
            written
                .iter()
                .filter(|one| !known.contains(*one))
                .find_map(|one| {
                    let near = find_nearest(one, known.iter().map(String::as_str))?;
                    Some(format!(
                        "no transcript {what} `{one}`; did you mean `{near}`?"
                    ))
                })
        };
        let help = slip(&selector.tags, &self.tags, "has the tag")
            .or_else(|| slip(&selector.has_tool, &self.tools, "calls"));
        let total = crate::model::pluralize(self.transcripts, "transcript");
        LintMessage {
            lint: "selects-nothing",
            message: format!("applies_to selects none of {total}"),
            help: help
                .unwrap_or_else(|| "all of its conditions must hold for one transcript".to_owned()),
        }
    }
}

fn remember(known: &mut BTreeSet<String>, name: &str) {
    if known.len() < MAX_REMEMBERED && !known.contains(name) {
        known.insert(name.to_owned());
    }
}
