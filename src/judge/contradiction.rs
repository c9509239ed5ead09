//! The flag on a verdict that contradicts itself. Flagged, never overridden: what was stated is what counts.
//!
//! Owns the reading of reasons for this flag alone; no verdict is ever taken from it. A false flag costs trust in every
//! true one, so that much is missed on purpose. Four things are flagged:
//!
//! - an overall of the judge's own against what its parts amount to;
//! - `passed` with the lowest score of the scale, or not passed with the highest, where no bound decides from the score;
//! - a reason whose **last sentence** plainly states the opposite of the verdict;
//! - the same of a part's own reason.
//!
//! A last sentence counts as plain if all of this holds:
//!
//! - It is the last one; a closing remark about score or confidence (`Score: 0.2`) is passed over.
//! - What it quotes (in quotation marks, code or a block quote) is taken out first: words of the rubric or of the answer
//!   are not the judge's.
//! - It speaks of the whole: the answer, response, output, agent or conversation that is judged, or *the* criteria or
//!   requirements; not of the first reply, a second criterion, a tool or a test.
//! - Its verb is one of deciding (meets, satisfies, fulfils, passes, fails), in the present or simple past, and its object
//!   the criteria. `fails to mention a date` decides nothing: the criterion may ask for just that.
//! - It holds no hedge (`mostly`, `but`, `although`, `if`, `would` …), reports nobody else's words (`claims`, `says`, `asks`
//!   …), denies no whole statement (`it is not true that …`), and does not say both.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::VerdictPart;

/// What a sentence says of the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentenceVerdict {
    Passes,
    Fails,
}

/// A reason against its verdict.
pub(super) fn find_in_reasoning(reasoning: &str, passed: bool) -> Option<String> {
    let (says, last) = find_opposite_statement(reasoning, passed)?;
    let verdict = if passed { "passed" } else { "failed" };
    Some(format!(
        "the verdict is {verdict}, but the reason ends by saying that it {says}: “{last}”"
    ))
}

/// A part's reason against whether it is met; the first such part.
pub(super) fn find_in_parts(parts: &[VerdictPart]) -> Option<String> {
    (1..).zip(parts).find_map(|(number, part)| {
        let (says, last) = find_opposite_statement(&part.reasoning, part.met)?;
        let met = if part.met { "met" } else { "not met" };
        Some(format!(
            "part {number} is {met}, but its reason ends by saying that it {says}: “{last}”"
        ))
    })
}

/// A verdict against its own score, at the two ends of the scale.
pub(super) fn find_in_score(passed: bool, score: f64, (low, high): (f64, f64)) -> Option<String> {
    if high <= low {
        return None;
    }
    match passed {
        true if score <= low => Some(format!(
            "the verdict is passed, but its score is {score}, the lowest there is"
        )),
        false if score >= high => Some(format!(
            "the verdict is failed, but its score is {score}, the highest there is"
        )),
        _ => None,
    }
}

fn find_opposite_statement(reasoning: &str, passed: bool) -> Option<(&'static str, String)> {
    let last = last_sentence(reasoning)?;
    match (read_sentence_verdict(&last)?, passed) {
        (SentenceVerdict::Fails, true) => Some(("fails", last)),
        (SentenceVerdict::Passes, false) => Some(("passes", last)),
        _ => None,
    }
}

fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// Quotations: paired marks with at most a few lines between, and single quotes that stand like quotation marks.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"(?sx) ```.*?(?:```|\z) | `[^`\n]*` | "[^"]{0,600}" | “[^”]{0,600}” | „[^“”]{0,600}[“”] | «[^»]{0,600}» | ‘[^’]{0,600}’
        | (?m:^\s*>[^\n]*$)"#,
    )
});
static SINGLE_QUOTED: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(^|[\s(\[:])'[^'\n]{1,300}'($|[\s.,;:!?)\]])"));

/// A remark after the conclusion.
static SCORE_REMARK: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^\W*(final |overall |my )?(score|confidence|rating|grade)\b[^.]{0,40}[\d%]|^\W*(final |overall |my )?confidence\b.{0,30}$",
    )
});

