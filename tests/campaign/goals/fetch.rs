//! The goals of the address guard and of `fetch_url`.

use super::tests;
use crate::{Goal, Measure, fetches};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "S1",
        promise: "The address guard refuses every address that the IANA registries do not list as globally reachable: 168 of 168 edges, and 574 of 574 embedded in IPv6. It allows 36 of 36 public neighbours, and agrees with an independent table on all 16.7 million IPv4 /24 networks.",
        measure: tests(&[(
            "lib",
            &[
                "every_edge_of_every_registry_row_is_refused",
                "a_closed_ipv4_address_is_refused_in_every_embedding",
                "public_neighbours_of_closed_ranges_are_open",
                "all_ipv4_networks_agree_with_an_independent_table",
            ],
        )]),
    },
    Goal {
        id: "S2",
        promise: "No private address receives a connection: at least 300 spellings of a URL, by seven ways (direct, redirects 301, 302, 303, 307 and 308, and DNS answers).",
        measure: tests(&[(
            "it",
            &[
                "no_spelling_of_a_private_address_is_connected",
                "private_address_is_refused_under_any_public_name",
                "private_addresses_are_unreachable_in_a_real_network",
                "no_redirect_reaches_a_private_address_in_any_spelling",
                "redirect_of_every_code_to_a_private_address_is_refused",
            ],
        )]),
    },
    Goal {
        id: "S3",
        promise: "A name that changes its address between lookups never leads to a private address in 1,000 trials. dicta looks a name up once per hop, and refuses a name with one private address among public ones.",
        measure: tests(&[(
            "it",
            &[
                "name_is_resolved_once_per_hop_and_the_checked_address_is_used",
                "one_private_address_among_public_ones_refuses_the_name",
                "changing_dns_answers_are_resolved_once_and_the_checked_address_is_used",
            ],
        )]),
    },
    Goal {
        id: "S4",
        promise: "A fetch follows at most 5 redirects, checks each of them, and never follows one from https to http. It sends no credentials and no cookies.",
        measure: tests(&[(
            "it",
            &[
                "fetch_follows_five_redirects_and_refuses_the_sixth",
                "redirect_from_https_to_http_is_refused",
                "redirect_of_every_code_to_a_private_address_is_refused",
                "request_contains_nothing_of_the_user_or_of_an_earlier_hop",
            ],
        )]),
    },
    Goal {
        id: "S5",
        promise: "A fetch reads at most 2 MiB, unpacks at most 8 MiB at a ratio of at most 100 and one layer of compression. A bomb of 300 MiB costs at most 32 MiB of memory.",
        measure: Measure::Here(fetches::measure_bombs),
    },
    Goal {
        id: "S6",
        promise: "A fetch ends within 10 s, however slowly the server sends; name lookup and connection have 5 s. A cancelled fetch ends within 250 ms.",
        measure: tests(&[(
            "it",
            &[
                "slow_body_ends_at_the_deadline",
                "endless_headers_end_at_the_deadline",
                "stalled_handshake_ends_at_the_deadline",
                "stalled_name_lookup_ends_after_five_seconds",
                "cancelled_fetch_ends_at_once",
            ],
        )]),
    },
    Goal {
        id: "S7",
        promise: "A fetch accepts at most 100 headers, 64 KiB of headers, and a URL of at most 2,048 bytes.",
        measure: tests(&[
            ("it", &["endless_and_large_headers_are_refused"]),
            ("lib", &["refusal_names_the_first_matching_rule"]),
        ]),
    },
    Goal {
        id: "S8",
        promise: "No proxy that the environment names receives a connection.",
        measure: tests(&[(
            "it",
            &["allowed_private_host_is_fetched_with_a_warning_and_no_proxy"],
        )]),
    },
    Goal {
        id: "S9",
        promise: "A fetch shares no connection with another fetch, host or run. It uses HTTP/1.1 and ignores offers of other protocols.",
        measure: Measure::Here(fetches::measure_connections),
    },
    Goal {
        id: "S10",
        promise: "Only https on port 443 is open unless the user allows more. User names, control characters and backslashes in a URL are refused with the reason. The checked host is the connected host for all 891 cases of the URL standard's tests.",
        measure: tests(&[
            (
                "lib",
                &[
                    "checked_host_is_the_host_of_the_url_standard",
                    "whatever_is_asked_for_only_https_on_443_passes",
                    "refusal_names_the_first_matching_rule",
                    "allowed_host_opens_only_its_port",
                ],
            ),
            (
                "it",
                &["host_spelling_does_not_change_the_connected_address"],
            ),
        ]),
    },
    Goal {
        id: "S11",
        promise: "The judge reads text, JSON and XML. Of other content it gets only the type and the size.",
        measure: tests(&[
            ("it", &["binary_content_is_described_by_type_and_size"]),
            ("lib", &["only_text_json_and_xml_are_extracted"]),
        ]),
    },
    Goal {
        id: "S12",
        promise: "A recording contains each refused hop with its URL, address and reason, and a replay shows the same.",
        measure: Measure::Here(fetches::measure_refused_hops),
    },
    Goal {
        id: "S13",
        promise: "By default, `fetch_url` opens only addresses that the transcript, the rubric or a fetched page contains. It sends nothing for 100 composed URLs, and makes at most 20 requests per verdict.",
        measure: Measure::Here(fetches::measure_composed_addresses),
    },
    Goal {
        id: "S14",
        promise: "One module opens sockets, and no dependency is built with a way out of its own. References of JSON Schemas open nothing.",
        measure: tests(&[
            (
                "tidy",
                &[
                    "only_net_opens_a_socket",
                    "no_crate_is_built_with_a_way_out_of_its_own",
                ],
            ),
            ("lib", &["references_that_leave_the_schema_are_refused"]),
        ]),
    },
];
