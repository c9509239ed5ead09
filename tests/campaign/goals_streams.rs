//! The goals about model replies, hostile input and fetched pages.

use crate::{Goal, Measure, events, fuzz, injection, silent_changes, streams};

pub(crate) const GOALS: &[Goal] = &[
    Goal {
        id: "A1",
        promise: "No fault of a model's reply becomes a verdict: 60 faults in four dialects, streamed and whole",
        measure: Measure::Here(streams::judge_faults),
    },
    Goal {
        id: "A2",
        promise: "A reply that ends at any byte is an error or the identical reply",
        measure: Measure::Here(streams::judge_cuts),
    },
    Goal {
        id: "A3",
        promise: "At most four attempts, after the delay that the server states; no retry of a permanent error",
        measure: Measure::Tests {
            target: "it",
            names: &["provider_wire::retries::"],
        },
    },
    Goal {
        id: "A4",
        promise: "Of 100 requests refused together, at most 20 return within the same 100 ms",
        measure: Measure::Tests {
            target: "lib",
            names: &[
                "provider::retry::tests::hundred_refused_requests_return_at_different_times",
                "run::judges::rate_limit::tests::refused_requests_restart_one_by_one",
            ],
        },
    },
    Goal {
        id: "A5",
        promise: "A server that is silent, or that only keeps its stream alive, is given up in time",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "provider_wire::caps::slow_endless_reply_ends_after_fifteen_minutes",
                "provider_wire::faults::silent_server_times_out_on_the_judges_clock",
            ],
        },
    },
    Goal {
        id: "A6",
        promise: "Endless lines, events and replies end at their limit in little memory",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "provider_wire::caps::endless_reply_ends_at_its_limit_in_little_memory",
                "provider_wire::caps::endless_headers_and_error_bodies_end",
            ],
        },
    },
    Goal {
        id: "A7",
        promise: "Server-sent events are read as their standard says, at every split of the bytes",
        measure: Measure::Here(events::judge_events),
    },
    Goal {
        id: "A8",
        promise: "Timeouts and waits follow a clock that no change of the date moves",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "provider_wire::caps::slow_endless_reply_ends_after_fifteen_minutes",
                "provider_wire::retries::status_429_is_retried_after_its_stated_delay",
            ],
        },
    },
    Goal {
        id: "A9",
        promise: "Each attempt is recorded with its status, its wait and its cost, also if the cost is unknown",
        measure: Measure::Tests {
            target: "it",
            names: &["provider_wire::retries::each_attempt_records_its_http_exchange"],
        },
    },
    Goal {
        id: "A10",
        promise: "A key never follows a redirect, and a wrong certificate never leads to plain HTTP",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "provider_wire::caps::redirect_is_not_followed_with_a_key",
                "provider_wire::caps::untrusted_certificate_never_falls_back_to_plain_http",
            ],
        },
    },
    Goal {
        id: "S5",
        promise: "A page that unpacks to hundreds of megabytes is refused in little memory",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "fetch::limits::gzip_is_read_and_a_gzip_bomb_is_refused",
                "fetch::limits::endless_body_is_truncated_at_the_limit",
            ],
        },
    },
    Goal {
        id: "S6",
        promise: "A fetch ends at its deadline, whatever the server delays",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "fetch::limits::slow_body_ends_at_the_deadline",
                "fetch::limits::endless_headers_end_at_the_deadline",
                "fetch::limits::stalled_handshake_ends_at_the_deadline",
                "fetch::limits::stalled_name_lookup_ends_after_five_seconds",
                "fetch::cancelled_fetch_ends_at_once",
            ],
        },
    },
    Goal {
        id: "S7",
        promise: "Endless and large headers are refused",
        measure: Measure::Tests {
            target: "it",
            names: &["fetch::limits::endless_and_large_headers_are_refused"],
        },
    },
    Goal {
        id: "S10",
        promise: "Other ports, schemes, user names and control characters in an address are refused with a reason",
        measure: Measure::Tests {
            target: "it",
            names: &[
                "fetch::world::every_spelling_of_a_private_address_is_refused",
                "fetch::spellings::no_spelling_of_a_private_address_is_connected",
            ],
        },
    },
    Goal {
        id: "J1",
        promise: "No text of a transcript ends its block in the prompt, in 100,000 hostile bodies",
        measure: Measure::Here(injection::judge_blocks),
    },
    Goal {
        id: "J2",
        promise: "What a transcript contains changes only string values of the request",
        measure: Measure::Here(injection::judge_requests),
    },
    Goal {
        id: "J3",
        promise: "Each quote that does not occur in its source is flagged",
        measure: Measure::Tests {
            target: "lib",
            names: &["judge::citations::tests::"],
        },
    },
    Goal {
        id: "J4",
        promise: "A judge that obeys every order of a transcript can only use its tools",
        measure: Measure::Tests {
            target: "lib",
            names: &[
                "judge::trace::tests::rounds::judge_that_obeys_the_transcript_can_only_use_its_tools",
                "tools::fetch::tests::by_default_only_addresses_that_the_judge_has_read_may_be_opened",
            ],
        },
    },
    Goal {
        id: "U1",
        promise: "No panic and no second of silence, in five corpora and 10 million fuzz runs (or an hour) of each reader",
        measure: Measure::Here(fuzz::judge_readers),
    },
    Goal {
        id: "U2",
        promise: "Duplicate keys, large integers, invalid UTF-8, half surrogate pairs and byte order marks are kept or reported",
        measure: Measure::Here(silent_changes::judge_changes),
    },
];
