//! Reading clauses. Every pattern matches a whole clause: a word too many, a condition, an unknown object, and the clause
//! is not read. See the table in [`super`].

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::facts::{Fact, sentences};

/// A clause of a rubric and what it was understood to ask.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clause {
    /// As written.
    pub(super) text: String,
    /// Whether all the agent said counts, or the answer alone.
    pub(super) all: bool,
    /// Whether the check must not hold.
    pub(super) negated: bool,
    /// What to look for, or why the clause cannot be read.
    pub(super) check: Result<Check, String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Check {
    Mentions {
        phrases: Vec<String>,
        every: bool,
    },
    Limit {
        bound: Bound,
        count: usize,
        unit: Unit,
    },
    Asks(Ask),
    Newest {
        date: bool,
        product: Vec<String>,
        url: String,
    },
    Has(Thing),
    LinksTo(String),
    Apologises,
    Grounded(Vec<Fact>),
    QuotesSource,
    Json,
    Empty,
    Starts(String),
    Ends(String),
    Calls(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    AtMost,
    AtLeast,
    Exactly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Sentences,
    Words,
    Characters,
    Lines,
    Paragraphs,
    Bullets,
    Questions,
    Links,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ask {
    Question,
    Confirmation,
    For(String),
    About(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    Fact(Fact),
    Code,
    List,
    Table,
    Emoji,
    Question,
}

macro_rules! pattern {
    ($name:ident, $pattern:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a valid pattern"));
    };
}

const SUBJECT: &str = r"(?:(?:the|its|this)\s+)?(?:(?:final|last|agent's|assistant's|model's|agent’s|assistant’s)\s+)?(?:answer|output|response|reply|message|text|summary|agent|assistant|model|bot|conversation|session|it)";

static NEXT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?ix)(\s*(?:,\s*(?:and|but)|,|;|\s(?:and|but))\s+)(?:(?:also|then|it|{SUBJECT})\s+)*
        (?:must|should|does|do|never|always|has|have|is|are|isn't|avoids?|doesn't|don't|cannot
        |mentions?|names?|contains?|includes?|says?|states?|uses?|tells?|refers?|gives?|lists?|quotes?|cites?|links?|asks?|requests?
        |apologi[sz]es?|offers?|stays?|keeps?|exceeds?|begins?|starts?|ends?|calls?|invokes?|invents?|provides?|shows?|reports?|explains?|writes?)\b"
    ))
    .expect("a valid pattern")
});
pattern!(
    LEVEL,
    r"(?i)^[-*•]?\s*(?:score\s+|level\s+)?(\d+\.\d+|\d+(?:\s*[:=]|\s+[–—-]|\s{2,})|(?:pass|fail)\s*:)\s*[:=–—-]?\s*(.*)$"
);
pattern!(BULLET, r"^\s*(?:[-*•+]|\(?\d{1,2}[.)])\s+");
static LEAD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)^({SUBJECT})\s+")).expect("a valid pattern"));
pattern!(
    ALL_SAID,
    r"(?i)\b(agent|assistant|model|bot|conversation|session)$"
);
pattern!(
    MODAL,
    r"(?i)^(?:also|then|always|explicitly|clearly|(?:must|should|shall|will|has\s+to|needs\s+to|have\s+to)(?:\s+always)?)\s+"
);
pattern!(
    NEGATION,
    r"(?i)^(?:(?:does|do|must|should|shall|will|may|can)\s+(?:not|never)|cannot|doesn['’]t|don['’]t|mustn['’]t|shouldn['’]t|won['’]t|can['’]t|never|not|avoids?(?:\s+to)?|without)\s+(?:ever\s+)?"
);
const VERB_SAY: &str = r"(?:mention|name|contain|includ|say|stat|us|tell|refer|giv|list|provid|report|show|writ)(?:e?s|ing|e)?(?:\s+to)?";

