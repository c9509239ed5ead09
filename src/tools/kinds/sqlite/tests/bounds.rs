//! The limits of statements: forbidden actions, time, and size.

use super::*;

#[tokio::test]
async fn read_only_source_refuses_changes_and_other_files() {
    let world = world();
    let before = fs::read(world.folder.path().join("r.db")).unwrap();
    let other = world.folder.path().join("other.db").display().to_string();
    let reading = "is not allowed: the source is read-only (`writable: true` opens it)";
    for (statement, why) in [
        (
            "INSERT INTO notes VALUES (1, 'x')",
            format!("INSERT into notes {reading}"),
        ),
        (
            "UPDATE releases SET stars = 0",
            format!("UPDATE of releases {reading}"),
        ),
        (
            "DELETE FROM releases",
            format!("DELETE from releases {reading}"),
        ),
        (
            "WITH d AS (SELECT 1) DELETE FROM releases RETURNING *",
            format!("DELETE from releases {reading}"),
        ),
        (
            "REPLACE INTO notes VALUES (1, 'x')",
            format!("INSERT into notes {reading}"),
        ),
        (
            "CREATE TABLE more (x)",
            format!("a change of the schema {reading}"),
        ),
        (
            "CREATE TEMP TABLE more (x)",
            format!("a change of the schema {reading}"),
        ),
        (
            "DROP TABLE notes",
            format!("a change of the schema {reading}"),
        ),
        (
            "ALTER TABLE notes RENAME TO n",
            format!("a change of the schema {reading}"),
        ),
        ("REINDEX", String::new()),
        ("ANALYZE", String::new()),
        ("VACUUM", String::new()),
        (&format!("VACUUM INTO '{other}'"), String::new()),
        (
            &format!("ATTACH '{other}' AS o"),
            "ATTACH (or VACUUM) is not allowed".to_owned(),
        ),
        (
            "PRAGMA writable_schema = on",
            "PRAGMA writable_schema is not allowed".to_owned(),
        ),
        (
            "PRAGMA user_version = 7",
            "PRAGMA user_version is not allowed".to_owned(),
        ),
        (
            "PRAGMA query_only = off",
            "PRAGMA query_only is not allowed".to_owned(),
        ),
        (
            "PRAGMA journal_mode = delete",
            "PRAGMA journal_mode is not allowed".to_owned(),
        ),
        (
            "SELECT load_extension('/tmp/x.so')",
            "load_extension() is not allowed".to_owned(),
        ),
        (
            "SELECT LOAD_EXTENSION('/tmp/x.so')",
            "load_extension() is not allowed".to_owned(),
        ),
        (
            "BEGIN",
            "BEGIN, COMMIT, ROLLBACK or SAVEPOINT is not allowed".to_owned(),
        ),
        (
            "SELECT 1; SELECT 2",
            "one statement a tool, not several".to_owned(),
        ),
    ] {
        let answer = world.call("", statement, &json!({})).await;
        assert!(
            answer.is_error && !answer.transient,
            "{statement}: {}",
            answer.text
        );
        if !why.is_empty() {
            assert_eq!(answer.text, format!("Error: {why}"), "{statement}");
        }
    }
    assert_eq!(fs::read(world.folder.path().join("r.db")).unwrap(), before);
    let left = fs::read_dir(world.folder.path()).unwrap().count();
    assert_eq!(left, 1, "no other file came to be");
}

#[tokio::test]
async fn writable_source_allows_changes_but_no_other_files() {
    let world = world();
    let keys = "writable: true\n";
    let done = world
        .call(
            keys,
            "INSERT INTO notes (text) VALUES ($1), ('b')",
            &json!({"t": "a"}),
        )
        .await;
    assert_eq!(
        (done.text.as_str(), done.is_error),
        ("2 rows changed", false)
    );
    let back = "INSERT INTO notes (text) VALUES ('c') RETURNING id";
    assert_eq!(
        world.call(keys, back, &json!({})).await.text,
        "[\n  {\"id\": 3}\n]"
    );
    assert_eq!(
        world.one("SELECT count(*) AS x FROM notes", "{}").await,
        "3"
    );
    let source = world.source(keys);
    assert!(source.is_writable() && source.badge().unwrap().contains("r.db may be written to"));
    assert!(!tool_of(source, back, &[]).is_read_only());
    for statement in [
        "ATTACH ':memory:' AS o",
        "PRAGMA writable_schema = on",
        "SELECT load_extension('x')",
        "UPDATE sqlite_schema SET sql = ''",
        "VACUUM INTO 'o.db'",
        "COMMIT",
    ] {
        let answer = world.call(keys, statement, &json!({})).await;
        assert!(answer.is_error, "{statement}: {}", answer.text);
    }
}

#[tokio::test]
async fn rows_and_bytes_are_limited_while_reading() {
    let world = world();
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let answer = world.call("", endless, &json!({})).await;
    assert_eq!(
        answer.text,
        "[\n  {\"i\": 1},\n  {\"i\": 2},\n  {\"i\": 3}\n]\n\n[truncated at 3 rows]"
    );
    assert!(answer.truncated);
    let long = world
        .call("", "SELECT hex(zeroblob(40000)) AS x", &json!({}))
        .await;
    assert!(
        long.truncated && long.text.len() < 50_100,
        "{}",
        long.text.len()
    );
    assert!(long.text.ends_with("[truncated at 50000 bytes]"));
    let huge = world
        .call("", "SELECT zeroblob(100000000) AS x", &json!({}))
        .await;
    assert_eq!(huge.text, "Error: string or blob too big");
}

/// Counts for ever without a row.
const FOR_EVER: &str =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

#[tokio::test]
async fn endless_statement_is_interrupted_at_timeout() {
    let world = world();
    let none = json!({});
    let call = world.call("timeout: 2s\n", FOR_EVER, &none);
    let later = async {
        while world.clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.clock.next_wake(), Some(Millis(2000)));
        world.clock.advance(Millis(2000));
    };
    // That the test ends is the proof that SQLite stopped: a runtime waits for its blocking threads.
    let (answer, ()) = tokio::join!(call, later);
    assert_eq!(answer.text, "Error: the statement was stopped after 2 s");
    assert!(answer.is_error && answer.transient);
}

#[test]
fn wait_for_a_free_thread_is_no_part_of_the_timeout() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (release, blocked) = std::sync::mpsc::channel::<()>();
    runtime.spawn_blocking(move || blocked.recv());
    runtime.block_on(async {
        let world = world();
        let none = json!({});
        let call = world.call("timeout: 2s\n", "SELECT 1 AS one", &none);
        let later = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(world.clock.next_wake(), None, "no limit runs yet");
            drop(release);
        };
        let (answer, ()) = tokio::join!(call, later);
        assert!(!answer.is_error, "{}", answer.text);
    });
}

#[tokio::test]
async fn cancelled_and_dropped_calls_are_interrupted() {
    let world = world();
    let none = json!({});
    world.cancel.cancel();
    let answer = world.call("", FOR_EVER, &none).await;
    assert_eq!(answer.text, "Error: the call was cancelled");
    let other = World {
        cancel: CancellationToken::new(),
        ..world
    };
    let call = other.call("", FOR_EVER, &none);
    let started = async {
        while other.clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = call => panic!("it never ends"),
        () = started => {}
    }
}

#[tokio::test]
async fn locked_file_is_a_transient_failure() {
    let world = world();
    let holder = rusqlite::Connection::open(world.folder.path().join("r.db")).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let answer = world.call("", "SELECT * FROM notes", &json!({})).await;
    assert_eq!(answer.text, "Error: database is locked");
    assert!(answer.transient);
}
