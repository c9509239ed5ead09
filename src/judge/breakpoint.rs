//! Breakpoints: the stops of judge traces at which dicta asks a person.
//!
//! Responsible for their syntax, for matching stops, and for the gate that passes a paused trace on. Does not ask. Each
//! cell pauses alone: the others continue.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

use super::gate::{CellNames, Gate, GateAction, GateEdit, GateStop};
use super::request_texts::RequestTexts;
use crate::clock::BoxFuture;
use crate::event::GatePoint;
use crate::model::{
    CellIx, CellName, CellPattern, Outcome, RawJson, ToolResponse, Verdict, is_json_object,
};
use crate::tools::{self, SeenUrls, ToolSet};

/// A stop at which a trace pauses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Breakpoint {
    /// `turn`: before a model call.
    Turn,
    /// `call`, `call:NAME` or `call:NAME:TEXT`: before a tool call, if the tool has this name and its arguments contain
    /// this text.
    Call {
        /// The tool; `None` for every tool.
        tool: Option<String>,
        /// The text in the arguments; `None` for all arguments.
        text: Option<String>,
    },
    /// `answer`: after a tool response.
    Answer,
    /// `rejected`: after a rejected tool call.
    Rejected,
    /// `repaired`: before a tool call whose arguments were repaired.
    Repaired,
    /// `verdict`, `verdict:pass` or `verdict:fail`: after a verdict.
    Verdict {
        /// The verdict; `None` for every verdict.
        passed: Option<bool>,
    },
    /// `outcome:NAME`: at the end of a trace with this outcome.
    Outcome(Outcome),
    /// `STOP in CELLS`: a stop of these cells only. CELLS is the beginning of a cell's name, or a glob.
    In {
        /// The stop.
        stop: Box<Breakpoint>,
        /// The pattern of the names. It contains a `/` or a `*`.
        cells: String,
    },
}

/// The error of a text that is not a breakpoint.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{0}` is not a breakpoint; write turn, call, call:TOOL, call:TOOL:TEXT, answer, rejected, repaired, verdict, verdict:pass, \
     verdict:fail or outcome:NAME, and after it ` in CELLS` for some cells only (`refund-*/support/tone`)"
)]
pub struct BreakpointError(String);

impl FromStr for Breakpoint {
    type Err = BreakpointError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || BreakpointError(text.to_owned());
        // A text in arguments may contain this word, but seldom before a name of a cell.
        if let Some((stop, cells)) = text.rsplit_once(" in ")
            && cells.contains(['/', '*'])
            && !cells.contains(char::is_whitespace)
        {
            let stop = stop.trim().parse().map_err(|_| wrong())?;
            return Ok(Self::In {
                stop: Box::new(stop),
                cells: cells.to_owned(),
            });
        }
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) if !rest.is_empty() => (word, Some(rest)),
            Some(_) => return Err(wrong()),
            None => (text, None),
        };
        Ok(match (word, rest) {
            ("turn", None) => Self::Turn,
            ("call", None) => Self::Call {
                tool: None,
                text: None,
            },
            ("call", Some(rest)) => {
                let (tool, text) = match rest.split_once(':') {
                    Some((tool, text)) => (tool, Some(text.to_owned())),
                    None => (rest, None),
                };
                let tool = (!matches!(tool, "" | "*")).then(|| tool.to_owned());
                Self::Call { tool, text }
            }
            ("answer", None) => Self::Answer,
            ("rejected", None) => Self::Rejected,
            ("repaired", None) => Self::Repaired,
            ("verdict", None) => Self::Verdict { passed: None },
            ("verdict", Some("pass")) => Self::Verdict { passed: Some(true) },
            ("verdict", Some("fail")) => Self::Verdict {
                passed: Some(false),
            },
            ("outcome", Some(name)) => {
                let outcome = serde_json::from_value(serde_json::Value::from(name));
                Self::Outcome(outcome.map_err(|_| wrong())?)
            }
            _ => return Err(wrong()),
        })
    }
}

