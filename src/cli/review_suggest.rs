//! `dicta review suggest`: names and groups for notes without a mode, by similar words or from a model.
//!
//! Responsible for the record of suggestions and for accepting them. A suggestion changes nothing before that.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::connect::check_max_cost;
use super::consent::confirm_paid_calls;
use super::error::CommandError;
use super::format::Format;
use super::review_args::SuggestArgs;
use super::review_place::{find_place, open};
use super::streams::Streams;
use super::{CommandCx, build_runtime};
use crate::model::{make_visible, pluralize};
use crate::process::BoundedRuntime;
use crate::review::{
    JudgeSuggestions, JudgeSuggestionsError, ReviewNote, ReviewSession, Suggestion,
    SuggestionOrder, append_notes, plan_change, read_last_suggestions, record_suggestions,
    render_suggestion_prompt, suggest_groups, write_modes,
};
use crate::run::{AskJudgeError, ConnectionError};
use crate::workspace::{SECRET_FILE, Workspace, data_dir, load_or_create_installation_secret};

/// Prints suggestions, or accepts those of the last call.
pub(super) fn suggest(args: &SuggestArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let mut session = open(find_place(&args.paths, cx)?, cx)?;
    if let Some(numbers) = &args.accept {
        return accept(numbers, &mut session, cx);
    }
    if session.book.ungrouped().len() < 2 {
        cx.streams.print_note(
            "note: fewer than two notes are without a mode, so there is nothing to group",
        );
        print_suggestions(&[], &session, args.format, cx);
        return Ok(0);
    }
    let suggestions = match &args.judge {
        None => group_by_words(&session, args.cut),
        Some(judge) => ask(judge, &session, args, cx)?,
    };
    if suggestions.is_empty() {
        cx.streams.print_note(
            "note: no two notes without a mode are similar enough: a larger --cut groups more",
        );
    }
    print_suggestions(&suggestions, &session, args.format, cx);
    Ok(0)
}

fn print_suggestions(
    suggestions: &[Suggestion],
    session: &ReviewSession,
    format: Format,
    cx: &CommandCx,
) {
    let find_text = |id: &String| session.book.find(id).and_then(ReviewNote::text);
    let rows = || {
        let rows = (1..).zip(suggestions).map(|(number, suggestion)| {
            let notes = suggestion.notes.iter();
            let notes = notes.map(|id| json!({"note": id, "text": find_text(id)}));
            json!({
                "type": "suggestion",
                "number": number,
                "name": suggestion.name,
                "definition": suggestion.definition,
                "notes": notes.collect::<Vec<Value>>(),
            })
        });
        rows.collect()
    };
    let human = || format_suggestions(suggestions, session);
    cx.streams.print_list(format, rows, human);
    if format == Format::Human && !suggestions.is_empty() {
        cx.streams.print_note(
            "note: these are suggestions; `dicta review suggest --accept 1,3` groups the notes",
        );
    }
}

fn format_suggestions(suggestions: &[Suggestion], session: &ReviewSession) -> String {
    let mut out = String::new();
    for (number, suggestion) in (1..).zip(suggestions) {
        let _infallible = writeln!(
            out,
            "{number}. {} ({})",
            make_visible(&suggestion.name, false),
            pluralize(suggestion.notes.len() as u64, "note")
        );
        if !suggestion.definition.is_empty() {
            let _infallible = writeln!(out, "   {}", make_visible(&suggestion.definition, false));
        }
        for id in &suggestion.notes {
            let text = session.book.find(id).and_then(ReviewNote::text);
            let text = make_visible(text.unwrap_or_default(), false);
            let _infallible = writeln!(out, "   - {text}");
        }
    }
    out
}

fn group_by_words(session: &ReviewSession, cut: f64) -> Vec<Suggestion> {
    let groups = suggest_groups(&session.book.ungrouped(), cut);
    let suggestions: Vec<Suggestion> = groups
        .into_iter()
        .map(|group| Suggestion {
            name: group.name,
            definition: String::new(),
            notes: group.notes,
        })
        .collect();
    let record = json!({"by": "similar words", "cut": cut, "suggestions": suggestions});
    // Without the record, `--accept` has nothing to accept, and the list itself is still useful.
    let _unwritten = record_suggestions(&session.place.files, &record);
    suggestions
}

