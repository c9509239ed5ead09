//! The text of the list on the trace screen: one line for each step, its body if it is unfolded, and the claims of the
//! verdict.
//!
//! A row is built only when it is visible, so that a trace of any length costs the same.

use std::borrow::Cow;

use super::step_line::describe_step;
use super::{ContentCx, explain_no_cell, styled_line, trace_pair};
use crate::event::{
    CallState, GatePoint, StepId, StepPart, StoredText, TraceStep, TurnState, reply_texts,
};
use crate::judge::{ClaimFinding, ClaimKind, VerdictClaim};
use crate::model::{Millis, RawJson, SUBMIT_VERDICT, pluralize};
use crate::report::format_bytes;
use crate::theme::{Glyphs, Role, StyledSpan};
use crate::tui::state::pane::Pane;
use crate::tui::state::phase_text::describe_gate;
use crate::tui::state::readable_request::ReadableRequest;
use crate::tui::state::shown_cell::{ShownCell, resolve_shown_cell};
use crate::tui::state::step_list::{StepList, StepRow};
use crate::tui::state::trace_screen::TraceScreen;
use crate::tui::widget::flow::{TextBlock, TextSource};
use crate::tui::widget::styled_row::StyledRow;

/// The longest part of a text in the line of a folded step, in characters.
const MAX_PREVIEW: usize = 160;
/// The largest JSON that is laid out for every frame, in bytes.
const MAX_LAID_OUT_BYTES: usize = 16 << 10;

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
        return trace_pair::build_source(cx, &shown);
    }
    let list = StepList::new(screen, &shown);
    if list.rows.is_empty() {
        let why = "no step yet: this cell is queued";
        return Box::new(vec![TextBlock::new(why, Role::Muted)]);
    }
    let selected = screen.find_selected(&list.steps);
    let layout = cx.app.layout();
    Box::new(StepListSource {
        screen,
        shown,
        selected,
        list,
        glyphs: cx.glyphs(),
        is_focused: cx.app.ui.focus == Pane::Steps,
        waits_for_user: cx.app.shown_pause().is_some(),
        // The cursor takes two columns.
        width: usize::from(layout.inner_size(Pane::Steps).width).saturating_sub(2),
    })
}

/// The rows of the list: see the module.
struct StepListSource<'a> {
    screen: &'a TraceScreen,
    shown: ShownCell<'a>,
    list: StepList,
    selected: Option<usize>,
    glyphs: &'a Glyphs,
    is_focused: bool,
    /// True if the keys of a paused trace work.
    waits_for_user: bool,
    width: usize,
}

impl TextSource for StepListSource<'_> {
    fn len(&self) -> usize {
        self.list.rows.len()
    }

    fn block(&self, at: usize) -> TextBlock<'_> {
        match self.list.rows.get(at) {
            Some(StepRow::Header(step)) => self.header(*step),
            Some(StepRow::Body { step, part }) => {
                let step = &self.list.steps[*step];
                TextBlock {
                    indent: 6,
                    ..self.body(step.id, *part)
                }
            }
            Some(StepRow::ClaimsHeading) => TextBlock {
                indent: 2,
                ..styled_line([
                    ("what the verdict rests on", Role::Title),
                    ("   ", Role::Muted),
                    ("c", Role::Key),
                    (" next", Role::Muted),
                ])
            },
            Some(StepRow::Claim(claim)) => self.claim(*claim),
            Some(StepRow::Pause(point)) => self.pause(*point),
            Some(StepRow::Interruption) => self.interruption(),
            Some(StepRow::FollowUpsHeading) => TextBlock {
                indent: 2,
                ..TextBlock::new(
                    "questions after the verdict; they change no result",
                    Role::Title,
                )
            },
            Some(StepRow::FollowUp(at)) => self.follow_up(*at),
            Some(StepRow::Asking) => TextBlock {
                indent: 2,
                ..styled_line([
                    ("you    ", Role::Key),
                    (
                        self.screen.follow_ups.asking.as_deref().unwrap_or_default(),
                        Role::Text,
                    ),
                    ("  the judge answers …", Role::Live),
                ])
            },
            None => TextBlock::default(),
        }
    }
}

