//! The chat history of Aider (`.aider.chat.history.md`): Markdown with the sessions of a repository.
//!
//! | in the file | becomes |
//! |---|---|
//! | `# aider chat started at TIME` | the beginning of a transcript |
//! | lines of a block that begin with `####` | a message of the user, also a command such as `/add` |
//! | text after a blank line | an answer; a thought in tags is reasoning |
//! | lines that begin with `>` before the first message | the metadata `startup`, `model` and `version` |
//! | lines that begin with `>` after it | a system message, and the tokens and the cost of the answer |
//! | a session without a message of the user | counted |
//!
//! Aider ends each line of a user and of its own with two spaces. So a heading or a quote in an answer is neither. Some
//! editors remove these spaces: then the beginning of a line alone decides.
//!
//! Does not read `.aider.llm.history`.

use super::super::detect::FilePreview;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink, record_text};
use super::record_readers::open_sessions;
use super::transcript_builder::{TranscriptBuilder, reasoning_part, text_part};
use crate::model::{MessageRole, TranscriptPart};

/// The text before the time at which a session began.
const HEADER: &str = "# aider chat started at ";

/// The end of each line of a user or of Aider.
const LINE_END: &str = "  ";

/// The beginnings of the tags around a thought.
const THOUGHT_TAGS: [&str; 2] = ["thinking-content-", "think>"];

/// Returns true if the file begins with a session.
pub(super) fn is_history(preview: &FilePreview<'_>) -> bool {
    let first = preview.records.first();
    first.is_some_and(|first| is_header(first.bytes))
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_sessions(preview, is_header, parse_session)
}

/// Returns true if a line begins a session. A time of digits must follow, so that an answer can quote the words.
fn is_header(line: &[u8]) -> bool {
    let time = line.strip_prefix(HEADER.as_bytes()).map(<[u8]>::trim_ascii);
    time.is_some_and(|time| {
        let is_mark = |byte: &u8| byte.is_ascii_digit() || b"-: ".contains(byte);
        time.len() == 19 && time.iter().all(is_mark)
    })
}

fn parse_session(_lines: &[&[u8]], cx: RecordCx<'_>, out: &mut TranscriptSink) {
    // Blank lines and white space have a meaning in Markdown, so the text comes from the file.
    let bytes = match cx.source.read_span(cx.span) {
        Ok(bytes) => bytes,
        Err(why) => return out.push_fault(why.to_string()),
    };
    let text = match record_text(&bytes) {
        Ok(text) => text,
        Err(why) => return out.push_fault(why),
    };
    let mut session = AiderSession {
        built: TranscriptBuilder::new("aider", None),
        has_line_ends: text.lines().any(ends_line),
        block: Block::default(),
        startup: Vec::new(),
        model: None,
    };
    for line in text.lines() {
        session.add_line(line);
    }
    session.end_block();
    if !session.built.has_messages() {
        return out.count_unknown("a session without messages");
    }
    if !session.startup.is_empty() {
        let startup = session.startup.join("\n");
        session.built.meta.set("startup", startup);
    }
    session.built.finish(out);
}

/// Returns true if a line is one of a user or of Aider that ends as Aider writes it.
fn ends_line(line: &str) -> bool {
    line.starts_with(['#', '>']) && line.ends_with(LINE_END)
}

/// The writer of consecutive lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Writer {
    User,
    Model,
    Aider,
}

/// Consecutive lines of one writer.
#[derive(Debug, Default)]
struct Block {
    writer: Option<Writer>,
    lines: Vec<String>,
    /// True if the last line was blank.
    is_after_blank: bool,
    /// True if a text of Aider has further lines.
    is_open: bool,
}

/// A session under construction.
#[derive(Debug)]
struct AiderSession {
    built: TranscriptBuilder,
    /// True if the lines of users and of Aider end with two spaces.
    has_line_ends: bool,
    block: Block,
    /// The lines of Aider before the first message.
    startup: Vec<String>,
    model: Option<String>,
}

impl AiderSession {
    fn add_line(&mut self, line: &str) {
        if is_header(line.as_bytes()) {
            let time = line[HEADER.len()..].trim();
            self.built.meta.set("timestamp", time);
            return;
        }
        if line.trim().is_empty() {
            self.block.is_after_blank = true;
            if self.block.writer == Some(Writer::Model) || self.block.is_open {
                self.block.lines.push(String::new());
            }
            return;
        }
        let writer = self.writer_of(line);
        let is_next_input = writer == Writer::User && self.block.is_after_blank;
        if self.block.writer != Some(writer) || is_next_input {
            self.end_block();
            self.block.writer = Some(writer);
        }
        let ends = line.ends_with(LINE_END) || !self.has_line_ends;
        let text = match writer {
            Writer::User => strip_mark(line, "####"),
            // The further lines of a text have no mark, so theirs is a part of the text.
            Writer::Aider if ends || !self.block.is_open => strip_mark(line, ">"),
            Writer::Aider => line.trim_end(),
            Writer::Model => line,
        };
        self.block.lines.push(text.to_owned());
        self.block.is_after_blank = false;
        self.block.is_open = writer == Writer::Aider && !ends;
    }

