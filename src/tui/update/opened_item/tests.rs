use ratatui::layout::Size;

use super::*;
use crate::handlers::EvalTypeRegistry;
use crate::model::{Digest, TranscriptRef};
use crate::theme::Theme;
use crate::tui::msg::MadeWorkspace;
use crate::workspace::{Env, load};

fn model(place: OpenedItem) -> App {
    let theme = Theme::bundled("dark").expect("bundled");
    App::new(place, Size::new(120, 40), theme)
}

fn found(id: &str) -> TranscriptRef {
    TranscriptRef {
        part: 0,
        id: id.to_owned(),
        path: "/t.jsonl".into(),
        offset: 0,
        len: 2,
        digest: Digest::hash_bytes(id.as_bytes()),
    }
}

fn app_with_file() -> App {
    let mut app = model(OpenedItem::TranscriptFile("/t.jsonl".into()));
    let effects = request_initial_data(&mut app);
    assert!(
        matches!(&effects[..], [Effect::ListTranscripts { file, after: 0 }] if file.ends_with("t.jsonl"))
    );
    app
}

fn batch(app: &mut App, batch: ListingUpdate) {
    assert!(handle_listed(app, Path::new("/t.jsonl"), batch).is_empty());
}

fn last(app: &App) -> (NoticeLevel, &str) {
    let notice = app.notices.newest.as_ref().expect("it says so");
    (notice.level, &notice.text)
}

fn starter() -> (tempfile::TempDir, Arc<Workspace>) {
    let dir = tempfile::tempdir().expect("a folder");
    crate::workspace::init(dir.path()).expect("written");
    let workspace =
        load(dir.path(), &Env::default(), &EvalTypeRegistry::builtin()).expect("it loads");
    (dir, Arc::new(workspace))
}

#[test]
fn opened_workspace_is_watched_and_outlined() {
    let (_dir, workspace) = starter();
    let mut app = model(OpenedItem::Workspace(workspace));
    let effects = request_initial_data(&mut app);
    assert!(matches!(
        &effects[..],
        [
            Effect::TryExamples { judged, .. },
            Effect::WatchWorkspace(_),
            Effect::CheckKeys(_),
            Effect::ComputeOutline { generation: 1, .. },
            Effect::ReadNewestVerdicts { generation: 1, .. },
            Effect::ReadEdit { .. }
        ] if judged.is_empty()
    ));
    assert_eq!(app.notices.log, Vec::new());
}

#[test]
fn demo_notice_names_its_folder() {
    let (_dir, workspace) = starter();
    let mut demo = (*workspace).clone();
    demo.is_demo = true;
    demo.root = "/data/demo\u{1b}[2J".into();
    let mut app = model(OpenedItem::Workspace(Arc::new(demo)));
    request_initial_data(&mut app);
    let expected_notice = "this is the demo, unpacked at /data/demo␛[2J (yours to edit)";
    assert_eq!(last(&app), (NoticeLevel::Info, expected_notice));
}

#[test]
fn file_is_listed_by_pages_with_unique_ids() {
    let mut app = app_with_file();
    let page = ListingUpdate {
        refs: vec![found("a"), found("a")],
        counted: 5000,
        page_complete: true,
        ..ListingUpdate::default()
    };
    batch(&mut app, page);
    let cells = &app.live_session.cells;
    assert_eq!(
        (cells.shown.len(), cells.total.rows),
        (3, 2),
        "a group and its rows"
    );
    assert_eq!(cells.list.selected.as_ref(), cells.shown.get(1));
    let more = list_more_if_needed(&mut app);
    assert!(matches!(
        &more[..],
        [Effect::ListTranscripts { after: 2, .. }]
    ));
    assert!(list_more_if_needed(&mut app).is_empty(), "once");
    let second = ListingUpdate {
        refs: vec![found("a"), found("b")],
        bad: 1,
        why: Some("record 4: no messages".to_owned()),
        counted: 5,
        page_complete: true,
        fully_counted: true,
        not_understood: Some("of the file's 9 records 1 was\u{1b} odd".to_owned()),
        ..ListingUpdate::default()
    };
    batch(&mut app, second);
    let (fresh, changed) = app.opened_file.ids.make_unique("a".to_owned());
    assert_eq!((fresh.as_str(), changed), ("a~4", true));
    assert_eq!(
        (
            app.opened_file.listed_records,
            app.opened_file.counted_records
        ),
        (5, 5000)
    );
    assert_eq!(
        last(&app).1,
        "5000 records, 1 of them could not be read, some records not understood (L says which); V reads and notes them first, W creates a workspace with a first rubric"
    );
}

#[test]
fn hint_to_read_first_stays_away_from_the_reading_screen() {
    for is_reading in [false, true] {
        let mut app = app_with_file();
        app.review.open = is_reading;
        let whole = ListingUpdate {
            refs: vec![found("a")],
            counted: 1,
            page_complete: true,
            fully_counted: true,
            ..ListingUpdate::default()
        };
        batch(&mut app, whole);
        let newest = app.notices.newest.as_ref();
        let hints = newest.is_some_and(|notice| notice.text.contains("V reads and notes"));
        assert_eq!(hints, !is_reading);
    }
}

#[test]
fn unreadable_file_shows_reason_and_gets_no_workspace() {
    let mut app = app_with_file();
    let nothing = ListingUpdate {
        page_complete: true,
        fully_counted: true,
        problem: Some("/t.jsonl holds no transcripts: it is empty".to_owned()),
        ..ListingUpdate::default()
    };
    batch(&mut app, nothing);
    let why = "/t.jsonl holds no transcripts: it is empty";
    assert_eq!(last(&app), (NoticeLevel::Error, why));
    assert!(make_workspace(&mut app).is_empty());
    assert!(last(&app).1.ends_with(why));
}

#[test]
fn created_workspace_opens_with_notice() {
    let (_dir, workspace) = starter();
    let root = workspace.root.display().to_string();
    let mut app = app_with_file();
    let effects = make_workspace(&mut app);
    assert!(matches!(&effects[..], [Effect::MakeWorkspace { .. }]));
    let effects = handle_workspace_made(
        &mut app,
        Ok(MadeWorkspace {
            workspace,
            is_new: true,
        }),
    );
    assert_eq!(effects.len(), 6);
    assert!(matches!(app.opened, OpenedItem::Workspace(_)));
    let expected_notice =
        format!("made a workspace in {root}: R judges it, e edits its first rubric");
    assert_eq!(last(&app), (NoticeLevel::Info, expected_notice.as_str()));
    handle_workspace_made(&mut app, Err("no room".into()));
    assert_eq!(last(&app), (NoticeLevel::Error, "no room"));
    assert!(make_workspace(&mut app).is_empty());
}
