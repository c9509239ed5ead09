use super::*;
use proptest::prelude::*;

fn at(selected: u32, near: usize, top: usize) -> List<u32> {
    List {
        selected: Some(selected),
        near,
        top,
    }
}

#[test]
fn rows_that_arrive_above_do_not_move_the_cursor() {
    let mut list = at(7, 7, 5);
    let ids: Vec<u32> = (100..110).chain(0..20).collect();
    list.place(&ids, 6);
    assert_eq!(list, at(7, 17, 15));
    assert_eq!(list.visible(&ids, 6), 15..21);
}

#[test]
fn a_vanished_item_leaves_the_cursor_with_its_neighbour() {
    let mut list = at(9, 9, 5);
    let ids: Vec<u32> = (0..9).collect();
    list.place(&ids, 5);
    assert_eq!(list, at(8, 8, 4));
    list.place(&[], 5);
    assert_eq!((list.selected, list.top), (None, 0));
    list.place(&ids, 5);
    assert_eq!(
        list,
        at(8, 8, 4),
        "what comes back finds the cursor where it was"
    );
}

#[test]
fn moving_stops_at_the_ends() {
    let ids: Vec<u32> = (0..100).collect();
    let mut list = List::default();
    list.place(&ids, 10);
    assert_eq!(list, at(0, 0, 0));
    list.page(&ids, 10, 1);
    assert_eq!(list, at(9, 9, 0));
    list.page(&ids, 10, 1);
    assert_eq!(list, at(18, 18, 9));
    list.move_by(&ids, 10, -100);
    assert_eq!(list, at(0, 0, 0));
    list.last(&ids, 10);
    assert_eq!(list, at(99, 99, 90));
    list.move_by(&ids, 10, i64::MAX);
    list.move_by(&ids, 10, i64::MIN);
    list.select(50);
    list.place(&ids, 10);
    assert_eq!(list, at(50, 50, 50));
    assert_eq!(list.parts(&ids, 10), (0.5, 0.6));
}

/// An item that counts how often it is compared.
#[derive(Debug, Clone)]
struct Counted(u32);

thread_local! {
    static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.set(COMPARED.get() + 1);
        self.0 == other.0
    }
}

#[test]
fn a_move_among_a_million_looks_at_a_few() {
    let ids: Vec<Counted> = (0..1_000_000).map(Counted).collect();
    let mut list = List::default();
    list.last(&ids, 40);
    COMPARED.set(0);
    for _ in 0..10 {
        list.move_by(&ids, 40, -1);
        list.page(&ids, 40, -1);
        list.place(&ids, 30);
    }
    assert_eq!(COMPARED.get(), 30);
}

proptest! {
    #[test]
    fn the_selection_survives_and_is_visible(
        steps in proptest::collection::vec((0..5_u8, any::<proptest::sample::Index>(), -9..9_i64, 0..7_usize), 1..60),
    ) {
        let mut ids: Vec<u32> = (0..12).collect();
        let mut fresh = 12;
        let mut list = List::default();
        list.place(&ids, 5);
        for (what, index, delta, height) in steps {
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
                3 => list.move_by(&ids, height, delta),
                _ => list.page(&ids, height, delta),
            }
            let before = list.selected;
            list.place(&ids, height);
            if what < 3 && selected.is_some_and(|selected| ids.contains(&selected)) {
                prop_assert_eq!(list.selected, before);
                prop_assert_eq!(list.selected, selected);
            }
            match list.selected {
                None => prop_assert!(ids.is_empty()),
                Some(selected) => {
                    prop_assert_eq!(ids[list.near], selected);
                    let seen = list.visible(&ids, height);
                    prop_assert!(height == 0 || seen.contains(&list.near));
                    prop_assert_eq!(seen.len(), height.min(ids.len()), "no room is left below the end");
                }
            }
        }
    }
}
