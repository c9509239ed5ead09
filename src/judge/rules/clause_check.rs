//! The checks of clauses against the prompt's material and the fetched pages.
//!
//! Responsible for whether a clause holds, and for the quotes that show it. Does not read clauses (`grammar`), does not
//! fetch a page (a clause can ask for one), and does not combine clauses to a verdict (`rules_verdict`).

use regex::Regex;

use super::clause::{AskTarget, Clause, ClauseCheck, ContentKind, CountUnit, LimitBound};
use super::prompt_material::{PromptMaterial, PromptPart, PromptPartKind};
use super::text_patterns::{
    BULLETS, CODE, CONFIRM, CONFIRM_ORDER, EMOJI, PARAGRAPHS, REQUEST, SORRY, TABLE, VERSION,
    find_newest_version, find_phrase, find_questions, is_declined,
};
use crate::handlers::grounding::{
    FactKind, GroundingSources, find_dates, find_facts, parse_version,
};
use crate::handlers::grounding::{normalize_phrase, split_sentences};

/// The result of a clause.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ClauseResult {
    /// The clause was checked.
    Checked {
        holds: bool,
        /// The things found or missed.
        why: String,
        /// The evidence.
        quotes: Vec<SourceQuote>,
    },
    /// This page has to be fetched first.
    NeedsPage(String),
    /// The clause can't be decided, for this reason.
    Unclear(String),
}

/// The result of fetching a page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FetchedPage {
    pub(super) url: String,
    /// The content, or the reason why there is none.
    pub(super) content: Result<PageContent, String>,
}

/// The content of a fetched page.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PageContent {
    /// Its number among the tool responses, by which a verdict cites it.
    pub(super) number: usize,
    pub(super) text: String,
}

struct ClauseCheckCx<'a> {
    material: &'a PromptMaterial,
    pages: &'a [FetchedPage],
    parts: Vec<&'a PromptPart>,
}

/// Checks a clause.
pub(super) fn check_clause(
    clause: &Clause,
    material: &PromptMaterial,
    pages: &[FetchedPage],
) -> ClauseResult {
    let check = match &clause.check {
        Ok(check) => check,
        Err(why) => return ClauseResult::Unclear(why.clone()),
    };
    // If an output is judged, every subject means the output.
    let parts = if clause.whole_conversation && material.output.is_none() {
        material.agent_parts()
    } else {
        material.answer_parts()
    };
    let cx = ClauseCheckCx {
        material,
        pages,
        parts,
    };
    match cx.run_check(check) {
        // Negate only here, so that the checks themselves know nothing of negation.
        ClauseResult::Checked { holds, why, quotes } => ClauseResult::Checked {
            holds: holds != clause.negated,
            why,
            quotes,
        },
        other => other,
    }
}

/// A quote that supports a result, and where it is from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SourceQuote {
    /// The source as a citation names it: `message 4`, `fetch 1`.
    pub(super) source: String,
    pub(super) quote: String,
}

impl SourceQuote {
    fn from_part(part: &PromptPart, quote: &str) -> Self {
        Self {
            source: format_source(part),
            quote: quote.to_owned(),
        }
    }
}

fn checked_result(holds: bool, why: impl Into<String>, quotes: Vec<SourceQuote>) -> ClauseResult {
    ClauseResult::Checked {
        holds,
        why: why.into(),
        quotes,
    }
}

fn format_source(part: &PromptPart) -> String {
    format!("message {}", part.message)
}

