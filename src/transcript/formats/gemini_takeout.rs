//! The activities of Gemini in Google Takeout (`My Activity/Gemini Apps/MyActivity.json`).
//!
//! Responsible for the prompt, which is a title behind a word such as "Prompted", and for the answer, which is HTML.
//! Activities of one conversation are one transcript, if they name it; older exports do not. The file has the newest
//! activity first. Activities that are no prompt (feedback, the use of an app) are counted.

use std::collections::BTreeSet;

use super::super::detect::FilePreview;
use super::super::fields::RawFields;
use super::super::native::json_string;
use super::super::reader::{RecordCx, TranscriptReader, TranscriptSink};
use super::record_readers::{Grouping, open_groups, parse_lines};
use super::transcript_builder::{TranscriptBuilder, text_part};
use crate::model::{MessageRole, SourceText};

/// The words before a prompt in English exports.
const PROMPT_WORDS: [&str; 4] = ["Prompted", "Branched", "Answered", "Asked"];

/// The words with which other activities begin.
const OTHER_WORDS: [&str; 6] = ["Created", "Used", "Gave", "Selected", "Added", "Cleared"];

/// The beginning of a conversation's address.
const CONVERSATION: &str = "https://gemini.google.com/app/";

/// The tags that begin a line.
const BLOCK_TAGS: [&str; 17] = [
    "p",
    "div",
    "br",
    "hr",
    "ul",
    "ol",
    "tr",
    "table",
    "pre",
    "blockquote",
    "section",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
];

/// Returns true if the first record is an activity of Gemini.
pub(super) fn is_activity(preview: &FilePreview<'_>) -> bool {
    let record = preview.first_outline();
    let is_gemini = |name: Option<&str>| matches!(name, Some("Gemini Apps" | "Bard"));
    record["title"].is_string()
        && record["time"].is_string()
        && is_gemini(record["header"].as_str())
        && (is_gemini(record["products"][0].as_str()) || record["safeHtmlItem"].is_array())
}

pub(super) fn open(preview: &FilePreview<'_>) -> Box<dyn TranscriptReader> {
    open_groups(
        preview,
        Grouping {
            key: group_of,
            parse: parse_conversation,
            without_group: "an activity that is not a prompt",
        },
    )
}

/// Returns the id of the conversation. A prompt without one, or with several, is a conversation of its own.
fn group_of(record: &[u8]) -> Option<String> {
    let activity = RawFields::from_bytes(record)?;
    let title = activity.text("title")?;
    prompt_of(&title)?;
    let time = activity.text("time").unwrap_or_default();
    Some(conversation_of(&activity).unwrap_or_else(|| format!("{} {}", &*time, &*title)))
}

fn conversation_of(activity: &RawFields<'_>) -> Option<String> {
    let details = activity.list("details").unwrap_or_default();
    let addresses = details.into_iter().filter_map(|raw| {
        let detail = RawFields::from_raw(raw)?;
        let address = detail.text("url").or_else(|| detail.text("name"))?;
        let id = address.strip_prefix(CONVERSATION)?;
        let id = id.split(['/', '?', '#']).next()?;
        (!id.is_empty()).then(|| id.to_owned())
    });
    let mut ids: BTreeSet<String> = addresses.collect();
    if ids.len() > 1 {
        return None;
    }
    ids.pop_first()
}

/// Returns the prompt in a title; `None` for other activities. The words of other languages stay in the prompt.
fn prompt_of(title: &str) -> Option<&str> {
    let is_end = |c: char| c.is_whitespace() || c == ':';
    let title = title.trim();
    let (word, rest) = title.split_at(title.find(is_end).unwrap_or(title.len()));
    if OTHER_WORDS.contains(&word) {
        return None;
    }
    if PROMPT_WORDS.contains(&word) {
        return Some(rest.trim_start_matches(is_end));
    }
    Some(title)
}

