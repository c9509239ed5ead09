//! The line of a result without a judge, put together from parts that are serialized once.
//!
//! Responsible for the speed of such lines: two thirds of their bytes depend only on the transcript or on the eval. Does
//! not define the keys: [`super::ResultLine`] does, and the lines have the same bytes.

use std::io::Write as _;

use serde::Serialize;

use crate::model::{CellNameRef, Digest};
use crate::report::ResultRow;

/// The largest number of evals whose parts are kept.
const MAX_EVALS: usize = 256;

/// Writes the lines of plain results.
#[derive(Default)]
pub(super) struct PlainResultWriter {
    /// The parts of the last transcript.
    transcript: Option<TranscriptParts>,
    evals: Vec<EvalParts>,
    /// The position of the last eval in `evals`.
    last_eval: usize,
}

/// The parts of a line that depend on the transcript.
struct TranscriptParts {
    id: String,
    digest: Digest,
    /// The id within the name of a cell, without quotes.
    name_json: Vec<u8>,
    id_json: Vec<u8>,
    digest_json: Vec<u8>,
}

/// The parts of a line that depend on the eval.
struct EvalParts {
    rubric: String,
    eval: String,
    eval_type: String,
    digest: Digest,
    /// The ids within the name of a cell, without quotes.
    name_json: Vec<u8>,
    /// The keys from `rubric` to `kind`.
    ids_json: Vec<u8>,
    digest_json: Vec<u8>,
}

