//! Reads the `reasoning` of a verdict while its JSON is still coming, so that a judge can be read as it speaks.

/// Finds and decodes one string value of a JSON text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Reasoning {
    seen: String,
    /// Where decoding goes on in `seen`.
    at: usize,
    state: State,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    /// Nothing is known yet.
    #[default]
    Start,
    /// It begins as prose: no JSON.
    Prose,
    /// JSON, before the value.
    Before,
    /// Inside the value.
    Inside,
    /// After it.
    After,
}

/// What a piece of text is.
#[derive(Debug, PartialEq)]
pub(super) enum Told {
    /// Prose, to be told as it is.
    Prose(String),
    /// More of the reasoning, decoded; empty while there is none.
    Reasoning(String),
}

/// The reasoning so far in a verdict's JSON that may be cut anywhere; `None` if the text is no JSON object.
pub fn reasoning_in(text: &str) -> Option<String> {
    match Reasoning::default().push(text) {
        Told::Prose(_) => None,
        Told::Reasoning(reasoning) => Some(reasoning),
    }
}

const KEY: &str = "\"reasoning\"";

impl Reasoning {
    /// Takes more of the text.
    pub(super) fn push(&mut self, text: &str) -> Told {
        if self.state == State::Prose {
            return Told::Prose(text.to_owned());
        }
        self.seen.push_str(text);
        if self.state == State::Start {
            match self.seen.trim_start().chars().next() {
                None => return Told::Reasoning(String::new()),
                Some('{') => self.state = State::Before,
                Some(_) => {
                    self.state = State::Prose;
                    return Told::Prose(std::mem::take(&mut self.seen));
                }
            }
        }
        if self.state == State::Before
            && let Some(key) = self.seen.find(KEY)
        {
            let rest = &self.seen[key + KEY.len()..];
            let value = rest.trim_start().strip_prefix(':').map(str::trim_start);
            if let Some(value) = value.and_then(|v| v.strip_prefix('"')) {
                self.at = self.seen.len() - value.len();
                self.state = State::Inside;
            }
        }
        if self.state == State::Inside {
            Told::Reasoning(self.decode())
        } else {
            Told::Reasoning(String::new())
        }
    }

    /// Decodes what is complete: an escape that is cut waits for its rest.
    fn decode(&mut self) -> String {
        let rest = &self.seen[self.at..];
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
        // A surrogate pair that is cut in the middle does not decode; it waits too.
        let Ok(decoded) =
            serde_json::from_str::<String>(&format!("\"{}\"", text.replace('\n', "\\n")))
        else {
            return String::new();
        };
        self.at += end;
        if closed {
            self.state = State::After;
        }
        decoded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str, size: usize) -> (String, String) {
        let (mut reader, mut prose, mut reasoning) =
            (Reasoning::default(), String::new(), String::new());
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            match reader.push(&piece.iter().collect::<String>()) {
                Told::Prose(text) => prose.push_str(&text),
                Told::Reasoning(text) => reasoning.push_str(&text),
            }
        }
        (prose, reasoning)
    }

    #[test]
    fn a_reason_is_read_however_its_json_is_cut() {
        let json = r#" {"citations":[],"reasoning": "It says \"2.69\",\nand é \ud83d\ude00.","passed":true}"#;
        for size in 1..json.len() {
            assert_eq!(
                told(json, size),
                (String::new(), "It says \"2.69\",\nand é 😀.".to_owned()),
                "pieces of {size}"
            );
        }
    }

    #[test]
    fn prose_is_told_as_it_is() {
        assert_eq!(
            told("The answer {is} fine.", 3),
            ("The answer {is} fine.".to_owned(), String::new())
        );
    }
}