/// Reads criteria and scoring guide.
pub(super) fn read(criteria: &str, guide: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut levels = Vec::new();
    for line in criteria.lines().chain(guide.lines()) {
        if let Some(level) = LEVEL.captures(line.trim()) {
            levels.push((level[1].to_owned(), level[2].to_owned()));
            continue;
        }
        clauses.extend(line_clauses(line));
    }
    if clauses.is_empty() {
        // A guide of levels alone: its highest level says what is wanted.
        let value = |name: &str| {
            let digits: String = name
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            if name.to_ascii_lowercase().starts_with("pass") {
                1.0
            } else {
                digits.parse().unwrap_or(0.0_f64)
            }
        };
        if let Some((_, best)) = levels
            .iter()
            .max_by(|a, b| value(&a.0).total_cmp(&value(&b.0)))
        {
            clauses.extend(line_clauses(best));
        }
    }
    clauses
}

fn line_clauses(line: &str) -> Vec<Clause> {
    let line = BULLET.replace(line, "");
    let mut clauses = Vec::new();
    for sentence in sentences(&line) {
        let sentence = sentence.trim().trim_end_matches(['.', ';', ',', '!', ':']);
        let mut all = false;
        for piece in split(sentence) {
            clauses.push(clause(piece.trim(), &mut all));
        }
    }
    clauses
}

/// The parts of a sentence that begin with a verb of their own; nothing within quotation marks is split.
fn split(sentence: &str) -> Vec<&str> {
    let masked = mask(sentence);
    let (mut parts, mut from, mut seek) = (Vec::new(), 0, 0);
    while let Some(next) = NEXT.captures_at(&masked, seek) {
        let join = next.get(1).expect("the first group always matches").range();
        seek = join.end;
        if join.start > from {
            parts.push(&sentence[from..join.start]);
            from = join.end;
        }
    }
    parts.push(&sentence[from..]);
    parts
}

