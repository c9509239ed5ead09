mod indexed;

use std::sync::Arc;

use ratatui::layout::Size;

use super::*;
use crate::event::{
    CellKey, EvalSpec, JudgeSpec, RubricSpec, RunEvent, RunHeader, RunState, RunTotals,
    SettledCell, TurnFact,
};
use crate::model::{
    CellResult, Digest, JudgeConfig, ProviderKind, TranscriptRef, TurnIx, WallTime,
};
use crate::record::Playback;
use crate::theme::Theme;
use crate::tui::state::cells::{DecisionChanges, RowId};
use crate::tui::state::session_view::SessionView;
use crate::tui::widget::flow::ScrollState;

fn header() -> RunHeader {
    let eval = |id: &str, judged| EvalSpec {
        judged,
        ..EvalSpec::new(0, id, "contains", Digest::hash_bytes(id.as_bytes()))
    };
    RunHeader {
        label: "recorded against a scripted server".to_owned(),
        judges: vec![JudgeSpec::new(
            JudgeConfig::new("j", ProviderKind::Rules),
            Digest::hash_bytes(b"j"),
        )],
        rubrics: vec![RubricSpec {
            id: "r".to_owned(),
            path: "r.yaml".into(),
            threshold: None,
        }],
        evals: vec![eval("plain", false), eval("asked", true)],
        ..RunHeader::new(
            RunId("20261120-170203-k3f9".to_owned()),
            WallTime("2026-11-20T17:02:03+01:00".to_owned()),
            "/w".into(),
        )
    }
}

/// Plans transcript `t<n>` with the cells `2n` (check) and `2n + 1` (judged).
fn planned(n: u32) -> EventKind {
    let id = format!("t{n}");
    let key = |eval, judge| CellKey {
        eval,
        message: None,
        judge,
        repeat: None,
    };
    EventKind::CellsPlanned {
        transcript: TranscriptRef {
            part: 0,
            digest: Digest::hash_bytes(id.as_bytes()),
            id,
            path: "t.jsonl".into(),
            offset: 0,
            len: 1,
        },
        first: CellIx(2 * n),
        keys: vec![key(0, None), key(1, Some(0))],
    }
}

fn settled(cells: &[(u32, Outcome)]) -> EventKind {
    let result = |(cell, outcome): &(u32, Outcome)| {
        SettledCell::new(CellIx(*cell), CellResult::new(*outcome, "because"))
    };
    EventKind::CellsSettled(cells.iter().map(result).collect())
}

fn started(cell: u32) -> EventKind {
    EventKind::CellStarted {
        cell: CellIx(cell),
        key: None,
    }
}

fn turn(cell: u32) -> EventKind {
    EventKind::Turn {
        cell: CellIx(cell),
        turn: TurnIx(0),
        fact: TurnFact::AttemptStarted { attempt: 1 },
    }
}

fn ended(cell: u32, outcome: Outcome) -> EventKind {
    EventKind::CellFinished {
        cell: CellIx(cell),
        result: Arc::new(CellResult::new(outcome, "said the judge")),
    }
}

/// Returns a run of three transcripts with an event every 100 ms.
fn recorded_facts() -> Vec<EventKind> {
    vec![
        EventKind::RunStarted(Box::new(header())),
        planned(0),
        planned(1),
        planned(2),
        settled(&[
            (0, Outcome::Fail),
            (2, Outcome::Pass),
            (4, Outcome::CheckError),
        ]),
        started(1),
        turn(1),
        started(3),
        ended(1, Outcome::Pass),
        ended(3, Outcome::Fail),
        started(5),
        ended(5, Outcome::Timeout),
        EventKind::RunFinished(Box::<RunTotals>::default()),
    ]
}

fn numbered(kinds: Vec<EventKind>) -> Arc<Vec<RunEvent>> {
    let events = (0_u64..).zip(kinds).map(|(seq, kind)| RunEvent {
        seq,
        at: Millis(seq * 100),
        kind,
    });
    Arc::new(events.collect())
}