impl fmt::Display for Breakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn => f.write_str("turn"),
            Self::Call { tool, text } => match (tool.as_deref(), text) {
                (None, None) => f.write_str("call"),
                (Some(tool), None) => write!(f, "call:{tool}"),
                (tool, Some(text)) => write!(f, "call:{}:{text}", tool.unwrap_or("*")),
            },
            Self::Answer => f.write_str("answer"),
            Self::Rejected => f.write_str("rejected"),
            Self::Repaired => f.write_str("repaired"),
            Self::Verdict { passed: None } => f.write_str("verdict"),
            Self::Verdict { passed: Some(true) } => f.write_str("verdict:pass"),
            Self::Verdict {
                passed: Some(false),
            } => f.write_str("verdict:fail"),
            Self::Outcome(outcome) => write!(f, "outcome:{}", outcome.as_str()),
            Self::In { stop, cells } => write!(f, "{stop} in {cells}"),
        }
    }
}

impl Breakpoint {
    /// Returns true if a trace pauses at this stop. A breakpoint of some cells needs the name of the cell.
    pub fn matches(&self, stop: &GateStop<'_>, name: Option<&CellName>) -> bool {
        match (self, stop) {
            (Self::Turn, GateStop::BeforeTurn(_))
            | (Self::Answer, GateStop::Answered(_))
            | (Self::Rejected, GateStop::Rejected(_)) => true,
            (Self::Repaired, GateStop::Call { repaired, .. }) => *repaired,
            (Self::Call { tool, text }, GateStop::Call { call, .. }) => {
                tool.as_ref().is_none_or(|tool| *tool == call.tool)
                    && text
                        .as_ref()
                        .is_none_or(|text| call.canonical.get().contains(text.as_str()))
            }
            (Self::Verdict { passed }, GateStop::Verdict(verdict)) => {
                passed.is_none() || verdict.passed == *passed
            }
            (Self::Outcome(outcome), GateStop::Ended(result)) => result.outcome == *outcome,
            (Self::In { stop: of, cells }, _) => {
                name.is_some_and(|name| CellPattern::new(cells).matches(name))
                    && of.matches(stop, name)
            }
            _ => false,
        }
    }
}

/// The thing at which a trace is paused.
#[derive(Debug, Clone, PartialEq)]
pub enum PausedAt {
    /// A request that is not sent yet.
    Turn(String),
    /// A tool call that has not started.
    Call {
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: String,
        /// The check that other arguments must pass.
        check: CallCheck,
    },
    /// A rejected tool call, with the error text for the model.
    Rejected(String),
    /// A tool response.
    Answered(String),
    /// A verdict.
    Verdict(Box<Verdict>),
    /// The end of the trace.
    Ended(Outcome),
}

/// The tools of a judge and the addresses that a fetch may open: what decides whether arguments are valid.
#[derive(Clone)]
pub struct CallCheck {
    tools: ToolSet,
    seen: Arc<SeenUrls>,
}

impl CallCheck {
    /// Checks arguments as dicta checks those of the model. The error is the text that the model would receive.
    fn check(&self, tool: &str, arguments: &str) -> Result<(), String> {
        let prepared =
            tools::prepare_call_catching_panics(&self.tools, tool, arguments, &self.seen);
        prepared.outcome.map(|_| ()).map_err(|refused| refused.text)
    }
}

impl PartialEq for CallCheck {
    fn eq(&self, other: &Self) -> bool {
        self.tools.decls() == other.tools.decls()
    }
}

impl fmt::Debug for CallCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCheck").finish_non_exhaustive()
    }
}

/// The error of an edit that dicta can't use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PauseEditError {
    /// The text must be JSON of another form.
    #[error("the edited text is not {expected}: {why}")]
    Malformed {
        /// The expected form.
        expected: &'static str,
        /// The reason.
        why: String,
    },
    /// The tool does not accept the arguments.
    #[error("`{tool}` does not accept the edited arguments: {why}")]
    Refused {
        /// The tool.
        tool: String,
        /// The reason.
        why: String,
    },
    /// Nothing can be edited at the stop.
    #[error("the trace has ended, so nothing can be edited here")]
    Nothing,
}

impl PausedAt {
    fn new(stop: &GateStop<'_>) -> Self {
        match stop {
            GateStop::BeforeTurn(body) => Self::Turn(body.text()),
            GateStop::Call { call, check, .. } => Self::Call {
                tool: call.tool.clone(),
                arguments: call.canonical.get().to_owned(),
                check: CallCheck {
                    tools: check.tools.clone(),
                    seen: Arc::new(check.seen.clone()),
                },
            },
            GateStop::Rejected(rejection) => Self::Rejected(rejection.text.clone()),
            GateStop::Answered(response) => Self::Answered(response.text.clone()),
            GateStop::Verdict(verdict) => Self::Verdict(Box::new((*verdict).clone())),
            GateStop::Ended(result) => Self::Ended(result.outcome),
        }
    }

