//! Deciding clauses by looking things up.

use regex::Regex;

use super::grammar::{Ask, Bound, Check, Clause, Thing, Unit};
use super::lookup::{
    BULLETS, CODE, CONFIRM, CONFIRM_ORDER, EMOJI, PARAGRAPHS, REQUEST, SORRY, TABLE, VERSION,
    find_phrase, newest_version, questions, refuses,
};
use super::material::{Material, Part, PartKind};
use crate::handlers::grounding::{
    FactKind, GroundingSources, find_dates, find_facts, parse_version,
};
use crate::handlers::grounding::{normalize_phrase, split_sentences};

/// What became of a clause.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ruling {
    /// It was checked.
    Checked {
        holds: bool,
        /// What was found or missed.
        why: String,
        /// (source, quote) pairs.
        quotes: Vec<(String, String)>,
    },
    /// This page has to be read first.
    NeedsPage(String),
    /// It cannot be decided.
    Unclear(String),
}

/// A page that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Page {
    pub(super) url: String,
    /// Its number among the results, and its text; or why there is none.
    pub(super) text: Result<(usize, String), String>,
}

struct Cx<'a> {
    material: &'a Material,
    pages: &'a [Page],
    parts: Vec<&'a Part>,
}

/// Decides a clause.
pub(super) fn rule(clause: &Clause, material: &Material, pages: &[Page]) -> Ruling {
    let check = match &clause.check {
        Ok(check) => check,
        Err(why) => return Ruling::Unclear(why.clone()),
    };
    // Of an output alone, whoever is named, the output is meant.
    let parts = if clause.all && material.output.is_none() {
        material.said()
    } else {
        material.answer()
    };
    let cx = Cx {
        material,
        pages,
        parts,
    };
    match cx.check(check) {
        Ruling::Checked { holds, why, quotes } => Ruling::Checked {
            holds: holds != clause.negated,
            why,
            quotes,
        },
        other => other,
    }
}

type Quotes = Vec<(String, String)>;

fn checked(holds: bool, why: impl Into<String>, quotes: Quotes) -> Ruling {
    Ruling::Checked {
        holds,
        why: why.into(),
        quotes,
    }
}

fn source(part: &Part) -> String {
    format!("message {}", part.message)
}

