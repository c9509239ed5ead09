//! The parser of clauses. Every pattern matches a whole clause, so one extra word, a condition or an unknown object
//! makes it unreadable. See the table in [`super`].

use super::clause::{Clause, ClauseCheck, ContentKind};
use super::clause_objects::{
    parse_ask_target, parse_content_kind, parse_fact_kinds, parse_limit, parse_literals,
    parse_newest, parse_quoted,
};
use super::clause_patterns::{
    ALL_SAID, ASK_QUESTION, ASKS, BULLET, CALLS, CITES, EDGE, EMPTY, GROUNDED, HAS, INVENTED, JSON,
    LEAD, LEVEL, LIMIT, LINKS, MODAL, NEGATION, NEWEST, NEXT, NO, OR_USER_SAID, PASSIVE, QUOTES,
    QUOTES_SOURCE, SAYS, SORRY, TAIL, mask_quoted,
};
use crate::handlers::grounding::FactKind;
use crate::handlers::grounding::split_sentences;

/// Parses criteria and scoring guide.
pub(super) fn parse_clauses(criteria: &str, guide: &str) -> Vec<Clause> {
    let mut clauses = Vec::new();
    let mut levels = Vec::new();
    // Lines of levels describe scores, so they are clauses only if there are no others.
    for line in criteria.lines().chain(guide.lines()) {
        if let Some(level) = LEVEL.captures(line.trim()) {
            levels.push((level[1].to_owned(), level[2].to_owned()));
            continue;
        }
        clauses.extend(parse_line(line));
    }
    if clauses.is_empty() {
        // A guide of levels alone: its highest level describes the goal.
        let value = |name: &str| {
            let digits: String = name
                .chars()
                .filter(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            // `pass:` and `fail:` have no number.
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
            clauses.extend(parse_line(best));
        }
    }
    clauses
}

/// Splits criteria into the clauses that `rules` would check one by one, also those that it cannot check. Lines of levels
/// are no clauses.
pub fn split_clauses(criteria: &str) -> Vec<String> {
    let lines = criteria.lines().filter(|line| !LEVEL.is_match(line.trim()));
    let mut clauses = Vec::new();
    for line in lines {
        let line = BULLET.replace(line, "");
        for sentence in split_sentences(&line) {
            let sentence = sentence.trim().trim_end_matches(['.', ';', ',', '!', ':']);
            let pieces = split_sentence(sentence).into_iter().map(str::trim);
            clauses.extend(pieces.filter(|piece| !piece.is_empty()).map(str::to_owned));
        }
    }
    clauses
}

fn parse_line(line: &str) -> Vec<Clause> {
    let line = BULLET.replace(line, "");
    let mut clauses = Vec::new();
    for sentence in split_sentences(&line) {
        let sentence = sentence.trim().trim_end_matches(['.', ';', ',', '!', ':']);
        // A subject also applies to the clauses after it in the same sentence.
        let mut all = false;
        for piece in split_sentence(sentence) {
            clauses.push(parse_clause(piece.trim(), &mut all));
        }
    }
    clauses
}

/// Splits a sentence before verbs that begin a clause; never inside quotation marks.
fn split_sentence(sentence: &str) -> Vec<&str> {
    let masked = mask_quoted(sentence);
    let (mut parts, mut from, mut seek) = (Vec::new(), 0, 0);
    while let Some(next) = NEXT.captures_at(&masked, seek) {
        let join = next.get(1).expect("the first group always matches").range();
        // Search after the joint, or the same match would repeat forever.
        seek = join.end;
        if join.start > from {
            parts.push(&sentence[from..join.start]);
            from = join.end;
        }
    }
    parts.push(&sentence[from..]);
    parts
}

fn parse_clause(text: &str, all: &mut bool) -> Clause {
    let mut rest = text;
    if let Some(lead) = LEAD.captures(rest) {
        *all = ALL_SAID.is_match(&lead[1]);
        rest = &rest[lead[0].len()..];
    }
    let mut negated = false;
    // Modals and negations can alternate: "must not ever", "should never".
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
    let mut check = parse_check(rest, &mut negated);
    if check.is_err()
        && let Some(no) = NO.find(rest).filter(|no| !no.as_str().ends_with("than"))
    {
        // `contains no link`, `no emoji`: the same clause, negated.
        let mut other = !negated;
        let positive = format!("contains {}", &rest[no.end()..]);
        if let Ok(read) = parse_check(&positive, &mut other) {
            negated = other;
            check = Ok(read);
        }
    }
    Clause {
        text: text.to_owned(),
        whole_conversation: *all,
        negated,
        check,
    }
}

fn parse_check(text: &str, negated: &mut bool) -> Result<ClauseCheck, String> {
    // Words such as "in the answer" add nothing and would stop every pattern below.
    let text = TAIL.replace(text, "");
    let text = text.as_ref();
    // From here the order matters: specific patterns come before those that also match their text.
    if let Some(c) = GROUNDED.captures(text) {
        return Ok(ClauseCheck::Grounded {
            kinds: c
                .get(1)
                .map_or_else(|| FactKind::ALL.to_vec(), |k| parse_fact_kinds(k.as_str())),
            in_user_messages: OR_USER_SAID.is_match(text),
        });
    }
    if let Some(c) = INVENTED.captures(text) {
        // `no invented numbers`, `does not invent numbers`: grounding, and not its contrary.
        let no = c.get(1).or(c.get(2)).is_some();
        if no == *negated {
            return Err("it would ask for something invented".to_owned());
        }
        *negated = false;
        return Ok(ClauseCheck::Grounded {
            kinds: parse_fact_kinds(&c[3]),
            in_user_messages: false,
        });
    }
    if let Some(c) = NEWEST.captures(text) {
        return parse_newest(&c);
    }
    if let Some(c) = ASKS.captures(text)
        && let Some(target) = parse_ask_target(&c[1])
    {
        return Ok(ClauseCheck::Asks(target));
    }
    if let Some(c) = LIMIT.captures(text)
        && let Some(limit) = parse_limit(&c)
    {
        return Ok(limit);
    }
    if CITES.is_match(text) {
        return Ok(ClauseCheck::Has(ContentKind::Fact(FactKind::Url)));
    }
    if let Some(c) = LINKS.captures(text) {
        return Ok(ClauseCheck::LinksTo(c[1].to_owned()));
    }
    if SORRY.is_match(text) {
        return Ok(ClauseCheck::Apologises);
    }
    if let Some(c) = HAS.captures(text) {
        return Ok(ClauseCheck::Has(parse_content_kind(&c[1])));
    }
    if QUOTES_SOURCE.is_match(text) {
        return Ok(ClauseCheck::QuotesSource);
    }
    if JSON.is_match(text) {
        return Ok(ClauseCheck::Json);
    }
    if let Some(c) = EMPTY.captures(text) {
        *negated ^= c.get(1).is_some();
        return Ok(ClauseCheck::Empty);
    }
    if let Some(c) = EDGE.captures(text) {
        let first = c[1].to_ascii_lowercase();
        let ends = first == "end" || first == "clos";
        if ends && ASK_QUESTION.is_match(&c[2]) {
            return Ok(ClauseCheck::Ends("?".to_owned()));
        }
        return match (parse_quoted(&c[2]), ends) {
            (Some(phrase), true) => Ok(ClauseCheck::Ends(phrase)),
            (Some(phrase), false) => Ok(ClauseCheck::Starts(phrase)),
            (None, _) => Err("put the text it begins or ends with in quotation marks".to_owned()),
        };
    }
    if let Some(c) = CALLS.captures(text)
        && let Some(name) = c.get(1).or(c.get(2)).or(c.get(3))
    {
        return Ok(ClauseCheck::Calls(name.as_str().to_owned()));
    }
    // The most general pattern comes late: "says" matches almost any object.
    let replies = SAYS.captures(text).or_else(|| QUOTES.captures(text));
    if let Some(c) = replies {
        return parse_literals(&c[1], *negated);
    }
    // The passive needs quotation marks or names, because its subject can be any words.
    if let Some(c) = PASSIVE.captures(text)
        && let Ok(check) = parse_literals(&c[1], true)
    {
        *negated ^= c.get(2).is_some();
        return Ok(check);
    }
    Err("rules can't parse this clause".to_owned())
}
