//! The workbench: the interactive screen where a user edits a rubric, watches the judge, and sees flips.
//!
//! ```text
//!  keys, mouse, signals ─┐                                      ┌─► view(&App) ─► buffer + HitMap
//!  files, runs, reads ───┴─► Msg ─► update(&mut App, Msg) ──────┤
//!                             ▲                                 └─► Effect ─► runtime ─┐
//!                             └────────────────────────────────────────────────────────┘
//! ```
//!
//! - `state` is the whole state as data. Only `update` changes it; `view` draws it and returns what a click hits.
//!   None of the three does I/O. They know the time only from `app.now`.
//! - `command` is the table of all commands; `keymap` maps keys to commands.
//! - `content` builds the texts of panes from the state. `widget` draws and scrolls any text; it imports no type of
//!   the workbench except `KeyChord`.
//! - `event_loop` handles pending messages, then draws at most once in 16 ms. `runtime` carries out effects; `term`
//!   takes the terminal and restores it.
//!
//! Does not judge: verdicts come from `run`. A replay uses the same code with another source of events.

pub(crate) mod available_judges;
mod cast;
pub(crate) mod click_target;
pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod editor;
pub(crate) mod effect;
pub(crate) mod event_loop;
pub(crate) mod history_counts;
pub(crate) mod history_view;
pub(crate) mod key_chord;
pub(crate) mod keymap;
pub(crate) mod label_figures;
pub(crate) mod label_write;
pub(crate) mod listing;
pub(crate) mod msg;
pub(crate) mod reads;
pub(crate) mod run_order;
pub(crate) mod runtime;
pub(crate) mod screen_choices;
pub(crate) mod state;
pub(crate) mod task_failure;
pub(crate) mod term;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub(crate) mod update;
pub(crate) mod view;
pub(crate) mod widget;

use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ratatui::layout::Size;
use thiserror::Error;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

pub use cast::{CastOrder, write_cast};

use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{ExitReason, Millis, RunId};
use crate::process::BoundedRuntime;
use crate::review::ReviewPlace;
use crate::theme::Theme;
use crate::workspace::{Env, Workspace};
use effect::Effect;
use event_loop::{EventLoop, ExternalEvents};
use runtime::RuntimeDeps;
use screen_choices::ScreenChoices;
use state::replay::ReplayStart;
use state::{App, OpenedItem};
use term::TerminalScreen;

/// The pause of the `rules` judge between two pieces of its text, so that a user can see it work.
const RULES_TEXT_DELAY: Millis = Millis(10);
/// The time that `run_workbench` waits for blocked tasks when it ends.
const SHUTDOWN_TIMEOUT: Millis = Millis(100);
/// The exit code of a Rust program that panicked.
const PANIC_EXIT_CODE: u8 = ExitReason::Defect.code();

/// The item that the workbench opens.
#[derive(Debug, Clone)]
pub enum OpenRequest {
    /// A workspace.
    Workspace(Arc<Workspace>),
    /// A file of transcripts without a workspace.
    File(PathBuf),
    /// A recording.
    Run {
        /// The id of the run.
        run: RunId,
        /// The run's folder.
        dir: PathBuf,
        /// The speed factor of the replay; 0 shows all events at once. `None`: no replay, dicta shows the final
        /// state.
        speed: Option<f64>,
        /// The workspace that the recording belongs to, if there is one. Its labels are shown.
        workspace: Option<Arc<Workspace>>,
    },
}

/// Exports a state of the history. The arguments are the folder of the workspace, the number of the state, and the
/// file. Returns a sentence about the file; the error is a sentence.
pub type ExportState = Arc<dyn Fn(&Path, usize, &Path) -> Result<String, String> + Send + Sync>;

/// The parts of the environment that the workbench uses.
pub struct WorkbenchSetup {
    /// The item to open.
    pub open: OpenRequest,
    /// The review to open on it.
    pub review: Option<ReviewPlace>,
    /// The environment variables.
    pub env: Env,
    /// The clock of the workbench.
    pub clock: Arc<dyn Clock>,
    /// The colors and glyphs.
    pub theme: Theme,
    /// The exporter of states, which the command line has too.
    pub export: ExportState,
    /// True to apply and to remember the choices on the screen (theme, splits, orders, the end of the tour).
    pub remembers_choices: bool,
}

/// The result of a workbench session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkbenchExit {
    /// The exit code of the program.
    pub code: u8,
    /// Lines for the normal screen about the created runs. A path has its own line.
    pub summary: String,
    /// The problem that ended the session, if any.
    pub problem: Option<String>,
}

