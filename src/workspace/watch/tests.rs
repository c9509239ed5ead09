//! Tests with the real file system and the real watcher. Only a test moves the clock, so no test is slow, and a test
//! waits until the watcher itself waits.

use std::fs;
use std::path::Path;

use super::*;
use crate::clock::FakeClock;
use crate::handlers::EvalTypeRegistry;
use crate::workspace::load;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

struct WatchTest {
    dir: tempfile::TempDir,
    clock: FakeClock,
    watcher: WorkspaceWatcher,
    events: UnboundedReceiver<WatchEvent>,
}

const CONFIG_TEXT: &str =
    "transcripts: [t.jsonl]\nrubrics: ['rubrics/*.yaml']\njudge: rules\nruns: runs\n";

fn rubric(number: usize) -> String {
    format!(
        "evals:\n  - id: says\n    type: contains\n    params: {{ patterns: [word{number}] }}\n"
    )
}

fn env() -> Env {
    Env::default()
}

fn catalog() -> Arc<dyn EvalTypeCatalog> {
    Arc::new(EvalTypeRegistry::builtin())
}

fn loaded(root: &Path) -> Arc<Workspace> {
    Arc::new(load(root, &env(), &*catalog()).expect("the workspace loads"))
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders");
    fs::write(path, text).expect("a file");
}

impl WatchTest {
    fn files() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        let root = dir.path().join("w");
        write(&root, "dicta.yaml", CONFIG_TEXT);
        write(&root, "rubrics/beam.yaml", &rubric(0));
        let line = r#"{"id":"a","messages":[{"role":"assistant","content":"word1"}]}"#;
        write(&root, "t.jsonl", &format!("{line}\n"));
        dir
    }

    fn new() -> Self {
        let dir = Self::files();
        let good = loaded(&dir.path().join("w"));
        Self::over(dir, Some(good))
    }

    fn over(dir: tempfile::TempDir, good: Option<Arc<Workspace>>) -> Self {
        let clock = FakeClock::new();
        let (tell, events) = unbounded_channel();
        let watch = WatchParams {
            root: runs_root(&dir),
            last_good: good,
            env: env(),
            catalog: catalog(),
            clock: Arc::new(clock.clone()),
        };
        let watcher = WorkspaceWatcher::start(watch, move |event| tell.send(event).is_ok());
        Self {
            dir,
            clock,
            watcher,
            events,
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        runs_root(&self.dir).join(file)
    }

    /// Waits until the watcher doubts a change and waits itself.
    async fn waits(&self) {
        while self.clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
    }

    async fn event(&mut self) -> WatchEvent {
        self.events.recv().await.expect("the watcher lives")
    }

    /// Waits until the watcher reports the beam rubric with this text. No problem may be reported meanwhile.
    async fn applies(&mut self, text: &str) -> Vec<PathBuf> {
        loop {
            match self.event().await {
                WatchEvent::Reloaded { workspace, changed } => {
                    let rubrics = &workspace.rubrics;
                    if rubrics.iter().any(|rubric| &*rubric.source == text) {
                        return changed;
                    }
                }
                other => panic!("only reloads were expected: {other:?}"),
            }
        }
    }

    async fn fails(&mut self) -> Vec<String> {
        match self.event().await {
            WatchEvent::Failed(problems) => problems.iter().map(ToString::to_string).collect(),
            other => panic!("a failure was expected: {other:?}"),
        }
    }
}

fn runs_root(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().canonicalize().expect("it is there").join("w")
}

#[tokio::test]
async fn save_by_rename_is_noticed() {
    let mut watch_test = WatchTest::new();
    for number in 1..=10 {
        write(&watch_test.path(""), ".tmp", &rubric(number));
        fs::rename(
            watch_test.path(".tmp"),
            watch_test.path("rubrics/beam.yaml"),
        )
        .expect("renamed");
        let changed = watch_test.applies(&rubric(number)).await;
        assert_eq!(changed, [PathBuf::from("rubrics/beam.yaml")]);
    }
}

