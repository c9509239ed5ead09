//! Recorded answers of tools: what was called how, and what it answered, so that two rubrics can be judged on the same
//! pages. Stands between the preparation of a call and the call itself, so that every tool gets it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::{CellIx, Digest, RawJson, RunId, ToolResponse};
use crate::tools::canonical_sorted_digest;

/// Names a tool call's answer: tool, its digest, canonical arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvidenceKey {
    /// The tool.
    pub tool: String,
    /// Digest of all that decides its answers ([`crate::tools::Tool::digest`]): another statement or URL is another tool.
    pub digest: Digest,
    /// Digest of the canonical arguments with sorted keys.
    pub args: Digest,
}

impl EvidenceKey {
    /// The key of a call with these canonical arguments. Neither key order nor spacing matters; numbers count as written.
    pub fn new(tool: &str, digest: &Digest, canonical: &RawJson) -> Self {
        Self {
            tool: tool.to_owned(),
            digest: digest.clone(),
            args: canonical_sorted_digest(canonical),
        }
    }
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum EvidenceLookup {
    /// Nothing: call the tool.
    Miss,
    /// A run recorded this answer.
    Found {
        /// The answer.
        response: ToolResponse,
        /// That run.
        run: RunId,
    },
    /// Evidence is frozen and holds no answer: this is what the model is told.
    MissingError(ToolResponse),
    /// Evidence is frozen and holds no answer, and the cell is to end here; why.
    MissingEndsCell(ToolResponse),
}

/// Recorded answers of tools.
pub trait EvidenceStore: Send + Sync {
    /// Looks a call up.
    fn get(&self, cell: CellIx, key: &EvidenceKey) -> EvidenceLookup;
    /// Keeps an answer for this run.
    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &ToolResponse);
}

/// No evidence: every tool call is live.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvidence;

impl EvidenceStore for NoEvidence {
    fn get(&self, _cell: CellIx, _key: &EvidenceKey) -> EvidenceLookup {
        EvidenceLookup::Miss
    }
    fn put(&self, _cell: CellIx, _key: EvidenceKey, _answer: &ToolResponse) {}
}

/// Every call is live; what was answered is remembered by cell, for the cache's entries.
#[derive(Debug, Default)]
pub struct LiveEvidence(Mutex<HashMap<CellIx, Vec<(EvidenceKey, Digest)>>>);

impl LiveEvidence {
    /// A cell's calls in the order answered, each with the digest of its answer's text; forgets them.
    pub fn take(&self, cell: CellIx) -> Vec<(EvidenceKey, Digest)> {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cells.remove(&cell).unwrap_or_default()
    }

    fn remember(&self, cell: CellIx, key: EvidenceKey, answer: &ToolResponse) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = Digest::hash_bytes(answer.text.as_bytes());
        cells.entry(cell).or_default().push((key, digest));
    }
}

impl EvidenceStore for LiveEvidence {
    fn get(&self, _cell: CellIx, _key: &EvidenceKey) -> EvidenceLookup {
        EvidenceLookup::Miss
    }
    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &ToolResponse) {
        self.remember(cell, key, answer);
    }
}

/// What a call gets that frozen evidence has no answer for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EvidenceMissPolicy {
    /// The tool is called.
    Live,
    /// An error the model is told.
    #[default]
    Error,
    /// The cell ends in an error.
    End,
}

impl EvidenceMissPolicy {
    /// As `--frozen-miss` spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Error => "error",
            Self::End => "end",
        }
    }

    /// The one that is spelled so; the default for any other word.
    pub fn parse_or_default(word: &str) -> Self {
        let all = [Self::Live, Self::Error, Self::End];
        let found = all.into_iter().find(|policy| policy.as_str() == word);
        found.unwrap_or_default()
    }
}

/// Answers tool calls from recorded evidence: of one run, or of several, of which the first that holds an answer gives it.
#[derive(Debug)]
pub struct ReplayedEvidence {
    run: RunId,
    further_runs: usize,
    responses: HashMap<EvidenceKey, (ToolResponse, RunId)>,
    miss_policy: EvidenceMissPolicy,
    used: LiveEvidence,
}

impl ReplayedEvidence {
    /// Evidence of `run`. Of several answers to one call the first that is no error stands, else the first.
    pub fn new(
        run: RunId,
        calls: Vec<(EvidenceKey, ToolResponse)>,
        miss: EvidenceMissPolicy,
    ) -> Self {
        let mut evidence = Self {
            run,
            further_runs: 0,
            responses: HashMap::with_capacity(calls.len()),
            miss_policy: miss,
            used: LiveEvidence::default(),
        };
        evidence.insert_calls(&evidence.run.clone(), calls);
        evidence
    }

    /// Adds evidence of a further run, which answers what those before it do not.
    pub fn add_run(&mut self, run: &RunId, calls: Vec<(EvidenceKey, ToolResponse)>) {
        self.further_runs += 1;
        self.insert_calls(run, calls);
    }

