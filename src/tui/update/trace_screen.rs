//! The trace screen: its keys, the requests and traces that it needs, and the claims of the verdict.
//!
//! Every step has an id that stays valid while the trace grows, so the selection survives new events.

use super::branches;
use super::focus;
use super::follow_ups;
use super::notices::push_info;
use super::panes;
use super::step_edits;
use crate::event::{StepId, StepPart, TraceStep};
use crate::judge::{ClaimFinding, ClaimPlace, SearchedResponse, SearchedTexts, collect_claims};
use crate::model::{RawJson, SUBMIT_VERDICT, TurnIx};
use crate::tui::command::UiCommand;
use crate::tui::content::trace_pair::{
    find_selected_pair, list_aligned_steps, resolve_other_cell, row_of_pair,
};
use crate::tui::content::{self, tool_response::loaded_response};
use crate::tui::effect::Effect;
use crate::tui::state::App;
use crate::tui::state::agent_comparison::{compare_with_agent, list_differing_fields};
use crate::tui::state::cells::SlotId;
use crate::tui::state::judge_trace::{
    CallPosition, RequestState, ResponseQuote, StepSelection, StripStep, list_steps, number_fetch,
};
use crate::tui::state::pane::Pane;
use crate::tui::state::piece_range::PieceRange;
use crate::tui::state::readable_request::RequestKey;
use crate::tui::state::shown_cell::{hides_verdict, resolve_shown_cell};
use crate::tui::state::step_list::{StepList, StepRow, find_step_of_claim, next_other_slot};
use crate::tui::state::trace_screen::{AgentSearch, ClaimsKey, DETAIL_LEVELS, FoundClaims};
use crate::tui::widget::flow::{BlockPosition, ScrollState};

/// `enter` on a judged cell: opens the screen.
pub(super) fn open(app: &mut App) -> Vec<Effect> {
    app.ui.trace_open = true;
    app.ui.zoomed = false;
    app.ui.tab_pane = Pane::Details;
    panes::focus_pane(app, Pane::Steps)
}

/// `esc`: leaves the details, then the comparison, then the screen.
pub(super) fn step_back(app: &mut App) -> Vec<Effect> {
    if app.ui.focus != Pane::Steps {
        app.ui.tab_pane = Pane::Details;
        return panes::focus_pane(app, Pane::Steps);
    }
    if app.session().trace_screen.other_slot.is_some() {
        stop_comparing(app);
        return Vec::new();
    }
    app.close_trace_screen();
    panes::keep_selection_visible(app);
    Vec::new()
}

/// Runs a command that has its own meaning on this screen. `None` for the others.
pub(super) fn run_shared_command(app: &mut App, command: UiCommand) -> Option<Vec<Effect>> {
    let in_list = app.ui.focus == Pane::Steps;
    Some(match command {
        UiCommand::Up if in_list => move_step_by(app, -1),
        UiCommand::Down if in_list => move_step_by(app, 1),
        UiCommand::Top if in_list => select_first(app),
        UiCommand::Bottom if in_list => select_newest(app),
        UiCommand::Enter if in_list => toggle_fold(app),
        UiCommand::PreviousStep => move_turn_by(app, -1),
        UiCommand::NextStep => move_turn_by(app, 1),
        UiCommand::Citation => go_to_next_claim(app),
        _ => return None,
    })
}

/// Runs a command of the screen.
pub(super) fn run_command(app: &mut App, command: UiCommand) -> Vec<Effect> {
    match command {
        UiCommand::TraceUnfold => change_level(app, true),
        UiCommand::TraceFold => change_level(app, false),
        UiCommand::TraceCompare => compare_next(app),
        UiCommand::TraceBranch => branches::branch_from_step(app),
        UiCommand::TraceAsk => follow_ups::open_question(app),
        UiCommand::TraceWhatIf => {
            // On the verdict, the last response is what a user wants to change.
            let step = match app.selected_trace_step() {
                Some(step) if step.part == StepPart::Verdict => {
                    app.last_call_step(StepPart::Response).or(Some(step))
                }
                other => other,
            };
            step.map_or_else(Vec::new, |step| step_edits::edit_for_branch(app, step))
        }
        UiCommand::TraceWhatIfArguments => {
            let first_prompt = StepId {
                turn: TurnIx(0),
                part: StepPart::Prompt,
            };
            let selected = app.selected_trace_step();
            if selected == Some(first_prompt) {
                return step_edits::edit_prompt_for_branch(app, first_prompt);
            }
            match app.last_call_step(StepPart::Call) {
                Some(step) => step_edits::edit_for_branch(app, step),
                None => push_info(app, "the judge called no tool before this step"),
            }
        }
        _ => Vec::new(),
    }
}

