//! `dicta trust`, and the question before a run sends a variable to a new address.
//!
//! Responsible for asking and printing. `workspace::trust` decides what needs trust and records it.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::CommandCx;
use super::args::TrustArgs;
use super::error::CommandError;
use super::format::Format;
use super::question::{ask, can_ask};
use super::workspace::find_root;
use crate::handlers::EvalTypeRegistry;
use crate::run::{self, RunError, RunOptions, UnconfirmedSends};
use crate::workspace::trust::{
    self, SendPermission, TrustError, TrustFile, TrustedWorkspace, trust_command,
};
use crate::workspace::{self, Workspace};

impl From<TrustError> for CommandError {
    fn from(error: TrustError) -> Self {
        Self::from_error(&error)
    }
}

/// Records, lists or removes the trust in a workspace.
pub(super) fn trust(args: &TrustArgs, cx: &CommandCx) -> Result<u8, CommandError> {
    if args.list {
        return list_trusted(args.format, cx);
    }
    args.format
        .require(&[Format::Human], "`dicta trust` without --list")?;
    if let (true, Some(dir)) = (args.remove, &args.dir) {
        return remove_trust(dir, cx);
    }
    let root = find_root(args.dir.as_deref(), cx)?;
    let loaded = workspace::load_for_trust(&root, &cx.env, &EvalTypeRegistry::builtin())
        .map_err(CommandError::from_diagnostics)?;
    let root = &loaded.workspace.root;
    let sends = trust::list_workspace_sends(&loaded.workspace, &cx.env);
    trust::trust_workspace(root, &loaded.unsafe_files, &sends, &cx.env)?;
    let mut out = format!("trusted: {}\n", root.display());
    for file in &loaded.unsafe_files {
        let path = file.path.display();
        let _infallible = writeln!(out, "  {path}: {}", file.description);
    }
    for send in &sends {
        let _infallible = writeln!(out, "  runs may {send}");
    }
    if loaded.unsafe_files.is_empty() && sends.is_empty() {
        out.push_str("  it needed no trust: the files are yours, and it sends no variable to another address\n");
    }
    cx.streams.print_wrapped(&out);
    Ok(0)
}

fn list_trusted(format: Format, cx: &CommandCx) -> Result<u8, CommandError> {
    let file = TrustFile::read(&cx.env)?;
    let rows = || file.workspaces.iter().map(trusted_to_json).collect();
    let human = || match file.workspaces.as_slice() {
        [] => "no workspace is trusted\n".to_owned(),
        all => all.iter().map(describe_trusted).collect(),
    };
    cx.streams.print_list(format, rows, human);
    Ok(0)
}

fn trusted_to_json(known: &TrustedWorkspace) -> Value {
    let sends: Vec<String> = known.sends.iter().map(ToString::to_string).collect();
    json!({
        "type": "workspace",
        "path": known.path,
        "owner": known.owner,
        "owners": known.owners,
        "writable": known.writable,
        "sends": sends,
    })
}

fn describe_trusted(known: &TrustedWorkspace) -> String {
    let mut out = format!("{} (owner uid {})\n", known.path, known.owner);
    for uid in &known.owners {
        let _infallible = writeln!(out, "  may contain files of uid {uid}");
    }
    if known.writable {
        out.push_str("  other users may write its files\n");
    }
    for send in &known.sends {
        let _infallible = writeln!(out, "  runs may {send}");
    }
    out
}

fn remove_trust(dir: &Path, cx: &CommandCx) -> Result<u8, CommandError> {
    // The folder may be gone, so its path as written counts, too.
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let canonical = dir.canonicalize().unwrap_or_else(|_| absolute.clone());
    let is_meant = |known: &TrustedWorkspace| {
        let path = Path::new(&known.path);
        path == absolute || path == canonical
    };
    let removed = TrustFile::update(&cx.env, |file| {
        let before = file.workspaces.len();
        file.workspaces.retain(|known| !is_meant(known));
        before - file.workspaces.len()
    })?;
    if removed == 0 {
        return Err(CommandError::usage(format!(
            "{} is not trusted; `dicta trust --list` lists the trusted workspaces",
            dir.display()
        )));
    }
    cx.streams
        .print_wrapped(&format!("no longer trusted: {}\n", canonical.display()));
    Ok(0)
}

/// Checks that the user allowed what a run sends. Asks on a terminal; otherwise returns an error.
pub(super) fn confirm_run(
    workspace: &Arc<Workspace>,
    registry: &EvalTypeRegistry,
    options: &RunOptions,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    let options = options.clone();
    match run::check_sends(Arc::clone(workspace), registry, &cx.env, options) {
        Ok(()) => Ok(()),
        Err(error) => confirm_after(&error, cx),
    }
}

/// Asks about what a run that did not start would send. `Ok` means that the caller may start it again. Converts any
/// other error.
pub(super) fn confirm_after(error: &RunError, cx: &CommandCx) -> Result<(), CommandError> {
    match error.unconfirmed_sends() {
        Some(unconfirmed) => confirm(unconfirmed, cx),
        None => Err(CommandError::from_error(error)),
    }
}

/// Checks that the user allowed all of these secrets and addresses. Asks on a terminal; otherwise returns an error.
pub(super) fn confirm_sends(
    root: &Path,
    sends: impl IntoIterator<Item = SendPermission>,
    cx: &CommandCx,
) -> Result<(), CommandError> {
    let sends = trust::find_unconfirmed_sends(root, sends.into_iter().collect(), &cx.env)?;
    if sends.is_empty() {
        return Ok(());
    }
    let root = root.to_owned();
    confirm(&UnconfirmedSends { root, sends }, cx)
}

fn confirm(unconfirmed: &UnconfirmedSends, cx: &CommandCx) -> Result<(), CommandError> {
    let UnconfirmedSends { root, sends } = unconfirmed;
    // Without a person at the terminal, the exit code and the reason are the answer.
    if !can_ask(cx) {
        return Err(CommandError::usage(unconfirmed.to_string()));
    }
    let mut question = format!(
        "For the first time, the workspace {} would:\n",
        root.display()
    );
    for send in sends {
        let _infallible = writeln!(question, "  {send}");
    }
    question.push_str("Allow this, now and in later runs?");
    if !ask(&question, cx) {
        return Err(CommandError::usage(format!(
            "nothing was sent; `{}` allows it later",
            trust_command(root)
        )));
    }
    trust::allow_sends(root, sends, &cx.env)?;
    Ok(())
}