#[tokio::test]
async fn partial_save_is_noticed_and_is_not_an_error() {
    let mut watch_test = WatchTest::new();
    for number in 1..=10 {
        write(&watch_test.path(""), "rubrics/beam.yaml", "");
        watch_test.waits().await;
        watch_test.clock.advance(Millis(150));
        write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(number));
        watch_test.applies(&rubric(number)).await;
    }
}

#[tokio::test]
async fn save_in_several_writes_loads_the_final_content() {
    use std::io::Write as _;
    let mut watch_test = WatchTest::new();
    for number in 1..=10 {
        let text = rubric(number);
        let mut file = fs::File::create(watch_test.path("rubrics/beam.yaml")).expect("a file");
        for piece in text.as_bytes().chunks(17) {
            file.write_all(piece).expect("written");
            // The watcher may see any prefix of the text, or nothing.
            tokio::task::yield_now().await;
        }
        drop(file);
        watch_test.applies(&text).await;
    }
}

#[tokio::test]
async fn save_with_a_backup_file_is_one_reload() {
    let mut watch_test = WatchTest::new();
    for number in 1..=10 {
        let (file, backup) = (
            watch_test.path("rubrics/beam.yaml"),
            watch_test.path("rubrics/beam.yaml~"),
        );
        fs::rename(&file, &backup).expect("renamed");
        watch_test.waits().await;
        fs::write(&file, rubric(number)).expect("written");
        fs::remove_file(&backup).expect("removed");
        watch_test.applies(&rubric(number)).await;
    }
}

#[tokio::test]
async fn broken_save_is_reported_after_the_debounce_and_recovers() {
    let mut watch_test = WatchTest::new();
    write(
        &watch_test.path(""),
        "rubrics/beam.yaml",
        "evals:\n  - id: [\n",
    );
    watch_test.waits().await;
    watch_test.clock.advance(Millis(199));
    assert!(watch_test.events.try_recv().is_err(), "told too early");
    watch_test.clock.advance(Millis(1));
    let problems = watch_test.fails().await;
    assert!(
        problems[0].starts_with("rubrics/beam.yaml:"),
        "{problems:?}"
    );
    // The content is as before, so nothing changed. The watcher reports that.
    write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(0));
    assert_eq!(watch_test.applies(&rubric(0)).await, Vec::<PathBuf>::new());
    write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(1));
    watch_test.applies(&rubric(1)).await;
}

#[tokio::test]
async fn a_new_rubric_and_a_new_folder_are_seen() {
    let mut watch_test = WatchTest::new();
    write(&watch_test.path(""), "rubrics/new.yaml", &rubric(7));
    assert_eq!(
        watch_test.applies(&rubric(7)).await,
        [PathBuf::from("rubrics/new.yaml")]
    );
    // The folder is removed and created again: it is a new folder and needs a new watch.
    for number in 1..=3 {
        fs::remove_dir_all(watch_test.path("rubrics")).expect("removed");
        watch_test.waits().await;
        write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(number));
        // The other rubric is really gone; the watcher accepts that after the quiet time.
        if number == 1 {
            watch_test.waits().await;
        }
        loop {
            watch_test.clock.advance(Millis(200));
            tokio::task::yield_now().await;
            match watch_test.events.try_recv() {
                Ok(WatchEvent::Reloaded { workspace, .. })
                    if &*workspace.rubrics[0].source == rubric(number).as_str() =>
                {
                    break;
                }
                // Between the two changes the workspace had no rubric, and time went on.
                Ok(_) | Err(_) => {}
            }
        }
    }
}

#[tokio::test]
async fn save_before_the_first_check_is_found() {
    let dir = WatchTest::files();
    let good = loaded(&dir.path().join("w"));
    write(&dir.path().join("w"), "rubrics/beam.yaml", &rubric(3));
    let mut watch_test = WatchTest::over(dir, Some(good));
    watch_test.applies(&rubric(3)).await;
}

