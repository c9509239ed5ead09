//! The user's consent to calls that cost money: `--yes`, `--max-cost`, or the answer to a question on the terminal.
//!
//! Responsible for asking and for the messages. [`crate::run::PaidCalls`] decides which calls need consent. A limit in
//! dicta.yaml is not consent, because the file may come from someone else.

use serde_json::{Value, json};

use super::CommandCx;
use super::error::CommandError;
use super::format::{Format, LIST_FORMATS, format_document};
use super::question::{ask, can_ask};
use super::workspace_args::ConsentArgs;
use crate::run::{CostEstimate, PaidCalls};

/// The user's answer about calls that cost money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Consent {
    /// The calls are free, or the user allows them.
    Given,
    /// The user answered no.
    Declined,
    /// No person can be asked, and no option allows the calls.
    Missing,
}

impl ConsentArgs {
    /// Returns true if an option allows paid calls.
    pub(super) fn is_given(&self) -> bool {
        self.yes || self.max_cost.is_some()
    }
}

/// Describes the calls of a dry run: `free`, or their number and cost. `noun` names what the judges judge.
pub(super) fn describe_calls(calls: &PaidCalls, noun: &str) -> String {
    if calls.is_empty() {
        "free".to_owned()
    } else {
        calls.describe(noun)
    }
}

/// Returns calls for programs. The costs are null if a price is unknown, and 0 if nothing costs money.
pub(super) fn calls_to_json(calls: &PaidCalls) -> Value {
    let cost = if calls.is_empty() {
        Some(CostEstimate::default())
    } else {
        calls.cost
    };
    json!({
        "judges": calls.judges,
        "cells": calls.cells,
        "possible_cells": calls.possible_cells,
        "calls_least": calls.calls_least,
        "calls_most": calls.calls_most,
        "cost_usd": cost.map(|cost| cost.likely),
        "cost_usd_with_all_calls": cost.map(|cost| cost.with_all_calls),
        "cost_usd_most": cost.map(|cost| cost.most),
        "unpriced_judges": calls.unpriced_judges,
        "duration_ms": calls.duration.map(|time| time.0),
    })
}

/// Prints what a command would call: `human` for people, else one object of the type `plan` with the keys of `plan` and
/// the paid calls.
pub(super) fn print_dry_run(
    command: &str,
    format: Format,
    calls: &PaidCalls,
    plan: impl FnOnce() -> Value,
    human: impl FnOnce() -> String,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    format.require(LIST_FORMATS, "a dry run")?;
    if format == Format::Human {
        cx.streams
            .print_wrapped(&format!("{}\nnothing was run\n", human()));
        return Ok(());
    }
    let mut document = json!({"type": "plan", "command": command});
    if let (Value::Object(document), Value::Object(plan)) = (&mut document, plan()) {
        document.extend(plan);
        document.insert("calls".to_owned(), calls_to_json(calls));
    }
    cx.streams.print(&format_document(format, &document));
    Ok(())
}

/// Finds out whether the user allows the calls. Asks on a terminal if they cost more than `limit_usd` or a price is
/// unknown. `noun` names what the judges judge.
pub(super) fn find_consent(
    calls: &PaidCalls,
    noun: &str,
    limit_usd: f64,
    args: &ConsentArgs,
    cx: &CommandCx,
) -> Consent {
    if calls.is_empty() || args.is_given() {
        return Consent::Given;
    }
    if !can_ask(cx) {
        return Consent::Missing;
    }
    if !calls.needs_confirmation(limit_usd) {
        return Consent::Given;
    }
    let question = format!(
        "{}\nThese calls cost money, or may. Make them?",
        calls.describe(noun)
    );
    if ask(&question, cx) {
        Consent::Given
    } else {
        Consent::Declined
    }
}

/// As [`confirm_paid_calls`], and prints the calls and their cost first if no question states them. A command with several
/// runs states them once for all of them.
pub(super) fn announce_paid_calls(
    calls: &PaidCalls,
    noun: &str,
    limit_usd: f64,
    args: &ConsentArgs,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    let is_given = args.is_given() || (can_ask(cx) && !calls.needs_confirmation(limit_usd));
    if is_given && !calls.is_empty() {
        cx.streams.print_note(&calls.describe(noun));
    }
    confirm_paid_calls(calls, noun, limit_usd, args, cx)
}

/// Returns an error unless the user allows the calls. It names the options that allow them.
pub(super) fn confirm_paid_calls(
    calls: &PaidCalls,
    noun: &str,
    limit_usd: f64,
    args: &ConsentArgs,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    match find_consent(calls, noun, limit_usd, args, cx) {
        Consent::Given => Ok(()),
        Consent::Declined => Err(CommandError::usage(
            "no judge was called, and nothing is recorded",
        )),
        Consent::Missing => Err(CommandError::usage(format!(
            "{}: without a terminal, dicta calls judges that cost money only with `--yes`, or with `--max-cost USD` \
             for a limit; nothing was run",
            calls.describe(noun)
        ))),
    }
}
