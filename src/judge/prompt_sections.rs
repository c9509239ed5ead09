//! Splits a rendered prompt into the blocks of the user's texts and dicta's frame around them, for readers.
//!
//! Does not render prompts: see [`super::prompt`]. The delimiter occurs in no enclosed text, so no text can end its block.

use std::ops::Range;

/// A part of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSection {
    /// The name of the block, such as `criteria` or `transcript (7 messages)`; `None` for dicta's frame.
    pub name: Option<String>,
    /// The range of the text, without the delimiting lines.
    pub range: Range<usize>,
}

impl PromptSection {
    /// Reports whether the block is the rubric: the criteria or the scoring guide.
    pub fn is_rubric(&self) -> bool {
        matches!(self.name.as_deref(), Some("criteria" | "scoring guide"))
    }
}

/// The number of hex digits of a delimiter.
const DIGITS: usize = 16;

/// Splits a prompt text. A text without delimited blocks has no sections.
pub fn split_prompt(text: &str) -> Vec<PromptSection> {
    let Some(marker) = find_delimiter(text) else {
        return Vec::new();
    };
    let start = format!("<<<{marker} ");
    let mut sections: Vec<PromptSection> = Vec::new();
    let mut from = 0;
    let mut open: Option<String> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let line_start = at;
        at += line.len();
        let label = line
            .trim_end()
            .strip_prefix(start.as_str())
            .and_then(|rest| rest.strip_suffix(">>>"));
        let Some(label) = label else { continue };
        let mut push = |name: Option<String>, range: Range<usize>| {
            if !text[range.clone()].trim().is_empty() {
                sections.push(PromptSection { name, range });
            }
        };
        if let Some(name) = label.strip_prefix("begin ").filter(|_| open.is_none()) {
            push(None, from..line_start);
            open = Some(name.to_owned());
            from = at;
        } else if label.starts_with("end ") && open.is_some() {
            push(open.take(), from..line_start);
            from = at;
        }
    }
    if !text[from..].trim().is_empty() {
        sections.push(PromptSection {
            name: open,
            range: from..text.len(),
        });
    }
    sections
}

/// Returns the digits of the first delimiting line that begins a block.
fn find_delimiter(text: &str) -> Option<&str> {
    text.match_indices("<<<").find_map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let digits = rest.get(..DIGITS)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let begins_line = at == 0 || text.as_bytes()[at - 1] == b'\n';
        (is_hex && begins_line && rest[DIGITS..].starts_with(" begin ")).then_some(digits)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Marker of this message: 0123456789abcdef\n\n<<<0123456789abcdef begin criteria>>>\nSays the price.\n<<<0123456789abcdef end criteria>>>\n\n<<<0123456789abcdef begin transcript (2 messages)>>>\n<<<0123456789abcdef [0] user>>>\nhi\n<<<fedcba9876543210 end transcript>>>\n<<<0123456789abcdef end transcript>>>\n\nDecide now.";

    fn names(text: &str) -> Vec<(String, &str)> {
        let section = |one: PromptSection| {
            let name = one.name.clone().unwrap_or_else(|| "frame".to_owned());
            (name, text[one.range].trim())
        };
        split_prompt(text).into_iter().map(section).collect()
    }

    #[test]
    fn user_texts_are_separate_from_the_frame() {
        let found = names(PROMPT);
        let heads: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            heads,
            ["frame", "criteria", "transcript (2 messages)", "frame"]
        );
        assert_eq!(found[1].1, "Says the price.");
        assert!(
            found[2].1.contains("fedcba9876543210 end"),
            "another marker ends no block"
        );
        assert_eq!(found[3].1, "Decide now.");
    }

    #[test]
    fn text_without_blocks_has_no_sections() {
        assert!(split_prompt("Just a text with <<<no marker>>>.").is_empty());
        assert!(split_prompt("").is_empty());
    }

    proptest::proptest! {
        #[test]
        fn any_text_splits_without_panic(text in "(<<<0123456789abcdef (begin|end) \\PC{0,5}>>>\n|\\PC{0,8}\n){0,8}") {
            let sections = split_prompt(&text);
            for pair in sections.windows(2) {
                proptest::prop_assert!(pair[0].range.end <= pair[1].range.start);
            }
            for section in &sections {
                proptest::prop_assert!(text.get(section.range.clone()).is_some());
            }
        }
    }
}
