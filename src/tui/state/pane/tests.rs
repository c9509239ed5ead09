//! Tests of the layout at every size.

use proptest::prelude::*;
use ratatui::layout::{Rect, Size};

use super::{
    DividerArea, FilledPanes, LayoutParams, Pane, PaneArea, PaneDivider, PaneSplits, ScreenLayout,
};

fn wish(width: u16, height: u16) -> LayoutParams {
    LayoutParams {
        compares_traces: false,
        size: Size::new(width, height),
        focus: Pane::Cells,
        tab_pane: Pane::Verdict,
        zoomed: false,
        splits: PaneSplits::default(),
        problems: 0,
        replay: false,
        tour: false,
        changes: false,
        filled: FilledPanes::ALL,
        labelling: false,
        question_rows: 0,
    }
}

fn panes(layout: &ScreenLayout) -> Vec<Pane> {
    layout.panes.iter().map(|shown| shown.pane).collect()
}

fn all_areas(layout: &ScreenLayout) -> Vec<Rect> {
    let rows = [
        layout.header,
        layout.footer,
        layout.tabs,
        layout.turn_strip,
        layout.problems,
        layout.replay,
        layout.tour,
    ];
    layout
        .panes
        .iter()
        .map(|shown| shown.area)
        .chain(rows)
        .filter(|area| !area.is_empty())
        .collect()
}

#[test]
fn a_large_screen_has_three_columns() {
    let layout = ScreenLayout::from_params(&wish(200, 60));
    assert_eq!(
        panes(&layout),
        [
            Pane::Cells,
            Pane::Prompt,
            Pane::FunctionCall,
            Pane::FetchedContent,
            Pane::Verdict,
            Pane::Transcript
        ]
    );
    assert_eq!(layout.pane_area(Pane::Cells), Some(Rect::new(0, 1, 50, 58)));
    assert_eq!(
        layout.pane_area(Pane::Transcript),
        Some(Rect::new(140, 1, 60, 58))
    );
    assert_eq!(layout.turn_strip, Rect::new(50, 1, 90, 1));
    assert!(layout.tabs.is_empty());
}

#[test]
fn a_common_screen_has_the_transcript_under_the_cells() {
    let layout = ScreenLayout::from_params(&wish(120, 40));
    assert_eq!(layout.pane_area(Pane::Cells), Some(Rect::new(0, 1, 40, 23)));
    assert_eq!(
        layout.pane_area(Pane::Transcript),
        Some(Rect::new(0, 24, 40, 15))
    );
    assert_eq!(layout.pane_area(Pane::Changes), None);
    let changed = ScreenLayout::from_params(&LayoutParams {
        changes: true,
        ..wish(120, 40)
    });
    let area = changed.pane_area(Pane::Changes).expect("shown");
    assert_eq!(area.bottom(), 39);
    assert_eq!(area.width, 80);
}

#[test]
fn small_screen_has_one_pane_next_to_cells() {
    let layout = ScreenLayout::from_params(&wish(80, 24));
    assert_eq!(panes(&layout), [Pane::Cells, Pane::Verdict]);
    assert_eq!(layout.tabs, Rect::new(0, 1, 80, 1));
    assert_eq!(layout.pane_area(Pane::Cells), Some(Rect::new(0, 2, 34, 21)));
    let other = ScreenLayout::from_params(&LayoutParams {
        tab_pane: Pane::Transcript,
        ..wish(80, 24)
    });
    assert_eq!(panes(&other), [Pane::Cells, Pane::Transcript]);
    assert!(other.turn_strip.is_empty());
}

#[test]
fn unjudged_file_shows_transcript_next_to_list_at_every_size() {
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let layout = ScreenLayout::from_params(&LayoutParams {
            tab_pane: Pane::Transcript,
            filled: FilledPanes::TRANSCRIPT,
            ..wish(width, height)
        });
        assert_eq!(panes(&layout), [Pane::Cells, Pane::Transcript]);
    }
}

#[test]
fn tiny_screen_has_one_pane_and_smaller_one_asks_for_room() {
    let layout = ScreenLayout::from_params(&LayoutParams {
        focus: Pane::Transcript,
        ..wish(40, 12)
    });
    assert_eq!(
        layout.panes,
        [PaneArea {
            pane: Pane::Transcript,
            area: Rect::new(0, 2, 40, 9)
        }]
    );
    assert!(ScreenLayout::from_params(&wish(29, 12)).too_small);
    assert!(ScreenLayout::from_params(&wish(40, 7)).too_small);
}

#[test]
fn zoom_keeps_header_and_footer() {
    let layout = ScreenLayout::from_params(&LayoutParams {
        zoomed: true,
        focus: Pane::Prompt,
        replay: true,
        problems: 3,
        ..wish(120, 40)
    });
    assert_eq!(
        layout.panes,
        [PaneArea {
            pane: Pane::Prompt,
            area: Rect::new(0, 1, 120, 38)
        }]
    );
    assert_eq!(all_areas(&layout).len(), 3);
}

#[test]
fn dragged_divider_stays_at_pointer() {
    let mut wish = wish(120, 40);
    for to in [40_u16, 52, 60] {
        let layout = ScreenLayout::from_params(&wish);
        let main = layout
            .dividers
            .iter()
            .find(|one| one.divider == PaneDivider::Main)
            .expect("shown");
        assert_eq!(layout.divider_at(main.grab_area.x, 3), Some(main));
        wish.splits
            .drag_divider(PaneDivider::Main, main.divided_area, to, 3);
        let cells = ScreenLayout::from_params(&wish)
            .pane_area(Pane::Cells)
            .expect("shown");
        assert_eq!(cells.width, to);
    }
    let full_area = Rect::new(0, 1, 120, 38);
    wish.splits.drag_divider(PaneDivider::Main, full_area, 0, 3);
    assert_eq!(
        ScreenLayout::from_params(&wish)
            .pane_area(Pane::Cells)
            .map(|area| area.width),
        Some(34)
    );
}

