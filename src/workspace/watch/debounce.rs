//! The decision when to act on changed files. Pure: file states and times in, actions out.

use crate::model::Millis;

/// The time for which content that looks half-written must not change before dicta acts on it.
pub(super) const DEBOUNCE: Millis = Millis(200);

/// The result of a check of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReloadCheck {
    /// The files have the last good state.
    Unchanged,
    /// The files have another state, and it loads.
    Loads,
    /// The files load, but a file of the last good state is missing or empty. An editor may be in the middle of a
    /// save.
    LoadsWithMissingFile,
    /// The files do not load: they are broken or half-written.
    Broken,
}

/// The action after a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReloadAction {
    /// Do nothing yet.
    Nothing,
    /// Use the state as the new good state.
    Apply,
    /// Report the problems.
    Report,
    /// Report that the last good state is back after a reported failure.
    Recovered,
}

/// The state of the debounce: the doubtful content, and the reported content. `S` identifies the content of the
/// files.
#[derive(Debug, Clone)]
pub(super) struct ReloadDebouncer<S> {
    pending: Option<PendingContent<S>>,
    reported: Option<S>,
}

/// Doubtful content, and the time of its first check.
#[derive(Debug, Clone)]
struct PendingContent<S> {
    content: S,
    since: Millis,
}

impl<S> Default for ReloadDebouncer<S> {
    fn default() -> Self {
        Self {
            pending: None,
            reported: None,
        }
    }
}

impl<S: PartialEq> ReloadDebouncer<S> {
    /// Returns the action after a check.
    pub(super) fn on_check(
        &mut self,
        now: Millis,
        fingerprints: S,
        check: ReloadCheck,
    ) -> ReloadAction {
        match check {
            ReloadCheck::Unchanged => {
                self.pending = None;
                match self.reported.take() {
                    Some(_) => ReloadAction::Recovered,
                    None => ReloadAction::Nothing,
                }
            }
            ReloadCheck::Loads => self.apply(),
            ReloadCheck::LoadsWithMissingFile | ReloadCheck::Broken => {
                self.debounce(now, fingerprints, check)
            }
        }
    }

    /// Returns the time of the next check without a notification.
    pub(super) fn next_check(&self) -> Option<Millis> {
        self.pending
            .as_ref()
            .map(|pending| pending.since + DEBOUNCE)
    }

    /// Returns true if the present problems have been reported.
    #[cfg(test)]
    pub(super) fn has_reported(&self) -> bool {
        self.reported.is_some()
    }

    fn apply(&mut self) -> ReloadAction {
        self.pending = None;
        self.reported = None;
        ReloadAction::Apply
    }

