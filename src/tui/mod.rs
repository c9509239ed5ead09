//! The workbench: edit a rubric, watch the judge think, see which verdicts moved.
//!
//! ```text
//!  keys, mouse, signals ─┐                                        ┌─► view(&Model) ─► buffer + Hits
//!  files, runs, reads ───┴─► Msg ─► update(&mut Model, Msg) ──────┤
//!                             ▲                                   └─► Effect ─► runtime ─┐
//!                             └──────────────────────────────────────────────────────────┘
//! ```
//!
//! - `model` is the whole state as data; `update` the only thing that changes it; `view` draws it and says what a
//!   click would hit. None of the three does I/O or knows the time but from `model.now`.
//! - `command` is the one table of what a user can do; `keymap` makes keys into commands.
//! - `content` makes the texts of panes from the model; `widget` scrolls and draws any text.
//! - `app` is the loop: drain what is pending, then draw at most once in 16 ms, only if something changed.
//!   `runtime` carries effects out; `term` takes the terminal and always gives it back.
//!
//! Refuses to decide anything: verdicts come from `run`, and replay is the live path with another source.

pub(crate) mod available_judges;
#[cfg(test)]
mod bare_stories;
pub(crate) mod click_target;
pub(crate) mod command;
pub(crate) mod content;
pub(crate) mod editor;
pub(crate) mod effect;
pub(crate) mod event_loop;
#[cfg(test)]
mod judge_stories;
pub(crate) mod key_chord;
pub(crate) mod keymap;
pub(crate) mod label_write;
pub(crate) mod listing;
pub(crate) mod msg;
pub(crate) mod reads;
#[cfg(test)]
mod replay_stories;
pub(crate) mod run_order;
pub(crate) mod runtime;
pub(crate) mod state;
#[cfg(test)]
mod stories;
pub(crate) mod term;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod update;
pub(crate) mod view;
pub(crate) mod widget;

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use ratatui::layout::Size;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Millis, RunId};
use crate::theme::Theme;
use crate::workspace::{Env, Workspace};
use effect::Effect;
use event_loop::{EventLoop, ExternalEvents};
use runtime::RuntimeDeps;
use state::replay::ReplayStart;
use state::{App, OpenedItem};
use term::TerminalScreen;

/// How long the `rules` judge waits between two pieces of its text, so that one can see it think.
const RULES_TEXT_DELAY: Millis = Millis(10);
/// How long what is stuck is waited for at the end.
const SHUTDOWN_TIMEOUT: Millis = Millis(100);
/// As Rust ends a program that panicked.
const PANIC_EXIT_CODE: u8 = 101;

/// What the workbench opens.
#[derive(Debug, Clone)]
pub enum OpenRequest {
    /// A workspace.
    Workspace(Arc<Workspace>),
    /// A file of transcripts with no workspace around it.
    File(PathBuf),
    /// A recording.
    Run {
        /// Its id.
        run: RunId,
        /// Its folder.
        dir: PathBuf,
        /// How many times as fast it plays, 0 for at once; `None`: it does not play, and is shown as it ended.
        speed: Option<f64>,
        /// The workspace around it, if there is one: a recording of it is shown with its labels.
        workspace: Option<Arc<Workspace>>,
    },
}

/// All that the workbench needs to know of the world.
pub struct WorkbenchSetup {
    /// What is opened.
    pub open: OpenRequest,
    /// The environment.
    pub env: Env,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// How it looks.
    pub theme: Theme,
}

/// How the workbench was left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkbenchExit {
    /// The exit code.
    pub code: u8,
    /// What was made: a line for the normal screen.
    pub summary: String,
    /// What went wrong, if something did.
    pub problem: Option<String>,
}

/// Opens the workbench, and returns when it is left. The terminal is given back in every case. The error is a sentence:
/// the terminal could not be taken.
pub fn run_workbench(setup: WorkbenchSetup) -> Result<WorkbenchExit, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime could be started: {error}"))?;
    // The hook has said what it was, on the normal screen.
    let left =
        std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(run_event_loop(setup))));
    // What does not let go is not waited for: all that was shown is recorded.
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT.to_duration());
    left.unwrap_or_else(|_| {
        Ok(WorkbenchExit {
            code: PANIC_EXIT_CODE,
            summary: "dicta: what was judged so far is recorded (dicta runs)".to_owned(),
            problem: None,
        })
    })
}

async fn run_event_loop(setup: WorkbenchSetup) -> Result<WorkbenchExit, String> {
    let deps = Arc::new(RuntimeDeps {
        env: setup.env,
        clock: setup.clock,
        registry: Arc::new(EvalTypeRegistry::builtin()),
        rules_text_delay: Some(RULES_TEXT_DELAY),
    });
    let (place, opening, first) = resolve_open_request(setup.open);
    let mut app = App::new(place, Size::default(), setup.theme);
    app.replay_start = opening;
    let (hearing, heard) = unbounded_channel();
    let (panicking, panics) = unbounded_channel();
    let gone = CancellationToken::new();
    let (screen, signals) = TerminalScreen::take_terminal(hearing, panicking, gone.clone())
        .map_err(|error| format!("the terminal cannot be taken: {error}"))?;
    let mut outside = ExternalEvents {
        input: heard,
        panics,
        terminal_gone: gone,
        signals,
    };
    let mut app = EventLoop::new(app, screen, deps, first);
    let end = Box::pin(app.run(&mut outside)).await;
    let line = Box::pin(app.shut_down()).await;
    Ok(WorkbenchExit {
        code: end.code,
        summary: line,
        problem: end.problem,
    })
}

/// Where the workbench begins, how a recording does, and what is asked for besides.
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
                run,
                workspace: None,
                dir: Some(dir),
            };
            let opening = ReplayStart {
                workspace: around,
                ..ReplayStart::from_speed(speed)
            };
            (OpenedItem::Recording, opening, vec![read])
        }
    }
}

/// What the keys do: for a terminal, or as the README's table.
pub fn render_key_bindings(markdown: bool) -> String {
    if markdown {
        command::render_markdown()
    } else {
        command::render_plain()
    }
}
