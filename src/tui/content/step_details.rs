//! The text of the details on the trace screen: the selected step in full, and the agent's similar call next to a tool
//! response.

use super::response_layout::{fold_json, lay_out_table, layout_note, render_markdown};
use super::{ContentCx, LoadedText, empty_row, explain_no_cell, heading, styled_line};
use super::{prompt, tool_call, tool_response, trace_pair, trace_steps, verdict};
use crate::event::{StepId, StepPart, reply_texts};
use crate::model::count_invisible;
use crate::theme::Role;
use crate::tui::state::agent_comparison::{AgentComparison, ComparedField};
use crate::tui::state::judge_trace::{CallPosition, RequestState};
use crate::tui::state::pane::Pane;
use crate::tui::state::readable_request::{ReadableRequest, RequestSection};
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::state::step_list::StepList;
use crate::tui::state::trace_screen::{LEVEL_OF_BLOCKS, LEVEL_OF_FRAME};
use crate::tui::widget::flow::{TextBlock, TextSource};
use crate::tui::widget::styled_row::StyledRow;

/// The number of lines of a prompt block that are shown although it is folded.
const MAX_SHORT_LINES: usize = 6;
/// The widest column of the comparison with the agent.
const MAX_FIELD_WIDTH: usize = 40;

/// Returns the text of the pane.
pub(super) fn build_source<'a>(cx: &mut ContentCx<'a>) -> Box<dyn TextSource + 'a> {
    let Some(shown) = resolve_shown_cell(cx.app) else {
        return Box::new(explain_no_cell());
    };
    if let Some(waiting) = cx.explain_empty_trace(&shown, "") {
        return Box::new(waiting);
    }
    let screen = &cx.app.session().trace_screen;
    if screen.other_slot.is_some() {
        return Box::new(trace_pair::selected_pair_blocks(cx, &shown));
    }
    let list = StepList::new(screen, &shown);
    let Some(step) = screen.find_selected(&list.steps).map(|at| list.steps[at]) else {
        return Box::new(vec![TextBlock::new("no step yet", Role::Muted)]);
    };
    let mut out = Vec::new();
    push_step(cx, &shown, step.id, &mut out);
    Box::new(out)
}

fn push_step<'a>(
    cx: &mut ContentCx<'a>,
    shown: &ShownCell<'a>,
    id: StepId,
    out: &mut Vec<TextBlock<'a>>,
) {
    let at = usize::from(id.turn.0);
    let turn = shown.turns().get(at);
    match (id.part, turn) {
        (StepPart::Prompt, Some(turn)) => {
            out.extend(prompt::request_notes(turn));
            push_prompt(cx, shown, at, out);
        }
        (StepPart::Reasoning, Some(turn)) => {
            out.push(TextBlock::new(reply_texts(turn).0, Role::Text));
        }
        (StepPart::Reply, Some(turn)) => out.push(TextBlock::new(reply_texts(turn).1, Role::Text)),
        (StepPart::Call(nth), Some(turn)) => {
            if let Some(call) = turn.calls.get(usize::from(nth.0)) {
                tool_call::push_call(cx, call, shown, Pane::Details, out);
            } else if let Some(attempt) = turn.attempts.values().last() {
                out.extend(tool_call::streaming_arguments(attempt, shown.has_ended()));
            }
        }
        (StepPart::Response(call), Some(_)) => {
            let position = CallPosition {
                turn: at,
                call: usize::from(call.0),
            };
            push_response(cx, shown, position, out);
        }
        (StepPart::Verdict, _) => {
            out.extend(verdict::verdict_blocks(cx));
            push_claims(cx, out);
        }
        (_, None) => {}
    }
}

/// Adds the claims of the verdict with the places where each occurs.
fn push_claims<'a>(cx: &ContentCx<'a>, out: &mut Vec<TextBlock<'a>>) {
    let screen = &cx.app.session().trace_screen;
    if screen.claims.claims.is_empty() {
        return;
    }
    out.push(empty_row());
    out.push(heading("what the verdict rests on"));
    for (at, claim) in screen.claims.claims.iter().enumerate() {
        let is_selected = screen.selected_claim == Some(at);
        out.push(TextBlock {
            indent: 2,
            lead: if is_selected { cx.glyphs().cursor } else { "" }.into(),
            ..trace_steps::claim_line(claim, is_selected, cx.glyphs())
        });
    }
}

