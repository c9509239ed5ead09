//! Draws the reading screen: progress, the transcript, the reader's note; or notes and modes; or drafts of an eval.

use ratatui::layout::Rect;

use crate::model::{make_visible, pluralize};
use crate::review::ReviewNote;
use crate::theme::Role;
use crate::tui::click_target::ClickTarget;
use crate::tui::content::review::ReviewSource;
use crate::tui::state::App;
use crate::tui::state::document::DocumentState;
use crate::tui::state::review::{ModesSide, ReviewLoading, ReviewScreen, ReviewView};
use crate::tui::view::Canvas;
use crate::tui::widget::flow::{self, ScrollState, TextBlock};
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
            ReviewView::Reading | ReviewView::Answers => draw_reading(canvas, area, app),
            ReviewView::Modes => draw_modes(canvas, area, app),
            ReviewView::Drafts => draw_drafts(canvas, area, app),
        },
    }
}

fn row_of(area: Rect, at: usize) -> Rect {
    let at = u16::try_from(at).unwrap_or(u16::MAX).min(area.height);
    Rect {
        y: area.y + at,
        height: u16::from(at < area.height),
        ..area
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

/// Returns the progress: `37 of 100, 2 new modes in the last 20`.
fn describe_progress(screen: &ReviewScreen) -> String {
    let queue = screen.session.as_ref();
    let queue = queue.map_or(0, |session| session.queue.len());
    let saturation = &screen.saturation;
    format!(
        "{} of {queue}, {} in the last {}",
        screen.visited,
        pluralize(saturation.in_last, "new mode"),
        saturation.window
    )
}

fn draw_progress(canvas: &mut Canvas<'_>, area: Rect, screen: &ReviewScreen, right: String) {
    let left = StyledRow::new(" review ", Role::Badge)
        .with(" ", Role::Text)
        .with(describe_progress(screen), Role::Accent);
    let right = StyledRow::new(right, Role::Muted);
    styled_row::draw_ends(canvas, row_of(area, 0), &left, &right, None);
}

fn draw_reading(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let screen = &app.review;
    let plan = screen.current_item().map_or_else(String::new, |item| {
        let p = item
            .sample
            .p
            .map_or_else(String::new, |p| format!(", p {p:.2}"));
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
    draw_progress(canvas, area, screen, right);
    let rest = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(3),
        ..area
    };
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
    let line = row_of(area, usize::from(area.height.saturating_sub(2)));
    let second = row_of(area, usize::from(area.height.saturating_sub(1)));
    if asks {
        draw_question(canvas, line, second, screen);
    } else {
        let note = describe_note(screen.current_note());
        styled_row::draw_row(canvas, line, &note, None);
        let hint = format!(
            " n notes the first failure at message {}; j, k move to another one",
            screen.message
        );
        let hint = StyledRow::new(hint, Role::Muted);
        styled_row::draw_row(canvas, second, &hint, None);
    }
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

fn describe_note(note: Option<&ReviewNote>) -> StyledRow<'static> {
    let Some(note) = note else {
        return StyledRow::new(
            " not read yet: p no failure, n note, u unsure, s skip",
            Role::Muted,
        );
    };
    let text = note.text().map_or_else(String::new, |text| {
        format!(": {}", make_visible(text, false))
    });
    let place = note
        .message
        .map_or_else(String::new, |at| format!(" [{at}]"));
    StyledRow::new(format!(" {}{place}", note.outcome.title()), Role::Key).with(text, Role::Text)
}

fn draw_question(canvas: &mut Canvas<'_>, line: Rect, second: Rect, screen: &ReviewScreen) {
    let question = screen.questions.get(screen.question);
    let mode = question.and_then(|(_, mode)| {
        let session = screen.session.as_ref()?;
        session.book.modes.find(mode)
    });
    let (name, definition) = mode.map_or((String::new(), String::new()), |mode| {
        let show = |text: &str| make_visible(text, false).into_owned();
        (show(&mode.name), show(&mode.definition))
    });
    let row = StyledRow::new(" does this mode occur here? ", Role::Text).with(name, Role::Accent);
    styled_row::draw_row(canvas, line, &row, None);
    let row = StyledRow::new(format!(" {definition}"), Role::Muted);
    styled_row::draw_row(canvas, second, &row, None);
}

fn draw_modes(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let screen = &app.review;
    let session = screen.session.as_ref();
    let open = session.map_or(0, |one| one.book.open_questions().len());
    let right = format!("{} open, A asks ", pluralize(open as u64, "question"));
    draw_progress(canvas, area, screen, right);
    let rest = Rect {
        y: area.y + 1,
        height: area.height.saturating_sub(3),
        ..area
    };
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
    draw_selected(canvas, area, screen);
}

/// Returns the first visible position of a list.
fn first_visible(selected: usize, height: u16) -> usize {
    (selected + 1).saturating_sub(usize::from(height).max(1))
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
        let text = make_visible(note.text().unwrap_or_default(), false).into_owned();
        let row = StyledRow::new(mark, Role::Key)
            .with(group, Role::Muted)
            .with(text, Role::Text);
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
        let row = StyledRow::new(format!("{count:>4} "), Role::Key)
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
        let row = StyledRow::new(
            " none yet: c creates one with the chosen notes",
            Role::Muted,
        );
        styled_row::draw_row(canvas, row_of(inside, 0), &row, None);
    }
}

/// Draws the selected note in full below the lists.
fn draw_selected(canvas: &mut Canvas<'_>, area: Rect, screen: &ReviewScreen) {
    let notes = screen.listed_notes();
    let line = row_of(area, usize::from(area.height.saturating_sub(2)));
    let second = row_of(area, usize::from(area.height.saturating_sub(1)));
    let text = describe_suggestion(screen);
    let row = StyledRow::new(text, Role::Muted);
    styled_row::draw_row(canvas, second, &row, None);
    let Some(note) = notes.get(screen.modes.selected_note) else {
        return;
    };
    let place = note
        .message
        .map_or_else(String::new, |at| format!(" [{at}]"));
    let head = format!(" {}{place} ", make_visible(&note.transcript, false));
    let text = make_visible(note.text().unwrap_or_default(), false).into_owned();
    let row = StyledRow::new(head, Role::Muted).with(text, Role::Text);
    styled_row::draw_row(canvas, line, &row, None);
}

/// Returns the progress of a question to a judge, else the suggested group of the selected note.
fn describe_suggestion(screen: &ReviewScreen) -> String {
    let show = |text: &str| make_visible(text, false).into_owned();
    if let Some((judge, progress)) = &screen.judged.asking {
        return format!(" {}: {}; J stops it", show(judge), show(progress));
    }
    if let Some(group) = screen.selected_group() {
        let (number, name) = (group.number + 1, show(group.name));
        let notes = pluralize(group.notes.len() as u64, "note");
        return match group.judge {
            Some(judge) => {
                let judge = show(judge);
                let definition = match group.definition {
                    "" => String::new(),
                    text => format!(": {}", show(text)),
                };
                format!(" {judge} suggests group {number} (a, D, c): {name} ({notes}){definition}")
            }
            None => format!(" suggested group {number}: {name} ({notes}); c names and creates it"),
        };
    }
    if screen.modes.is_grouping {
        return " grouping similar notes …".to_owned();
    }
    let written = screen.modes.written.as_deref();
    written.map_or_else(String::new, |text| format!(" {}", show(text)))
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
    let title = StyledRow::new(format!("an eval for {name}"), Role::Title);
    let inside = canvas.draw_frame(area, &title, true, ClickTarget::Nothing);
    let mut at = 0;
    for (number, draft) in list.drafts.iter().enumerate() {
        let over = (number == list.selected).then_some(Role::Selected);
        let row = StyledRow::new(format!(" {:<18} ", draft.eval_type), Role::Key).with(
            format!("fails if {}", make_visible(&draft.title, false)),
            Role::Text,
        );
        styled_row::draw_row(canvas, row_of(inside, at), &row, over);
        let hits = match list.hits.get(number) {
            Some(Some(Ok(Some(hits)))) => hits.describe(),
            Some(Some(Ok(None))) => "its hits are known after the first run".to_owned(),
            Some(Some(Err(why))) => make_visible(why, false).into_owned(),
            _ => "counting the hits …".to_owned(),
        };
        let row = StyledRow::new(format!("   {hits}"), Role::Muted);
        styled_row::draw_row(canvas, row_of(inside, at + 1), &row, None);
        at += 2;
    }
    let rubrics = app.workspace().into_iter().flat_map(|one| &one.rubrics);
    let names: Vec<String> = rubrics
        .map(|rubric| make_visible(&rubric.id, false).into_owned())
        .collect();
    for (line, text) in [
        " enter writes the selected eval, with the yes and no answers as its labels".to_owned(),
        format!(
            " the rubrics that exist: {}; another name creates one",
            names.join(", ")
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let row = StyledRow::new(text, Role::Muted);
        styled_row::draw_row(canvas, row_of(inside, at + 1 + line), &row, None);
    }
}
