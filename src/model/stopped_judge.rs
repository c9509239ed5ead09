//! A judge that a run no longer calls, because several of its cells in a row ended in the same error.
//!
//! Responsible for the note about it in a recording. Older readers show the note as a text. Reports and the screen
//! read it back.

/// The text between the judge and the number of cells.
const STATEMENT: &str = " is no longer called: ";
/// The text between the number of cells and the error.
const REASON: &str = " cells in a row ended in the same error: ";

/// A judge that a run stopped calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoppedJudge {
    /// The name of the judge.
    pub judge: String,
    /// The model, if an eval names one in place of the judge's own. Then the judge's own model is still called.
    pub model: Option<String>,
    /// The number of cells in a row that ended in the error.
    pub errors: u32,
    /// The error of the last of them.
    pub error: String,
}

impl StoppedJudge {
    /// Returns the note for the recording.
    pub fn to_note(&self) -> String {
        let model = match &self.model {
            Some(model) => format!(" with model `{model}`"),
            None => String::new(),
        };
        format!(
            "judge `{}`{model}{STATEMENT}{}{REASON}{}",
            self.judge, self.errors, self.error
        )
    }

    /// Reads a note of a recording; `None` for another note.
    pub fn from_note(note: &str) -> Option<Self> {
        let (who, reason) = note.split_once(STATEMENT)?;
        let (errors, error) = reason.split_once(REASON)?;
        let who = who.strip_prefix("judge `")?.strip_suffix('`')?;
        let (judge, model) = match who.split_once("` with model `") {
            Some((judge, model)) => (judge, Some(model.to_owned())),
            None => (who, None),
        };
        Some(Self {
            judge: judge.to_owned(),
            model,
            errors: errors.parse().ok()?,
            error: error.to_owned(),
        })
    }
}

/// Writes the judge, the number of equal errors and the error.
impl std::fmt::Display for StoppedJudge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.judge)?;
        if let Some(model) = &self.model {
            write!(f, " with model {model}")?;
        }
        write!(f, ": {} equal errors in a row: {}", self.errors, self.error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(model: Option<&str>, error: &str) -> StoppedJudge {
        StoppedJudge {
            judge: "house".into(),
            model: model.map(str::to_owned),
            errors: 5,
            error: error.into(),
        }
    }

    #[test]
    fn note_is_read_back_and_other_notes_are_not() {
        let quoting = stopped(None, "").to_note();
        for one in [
            stopped(None, "cannot reach http://[::1]:9/v1: refused"),
            stopped(Some("gpt-9"), ""),
            stopped(None, &quoting),
        ] {
            assert_eq!(StoppedJudge::from_note(&one.to_note()), Some(one));
        }
        for other in [
            "",
            "judge `house` has no price",
            "judge `house` is no longer called: x",
        ] {
            assert_eq!(StoppedJudge::from_note(other), None, "{other}");
        }
    }
}
