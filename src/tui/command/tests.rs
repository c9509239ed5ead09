use std::collections::{HashMap, HashSet};

use super::*;
use crate::tui::key_chord::KeyChord;
use crate::tui::keymap::parse_chords;

fn keys_of(scopes: &[CommandScope]) -> Vec<(Vec<KeyChord>, &'static str)> {
    COMMANDS
        .iter()
        .filter(|spec| scopes.contains(&spec.scope))
        .flat_map(|spec| spec.keys.iter().map(|keys| (*keys, spec.id)))
        .map(|(keys, id)| (parse_chords(keys).expect("tested in keymap"), id))
        .collect()
}

#[test]
fn ids_and_commands_are_unique_and_titles_are_short() {
    let ids: HashSet<&str> = COMMANDS.iter().map(|spec| spec.id).collect();
    let commands: HashSet<UiCommand> = COMMANDS.iter().map(|spec| spec.command).collect();
    assert_eq!(
        (ids.len(), commands.len()),
        (COMMANDS.len(), COMMANDS.len())
    );
    for spec in COMMANDS {
        assert!(spec.title.len() <= 28, "{}", spec.id);
        assert!(spec.help.ends_with('.'), "{}", spec.id);
        assert!(!spec.keys.is_empty(), "{}", spec.id);
    }
}

#[test]
fn commands_of_same_scope_have_distinct_keys() {
    for chain in [
        [
            CommandScope::Replay,
            CommandScope::Cells,
            CommandScope::Global,
        ],
        [
            CommandScope::Replay,
            CommandScope::Transcript,
            CommandScope::Global,
        ],
        [
            CommandScope::Replay,
            CommandScope::Cells,
            CommandScope::Verdicts,
        ],
        // The progress screen hides the panes, so it gives some of their keys another meaning.
        [CommandScope::Progress; 3],
    ] {
        let mut seen: HashMap<Vec<KeyChord>, &str> = HashMap::new();
        let all = keys_of(&chain);
        for (keys, id) in &all {
            if let Some(other) = seen.insert(keys.clone(), id) {
                panic!("{id} and {other} share a key in {chain:?}");
            }
        }
        for (keys, id) in &all {
            for (longer, other) in &all {
                assert!(
                    keys == longer || !longer.starts_with(keys),
                    "{id} begins {other}"
                );
            }
        }
    }
}

/// The palette, comparison, marks: their keys are promised.
#[test]
fn keys_of_planned_commands_are_free() {
    for key in [":", "ctrl-p", "d", "m", "b"] {
        let chord: KeyChord = key.parse().expect("a key");
        let scopes = [
            CommandScope::Global,
            CommandScope::Cells,
            CommandScope::Transcript,
        ];
        let taken: Vec<&str> = keys_of(&scopes)
            .into_iter()
            .filter(|(keys, _)| keys[0] == chord)
            .map(|(_, id)| id)
            .collect();
        assert_eq!(taken, Vec::<&str>::new(), "{key}");
    }
}

#[test]
fn lists_of_keys_have_no_two_equal_rows() {
    for list in [render_markdown(), render_plain()] {
        let mut seen = HashSet::new();
        for row in list.lines() {
            assert!(seen.insert(row), "two rows are equal: {row}");
        }
    }
}
