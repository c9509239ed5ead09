//! The flag on a verdict that contradicts its own reasoning. dicta flags such a verdict and never overrides it.
//!
//! Reads the reasoning for this flag alone; no verdict is taken from it. A false flag costs trust in every true one,
//! so the rules miss a lot on purpose. The rules for sentences read English only. They flag seven things:
//!
//! - an overall verdict of the judge that differs from the result of its parts;
//! - `passed` with the lowest score of the scale, or not passed with the highest, unless a bound decides from the
//!   score;
//! - a reason whose **last sentence** plainly states the opposite of the verdict;
//! - a reason that **begins** with the opposite verdict (`FAIL - it is rude`);
//! - a part's own reason that does one of both;
//! - another field of the same object with the opposite value (`"final_verdict": "FAIL"`), at any depth, also of the object
//!   of a part. A field in the place of the reasoning (`explanation`) has that value if its last sentence states it;
//! - text next to the `submit_verdict` call that ends with, or has a line with, the opposite verdict
//!   (`Verdict: FAIL`). Its end can also be the object of a verdict, in a code fence or in a call that the model wrote as
//!   text. A line in a block quote, or after an announcement (`The tool printed:`), is another's.
//!
//! It also recognizes a reasoning that is only a refusal ([`find_refusal`]). The model then judged nothing, so dicta
//! reports an error instead of a fail.
//!
//! A last sentence that consists of the verdict (`Fails.`, `Final verdict: not met`, `So passed is false.`) states it. A
//! lone word does not if it ends a list in which another criterion has the other result (`Name: not met. Date: Met.`).
//! The same is true of a statement about the criteria without its subject or verb (`Does not meet the criteria.`,
//! `Criteria not met.`). Another last sentence, also after a label (`Conclusion:`), is plain if all of this is true:
//!
//! - It is the last one; a closing remark about score or confidence (`Score: 0.2`) is skipped, and so is the announcement of the
//!   call (`I submit my verdict.`).
//! - It isn't a quotation. Text in quotation marks, code or a block quote is removed first, because it belongs to the
//!   rubric or the answer.
//! - It is about the whole: the answer, response, output, agent or conversation that is judged, or *the* criteria or
//!   requirements. `It` and `this` are the answer if the sentence is the only one. A sentence about the first reply, a second
//!   criterion, a tool or a test doesn't count.
//! - It is the main clause: it begins the sentence, or follows its reason (`Because …,`) or a word such as `therefore`. A
//!   clause in another sentence doesn't count (`The agent shows that the answer fails`). Neither does one about a place or
//!   a case (`For -1 the answer fails`).
//! - Its verb decides (meets, satisfies, fulfils, passes, fails), in the present or simple past, and its object is
//!   the criteria. `fails to mention a date` decides nothing: the criterion may require exactly that. `The conditions are
//!   met` decides nothing either: they may be those of a refund, or of a rule in the scoring guide. Without an object, only
//!   the present of an answer decides, or the present after a word such as `therefore`. `The agent failed` belongs to a story.
//! - It has no hedge (`mostly`, `but`, `although`, `if`, `would` …) and reports no one else's words or verdict (`claims`,
//!   `wrote`, `the agent's decision` …). It denies no whole statement (`it is not true that …`), and doesn't state both. It
//!   describes no failure that the criterion asks for (`as required`, `which is the expected …`).

mod fields;
mod opening;

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

pub(super) use fields::{find_in_other_fields, find_in_part_fields};
use opening::find_opposite_opening;

use super::verdict_format::ScoreRange;
use crate::model::{Verdict, VerdictPart};

/// The verdict that a sentence states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentenceVerdict {
    Passes,
    Fails,
}

/// Describes a reason that contradicts its verdict.
pub(super) fn find_in_reasoning(reasoning: &str, passed: bool) -> Option<String> {
    let opposite = describe_opposite(reasoning, passed)?;
    let verdict = if passed { "passed" } else { "failed" };
    Some(format!(
        "the verdict is {verdict}, but the reason {opposite}"
    ))
}

/// Describes where a reason states the opposite verdict: at its end, or else at its beginning.
fn describe_opposite(reasoning: &str, passed: bool) -> Option<String> {
    if let Some((says, last)) = find_opposite_statement(reasoning, passed) {
        return Some(format!("ends by saying that it {says}: “{last}”"));
    }
    let word = find_opposite_opening(reasoning, passed)?;
    Some(format!("begins with “{word}”"))
}

/// Reads a short text that consists of a verdict, in any spelling: `not met`, `NOT_MET`, `**FAIL**`.
fn read_verdict_word(word: &str) -> Option<bool> {
    match word.trim() {
        "✅" | "✓" | "✔" | "✔️" | "👍" => return Some(true),
        "❌" | "✗" | "✘" | "✖" | "✖️" | "👎" => return Some(false),
        _ => {}
    }
    // A verdict has at most three words, and the field can hold a long text.
    let words: Vec<String> = word
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .take(4)
        .map(str::to_lowercase)
        .collect();
    match words.join(" ").as_str() {
        "pass" | "passed" | "passes" | "true" | "yes" | "met" | "correct" | "satisfied"
        | "fulfilled" | "erfüllt" | "bestanden" | "réussi" | "cumple" | "aprobado" | "aprovado"
        | "通过" | "合格" | "符合" => Some(true),
        "fail"
        | "failed"
        | "fails"
        | "failure"
        | "false"
        | "no"
        | "not met"
        | "unmet"
        | "not passed"
        | "does not pass"
        | "did not pass"
        | "no pass"
        | "not satisfied"
        | "unsatisfied"
        | "unsatisfactory"
        | "failing"
        | "non compliant"
        | "noncompliant"
        | "criteria not met"
        | "does not meet criteria"
        | "not fulfilled"
        | "incorrect"
        | "f"
        | "nicht erfüllt"
        | "nicht bestanden"
        | "durchgefallen"
        | "échec"
        | "échoué"
        | "no cumple"
        | "no aprobado"
        | "suspenso"
        | "reprobado"
        | "reprovado"
        | "不通过"
        | "未通过"
        | "不合格"
        | "不符合" => Some(false),
        _ => None,
    }
}

