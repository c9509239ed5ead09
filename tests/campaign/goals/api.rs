//! The goals of the requests to language models.

use super::tests;
use crate::{Goal, Measure, events, limits, recordings, streams};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "A1",
        promise: "No fault of a reply becomes a verdict or a score: 60 faults on four dialects (status, cut, missing end, wrong finish reason, broken chunk, wrong or missing fields). The cell has an error outcome with the reason.",
        measure: Measure::Here(streams::judge_faults),
    },
    Goal {
        id: "A2",
        promise: "A reply is complete only with its provider's end marker and finish reason. A reply that is cut at any byte is an error or the same reply.",
        measure: Measure::Here(streams::judge_cuts),
    },
    Goal {
        id: "A3",
        promise: "A turn has at most 4 attempts within 120 s. dicta obeys each form of `Retry-After` up to 120 s and reports longer ones. It never retries an exhausted quota.",
        measure: tests(&[
            (
                "lib",
                &[
                    "each_failure_has_its_retry_rule",
                    "retry_follows_the_servers_delay_and_the_configured_attempts",
                    "retry_after_the_deadline_is_not_planned",
                    "delay_is_parsed_in_every_format_and_invalid_text_is_ignored",
                ],
            ),
            (
                "it",
                &[
                    "status_429_is_retried_after_its_stated_delay",
                    "model_call_has_at_most_four_attempts",
                    "permanent_error_is_not_retried",
                    "absurd_delay_is_stated_without_its_number",
                ],
            ),
        ]),
    },
    Goal {
        id: "A4",
        promise: "After 100 parallel requests are refused with 429, at most 20 of them return within any 100 ms.",
        measure: tests(&[(
            "lib",
            &["hundred_refused_requests_return_at_different_times"],
        )]),
    },
    Goal {
        id: "A5",
        promise: "A connection has 5 s, the first byte 120 s, and a silent stream 60 s. A stream that never ends is stopped after 15 minutes.",
        measure: tests(&[(
            "it",
            &[
                "connection_has_five_seconds_and_the_first_byte_two_minutes",
                "silent_server_times_out_on_the_judges_clock",
                "slow_endless_reply_ends_after_fifteen_minutes",
                "stalled_error_body_is_not_awaited",
            ],
        )]),
    },
    Goal {
        id: "A6",
        promise: "A line of a stream has at most 1 MiB, an event 8 MiB and 10,000 lines, a reply 64 MiB. Memory grows by at most twice the limit.",
        measure: Measure::Here(limits::measure_replies),
    },
    Goal {
        id: "A7",
        promise: "Server-sent events are read as in the tests of two other readers, for every split of the bytes.",
        measure: Measure::Here(events::judge_events),
    },
    Goal {
        id: "A8",
        promise: "A change of the system's time by a day during a run changes no time limit. Recorded times never decrease.",
        measure: Measure::Here(recordings::measure_jumping_clock),
    },
    Goal {
        id: "A9",
        promise: "A recording contains each attempt with its status, request id, wait, size and tokens, as far as they are known.",
        measure: tests(&[(
            "it",
            &[
                "each_attempt_records_its_http_exchange",
                "cut_reply_reports_its_cost",
                "cut_attempt_is_void_and_the_next_attempt_counts",
            ],
        )]),
    },
    Goal {
        id: "A10",
        promise: "A request to a model never takes its key to another host, and never falls back to plain HTTP.",
        measure: tests(&[(
            "it",
            &[
                "redirect_is_not_followed_with_a_key",
                "untrusted_certificate_never_falls_back_to_plain_http",
            ],
        )]),
    },
];