/// Feeds events without rows: the tests check which events are fed, and when.
fn fed(session: &mut SessionView, ticket: RunTicket, events: &[RunEvent]) -> DecisionChanges {
    let run = session
        .runs
        .by_ticket
        .get_mut(&ticket)
        .expect("the replay's run");
    for event in events {
        run.state.apply(event);
        if let EventKind::CellsPlanned { first, keys, .. } = &event.kind {
            let rows = first.0..first.0 + u32::try_from(keys.len()).expect("few");
            run.cell_slots.extend(rows.map(|row| {
                Some(SlotId {
                    row: RowId(row),
                    slot: 0,
                })
            }));
        }
    }
    DecisionChanges::default()
}

fn model(place: OpenedItem) -> App {
    let theme = Theme::bundled("dark").expect("bundled");
    App::new(place, Size::new(120, 40), theme)
}

/// Returns a replay of these events that plays from the beginning.
fn playing(log: Arc<Vec<RunEvent>>) -> App {
    let mut app = model(OpenedItem::TranscriptFile("x".into()));
    let mut replay = ReplayState::new(
        RunId("x-k3f9".to_owned()),
        "/r".into(),
        log,
        RunTicket(1),
        false,
        None,
    );
    if replay.cell_slots.iter().all(Option::is_none) {
        replay.cell_slots = (0..6)
            .map(|row| {
                Some(SlotId {
                    row: RowId(row),
                    slot: 0,
                })
            })
            .collect();
    }
    replay.player.play(Millis(0), PlaybackSpeed::RECORDED);
    replay.session.start_following();
    app.replay = Some(replay);
    app
}

fn replay_at(position: usize) -> App {
    let mut app = playing(numbered(recorded_facts()));
    to(&mut app, position);
    app
}

fn to(app: &mut App, position: usize) {
    let replay = replay_mut(app);
    let _told = replay.player.seek(position);
    advance(app, fed);
}

fn replay(app: &App) -> &ReplayState {
    app.replay.as_ref().expect("it plays")
}

fn replay_mut(app: &mut App) -> &mut ReplayState {
    app.replay.as_mut().expect("it plays")
}

fn press(app: &mut App, command: UiCommand) {
    assert!(dispatch_command(app, command, fed).is_empty());
}

fn wake(app: &mut App, now: u64) {
    app.now = Millis(now);
    advance(app, fed);
}

fn shown_state(app: &App) -> &RunState {
    &replay(app).session.runs.by_ticket[&RunTicket(1)].state
}

fn selected(app: &App) -> Option<CellsEntry> {
    replay(app).session.cells.list.selected
}

#[test]
fn due_events_are_fed_and_end_pauses_replay() {
    let mut app = playing(numbered(recorded_facts()));
    wake(&mut app, 650);
    assert_eq!(replay(&app).shown_events, 7);
    assert_eq!(replay(&app).next_wake(Millis(650)), Some(Millis(700)));
    wake(&mut app, 5000);
    assert_eq!(
        *shown_state(&app),
        RunState::fold(numbered(recorded_facts()).iter())
    );
    assert_eq!(replay(&app).next_wake(Millis(5000)), None);
    assert_eq!(
        replay(&app).player.playback(),
        Playback::Paused { at: Millis(1200) }
    );
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert!(
        notice.text.starts_with("the recording ends here"),
        "{notice:?}"
    );
    press(&mut app, UiCommand::PlayPause);
    assert_eq!(
        replay(&app).shown_events,
        1,
        "space at the end begins again"
    );
}

#[test]
fn recording_without_end_shows_notice() {
    let mut kinds = recorded_facts();
    kinds.pop();
    let mut app = playing(numbered(kinds));
    wake(&mut app, 5000);
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert_eq!(
        (notice.level, notice.text.as_str()),
        (NoticeLevel::Warning, UNFINISHED)
    );
}

