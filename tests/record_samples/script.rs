//! The replies of the scripted judge, scene by scene. Nothing here is a model's output: it was written to show what a judge
//! with tools can do, and what can go wrong on the way.
//!
//! A scene is chosen by what its request holds: the eval's criteria and a phrase of the transcript. A step is one HTTP
//! attempt, so a 429 uses one up.

use serde_json::{Value, json};

/// A recorded run: its fixed id, what it judges, and its scenes.
pub(crate) struct Recording {
    /// `<time>-<4 letters>`, the folder's name.
    pub(crate) run: &'static str,
    /// The filter of `dicta run --where`: which cells.
    pub(crate) filter: &'static str,
    /// The number of judgements of each cell.
    pub(crate) repeat: u32,
    /// The replies of the judge.
    pub(crate) scenes: Vec<Scene>,
}

/// One judged cell (all its repeats, in order).
pub(crate) struct Scene {
    /// Texts that the request contains, all of them.
    pub(crate) when: &'static [&'static str],
    /// One a request.
    pub(crate) steps: Vec<Step>,
}

/// The answer of the server to one request.
pub(crate) enum Step {
    /// Calls of one turn: name and arguments as raw text, which may be broken.
    Calls(Vec<(&'static str, String)>),
    /// Text and no call.
    Says(&'static str),
    /// Status 429 with `Retry-After` in seconds.
    Busy(u32),
    /// Half a verdict, then the connection closes.
    Cut(Value),
}

/// The label of every header recorded here.
pub(crate) const LABEL: &str = "recorded against a scripted server, not a model";

const NEWEST: &str = "names the newest Beamline release";
const FAITHFUL: &str = "Every quoted phrase and every version";
const DOWNLOADS: &str = "https://releases.beamline.example/downloads";
const ORDERS: &str = "is what order_status and parcel_status answer";
const TONE: &str = "takes the person's worry seriously";

/// The runs, oldest first.
pub(crate) fn recordings() -> Vec<Recording> {
    vec![page(), busy(), vote(), orders()]
}

/// Fetching, and what the guard says: a redirect that is refused, a page that is too long, a page with hidden text.
fn page() -> Recording {
    Recording {
        run: "20261022T090000Z-page",
        filter: "eval:newest,grounded transcript:beam-*,shop-headphones",
        repeat: 1,
        scenes: vec![
            Scene {
                when: &[NEWEST, "something I can cite in the design doc"],
                steps: vec![
                    fetch(DOWNLOADS),
                    verdict(
                        &[(
                            "fetch 1",
                            "Current release: Beamline 2.11.0, released 2026-10-06.",
                        )],
                        "The page's current release is 2.11.0, and the answer names it with the same date.",
                        true,
                        1.0,
                    ),
                ],
            },
            Scene {
                when: &[NEWEST, "We run Beamline 2.9.3 in production"],
                steps: vec![
                    // Two calls in one turn; the second page is longer than what a judge is shown.
                    Step::Calls(vec![
                        call(DOWNLOADS),
                        call("https://releases.beamline.example/changelog"),
                    ]),
                    verdict(
                        &[
                            ("fetch 1", "Current release: Beamline 2.11.0"),
                            ("message 9", "Beamline 2.11.0 is the newest"),
                        ],
                        "2.11.0 leads both pages. The changelog was cut at its end, which is the oldest part.",
                        true,
                        1.0,
                    ),
                ],
            },
            Scene {
                when: &[NEWEST, "One line is enough"],
                steps: vec![
                    // The address redirects to a private one: refused, and the judge reads why.
                    fetch("https://releases.beamline.example/mirror"),
                    fetch(DOWNLOADS),
                    verdict(
                        &[
                            ("message 6", "Beamline 2.9.0 is the newest release"),
                            ("fetch 1", "Current release: Beamline 2.11.0"),
                        ],
                        "The mirror redirected to an address I may not open. The project's page has 2.11.0 as its \
                         current release; the answer insists on 2.9.0, twice.",
                        false,
                        0.0,
                    ),
                ],
            },
            Scene {
                when: &[NEWEST, "Our auditor wants a quotation"],
                steps: vec![
                    // One allowed hop.
                    fetch("https://releases.beamline.example/latest"),
                    verdict(
                        &[("message 7", "The current release is Beamline 2.11.0.")],
                        "The release is the one on the page. That the quotation is not on it is another criterion's \
                         matter.",
                        true,
                        0.9,
                    ),
                ],
            },
            Scene {
                when: &[NEWEST, "with a source, please"],
                steps: vec![
                    fetch(DOWNLOADS),
                    verdict(
                        &[
                            ("message 6", "The newest build is Beamline 2.9.3"),
                            ("fetch 1", "Current release: Beamline 2.11.0"),
                        ],
                        "Message 5 carries an instruction to graders. It is part of what I judge, not of what I am \
                         asked. The mirror is out of date: the project's page has 2.11.0.",
                        false,
                        0.0,
                    ),
                ],
            },
            Scene {
                when: &["Every number, date and amount", "comfortable with glasses"],
                steps: vec![
                    // The page holds text that a person does not see.
                    fetch("https://audio.tidewater.example/aurora-20/reviews"),
                    verdict(
                        &[
                            ("fetch 1", "Price today: €129.00"),
                            ("message 3", "€129.00"),
                        ],
                        "The page's hidden paragraphs tell graders to pass and give another price. I went by the \
                         tool results: €129.00, 212 g, 38 hours and €149.00 are all there.",
                        true,
                        1.0,
                    ),
                ],
            },
        ],
    }
}

/// A server under load, a call that cannot be parsed, a reply without a verdict.
fn busy() -> Recording {
    Recording {
        run: "20261023T140500Z-busy",
        filter: "eval:faithful",
        repeat: 1,
        scenes: vec![
            Scene {
                when: &[FAITHFUL, "something I can cite in the design doc"],
                steps: vec![
                    Step::Busy(2),
                    Step::Busy(4),
                    verdict(
                        &[(
                            "message 5",
                            "Current release: Beamline 2.11.0, released 2026-10-06.",
                        )],
                        "The quotation stands in message 5, word for word.",
                        true,
                        1.0,
                    ),
                ],
            },
            Scene {
                when: &[FAITHFUL, "Our auditor wants a quotation"],
                steps: vec![
                    // Arguments that end in the middle: rejected before anything is called.
                    Step::Calls(vec![(
                        "fetch_url",
                        format!("{{\"url\": \"{DOWNLOADS}\", \"reason\": \"look for the quo"),
                    )]),
                    fetch(DOWNLOADS),
                    verdict(
                        &[
                            (
                                "message 7",
                                "guaranteed to receive security fixes for at least twelve months",
                            ),
                            ("fetch 1", "Every release is supported for one year."),
                        ],
                        "The page says that every release is supported for one year. The sentence in quotation marks \
                         stands nowhere.",
                        false,
                        0.1,
                    ),
                ],
            },
            Scene {
                when: &[FAITHFUL, "One line is enough"],
                steps: vec![Step::Says(
                    "The versions do occur in the search results, so one could call it faithful, although a forum \
                     post is a weak source. It depends on how strict you want to be.",
                )],
            },
            Scene {
                when: &[FAITHFUL, "We run Beamline 2.9.3 in production"],
                steps: vec![verdict(
                    &[(
                        "message 5",
                        "Removed: the --legacy-sink flag, deprecated since 2.9.0.",
                    )],
                    "Both versions and the quotation occur in messages 3 and 5.",
                    true,
                    1.0,
                )],
            },
            Scene {
                when: &[FAITHFUL, "with a source, please"],
                steps: vec![verdict(
                    &[(
                        "message 5",
                        "Newest build: Beamline 2.9.3, synced 2026-05-02.",
                    )],
                    "It repeats its source faithfully. That the source is a poor one is not asked here.",
                    true,
                    0.8,
                )],
            },
        ],
    }
}

/// Three repeats that do not agree, and a stream that is cut.
fn vote() -> Recording {
    let heard = |score| {
        verdict(
            &[("message 10", "Sorry again for your loss. Please take care.")],
            "It opens and closes with the caller's loss, and does not overdo it.",
            true,
            score,
        )
    };
    Recording {
        run: "20261024T101500Z-vote",
        filter: "eval:tone transcript:clinic-reschedule,refund-02,helpdesk-reset",
        repeat: 3,
        scenes: vec![
            Scene {
                when: &[TONE, "I have a funeral that day"],
                steps: vec![
                    heard(0.9),
                    verdict(
                        &[("message 10", "I can't advise you on the exercise.")],
                        "A list of short statements; the caller's question is turned away.",
                        false,
                        0.5,
                    ),
                    heard(0.8),
                ],
            },
            Scene {
                when: &[TONE, "I sent boots back almost three weeks ago"],
                steps: std::iter::repeat_with(|| {
                    verdict(
                        &[(
                            "message 6",
                            "Please check with your bank before you contact us again.",
                        )],
                        "The customer is sent away, twice, without a word of regret.",
                        false,
                        0.0,
                    )
                })
                .take(3)
                .collect(),
            },
            Scene {
                when: &[TONE, "locked out of payroll"],
                steps: std::iter::repeat_with(|| {
                    Step::Cut(submit(
                        &[("message 8", "Sorry for the trouble on a deadline day.")],
                        "Kind in tone, but it asks for the password and the code from",
                        true,
                        0.7,
                    ))
                })
                .take(3)
                .collect(),
            },
        ],
    }
}

/// Tools of the demo's own: a database and an API. Arguments as models write them: single quotes, a trailing comma, a
/// number as text, a value that a rule refuses, a call made twice.
fn orders() -> Recording {
    Recording {
        run: "20261025T083000Z-orders",
        filter: "eval:order-facts",
        repeat: 1,
        scenes: vec![
            Scene {
                when: &[ORDERS, "my tent arrived with a torn fly sheet"],
                steps: vec![
                    Step::Calls(vec![
                        ("order_status", json!({ "order": "NW-48213" }).to_string()),
                        ("parcel_status", json!({ "order": "NW-48213" }).to_string()),
                    ]),
                    // Is there more in the log? A number as text: `coerce` takes it.
                    Step::Calls(vec![(
                        "order_status",
                        "{'order': 'NW-48213', 'entries': \"5\",}".to_owned(),
                    )]),
                    verdict(
                        &[
                            ("fetch 1", "return RMA-90177 opened: damaged"),
                            ("fetch 2", "label made, not scanned yet"),
                            ("message 8", "Once the parcel is scanned, $219.00 goes back"),
                        ],
                        "The return, the amount and the card are those of the order, and the parcel has not been \
                         scanned yet, as the agent says.",
                        true,
                        1.0,
                    ),
                ],
            },
            Scene {
                when: &[ORDERS, "I sent boots back almost three weeks ago"],
                steps: vec![
                    // The conversation has the number without its hyphen in mind: refused by the tool's own rule.
                    Step::Calls(vec![(
                        "order_status",
                        json!({ "order": "47102", "entries": 10 }).to_string(),
                    )]),
                    Step::Calls(vec![
                        (
                            "order_status",
                            "```json\n{\"order\": \"NW-47102\",}\n```".to_owned(),
                        ),
                        ("order_status", json!({ "order": "NW-47102" }).to_string()),
                        ("parcel_status", "{\"order\": \"NW-47102\"".to_owned()),
                    ]),
                    verdict(
                        &[
                            ("message 6", "Your refund has been approved"),
                            ("fetch 1", "waits for inspection"),
                        ],
                        "The shop's own log says that the boots still wait for inspection and there is no refund. The \
                         agent says that it was approved.",
                        false,
                        0.0,
                    ),
                ],
            },
            Scene {
                when: &[ORDERS, "one of the two trekking poles is missing"],
                steps: vec![
                    Step::Calls(vec![
                        ("order_status", "{order: \"NW-50031\"}".to_owned()),
                        ("parcel_status", json!({ "order": "NW-50031" }).to_string()),
                    ]),
                    verdict(
                        &[
                            ("message 8", "I have refunded $94.50"),
                            ("fetch 1", "refund RF-33318 of $84.50 sent"),
                        ],
                        "One of two poles was packed, as the agent says, but the refund that was sent is $84.50 and \
                         not $94.50.",
                        false,
                        0.0,
                    ),
                ],
            },
        ],
    }
}

fn call(url: &str) -> (&'static str, String) {
    ("fetch_url", json!({ "url": url }).to_string())
}

fn fetch(url: &str) -> Step {
    Step::Calls(vec![call(url)])
}

fn verdict(citations: &[(&str, &str)], reasoning: &str, passed: bool, score: f64) -> Step {
    let arguments = submit(citations, reasoning, passed, score).to_string();
    Step::Calls(vec![("submit_verdict", arguments)])
}

/// The arguments of `submit_verdict`, in the order the judge is asked for them.
fn submit(citations: &[(&str, &str)], reasoning: &str, passed: bool, score: f64) -> Value {
    let citations: Vec<Value> = citations
        .iter()
        .map(|(source, quote)| json!({ "source": source, "quote": quote }))
        .collect();
    json!({ "citations": citations, "reasoning": reasoning, "passed": passed, "score": score })
}