#[tokio::test]
async fn workspace_that_never_loaded_loads_after_a_fix() {
    let dir = WatchTest::files();
    write(&dir.path().join("w"), "dicta.yaml", "rubrics: [\n");
    let mut watch_test = WatchTest::over(dir, None);
    watch_test.waits().await;
    watch_test.clock.advance(Millis(200));
    watch_test.fails().await;
    write(&watch_test.path(""), "dicta.yaml", CONFIG_TEXT);
    watch_test.applies(&rubric(0)).await;
}

#[tokio::test]
async fn unwatchable_files_are_polled_each_second() {
    let dir = WatchTest::files();
    let root = runs_root(&dir);
    let clock = FakeClock::new();
    let (tell, mut events) = unbounded_channel();
    let ear = Arc::new(ChangeInbox::default());
    let worker = WatchWorker {
        params: WatchParams {
            root: root.clone(),
            last_good: Some(loaded(&root)),
            env: env(),
            catalog: catalog(),
            clock: Arc::new(clock.clone()),
        },
        good_fingerprints: None,
        debouncer: ReloadDebouncer::default(),
        scope: WatchScope::default(),
        referenced: Vec::new(),
        watches: None,
        is_polling: true,
        retry_at: None,
        inbox: Arc::clone(&ear),
    };
    let watching = tokio::spawn(run_worker(worker, move |event| tell.send(event).is_ok()));
    for number in 1..=3 {
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        write(&root, "rubrics/beam.yaml", &rubric(number));
        clock.advance(POLL_INTERVAL);
        let Some(WatchEvent::Reloaded { workspace, .. }) = events.recv().await else {
            panic!("a reload was expected");
        };
        assert_eq!(&*workspace.rubrics[0].source, rubric(number).as_str());
    }
    watching.abort();
}

#[tokio::test]
async fn requested_check_finds_changes_without_a_notification() {
    let mut watch_test = WatchTest::new();
    watch_test.watcher.check_now();
    write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(1));
    watch_test.watcher.check_now();
    watch_test.applies(&rubric(1)).await;
}

const BY_FILE: &str = "evals:
  - { id: says, type: llm_judge, params: { criteria: ../guides/tone.md } }
";

#[tokio::test]
async fn files_named_by_a_rubric_are_watched() {
    let dir = WatchTest::files();
    write(&runs_root(&dir), "rubrics/beam.yaml", BY_FILE);
    write(&runs_root(&dir), "guides/tone.md", "Polite");
    let good = loaded(&runs_root(&dir));
    let guide = PathBuf::from("guides/tone.md");
    assert!(good.files.iter().any(|file| file.path == guide), "kept");
    let mut watch_test = WatchTest::over(dir, Some(good));
    for criteria in ["Concrete", "Short"] {
        write(&watch_test.path(""), "guides/tone.md", criteria);
        loop {
            let WatchEvent::Reloaded { workspace, changed } = watch_test.event().await else {
                panic!("only reloads were expected");
            };
            if workspace.rubrics[0].evals[0].params["criteria"] == criteria {
                assert_eq!(changed, std::slice::from_ref(&guide));
                break;
            }
        }
    }
    fs::remove_file(watch_test.path("guides/tone.md")).expect("it is there");
    watch_test.waits().await;
    watch_test.clock.advance(Millis(200));
    let why = watch_test.fails().await;
    assert!(
        why[0].contains("`../guides/tone.md` does not exist"),
        "{why:?}"
    );
    write(&watch_test.path(""), "guides/tone.md", "Again");
    let WatchEvent::Reloaded { workspace, .. } = watch_test.event().await else {
        panic!("a reload was expected");
    };
    assert_eq!(workspace.rubrics[0].evals[0].params["criteria"], "Again");
    let kept = crate::rubric::SnapshotFiles(workspace.files.clone());
    let now = &workspace.rubrics[0];
    let source = Arc::clone(&now.source);
    let (then, _) = crate::rubric::load_with_files(source, &now.path, &*catalog(), &kept);
    assert_eq!(
        then.as_ref(),
        Some(&**now),
        "a run that is taken up again reads the same"
    );
}

