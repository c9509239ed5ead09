//! The screen of a replay as a recording of asciinema (version 2): the frames that a person would see, with their times.
//!
//! Responsible for pacing the replay without a terminal and without waiting, and for the format. The screen itself is that
//! of the workbench.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::json;

use super::effect::Effect;
use super::event_loop::EventLoop;
use super::runtime::RuntimeDeps;
use super::state::replay::{ReplayPosition, ReplayStart};
use super::state::{App, OpenedItem};
use super::term::{Screen, draw_on};
use crate::clock::{Clock, FakeClock};
use crate::handlers::EvalTypeRegistry;
use crate::model::{CellName, Millis, RunId};
use crate::process::BoundedRuntime;
use crate::record::PlaybackSpeed;
use crate::theme::Theme;
use crate::workspace::{Env, Workspace};

/// The time that the last frame stays.
const LAST_FRAME: Millis = Millis(2000);
/// The longest pause that a player of the file shows, in seconds.
const MAX_IDLE_SECONDS: f64 = 2.0;
/// The longest recording. A longer run plays faster.
const MAX_LENGTH: Millis = Millis(600_000);
/// The time that the end waits for tasks that block.
const SHUTDOWN_TIMEOUT: Millis = Millis(100);

/// A replay to record.
pub struct CastOrder {
    /// The run.
    pub run: RunId,
    /// Its folder.
    pub dir: PathBuf,
    /// The duration of the run.
    pub length: Millis,
    /// The cell to follow, from its start to its end; `None` for the whole run.
    pub cell: Option<CellName>,
    /// The workspace with the labels, if there is one.
    pub workspace: Option<Arc<Workspace>>,
    /// The environment variables.
    pub env: Env,
    /// The colors and glyphs.
    pub theme: Theme,
    /// The number of columns and rows.
    pub size: (u16, u16),
}

/// The bytes that the screen wrote since the last frame.
#[derive(Debug, Clone, Default)]
struct FrameBytes(Arc<Mutex<Vec<u8>>>);

impl FrameBytes {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A screen that keeps what a terminal would get.
struct CastScreen {
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    size: Size,
}

impl CastScreen {
    fn new(size: Size, bytes: FrameBytes) -> io::Result<Self> {
        let area = Rect::new(0, 0, size.width, size.height);
        let options = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let terminal = Terminal::with_options(CrosstermBackend::new(bytes), options)?;
        Ok(Self { terminal, size })
    }
}

impl Screen for CastScreen {
    fn size(&mut self) -> io::Result<Size> {
        Ok(self.size)
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        draw_on(&mut self.terminal, paint)
    }

    fn redraw_all(&mut self) -> io::Result<()> {
        Ok(())
    }

    async fn release_terminal(&mut self) {}

