//! Pairs: two transcripts that an eval compares, joined into one transcript.
//!
//! Responsible for finding the transcripts of a pair in a file, and for the transcript that contains both. Does not
//! judge. The joined transcript has the pair's id. It begins with the messages that both transcripts begin with. The other
//! messages of the first and of the second one follow. Its metadata names both (`compared`).

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::{RecordSpan, TranscriptBlock, TranscriptRecord, parse_native, to_native};
use crate::model::{ComparedPair, JsonText, PairMember, Transcript};

/// The bit in [`RecordSpan::part`] that marks a pair. No record has this many transcripts.
pub(super) const PAIR_PART: u32 = 1 << 31;
/// The most bytes of transcripts that wait for the other one of their pair. Further ones wait without effect.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;
/// The number of further transcripts of complete pairs that a report names one by one.
const MAX_NAMED_FURTHER: usize = 10;

/// Joins two transcripts; `None` if one of them has no message.
fn join_transcripts<'t>(
    id: &str,
    first: &Transcript<'t>,
    second: &Transcript<'t>,
) -> Option<Transcript<'t>> {
    let shortest = first.messages.len().min(second.messages.len());
    // Each answer keeps a message of its own, also if both are equal.
    let limit = shortest.checked_sub(1)?;
    let equal = first.messages.iter().zip(&second.messages);
    let common = equal.take(limit).take_while(|(a, b)| a == b).count();
    let middle = first.messages.len();
    let end = middle + second.messages.len() - common;
    let to_member = |transcript: &Transcript<'_>, messages| PairMember {
        id: transcript.id.to_string(),
        choice: read_text(transcript, "choice").unwrap_or_else(|| transcript.id.to_string()),
        messages,
    };
    let members = [
        to_member(first, common..middle),
        to_member(second, middle..end),
    ];
    let mut metadata = collect_common_metadata(first, second);
    metadata.insert(ComparedPair::METADATA_KEY.to_owned(), json!(members));
    let rest = second.messages[common..].iter().cloned();
    Some(Transcript {
        id: id.to_owned().into(),
        messages: first.messages.iter().cloned().chain(rest).collect(),
        metadata: Some(JsonText::from_value(&Value::Object(metadata))),
        tags: first
            .tags
            .iter()
            .filter(|tag| second.tags.contains(tag))
            .cloned()
            .collect(),
        verdicts: Vec::new(),
    })
}

/// Returns the metadata in which both transcripts agree, so that selectors and variables work for the pair.
fn collect_common_metadata(first: &Transcript<'_>, second: &Transcript<'_>) -> Map<String, Value> {
    let read = |transcript: &Transcript<'_>| match transcript.metadata.as_ref() {
        Some(metadata) => metadata.parse_value(),
        None => Value::Null,
    };
    let (Value::Object(mut common), other) = (read(first), read(second)) else {
        return Map::new();
    };
    common.retain(|key, value| other.get(key) == Some(value));
    common
}

fn read_text(transcript: &Transcript<'_>, key: &str) -> Option<String> {
    let metadata = transcript.metadata.as_ref()?.parse_value();
    metadata.get(key)?.as_str().map(str::to_owned)
}

/// The search for the pairs of one file. A transcript names its pair in `metadata.pair`.
#[derive(Debug)]
pub(super) struct PairJoiner {
    /// The native JSON of the transcripts whose pair is not complete, by pair.
    waiting: HashMap<String, WaitingTranscript>,
    waiting_bytes: usize,
    /// The pairs that are complete. A third transcript of a pair is not compared.
    joined: HashSet<String>,
    /// The first further transcripts of complete pairs.
    further: Vec<FurtherMember>,
    /// The number of all further transcripts.
    further_count: u64,
    /// The limit on `waiting_bytes`.
    max_waiting_bytes: usize,
    /// True once a transcript was beyond the limit, which is reported once.
    is_limit_reported: bool,
}

impl Default for PairJoiner {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            waiting_bytes: 0,
            joined: HashSet::new(),
            further: Vec::new(),
            further_count: 0,
            max_waiting_bytes: MAX_WAITING_BYTES,
            is_limit_reported: false,
        }
    }
}

/// A transcript that names a pair which is complete.
#[derive(Debug)]
pub(super) struct FurtherMember {
    /// The number of its record.
    pub(super) number: u64,
    /// The offset of its record in the file.
    pub(super) offset: u64,
    id: String,
    pair: String,
}

impl FurtherMember {
    /// Describes the transcript and its pair.
    pub(super) fn describe(&self) -> String {
        format!(
            "record {}: `{}` is not compared, because its pair `{}` has two transcripts already",
            self.number, self.id, self.pair
        )
    }
}

