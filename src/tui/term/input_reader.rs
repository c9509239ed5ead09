//! What is typed, clicked and pasted, as messages. On a thread of its own: crossterm's reader may get stuck on a terminal
//! that is gone, and nothing else should with it.
//!
//! Not crossterm's stream of events: when that is dropped its own thread goes on reading for a moment, and nobody can wait
//! for it. What was typed for an editor would be lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use tokio::sync::mpsc::UnboundedSender;

use super::signals;
use crate::tui::key_chord::KeyChord;
use crate::tui::msg::{MouseAction, MouseInput, Msg};

/// So many failed reads in a row, and nothing can be read any more.
const MAX_FAILED_READS: u32 = 16;

/// A reader that has not ended so long after it was asked to is left alone: half an escape sequence came, and crossterm
/// waits for the other half.
const STOP_TIMEOUT: Duration = Duration::from_millis(250);

/// What came from the terminal.
#[derive(Debug)]
pub(crate) enum TerminalInput {
    /// Something.
    Msg(Msg),
    /// Nothing will come any more; why.
    Closed(String),
}

/// A reader of the terminal.
#[derive(Debug)]
pub(crate) struct InputReader {
    stopping: Arc<AtomicBool>,
    stopped: Receiver<()>,
}

impl InputReader {
    /// Reads from now on.
    pub(super) fn start(to: UnboundedSender<TerminalInput>) -> std::io::Result<Self> {
        // Reads nothing, but crossterm listens to changes of the window from here on: one of them ends the thread.
        event::poll(Duration::ZERO)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let (done, stopped) = channel();
        let asked = Arc::clone(&stopping);
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                // Dropped last, which is how `stop` learns of the end.
                let _done: std::sync::mpsc::Sender<()> = done;
                let _told = ReportClosedOnPanic(to.clone());
                read_events(&asked, &to);
            })?;
        Ok(Self { stopping, stopped })
    }

    /// Reads no more; returns once nothing typed is taken away from whoever reads next.
    pub(super) fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Nothing else makes crossterm return that is not typed.
        signals::send_resize_signal();
        // Nothing is ever sent: the thread's end is an error too.
        let _ended = self.stopped.recv_timeout(STOP_TIMEOUT);
    }
}

/// A program that nobody can type into any more should not look like one that is well.
struct ReportClosedOnPanic(UnboundedSender<TerminalInput>);

impl Drop for ReportClosedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a bug in dicta, where keys are read".to_owned();
            let _gone = self.0.send(TerminalInput::Closed(why));
        }
    }
}

fn read_events(stopping: &AtomicBool, to: &UnboundedSender<TerminalInput>) {
    let mut failed = 0;
    while !stopping.load(Ordering::SeqCst) {
        let heard = match event::read() {
            // Said by `stop`, perhaps; and who takes the terminal again asks for its size.
            Ok(Event::Resize(..)) if stopping.load(Ordering::SeqCst) => return,
            Ok(event) => {
                failed = 0;
                to_message(event).map(TerminalInput::Msg)
            }
            Err(_) if failed < MAX_FAILED_READS => {
                failed += 1;
                None
            }
            Err(error) => Some(TerminalInput::Closed(error.to_string())),
        };
        let deaf = matches!(heard, Some(TerminalInput::Closed(_)));
        if let Some(heard) = heard
            && (to.send(heard).is_err() || deaf)
        {
            return;
        }
    }
}

/// What an event means; most movements of a mouse mean nothing.
fn to_message(event: Event) -> Option<Msg> {
    match event {
        // A key that is held repeats; one that is released has been pressed before.
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
    fn a_reader_that_panics_tells_that_nothing_will_come() {
        let (to, mut heard) = tokio::sync::mpsc::unbounded_channel();
        let reader = std::thread::spawn(move || {
            let _told = ReportClosedOnPanic(to);
            panic!("a bug");
        });
        assert!(reader.join().is_err());
        assert!(matches!(heard.try_recv(), Ok(TerminalInput::Closed(_))));
    }
}
