//! Live judge turns as readable text: prompts, tool calls, tool responses and verdicts.
//!
//! Responsible for the words of a line. Does not order the lines of several cells; [`Interleaver`] does. `dicta
//! replay --print` prints the same text.

mod calls;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use super::TextStyle;
use super::interleave::Interleaver;
use super::reasoning::{ReasoningParser, ReasoningPiece};
use super::wording::{describe_outcome, format_bytes};
use crate::event::{
    BudgetStop, DeltaPart, EventKind, RecordedRequest, RunEvent, RunHeader, StoredText,
    ToolCallKey, TurnFact,
};
use crate::model::{CellIx, ProviderKind, pluralize};

/// The number of characters after which an incomplete line is printed, so that a long paragraph appears while it
/// arrives.
const MAX_PENDING_CHARS: usize = 400;

/// Prints judge turns.
pub struct Narrator<W> {
    interleaver: Interleaver<W>,
    header: Option<Box<RunHeader>>,
    /// The names of judge cells without a result.
    cell_names: HashMap<CellIx, String>,
    /// The incomplete lines, by cell and part.
    partial_lines: HashMap<ReplyPartKey, PartialLine>,
    /// The parsers of verdicts that arrive as JSON, by cell and part.
    reasoning_parsers: HashMap<ReplyPartKey, ReasoningParser>,
    /// The lines that a cell has printed, so that a reason is printed once.
    written_lines: HashMap<CellIx, HashSet<String>>,
    /// The calls that submit a verdict. They are not printed; the parsed verdict is.
    verdict_calls: HashSet<ToolCallKey>,
}

/// A part of the reply that a cell's judge streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct ReplyPartKey {
    cell: CellIx,
    part: DeltaPart,
}

impl<W: Write> Narrator<W> {
    /// Returns a narrator that prints to `out`.
    pub fn new(out: W, style: TextStyle) -> Self {
        Self {
            interleaver: Interleaver::new(out, style),
            header: None,
            cell_names: HashMap::new(),
            partial_lines: HashMap::new(),
            reasoning_parsers: HashMap::new(),
            written_lines: HashMap::new(),
            verdict_calls: HashSet::new(),
        }
    }