/// The text with everything quoted made opaque, byte for byte as long.
fn mask(text: &str) -> String {
    QUOTED
        .replace_all(text, |quoted: &Captures<'_>| "Q".repeat(quoted[0].len()))
        .into_owned()
}

pattern!(
    QUOTED,
    "“[^”]+”|\"[^\"]+\"|‘[^’]+’|`[^`]+`|\\B'[^']+'\\B|«[^»]+»"
);
pattern!(
    NO,
    r"(?i)^(?:(?:contains?|includes?|has|have|uses?|gives?|with|mentions?|names?|makes?|asks?|is|offers?|quotes?|cites?)\s+)?no\s+(?:more\s+than\b)?"
);

fn clause(text: &str, all: &mut bool) -> Clause {
    let mut rest = text;
    if let Some(lead) = LEAD.captures(rest) {
        *all = ALL_SAID.is_match(&lead[1]);
        rest = &rest[lead[0].len()..];
    }
    let mut negated = false;
    loop {
        if let Some(modal) = MODAL.find(rest) {
            rest = &rest[modal.end()..];
        } else if let Some(not) = NEGATION.find(rest) {
            negated = !negated;
            rest = &rest[not.end()..];
        } else {
            break;
        }
    }
    let mut check = body(rest, &mut negated);
    if check.is_err()
        && let Some(no) = NO.find(rest).filter(|no| !no.as_str().ends_with("than"))
    {
        // `contains no link`, `no emoji`: the same clause, negated.
        let mut other = !negated;
        let positive = format!("contains {}", &rest[no.end()..]);
        if let Ok(read) = body(&positive, &mut other) {
            negated = other;
            check = Ok(read);
        }
    }
    Clause {
        text: text.to_owned(),
        all: *all,
        negated,
        check,
    }
}

const SOURCE: &str = r"(?:(?:(?:a|an|the|any|some|its|at\s+least\s+one|one\s+of\s+the)\s+)?(?:tools?|search|function)['’]?s?\s+(?:results?|outputs?|answers?|responses?)|(?:the\s+|a\s+)?(?:results?\s+of\s+(?:a|the|its)\s+tools?)|(?:the|a|any)\s+(?:fetched\s+)?(?:pages?|sources?|results?)|what\s+(?:the|its)\s+tools\s+returned)(?:\s+or\s+(?:in\s+|on\s+)?(?:a|the)\s+(?:fetched\s+)?pages?)?";
const KIND: &str = r"(?:(?:every|each|all|any|the)\s+)?(?:numbers?|figures?|version(?:\s+number)?s?|dates?|amounts?|prices?|sums?|percentages?|urls?|links?|quot(?:es?|ations?)|quoted\s+(?:phrases?|passages?|texts?|words?|sentences?))";
const ADDRESS: &str = r"<?(https?://[^\s<>]+|(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s<>]*)?)>?";
const OF_ANSWER: &str = r"(?:\s+(?:in|of)\s+(?:(?:the|its|this)\s+)?(?:(?:final|last)\s+)?(?:answer|output|response|reply|message|text|it)|\s+(?:the\s+(?:answer|output|response|reply|agent)|it)\s+(?:gives?|names?|mentions?|states?|contains?))?";

static GROUNDED: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = format!(r"({KIND}(?:(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+){KIND})*)");
    Regex::new(&format!(
        r"(?ix)^(?:
            (?:every|each|all|any)\s+(?:of\s+the\s+)?{kinds}{OF_ANSWER}\s+(?:must\s+|should\s+)?(?:also\s+)?(?:occurs?|appears?|stands?|comes?|is|are|be|can\s+be)(?:\s+(?:found|supported|backed|present|stated|taken))?\s+(?:in|from|by|on)\s+{SOURCE}
          | (?:is|are|be|stays?)\s+(?:fully\s+|well\s+|entirely\s+)?(?:grounded|supported|backed)(?:\s+(?:in|by|on)\s+{SOURCE})?
          | grounded(?:\s+in\s+{SOURCE})?
        )$",
        kinds = kinds.replace(' ', r"\ ")
    ))
    .expect("a valid pattern")
});
static INVENTED: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = format!(r"({KIND}(?:(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+){KIND})*)");
    Regex::new(&format!(
        r"(?i)^(?:(?:contains?|has|have|gives?|uses?|states?|names?|includes?)\s+)?(no\s+)?(?:any\s+)?(?:(?:invented|made[- ]up|unsupported|ungrounded|fabricated|hallucinated)|(?:invents?|inventing|makes?\s+up|fabricates?)(\s+no)?(?:\s+any)?)\s+{kinds}$"
    ))
    .expect("a valid pattern")
});
static NEWEST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^{VERB_SAY}\s+(?:the\s+)?(?:newest|latest|most\s+recent|current|highest)\s+(.*?)(?:\s*,?\s*(?:(?:that|which)\s+is\s+)?(?:(?:listed|published|given|shown|named|found|announced)\s+)?(?:on|at|from|in|by|according\s+to|per)\s+(?:the\s+page\s+)?{ADDRESS})?$"
    ))
    .expect("a valid pattern")
});
pattern!(
    ASKS,
    r"(?i)^(?:asks?|asking|requests?|requesting)\s+(?:(?:the\s+)?(?:user|customer|person|client|caller|reader|them)\s+)?(.*)$"
);
pattern!(
    ASK_QUESTION,
    r"(?i)^(?:a|one|at\s+least\s+one|any|some)?\s*(?:clarifying|follow-up|further|open)?\s*questions?$"
);
pattern!(
    ASK_CONFIRM,
    r"(?i)^(?:for\s+(?:(?:an?|the|their|explicit|the\s+user's)\s+)*(?:confirmation|approval|permission|consent|go-ahead)|to\s+(?:confirm|approve))$"
);
pattern!(ASK_FOR, r"(?i)^(for|about)\s+(.+)$");
pattern!(
    ARTICLE,
    r"(?i)^(?:an?|the|any|their|his|her|your|its|the\s+(?:user|customer|person|client)['’]s)\s+"
);
const COUNT: &str = r"(\d{1,6}|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|fifty|a\s+hundred)";
static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^(?:(?:has|have|is|are|contains?|uses?|stays?|keeps?|be|runs?|takes?|with|includes?|asks?|gives?|consists?\s+of)\s+)?(?:(?:to|in|within)\s+)?(?:(at\s+most|no\s+more\s+than|more\s+than|up\s+to|an?\s+max(?:imum)?\s+of|max(?:imum)?\.?|no\s+longer\s+than|longer\s+than|within|fewer\s+than|less\s+than|under|below|shorter\s+than|at\s+least|no\s+fewer\s+than|no\s+less\s+than|a\s+minimum\s+of|minimum|over|exceeds?|exceed|exactly|precisely)\s+)?{COUNT}\s+(or\s+(?:fewer|less|more)\s+)?(sentence|word|character|line|paragraph|bullet(?:\s+point)?|question|link)s?(\s+or\s+(?:fewer|less|more))?(?:\s+(?:long|in\s+length|in\s+total|altogether))?$"
    ))
    .expect("a valid pattern")
});
pattern!(
    CITES,
    r"(?i)^(?:(?:cites?|citing|gives?|provides?|includes?|names?|references?|contains?)\s+(?:(?:its|an?|any|at\s+least\s+one|some)\s+)?(?:sources?(?:\s+(?:url|link))?|references?|urls?|links?|sources?\s+or\s+(?:a\s+)?(?:urls?|links?))|links?\s+to\s+(?:its|an?|any|at\s+least\s+one)\s+(?:sources?|pages?))$"
);
static LINKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^(?:(?:links?|linking|points?)\s+to|cites?|citing|references?)\s+{ADDRESS}$"
    ))
    .expect("a valid pattern")
});
pattern!(
    SORRY,
    r"(?i)^(?:apologi[sz](?:es?|ing)|says?\s+(?:(?:that\s+)?it\s+is\s+)?sorry|(?:offers?|contains?|includes?|gives?)\s+an?\s+apology|contains\s+apology)$"
);
pattern!(
    HAS,
    r"(?i)^(?:contains?|containing|includes?|has|have|gives?|names?|states?|mentions?|uses?|using|lists?|shows?|provides?)\s+(?:(?:an?|any|some|at\s+least\s+one|one\s+or\s+more)\s+)?(?:(?:concrete|specific|explicit|exact)\s+)?(number|figure|digit|version(?:\s+number)?|date|amount|price|link|url|quote|quotation|quoted\s+phrase|code(?:\s+block)?|bullet(?:\s+point)?|list|bulleted\s+list|numbered\s+list|table|emoji|question|question\s+mark)s?$"
);
pattern!(
    QUOTES_SOURCE,
    r"(?i)^quot(?:es?|ing)\s+(?:from\s+)?(?:(?:the|an?|its|at\s+least\s+one)\s+)?(?:pages?|sources?|(?:tool|search)\s+results?|results?|website)$"
);
pattern!(QUOTES, r"(?i)^quot(?:es?|ing)\s+(.*)$");
pattern!(JSON, r"(?i)^(?:is|be)\s+(?:(?:valid|well-formed)\s+)?json$");
pattern!(EMPTY, r"(?i)^(?:is|be)\s+(not\s+)?empty$");
pattern!(
    EDGE,
    r"(?i)^(begin|start|open|end|clos)(?:e?s|ing|e)?\s+with\s+(.*)$"
);
pattern!(
    CALLS,
    r"(?i)^(?:(?:calls?|calling|invokes?|uses?|runs?)\s+(?:the\s+)?(?:(?:tool|function)\s+[`'“]?([\w.-]+)[`'”]?|[`'“]?([\w.-]+)[`'”]?\s+(?:tool|function))|(?:calls?|calling|invokes?)\s+[`“]?([a-z]\w*_\w+|[\w.-]+)[`”]?)(?:\s+at\s+least\s+once)?$"
);
static SAYS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)^{VERB_SAY}\s+(.*)$")).expect("a valid pattern"));
pattern!(
    PASSIVE,
    r"(?i)^(.+?)\s+(?:is|are)\s+((?:not|never)\s+)?(?:mentioned|named|included|stated|contained|given)$"
);
pattern!(
    TAIL,
    r"(?i)\s+(?:(?:somewhere\s+|anywhere\s+)?in\s+(?:the|its)\s+(?:answer|output|response|reply|text|message)|at\s+least\s+once|explicitly|verbatim|literally|by\s+name|anywhere)$"
);
pattern!(
    NOUN,
    r"(?i)^(?:either\s+|both\s+)?(?:the\s+|an?\s+)?(?:exact\s+)?(?:words?|phrases?|terms?|names?|strings?|texts?)\s+"
);
pattern!(AND_OR, r"(?i)\s*,\s*(?:(and|or)\s+)?|\s+(and|or)\s+");