/// A line that states the verdict: `Verdict: FAIL`, `**Final verdict:** not met`, also with its reason or the end of a tag
/// behind it, and `FAIL` alone in capitals.
static VERDICT_LINE: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?im)^[\W_]*(?:(?:final|overall|my|the)\s)*(?:verdict|decision|result|outcome|grade|judge?ment)(?:\b|_)[\W_]{1,6}(?:is\W{1,4})?(?P<word>not[\s_-](?:met|passed)|(?:does|did)\snot\spass|pass(?:ed|es)?|fail(?:ed|s|ure)?|met|unmet|f)(?:[\W_]*(?:\([^()\n]{0,80}\)\W*)?|\s?</[\w-]{1,30}>\W*|[*_]{0,3}(?:[.;,:–—]|\s[-–—])[*_]{0,3}\s[^\n]*|[*_]{0,3}\s(?:because|since|as|due)\s[^\n]*)$|^[\W_]*(?-i:(?P<alone>NOT[\s_-](?:MET|PASSED)|PASS(?:ED)?|FAIL(?:ED|URE)?|UNMET))[\W_]*$",
    )
});

/// Reads a text that begins with a verdict and gives its reason after it: `FAIL - it is rude`, `Pass (polite)`.
fn read_verdict_with_reason(text: &str) -> Option<bool> {
    let line = format!("Verdict: {}", text.trim());
    let found = VERDICT_LINE.captures(&line)?;
    read_verdict_word(found.name("word")?.as_str())
}

/// The text before the object of a verdict: the beginning of the reply, of a code fence, or of a call in text.
static OBJECT_START: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)```(?:json)?\s*|\bsubmit_verdict\s*\(\s*|<(?:tool|function)_call>\s*|^\s*",
    )
});

/// The text after such an object.
static OBJECT_END: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?:[\s`).;]|</[^<>]{1,60}>)+$"));

/// Reads the verdict of a text that ends with its object: as the whole text, in a code fence, or as a call that the model
/// wrote as text.
fn read_verdict_object(text: &str) -> Option<(bool, String)> {
    let end = OBJECT_END
        .find(text)
        .map_or(text.len(), |found| found.start());
    let starts = OBJECT_START.find_iter(text).map(|found| found.end());
    // The last one counts, as with lines.
    let starts: Vec<usize> = starts.collect();
    let passed = starts.into_iter().rev().find_map(|start| {
        let object: Value = serde_json::from_str(text.get(start..end)?).ok()?;
        let arguments = object.get("arguments").or_else(|| object.get("parameters"));
        let arguments = match arguments.unwrap_or(&object) {
            // Some models write the arguments of a call as text.
            Value::String(json) => &serde_json::from_str(json).ok()?,
            arguments => arguments,
        };
        arguments.get("passed")?.as_bool()
    })?;
    Some((passed, format!("\"passed\": {passed}")))
}

/// The number of characters of a line that a flag shows.
const MAX_LINE_CHARS: usize = 100;

/// Describes text next to the verdict's call that states the opposite verdict.
pub(super) fn find_in_accompanying_text(text: &str, passed: bool) -> Option<String> {
    // Only the end matters, as in a reasoning.
    let from = text.ceil_char_boundary(text.len().saturating_sub(8000));
    // A code fence quotes another's words, or has an object, which is read below.
    let lines = FENCED.replace_all(&text[from..], " QUOTE ");
    let stated = VERDICT_LINE
        .captures_iter(&lines)
        .filter(|line| is_own_line(&lines, line))
        .last()
        .and_then(|line| {
            let word = line.name("word").or_else(|| line.name("alone"))?;
            let shown: String = line[0].trim().chars().take(MAX_LINE_CHARS).collect();
            read_verdict_word(word.as_str()).map(|word| (word, shown))
        });
    let stated = stated.or_else(|| read_verdict_object(text));
    let line = match stated {
        Some((word, line)) => (word != passed).then_some(line),
        None => find_opposite_statement(text, passed)
            .map(|(_, last)| last)
            .or_else(|| find_opposite_opening(text, passed).map(str::to_owned)),
    }?;
    let verdict = if passed { "passed" } else { "failed" };
    Some(format!(
        "the verdict is {verdict}, but the text next to its call says “{line}”"
    ))
}

