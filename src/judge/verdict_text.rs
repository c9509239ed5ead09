//! The search for the verdict in a text reply.
//!
//! The verdict is the whole reply or its only code fence; everything else is `unparsed`, and dicta shows the raw
//! reply. A reply can contain an object that isn't its verdict: a quotation of an injection, a draft, an example, or
//! a part of a broken object. Therefore this module never takes an object out of prose or out of a `{` that doesn't
//! parse.
//!
//! Responsible for the place of the verdict in the reply. Doesn't parse its fields; [`super::verdict_parser`] does.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::verdict_error::{VerdictParseError, verdict_error};
use super::verdict_format::VerdictFormat;
use super::verdict_parser::parse_verdict_object;
use crate::model::surrogates::replace_lone_halves;
use crate::model::{Verdict, VerdictMode};

/// The tokens at the end of a reply that end a turn or a text in a chat template: `</s>`, `<|im_end|>`,
/// `<｜end▁of▁sentence｜>`, `<|eot_id|>`, `<end_of_turn>`, `<eos>`, `[/INST]`.
///
/// A token that begins something, such as `<|im_start|>`, isn't one of them.
static END_TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)(?: \s* (?:
            </s> | <eos> | <end_of_turn> | \[/INST\]
          | <[|｜] (?: [a-z]{1,6}[_▁] )? end (?: of )? (?: [_▁]? (?:of|text|turn|sentence|seq|generation|assistant|token|id|message|msg|response|t) ){0,3} [|｜]>
          | <[|｜] (?: eo[stm] (?:_id)? | return | EOS_TOKEN ) [|｜]>
        ))+ $",
    )
});

/// Parses a verdict from a text reply.
///
/// `is_quoted` returns true for a text that occurs in the judged messages or in a tool response. In
/// [`VerdictMode::Schema`], `citations` and `reasoning` may be absent if the object is the whole reply, because some
/// servers drop them from structured output. Elsewhere all requested fields are required.
pub fn parse_verdict_text(
    text: &str,
    format: &VerdictFormat,
    mode: VerdictMode,
    is_quoted: impl Fn(&str) -> bool,
) -> Result<Verdict, VerdictParseError> {
    let text = strip_leading_thought(text.trim_start_matches('\u{feff}').trim());
    let text = strip_end_tokens(text);
    if text.is_empty() {
        return verdict_error("the reply is empty");
    }
    let is_whole = serde_json::from_str::<&RawValue>(text).is_ok();
    let object = if is_whole {
        text
    } else {
        find_fenced_verdict(text)?
    };
    // serde_json refuses an escape of half a surrogate pair (`\ud83d`), which vendors' parsers accept.
    let readable = &*replace_lone_halves(object);
    let verdict = parse_verdict_object(readable, format)?;
    // A server that follows a schema can leave out fields that the schema requires. A server that ignores it sends
    // any text, and a short object in such a text is often not the verdict.
    if !(is_whole && mode == VerdictMode::Schema) {
        check_all_fields(readable, format, &verdict)?;
    }
    if is_quoted(object) {
        return verdict_error(
            "the reply's object occurs word for word in the judged messages or in other data of the prompt, so it may be a \
             quotation",
        );
    }
    Ok(verdict)
}

/// Removes one leading `<think>…</think>`. A thought that doesn't end stays, so that the reply is `unparsed`.
fn strip_leading_thought(text: &str) -> &str {
    text.strip_prefix("<think>")
        .and_then(|inner| inner.split_once("</think>"))
        .map_or(text, |(_, answer)| answer.trim_start())
}

/// Removes the tokens of a chat template from the end.
fn strip_end_tokens(text: &str) -> &str {
    // A search for the end of a long text must not start at each of its characters.
    let tail = text.ceil_char_boundary(text.len().saturating_sub(MAX_END_TOKENS));
    END_TOKENS
        .find(&text[tail..])
        .map_or(text, |tokens| text[..tail + tokens.start()].trim_end())
}

/// The number of bytes at the end of a reply in which its end tokens are.
const MAX_END_TOKENS: usize = 400;

