//! Checks the language rule of CONTRIBUTING.md in doc comments, program texts, and Markdown.
//!
//! The rule's parts that a program can check:
//!
//! - the table of banned words
//! - at most 25 words per sentence
//! - no question word at the start of a doc comment
//! - the spelling of percentages
//! - no reference to a document outside the repository

use std::fs;

use regex::Regex;

use crate::source::{Source, root, sources};
use crate::{fail_with, is_test_path};

/// The most words that a sentence may have.
const MAX_WORDS: usize = 25;

/// Words that begin an indirect question. A doc comment states what the item is instead.
const QUESTION_WORDS: &[&str] = &[
    "What", "Whether", "How", "Why", "Who", "Whom", "Whose", "Where", "When", "Which", "That", "Of",
];

/// Files whose string literals are data, not program texts.
const DATA: &[(&str, &str)] = &[
    ("src/handlers/judged/preset_criteria.rs", CACHE_KEYS),
    ("src/judge/parts.rs", CACHE_KEYS),
    ("src/judge/prompt", CACHE_KEYS),
    ("src/judge/verdict_format.rs", CACHE_KEYS),
    (
        "src/judge/rules/text_patterns.rs",
        "patterns of words in an answer",
    ),
    (
        "src/run/robustness/",
        "texts of attacks, as a model would write them",
    ),
    ("src/tools/kinds/mcp/", TOOL_RESPONSES),
    ("src/tools/kinds/sqlite/execution.rs", TOOL_RESPONSES),
    ("src/tools/page_text.rs", TOOL_RESPONSES),
    ("src/tools/repair/", TOOL_RESPONSES),
    ("src/tools/transcript_tools/", TOOL_RESPONSES),
    (
        "src/transcript/formats/inspect/scores.rs",
        "part of the digest of a transcript",
    ),
];
const TOOL_RESPONSES: &str =
    "a judge reads these texts; a change would change recorded tool responses";
const CACHE_KEYS: &str = "a text that dicta sends to a judge; a change would change cache keys";

/// The patterns of the table "Banned words" in CONTRIBUTING.md.
struct BannedWords(Vec<(String, Regex)>);

impl BannedWords {
    fn read() -> Self {
        let text =
            fs::read_to_string(root().join("CONTRIBUTING.md")).expect("CONTRIBUTING.md is there");
        let (_, table) = text
            .split_once("| banned | write |")
            .expect("CONTRIBUTING.md has a table of banned words");
        let mut patterns = Vec::new();
        for row in table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'))
        {
            let cell = row.split('|').nth(1).unwrap_or("");
            for phrase in cell.split(',').map(str::trim).filter(|p| !p.is_empty()) {
                patterns.push((phrase.to_owned(), pattern(phrase)));
            }
        }
        assert!(patterns.len() > 20, "the table of banned words is read");
        Self(patterns)
    }

    /// The banned phrases that occur in a text, each once.
    fn find<'s>(&'s self, text: &str) -> Vec<&'s str> {
        let found = self.0.iter().filter(|(_, pattern)| {
            pattern
                .find_iter(text)
                .any(|hit| !is_exempt(hit.as_str(), &text[..hit.start()], &text[hit.end()..]))
        });
        found.map(|(phrase, _)| phrase.as_str()).collect()
    }
}

/// `is no longer` and `there is no …` are plain English; `is no …` for `is not a …` is not.
fn is_exempt(hit: &str, before: &str, after: &str) -> bool {
    let (before, after) = (before.trim_end().to_lowercase(), after.trim_start());
    hit.to_lowercase().ends_with(" no")
        && (before.ends_with("there") || after.starts_with("longer") || after.starts_with("more"))
}

fn pattern(phrase: &str) -> Regex {
    let words: Vec<String> = phrase.split_whitespace().map(regex::escape).collect();
    let words = words.join(r"\s+");
    // `the how-many` also finds `the how-manieth`.
    let end = if phrase.ends_with("how-many") {
        ""
    } else {
        r"\b"
    };
    let words = words.replace("how\\-many", "how-man");
    Regex::new(&format!(r"(?i)\b{words}{end}")).expect("a phrase is a pattern")
}

