//! Draws the reading screen: progress, the transcript, the reader's note; or notes and modes; or drafts of an eval.

use ratatui::layout::Rect;

use crate::model::{make_visible, pluralize};
use crate::review::describe_judge_draft;
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::content::review::{ReviewSource, find_areas, text_of_note};
use crate::tui::state::App;
use crate::tui::state::document::DocumentState;
use crate::tui::state::review::{ModesSide, ReviewLoading, ReviewScreen, ReviewView};
use crate::tui::view::review_parts::{draw_below, draw_progress, first_visible, row_of};
use crate::tui::view::{Canvas, review_counts};
use crate::tui::widget::flow::{self, BlockPosition, ScrollState, TextBlock};
use crate::tui::widget::styled_row::{self, StyledRow};

/// Draws the screen between header and footer.
pub(super) fn draw(canvas: &mut Canvas<'_>, app: &App) {
    let area = app.layout().middle();
    canvas.fill(area, Role::Text);
    let screen = &app.review;
    match (&screen.loading, &screen.session) {
        (ReviewLoading::Failed(problems), _) => draw_problems(canvas, area, problems),
        (_, None) => {
            let text = StyledRow::new(" reading the transcripts …", Role::Muted);
            styled_row::draw_row(canvas, row_of(area, 0), &text, None);
        }
        (_, Some(_)) => match screen.view {
            ReviewView::Reading | ReviewView::Answers => draw_reading(canvas, app),
            ReviewView::Modes => draw_modes(canvas, app),
            ReviewView::Drafts => draw_drafts(canvas, area, app),
            ReviewView::Counts => review_counts::draw(canvas, app),
        },
    }
}

fn draw_problems(canvas: &mut Canvas<'_>, area: Rect, problems: &[String]) {
    let title = StyledRow::new(" the review does not open ", Role::Error);
    let inside = canvas.draw_frame(area, &title, true, ClickTarget::Nothing);
    let mut blocks: Vec<TextBlock<'_>> = problems
        .iter()
        .map(|problem| TextBlock::new(problem.as_str(), Role::Text))
        .collect();
    blocks.push(TextBlock::new(
        "Fix the files, then press V twice.",
        Role::Muted,
    ));
    flow::draw(canvas, inside, &blocks, &ScrollState::top());
}

fn draw_reading(canvas: &mut Canvas<'_>, app: &App) {
    let screen = &app.review;
    let plan = screen.current_item().map_or_else(String::new, |item| {
        let p = item
            .sample
            .p
            .map_or_else(String::new, |p| format!(", probability {p:.2}"));
        let feature = item
            .feature
            .map_or_else(String::new, |one| format!(" by {one}"));
        format!("{}{feature}{p} ", item.sample.plan)
    });
    let asks = screen.view == ReviewView::Answers;
    let right = if asks {
        format!(
            "question {} of {} ",
            screen.question + 1,
            screen.questions.len()
        )
    } else {
        plan
    };
    let areas = find_areas(app);
    draw_progress(canvas, areas.progress, screen, right);
    let rest = areas.frame;
    let title = title_of(screen);
    let inside = canvas.draw_frame(rest, &title, true, ClickTarget::Nothing);
    match &screen.document {
        DocumentState::Loaded(doc) => {
            let source = ReviewSource::new(doc, Some(screen.message), app.ui.theme.glyphs());
            let visible = flow::draw(canvas, inside, &source, &screen.scroll);
            canvas.draw_scrollbar(rest, visible.from, visible.to);
        }
        DocumentState::Failed(why) => {
            let blocks = vec![
                TextBlock::new("dicta can't read the transcript", Role::Error),
                TextBlock::new(why.as_str(), Role::Text),
            ];
            flow::draw(canvas, inside, &blocks, &ScrollState::top());
        }
        DocumentState::Loading | DocumentState::Unloaded => {
            let text = StyledRow::new("reading the transcript …", Role::Muted);
            styled_row::draw_row(canvas, row_of(inside, 0), &text, None);
        }
    }
    draw_below(canvas, areas.below, screen);
}

