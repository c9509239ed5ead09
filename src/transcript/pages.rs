//! The search for the lists of a file with several pages, each an object with a list at the same path.
//!
//! Responsible for what comes between two lists: the rest of a page, and the beginning of the next one. It takes the
//! file in pieces and keeps none of them. Does not check the grammar of JSON.

use super::json_path::{JsonPathSearch, SearchProgress};
use super::scan::JsonValueScanner;

/// The search for the list of the next page, fed in pieces.
#[derive(Debug)]
pub(super) struct PageSearch {
    /// `None` if only the first page may be read.
    search: Option<JsonPathSearch>,
    /// The number of objects around a list.
    depth: usize,
    place: PagePlace,
    /// True if text since the last object was reported.
    has_stray_text: bool,
}

/// The place of a search in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PagePlace {
    /// In the list of a page.
    List,
    /// In a page, after its list.
    Rest(JsonValueScanner),
    /// Between two objects.
    Between,
    /// In an object, before its list.
    Object(JsonValueScanner),
}

/// The result of a step of the search.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PageStep {
    /// A list begins after this number of bytes, which include its bracket.
    List(usize),
    /// The byte before this number of bytes is the last one of an object without the list, or other text.
    Stray(usize),
    /// The search needs more bytes.
    More,
}

impl PageSearch {
    /// Returns a search that begins in the list of a page. `path` has at least one key.
    pub(super) fn new(path: &[&str]) -> Self {
        Self {
            search: Some(JsonPathSearch::new(path)),
            ..Self::first_only(path.len())
        }
    }

    /// Returns a search that begins in the list of a page and finds no other list. `depth` objects are around the list.
    pub(super) fn first_only(depth: usize) -> Self {
        Self {
            search: None,
            depth,
            place: PagePlace::List,
            has_stray_text: false,
        }
    }

    /// Returns true if the search is not in a list.
    pub(super) fn is_between_lists(&self) -> bool {
        self.place != PagePlace::List
    }

    /// Returns true if the file may not end here, because a list follows or is not complete.
    pub(super) fn needs_more(&self) -> bool {
        matches!(self.place, PagePlace::List | PagePlace::Object(_))
    }

    /// Ends the list of a page.
    pub(super) fn end_list(&mut self) {
        self.place = if self.depth == 0 {
            PagePlace::Between
        } else {
            PagePlace::Rest(JsonValueScanner::inside(self.depth))
        };
    }

    /// Reads `bytes` up to the next list or the next text outside of pages.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> PageStep {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            match &mut self.place {
                PagePlace::List => return PageStep::List(at),
                PagePlace::Rest(scan) => {
                    let Some(len) = scan.feed(&bytes[at..]) else {
                        return PageStep::More;
                    };
                    at += len;
                    self.place = PagePlace::Between;
                }
                PagePlace::Between => match byte {
                    b'{' => {
                        if let Some(search) = &mut self.search {
                            search.restart();
                        }
                        self.has_stray_text = false;
                        self.place = PagePlace::Object(JsonValueScanner::default());
                    }
                    // Pages may be the elements of an array, and concatenated files may have a byte order mark.
                    b',' | b'[' | b']' | 0xef | 0xbb | 0xbf => at += 1,
                    byte if byte.is_ascii_whitespace() => at += 1,
                    _ => {
                        at += 1;
                        // One report is enough for several words.
                        if !std::mem::replace(&mut self.has_stray_text, true) {
                            return PageStep::Stray(at);
                        }
                    }
                },
                PagePlace::Object(scan) => {
                    if let Some(search) = &mut self.search
                        && let SearchProgress::At(found) = search.feed(&bytes[at..], b'[')
                    {
                        self.place = PagePlace::List;
                        return PageStep::List(at + found + 1);
                    }
                    // The search does not tell where an object without a list to read ends.
                    let Some(len) = scan.feed(&bytes[at..]) else {
                        return PageStep::More;
                    };
                    self.place = PagePlace::Between;
                    return PageStep::Stray(at + len);
                }
            }
        }
        PageStep::More
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps of a search after the end of the first list, with the text before each.
    fn steps(text: &str, piece: usize) -> Vec<String> {
        let mut search = PageSearch::new(&["a", "b"]);
        search.end_list();
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let end = bytes.len().min(at + piece);
            let (name, len) = match search.feed(&bytes[at..end]) {
                PageStep::List(len) => ("list", len),
                PageStep::Stray(len) => ("stray", len),
                PageStep::More => {
                    at = end;
                    continue;
                }
            };
            at += len;
            found.push(format!("{name} {at}"));
            if name == "list" {
                search.end_list();
            }
        }
        found
    }

    #[test]
    fn next_list_is_found_in_pieces_of_any_size() {
        for (text, expected) in [
            ("}}", vec![]),
            (r#","c":[{"b":[]}]},"d":"}}{"}"#, vec![]),
            (r#"}}{"a":{"b":["#, vec!["list 13"]),
            (r#"}},{"x":["{"],"a":{"b":[}}]"#, vec!["list 24"]),
            (
                "}}\n{\"a\":1}\n{\"a\":{\"b\":[}}",
                vec!["stray 10", "list 22"],
            ),
            ("}} two words\n{}", vec!["stray 4", "stray 15"]),
        ] {
            for piece in 1..=text.len() {
                assert_eq!(steps(text, piece), expected, "{text} by {piece}");
            }
        }
    }
}
