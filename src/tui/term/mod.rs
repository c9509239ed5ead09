//! The terminal: taken once, given back always (end, panic in any thread, signals, the editor, ctrl-z, a vanished one).
//!
//! Owns modes, input, signals and the two ways a program ends against its will. Refuses to know what is drawn.

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

/// A screen to draw on: the real terminal, or one in memory.
pub(crate) trait Screen {
    /// How large it is now.
    fn size(&mut self) -> io::Result<Size>;
    /// Draws a frame: all of it, or only what differs from the one before.
    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()>;
    /// The next frame draws everything.
    fn redraw_all(&mut self) -> io::Result<()>;
    /// Gives the terminal to somebody else; nothing typed is read any more.
    fn release_terminal(&mut self) -> impl Future<Output = ()>;
    /// Takes it again.
    fn reclaim_terminal(&mut self) -> io::Result<()>;
    /// Stops the program as a shell job, the terminal being lent.
    fn stop_job(&mut self) -> Result<(), String>;
    /// Puts a text on the clipboard.
    fn copy_to_clipboard(&mut self, text: &str) -> io::Result<()>;
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
pub(crate) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<modes::FrameWriter>>,
    input_sender: UnboundedSender<TerminalInput>,
    input: Option<input_reader::InputReader>,
    /// How the terminal was set when it was lent.
    saved_settings: Option<modes::LineSettings>,
    _guard: hangup::HangupWatcher,
}

impl TerminalScreen {
    /// Takes the terminal. `gone` is cancelled when it vanishes; panics of other threads are told to `panics`.
    pub(super) fn take_terminal(
        heard: UnboundedSender<TerminalInput>,
        panics: UnboundedSender<Msg>,
        gone: CancellationToken,
    ) -> io::Result<(Self, SignalStream)> {
        // All that can fail without a trace comes first.
        let signals = SignalStream::new()?;
        let backend = CrosstermBackend::new(modes::FrameWriter::new()?);
        let terminal = Terminal::new(backend)?;
        panic_hook::install_hook(panics);
        let (guard, deadline) = hangup::watch_terminal(move || gone.cancel())?;
        signals::enforce_exit(SignalStream::new()?, deadline);
        let mut screen = Self {
            terminal,
            input_sender: heard,
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
        self.terminal.autoresize()?;
        Ok(self.terminal.get_frame().area().as_size())
    }

    fn draw(&mut self, paint: &mut dyn FnMut(&mut Buffer)) -> io::Result<()> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        draw_on(&mut self.terminal, paint)?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)
    }

    fn redraw_all(&mut self) -> io::Result<()> {
        // Not `clear`: it asks the terminal where the cursor is, and waits for the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    async fn release_terminal(&mut self) {
        if let Some(input) = self.input.take() {
            input.stop();
        }
        modes::restore_terminal();
        self.saved_settings = modes::LineSettings::current();
    }

    fn reclaim_terminal(&mut self) -> io::Result<()> {
        if let Some(lent) = self.saved_settings.take() {
            lent.restore();
        }
        modes::take_terminal()?;
        self.redraw_all()?;
        if self.input.is_none() {
            let input = input_reader::InputReader::start(self.input_sender.clone())?;
            self.input = Some(input);
        }
        Ok(())
    }

    fn stop_job(&mut self) -> Result<(), String> {
        signals::stop_job()?;
        // What the shell's user set meanwhile is as they want it.
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