impl Cx<'_> {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().map(|p| p.text.as_str()).collect();
        texts.join("\n\n")
    }

    fn check(&self, check: &Check) -> Ruling {
        match check {
            Check::Mentions { phrases, every } => self.mentions(phrases, *every),
            Check::Limit { bound, count, unit } => self.limit(*bound, *count, *unit),
            Check::Asks(ask) => self.asks(ask),
            Check::Newest { date, product, url } => self.newest(*date, product, url),
            Check::Has(thing) => self.has(*thing),
            Check::LinksTo(address) => self.links_to(address),
            Check::Apologises => self.first_match(&SORRY, "an apology"),
            Check::Grounded(kinds) => self.grounded(kinds),
            Check::QuotesSource => self.quotes_source(),
            Check::Json => {
                match serde_json::from_str::<serde::de::IgnoredAny>(self.text().trim()) {
                    Ok(_) => checked(true, "it is JSON", Vec::new()),
                    Err(error) => checked(false, format!("it is no JSON: {error}"), Vec::new()),
                }
            }
            Check::Empty => {
                let empty = self.text().trim().is_empty();
                checked(
                    empty,
                    if empty {
                        "it is empty"
                    } else {
                        "it is not empty"
                    },
                    Vec::new(),
                )
            }
            Check::Starts(phrase) => self.edge(phrase, true),
            Check::Ends(phrase) => self.edge(phrase, false),
            Check::Calls(name) => {
                let call = self
                    .material
                    .parts
                    .iter()
                    .find(|p| p.kind == PartKind::Called(name.clone()));
                match call {
                    Some(part) => checked(
                        true,
                        format!("{name} is called in {}", source(part)),
                        quote(part, &part.text),
                    ),
                    None => checked(false, format!("{name} is never called"), Vec::new()),
                }
            }
        }
    }

    fn mentions(&self, phrases: &[String], every: bool) -> Ruling {
        let mut quotes = Vec::new();
        let (mut there, mut missing) = (Vec::new(), Vec::new());
        for phrase in phrases {
            let found = self
                .parts
                .iter()
                .find_map(|p| find_phrase(&p.text, phrase).map(|q| (p, q)));
            match found {
                Some((part, found)) => {
                    quotes.push((source(part), found.to_owned()));
                    there.push(format!("“{phrase}” is in {}", source(part)));
                }
                None => missing.push(format!("“{phrase}” is not there")),
            }
        }
        let holds = if every {
            missing.is_empty()
        } else {
            !there.is_empty()
        };
        there.append(&mut missing);
        checked(holds, there.join(", "), quotes)
    }

    fn limit(&self, bound: Bound, count: usize, unit: Unit) -> Ruling {
        let text = self.text();
        let (has, name) = match unit {
            Unit::Sentences => (split_sentences(&text).len(), "sentence"),
            Unit::Words => (
                text.split_whitespace()
                    .filter(|w| w.chars().any(char::is_alphanumeric))
                    .count(),
                "word",
            ),
            Unit::Characters => (text.trim().chars().count(), "character"),
            Unit::Lines => (
                text.lines().filter(|l| !l.trim().is_empty()).count(),
                "line",
            ),
            Unit::Paragraphs => (
                PARAGRAPHS
                    .split(text.trim())
                    .filter(|p| !p.trim().is_empty())
                    .count(),
                "paragraph",
            ),
            Unit::Bullets => (BULLETS.find_iter(&text).count(), "list item"),
            Unit::Questions => (questions(&text).count(), "question"),
            Unit::Links => (find_facts(&text, &[FactKind::Url]).len(), "link"),
        };
        let (holds, wanted) = match bound {
            Bound::AtMost => (has <= count, "at most"),
            Bound::AtLeast => (has >= count, "at least"),
            Bound::Exactly => (has == count, "exactly"),
        };
        let s = if has == 1 { "" } else { "s" };
        checked(
            holds,
            format!("it has {has} {name}{s}, {wanted} {count} wanted"),
            Vec::new(),
        )
    }

    fn asks(&self, ask: &Ask) -> Ruling {
        let wanted = match ask {
            Ask::Question => "is a question".to_owned(),
            Ask::Confirmation => "asks for confirmation".to_owned(),
            Ask::For(what) => format!("asks for “{what}”"),
            Ask::About(what) => format!("is a question that names “{what}”"),
        };
        for part in &self.parts {
            let hit = match ask {
                Ask::Question => questions(&part.text).next(),
                Ask::Confirmation => split_sentences(&part.text).into_iter().find(|s| {
                    CONFIRM.is_match(s)
                        && (s.trim_end().ends_with('?') || CONFIRM_ORDER.is_match(s))
                }),
                Ask::For(what) => split_sentences(&part.text).into_iter().find(|s| {
                    find_phrase(s, what).is_some()
                        && !refuses(s, what)
                        && (s.trim_end().ends_with('?') || REQUEST.is_match(s))
                }),
                Ask::About(what) => questions(&part.text).find(|s| find_phrase(s, what).is_some()),
            };
            if let Some(sentence) = hit {
                return checked(
                    true,
                    format!("{} asks: “{sentence}”", source(part)),
                    quote(part, sentence),
                );
            }
        }
        checked(false, format!("no sentence {wanted}"), Vec::new())
    }

    fn newest(&self, date: bool, product: &[String], url: &str) -> Ruling {
        let Some(page) = self.pages.iter().find(|p| p.url == url) else {
            return Ruling::NeedsPage(url.to_owned());
        };
        let (number, text) = match &page.text {
            Ok((number, text)) => (number, text.as_str()),
            Err(why) => return Ruling::Unclear(format!("the page {url} could not be read: {why}")),
        };
        let fetch = format!("fetch {number}");
        if date {
            let newest = find_dates(text)
                .into_iter()
                .filter(|(_, d)| d.0.is_some())
                .max_by_key(|(_, d)| *d);
            let Some((at, day)) = newest else {
                return Ruling::Unclear(format!("the page {url} gives no date"));
            };
            let on_page = &text[at];
            let mut quotes = vec![(fetch, on_page.to_owned())];
            let hit = self.parts.iter().find_map(|p| {
                let found = find_dates(&p.text)
                    .into_iter()
                    .find(|(_, d)| (d.1, d.2) == (day.1, day.2) && (d.0.is_none() || d.0 == day.0));
                found.map(|(at, _)| (p, p.text[at].to_owned()))
            });
            return match hit {
                Some((part, said)) => {
                    let why = format!(
                        "the newest date on the page is {on_page}, and {} names it",
                        source(part)
                    );
                    quotes.push((source(part), said));
                    checked(true, why, quotes)
                }
                None => checked(
                    false,
                    format!(
                        "the newest date on the page is {on_page}; the answer does not name it"
                    ),
                    quotes,
                ),
            };
        }
        let Some(newest) = newest_version(text, product) else {
            return Ruling::Unclear(format!(
                "the page {url} names no version that rules can find"
            ));
        };
        let mut quotes = vec![(fetch, newest.quote.to_owned())];
        let wanted = parse_version(newest.version).0;
        let mut others = Vec::new();
        for part in &self.parts {
            for found in VERSION.find_iter(&part.text) {
                if parse_version(found.as_str()).0 == wanted {
                    let why = format!(
                        "the newest on the page is {}, and {} names it",
                        newest.version,
                        source(part)
                    );
                    quotes.push((source(part), found.as_str().to_owned()));
                    return checked(true, why, quotes);
                }
                if newest.listed.contains(&parse_version(found.as_str()).0) {
                    others.push((source(part), found.as_str().to_owned()));
                }
            }
        }
        let instead = others
            .first()
            .map_or(String::new(), |(_, other)| format!(" and names {other}"));
        quotes.extend(others.into_iter().take(1));
        let why = format!(
            "the newest on the page is {}; the answer does not name it{instead}",
            newest.version
        );
        checked(false, why, quotes)
    }

    fn has(&self, thing: Thing) -> Ruling {
        match thing {
            Thing::Fact(fact) => {
                let hit = self.parts.iter().find_map(|p| {
                    find_facts(&p.text, &[fact])
                        .into_iter()
                        .next()
                        .map(|f| (p, f.range))
                });
                match hit {
                    Some((part, at)) => {
                        let found = &part.text[at];
                        checked(
                            true,
                            format!("{} holds the {} “{found}”", source(part), fact.name()),
                            quote(part, found),
                        )
                    }
                    None => checked(false, format!("there is no {}", fact.name()), Vec::new()),
                }
            }
            Thing::Code => self.first_match(&CODE, "a code block"),
            Thing::List => self.first_match(&BULLETS, "a list"),
            Thing::Table => self.first_match(&TABLE, "a table"),
            Thing::Emoji => self.first_match(&EMOJI, "an emoji"),
            Thing::Question => self.asks(&Ask::Question),
        }
    }

    fn first_match(&self, pattern: &Regex, name: &str) -> Ruling {
        match self
            .parts
            .iter()
            .find_map(|p| pattern.find(&p.text).map(|m| (p, m.as_str())))
        {
            Some((part, found)) => checked(
                true,
                format!("{} holds {name}", source(part)),
                quote(part, found),
            ),
            None => checked(
                false,
                format!("there is no {name}")
                    .replace("no an ", "no ")
                    .replace("no a ", "no "),
                Vec::new(),
            ),
        }
    }

    fn links_to(&self, address: &str) -> Ruling {
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
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']));
                if below {
                    return checked(
                        true,
                        format!("{} links to {url}", source(part)),
                        quote(part, url),
                    );
                }
            }
        }
        checked(false, format!("there is no link to {address}"), Vec::new())
    }

    fn ground(&self) -> GroundingSources<'_> {
        let results = self.material.results().map(|p| p.text.as_str());
        let pages = self
            .pages
            .iter()
            .filter_map(|p| p.text.as_ref().ok())
            .map(|(_, text)| text.as_str());
        GroundingSources::new(results.chain(pages))
    }

    fn grounded(&self, kinds: &[FactKind]) -> Ruling {
        let ground = self.ground();
        let (mut held, mut missing, mut quotes) = (0, Vec::new(), Vec::new());
        for part in &self.parts {
            for found in find_facts(&part.text, kinds) {
                let text = &part.text[found.range.clone()];
                if ground.contains(&found) {
                    held += 1;
                } else {
                    missing.push(format!("the {} “{text}”", found.kind.name()));
                    quotes.push((source(part), text.to_owned()));
                }
            }
        }
        let names: Vec<&str> = kinds.iter().map(|k| k.name()).collect();
        match (held, missing.len()) {
            (0, 0) => checked(
                true,
                format!("the answer holds none ({})", names.join(", ")),
                Vec::new(),
            ),
            (n, 0) => checked(
                true,
                format!("all {n} found in tool results or fetched pages"),
                Vec::new(),
            ),
            (_, m) => {
                missing.dedup();
                let more = if missing.len() > 5 { ", …" } else { "" };
                missing.truncate(5);
                quotes.truncate(5);
                let why = format!(
                    "{m} of {} not found in any tool result or fetched page: {}{more}",
                    held + m,
                    missing.join(", ")
                );
                checked(false, why, quotes)
            }
        }
    }

    fn quotes_source(&self) -> Ruling {
        let ground = self.ground();
        for part in &self.parts {
            for found in find_facts(&part.text, &[FactKind::Quote]) {
                let text = &part.text[found.range.clone()];
                if text.split_whitespace().count() > 1 && ground.contains(&found) {
                    return checked(
                        true,
                        format!("“{text}” stands in a source"),
                        quote(part, text),
                    );
                }
            }
        }
        checked(
            false,
            "no quoted phrase of two words or more stands in a tool result or fetched page",
            Vec::new(),
        )
    }

    fn edge(&self, phrase: &str, start: bool) -> Ruling {
        let text = self.text();
        let (text, wanted) = (normalize_phrase(&text), normalize_phrase(phrase));
        let holds = match (phrase, start) {
            ("?", false) => self.text().trim_end().ends_with('?'),
            (_, true) => text.starts_with(&wanted),
            (_, false) => text.ends_with(&wanted),
        };
        let end = if start { "begin" } else { "end" };
        let not = if holds { "it does" } else { "it does not" };
        checked(holds, format!("{not} {end} with “{phrase}”"), Vec::new())
    }
}

fn quote(part: &Part, text: &str) -> Quotes {
    vec![(source(part), text.to_owned())]
}