fn ask(
    judge: &str,
    session: &ReviewSession,
    args: &SuggestArgs,
    cx: &CommandCx,
) -> Result<Vec<Suggestion>, CommandError> {
    let Some(workspace) = &session.place.workspace else {
        return Err(CommandError::usage(
            "a judge needs a workspace: `dicta open FILE`, then W creates one",
        ));
    };
    let Some(config) = workspace.judges.get(judge) else {
        let names: Vec<&str> = workspace.judges.keys().map(String::as_str).collect();
        return Err(CommandError::usage(format!(
            "the workspace has no judge `{judge}`; it has {}",
            names.join(", ")
        )));
    };
    let folder = data_dir(&cx.env).map_err(|error| CommandError::usage(error.to_string()))?;
    let secret = load_or_create_installation_secret(&folder.join(SECRET_FILE))
        .map_err(|error| CommandError::from_error(&error))?;
    let Some(prompt) = render_suggestion_prompt(&session.book, &secret) else {
        return Ok(Vec::new());
    };
    let runtime = build_runtime()?;
    let limit_usd = workspace.limits.confirm_usd;
    let mut limited = Workspace::clone(workspace);
    if args.consent.max_cost.is_some() {
        limited.limits.budgets.run.max_cost_usd = args.consent.max_cost;
    }
    let order = SuggestionOrder {
        workspace: Arc::new(limited),
        judge: config.clone(),
        prompt,
        files: session.place.files.clone(),
    };
    let fail = |error: AskJudgeError| CommandError::from_error(&error);
    let estimate = runtime.block_on(order.estimate(&cx.env, &cx.clock));
    let calls = estimate.map_err(fail)?;
    confirm_paid_calls(&calls, "question", limit_usd, &args.consent, cx)?;
    if let Some(max_usd) = args.consent.max_cost {
        check_max_cost(&calls, max_usd)?;
    }
    let mut found = ask_with_progress(&runtime, &order, cx);
    if let Err(JudgeSuggestionsError::Ask(AskJudgeError::Prepare(ConnectionError::Run(error)))) =
        &found
    {
        super::trust::confirm_after(error, cx)?;
        found = ask_with_progress(&runtime, &order, cx);
    }
    let found = found.map_err(|error| CommandError::from_error(&error))?;
    let effort = &found.effort;
    cx.streams
        .print_note(&format!("note: {judge} was asked: {effort}"));
    print_dropped(&found.dropped, cx);
    if let Some(note) = order.prompt.describe_left_out() {
        cx.streams.print_note(&format!("note: {note}"));
    }
    Ok(found.groups)
}

/// Prints the parts of a reply that were left out. The record has all of them.
fn print_dropped(dropped: &[String], cx: &CommandCx) {
    const SHOWN: usize = 5;
    for why in dropped.iter().take(SHOWN) {
        cx.streams
            .print_stderr(&format!("dicta: left out of the reply: {why}"));
    }
    if let Some(more) = dropped.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        cx.streams.print_stderr(&format!(
            "dicta: {} of the reply left out; the last line of notes.suggestions.jsonl lists all",
            pluralize(more as u64, "further part")
        ));
    }
}

/// Asks and draws a progress line. The first ctrl-c ends the question, which leaves a record.
fn ask_with_progress(
    runtime: &BoundedRuntime,
    order: &SuggestionOrder,
    cx: &CommandCx,
) -> Result<JudgeSuggestions, JudgeSuggestionsError> {
    let cancel = CancellationToken::new();
    let streams = cx.streams;
    let name = make_visible(&order.judge.name, false).into_owned();
    let show = |phrase: String| {
        if streams.can_show_progress() {
            streams.draw_progress(&format!("{name}: {phrase}"));
        }
    };
    let found = runtime.block_on(async {
        let asking = order.ask(&cx.env, &cx.clock, &show, &cancel);
        tokio::pin!(asking);
        tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                asking.await
            }
            found = &mut asking => found,
        }
    });
    Streams::clear_progress();
    found
}

/// Groups the notes of the chosen suggestions.
fn accept(numbers: &str, session: &mut ReviewSession, cx: &CommandCx) -> Result<u8, CommandError> {
    let files = session.place.files.clone();
    let suggestions =
        read_last_suggestions(&files).map_err(|error| CommandError::usage(error.to_string()))?;
    let chosen: Vec<usize> = if numbers.trim() == "all" {
        (1..=suggestions.len()).collect()
    } else {
        let parts = numbers.split(',').map(|part| part.trim().parse::<usize>());
        parts.collect::<Result<_, _>>().map_err(|_| {
            CommandError::usage(format!("`{numbers}` is not a list of numbers, such as 1,3"))
        })?
    };
    for number in chosen {
        let suggestion = number
            .checked_sub(1)
            .and_then(|at| suggestions.get(at))
            .ok_or_else(|| {
                CommandError::usage(format!(
                    "suggestion {number} does not exist; the last call made {}",
                    suggestions.len()
                ))
            })?;
        let change = session.book.accept_suggestion(suggestion);
        let Some(write) = plan_change(&session.book, &change, &cx.clock.wall_time()) else {
            continue;
        };
        let fail = |error: crate::review::ReviewFileError| CommandError::from_error(&error);
        // Modes come first: a note must not name a mode that no file has.
        if let Some(modes) = &write.modes {
            session.modes_text = write_modes(&files, &session.modes_text, modes).map_err(fail)?;
        }
        append_notes(&files, &write.notes).map_err(fail)?;
        session.add_written(&write.notes, write.modes.clone());
        cx.streams.print_wrapped(&format!(
            "{}: {}\n",
            make_visible(&suggestion.name, false),
            pluralize(write.notes.len() as u64, "note")
        ));
    }
    Ok(0)
}