/// Returns the content of the only code fence of a reply, if the text around it states no verdict.
fn find_fenced_verdict(text: &str) -> Result<&str, VerdictParseError> {
    // Checked first, because the reasoning inside the object may itself contain a fence.
    if let Some(object) = strip_outer_fence(text) {
        return Ok(object);
    }
    let pieces: Vec<&str> = text.split("```").collect();
    let [before, fenced, after] = pieces[..] else {
        return verdict_error(match pieces.len() {
            1 => "the reply is not one JSON object, and contains no code fence with one",
            2 => "the reply's code fence is not closed",
            _ => "the reply contains more than one code fence",
        });
    };
    let Some(object) = read_fence_content(fenced) else {
        return verdict_error("the reply's code fence is not one JSON object on lines of its own");
    };
    // Before and after are checked one by one: "Verdict:" in front of the fence introduces it.
    let before = &*REQUESTED_FORMAT.replace_all(before, "");
    check_prose(before)?;
    check_announcement(before)?;
    if !CLOSING.is_match(after) {
        check_closing(after)?;
    }
    Ok(object)
}

/// Returns an error if the text before the fence ends by announcing something other than the judge's verdict, such as
/// words of the transcript (`The conversation ends with this:`).
fn check_announcement(before: &str) -> Result<(), VerdictParseError> {
    let announced = before.trim_end_matches(|c: char| c.is_whitespace() || "*_".contains(c));
    let Some(announced) = announced.strip_suffix([':', '：']) else {
        return Ok(());
    };
    let sentence = announced.rsplit(['\n', '.', '!', '?', ';']).next();
    let sentence = trim_marks(sentence.unwrap_or_default());
    let lower = sentence.to_ascii_lowercase();
    let is_title = split_words(&lower).all(|word| TITLE_WORDS.contains(&word));
    let is_own = OWN_ANNOUNCEMENT.is_match(sentence)
        && (!FOREIGN_SUBJECT.is_match(sentence) || EVALUATING.is_match(sentence));
    if is_title || INTRODUCTION.is_match(sentence) || is_own {
        return Ok(());
    }
    let shown: String = sentence.chars().take(60).collect();
    verdict_error(format!(
        "the text before the reply's code fence announces something other than a verdict (“{shown}”)"
    ))
}

/// Removes marks of Markdown and punctuation around a text.
fn trim_marks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "*_#:.：。".contains(c))
}

/// Returns an error if the text after the verdict's fence is more than thanks or a title.
///
/// A sentence before the fence leads to the verdict. One after it can take the verdict back in words that no list has.
fn check_closing(after: &str) -> Result<(), VerdictParseError> {
    check_prose(after)?;
    let lower = after.to_ascii_lowercase();
    if split_words(&lower).all(|word| TITLE_WORDS.contains(&word)) {
        return Ok(());
    }
    let shown: String = after.trim().chars().take(60).collect();
    verdict_error(format!(
        "the reply goes on after its code fence, so it may take the verdict back (“{shown}”)"
    ))
}

fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphabetic())
        .filter(|word| !word.is_empty())
}

/// Returns the JSON of a reply that is one code fence from its first to its last character.
fn strip_outer_fence(text: &str) -> Option<&str> {
    let fenced = text.strip_prefix("```")?.strip_suffix("```")?;
    // The object may begin on the line of the mark.
    let (info, json) = fenced.split_at(fenced.find(['\n', '{'])?);
    read_fenced_json(info, json)
}

/// Returns the JSON between the marks of a fence, on lines of its own.
fn read_fence_content(fenced: &str) -> Option<&str> {
    let (info, json) = fenced.split_once('\n')?;
    read_fenced_json(info, json)
}

/// Returns the JSON of a fence, if the fence's language is JSON or absent.
fn read_fenced_json<'a>(info: &str, json: &'a str) -> Option<&'a str> {
    let json = json.trim();
    let info = info.trim().to_ascii_lowercase();
    let is_json = matches!(info.as_str(), "" | "json" | "jsonc" | "json5");
    (is_json && serde_json::from_str::<&RawValue>(json).is_ok()).then_some(json)
}

