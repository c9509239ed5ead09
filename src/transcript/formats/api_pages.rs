//! Pages of lists that OpenAI's API returns: `{object: list, data, has_more}`.
//!
//! Responsible for a page whose elements are records of their own, and for the report of pages that are missing. A file
//! may contain several pages. Does not interpret the elements. A page that is one conversation is in `item_list.rs`.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::reader::{
    PerRecordReader, RecordCx, RecordParser, TranscriptReader, TranscriptSink,
};
use super::super::source::SourceFile;
use super::record_readers::{FunctionParser, ParseRecord, elements_walker};

/// The number of bytes at the end of a file that contain the keys after the list.
const TAIL_SIZE: usize = 4096;

/// Returns true if the first record is a page of stored chat completions.
pub(super) fn is_stored_completions(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    record["object"] == "list" && record["data"][0]["object"] == "chat.completion"
}

/// Returns a reader of the elements at one of these paths, as `open_elements` does. It also reports if the API has
/// further pages after the last one of the file.
pub(super) fn open_pages(
    source: &SourceFile,
    preview: &FilePreview<'_>,
    paths: &[&[&str]],
    parse: ParseRecord,
) -> Result<Box<dyn TranscriptReader>, TranscriptError> {
    let walk = elements_walker(source, preview, paths)?;
    let parser = PageParser {
        parser: FunctionParser(parse),
        lacks_pages: AtomicBool::new(states_further_pages(source)?),
    };
    Ok(Box::new(PerRecordReader::new(walk, parser)))
}

/// Returns true if the last page of a file states that the API has further ones.
fn states_further_pages(source: &SourceFile) -> Result<bool, TranscriptError> {
    let start = source.size().saturating_sub(TAIL_SIZE as u64);
    let mut tail = Vec::new();
    source.fill_buffer(start, &mut tail, TAIL_SIZE)?;
    let tail = tail.trim_ascii_end();
    // The pages may be the elements of a list.
    let tail = tail.strip_suffix(b"]").unwrap_or(tail);
    // The keys after the elements have no lists.
    let after_elements = tail.rsplit(|byte| *byte == b']').next();
    let mut keys = after_elements.unwrap_or_default().to_vec();
    keys.retain(|byte| !byte.is_ascii_whitespace());
    Ok(memchr::memmem::find(&keys, br#""has_more":true"#).is_some())
}

/// The parser of the elements of pages.
#[derive(Debug)]
struct PageParser {
    parser: FunctionParser,
    /// True until the first element reports that pages are missing.
    lacks_pages: AtomicBool,
}

impl RecordParser for PageParser {
    fn parse_record(
        &self,
        record: &str,
        cx: RecordCx<'_>,
        out: &mut TranscriptSink,
    ) -> Result<(), String> {
        if self.lacks_pages.swap(false, Ordering::Relaxed) {
            out.count_missing("further pages of the list");
        }
        self.parser.parse_record(record, cx, out)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};

    fn item(id: &str) -> Value {
        json!({"object": "eval.run.output_item", "id": id, "datasource_item": {"tags": []}, "results": [],
            "sample": {"input": [{"role": "user", "content": "\"has_more\": true]"}],
                "output": [{"role": "assistant", "content": id}]}})
    }

    fn missing(file: &str) -> (usize, Vec<String>) {
        let (all, tally) = read(file.as_bytes());
        (all.len(), tally.missing.into_keys().collect())
    }

    #[test]
    fn missing_page_of_output_items_is_reported() {
        let page = |id: &str, more: bool| json!({"object": "list", "data": [item(id)], "first_id": id, "has_more": more});
        let whole = page("a", false).to_string();
        assert_eq!(missing(&whole), (1, Vec::new()));
        let further = vec!["further pages of the list".to_owned()];
        let partial = page("a", true);
        assert_eq!(missing(&partial.to_string()), (1, further.clone()));
        let indented = serde_json::to_string_pretty(&partial).expect("JSON");
        assert_eq!(missing(&indented), (1, further.clone()));
        let both = format!("{partial}\n{}\n", page("b", false));
        assert_eq!(missing(&both), (2, Vec::new()));
        let listed = json!([page("a", true), page("b", true)]).to_string();
        assert_eq!(missing(&listed), (2, further));
    }

    #[test]
    fn stored_completions_are_read() {
        let page = json!({"object": "list", "has_more": true, "data": [
            {"object": "chat.completion", "id": "c1", "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "One"}}]},
            {"object": "chat.completion", "id": "c2", "model": "m",
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Two"}}]},
        ]});
        let (all, _) = read(page.to_string().as_bytes());
        assert_eq!(lines_of_each(&all), [["assistant One"], ["assistant Two"]]);
    }
}