fn body(text: &str, negated: &mut bool) -> Result<Check, String> {
    let text = TAIL.replace(text, "");
    let text = text.as_ref();
    if let Some(c) = GROUNDED.captures(text) {
        return Ok(Check::Grounded(
            c.get(1)
                .map_or_else(|| Fact::ALL.to_vec(), |k| kinds(k.as_str())),
        ));
    }
    if let Some(c) = INVENTED.captures(text) {
        // `no invented numbers`, `does not invent numbers`: grounding, and not its contrary.
        let no = c.get(1).or(c.get(2)).is_some();
        if no == *negated {
            return Err("it would ask for something invented".to_owned());
        }
        *negated = false;
        return Ok(Check::Grounded(kinds(&c[3])));
    }
    if let Some(c) = NEWEST.captures(text) {
        return newest(&c);
    }
    if let Some(c) = ASKS.captures(text)
        && let Some(ask) = asks(&c[1])
    {
        return Ok(Check::Asks(ask));
    }
    if let Some(c) = LIMIT.captures(text)
        && let Some(limit) = limit(&c)
    {
        return Ok(limit);
    }
    if CITES.is_match(text) {
        return Ok(Check::Has(Thing::Fact(Fact::Url)));
    }
    if let Some(c) = LINKS.captures(text) {
        return Ok(Check::LinksTo(c[1].to_owned()));
    }
    if SORRY.is_match(text) {
        return Ok(Check::Apologises);
    }
    if let Some(c) = HAS.captures(text) {
        return Ok(Check::Has(thing(&c[1])));
    }
    if QUOTES_SOURCE.is_match(text) {
        return Ok(Check::QuotesSource);
    }
    if JSON.is_match(text) {
        return Ok(Check::Json);
    }
    if let Some(c) = EMPTY.captures(text) {
        *negated ^= c.get(1).is_some();
        return Ok(Check::Empty);
    }
    if let Some(c) = EDGE.captures(text) {
        let first = c[1].to_ascii_lowercase();
        let ends = first == "end" || first == "clos";
        if ends && ASK_QUESTION.is_match(&c[2]) {
            return Ok(Check::Ends("?".to_owned()));
        }
        return match (quoted(&c[2]), ends) {
            (Some(phrase), true) => Ok(Check::Ends(phrase)),
            (Some(phrase), false) => Ok(Check::Starts(phrase)),
            (None, _) => {
                Err("what it begins or ends with has to stand in quotation marks".to_owned())
            }
        };
    }
    if let Some(c) = CALLS.captures(text)
        && let Some(name) = c.get(1).or(c.get(2)).or(c.get(3))
    {
        return Ok(Check::Calls(name.as_str().to_owned()));
    }
    let says = SAYS.captures(text).or_else(|| QUOTES.captures(text));
    if let Some(c) = says {
        return literals(&c[1], *negated);
    }
    if let Some(c) = PASSIVE.captures(text)
        && let Ok(check) = literals(&c[1], true)
    {
        *negated ^= c.get(2).is_some();
        return Ok(check);
    }
    Err("it is no clause that rules knows".to_owned())
}