fn push_prompt<'a>(
    cx: &mut ContentCx<'a>,
    shown: &ShownCell<'a>,
    turn: usize,
    out: &mut Vec<TextBlock<'a>>,
) {
    let session = cx.app.session();
    let (trace, screen) = (&session.trace_panes, &session.trace_screen);
    match screen.requests.get(&turn) {
        Some(RequestState::Loaded(request)) if trace.shows_raw => {
            out.push(prompt::raw_request(cx, request));
        }
        Some(RequestState::Loaded(request)) => {
            push_sections(cx, request, screen.detail_level, out);
            out.push(empty_row());
            out.extend(prompt::request_facts(shown, request));
        }
        Some(RequestState::Failed { why, .. }) => {
            out.push(TextBlock::new("dicta can't read the prompt", Role::Error));
            out.push(TextBlock::new(why.as_str(), Role::Text));
        }
        _ => out.push(TextBlock::new("reading the prompt …", Role::Muted)),
    }
}

/// Adds the sections of a prompt: the rubric first, then the other blocks, then dicta's frame.
fn push_sections<'a>(
    cx: &ContentCx<'a>,
    request: &'a ReadableRequest,
    level: u8,
    out: &mut Vec<TextBlock<'a>>,
) {
    for section in request.rubric_sections() {
        out.push(heading(section.name.as_deref().unwrap_or_default()));
        out.push(section_text(request, section));
    }
    let others = request
        .sections
        .iter()
        .filter(|one| !one.is_rubric && one.name.is_some());
    for section in others {
        let name = section.name.as_deref().unwrap_or_default();
        let is_open = level >= LEVEL_OF_BLOCKS || section.lines <= MAX_SHORT_LINES;
        out.push(fold_line(cx, name, section.lines, is_open));
        if is_open {
            out.push(section_text(request, section));
        }
    }
    let frame: Vec<&RequestSection> = request
        .sections
        .iter()
        .filter(|section| section.name.is_none())
        .collect();
    if frame.is_empty() {
        return;
    }
    let lines = frame.iter().map(|section| section.lines).sum();
    let is_open = level >= LEVEL_OF_FRAME;
    out.push(fold_line(cx, "dicta's frame", lines, is_open));
    if is_open {
        out.extend(frame.iter().map(|section| section_text(request, section)));
    }
}

fn section_text<'a>(request: &'a ReadableRequest, section: &RequestSection) -> TextBlock<'a> {
    let text = request.text.get(section.range.clone()).unwrap_or_default();
    TextBlock {
        indent: 2,
        ..TextBlock::new(text.trim_matches('\n'), section.role)
    }
}

fn fold_line<'a>(cx: &ContentCx<'_>, name: &str, lines: usize, is_open: bool) -> TextBlock<'a> {
    let glyphs = cx.glyphs();
    let mark = if is_open { glyphs.open } else { glyphs.closed };
    let count = crate::model::pluralize(lines as u64, "line");
    let mut pieces = vec![
        (format!("{mark} {name}"), Role::Title),
        (format!(" · {count}"), Role::Muted),
    ];
    if !is_open {
        pieces.push(("  z".to_owned(), Role::Key));
        pieces.push((" unfolds".to_owned(), Role::Muted));
    }
    styled_line(pieces)
}

/// Adds a tool response, readable or raw, and the agent's similar call.
fn push_response<'a>(
    cx: &mut ContentCx<'a>,
    shown: &ShownCell<'a>,
    position: CallPosition,
    out: &mut Vec<TextBlock<'a>>,
) {
    let session = cx.app.session();
    let (trace, screen) = (&session.trace_panes, &session.trace_screen);
    let turns = shown.turns();
    let Some(call) = turns
        .get(position.turn)
        .and_then(|turn| turn.calls.get(position.call))
    else {
        return;
    };
    if let Some(rejection) = &call.rejected {
        out.push(heading("text for the judge"));
        out.push(TextBlock::new(rejection.text.as_str(), Role::Error));
        return;
    }
    let quoted = trace.selected_quote.as_ref();
    let is_quoted = quoted.is_some_and(|quote| quote.position == position);
    let pretty = call.finished.as_ref().filter(|done| {
        // A quote is a position in the text as the judge got it.
        !trace.shows_raw && !is_quoted && !done.response.is_error && done.response.hidden == 0
    });
    let laid_out = pretty.and_then(|done| {
        let LoadedText::Loaded { text, .. } = cx.load_text(&done.response.text) else {
            return None;
        };
        lay_out_response(
            text,
            done.response.content_type.as_deref(),
            screen.detail_level,
        )
    });
    tool_response::push_response(cx, turns, position, shown.has_ended(), out);
    if let Some(blocks) = laid_out {
        // The text as it is was added last; the layout takes its place.
        out.pop();
        out.extend(blocks);
    }
    let search = screen.agent.as_ref();
    let found = search
        .filter(|search| search.position == position && search.run.as_ref() == shown.run)
        .filter(|_| !is_quoted)
        .and_then(|search| search.found.as_ref());
    if let Some(found) = found {
        push_agent_comparison(cx, found, out);
    }
}