/// A piece of text and where it begins.
#[derive(Debug)]
struct Passage {
    line: usize,
    kind: PassageKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PassageKind {
    /// `///` or `//!`.
    Doc,
    /// `//`.
    Comment,
    /// A string literal of at least three words outside tests.
    Message,
    /// A paragraph, list item or table cell of Markdown.
    Prose,
}

/// The prefix of a comment line and its text.
fn comment(line: &str) -> Option<(&'static str, &str)> {
    let line = line.trim_start();
    for prefix in ["///", "//!", "//"] {
        if let Some(rest) = line.strip_prefix(prefix)
            && !rest.starts_with('/')
        {
            return Some((prefix, rest.strip_prefix(' ').unwrap_or(rest)));
        }
    }
    None
}

/// The passages of a Rust file: blocks of comments, and the literals of program texts.
fn rust_passages(source: &Source) -> Vec<Passage> {
    let literal = Regex::new(r#""((?:[^"\\]|\\.)*)""#).expect("a pattern");
    let lines: Vec<&str> = source.text.lines().collect();
    let data = DATA.iter().any(|(path, _)| source.path.starts_with(path));
    let mut in_tests = is_test_path(&source.path);
    let mut passages: Vec<Passage> = Vec::new();
    let mut open: Option<&str> = None;
    for (at, line) in lines.iter().enumerate() {
        if let Some((prefix, text)) = comment(line) {
            if open == Some(prefix) {
                let last = passages.last_mut().expect("a block is open");
                last.text.push('\n');
                last.text.push_str(text);
            } else {
                open = Some(prefix);
                passages.push(Passage {
                    line: at + 1,
                    kind: if prefix == "//" {
                        PassageKind::Comment
                    } else {
                        PassageKind::Doc
                    },
                    text: text.to_owned(),
                });
            }
            continue;
        }
        open = None;
        // Inline test modules are at the end of a file.
        let next = lines.get(at + 1).copied().unwrap_or("");
        in_tests |= line.trim() == "#[cfg(test)]" && next.contains("mod ") && next.ends_with('{');
        if in_tests || data {
            continue;
        }
        for found in literal.captures_iter(line) {
            if found[1].split_whitespace().count() >= 3 {
                passages.push(Passage {
                    line: at + 1,
                    kind: PassageKind::Message,
                    text: found[1].to_owned(),
                });
            }
        }
    }
    passages
}

/// The paragraphs, list items and table cells of a Markdown text; code blocks are left out.
fn prose_passages(text: &str) -> Vec<Passage> {
    let mut passages: Vec<Passage> = Vec::new();
    let (mut fenced, mut open) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("```") {
            fenced = !fenced;
            open = false;
            continue;
        }
        if fenced || trimmed.is_empty() {
            open = false;
            continue;
        }
        let mut push = |text: &str| {
            passages.push(Passage {
                line: at + 1,
                kind: PassageKind::Prose,
                text: text.to_owned(),
            });
        };
        if trimmed.starts_with('|') {
            trimmed.split('|').for_each(|cell| push(cell.trim()));
            open = false;
        } else if open && !is_item(trimmed) {
            let last = passages.last_mut().expect("a paragraph is open");
            last.text.push(' ');
            last.text.push_str(trimmed);
        } else {
            push(trimmed);
            open = !trimmed.starts_with('#');
        }
    }
    passages
}

fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '#', '>'])
        || (number.len() < line.len() && number.starts_with(". "))
}

/// The text without code spans, links' targets and emphasis.
fn plain(text: &str) -> String {
    let code = Regex::new(r"(?s)```.*?```|`[^`]*`").expect("a pattern");
    let link = Regex::new(r"\]\([^)]*\)").expect("a pattern");
    link.replace_all(&code.replace_all(text, "X"), "]")
        .replace('*', "")
}

/// The sentences of a passage. A semicolon and a colon end a clause that a reader can take in alone.
fn sentences(text: &str) -> Vec<String> {
    let end = Regex::new(r"[.!?:;]\s+|\s[·–—→]\s|\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|\n\s*\|[^\n]*")
        .expect("a pattern");
    end.split(text).map(str::to_owned).collect()
}

fn count_words(sentence: &str) -> usize {
    // "X" replaces a code span; a list of names in code is not prose.
    let word =
        |w: &&str| w.chars().any(char::is_alphanumeric) && w.trim_matches(['(', ')', ',']) != "X";
    sentence.split_whitespace().filter(word).count()
}

