//! Live judge turns as readable text: what is asked, what is called, what comes back, what is decided.
//!
//! Text is told a line at a time; [`Floor`] keeps the lines of a cell together. Also what `dicta replay --print` prints.

mod calls;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use super::Style;
use super::floor::Floor;
use super::human::words;
use super::reasoning::{Reasoning, Told};
use crate::event::{
    BudgetStop, DeltaPart, EventKind, RecordedRequest, RunEvent, RunHeader, StoredText, TurnFact,
};
use crate::model::{CallIx, CellIx, ProviderKind, TurnIx, pluralize};

/// Longest piece of a line of model text before it is told, so that a long paragraph is read as it comes.
const WIDEST: usize = 400;

/// Tells turns.
pub struct Narrator<W> {
    floor: Floor<W>,
    header: Option<Box<RunHeader>>,
    /// Names of judge cells that have no result yet.
    names: HashMap<CellIx, String>,
    /// Text of a line that is not complete, by cell and part.
    partial: HashMap<(CellIx, DeltaPart), Partial>,
    /// Verdicts that are coming as JSON, by cell and part.
    reasons: HashMap<(CellIx, DeltaPart), Reasoning>,
    /// Lines told of a cell, so that a reason is not told twice.
    told: HashMap<CellIx, HashSet<String>>,
    /// Calls that only state the verdict: it is told when it was read.
    verdicts: HashSet<(CellIx, TurnIx, CallIx)>,
}

impl<W: Write> Narrator<W> {
    /// Text goes to `out`.
    pub fn new(out: W, style: Style) -> Self {
        Self {
            floor: Floor::new(out, style),
            header: None,
            names: HashMap::new(),
            partial: HashMap::new(),
            reasons: HashMap::new(),
            told: HashMap::new(),
            verdicts: HashSet::new(),
        }
    }

    /// Tells an event; most tell nothing.
    pub fn on(&mut self, event: &RunEvent) -> io::Result<()> {
        self.floor.at(event.at);
        match &event.kind {
            EventKind::RunStarted(header) => self.begin(header),
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                let Some(header) = &self.header else {
                    return Ok(());
                };
                for (cell, key) in (first.0..).map(CellIx).zip(keys) {
                    if key.judge.is_some()
                        && let Some(name) = header.cell_name(transcript, key)
                    {
                        self.names.insert(cell, name.to_string());
                    }
                }
                Ok(())
            }
            EventKind::CellsSettled(settled) => {
                for cell in settled {
                    self.names.remove(&cell.0);
                }
                Ok(())
            }
            EventKind::CellStarted { cell, .. } => self.open(*cell),
            EventKind::CellFinished { cell, result } => {
                self.end_lines(*cell)?;
                let score = result.score.map(|s| format!(" {s:.2}")).unwrap_or_default();
                let mut text = format!("{}{score}", words(result.outcome));
                let known = |error| self.told.get(cell).is_some_and(|told| told.contains(error));
                // The attempt or the reply that ended it may have said why already.
                if let Some(error) = result.error.as_ref().filter(|error| !known(*error)) {
                    text.push_str(": ");
                    text.push_str(error);
                }
                self.say(*cell, &result.outcome.symbol().to_string(), &text)?;
                self.floor.close(*cell)?;
                self.names.remove(cell);
                self.told.remove(cell);
                self.verdicts.retain(|(c, ..)| c != cell);
                Ok(())
            }
            EventKind::Turn { cell, turn, fact } => self.turn(*cell, turn.0 + 1, fact),
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => self.tool((*cell, *turn, *call), fact),
            EventKind::Paused { cell, .. } => self.say(*cell, "‖", "paused"),
            EventKind::Resumed { cell, how } => {
                self.say(*cell, "▸", &format!("resumed by {}: {}", how.by, how.what))
            }
            EventKind::BudgetReached {
                hard,
                cell: Some(cell),
                ..
            } => {
                let what = if *hard {
                    "the cell's limit is reached: nothing more is sent"
                } else {
                    "a limit is near: the judge is asked to conclude"
                };
                self.say(*cell, "budget", what)
            }
            EventKind::BudgetReached { hard, .. } => {
                let what = if *hard {
                    "nothing more is sent"
                } else {
                    "judges are asked to conclude"
                };
                match BudgetStop::from_event(&event.kind) {
                    Some(stop) => self.line(&format!("budget: {stop}: {what}")),
                    None => Ok(()),
                }
            }
            EventKind::Note {
                cell: Some(cell),
                text,
            } => self.say(*cell, "note", text),
            EventKind::Note { cell: None, text } => self.line(&format!("note: {text}")),
            EventKind::RunFinished(_) => self.floor.rest(),
            EventKind::BlobStored(_) | EventKind::Unknown(_) => Ok(()),
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.floor.flush()
    }