impl StepListSource<'_> {
    /// Returns a question with its answer below it.
    fn follow_up(&self, at: usize) -> TextBlock<'_> {
        let Some(asked) = self.screen.follow_ups.list.get(at) else {
            return TextBlock::default();
        };
        TextBlock {
            indent: 2,
            ..styled_line([
                (Cow::from("you    "), Role::Key),
                (asked.question.as_str().into(), Role::Text),
                (format!("\n{}  ", asked.judge).into(), Role::Key),
                (asked.answer.trim().into(), Role::Text),
            ])
        }
    }

    /// Returns the line about the pause, with the keys that release the trace.
    fn pause(&self, point: GatePoint) -> TextBlock<'_> {
        let mark = super::pause_mark(self.glyphs);
        let what = format!("{mark} paused {}", describe_gate(point));
        let mut pieces = vec![(Cow::from(what), Role::Warning)];
        if self.waits_for_user {
            let mut keys = vec![("s", "step"), ("space", "continue")];
            if point != GatePoint::Ended {
                keys.push(("e", "edit"));
            }
            if point == GatePoint::Call {
                keys.push(("S", "skip"));
            }
            keys.push(("A", "all"));
            for (key, what) in keys {
                pieces.push(("  ".into(), Role::Muted));
                pieces.push((key.into(), Role::Key));
                pieces.push((format!(" {what}").into(), Role::Muted));
            }
        }
        TextBlock {
            indent: 2,
            ..styled_line(pieces)
        }
    }

    /// Returns the line about the end of a trace that its run left without a result, with the keys that go on from it.
    fn interruption(&self) -> TextBlock<'_> {
        let mark = super::pause_mark(self.glyphs);
        let what = self.shown.describe_interruption().unwrap_or_default();
        let earlier = self.shown.row.decision.as_ref();
        let earlier = earlier.map(|decision| super::name_with_mark(decision.outcome, self.glyphs));
        let (verdict, role) = earlier.unwrap_or_else(|| ("none".to_owned(), Role::Muted));
        TextBlock {
            indent: 2,
            ..styled_line([
                (
                    format!("{mark} {what}, without a verdict").as_str(),
                    Role::Warning,
                ),
                ("  earlier verdict: ", Role::Muted),
                (verdict.as_str(), role),
                ("  ", Role::Muted),
                ("r", Role::Key),
                (" judges again  ", Role::Muted),
                ("b", Role::Key),
                (" branches from a step", Role::Muted),
            ])
        }
    }

    /// Returns the line of a step: its name at the left, time and tokens at the right.
    fn header(&self, at: usize) -> TextBlock<'_> {
        let step = &self.list.steps[at];
        let is_selected = self.selected == Some(at);
        let is_unfolded = self.screen.is_unfolded(step.id);
        let fold = if is_unfolded {
            self.glyphs.open
        } else {
            self.glyphs.closed
        };
        let mut left = vec![(format!("{fold} "), Role::Muted)];
        left.extend(describe_step(&self.shown, step, self.glyphs));
        if !is_unfolded && let Some(preview) = preview_step(&self.shown, step.id) {
            left.push((format!("  {preview}"), Role::Muted));
        }
        let right = describe_cost(step, self.shown.trace.and_then(|cell| cell.started));
        let mut block = fit_line(left, &right, self.width, self.glyphs.ellipsis);
        block.indent = 2;
        if is_selected {
            block.lead = self.glyphs.cursor.into();
            let role = if self.is_focused {
                Role::Selected
            } else {
                Role::SelectedUnfocused
            };
            block.role = role;
            let end = block.text.len();
            block.spans = vec![StyledSpan::new(0..end, role)].into();
        }
        block
    }

    fn body(&self, id: StepId, part: usize) -> TextBlock<'_> {
        let turn = usize::from(id.turn.0);
        let Some(state) = self.shown.turns().get(turn) else {
            return self.end_of_trace();
        };
        match id.part {
            StepPart::Prompt => match self.screen.request(turn) {
                Some(request) => describe_prompt_part(request, part),
                None => TextBlock::new("reading the prompt …", Role::Muted),
            },
            StepPart::Reasoning => TextBlock::new(reply_texts(state).0, Role::Reasoning),
            StepPart::Reply => TextBlock::new(reply_texts(state).1, Role::Text),
            StepPart::Call(call) => {
                let call = state.calls.get(usize::from(call.0));
                let text = call.map_or_else(|| forming_arguments(state), arguments_of);
                format_small_json(text)
            }
            StepPart::Response(call) => match state.calls.get(usize::from(call.0)) {
                Some(call) => {
                    let missing = if self.shown.has_ended() {
                        ("the trace ended before the response", Role::Muted)
                    } else {
                        ("waiting for the response …", Role::Live)
                    };
                    response_text(call, missing)
                }
                None => TextBlock::default(),
            },
            StepPart::Verdict => self.end_of_trace_or(state),
        }
    }

    fn end_of_trace_or(&self, turn: &TurnState) -> TextBlock<'_> {
        if let Some(unparsed) = &turn.unparsed {
            return TextBlock::new(unparsed.why.clone(), Role::Error);
        }
        self.end_of_trace()
    }

    /// Returns the reasoning of the verdict, or the error.
    fn end_of_trace(&self) -> TextBlock<'_> {
        let verdict = super::verdict::shown_verdict(&self.shown);
        match (verdict, self.shown.result) {
            (Some(verdict), _) => TextBlock::new(verdict.reasoning.as_str(), Role::Text),
            (None, Some(result)) => match &result.error {
                Some(error) => TextBlock::new(error.as_str(), Role::Error),
                None => TextBlock::new(result.explanation.as_str(), Role::Text),
            },
            (None, None) => TextBlock::default(),
        }
    }

    fn claim(&self, at: usize) -> TextBlock<'_> {
        let Some(claim) = self.screen.claims.claims.get(at) else {
            return TextBlock::default();
        };
        let is_selected = self.screen.selected_claim == Some(at);
        TextBlock {
            indent: 4,
            lead: if is_selected { self.glyphs.cursor } else { "" }.into(),
            ..claim_line(claim, is_selected, self.glyphs)
        }
    }
}