/// A refusal to judge, which models write into the reasoning if a schema leaves no other place for it.
///
/// "I can't verify the claim" is not a refusal: it names what the judge looked for.
static REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^\W*
          (?: (?: i['’]?m | i\s am | we['’]?re ) \s (?: very \s )? (?: really \s )? sorry \s? [,.;:–—-]? \s? (?: but \s )? | sorry \s? [,.;:–—-]? \s? (?: but \s )? | i \s apologi[sz]e [,.]? \s? (?: but \s )? | unfortunately ,? \s
            | (?: this | the ) \s (?: content | request | conversation | material | topic ) \s violates \s [^.!?;]{1,60} [.;,] \s (?: so \s )? )?
          (?: as \s an \s ai (?: \s language \s model | \s assistant )? ,? \s )?
          (?: i | we ) \s?
          (?: (?: (?: can['’]?t | can \s?not ) (?: \s and \s (?: won['’]t | will \s not ) )? | won['’]t | will \s not ) (?: \s be (?: \s able \s to )? )?
            | (?: ['’]m | am | are ) \s (?: (?: unable | not \s able | not \s willing ) \s to | not \s comfortable (?: \s with )? )
            | (?: do \s not | don['’]t ) \s feel \s comfortable (?: \s with )?
            | (?: must | have \s to | need \s to ) \s (?: decline | refuse ) (?: \s to )? | decline \s to | refuse \s to | (?: ['’]d | would ) \s (?: rather | prefer ) \s not (?: \s to )? )
          \s? (?: (?: assist | help ) (?: \s with \s evaluating )? | comply | engage | participate | continue | proceed | respond | do \s (?:that|this) | fulfil+ | provide | complete | discuss
            | (?: judge | evaluate | assess | rate | review | process | grade ) (?: \s or \s (?: judge | evaluate | assess | rate | grade ) )?
            | (?: judging | evaluating | assessing | rating | reviewing | grading | providing | engaging ) )?
          (?: \s (?: you | with | to | in | on | this | that | these | those | the | your | such | request s? | requests | evaluation | content | topic | task | conversation | transcript | material | matter | or | (?: harmful | sensitive | inappropriate | explicit | violent | offensive | unsafe | illegal | sexual | hateful ) \s content | any | kind | of | type | an? | it | assistance | help | assessment | judge?ment | verdict ) )*
          (?: \s (?: due \s to | because \s of | as \s it \s violates | under ) (?: \s [\w-]+ ){0,4}? \s (?: safety | polic(?:y|ies) | guidelines? ) (?: \s [\w-]+ ){0,2} )?
          (?: ,? \s (?: because | since | as ) \s (?: it | this | the \s \w+ ) \s (?: contains | involves | includes | is | has ) \s (?: [\w-]+ \s (?: and | or )? \s? ){0,3}? (?: harmful | sensitive | inappropriate | explicit | violent | offensive | unsafe | illegal | sexual | hateful ) (?: \s [\w-]+ ){0,4} )?
          \W* (?: (?: it | this | that | doing \s so ) \s (?: goes \s against | violates | would \s violate | conflicts \s with ) [^.!?]{1,60} \b (?: guidelines? | polic(?:y|ies) | safety ) \b [^.!?]{0,20} [.!?]? \W* )?
          (?: (?: please | is \s there | let \s me \s know | if \s you ) [^.!?]{0,120} [.!?]? \W* )?$",
    )
});

/// The same in German, French, Spanish, Portuguese, Italian, Russian, Chinese and Japanese: one sentence that begins with
/// an apology, in which the model can't help.
static FOREIGN_REFUSAL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^\W*
          (?: (?: (?: es \s )? tut \s mir \s (?: sehr \s )? leid | entschuldigung | leider ) \W{1,3} (?: (?: aber | doch ) \s )? (?: (?: dabei | damit | hierbei | hier | da ) \s )? (?: (?: kann | darf ) \s ich | ich \s (?: kann | darf ) ) \s [^.!?]{0,80} \b nicht \s (?: weiter )? (?: helfen | unterstützen | bearbeiten | beantworten | bewerten | beurteilen | erfüllen | nachkommen )
            | (?: je \s (?: suis \s )? (?: vraiment \s )? (?: désolée? | regrette ) | désolée? ) \W{1,3} (?: mais \s )? je \s ne \s (?: peux | suis ) \s [^.!?]{0,40} \b (?: aider | assister | répondre | évaluer | traiter | juger | satisfaire ) \b [^.!?]{0,80}
            | (?: lo \s (?: siento | lamento ) | perdón | disculpa ) \W{1,3} (?: pero \s )? no \s (?: puedo | me \s es \s posible ) \s [^.!?]{0,40}? (?: ayudar\w* | asistir\w* | responder | evaluar | cumplir | juzgar ) \b [^.!?]{0,80}
            | (?: (?: sinto \s muito | desculpe | lamento ) \W{1,3} (?: mas \s )? )  não \s posso \s [^.!?]{0,40}? (?: ajudar | auxiliar | responder | avaliar | julgar | atender ) \b [^.!?]{0,80}
            | (?: mi \s (?: dispiace | scuso ) | spiacente ) \W{1,3} (?: ma \s )? non \s posso \s [^.!?]{0,40}? (?: aiutar\w* | assister\w* | rispondere | valutare | giudicare | soddisfare ) \b [^.!?]{0,80}
            | (?: извините | простите | к \s сожалению | мне \s жаль ) \W{1,3} (?: но \s )? я \s не \s могу \s [^.!?]{0,40}? (?: помочь | ответить | оценить | выполнить | обсуждать ) [^.!?]{0,80}
            | (?: 非常 | 很 | 十分 )? (?: 抱歉 | 对不起 | 對不起 | 遗憾 ) [，,。\s]{0,2} (?: 但 | 但是 )? 我 (?: 无法 | 無法 | 不能 | 不可以 ) [^。！？.!?]{0,12} (?: 协助 | 協助 | 帮助 | 幫助 | 满足 | 滿足 | 提供 | 评估 | 評估 | 回答 | 完成 | 继续 | 讨论 | 处理 | 判断 ) [^。！？.!?]{0,30}
            | (?: 申し訳 (?: ありません | ございません | ないです ) | すみません | ごめんなさい ) (?: が | けど )? [、,。\s]{0,2} [^。！？.!?]{0,40} (?: できません | できかねます | いたしかねます | お応えできません )
          ) \W*$",
    )
});

/// Returns true if a reasoning is only a refusal to judge.
fn is_refusal(reasoning: &str) -> bool {
    let reasoning = reasoning.trim();
    // A longer text gives reasons, so it is not only a refusal.
    reasoning.len() <= 400 && (REFUSAL.is_match(reasoning) || FOREIGN_REFUSAL.is_match(reasoning))
}

/// Returns the refusal of a verdict that gives no other reason, also if the refusal is the reason of each part.
pub(super) fn find_refusal(verdict: &Verdict) -> Option<&str> {
    let reasoning = verdict.reasoning.trim();
    if !reasoning.is_empty() {
        return is_refusal(reasoning).then_some(reasoning);
    }
    let first = verdict.parts.first()?;
    let refuses = |part: &VerdictPart| is_refusal(&part.reasoning);
    verdict
        .parts
        .iter()
        .all(refuses)
        .then_some(first.reasoning.trim())
}

/// Describes the first part whose reason contradicts its own verdict.
pub(super) fn find_in_parts(parts: &[VerdictPart]) -> Option<String> {
    (1..).zip(parts).find_map(|(number, part)| {
        let opposite = describe_opposite(&part.reasoning, part.met)?;
        let met = if part.met { "met" } else { "not met" };
        Some(format!("part {number} is {met}, but its reason {opposite}"))
    })
}

/// Describes a verdict that contradicts its score, at either end of the scale.
pub(super) fn find_in_score(passed: bool, score: f64, range: ScoreRange) -> Option<String> {
    let ScoreRange { low, high } = range;
    // A scale without extent has no lowest and highest score.
    if high <= low {
        return None;
    }
    match passed {
        // Only the ends of the scale: between them, the scoring guide decides what passes.
        true if score <= low => Some(format!(
            "the verdict is passed, but its score is {score}, the lowest there is"
        )),
        false if score >= high => Some(format!(
            "the verdict is failed, but its score is {score}, the highest there is"
        )),
        _ => None,
    }
}

/// Returns true if a line with a verdict states the judge's own one. A line in a block quote or in the middle of a sentence
/// does not. Neither does one in a list of criteria with other results, or after an announcement of another's words.
fn is_own_line(text: &str, line: &Captures<'_>) -> bool {
    let Some(found) = line.get(0) else {
        return false;
    };
    let marks = found.as_str().split(char::is_alphanumeric).next();
    // A match may begin with blank lines.
    let marks = marks.and_then(|marks| marks.rsplit('\n').next());
    let is_quoted = marks.is_some_and(|marks| marks.trim_start().starts_with('>'));
    let (before, after) = (&text[..found.start()], text[found.end()..].trim_start());
    // The sentence goes on: `The log ends with` / `FAILED` / `and the agent reports it.`
    let goes_on = after.starts_with(char::is_lowercase);
    let stated = line
        .name("alone")
        .and_then(|word| read_verdict_word(word.as_str()));
    let is_in_list = stated.is_some_and(|passed| {
        let differs = |text: &str| has_criterion_result(text, !passed);
        !VERDICT_HEADING.is_match(before.trim_end()) && (differs(before) || differs(after))
    });
    !is_quoted && !goes_on && !is_in_list && !is_announced(before)
}

/// Returns true if a text has a single criterion that is met, or not met.
fn has_criterion_result(text: &str, is_met: bool) -> bool {
    let group = if is_met { "pass" } else { "fail" };
    let mut results = CRITERION_RESULT.captures_iter(text);
    results.any(|result| result.name(group).is_some())
}

fn find_opposite_statement(reasoning: &str, passed: bool) -> Option<(&'static str, String)> {
    let last = last_sentence(reasoning).filter(|last| !is_announced(&last.before))?;
    let stated = read_verdict_ending(&last).or_else(|| read_statement(&last))?;
    match (stated, passed) {
        (SentenceVerdict::Fails, true) => Some(("fails", last.text)),
        (SentenceVerdict::Passes, false) => Some(("passes", last.text)),
        _ => None,
    }
}

/// Returns the verdict that a last sentence states, also after a label (`Conclusion:`) and without its subject (`Does not
/// meet the criteria.`).
fn read_statement(last: &LastSentence) -> Option<SentenceVerdict> {
    let text = STATEMENT_LABEL.replace(&last.text, "");
    // `I count this as met` can be about the criterion of the sentence before it.
    let is_mark = MARK.is_match(&text);
    let stated = match read_sentence_verdict(&text) {
        Some(stated) if !is_mark => return Some(stated),
        Some(stated) => stated,
        None => read_sentence_verdict(&add_subject(&text, &last.before)?)?,
    };
    let other_result = match stated {
        SentenceVerdict::Fails => &*RESULT_MET,
        SentenceVerdict::Passes => &*RESULT_NOT_MET,
    };
    (last.concludes(stated) && !other_result.is_match(&last.before)).then_some(stated)
}

/// A label of the judge's conclusion.
static STATEMENT_LABEL: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^[\W_]*(?:(?:my|the|final|overall)\s){0,2}(?:conclusion|verdict|judge?ment|evaluation|assessment|summary|reasoning|analysis)[*_]{0,3}(?::|\s[-–—])[\W_]*",
    )
});

