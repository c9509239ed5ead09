//! The goals of hostile files and of a hostile terminal.

use super::tests;
use crate::{Goal, Measure, files, fuzz, limits, long_texts, silent_changes, terminals, watched};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "U1",
        promise: "No reader panics or takes longer than 1 s on the JSON, YAML, naughty-string, UTF-8 and HTML corpora, or on 10 million random inputs.",
        measure: Measure::Here(fuzz::judge_readers),
    },
    Goal {
        id: "U2",
        promise: "Nothing changes silently: duplicate keys, large numbers, invalid UTF-8, lone surrogates and byte order marks are kept or reported with their place.",
        measure: Measure::Here(silent_changes::judge_changes),
    },
    Goal {
        id: "U3",
        promise: "YAML has at most 1 MiB, 64 levels and 50,000 nodes after aliases. dicta refuses more within 100 ms. A broken save keeps the last good rubric and shows the line.",
        measure: Measure::Here(limits::measure_yaml),
    },
    Goal {
        id: "U4",
        promise: "A transcript of 1,000,000 messages shows its first screen within 1 s, and each jump takes at most 100 ms, in 300 MiB. Over a line of 10 MB, 99% of the frames take at most 16 ms.",
        measure: Measure::Here(long_texts::measure_long_texts),
    },
    Goal {
        id: "U5",
        promise: "1,000 random sizes from 1×1 to 500×200 cause no panic, and the last frame is correct. Below 30×8, dicta shows a notice.",
        measure: Measure::Here(terminals::measure_resizes),
    },
    Goal {
        id: "U6",
        promise: "SIGTERM, SIGHUP, SIGINT and SIGQUIT flush the recording, restore the terminal and end dicta within 1 s with 128 + signal. A closed terminal ends it within 2 s. After SIGTSTP and SIGCONT the screen is back.",
        measure: Measure::Here(terminals::measure_signals),
    },
    Goal {
        id: "U7",
        promise: "A panic of the main thread restores the terminal, prints a clean message and exits with 101. A panic of a check, a judge or another task becomes an error, and the run goes on.",
        measure: Measure::Here(terminals::measure_panics),
    },
    Goal {
        id: "U8",
        promise: "Without a terminal, dicta writes no escape sequences. A closed standard input changes no exit code, and a full standard output is an error. If the reader of the output closes the pipe, as `head` does, dicta ends with its normal exit code. It never panics.",
        measure: Measure::Here(terminals::measure_pipes),
    },
    Goal {
        id: "U9",
        promise: "dicta shows within 1 s that a watched file is renamed, truncated, deleted, unreadable, or replaced by a folder or a link. It recovers when the file returns. Without watches, it polls and reports that.",
        measure: Measure::Here(watched::measure_watches),
    },
    Goal {
        id: "U10",
        promise: "Link loops, pipes, devices, `/proc` files and a folder of 100,000 files among the transcripts are skipped or refused with a reason, and block nothing.",
        measure: Measure::Here(files::measure_unusual_files),
    },
    Goal {
        id: "U11",
        promise: "References of a JSON Schema stay in the document. Others are an error, and open no socket and no file.",
        measure: tests(&[(
            "lib",
            &[
                "references_that_leave_the_schema_are_refused",
                "remote_and_cyclic_schemas_terminate",
                "schema_is_compiled_unchanged_and_external_references_are_refused",
            ],
        )]),
    },
    Goal {
        id: "U12",
        promise: "dicta compiles a user's pattern to at most 1 MiB within 200 ms, and refuses a larger one. A search over 100 MB can be cancelled within 100 ms.",
        measure: Measure::Here(limits::measure_patterns),
    },
];
