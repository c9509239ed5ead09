use std::path::Path;
use std::sync::Arc;

use ratatui::layout::Size;

use crate::handlers::EvalTypeRegistry;
use crate::model::Millis;
use crate::run::CachePolicy;
use crate::theme::Theme;
use crate::tui::effect::Effect;
use crate::tui::msg::Msg;
use crate::tui::state::notices::NoticeLevel;
use crate::tui::state::overlay::Overlay;
use crate::tui::state::{App, OpenedItem};
use crate::tui::update::runs::build_workspace_order;
use crate::tui::update::update;
use crate::workspace::{Env, Workspace, load};

const CHECK: &str = "  - {id: c, type: contains, params: {patterns: [x]}}\n";
const SCRIPT: &str = "  - {id: s, type: script, params: {command: [./run.sh, a b]}}\n";
const SENDS: &str = "judges:\n  far: {provider: openai, model: m, base_url: 'https://far.example/v1', api_key_env: MY_KEY, prices: {input: 0, output: 0}}\n";

fn env(data: &Path) -> Env {
    let pairs = [
        ("DICTA_DATA_DIR", data.display().to_string()),
        ("MY_KEY", "a-secret-value".to_owned()),
    ];
    Env(pairs.map(|(name, value)| (name.to_owned(), value)).into())
}

/// Returns the workspace with these lines in dicta.yaml and these evals.
fn version(dir: &Path, config: &str, evals: &str) -> Arc<Workspace> {
    let write = |file: &str, text: String| {
        std::fs::write(dir.join(file), text).expect("a file");
    };
    write("t.jsonl", "{\"messages\":[]}\n".to_owned());
    write("r.yaml", format!("evals:\n{evals}"));
    write(
        "dicta.yaml",
        format!("transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\njudge: rules\n{config}"),
    );
    let loaded = load(dir, &env(dir), &EvalTypeRegistry::builtin());
    Arc::new(loaded.unwrap_or_else(|problems| panic!("{problems:?}")))
}

fn open(workspace: &Arc<Workspace>) -> App {
    let theme = Theme::bundled("dark").expect("a theme");
    let opened = OpenedItem::Workspace(Arc::clone(workspace));
    App::new(opened, Size::new(120, 40), theme)
}

fn reload(app: &mut App, workspace: &Arc<Workspace>) -> Vec<Effect> {
    let changed = ["dicta.yaml", "r.yaml"].map(Into::into).to_vec();
    let workspace = Arc::clone(workspace);
    update(app, Msg::Reloaded { workspace, changed })
}

fn press(app: &mut App, key: &str) -> Vec<Effect> {
    update(app, Msg::Key(key.parse().expect("a key")))
}

/// Returns the text of the open question.
fn question(app: &App) -> String {
    match app.overlays.last() {
        Some(Overlay::ConfirmTrust { question, .. }) => {
            let lines = question.to_blocks();
            let lines: Vec<String> = lines.iter().map(|line| line.text.to_string()).collect();
            lines.join("\n")
        }
        other => panic!("no question is open: {other:?}"),
    }
}

fn starts_something(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| {
        matches!(
            effect,
            Effect::StartRun(_) | Effect::TryExamples { .. } | Effect::PreviewRun(_)
        )
    })
}

#[test]
fn save_that_enables_scripts_waits_for_a_key_and_runs_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let before = version(dir.path(), "", CHECK);
    let mut app = open(&before);
    let after = version(dir.path(), "allow_scripts: true\n", SCRIPT);
    assert_eq!(reload(&mut app, &after), []);
    let text = question(&app);
    assert!(
        text.contains("run the programs of script evals (allow_scripts: true)"),
        "{text}"
    );
    assert!(
        text.contains("run, for the eval r/s: ./run.sh 'a b'"),
        "{text}"
    );
    assert_eq!(app.workspace(), Some(&before));
    // Time and a stray enter change nothing.
    app.now = Millis(60_000);
    assert!(!starts_something(&update(&mut app, Msg::TimePassed)));
    assert!(!starts_something(&press(&mut app, "enter")));
    assert!(
        !starts_something(&press(&mut app, "y")),
        "y copies elsewhere"
    );
    let notice = app.notices.newest.as_ref().map(|notice| &*notice.text);
    assert!(
        notice.is_some_and(|text| text.contains("Y allows it")),
        "{notice:?}"
    );
    assert_eq!(app.workspace(), Some(&before));
    let effects = press(&mut app, "Y");
    assert!(starts_something(&effects), "{effects:?}");
    assert_eq!(app.workspace(), Some(&after));
    assert!(app.overlays.is_empty());
}

