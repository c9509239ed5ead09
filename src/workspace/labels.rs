//! `labels.jsonl`: a human's verdict a line, strictly.

use std::path::Path;
use std::sync::Arc;

use crate::diag::{Diagnostic, Span};
use crate::model::Label;

/// Reads every line; blank ones are passed over. Problems stand at their line.
pub(super) fn read(text: &Arc<str>, path: &Path) -> (Vec<(Label, Span)>, Vec<Diagnostic>) {
    let mut labels = Vec::new();
    let mut problems = Vec::new();
    let mut offset = 0;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let start = offset;
        offset += line.len();
        let bare = line.trim_start_matches('\u{feff}').trim();
        if bare.is_empty() {
            continue;
        }
        let span = |column: usize| Span {
            bytes: start..start + line.trim_end().len(),
            line: number,
            column: u32::try_from(column).unwrap_or(u32::MAX).max(1),
        };
        match serde_json::from_str::<Label>(bare) {
            Ok(label) => {
                if label.score.is_some_and(|s| !(0.0..=1.0).contains(&s)) {
                    let message = "score must be between 0 and 1";
                    problems.push(Diagnostic::error("label", path, message).at(span(1), text));
                }
                labels.push((label, span(1)));
            }
            Err(error) => {
                let message = error.to_string();
                let message = message
                    .rsplit_once(" at line ")
                    .map_or(message.as_str(), |(m, _)| m);
                let problem = Diagnostic::error("label", path, format!("no label: {message}"))
                    .at(span(error.column()), text)
                    .help(r#"a label is {"transcript": "…", "eval": "…", "passed": true}, with rubric, score, by, at and note if known"#);
                problems.push(problem);
            }
        }
    }
    (labels, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_line_is_told_with_its_number() {
        let text = Arc::from(concat!(
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":true}\n",
            "\n",
            "{\"transcript\":\"a\",\"eval\":\"x\"}\n",
            "{\"transcript\":\"a\",\"evil\":\"x\",\"passed\":true}\n",
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":\"yes\"}\n",
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":true,\"score\":7}\n",
            "not json\n",
        ));
        let (labels, problems) = read(&text, Path::new("labels.jsonl"));
        assert_eq!(labels.len(), 2);
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "labels.jsonl:3:29: no label: missing field `passed`",
                "labels.jsonl:4:24: no label: unknown field `evil`, expected one of `transcript`, `rubric`, `eval`, `passed`, `score`, `by`, `at`, `note`",
                "labels.jsonl:5:43: no label: invalid type: string \"yes\", expected a boolean",
                "labels.jsonl:6:1: score must be between 0 and 1",
                "labels.jsonl:7:2: no label: expected ident",
            ]
        );
    }
}
