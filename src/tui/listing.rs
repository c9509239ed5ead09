//! Lists the transcripts of a file that no rubric applies to, page by page.
//!
//! Responsible for the listing. It parses the records of one page for ids and digests and only counts the others. So
//! a file with a million records opens at once. A file with its own directory (an Inspect log) is listed from that
//! directory, without reading transcripts. Blocks, so it runs on a thread of its own. Does not keep transcripts.

use std::path::Path;

use super::reads::describe_unread;
use crate::model::{Digest, TranscriptRef};
use crate::transcript::{
    ReadCounts, TranscriptError, TranscriptFile, TranscriptIndexEntry, TranscriptRecord,
};

/// The number of records on a page.
pub(crate) const PAGE_RECORDS: u64 = 2000;
/// The number of records on a page for a file with its own directory, which is read as a whole for each page anyway.
const DIRECTORY_PAGE_RECORDS: u64 = 50_000;
/// The number of records in an update; small, so that the first rows appear before the page is complete.
const BATCH_RECORDS: usize = 200;
/// The number of counted records between two progress updates.
const PROGRESS_INTERVAL: u64 = 100_000;

/// The records found since the previous update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListingUpdate {
    /// The transcripts in file order. Ids are as written or made from the record's number, so they may repeat.
    pub(crate) refs: Vec<TranscriptRef>,
    /// The number of records that are not transcripts.
    pub(crate) bad: u64,
    /// The reason of the first bad record.
    pub(crate) why: Option<String>,
    /// The number of records of the file so far.
    pub(crate) counted: u64,
    /// True if the page is complete. The screen requests the next page when the user comes near its end.
    pub(crate) page_complete: bool,
    /// True if all records are counted.
    pub(crate) fully_counted: bool,
    /// A sentence on the parts that the reader skipped, once the whole file is read.
    pub(crate) not_understood: Option<String>,
    /// The error if the file can't be read, or can't be read further.
    pub(crate) problem: Option<String>,
    /// True if the file only needs a field mapping, which a workspace around it would provide.
    pub(crate) mappable: bool,
}

/// Lists one page of a file's transcripts after the first `after` records, then counts the others. Stops when `tell`
/// returns false.
pub(crate) fn list_transcripts(
    file: &Path,
    after: u64,
    send_update: &mut dyn FnMut(ListingUpdate) -> bool,
) {
    let mut found = ListingUpdate::default();
    match list_by_reading(file, after, &mut found, send_update) {
        // The file ended before or after the page, so both parts are complete.
        Ok(ListingFlow::Continue) => {
            found.page_complete = true;
            found.fully_counted = true;
        }
        // The receiver is gone, so no one reads a last update.
        Ok(ListingFlow::Stopped) => return,
        Err(why) => {
            found.page_complete = true;
            found.fully_counted = true;
            found.problem = Some(why);
        }
    }
    send_update(found);
}

enum ListingFlow {
    Continue,
    Stopped,
}

fn list_by_reading(
    path: &Path,
    after: u64,
    found: &mut ListingUpdate,
    send_update: &mut dyn FnMut(ListingUpdate) -> bool,
) -> Result<ListingFlow, String> {
    // A relative path would change its meaning if the program changed its folder.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The error type is lost below, so the reason for offering a workspace is kept here.
    let mut file = TranscriptFile::open(&path).map_err(|error| {
        found.mappable = matches!(error, TranscriptError::Unmapped { .. });
        error.to_string()
    })?;
    // A format with a directory, such as an Inspect log, lists its records without parsing them.
    if let Some(entries) = file.read_index().map_err(|error| error.to_string())? {
        return Ok(list_by_directory(
            &file,
            &entries,
            after,
            found,
            send_update,
        ));
    }
    let (mut reported, mut transcripts) = (0, 0);
    while let Some(block) = file.next_block().map_err(|error| error.to_string())? {
        for (record, bytes) in block.records() {
            let span = record.span;
            transcripts += u64::from(record.fault.is_none());
            // A record is parsed only on this page; other pages need only its number.
            found.counted = span.number;
            if span.number > after && span.number <= after.saturating_add(PAGE_RECORDS) {
                add_record(found, &file, record, bytes);
            }
            let page = span.number == after.saturating_add(PAGE_RECORDS);
            // An update is sent at the page's end, for a full batch, and as progress while only counting.
            if page
                || found.refs.len() == BATCH_RECORDS
                || span.number - reported >= PROGRESS_INTERVAL
            {
                reported = span.number;
                found.page_complete = span.number >= after.saturating_add(PAGE_RECORDS);
                // Each update contains only new records, so the next one starts with the counters.
                let next = ListingUpdate {
                    counted: found.counted,
                    page_complete: found.page_complete,
                    ..ListingUpdate::default()
                };
                if !send_update(std::mem::replace(found, next)) {
                    return Ok(ListingFlow::Stopped);
                }
            }
        }
    }
    // The records of other pages are not parsed, so only the reader's own counts are known.
    let counts = ReadCounts::of_transcripts(transcripts);
    found.not_understood = describe_unread(&counts, file.tally());
    Ok(ListingFlow::Continue)
}

