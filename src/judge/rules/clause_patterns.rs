//! The patterns of clauses. Each matches a whole clause.

use std::sync::LazyLock;

use regex::{Captures, Regex};

const SUBJECT: &str = r"(?:(?:the|its|this)\s+)?(?:(?:final|last|agent's|assistant's|model's|agent’s|assistant’s)\s+)?(?:answer|output|response|reply|message|text|summary|agent|assistant|model|bot|conversation|session|it)";

pub(super) static NEXT: LazyLock<Regex> = LazyLock::new(|| {
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
pub(super) static LEAD: LazyLock<Regex> =
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

pattern!(
    QUOTED,
    "“[^”]+”|\"[^\"]+\"|‘[^’]+’|`[^`]+`|\\B'[^']+'\\B|«[^»]+»"
);
pattern!(
    NO,
    r"(?i)^(?:(?:contains?|includes?|has|have|uses?|gives?|with|mentions?|names?|makes?|asks?|is|offers?|quotes?|cites?)\s+)?no\s+(?:more\s+than\b)?"
);

const SOURCE: &str = r"(?:(?:(?:a|an|the|any|some|its|at\s+least\s+one|one\s+of\s+the)\s+)?(?:tools?|search|function)['’]?s?\s+(?:results?|outputs?|answers?|responses?)|(?:the\s+|a\s+)?(?:results?\s+of\s+(?:a|the|its)\s+tools?)|(?:the|a|any)\s+(?:fetched\s+)?(?:pages?|sources?|results?)|what\s+(?:the|its)\s+tools\s+returned)(?:\s+or\s+(?:in\s+|on\s+)?(?:a|the)\s+(?:fetched\s+)?pages?)?";
/// The messages of the user, as a further source.
const USER_SAID: &str = r"(?:(?:(?:an?|the|any|some|their)\s+)?(?:earlier\s+)?(?:user|customer|client|caller|person)(?:['’]s)?\s+(?:messages?|questions?|words)|(?:an?|the|any|some)\s+(?:earlier\s+)?messages?\s+(?:of|from)\s+(?:a|the)\s+(?:user|customer|client|caller|person)|what\s+the\s+(?:user|customer|client|caller|person)\s+(?:says|said|writes|wrote|asks|asked))";
const KIND: &str = r"(?:(?:every|each|all|any|the)\s+)?(?:numbers?|figures?|version(?:\s+number)?s?|dates?|amounts?|prices?|sums?|percentages?|urls?|links?|quot(?:es?|ations?)|quoted\s+(?:phrases?|passages?|texts?|words?|sentences?))";
const ADDRESS: &str = r"<?(https?://[^\s<>]+|(?:[a-z0-9-]+\.)+[a-z]{2,}(?:/[^\s<>]*)?)>?";
const OF_ANSWER: &str = r"(?:\s+(?:in|of)\s+(?:(?:the|its|this)\s+)?(?:(?:final|last)\s+)?(?:answer|output|response|reply|message|text|it)|\s+(?:the\s+(?:answer|output|response|reply|agent)|it)\s+(?:gives?|names?|mentions?|states?|contains?))?";

pub(super) static GROUNDED: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = format!(r"({KIND}(?:(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+){KIND})*)");
    let or_user_said = format!("(?:{})?", or_user_said());
    Regex::new(&format!(
        r"(?ix)^(?:
            (?:every|each|all|any)\s+(?:of\s+the\s+)?{kinds}{OF_ANSWER}\s+(?:must\s+|should\s+)?(?:also\s+)?(?:occurs?|appears?|stands?|comes?|is|are|be|can\s+be)(?:\s+(?:found|supported|backed|present|stated|taken))?\s+(?:in|from|by|on)\s+{SOURCE}{or_user_said}
          | (?:is|are|be|stays?)\s+(?:fully\s+|well\s+|entirely\s+)?(?:grounded|supported|backed)(?:\s+(?:in|by|on)\s+{SOURCE}{or_user_said})?
          | grounded(?:\s+in\s+{SOURCE}{or_user_said})?
        )$",
        kinds = kinds.replace(' ', r"\ "),
    ))
    .expect("a valid pattern")
});
/// The end of a grounding clause that also accepts what the user wrote.
pub(super) static OR_USER_SAID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("(?i){}$", or_user_said())).expect("a valid pattern"));

fn or_user_said() -> String {
    format!(r"\s+or\s+(?:(?:in|from|by|on)\s+)?{USER_SAID}")
}

pub(super) static INVENTED: LazyLock<Regex> = LazyLock::new(|| {
    let kinds = format!(r"({KIND}(?:(?:,\s*(?:and\s+|or\s+)?|\s+and\s+|\s+or\s+){KIND})*)");
    Regex::new(&format!(
        r"(?i)^(?:(?:contains?|has|have|gives?|uses?|states?|names?|includes?)\s+)?(no\s+)?(?:any\s+)?(?:(?:invented|made[- ]up|unsupported|ungrounded|fabricated|hallucinated)|(?:invents?|inventing|makes?\s+up|fabricates?)(\s+no)?(?:\s+any)?)\s+{kinds}$"
    ))
    .expect("a valid pattern")
});
pub(super) static NEWEST: LazyLock<Regex> = LazyLock::new(|| {
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
pub(super) static LIMIT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r"(?i)^(?:(?:has|have|is|are|contains?|uses?|stays?|keeps?|be|runs?|takes?|with|includes?|asks?|gives?|consists?\s+of)\s+)?(?:(?:to|in|within)\s+)?(?:(at\s+most|no\s+more\s+than|more\s+than|up\s+to|an?\s+max(?:imum)?\s+of|max(?:imum)?\.?|no\s+longer\s+than|longer\s+than|within|fewer\s+than|less\s+than|under|below|shorter\s+than|at\s+least|no\s+fewer\s+than|no\s+less\s+than|a\s+minimum\s+of|minimum|over|exceeds?|exceed|exactly|precisely)\s+)?{COUNT}\s+(or\s+(?:fewer|less|more)\s+)?(sentence|word|character|line|paragraph|bullet(?:\s+point)?|question|link)s?(\s+or\s+(?:fewer|less|more))?(?:\s+(?:long|in\s+length|in\s+total|altogether))?$"
    ))
    .expect("a valid pattern")
});
pattern!(
    CITES,
    r"(?i)^(?:(?:cites?|citing|gives?|provides?|includes?|names?|references?|contains?)\s+(?:(?:its|an?|any|at\s+least\s+one|some)\s+)?(?:sources?(?:\s+(?:url|link))?|references?|urls?|links?|sources?\s+or\s+(?:a\s+)?(?:urls?|links?))|links?\s+to\s+(?:its|an?|any|at\s+least\s+one)\s+(?:sources?|pages?))$"
);
pub(super) static LINKS: LazyLock<Regex> = LazyLock::new(|| {
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
pub(super) static SAYS: LazyLock<Regex> =
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

/// Replaces every quotation by as many bytes of `Q`, so that positions stay valid.
pub(super) fn mask_quoted(text: &str) -> String {
    QUOTED
        .replace_all(text, |quoted: &Captures<'_>| "Q".repeat(quoted[0].len()))
        .into_owned()
}
