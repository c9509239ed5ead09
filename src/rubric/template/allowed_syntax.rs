//! The allowed statements, filters and tests of templates.
//!
//! Responsible for checking a template's tags when the rubric loads, before a judge is called. A template inserts
//! values and does not compute. So it refuses syntax that can produce a text of any size from a small one: own
//! variables, macros, products.

use minijinja::Environment;

use super::TemplateError;
use crate::diag::find_nearest;

/// The allowed statements. `raw` is missing because the check skips raw blocks.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// The statements that would read another template.
const IMPORT_STATEMENTS: [&str; 4] = ["include", "import", "from", "extends"];
/// The allowed filters. `join` and `replace` are dicta's own versions with a limit.
pub(super) const FILTERS: [&str; 36] = [
    "abs",
    "attr",
    "bool",
    "capitalize",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "trim",
];
/// The allowed filters that are not in [`FILTERS`]. Messages list both.
const MORE_FILTERS: [&str; 2] = ["unique", "upper"];
/// The allowed tests.
const TESTS: [&str; 26] = [
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "even",
    "false",
    "float",
    "ge",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "undefined",
];
const MORE_TESTS: [&str; 3] = ["sameas", "true", "upper"];
/// The functions of minijinja that dicta removes.
const REMOVED_FUNCTIONS: [&str; 3] = ["debug", "dict", "namespace"];

/// Removes functions and filters that are not allowed from the environment.
pub(super) fn restrict(env: &mut Environment<'_>) {
    // minijinja has these built in, so they are removed and not merely refused.
    for name in REMOVED_FUNCTIONS {
        env.remove_global(name);
    }
    // Filters that dicta does not allow: they repeat text, print internals, or mark text for HTML.
    for name in [
        "batch", "slice", "indent", "format", "zip", "pprint", "safe", "escape", "e",
    ] {
        env.remove_filter(name);
    }
}

/// Reports the first syntax in a template's tags that is not allowed.
pub(super) fn check_tags(text: &str) -> Result<(), TemplateError> {
    let mut rest = 0;
    while let Some((at, open)) = find_next_tag(text, rest) {
        let line = text[..at].matches('\n').count() + 1;
        // Each tag is read with its quoted texts, so that a `}}` in quotes does not end it.
        let tag = TemplateTag::read(&text[at + 2..], open);
        rest = at + 2 + tag.length;
        // A comment inserts nothing.
        if open == '#' {
            continue;
        }
        let statement = (open == '%').then(|| tag.tokens.first().copied().unwrap_or_default());
        // A raw block is plain text.
        if statement == Some("raw") {
            let Some(end) = find_raw_end(text, rest) else {
                return Ok(()); // the parser told
            };
            rest = end;
            continue;
        }
        tag.find_fault(statement)
            .map_or(Ok(()), |why| Err(TemplateError { line, message: why }))?;
    }
    Ok(())
}

fn find_next_tag(text: &str, from: usize) -> Option<(usize, char)> {
    let mut after = from;
    loop {
        let at = after + text.get(after..)?.find('{')?;
        if let Some(open) = text[at + 1..].chars().next().filter(|c| "{%#".contains(*c)) {
            return Some((at, open));
        }
        after = at + 1;
    }
}

/// Returns the position after `{% endraw %}`.
fn find_raw_end(text: &str, from: usize) -> Option<usize> {
    let mut after = from;
    loop {
        let at = after + text.get(after..)?.find("{%")?;
        let tag = TemplateTag::read(&text[at + 2..], '%');
        if tag.tokens.first() == Some(&"endraw") {
            return Some(at + 2 + tag.length);
        }
        after = at + 2;
    }
}

/// A tag without its quoted texts.
struct TemplateTag<'t> {
    /// The words of the tag, and each other character that is not a blank.
    tokens: Vec<&'t str>,
    /// The length of the tag in bytes, with its end.
    length: usize,
}

impl<'t> TemplateTag<'t> {
    /// Reads a tag after its opening braces; to the end of the text if it is not closed.
    fn read(text: &'t str, open: char) -> Self {
        let close = match open {
            '{' => "}}",
            '%' => "%}",
            _ => "#}",
        };
        let (mut tokens, mut at) = (Vec::new(), 0);
        while let Some(c) = text[at..].chars().next() {
            // The end of the tag.
            if text[at..].starts_with(close) {
                return Self {
                    tokens,
                    length: at + 2,
                };
            }
            let word = |c: char| c.is_alphanumeric() || c == '_';
            // In a comment quotes have no meaning.
            let length = if open != '#' && (c == '"' || c == '\'') {
                quoted_len(&text[at..], c)
            } else if word(c) {
                text[at..].find(|c| !word(c)).unwrap_or(text.len() - at)
            } else {
                c.len_utf8()
            };
            let token = &text[at..at + length];
            // A sign next to the braces removes blanks around the tag.
            let trims = tokens.is_empty() && (c == '-' || c == '+');
            if open != '#' && !c.is_whitespace() && !trims {
                // Quoted texts become one token: their content is data, not syntax.
                tokens.push(if length > 1 && (c == '"' || c == '\'') {
                    "''"
                } else {
                    token
                });
            }
            at += length;
        }
        // An unclosed tag: minijinja reports it.
        Self { tokens, length: at }
    }

