//! Draws the bar of a replay: time, speed, keys.
//!
//! It takes one row. If the row is too narrow, the least important items are left out. The badge, the clock and the
//! bar always stay.

use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr as _;

use crate::model::{Millis, make_visible};
use crate::record::PlaybackSpeed;
use crate::theme::{Glyphs, Role};
use crate::tui::click_target::ClickTarget;
use crate::tui::command::{COMMANDS, UiCommand};
use crate::tui::state::App;
use crate::tui::state::replay::ReplayState;
use crate::tui::state::replay_marks::ReplayMark;
use crate::tui::view::Canvas;
use crate::tui::widget::styled_row::{self, StyledRow};

/// The keys of the row, the most useful first.
const HINTS: &[(UiCommand, &str)] = &[
    (UiCommand::PlayPause, ""),
    (UiCommand::NextFailure, "next failure"),
    (UiCommand::StepEvent, "event"),
    (UiCommand::StepTurn, "turn"),
    (UiCommand::StepCell, "cell"),
    (UiCommand::SeekTo, "go to"),
    (UiCommand::Faster, "faster"),
    (UiCommand::Slower, "slower"),
];

/// The width of the bar in columns; a longer one is not more useful.
const BAR_WIDTH: std::ops::RangeInclusive<usize> = 6..=40;

/// An item with its click target.
struct ReplayBarItem {
    text: String,
    role: Role,
    target: Option<ClickTarget>,
}

/// Draws the row.
pub(super) fn draw(canvas: &mut Canvas<'_>, area: Rect, app: &App) {
    let Some(replay) = &app.replay else { return };
    if area.is_empty() {
        return;
    }
    let pieces = build_items(replay, app.now, canvas.glyphs(), usize::from(area.width));
    let mut row = StyledRow::default();
    let mut x = area.x;
    let mut bar: Option<Rect> = None;
    for ReplayBarItem { text, role, target } in pieces {
        let width = u16::try_from(text.width()).unwrap_or(u16::MAX);
        let width = width.min(area.right().saturating_sub(x));
        let part = Rect::new(x, area.y, width, 1);
        match target {
            // The bar consists of parts with a single click area.
            Some(ClickTarget::Progress) => bar = Some(bar.map_or(part, |first| first.union(part))),
            Some(target) => canvas.add_hit(part, target),
            None => {}
        }
        x = x.saturating_add(width);
        row = row.with(text, role);
    }
    if let Some(bar) = bar {
        canvas.add_hit(bar, ClickTarget::Progress);
    }
    styled_row::draw_row(canvas, area, &row, None);
}

fn build_items(
    replay: &ReplayState,
    now: Millis,
    glyphs: &Glyphs,
    width: usize,
) -> Vec<ReplayBarItem> {
    let (at, length) = replay.position_and_length(now);
    let plain = |text: String, role| ReplayBarItem {
        text,
        role,
        target: None,
    };
    // A run's id is untrusted text, because it can come from the name of a file.
    let letters = make_visible(replay.run.letters(), false).into_owned();
    let mut before = vec![
        plain(" REPLAY ".to_owned(), Role::Badge),
        plain(format!(" {letters}"), Role::Title),
    ];
    let date = plain(format!(" {}", replay.recorded_at), Role::Muted);
    let state = plain(
        format!("  {}", describe_state(replay, glyphs)),
        Role::Accent,
    );
    let clock = plain(
        format!("  {} / {}  ", format_tenths(at), format_length(length)),
        Role::Text,
    );
    let events = format!(
        "  event {}/{}",
        replay.player.position(),
        replay.player.len()
    );
    let events = plain(events, Role::Muted);

    // These items always stay, so subtract them first.
    let taken: usize = before.iter().chain([&state, &clock]).map(item_width).sum();
    let mut left = width.saturating_sub(taken);
    let mut fits = |piece: &ReplayBarItem, least: usize| {
        let fits = left >= item_width(piece) + least;
        if fits {
            left -= item_width(piece);
        }
        fits
    };
    let mut after = Vec::new();
    // Each item takes columns from the next, so the order is the importance.
    if fits(&events, *BAR_WIDTH.start()) {
        after.push(events);
    }
    // The date and the keys leave at least 12 columns for the bar, twice its smallest width.
    if !replay.recorded_at.is_empty() && fits(&date, 12) {
        before.push(date);
    }
    for (nth, (command, title)) in HINTS.iter().enumerate() {
        let title = match command {
            UiCommand::PlayPause if replay.is_playing() => "pause",
            UiCommand::PlayPause => "play",
            _ => title,
        };
        let gap = if nth == 0 { "   " } else { "  " };
        let hint = ReplayBarItem {
            text: format!("{gap}{} {title}", key_name(*command)),
            role: Role::Key,
            target: Some(ClickTarget::Command(*command)),
        };
        // Less useful keys do not replace a key that does not fit.
        if !fits(&hint, 12) {
            break;
        }
        after.push(hint);
    }
    before.extend([state, clock]);
    let room = left.min(*BAR_WIDTH.end());
    if room > 0 {
        before.extend(build_bar(replay, (at, length), room, glyphs));
    }
    before.extend(after);
    before
}

fn item_width(piece: &ReplayBarItem) -> usize {
    piece.text.width()
}