fn parse_conversation(lines: &[&[u8]], _cx: RecordCx<'_>, out: &mut TranscriptSink) {
    let mut activities: Vec<RawFields<'_>> = parse_lines(lines, out)
        .into_iter()
        .map(|(_, activity)| activity)
        .collect();
    let time_of = |activity: Option<&RawFields<'_>>| {
        let time = activity?.text("time")?;
        Some(time.0.into_owned())
    };
    if time_of(activities.first()) > time_of(activities.last()) {
        activities.reverse();
    }
    let id = activities.first().and_then(conversation_of);
    let mut built = TranscriptBuilder::new("gemini-apps", id.map(SourceText::from));
    if let Some(first) = activities.first() {
        built.meta.set_raw("timestamp", first.get("time"));
    }
    for activity in &activities {
        add_activity(activity, &mut built);
    }
    built.finish(out);
}

fn add_activity(activity: &RawFields<'_>, built: &mut TranscriptBuilder) {
    let title = activity.text("title").unwrap_or_default();
    let prompt = prompt_of(&title).unwrap_or_default();
    let parts = (!prompt.is_empty()).then(|| text_part(prompt));
    built.push(MessageRole::User, parts.into_iter().collect());
    if let Some(meta) = built.last_meta(&MessageRole::User) {
        meta.set_raw("timestamp", activity.get("time"));
    }
    let answers = activity.list("safeHtmlItem").unwrap_or_default();
    let texts: Vec<String> = answers
        .into_iter()
        .filter_map(|raw| {
            let answer = RawFields::from_raw(raw)?;
            Some(text_of_html(&answer.text("html")?))
        })
        .collect();
    if !texts.is_empty() {
        let parts = texts.iter().map(|text| text_part(text));
        built.push(MessageRole::Assistant, parts.collect());
    }
    let files = activity.list("attachedFiles").unwrap_or_default().len();
    let image = activity.get("imageFile").and_then(json_string);
    let count = files.max(usize::from(image.is_some()));
    built.count_unknown("an attached file", count);
}

/// Returns the text of HTML: a line per block, a mark before items and headings, and code between fences.
fn text_of_html(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        let (before, found) = rest.split_at(at);
        text.push_str(before);
        let (written, length) = if found.starts_with('<') {
            read_tag(found)
        } else {
            read_escape(found)
        };
        match written {
            Written::Break(mark) => push_break(&mut text, mark),
            Written::Text(character) => text.push(character),
            Written::Mark(mark) => text.push_str(mark),
        }
        rest = &found[length..];
    }
    text.push_str(rest);
    text.trim().to_owned()
}

/// Adds a line break, with what the new line begins with.
fn push_break(text: &mut String, mark: &str) {
    let line = text.rsplit('\n').next().unwrap_or_default();
    // The paragraph of an item begins in the line of its mark.
    if mark.is_empty() && matches!(line, "- " | "## ") {
        return;
    }
    text.truncate(text.trim_end_matches([' ', '\t']).len());
    // Blocks have an empty line between them, items do not.
    let end = if mark == "- " { "\n" } else { "\n\n" };
    if !text.is_empty() && !text.ends_with(end) {
        text.push('\n');
    }
    text.push_str(mark);
}