    fn debounce(&mut self, now: Millis, fingerprints: S, check: ReloadCheck) -> ReloadAction {
        // The same content is reported only once.
        if check == ReloadCheck::Broken && self.reported.as_ref() == Some(&fingerprints) {
            self.pending = None;
            return ReloadAction::Nothing;
        }
        match &self.pending {
            Some(pending) if pending.content == fingerprints => {
                if now < pending.since + DEBOUNCE {
                    return ReloadAction::Nothing;
                }
                if check == ReloadCheck::LoadsWithMissingFile {
                    return self.apply();
                }
                self.pending = None;
                self.reported = Some(fingerprints);
                ReloadAction::Report
            }
            // Only other content restarts the wait. Otherwise dicta would never report a file that a program touches
            // continuously.
            _ => {
                self.pending = Some(PendingContent {
                    content: fingerprints,
                    since: now,
                });
                ReloadAction::Nothing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test driver with a fake clock. Like the watcher, it checks after every change and after every wait.
    struct Driver {
        debouncer: ReloadDebouncer<&'static str>,
        good: &'static str,
        file: &'static str,
        now: Millis,
        actions: Vec<(u64, ReloadAction, &'static str)>,
    }

    impl Driver {
        fn new() -> Self {
            Self {
                debouncer: ReloadDebouncer::default(),
                good: "old",
                file: "old",
                now: Millis(0),
                actions: Vec::new(),
            }
        }

        fn look(&mut self) {
            let check = match self.file {
                same if same == self.good => ReloadCheck::Unchanged,
                "" | "ha!" => ReloadCheck::Broken,
                "gone" => ReloadCheck::LoadsWithMissingFile,
                _ => ReloadCheck::Loads,
            };
            let action = self.debouncer.on_check(self.now, self.file, check);
            if action == ReloadAction::Apply {
                self.good = self.file;
            }
            if action != ReloadAction::Nothing {
                self.actions.push((self.now.0, action, self.file));
            }
        }

        /// Advances the clock and runs the checks that become due.
        fn pass(&mut self, gap: u64) {
            let until = self.now + Millis(gap);
            while let Some(due) = self.debouncer.next_check().filter(|due| *due <= until) {
                self.now = self.now.max(due);
                self.look();
            }
            self.now = until;
        }

        /// Writes content. The driver checks at once if the write is noticed, else at a later check.
        fn write(&mut self, content: &'static str, noticed: bool) {
            self.file = content;
            if noticed {
                self.look();
            }
        }
    }

    #[test]
    fn partial_save_is_applied_once_and_not_reported_within_the_debounce() {
        for gap in [0, 1, 20, 100, 199] {
            for first_noticed in [true, false] {
                let mut driver = Driver::new();
                driver.write("", first_noticed);
                driver.pass(gap);
                driver.write("new", true);
                driver.pass(1000);
                assert_eq!(driver.actions, [(gap, ReloadAction::Apply, "new")], "{gap}");
            }
        }
    }

    #[test]
    fn longer_gap_is_reported_and_recovers() {
        let mut driver = Driver::new();
        driver.write("", true);
        driver.pass(300);
        driver.write("old", true);
        driver.pass(1000);
        assert_eq!(
            driver.actions,
            [
                (200, ReloadAction::Report, ""),
                (300, ReloadAction::Recovered, "old")
            ]
        );
    }

    #[test]
    fn new_broken_content_restarts_the_wait_and_is_reported_once() {
        let mut driver = Driver::new();
        driver.write("", true);
        driver.pass(150);
        driver.write("ha!", true);
        driver.pass(150);
        driver.write("ha!", true);
        driver.pass(1000);
        driver.write("ha!", true);
        driver.pass(1000);
        assert_eq!(driver.actions, [(350, ReloadAction::Report, "ha!")]);
    }

    #[test]
    fn briefly_missing_file_is_not_a_removal() {
        let mut driver = Driver::new();
        driver.write("gone", true);
        driver.pass(50);
        driver.write("new", true);
        driver.pass(1000);
        driver.write("gone", true);
        driver.pass(1000);
        assert_eq!(
            driver.actions,
            [
                (50, ReloadAction::Apply, "new"),
                (1250, ReloadAction::Apply, "gone")
            ]
        );
    }

    /// Tries every sequence of up to four writes, each noticed or not, with gaps shorter and longer than the quiet
    /// time. The last write is always noticed, and its content must be the final state.
    #[test]
    fn last_content_applies_after_any_sequence_of_writes() {
        const CONTENTS: [&str; 5] = ["", "ha!", "gone", "half", "old"];
        const GAPS: [u64; 3] = [0, 120, 260];
        let steps: Vec<(&str, u64, bool)> = CONTENTS
            .iter()
            .flat_map(|c| GAPS.iter().map(move |g| (*c, *g)))
            .flat_map(|(c, g)| [(c, g, true), (c, g, false)])
            .collect();
        let mut sequences: Vec<Vec<(&str, u64, bool)>> = vec![Vec::new()];
        for _ in 0..3 {
            let longer = sequences
                .iter()
                .flat_map(|s| steps.iter().map(|step| [s.as_slice(), &[*step]].concat()))
                .collect();
            sequences = longer;
            for sequence in &sequences {
                for end in ["final", "ha!"] {
                    run(sequence, end);
                }
            }
        }
    }

    fn run(sequence: &[(&'static str, u64, bool)], end: &'static str) {
        let mut driver = Driver::new();
        for (content, gap, noticed) in sequence {
            driver.write(content, *noticed);
            driver.pass(*gap);
        }
        driver.write(end, true);
        driver.pass(1000);
        if end == "final" {
            assert_eq!(driver.good, "final", "{sequence:?}");
            assert!(!driver.debouncer.has_reported(), "{sequence:?}");
        } else {
            assert!(driver.debouncer.has_reported(), "{sequence:?}");
        }
        let reports = driver
            .actions
            .iter()
            .filter(|a| a.1 == ReloadAction::Report);
        for (at, _, content) in reports {
            assert!(
                *at >= DEBOUNCE.0,
                "{content} was told at {at}: {sequence:?}"
            );
        }
        assert_eq!(driver.debouncer.next_check(), None);
    }
}
