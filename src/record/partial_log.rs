//! A part of a log: the header and everything about some cells, renumbered.
//!
//! Responsible for the content of such a log, and for the names of the blobs that it needs. Leaves out the plan of the
//! other cells and notes about the whole run, because they can name other transcripts. If this installation recorded the
//! log, the part is signed again; otherwise it counts as recorded elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write as _;

use super::lines::finish_line;
use super::seal::{LogOrigin, LogSigner, RecordMac};
use super::{RecordError, RecordedRun};
use crate::event::{EventKind, RunEvent};
use crate::model::{CellIx, pluralize};

/// The number of hex digits in the name of a blob.
const BLOB_DIGITS: usize = 64;

/// A part of a log.
#[derive(Debug)]
pub(super) struct PartialLog {
    /// The lines.
    pub(super) lines: Vec<u8>,
    /// The number of each cell in the whole log, with its number in the part.
    pub(super) cells: BTreeMap<CellIx, CellIx>,
    /// The hex digits that may name blobs.
    pub(super) blobs: HashSet<String>,
}

/// Reads the part of a log that is about some cells.
pub(super) fn read_partial_log(
    run: &RecordedRun,
    cells: &BTreeSet<CellIx>,
) -> Result<PartialLog, RecordError> {
    let numbers: BTreeMap<CellIx, CellIx> = cells.iter().copied().zip((0..).map(CellIx)).collect();
    let mut events = run.events()?;
    let mut kept: Vec<RunEvent> = Vec::new();
    let mut planned = 0;
    for event in &mut events {
        let RunEvent { at, kind, .. } = event?;
        if let EventKind::CellsPlanned { keys, .. } = &kind {
            planned += keys.len();
        }
        if let Some(kind) = select_fact(kind, &numbers) {
            let seq = kept.len() as u64;
            kept.push(RunEvent { seq, at, kind });
        }
    }
    if let Some(EventKind::RunStarted(header)) = kept.first_mut().map(|event| &mut event.kind) {
        let gap = if header.label.is_empty() { "" } else { "; " };
        header.label = format!(
            "{}{gap}a part of the run: {} of {}",
            header.label,
            numbers.len(),
            pluralize(planned, "cell")
        );
    }
    let integrity = events.integrity();
    let is_intact = integrity.altered == 0 && integrity.damaged == 0;
    let is_own = integrity.origin == LogOrigin::Own && is_intact;
    let mut signer = run.key.clone().filter(|_| is_own).map(LogSigner::new);
    let mut lines = Vec::new();
    let mut blobs = HashSet::new();
    for RunEvent { seq, at, kind } in &kept {
        let json = kind.to_json().map_err(|why| RecordError::NotARun {
            path: run.dir.clone(),
            why: why.to_string(),
        })?;
        collect_hex_names(&json, &mut blobs);
        let start = lines.len();
        let _a_vec_takes_all = write!(lines, r#"{{"seq":{seq},"at":{},"kind":{json}"#, at.0);
        if integrity.origin == LogOrigin::EarlierVersion {
            // Logs of earlier versions have no checksums.
            lines.extend_from_slice(b"}\n");
            continue;
        }
        let mac = match &mut signer {
            Some(signer) => signer.sign(kind, &lines[start..]),
            // No installation computes this one, so the log counts as recorded elsewhere.
            None if *seq == 0 => RecordMac::parse("0".repeat(RecordMac::DIGITS).as_bytes()),
            None => None,
        };
        finish_line(&mut lines, start, mac);
    }
    Ok(PartialLog {
        lines,
        cells: numbers,
        blobs,
    })
}

/// Returns the fact with the new numbers, if it is about one of the cells or about the run as a whole.
fn select_fact(kind: EventKind, numbers: &BTreeMap<CellIx, CellIx>) -> Option<EventKind> {
    match kind {
        EventKind::CellsPlanned {
            transcript,
            first,
            keys,
        } => {
            let chosen: Vec<(CellIx, _)> = (first.0..)
                .map(CellIx)
                .zip(keys)
                .filter_map(|(cell, key)| Some((*numbers.get(&cell)?, key)))
                .collect();
            let (first, _) = *chosen.first()?;
            Some(EventKind::CellsPlanned {
                transcript,
                first,
                keys: chosen.into_iter().map(|(_, key)| key).collect(),
            })
        }
        EventKind::CellsSettled(mut settled) => {
            settled.retain_mut(|one| match numbers.get(&one.cell) {
                Some(number) => {
                    one.cell = *number;
                    true
                }
                None => false,
            });
            (!settled.is_empty()).then_some(EventKind::CellsSettled(settled))
        }
        EventKind::RunStarted(_)
        | EventKind::RunFinished(_)
        | EventKind::BudgetReached { cell: None, .. } => Some(kind),
        mut other => {
            let number = *numbers.get(&other.cell()?)?;
            other.set_cell(number);
            Some(other)
        }
    }
}

/// Collects the words of 64 hex digits, as blobs are named.
fn collect_hex_names(json: &str, names: &mut HashSet<String>) {
    let is_hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    for word in json.split(|c: char| !is_hex(c)) {
        if word.len() == BLOB_DIGITS {
            names.insert(word.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunState;
    use crate::model::Outcome;
    use crate::record::parse_log;
    use crate::record::tests::samples::{
        called, end, ended, key, planned, record, settled, started,
    };

    #[tokio::test]
    async fn part_of_a_log_has_one_cell_and_stays_signed() {
        let runs = tempfile::tempdir().expect("a folder");
        let mut kinds = vec![planned("t", 0), planned("u", 2), settled(0, Outcome::Pass)];
        kinds.push(settled(2, Outcome::Fail));
        for (cell, page) in [(1, "the page of t"), (3, "the page of u")] {
            kinds.push(started(cell, "k"));
            let source = crate::event::ToolResponseSource::Live;
            kinds.extend(called(cell, 0, "{}", page, source));
            kinds.push(ended(cell, Outcome::Pass));
        }
        kinds.push(EventKind::Note {
            cell: None,
            text: "t.jsonl has a bad record".to_owned(),
        });
        kinds.push(end());
        let (mut run, _) = record(runs.path(), "20260101T000000Z-kvqa", kinds).await;
        let whole = run.read_state().expect("a state");
        let part = read_partial_log(&run, &BTreeSet::from([CellIx(3)])).expect("a part");
        let text = String::from_utf8(part.lines.clone()).expect("text");
        assert!(text.contains("the page of u"), "{text}");
        for other in ["the page of t", "bad record", "\"t\""] {
            assert!(!text.contains(other), "{other}: {text}");
        }
        assert!(text.contains("a part of the run: 1 of 4 cells"), "{text}");
        let log = parse_log(std::io::Cursor::new(part.lines.clone()), &run.dir).expect("a log");
        assert_eq!(log.warnings, [""; 0]);
        let state = RunState::fold(&log.events);
        assert_eq!(state.cells.len(), 1);
        assert_eq!(state.cells[0].judge_trace, whole.cells[3].judge_trace);
        assert_eq!(state.cells[0].result, whole.cells[3].result);
        assert_eq!(state.cell_name(CellIx(0)), whole.cell_name(CellIx(3)));
        assert_eq!(part.cells[&CellIx(3)], CellIx(0));
        // In a folder of its own, the part is as intact as the whole.
        let origin = |run: &RecordedRun| {
            let part = read_partial_log(run, &BTreeSet::from([CellIx(1)])).expect("a part");
            let dir = runs.path().join("part");
            std::fs::create_dir_all(&dir).expect("made");
            std::fs::write(dir.join("events.jsonl"), part.lines).expect("written");
            let copy = RecordedRun {
                dir,
                key: Some(key()),
                ..run.clone()
            };
            copy.read_log().expect("a log").integrity
        };
        assert_eq!(origin(&run).origin, LogOrigin::Own);
        assert_eq!(origin(&run).altered, 0);
        // Without the key, dicta can't sign it.
        run.key = None;
        assert_eq!(origin(&run).origin, LogOrigin::Elsewhere);
    }

    #[test]
    fn only_words_of_a_digest_name_blobs() {
        let mut names = HashSet::new();
        let digest = "ab".repeat(32);
        collect_hex_names(
            &format!("{{\"hash\":\"{digest}\",\"x\":\"{digest}0\"}}"),
            &mut names,
        );
        assert_eq!(names, HashSet::from([digest]));
    }
}