    fn writer_of(&self, line: &str) -> Writer {
        let is_whole = !self.has_line_ends || line.ends_with(LINE_END);
        if (line.starts_with("#### ") || line.trim_end() == "####") && is_whole {
            return Writer::User;
        }
        let is_quote = line.starts_with("> ") || line.trim_end() == ">";
        if is_quote && is_whole {
            return Writer::Aider;
        }
        let before = self.block.writer;
        // A text of Aider may have several lines: only the first one begins with `>`, and the last one ends with spaces.
        // A blank line comes before an answer.
        let continues = before == Some(Writer::Aider)
            && (self.block.is_open || (self.has_line_ends && !self.block.is_after_blank));
        let begins = is_quote && before == Some(Writer::User) && !self.block.is_after_blank;
        // A model cannot answer before a user wrote.
        let is_startup = !self.built.has_messages() && before != Some(Writer::User);
        if continues || begins || (is_startup && before != Some(Writer::Model)) {
            return Writer::Aider;
        }
        Writer::Model
    }

    /// Adds the lines so far as a message, or as metadata.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        match block.writer {
            None => {}
            Some(Writer::User) => {
                let text = block.lines.join("\n");
                self.built.push_text(MessageRole::User, text.trim_end());
            }
            Some(Writer::Model) => self.add_answer(block.lines.join("\n").trim()),
            Some(Writer::Aider) => self.add_notices(block.lines),
        }
    }

    fn add_answer(&mut self, text: &str) {
        let mut parts: Vec<TranscriptPart<'static>> = Vec::new();
        let answer = match split_thought(text) {
            Some((thought, answer)) => {
                parts.push(reasoning_part(thought));
                answer
            }
            None => text,
        };
        if !answer.is_empty() {
            parts.push(text_part(answer));
        }
        self.built.push(MessageRole::Assistant, parts);
        let model = self.model.clone();
        if let Some(meta) = self.built.last_meta(&MessageRole::Assistant) {
            meta.set("model", model);
        }
    }

    /// Adds what Aider printed. The report of tokens and cost belongs to the last answer.
    fn add_notices(&mut self, lines: Vec<String>) {
        let is_startup = !self.built.has_messages();
        let mut notices = Vec::new();
        for line in lines {
            self.read_model(&line, is_startup);
            let is_report = line.starts_with("Tokens: ") || line.starts_with("Cost: $");
            if !(is_report && self.add_report(&line)) {
                notices.push(line);
            }
        }
        if is_startup {
            self.startup.extend(notices);
            return;
        }
        let text = notices.join("\n");
        if !text.trim().is_empty() {
            self.built.push_text(MessageRole::System, text.trim());
        }
    }

    /// Reads the names of the model and of Aider's version.
    fn read_model(&mut self, line: &str, is_startup: bool) {
        let model = line
            .strip_prefix("Main model: ")
            .or_else(|| line.strip_prefix("Model: "))
            .or_else(|| line.strip_prefix("Models: "));
        if let Some(model) = model {
            let name = model.split(" with ").next().unwrap_or(model);
            self.model = Some(name.to_owned());
            if !self.built.meta.has("model") {
                self.built.meta.set("model", name);
            }
        }
        if let Some(version) = line.strip_prefix("Aider v").filter(|_| is_startup) {
            self.built.meta.set("version", version);
        }
    }

    /// Adds the tokens and the cost of the last answer. Returns false if there was none.
    fn add_report(&mut self, line: &str) -> bool {
        // Numbers such as `3.2k` are rounded, so they are no counts.
        let (tokens, cost) = match line.split_once("Cost: ") {
            Some((tokens, cost)) => (tokens, cost),
            None => (line, ""),
        };
        let session = find_dollars(cost, &["session"]);
        let message = find_dollars(cost, &["message", "request"]);
        let Some(meta) = self.built.last_meta(&MessageRole::Assistant) else {
            return false;
        };
        if let Some(tokens) = tokens.strip_prefix("Tokens: ") {
            meta.set("tokens", tokens.trim().trim_end_matches('.'));
        }
        meta.set("cost_usd", message);
        // The program adds up the cost of a session.
        self.built.meta.set("cost_usd", session);
        true
    }
}

/// Returns a line without the mark at its beginning and without the spaces at its end.
fn strip_mark<'l>(line: &'l str, mark: &str) -> &'l str {
    let line = line.trim_end();
    let text = line.strip_prefix(mark).unwrap_or(line);
    text.strip_prefix(' ').unwrap_or(text)
}

