//! Tool calls as readable text: arguments, changes, rejections, hops and responses.
//!
//! Responsible for one call's lines. Does not shorten what is recorded.

use std::io::{self, Write};

use super::Narrator;
use crate::event::{RecordedToolResponse, StoredText, ToolCallKey, ToolFact, ToolResponseSource};
use crate::model::{ArgumentChange, CellIx, Hop, SUBMIT_VERDICT};
use crate::report::wording::format_bytes;

/// The longest excerpt of arguments and pages, in characters.
const MAX_EXCERPT_CHARS: usize = 160;

impl<W: Write> Narrator<W> {
    pub(super) fn narrate_tool(&mut self, at: ToolCallKey, fact: &ToolFact) -> io::Result<()> {
        let cell = at.cell;
        match fact {
            ToolFact::Received { name, raw, .. } => {
                // The text of a reply precedes its calls.
                self.end_partial_lines(cell)?;
                if name == SUBMIT_VERDICT {
                    self.verdict_calls.insert(at);
                    return Ok(());
                }
                self.write_cell_line(cell, "→", &format!("{name}({})", shorten(raw)))
            }
            ToolFact::Repaired { .. } | ToolFact::Finished { .. }
                if self.verdict_calls.contains(&at) =>
            {
                Ok(())
            }
            ToolFact::Repaired { canonical, changes } => {
                // Without a repair, only the spelling of the JSON changed.
                let what = if changes.is_empty() {
                    "spelling".to_owned()
                } else {
                    list_changes(changes)
                };
                self.write_cell_line(cell, "→", &format!("as {} ({what})", canonical.get()))
            }
            ToolFact::Validated { values, coerced } if !coerced.is_empty() => {
                let what = list_changes(coerced);
                let text = format!("with {} ({what})", shorten(values.get()));
                self.write_cell_line(cell, "→", &text)
            }
            // Without coercions, the values repeat the arguments that are already printed.
            ToolFact::Validated { .. } | ToolFact::Started => Ok(()),
            ToolFact::Rejected { rule, text } if self.verdict_calls.contains(&at) => self
                .write_cell_line(
                    cell,
                    "✗",
                    &format!("{SUBMIT_VERDICT} rejected ({rule}): {text}"),
                ),
            ToolFact::Rejected { rule, text } => {
                self.write_cell_line(cell, "✗", &format!("call rejected ({rule}): {text}"))
            }
            ToolFact::Hop(hop) => self.narrate_hop(cell, hop),
            ToolFact::Finished {
                answer,
                source,
                elapsed,
                retried,
            } => {
                if let Some(first) = retried {
                    let text = format!("tried twice; first: {}", shorten(first));
                    self.write_cell_line(cell, "·", &text)?;
                }
                self.narrate_response(cell, answer, source, *elapsed)
            }
        }
    }

    fn narrate_hop(&mut self, cell: CellIx, hop: &Hop) -> io::Result<()> {
        let address = hop.address.map(|a| format!(" at {a}")).unwrap_or_default();
        match (&hop.refused, hop.status) {
            (Some(why), _) => {
                self.write_cell_line(cell, "✗", &format!("{}{address} refused: {why}", hop.url))
            }
            (None, Some(status)) => {
                self.write_cell_line(cell, "←", &format!("{status} {}{address}", hop.url))
            }
            (None, None) => self.write_cell_line(cell, "←", &format!("{}{address}", hop.url)),
        }
    }

    fn narrate_response(
        &mut self,
        cell: CellIx,
        answer: &RecordedToolResponse,
        source: &ToolResponseSource,
        elapsed: crate::model::Millis,
    ) -> io::Result<()> {
        // The origin replaces the duration if no live call was made.
        let from = match source {
            ToolResponseSource::Live => format!("in {elapsed}"),
            ToolResponseSource::Frozen { run } => {
                format!("from the evidence of run {}", run.letters())
            }
            ToolResponseSource::SameTrace { turn, call } => {
                format!("as call {} of turn {}", call.0 + 1, turn.0 + 1)
            }
            ToolResponseSource::ByHand => "written by hand".to_owned(),
            ToolResponseSource::Transcript => "from the transcript".to_owned(),
        };
        let cut = if answer.truncated { ", cut" } else { "" };
        let text = match &answer.text {
            StoredText::Text(text) => summarize_text(text),
            // A narrator does not read blobs.
            StoredText::Blob(_) => "a long text".to_owned(),
        };
        let mark = if answer.is_error { "✗" } else { "←" };
        self.write_cell_line(
            cell,
            mark,
            &format!(
                "{}{cut} {from}: {}",
                format_bytes(answer.bytes),
                shorten(&text)
            ),
        )
    }
}

