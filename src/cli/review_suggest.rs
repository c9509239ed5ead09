//! `dicta review suggest`: names and groups for notes without a mode, by similar words or from a model.
//!
//! Responsible for the record of suggestions and for accepting them. A suggestion changes nothing before that.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::consent::confirm_paid_calls;
use super::error::CommandError;
use super::review_args::SuggestArgs;
use super::review_place::{find_place, open};
use super::{CommandCx, build_runtime};
use crate::handlers::EvalTypeRegistry;
use crate::model::{make_visible, pluralize};
use crate::review::{
    GroupingState, ReviewNote, ReviewSession, Suggestion, append_notes, parse_suggestions,
    read_last_suggestions, record_suggestions, render_suggestion_prompt, suggest_groups,
    write_modes,
};
use crate::run::{AskJudgeError, PaidCalls, ask_judge, preview_connections};
use crate::workspace::{data_dir, load_or_create_installation_secret};

/// Prints suggestions, or accepts those of the last call.
pub(super) fn suggest(args: &SuggestArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    let mut session = open(find_place(&args.paths, cx)?, cx)?;
    if let Some(numbers) = &args.accept {
        return accept(numbers, &mut session, cx);
    }
    let suggestions = match &args.judge {
        None => group_by_words(&session, args.cut),
        Some(judge) => ask(judge, &session, args, cx)?,
    };
    if suggestions.is_empty() {
        cx.streams
            .print_note("note: no two notes without a mode are similar enough");
        return Ok(0);
    }
    let mut out = String::new();
    for (number, suggestion) in (1..).zip(&suggestions) {
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
    cx.streams.print(&out);
    cx.streams.print_note(
        "note: these are suggestions; `dicta review suggest --accept 1,3` groups the notes",
    );
    Ok(0)
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
    let secret = load_or_create_installation_secret(&folder.join("secret"))
        .map_err(|error| CommandError::usage(error.to_string()))?;
    let Some(prompt) = render_suggestion_prompt(&session.book, &secret) else {
        return Ok(Vec::new());
    };
    let runtime = build_runtime()?;
    let registry = EvalTypeRegistry::builtin();
    let judges = [config];
    let previews = preview_connections(workspace, &registry, &cx.env, &cx.clock, &judges);
    let previews = runtime.block_on(previews);
    let calls = PaidCalls::of_judges(previews.iter().map(|(judge, one)| (&*judge.name, one)));
    let limit_usd = workspace.limits.confirm_usd;
    confirm_paid_calls(&calls, "question", limit_usd, &args.consent, cx)?;
    let cancel = CancellationToken::new();
    let texts = (prompt.system.as_str(), prompt.user.as_str());
    let asked = || {
        runtime.block_on(ask_judge(
            workspace, &cx.env, &cx.clock, config, texts, &cancel,
        ))
    };
    let reply = match asked() {
        Err(AskJudgeError::Prepare(crate::run::ConnectionError::Run(error))) => {
            super::trust::confirm_after(&error, cx)?;
            asked()
        }
        other => other,
    };
    let mut record = json!({
        "by": judge,
        "model": config.model,
        "at": cx.clock.wall_time(),
        "system": prompt.system,
        "user": prompt.user,
        "notes": prompt.notes,
        "reply": Value::Null,
        "suggestions": [],
        "error": Value::Null,
    });
    let found = reply.map_err(|error| error.to_string()).and_then(|reply| {
        record["reply"] = json!(reply.text);
        parse_suggestions(&reply.text, &prompt).map_err(|error| error.to_string())
    });
    match &found {
        Ok(suggestions) => record["suggestions"] = json!(suggestions),
        Err(why) => record["error"] = json!(why),
    }
    record_suggestions(&session.place.files, &record)
        .map_err(|error| CommandError::usage(error.to_string()))?;
    found.map_err(CommandError::usage)
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
    let mut state = GroupingState::default();
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
        let Some(write) = state.apply(&session.book, &change, &cx.clock.wall_time()) else {
            continue;
        };
        let fail = |error: crate::review::ReviewFileError| CommandError::usage(error.to_string());
        // Modes come first: a note must not name a mode that no file has.
        if let Some(modes) = &write.modes {
            session.modes_text = write_modes(&files, &session.modes_text, modes).map_err(fail)?;
            session.book.modes = modes.clone();
        }
        append_notes(&files, &write.notes).map_err(fail)?;
        session.book.add(&write.notes);
        cx.streams.print(&format!(
            "{}: {}\n",
            make_visible(&suggestion.name, false),
            pluralize(write.notes.len() as u64, "note")
        ));
    }
    Ok(0)
}