#[derive(Debug)]
struct WaitingTranscript {
    default_id: String,
    bytes: Vec<u8>,
}

impl PairJoiner {
    /// Returns the first transcripts of pairs that have two already, and the number of the others.
    pub(super) fn further(&self) -> (&[FurtherMember], u64) {
        let named = self.further.len() as u64;
        (&self.further, self.further_count - named)
    }

    /// Adds a transcript for each pair that the block completes, after the transcripts of the same place.
    pub(super) fn join(&mut self, block: &mut TranscriptBlock, default_id: &dyn Fn(u64) -> String) {
        // Most files name no pair, and this search costs little.
        if self.waiting.is_empty() && memchr::memmem::find(&block.bytes, b"\"pair\"").is_none() {
            return;
        }
        let records = std::mem::take(&mut block.records);
        let mut pairs_here: Vec<TranscriptRecord> = Vec::new();
        for record in records {
            // Places must be in order, and the part of a pair is larger than any other.
            if let Some(last) = block.records.last()
                && last.span.offset != record.span.offset
            {
                block.records.append(&mut pairs_here);
            }
            let joined =
                self.join_record(&record, &block.bytes[record.byte_range.clone()], default_id);
            if let Some(joined) = joined {
                let start = block.bytes.len();
                let (bytes, fault) = match joined {
                    Ok(bytes) => (bytes, None),
                    Err(why) => (Vec::new(), Some(why)),
                };
                block.bytes.extend_from_slice(&bytes);
                block.bytes.push(b'\n');
                pairs_here.push(TranscriptRecord {
                    span: RecordSpan {
                        part: record.span.part | PAIR_PART,
                        ..record.span
                    },
                    byte_range: start..start + bytes.len(),
                    fault,
                    labels: Vec::new(),
                });
            }
            block.records.push(record);
        }
        block.records.append(&mut pairs_here);
    }