    /// How many calls it has answers for.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    /// Whether it answers nothing.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    fn insert_calls(&mut self, run: &RunId, calls: Vec<(EvidenceKey, ToolResponse)>) {
        for (key, answer) in calls {
            match self.responses.entry(key) {
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert((answer, run.clone()));
                }
                std::collections::hash_map::Entry::Occupied(mut there) => {
                    if there.get().0.is_error && !answer.is_error {
                        there.insert((answer, run.clone()));
                    }
                }
            }
        }
    }

    /// What a call is told that has no answer.
    fn explain_missing(&self, tool: &str) -> String {
        let more = match self.further_runs {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        format!(
            "evidence is frozen to run {}{more}, which holds no answer for this call of {tool}",
            self.run.letters()
        )
    }

    /// As [`LiveEvidence::take`]: what a cell was answered with.
    pub fn take(&self, cell: CellIx) -> Vec<(EvidenceKey, Digest)> {
        self.used.take(cell)
    }
}

impl EvidenceStore for ReplayedEvidence {
    fn get(&self, _cell: CellIx, key: &EvidenceKey) -> EvidenceLookup {
        match (self.responses.get(key), self.miss_policy) {
            (Some((answer, run)), _) => EvidenceLookup::Found {
                response: answer.clone(),
                run: run.clone(),
            },
            (None, EvidenceMissPolicy::Live) => EvidenceLookup::Miss,
            (None, EvidenceMissPolicy::Error) => {
                EvidenceLookup::MissingError(ToolResponse::error(format_args!(
                    "{}; decide with what you have",
                    self.explain_missing(&key.tool)
                )))
            }
            (None, EvidenceMissPolicy::End) => EvidenceLookup::MissingEndsCell(
                ToolResponse::error(format_args!("{}", self.explain_missing(&key.tool))),
            ),
        }
    }

    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &ToolResponse) {
        self.used.remember(cell, key, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(args: &str) -> EvidenceKey {
        let digest = Digest::hash_bytes(b"fetches");
        EvidenceKey::new("fetch_url", &digest, &RawJson::parse(args).expect("JSON"))
    }

    #[test]
    fn a_key_ignores_order_and_spacing_but_not_numbers() {
        assert_eq!(
            key(r#"{"a":[1,{"c":2,"b":"\u0041"}],"z":1}"#),
            key(r#"{ "z": 1, "a": [1, {"b": "A", "c": 2}] }"#)
        );
        assert_ne!(
            key(r#"{"n":12345678901234567890123}"#),
            key(r#"{"n":12345678901234567890124}"#)
        );
        assert_ne!(key(r#"{"n":1}"#), key(r#"{"n":"1"}"#));
    }

    #[test]
    fn a_tool_that_does_something_else_is_another_tool() {
        let args = RawJson::parse("{}").expect("JSON");
        let of = |does: &[u8]| EvidenceKey::new("find", &Digest::hash_bytes(does), &args);
        assert_eq!(of(b"SELECT 1"), of(b"SELECT 1"));
        assert_ne!(of(b"SELECT 1"), of(b"SELECT 2"));
    }

    #[test]
    fn frozen_evidence_answers_what_it_has_and_refuses_the_rest() {
        let run = RunId("20261121T015301Z-kvqa".into());
        let calls = vec![
            (key(r#"{"url":"a"}"#), ToolResponse::error("timeout")),
            (key(r#"{"url":"a"}"#), ToolResponse::ok("page")),
            (key(r#"{"url":"a"}"#), ToolResponse::ok("later page")),
        ];
        let frozen = ReplayedEvidence::new(run.clone(), calls, EvidenceMissPolicy::Error);
        assert_eq!(
            frozen.get(CellIx(0), &key(r#"{"url":"a"}"#)),
            EvidenceLookup::Found {
                response: ToolResponse::ok("page"),
                run: run.clone()
            }
        );
        assert!(matches!(
            frozen.get(CellIx(0), &key(r#"{"url":"b"}"#)),
            EvidenceLookup::MissingError(answer) if answer.is_error && answer.text.contains("kvqa")
        ));
        let live = ReplayedEvidence::new(run.clone(), Vec::new(), EvidenceMissPolicy::Live);
        assert_eq!(live.get(CellIx(0), &key("{}")), EvidenceLookup::Miss);
        let end = ReplayedEvidence::new(run, Vec::new(), EvidenceMissPolicy::End);
        assert!(matches!(
            end.get(CellIx(0), &key("{}")),
            EvidenceLookup::MissingEndsCell(_)
        ));
    }

    #[test]
    fn of_several_runs_the_first_that_holds_an_answer_gives_it() {
        let (newer, older) = (
            RunId("20261121T015301Z-kvqa".into()),
            RunId("20261120T015301Z-abcd".into()),
        );
        let url = |name: &str| key(&format!(r#"{{"url":"{name}"}}"#));
        let calls = vec![(url("a"), ToolResponse::ok("new"))];
        let mut frozen = ReplayedEvidence::new(newer.clone(), calls, EvidenceMissPolicy::Error);
        let calls = vec![
            (url("a"), ToolResponse::ok("old")),
            (url("b"), ToolResponse::ok("only there")),
        ];
        frozen.add_run(&older, calls);
        let from = |name| match frozen.get(CellIx(0), &url(name)) {
            EvidenceLookup::Found {
                response: answer,
                run,
            } => (answer.text, run),
            other => panic!("{other:?}"),
        };
        assert_eq!(frozen.len(), 2);
        assert_eq!(from("a"), ("new".to_owned(), newer));
        assert_eq!(from("b"), ("only there".to_owned(), older));
    }
}
