//! Labels on disk, and a state with labels: the whole way from files to figures.

use std::sync::Arc;

use dicta::compare::compute_label_figures;
use dicta::compare::statistics::Confidence;
use dicta::event::{EvalSpec, RubricSpec, RunHeader};
use dicta::handlers::EvalTypeRegistry;
use dicta::model::{Digest, DrawStratum, Label, Labels, Outcome, RecordedDraw, RunId, WallTime};
use dicta::record::{DecisionStanding, EvalDecisions, State, StateDecision, StateTranscript};
use dicta::workspace::Env;

/// A label of known origin.
fn label(transcript: &str, passed: bool) -> Label {
    let digest = Digest::hash_bytes(b"text");
    Label {
        rubric: Some("r".to_owned()),
        by: Some("ann".to_owned()),
        blind: Some(true),
        transcript_digest: Some(digest.clone()),
        question_digest: Some(digest),
        ..Label::new(transcript, "e", Some(passed))
    }
}

/// A workspace with labels in a file.
pub(crate) struct LabelFiles {
    folder: tempfile::TempDir,
    registry: EvalTypeRegistry,
}

impl LabelFiles {
    pub(crate) fn write(labels: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).expect("written");
        };
        write("dicta.yaml", "transcripts: [t.jsonl]\nrubrics: [r.yaml]\n");
        write("t.jsonl", "{\"id\":\"t0\",\"messages\":[]}\n");
        write(
            "r.yaml",
            "id: r\nevals:\n  - {id: e, type: contains, params: {patterns: [hello]}}\n",
        );
        let lines = (0..labels).map(|at| {
            let label = label(&format!("t{at}"), at % 2 == 0);
            serde_json::to_string(&label).expect("JSON") + "\n"
        });
        write("labels.jsonl", &lines.collect::<String>());
        Self {
            folder,
            registry: EvalTypeRegistry::builtin(),
        }
    }

    /// Loads and indexes the labels. Returns their number.
    pub(crate) fn load(&self) -> usize {
        let loaded = dicta::workspace::load(self.folder.path(), &Env::default(), &self.registry);
        let workspace = loaded.expect("a workspace");
        assert!(!workspace.index_labels().is_empty());
        workspace.labels.len()
    }
}

/// A state whose decisions all have labels, from a draw by verdict of half of them.
pub(crate) struct LabelledState {
    state: State,
    labels: Labels,
    draws: Vec<RecordedDraw>,
}

impl LabelledState {
    pub(crate) fn new(decisions: usize) -> Self {
        let mut header = RunHeader::new(RunId("r".into()), WallTime(String::new()), "/w".into());
        header.rubrics.push(RubricSpec {
            id: "r".into(),
            path: "r.yaml".into(),
            threshold: None,
        });
        let mut eval = EvalSpec::new(0, "e", "llm_judge", Digest::unread());
        eval.question = Some(Digest::hash_bytes(b"text"));
        header.evals.push(eval);
        let numbers = 0..u32::try_from(decisions).expect("few");
        let ids: Vec<String> = numbers.clone().map(|at| format!("t{at}")).collect();
        let passes = |at: u32| !at.is_multiple_of(3);
        let decided = numbers.clone().map(|transcript| StateDecision {
            transcript,
            eval: 0,
            message: None,
            standing: DecisionStanding::Decided {
                outcome: Outcome::from_passed(passes(transcript)),
                score: None,
            },
            cells: Box::default(),
            slots: Box::default(),
            failed_rerun: None,
            edited: false,
        });
        let digest = Digest::hash_bytes(b"text");
        let transcripts = ids.iter().map(|id| StateTranscript {
            id: id.as_str().into(),
            digest: digest.clone(),
        });
        let stratum = |passed: bool| DrawStratum {
            name: format!("verdict {passed}"),
            members: numbers
                .clone()
                .filter(|at| passes(*at) == passed)
                .map(|at| ids[at as usize].clone())
                .collect(),
        };
        let draw = RecordedDraw {
            rubric: "r".to_owned(),
            eval: "e".to_owned(),
            plan: "stratified".to_owned(),
            by: Some("verdict".to_owned()),
            seed: 1,
            at: WallTime(String::new()),
            population: RecordedDraw::digest_population(ids.iter().map(String::as_str)),
            strata: vec![stratum(true), stratum(false)],
            drawn: ids.iter().step_by(2).cloned().collect(),
            arrived: Vec::new(),
        };
        let labels = numbers.clone().zip(&ids);
        let labels = labels.map(|(at, id)| label(id, passes(at) ^ at.is_multiple_of(10)));
        Self {
            labels: Labels::new(labels),
            draws: vec![draw],
            state: State {
                header: Arc::new(header),
                identities: Vec::new(),
                transcripts: Arc::new(transcripts.collect()),
                evals: vec![Arc::new(EvalDecisions {
                    decisions: decided.collect(),
                })],
            },
        }
    }

    /// Computes all figures, the bootstrap included. Returns the number of measured labels.
    pub(crate) fn compute_figures(&self) -> u64 {
        let figures = compute_label_figures(
            &self.state,
            &self.labels,
            &self.draws,
            Confidence::P95,
            |_| true,
        );
        figures.iter().map(|eval| eval.population.labels()).sum()
    }
}
