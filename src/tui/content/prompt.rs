//! The rendered prompt of the shown turn: what was sent, readable; raw on request.

use super::{ContentCx, empty_row, explain_no_cell, styled_line};
use crate::event::TurnState;
use crate::theme::{CodeLanguage, Role};
use crate::tui::state::judge_trace::{RequestState, find_shown_turn};
use crate::tui::state::readable_request::ReadableRequest;
use crate::tui::state::shown_cell::{ShownCell, TraceAvailability, resolve_shown_cell};
use crate::tui::state::text_cache::TextIdentity;
use crate::tui::widget::flow::{TextBlock, TextSource};

/// The pane's text.
pub(super) fn build_source<'a>(ink: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(ink.app) else {
        return Box::new(explain_no_cell());
    };
    let trace = &ink.app.session().trace_panes;
    let turns = shown.turns();
    let turn = find_shown_turn(trace, turns).and_then(|at| Some((at, turns.get(at)?)));
    let Some((at, turn)) = turn else {
        return Box::new(explain_no_prompt(ink, &shown));
    };
    let mut head = Vec::new();
    for dropped in &turn.dropped {
        let text = format!("not sent: {} ({})", dropped.what, dropped.why);
        head.push(TextBlock::new(text, Role::Warning));
    }
    head.extend(failed_attempts(turn));
    match &trace.request {
        RequestState::Loaded(request) if request.key.turn == at => {
            if trace.shows_raw {
                let name = format!("{} {} {at}", request.key.run, request.key.cell.0);
                head.push(ink.highlight_code(
                    &*request.raw,
                    CodeLanguage::Json,
                    Some(TextIdentity::Text(&name)),
                ));
                return Box::new(head);
            }
            Box::new(format_prompt(head, request))
        }
        RequestState::Failed(key, why) if key.turn == at => {
            head.push(TextBlock::new("the prompt cannot be read", Role::Error));
            head.push(TextBlock::new(why.as_str(), Role::Text));
            Box::new(head)
        }
        _ => {
            head.push(TextBlock::new("reading the prompt …", Role::Muted));
            Box::new(head)
        }
    }
}

fn explain_no_prompt<'a>(ink: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    if let Some(plain) = super::explain_code_check(ink, shown) {
        return plain;
    }
    let fills = "here stands what the judge is sent, turn by turn";
    if let Some(waiting) = ink.explain_empty_trace(shown, fills) {
        return waiting;
    }
    let why = match shown.result {
        _ if shown.availability != TraceAvailability::Available => "",
        None if shown.is_live() => "the judge has not been asked yet: this cell is queued",
        None => "no judge was asked",
        Some(result) if result.cached.is_some() => {
            "the verdict was taken from an earlier run, whose trace is not at hand"
        }
        Some(_) if shown.judge_spec().is_some() => "this cell ended before the judge was asked",
        Some(_) => "no judge: this check is decided by dicta itself; 5 shows how",
    };
    vec![TextBlock::new(why, Role::Muted)]
}

/// Attempts that failed, and when the next one is made.
fn failed_attempts(turn: &TurnState) -> impl Iterator<Item = TextBlock<'_>> {
    turn.attempts.iter().filter_map(|(number, attempt)| {
        let failure = attempt.failed.as_ref()?;
        let why = &failure.why;
        let next = failure.retry_in.map_or_else(
            || "no further attempt".to_owned(),
            |wait| format!("again in {wait}"),
        );
        let cost = match &attempt.exchange {
            Some(exchange) if exchange.cost_unknown => " (what it cost is unknown)",
            _ => "",
        };
        let text = format!("attempt {number} failed: {why}{cost}; {next}");
        Some(TextBlock::new(text, Role::Warning))
    })
}

fn format_prompt<'a>(
    mut head: Vec<TextBlock<'a>>,
    request: &'a ReadableRequest,
) -> PromptSource<'a> {
    if !request.settings.is_empty() {
        head.push(TextBlock::new(request.settings.as_str(), Role::Muted));
    }
    if !request.tools.is_empty() {
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        head.push(styled_line([
            ("tools: ", Role::Muted),
            (names.join(", ").as_str(), Role::Tool),
        ]));
    }
    if request.earlier_items > 0 {
        head.push(styled_line([
            (
                format!(
                    "… {}, as in the turn before (",
                    format_item_count(request.earlier_items)
                )
                .as_str(),
                Role::Muted,
            ),
            ("x", Role::Key),
            (" shows all)", Role::Muted),
        ]));
    }
    if !head.is_empty() {
        head.push(empty_row());
    }
    PromptSource { head, request }
}

fn format_item_count(count: usize) -> String {
    match count {
        1 => "1 earlier item".to_owned(),
        n => format!("{n} earlier items"),
    }
}

/// A few lines of ours, then what is new in the request.
struct PromptSource<'a> {
    head: Vec<TextBlock<'a>>,
    request: &'a ReadableRequest,
}

impl TextSource for PromptSource<'_> {
    fn len(&self) -> usize {
        self.head.len() + self.request.blocks.len() - self.request.first_new_block
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        if let Some(block) = self.head.get(at) {
            return block.clone();
        }
        let at = at - self.head.len() + self.request.first_new_block;
        let Some(block) = self.request.blocks.get(at) else {
            return TextBlock::default();
        };
        let text = self.request.text.get(block.range.clone());
        TextBlock {
            indent: if block.is_heading { 0 } else { 2 },
            ..TextBlock::new(text.unwrap_or_default(), block.role)
        }
    }
}
