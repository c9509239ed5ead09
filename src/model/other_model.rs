//! A provider that replied with another model than the judge names.
//!
//! Responsible for the rule of which names are the same model, and for the note about it in a recording. Older readers show
//! the note as a text. Reports read it back.

/// The text between the judge and the model of its settings.
const REQUESTED: &str = " asked for model `";
/// The text between the two models.
const REPLIED: &str = "`, and the reply names `";

/// The longest name of a model in a note, in characters. The name comes from a server.
const MAX_NAME: usize = 100;

/// A difference between the model of a judge and the model that its replies name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherModel {
    /// The name of the judge.
    pub judge: String,
    /// The model that dicta asked for.
    pub requested: String,
    /// The model that the reply names.
    pub replied: String,
}

impl OtherModel {
    /// Returns the difference; `None` if the names are of the same model.
    ///
    /// A dated snapshot, an alias such as `-latest`, the prefix of a vendor and the tag of a build are no difference.
    pub fn find(judge: &str, requested: &str, replied: &str) -> Option<Self> {
        let replied: String = replied
            .chars()
            .filter(|c| !c.is_control() && *c != '`')
            .take(MAX_NAME)
            .collect();
        if replied.trim().is_empty() || requested.is_empty() || is_same_model(requested, &replied) {
            return None;
        }
        Some(Self {
            judge: judge.to_owned(),
            requested: requested.to_owned(),
            replied,
        })
    }

    /// Returns the note for the recording.
    pub fn to_note(&self) -> String {
        format!(
            "judge `{}`{REQUESTED}{}{REPLIED}{}`",
            self.judge, self.requested, self.replied
        )
    }

    /// Reads a note of a recording; `None` for another note.
    pub fn from_note(note: &str) -> Option<Self> {
        let (judge, models) = note.strip_suffix('`')?.split_once(REQUESTED)?;
        let (requested, replied) = models.split_once(REPLIED)?;
        Some(Self {
            judge: judge.strip_prefix("judge `")?.strip_suffix('`')?.to_owned(),
            requested: requested.to_owned(),
            replied: replied.to_owned(),
        })
    }
}

/// Writes the judge and both models.
impl std::fmt::Display for OtherModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "judge {} asked for {}, and the replies name {}",
            self.judge, self.requested, self.replied
        )
    }
}

fn is_same_model(requested: &str, replied: &str) -> bool {
    let [requested, replied] = [requested, replied].map(strip_address);
    // The provider decides which model is the latest one.
    if requested.ends_with("-latest") {
        return true;
    }
    strip_snapshot(&requested) == strip_snapshot(&replied)
}

/// Removes the prefix of a vendor and the tag of a build: `models/x`, `vendor/x`, `x:latest`, `x@20250514`.
fn strip_address(name: &str) -> String {
    let name = name.trim().to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let end = name.find([':', '@']).unwrap_or(name.len());
    name[..end].to_owned()
}

/// Removes parts at the end that name a snapshot: dates, build numbers, `preview`, `exp`.
fn strip_snapshot(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('-').collect();
    while parts.len() > 1
        && let Some(last) = parts.last()
    {
        let is_digits = last.chars().all(|c| c.is_ascii_digit());
        // A number of one digit is a version, as in `claude-opus-4-1`.
        let is_snapshot = (is_digits && last.len() >= 2) || ["preview", "exp"].contains(last);
        if !is_snapshot {
            break;
        }
        parts.pop();
    }
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshots_aliases_and_prefixes_are_the_same_model() {
        for (requested, replied) in [
            ("gpt-4o", "gpt-4o-2024-11-20"),
            ("gpt-4o-2024-11-20", "gpt-4o"),
            ("claude-opus-4-1", "claude-opus-4-1-20250805"),
            ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022"),
            ("gemini-2.5-pro", "gemini-2.5-pro-preview-05-06"),
            ("gemini-2.0-flash", "models/gemini-2.0-flash-001"),
            ("anthropic/claude-sonnet-4", "claude-sonnet-4-20250514"),
            ("claude-sonnet-4@20250514", "claude-sonnet-4-20250514"),
            ("llama3", "llama3:latest"),
            ("GPT-4o", "gpt-4o"),
        ] {
            assert_eq!(
                OtherModel::find("j", requested, replied),
                None,
                "{requested} {replied}"
            );
        }
    }

    #[test]
    fn other_models_are_found_and_their_note_is_read_back() {
        for (requested, replied) in [
            ("gpt-4o", "gpt-4o-mini-2024-07-18"),
            ("gpt-5", "gpt-5.1"),
            ("claude-opus-4-1", "claude-opus-4-20250514"),
            ("gemini-2.5-pro", "gemini-2.5-flash"),
            ("m", "another"),
        ] {
            let found = OtherModel::find("house", requested, replied).expect("another model");
            assert_eq!(OtherModel::from_note(&found.to_note()), Some(found));
        }
        // A name from a server cannot imitate the rest of the note.
        let hostile = OtherModel::find("j", "m", "x`\n, and the reply names `y").expect("another");
        assert!(!hostile.replied.contains(['`', '\n']), "{hostile:?}");
        assert_eq!(OtherModel::find("j", "m", " "), None);
        assert_eq!(OtherModel::from_note("judge `j` is no longer called"), None);
    }
}
