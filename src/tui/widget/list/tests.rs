use super::*;
use proptest::prelude::*;

fn at(selected: u32, near: usize, top: usize) -> ListState<u32> {
    ListState {
        selected: Some(selected),
        last_position: near,
        top,
    }
}

/// Does what a caller does after a change of the items.
fn place(list: &mut ListState<u32>, ids: &[u32]) {
    let position = list
        .selected
        .and_then(|selected| list.find_position(ids, &selected));
    list.keep_selection(ids, position);
}

#[test]
fn rows_that_arrive_above_do_not_move_the_cursor() {
    let mut list = at(7, 7, 5);
    let ids: Vec<u32> = (100..110).chain(0..20).collect();
    place(&mut list, &ids);
    assert_eq!(list, at(7, 17, 15));
    assert_eq!(list.visible_positions(ids.len(), 6), 15..21);
}

#[test]
fn removed_item_leaves_cursor_on_neighbor() {
    let mut list = at(9, 9, 5);
    let ids: Vec<u32> = (0..9).collect();
    place(&mut list, &ids);
    assert_eq!(list, at(8, 8, 4));
    place(&mut list, &[]);
    assert_eq!((list.selected, list.top), (None, 0));
    place(&mut list, &ids);
    assert_eq!(
        list.selected,
        Some(8),
        "what comes back finds the cursor where it was"
    );
}

#[test]
fn moving_stops_at_the_end() {
    let ids: Vec<u32> = (0..100).collect();
    let mut list = ListState::default();
    list.select_position(&ids, 10, 9);
    assert_eq!(list, at(9, 9, 0));
    list.select_position(&ids, 10, 18);
    assert_eq!(list, at(18, 18, 9));
    list.select_position(&ids, 10, usize::MAX);
    assert_eq!(list, at(99, 99, 90));
    assert_eq!(
        list.visible_positions(ids.len(), 3),
        97..100,
        "a smaller pane still shows it"
    );
    list.select_position(&[], 10, 3);
    assert_eq!(list, at(99, 99, 90));
}

proptest! {
    #[test]
    fn the_selection_survives_and_is_visible(
        steps in proptest::collection::vec((0..4_u8, any::<proptest::sample::Index>(), 0..7_usize), 1..60),
    ) {
        let mut ids: Vec<u32> = (0..12).collect();
        let mut fresh = 12;
        let mut list = ListState::default();
        place(&mut list, &ids);
        for (what, index, height) in steps {
            let selected = list.selected;
            match what {
                0 => {
                    ids.insert(index.index(ids.len() + 1), fresh);
                    fresh += 1;
                }
                1 if !ids.is_empty() => {
                    ids.remove(index.index(ids.len()));
                }
                2 => ids.reverse(),
                _ => list.select_position(&ids, height, index.index(20)),
            }
            let before = list.selected;
            place(&mut list, &ids);
            if what < 3 && selected.is_some_and(|selected| ids.contains(&selected)) {
                prop_assert_eq!(list.selected, before);
                prop_assert_eq!(list.selected, selected);
            }
            match list.selected {
                None => prop_assert!(ids.is_empty()),
                Some(selected) => {
                    prop_assert_eq!(ids[list.last_position], selected);
                    let seen = list.visible_positions(ids.len(), height);
                    prop_assert!(height == 0 || seen.contains(&list.last_position));
                    prop_assert_eq!(seen.len(), height.min(ids.len()), "no room is left below the end");
                }
            }
        }
    }
}