#[test]
fn seek_while_streaming_keeps_selection_filter_and_places() {
    let mut app = replay_at(9);
    let session = &mut replay_mut(&mut app).session;
    session.focus_decision(CellsEntry::Row(RowId(3)), 0);
    session.cells.filter = "asked".to_owned();
    session.trace_panes.shows_raw = true;
    session.trace_panes.prompt = ScrollState::tail();
    replay_mut(&mut app)
        .player
        .play(Millis(0), PlaybackSpeed::RECORDED);
    press(&mut app, UiCommand::SeekBack);
    let now = replay(&app);
    assert!(now.is_playing(), "what played, plays on");
    assert!(now.shown_events < 9 && !now.is_seeking());
    assert_eq!(selected(&app), Some(CellsEntry::Row(RowId(3))));
    let session = &replay(&app).session;
    assert_eq!(
        (
            session.cells.filter.as_str(),
            session.trace_panes.shows_raw,
            session.trace_panes.prompt.follow
        ),
        ("asked", true, true)
    );
    let shown_events = replay(&app).shown_events;
    assert_eq!(
        *shown_state(&app),
        RunState::fold(&numbered(recorded_facts())[..shown_events])
    );
}

#[test]
fn speed_changes_keep_the_place_and_stay_in_bounds() {
    let mut app = playing(numbered(recorded_facts()));
    wake(&mut app, 250);
    press(&mut app, UiCommand::Faster);
    let replay_now = replay(&app);
    assert_eq!(replay_now.position_and_length(Millis(250)).0, Millis(250));
    assert_eq!(replay_now.position_and_length(Millis(350)).0, Millis(450));
    for _ in 0..20 {
        press(&mut app, UiCommand::Faster);
    }
    assert_eq!(replay(&app).speed, PlaybackSpeed::new(64.0));
    for _ in 0..20 {
        press(&mut app, UiCommand::Slower);
    }
    assert_eq!(replay(&app).speed, PlaybackSpeed::new(0.25));
    assert_eq!(replay(&app).position_and_length(Millis(250)).0, Millis(250));
}

#[test]
fn step_back_takes_one_event_away() {
    let mut app = replay_at(9);
    press(&mut app, UiCommand::StepBack);
    assert_eq!(replay(&app).shown_events, 8);
    assert_eq!(
        *shown_state(&app),
        RunState::fold(&numbered(recorded_facts())[..8])
    );
    to(&mut app, 0);
    press(&mut app, UiCommand::StepBack);
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert_eq!(notice.text, "this is the beginning of the recording");
}

#[test]
fn steps_go_over_an_event_a_turn_and_a_cell() {
    let mut app = replay_at(5);
    press(&mut app, UiCommand::StepEvent);
    assert_eq!(replay(&app).shown_events, 6);
    press(&mut app, UiCommand::StepCell);
    assert_eq!(replay(&app).shown_events, 9);
    press(&mut app, UiCommand::StepTurn);
    assert_eq!(replay(&app).shown_events, 10);
    assert!(!replay(&app).is_playing());
}

#[test]
fn next_failure_finds_each_failure_of_batch() {
    let mut app = playing(numbered(recorded_facts()));
    let mut seen = Vec::new();
    for _ in 0..4 {
        press(&mut app, UiCommand::NextFailure);
        seen.push((replay(&app).shown_events, selected(&app)));
    }
    let row = |n| Some(CellsEntry::Row(RowId(n)));
    assert_eq!(seen, [(5, row(0)), (5, row(4)), (10, row(3)), (12, row(5))]);
    assert!(!replay(&app).is_playing());
    press(&mut app, UiCommand::NextFailure);
    assert_eq!(replay(&app).shown_events, 12);
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert_eq!(
        notice.text,
        "no cell fails or ends in an error from here on"
    );
}

