//! Extracts the `reasoning` of a verdict while its JSON still arrives.
//!
//! Responsible for partial JSON. Does not validate the verdict.

/// Finds and decodes the string values of one key in a JSON text that arrives in pieces.
///
/// A verdict in parts has a reason for each part; a line break separates them.
#[derive(Debug, Default)]
pub(super) struct ReasoningParser {
    buffer: String,
    /// The byte offset in `buffer` at which decoding continues.
    position: usize,
    state: ReasoningParserState,
    /// `true` until a piece of the current value was returned.
    at_value_start: bool,
    /// `true` once a piece of any value was returned.
    has_output: bool,
}

#[derive(Debug, Default, PartialEq)]
enum ReasoningParserState {
    /// No character has arrived that decides between prose and JSON.
    #[default]
    Start,
    /// The text begins as prose, not as JSON.
    Prose,
    /// In JSON, before the next value.
    BeforeValue,
    /// Inside a value.
    InsideValue,
}

/// A piece of text and its kind.
#[derive(Debug, PartialEq)]
pub(super) enum ReasoningPiece {
    /// Prose, which is printed unchanged.
    Prose(String),
    /// More of the reasoning, decoded; may be empty.
    Reasoning(String),
}

/// Returns the reasoning so far in a verdict's JSON that may end anywhere; `None` if the text is not a JSON object.
pub fn extract_reasoning(text: &str) -> Option<String> {
    match ReasoningParser::default().push(text) {
        ReasoningPiece::Prose(_) => None,
        ReasoningPiece::Reasoning(reasoning) => Some(reasoning),
    }
}

const REASONING_KEY: &str = "\"reasoning\"";

impl ReasoningParser {
    /// Takes more of the text and returns what it adds.
    pub(super) fn push(&mut self, text: &str) -> ReasoningPiece {
        if self.state == ReasoningParserState::Prose {
            return ReasoningPiece::Prose(text.to_owned());
        }
        self.buffer.push_str(text);
        if self.state == ReasoningParserState::Start {
            match self.buffer.trim_start().chars().next() {
                // Only white space has arrived, so a later piece decides.
                None => return ReasoningPiece::Reasoning(String::new()),
                Some('{') => self.state = ReasoningParserState::BeforeValue,
                Some(_) => {
                    self.state = ReasoningParserState::Prose;
                    return ReasoningPiece::Prose(std::mem::take(&mut self.buffer));
                }
            }
        }
        let mut output = String::new();
        loop {
            if self.state == ReasoningParserState::BeforeValue && !self.find_next_value() {
                break;
            }
            let text = self.decode_available();
            if self.at_value_start && !text.is_empty() && self.has_output {
                output.push('\n');
            }
            if !text.is_empty() {
                (self.at_value_start, self.has_output) = (false, true);
            }
            output.push_str(&text);
            // The value is incomplete, so wait for more text.
            if self.state == ReasoningParserState::InsideValue {
                break;
            }
        }
        ReasoningPiece::Reasoning(output)
    }

    /// Moves to the next value. Returns `false` if no further value has begun.
    fn find_next_value(&mut self) -> bool {
        let Some(key) = self.buffer[self.position..].find(REASONING_KEY) else {
            return false;
        };
        let rest = &self.buffer[self.position + key + REASONING_KEY.len()..];
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
        let Some(value) = value.and_then(|v| v.strip_prefix('"')) else {
            // The colon or the opening quote has not arrived yet.
            return false;
        };
        self.position = self.buffer.len() - value.len();
        self.state = ReasoningParserState::InsideValue;
        self.at_value_start = true;
        true
    }

    /// Decodes the complete part of a value. An incomplete escape waits for its rest.
    fn decode_available(&mut self) -> String {
        let rest = &self.buffer[self.position..];
        let mut end = 0;
        let mut chars = rest.char_indices();
        let mut closed = false;
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    closed = true;
                    end = at;
                    break;
                }
                '\\' => {
                    let Some((_, escaped)) = chars.next() else {
                        break;
                    };
                    // Four hexadecimal digits follow `\u`.
                    let more = if escaped == 'u' { 4 } else { 0 };
                    if (0..more).any(|_| chars.next().is_none()) {
                        break;
                    }
                }
                _ => {}
            }
            end = chars.clone().next().map_or(rest.len(), |(next, _)| next);
        }
        let text = &rest[..end];
        // An incomplete surrogate pair does not decode, so it waits too. `serde_json` rejects a raw line
        // break in a string, so escape it.
        let Ok(decoded) =
            serde_json::from_str::<String>(&format!("\"{}\"", text.replace('\n', "\\n")))
        else {
            return String::new();
        };
        self.position += end;
        if closed {
            self.state = ReasoningParserState::BeforeValue;
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_in_pieces(text: &str, size: usize) -> (String, String) {
        let (mut parser, mut prose, mut reasoning) =
            (ReasoningParser::default(), String::new(), String::new());
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            match parser.push(&piece.iter().collect::<String>()) {
                ReasoningPiece::Prose(text) => prose.push_str(&text),
                ReasoningPiece::Reasoning(text) => reasoning.push_str(&text),
            }
        }
        (prose, reasoning)
    }

    #[test]
    fn reasoning_is_read_from_pieces_of_any_size() {
        let json = r#" {"citations":[],"reasoning": "It says \"2.69\",\nand é \ud83d\ude00.","passed":true}"#;
        for size in 1..json.len() {
            assert_eq!(
                parse_in_pieces(json, size),
                (String::new(), "It says \"2.69\",\nand é 😀.".to_owned()),
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn reasoning_of_parts_is_joined_by_line_breaks() {
        let json = r#"{"criteria":[{"index":1,"reasoning":"A \"b\".","passed":true},{"index":2,"reasoning":"","passed":true},
            {"index":3,"reasoning":"C.","passed":false}],"reasoning":"One is not met."}"#;
        for size in 1..json.len() {
            let expected = "A \"b\".\nC.\nOne is not met.".to_owned();
            assert_eq!(
                parse_in_pieces(json, size),
                (String::new(), expected),
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn prose_is_returned_unchanged() {
        assert_eq!(
            parse_in_pieces("The answer {is} fine.", 3),
            ("The answer {is} fine.".to_owned(), String::new())
        );
    }
}