/// Returns the first line with text; of pretty-printed JSON, its first lines joined.
fn summarize_text(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    // The first line of pretty-printed JSON is only a bracket.
    if !matches!(first, "{" | "[") {
        return first.to_owned();
    }
    let mut gist = first.to_owned();
    for line in lines {
        gist.push(' ');
        gist.push_str(line);
        // `shorten` cuts the text further, so the rest of a large page is not needed.
        if gist.len() > 4 * MAX_EXCERPT_CHARS {
            break;
        }
    }
    gist
}

/// Lists changes, each with its path.
fn list_changes(changes: &[ArgumentChange]) -> String {
    let all = changes.iter().map(|change| match change.path.as_str() {
        "" => change.what.clone(),
        path => format!("{path}: {}", change.what),
    });
    all.collect::<Vec<_>>().join(", ")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventKind, RunEvent};
    use crate::model::{CallIx, Millis, RawJson, TurnIx};
    use crate::report::TextStyle;

    fn narrated(facts: Vec<ToolFact>) -> String {
        let mut out = Vec::new();
        let mut narrator = Narrator::new(&mut out, TextStyle::default());
        for (fact, seq) in facts.into_iter().zip(0..) {
            let event = RunEvent {
                seq,
                at: Millis(seq),
                kind: EventKind::Tool {
                    cell: CellIx(0),
                    turn: TurnIx(0),
                    call: CallIx(0),
                    fact,
                },
            };
            narrator.narrate_event(&event).expect("to memory");
        }
        narrator.finish().expect("to memory");
        drop(narrator);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn pretty_json_is_summarized_by_its_first_lines() {
        assert_eq!(summarize_text("\n  a page\nmore"), "  a page".trim());
        assert_eq!(summarize_text("[\n  {\"id\": 1}\n]\n"), "[ {\"id\": 1} ]");
    }

    fn change(path: &str, what: &str) -> ArgumentChange {
        ArgumentChange {
            path: path.to_owned(),
            what: what.to_owned(),
        }
    }

    fn received() -> ToolFact {
        ToolFact::Received {
            id: "c".into(),
            name: "find".into(),
            raw: "{n: '5'".into(),
        }
    }

    fn repaired() -> ToolFact {
        ToolFact::Repaired {
            canonical: RawJson::parse(r#"{"n":"5"}"#).expect("JSON"),
            changes: vec![change("", "closed 1 bracket"), change("/n", "quoted")],
        }
    }

    #[test]
    fn call_lines_show_received_repaired_and_validated_arguments() {
        let text = narrated(vec![
            received(),
            repaired(),
            ToolFact::Validated {
                values: RawJson::parse(r#"{"n":5}"#).expect("JSON"),
                coerced: vec![change("/n", "text as a number")],
            },
            ToolFact::Started,
            ToolFact::Finished {
                answer: RecordedToolResponse {
                    text: StoredText::Text("found".into()),
                    is_error: false,
                    bytes: 5,
                    truncated: false,
                    raw: None,
                    content_type: None,
                    hidden: 0,
                    data_version: None,
                },
                source: ToolResponseSource::Live,
                elapsed: Millis(300),
                retried: Some("Error: HTTP 503".into()),
            },
        ]);
        for line in [
            "→ find({n: '5')",
            r#"→ as {"n":"5"} (closed 1 bracket, /n: quoted)"#,
            r#"→ with {"n":5} (/n: text as a number)"#,
            "tried twice; first: Error: HTTP 503",
            "found",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn rejected_call_names_its_rule() {
        let rejected = ToolFact::Rejected {
            rule: "after".into(),
            text: "Error: `find` was not called: `login` failed".into(),
        };
        let text = narrated(vec![received(), repaired(), rejected]);
        let line = "✗ call rejected (after): Error: `find` was not called: `login` failed";
        assert!(text.contains(line), "{text}");
    }
}