fn title_of(screen: &ReviewScreen) -> StyledRow<'static> {
    let id = screen
        .current_transcript()
        .unwrap_or("no transcript is left");
    let messages = match &screen.document {
        DocumentState::Loaded(doc) => {
            format!(" · {}", pluralize(doc.first_pieces.len() as u64, "message"))
        }
        _ => String::new(),
    };
    let text = format!("{}{messages}", make_visible(id, false));
    StyledRow::new(text, Role::Title)
}

fn draw_modes(canvas: &mut Canvas<'_>, app: &App) {
    let screen = &app.review;
    let areas = find_areas(app);
    let open = pluralize(screen.open_questions as u64, "question");
    draw_progress(
        canvas,
        areas.progress,
        screen,
        format!("{open} open, A asks "),
    );
    let rest = areas.frame;
    let half = rest.width / 2;
    let left = Rect {
        width: half,
        ..rest
    };
    let right = Rect {
        x: rest.x + half,
        width: rest.width - half,
        ..rest
    };
    draw_notes(canvas, left, screen);
    draw_mode_list(canvas, right, screen);
    draw_below(canvas, areas.below, screen);
}

/// Returns the mark of the selected row. Its color alone is too weak for the side without the focus.
fn cursor_of(canvas: &Canvas<'_>, is_selected: bool) -> &'static str {
    if is_selected {
        canvas.glyphs().cursor
    } else {
        " "
    }
}

fn draw_notes(canvas: &mut Canvas<'_>, area: Rect, screen: &ReviewScreen) {
    let view = &screen.modes;
    let focused = view.side == ModesSide::Notes;
    let notes = screen.listed_notes();
    let session = screen.session.as_ref();
    let opened = view
        .opened
        .as_ref()
        .and_then(|id| session?.book.modes.find(id));
    let title = match opened {
        Some(mode) => format!(
            "notes of {} ({})",
            make_visible(&mode.name, false),
            notes.len()
        ),
        None => format!("notes without a mode ({})", notes.len()),
    };
    let title = StyledRow::new(title, Role::Title);
    let inside = canvas.draw_frame(area, &title, focused, ClickTarget::Nothing);
    let top = first_visible(view.selected_note, inside.height);
    let groups = screen.suggested_groups();
    let rows = notes.iter().enumerate().skip(top);
    for (at, note) in rows.take(usize::from(inside.height)) {
        let mark = if view.marked.contains(&note.id) {
            "*"
        } else {
            " "
        };
        let mut of_note = groups.iter().filter(|group| group.notes.contains(&note.id));
        let group = match of_note.next() {
            // A judge's group is marked, so that no one takes it for similar words.
            Some(group) if view.opened.is_none() => {
                let mark = if group.judge.is_some() { "?" } else { " " };
                format!("{:>2}{mark}", group.number + 1)
            }
            _ => "   ".to_owned(),
        };
        let (text, role) = text_of_note(note);
        let text = make_visible(text, false).into_owned();
        let cursor = cursor_of(canvas, at == view.selected_note);
        let row = StyledRow::new(cursor, Role::Key)
            .with(mark, Role::Key)
            .with(group, Role::Muted)
            .with(text, role);
        let over = (at == view.selected_note).then_some(if focused {
            Role::Selected
        } else {
            Role::SelectedUnfocused
        });
        styled_row::draw_row(canvas, row_of(inside, at - top), &row, over);
    }
    if notes.is_empty() {
        let row = StyledRow::new(" none", Role::Muted);
        styled_row::draw_row(canvas, row_of(inside, 0), &row, None);
    }
}

fn draw_mode_list(canvas: &mut Canvas<'_>, area: Rect, screen: &ReviewScreen) {
    let Some(session) = &screen.session else {
        return;
    };
    let view = &screen.modes;
    let focused = view.side == ModesSide::Modes;
    let modes = &session.book.modes.modes;
    let title = match &view.merges {
        Some(id) => format!("merge {id} into …"),
        None => format!("modes ({})", modes.len()),
    };
    let title = StyledRow::new(make_visible(&title, false).into_owned(), Role::Title);
    let inside = canvas.draw_frame(area, &title, focused, ClickTarget::Nothing);
    let top = first_visible(view.selected_mode, inside.height);
    let rows = modes.iter().enumerate().skip(top);
    for (at, mode) in rows.take(usize::from(inside.height)) {
        let count = session.book.notes_of_mode(&mode.id).len();
        let cursor = cursor_of(canvas, at == view.selected_mode);
        let row = StyledRow::new(format!("{cursor}{count:>3} "), Role::Key)
            .with(make_visible(&mode.name, false).into_owned(), Role::Text)
            .with(
                format!("  {}", make_visible(&mode.definition, false)),
                Role::Muted,
            );
        let over = (at == view.selected_mode).then_some(if focused {
            Role::Selected
        } else {
            Role::SelectedUnfocused
        });
        styled_row::draw_row(canvas, row_of(inside, at - top), &row, over);
    }
    if modes.is_empty() {
        let row = StyledRow::new(" none yet: c creates one", Role::Muted);
        styled_row::draw_row(canvas, row_of(inside, 0), &row, None);
    }
}

fn draw_drafts(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let screen = &app.review;
    let list = &screen.drafts;
    let name = screen
        .session
        .as_ref()
        .and_then(|session| session.book.modes.find(&list.mode))
        .map_or_else(String::new, |mode| {
            make_visible(&mode.name, false).into_owned()
        });
    let areas = find_areas(app);
    let drafts = pluralize(list.drafts.len() as u64, "draft");
    draw_progress(canvas, areas.progress, screen, format!("{drafts} "));
    let frame = Rect {
        height: area.height.saturating_sub(1),
        ..areas.frame
    };
    let title = StyledRow::new(format!("an eval for {name}"), Role::Title);
    let inside = canvas.draw_frame(frame, &title, true, ClickTarget::Nothing);
    let rubrics = app.workspace().into_iter().flat_map(|one| &one.rubrics);
    let names: Vec<String> = rubrics
        .map(|rubric| make_visible(&rubric.id, false).into_owned())
        .collect();
    let mut blocks = Vec::new();
    let mut first = 0;
    for (number, draft) in list.drafts.iter().enumerate() {
        let hits = match list.hits.get(number) {
            Some(Some(Ok(Some(hits)))) => hits.describe(),
            Some(Some(Ok(None))) => {
                describe_judge_draft(app.workspace().map(|workspace| &**workspace))
            }
            Some(Some(Err(why))) => make_visible(why, false).into_owned(),
            _ => "counting the hits …".to_owned(),
        };
        let is_selected = number == list.selected;
        if is_selected {
            first = blocks.len();
        }
        let title = make_visible(&draft.title, false);
        let role = if is_selected {
            Role::Selected
        } else {
            Role::Text
        };
        blocks.push(TextBlock {
            lead: if is_selected {
                canvas.glyphs().cursor.into()
            } else {
                "".into()
            },
            indent: 2,
            ..TextBlock::new(format!("{}: fails if {title}", draft.eval_type), role)
        });
        blocks.push(TextBlock {
            indent: 4,
            ..TextBlock::new(hits, Role::Muted)
        });
    }
    for text in [
        String::new(),
        "j, k choose; enter writes the chosen eval, and your answers become its labels".to_owned(),
        format!(
            "the rubrics that exist: {}; another name creates one",
            names.join(", ")
        ),
    ] {
        blocks.push(TextBlock {
            indent: 1,
            ..TextBlock::new(text, Role::Muted)
        });
    }
    // A small screen follows the selection.
    let mut scroll = ScrollState::top();
    let place = BlockPosition {
        block: first + 1,
        byte: 0,
    };
    scroll.reveal(&blocks, inside.as_size(), place);
    flow::draw(canvas, inside, &blocks, &scroll);
}