    fn find_fault(&self, statement: Option<&str>) -> Option<String> {
        if let Some(word) = statement {
            if IMPORT_STATEMENTS.contains(&word) {
                return Some(format!(
                    "no valid template: `{word}` takes another template, and there is none"
                ));
            }
            if !word.is_empty() && !STATEMENTS.contains(&word) {
                return Some(format!(
                    "`{word}` is not a statement here: use if, for or raw, and {{{{ … }}}} for values"
                ));
            }
        }
        // `*` multiplies texts and lists, so a short template could make a huge text.
        if self.tokens.contains(&"*") {
            return Some(
                "`*` is not taken in a template: it fills in, it does not compute".to_owned(),
            );
        }
        // A recursive loop can run without an end.
        if statement == Some("for") && self.tokens.last() == Some(&"recursive") {
            return Some("`recursive` is not taken in a template".to_owned());
        }
        let mut pairs = self
            .tokens
            .iter()
            .zip(self.tokens.iter().skip(1))
            .enumerate();
        pairs.find_map(|(at, (before, word))| match *before {
            // In `a is not defined` the test is the word after `not`.
            "|" => explain_unknown_word("filter", word, &FILTERS, &MORE_FILTERS),
            // The test is the word after `not`.
            "is" if *word == "not" => {
                let word = self.tokens.get(at + 2)?;
                explain_unknown_word("test", word, &TESTS, &MORE_TESTS)
            }
            "is" => explain_unknown_word("test", word, &TESTS, &MORE_TESTS),
            _ => None,
        })
    }
}

/// Returns the number of bytes of a quoted text, with its quotes.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn explain_unknown_word(what: &str, word: &str, known: &[&str], more: &[&str]) -> Option<String> {
    let all = || known.iter().chain(more).copied();
    // A sign or a quoted text after `|` or `is` is not a name.
    let starts = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !starts || all().any(|name| name == word) {
        return None;
    }
    if let Some(near) = find_nearest(word, all()) {
        return Some(format!(
            "there is no {what} `{word}`; did you mean `{near}`?"
        ));
    }
    let names = all().collect::<Vec<_>>().join(", ");
    Some(format!("there is no {what} `{word}`; there are: {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_syntax_is_reported_with_its_line() {
        for (text, line, expected) in [
            (
                "a\n{{ metadata.x|uper }}",
                2,
                "no filter `uper`; did you mean `upper`?",
            ),
            (
                "{{ metadata.x is defind }}",
                1,
                "no test `defind`; did you mean `defined`?",
            ),
            (
                "{% if metadata.x is not defind %}{% endif %}",
                1,
                "no test `defind`",
            ),
            (
                "{{ metadata.x | format }}",
                1,
                "no filter `format`; there are: abs, attr",
            ),
            ("\n\n{%- set x = 1 %}", 3, "`set` is not a statement here"),
            (
                "{% macro m(x) %}{% endmacro %}",
                1,
                "`macro` is not a statement",
            ),
            (
                "{% filter upper %}{% endfilter %}",
                1,
                "`filter` is not a statement",
            ),
            ("{% include 'x' %}", 1, "`include` takes another template"),
            ("{{ 'x' * 100 }}", 1, "`*` is not taken"),
            (
                "{% for a in tags recursive %}{% endfor %}",
                1,
                "`recursive`",
            ),
            (
                "{% raw %}{% set x %}{% endraw %}\n{% set x = 1 %}",
                2,
                "`set`",
            ),
        ] {
            let fault = check_tags(text).expect_err(text);
            assert_eq!(fault.line, line, "{text}: {}", fault.message);
            assert!(
                fault.message.contains(expected),
                "{text}: {}",
                fault.message
            );
        }
    }

    #[test]
    fn quoted_text_raw_blocks_and_comments_are_not_checked() {
        for text in [
            "{{ metadata.x|default('a * b | uper \\' is nothing }}') }}",
            "{% raw %}{% include 'x' %} {{ a * b }}{% endraw %}",
            "{# set x = 1 * 2, it's #}{{ tags|length }}",
            "{% if metadata.x is defined and 'a' in tags %}a{% elif tags %}b{% else %}c{% endif %}",
            "{%- for tag in tags -%}{{ loop.index }}{%- endfor -%}",
            "{{ metadata.list|join(', ') }} * | uper",
            "{ {",
            "",
        ] {
            assert_eq!(check_tags(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn every_filter_and_test_that_is_named_exists() {
        let mut env = Environment::new();
        restrict(&mut env);
        for name in FILTERS.iter().chain(&MORE_FILTERS) {
            let text = format!("{{{{ ('{name}' is filter) }}}}");
            assert_eq!(
                env.render_str(&text, ()).ok().as_deref(),
                Some("True"),
                "{name}"
            );
        }
        for name in TESTS.iter().chain(&MORE_TESTS) {
            let text = format!("{{{{ ('{name}' is test) }}}}");
            assert_eq!(
                env.render_str(&text, ()).ok().as_deref(),
                Some("True"),
                "{name}"
            );
        }
    }
}