/// Words of a clause that name no product.
const GENERAL: [&str; 12] = [
    "release",
    "releases",
    "version",
    "versions",
    "date",
    "number",
    "stable",
    "of",
    "the",
    "its",
    "published",
    "entry",
];

/// Words that join a second thought to an object; such an object is not read.
const JOINS: [&str; 14] = [
    "and", "or", "if", "when", "before", "after", "unless", "that", "which", "who", "to", "in",
    "on", "without",
];

fn newest(c: &Captures<'_>) -> Result<Check, String> {
    let Some(address) = c.get(2) else {
        return Err("it names no page to look on: add `on https://…`".to_owned());
    };
    let address = address.as_str().trim_end_matches(['.', ',', ';']);
    let url = if address.contains("://") {
        address.to_owned()
    } else {
        format!("https://{address}")
    };
    let words: Vec<&str> = c[1].split_whitespace().collect();
    let product = words
        .iter()
        .filter(|w| !GENERAL.contains(&w.to_ascii_lowercase().as_str()))
        .map(|w| w.trim_matches(['`', '"', '“', '”']).to_owned())
        .collect();
    let date = words.last().is_some_and(|w| w.eq_ignore_ascii_case("date"));
    Ok(Check::Newest { date, product, url })
}

fn asks(what: &str) -> Option<Ask> {
    if ASK_QUESTION.is_match(what) {
        return Some(Ask::Question);
    }
    if ASK_CONFIRM.is_match(what) {
        return Some(Ask::Confirmation);
    }
    let c = ASK_FOR.captures(what)?;
    let object = ARTICLE.replace(c[2].trim(), "");
    let object = quoted(&object).unwrap_or_else(|| object.into_owned());
    let simple = |w: &str| w.chars().all(|c| c.is_alphanumeric() || "-'’".contains(c));
    let words: Vec<&str> = object.split_whitespace().collect();
    let plain = words.len() <= 3
        && words
            .iter()
            .all(|w| simple(w) && !JOINS.contains(&w.to_ascii_lowercase().as_str()));
    if words.is_empty() || !plain {
        return None;
    }
    Some(if c[1].eq_ignore_ascii_case("for") {
        Ask::For(object)
    } else {
        Ask::About(object)
    })
}