/// Lists one page from the file's own directory, which also gives the total number without reading a transcript.
fn list_by_directory(
    file: &TranscriptFile,
    entries: &[TranscriptIndexEntry],
    after: u64,
    found: &mut ListingUpdate,
    send_update: &mut dyn FnMut(ListingUpdate) -> bool,
) -> ListingFlow {
    found.counted = entries.len() as u64;
    // On a 32-bit system the number may not fit; then no entry is left.
    let after = usize::try_from(after).unwrap_or(usize::MAX);
    for (entry, _) in entries.iter().skip(after).zip(0..DIRECTORY_PAGE_RECORDS) {
        found.refs.push(TranscriptRef {
            id: entry.id.clone(),
            path: file.path().to_owned(),
            offset: entry.span.offset,
            len: entry.span.len,
            part: entry.span.part,
            // The digest would require to read the transcript, which this function avoids.
            digest: Digest::unread(),
        });
        if found.refs.len() == BATCH_RECORDS {
            let next = ListingUpdate {
                counted: found.counted,
                ..ListingUpdate::default()
            };
            if !send_update(std::mem::replace(found, next)) {
                return ListingFlow::Stopped;
            }
        }
    }
    ListingFlow::Continue
}

fn add_record(
    found: &mut ListingUpdate,
    file: &TranscriptFile,
    record: &TranscriptRecord,
    bytes: &[u8],
) {
    let span = record.span;
    match record.parse(bytes, &file.default_id(span.number)) {
        Ok(transcript) => found.refs.push(TranscriptRef {
            id: transcript.id.to_string(),
            path: file.path().to_owned(),
            offset: span.offset,
            len: span.len,
            part: span.part,
            digest: Digest::hash_bytes(bytes),
        }),
        Err(bad) => {
            found.bad += 1;
            // Only the first reason is kept: one bad record often repeats a million times.
            let why = format!("record {}: {}", bad.number, bad.why);
            found.why.get_or_insert(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn listed(file: &Path, after: u64) -> Vec<ListingUpdate> {
        let mut all = Vec::new();
        list_transcripts(file, after, &mut |listed| {
            all.push(listed);
            true
        });
        all
    }

    fn ids(listed: &[ListingUpdate]) -> Vec<&str> {
        let refs = listed.iter().flat_map(|listed| &listed.refs);
        refs.map(|found| found.id.as_str()).collect()
    }

    #[test]
    fn large_file_is_counted_and_listed_by_page() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("many.jsonl");
        let mut out = std::io::BufWriter::new(std::fs::File::create(&path).expect("a file"));
        for _ in 0..1_000_000 {
            out.write_all(b"{\"messages\":[]}\n").expect("written");
        }
        out.flush().expect("written");
        let first = listed(&path, 0);
        assert_eq!(first[0].refs.len(), BATCH_RECORDS, "rows come at once");
        assert_eq!(
            ids(&first).len() as u64,
            PAGE_RECORDS,
            "and no more than a page"
        );
        let last = first.last().expect("an end");
        assert_eq!((last.counted, last.fully_counted), (1_000_000, true));
        let page_at = first.iter().position(|listed| listed.page_complete);
        assert_eq!(
            page_at,
            Some(usize::try_from(PAGE_RECORDS).expect("small") / BATCH_RECORDS - 1)
        );
        let second = listed(&path, PAGE_RECORDS);
        assert_eq!(ids(&second)[0], format!("many:{}", PAGE_RECORDS + 1));
        assert_eq!(ids(&listed(&path, 999_999)), ["many:1000000"]);
    }

    #[test]
    fn bad_records_are_counted_with_first_reason() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("t.jsonl");
        let text = "{\"id\":\"a\",\"messages\":[]}\n{\"messages\":3}\n{\"messages\":[]}\n";
        std::fs::write(&path, text).expect("written");
        let all = listed(&path, 0);
        assert_eq!(ids(&all), ["a", "t:3"]);
        assert_eq!((all[0].bad, all[0].counted), (1, 3));
        assert!(
            all[0]
                .why
                .as_deref()
                .is_some_and(|why| why.starts_with("record 2: "))
        );
    }

    #[test]
    fn file_with_directory_is_listed_without_reading() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("three.eval");
        let log = include_bytes!("../../tests/fixtures/inspect/three.eval");
        std::fs::write(&path, log).expect("written");
        let all = listed(&path, 0);
        assert_eq!(ids(&all), ["one", "two", "three"]);
        let last = all.last().expect("an end");
        assert_eq!(
            (last.counted, last.page_complete, last.fully_counted),
            (3, true, true)
        );
        assert_eq!(ids(&listed(&path, 2)), ["three"], "a further page");
        let refs: Vec<_> = all.iter().flat_map(|listed| &listed.refs).collect();
        assert!(refs.iter().all(|found| found.digest.is_unread()));
        let shown = crate::tui::reads::read_document(refs[2], None, None).expect("read now");
        assert_eq!((&*shown.id, shown.first_pieces.len()), ("three", 2));
        let why = crate::tui::reads::read_document(refs[1], None, None).expect_err("torn");
        assert!(why.as_str().contains("two_epoch_1"), "{why}");
    }

    #[test]
    fn file_without_transcripts_reports_problem() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("empty.jsonl");
        std::fs::write(&path, "").expect("written");
        let all = listed(&path, 0);
        let problem = all[0].problem.as_deref().expect("a sentence");
        assert!(problem.ends_with("it is empty"), "{problem}");
        assert_eq!((all.len(), all[0].fully_counted), (1, true));
    }
}
