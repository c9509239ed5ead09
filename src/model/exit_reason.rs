//! The exit codes of the program.
//!
//! Responsible for the numbers and their meanings. Does not choose one: `report` chooses the code of a run, and `cli` the
//! code of every other command.

/// The reason why the program ends, with the exit code that reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitReason {
    /// Everything passed, or the command did its work.
    Passed,
    /// A decision failed.
    Failed,
    /// The arguments or files are wrong.
    Usage,
    /// A judge or check gave no verdict.
    NoVerdict,
    /// Nothing was decided, or a required eval is undecided.
    Undecided,
    /// A file could not be written.
    OutputFailed,
    /// A defect of dicta.
    Defect,
    /// The terminal closed.
    HungUp,
    /// The user pressed ctrl-c.
    Interrupted,
    /// Another program ended dicta.
    Terminated,
}

impl ExitReason {
    /// All reasons, by exit code.
    pub const ALL: [Self; 10] = [
        Self::Passed,
        Self::Failed,
        Self::Usage,
        Self::NoVerdict,
        Self::Undecided,
        Self::OutputFailed,
        Self::Defect,
        Self::HungUp,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoVerdict => 3,
            Self::Undecided => 4,
            // `EX_IOERR` of sysexits.h.
            Self::OutputFailed => 74,
            // Rust's own code for a panic.
            Self::Defect => 101,
            // Shells report 128 plus the number of the signal: 1, 2 and 15.
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// Returns the meaning, for help and documentation.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Passed => "all decisions passed, or the command did its work",
            Self::Failed => "at least one decision failed",
            Self::Usage => {
                "wrong usage or configuration, nothing was selected, or paid calls without consent"
            }
            Self::NoVerdict => {
                "no decision failed, and at least one ended in an error or is pending, or a file is broken"
            }
            Self::Undecided => {
                "nothing was decided (all skipped or not applicable), or a `required` eval stayed undecided"
            }
            Self::OutputFailed => {
                "the recording or an output could not be written, for example on a full disk"
            }
            Self::Defect => "a defect of dicta",
            Self::HungUp => "ended by SIGHUP",
            Self::Interrupted => "ended by SIGINT (ctrl-c)",
            Self::Terminated => "ended by SIGTERM",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_code_of_its_own_in_ascending_order() {
        let codes = ExitReason::ALL.map(ExitReason::code);
        assert!(codes.windows(2).all(|pair| pair[0] < pair[1]), "{codes:?}");
    }
}
