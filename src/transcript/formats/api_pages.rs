//! Pages of lists that APIs return, such as OpenAI's `{object: list, data, has_more}`.
//!
//! Responsible for the report of pages that are missing after the last one of a file. A file may contain several pages.
//! Does not read the elements. A page that is one conversation is in `item_list.rs`.

use serde_json::Value;

use super::super::TranscriptError;
use super::super::detect::FilePreview;
use super::super::source::{BLOCK_SIZE, SourceFile};

/// The number of bytes at the end of a file that contain the keys after the list.
const TAIL_SIZE: usize = 4096;

/// The part that a file lacks if its last page states that there are further ones.
const FURTHER_PAGES: &str = "further pages of the list";

/// The part that a file may lack: some APIs give each page a cursor, also the last one.
const MAYBE_FURTHER_PAGES: &str =
    "perhaps further pages of the list (its last page has a `cursor`)";

/// Returns true if the first record is a page of stored chat completions.
pub(super) fn is_stored_completions(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    record["object"] == "list" && record["data"][0]["object"] == "chat.completion"
}

/// Returns what a file of pages lacks; `None` if its last page does not state that there are further ones.
pub(super) fn describe_missing_pages(
    source: &SourceFile,
    preview: &FilePreview<'_>,
) -> Result<Option<&'static str>, TranscriptError> {
    if let Some(what) = find_missing_pages(&read_last_keys(source)?) {
        return Ok(Some(what));
    }
    // The keys before the list belong to the last page only if the file has no other one.
    let is_one_page = preview.records.len() == 1 && source.size() < BLOCK_SIZE as u64;
    Ok(if is_one_page {
        find_missing_pages(preview.first_outline())
    } else {
        None
    })
}

/// Returns the keys after the list of the last page of a file, as an object; null if they are not readable.
fn read_last_keys(source: &SourceFile) -> Result<Value, TranscriptError> {
    let start = source.size().saturating_sub(TAIL_SIZE as u64);
    let mut tail = Vec::new();
    source.fill_buffer(start, &mut tail, TAIL_SIZE)?;
    let tail = tail.trim_ascii_end();
    // The pages may be the elements of a list.
    let tail = tail.strip_suffix(b"]").unwrap_or(tail);
    // The keys after the elements have no lists.
    let after_elements = tail.rsplit(|byte| *byte == b']').next();
    let keys = after_elements.unwrap_or_default().trim_ascii_start();
    let keys = keys.strip_prefix(b",").unwrap_or(keys);
    let object = [&b"{"[..], keys].concat();
    // The page may be inside another object, so text after it is allowed.
    let mut values = serde_json::Deserializer::from_slice(&object).into_iter::<Value>();
    Ok(values.next().and_then(Result::ok).unwrap_or_default())
}

/// Returns what is missing after a page, by the keys next to its list.
pub(crate) fn find_missing_pages(page: &Value) -> Option<&'static str> {
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    // Langfuse has the numbers in `meta`, and LiteLLM has them next to the list.
    let is_before_last = |numbers: &Value| {
        let last = &numbers["totalPages"];
        let last = last.as_u64().or_else(|| numbers["total_pages"].as_u64());
        let number = numbers["page"].as_u64();
        number.zip(last).is_some_and(|(number, last)| number < last)
    };
    // Phoenix, MLflow, Langfuse and LangSmith leave the cursor out of the last page.
    let cursors = [
        &page["next_cursor"],
        &page["next_page_token"],
        &page["meta"]["cursor"],
        &page["cursors"]["next"],
    ];
    if page["has_more"] == true
        || is_before_last(page)
        || is_before_last(&page["meta"])
        || cursors.into_iter().any(has_text)
        || is_first_of_several(page)
    {
        return Some(FURTHER_PAGES);
    }
    // Braintrust leaves the cursor out of a page without elements.
    has_text(&page["cursor"]).then_some(MAYBE_FURTHER_PAGES)
}

/// Returns true for the first page of Opik with fewer elements than all pages have. The last page can be shorter than the
/// others, so the numbers of later pages do not show which one is the last.
fn is_first_of_several(page: &Value) -> bool {
    let number = |key: &str| page[key].as_u64();
    match (number("page"), number("size"), number("total")) {
        (Some(1), Some(size), Some(total)) => size < total,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};
    use super::super::testing::fixture;

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
    fn missing_pages_of_other_apis_are_reported() {
        let further = "further pages of the list";
        let maybe = "perhaps further pages of the list (its last page has a `cursor`)";
        let cases = [
            (
                "langfuse_api.json",
                "data",
                json!({"meta": {"page": 1, "limit": 1, "totalItems": 3, "totalPages": 3}}),
                further,
            ),
            (
                "spans_phoenix.jsonl",
                "data",
                json!({"next_cursor": "c2"}),
                further,
            ),
            (
                "langsmith.jsonl",
                "runs",
                json!({"cursors": {"next": "c2", "prev": null}}),
                further,
            ),
            ("braintrust.jsonl", "events", json!({"cursor": "c2"}), maybe),
            (
                "opik.jsonl",
                "content",
                json!({"page": 1, "size": 1, "total": 3, "sortableBy": ["id"]}),
                further,
            ),
        ];
        for (sample, list, keys, what) in cases {
            let text = std::fs::read_to_string(fixture("foreign").join(sample)).expect("a sample");
            let page: Value = serde_json::from_str(&text).unwrap_or_default();
            let rows: Vec<Value> = if let Some(rows) = page[list].as_array() {
                rows.clone()
            } else {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                lines
                    .map(|line| serde_json::from_str(line).expect("a row"))
                    // The first row of Opik has its trace in `trace`, and a page has the traces themselves.
                    .filter(|row: &Value| row["trace"].is_null())
                    .collect()
            };
            // The last page of each API has null, the same number, or no key at all.
            let last = json!({"meta": {"page": 3, "totalPages": 3}, "next_cursor": null,
                "cursors": {"next": null}, "page": 1, "size": 3, "total": 3, "cursor": null});
            for (keys, expected) in [(&keys, vec![what.to_owned()]), (&last, Vec::new())] {
                let mut page = keys.clone();
                page[list] = json!(rows);
                let (count, found) = missing(&page.to_string());
                assert!(count > 0, "{sample}");
                let found: Vec<_> = found
                    .into_iter()
                    .filter(|what| what.contains("pages of the list"))
                    .collect();
                assert_eq!(found, expected, "{sample}");
            }
        }
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
