//! The standard output and error streams. Only this module writes to them, so control characters can't reach a
//! terminal, colors follow one rule, and the progress line never splits another text.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::Value;

use super::args::{ColorArg, CommonArgs};
use super::format::{Format, format_list};
use crate::diag::{Diagnostic, render};
use crate::event::Redactor;
use crate::model::make_visible;
use crate::report::{ReportDetail, TextStyle, escape_workflow_commands, wrap_line, wrap_lines};
use crate::workspace::{Env, variables};

/// Moves to the start of the line and erases it.
const ERASE_LINE: &str = "\r\u{1b}[K";
/// The width of a terminal that does not report its width.
const DEFAULT_WIDTH: usize = 80;

/// The secrets of the loaded workspaces. Static, because the process has one standard output.
static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// The first failed write to standard output. The command ends with it, because most commands print at many places.
static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// `true` while the progress line is on the screen. Its lock is held during every write, so that two writers never
/// write into the same block.
static HAS_PROGRESS: Mutex<bool> = Mutex::new(false);

/// Erases the progress line. Nothing else writes while the guard lives.
fn hold_screen() -> MutexGuard<'static, bool> {
    let mut drawn = HAS_PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    if std::mem::take(&mut *drawn) {
        let _gone = io::stderr().lock().write_all(ERASE_LINE.as_bytes());
    }
    drawn
}

/// A writer to standard output or error that erases the progress line first.
#[derive(Debug)]
pub(super) struct ScreenWriter {
    is_stderr: bool,
    /// False for a stream that is not a terminal, because the progress line is elsewhere.
    erases: bool,
}

impl Write for ScreenWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _screen = self.erases.then(hold_screen);
        if self.is_stderr {
            io::stderr().lock().write(bytes)
        } else {
            io::stdout().lock().write(bytes)
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        // Standard error has no buffer.
        if self.is_stderr {
            return Ok(());
        }
        // The buffered part of a line may reach the screen only now.
        let _screen = self.erases.then(hold_screen);
        io::stdout().lock().flush()
    }
}

/// Standard output and error, with the style of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub(super) out: TextStyle,
    pub(super) err: TextStyle,
    /// True if standard output and error are the same terminal, file or pipe.
    pub(super) is_shared: bool,
    /// True if a line on standard error can be drawn again.
    pub(super) can_redraw: bool,
    /// True if nothing reaches standard error, because a screen occupies the terminal.
    is_muted: bool,
}

impl Streams {
    /// Returns the streams of this process before the command line is parsed.
    pub(super) fn before_arguments(env: &Env) -> Self {
        Self::new(env, ColorArg::Auto, ReportDetail::Normal)
    }

    /// Returns the streams of this process.
    pub(super) fn from_process(env: &Env, common: &CommonArgs) -> Self {
        let detail = match (common.quiet, common.verbose) {
            (true, _) => ReportDetail::Quiet,
            (_, true) => ReportDetail::Verbose,
            _ => ReportDetail::Normal,
        };
        Self::new(env, common.color, detail)
    }

    /// With `auto`, colors appear only on terminals, and neither with `NO_COLOR` nor with `TERM=dumb`.
    fn new(env: &Env, color: ColorArg, detail: ReportDetail) -> Self {
        let is_dumb = env.get(variables::TERM) == Some("dumb");
        // The presence of `NO_COLOR` counts, not its value (https://no-color.org).
        let auto = env.get(variables::NO_COLOR).is_none() && !is_dumb;
        let is_workflow_log = env.get(variables::GITHUB_ACTIONS).is_some();
        let style = |width: Option<usize>| TextStyle {
            // A width exists only on a terminal.
            terminal: width.is_some(),
            color: match color {
                ColorArg::Auto => width.is_some() && auto,
                ColorArg::Always => true,
                ColorArg::Never => false,
            },
            // Without a terminal, lines are not wrapped, so that scripts see whole lines.
            width: width.unwrap_or(0),
            has_narrator: false,
            is_workflow_log,
            detail,
        };
        let (out, err) = (
            style(terminal_width(&io::stdout())),
            style(terminal_width(&io::stderr())),
        );
        Self {
            out,
            err,
            is_shared: (out.terminal && err.terminal) || is_same_file(io::stdout(), io::stderr()),
            can_redraw: err.terminal && !is_dumb,
            is_muted: false,
        }
    }

