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
use crate::tui::keymap::Chord;
use crate::tui::msg::{Mouse, MouseDid, Msg};

/// So many failed reads in a row, and nothing can be read any more.
const TRIES: u32 = 16;

/// A reader that has not ended so long after it was asked to is left alone: half an escape sequence came, and crossterm
/// waits for the other half.
const ENDING: Duration = Duration::from_millis(250);

/// What came from the terminal.
#[derive(Debug)]
pub(crate) enum Heard {
    /// Something.
    Msg(Msg),
    /// Nothing will come any more; why.
    Deaf(String),
}

/// A reader of the terminal.
#[derive(Debug)]
pub(crate) struct Input {
    stopping: Arc<AtomicBool>,
    stopped: Receiver<()>,
}

impl Input {
    /// Reads from now on.
    pub(super) fn start(to: UnboundedSender<Heard>) -> std::io::Result<Self> {
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
                let _told = IfPanicking(to.clone());
                read(&asked, &to);
            })?;
        Ok(Self { stopping, stopped })
    }

    /// Reads no more; returns once nothing typed is taken away from whoever reads next.
    pub(super) fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Nothing else makes crossterm return that is not typed.
        signals::say_resized();
        // Nothing is ever sent: the thread's end is an error too.
        let _ended = self.stopped.recv_timeout(ENDING);
    }
}

/// A program that nobody can type into any more should not look like one that is well.
struct IfPanicking(UnboundedSender<Heard>);

impl Drop for IfPanicking {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "a bug in dicta, where keys are read".to_owned();
            let _gone = self.0.send(Heard::Deaf(why));
        }
    }
}

fn read(stopping: &AtomicBool, to: &UnboundedSender<Heard>) {
    let mut failed = 0;
    while !stopping.load(Ordering::SeqCst) {
        let heard = match event::read() {
            // Said by `stop`, perhaps; and who takes the terminal again asks for its size.
            Ok(Event::Resize(..)) if stopping.load(Ordering::SeqCst) => return,
            Ok(event) => {
                failed = 0;
                message(event).map(Heard::Msg)
            }
            Err(_) if failed < TRIES => {
                failed += 1;
                None
            }
            Err(error) => Some(Heard::Deaf(error.to_string())),
        };
        let deaf = matches!(heard, Some(Heard::Deaf(_)));
        if let Some(heard) = heard
            && (to.send(heard).is_err() || deaf)
        {
            return;
        }
    }
}

/// What an event means; most movements of a mouse mean nothing.
fn message(event: Event) -> Option<Msg> {
    match event {
        // A key that is held repeats; one that is released has been pressed before.
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(Chord::of(key))),
        Event::Key(_) | Event::FocusLost => None,
        Event::Paste(text) => Some(Msg::Pasted(text)),
        Event::Mouse(mouse) => clicked(mouse).map(Msg::Mouse),
        Event::Resize(width, height) => Some(Msg::Resized { width, height }),
        Event::FocusGained => Some(Msg::FocusGained),
    }
}

fn clicked(mouse: MouseEvent) -> Option<Mouse> {
    let did = match mouse.kind {
        MouseEventKind::Down(MouseButton::Left) => MouseDid::Pressed,
        MouseEventKind::Drag(MouseButton::Left) => MouseDid::Dragged,
        MouseEventKind::Up(MouseButton::Left) => MouseDid::Released,
        MouseEventKind::ScrollDown => MouseDid::Scrolled(1),
        MouseEventKind::ScrollUp => MouseDid::Scrolled(-1),
        _ => return None,
    };
    Some(Mouse {
        did,
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
            let _told = IfPanicking(to);
            panic!("a bug");
        });
        assert!(reader.join().is_err());
        assert!(matches!(heard.try_recv(), Ok(Heard::Deaf(_))));
    }
}