fn limit(c: &Captures<'_>) -> Option<Check> {
    const WORDS: [(&str, usize); 16] = [
        ("a", 1),
        ("an", 1),
        ("one", 1),
        ("two", 2),
        ("three", 3),
        ("four", 4),
        ("five", 5),
        ("six", 6),
        ("seven", 7),
        ("eight", 8),
        ("nine", 9),
        ("ten", 10),
        ("twelve", 12),
        ("fifteen", 15),
        ("twenty", 20),
        ("fifty", 50),
    ];
    let number = c[2].to_ascii_lowercase();
    let count = number.parse().ok().or_else(|| match number.as_str() {
        "eleven" => Some(11),
        "thirty" => Some(30),
        hundred if hundred.ends_with("hundred") => Some(100),
        word => WORDS.iter().find(|(w, _)| *w == word).map(|(_, n)| *n),
    })?;
    let word = |n: usize| c.get(n).map(|m| m.as_str().to_ascii_lowercase());
    let quantifier = word(1).unwrap_or_default();
    let first = quantifier.split_whitespace().collect::<Vec<_>>().join(" ");
    let tail = word(3).or(word(5)).unwrap_or_default();
    let (bound, count) = match first.as_str() {
        "" if tail.contains("more") => (Bound::AtLeast, count),
        "" if tail.contains("fewer") || tail.contains("less") => (Bound::AtMost, count),
        // `contains a question` is another clause; `a` counts only after a bound.
        "" if number == "a" || number == "an" => return None,
        "" | "exactly" | "precisely" => (Bound::Exactly, count),
        "fewer than" | "less than" | "under" | "below" | "shorter than" => {
            (Bound::AtMost, count.checked_sub(1)?)
        }
        "more than" | "longer than" | "over" | "exceed" | "exceeds" => (Bound::AtLeast, count + 1),
        "at least" | "no fewer than" | "no less than" | "a minimum of" | "minimum" => {
            (Bound::AtLeast, count)
        }
        _ => (Bound::AtMost, count),
    };
    let unit = match c[4].to_ascii_lowercase().as_str() {
        "sentence" => Unit::Sentences,
        "word" => Unit::Words,
        "character" => Unit::Characters,
        "line" => Unit::Lines,
        "paragraph" => Unit::Paragraphs,
        "question" => Unit::Questions,
        "link" => Unit::Links,
        _ => Unit::Bullets,
    };
    Some(Check::Limit { bound, count, unit })
}

