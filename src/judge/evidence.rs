//! Recorded answers of tools: what was called how, and what it answered, so that two rubrics can be judged on the same
//! pages. Stands between the preparation of a call and the call itself, so that every tool gets it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::model::{Answer, CellIx, Digest, RawJson, RunId, ToolDecl};
use crate::tools::canonical_sorted_digest;

/// Names a tool call's answer: tool, its declaration's digest, canonical arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EvidenceKey {
    /// The tool.
    pub tool: String,
    /// Digest of its declaration.
    pub decl: Digest,
    /// Digest of the canonical arguments with sorted keys.
    pub args: Digest,
}

impl EvidenceKey {
    /// The key of a call with these canonical arguments. Neither key order nor spacing matters; numbers count as written.
    pub fn of(decl: &ToolDecl, canonical: &RawJson) -> Self {
        Self {
            tool: decl.name.clone(),
            decl: decl.digest(),
            args: canonical_sorted_digest(canonical),
        }
    }
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Lookup {
    /// Nothing: call the tool.
    Miss,
    /// A run recorded this answer.
    Found {
        /// The answer.
        answer: Answer,
        /// That run.
        run: RunId,
    },
    /// Evidence is frozen and holds no answer: this is what the model is told.
    Refused(Answer),
}

/// Recorded answers of tools.
pub trait EvidenceStore: Send + Sync {
    /// Looks a call up.
    fn get(&self, cell: CellIx, key: &EvidenceKey) -> Lookup;
    /// Keeps an answer for this run.
    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &Answer);
}

/// No evidence: every tool call is live.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEvidence;

impl EvidenceStore for NoEvidence {
    fn get(&self, _cell: CellIx, _key: &EvidenceKey) -> Lookup {
        Lookup::Miss
    }
    fn put(&self, _cell: CellIx, _key: EvidenceKey, _answer: &Answer) {}
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

    fn keep(&self, cell: CellIx, key: EvidenceKey, answer: &Answer) {
        let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let digest = Digest::of(answer.text.as_bytes());
        cells.entry(cell).or_default().push((key, digest));
    }
}

impl EvidenceStore for LiveEvidence {
    fn get(&self, _cell: CellIx, _key: &EvidenceKey) -> Lookup {
        Lookup::Miss
    }
    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &Answer) {
        self.keep(cell, key, answer);
    }
}

/// What a call gets that frozen evidence has no answer for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissPolicy {
    /// The tool is called.
    Live,
    /// An error the model is told.
    #[default]
    Error,
}

/// Answers tool calls from one run's recorded evidence.
#[derive(Debug)]
pub struct FrozenEvidence {
    run: RunId,
    answers: HashMap<EvidenceKey, Answer>,
    miss: MissPolicy,
    used: LiveEvidence,
}

impl FrozenEvidence {
    /// Evidence of `run`. Of several answers to one call the first that is no error stands, else the first.
    pub fn new(run: RunId, calls: Vec<(EvidenceKey, Answer)>, miss: MissPolicy) -> Self {
        let mut answers: HashMap<EvidenceKey, Answer> = HashMap::with_capacity(calls.len());
        for (key, answer) in calls {
            match answers.entry(key) {
                std::collections::hash_map::Entry::Vacant(free) => {
                    free.insert(answer);
                }
                std::collections::hash_map::Entry::Occupied(mut there) => {
                    if there.get().is_error && !answer.is_error {
                        there.insert(answer);
                    }
                }
            }
        }
        Self {
            run,
            answers,
            miss,
            used: LiveEvidence::default(),
        }
    }

    /// As [`LiveEvidence::take`]: what a cell was answered with.
    pub fn take(&self, cell: CellIx) -> Vec<(EvidenceKey, Digest)> {
        self.used.take(cell)
    }
}

impl EvidenceStore for FrozenEvidence {
    fn get(&self, _cell: CellIx, key: &EvidenceKey) -> Lookup {
        match (self.answers.get(key), self.miss) {
            (Some(answer), _) => Lookup::Found {
                answer: answer.clone(),
                run: self.run.clone(),
            },
            (None, MissPolicy::Live) => Lookup::Miss,
            (None, MissPolicy::Error) => Lookup::Refused(Answer::error(format_args!(
                "evidence is frozen to run {}, which holds no answer for this call of {}; decide with what you have",
                self.run.letters(),
                key.tool
            ))),
        }
    }

    fn put(&self, cell: CellIx, key: EvidenceKey, answer: &Answer) {
        self.used.keep(cell, key, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decl() -> ToolDecl {
        ToolDecl {
            name: "fetch_url".into(),
            description: "fetches".into(),
            schema: serde_json::json!({"type": "object"}),
        }
    }

    fn key(args: &str) -> EvidenceKey {
        EvidenceKey::of(&decl(), &RawJson::parse(args).expect("JSON"))
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
    fn frozen_evidence_answers_what_it_has_and_refuses_the_rest() {
        let run = RunId("20261121T015301Z-kvqa".into());
        let calls = vec![
            (key(r#"{"url":"a"}"#), Answer::error("timeout")),
            (key(r#"{"url":"a"}"#), Answer::ok("page")),
            (key(r#"{"url":"a"}"#), Answer::ok("later page")),
        ];
        let frozen = FrozenEvidence::new(run.clone(), calls, MissPolicy::Error);
        assert_eq!(
            frozen.get(CellIx(0), &key(r#"{"url":"a"}"#)),
            Lookup::Found {
                answer: Answer::ok("page"),
                run: run.clone()
            }
        );
        assert!(matches!(
            frozen.get(CellIx(0), &key(r#"{"url":"b"}"#)),
            Lookup::Refused(answer) if answer.is_error && answer.text.contains("kvqa")
        ));
        let live = FrozenEvidence::new(run, Vec::new(), MissPolicy::Live);
        assert_eq!(live.get(CellIx(0), &key("{}")), Lookup::Miss);
    }
}