/// Returns the line of a claim: `✗ “EUR 205.25”  cited message 4, found in message 6`.
pub(super) fn claim_line<'a>(
    claim: &VerdictClaim,
    is_selected: bool,
    glyphs: &Glyphs,
) -> TextBlock<'a> {
    let (mark, role) = match claim.finding {
        ClaimFinding::Found => (glyphs.pass, Role::Found),
        ClaimFinding::FoundElsewhere => (glyphs.flipped, Role::Warning),
        ClaimFinding::NotFound => (glyphs.fail, Role::Missing),
        ClaimFinding::NotSearched => ("?", Role::Muted),
        ClaimFinding::AgentDiffers => (if glyphs.ascii { "!" } else { "≠" }, Role::Warning),
    };
    let text = match claim.kind {
        ClaimKind::Quote => format!("“{}”", shorten(&claim.text)),
        ClaimKind::Number | ClaimKind::Field => claim.text.clone(),
    };
    let text_role = if is_selected { Role::Match } else { Role::Text };
    styled_line([
        (format!("{mark} "), role),
        (text, text_role),
        (format!("  {}", claim.describe_finding()), role),
    ])
}

/// Returns the beginning of a step's text for its line.
fn preview_step(shown: &ShownCell<'_>, id: StepId) -> Option<String> {
    let turn = shown.turns().get(usize::from(id.turn.0))?;
    let text = match id.part {
        StepPart::Prompt => return None,
        StepPart::Reasoning => reply_texts(turn).0,
        StepPart::Reply => reply_texts(turn).1,
        StepPart::Call(call) => match turn.calls.get(usize::from(call.0)) {
            // The verdict's arguments are the next step.
            Some(call) if call.name == SUBMIT_VERDICT && call.rejected.is_none() => return None,
            Some(call) => arguments_of(call),
            None => forming_arguments(turn),
        },
        StepPart::Response(call) => {
            let call = turn.calls.get(usize::from(call.0))?;
            match (&call.rejected, call.shown_response()) {
                (Some(rejection), _) => &rejection.text,
                (None, Some(response)) => match &response.text {
                    StoredText::Text(text) => text,
                    StoredText::Blob(_) => return None,
                },
                (None, None) => return None,
            }
        }
        StepPart::Verdict => &super::verdict::shown_verdict(shown)?.reasoning,
    };
    let end = text.floor_char_boundary(MAX_PREVIEW * 4);
    let words: Vec<&str> = text[..end].split_whitespace().collect();
    let line: String = words.join(" ").chars().take(MAX_PREVIEW).collect();
    (!line.is_empty()).then_some(line)
}

/// Returns the arguments that dicta used, or as the judge wrote them.
fn arguments_of(call: &CallState) -> &str {
    call.canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get)
}

