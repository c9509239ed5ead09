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

/// Adds the choices that `choose` returns for the choices of the file. Changes the file once, and no other process of dicta
/// changes it between the choice and the write.
pub fn append_chosen_choices<T>(
    path: &Path,
    choose: impl Fn(&[PairPreference]) -> (Vec<PairPreference>, T),
) -> Result<T, LabelEditError> {
    let rewritten = rewrite_file(path, true, |text| {
        let lines = text.split(|byte| *byte == b'\n');
        let present = lines.filter_map(|line| serde_json::from_slice(strip_line(line)).ok());
        let (choices, result) = choose(&present.collect::<Vec<_>>());
        let mut out = text.to_vec();
        for choice in &choices {
            if !out.is_empty() && !out.ends_with(b"\n") {
                out.push(b'\n');
            }
            out.extend(serde_json::to_vec(choice)?);
            out.push(b'\n');
        }
        Ok((out, result))
    })?;
    Ok(rewritten.result)
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

    #[test]
    fn choices_are_added_in_one_change_that_sees_those_of_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("labels.jsonl");
        let first = "{\"pair\":\"q1\",\"better\":\"a\"}";
        std::fs::write(&path, first).expect("written");
        let choice = |pair: &str| PairPreference {
            pair: pair.to_owned(),
            better: "b".to_owned(),
            eval: None,
            by: None,
            at: None,
            note: None,
        };
        let known = append_chosen_choices(&path, |present| {
            (vec![choice("q2"), choice("q3")], present.len())
        });
        assert_eq!(known.expect("written"), 1);
        let text = std::fs::read_to_string(&path).expect("text");
        let wanted = [
            first,
            "{\"pair\":\"q2\",\"better\":\"b\"}",
            "{\"pair\":\"q3\",\"better\":\"b\"}\n",
        ];
        assert_eq!(text, wanted.join("\n"));
    }
}