/// Returns the amount of dollars before one of these words.
fn find_dollars(text: &str, words: &[&str]) -> Option<f64> {
    let mut amounts = text.split('$').skip(1);
    amounts.find_map(|amount| {
        let (number, rest) = amount.split_once(' ')?;
        let is_wanted = words.iter().any(|word| rest.starts_with(word));
        is_wanted.then(|| number.parse().ok())?
    })
}

/// Splits an answer that begins with a thought in tags.
fn split_thought(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('<')?;
    if !THOUGHT_TAGS.iter().any(|tag| inner.starts_with(tag)) {
        return None;
    }
    let (tag, rest) = inner.split_once('>')?;
    let (thought, rest) = rest.split_once(&format!("</{tag}>"))?;
    Some((thought.trim(), rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::read_back::{message_lines, read};

    const START: &str = "\n# aider chat started at 2025-05-04 17:02:36\n\n";

    /// Returns the messages of a history with one session.
    fn lines_of(session: &str) -> Vec<String> {
        let (all, _) = read(format!("{START}{session}").as_bytes());
        assert_eq!(all.len(), 1, "{session}");
        message_lines(all[0].as_ref().expect("a transcript"))
    }

    #[test]
    fn headings_quotes_and_indentation_of_an_answer_stay() {
        let answer = "Two steps.\n\n#### Step 1\n\n> As you wrote.\n\n```python\nif x:\n    y()\n\n    z()\n```";
        let session = format!(
            "#### Fix it  \n####   \n####   now  \n\n{answer}\n\n> Applied edit to a.py  \n"
        );
        assert_eq!(
            lines_of(&session),
            [
                "user Fix it\n\n  now".to_owned(),
                format!("assistant {answer}"),
                "system Applied edit to a.py".to_owned(),
            ]
        );
    }

    #[test]
    fn text_of_aider_with_several_lines_is_not_an_answer() {
        let startup =
            "> Aider v0.86.1  \n> Here are summaries.\n\na.py:\n│        \n│def f():  \n\n";
        let session = "#### Go  \n> Install playwright:\n\npip install it\n\nSee the page.  \n> Install? y  \n\n\
                       Done.\n\n> Applied edit to a.py  \n> Commit 1 feat: x\n\nbody  \n";
        assert_eq!(
            lines_of(&format!("{startup}{session}")),
            [
                "user Go",
                "system Install playwright:\n\npip install it\n\nSee the page.\nInstall? y",
                "assistant Done.",
                "system Applied edit to a.py\nCommit 1 feat: x\n\nbody",
            ]
        );
    }

    #[test]
    fn history_without_spaces_at_line_ends_is_read() {
        let session = "> Model: m with whole edit format\n\n#### Fix it\n#### now\n\nDone.\n\n> Applied edit to a.py\n";
        assert_eq!(
            lines_of(session),
            [
                "user Fix it\nnow",
                "assistant Done.",
                "system Applied edit to a.py"
            ]
        );
    }

    #[test]
    fn report_belongs_to_the_answer() {
        let session = "> Aider v0.82.2  \n> Main model: gpt-4o with diff edit format, infinite output  \n\n#### a  \n\n\
                       <thinking-content-7b>\n\nHm.\n\n</thinking-content-7b>\n\nOne.\n\n> Tokens: 3.2k sent, 222 received. Cost: $0.0015 message, $0.02 session.  \n\n\
                       #### b  \n\nTwo.\n\n> Tokens: 5,244 sent, 604 received. Cost: $0.02 request, $0.04 session.  \n";
        let (all, tally) = read(format!("{START}{session}").as_bytes());
        assert_eq!(tally.unknown_count(), 0, "{tally:?}");
        let one = all[0].as_ref().expect("a transcript");
        assert_eq!(
            message_lines(one),
            [
                "user a",
                "assistant <reasoning> | One.",
                "user b",
                "assistant Two."
            ]
        );
        let metadata = &one["metadata"];
        assert_eq!(metadata["cost_usd"], 0.04);
        assert_eq!(metadata["model"], "gpt-4o");
        assert_eq!(metadata["version"], "0.82.2");
        assert_eq!(metadata["timestamp"], "2025-05-04 17:02:36");
        let answer = &one["messages"][1]["metadata"];
        assert_eq!(answer["cost_usd"], 0.0015);
        assert_eq!(answer["tokens"], "3.2k sent, 222 received");
    }

    #[test]
    fn sessions_without_messages_are_counted() {
        let file = format!(
            "{START}> Aider v0.86.1  \n{START}#### Hi  \n\nHello.\n\n# aider chat started at work\n{START}> ^C  \n"
        );
        let (all, tally) = read(file.as_bytes());
        assert_eq!(all.len(), 1);
        assert_eq!(
            message_lines(all[0].as_ref().expect("a transcript")),
            [
                "user Hi",
                "assistant Hello.\n\n# aider chat started at work"
            ]
        );
        assert_eq!(tally.unknown["a session without messages"], 2);
    }
}