/// The last sentence, quotations taken out; a remark about the score is passed over.
fn last_sentence(reasoning: &str) -> Option<String> {
    // Long reasons end where they end; the rest need not be read.
    let from = reasoning.ceil_char_boundary(reasoning.len().saturating_sub(8000));
    let text = QUOTED.replace_all(&reasoning[from..], " QUOTE ");
    let text = SINGLE_QUOTED.replace_all(&text, "$1 QUOTE $2");
    let mut sentences = Vec::new();
    let mut rest = text.trim();
    while let Some(end) = find_sentence_end(rest) {
        sentences.push(rest[..end].trim());
        rest = rest[end..].trim_start();
    }
    sentences.push(rest);
    let last = sentences
        .into_iter()
        .rev()
        .find(|s| s.chars().any(char::is_alphabetic) && !SCORE_REMARK.is_match(s))?;
    let plain: Vec<&str> = last.split_whitespace().collect();
    // A sentence this long is an argument, no conclusion.
    (plain.len() <= 60).then(|| plain.join(" "))
}

/// Where the first sentence of a text ends, if another follows: after `. `, `! `, `? `, `; ` or a line break.
fn find_sentence_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '\n' => true,
            '.' | '!' | '?' | ';' => next.is_some_and(|c| c.is_whitespace() || "*_)]".contains(c)),
            _ => false,
        };
        let end = at + c.len_utf8();
        if ends
            && !text[end..]
                .trim_matches(|c: char| !c.is_alphanumeric())
                .is_empty()
        {
            return Some(end);
        }
    }
    None
}

/// With one of these a sentence is no plain statement of the judge's own.
static HEDGE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)\b(
          cannot | nor | neither | hardly | barely | unless | if | whether | although | though | but | however | would | could | might | may
        | otherwise | except | apart | aside | besides | only | just | mostly | most | some | many | several | partly | partially | largely | nearly | almost
        | half | part | in\ part | one\ of | two\ of | at\ first | initially | until | before | once | later | earlier | previously | while | when | despite | yet | still
        | arguably | perhaps | possibly | probably | seems? | appears? | unclear | borderline | debatable | doubt
        | not\ the\ case | not\ true | untrue | false | no\ evidence | nothing | not\ say | not\ mean | deny | denies
        | claims? | claimed | claiming | says? | said | saying | states? | stated | asserts? | argues? | suggests? | asks? | asked | asking | instructs? | instructed
        | instruction | tells? | told | insists? | according | supposedly | allegedly | pretends? | believes? | thinks? | hopes? | wants? | expects?
        | example | hypothetical | were\ to | had
        )\b | n['’]t\b | \?",
    )
});

/// A plain negation written short, written out.
static CONTRACTED_NEGATION: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)\b(do|does|did|is|are|was|were|has|have)n['’]t\b"));

static STATED_CRITERIA: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)\bstated\s(criteria|criterion|requirements?|conditions?)\b")
});

/// What is judged.
const WHOLE: &str = r"(?:the|this|that|its)\s(?:(?:final|overall|whole|entire|judged|given|provided|above|submitted|(?:agent|assistant|model|bot)(?:['’]s)?)\s){0,3}(?:answer|response|reply|output|conversation|transcript|session|submission|agent|assistant|model|bot)";

/// What it is judged by, as a whole.
const STANDARD: &str = r"(?:(?:all|each|every|any|both|either|these|this|those|the|its|that)\s)?(?:one\s)?(?:of\s)?(?:(?:the|these|this|those|its)\s)?(?:(?:stated|given|listed|required|specified|scoring|full|rubric(?:['’]s)?|two|three|four|five)\s){0,2}(?:criteria|criterion|requirements?|rubric|conditions?|standards?|guide)";

/// A conclusion is drawn.
const OPENS: &str = r"(?:therefore|thus|hence|so|overall|consequently|accordingly|in\s(?:conclusion|sum|summary|short)|as\sa\sresult|for\s(?:this|these|that)\sreasons?),?\s(?:i\s(?:conclude|find|judge)\s(?:that\s)?)?";

/// The statement ends, or gives its reason.
const ENDS: &str = r"\s*(?:[.!;,:)*_]|$|\b(?:because|since|as|given|and|in\sfull|fully|completely|entirely|overall|here)\b)";