    /// Returns streams that write nothing to standard error, for work that a screen orders.
    pub(super) fn muted(self) -> Self {
        Self {
            can_redraw: false,
            is_muted: true,
            ..self
        }
    }

    /// Returns true with `-q`.
    pub(super) fn is_quiet(self) -> bool {
        self.err.detail == ReportDetail::Quiet
    }

    /// Returns true if a command that works for a while draws a progress line.
    pub(super) fn can_show_progress(self) -> bool {
        self.can_redraw && !self.is_quiet()
    }

    /// Returns a writer to standard output for a report, which escapes hidden characters itself.
    pub(super) fn stdout_writer(self) -> ScreenWriter {
        ScreenWriter {
            is_stderr: false,
            erases: self.out.terminal,
        }
    }

    /// Returns a writer to standard error for a report, which escapes hidden characters itself.
    pub(super) fn stderr_writer(self) -> ScreenWriter {
        ScreenWriter {
            is_stderr: true,
            erases: self.err.terminal,
        }
    }

    /// Draws the progress line at the end of standard error, instead of the former one. The next output erases it.
    pub(super) fn draw_progress(self, text: &str) {
        if !self.can_redraw {
            return;
        }
        // The terminal may have another width than at the start, and a line that wraps can't be erased.
        let width = match terminal_width(&io::stderr()) {
            None | Some(0) => DEFAULT_WIDTH,
            Some(width) => width,
        };
        let (dim, normal) = if self.err.color {
            ("\u{1b}[2m", "\u{1b}[0m")
        } else {
            ("", "")
        };
        let line: String = make_visible(text, false).chars().take(width - 1).collect();
        let mut drawn = hold_screen();
        let _gone = io::stderr()
            .lock()
            .write_all(format!("{dim}{line}{normal}").as_bytes());
        *drawn = true;
    }

    /// Erases the progress line.
    pub(super) fn clear_progress() {
        drop(hold_screen());
    }

    /// Writes lines to standard error that `-q` leaves out: what dicta does, and hints.
    pub(super) fn print_note(self, text: &str) {
        if !self.is_quiet() {
            self.print_stderr(text);
        }
    }

    /// Adds texts that no later output shows. The last barrier for secrets: recordings and reports contain none.
    pub(super) fn add_secrets(secrets: &[String]) {
        SECRETS.add_secrets(secrets.iter().map(String::as_str));
    }