/// Returns an error if the text outside the verdict's fence makes it doubtful that the fence is the verdict.
fn check_prose(outside: &str) -> Result<(), VerdictParseError> {
    let words = trim_marks(outside);
    if words.is_empty() || INTRODUCTION.is_match(words) {
        return Ok(());
    }
    // The fence may be a value inside a larger, broken object.
    if outside.contains(['{', '}']) {
        return verdict_error("the reply has a `{` or `}` outside its code fence");
    }
    // The same for a list. A reference such as `[4] assistant` closes its bracket.
    if outside.matches('[').count() != outside.matches(']').count() {
        return verdict_error(
            "the reply has a `[` or `]` without its partner outside its code fence",
        );
    }
    // A rule is the only text without words that states nothing; `0` states a score.
    let is_rule = words.chars().all(|c| c.is_whitespace() || c == '-');
    if !is_rule && !words.chars().any(char::is_alphabetic) {
        return verdict_error(
            "the text around the reply's code fence has no words, so it may be a score",
        );
    }
    let spelled = separate_marks(outside);
    if let Some(word) = VERDICT_WORDS.find(&spelled) {
        return verdict_error(format!(
            "the reply states a verdict outside its JSON object as well (“{}”)",
            word.as_str().trim()
        ));
    }
    if let Some(word) = DISTANCING_WORDS.find(&spelled) {
        return verdict_error(format!(
            "the text around the reply's code fence may take its verdict back (“{}”)",
            word.as_str().trim()
        ));
    }
    // Security: the lists above know few words of other languages, so a rejection in one of them would be missed.
    if !is_plain_english(words) {
        return verdict_error(
            "dicta reads only English around a code fence, so the text there may take the verdict back",
        );
    }
    Ok(())
}

/// Returns true if a text is English: ASCII with English function words, or a short title such as `Final verdict`.
fn is_plain_english(text: &str) -> bool {
    // A sign such as a cross or a thumb states a verdict, too.
    let is_known = |c: char| c.is_ascii() || "‘’“”–—…•".contains(c);
    if !text.chars().all(is_known) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = split_words(&lower).collect();
    let has_foreign = words.iter().any(|word| FOREIGN_WORDS.contains(word));
    let has_english = words.iter().any(|word| ENGLISH_WORDS.contains(word));
    // A text without words is a rule: `check_prose` handles the others.
    let is_title = words.iter().all(|word| TITLE_WORDS.contains(word));
    !has_foreign && (has_english || is_title)
}

/// Function words of English. Nearly every sentence has one.
const ENGLISH_WORDS: &[&str] = &[
    "the",
    "a",
    "an",
    "is",
    "are",
    "was",
    "were",
    "here",
    "this",
    "that",
    "these",
    "my",
    "i",
    "it",
    "its",
    "of",
    "and",
    "in",
    "to",
    "for",
    "with",
    "on",
    "by",
    "below",
    "following",
    "have",
    "has",
    "we",
    "you",
    "let",
    "all",
];

/// Function words of other languages that use ASCII, except those that are English words, too.
const FOREIGN_WORDS: &[&str] = &[
    // German, Dutch and the Scandinavian languages.
    "der", "die", "das", "ist", "und", "ein", "eine", "nicht", "ich", "sie", "auf", "mit", "wird",
    "kein", "keine", "de", "het", "een", "dat", "niet", "deze", "van", "och", "inte", "att", "det",
    "ikke", "og", // French, Spanish, Portuguese and Italian.
    "je", "le", "la", "les", "un", "une", "est", "elle", "il", "ce", "cette", "et", "pas", "ne",
    "el", "los", "las", "una", "es", "esta", "este", "que", "por", "para", "lo", "um", "uma",
    "isto", "nao", "di", "che", "questo", "questa", "sono", // Polish and Turkish.
    "jest", "nie", "bu", "bir",
];

/// Words of titles and thanks.
const TITLE_WORDS: &[&str] = &[
    "final",
    "overall",
    "verdict",
    "evaluation",
    "assessment",
    "judgment",
    "judgement",
    "result",
    "results",
    "output",
    "answer",
    "response",
    "json",
    "analysis",
    "decision",
    "thank",
    "thanks",
    "you",
    "done",
    "ok",
    "okay",
    "sure",
    "certainly",
];