/// A sentence without a subject.
static MISSING_SUBJECT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^[\W_]*(?P<verb>(?:(?:does|did|doesn['’]t|didn['’]t)\s|(?:fails|meets|satisfies|fulfil?ls|passes|violates)\s(?:to|all|both|the|these|those|stated|criteria|requirements|rubric)\s).*)$",
    )
});

/// A sentence without its article and its verb: `Criteria not met`.
static MISSING_VERB: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^[\W_]*(?:all\s)?(?P<noun>criteria|requirements)\s(?:(?:is|are|was|were)\s)?(?P<rest>(?:not\s)?(?:met|satisfied|fulfilled)\b.*|(?:unmet|unsatisfied|unfulfilled)\b.*)$",
    )
});

/// `It` or `This` at the beginning of a reason, which can only be the judged thing.
static LEADING_PRONOUN: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)^[\W_]*(?:it|this)\s(?P<rest>[^,;]*(?:,\s(?:because|since|as)\s.*)?)$")
});

/// The results of other criteria before a sentence without a subject.
static RESULT_MET: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)\b(?:meets|satisfies|fulfil?ls|passes)\b"));
static RESULT_NOT_MET: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)(?:\bnot|n['’]t)\s(?:\w+\s)?(?:meet|met|satisf|fulfil|pass)|\b(?:fails|violates|unmet|missing|misses|lacks|omits|without|wrong|incorrect|no|never)\b",
    )
});