    /// Returns the first failed write to standard output, if there is one.
    pub(super) fn output_error() -> Option<&'static io::Error> {
        OUTPUT_ERROR.get()
    }

    /// Keeps the first failed write to standard output for [`Self::output_error`].
    pub(super) fn keep_output_error(written: io::Result<()>) {
        if let Err(error) = written.and_then(|()| io::stdout().lock().flush()) {
            OUTPUT_ERROR.get_or_init(|| error);
        }
    }

    /// Writes text for people or JSON to standard output, and keeps an error for [`Self::output_error`].
    pub(super) fn print(self, text: &str) {
        Self::write_to_stdout(text, self.out.terminal, self.out.is_workflow_log, 0);
    }

    /// Writes sentences and lists for people to standard output, and wraps them at the terminal's width. Control and
    /// hidden characters are visible also if a pipe or a file brings the text to a terminal later.
    pub(super) fn print_wrapped(self, text: &str) {
        Self::write_to_stdout(text, true, self.out.is_workflow_log, self.out.width);
    }

    /// Writes text for people to standard output like [`Self::print_wrapped`], without wrapping. So a path, a command or a
    /// quoted text keeps its lines.
    pub(super) fn print_lines(self, text: &str) {
        Self::write_to_stdout(text, true, self.out.is_workflow_log, 0);
    }

    /// Writes a text in a format to standard output. A text for people keeps its lines.
    pub(super) fn print_format_lines(self, format: Format, text: &str) {
        match format {
            Format::Human => self.print_lines(text),
            _ => self.print(text),
        }
    }

    /// Writes like [`Self::print`], but keeps what a GitHub workflow's log would execute: for programs, and for
    /// commands that dicta itself gives.
    pub(super) fn print_data(self, text: &str) {
        Self::write_to_stdout(text, self.out.terminal, false, 0);
    }

    /// Writes a text in a format to standard output. Only a text for people is wrapped.
    pub(super) fn print_format(self, format: Format, text: &str) {
        match format {
            Format::Human => self.print_wrapped(text),
            Format::Json | Format::Jsonl => self.print(text),
            Format::Markdown | Format::Junit | Format::Csv | Format::Github | Format::Html => {
                self.print_data(text);
            }
        }
    }

    /// Writes a list to standard output, as [`format_list`] formats it.
    pub(super) fn print_list(
        self,
        format: Format,
        rows: impl FnOnce() -> Vec<Value>,
        human: impl FnOnce() -> String,
    ) {
        self.print_format(format, &format_list(format, rows, human));
    }

    fn write_to_stdout(text: &str, shows_hidden: bool, escapes_commands: bool, width: usize) {
        let clean = SECRETS.redact(text);
        let text = clean.as_deref().unwrap_or(text);
        let visible = if shows_hidden {
            make_visible(text, true)
        } else {
            text.into()
        };
        // After the secrets are removed, because an escape would hide a secret from the search.
        let visible = if escapes_commands {
            escape_workflow_commands(&visible).into()
        } else {
            visible
        };
        // After the secrets are removed, because a line break would hide a secret from the search.
        let visible = wrap_lines(&visible, width);
        let _screen = hold_screen();
        let written = io::stdout().lock().write_all(visible.as_bytes());
        Self::keep_output_error(written);
    }

    /// Writes lines to standard error, wrapped at the terminal's width.
    pub(super) fn print_stderr(self, text: &str) {
        self.write_to_stderr(text, self.err.width);
    }

    /// Writes lines to standard error as they are, so that a path stays on its line.
    pub(super) fn print_stderr_lines(self, text: &str) {
        self.write_to_stderr(text, 0);
    }

    fn write_to_stderr(self, text: &str, width: usize) {
        if self.is_muted {
            return;
        }
        let clean = SECRETS.redact(text);
        let text = clean.as_deref().unwrap_or(text);
        // Standard error is for people, also if a pipe or a file brings it to their terminal later.
        let visible = make_visible(text, true);
        let visible = if self.err.is_workflow_log {
            escape_workflow_commands(&visible).into()
        } else {
            visible
        };
        let _screen = hold_screen();
        let mut err = io::stderr().lock();
        for line in visible.lines() {
            let _gone = writeln!(err, "{}", wrap_line(line, 0, 2, width));
        }
    }

    /// Writes diagnostics with source snippets to standard error.
    pub(super) fn print_diagnostics(self, diagnostics: &[Diagnostic]) {
        if self.is_muted {
            return;
        }
        // The width 0 means a file, a pipe or an unknown width.
        let width = if self.err.width == 0 {
            100
        } else {
            self.err.width
        };
        let text = render(diagnostics, self.err.color, width);
        let mut text = SECRETS.redact(&text).unwrap_or(text);
        if self.err.is_workflow_log {
            text = escape_workflow_commands(&text);
        }
        // Long titles and hints are not wrapped yet.
        let text = wrap_lines(&text, self.err.width);
        let _screen = hold_screen();
        let mut err = io::stderr().lock();
        let _gone = err.write_all(text.as_bytes());
    }
}

/// Returns the terminal's width in columns, 0 if the terminal does not report it, or None if the stream is not a
/// terminal.
pub(super) fn terminal_width(stream: &(impl io::IsTerminal + AsFd)) -> Option<usize> {
    stream
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col)))
}

/// Returns true if both streams write to the same file or pipe.
fn is_same_file(one: impl AsFd, other: impl AsFd) -> bool {
    let identify = |stream: &dyn AsFd| {
        let stat = rustix::fs::fstat(stream.as_fd()).ok()?;
        Some((stat.st_dev, stat.st_ino))
    };
    let (one, other) = (identify(&one), identify(&other));
    one.is_some() && one == other
}
