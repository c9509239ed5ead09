//! Notices: shown in the footer for a moment and kept in the log.

use crate::model::Millis;

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticeLevel {
    Info,
    Warning,
    Error,
}

/// A notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Millis,
    pub(crate) level: NoticeLevel,
    pub(crate) text: String,
}

impl NoticeLevel {
    /// Returns the time that the footer shows it. Problems take longer to read.
    pub(crate) const fn display_time(self) -> Millis {
        match self {
            Self::Info => Millis(6000),
            Self::Warning => Millis(9000),
            Self::Error => Millis(15_000),
        }
    }
}

/// The maximum number of notices in the log.
const MAX_NOTICES: usize = 1000;

/// All notices. The newest one is shown for a while.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notices {
    pub(crate) log: Vec<Notice>,
    /// The time until which the newest notice is shown.
    pub(crate) toast_until: Option<Millis>,
}

impl Notices {
    /// Shows a notice and adds it to the log.
    pub(crate) fn push(&mut self, now: Millis, level: NoticeLevel, text: impl Into<String>) {
        // The log is limited, so that a long session does not grow without end.
        if self.log.len() == MAX_NOTICES {
            self.log.remove(0);
        }
        self.log.push(Notice {
            at: now,
            level,
            text: text.into(),
        });
        self.toast_until = Some(now + level.display_time());
    }

    /// Hides the newest notice.
    pub(crate) fn dismiss(&mut self) {
        self.toast_until = None;
    }

    /// Returns the notice that is shown now.
    pub(crate) fn toast(&self, now: Millis) -> Option<&Notice> {
        self.toast_until.filter(|until| now < *until)?;
        self.log.last()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_longer_and_log_keeps_all() {
        let mut notices = Notices::default();
        notices.push(Millis(0), NoticeLevel::Error, "no such file");
        assert!(notices.toast(Millis(14_999)).is_some());
        assert!(notices.toast(Millis(15_000)).is_none());
        notices.push(Millis(20_000), NoticeLevel::Info, "copied");
        assert_eq!(
            notices.toast(Millis(20_001)).map(|n| n.text.as_str()),
            Some("copied")
        );
        assert!(notices.toast(Millis(26_000)).is_none());
        assert_eq!(notices.log.len(), 2);
        for at in 0..2000 {
            notices.push(Millis(at), NoticeLevel::Info, "again");
        }
        assert_eq!(notices.log.len(), MAX_NOTICES);
    }
}