/// Adds the missing subject of a sentence. `before` is the text before it.
fn add_subject(text: &str, before: &str) -> Option<String> {
    if let Some(found) = MISSING_SUBJECT.captures(text) {
        return Some(format!("The answer {}", &found["verb"]));
    }
    if let Some(found) = MISSING_VERB.captures(text) {
        return Some(format!("The {} are {}", &found["noun"], &found["rest"]));
    }
    let found = LEADING_PRONOUN
        .captures(text)
        .filter(|_| before.trim().is_empty())?;
    Some(format!("The answer {}", &found["rest"]))
}

fn compile_pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// A code fence.
static FENCED: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"(?s)```.*?(?:```|\z)"));

/// Quotations: paired marks with at most a few lines between them, and single quotes that are used like quotation
/// marks.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"(?sx) ```.*?(?:```|\z) | `[^`\n]*` | "[^"]{0,600}" | “[^”]{0,600}” | „[^“”]{0,600}[“”] | «[^»]{0,600}» | ‘[^’]{0,600}’
        | (?m:^\s*>[^\n]*$)"#,
    )
});
static SINGLE_QUOTED: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(^|[\s(\[:])'[^'\n]{1,300}'($|[\s.,;:!?)\]])"));

/// A remark after the conclusion: a score, or that the judge submits its verdict now.
static SCORE_REMARK: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?i)^\W*(final |overall |my )?(score|confidence|rating|grade)\b[^.]{0,40}[\d%]|^\W*(final |overall |my )?confidence\b.{0,30}$|^\W*(?:now,?\s)?(?:(?:i|let\sme)\s(?:(?:will|shall|am|now|then|hereby)\s){0,2}|i['’](?:ll|m)\s(?:now\s)?)?(?:submit(?:ting)?|call(?:ing)?|record(?:ing)?|report(?:ing)?|giv(?:e|ing)|send(?:ing)?)\s+(?:it|this|(?:(?:my|the|this)\s(?:final\s)?)verdict|submit_verdict|QUOTE)(?:\s(?:now|below|accordingly))?\W*$",
    )
});

/// A last sentence that consists of the verdict (`Fails.`, `**Final verdict:** not met`), or of the field `passed`
/// (`So passed is false.`).
static VERDICT_ENDING: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^[\W_]* (?P<opener> (?:so|hence|thus|therefore|overall|final|in\s(?:conclusion|summary|short|sum)) [\W_]+ )?
          (?:
            (?P<named> (?: (?:the|my|final|overall) [\s_]+ )*
                (?: (?: verdict | judge?ment | conclusion | (?:final|overall) [\s_]+ (?:result|outcome|answer|decision|assessment|evaluation|grade) ) [\W_]{1,6} (?: is \W{1,4} )?
                  | (?: evaluation | assessment ) [*_\s]* (?: : | \b is \b ) [\W_]{1,6} ) )?
            (?P<word> not[\s_-](?:met|passed) | pass(?:ed|es)? | fail(?:ed|s|ure)? | met | unmet )
          | (?: i (?: \s am | \s will | ['’]m | ['’]ll )? \s (?:set|mark|marked|submit|submitting) \s )? passed [\W_]+ (?: (?:is|to|as|should\sbe|must\sbe) [\W_]+ )? (?P<value> true | false | yes | no )
          )
          (?: [^\w?] | _ )* $",
    )
});