fn any_filled() -> impl Strategy<Value = FilledPanes> {
    any::<[bool; 6]>().prop_map(|flags| FilledPanes {
        trace_screen: false,
        prompt: flags[0],
        function_call: flags[1],
        fetched_content: flags[2],
        verdict: flags[3],
        transcript: flags[4],
        turn_strip: flags[5],
    })
}

fn any_wish() -> impl Strategy<Value = LayoutParams> {
    (
        (0_u16..=220, 0_u16..=70, 0_usize..7, 0_usize..7, 0_u16..6),
        proptest::array::uniform7(0_u16..=1000),
        any::<[bool; 3]>(),
        any_filled(),
    )
        .prop_map(
            |((width, height, focus, tab, problems), at, flags, filled)| LayoutParams {
                compares_traces: false,
                size: Size::new(width, height),
                // An empty pane never has the focus.
                focus: filled.or_filled(Pane::ALL[focus]).unwrap_or_default(),
                tab_pane: Pane::ALL[tab],
                zoomed: flags[0] && flags[1],
                splits: PaneSplits {
                    main: at[0],
                    wide_main: at[1],
                    cells_transcript: at[2],
                    transcript_column: at[3],
                    trace_vertical: at[4],
                    trace_horizontal: at[5],
                    changes: at[6],
                },
                problems,
                replay: flags[1],
                tour: flags[2],
                question_rows: problems * 3,
                labelling: flags[0]
                    && matches!(
                        filled.or_filled(Pane::ALL[focus]),
                        Some(Pane::Verdict | Pane::Transcript)
                    ),
                changes: flags[2],
                filled,
            },
        )
}

#[test]
fn empty_panes_leave_their_room_to_the_others() {
    let check = FilledPanes {
        prompt: true,
        verdict: true,
        transcript: true,
        turn_strip: true,
        ..FilledPanes::default()
    };
    let shown = |filled, width, height| {
        ScreenLayout::from_params(&LayoutParams {
            filled,
            ..wish(width, height)
        })
    };
    for (width, height) in [(120, 40), (200, 60)] {
        let layout = shown(check, width, height);
        let order = [Pane::Cells, Pane::Prompt, Pane::Verdict, Pane::Transcript];
        assert_eq!(panes(&layout), order);
        let areas = [Pane::Prompt, Pane::Verdict].map(|pane| layout.pane_area(pane));
        let [Some(text), Some(finding)] = areas else {
            panic!("both are shown")
        };
        assert_eq!((text.x, text.width), (finding.x, finding.width));
    }
    let eval_row = FilledPanes {
        verdict: true,
        ..FilledPanes::default()
    };
    let layout = shown(eval_row, 120, 40);
    assert_eq!(panes(&layout), [Pane::Cells, Pane::Verdict]);
    assert_eq!(
        layout.pane_area(Pane::Verdict),
        Some(Rect::new(40, 1, 80, 38))
    );
    let nothing = shown(FilledPanes::default(), 80, 24);
    assert_eq!(panes(&nothing), [Pane::Cells]);
    assert_eq!(
        nothing.pane_area(Pane::Cells),
        Some(Rect::new(0, 2, 80, 21))
    );
}

#[test]
fn tall_screen_gives_tour_its_own_row() {
    let with = |width, height| {
        ScreenLayout::from_params(&LayoutParams {
            tour: true,
            ..wish(width, height)
        })
    };
    assert_eq!(with(80, 24).tour, Rect::new(0, 22, 80, 1));
    assert_eq!(with(40, 12).tour, Rect::default());
    assert_eq!(
        ScreenLayout::from_params(&wish(80, 24)).tour,
        Rect::default()
    );
    let layout = with(120, 40);
    let area = layout.pane_area(Pane::Verdict).expect("shown");
    assert_eq!(layout.inner_size(Pane::Verdict).width, area.width - 4);
    assert_eq!(layout.inner_size(Pane::Cells).width, 38);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn nothing_lies_outside_or_over_another_and_no_row_is_wasted(wish in any_wish()) {
        let layout = ScreenLayout::from_params(&wish);
        let screen = Rect::new(0, 0, wish.size.width, wish.size.height);
        let areas = all_areas(&layout);
        for (at, area) in areas.iter().enumerate() {
            prop_assert_eq!(area.intersection(screen), *area);
            for other in &areas[at + 1..] {
                prop_assert!(area.intersection(*other).is_empty(), "{area} {other}");
            }
        }
        for DividerArea { grab_area, divided_area, .. } in &layout.dividers {
            prop_assert_eq!(grab_area.intersection(screen), *grab_area);
            prop_assert_eq!(divided_area.intersection(screen), *divided_area);
        }
        if !layout.too_small {
            let covered: u32 = areas.iter().map(|area| area.area()).sum();
            prop_assert_eq!(covered, screen.area());
            prop_assert!(layout.pane_area(wish.focus).is_some(), "the focused pane is shown");
            for PaneArea { pane, area } in &layout.panes {
                prop_assert!(area.width >= 8 && area.height >= 3, "{pane:?} {area}");
            }
        }
    }
}
