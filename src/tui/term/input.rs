//! What is typed, clicked and pasted, as messages. On a thread of its own: crossterm's reader may get stuck on a terminal
//! that is gone, and nothing else should with it.

use crossterm::event::{Event, EventStream, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::tui::keymap::Chord;
use crate::tui::msg::{Mouse, MouseDid, Msg};

/// So many failed reads in a row, and nothing can be read any more.
const TRIES: u32 = 16;

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
    stop: CancellationToken,
    stopped: oneshot::Receiver<()>,
}

impl Input {
    /// Reads from now on.
    pub(super) fn start(handle: Handle, to: UnboundedSender<Heard>) -> std::io::Result<Self> {
        let stop = CancellationToken::new();
        let (done, stopped) = oneshot::channel();
        let stopping = stop.clone();
        std::thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || {
                let _told = IfPanicking(to.clone());
                handle.block_on(read(&stopping, &to));
                let _gone = done.send(());
            })?;
        Ok(Self { stop, stopped })
    }

    /// Reads no more; returns once nothing typed is taken away from whoever reads next.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        // An error: the thread is gone, and reads nothing either.
        let _gone = self.stopped.await;
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

async fn read(stop: &CancellationToken, to: &UnboundedSender<Heard>) {
    let mut events = EventStream::new();
    let mut failed = 0;
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            event = events.next() => event,
        };
        let heard = match event {
            Some(Ok(event)) => {
                failed = 0;
                message(event).map(Heard::Msg)
            }
            Some(Err(_)) if failed < TRIES => {
                failed += 1;
                None
            }
            Some(Err(error)) => Some(Heard::Deaf(error.to_string())),
            None => Some(Heard::Deaf("no more input".to_owned())),
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
