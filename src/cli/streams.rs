//! The standard output and error streams. Only this module writes to them, so control characters can't reach a
//! terminal and colors follow one rule.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{LazyLock, OnceLock};

use super::args::ColorArg;
use crate::diag::{Diagnostic, render};
use crate::event::Redactor;
use crate::model::make_visible;
use crate::report::{TextStyle, wrap_line};
use crate::workspace::{Env, variables};

/// The secrets of the loaded workspaces. Static, because the process has one standard output.
static SECRETS: LazyLock<Redactor> = LazyLock::new(Redactor::default);

/// The first failed write to standard output. The command ends with it, because most commands print at many places.
static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// Standard output and error, with the style of each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub(super) out: TextStyle,
    pub(super) err: TextStyle,
}

impl Streams {
    /// Returns the streams of this process. With `auto`, colors appear only on terminals, and neither with `NO_COLOR`
    /// nor with `TERM=dumb`.
    pub(super) fn from_process(env: &Env, color: ColorArg) -> Self {
        // The presence of `NO_COLOR` counts, not its value (https://no-color.org).
        let auto =
            env.get(variables::NO_COLOR).is_none() && env.get(variables::TERM) != Some("dumb");
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
        };
        Self {
            out: style(terminal_width(&io::stdout())),
            err: style(terminal_width(&io::stderr())),
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

    /// Writes to standard output, and keeps an error for [`Self::output_error`].
    pub(super) fn print(self, text: &str) {
        let clean = SECRETS.redact(text);
        let text = clean.as_deref().unwrap_or(text);
        let visible = if self.out.terminal {
            make_visible(text, true)
        } else {
            text.into()
        };
        let written = io::stdout().lock().write_all(visible.as_bytes());
        Self::keep_output_error(written);
    }

    /// Writes lines to standard error, wrapped at the terminal's width.
    pub(super) fn print_stderr(self, text: &str) {
        let clean = SECRETS.redact(text);
        let text = clean.as_deref().unwrap_or(text);
        let visible = if self.err.terminal {
            make_visible(text, true)
        } else {
            text.into()
        };
        let mut err = io::stderr().lock();
        for line in visible.lines() {
            let _gone = writeln!(err, "{}", wrap_line(line, 0, 2, self.err.width));
        }
    }

    /// Writes diagnostics with source snippets to standard error.
    pub(super) fn print_diagnostics(self, diagnostics: &[Diagnostic]) {
        // The width 0 means a file, a pipe or an unknown width.
        let width = if self.err.width == 0 {
            100
        } else {
            self.err.width
        };
        let text = render(diagnostics, self.err.color, width);
        let clean = SECRETS.redact(&text);
        let mut err = io::stderr().lock();
        let _gone = err.write_all(clean.unwrap_or(text).as_bytes());
    }
}

/// Returns the terminal's width in columns, 0 if the terminal does not report it, or None if the stream is not a
/// terminal.
fn terminal_width(stream: &(impl io::IsTerminal + AsFd)) -> Option<usize> {
    stream
        .is_terminal()
        .then(|| rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col)))
}
