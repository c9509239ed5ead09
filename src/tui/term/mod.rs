//! The terminal: taken once, given back always (end, panic in any thread, signals, the editor, ctrl-z, a vanished one).
//!
//! Owns modes, input, signals and the two ways a program ends against its will. Refuses to know what is drawn.

mod hangup;
mod input;
mod modes;
mod panic;
mod signals;

use std::io;

use crossterm::clipboard::CopyToClipboard;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{execute, queue};
use ratatui::Terminal;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::layout::Size;
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

pub(crate) use input::Heard;
pub(crate) use signals::{Asked, Signals, end_child, stop_self};

use super::msg::Msg;

/// A screen to draw on: the real terminal, or one in memory.
pub(crate) trait Screen {
    /// How large it is now.
    fn size(&mut self) -> io::Result<Size>;
    /// Draws a frame: all of it, or only what differs from the one before.
    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()>;
    /// The next frame draws everything.
    fn forget(&mut self) -> io::Result<()>;
    /// Gives the terminal to somebody else; nothing typed is read any more.
    fn lend(&mut self) -> impl Future<Output = ()>;
    /// Takes it again.
    fn take_again(&mut self) -> io::Result<()>;
    /// Stops the program as a shell job, the terminal being lent.
    fn stop_job(&mut self) -> Result<(), String>;
    /// Puts a text on the clipboard.
    fn copy(&mut self, text: &str) -> io::Result<()>;
}

/// Draws through ratatui. The buffer has the size that `size` told, whatever the terminal does meanwhile: its next size
/// is the next frame's.
pub(super) fn draw_on<B: Backend>(
    terminal: &mut Terminal<B>,
    paint: &mut dyn FnMut(&mut Buffer),
) -> Result<(), B::Error> {
    paint(terminal.current_buffer_mut());
    terminal.apply_buffer()?;
    Ok(())
}

/// The program's own terminal. Given back when dropped.
pub(crate) struct RealScreen {
    terminal: Terminal<CrosstermBackend<modes::Out>>,
    heard: UnboundedSender<Heard>,
    input: Option<input::Input>,
    /// How the terminal was set when it was lent.
    lent: Option<modes::Lines>,
    _guard: hangup::Guard,
}

impl RealScreen {
    /// Takes the terminal. `gone` is cancelled when it vanishes; panics of other threads are told to `panics`.
    pub(super) fn take(
        heard: UnboundedSender<Heard>,
        panics: UnboundedSender<Msg>,
        gone: CancellationToken,
    ) -> io::Result<(Self, Signals)> {
        // All that can fail without a trace comes first.
        let signals = Signals::new()?;
        let backend = CrosstermBackend::new(modes::Out::new()?);
        let terminal = Terminal::new(backend)?;
        panic::watch(panics);
        let (guard, deadline) = hangup::watch(move || gone.cancel())?;
        signals::hasten(Signals::new()?, deadline);
        let mut screen = Self {
            terminal,
            heard,
            input: None,
            lent: None,
            _guard: guard,
        };
        screen.take_again()?;
        Ok((screen, signals))
    }
}

impl Screen for RealScreen {
    fn size(&mut self) -> io::Result<Size> {
        self.terminal.autoresize()?;
        Ok(self.terminal.get_frame().area().as_size())
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        draw_on(&mut self.terminal, paint)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    fn forget(&mut self) -> io::Result<()> {
        // Not `clear`: it asks the terminal where the cursor is, and waits for the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    async fn lend(&mut self) {
        if let Some(input) = self.input.take() {
            input.stop();
        }
        modes::give_back();
        self.lent = modes::Lines::now();
    }

    fn take_again(&mut self) -> io::Result<()> {
        if let Some(lent) = self.lent.take() {
            lent.mend();
        }
        modes::take()?;
        self.forget()?;
        if self.input.is_none() {
            let input = input::Input::start(self.heard.clone())?;
            self.input = Some(input);
        }
        Ok(())
    }

    fn stop_job(&mut self) -> Result<(), String> {
        signals::stop_job()?;
        // What the shell's user set meanwhile is as they want it.
        self.lent = None;
        Ok(())
    }

    fn copy(&mut self, text: &str) -> io::Result<()> {
        execute!(
            self.terminal.backend_mut(),
            CopyToClipboard::to_clipboard_from(text)
        )
    }
}

impl Drop for RealScreen {
    fn drop(&mut self) {
        modes::give_back();
    }
}
