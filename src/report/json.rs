//! `--format json`: one JSON document.
//!
//! Responsible for the document around the objects, which are those of `--format jsonl`. Keeps no object, so that memory
//! does not grow with the run.

use std::io::{self, Write};

use serde::Serialize;

use super::jsonl::{JsonSection, JsonSink, write_objects};
use super::{ReportRow, ReportWriter};
use crate::model::escape_invisible_json;

/// The keys of the document in order. The last one has one object, and the others have lists.
const SECTIONS: [(JsonSection, &str); 6] = [
    (JsonSection::Results, "results"),
    (JsonSection::Decisions, "decisions"),
    (JsonSection::Rubrics, "rubrics"),
    (JsonSection::Judges, "judges"),
    (JsonSection::Tools, "tools"),
    (JsonSection::Summary, "summary"),
];

/// Writes one document, with one line per object.
pub struct JsonReportWriter<'w> {
    out: io::BufWriter<Box<dyn Write + 'w>>,
    terminal: bool,
    /// The number of keys of [`SECTIONS`] that are written. The last of them is open.
    begun: usize,
    /// The number of objects in the open section.
    objects: u64,
}

impl<'w> JsonReportWriter<'w> {
    /// Returns a writer to `out`. With `terminal`, `\u` escapes replace characters that a terminal executes or hides.
    pub fn new(out: Box<dyn Write + 'w>, terminal: bool) -> Self {
        Self {
            out: io::BufWriter::with_capacity(128 * 1024, out),
            terminal,
            begun: 0,
            objects: 0,
        }
    }

    /// Ends the open section and begins the next one.
    fn begin_next(&mut self) -> io::Result<()> {
        self.end_section()?;
        let (section, key) = SECTIONS[self.begun];
        let open = if section == JsonSection::Summary {
            ""
        } else {
            "["
        };
        let before = if self.begun == 0 { "{" } else { "," };
        write!(self.out, "{before}\n\"{key}\": {open}")?;
        self.begun += 1;
        self.objects = 0;
        Ok(())
    }

    fn end_section(&mut self) -> io::Result<()> {
        match self.begun.checked_sub(1).map(|at| SECTIONS[at].0) {
            // An interrupted reader of a run may have no summary.
            Some(JsonSection::Summary) if self.objects == 0 => write!(self.out, "null"),
            None | Some(JsonSection::Summary) => Ok(()),
            Some(_) => write!(self.out, "]"),
        }
    }
}

impl JsonSink for JsonReportWriter<'_> {
    fn write_object(&mut self, section: JsonSection, object: &impl Serialize) -> io::Result<()> {
        while self.begun == 0 || SECTIONS[self.begun - 1].0 < section {
            self.begin_next()?;
        }
        let before = if self.objects == 0 { "" } else { "," };
        let line_end = if section == JsonSection::Summary {
            ""
        } else {
            "\n"
        };
        let text = serde_json::to_string(object)?;
        let text = if self.terminal {
            escape_invisible_json(&text)
        } else {
            text.into()
        };
        write!(self.out, "{before}{line_end}{text}")?;
        self.objects += 1;
        Ok(())
    }
}

impl ReportWriter for JsonReportWriter<'_> {
    fn write_row(&mut self, row: &ReportRow<'_>) -> io::Result<()> {
        write_objects(row, self)
    }

    fn finish(&mut self) -> io::Result<()> {
        while self.begun < SECTIONS.len() {
            self.begin_next()?;
        }
        self.end_section()?;
        writeln!(self.out, "\n}}")?;
        self.out.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{RubricRow, RunSummary};
    use serde_json::{Value, json};

    fn document(rows: &[ReportRow<'_>]) -> Value {
        let mut out = Vec::new();
        let mut writer = JsonReportWriter::new(Box::new(&mut out), false);
        for row in rows {
            writer.write_row(row).expect("a Vec takes everything");
        }
        writer.finish().expect("a Vec takes everything");
        drop(writer);
        serde_json::from_slice(&out).expect("one document")
    }

    #[test]
    fn document_has_all_keys_even_without_rows() {
        let empty = json!({
            "results": [], "decisions": [], "rubrics": [], "judges": [], "tools": [], "summary": null,
        });
        assert_eq!(document(&[]), empty);
    }

    #[test]
    fn objects_are_those_of_the_lines() {
        let rubric = RubricRow {
            transcript: "one".to_owned(),
            rubric: "r".to_owned(),
            passed: Some(true),
            score: Some(0.5),
            edited: false,
        };
        let summary = RunSummary::default();
        let found = document(&[
            ReportRow::Rubric(&rubric),
            ReportRow::Rubric(&rubric),
            ReportRow::Summary(&summary),
        ]);
        assert_eq!(found["rubrics"].as_array().map(Vec::len), Some(2));
        assert_eq!(found["rubrics"][1]["score"], 0.5);
        assert_eq!(found["summary"]["type"], "summary");
        assert_eq!(found["results"], json!([]));
    }
}
