//! The rendered prompt of the shown turn: what was sent, readable; raw on request.

use super::{Ink, gap, no_cell, rich};
use crate::event::TurnState;
use crate::theme::{Lang, Role};
use crate::tui::model::request::Request;
use crate::tui::model::texts::Named;
use crate::tui::model::trace::{Asked, Shown, Wait, shown, turn_at};
use crate::tui::widget::flow::{Block, Source};

/// The pane's text.
pub(super) fn source<'a>(ink: &mut Ink<'a>) -> Box<dyn Source + 'a> {
    let Some(shown) = shown(ink.model) else {
        return Box::new(no_cell());
    };
    let trace = &ink.model.desk().trace;
    let turns = shown.turns();
    let turn = turn_at(trace, turns).and_then(|at| Some((at, turns.get(at)?)));
    let Some((at, turn)) = turn else {
        return Box::new(no_prompt(ink, &shown));
    };
    let mut head = Vec::new();
    for dropped in &turn.dropped {
        let text = format!("not sent: {} ({})", dropped.what, dropped.why);
        head.push(Block::new(text, Role::Warning));
    }
    head.extend(attempts(turn));
    match &trace.request {
        Asked::Here(request) if request.key.turn == at => {
            if trace.raw {
                let name = format!("{} {} {at}", request.key.run, request.key.cell.0);
                head.push(ink.code(&*request.raw, Lang::Json, Some(Named::Text(&name))));
                return Box::new(head);
            }
            Box::new(readable(head, request))
        }
        Asked::Failed(key, why) if key.turn == at => {
            head.push(Block::new("the prompt cannot be read", Role::Error));
            head.push(Block::new(why.as_str(), Role::Text));
            Box::new(head)
        }
        _ => {
            head.push(Block::new("reading the prompt …", Role::Muted));
            Box::new(head)
        }
    }
}

fn no_prompt<'a>(ink: &Ink<'a>, shown: &Shown<'a>) -> Vec<Block<'a>> {
    if let Some(plain) = super::decided_by_code(ink, shown) {
        return plain;
    }
    let fills = "here stands what the judge is sent, turn by turn";
    if let Some(waiting) = ink.waiting(shown, fills) {
        return waiting;
    }
    let why = match shown.result {
        _ if shown.wait != Wait::Not => "",
        None if shown.is_live() => "the judge has not been asked yet: this cell is queued",
        None => "no judge was asked",
        Some(result) if result.cached.is_some() => {
            "the verdict was taken from an earlier run, whose trace is not at hand"
        }
        Some(_) if shown.judge().is_some() => "this cell ended before the judge was asked",
        Some(_) => "no judge: this check is decided by dicta itself; 5 shows how",
    };
    vec![Block::new(why, Role::Muted)]
}

/// Attempts that failed, and when the next one is made.
fn attempts(turn: &TurnState) -> impl Iterator<Item = Block<'_>> {
    turn.attempts.iter().filter_map(|(number, attempt)| {
        let (_, why, retry) = attempt.failed.as_ref()?;
        let next = retry.map_or_else(
            || "no further attempt".to_owned(),
            |wait| format!("again in {wait}"),
        );
        let cost = match &attempt.exchange {
            Some(exchange) if exchange.cost_unknown => " (what it cost is unknown)",
            _ => "",
        };
        let text = format!("attempt {number} failed: {why}{cost}; {next}");
        Some(Block::new(text, Role::Warning))
    })
}

fn readable<'a>(mut head: Vec<Block<'a>>, request: &'a Request) -> Readable<'a> {
    if !request.settings.is_empty() {
        head.push(Block::new(request.settings.as_str(), Role::Muted));
    }
    if !request.tools.is_empty() {
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        head.push(rich([
            ("tools: ", Role::Muted),
            (names.join(", ").as_str(), Role::Tool),
        ]));
    }
    if request.earlier > 0 {
        head.push(rich([
            (
                format!("… {}, as in the turn before (", items(request.earlier)).as_str(),
                Role::Muted,
            ),
            ("x", Role::Key),
            (" shows all)", Role::Muted),
        ]));
    }
    if !head.is_empty() {
        head.push(gap());
    }
    Readable { head, request }
}

fn items(count: usize) -> String {
    match count {
        1 => "1 earlier item".to_owned(),
        n => format!("{n} earlier items"),
    }
}

/// A few lines of ours, then what is new in the request.
struct Readable<'a> {
    head: Vec<Block<'a>>,
    request: &'a Request,
}

impl Source for Readable<'_> {
    fn len(&self) -> usize {
        self.head.len() + self.request.blocks.len() - self.request.fresh
    }

    fn block(&self, at: usize) -> Block<'_> {
        if let Some(block) = self.head.get(at) {
            return block.clone();
        }
        let at = at - self.head.len() + self.request.fresh;
        let Some(block) = self.request.blocks.get(at) else {
            return Block::default();
        };
        let text = self.request.text.get(block.range.clone());
        Block {
            indent: if block.heading { 0 } else { 2 },
            ..Block::new(text.unwrap_or_default(), block.role)
        }
    }
}