#[test]
fn live_judge_is_followed_until_user_moves() {
    let mut app = playing(numbered(recorded_facts()));
    wake(&mut app, 560);
    assert_eq!(selected(&app), Some(CellsEntry::Row(RowId(1))));
    replay_mut(&mut app).session.cells.list.selected = Some(CellsEntry::Row(RowId(4)));
    wake(&mut app, 1050);
    assert_eq!(selected(&app), Some(CellsEntry::Row(RowId(4))));
    assert!(!replay(&app).session.follow.enabled);
    press(&mut app, UiCommand::PlayPause);
    press(&mut app, UiCommand::PlayPause);
    assert!(replay(&app).session.follow.enabled);
}

#[test]
fn large_log_is_fed_in_batches_behind_old_session() {
    let note = |_| EventKind::Note {
        cell: None,
        text: String::new(),
    };
    let mut app = playing(numbered((0..12_000).map(note).collect()));
    let _all = replay_mut(&mut app).player.seek(12_000);
    let mut bites = Vec::new();
    while replay(&app).is_seeking() {
        wake(&mut app, 1);
        bites.push(replay(&app).shown_events);
    }
    assert_eq!(bites, [5_000, 10_000, 12_000]);
    press(&mut app, UiCommand::StepBack);
    assert_eq!(
        replay(&app).next_wake(Millis(1)),
        Some(Millis(1)),
        "it goes on at once"
    );
    assert_eq!(
        shown_state(&app).notes.len(),
        12_000,
        "the old one is shown"
    );
    while replay(&app).is_seeking() {
        wake(&mut app, 1);
    }
    assert_eq!(shown_state(&app).notes.len(), 11_999);
}

#[test]
fn position_can_be_typed_in_three_forms() {
    let length = Millis(150_000);
    let at = |typed| parse_moment(typed, length);
    assert_eq!(at("1:05"), Ok(Millis(65_000)));
    assert_eq!(at(" 12.5 "), Ok(Millis(12_500)));
    assert_eq!(at("40%"), Ok(Millis(60_000)));
    assert_eq!(
        parse_moment("1:00:01", Millis(4_000_000)),
        Ok(Millis(3_601_000))
    );
    assert_eq!(
        at("3:00"),
        Err("the recording is 2 min 30 s long".to_owned())
    );
    for wrong in [
        "",
        "x",
        "1:",
        "-3",
        "inf",
        "nan",
        "1e9",
        "140%",
        "%",
        "\u{1b}[2J",
    ] {
        let why = at(wrong).expect_err(wrong);
        assert!(
            why.contains("isn't a position") && !why.contains('\u{1b}'),
            "{why}"
        );
    }
}

/// The checks of an intact log of this installation.
const OWN: LogIntegrity = LogIntegrity {
    origin: LogOrigin::Own,
    damaged: 0,
    altered: 0,
};

#[test]
fn replay_of_a_damaged_or_foreign_log_is_marked() {
    let damaged = LogIntegrity { damaged: 2, ..OWN };
    let elsewhere = LogIntegrity {
        origin: LogOrigin::Elsewhere,
        ..OWN
    };
    let old = LogIntegrity {
        origin: LogOrigin::EarlierVersion,
        ..OWN
    };
    for (integrity, mark, level) in [
        (damaged, "damaged", NoticeLevel::Warning),
        (elsewhere, "recorded elsewhere", NoticeLevel::Warning),
        (old, "earlier version", NoticeLevel::Info),
    ] {
        let mut app = model(OpenedItem::Recording);
        let log = Ok(numbered(recorded_facts()).into());
        let run = RunId("x-k3f9".to_owned());
        handle_replay_read(&mut app, run, "/r".into(), log, Vec::new(), integrity);
        assert_eq!(replay(&app).mark, Some(mark));
        let notice = app.notices.log.first().expect("an explanation");
        assert_eq!(Some(notice.text.clone()), integrity.explain());
        assert_eq!(notice.level, level);
    }
}