    /// Returns the text that a person can edit; `None` at the end of a trace.
    pub fn editable_text(&self) -> Option<String> {
        match self {
            // The texts of a request are easier to edit than its JSON.
            Self::Turn(body) => Some(
                RequestTexts::find(body).map_or_else(|| body.clone(), |texts| texts.to_document()),
            ),
            Self::Rejected(text) | Self::Answered(text) => Some(text.clone()),
            Self::Call { arguments, .. } => Some(arguments.clone()),
            Self::Verdict(verdict) => serde_json::to_string_pretty(verdict).ok(),
            Self::Ended(_) => None,
        }
    }

    /// Returns the action for an edited text. Checks the text first, so that a mistake doesn't reach the judge.
    pub fn edit(&self, text: &str) -> Result<GateAction, PauseEditError> {
        let malformed = |expected, why: String| PauseEditError::Malformed { expected, why };
        Ok(match self {
            Self::Turn(body) => {
                // Without headings, the text is the whole request.
                let texts = RequestTexts::find(body).filter(|_| !is_json_object(text));
                let edited = match texts {
                    Some(texts) => texts
                        .apply(text)
                        .map_err(|why| malformed("the texts of the request", why))?,
                    None => text.to_owned(),
                };
                if !is_json_object(&edited) {
                    return Err(malformed("a JSON object", "a request is one".to_owned()));
                }
                GateAction::ContinueWith(GateEdit::Body(edited))
            }
            Self::Call { tool, check, .. } => {
                let json = RawJson::parse(text);
                let json = json.map_err(|error| malformed("JSON", error.to_string()))?;
                if !is_json_object(text) {
                    return Err(malformed("a JSON object", "arguments are one".to_owned()));
                }
                check
                    .check(tool, text)
                    .map_err(|why| PauseEditError::Refused {
                        tool: tool.clone(),
                        why,
                    })?;
                GateAction::ContinueWith(GateEdit::Args(json))
            }
            Self::Rejected(_) | Self::Answered(_) => {
                GateAction::ContinueWith(GateEdit::ToolResponse(ToolResponse::ok(text)))
            }
            Self::Verdict(_) => {
                let verdict = serde_json::from_str::<Verdict>(text);
                let verdict = verdict.map_err(|error| malformed("a verdict", error.to_string()))?;
                GateAction::ContinueWith(GateEdit::Verdict(Box::new(verdict)))
            }
            Self::Ended(_) => return Err(PauseEditError::Nothing),
        })
    }
}

impl fmt::Display for PausedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Turn(body) => write!(f, "before a model call of {} bytes", body.len()),
            Self::Call {
                tool, arguments, ..
            } => write!(f, "before the call {tool}({arguments})"),
            Self::Rejected(text) => write!(f, "at a rejected call: {text}"),
            Self::Answered(text) => write!(f, "at a tool response:\n{text}"),
            Self::Verdict(verdict) => {
                let word = match verdict.passed {
                    Some(true) => "pass",
                    Some(false) => "fail",
                    None => "no result",
                };
                write!(f, "at the verdict {word}: {}", verdict.reasoning)
            }
            Self::Ended(outcome) => write!(f, "at the end: {}", outcome.as_str()),
        }
    }
}

/// A person's decision about a paused trace.
#[derive(Debug, Clone, PartialEq)]
pub enum PauseDecision {
    /// Continue to the next stop of this trace.
    Step,
    /// Continue to the next breakpoint.
    Continue,
    /// Continue, and pause nowhere again in this run until the breakpoints change.
    ContinueAll,
    /// Don't make the call; the model gets an error.
    SkipCall,
    /// Continue with an edit of [`PausedAt::edit`].
    Edit(GateAction),
    /// End the cell with `cancelled`.
    End,
}

/// A paused trace. If it is dropped without a decision, the trace continues.
#[derive(Debug)]
pub struct PausedTrace {
    /// The cell.
    pub cell: CellIx,
    /// The name of the cell. The pause may be known before the event with the plan of the cell.
    pub name: Option<CellName>,
    /// The kind of stop.
    pub point: GatePoint,
    /// The thing at which it is paused.
    pub at: PausedAt,
    decided: oneshot::Sender<PauseDecision>,
}