/// Returns the steps of the focused trace and the selected one.
fn find_steps(app: &App) -> Option<(StepList, usize)> {
    let shown = resolve_shown_cell(app)?;
    let screen = &app.session().trace_screen;
    let list = StepList::new(screen, &shown);
    let at = screen.find_selected(&list.steps)?;
    Some((list, at))
}

/// `j` and `k` in the list: selects another step.
fn move_step_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let screen = &app.session().trace_screen;
    if screen.other_slot.is_some() {
        return move_pair_by(app, delta);
    }
    let Some((list, at)) = find_steps(app) else {
        return Vec::new();
    };
    let end = i64::try_from(list.steps.len()).unwrap_or(1) - 1;
    let next = (i64::try_from(at).unwrap_or(0) + delta).clamp(0, end.max(0));
    let next = usize::try_from(next).unwrap_or(0);
    // Down from the last step follows the judge again.
    if delta > 0 && next == at {
        return select_newest(app);
    }
    if let Some(step) = list.steps.get(next) {
        select_step(app, step.id);
    }
    Vec::new()
}

fn move_pair_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let found = resolve_shown_cell(app).zip(resolve_other_cell(app));
    let pairs = found.map(|(shown, other)| list_aligned_steps(&shown, &other));
    let pairs = pairs.unwrap_or_default();
    let Some(at) = find_selected_pair(app, &pairs) else {
        return Vec::new();
    };
    let last = i64::try_from(pairs.len()).unwrap_or(1) - 1;
    let next = (i64::try_from(at).unwrap_or(0) + delta).clamp(0, last.max(0));
    let at = usize::try_from(next).unwrap_or(0);
    let Some(step) = pairs.get(at).and_then(|pair| pair.left.or(pair.right)) else {
        return Vec::new();
    };
    app.session_mut().trace_screen.selected = Some(step.id);
    reveal(app, row_of_pair(&pairs, at));
    Vec::new()
}

/// Selects the step or the claim in a visible row of the list, counted from the top.
pub(super) fn select_row(app: &mut App, below: u16) {
    let found = panes::with_scroll(app, Pane::Steps, |scroll, source, area| {
        scroll.row_position(source, area, below)
    });
    let Some(place) = found.flatten() else { return };
    let other = resolve_other_cell(app);
    if let Some((shown, other)) = resolve_shown_cell(app).zip(other) {
        let pairs = list_aligned_steps(&shown, &other);
        let at = (0..pairs.len()).find(|at| row_of_pair(&pairs, *at) == place.block);
        let step = at.and_then(|at| pairs[at].left.or(pairs[at].right));
        if let Some(step) = step {
            app.session_mut().trace_screen.selected = Some(step.id);
        }
        return;
    }
    let Some((list, _)) = find_steps(app) else {
        return;
    };
    match list.rows.get(place.block) {
        Some(StepRow::Header(step) | StepRow::Body { step, .. }) => {
            select_step(app, list.steps[*step].id);
        }
        Some(StepRow::Claim(claim)) => {
            // `c` goes to the claim after the selected one.
            app.session_mut().trace_screen.selected_claim = claim.checked_sub(1);
            go_to_next_claim(app);
        }
        Some(
            StepRow::ClaimsHeading
            | StepRow::Pause(_)
            | StepRow::Interruption
            | StepRow::FollowUpsHeading
            | StepRow::FollowUp(_)
            | StepRow::Asking,
        )
        | None => {}
    }
}

