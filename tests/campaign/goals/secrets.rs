//! The goals of secrets and of dependencies.

use super::tests;
use crate::{Goal, Measure, dependencies, files};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "K1",
        promise: "None of 40 planted secrets appears in a recording, log, output, prompt, screen or child environment: raw, or as base64, hex, URL or JSON escapes. A reply may split it at any byte.",
        measure: tests(&[
            (
                "it",
                &[
                    "forty_planted_secrets_appear_nowhere",
                    "google_credentials_are_written_nowhere",
                ],
            ),
            (
                "lib",
                &[
                    "every_spelling_of_a_secret_is_redacted",
                    "hex_and_base64_spellings_are_redacted_at_every_alignment",
                    "a_secret_split_anywhere_never_passes",
                ],
            ),
        ]),
    },
    Goal {
        id: "K2",
        promise: "dicta redacts secrets before it writes: no call that writes to a file contains one.",
        measure: Measure::Here(files::measure_writes),
    },
    Goal {
        id: "K3",
        promise: "Folders of runs and of dicta's own data have mode 0700 and their files 0600, with any umask. A planted link or a folder that every user can write is refused.",
        measure: Measure::Here(files::measure_private_files),
    },
    Goal {
        id: "K4",
        promise: "A key comes from a variable or a private file, never from an argument or dicta.yaml. No debug output prints it.",
        measure: tests(&[(
            "lib",
            &[
                "api_key_comes_from_the_configured_source",
                "api_key_file_must_be_private",
                "api_key_in_dicta_yaml_is_refused_and_hidden",
                "secrets_are_listed_and_never_printed",
            ],
        )]),
    },
    Goal {
        id: "K5",
        promise: "Keys that a transcript contains are flagged at export, in 20 formats, and never changed silently.",
        measure: tests(&[
            (
                "lib",
                &[
                    "keys_of_every_form_are_found_and_the_text_stays",
                    "key_is_found_once_however_the_text_is_split",
                    "ordinary_text_has_no_keys",
                ],
            ),
            (
                "it",
                &["keys_in_transcripts_are_reported_at_export_and_stay"],
            ),
        ]),
    },
    Goal {
        id: "K6",
        promise: "Every dependency comes from the registry with a checksum and has a permissive licence. The lock file decides every build, dicta contains no unsafe code, and no dependency has a published vulnerability.",
        measure: Measure::Here(dependencies::measure_sources),
    },
    Goal {
        id: "K7",
        promise: "No dependency is on the list of unmaintained or unsound crates, and those with a fixed vulnerability have at least the fixed version.",
        measure: Measure::Here(dependencies::measure_bans),
    },
];