impl PausedTrace {
    /// Releases the trace.
    pub fn decide(self, decision: PauseDecision) {
        // If the run was cancelled, no one waits for the decision.
        _ = self.decided.send(decision);
    }
}

/// The breakpoints of several gates. They can change while traces run.
#[derive(Debug, Default)]
pub struct BreakpointSet {
    points: RwLock<Vec<Breakpoint>>,
    /// The number of changes.
    version: AtomicU64,
}

impl BreakpointSet {
    /// Replaces the breakpoints.
    pub fn replace(&self, breakpoints: Vec<Breakpoint>) {
        let mut points = self.points.write().unwrap_or_else(PoisonError::into_inner);
        *points = breakpoints;
        // A gate that a person opened closes again, because the person now wants other pauses.
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    fn matches(&self, stop: &GateStop<'_>, name: Option<&CellName>) -> bool {
        let points = self.points.read().unwrap_or_else(PoisonError::into_inner);
        points.iter().any(|point| point.matches(stop, name))
    }
}

/// The value of [`BreakpointGate::opened_at`] for a closed gate.
const CLOSED: u64 = u64::MAX;

/// A gate with breakpoints.
#[derive(Debug)]
pub struct BreakpointGate {
    breakpoints: Arc<BreakpointSet>,
    paused: mpsc::UnboundedSender<PausedTrace>,
    /// The cells that pause at their next stop.
    stepping: Mutex<HashSet<CellIx>>,
    /// The version of the breakpoints at which a person opened the gate.
    opened_at: AtomicU64,
    /// The names of the run's cells, once the run is prepared.
    names: OnceLock<Arc<dyn CellNames>>,
}

impl BreakpointGate {
    /// Returns the gate, and the receiver of the traces that it pauses.
    pub fn new(breakpoints: Vec<Breakpoint>) -> (Self, mpsc::UnboundedReceiver<PausedTrace>) {
        let set = BreakpointSet {
            points: RwLock::new(breakpoints),
            ..BreakpointSet::default()
        };
        Self::watching(Arc::new(set))
    }

    /// Returns a gate whose breakpoints can change, and the receiver of the traces that it pauses.
    pub fn watching(
        breakpoints: Arc<BreakpointSet>,
    ) -> (Self, mpsc::UnboundedReceiver<PausedTrace>) {
        let (paused, receiver) = mpsc::unbounded_channel();
        let gate = Self {
            breakpoints,
            paused,
            stepping: Mutex::default(),
            opened_at: AtomicU64::new(CLOSED),
            names: OnceLock::new(),
        };
        (gate, receiver)
    }

    fn pauses(&self, cell: CellIx, stop: &GateStop<'_>) -> bool {
        let version = self.breakpoints.version.load(Ordering::SeqCst);
        if self.opened_at.load(Ordering::SeqCst) == version {
            return false;
        }
        let mut stepping = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let name = self.find_name(cell);
        stepping.remove(&cell) || self.breakpoints.matches(stop, name.as_ref())
    }

    fn find_name(&self, cell: CellIx) -> Option<CellName> {
        self.names.get()?.find_name(cell)
    }

    async fn ask(&self, cell: CellIx, stop: GateStop<'_>) -> GateAction {
        let (decided, decision) = oneshot::channel();
        let paused = PausedTrace {
            cell,
            name: self.find_name(cell),
            point: stop.kind(),
            at: PausedAt::new(&stop),
            decided,
        };
        if self.paused.send(paused).is_err() {
            // No one asks any more.
            return GateAction::Continue;
        }
        match decision.await.unwrap_or(PauseDecision::Continue) {
            PauseDecision::Step => {
                let mut stepping = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
                stepping.insert(cell);
                GateAction::Continue
            }
            PauseDecision::Continue => GateAction::Continue,
            PauseDecision::ContinueAll => {
                let version = self.breakpoints.version.load(Ordering::SeqCst);
                self.opened_at.store(version, Ordering::SeqCst);
                GateAction::Continue
            }
            PauseDecision::SkipCall => {
                GateAction::AnswerCall(ToolResponse::error("a person skipped this call"))
            }
            PauseDecision::Edit(action) => action,
            PauseDecision::End => GateAction::EndCell(Outcome::Cancelled),
        }
    }
}

impl Gate for BreakpointGate {
    fn pass<'a>(&'a self, cell: CellIx, stop: GateStop<'a>) -> BoxFuture<'a, GateAction> {
        if self.pauses(cell, &stop) {
            Box::pin(self.ask(cell, stop))
        } else {
            Box::pin(std::future::ready(GateAction::Continue))
        }
    }

