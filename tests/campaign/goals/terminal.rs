//! The goals of what dicta writes to a terminal.

use super::tests;
use crate::{Goal, Measure, hostile_text, terminals};

pub(super) const GOALS: &[Goal] = &[
    Goal {
        id: "T1",
        promise: "No control character, bidirectional control, invisible character or foreign escape sequence reaches the terminal: 2,000 hostile strings in every place that shows text.",
        measure: Measure::Here(hostile_text::measure_output),
    },
    Goal {
        id: "T2",
        promise: "Nothing vanishes: each hidden character has a visible mark, in 100,000 random texts. Only an explicit raw copy contains the original characters.",
        measure: Measure::Here(hostile_text::measure_marks),
    },
    Goal {
        id: "T3",
        promise: "A cell of the screen has at most 8 code points and 64 bytes. A frame of 200×60 cells of hostile text has at most 128 KiB.",
        measure: tests(&[(
            "lib",
            &[
                "hostile_workspace_shows_only_escaped_characters",
                "frame_of_stacked_marks_stays_small",
            ],
        )]),
    },
    Goal {
        id: "T4",
        promise: "An independent terminal shows the grid that dicta drew, for the 515 naughty strings, emoji, wide and right-to-left text.",
        measure: tests(&[(
            "lib",
            &[
                "another_terminal_shows_hostile_strings_as_they_are_drawn",
                "joined_pictures_are_drawn_as_their_parts",
                "hostile_characters_are_marks_with_their_width",
            ],
        )]),
    },
    Goal {
        id: "T5",
        promise: "dicta writes no hyperlink and no window title from untrusted text. It writes to the clipboard only after a key, and at most 64 KiB.",
        measure: Measure::Here(hostile_text::measure_clipboard),
    },
    Goal {
        id: "T6",
        promise: "In a pipe or a file, JSON output has the exact characters. On a terminal, U+007F to U+009F, bidirectional controls and U+2028 and U+2029 are `\\u` escapes.",
        measure: Measure::Here(terminals::measure_json_output),
    },
    Goal {
        id: "T7",
        promise: "After an exit, a panic, SIGTERM or SIGHUP, the terminal has the modes that it had before.",
        measure: Measure::Here(terminals::measure_modes),
    },
];