/// Lays out a response by its content. None keeps the text as it is.
fn lay_out_response<'a>(
    text: &str,
    content_type: Option<&str>,
    level: u8,
) -> Option<Vec<TextBlock<'a>>> {
    // Marks of invisible characters have their places in the text as the judge got it.
    if count_invisible(&text[..text.floor_char_boundary(4096)]) > 0 {
        return None;
    }
    if let Some(mut table) = lay_out_table(text) {
        table.insert(0, layout_note("rows as a table"));
        return Some(table);
    }
    if let Some(json) = fold_json(text, level) {
        let mut out = vec![layout_note("JSON")];
        out.extend(json.lines().map(|line| {
            let indent = line.len() - line.trim_start().len();
            let differs = line.contains('▸');
            TextBlock {
                indent: u16::try_from(indent.min(40)).unwrap_or(0),
                ..TextBlock::new(
                    line.trim_start().to_owned(),
                    if differs { Role::Muted } else { Role::Text },
                )
            }
        }));
        return Some(out);
    }
    if tool_response::is_markdown(content_type) {
        let mut out = vec![layout_note("Markdown")];
        out.extend(render_markdown(text)?);
        return Some(out);
    }
    None
}

/// Adds the agent's call and its result next to the judge's, field by field.
fn push_agent_comparison<'a>(
    cx: &ContentCx<'a>,
    found: &'a AgentComparison,
    out: &mut Vec<TextBlock<'a>>,
) {
    out.push(empty_row());
    let differences = found.count_differences();
    let summary = match (found.fields.is_empty(), differences) {
        (true, _) => String::new(),
        (false, 0) => "  no field differs".to_owned(),
        (false, count) => {
            let count = crate::model::pluralize(count as u64, "field");
            format!("  {count} with other values")
        }
    };
    let role = if differences > 0 {
        Role::Warning
    } else {
        Role::Muted
    };
    out.push(styled_line([
        (
            format!("what the agent saw, message {}", found.message),
            Role::Title,
        ),
        (summary, role),
    ]));
    out.push(TextBlock {
        indent: 2,
        ..TextBlock::new(found.call.as_str(), Role::Tool)
    });
    if found.fields.is_empty() {
        out.push(TextBlock {
            indent: 2,
            ..TextBlock::new(found.result.as_str(), Role::Text)
        });
        return;
    }
    out.extend(field_rows(cx, &found.fields));
}

fn field_rows<'a>(cx: &ContentCx<'_>, fields: &[ComparedField]) -> Vec<TextBlock<'a>> {
    let width = |text: &str| StyledRow::new(text, Role::Text).width();
    let clip = |text: &str| -> String {
        let line: String = text
            .chars()
            .map(|c| if c == '\n' { ' ' } else { c })
            .collect();
        match line.char_indices().nth(MAX_FIELD_WIDTH) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    };
    let cells: Vec<[String; 3]> = fields
        .iter()
        .map(|field| {
            let value = |value: &Option<String>| value.as_deref().map_or("–".to_owned(), clip);
            let name = match &field.agent_name {
                Some(other) => format!("{} / {other}", field.name),
                None => field.name.clone(),
            };
            [clip(&name), value(&field.judge), value(&field.agent)]
        })
        .collect();
    let heads = ["", "judge", "agent"];
    let wide = |at: usize| {
        let widest = cells.iter().map(|row| width(&row[at])).max().unwrap_or(0);
        widest.max(width(heads[at]))
    };
    let widths = [wide(0), wide(1)];
    let pad = |text: &str, to: usize| format!("{text}{}", " ".repeat(to - width(text).min(to)));
    let unequal = if cx.glyphs().ascii { "!" } else { "≠" };
    let mut out = vec![TextBlock::new(
        format!(
            "  {}  {}  agent",
            pad("", widths[0]),
            pad("judge", widths[1])
        ),
        Role::Muted,
    )];
    out.extend(fields.iter().zip(&cells).map(|(field, row)| {
        let (mark, role) = if field.differs() {
            (unequal, Role::Warning)
        } else {
            (" ", Role::Text)
        };
        styled_line([
            (format!("{mark} "), role),
            (format!("{}  ", pad(&row[0], widths[0])), Role::CodeKey),
            (format!("{}  ", pad(&row[1], widths[1])), role),
            (row[2].clone(), role),
        ])
    }));
    out
}