/// The error of a workbench that could not open.
#[derive(Debug, Error)]
pub enum WorkbenchError {
    /// The async runtime does not start.
    #[error("dicta can't start its async runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The terminal can't be used.
    #[error("dicta can't take the terminal: {0}")]
    Terminal(#[source] io::Error),
}

/// Opens the workbench and returns when the user leaves it. Restores the terminal in every case, also after a panic.
pub fn run_workbench(setup: WorkbenchSetup) -> Result<WorkbenchExit, WorkbenchError> {
    let runtime = BoundedRuntime::start(SHUTDOWN_TIMEOUT).map_err(WorkbenchError::Runtime)?;
    // The panic hook has already printed the message on the normal screen.
    let exit =
        // The state is discarded after a panic, so it need not be unwind safe.
        std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run_event_loop(setup))));
    // A task that does not react must not keep the program open. Events are recorded before they are shown, so none
    // is lost.
    drop(runtime);
    exit.unwrap_or_else(|_| {
        Ok(WorkbenchExit {
            code: PANIC_EXIT_CODE,
            summary: "dicta: what was judged so far is recorded (dicta runs)".to_owned(),
            problem: None,
        })
    })
}

async fn run_event_loop(setup: WorkbenchSetup) -> Result<WorkbenchExit, WorkbenchError> {
    runtime::remove_expired_copies(&setup.env, &*setup.clock);
    let choices = setup
        .remembers_choices
        .then(|| ScreenChoices::read(&setup.env));
    let deps = Arc::new(RuntimeDeps {
        env: setup.env,
        clock: setup.clock,
        registry: Arc::new(EvalTypeRegistry::builtin()),
        rules_text_delay: Some(RULES_TEXT_DELAY),
        export: setup.export,
    });
    let (opened, replay_start, mut first_effects) = resolve_open_request(setup.open);
    // The size is read from the terminal before the first frame.
    let mut app = App::new(opened, Size::default(), setup.theme);
    app.replay_start = replay_start;
    // A person who reads first wants no verdicts yet.
    app.judges_on_open = setup.review.is_none();
    if setup.review.is_some() {
        app.review.place = setup.review;
        first_effects.extend(update::open_review(&mut app));
    }
    if let Some(choices) = choices {
        app.restore_choices(choices);
    }
    let (input_sender, input) = unbounded_channel();
    let (panic_sender, panics) = unbounded_channel();
    let terminal_gone = CancellationToken::new();
    let (screen, signals) =
        TerminalScreen::take_terminal(input_sender, panic_sender, terminal_gone.clone())
            .map_err(WorkbenchError::Terminal)?;
    let mut external_events = ExternalEvents {
        input,
        panics,
        terminal_gone,
        signals,
    };
    let mut app = EventLoop::new(app, screen, deps, first_effects);
    // The future is large, so it is on the heap.
    let end = Box::pin(app.run(&mut external_events)).await;
    let summary = Box::pin(app.shut_down()).await;
    Ok(WorkbenchExit {
        code: end.code,
        summary,
        problem: end.problem,
    })
}

/// Returns the opened item, the start state of the replay, and more effects to order first.
fn resolve_open_request(open: OpenRequest) -> (OpenedItem, ReplayStart, Vec<Effect>) {
    match open {
        OpenRequest::Workspace(workspace) => (
            OpenedItem::Workspace(workspace),
            ReplayStart::default(),
            Vec::new(),
        ),
        OpenRequest::File(file) => (
            OpenedItem::TranscriptFile(file),
            ReplayStart::default(),
            Vec::new(),
        ),
        OpenRequest::Run {
            run,
            dir,
            speed,
            workspace: around,
        } => {
            let read = Effect::ReadReplay {
                // The folder is known, so no workspace is needed to find the run.
                run,
                workspace: None,
                dir: Some(dir),
            };
            let replay_start = ReplayStart {
                workspace: around,
                ..ReplayStart::from_speed(speed)
            };
            (OpenedItem::Recording, replay_start, vec![read])
        }
    }
}

/// Returns the theme that the user chose in an earlier session, if dicta still has it.
pub fn find_remembered_theme(env: &Env) -> Option<Theme> {
    Theme::bundled(&ScreenChoices::read(env).theme?).ok()
}

/// A command of the workbench with its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandKeys {
    /// The stable name, such as `pane.next`.
    pub id: &'static str,
    /// A short name for people.
    pub title: &'static str,
    /// The group of the command in the help.
    pub group: &'static str,
    /// The keys that run the command.
    pub keys: &'static [&'static str],
    /// A sentence about the command.
    pub help: &'static str,
}

/// Returns all commands of the workbench with their keys, in the order of the help.
pub fn list_key_bindings() -> Vec<CommandKeys> {
    let to_binding = |spec: &command::CommandSpec| CommandKeys {
        id: spec.id,
        title: spec.title,
        group: spec.group,
        keys: spec.keys,
        help: spec.help,
    };
    command::COMMANDS.iter().map(to_binding).collect()
}

/// Renders the key bindings, for a terminal or as the Markdown table of the README.
pub fn render_key_bindings(markdown: bool) -> String {
    if markdown {
        command::render_markdown()
    } else {
        command::render_plain()
    }
}
