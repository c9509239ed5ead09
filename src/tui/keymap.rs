//! Maps the keys that a user pressed to commands.
//!
//! Responsible for [`resolve_keys`] and its table. Does not run commands; `command` lists them.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use super::command::{COMMANDS, CommandScope, CommandSpec, UiCommand};
use super::key_chord::{KeyChord, KeySyntaxError};
use super::state::App;
use super::state::pane::Pane;
use super::state::review::ReviewView;

/// The meaning of the keys pressed so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMeaning {
    /// They are the keys of a command.
    Command(UiCommand),
    /// They are the beginning of a longer sequence.
    Prefix,
    /// No command begins with them.
    Nothing,
}

/// A key sequence and its command.
struct KeyBinding {
    keys: Vec<KeyChord>,
    spec: &'static CommandSpec,
}

/// The rest of a key sequence that the user began, and its command.
pub(crate) struct KeyContinuation {
    /// The keys as the help writes them.
    pub(crate) keys: String,
    pub(crate) spec: &'static CommandSpec,
}

/// The command table with its keys parsed, built on first use.
static KEY_TABLE: LazyLock<Vec<KeyBinding>> = LazyLock::new(|| {
    COMMANDS
        .iter()
        .flat_map(|spec| spec.keys.iter().map(move |keys| (*keys, spec)))
        // A test parses every key of the table, so this drops no row.
        .filter_map(|(keys, spec)| {
            let keys = parse_chords(keys).ok()?;
            Some(KeyBinding { keys, spec })
        })
        .collect()
});

/// Parses a key sequence of the command table: chords separated by spaces.
pub(crate) fn parse_chords(keys: &str) -> Result<Vec<KeyChord>, KeySyntaxError> {
    keys.split(' ').map(str::parse).collect()
}

/// Returns the scopes in which a key is looked up, the narrowest first.
pub(crate) fn active_scopes(app: &App) -> impl Iterator<Item = CommandScope> + use<> {
    // A state of the history is not played.
    let replay = app
        .replay
        .as_ref()
        .filter(|_| !app.shows_state())
        .map(|_| CommandScope::Replay);
    let pane: &[CommandScope] = match app.ui.focus {
        _ if app.shows_review() => match app.review.view {
            ReviewView::Reading => &[CommandScope::Review],
            ReviewView::Modes => &[CommandScope::Modes],
            ReviewView::Answers => &[CommandScope::Answers],
            ReviewView::Drafts => &[CommandScope::Drafts],
            ReviewView::Counts => &[CommandScope::Counts],
        },
        _ if app.shows_progress() => &[CommandScope::Progress],
        Pane::Transcript if app.shows_paused_trace() => &[
            CommandScope::Paused,
            CommandScope::Trace,
            CommandScope::Transcript,
        ],
        _ if app.shows_paused_trace() => &[CommandScope::Paused, CommandScope::Trace],
        Pane::Transcript if app.shows_trace_screen() => {
            &[CommandScope::Trace, CommandScope::Transcript]
        }
        _ if app.shows_trace_screen() => &[CommandScope::Trace],
        Pane::Cells => &[CommandScope::Cells, CommandScope::Verdicts],
        Pane::Verdict => &[CommandScope::Verdicts],
        Pane::Transcript => &[CommandScope::Transcript],
        _ => &[],
    };
    replay
        .into_iter()
        .chain(pane.iter().copied())
        .chain(std::iter::once(CommandScope::Global))
}

/// Returns the meaning of the keys pressed so far. A narrower scope hides the keys of a wider one.
pub(crate) fn resolve_keys(
    scopes: impl Iterator<Item = CommandScope>,
    pressed: &[KeyChord],
) -> KeyMeaning {
    for scope in scopes {
        let mut is_prefix = false;
        for KeyBinding { keys, spec } in KEY_TABLE.iter().filter(|known| known.spec.scope == scope)
        {
            // A full match comes before a prefix: no command of a scope has a sequence that begins with
            // another's keys.
            if keys == pressed {
                return KeyMeaning::Command(spec.command);
            }
            is_prefix |= keys.starts_with(pressed);
        }
        // A prefix in this scope hides a command of a wider scope.
        if is_prefix {
            return KeyMeaning::Prefix;
        }
    }
    KeyMeaning::Nothing
}

/// Returns the scopes in which these keys have a command, each once.
pub(crate) fn find_scopes(pressed: &[KeyChord]) -> Vec<CommandScope> {
    let mut found = Vec::new();
    for KeyBinding { keys, spec } in KEY_TABLE.iter() {
        if keys == pressed && !found.contains(&spec.scope) {
            found.push(spec.scope);
        }
    }
    found
}

/// Returns the possible continuations of a key sequence: the remaining keys and their command.
pub(crate) fn following_keys(
    scopes: impl Iterator<Item = CommandScope>,
    pressed: &[KeyChord],
) -> Vec<KeyContinuation> {
    scopes
        .flat_map(|scope| {
            KEY_TABLE
                .iter()
                .filter(move |known| known.spec.scope == scope)
        })
        .filter_map(|KeyBinding { keys, spec }| {
            let rest = keys.strip_prefix(pressed)?;
            // Without a rest, the sequence is complete and has no continuation.
            let rest: Vec<String> = rest.iter().map(KeyChord::to_string).collect();
            (!rest.is_empty()).then(|| KeyContinuation {
                keys: rest.join(" "),
                spec,
            })
        })
        .collect()
}