/// Selects a step, and shows its turn in the four panes of the home screen too.
fn select_step(app: &mut App, id: StepId) {
    let strip = find_strip_position(app, id);
    let session = app.session_mut();
    if session.trace_screen.selected != Some(id) {
        session.trace_screen.details = ScrollState::top();
        session.trace_panes.selected_quote = None;
    }
    session.trace_screen.selected = Some(id);
    session.trace_panes.step = strip.map_or(StepSelection::Newest, StepSelection::Position);
    // The transcript takes the place of the details only while a place in it is shown.
    if app.ui.focus != Pane::Transcript && app.ui.tab_pane == Pane::Transcript {
        app.ui.tab_pane = Pane::Details;
    }
    reveal_selected(app);
}

/// `G`: selects the newest step and follows the judge.
fn select_newest(app: &mut App) -> Vec<Effect> {
    let session = app.session_mut();
    session.trace_screen.selected = None;
    session.trace_screen.steps.scroll_to_end();
    session.trace_screen.details = ScrollState::top();
    session.trace_panes.step = StepSelection::Newest;
    Vec::new()
}

/// `g`: selects the first step.
fn select_first(app: &mut App) -> Vec<Effect> {
    if let Some((list, _)) = find_steps(app) {
        select_step(app, list.steps[0].id);
    }
    Vec::new()
}

/// `,` and `.`: goes to the prompt of the previous or next turn; past the ends, to the other judges and repeats.
fn move_turn_by(app: &mut App, delta: i64) -> Vec<Effect> {
    let Some((list, at)) = find_steps(app) else {
        return Vec::new();
    };
    let here = list.steps[at].id;
    let is_prompt = |step: &&TraceStep| step.id.part == StepPart::Prompt;
    let mut prompts = list.steps.iter().filter(is_prompt);
    let target = if delta < 0 {
        // From the middle of a turn, the first press goes to its beginning.
        prompts.rfind(|step| step.id < here)
    } else {
        prompts.find(|step| step.id > here)
    };
    match target {
        Some(step) => {
            select_step(app, step.id);
            Vec::new()
        }
        None if delta > 0 && at + 1 < list.steps.len() => select_newest(app),
        None => focus::select_adjacent_slot(app, delta > 0),
    }
}

/// `enter` in the list: folds or unfolds the selected step.
fn toggle_fold(app: &mut App) -> Vec<Effect> {
    let Some((list, at)) = find_steps(app) else {
        return Vec::new();
    };
    let id = list.steps[at].id;
    let screen = &mut app.session_mut().trace_screen;
    // The selection stays on this step, also if newer ones arrive.
    screen.selected = Some(id);
    if !screen.toggled.remove(&id) {
        screen.toggled.insert(id);
    }
    reveal_selected(app);
    Vec::new()
}

/// `z` and `Z`: unfolds one more level of the details, or folds one.
fn change_level(app: &mut App, unfolds: bool) -> Vec<Effect> {
    let screen = &mut app.session_mut().trace_screen;
    let level = if unfolds {
        screen.detail_level.saturating_add(1)
    } else {
        screen.detail_level.saturating_sub(1)
    };
    screen.detail_level = level.clamp(*DETAIL_LEVELS.start(), *DETAIL_LEVELS.end());
    Vec::new()
}

/// `d`: shows the next judge or repeat of the decision next to this trace; after the last one, ends the comparison.
fn compare_next(app: &mut App) -> Vec<Effect> {
    let session = app.session();
    let (slot, from) = (session.trace_panes.slot, session.trace_screen.other_slot);
    let Some(shown) = resolve_shown_cell(app) else {
        return Vec::new();
    };
    match next_other_slot(&shown, slot, from) {
        Some(next) => {
            let screen = &mut app.session_mut().trace_screen;
            screen.other_slot = Some(next);
            screen.steps = ScrollState::top();
            screen.selected = None;
            screen.details = ScrollState::top();
            Vec::new()
        }
        None if from.is_some() => {
            stop_comparing(app);
            Vec::new()
        }
        None => push_info(
            app,
            "no other trace of this decision: J asks another judge, * repeats this one",
        ),
    }
}