    /// Prints an event; most events print nothing.
    pub fn narrate_event(&mut self, event: &RunEvent) -> io::Result<()> {
        self.interleaver.set_time(event.at);
        match &event.kind {
            EventKind::RunStarted(header) => {
                // Later events refer to the evals and judges of the header.
                self.header = Some(header.clone());
                self.write_run_lines(&event.kind)
            }
            EventKind::CellsPlanned {
                transcript,
                first,
                keys,
            } => {
                let Some(header) = &self.header else {
                    return Ok(());
                };
                for (cell, key) in (first.0..).map(CellIx).zip(keys) {
                    // Only judges produce turns, so other cells need no name.
                    if key.judge.is_some()
                        && let Some(name) = header.cell_name(transcript, key)
                    {
                        self.cell_names.insert(cell, name.to_string());
                    }
                }
                Ok(())
            }
            EventKind::CellsSettled(settled) => {
                for one in settled {
                    self.cell_names.remove(&one.cell);
                }
                Ok(())
            }
            EventKind::CellStarted { cell, .. } => self.open_cell(*cell),
            EventKind::CellFinished { cell, result } => {
                // Print incomplete lines first, so that they appear above the result.
                self.end_partial_lines(*cell)?;
                let score = result.score.map(|s| format!(" {s:.2}")).unwrap_or_default();
                let mut text = format!("{}{score}", describe_outcome(result.outcome));
                let known = |error| {
                    self.written_lines
                        .get(cell)
                        .is_some_and(|lines| lines.contains(error))
                };
                // The failed attempt or the unparsed reply may already have printed this error.
                if let Some(error) = result.error.as_ref().filter(|error| !known(*error)) {
                    text.push_str(": ");
                    text.push_str(error);
                }
                self.write_cell_line(*cell, &result.outcome.symbol().to_string(), &text)?;
                self.interleaver.close_cell(*cell)?;
                // Forget the cell, so that memory depends only on running cells.
                self.cell_names.remove(cell);
                self.written_lines.remove(cell);
                self.verdict_calls.retain(|call| call.cell != *cell);
                Ok(())
            }
            EventKind::Turn { cell, turn, fact } => self.narrate_turn(*cell, turn.0 + 1, fact),
            EventKind::Tool {
                cell,
                turn,
                call,
                fact,
            } => {
                let key = ToolCallKey {
                    cell: *cell,
                    turn: *turn,
                    call: *call,
                };
                self.narrate_tool(key, fact)
            }
            EventKind::Paused { cell, .. } => self.write_cell_line(*cell, "‖", "paused"),
            EventKind::Resumed { cell, how } => {
                self.write_cell_line(*cell, "▸", &format!("resumed by {}: {}", how.by, how.what))
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
                self.write_cell_line(*cell, "budget", what)
            }
            EventKind::Note {
                cell: Some(cell),
                text,
            } => self.write_cell_line(*cell, "note", text),
            EventKind::BudgetReached { .. } | EventKind::Note { cell: None, .. } => {
                self.write_run_lines(&event.kind)
            }
            EventKind::RunFinished(_) => self.interleaver.write_buffered(),
            // A newer version of dicta may have written an unknown event.
            EventKind::BlobStored(_)
            | EventKind::RevisionPlanned { .. }
            | EventKind::Unknown(_) => Ok(()),
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) -> io::Result<()> {
        self.interleaver.flush()
    }

    /// Prints the buffered lines at the end of the events.
    pub fn finish(&mut self) -> io::Result<()> {
        self.interleaver.write_buffered()?;
        self.interleaver.flush()
    }

    fn narrate_turn(&mut self, cell: CellIx, turn: u16, fact: &TurnFact) -> io::Result<()> {
        match fact {
            TurnFact::Started { request, dropped } => {
                self.write_cell_line(
                    cell,
                    "·",
                    &format!(
                        "turn {turn}: a prompt of {}",
                        format_bytes(count_rope_bytes(request))
                    ),
                )?;
                for drop in dropped {
                    self.write_cell_line(
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
                self.write_cell_line(cell, "·", &text)
            }
            // The failure before an attempt already announces it.
            TurnFact::AttemptStarted { .. } => Ok(()),
            TurnFact::Delta { part, text, .. } => self.narrate_delta(cell, *part, text),
            TurnFact::AttemptFailed {
                attempt,
                why,
                retry_in,
                wait_why,
                exchange,
                ..
            } => {
                // The next attempt sends the whole reply again, so forget what arrived.
                self.partial_lines.retain(|key, _| key.cell != cell);
                self.reasoning_parsers.retain(|key, _| key.cell != cell);
                self.written_lines.remove(&cell);
                let next = match retry_in {
                    Some(wait) => {
                        let why = wait_why.as_ref();
                        let why = why.map_or_else(String::new, |why| format!(" ({why})"));
                        format!("again in {wait}{why}")
                    }
                    None => "no further attempt".to_owned(),
                };
                // The server's message may end with a full stop.
                let reason = why.strip_suffix('.').unwrap_or(why);
                let cost = match exchange {
                    Some(exchange) if exchange.cost_unknown => " (what it cost is unknown)",
                    _ => "",
                };
                self.write_cell_line(
                    cell,
                    "!",
                    &format!("attempt {attempt} failed: {reason}{cost}; {next}"),
                )?;
                // The cell's result may repeat this error.
                self.remember_line(cell, why);
                Ok(())
            }
            TurnFact::Finished { attempt, usage, .. } => {
                self.end_partial_lines(cell)?;
                let again = if *attempt > 1 {
                    format!(", at attempt {attempt}")
                } else {
                    String::new()
                };
                match (usage.input, usage.output) {
                    (Some(input), Some(output)) => self.write_cell_line(
                        cell,
                        "·",
                        &format!("turn {turn} took {input} + {output} tokens{again}"),
                    ),
                    _ => Ok(()),
                }
            }
            TurnFact::VerdictReached(verdict) => {
                for line in verdict.reasoning.lines().filter(|l| !l.trim().is_empty()) {
                    // Reasoning that arrived in pieces is already printed.
                    if !self
                        .written_lines
                        .get(&cell)
                        .is_some_and(|lines| lines.contains(line))
                    {
                        self.write_cell_line(cell, "=", line)?;
                    }
                }
                if let Some(calibrated) = &verdict.calibrated {
                    self.write_cell_line(cell, "=", &calibrated.summary_line())?;
                }
                for (part, number) in verdict.parts.iter().zip(1..) {
                    self.write_cell_line(cell, "=", &part.format_line(number))?;
                }
                Ok(())
            }
            TurnFact::VerdictUnparsed { why, .. } => {
                self.write_cell_line(cell, "!", &format!("no valid verdict: {why}"))?;
                self.remember_line(cell, why);
                Ok(())
            }
        }
    }

    fn narrate_delta(&mut self, cell: CellIx, part: DeltaPart, text: &str) -> io::Result<()> {
        let mark = match part {
            DeltaPart::Text | DeltaPart::Args(_) => "│",
            DeltaPart::Thought => "┊",
        };
        let key = ReplyPartKey { cell, part };
        // A reply may be the JSON of a verdict, of which only the reasoning is printed.
        let text = match part {
            DeltaPart::Thought => text.to_owned(),
            _ => match self.reasoning_parsers.entry(key).or_default().push(text) {
                ReasoningPiece::Reasoning(text) => text,
                ReasoningPiece::Prose(text) if part == DeltaPart::Text => text,
                // The arguments of a call are printed in whole when the call is complete.
                ReasoningPiece::Prose(_) => return Ok(()),
            },
        };
        let mut partial = self.partial_lines.remove(&key).unwrap_or_default();
        for c in text.chars() {
            let len = partial.pending.len();
            if c == '\n' {
                self.write_once(cell, mark, &partial.pending)?;
                self.remember_line(cell, &partial.full_text);
                partial = PartialLine::default();
            // Break a long line at a space, or anywhere if it has no spaces.
            } else if (len >= MAX_PENDING_CHARS && c == ' ') || len >= 4 * MAX_PENDING_CHARS {
                self.write_once(cell, mark, &partial.pending)?;
                partial.pending.clear();
                // The space at the break is not printed.
                partial.push(c, c != ' ');
            } else {
                partial.push(c, true);
            }
        }
        self.partial_lines.insert(key, partial);
        Ok(())
    }

    /// Prints the incomplete lines of a cell.
    fn end_partial_lines(&mut self, cell: CellIx) -> io::Result<()> {
        self.reasoning_parsers.retain(|key, _| key.cell != cell);
        let mut parts: Vec<DeltaPart> = self
            .partial_lines
            .keys()
            .filter(|key| key.cell == cell)
            .map(|key| key.part)
            .collect();
        // Reasoning precedes the reply; the map itself has no order.
        parts.sort_by_key(|part| *part != DeltaPart::Thought);
        for part in parts {
            let mark = if part == DeltaPart::Thought {
                "┊"
            } else {
                "│"
            };
            if let Some(partial) = self.partial_lines.remove(&ReplyPartKey { cell, part }) {
                self.write_once(cell, mark, &partial.pending)?;
                self.remember_line(cell, &partial.full_text);
            }
        }
        Ok(())
    }

    /// Prints a line of a reply, unless this cell printed it before: a thought may become the reason.
    fn write_once(&mut self, cell: CellIx, mark: &str, line: &str) -> io::Result<()> {
        let known = |lines: &HashSet<String>| lines.contains(line);
        if line.trim().is_empty() || self.written_lines.get(&cell).is_some_and(known) {
            return Ok(());
        }
        self.remember_line(cell, line);
        self.write_cell_line(cell, mark, line)
    }

    fn remember_line(&mut self, cell: CellIx, line: &str) {
        /// Enough lines for a reason; the limit bounds the memory for an endless reply.
        const KEPT: usize = 500;
        let lines = self.written_lines.entry(cell).or_default();
        if lines.len() < KEPT && !lines.contains(line) {
            lines.insert(line.to_owned());
        }
    }

    fn write_cell_line(&mut self, cell: CellIx, mark: &str, text: &str) -> io::Result<()> {
        let name = find_cell_name(&self.cell_names, cell);
        self.interleaver.write_cell_line(cell, &name, mark, text)
    }

    fn open_cell(&mut self, cell: CellIx) -> io::Result<()> {
        let name = find_cell_name(&self.cell_names, cell);
        self.interleaver.open_cell(cell, &name)
    }

    /// Writes the lines of an event about the whole run.
    fn write_run_lines(&mut self, event: &EventKind) -> io::Result<()> {
        for line in describe_run_event(event) {
            self.interleaver.write_run_line(&line)?;
        }
        Ok(())
    }

    /// Ends the current block, because another writer uses the same screen. The next line of its cell gets a heading.
    pub fn interrupt_block(&mut self) {
        self.interleaver.interrupt_block();
    }
}

/// Describes an event about the whole run: its beginning, a reached budget, a note. Other events have no lines.
pub fn describe_run_event(event: &EventKind) -> Vec<String> {
    match event {
        EventKind::RunStarted(header) => describe_header(header),
        EventKind::BudgetReached {
            cell: None, hard, ..
        } => {
            let what = if *hard {
                "nothing more is sent"
            } else {
                "judges are asked to conclude"
            };
            BudgetStop::from_event(event)
                .map(|stop| format!("budget: {stop}: {what}"))
                .into_iter()
                .collect()
        }
        EventKind::Note { cell: None, text } => vec![format!("note: {text}")],
        _ => Vec::new(),
    }
}

fn describe_header(header: &RunHeader) -> Vec<String> {
    let mut lines = Vec::new();
    if header.demo {
        lines.push(
            "This is the built-in demo: invented agents, pages written for it, labels included."
                .to_owned(),
        );
    }
    for judge in &header.judges {
        // A reader could take its verdicts for a model's.
        if judge.config.provider == ProviderKind::Rules {
            let name = &judge.config.name;
            let is_rules = if name == "rules" { "" } else { " `rules`," };
            lines.push(format!(
                "Judge `{name}` is{is_rules} a built-in checker of clauses. It is not a model."
            ));
        }
    }
    let uses_tools = header.judges.iter().any(|judge| !judge.tools.is_empty());
    if let Some(frozen) = header.replayed_evidence_plan().filter(|_| uses_tools) {
        lines.push(format!(
            "Recorded tool responses replace live calls: {} of {}; {}.",
            pluralize(frozen.answers, "response"),
            frozen.describe_runs(),
            frozen.describe_miss_policy()
        ));
    }
    lines
}

/// A line of a reply that is not complete.
#[derive(Default)]
struct PartialLine {
    /// The part of the line that is not yet printed; a long line is printed in pieces.
    pending: String,
    /// The whole line, up to a limit.
    full_text: String,
}

impl PartialLine {
    fn push(&mut self, c: char, print: bool) {
        /// The limit bounds the memory for an endless reply without line breaks.
        const KEPT: usize = 16 * 1024;
        if self.full_text.len() < KEPT {
            self.full_text.push(c);
        }
        if print {
            self.pending.push(c);
        }
    }
}

fn find_cell_name(names: &HashMap<CellIx, String>, cell: CellIx) -> Cow<'_, str> {
    names
        .get(&cell)
        .map_or_else(|| format!("cell {}", cell.0).into(), Cow::from)
}

fn count_rope_bytes(rope: &RecordedRequest) -> u64 {
    rope.iter()
        .map(|piece| match piece {
            StoredText::Text(text) => text.len() as u64,
            StoredText::Blob(blob) => blob.bytes,
        })
        .sum()
}
