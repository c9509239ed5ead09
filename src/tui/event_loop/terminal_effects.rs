//! Effects on the terminal itself: editors, the clipboard, ctrl-z, a full redraw.

use std::path::{Path, PathBuf};

use super::{EventLoop, ExternalEvents, LoopExit};
use crate::process::start_when_free;
use crate::tui::editor::{self, EditedFile, FilePosition};
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::runtime::MAX_CLIPBOARD_BYTES;
use crate::tui::task_failure::TaskFailure;
use crate::tui::term::{Screen, SignalRequest, stop_this_process, terminate_child};

impl<S: Screen> EventLoop<S> {
    /// Runs all pending effects on the terminal.
    pub(super) async fn run_terminal_effects(&mut self, outside: &mut ExternalEvents) {
        while let Some(effect) = self.terminal_effects.pop_front() {
            // After an exit, an editor or a copy would only delay the end.
            if self.exit.is_some() {
                return;
            }
            match effect {
                Effect::Copy { what, text } => self.copy_to_clipboard(what, text),
                Effect::Redraw => self.redraw(),
                Effect::Suspend => self.suspend().await,
                Effect::OpenEditor { path, line, column } => {
                    self.run_editor(path, FilePosition { line, column }, outside)
                        .await;
                }
                Effect::EditText { target, text } => {
                    let edited = self.edit_text(&text, outside).await;
                    let target = Box::new(target);
                    self.apply(Msg::TextEdited { target, edited });
                }
                // The runtime carries out all other effects, so none of them arrives here.
                _ => {}
            }
        }
    }

    /// Runs the effects that a test can run: all except editors and suspend, which it returns.
    #[cfg(test)]
    pub(crate) fn run_in_process_effects(&mut self) -> Vec<Effect> {
        let mut left = Vec::new();
        while let Some(effect) = self.terminal_effects.pop_front() {
            match effect {
                Effect::Copy { what, text } => self.copy_to_clipboard(what, text),
                Effect::Redraw => self.redraw(),
                other => left.push(other),
            }
        }
        left
    }

    pub(super) fn redraw(&mut self) {
        if self.screen.redraw_all().is_err() {
            self.exit.get_or_insert(LoopExit::terminal_gone());
        }
        self.dirty = true;
    }

    fn copy_to_clipboard(&mut self, what: String, text: String) {
        // A terminal drops a larger text without a report, so it goes to a file.
        if text.len() > MAX_CLIPBOARD_BYTES {
            self.runtime.save_copy_to_file(what, text);
            return;
        }
        let copied = match self.screen.copy_to_clipboard(&text) {
            // The terminal does not confirm OSC 52, so the text does not claim success.
            Ok(()) => Ok(format!("sent {what} to the terminal's clipboard")),
            Err(error) => Err(TaskFailure::new(format!("{what} was not copied: {error}"))),
        };
        self.apply(Msg::Copied(copied));
    }

    async fn suspend(&mut self) {
        // The shell must get a terminal in its normal modes.
        self.screen.release_terminal().await;
        // Returns when the shell continues the process, or at once with the reason if it can't be stopped.
        let stopped = self.screen.stop_job();
        self.retake_terminal();
        if let Err(why) = stopped {
            self.apply(Msg::Refused(why));
        }
    }

    fn retake_terminal(&mut self) {
        if self.screen.reclaim_terminal().is_err() {
            self.exit.get_or_insert(LoopExit::terminal_gone());
        }
        self.dirty = true;
    }

    /// Runs an editor, which has the screen until it ends. Runs continue in the meantime.
    async fn run_editor(&mut self, path: PathBuf, at: FilePosition, outside: &mut ExternalEvents) {
        let closed = self.edit_file(&path, at, outside).await;
        self.apply(Msg::EditorClosed(closed));
    }

    /// Edits a text in a private file. Returns `None` if it is unchanged.
    async fn edit_text(
        &mut self,
        text: &str,
        outside: &mut ExternalEvents,
    ) -> Result<Option<String>, TaskFailure> {
        let file = EditedFile::create(text, &self.deps.env).map_err(TaskFailure::new)?;
        let at = FilePosition { line: 1, column: 1 };
        self.edit_file(file.path(), at, outside).await?;
        file.read_change(text).map_err(TaskFailure::new)
    }

    async fn edit_file(
        &mut self,
        path: &Path,
        at: FilePosition,
        outside: &mut ExternalEvents,
    ) -> Result<(), TaskFailure> {
        let command = editor::build_editor_command(&self.deps.env, path, at, Path::is_file);
        let command = match command {
            Ok(command) => command,
            // Without a command the screen is not released, so it does not flicker.
            Err(why) => return Err(TaskFailure::new(why)),
        };
        // The editor must find the terminal in its normal modes.
        self.screen.release_terminal().await;
        let mut program = tokio::process::Command::new(&command.program);
        program.args(&command.args);
        let child = start_when_free(|| program.spawn());
        let closed = match child {
            Ok(child) => self.wait_for_editor(child, &command.program, outside).await,
            Err(error) => Err(TaskFailure::new(format!(
                "`{}` could not be started: {error}; set EDITOR to the command that edits a file",
                command.program
            ))),
        };
        self.retake_terminal();
        closed
    }

    /// Waits until the editor ends and returns its result.
    async fn wait_for_editor(
        &mut self,
        mut child: tokio::process::Child,
        name: &str,
        outside: &mut ExternalEvents,
    ) -> Result<(), TaskFailure> {
        let id = child.id();
        let end_it = || {
            if let Some(id) = id {
                terminate_child(id);
            }
        };
        loop {
            tokio::select! {
                // Signals come first: a fast run must not delay the end of the editor.
                biased;
                asked = outside.signals.next_request() => match asked {
                    // ctrl-c and ctrl-\ reach the whole process group. In an editor they belong to the editor.
                    SignalRequest::End(2 | 3) | SignalRequest::Continue => {}
                    SignalRequest::End(_) => {
                        end_it();
                        self.handle_signal(asked);
                        return Ok(());
                    }
                    // The editor stops itself; the shell regains control only when this process stops too.
                    SignalRequest::Stop => stop_this_process(),
                },
                () = outside.terminal_gone.cancelled() => {
                    end_it();
                    self.exit.get_or_insert(LoopExit::terminal_gone());
                    return Ok(());
                }
                status = child.wait() => return match status {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(TaskFailure::new(format!("`{name}` ended with {status}"))),
                    Err(error) => Err(TaskFailure::new(format!("`{name}` could not be waited for: {error}"))),
                },
                // Messages are applied while the editor is open, or their queues would fill and stop the
                // runs.
                Some(msg) = self.inbox.answers.recv() => self.apply(msg),
                Some(msg) = self.inbox.runs.recv() => self.apply(msg),
            }
        }
    }
}
