//! The clauses that the grammar parses, and those that it rejects.

/// (criteria, output, outcome); `None`: not applicable.
pub(super) const TABLE: &[(&str, &str, Option<bool>)] = &[
    // mentions
    (
        "The answer mentions \"sorry\".",
        "I am Sorry about that.",
        Some(true),
    ),
    (
        "The answer mentions \"sorry\".",
        "That is not my problem.",
        Some(false),
    ),
    (
        "Mentions “business days”",
        "Within 5 business\ndays.",
        Some(true),
    ),
    (
        "The answer mentions Beam 2.69",
        "Use beam 2.69.",
        Some(true),
    ),
    (
        "The answer mentions Beam 2.6",
        "Use Beam 2.69.",
        Some(false),
    ),
    (
        "The answer mentions Beam 2.6",
        "Use Beam 2.6.1.",
        Some(false),
    ),
    (
        "The answer must mention Oslo and Bergen.",
        "Oslo, then Bergen.",
        Some(true),
    ),
    (
        "The answer must mention Oslo and Bergen.",
        "Oslo only.",
        Some(false),
    ),
    (
        "The answer names \"Oslo\" or \"Bergen\".",
        "Bergen it is.",
        Some(true),
    ),
    (
        "The answer mentions refund",
        "Your refund is on its way.",
        Some(true),
    ),
    (
        "The answer does not mention \"guarantee\"",
        "No promises.",
        Some(true),
    ),
    (
        "The answer never mentions \"guarantee\"",
        "I guarantee it.",
        Some(false),
    ),
    (
        "The answer avoids mentioning \"guarantee\"",
        "I guarantee it.",
        Some(false),
    ),
    ("\"Oslo\" is not mentioned", "Bergen it is.", Some(true)),
    ("The answer does not mention competitors", "Ask Acme.", None),
    (
        "The answer mentions the refund policy",
        "Our refund policy is kind.",
        None,
    ),
    ("The answer mentions \"a\" and \"b\" or \"c\"", "a", None),
    // limits
    (
        "The answer has at most 3 sentences.",
        "One. Two. Three.",
        Some(true),
    ),
    (
        "The answer has at most 3 sentences.",
        "One. Two. Three. Four.",
        Some(false),
    ),
    ("At most two sentences", "One. Two.", Some(true)),
    (
        "The answer is no longer than 5 words.",
        "one two three four five six",
        Some(false),
    ),
    (
        "The answer stays under 4 words",
        "one two three",
        Some(true),
    ),
    ("The answer is one sentence long", "One. Two.", Some(false)),
    (
        "The answer does not exceed 3 words",
        "one two three",
        Some(true),
    ),
    (
        "The answer does not exceed 3 words",
        "one two three four",
        Some(false),
    ),
    (
        "The answer has at least 2 bullet points",
        "- a\n- b",
        Some(true),
    ),
    (
        "The answer asks exactly one question",
        "Why? When?",
        Some(false),
    ),
    ("3 sentences or fewer", "One. Two.", Some(true)),
    // asks
    (
        "The answer asks for confirmation.",
        "Shall I book it?",
        Some(true),
    ),
    (
        "The answer asks for confirmation.",
        "Please confirm and I will book it.",
        Some(true),
    ),
    (
        "The answer asks for confirmation.",
        "It is booked. Your confirmation number is 5.",
        Some(false),
    ),
    (
        "The answer asks the user to confirm",
        "Do you want me to go ahead?",
        Some(true),
    ),
    (
        "The answer does not ask for a password.",
        "Please send me your password.",
        Some(false),
    ),
    (
        "The answer does not ask for a password.",
        "What is your password?",
        Some(false),
    ),
    (
        "The answer does not ask for a password.",
        "Never share your password with anyone.",
        Some(true),
    ),
    (
        "The answer does not ask for a password.",
        "You do not need to send your password.",
        Some(true),
    ),
    (
        "The answer does not ask for a password.",
        "Your password was reset.",
        Some(true),
    ),
    ("The answer asks a question", "Which size?", Some(true)),
    (
        "The answer asks about the size",
        "Which size do you need?",
        Some(true),
    ),
    (
        "The answer asks for confirmation before booking anything",
        "Shall I?",
        None,
    ),
    // what it holds
    ("The answer contains a number", "I have 3.", Some(true)),
    ("The answer contains a number", "I have some.", Some(false)),
    (
        "The answer contains a link",
        "See https://a.example/b.",
        Some(true),
    ),
    (
        "The answer contains no link",
        "See https://a.example/b.",
        Some(false),
    ),
    ("No emoji", "Fine 🙂", Some(false)),
    ("The answer gives a date", "On October 6.", Some(true)),
    ("The answer names a version", "Use 2.9.", Some(true)),
    ("The answer cites a source", "It is so.", Some(false)),
    (
        "The answer cites its source",
        "See https://a.example.",
        Some(true),
    ),
    (
        "The answer links to https://a.example/docs",
        "See https://a.example/docs/x.",
        Some(true),
    ),
    (
        "The answer links to a.example/docs",
        "See https://a.example/docsx.",
        Some(false),
    ),
    (
        "The answer apologises",
        "My apologies for the delay.",
        Some(true),
    ),
    ("The answer apologizes", "Thanks.", Some(false)),
    ("The answer is JSON", "{\"a\": 1}", Some(true)),
    ("The answer is not empty", "x", Some(true)),
    ("The answer begins with \"Dear\"", "Dear Ann,", Some(true)),
    (
        "The answer ends with a question",
        "Is that right?",
        Some(true),
    ),
    ("The agent calls the tool search", "x", Some(false)),
    // more than one clause
    (
        "The answer mentions \"Oslo\" and has at most 2 sentences.",
        "Oslo. Yes.",
        Some(true),
    ),
    (
        "The answer mentions \"Oslo\" and does not mention \"Bergen\".",
        "Oslo and Bergen.",
        Some(false),
    ),
    (
        "- mentions \"Oslo\"\n- contains no link",
        "Oslo",
        Some(true),
    ),
    (
        "The answer mentions \"Oslo\", contains a number and asks a question.",
        "Oslo 5?",
        Some(true),
    ),
    (
        "The answer mentions \"Oslo and asks a question\".",
        "Oslo and asks a question",
        Some(true),
    ),
    // one clause that cannot be read, and nothing is decided
    ("The answer mentions \"Oslo\" and is polite.", "Oslo", None),
    (
        "The answer mentions \"Oslo\". It is friendly.",
        "Oslo",
        None,
    ),
    (
        "If the user asks, the answer mentions \"Oslo\".",
        "Oslo",
        None,
    ),
    ("The answer mentions \"Oslo\" when asked", "Oslo", None),
    ("The answer is correct", "x", None),
    ("Every claim is supported by tool results", "x", None),
    ("", "x", None),
    (
        "The agent takes the person's worry seriously, sounds warm without flattery and never talks down to them.",
        "x",
        None,
    ),
    // grounding without any tool result
    (
        "Every number in the answer occurs in a tool result",
        "There are 3.",
        Some(false),
    ),
    (
        "Every number in the answer occurs in a tool result",
        "There are some.",
        Some(true),
    ),
    ("No invented numbers", "There are 3.", Some(false)),
    (
        "The answer does not invent figures",
        "There are 3.",
        Some(false),
    ),
    ("The answer is grounded", "There are 3.", Some(false)),
];