    /// Returns the native JSON of the pair that the record completes. The error is about pairs that are not compared.
    fn join_record(
        &mut self,
        record: &TranscriptRecord,
        bytes: &[u8],
        default_id: &dyn Fn(u64) -> String,
    ) -> Option<Result<Vec<u8>, String>> {
        memchr::memmem::find(bytes, b"\"pair\"")?;
        let id = default_id(record.span.number);
        let second = record.parse(bytes, &id).ok()?;
        let pair = read_text(&second, "pair").filter(|pair| !pair.is_empty())?;
        if self.joined.contains(&pair) {
            self.further_count += 1;
            if self.further.len() < MAX_NAMED_FURTHER {
                self.further.push(FurtherMember {
                    number: record.span.number,
                    offset: record.span.offset,
                    id: second.id.to_string(),
                    pair,
                });
            }
            return None;
        }
        let Some(waiting) = self.waiting.remove(&pair) else {
            if self.waiting_bytes + bytes.len() <= self.max_waiting_bytes {
                self.waiting_bytes += bytes.len();
                let bytes = bytes.to_vec();
                let default_id = id;
                self.waiting
                    .insert(pair, WaitingTranscript { default_id, bytes });
                return None;
            }
            if std::mem::replace(&mut self.is_limit_reported, true) {
                return None;
            }
            return Some(Err(format!(
                "its pair `{pair}`, and further ones, are not compared: {} MiB of transcripts wait for the other one of their pair; \
                 put the transcripts of a pair next to each other",
                self.max_waiting_bytes / (1024 * 1024)
            )));
        };
        self.waiting_bytes -= waiting.bytes.len();
        let first = parse_native(&waiting.bytes, record.span.number, &waiting.default_id).ok()?;
        let joined = join_transcripts(&pair, &first, &second)?;
        self.joined.insert(pair);
        Some(Ok(to_native(&joined)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::transcript::TranscriptFile;

    fn write_file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pairs.jsonl");
        let mut file = std::fs::File::create(&path).expect("a file");
        file.write_all(text.as_bytes()).expect("written");
        (folder, path)
    }

    fn line(id: &str, pair: &str, choice: &str, answer: &str) -> String {
        let record = json!({"id": id, "metadata": {"pair": pair, "choice": choice, "topic": "t"}, "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "content": answer}]});
        format!("{record}\n")
    }

    fn read_all(path: &std::path::Path) -> Vec<(TranscriptRecord, Vec<u8>)> {
        let mut file = TranscriptFile::open(path).expect("it opens").join_pairs();
        let mut found = Vec::new();
        while let Some(block) = file.next_block().expect("it reads") {
            found.extend(
                block
                    .records()
                    .map(|(record, bytes)| (record.clone(), bytes.to_vec())),
            );
        }
        found
    }

    #[test]
    fn pair_is_joined_after_its_second_transcript_and_can_be_read_again() {
        let lines = [
            line("a1", "q1", "a", "one"),
            line("x1", "q2", "a", "three"),
            line("b1", "q1", "b", "two"),
            line("c1", "q1", "c", "a third answer"),
        ];
        let (_folder, path) = write_file(&lines.concat());
        let all = read_all(&path);
        let ids: Vec<String> = all
            .iter()
            .map(|(record, bytes)| record.parse(bytes, "").expect("native").id.to_string())
            .collect();
        assert_eq!(ids, ["a1", "x1", "b1", "q1", "c1"]);
        let (record, bytes) = &all[3];
        assert!(record.is_pair() && !all[2].0.is_pair());
        let transcript = record.parse(bytes, "").expect("native");
        let texts: Vec<String> = transcript
            .messages
            .iter()
            .map(|message| message.text().into_owned())
            .collect();
        assert_eq!(texts, ["hi", "one", "two"]);
        let pair = ComparedPair::find(&transcript).expect("a pair");
        assert_eq!(pair.common_messages(), 1);
        assert_eq!((&*pair.first.id, &*pair.first.choice), ("a1", "a"));
        assert_eq!((&*pair.second.id, pair.second.messages), ("b1", 2..3));
        let metadata = transcript
            .metadata
            .as_ref()
            .expect("metadata")
            .parse_value();
        assert_eq!(metadata["topic"], "t", "both transcripts have it");
        assert!(metadata.get("choice").is_none(), "they differ in it");
        let file = TranscriptFile::open(&path).expect("it opens");
        assert_eq!(&file.read_native(record.span).expect("again"), bytes);
        let mut file = TranscriptFile::open(&path).expect("it opens").join_pairs();
        while file.next_block().expect("it reads").is_some() {}
        let warnings = file.pair_warnings(Path::new("pairs.jsonl"));
        let texts: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "pairs.jsonl:4:1: record 4: `c1` is not compared, because its pair `q1` has two transcripts already"
            ]
        );
    }

    #[test]
    fn only_the_first_further_transcripts_of_a_pair_are_named() {
        let lines: Vec<String> = (0..14)
            .map(|at| line(&format!("t{at}"), "q1", "a", &format!("answer {at}")))
            .collect();
        let (_folder, path) = write_file(&lines.concat());
        let mut file = TranscriptFile::open(&path).expect("it opens").join_pairs();
        while file.next_block().expect("it reads").is_some() {}
        let warnings = file.pair_warnings(&path);
        assert_eq!(warnings.len(), 11);
        let lines: Vec<Option<u32>> = warnings
            .iter()
            .map(|warning| warning.span.as_ref().map(|span| span.line))
            .collect();
        assert_eq!(lines[..2], [Some(3), Some(4)]);
        let last = &warnings[10].message;
        assert!(last.starts_with("2 further transcripts"), "{last}");
    }

    #[test]
    fn pairs_beyond_the_limit_are_reported_once() {
        let lines = [
            line("a1", "q1", "a", "one"),
            line("a2", "q2", "a", "two"),
            line("a3", "q3", "a", "three"),
            line("b1", "q1", "b", "four"),
        ];
        let (_folder, path) = write_file(&lines.concat());
        let mut file = TranscriptFile::open(&path).expect("it opens");
        let mut block = file.next_block().expect("it reads").expect("a block");
        let mut joiner = PairJoiner {
            max_waiting_bytes: lines[0].len(),
            ..PairJoiner::default()
        };
        joiner.join(&mut block, &|number| format!("t:{number}"));
        let faults: Vec<&str> = block
            .records
            .iter()
            .filter_map(|record| record.fault.as_deref())
            .collect();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("its pair `q2`, and further ones, are not compared"),
            "{faults:?}"
        );
        let pairs = block.records.iter().filter(|record| record.is_pair());
        assert_eq!(pairs.filter(|record| record.fault.is_none()).count(), 1);
    }

    #[test]
    fn file_without_pairs_is_unchanged() {
        let text =
            "{\"messages\":[{\"role\":\"user\",\"content\":\"the \\\"pair\\\" of shoes\"}]}\n";
        let (_folder, path) = write_file(text);
        assert_eq!(read_all(&path).len(), 1);
    }

    #[test]
    fn metadata_with_wrong_ranges_is_not_a_pair() {
        for (from, to) in [(0, 9), (2, 1), (1, 1)] {
            let member =
                |id: &str| json!({"id": id, "choice": id, "messages": {"start": from, "end": to}});
            let record = json!({"metadata": {"compared": [member("a"), member("b")]}, "messages": [
                {"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]});
            let bytes = record.to_string().into_bytes();
            let transcript = parse_native(&bytes, 1, "id").expect("native");
            assert_eq!(ComparedPair::find(&transcript), None, "{from}..{to}");
        }
    }
}