/// The results of single criteria before a lone verdict: `Name: not met.`, `| Date | met |`, `Is it polite? No.`
static CRITERION_RESULT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?imx)
          (?: (?P<fail> (?: \bnot | n['’]t ) (?: \s \w+ )? [\s_-] (?: met | pass(?:ed)? | satisfied | fulfilled )
                | \b (?: fail(?:ed|s|ure)? | unmet | unsatisfied | unfulfilled | no ) )
            | \b (?P<pass> pass(?:ed|es)? | met | satisfied | fulfilled | yes ) )
          (?: \s? [.!?;:,(|*_] | \s [–—-] | \s* $ )",
    )
});

/// A heading of the verdict: `**Final verdict:**`, `My evaluation:`, and `Summary:` on a line of its own.
static VERDICT_HEADING: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)(?: \b(?:verdict|judge?ment|conclusion|decision)
          | (?: \b(?:my|final|overall)\s | (?m:^)[\W_]* ) (?:evaluation|assessment|summary|analysis|reasoning|rationale|explanation|reasons?) )[\s*_:]*$",
    )
});

/// Returns true if a text ends by announcing the words after it (`The tool printed:`), and isn't a heading of the verdict.
fn is_announced(before: &str) -> bool {
    let before = before.trim_end();
    before.trim_end_matches(['*', '_', ' ']).ends_with(':') && !VERDICT_HEADING.is_match(before)
}

/// Returns the verdict of a last sentence that states nothing else.
fn read_verdict_ending(last: &LastSentence) -> Option<SentenceVerdict> {
    let ending = VERDICT_ENDING.captures(&last.text)?;
    let word = ending.name("word").or_else(|| ending.name("value"))?;
    let stated = if read_verdict_word(word.as_str())? {
        SentenceVerdict::Passes
    } else {
        SentenceVerdict::Fails
    };
    let is_lone = ending.name("word").is_some() && ending.name("named").is_none();
    // A participle alone can be the end of a story: `The user typed a wrong PIN. Failed.`
    let is_participle = matches!(&*word.as_str().to_lowercase(), "passed" | "failed");
    let is_story = is_participle && ending.name("opener").is_none();
    (!is_lone || last.concludes(stated) && !is_story).then_some(stated)
}

/// The last sentence of a reasoning, without its quotations.
struct LastSentence {
    text: String,
    /// The text before it.
    before: String,
}

impl LastSentence {
    /// Returns true if a lone verdict here is about the whole. It is not if it belongs to the text before it: to a broken
    /// line (`the deadline was` / `met.`), or to a list of criteria.
    fn concludes(&self, stated: SentenceVerdict) -> bool {
        let before = self.before.trim_end();
        let first = self.text.chars().find(|c| c.is_alphabetic());
        let continues = before.ends_with(|c: char| c.is_alphanumeric() || c == ',')
            && first.is_some_and(char::is_lowercase);
        !continues && !has_criterion_result(before, stated == SentenceVerdict::Fails)
    }
}

/// The name of the field in quotation marks, outside an object.
static OWN_FIELD: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r#"(?P<before>^|[^{,\s]|[^{,\s]\s)[`"]passed[`"]"#));

/// Returns the last sentence without its quotations; skips a remark about the score.
fn last_sentence(reasoning: &str) -> Option<LastSentence> {
    // Only the end matters, and the patterns below are slow on a long reply.
    let from = reasoning.ceil_char_boundary(reasoning.len().saturating_sub(8000));
    // A quotation states someone else's words, so it must not count as the judge's conclusion.
    // The field `passed` is the judge's own word.
    let text = OWN_FIELD.replace_all(&reasoning[from..], "$before passed");
    let text = QUOTED.replace_all(&text, " QUOTE ");
    let text = SINGLE_QUOTED.replace_all(&text, "$1 QUOTE $2");
    let text = text.trim();
    // Each sentence with its start.
    let mut sentences = Vec::new();
    let mut rest = text;
    while let Some(end) = find_sentence_end(rest) {
        sentences.push((text.len() - rest.len(), rest[..end].trim()));
        rest = rest[end..].trim_start();
    }
    sentences.push((text.len() - rest.len(), rest));
    // Judges often add a confidence or score after the conclusion, so skip such a remark.
    let (start, last) = sentences
        .into_iter()
        .rev()
        .find(|(_, s)| s.chars().any(char::is_alphabetic) && !SCORE_REMARK.is_match(s))?;
    let plain: Vec<&str> = last.split_whitespace().collect();
    // A sentence this long is an argument, not a conclusion.
    (plain.len() <= 60).then(|| LastSentence {
        text: plain.join(" "),
        before: text[..start].to_owned(),
    })
}

/// Returns the end of the first sentence, if another one follows.
///
/// A sentence ends at `.`, `!`, `?` or `;` before a space, or at a line break.
fn find_sentence_end(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let ends = match c {
            '\n' => true,
            // A point inside a number or name has no space after it. Markdown may close emphasis here.
            '.' | '!' | '?' | ';' => next.is_some_and(|c| c.is_whitespace() || "*_)]".contains(c)),
            _ => false,
        };
        let end = at + c.len_utf8();
        // Punctuation at the very end begins no further sentence.
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

/// Words that keep a sentence from being a plain statement of the judge.
static HEDGE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)\b(
          cannot | nor | neither | hardly | barely | unless | if | whether | although | though | but | however | would | could | might | may
        | otherwise | except | apart | aside | besides | only | just | mostly | most | some | many | several | partly | partially | largely | nearly | almost
        | half | part | in\ part | one\ of | two\ of | at\ first | initially | until | before | once | later | earlier | previously | while | when | despite | yet | still
        | arguably | perhaps | possibly | probably | seems? | appears? | unclear | borderline | debatable | doubt
        | not\ the\ case | not\ true | untrue | false | no\ evidence | nothing | not\ say | not\ mean | deny | denies
        | claims? | claimed | claiming | says? | said | saying | states? | stated | asserts? | argues? | suggests? | asks? | asked | asking | instructs? | instructed
        | wrote | writes | written | reports? | reported | concludes | concluded | detects? | detected | declares? | declared
        | instruction | tells? | told | insists? | according | supposedly | allegedly | pretends? | believes? | thinks? | hopes? | wants? | expects?
        | example | hypothetical | were\ to | had
        | expected | as\s(?:required|requested|intended|demanded|designed) | which\s(?:is|was|match(?:es|ed))
        )\b | n['’]t\b | \? | ['’]s\s(?:\w+\s){0,2}(?:verdict|judge?ment|decision|conclusion)\b",
    )
});