fn stop_comparing(app: &mut App) {
    let screen = &mut app.session_mut().trace_screen;
    screen.other_slot = None;
    screen.selected = None;
    screen.steps = ScrollState::tail();
    screen.details = ScrollState::top();
}

/// `c`: goes to the next place that the verdict rests on. From a claim with several places, the cited one is shown.
fn go_to_next_claim(app: &mut App) -> Vec<Effect> {
    let screen = &app.session().trace_screen;
    let count = screen.claims.claims.len();
    if count == 0 || screen.other_slot.is_some() {
        return focus::go_to_next_reference(app);
    }
    let at = screen.selected_claim.map_or(0, |at| at + 1) % count;
    let claim = screen.claims.claims[at].clone();
    app.session_mut().trace_screen.selected_claim = Some(at);
    reveal_claim(app, at);
    let text = format!("{} of {count}: {}", at + 1, claim.describe_finding());
    if claim.finding == ClaimFinding::Found {
        app.notices.dismiss();
    } else {
        push_info(app, text);
    }
    match claim.places.first() {
        // The details compare both responses field by field.
        Some(place) if claim.finding == ClaimFinding::AgentDiffers => {
            show_details(app);
            app.session_mut().trace_panes.shows_raw = false;
            if let Some(step) = find_step_of_claim(place) {
                select_step(app, step);
                reveal_claim(app, at);
            }
            app.session_mut().trace_panes.selected_quote = None;
        }
        Some(ClaimPlace::Message { piece, range, .. }) => {
            let range = PieceRange {
                piece: *piece,
                range: range.clone(),
            };
            focus::show_transcript_range(app, range);
        }
        Some(
            place @ ClaimPlace::Response {
                position, range, ..
            },
        ) => {
            let quote = ResponseQuote {
                position: *position,
                range: range.clone(),
            };
            show_details(app);
            if let Some(step) = find_step_of_claim(place) {
                select_step(app, step);
                reveal_claim(app, at);
            }
            let byte = range.start;
            app.session_mut().trace_panes.shows_raw = false;
            app.session_mut().trace_panes.selected_quote = Some(quote);
            reveal_in_details(app, byte);
        }
        Some(ClaimPlace::Rubric) => {
            show_details(app);
            let id = StepId {
                turn: TurnIx(0),
                part: StepPart::Prompt,
            };
            select_step(app, id);
            reveal_claim(app, at);
        }
        // The text occurs nowhere: the verdict that claims it is shown.
        None => {
            show_details(app);
            app.session_mut().trace_screen.selected = None;
        }
    }
    Vec::new()
}

/// Shows the details in the place of the transcript.
fn show_details(app: &mut App) {
    app.ui.tab_pane = Pane::Details;
    if app.ui.focus == Pane::Transcript {
        app.ui.focus = Pane::Steps;
    }
}

/// Scrolls the details to a byte of the response, which is their last block.
fn reveal_in_details(app: &mut App, byte: usize) {
    panes::with_scroll(app, Pane::Details, |scroll, source, area| {
        let block = source.len().saturating_sub(1);
        scroll.reveal(source, area, BlockPosition { block, byte });
    });
}

fn reveal_claim(app: &mut App, claim: usize) {
    let row = find_steps(app).and_then(|(list, _)| list.row_of_claim(claim));
    if let Some(row) = row {
        reveal(app, row);
    }
}

fn reveal_selected(app: &mut App) {
    let row = find_steps(app).and_then(|(list, at)| list.row_of_step(at));
    if let Some(row) = row {
        reveal(app, row);
    }
}

/// Keeps the chosen step in view after the screen changed its size.
pub(super) fn keep_selection_visible(app: &mut App) {
    let screen = &app.session().trace_screen;
    if app.shows_trace_screen() && screen.selected.is_some() && screen.other_slot.is_none() {
        reveal_selected(app);
    }
}

