//! The digests and settings by which a result line identifies its decision.
//!
//! Responsible for their JSON keys, which `jsonl` writes and `result_file` reads. Does not write lines.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::event::{EvalSpec, JudgeSpec, RunHeader};
use crate::model::{Digest, EvalWhole, PanelRule, ScoreBounds};

/// The digests that identify the question of a cell.
#[derive(Debug, Clone, Copy)]
pub struct CellDigests<'a> {
    /// The digest of the transcript.
    pub transcript: &'a Digest,
    /// The digest of the eval's question, without its id and decision settings.
    pub eval: &'a Digest,
    /// The judge; `None` for a code check.
    pub judge: Option<&'a JudgeSpec>,
}

impl CellDigests<'_> {
    /// Returns the digest of everything that determines the judge's replies.
    pub fn judge_digest(self) -> Option<Digest> {
        self.judge.map(JudgeSpec::call_digest)
    }

    /// Returns the digest of the cell: its question to its judge about one message, and the repeat. `judge` is the value
    /// of [`Self::judge_digest`], because a caller needs it, too.
    pub(super) fn cell_digest(
        self,
        judge: Option<&Digest>,
        message: Option<u32>,
        repeat: Option<u32>,
    ) -> Digest {
        let judge = judge.map_or("", |digest| digest.0.as_str());
        let number = |number: Option<u32>| number.map_or_else(String::new, |n| n.to_string());
        let (message, repeat) = (number(message), number(repeat));
        Digest::hash_parts(
            [&self.transcript.0, &self.eval.0, &message, judge, &repeat].map(str::as_bytes),
        )
    }
}

/// The digests of a result line, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DigestsLine<'a> {
    pub(super) transcript: Cow<'a, Digest>,
    pub(super) eval: Cow<'a, Digest>,
    pub(super) judge: Option<Digest>,
}

/// The settings that decide an eval, as the summary of a result file keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalSettings {
    /// The id of the rubric.
    pub rubric: String,
    /// The id of the eval.
    pub eval: String,
    /// The digest of its question.
    pub digest: Digest,
    /// The digest of the text that labels answer; `None` in files of earlier versions.
    pub question: Option<Digest>,
    /// The eval as the file writes it, if this eval is one of several that replace it: labels are about the whole.
    pub part_of: Option<EvalWhole>,
    /// The lowest score that passes.
    pub min_score: Option<f64>,
    /// The highest score that passes.
    pub max_score: Option<f64>,
    /// The number of repeats.
    pub repeat: u32,
    /// The name of the rule of a panel: `majority`, `unanimity` or `cascade`; `None` without a panel.
    pub by: Option<String>,
    /// The margin of a cascade.
    pub margin: Option<f64>,
    /// The judges; empty for a code check.
    pub judges: Vec<JudgeDigest>,
}

/// A judge with the digest of everything that determines its replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgeDigest {
    /// The name.
    pub judge: String,
    /// The digest.
    pub digest: Digest,
}

impl EvalSettings {
    /// Returns the settings of every eval of a run.
    pub fn from_header(header: &RunHeader) -> Vec<Self> {
        let evals = header.evals.iter();
        evals.map(|eval| Self::from_eval(header, eval)).collect()
    }

    fn from_eval(header: &RunHeader, eval: &EvalSpec) -> Self {
        let rubric = header.rubrics.get(eval.rubric as usize);
        let bounds = ScoreBounds::from_decision_settings(&eval.decision_settings);
        let rule = eval.panel.as_ref().map(|panel| panel.rule);
        let judges = match &eval.panel {
            Some(panel) => panel.judges.clone(),
            None => eval.judge.into_iter().collect(),
        };
        let judges = judges.iter().filter_map(|judge| {
            let judge = header.judges.get(*judge as usize)?;
            Some(JudgeDigest {
                judge: judge.config.name.clone(),
                digest: judge.call_digest(),
            })
        });
        Self {
            rubric: rubric.map_or_else(String::new, |rubric| rubric.id.clone()),
            eval: eval.id.clone(),
            digest: eval.digest.clone(),
            question: eval.question.clone(),
            part_of: eval.part_of.clone(),
            min_score: bounds.min,
            max_score: bounds.max,
            repeat: eval.repeat,
            by: rule.map(|rule| rule.as_str().to_owned()),
            margin: match rule {
                Some(PanelRule::Cascade { margin }) => Some(margin),
                _ => None,
            },
            judges: judges.collect(),
        }
    }

    /// Returns the rule of the panel; `None` without a panel.
    pub(super) fn panel_rule(&self) -> Option<PanelRule> {
        match self.by.as_deref()? {
            "unanimity" => Some(PanelRule::Unanimity),
            "cascade" => Some(PanelRule::Cascade {
                margin: self.margin.unwrap_or_default(),
            }),
            _ => Some(PanelRule::Majority),
        }
    }
}