    /// Tells what waits: no event will come.
    pub fn finish(&mut self) -> io::Result<()> {
        self.floor.rest()?;
        self.floor.flush()
    }

    fn begin(&mut self, header: &RunHeader) -> io::Result<()> {
        if header.demo {
            self.line("This is the built-in demo: invented agents, pages written for it, labels included.")?;
        }
        for judge in &header.judges {
            if judge.config.provider == ProviderKind::Rules {
                let name = &judge.config.name;
                self.line(&format!(
                    "Judge `{name}` is `rules`, a built-in checker of clauses. It is not a model."
                ))?;
            }
        }
        let uses = header.judges.iter().any(|judge| !judge.tools.is_empty());
        if let Some(frozen) = header.replayed_evidence_plan().filter(|_| uses) {
            self.line(&format!(
                "Evidence is frozen to {}: {} of tools stand for live calls; {}.",
                frozen.describe_runs(),
                pluralize(frozen.answers, "answer"),
                frozen.describe_miss_policy()
            ))?;
        }
        self.header = Some(Box::new(header.clone()));
        Ok(())
    }

    fn turn(&mut self, cell: CellIx, turn: u16, fact: &TurnFact) -> io::Result<()> {
        match fact {
            TurnFact::Started { request, dropped } => {
                self.say(
                    cell,
                    "·",
                    &format!("turn {turn}: a prompt of {}", size(rope_bytes(request))),
                )?;
                for drop in dropped {
                    self.say(
                        cell,
                        "·",
                        &format!("not sent: {} ({})", drop.what, drop.why),
                    )?;
                }
                Ok(())
            }
            TurnFact::Held { by, about } => {
                let about = about.map_or_else(String::new, |about| format!(" about {about}"));
                let text = format!("turn {turn}: waiting{about} for {}", by.as_str());
                self.say(cell, "·", &text)
            }
            TurnFact::AttemptStarted { .. } => Ok(()),
            TurnFact::Delta { part, text, .. } => self.delta(cell, *part, text),
            TurnFact::AttemptFailed {
                attempt,
                why,
                retry_in,
                wait_why,
                exchange,
                ..
            } => {
                self.partial.retain(|(c, _), _| *c != cell);
                self.reasons.retain(|(c, _), _| *c != cell);
                self.told.remove(&cell);
                let next = match retry_in {
                    Some(wait) => {
                        let why = wait_why.as_ref();
                        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                        format!("again in {wait}{why}")
                    }
                    None => "no further attempt".to_owned(),
                };
                // A server's sentence may end with its own full stop.
                let said = why.strip_suffix('.').unwrap_or(why);
                let cost = match exchange {
                    Some(exchange) if exchange.cost_unknown => " (what it cost is unknown)",
                    _ => "",
                };
                self.say(
                    cell,
                    "!",
                    &format!("attempt {attempt} failed: {said}{cost}; {next}"),
                )?;
                self.remember(cell, why);
                Ok(())
            }
            TurnFact::Finished { attempt, usage, .. } => {
                self.end_lines(cell)?;
                let again = if *attempt > 1 {
                    format!(", at attempt {attempt}")
                } else {
                    String::new()
                };
                match (usage.input, usage.output) {
                    (Some(input), Some(output)) => self.say(
                        cell,
                        "·",
                        &format!("turn {turn} took {input} + {output} tokens{again}"),
                    ),
                    _ => Ok(()),
                }
            }
            TurnFact::VerdictReached(verdict) => {
                for line in verdict.reasoning.lines().filter(|l| !l.trim().is_empty()) {
                    if !self.told.get(&cell).is_some_and(|told| told.contains(line)) {
                        self.say(cell, "=", line)?;
                    }
                }
                if let Some(calibrated) = &verdict.calibrated {
                    self.say(cell, "=", &calibrated.summary_line())?;
                }
                for (part, number) in verdict.parts.iter().zip(1..) {
                    self.say(cell, "=", &part.format_line(number))?;
                }
                Ok(())
            }
            TurnFact::VerdictUnparsed { why, .. } => {
                self.say(cell, "!", &format!("no valid verdict: {why}"))?;
                self.remember(cell, why);
                Ok(())
            }
        }
    }