    fn reclaim_terminal(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop_job(&mut self) -> Result<(), String> {
        Ok(())
    }

    fn copy_to_clipboard(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the recording. Returns the number of frames.
pub fn write_cast(out: &mut dyn Write, order: CastOrder) -> io::Result<usize> {
    let runtime = BoundedRuntime::start(SHUTDOWN_TIMEOUT)?;
    runtime.block_on(record(out, order))
}

async fn record(out: &mut dyn Write, order: CastOrder) -> io::Result<usize> {
    let (width, height) = order.size;
    let size = Size { width, height };
    let title = match &order.cell {
        Some(cell) => format!("dicta: {cell}"),
        None => format!("dicta: run {}", order.run.letters()),
    };
    let header = json!({
        "version": 2, "width": width, "height": height, "title": title,
        "idle_time_limit": MAX_IDLE_SECONDS, "env": {"TERM": "xterm-256color"},
    });
    writeln!(out, "{header}")?;
    let clock = FakeClock::new();
    let bytes = FrameBytes::default();
    let screen = CastScreen::new(size, bytes.clone())?;
    let mut app = start(order, screen, &clock);
    let (mut frames, mut end): (usize, Option<Millis>) = (0, None);
    let mut emit = |at: Millis, bytes: &[u8]| -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let text = String::from_utf8_lossy(bytes);
        let seconds = at.to_duration().as_secs_f64();
        writeln!(out, "{}", json!([seconds, "o", text]))?;
        Ok(1)
    };
    // The terminal of the reader is cleared first.
    emit(Millis(0), b"\x1b[?25l\x1b[2J\x1b[H")?;
    loop {
        settle(&mut app).await;
        app.draw();
        frames += emit(clock.now(), &bytes.take())?;
        if end.is_none() && is_over(&app.app) {
            end = Some(clock.now() + LAST_FRAME);
        }
        let next = app.app.next_wake();
        let (now, Some(at)) = (clock.now(), next.into_iter().chain(end).min()) else {
            break;
        };
        if end.is_some_and(|end| end <= at) {
            emit(at, b"\x1b[?25h")?;
            break;
        }
        // A time that is due already would stop the clock.
        clock.advance(at.since(now).max(Millis(1)));
        app.apply_timer_if_due();
    }
    // The future is large, so it is on the heap.
    Box::pin(app.shut_down()).await;
    Ok(frames)
}

/// Returns the speed at which a run is not longer than [`MAX_LENGTH`].
fn choose_speed(length: Millis) -> PlaybackSpeed {
    PlaybackSpeed::new(length.0.div_ceil(MAX_LENGTH.0).max(1) as f64)
}

/// Opens the replay.
fn start(order: CastOrder, screen: CastScreen, clock: &FakeClock) -> EventLoop<CastScreen> {
    let (width, height) = order.size;
    let mut app = App::new(OpenedItem::Recording, Size { width, height }, order.theme);
    app.ui.trace_open = order.cell.is_some();
    app.replay_start = ReplayStart {
        speed: choose_speed(order.length),
        position: match order.cell {
            Some(cell) => ReplayPosition::Cell(cell),
            None => ReplayPosition::Beginning,
        },
        workspace: order.workspace,
    };
    let deps = Arc::new(RuntimeDeps {
        env: order.env,
        clock: Arc::new(clock.clone()),
        registry: Arc::new(EvalTypeRegistry::builtin()),
        rules_text_delay: None,
        export: Arc::new(|_, _, _| Err("a recording exports nothing".to_owned())),
    });
    let read = Effect::ReadReplay {
        run: order.run,
        workspace: None,
        dir: Some(order.dir),
    };
    EventLoop::new(app, screen, deps, vec![read])
}

/// Waits until all reads have ended. The clock does not advance in the meantime, so that reading takes no time in the
/// recording.
async fn settle(app: &mut EventLoop<CastScreen>) {
    loop {
        let tasks = app.runtime.task_tally();
        // Checked before the queues are drained, because a task sends its result before it ends.
        let is_idle = tasks.is_idle();
        if app.drain_inbox() {
            continue;
        }
        if is_idle {
            return;
        }
        tokio::select! {
            biased;
            Some(msg) = app.inbox.answers.recv() => app.apply(msg),
            Some(msg) = app.inbox.runs.recv() => app.apply(msg),
            () = tasks.wait_for_task_end() => {}
        }
    }
}

/// Returns true if nothing more happens: the log or the followed cell has ended, or the log can't be read.
fn is_over(app: &App) -> bool {
    let Some(replay) = &app.replay else {
        return true;
    };
    if replay.is_seeking() {
        return false;
    }
    let followed = app.ui.trace_open.then(|| {
        let shown = super::state::shown_cell::resolve_shown_cell(app);
        shown.is_some_and(|shown| shown.has_ended())
    });
    replay.player.is_finished() || followed == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_of_any_length_is_a_short_recording() {
        for length in [0, 1, 600_000, 600_001, u64::MAX] {
            let factor = choose_speed(Millis(length)).factor();
            let seconds = Millis(length).to_duration().as_secs_f64() / factor;
            assert!(factor >= 1.0 && seconds <= 600.001, "{length}: {factor}");
        }
    }
}
