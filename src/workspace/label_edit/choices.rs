//! A person's choice between the transcripts of a pair, as a line of a label file.

use std::path::Path;

use super::{LabelEditError, frame_line_like, insert_line, rewrite_file, strip_line};
use crate::model::PairPreference;

/// Writes a choice. It replaces the same person's choice in the pair for the same eval.
pub fn set_choice(path: &Path, choice: &PairPreference) -> Result<(), LabelEditError> {
    rewrite_file(path, true, |text| {
        let mut lines: Vec<Vec<u8>> = text
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        let is_same = |line: &Vec<u8>| {
            serde_json::from_slice::<PairPreference>(strip_line(line)).is_ok_and(|old| {
                (&old.pair, &old.eval, &old.by) == (&choice.pair, &choice.eval, &choice.by)
            })
        };
        let line = serde_json::to_vec(choice)?;
        if let Some(at) = lines.iter().rposition(is_same) {
            lines[at] = frame_line_like(&lines[at], &line);
        } else {
            let at = lines.len();
            insert_line(&mut lines, at, &line, b"\n");
        }
        Ok((lines.concat(), ()))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_choice_of_a_person_replaces_the_earlier_one_and_labels_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("labels.jsonl");
        let label = "{\"transcript\":\"t\",\"eval\":\"e\",\"passed\":true}\n";
        std::fs::write(&path, label).expect("written");
        let choice = |by: &str, better: &str| PairPreference {
            pair: "q1".to_owned(),
            better: better.to_owned(),
            eval: None,
            by: Some(by.to_owned()),
            at: None,
            note: None,
        };
        for one in [choice("ann", "a"), choice("bo", "tie"), choice("ann", "b")] {
            set_choice(&path, &one).expect("written");
        }
        let text = std::fs::read_to_string(&path).expect("text");
        let wanted = format!(
            "{label}{{\"pair\":\"q1\",\"better\":\"b\",\"by\":\"ann\"}}\n{{\"pair\":\"q1\",\"better\":\"tie\",\"by\":\"bo\"}}\n"
        );
        assert_eq!(text, wanted);
    }
}