/// The text that a tag or an escape becomes.
enum Written {
    /// A new line, with what it begins with.
    Break(&'static str),
    Mark(&'static str),
    Text(char),
}

/// Reads a tag; returns the number of its bytes. A `<` that begins no tag is text.
fn read_tag(html: &str) -> (Written, usize) {
    let inner = html.get(1..).unwrap_or_default();
    let is_closing = inner.starts_with('/');
    let name = inner.trim_start_matches('/');
    let end = name.find(['<', '>']).filter(|end| {
        name[*end..].starts_with('>') && name.starts_with(|c: char| c.is_ascii_alphabetic())
    });
    let Some(end) = end else {
        return (Written::Text('<'), 1);
    };
    let all = html.len() - name.len() + end + 1;
    let length = name.find(|c: char| !c.is_ascii_alphanumeric());
    let name = name[..length.unwrap_or(name.len())].to_ascii_lowercase();
    let written = match (name.as_str(), is_closing) {
        ("pre", _) => Written::Break("```\n"),
        ("li", false) => Written::Break("- "),
        ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => Written::Break("## "),
        ("td" | "th", true) => Written::Mark(" | "),
        (name, _) if BLOCK_TAGS.contains(&name) => Written::Break(""),
        _ => Written::Mark(""),
    };
    (written, all)
}

/// Reads an escape such as `&amp;`; returns the number of its bytes. Other texts with `&` stay.
fn read_escape(html: &str) -> (Written, usize) {
    let name = html.get(1..).unwrap_or_default();
    // No escape is longer.
    let end = name.bytes().take(10).position(|byte| byte == b';');
    let character = end.and_then(|end| match &name[..end] {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        number => {
            let number = number.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    });
    match (character, end) {
        (Some(character), Some(end)) => (Written::Text(character), end + 2),
        _ => (Written::Text('&'), 1),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::read_back::{lines_of_each, read};
    use super::text_of_html;

    fn activity(
        title: &str,
        time: &str,
        answer: Option<&str>,
        conversation: Option<&str>,
    ) -> Value {
        let mut one = json!({"header": "Gemini Apps", "title": title, "time": time, "products": ["Gemini Apps"],
            "activityControls": ["Gemini Apps Activity"]});
        if let Some(html) = answer {
            one["safeHtmlItem"] = json!([{"html": html}]);
        }
        if let Some(id) = conversation {
            let address = format!("https://gemini.google.com/app/{id}");
            one["details"] = json!([{"name": address, "url": address}]);
        }
        one
    }

    #[test]
    fn prompts_of_a_conversation_are_one_transcript() {
        let mut with_file = activity(
            "Prompted",
            "2026-01-02T03:00:00Z",
            Some("<p>A cat.</p>"),
            None,
        );
        with_file["attachedFiles"] = json!(["cat.png"]);
        with_file["imageFile"] = json!("cat.png");
        let mut of_two = activity("Prompted Both?", "2026-01-01T00:00:00Z", None, Some("c1"));
        let other = json!({"url": "https://gemini.google.com/app/c2"});
        of_two["details"]
            .as_array_mut()
            .expect("a list")
            .push(other);
        let file = json!([
            activity(
                "Prompted\u{a0}And in Oslo?",
                "2026-01-02T03:04:06.5Z",
                Some("<p>Snow.</p>"),
                Some("c1")
            ),
            activity(
                "Gave feedback: Good response",
                "2026-01-02T03:04:05.9Z",
                None,
                None
            ),
            activity(
                "Prompted Weather?",
                "2026-01-02T03:04:05Z",
                Some("<p>Rain &amp; <b>wind</b>.</p>"),
                Some("c1")
            ),
            with_file,
            of_two,
            activity("Used Gemini Apps", "2025-01-01T00:00:00Z", None, None),
        ]);
        let (all, tally) = read(file.to_string().as_bytes());
        let mut lines = lines_of_each(&all);
        lines.sort();
        assert_eq!(
            lines,
            [
                vec!["user ", "assistant A cat."],
                vec!["user Both?"],
                vec![
                    "user Weather?",
                    "assistant Rain & wind.",
                    "user And in Oslo?",
                    "assistant Snow."
                ],
            ]
        );
        let ids = all
            .iter()
            .filter_map(|one| one.as_ref().ok()?["id"].as_str());
        assert_eq!(ids.filter(|id| *id == "c1").count(), 1);
        let counts: Vec<_> = tally.unknown.into_iter().collect();
        let expected = [
            ("an activity that is not a prompt".to_owned(), 2),
            ("an attached file".to_owned(), 1),
        ];
        assert_eq!(counts, expected);
    }

    #[test]
    fn html_becomes_text() {
        for (html, text) in [
            ("plain", "plain"),
            ("<p>a</p><p>b<br/>c</p>", "a\n\nb\nc"),
            (
                "<h2>T</h2><ul><li>x</li><li>y</li></ul>",
                "## T\n\n- x\n- y",
            ),
            ("<pre><code>a &lt; b</code></pre>", "```\na < b\n```"),
            ("<ul>\n<li><p>x</p></li>\n<li>y</li></ul>", "- x\n\n- y"),
            ("a<b <b>c</b> <i", "a<b c <i"),
            ("1 < 2 &amp;&#39;&#x41;&nope; &", "1 < 2 &'A&nope; &"),
            ("<table><tr><td>1</td><td>2</td></tr></table>", "1 | 2 |"),
        ] {
            assert_eq!(text_of_html(html), text, "{html}");
        }
    }
}
