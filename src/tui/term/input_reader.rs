//! Reads keys, clicks and pastes from the terminal and sends them as messages.
//!
//! Runs on a thread of its own, because crossterm's reader can block on a vanished terminal. Does not use crossterm's
//! event stream: after a drop, its thread reads a little longer, and a caller can't wait for its end. An editor would
//! then lose the first keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use tokio::sync::mpsc::UnboundedSender;

use super::signals;
use crate::tui::key_chord::KeyChord;
use crate::tui::msg::{MouseAction, MouseInput, Msg};

/// After this many failed reads in a row, the terminal counts as closed.
const MAX_FAILED_READS: u32 = 16;

/// The longest time that `stop` waits for the reader. After half an escape sequence, crossterm waits for the other
/// half, so the reader may never end.
const STOP_TIMEOUT: Duration = Duration::from_millis(250);

/// An input from the terminal.
#[derive(Debug)]
pub(crate) enum TerminalInput {
    /// A message for `update`.
    Msg(Msg),
    /// The terminal is closed, with the reason; no message follows.
    Closed(String),
}

/// A running reader of the terminal.
#[derive(Debug)]
pub(crate) struct InputReader {
    stopping: Arc<AtomicBool>,
    stopped: Receiver<()>,
}

impl InputReader {
    /// Starts reading.
    pub(super) fn start(to: UnboundedSender<TerminalInput>) -> std::io::Result<Self> {
        // This poll reads nothing, but makes crossterm listen for window changes. `stop` uses one to end the thread.
        event::poll(Duration::ZERO)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (done, stopped) = channel();
        let stop_requested = Arc::clone(&stopping);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                // Dropped last, so `stop` sees the end of the thread.
                let _done: std::sync::mpsc::Sender<()> = done;
                let _report = ReportClosedOnPanic(to.clone());
                read_events(&stop_requested, &to);
            })?;
        Ok(Self { stopping, stopped })
    }

    /// Stops reading. Returns when the thread can't take away keys from the next reader.
    pub(super) fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Without typing, only a resize makes crossterm's read return.
        signals::send_resize_signal();
        // The channel never carries a value: it closes when the thread ends.
        let _ended = self.stopped.recv_timeout(STOP_TIMEOUT);
    }
}

/// Reports the terminal as closed if the reader panics. Otherwise the workbench would look normal but ignore all
/// keys.
struct ReportClosedOnPanic(UnboundedSender<TerminalInput>);

impl Drop for ReportClosedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a bug in dicta's input reader".to_owned();
            let _gone = self.0.send(TerminalInput::Closed(why));
        }
    }
}

fn read_events(stopping: &AtomicBool, to: &UnboundedSender<TerminalInput>) {
    let mut failed = 0;
    while !stopping.load(Ordering::SeqCst) {
        // crossterm's `read` blocks; `stop` wakes it with a resize signal.
        let input = match event::read() {
            // `stop` may have sent this resize. The next owner of the terminal reads the size anyway.
            Ok(Event::Resize(..)) if stopping.load(Ordering::SeqCst) => return,
            Ok(event) => {
                failed = 0;
                to_message(event).map(TerminalInput::Msg)
            }
            // A single error can be temporary, such as an interrupted system call. A vanished terminal fails every
            // time.
            Err(_) if failed < MAX_FAILED_READS => {
                failed += 1;
                None
            }
            Err(error) => Some(TerminalInput::Closed(error.to_string())),
        };
        let is_closed = matches!(input, Some(TerminalInput::Closed(_)));
        if let Some(input) = input
            && (to.send(input).is_err() || is_closed)
        {
            return;
        }
    }
}

/// Converts an event to a message. Returns None for most mouse movements, which have no effect.
fn to_message(event: Event) -> Option<Msg> {
    match event {
        // Key repeats count as presses. A release follows a press that was already handled.
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            Some(Msg::Key(KeyChord::from_event(key)))
        }
        Event::Key(_) | Event::FocusLost => None,
        Event::Paste(text) => Some(Msg::Pasted(text)),
        Event::Mouse(mouse) => to_mouse(mouse).map(Msg::Mouse),
        Event::Resize(width, height) => Some(Msg::Resized { width, height }),
        Event::FocusGained => Some(Msg::FocusGained),
    }
}

fn to_mouse(mouse: MouseEvent) -> Option<MouseInput> {
    let did = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseAction::Pressed,
        MouseEventKind::Drag(MouseButton::Left) => MouseAction::Dragged,
        MouseEventKind::Up(MouseButton::Left) => MouseAction::Released,
        MouseEventKind::ScrollDown => MouseAction::Scrolled(1),
        MouseEventKind::ScrollUp => MouseAction::Scrolled(-1),
        // Movements, other buttons and sideways scrolling have no command.
        _ => return None,
    };
    Some(MouseInput {
        action: did,
        column: mouse.column,
        row: mouse.row,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panicking_reader_reports_closed_terminal() {
        let (to, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let reader = std::thread::spawn(move || {
            let _told = ReportClosedOnPanic(to);
            panic!("a bug");
        });
        assert!(reader.join().is_err());
        assert!(matches!(heard.try_recv(), Ok(TerminalInput::Closed(_))));
    }
}