/// A contracted negation, which is written out before the other patterns match.
static CONTRACTED_NEGATION: LazyLock<Regex> =
    LazyLock::new(|| compile_pattern(r"(?i)\b(do|does|did|is|are|was|were|has|have)n['’]t\b"));

static STATED_CRITERIA: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(r"(?i)\bstated\s(criteria|criterion|requirements?|conditions?)\b")
});

/// The article and the qualifiers before the judged thing as a whole.
const THE: &str = r"(?:the|this|that|its)\s(?:(?:final|overall|whole|entire|judged|given|provided|above|submitted|(?:agent|assistant|model|bot)(?:['’]s)?)\s){0,3}";

/// Names of the judged thing that name nothing else.
const ANSWER: &str = "(?:answer|response|reply|submission)";

/// Names of the judged thing that also occur in a story: an agent fails, and so does the output of a program.
const ACTOR: &str = "(?:output|conversation|transcript|session|agent|assistant|model|bot)";

/// The criteria as a whole.
const STANDARD: &str = r"(?:(?:all|each|every|any|both|either|these|this|those|the|its|that)\s)?(?:one\s)?(?:of\s)?(?:(?:the|these|this|those|its)\s)?(?:(?:stated|given|listed|required|specified|scoring|full|rubric(?:['’]s)?|two|three|four|five)\s){0,2}(?:criteria|criterion|requirements?|rubric|conditions?|standards?|guide)";

/// The beginning of a conclusion.
const OPENS: &str = r"(?:therefore|thus|hence|so|overall|consequently|accordingly|in\s(?:conclusion|sum|summary|short)|as\sa\sresult|for\s(?:this|these|that)\sreasons?),?\s";

/// The judge's own statement, at the beginning of a conclusion.
const I_CONCLUDE: &str = r"i\s(?:therefore\s|thus\s)?(?:conclude|find|judge)\s(?:that\s)?";

/// The judge's own statement of its mark: `I mark this as …`.
const I_MARK: &str = r"(?:(?:so|therefore|thus|hence),?\s)?i\s(?:(?:am|will|must|therefore|thus|have\sto)\s){0,2}(?:mark|rate|grade|judge|count)(?:ing)?\s(?:it|this|that|(?:the|this)\s(?:answer|response|reply|submission|output|conversation|transcript))\sas\s(?:a\s)?(?:clear\s)?";

static MARK: LazyLock<Regex> = LazyLock::new(|| compile_pattern(&format!("(?i){BEGINS}{I_MARK}")));

/// The beginning of the sentence, or of its reason.
const BEGINS: &str = r"^[\W_]*(?:(?:because|since)\s[^,]+,\s)?";

/// The end of a statement about the criteria, or the beginning of its reason.
const ENDS: &str = r"\s*(?:[.!;,:)*_]|$|\b(?:because|since|as|given|and|in\sfull|fully|completely|entirely|overall|here)\b)";

/// The end of a statement that doesn't name the criteria. Other words after it can make it a step of a story (`The answer
/// fails and the agent tries again`) or a comparison (`The answer fails as it should`).
const ENDS_PLAINLY: &str =
    r"\s*(?:[.!;:)*_]|$|(?:,\s)?\b(?:because|since|in\sfull|fully|completely|entirely|overall)\b)";

const ADVERB: &str = r"(?:(?:also|therefore|thus|clearly|fully|indeed|then|completely|entirely|plainly|simply|hence|consequently|in\sfact)\s)?";

/// Compiles alternatives that ignore case.
fn compile_alternatives(alternatives: &[String]) -> Regex {
    compile_pattern(&format!("(?i){}", alternatives.join("|")))
}

/// A noun that names the verdict.
const VERDICT: &str = r"(?:(?:my|the|final|overall|correct|right)\s){0,3}(?:verdict|judge?ment|decision|conclusion)(?:\sis|:)\W{0,4}";

/// Patterns of everything before a statement's verb.
struct Beginnings {
    /// Everything before the subject.
    lead: String,
    /// The judged thing as the subject of a statement about the criteria.
    whole: String,
    /// The judged thing as the subject of a statement that doesn't name the criteria.
    answer: String,
}