const ADVERB: &str = r"(?:(?:also|therefore|thus|clearly|fully|indeed|then|completely|entirely|plainly|simply|hence|consequently|in\sfact)\s)?";

/// Alternatives, case aside.
fn compile_alternatives(alternatives: &[String]) -> Regex {
    compile_pattern(&format!("(?i){}", alternatives.join("|")))
}

/// A verdict is named.
const VERDICT: &str =
    r"\b(?:my\s|the\s|final\s)?(?:verdict|judge?ment|decision|conclusion)(?:\sis|:)\W{0,4}";

static FAIL_STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile_alternatives(&[
        format!(
            r"\b(?:{WHOLE}|{OPENS}(?:it|this))\s{ADVERB}(?:(?:does|did|do)\snot\s{ADVERB}(?:meet|satisfy|fulfil|fulfill|pass)|(?:fails|failed)\sto\s{ADVERB}(?:meet|satisfy|fulfil|fulfill|pass)|(?:fails|failed))\s{STANDARD}{ENDS}"
        ),
        format!(
            r"\b(?:{WHOLE}|{OPENS}(?:it|this))\s{ADVERB}(?:fails|failed|(?:does|did)\snot\spass|is\sa\sfail(?:ure)?|must\sfail|should\s(?:fail|not\spass|be\s(?:failed|marked\sas\sfail(?:ed|ing)?))){ENDS}"
        ),
        format!(
            r"(?:^|{OPENS}|,\s)(?:the|this|these|all|both)\s(?:criteria|criterion|requirements?|rubric|conditions?)\s(?:is|are|was|were)\s{ADVERB}(?:not\s{ADVERB}(?:met|satisfied|fulfilled)|unmet|unsatisfied|unfulfilled){ENDS}"
        ),
        format!(
            r"(?:^|{OPENS}|,\s)(?:not\s(?:all|every)|none)(?:\sof)?(?:\s(?:the|these))?\s(?:criteria|criterion|requirements?|conditions?)\s(?:is|are|was|were)\s(?:met|satisfied|fulfilled){ENDS}"
        ),
        format!(
            r"{VERDICT}(?:that\sit\sfails|(?:a\s)?(?:clear\s)?(?:fail(?:ed|ure|ing|s)?|not\spass(?:ed)?)){ENDS}"
        ),
    ])
});

static PASS_STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile_alternatives(&[
        format!(
            r"\b(?:{WHOLE}|{OPENS}(?:it|this))\s{ADVERB}(?:meets|met|satisfies|satisfied|fulfils|fulfills|fulfilled|passes|passed)\s{STANDARD}{ENDS}"
        ),
        format!(
            r"\b(?:{WHOLE}|{OPENS}(?:it|this))\s{ADVERB}(?:passes|passed|is\sa\s(?:clear\s)?pass|should\s(?:pass|be\s(?:passed|marked\sas\spass(?:ed|ing)?))){ENDS}"
        ),
        format!(
            r"(?:^|{OPENS}|,\s)(?:the|this|these|all|both|every|each)(?:\sof)?(?:\s(?:the|these))?\s(?:(?:two|three|four|five|stated|given|listed)\s)?(?:criteria|criterion|requirements?|rubric|conditions?)\s(?:is|are|was|were)\s{ADVERB}(?:met|satisfied|fulfilled){ENDS}"
        ),
        format!(r"{VERDICT}(?:that\sit\spasses|(?:a\s)?(?:clear\s)?pass(?:ed|es|ing)?){ENDS}"),
    ])
});

/// What a sentence plainly says of the verdict.
fn read_sentence_verdict(sentence: &str) -> Option<SentenceVerdict> {
    let sentence = CONTRACTED_NEGATION.replace_all(sentence, "$1 not");
    // Here nobody states anything.
    let sentence = STATED_CRITERIA.replace_all(&sentence, "$1");
    if HEDGE_WORDS.is_match(&sentence) {
        return None;
    }
    match (
        FAIL_STATEMENT.is_match(&sentence),
        PASS_STATEMENT.is_match(&sentence),
    ) {
        (true, false) => Some(SentenceVerdict::Fails),
        (false, true) => Some(SentenceVerdict::Passes),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
