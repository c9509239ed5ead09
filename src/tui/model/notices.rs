//! Messages: shown for a moment, kept for the log.

use crate::model::Millis;

/// How grave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Info,
    Warning,
    Error,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Millis,
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// How long a toast stands.
pub(crate) const TOAST: Millis = Millis(6000);
/// How many messages are kept.
const KEPT: usize = 1000;

/// All messages so far; the newest is the toast, for a while.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices {
    pub(crate) log: Vec<Notice>,
    /// Until when the newest one is shown.
    pub(crate) until: Option<Millis>,
}

impl Notices {
    /// Tells something: shown now, kept.
    pub(crate) fn tell(&mut self, now: Millis, level: Level, text: impl Into<String>) {
        if self.log.len() == KEPT {
            self.log.remove(0);
        }
        self.log.push(Notice {
            at: now,
            level,
            text: text.into(),
        });
        self.until = Some(now + TOAST);
    }

    /// What is shown now.
    pub(crate) fn toast(&self, now: Millis) -> Option<&Notice> {
        self.until.filter(|until| now < *until)?;
        self.log.last()
    }
}