    fn delta(&mut self, cell: CellIx, part: DeltaPart, text: &str) -> io::Result<()> {
        let mark = match part {
            DeltaPart::Text | DeltaPart::Args(_) => "│",
            DeltaPart::Thought => "┊",
        };
        let text = match part {
            DeltaPart::Thought => text.to_owned(),
            _ => match self.reasons.entry((cell, part)).or_default().push(text) {
                Told::Reasoning(text) => text,
                Told::Prose(text) if part == DeltaPart::Text => text,
                // Arguments of a call are told whole, when it is received.
                Told::Prose(_) => return Ok(()),
            },
        };
        let mut partial = self.partial.remove(&(cell, part)).unwrap_or_default();
        for c in text.chars() {
            let full = partial.line.len();
            if c == '\n' {
                self.say_once(cell, mark, &partial.line)?;
                self.remember(cell, &partial.whole);
                partial = Partial::default();
            } else if (full >= WIDEST && c == ' ') || full >= 4 * WIDEST {
                self.say_once(cell, mark, &partial.line)?;
                partial.line.clear();
                partial.push(c, c != ' ');
            } else {
                partial.push(c, true);
            }
        }
        self.partial.insert((cell, part), partial);
        Ok(())
    }

    /// Tells lines that were waiting for their end.
    fn end_lines(&mut self, cell: CellIx) -> io::Result<()> {
        self.reasons.retain(|(c, _), _| *c != cell);
        let mut parts: Vec<DeltaPart> = self
            .partial
            .keys()
            .filter(|(c, _)| *c == cell)
            .map(|(_, part)| *part)
            .collect();
        parts.sort_by_key(|part| *part != DeltaPart::Thought);
        for part in parts {
            let mark = if part == DeltaPart::Thought {
                "┊"
            } else {
                "│"
            };
            if let Some(partial) = self.partial.remove(&(cell, part)) {
                self.say_once(cell, mark, &partial.line)?;
                self.remember(cell, &partial.whole);
            }
        }
        Ok(())
    }

    /// Tells a line of a reply unless this cell said it before (a thought that became the reason).
    fn say_once(&mut self, cell: CellIx, mark: &str, line: &str) -> io::Result<()> {
        let known = |told: &HashSet<String>| told.contains(line);
        if line.trim().is_empty() || self.told.get(&cell).is_some_and(known) {
            return Ok(());
        }
        self.remember(cell, line);
        self.say(cell, mark, line)
    }

    fn remember(&mut self, cell: CellIx, line: &str) {
        /// Enough for a reason; a reply that goes on for ever is not kept.
        const KEPT: usize = 500;
        let told = self.told.entry(cell).or_default();
        if told.len() < KEPT && !told.contains(line) {
            told.insert(line.to_owned());
        }
    }

    fn say(&mut self, cell: CellIx, mark: &str, text: &str) -> io::Result<()> {
        let name = name_of(&self.names, cell);
        self.floor.say(cell, &name, mark, text)
    }

    fn open(&mut self, cell: CellIx) -> io::Result<()> {
        let name = name_of(&self.names, cell);
        self.floor.open(cell, &name)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.floor.line(text)
    }
}

/// A line of a reply that is not complete.
#[derive(Default)]
struct Partial {
    /// What of it was not told yet: long lines are told in pieces.
    line: String,
    /// All of it, up to a limit.
    whole: String,
}

impl Partial {
    fn push(&mut self, c: char, told: bool) {
        /// A reply without line breaks that goes on for ever is not kept.
        const KEPT: usize = 16 * 1024;
        if self.whole.len() < KEPT {
            self.whole.push(c);
        }
        if told {
            self.line.push(c);
        }
    }
}

fn name_of(names: &HashMap<CellIx, String>, cell: CellIx) -> Cow<'_, str> {
    names
        .get(&cell)
        .map_or_else(|| format!("cell {}", cell.0).into(), Cow::from)
}

fn rope_bytes(rope: &RecordedRequest) -> u64 {
    rope.iter()
        .map(|piece| match piece {
            StoredText::Text(text) => text.len() as u64,
            StoredText::Blob(blob) => blob.bytes,
        })
        .sum()
}

/// Bytes for people: `812 B`, `12.4 KB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1000 {
        format!("{bytes} B")
    } else {
        format!("{:.1} KB", bytes as f64 / 1000.0)
    }
}
