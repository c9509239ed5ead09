//! The terminal: taken once, and always restored (on exit, panic, signals, for the editor, on ctrl-z, after a
//! hangup).
//!
//! Responsible for terminal modes, input, signals and the forced ends of the program. Does not know what is drawn.

mod hangup;
mod input_reader;
mod modes;
mod panic_hook;
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

pub(crate) use input_reader::TerminalInput;
pub(crate) use signals::{SignalRequest, SignalStream, stop_this_process, terminate_child};

use super::msg::Msg;

/// A screen to draw on: the real terminal, or one in memory for tests.
pub(crate) trait Screen {
    /// Returns the current size.
    fn size(&mut self) -> io::Result<Size>;
    /// Draws a frame, writing only the cells that changed.
    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()>;
    /// Makes the next frame write all cells.
    fn redraw_all(&mut self) -> io::Result<()>;
    /// Releases the terminal for another program and stops reading keys.
    fn release_terminal(&mut self) -> impl Future<Output = ()>;
    /// Takes the terminal back.
    fn reclaim_terminal(&mut self) -> io::Result<()>;
    /// Stops the program as a shell job. The terminal must be released before.
    fn stop_job(&mut self) -> Result<(), String>;
    /// Copies a text to the clipboard.
    fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()>;
}

/// Draws through ratatui. The buffer keeps the size that `size` returned, even if the terminal changes meanwhile; the
/// next frame uses the new size.
pub(super) fn draw_on<B: Backend>(
    terminal: &mut Terminal<B>,
    paint: &mut dyn FnMut(&mut Buffer),
) -> Result<(), B::Error> {
    paint(terminal.current_buffer_mut());
    terminal.apply_buffer()?;
    Ok(())
}

/// The real terminal, restored when dropped.
pub(crate) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<modes::FrameWriter>>,
    input_sender: UnboundedSender<TerminalInput>,
    input: Option<input_reader::InputReader>,
    /// The line settings of the terminal when it was released.
    saved_settings: Option<modes::LineSettings>,
    _guard: hangup::HangupWatcher,
}

impl TerminalScreen {
    /// Takes the terminal. Cancels `gone` when the terminal vanishes, and sends panics of other threads to `panics`.
    pub(super) fn take_terminal(
        input_sender: UnboundedSender<TerminalInput>,
        panics: UnboundedSender<Msg>,
        gone: CancellationToken,
    ) -> io::Result<(Self, SignalStream)> {
        // Everything that can fail without changing the terminal comes first.
        let signals = SignalStream::new()?;
        // The writer buffers a frame, so that the terminal gets it in one piece.
        let backend = CrosstermBackend::new(modes::FrameWriter::new()?);
        let terminal = Terminal::new(backend)?;
        // The hook and the watcher come before the modes change, so that nothing can leave the terminal in raw mode.
        panic_hook::install_hook(panics);
        let (guard, deadline) = hangup::watch_terminal(move || gone.cancel())?;
        signals::enforce_exit(SignalStream::new()?, deadline);
        let mut screen = Self {
            terminal,
            input_sender,
            input: None,
            saved_settings: None,
            _guard: guard,
        };
        screen.reclaim_terminal()?;
        Ok((screen, signals))
    }
}

impl Screen for TerminalScreen {
    fn size(&mut self) -> io::Result<Size> {
        // `autoresize` also adapts ratatui's buffers.
        self.terminal.autoresize()?;
        Ok(self.terminal.get_frame().area().as_size())
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        // A synchronized update prevents that the terminal shows half a frame.
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        draw_on(&mut self.terminal, paint)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    fn redraw_all(&mut self) -> io::Result<()> {
        // ratatui's `clear` asks the terminal for the cursor position and waits for the reply, so it is unsuitable
        // here.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    async fn release_terminal(&mut self) {
        // Reading stops first, or the thread would take keys from the next program.
        if let Some(input) = self.input.take() {
            input.stop();
        }
        modes::restore_terminal();
        self.saved_settings = modes::LineSettings::current();
    }

    fn reclaim_terminal(&mut self) -> io::Result<()> {
        // Another program may have left other line settings.
        if let Some(lent) = self.saved_settings.take() {
            lent.restore();
        }
        modes::take_terminal()?;
        // The screen shows the text of another program, so all cells are written again.
        self.redraw_all()?;
        if self.input.is_none() {
            let input = input_reader::InputReader::start(self.input_sender.clone())?;
            self.input = Some(input);
        }
        Ok(())
    }

    fn stop_job(&mut self) -> Result<(), String> {
        signals::stop_job()?;
        // The user may have changed the settings in the shell, so keep the new ones.
        self.saved_settings = None;
        Ok(())
    }

    fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()> {
        execute!(
            self.terminal.backend_mut(),
            CopyToClipboard::to_clipboard_from(text)
        )
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        modes::restore_terminal();
    }
}