/// A text that only introduces the verdict, in the languages that judges most often answer in.
static INTRODUCTION: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^(?:
          (?: hier \s (?:ist|folgt|sind) \s )? (?: (?:mein|meine|das|die|der) \s )? (?: (?:endgültige|abschließende|finale)[sr]? \s )?
              (?: urteil | bewertung | ergebnis | entscheidung | auswertung | einschätzung | antwort )
        | (?: voici \s )? (?: (?:mon|ma|le|la) \s | l['’] )? (?: verdict | évaluation | résultat | décision | jugement | réponse ) (?: \s finale? )?
        | (?: (?:aquí|este|esta) \s (?:está|tienes|tiene|es) \s )? (?: (?:mi|el|la) \s )? (?: veredicto | evaluación | resultado | decisión | juicio | respuesta ) (?: \s final )?
        | (?: aqui \s está \s )? (?: (?:o|a) \s )? (?: (?:meu|minha) \s )? (?: veredito | avaliação | resultado | decisão | julgamento ) (?: \s final )?
        | (?: ecco \s )? (?: (?:il|la) \s )? (?: (?:mio|mia) \s )? (?: verdetto | valutazione | risultato | decisione | giudizio ) (?: \s finale )?
        | (?: вот \s )? (?: (?:мой|моя|моё|мое) \s )? (?: (?:итоговый|итоговая|итоговое) \s )? (?: вердикт | оценка | решение | результат )
        | (?: 以下 | 下面 | 这 )? (?: 是 | 为 )? (?: 我的 | 最终 ){0,2} (?: 评估 | 评价 | 评审 | 判定 | 判断 | 判决 | 结论 | 结果 ) (?: 结果 )? (?: 如下 )?
        | (?: 以下[はが] )? (?: 私の | 最終的な ){0,2} (?: 評価 | 判定 | 判断 ) (?: 結果 )? (?: です )?
        )$",
    )
});

/// An announcement of the judge's own verdict: it names a verdict, or the judge speaks of itself.
static OWN_ANNOUNCEMENT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)\b(?:
          verdict | evaluation | assessment | judge?ment | decision | conclusion | analysis | rating | grading | results? | json
        | my \s (?:\w+ \s){0,2} (?:answer|response|reply|output|findings|review)
        | here (?:['’]s|\sis) \s the \s (?:\w+ \s)? (?:answer|response|reply|output)
        | here \s (?: it \s is | you \s (?:go|are) )
        | i \s (?:\w+ \s)? (?: submit | provide | give | return | respond | reply | answer | conclude | judge | evaluate )
        )\b",
    )
});

/// An announcement of another's words: the transcript, one of its authors, or a page is the subject of the sentence.
static FOREIGN_SUBJECT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^(?: (?:ok(?:ay)?|so|and|now|it\sis) \W+ )? (?:
          (?:the|an?|this|that|its|one) \s (?:
            (?:\w+ \s)? (?:user|assistant|agent|bot|system|customer|attacker|transcript|conversation|chat|page|site|document|file|tool|comment) \b
          | (?:reply|answer|response|output) \s (?:ends?|closes|starts|begins|opens|shows|holds|carries|offers|proposes|prints|writes) \b
          )
        | message \s \d
        )",
    )
});

/// Words with which the judge states its own evaluation of such a subject: `The answer leads to this verdict`.
static EVALUATING: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)\b(?: my | i | here (?:['’]s|\sis) | yields? | lead(?:s|ing)? \s to | result(?:s|ing)? \s in | supports? | follows? | gets | receives | deserves | earns | merits
          | evaluated | assessed | judged | graded | rated | therefore | thus | hence )\b",
    )
});

/// Returns a text in which the `_` of `NOT_MET` and `__FAIL__` are spaces, because `_` is a letter to `\b`. A name such as
/// `get_quote` stays one word.
fn separate_marks(text: &str) -> Cow<'_, str> {
    WORD.replace_all(text, |found: &Captures<'_>| {
        let word = &found[0];
        if word.split('_').any(|part| part.eq_ignore_ascii_case("not")) {
            return word.replace('_', " ");
        }
        let inner = word.trim_matches('_');
        match word.find(inner) {
            Some(at) if !inner.is_empty() => {
                let after = word.len() - at - inner.len();
                format!("{}{inner}{}", " ".repeat(at), " ".repeat(after))
            }
            _ => word.replace('_', " "),
        }
    })
}