/// Makes a row of the list visible.
fn reveal(app: &mut App, row: usize) {
    panes::with_scroll(app, Pane::Steps, |scroll, source, area| {
        let place = BlockPosition {
            block: row,
            byte: 0,
        };
        // A chosen step stays in view when the list grows, so the list no longer follows its end.
        scroll.scroll_rows(source, area, 0);
        scroll.follow = false;
        scroll.reveal(source, area, place);
    });
}

/// Returns the position of a step in the turn strip of the home screen.
fn find_strip_position(app: &App, id: StepId) -> Option<usize> {
    let shown = resolve_shown_cell(app)?;
    let turn = usize::from(id.turn.0);
    let wanted = match id.part {
        StepPart::Call(call) | StepPart::Response(call) => StripStep::Call(CallPosition {
            turn,
            call: usize::from(call.0),
        }),
        _ => StripStep::Turn(turn),
    };
    let turns = shown.turns();
    let find = |wanted| list_steps(turns).position(|step| step == wanted);
    // A call whose arguments are forming has no position yet.
    find(wanted).or_else(|| find(StripStep::Turn(turn)))
}

/// Orders the requests that the screen shows and updates what it found. Called after every update.
pub(super) fn request_shown(app: &mut App) -> Vec<Effect> {
    if !app.shows_trace_screen() {
        // The verdict pane also shows where a quote occurs that its source lacks.
        if has_missing_citation(app) {
            find_claims(app);
        }
        return Vec::new();
    }
    let mut effects = Vec::new();
    effects.extend(request_prompt(app));
    effects.extend(focus::request_other_trace(app));
    effects.extend(follow_ups::request(app));
    find_agent_call(app);
    find_claims(app);
    effects
}

/// Returns true if the shown verdict cites a quote that its source lacks.
fn has_missing_citation(app: &App) -> bool {
    if hides_verdict(app) {
        return false;
    }
    let shown = resolve_shown_cell(app);
    let verdict = shown.as_ref().and_then(content::verdict::shown_verdict);
    verdict.is_some_and(|verdict| verdict.citations.iter().any(|one| !one.found))
}

/// Orders the readable request of the selected step, else of the first turn and of unfolded prompts, one at a time.
fn request_prompt(app: &mut App) -> Option<Effect> {
    let (list, at) = find_steps(app)?;
    let shown = resolve_shown_cell(app)?;
    let screen = &app.session().trace_screen;
    let run = shown.run?.clone();
    let key = |turn: usize| RequestKey {
        run: run.clone(),
        cell: shown.number,
        turn,
    };
    let is_known = |turn: usize| {
        let known = screen.requests.get(&turn).and_then(RequestState::key);
        known.is_some_and(|known| *known == key(turn))
    };
    let unfolded = list
        .steps
        .iter()
        .filter(|step| step.id.part == StepPart::Prompt && screen.is_unfolded(step.id));
    // The first prompt contains the rubric, which the claims of the verdict can rest on.
    let wanted = [usize::from(list.steps[at].id.turn.0), 0]
        .into_iter()
        .chain(unfolded.map(|step| usize::from(step.id.turn.0)));
    let turns = shown.turns();
    let turn = wanted
        .filter(|turn| {
            turns
                .get(*turn)
                .is_some_and(|turn| !turn.request.is_empty())
        })
        .find(|turn| !is_known(*turn))?;
    let before = turn.checked_sub(1).and_then(|before| turns.get(before));
    let effect = Effect::ReadRequest {
        key: key(turn),
        dir: shown.dir.map(std::path::Path::to_owned),
        request: turns[turn].request.clone(),
        before: before.map(|turn| turn.request.clone()).unwrap_or_default(),
    };
    let key = key(turn);
    let screen = &mut app.session_mut().trace_screen;
    screen.requests.insert(turn, RequestState::Loading(key));
    Some(effect)
}