#[test]
fn refused_save_keeps_the_last_allowed_workspace_until_a_later_save() {
    for key in ["n", "esc", "q", "ctrl-c"] {
        let dir = tempfile::tempdir().expect("a folder");
        let before = version(dir.path(), "", CHECK);
        let mut app = open(&before);
        let after = version(dir.path(), SENDS, CHECK);
        reload(&mut app, &after);
        let text = question(&app);
        assert!(
            text.contains("send MY_KEY to https://far.example"),
            "{text}"
        );
        assert!(!starts_something(&press(&mut app, key)), "{key}");
        assert_eq!(app.workspace(), Some(&before), "{key}");
        assert!(app.overlays.is_empty(), "{key}");
        // The next save asks again; one without the judge does not.
        reload(&mut app, &after);
        question(&app);
        let harmless = version(dir.path(), "allow_scripts: false\n", CHECK);
        reload(&mut app, &harmless);
        assert!(app.overlays.is_empty(), "{key}");
        assert_eq!(app.workspace(), Some(&harmless), "{key}");
    }
}

#[test]
fn key_does_not_accept_a_question_that_just_replaced_another_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let on = "allow_scripts: true\n";
    let before = version(dir.path(), "", CHECK);
    let mut app = open(&before);
    reload(&mut app, &version(dir.path(), on, SCRIPT));
    app.now = Millis(60_000);
    let other = version(dir.path(), on, &SCRIPT.replace("a b", "c"));
    reload(&mut app, &other);
    // The user read the question about the first command.
    assert!(!starts_something(&press(&mut app, "Y")));
    assert_eq!(app.workspace(), Some(&before));
    assert!(question(&app).contains("./run.sh c"), "{}", question(&app));
    let notice = app.notices.newest.as_ref().map(|notice| &*notice.text);
    assert!(
        notice.is_some_and(|text| text.contains("the question changed")),
        "{notice:?}"
    );
    // A save without a new permission leaves the question as it is.
    app.now = Millis(61_000);
    reload(&mut app, &other);
    assert!(starts_something(&press(&mut app, "Y")));
    assert_eq!(app.workspace(), Some(&other));
}

#[test]
fn changed_command_asks_and_a_known_one_does_not() {
    let dir = tempfile::tempdir().expect("a folder");
    let on = "allow_scripts: true\n";
    let before = version(dir.path(), on, SCRIPT);
    let mut app = open(&before);
    let other = SCRIPT.replace("a b", "c");
    reload(&mut app, &version(dir.path(), on, &other));
    let text = question(&app);
    assert!(text.contains("./run.sh c"), "{text}");
    assert!(!text.contains("allow_scripts"), "it was on before: {text}");
    press(&mut app, "Y");
    // An undo, another name and new params run no new command.
    let renamed = SCRIPT.replace("id: s", "id: t");
    reload(&mut app, &version(dir.path(), on, &renamed));
    assert!(app.overlays.is_empty());
}

#[test]
fn allowed_address_is_recorded_before_anything_runs() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut app = open(&version(dir.path(), "", CHECK));
    reload(&mut app, &version(dir.path(), SENDS, CHECK));
    let effects = press(&mut app, "Y");
    let Some(Effect::AllowSends { sends, .. }) = effects.first() else {
        panic!("{effects:?}");
    };
    assert_eq!(sends.len(), 1);
    assert_eq!(sends[0].to_string(), "send MY_KEY to https://far.example");
}

#[test]
fn question_about_a_run_hides_the_notice_that_it_judges() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut app = open(&version(dir.path(), "", CHECK));
    reload(&mut app, &version(dir.path(), SENDS, CHECK));
    let effects = press(&mut app, "Y");
    let Some(Effect::AllowSends { sends, .. }) = effects.into_iter().next() else {
        panic!("no address is allowed");
    };
    let order = build_workspace_order(&mut app, None, None, CachePolicy::Use, None);
    let order = Box::new(order.expect("a workspace"));
    app.notices
        .push(app.now, NoticeLevel::Info, "judging 1 cell");
    update(&mut app, Msg::RunUnconfirmed { order, sends });
    assert!(question(&app).contains("send MY_KEY"), "{}", question(&app));
    assert_eq!(app.notices.toast(app.now), None);
}

#[test]
fn opening_a_workspace_starts_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let tail = format!("allow_scripts: true\n{SENDS}");
    let mut app = open(&version(dir.path(), &tail, SCRIPT));
    let effects = crate::tui::update::request_initial_data(&mut app);
    let starts = effects
        .iter()
        .any(|effect| matches!(effect, Effect::StartRun(_) | Effect::PreviewRun(_)));
    assert!(!starts, "{effects:?}");
    app.now = Millis(60_000);
    assert_eq!(update(&mut app, Msg::TimePassed), []);
}