impl ClauseCheckCx<'_> {
    fn joined_text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().map(|p| p.text.as_str()).collect();
        texts.join("\n\n")
    }

    fn run_check(&self, check: &ClauseCheck) -> ClauseResult {
        match check {
            ClauseCheck::Mentions { phrases, every } => self.check_mentions(phrases, *every),
            ClauseCheck::Limit { bound, count, unit } => self.check_limit(*bound, *count, *unit),
            ClauseCheck::Asks(target) => self.check_asks(target),
            ClauseCheck::Newest { date, product, url } => self.check_newest(*date, product, url),
            ClauseCheck::Has(thing) => self.check_has(*thing),
            ClauseCheck::LinksTo(address) => self.check_links_to(address),
            ClauseCheck::Apologises => self.check_first_match(&SORRY, "an apology"),
            ClauseCheck::Grounded {
                kinds,
                in_user_messages,
            } => self.check_grounded(kinds, *in_user_messages),
            ClauseCheck::QuotesSource => self.check_quotes_source(),
            ClauseCheck::Json => {
                // `IgnoredAny` checks the syntax without building the value.
                match serde_json::from_str::<serde::de::IgnoredAny>(self.joined_text().trim()) {
                    Ok(_) => checked_result(true, "it is JSON", Vec::new()),
                    Err(error) => {
                        checked_result(false, format!("it isn't JSON: {error}"), Vec::new())
                    }
                }
            }
            ClauseCheck::Empty => {
                let empty = self.joined_text().trim().is_empty();
                checked_result(
                    empty,
                    if empty {
                        "it is empty"
                    } else {
                        "it is not empty"
                    },
                    Vec::new(),
                )
            }
            ClauseCheck::Starts(phrase) => self.check_edge(phrase, true),
            ClauseCheck::Ends(phrase) => self.check_edge(phrase, false),
            ClauseCheck::Calls(name) => {
                let call = self
                    .material
                    .parts
                    .iter()
                    .find(|p| p.kind == PromptPartKind::AgentCall(name.clone()));
                match call {
                    Some(part) => checked_result(
                        true,
                        format!("{name} is called in {}", format_source(part)),
                        quote_part(part, &part.text),
                    ),
                    None => checked_result(false, format!("{name} is never called"), Vec::new()),
                }
            }
        }
    }

    fn check_mentions(&self, phrases: &[String], every: bool) -> ClauseResult {
        let mut quotes = Vec::new();
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for phrase in phrases {
            let found = self
                .parts
                .iter()
                .find_map(|p| find_phrase(&p.text, phrase).map(|q| (p, q)));
            match found {
                Some((part, found)) => {
                    quotes.push(SourceQuote::from_part(part, found));
                    there.push(format!("“{phrase}” is in {}", format_source(part)));
                }
                None => missing.push(format!("“{phrase}” is not there")),
            }
        }
        // `and` needs all phrases, `or` needs one of them.
        let holds = if every {
            missing.is_empty()
        } else {
            !there.is_empty()
        };
        there.append(&mut missing);
        checked_result(holds, there.join(", "), quotes)
    }

    fn check_limit(&self, bound: LimitBound, count: usize, unit: CountUnit) -> ClauseResult {
        let text = self.joined_text();
        let (actual, name) = match unit {
            CountUnit::Sentences => (split_sentences(&text).len(), "sentence"),
            CountUnit::Words => (
                text.split_whitespace()
                    // A dash or a bullet between spaces is not a word.
                    .filter(|w| w.chars().any(char::is_alphanumeric))
                    .count(),
                "word",
            ),
            CountUnit::Characters => (text.trim().chars().count(), "character"),
            CountUnit::Lines => (
                text.lines().filter(|l| !l.trim().is_empty()).count(),
                "line",
            ),
            CountUnit::Paragraphs => (
                PARAGRAPHS
                    .split(text.trim())
                    .filter(|p| !p.trim().is_empty())
                    .count(),
                "paragraph",
            ),
            CountUnit::Bullets => (BULLETS.find_iter(&text).count(), "list item"),
            CountUnit::Questions => (find_questions(&text).count(), "question"),
            CountUnit::Links => (find_facts(&text, &[FactKind::Url]).len(), "link"),
        };
        let (holds, wanted) = match bound {
            LimitBound::AtMost => (actual <= count, "at most"),
            LimitBound::AtLeast => (actual >= count, "at least"),
            LimitBound::Exactly => (actual == count, "exactly"),
        };
        let s = if actual == 1 { "" } else { "s" };
        checked_result(
            holds,
            format!("it has {actual} {name}{s}, {wanted} {count} wanted"),
            Vec::new(),
        )
    }

    fn check_asks(&self, target: &AskTarget) -> ClauseResult {
        let wanted = match target {
            AskTarget::Question => "is a question".to_owned(),
            AskTarget::Confirmation => "asks for confirmation".to_owned(),
            AskTarget::For(what) => format!("asks for “{what}”"),
            AskTarget::About(what) => format!("is a question that names “{what}”"),
        };
        for part in &self.parts {
            let hit = match target {
                AskTarget::Question => find_questions(&part.text).next(),
                AskTarget::Confirmation => split_sentences(&part.text).into_iter().find(|s| {
                    CONFIRM.is_match(s)
                        && (s.trim_end().ends_with('?') || CONFIRM_ORDER.is_match(s))
                }),
                AskTarget::For(what) => split_sentences(&part.text).into_iter().find(|s| {
                    find_phrase(s, what).is_some()
                        // "Never share your PIN" names the thing but doesn't ask for it.
                        && !is_declined(s, what)
                        && (s.trim_end().ends_with('?') || REQUEST.is_match(s))
                }),
                AskTarget::About(what) => {
                    find_questions(&part.text).find(|s| find_phrase(s, what).is_some())
                }
            };
            if let Some(sentence) = hit {
                return checked_result(
                    true,
                    format!("{} asks: “{sentence}”", format_source(part)),
                    quote_part(part, sentence),
                );
            }
        }
        checked_result(false, format!("no sentence {wanted}"), Vec::new())
    }

    fn check_newest(&self, date: bool, product: &[String], url: &str) -> ClauseResult {
        // The caller fetches the page and checks the clause again.
        let Some(page) = self.pages.iter().find(|p| p.url == url) else {
            return ClauseResult::NeedsPage(url.to_owned());
        };
        let (number, text) = match &page.content {
            Ok(content) => (content.number, content.text.as_str()),
            Err(why) => {
                return ClauseResult::Unclear(format!("the page {url} could not be read: {why}"));
            }
        };
        let page_quote = |quote: &str| SourceQuote {
            source: format!("fetch {number}"),
            quote: quote.to_owned(),
        };
        if date {
            // Without a year a date can't be compared, so only complete dates of the page count.
            let newest = find_dates(text)
                .into_iter()
                .filter(|(_, d)| d.year.is_some())
                .max_by_key(|(_, d)| *d);
            let Some((at, day)) = newest else {
                return ClauseResult::Unclear(format!("the page {url} gives no date"));
            };
            let on_page = &text[at];
            let mut quotes = vec![page_quote(on_page)];
            let hit = self.parts.iter().find_map(|p| {
                let found = find_dates(&p.text).into_iter().find(|(_, d)| {
                    (d.month, d.day) == (day.month, day.day)
                        && (d.year.is_none() || d.year == day.year)
                });
                found.map(|(at, _)| (p, p.text[at].to_owned()))
            });
            return match hit {
                Some((part, stated_date)) => {
                    let why = format!(
                        "the newest date on the page is {on_page}, and {} names it",
                        format_source(part)
                    );
                    quotes.push(SourceQuote::from_part(part, &stated_date));
                    checked_result(true, why, quotes)
                }
                None => checked_result(
                    false,
                    format!(
                        "the newest date on the page is {on_page}; the answer does not name it"
                    ),
                    quotes,
                ),
            };
        }
        // Not a date, so the clause asks for a version.
        let Some(newest) = find_newest_version(text, product) else {
            return ClauseResult::Unclear(format!(
                "the page {url} names no version that rules can find"
            ));
        };
        let mut quotes = vec![page_quote(newest.quote)];
        let wanted = parse_version(newest.version).0;
        let mut others = Vec::new();
        for part in &self.parts {
            for found in VERSION.find_iter(&part.text) {
                if parse_version(found.as_str()).0 == wanted {
                    let why = format!(
                        "the newest on the page is {}, and {} names it",
                        newest.version,
                        format_source(part)
                    );
                    quotes.push(SourceQuote::from_part(part, found.as_str()));
                    return checked_result(true, why, quotes);
                }
                // Only versions of the page are a wrong answer; others can belong to another product.
                if newest.listed.contains(&parse_version(found.as_str()).0) {
                    others.push(SourceQuote::from_part(part, found.as_str()));
                }
            }
        }
        let instead = others
            .first()
            .map_or(String::new(), |other| format!(" and names {}", other.quote));
        // One wrong version is enough as evidence.
        quotes.extend(others.into_iter().take(1));
        let why = format!(
            "the newest on the page is {}; the answer does not name it{instead}",
            newest.version
        );
        checked_result(false, why, quotes)
    }

    fn check_has(&self, thing: ContentKind) -> ClauseResult {
        match thing {
            ContentKind::Fact(fact) => {
                let hit = self.parts.iter().find_map(|p| {
                    find_facts(&p.text, &[fact])
                        .into_iter()
                        .next()
                        .map(|f| (p, f.range))
                });
                match hit {
                    Some((part, at)) => {
                        let found = &part.text[at];
                        checked_result(
                            true,
                            format!(
                                "{} holds the {} “{found}”",
                                format_source(part),
                                fact.name()
                            ),
                            quote_part(part, found),
                        )
                    }
                    None => {
                        checked_result(false, format!("there is no {}", fact.name()), Vec::new())
                    }
                }
            }
            ContentKind::Code => self.check_first_match(&CODE, "a code block"),
            ContentKind::List => self.check_first_match(&BULLETS, "a list"),
            ContentKind::Table => self.check_first_match(&TABLE, "a table"),
            ContentKind::Emoji => self.check_first_match(&EMOJI, "an emoji"),
            ContentKind::Question => self.check_asks(&AskTarget::Question),
        }
    }

    fn check_first_match(&self, pattern: &Regex, name: &str) -> ClauseResult {
        match self
            .parts
            .iter()
            .find_map(|p| pattern.find(&p.text).map(|m| (p, m.as_str())))
        {
            Some((part, found)) => checked_result(
                true,
                format!("{} holds {name}", format_source(part)),
                quote_part(part, found),
            ),
            None => checked_result(
                false,
                format!("there is no {name}")
                    .replace("no an ", "no ")
                    .replace("no a ", "no "),
                Vec::new(),
            ),
        }
    }

    fn check_links_to(&self, address: &str) -> ClauseResult {
        // The scheme, the case and a last slash don't make another address.
        let plain = |url: &str| {
            let url = url.to_lowercase();
            let url = url
                .strip_prefix("https://")
                .or(url.strip_prefix("http://"))
                .unwrap_or(&url)
                .to_owned();
            url.trim_end_matches('/').to_owned()
        };
        let wanted = plain(address);
        for part in &self.parts {
            for found in find_facts(&part.text, &[FactKind::Url]) {
                let url = &part.text[found.range.clone()];
                let there = plain(url);
                let below = there
                    .strip_prefix(&wanted)
                    // A longer host such as `example.com.evil.org` must not match.
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
                if below {
                    return checked_result(
                        true,
                        format!("{} links to {url}", format_source(part)),
                        quote_part(part, url),
                    );
                }
            }
        }
        checked_result(false, format!("there is no link to {address}"), Vec::new())
    }

    fn build_ground(&self, in_user_messages: bool) -> GroundingSources<'_> {
        let results = self.material.tool_result_parts().map(|p| p.text.as_str());
        let said = self.material.user_parts().map(|p| p.text.as_str());
        let said = said.filter(move |_| in_user_messages);
        let pages = self
            .pages
            .iter()
            .filter_map(|p| p.content.as_ref().ok())
            .map(|content| content.text.as_str());
        GroundingSources::new(results.chain(pages).chain(said))
    }

    fn check_grounded(&self, kinds: &[FactKind], in_user_messages: bool) -> ClauseResult {
        let ground = self.build_ground(in_user_messages);
        let (mut held, mut missing, mut quotes) = (0, Vec::new(), Vec::new());
        for part in &self.parts {
            for found in find_facts(&part.text, kinds) {
                let text = &part.text[found.range.clone()];
                if ground.contains(&found) {
                    held += 1;
                } else {
                    missing.push(format!("the {} “{text}”", found.kind.name()));
                    quotes.push(SourceQuote::from_part(part, text));
                }
            }
        }
        let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        match (held, missing.len()) {
            // Without facts nothing is invented, so the clause holds.
            (0, 0) => checked_result(
                true,
                format!("the answer holds none ({})", names.join(", ")),
                Vec::new(),
            ),
            (n, 0) => checked_result(
                true,
                if in_user_messages {
                    format!("all {n} found in tool results, fetched pages or messages of the user")
                } else {
                    format!("all {n} found in tool results or fetched pages")
                },
                Vec::new(),
            ),
            (_, m) => {
                missing.dedup();
                let more = if missing.len() > 5 { ", …" } else { "" };
                // Five examples show the problem; more would only lengthen the verdict.
                missing.truncate(5);
                quotes.truncate(5);
                let sources = if in_user_messages {
                    "tool result, fetched page or message of the user"
                } else {
                    "tool result or fetched page"
                };
                let why = format!(
                    "{m} of {} not found in any {sources}: {}{more}",
                    held + m,
                    missing.join(", ")
                );
                checked_result(false, why, quotes)
            }
        }
    }

    fn check_quotes_source(&self) -> ClauseResult {
        let ground = self.build_ground(false);
        for part in &self.parts {
            for found in find_facts(&part.text, &[FactKind::Quote]) {
                let text = &part.text[found.range.clone()];
                // A single quoted word occurs in any page by chance.
                if text.split_whitespace().count() > 1 && ground.contains(&found) {
                    return checked_result(
                        true,
                        format!("“{text}” occurs in a source"),
                        quote_part(part, text),
                    );
                }
            }
        }
        checked_result(
            false,
            "no quoted phrase of two words or more occurs in a tool result or fetched page",
            Vec::new(),
        )
    }

    fn check_edge(&self, phrase: &str, start: bool) -> ClauseResult {
        let text = self.joined_text();
        let (text, wanted) = (normalize_phrase(&text), normalize_phrase(phrase));
        let holds = match (phrase, start) {
            // The grammar stores `ends with a question` as the phrase `?`.
            ("?", false) => self.joined_text().trim_end().ends_with('?'),
            (_, true) => text.starts_with(&wanted),
            (_, false) => text.ends_with(&wanted),
        };
        let end = if start { "begin" } else { "end" };
        let not = if holds { "it does" } else { "it does not" };
        checked_result(holds, format!("{not} {end} with “{phrase}”"), Vec::new())
    }
}

fn quote_part(part: &PromptPart, text: &str) -> Vec<SourceQuote> {
    vec![SourceQuote::from_part(part, text)]
}