#[test]
fn standalone_replay_quits_when_left() {
    let read_as = |opening| {
        let mut app = model(OpenedItem::Recording);
        app.replay_start = opening;
        let log = Ok(numbered(recorded_facts()).into());
        let run = RunId("x-k3f9".to_owned());
        let effects = handle_replay_read(
            &mut app,
            run,
            "/r".into(),
            log,
            vec!["line 3".to_owned()],
            OWN,
        );
        // Its branches are younger than the recording, so they are read apart.
        assert!(matches!(effects[..], [Effect::ReadFamily(_)]));
        app
    };
    let mut app = read_as(ReplayStart::from_speed(Some(1.0)));
    assert!(replay(&app).is_playing());
    assert_eq!(replay(&app).recorded_at, "2026-11-20 17:02");
    let notices: Vec<_> = app.notices.log.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(notices, ["line 3", "recorded against a scripted server"]);
    assert_eq!(leave_replay(&mut app), [Effect::Quit]);
    assert_eq!(app.exit_code, Some(0));

    for opening in [
        ReplayStart::from_speed(None),
        ReplayStart::from_speed(Some(0.0)),
    ] {
        let app = read_as(opening);
        assert_eq!(
            (replay(&app).shown_events, replay(&app).is_playing()),
            (13, false)
        );
    }
}

#[test]
fn unreadable_log_opens_no_replay() {
    let mut app = model(OpenedItem::Recording);
    let run = RunId("x-k3f9".to_owned());
    handle_replay_read(
        &mut app,
        run,
        "/r".into(),
        Err("no such run".into()),
        Vec::new(),
        OWN,
    );
    assert!(app.replay.is_none());
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert_eq!(
        (notice.level, notice.text.as_str()),
        (NoticeLevel::Error, "k3f9 cannot be replayed: no such run")
    );
}

#[test]
fn replay_from_cells_returns_to_them() {
    let mut app = replay_at(3);
    assert!(leave_replay(&mut app).is_empty());
    assert!(app.replay.is_none() && app.exit_code.is_none());
    assert!(open_focused_run(&mut app).is_empty(), "nothing is selected");
    let notice = app.notices.newest.as_ref().expect("it says so");
    assert_eq!(
        notice.text,
        "select a cell first: its run is what is replayed"
    );
}

/// Returns true for an effect that could reach a judge, a tool or a server, or that could change a file.
fn reaches_out(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::StartRun(_)
            | Effect::PreviewRun(_)
            | Effect::FindJudges { .. }
            | Effect::TryExamples { .. }
            | Effect::PreviewExamples { .. }
            | Effect::JudgeExamples { .. }
            | Effect::AllowSends { .. }
            | Effect::WriteLabel(_)
            | Effect::EditRubrics { .. }
            | Effect::MakeWorkspace { .. }
            | Effect::OpenEditor { .. }
    )
}

#[test]
fn no_key_of_a_replay_orders_a_call_or_a_write() {
    for spec in crate::tui::command::COMMANDS {
        let mut app = replay_at(9);
        // The keys also act on a selected row with a verdict.
        let effects = crate::tui::update::commands::run_command(&mut app, spec.command);
        let bad: Vec<&Effect> = effects
            .iter()
            .filter(|effect| reaches_out(effect))
            .collect();
        assert!(bad.is_empty(), "{}: {bad:?}", spec.id);
        let mut app = replay_at(9);
        let effects = crate::tui::update::update(&mut app, crate::tui::msg::Msg::TimePassed);
        assert!(!effects.iter().any(reaches_out), "{effects:?}");
    }
}

#[test]
fn end_of_cell_key_selects_the_cell_that_ended() {
    let mut app = replay_at(5);
    press(&mut app, UiCommand::StepCell);
    let replay = replay(&app);
    let last = replay.player.position() - 1;
    let EventKind::CellFinished { cell, .. } = &replay.player.log().outline()[last].kind else {
        panic!("a cell ends here");
    };
    let slot = replay.cell_slots[cell.index()].expect("a slot");
    assert_eq!(selected(&app), Some(CellsEntry::Row(slot.row)));
}