#[tokio::test]
async fn missing_rubric_of_a_plain_path_loads_when_it_returns() {
    let dir = WatchTest::files();
    let config = CONFIG_TEXT.replace("'rubrics/*.yaml'", "rubrics/beam.yaml");
    write(&runs_root(&dir), "dicta.yaml", &config);
    let good = loaded(&runs_root(&dir));
    let mut watch_test = WatchTest::over(dir, Some(good));
    fs::remove_file(watch_test.path("rubrics/beam.yaml")).expect("it is there");
    watch_test.waits().await;
    watch_test.clock.advance(Millis(200));
    let why = watch_test.fails().await;
    assert!(
        why[0].contains("`rubrics/beam.yaml` does not exist"),
        "{why:?}"
    );
    write(&watch_test.path(""), "rubrics/beam.yaml", &rubric(1));
    watch_test.applies(&rubric(1)).await;
}

#[tokio::test]
async fn joined_file_of_a_mapping_is_watched() {
    let dir = WatchTest::files();
    let root = runs_root(&dir);
    let config = CONFIG_TEXT.replace(
        "[t.jsonl]",
        "[{path: t.jsonl, map: {join: {path: q.jsonl, on: id}, input: joined.text, output: id}}]",
    );
    write(&root, "dicta.yaml", &config);
    write(&root, "q.jsonl", "{\"id\":\"a\",\"text\":\"one\"}\n");
    let good = loaded(&root);
    let mut watch_test = WatchTest::over(dir, Some(good));
    // The loaded workspace keeps no text of the file, so the first check reports the state that it found.
    match watch_test.event().await {
        WatchEvent::Reloaded { changed, .. } => assert_eq!(changed, Vec::<PathBuf>::new()),
        other => panic!("a reload was expected: {other:?}"),
    }
    for text in ["two", "three"] {
        write(
            &root,
            "q.jsonl",
            &format!("{{\"id\":\"a\",\"text\":\"{text}\"}}\n"),
        );
        // A check in the middle of the write sees an empty file, and waits.
        let event = loop {
            tokio::select! {
                event = watch_test.events.recv() => break event,
                () = tokio::task::yield_now() => watch_test.clock.advance(Millis(200)),
            }
        };
        let Some(WatchEvent::Reloaded { changed, .. }) = event else {
            panic!("only reloads were expected: {event:?}");
        };
        assert_eq!(changed, [PathBuf::from("q.jsonl")], "{text}");
    }
}

#[tokio::test]
async fn broken_tools_file_keeps_the_last_good_workspace() {
    let dir = WatchTest::files();
    let root = dir.path().join("w");
    write(&root, "dicta.yaml", &format!("{CONFIG_TEXT}tools: tools\n"));
    let file = |says: &str| {
        format!(
            "sources: {{s: {{kind: echo}}}}\ntools:\n  t: {{kind: echo, source: s, description: {says}, says: x}}\n"
        )
    };
    write(&root, "tools/a.yaml", &file("one"));
    let good = loaded(&root);
    let mut watch_test = WatchTest::over(dir, Some(good));
    write(&root, "tools/a.yaml", &file("two"));
    let WatchEvent::Reloaded { workspace, changed } = watch_test.event().await else {
        panic!("it reloads");
    };
    assert_eq!(changed, [PathBuf::from("tools/a.yaml")]);
    assert_eq!(workspace.tools.tools["t"].decl.description, "two");
    write(
        &root,
        "tools/b.yaml",
        "tools: {u: {kind: echo, source: z}}\n",
    );
    watch_test.waits().await;
    watch_test.clock.advance(Millis(200));
    let problems = watch_test.fails().await;
    assert!(problems[0].starts_with("tools/b.yaml:1:"), "{problems:?}");
}