fn problems_of(path: &str, passages: &[Passage], banned: &BannedWords) -> Vec<String> {
    let elsewhere = Regex::new(
        r"\b(design|users|reliability|eval-handlers|tool-params|tool-errors|auto-tools|judge-tools|wire|features|pitfalls)\.md\b|shared/",
    )
    .expect("a pattern");
    // In a format string, a brace ends the number.
    let spaced_percent = Regex::new(r"[0-9}]\s%(?:[\s,.;:)]|$)").expect("a pattern");
    let mut problems = Vec::new();
    for passage in passages {
        let Passage { line, kind, text } = passage;
        let plain = plain(text);
        if *kind != PassageKind::Comment && spaced_percent.is_match(&plain) {
            problems.push(format!("{path}:{line}: a space is before the percent sign"));
        }
        for phrase in banned.find(&plain) {
            problems.push(format!("{path}:{line}: \"{phrase}\" is banned"));
        }
        if *kind == PassageKind::Doc {
            let first = text.split_whitespace().next().unwrap_or("");
            if QUESTION_WORDS.contains(&first.trim_end_matches([',', ':'])) {
                problems.push(format!(
                    "{path}:{line}: the doc comment begins with \"{first}\""
                ));
            }
        }
        if matches!(kind, PassageKind::Doc | PassageKind::Comment)
            && let Some(found) = elsewhere.find(text)
        {
            let found = found.as_str();
            problems.push(format!(
                "{path}:{line}: refers to {found}, which is not in the repository"
            ));
        }
        if *kind != PassageKind::Comment {
            for sentence in sentences(&plain) {
                let words = count_words(&sentence);
                if words > MAX_WORDS {
                    let begin: String = sentence.chars().take(60).collect();
                    problems.push(format!(
                        "{path}:{line}: a sentence has {words} words: {begin}…"
                    ));
                }
            }
        }
    }
    problems
}

pub(crate) fn markdown_files() -> Vec<(String, String)> {
    let mut files = ["README.md", "CONTRIBUTING.md", "SECURITY.md"]
        .map(str::to_owned)
        .to_vec();
    for entry in walkdir::WalkDir::new(root().join("docs")).sort_by_file_name() {
        let entry = entry.expect("docs can be read");
        if entry.path().extension().is_some_and(|e| e == "md") {
            let path = entry.path().strip_prefix(root()).expect("found under it");
            files.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).expect("a document is text");
        (path, text)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn comments_and_messages_are_plain_english() {
    let banned = BannedWords::read();
    let problems: Vec<String> = sources()
        .iter()
        .flat_map(|source| problems_of(&source.path, &rust_passages(source), &banned))
        .collect();
    fail_with(&problems, "the language rule of CONTRIBUTING.md");
}

#[test]
fn documents_are_plain_english() {
    let banned = BannedWords::read();
    let problems: Vec<String> = markdown_files()
        .iter()
        .flat_map(|(path, text)| {
            // The rule names the words that it bans.
            let text = text.split("### Banned words").next().unwrap_or("");
            problems_of(path, &prose_passages(text), &banned)
        })
        .collect();
    fail_with(&problems, "the language rule of CONTRIBUTING.md");
}

// ---- the check finds what it is for ----

fn check(text: &str) -> Vec<String> {
    let source = Source {
        path: "src/x.rs".to_owned(),
        text: text.to_owned(),
        code: String::new(),
    };
    problems_of("src/x.rs", &rust_passages(&source), &BannedWords::read())
}

#[test]
fn language_check_finds_each_kind_of_problem() {
    let long = format!("/// Returns {}.\n", ["word"; 25].join(" "));
    let cases = [
        ("/// Whether it holds.\n", "begins with \"Whether\""),
        (
            "/// The judge that is told\n/// nothing.\n",
            "\"told\" is banned",
        ),
        (
            "let m = \"the pattern is no regex\";\n",
            "\"is no\" is banned",
        ),
        ("/// See design.md 4.\n", "refers to design.md"),
        (&long, "a sentence has 26 words"),
        (
            "/// Holds in 95 % of samples.\n",
            "a space is before the percent sign",
        ),
        (
            "/// A cell, and the how-manieth.\n",
            "\"the how-many\" is banned",
        ),
    ];
    for (text, problem) in cases {
        let found = check(text);
        assert!(
            found.len() == 1 && found[0].contains(problem),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn language_check_accepts_code_and_plain_english() {
    let harmless = [
        "/// Returns the `told` field, if the judge is no longer running.\n",
        "/// Returns `None` if there is no judge.\n",
        "let m = \"told\";\n",
        "#[cfg(test)]\nmod tests {\n    const M: &str = \"nobody is told anything\";\n}\n",
        "/// One idea here. Another idea there: a list of a, b, c.\n",
    ];
    for text in harmless {
        assert_eq!(check(text), Vec::<String>::new(), "{text}");
    }
}