/// Returns the filled and the empty part of the bar, with the marks of calls, verdicts, retries and failures.
fn build_bar(
    replay: &ReplayState,
    (at, length): (Millis, Millis),
    room: usize,
    glyphs: &Glyphs,
) -> Vec<ReplayBarItem> {
    let room_wide = u128::try_from(room).unwrap_or(u128::MAX);
    let full = match length.0 {
        // A recording without a duration is at its end.
        0 => room_wide,
        length => u128::from(at.0.min(length)).saturating_mul(room_wide) / u128::from(length),
    };
    let full = usize::try_from(full).unwrap_or(room).min(room);
    let mut out: Vec<ReplayBarItem> = Vec::new();
    for column in 0..room {
        let (text, role) = match replay.marks.in_column(column, room) {
            Some(ReplayMark::Failure) => (glyphs.fail, Role::Fail),
            Some(ReplayMark::Retry) => (if glyphs.ascii { "r" } else { "↻" }, Role::Warning),
            Some(ReplayMark::Verdict) => (glyphs.pass, Role::Pass),
            Some(ReplayMark::Call) => (if glyphs.ascii { ">" } else { "→" }, Role::Tool),
            None if column < full => (glyphs.bar_filled, Role::Accent),
            None => (glyphs.bar_empty, Role::Border),
        };
        match out.last_mut().filter(|last| last.role == role) {
            Some(last) => last.text.push_str(text),
            None => out.push(ReplayBarItem {
                text: text.to_owned(),
                role,
                target: Some(ClickTarget::Progress),
            }),
        }
    }
    out
}

fn describe_state(replay: &ReplayState, glyphs: &Glyphs) -> String {
    if replay.is_seeking() {
        return format!("seeking{}", glyphs.ellipsis);
    }
    if replay.player.is_finished() {
        let ends = if replay.has_end { "end" } else { "ends early" };
        return ends.to_owned();
    }
    let (play, times) = if glyphs.ascii {
        (">", "x")
    } else {
        ("▶", "×")
    };
    let pause = if glyphs.ascii { "||" } else { "‖" };
    let mark = if replay.is_playing() { play } else { pause };
    format!("{mark} {times}{}", format_speed(replay.speed))
}

fn format_speed(speed: PlaybackSpeed) -> String {
    let times = speed.factor();
    // An infinite factor shows all events at once.
    if times.is_finite() {
        format!("{times}")
    } else {
        "all".to_owned()
    }
}

fn key_name(command: UiCommand) -> &'static str {
    let spec = COMMANDS.iter().find(|spec| spec.command == command);
    spec.and_then(|spec| spec.keys.first())
        .copied()
        .unwrap_or_default()
}

/// Formats a time with tenths of a second: `0:12.3`.
fn format_tenths(at: Millis) -> String {
    format!("{}.{}", format_seconds(at), at.0 % 1000 / 100)
}

/// Formats the length of a recording. A short one has tenths, so that no position is after its end.
fn format_length(length: Millis) -> String {
    match length.0 {
        1..10_000 => format_tenths(length),
        _ => format_seconds(length),
    }
}

/// Formats a time in seconds: `1:05`, `1:02:03`.
fn format_seconds(at: Millis) -> String {
    let seconds = at.0 / 1000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{EventKind, RunEvent};
    use crate::model::RunId;
    use crate::tui::state::runs::RunTicket;

    fn replay() -> ReplayState {
        let note = |seq: u64| RunEvent {
            seq,
            at: Millis(seq * 650),
            kind: EventKind::Note {
                cell: None,
                text: String::new(),
            },
        };
        let log = Arc::new((0..=100).map(note).collect());
        let run = RunId("20261120-170203-k3f9".to_owned());
        let mut replay = ReplayState::new(run, "/r".into(), log, RunTicket(1), false, None);
        replay.recorded_at = "2026-11-20 17:02".to_owned();
        let _first = replay.player.seek(20);
        replay.shown_events = 20;
        replay.speed = PlaybackSpeed::new(4.0);
        replay
    }

    fn text(replay: &ReplayState, now: u64, glyphs: &Glyphs, width: usize) -> String {
        let pieces = build_items(replay, Millis(now), glyphs, width);
        pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    #[test]
    fn bar_shows_speed_time_and_position() {
        let mut replay = replay();
        replay.player.play(Millis(0), PlaybackSpeed::new(4.0));
        assert_eq!(
            text(&replay, 50, &Glyphs::UNICODE, 140),
            " REPLAY  k3f9 2026-11-20 17:02  ▶ ×4  0:12.5 / 1:05  ███░░░░░░░░░░░░░░░  event 20/101   space pause  F next failure  > event  t turn  C cell"
        );
        assert_eq!(
            text(&replay, 50, &Glyphs::ASCII, 80),
            " REPLAY  k3f9 2026-11-20 17:02  > x4  0:12.5 / 1:05  ##...........  event 20/101"
        );
    }

    #[test]
    fn end_of_a_short_recording_is_its_length() {
        let lengths = [0, 300, 9999, 65_000].map(|at| format_length(Millis(at)));
        assert_eq!(lengths, ["0:00", "0:00.3", "0:09.9", "1:05"]);
    }

    #[test]
    fn narrow_bar_keeps_badge_and_clock() {
        let replay = replay();
        assert_eq!(
            text(&replay, 0, &Glyphs::UNICODE, 42),
            " REPLAY  k3f9  ‖ ×4  0:12.3 / 1:05  █░░░░░"
        );
        for width in 42..250 {
            let text = text(&replay, 0, &Glyphs::UNICODE, width);
            assert!(text.width() <= width, "{width}: {text}");
        }
    }

    #[test]
    fn recording_without_end_ends_early() {
        let mut replay = replay();
        let _all = replay.player.seek(101);
        assert!(text(&replay, 0, &Glyphs::UNICODE, 120).contains("seeking…"));
        replay.shown_events = 101;
        assert!(text(&replay, 0, &Glyphs::UNICODE, 120).contains("ends early"));
        replay.has_end = true;
        assert!(text(&replay, 0, &Glyphs::UNICODE, 120).contains("  end  1:05.0 / 1:05"));
    }
}