impl PlainResultWriter {
    /// Appends the JSON object of a plain result. Returns `false` and appends nothing for any other result.
    pub(super) fn append(
        &mut self,
        row: &ResultRow<'_>,
        line: &mut Vec<u8>,
    ) -> serde_json::Result<bool> {
        if !is_plain(row) || !self.select_eval(row)? {
            return Ok(false);
        }
        self.select_transcript(row)?;
        let (Some(transcript), Some(eval)) = (&self.transcript, self.evals.get(self.last_eval))
        else {
            return Ok(false);
        };
        let result = row.result;
        line.extend_from_slice(br#"{"type":"result","cell":""#);
        line.extend_from_slice(&transcript.name_json);
        line.extend_from_slice(&eval.name_json);
        if let Some(message) = row.name.message {
            let _a_vec_takes_all = write!(line, "@{message}");
        }
        line.extend_from_slice(br#"","transcript":"#);
        line.extend_from_slice(&transcript.id_json);
        line.extend_from_slice(&eval.ids_json);
        append_field(line, br#","message":"#, &row.name.message)?;
        append_field(
            line,
            br#","judge":null,"repeat":null,"outcome":"#,
            &result.outcome,
        )?;
        append_field(line, br#","passed":"#, &result.outcome.passed())?;
        append_field(line, br#","score":"#, &result.score)?;
        append_field(line, br#","explanation":"#, &result.explanation)?;
        append_field(line, br#","error":"#, &result.error)?;
        append_field(
            line,
            br#","citations":[],"parts":[],"contradiction":null,"repaired":[],"usage":null,"cost_usd":null,"duration_ms":"#,
            &result.duration_ms.0,
        )?;
        append_field(
            line,
            br#","cached":false,"cached_from":null,"label":"#,
            &row.label,
        )?;
        let digest = row.digests.cell_digest(None, row.name.message, None);
        line.extend_from_slice(br#","digest":""#);
        // Hex digits need no escapes.
        line.extend_from_slice(digest.0.as_bytes());
        line.extend_from_slice(br#"","digests":{"transcript":"#);
        line.extend_from_slice(&transcript.digest_json);
        line.extend_from_slice(br#","eval":"#);
        line.extend_from_slice(&eval.digest_json);
        line.extend_from_slice(br#","judge":null}}"#);
        Ok(true)
    }

    /// Makes the row's transcript the last one.
    fn select_transcript(&mut self, row: &ResultRow<'_>) -> serde_json::Result<()> {
        let is_known = self.transcript.as_ref().is_some_and(|known| {
            known.id == row.name.transcript && known.digest == *row.digests.transcript
        });
        if !is_known {
            self.transcript = Some(TranscriptParts::new(row)?);
        }
        Ok(())
    }

    /// Makes the row's eval the last one. Returns `false` if there are too many evals.
    fn select_eval(&mut self, row: &ResultRow<'_>) -> serde_json::Result<bool> {
        let is_same = |at: usize| self.evals.get(at).is_some_and(|known| known.is_of(row));
        // In plan order, the next row is about the same eval, the next one, or the first one.
        let near = [self.last_eval, self.last_eval + 1, 0];
        let mut known = near.into_iter().find(|at| is_same(*at));
        let has_room = self.evals.len() < MAX_EVALS;
        if known.is_none() && has_room {
            known = (0..self.evals.len()).find(|at| is_same(*at));
        }
        self.last_eval = match known {
            Some(at) => at,
            None if has_room => {
                self.evals.push(EvalParts::new(row)?);
                self.evals.len() - 1
            }
            None => return Ok(false),
        };
        Ok(true)
    }
}

/// Returns `true` if the keys about judges, verdicts, costs and earlier runs have no value.
fn is_plain(row: &ResultRow<'_>) -> bool {
    let result = row.result;
    row.name.judge.is_none()
        && row.name.repeat.is_none()
        && row.digests.judge.is_none()
        && row.failed_rerun.is_none()
        && !row.is_shot
        && result.verdict.is_none()
        && result.usage.is_none()
        && result.cost_usd.is_none()
        && result.cached.is_none()
        && !result.by_human
}

impl TranscriptParts {
    fn new(row: &ResultRow<'_>) -> serde_json::Result<Self> {
        let name = CellNameRef {
            rubric: "",
            eval: "",
            message: None,
            ..row.name
        };
        let name = name.to_string();
        let encoded = name.strip_suffix("//").unwrap_or(&name);
        Ok(Self {
            id: row.name.transcript.to_owned(),
            digest: row.digests.transcript.clone(),
            name_json: to_json_without_quotes(encoded)?,
            id_json: serde_json::to_vec(row.name.transcript)?,
            digest_json: serde_json::to_vec(row.digests.transcript)?,
        })
    }
}

impl EvalParts {
    fn new(row: &ResultRow<'_>) -> serde_json::Result<Self> {
        let name = CellNameRef {
            transcript: "",
            message: None,
            ..row.name
        };
        let mut ids_json = Vec::new();
        append_field(&mut ids_json, br#","rubric":"#, row.name.rubric)?;
        append_field(&mut ids_json, br#","eval":"#, row.name.eval)?;
        append_field(&mut ids_json, br#","eval_type":"#, row.eval_type)?;
        append_field(&mut ids_json, br#","kind":"#, row.eval_type)?;
        Ok(Self {
            rubric: row.name.rubric.to_owned(),
            eval: row.name.eval.to_owned(),
            eval_type: row.eval_type.to_owned(),
            digest: row.digests.eval.clone(),
            name_json: to_json_without_quotes(&name.to_string())?,
            ids_json,
            digest_json: serde_json::to_vec(row.digests.eval)?,
        })
    }

    fn is_of(&self, row: &ResultRow<'_>) -> bool {
        self.eval == row.name.eval
            && self.rubric == row.name.rubric
            && self.eval_type == row.eval_type
            && self.digest == *row.digests.eval
    }
}

/// Appends the text before a value, and the value.
fn append_field<T: Serialize + ?Sized>(
    line: &mut Vec<u8>,
    before: &[u8],
    value: &T,
) -> serde_json::Result<()> {
    line.extend_from_slice(before);
    serde_json::to_writer(line, value)
}

/// Returns a text as JSON, without its quotes.
fn to_json_without_quotes(text: &str) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec(text)?;
    json.pop();
    json.remove(0);
    Ok(json)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ResultLine;
    use super::*;
    use crate::model::{CellResult, Millis, Outcome, ScoreBounds, TokenUsage, Verdict};
    use crate::report::result_digests::CellDigests;

    fn row<'a>(
        (transcript, transcript_digest): (&'a str, &'a Digest),
        (eval, eval_type, eval_digest): (&'a str, &'a str, &'a Digest),
        message: Option<u32>,
        result: &'a CellResult,
    ) -> ResultRow<'a> {
        ResultRow {
            name: CellNameRef {
                transcript,
                rubric: eval_type,
                eval,
                message,
                judge: None,
                repeat: None,
            },
            eval_type,
            bounds: ScoreBounds::default(),
            is_panel_member: false,
            label: result.score.map(|score| score > 0.5),
            is_shot: false,
            digests: CellDigests {
                transcript: transcript_digest,
                eval: eval_digest,
                judge: None,
            },
            failed_rerun: None,
            result,
        }
    }

    fn append(writer: &mut PlainResultWriter, row: &ResultRow<'_>) -> Option<String> {
        let mut line = Vec::new();
        let is_plain = writer.append(row, &mut line).expect("a Vec takes all");
        let line = String::from_utf8(line).expect("JSON is UTF-8");
        assert_eq!(is_plain, !line.is_empty());
        is_plain.then_some(line)
    }

    fn serialize(row: &ResultRow<'_>) -> String {
        serde_json::to_string(&ResultLine::from_row(row)).expect("a line")
    }

    proptest! {
        #[test]
        fn plain_line_has_the_bytes_of_the_serialized_line(
            texts in prop::collection::vec(r#"(\PC|["\\/@~#%\n\t\x1b\x7f]){0,6}"#, 6),
            rows in prop::collection::vec(
                (0_usize..3, 0_usize..3, any::<Option<u32>>(), any::<Option<f32>>(), 0..Outcome::ALL.len()),
                1..20,
            ),
        ) {
            let digests: Vec<Digest> = texts.iter().cloned().map(Digest).collect();
            let mut writer = PlainResultWriter::default();
            for (transcript, eval, message, score, outcome) in rows {
                let result = CellResult {
                    score: score.map(f64::from),
                    error: message.map(|_| texts[eval].clone()),
                    duration_ms: Millis(outcome as u64),
                    ..CellResult::new(Outcome::ALL[outcome], texts[transcript].as_str())
                };
                let transcript = (texts[transcript].as_str(), &digests[transcript + 1]);
                let eval = (texts[eval + 1].as_str(), texts[eval].as_str(), &digests[eval + 3]);
                let row = row(transcript, eval, message, &result);
                prop_assert_eq!(append(&mut writer, &row), Some(serialize(&row)));
            }
        }
    }

    #[test]
    fn changed_digest_of_a_known_name_is_written() {
        let digests = ["a", "b"].map(|digest| Digest(digest.to_owned()));
        let result = CellResult::new(Outcome::Pass, "ok");
        let mut writer = PlainResultWriter::default();
        for (transcript, eval) in [(0, 0), (1, 0), (1, 1), (0, 1)] {
            let row = row(
                ("t", &digests[transcript]),
                ("e", "regex", &digests[eval]),
                None,
                &result,
            );
            assert_eq!(append(&mut writer, &row), Some(serialize(&row)));
        }
    }

    #[test]
    fn evals_above_the_limit_are_not_kept() {
        let digest = Digest::hash_bytes(b"");
        let result = CellResult::new(Outcome::Pass, "ok");
        let ids: Vec<String> = (0..=MAX_EVALS).map(|id| id.to_string()).collect();
        let mut writer = PlainResultWriter::default();
        for _ in 0..2 {
            for (at, id) in ids.iter().enumerate() {
                let row = row(
                    ("t", &digest),
                    (id.as_str(), "regex", &digest),
                    None,
                    &result,
                );
                let expected = (at < MAX_EVALS).then(|| serialize(&row));
                assert_eq!(append(&mut writer, &row), expected);
            }
        }
    }

    #[test]
    fn result_with_a_verdict_usage_or_earlier_run_is_not_plain() {
        let digest = Digest::hash_bytes(b"");
        let plain = CellResult::new(Outcome::Pass, "ok");
        let others = [
            CellResult {
                verdict: Some(Box::new(Verdict::default())),
                ..plain.clone()
            },
            CellResult {
                usage: Some(TokenUsage::default()),
                ..plain.clone()
            },
            CellResult {
                cost_usd: Some(0.5),
                ..plain.clone()
            },
            CellResult {
                cached: Some(crate::model::RunId("r".to_owned())),
                ..plain.clone()
            },
            CellResult {
                by_human: true,
                ..plain.clone()
            },
        ];
        let mut writer = PlainResultWriter::default();
        let (transcript, eval) = (("t", &digest), ("e", "regex", &digest));
        for other in &others {
            let row = row(transcript, eval, None, other);
            assert_eq!(append(&mut writer, &row), None);
        }
        let mut shown = row(transcript, eval, None, &plain);
        assert!(append(&mut writer, &shown).is_some());
        shown.is_shot = true;
        assert_eq!(append(&mut writer, &shown), None);
        shown.is_shot = false;
        shown.name.repeat = Some(1);
        assert_eq!(append(&mut writer, &shown), None);
    }
}