/// Returns the arguments that are still being streamed.
fn forming_arguments(turn: &TurnState) -> &str {
    let attempt = turn.attempts.values().last();
    let args = attempt.and_then(|attempt| attempt.args.values().last());
    args.map_or("", String::as_str)
}

/// Returns the text of a response, or `missing`.
fn response_text<'a>(call: &'a CallState, missing: (&'static str, Role)) -> TextBlock<'a> {
    if let Some(rejection) = &call.rejected {
        return TextBlock::new(rejection.text.as_str(), Role::Error);
    }
    match call.shown_response() {
        Some(response) => match &response.text {
            StoredText::Text(text) if response.is_error => {
                TextBlock::new(text.as_str(), Role::Error)
            }
            StoredText::Text(text) => format_small_json(text),
            StoredText::Blob(blob) => {
                let size = format_bytes(blob.bytes);
                TextBlock::new(format!("{size}: the step shows it"), Role::Muted)
            }
        },
        None => TextBlock::new(missing.0, missing.1),
    }
}

fn format_small_json(text: &str) -> TextBlock<'_> {
    let small = text.len() <= MAX_LAID_OUT_BYTES;
    let pretty = small.then(|| crate::tools::pretty_print_json(text, MAX_LAID_OUT_BYTES));
    match pretty.flatten() {
        Some(pretty) => TextBlock::new(pretty, Role::Text),
        None => TextBlock::new(text, Role::Text),
    }
}

/// Returns a row of an unfolded prompt: a rubric text, then one line about the rest.
fn describe_prompt_part(request: &ReadableRequest, part: usize) -> TextBlock<'_> {
    if let Some(section) = request.rubric_sections().nth(part) {
        return TextBlock::new(request.text[section.range.clone()].trim(), Role::Text);
    }
    let rest = request.sections.iter().filter(|section| !section.is_rubric);
    let named: Vec<&str> = rest.filter_map(|section| section.name.as_deref()).collect();
    let frame: usize = request
        .sections
        .iter()
        .filter(|section| section.name.is_none())
        .map(|section| section.lines)
        .sum();
    let mut parts: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
    if frame > 0 {
        parts.push(format!("dicta's frame, {}", pluralize(frame, "line")));
    }
    if request.earlier_items > 0 {
        parts.insert(0, pluralize(request.earlier_items, "earlier item"));
    }
    TextBlock::new(parts.join(" · "), Role::Muted)
}

/// Returns the time since the cell began, and the tokens.
fn describe_cost(step: &TraceStep, began: Option<Millis>) -> String {
    let mut parts = Vec::new();
    if let Some(tokens) = step.tokens {
        parts.push(format!("{tokens} tok"));
    }
    if let Some(elapsed) = step.elapsed {
        parts.push(format!("in {elapsed}"));
    }
    if let (Some(at), Some(began)) = (step.at, began) {
        parts.push(at.since(began).to_string());
    }
    parts.join("  ")
}

/// Joins two ends of a line, and cuts the left one.
fn fit_line<'a>(
    left: Vec<(String, Role)>,
    right: &str,
    width: usize,
    ellipsis: &str,
) -> TextBlock<'a> {
    let right_width = StyledRow::new(right, Role::Muted).width();
    let room = width.saturating_sub(right_width + 1);
    let mut pieces: Vec<(Cow<'_, str>, Role)> = Vec::new();
    let mut used = 0;
    for (text, role) in left {
        let wide = StyledRow::new(text.as_str(), role).width();
        if used + wide <= room {
            used += wide;
            pieces.push((text.into(), role));
            continue;
        }
        let mut cut = String::new();
        for c in text.chars() {
            let next = StyledRow::new(c.to_string(), role).width();
            if used + next + 1 > room {
                break;
            }
            used += next;
            cut.push(c);
        }
        cut.push_str(ellipsis);
        used += 1;
        pieces.push((cut.into(), role));
        break;
    }
    if !right.is_empty() && width > 0 {
        let gap = width.saturating_sub(used + right_width);
        pieces.push((" ".repeat(gap).into(), Role::Muted));
        pieces.push((right.to_owned().into(), Role::Muted));
    }
    styled_line(pieces)
}

fn shorten(text: &str) -> String {
    /// The longest quote in the list, in characters.
    const MAX: usize = 80;
    match text.char_indices().nth(MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
