//! The strict reader of `labels.jsonl`, with one label per line.

use std::sync::Arc;

use super::label_file::LabelFileReader;
use crate::diag::{Diagnostic, SourceSpan};
use crate::model::Label;

/// Reads every line and skips blank lines. Reports problems at their line.
pub(super) fn read(reader: &mut LabelFileReader<'_>) {
    let text = Arc::clone(reader.text);
    let mut offset = 0;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        let full_span = reader.line_span(number, offset);
        offset += line.len();
        let trimmed = line.trim_start_matches('\u{feff}').trim();
        if trimmed.is_empty() {
            continue;
        }
        match serde_json::from_str::<Label>(trimmed) {
            Ok(label) => reader.add_label(label, full_span),
            Err(error) => {
                let message = error.to_string();
                let message = message
                    // serde_json ends its message with a position in this line; the span shows the position
                    // in the file.
                    .rsplit_once(" at line ")
                    .map_or(message.as_str(), |(m, _)| m);
                let span = SourceSpan {
                    column: u32::try_from(error.column()).unwrap_or(u32::MAX).max(1),
                    ..full_span
                };
                let problem = Diagnostic::error(super::LABEL_CODE, reader.path, format!("no label: {message}"))
                    .with_span(span, &text)
                    .help(r#"a label is {"transcript": "…", "eval": "…", "passed": true}, with rubric, score, by, at and note if known"#);
                reader.report_problem(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::workspace::labels::entries::LabelsEntry;

    #[test]
    fn every_broken_label_line_is_reported_with_its_number() {
        let text = Arc::from(concat!(
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":true}\n",
            "\n",
            "{\"transcript\":\"a\",\"eval\":\"x\"}\n",
            "{\"transcript\":\"a\",\"evil\":\"x\",\"passed\":true}\n",
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":\"yes\"}\n",
            "{\"transcript\":\"a\",\"eval\":\"x\",\"passed\":true,\"score\":7}\n",
            "not json\n",
        ));
        let entry = LabelsEntry::default();
        let mut reader = LabelFileReader::new(&text, Path::new("labels.jsonl"), &entry);
        read(&mut reader);
        let (labels, problems) = reader.finish();
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