    fn set_names(&self, names: Arc<dyn CellNames>) {
        // A gate belongs to one run, so the first names are the only ones.
        _ = self.names.set(names);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::judge::fake::{
        FakeTool, FakeToolBehavior, JudgeFixture, PASSED, Script, calls, format_facts,
    };
    use crate::model::CellResult;

    #[test]
    fn breakpoints_are_read_as_documented() {
        for good in [
            "turn",
            "call",
            "call:fetch_url",
            "call:fetch_url:https://a.example",
            "answer",
            "rejected",
            "repaired",
            "verdict",
            "verdict:fail",
            "outcome:timeout",
            "call:fetch_url in refund-*/support/tone",
            "verdict:fail in refund-02/",
            "call:search:flights in Rome",
        ] {
            let point = good.parse::<Breakpoint>().expect(good);
            assert_eq!(point.to_string(), good);
        }
        for bad in [
            "",
            "calls",
            "call:",
            "verdict:maybe",
            "outcome",
            "outcome:odd",
            "turn:2",
            "calls in a/*",
            "turn in a",
        ] {
            let error = bad.parse::<Breakpoint>().expect_err(bad).to_string();
            assert!(error.contains("is not a breakpoint; write turn"), "{error}");
        }
        let point: Breakpoint = "call:fetch_url:https://a.example".parse().expect("valid");
        let text = Some("https://a.example".to_owned());
        let tool = Some("fetch_url".to_owned());
        assert_eq!(point, Breakpoint::Call { tool, text });
    }

    #[derive(Debug)]
    struct OneName(CellName);

    impl CellNames for OneName {
        fn find_name(&self, cell: CellIx) -> Option<CellName> {
            (cell == CellIx(0)).then(|| self.0.clone())
        }
    }

    #[tokio::test]
    async fn breakpoint_of_some_cells_pauses_no_other_cell() {
        let name: CellName = "refund-02/support/tone~house#2".parse().expect("a name");
        let end = CellResult::new(Outcome::Pass, "");
        let is_paused = |cells: &str, cell: u32| {
            let point = format!("outcome:pass in {cells}").parse().expect("valid");
            let (gate, _paused) = BreakpointGate::new(vec![point]);
            gate.set_names(Arc::new(OneName(name.clone())));
            gate.pauses(CellIx(cell), &GateStop::Ended(&end))
        };
        for cells in [
            "refund-02/",
            "refund-02/support/tone",
            "*/tone",
            "refund-0?/*",
            "*~house*",
        ] {
            assert!(is_paused(cells, 0), "{cells}");
            assert!(!is_paused(cells, 1), "a cell without a name: {cells}");
        }
        for cells in ["refund-03/", "support/tone", "*/ton", "*~other*"] {
            assert!(!is_paused(cells, 0), "{cells}");
        }
    }

    #[tokio::test]
    async fn pause_has_the_name_of_its_cell_before_any_event() {
        let name: CellName = "refund-02/support/tone~house#2".parse().expect("a name");
        let end = CellResult::new(Outcome::Pass, "");
        let (gate, mut paused) = BreakpointGate::new(vec![Breakpoint::Outcome(Outcome::Pass)]);
        gate.set_names(Arc::new(OneName(name.clone())));
        let mut passing = gate.pass(CellIx(0), GateStop::Ended(&end));
        assert_eq!((&mut passing).now_or_never(), None, "it pauses");
        let trace = paused.recv().await.expect("a pause");
        assert_eq!(trace.name, Some(name));
    }

    /// Judges with these breakpoints and decisions; returns the pauses and the facts.
    async fn judge(
        points: &[&str],
        decisions: Vec<PauseDecision>,
    ) -> (Vec<PausedAt>, Vec<String>, bool, Vec<String>) {
        let points = points.iter().map(|point| point.parse().expect("valid"));
        let (gate, mut paused) = BreakpointGate::new(points.collect());
        let tool = FakeTool::new("fetch_url", FakeToolBehavior::Echo);
        let mut fixture = JudgeFixture::new(std::slice::from_ref(&tool));
        fixture.gate = Arc::new(gate);
        let script = Script::new(vec![
            calls(&[("fetch_url", r#"{"url":"a"}"#)]),
            calls(&[("submit_verdict", PASSED)]),
        ]);
        let person = async {
            let mut seen = Vec::new();
            for decision in decisions {
                let trace = paused.recv().await.expect("a pause");
                seen.push(trace.at.clone());
                trace.decide(decision);
            }
            seen
        };
        let ((result, facts), seen) = futures_util::join!(fixture.judge(&script), person);
        let ran = tool.ran.lock().expect("no panic").clone();
        (seen, format_facts(&facts), result.by_human, ran)
    }

    fn is_call(at: &PausedAt) -> bool {
        matches!(at, PausedAt::Call { .. })
    }

    #[tokio::test]
    async fn step_pauses_at_the_next_stop_and_continue_does_not() {
        let decisions = vec![PauseDecision::Step, PauseDecision::Continue];
        let (seen, facts, by_human, _) = judge(&["call:fetch_url"], decisions).await;
        assert!(is_call(&seen[0]), "{seen:?}");
        assert!(matches!(seen[1], PausedAt::Answered(_)), "{seen:?}");
        assert!(!by_human, "looking is no edit");
        let pauses = facts.iter().filter(|fact| fact.starts_with("paused"));
        assert_eq!(pauses.count(), 2, "{facts:?}");
    }

    #[tokio::test]
    async fn skipped_call_never_runs_and_marks_the_verdict() {
        let (_, facts, by_human, ran) = judge(&["call"], vec![PauseDecision::SkipCall]).await;
        assert!(ran.is_empty(), "{ran:?}");
        assert!(by_human);
        let answered = "0.0 answered by hand error".to_owned();
        assert!(facts.contains(&answered), "{facts:?}");
    }

    #[tokio::test]
    async fn continue_all_opens_the_gate_for_good() {
        let decisions = vec![PauseDecision::ContinueAll];
        let (seen, facts, by_human, ran) = judge(
            &["turn", "call", "answer", "verdict", "outcome:pass"],
            decisions,
        )
        .await;
        assert_eq!((seen.len(), ran.len(), by_human), (1, 1, false));
        let pauses = facts.iter().filter(|fact| fact.starts_with("paused"));
        assert_eq!(pauses.count(), 1);
    }

    #[tokio::test]
    async fn changed_breakpoints_close_an_opened_gate() {
        let set = Arc::new(BreakpointSet::default());
        let (gate, mut paused) = BreakpointGate::watching(Arc::clone(&set));
        let end = CellResult::new(Outcome::Pass, "");
        let pass = || gate.pass(CellIx(0), GateStop::Ended(&end));
        assert_eq!(pass().await, GateAction::Continue, "no breakpoint");
        let point = || vec!["outcome:pass".parse().expect("valid")];
        for _ in 0..2 {
            set.replace(point());
            let person = async {
                let trace: PausedTrace = paused.recv().await.expect("a pause");
                trace.decide(PauseDecision::ContinueAll);
            };
            let (action, ()) = futures_util::join!(pass(), person);
            assert_eq!(action, GateAction::Continue);
            assert_eq!(pass().await, GateAction::Continue, "the gate is open");
        }
    }

    #[tokio::test]
    async fn edit_is_checked_before_the_trace_continues() {
        let (seen, ..) = judge(&["call"], vec![PauseDecision::Continue]).await;
        let at = &seen[0];
        for bad in ["{", "[1]", "no"] {
            assert!(at.edit(bad).is_err(), "{bad}");
        }
        assert_eq!(
            at.edit(r#"{"link":"b"}"#).expect_err("no url").to_string(),
            "`fetch_url` does not accept the edited arguments: Error: url must be text"
        );
        let verdict = PausedAt::Verdict(Box::default());
        assert!(verdict.edit("{\"passed\": \"yes\"}").is_err());
        let same = verdict.editable_text().expect("a verdict is text");
        assert!(verdict.edit(&same).is_ok(), "{same}");
        assert_eq!(
            PausedAt::Ended(Outcome::Pass).edit("{}"),
            Err(PauseEditError::Nothing)
        );
        let edit = at.edit(r#"{"url":"mine"}"#).expect("valid");
        let (_, facts, by_human, ran) = judge(&["call"], vec![PauseDecision::Edit(edit)]).await;
        assert_eq!(ran, [r#"{"url":"mine"}"#]);
        assert!(
            by_human && facts.contains(&"resumed edited".to_owned()),
            "{facts:?}"
        );
    }
}
