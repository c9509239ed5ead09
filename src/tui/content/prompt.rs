//! The text of the prompt pane: the request of the shown turn, readable or raw.

use super::{ContentCx, empty_row, explain_no_cell, styled_line};
use crate::event::TurnState;
use crate::theme::{CodeLanguage, Role};
use crate::tools::loosened_seen_rule;
use crate::tui::state::judge_trace::{RequestState, find_shown_turn};
use crate::tui::state::readable_request::ReadableRequest;
use crate::tui::state::shown_cell::{ShownCell, TraceAvailability, resolve_shown_cell};
use crate::tui::state::text_cache::TextIdentity;
use crate::tui::widget::flow::{TextBlock, TextSource};

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(cx.app) else {
        return Box::new(explain_no_cell());
    };
    let trace = &cx.app.session().trace_panes;
    let turns = shown.turns();
    let turn = find_shown_turn(trace, turns).and_then(|at| Some((at, turns.get(at)?)));
    let Some((at, turn)) = turn else {
        return Box::new(explain_no_prompt(cx, &shown));
    };
    let mut head = request_notes(turn);
    match &trace.request {
        // The loaded request may belong to another turn.
        RequestState::Loaded(request) if request.key.turn == at => {
            if trace.shows_raw {
                head.push(raw_request(cx, request));
                return Box::new(head);
            }
            head.extend(request_facts(&shown, request));
            Box::new(format_prompt(head, request))
        }
        RequestState::Failed { key, why } if key.turn == at => {
            head.push(TextBlock::new("dicta can't read the prompt", Role::Error));
            head.push(TextBlock::new(why.as_str(), Role::Text));
            Box::new(head)
        }
        _ => {
            head.push(TextBlock::new("reading the prompt …", Role::Muted));
            Box::new(head)
        }
    }
}

/// Returns the settings that were not sent, and the failed attempts of a turn.
pub(super) fn request_notes(turn: &TurnState) -> Vec<TextBlock<'_>> {
    let mut out = Vec::new();
    // The request does not contain what was not sent.
    for dropped in &turn.dropped {
        let text = format!("not sent: {} ({})", dropped.what, dropped.why);
        out.push(TextBlock::new(text, Role::Warning));
    }
    out.extend(failed_attempts(turn));
    out
}

/// Returns the body of a request as it was sent.
pub(super) fn raw_request<'a>(
    cx: &mut ContentCx<'a>,
    request: &'a ReadableRequest,
) -> TextBlock<'a> {
    // The name identifies the text in the cache, so that the whole request is not hashed for every frame.
    let key = &request.key;
    let name = format!("{} {} {}", key.run, key.cell.0, key.turn);
    cx.highlight_code(
        &*request.raw,
        CodeLanguage::Json,
        Some(TextIdentity::Text(&name)),
    )
}

fn explain_no_prompt<'a>(cx: &ContentCx<'a>, shown: &ShownCell<'a>) -> Vec<TextBlock<'a>> {
    let fills = "this pane shows the requests to the judge, turn by turn";
    if let Some(explanation) = cx.explain_empty_trace(shown, fills) {
        return explanation;
    }
    let why = match shown.result {
        _ if shown.availability != TraceAvailability::Available => "",
        None if shown.is_live() => "the judge was not called yet: this cell is queued",
        None => "no judge was called",
        Some(result) if result.cached.is_some() => {
            "the verdict is from an earlier run whose judge trace is not available"
        }
        Some(_) if shown.judge_spec().is_some() => "this cell ended before the judge was called",
        Some(_) => "code check without a judge; press 5 for the result",
    };
    vec![TextBlock::new(why, Role::Muted)]
}

/// Returns the failed attempts of a turn and the time of the next one.
fn failed_attempts(turn: &TurnState) -> impl Iterator<Item = TextBlock<'_>> {
    turn.attempts.iter().filter_map(|(number, attempt)| {
        let failure = attempt.failed.as_ref()?;
        let why = &failure.why;
        let next = failure.retry_in.map_or_else(
            || "no more attempts".to_owned(),
            |wait| format!("next attempt in {wait}"),
        );
        let cost = match &attempt.exchange {
            Some(exchange) if exchange.cost_unknown => " (cost unknown)",
            _ => "",
        };
        let text = format!("attempt {number} failed: {why}{cost}; {next}");
        Some(TextBlock::new(text, Role::Warning))
    })
}

/// Returns the settings and the tools of a request.
pub(super) fn request_facts<'a>(
    shown: &ShownCell<'a>,
    request: &'a ReadableRequest,
) -> Vec<TextBlock<'a>> {
    let judge = shown.judge_spec();
    let seen_rule = judge.and_then(|judge| loosened_seen_rule(&judge.config.tools));
    let mut head = Vec::new();
    if !request.settings.is_empty() {
        head.push(TextBlock::new(request.settings.as_str(), Role::Muted));
    }
    if !request.tools.is_empty() {
        let names: Vec<&str> = request
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        let badge = seen_rule.map_or_else(String::new, |rule| format!(" {rule} "));
        let gap = if badge.is_empty() { "" } else { " " };
        head.push(styled_line([
            ("tools: ", Role::Muted),
            (names.join(", ").as_str(), Role::Tool),
            (gap, Role::Muted),
            (badge.as_str(), Role::Badge),
        ]));
    }
    head
}

fn format_prompt<'a>(
    mut head: Vec<TextBlock<'a>>,
    request: &'a ReadableRequest,
) -> PromptSource<'a> {
    // Each turn sends all earlier items again, so the pane only counts them.
    if request.earlier_items > 0 {
        head.push(styled_line([
            (
                format!(
                    "… {}, unchanged from the previous turn (",
                    format_item_count(request.earlier_items)
                )
                .as_str(),
                Role::Muted,
            ),
            ("x", Role::Key),
            (" shows all)", Role::Muted),
        ]));
    }
    // An empty row separates the head from the request.
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

/// A few head lines, followed by the new items of the request.
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
        // After the head, only the blocks follow that are new in this turn.
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
