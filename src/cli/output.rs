//! The program's two streams. The one place that writes to them.

use std::io::{self, IsTerminal as _, Write};

use crate::diag::{Diagnostic, render};
use crate::model::visible;
use crate::report::Style;
use crate::workspace::Env;

/// Standard output and error, and how each may look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams {
    pub(super) out: Style,
    pub(super) err: Style,
}

impl Streams {
    /// As the process was started. `NO_COLOR` and `TERM=dumb` are honoured; colours go to terminals only.
    pub(super) fn of_process(env: &Env) -> Self {
        let colors = env.get("NO_COLOR").is_none() && env.get("TERM") != Some("dumb");
        let style = |terminal| Style {
            terminal,
            color: terminal && colors,
        };
        Self {
            out: style(io::stdout().is_terminal()),
            err: style(io::stderr().is_terminal()),
        }
    }

    /// Writes to standard output. A reader that went away is no error of ours: nobody wants the rest.
    pub(super) fn print(self, text: &str) {
        let shown = if self.out.terminal {
            visible(text, true)
        } else {
            text.into()
        };
        let mut out = io::stdout().lock();
        let _gone = out.write_all(shown.as_bytes()).and_then(|()| out.flush());
    }

    /// Writes a line to standard error.
    pub(super) fn tell(self, text: &str) {
        let shown = if self.err.terminal {
            visible(text, true)
        } else {
            text.into()
        };
        let mut err = io::stderr().lock();
        let _gone = writeln!(err, "{shown}");
    }

    /// Writes diagnostics with snippets to standard error.
    pub(super) fn diagnose(self, diagnostics: &[Diagnostic]) {
        let text = render(diagnostics, self.err.color, 100);
        let mut err = io::stderr().lock();
        let _gone = err.write_all(text.as_bytes());
    }
}