impl Beginnings {
    /// The beginnings of a main clause. A clause inside another one is not the judge's own (`The agent shows that the answer
    /// fails`). One about a place or a case is not about the whole (`For -1 the answer fails`).
    fn of_main_clause() -> Self {
        let begins = format!(r"{BEGINS}(?:{OPENS}(?:{I_CONCLUDE})?|{I_CONCLUDE})");
        let concludes = format!(r"(?:{begins}|,\s(?:and\s)?{OPENS})");
        let lead = format!(r"(?:{BEGINS}|{concludes})");
        Self {
            // The verb can follow another statement about the answer: `The reply is rude and does not meet the criteria.`
            whole: format!(
                r"(?:{lead}{THE}(?:{ANSWER}(?:\sis\s(?:[\w-]+\s){{1,3}}and)?|{ACTOR})|{concludes}(?:it|this))\s{ADVERB}"
            ),
            answer: format!(
                r"(?:{lead}{THE}{ANSWER}|{begins}{THE}{ACTOR}|{concludes}(?:it|this))\s{ADVERB}"
            ),
            lead,
        }
    }
}

static FAIL_STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    let Beginnings {
        lead,
        whole,
        answer,
    } = Beginnings::of_main_clause();
    compile_alternatives(&[
        format!(
            r"{whole}(?:(?:does|did|do)\snot\s{ADVERB}(?:meet|satisfy|fulfil|fulfill|pass|comply\swith|conform\sto|adhere\sto)|(?:fails|failed)\sto\s{ADVERB}(?:meet|satisfy|fulfil|fulfill|pass|comply\swith)|(?:fails|failed|violates))\s{STANDARD}{ENDS}"
        ),
        // Only in the present: `failed` belongs to a story.
        format!(
            r"{answer}(?:fails|does\snot\spass|is\sa\s(?:clear\s|plain\s)?fail(?:ure)?|(?:gets|receives|deserves)\sa\s(?:clear\s)?fail(?:ing\s(?:verdict|grade|mark))?|must\sfail|should\s(?:fail|not\spass|be\s(?:failed|marked\sas\sfail(?:ed|ing)?))){ENDS_PLAINLY}"
        ),
        format!(
            r"{lead}(?:the|this|these|all|both)\s(?:criteria|criterion|requirements?|rubric)\s(?:(?:is|are|was|were)\s{ADVERB}(?:not\s{ADVERB}(?:met|satisfied|fulfilled)|unmet|unsatisfied|unfulfilled|violated|missed)|(?:has|have)\s{ADVERB}not\sbeen\s{ADVERB}(?:met|satisfied|fulfilled)){ENDS}"
        ),
        format!(
            r"{lead}(?:not\s(?:all|every)|none)(?:\sof)?(?:\s(?:the|these))?\s(?:criteria|criterion|requirements?)\s(?:is|are|was|were|has\sbeen|have\sbeen)\s(?:met|satisfied|fulfilled){ENDS}"
        ),
        format!(
            r"^(?:this|it|that)(?:\s(?:is|was)|['’]s)\s(?:therefore\s|thus\s|clearly\s)?a\s(?:clear\s|plain\s)?fail(?:ure)?{ENDS}"
        ),
        format!(r"{BEGINS}{I_MARK}(?:fail(?:ed|ing|ure)?|not\s(?:met|passed)|unmet){ENDS}"),
        format!(
            r"{lead}{VERDICT}(?:that\s(?:it|{THE}{ANSWER})\sfails|(?:a\s)?(?:clear\s)?(?:fail(?:ed|ure|ing|s)?|not\spass(?:ed)?)){ENDS}"
        ),
    ])
});

static PASS_STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    let Beginnings {
        lead,
        whole,
        answer,
    } = Beginnings::of_main_clause();
    compile_alternatives(&[
        format!(
            r"{whole}(?:meets|met|satisfies|satisfied|fulfils|fulfills|fulfilled|passes|passed|complies\swith|conforms\sto|adheres\sto)\s{STANDARD}{ENDS}"
        ),
        format!(
            r"{answer}(?:passes|is\sa\s(?:clear\s|plain\s)?pass|should\s(?:pass|be\s(?:passed|marked\sas\spass(?:ed|ing)?))){ENDS_PLAINLY}"
        ),
        format!(
            r"{lead}(?:the|this|these|all|both|every|each)(?:\sof)?(?:\s(?:the|these))?\s(?:(?:two|three|four|five|stated|given|listed)\s)?(?:criteria|criterion|requirements?|rubric)\s(?:is|are|was|were|has\sbeen|have\sbeen)\s{ADVERB}(?:met|satisfied|fulfilled){ENDS}"
        ),
        format!(
            r"^(?:this|it|that)(?:\s(?:is|was)|['’]s)\s(?:therefore\s|thus\s|clearly\s)?a\s(?:clear\s|plain\s)?pass{ENDS}"
        ),
        format!(r"{BEGINS}{I_MARK}(?:pass(?:ed|ing)?|met){ENDS}"),
        format!(
            r"{lead}{VERDICT}(?:that\s(?:it|{THE}{ANSWER})\spasses|(?:a\s)?(?:clear\s)?pass(?:ed|es|ing)?){ENDS}"
        ),
    ])
});

/// Returns the verdict that a sentence plainly states.
fn read_sentence_verdict(sentence: &str) -> Option<SentenceVerdict> {
    // `n't` is a hedge below, but a plain "doesn't meet" is a clear statement.
    let sentence = CONTRACTED_NEGATION.replace_all(sentence, "$1 not");
    // "Stated criteria" contains a hedge word, but states no one's words.
    let sentence = STATED_CRITERIA.replace_all(&sentence, "$1");
    // A false alarm costs more than a missed contradiction, so a hedged sentence states nothing.
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