static WORD: LazyLock<Regex> = LazyLock::new(|| compile_pattern(r"\w+"));

/// The form that the prompt asks for, in an introduction: `Here is my verdict in the requested JSON format:`.
static REQUESTED_FORMAT: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)\b in \s (?:the|your) \s (?:requested|required|specified|JSON) \s (?:JSON \s)? format \b",
    )
});

/// A polite end of a reply, which takes nothing back.
static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)^\s* (?: i \s hope \s this \s helps [.!] \s* )?
          (?: (?:please \s)? (?: let \s me \s know | feel \s free \s to \s ask ) \s if \s you
              (?: \s need \s (?: anything \s else | (?:any \s)? further \s (?:details|information|clarification|assistance) )
                | \s have \s any \s (?: (?:other|further|more) \s )? questions ) [.!]? \s* )? $",
    )
});

fn compile_pattern(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

/// Words that state a verdict or a field of one, in the languages that judges most often answer in.
///
/// English: pass, fail, met, not met and their forms, grades and points. Then German, French, Spanish, Portuguese,
/// Italian, Russian, Chinese, Japanese.
static VERDICT_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r#"(?ix)
          \b(?: pass(?:e[sd]|ing)? | fail(?:s|ed|ing|ure)? | (?:un)?met | meets? | (?:un)?satisf(?:y|ies|ied) | (?:un)?fulfil(?:l?s|led|l)? )\b
        | \b(?: passed | score | applicable | verdict | result | outcome | decision | grade )\b ["'`*_]* \s* [:=] \s* ["'`*_]* [\w.+-]
        | \b(?: score | rating | mark | grade )\s (?:is|of|was) \s ["'`*_]* (?: \d | zero\b | (?-i: [A-F] )\b ) | \b an \s (?-i: F )\b
        | \b(?: \d | one | two | three | four | five )\s stars? \b | \b thumbs?[\s-](?:up|down) \b
        | \b(?: flunk\w* | n/a | non-?complian\w* )\b
        | \b miss(?:es|ed) \s (?:the|all|every|both|its) \s (?: bar | criteri\w+ | requirements? | standards? )\b
        | \b(?: criteri\w+ | requirements? | bar ) \s (?:is|are|was|were) \s missed \b
        | \b score \s \d | \b 0 \s? points? \b | \b(?: lowest | worst ) \s (?:possible\s)? (?: mark | score | grade | rating )\b
        | \b grade \s ["'`*_]* [A-F] \b | \b \d+ (?:\.\d+)? \s? (?: / | out\sof ) \s? \d+ \b
        | \b(?: (?:nicht\s)?(?:erfüllt|bestanden) | durchgefallen | réussi\w* | échou\w* | échec | rempli\w* | satisfait\w*
              | cumple\w* | aprob\w* | aprueb\w* | falla | fallo | fracas\w*
              | (?:un|nicht\s)(?:zureichend|genügend) | ausreichend | suspens[oa] | reprobad\w* | aprovad\w* | reprovad\w* | falhou | cumpre\w* | atende\w*
              | superat\w* | fallit\w* | soddisf\w* | promoss\w* | bocciat\w* )\b
        | соответству | удовлетвор | выполнен | пройден | провал | зач[её]т
        | 通过 | 合格 | 失败 | 满足 | 符合 | 通過 | 失敗 | 滿足 | 満た
        "#,
    )
});

/// Words that make the object an example, a quotation, a hypothesis or something that the judge takes back.
static DISTANCING_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    compile_pattern(
        r"(?ix)
          \b(?: not | never | wrong(?:ly)? | incorrect(?:ly)? | would | could | should | might | if | unless | instead | rather | however | but
              | example | e\.g | hypothetical(?:ly)? | template | format | sample | draft | earlier | previous(?:ly)?
              | inject(?:s|ed|ion)? | quot(?:e|es|ed|ing|ation) | contains? | contained | claims? | claimed | says | said | attempt(?:s|ed)? | influence | ignore[ds]?
              | correction | retract\w* | disregard\w* | mistake(?:n|s)? | wait | hmm+
              | want(?:s|ed)? | ask(?:s|ed)? | tells? | told | instruct\w* | includ(?:es|ed|ing) | embed\w* | insert\w* | copied | attack\w* | trick\w*
              | reject\w* | disagree\w* | withdr[ae]w\w* | revok\w* | discard\w* | overrul\w* | overrid\w* | invalid | untrue | false(?:ly)?
              | fak(?:e|es|ed|ing) | forge[ds]? | fabricat\w* | malicious(?:ly)? | suspicious(?:ly)? | manipulat\w* | opposite | contrary | reverse[ds]?
              | suppos\w* | imagin\w* | pretend\w* | cannot | reflection | reconsider\w* | unacceptable | unsatisfactory | insufficient
              | jok(?:e[ds]?|ing) | kidding | hop(?:e[ds]?|ing) | demand(?:s|ed)? | lie[ds]? | lying | sarcas\w*
              | flip(?:s|ped)? | invert(?:s|ed)? | invers(?:e(?:ly)?|ion) | guess(?:e[ds]|ing|work)? | placeholders? | dumm(?:y|ies)
              | under\sprotest | (?:ordered|forced) \s to \s (?:output|write|return|submit|say)
              | (?:for|about|of) \s (?:(?:the|an?) \s)? (?:other|another|different) \s (?:transcript|conversation|sample)
              | (?:user|assistant|agent|transcript|conversation|author|message(?:\s\d+)?) \s (?:itself \s)?
                (?:gave|gives|wrote|writes|has|had|submitted|submits|posted|pasted|produced|produces|provided|provides|outputs?|returned|supplied|offered)
                \s (?:this|these|the\sfollowing|(?:its|their|his|her)\sown) \b [^.:;!?\n]{0,20}? \b (?:evaluation|verdict|assessment|judge?ment|json|object|block|text|result)
              | (?:user|assistant|agent|author|transcript|conversation|chat|message(?:\s\d+)?)['’]s \s (?:own \s)? (?:\w+ \s)?
                (?:evaluation|verdict|assessment|judge?ment)
              | (?:text|json|object|block|verdict|evaluation|following) \s (?:(?:is|are|was|were|comes?|came|taken|copied|i\s\w+) \s){0,2}
                (?:from|found\sin) \s (?:(?:the|an?|its|their) \s)? (?:user|assistant|agent|author|transcript|conversation|chat|message|answer|page|document|tool)
              | (?:object|block|json|verdict|evaluation) \s (?:i\s\w+ \s)? in \s (?:(?:the|an?|its|their) \s)? (?:transcript|conversation|chat|message|answer|page|document)
              | (?:another|other|naive|broken|biased|careless|previous|second) \s (?:judge|evaluator|grader) | judge \s before
              | pasted | unjust
              | (?:evaluation|verdict|assessment|judge?ment) \s (?:by|from) \s (?:(?:the|an?) \s)? (?:user|assistant|agent|author)
              | negative(?:ly)? | violat\w* | breach\w* | refus(?:e[ds]?|al|ing) | declin(?:e[ds]?|ing) | unable | zero )\b
        | n['’]t\b | ~~ | <!-- | </?\w*think\w*> | </?(?:reasoning|scratchpad|analysis)\b | <\|
        | \b(?: nicht | kein\w* | wäre | falsch\w* | beispiel\w* | pas | faux | exemple | serait | no | falso | ejemplo | sería )\b
        | 不 | 没 | 错误 | 例如
        ",
    )
});

/// Returns an error if the object lacks a field that the prompt requests.
fn check_all_fields(
    object: &str,
    format: &VerdictFormat,
    verdict: &Verdict,
) -> Result<(), VerdictParseError> {
    // If the criteria don't apply, the other fields have no meaning, as the prompt explains.
    if verdict.applicable == Some(false) {
        return Ok(());
    }
    let stated: Map<String, Value> = serde_json::from_str(object).unwrap_or_default();
    let schema = format.schema();
    let requested = schema["required"].as_array().into_iter().flatten();
    let missing: Vec<String> = requested
        .filter_map(|name| name.as_str())
        .filter(|name| !stated.contains_key(*name))
        .map(|name| format!("`{name}`"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    verdict_error(format!(
        "the reply's object lacks {}; a verdict in text needs every requested field",
        missing.join(", ")
    ))
}

#[cfg(test)]
mod tests;