fn kinds(text: &str) -> Vec<Fact> {
    let text = text.to_ascii_lowercase();
    let mut kinds = Vec::new();
    for (word, fact) in [
        ("number", Fact::Number),
        ("figure", Fact::Number),
        ("version", Fact::Version),
        ("date", Fact::Date),
        ("amount", Fact::Amount),
        ("price", Fact::Amount),
        ("sum", Fact::Amount),
        ("percent", Fact::Amount),
        ("url", Fact::Url),
        ("link", Fact::Url),
        ("quot", Fact::Quote),
    ] {
        // `version number` names one kind.
        let there = if word == "number" {
            text.replace("version number", "version").contains(word)
        } else {
            text.contains(word)
        };
        if there && !kinds.contains(&fact) {
            kinds.push(fact);
        }
    }
    kinds
}

fn thing(name: &str) -> Thing {
    match name.to_ascii_lowercase().as_str() {
        "number" | "figure" | "digit" => Thing::Fact(Fact::Number),
        "date" => Thing::Fact(Fact::Date),
        "amount" | "price" => Thing::Fact(Fact::Amount),
        "link" | "url" => Thing::Fact(Fact::Url),
        "quote" | "quotation" | "quoted phrase" => Thing::Fact(Fact::Quote),
        "code" | "code block" => Thing::Code,
        "table" => Thing::Table,
        "emoji" => Thing::Emoji,
        "question" | "question mark" => Thing::Question,
        name if name.starts_with("version") => Thing::Fact(Fact::Version),
        _ => Thing::List,
    }
}

/// A text that is one quotation and nothing else: its inside.
fn quoted(text: &str) -> Option<String> {
    let text = text.trim();
    let m = QUOTED
        .find(text)
        .filter(|m| m.start() == 0 && m.end() == text.len())?;
    let mut inner = m.as_str().chars();
    inner.next();
    inner.next_back();
    Some(inner.as_str().trim().to_owned()).filter(|s| !s.is_empty())
}

/// What is looked for literally: quotations, names, versions and addresses; or, where it is wanted, one plain word.
fn literals(text: &str, strict: bool) -> Result<Check, String> {
    const HINT: &str = "what to look for has to stand in quotation marks";
    let named = NOUN.is_match(text);
    let text = NOUN.replace(text.trim(), "");
    let text = text.trim();
    let masked = mask(text);
    let (mut phrases, mut ands, mut ors, mut from) = (Vec::new(), 0, 0, 0);
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for join in AND_OR.captures_iter(&masked) {
        match join
            .get(1)
            .or(join.get(2))
            .map(|w| w.as_str().to_ascii_lowercase())
            .as_deref()
        {
            Some("and") => ands += 1,
            Some(_) => ors += 1,
            None => {}
        }
        let whole = join.get(0).expect("whole match");
        cuts.push((whole.start(), whole.end()));
    }
    if ands > 0 && ors > 0 {
        return Err("it joins with both \"and\" and \"or\"".to_owned());
    }
    cuts.push((text.len(), text.len()));
    for (start, end) in cuts {
        let piece = text[from..start].trim();
        from = end;
        let words = piece.split_whitespace().count();
        let name = |w: &str| {
            let w = w.trim_matches(['(', ')']);
            w.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit())
                || w.contains("://")
                || host_like(w)
        };
        let names = words > 0 && words <= 5 && piece.split_whitespace().all(name);
        let word = words == 1
            && (named || !strict)
            && piece.chars().all(|c| c.is_alphanumeric() || c == '-');
        let phrase = match quoted(piece) {
            Some(inner) => inner,
            None if names || word => piece.to_owned(),
            None => return Err(HINT.to_owned()),
        };
        phrases.push(phrase);
    }
    Ok(Check::Mentions {
        phrases,
        every: ors == 0,
    })
}

fn host_like(word: &str) -> bool {
    word.split('.').count() > 1
        && word.split(['.', '/']).all(|p| {
            !p.is_empty()
                && p.chars()
                    .all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}
