//! What is done with the terminal itself: editors, the clipboard, ctrl-z, drawing anew.

use std::path::{Path, PathBuf};

use super::{App, End, Outside};
use crate::tui::editor::{self, At};
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::runtime::CLIPBOARD_MAX;
use crate::tui::term::{Asked, Screen, end_child, stop_self};

impl<S: Screen> App<S> {
    /// Does all that is to be done.
    pub(super) async fn run_errands(&mut self, outside: &mut Outside) {
        while let Some(errand) = self.errands.pop_front() {
            if self.end.is_some() {
                return;
            }
            match errand {
                Effect::Copy { what, text } => self.copy(what, text),
                Effect::Redraw => self.redraw(),
                Effect::Suspend => self.suspend().await,
                Effect::Edit { path, line, column } => {
                    self.edit(path, At { line, column }, outside).await;
                }
                _ => {}
            }
        }
    }

    /// Those that need nobody outside: what a test has.
    #[cfg(test)]
    pub(crate) fn run_small_errands(&mut self) -> Vec<Effect> {
        let mut left = Vec::new();
        while let Some(errand) = self.errands.pop_front() {
            match errand {
                Effect::Copy { what, text } => self.copy(what, text),
                Effect::Redraw => self.redraw(),
                other => left.push(other),
            }
        }
        left
    }

    fn redraw(&mut self) {
        if self.screen.forget().is_err() {
            self.end.get_or_insert(End::gone());
        }
        self.dirty = true;
    }

    fn copy(&mut self, what: String, text: String) {
        if text.len() > CLIPBOARD_MAX {
            self.runtime.write_copy(what, text);
            return;
        }
        let copied = match self.screen.copy(&text) {
            // Whether the terminal takes it, nobody is told.
            Ok(()) => Ok(format!("sent {what} to the terminal's clipboard")),
            Err(error) => Err(format!("{what} was not copied: {error}")),
        };
        self.apply(Msg::Copied(copied));
    }

    async fn suspend(&mut self) {
        self.screen.lend().await;
        // Returns when somebody continues us, or at once with the reason why nobody could.
        let stopped = self.screen.stop_job();
        self.take_back();
        if let Err(why) = stopped {
            self.apply(Msg::Refused(why));
        }
    }

    fn take_back(&mut self) {
        if self.screen.take_again().is_err() {
            self.end.get_or_insert(End::gone());
        }
        self.dirty = true;
    }

    /// The screen is the editor's until it ends. Runs go on meanwhile.
    async fn edit(&mut self, path: PathBuf, at: At, outside: &mut Outside) {
        let command = editor::command(&self.deps.env, &path, at, Path::is_file);
        let command = match command {
            Ok(command) => command,
            Err(why) => return self.apply(Msg::EditorClosed(Err(why))),
        };
        self.screen.lend().await;
        let child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .spawn();
        let closed = match child {
            Ok(child) => self.sit_out(child, &command.program, outside).await,
            Err(error) => Err(format!(
                "`{}` could not be started: {error}; set EDITOR to the command that edits a file",
                command.program
            )),
        };
        self.take_back();
        self.apply(Msg::EditorClosed(closed));
    }

    /// Waits for the editor; how it ended.
    async fn sit_out(
        &mut self,
        mut child: tokio::process::Child,
        name: &str,
        outside: &mut Outside,
    ) -> Result<(), String> {
        let id = child.id();
        let end_it = || {
            if let Some(id) = id {
                end_child(id);
            }
        };
        loop {
            tokio::select! {
                biased;
                asked = outside.signals.next() => match asked {
                    // ctrl-c and ctrl-\ in an editor are the editor's.
                    Asked::End(2 | 3) | Asked::GoOn => {}
                    Asked::End(_) => {
                        end_it();
                        self.asked(asked);
                        return Ok(());
                    }
                    // The editor stops by itself; the shell waits until we have, too.
                    Asked::Stop => stop_self(),
                },
                () = outside.gone.cancelled() => {
                    end_it();
                    self.end.get_or_insert(End::gone());
                    return Ok(());
                }
                status = child.wait() => return match status {
                    Ok(status) if status.success() => Ok(()),
                    Ok(status) => Err(format!("`{name}` ended with {status}")),
                    Err(error) => Err(format!("`{name}` could not be waited for: {error}")),
                },
                Some(msg) = self.inbox.answers.recv() => self.apply(msg),
                Some(msg) = self.inbox.runs.recv() => self.apply(msg),
            }
        }
    }
}