/// Compares the selected tool response with the agent's similar call, once per response.
fn find_agent_call(app: &mut App) {
    let Some((list, at)) = find_steps(app) else {
        return;
    };
    let id = list.steps[at].id;
    let (StepPart::Response(nth) | StepPart::Call(nth)) = id.part else {
        return;
    };
    let position = CallPosition {
        turn: usize::from(id.turn.0),
        call: usize::from(nth.0),
    };
    let Some(shown) = resolve_shown_cell(app) else {
        return;
    };
    let run = shown.run.cloned();
    let document = app.session().transcript_pane.loaded_document().cloned();
    let known = app.session().trace_screen.agent.as_ref();
    let is_known = known.is_some_and(|known| {
        let has_document = known.has_document == document.is_some();
        known.position == position && known.run == run && has_document && known.is_final
    });
    if is_known {
        return;
    }
    let turn = shown.turns().get(position.turn);
    let call = turn.and_then(|turn| turn.calls.get(position.call));
    let Some(call) = call.filter(|call| call.name != SUBMIT_VERDICT) else {
        return;
    };
    // The search waits for the text of the response.
    let Some(Ok(response)) = loaded_response(&app.texts, call) else {
        return;
    };
    let arguments = call
        .canonical
        .as_ref()
        .map_or(call.raw.as_str(), RawJson::get);
    let is_final = call.finished.is_some();
    let found = document
        .as_ref()
        .and_then(|doc| compare_with_agent(doc, &call.name, arguments, response));
    app.session_mut().trace_screen.agent = Some(AgentSearch {
        run,
        position,
        has_document: document.is_some(),
        is_final,
        found,
    });
}

/// Searches for the quotes and numbers of the verdict, once per verdict and loaded texts.
fn find_claims(app: &mut App) {
    let Some(shown) = resolve_shown_cell(app) else {
        return;
    };
    let session = app.session();
    let screen = &session.trace_screen;
    let Some(verdict) = content::verdict::shown_verdict(&shown) else {
        if screen.claims.key.is_some() {
            app.session_mut().trace_screen.claims = FoundClaims::default();
        }
        return;
    };
    let document = session.transcript_pane.loaded_document();
    let rubric: Vec<&str> = screen.request(0).map_or_else(Vec::new, |request| {
        let texts = request.rubric_sections();
        texts
            .filter_map(|section| request.text.get(section.range.clone()))
            .collect()
    });
    let turns = shown.turns();
    let mut responses = Vec::new();
    let mut calls = Vec::new();
    for (turn, state) in turns.iter().enumerate() {
        for (nth, call) in state.calls.iter().enumerate() {
            let position = CallPosition { turn, call: nth };
            if let Some(Ok(text)) = loaded_response(&app.texts, call)
                && call.name != SUBMIT_VERDICT
            {
                responses.push(SearchedResponse {
                    position,
                    number: number_fetch(turns, position),
                    text,
                });
                calls.push(call);
            }
        }
    }
    let Some(row) = session.trace_panes.row else {
        return;
    };
    let key = ClaimsKey {
        slot: SlotId {
            row,
            slot: session.trace_panes.slot,
        },
        run: shown.run.cloned(),
        reasoning: verdict.reasoning.clone(),
        has_document: document.is_some(),
        has_rubric: !rubric.is_empty(),
        responses: responses.len(),
    };
    if screen.claims.key.as_ref() == Some(&key) {
        return;
    }
    let mut claims = collect_claims(
        verdict,
        &SearchedTexts {
            messages: document.into_iter().flat_map(|doc| doc.message_texts()),
            responses: &responses,
            rubric: &rubric,
        },
    );
    if let Some(document) = document {
        for (response, call) in responses.iter().zip(calls) {
            let arguments = call.canonical.as_ref().map(RawJson::get);
            let arguments = arguments.unwrap_or(&call.raw);
            let found = compare_with_agent(document, &call.name, arguments, response.text);
            let fields = found.map(|found| list_differing_fields(&found, response));
            claims.extend(fields.unwrap_or_default());
        }
    }
    app.session_mut().trace_screen.claims = FoundClaims {
        key: Some(key),
        claims,
    };
}
