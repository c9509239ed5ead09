use std::fmt::Write as _;

use serde_json::{Value, json};

use super::*;
use crate::transcript::TranscriptFile;

fn create(name: &str, sql: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let connection = Connection::open(&path).expect("a database");
    connection.execute_batch(sql).expect("it runs");
    (folder, path)
}

fn promptfoo_sql() -> String {
    let mut sql = "CREATE TABLE evals (id TEXT); CREATE TABLE eval_results (id TEXT PRIMARY KEY NOT NULL, created_at INTEGER, \
        eval_id TEXT, prompt_idx INTEGER, test_idx INTEGER, test_case TEXT, prompt TEXT, prompt_id TEXT, provider TEXT, \
        latency_ms INTEGER, cost REAL, response TEXT, error TEXT, success INTEGER, score REAL, grading_result TEXT, \
        named_scores TEXT, metadata TEXT);"
        .to_owned();
    for n in 0..70 {
        let pass = n % 2 == 0;
        let grading = json!({"pass": pass, "score": 1, "reason": "r", "componentResults": [
            {"pass": pass, "score": 1, "reason": "r", "assertion": {"type": "contains", "value": "a"}}]});
        let values = [
            json!({"vars": {"word": format!("w{n}")}}).to_string(),
            json!({"raw": format!("Say w{n}"), "label": "Say"}).to_string(),
            json!({"id": "echo"}).to_string(),
            json!({"output": format!("it''s w{n}")}).to_string(),
            grading.to_string(),
        ];
        let [test, prompt, provider, response, grading] = values;
        let _infallible = write!(
            sql,
            "INSERT INTO eval_results (id, prompt_idx, test_idx, test_case, prompt, provider, latency_ms, cost, response, success, score, grading_result) \
             VALUES ('r{n}', 0, {n}, '{test}', '{prompt}', '{provider}', 12, 0.5, '{response}', {}, 1.0, '{grading}');",
            u8::from(pass)
        );
    }
    sql
}

fn read(path: &Path) -> Vec<Value> {
    let mut file = TranscriptFile::open(path).unwrap_or_else(|why| panic!("{why}"));
    let mut all = Vec::new();
    while let Some(block) = file.next_block().expect("a block") {
        for (record, bytes) in block.records() {
            assert_eq!(record.fault, None);
            assert_eq!(file.read_native(record.span).expect("again"), bytes);
            assert!(!file.read_raw(record.span).expect("raw").is_empty());
            all.push(serde_json::from_slice(bytes).expect("JSON"));
        }
    }
    let tally = file.tally().expect("counts");
    assert_eq!(tally.unknown_count(), 0, "{tally:?}");
    all
}

#[test]
fn results_of_promptfoo_are_those_of_its_files() {
    let (folder, path) = create("promptfoo.db", &promptfoo_sql());
    let all = read(&path);
    assert_eq!(all.len(), 70);
    assert_eq!(all[1]["id"], "r1");
    assert_eq!(all[1]["messages"][0]["content"], "Say w1");
    assert_eq!(all[1]["messages"][1]["content"], "it's w1");
    assert_eq!(all[1]["metadata"]["vars"], json!({"word": "w1"}));
    assert_eq!(all[1]["verdicts"][0]["eval"], "contains");
    assert_eq!(all[1]["verdicts"][0]["passed"], false);
    let files = std::fs::read_dir(folder.path()).expect("the folder");
    assert_eq!(files.count(), 1, "SQLite creates no file");
}

#[test]
fn older_evals_of_promptfoo_have_all_results_in_one_value() {
    let result = |n: u8| {
        json!({"prompt": {"raw": format!("Say w{n}"), "label": "Say"}, "vars": {"word": format!("w{n}")},
        "response": {"output": format!("w{n}")}, "success": true, "score": 1, "latencyMs": 12})
    };
    let summary = json!({"version": 2, "timestamp": "2024-05-01T00:00:00.000Z", "results": [result(0), result(1)],
        "table": {"head": {}, "body": []}, "stats": {}});
    let sql = format!(
        "CREATE TABLE evals (id TEXT PRIMARY KEY NOT NULL, created_at INTEGER, description TEXT, results TEXT NOT NULL, \
         config TEXT NOT NULL); INSERT INTO evals VALUES ('eval-1', 0, NULL, '{summary}', '{{}}'); \
         INSERT INTO evals VALUES ('eval-2', 0, NULL, '{{}}', '{{}}'); INSERT INTO evals VALUES ('eval-3', 0, NULL, '{summary}', '{{}}');"
    );
    let (_folder, path) = create("promptfoo.db", &sql);
    let all = read(&path);
    let prompts: Vec<&Value> = all
        .iter()
        .map(|one| &one["messages"][0]["content"])
        .collect();
    assert_eq!(prompts, ["Say w0", "Say w1", "Say w0", "Say w1"]);
    assert_eq!(all[1]["messages"][1]["content"], "w1");
    assert_eq!(all[1]["metadata"]["vars"], json!({"word": "w1"}));
}

#[test]
fn conversations_of_kiro_and_amazon_q_are_those_of_their_files() {
    let turn = |text: &str| json!({"user": {"content": {"Prompt": {"prompt": text}}}, "assistant": {"Response": {"content": "Done."}}});
    let first = json!({"conversation_id": "q1", "history": [turn("Fix it.")]});
    let second = json!({"conversation_id": "q2", "history": [turn("Test it.")]});
    for (table, columns) in [
        ("conversations", "key TEXT PRIMARY KEY, value TEXT"),
        (
            "conversations_v2",
            "key TEXT, conversation_id TEXT, value TEXT, PRIMARY KEY (key, conversation_id)",
        ),
    ] {
        let sql = format!(
            "CREATE TABLE {table} ({columns}); \
             INSERT INTO {table} (key, value) VALUES ('/work/a', '{first}'), ('/work/b', '{second}'), ('/work/c', 'none');"
        );
        let (_folder, path) = create("data.sqlite3", &sql);
        let all = read(&path);
        let ids: Vec<&Value> = all.iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["q1", "q2"], "{table}");
        assert_eq!(all[1]["messages"][0]["content"], "Test it.");
    }
}

#[test]
fn chats_of_cursor_get_their_messages_from_other_rows() {
    let composer = json!({"composerId": "c1", "name": "A fix", "conversationMap": {},
        "fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}]});
    let bubble =
        |id: &str, kind: u8, text: &str| json!({"bubbleId": id, "type": kind, "text": text});
    let sql = format!(
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB); \
         INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b2', '{}'); INSERT INTO cursorDiskKV VALUES ('composerData:c1', '{composer}'); \
         INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b1', '{}');",
        bubble("b2", 2, "Done."),
        bubble("b1", 1, "Fix it."),
    );
    let (_folder, path) = create("state.vscdb", &sql);
    let all = read(&path);
    let texts: Vec<&Value> = all[0]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .map(|message| &message["content"])
        .collect();
    assert_eq!(texts, ["Fix it.", "Done."]);
    assert_eq!(all[0]["id"], "c1");

    let tabs = json!({"tabs": [{"tabId": "t1", "bubbles": [bubble("x", 1, "Hi"), bubble("y", 2, "Hello")]}]});
    let sql = format!(
        "CREATE TABLE ItemTable (key TEXT UNIQUE, value BLOB); \
         INSERT INTO ItemTable VALUES ('workbench.panel.aichat.view.aichat.chatdata', '{tabs}');"
    );
    let (_folder, path) = create("state.vscdb", &sql);
    assert_eq!(read(&path)[0]["id"], "t1");
}

/// Writes the sample of an exported session as OpenCode's database has it.
fn create_opencode() -> (tempfile::TempDir, PathBuf) {
    let text = std::fs::read_to_string(export_of_opencode()).expect("the export");
    let export: Value = serde_json::from_str(&text).expect("JSON");
    let (folder, path) = create(
        "opencode.db",
        "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT, \
         time_created INTEGER); \
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT); \
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);",
    );
    let connection = Connection::open(&path).expect("a database");
    let info = &export["info"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    connection
        .execute(
            "INSERT INTO session VALUES (?1, ?2, NULL, ?3, ?4, ?5, ?6)",
            (
                text(&info["id"]),
                text(&info["projectID"]),
                text(&info["directory"]),
                text(&info["title"]),
                text(&info["version"]),
                info["time"]["created"].as_i64(),
            ),
        )
        .expect("a session");
    // The last message is the first row.
    for message in export["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .rev()
    {
        let id = message["info"]["id"].as_str().expect("an id");
        connection
            .execute(
                "INSERT INTO message VALUES (?1, 'ses_1', ?2, ?3)",
                (
                    id,
                    message["info"]["time"]["created"].as_i64(),
                    message["info"].to_string(),
                ),
            )
            .expect("a message");
        let parts = message["parts"].as_array().expect("parts");
        for (at, part) in parts.iter().enumerate() {
            connection
                .execute(
                    "INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)",
                    (format!("prt_{id}_{at}"), id, part.to_string()),
                )
                .expect("a part");
        }
    }
    (folder, path)
}

fn export_of_opencode() -> PathBuf {
    super::super::testing::fixture("foreign/opencode.json")
}

#[test]
fn sessions_of_opencode_are_those_of_its_export() {
    let (_folder, path) = create_opencode();
    assert_eq!(read(&path), read(&export_of_opencode()));
}

#[test]
fn sessions_of_goose_are_those_of_its_export() {
    let call = json!({"type": "toolRequest", "id": "c1", "toolCall": {"status": "success",
        "value": {"name": "shell", "arguments": {"command": "ls"}}}});
    let result = json!({"type": "toolResponse", "id": "c1", "toolResult": {"status": "success",
        "value": {"content": [{"type": "text", "text": "a.txt"}], "isError": false}}});
    let seen = json!({"userVisible": true, "agentVisible": true});
    let messages = [
        json!({"role": "user", "created": 1, "content": [{"type": "text", "text": "List."}], "metadata": seen}),
        json!({"role": "assistant", "created": 2, "content": [call], "metadata": seen}),
        json!({"role": "user", "created": 3, "content": [result], "metadata": seen}),
    ];
    let mut sql = "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, working_dir TEXT, \
        created_at TIMESTAMP, provider_name TEXT, model_config_json TEXT, accumulated_total_tokens INTEGER);\
        CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id TEXT, role TEXT, \
        content_json TEXT, created_timestamp INTEGER, metadata_json TEXT);\
        INSERT INTO sessions VALUES ('s1', '', 'List', '/w', '2026-01-01 00:00:00', 'anthropic', '{\"model_name\":\"m\"}', 12);\
        INSERT INTO sessions (id, working_dir) VALUES ('s2', '/w');"
        .to_owned();
    for message in &messages {
        let _infallible = write!(
            sql,
            "INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) \
             VALUES ('s1', '{}', '{}', {}, '{}');",
            message["role"].as_str().expect("a role"),
            message["content"],
            message["created"],
            message["metadata"],
        );
    }
    let (folder, path) = create("sessions.db", &sql);
    let export = folder.path().join("export.json");
    let session = json!({"id": "s1", "description": "List", "working_dir": "/w", "created_at": "2026-01-01 00:00:00",
        "provider_name": "anthropic", "model_config": {"model_name": "m"}, "accumulated_total_tokens": 12,
        "conversation": messages});
    std::fs::write(&export, session.to_string()).expect("written");
    let sessions = read(&path);
    assert_eq!(sessions, read(&export));
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["metadata"]["model"], "m");
}

#[test]
fn text_that_is_not_json_in_a_row_of_opencode_is_counted() {
    let (_folder, path) = create_opencode();
    let connection = Connection::open(&path).expect("a database");
    connection
        .execute_batch("UPDATE message SET data = '{\"role\": ' WHERE id = 'msg_1'; UPDATE part SET data = 'x' WHERE message_id = 'msg_1';")
        .expect("it runs");
    let mut file = TranscriptFile::open(&path).expect("sessions");
    let block = file.next_block().expect("a block").expect("a session");
    assert_eq!(block.records().count(), 1);
    let unknown = &file.tally().expect("counts").unknown;
    assert_eq!(unknown.get("a message that is not an object"), Some(&1));
}

#[test]
fn messages_of_a_session_share_one_limit_of_work() {
    let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 400)";
    let (_folder, path) = create(
        "opencode.db",
        &format!(
            "CREATE TABLE session (id TEXT PRIMARY KEY, title TEXT, time_created INTEGER); \
             CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT); \
             CREATE TABLE part (id TEXT, message_id TEXT, data TEXT); \
             INSERT INTO session VALUES ('s', 't', 1); \
             {numbers} INSERT INTO message SELECT 'm' || i, 's', i, '{{}}' FROM n; \
             {numbers} INSERT INTO part SELECT 'p' || i, 'm' || i, '{{}}' FROM n;"
        ),
    );
    let (connection, checks) = connect(&path).expect("a database");
    let mut reader = DatabaseReader {
        connection,
        checks,
        rows: RowSource::OpencodeSessions,
        keys: Vec::new(),
        last: 0,
        tally: ReadTally::default(),
    };
    reader.keys = reader.find_keys("session", &SESSION_KEYS).expect("columns");
    let record = reader.read_row(1).expect("a session");
    assert_eq!(record.matches("\"parts\":[{}]").count(), 400);
    // Without an index, each of the 400 messages searches all 400 parts.
    let checks = reader.checks.load(Ordering::Relaxed);
    assert!(checks > 20, "{checks} checks");
}

#[test]
fn foreign_and_hostile_schemas_are_refused() {
    let endless =
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n";
    for (sql, why) in [
        ("CREATE TABLE other (a);".to_owned(), "no rows that dicta reads"),
        (
            "CREATE TABLE session (id TEXT, title TEXT); CREATE TABLE message (text TEXT); INSERT INTO session VALUES ('a', 'b');".to_owned(),
            "no rows that dicta reads",
        ),
        (
            "CREATE TABLE conversations (id TEXT, text TEXT); INSERT INTO conversations VALUES ('a', 'b');".to_owned(),
            "no rows that dicta reads",
        ),
        (format!("CREATE VIEW eval_results AS {endless};"), "no rows that dicta reads"),
        (
            "CREATE TABLE eval_results (id TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO eval_results VALUES ('a');".to_owned(),
            "rowid",
        ),
    ] {
        let (_folder, path) = create("odd.db", &sql);
        let refused = TranscriptFile::open(&path).expect_err("refused").to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

/// A program that has the database open keeps its last changes in the log next to the database.
#[test]
fn last_changes_of_an_open_program_are_read_also_through_a_link() {
    let (folder, path) = create("promptfoo.db", &promptfoo_sql());
    let writer = Connection::open(&path).expect("a database");
    let mode = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;";
    writer.execute_batch(mode).expect("it runs");
    let shorten = "DELETE FROM eval_results WHERE test_idx >= 3;";
    writer.execute_batch(shorten).expect("it runs");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    let link = elsewhere.join("link.db");
    std::os::unix::fs::symlink(&path, &link).expect("a link");
    for name in [&path, &link] {
        assert_eq!(read(name).len(), 3, "{}", name.display());
    }
    // Without the program, the log is a part of the file, and dicta leaves no files next to it.
    drop(writer);
    assert_eq!(read(&link).len(), 3);
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        2
    );
}

#[test]
fn damaged_databases_break_no_reader() {
    let (folder, path) = create("promptfoo.db", &promptfoo_sql());
    damage_database(&folder, &path);
    let (folder, path) = create_opencode();
    damage_database(&folder, &path);
}

/// Reads 100 damaged variants of a database.
fn damage_database(folder: &tempfile::TempDir, path: &Path) {
    let original = std::fs::read(path).expect("the file");
    let odd = folder.path().join("odd.db");
    let mut state = 7_u64;
    let mut next = |end: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    for variant in 0..100 {
        let mut bytes = original.clone();
        if variant % 4 == 0 {
            bytes.truncate(16 + next(original.len() - 16));
        } else {
            for _ in 0..=next(20) {
                // The first 16 bytes are the mark of the format.
                let at = 16 + next(original.len() - 16);
                bytes[at] = u8::try_from(next(256)).expect("below 256");
            }
        }
        std::fs::write(&odd, &bytes).expect("written");
        let Ok(mut file) = TranscriptFile::open(&odd) else {
            continue;
        };
        while let Ok(Some(block)) = file.next_block() {
            for (record, bytes) in block.records() {
                if record.fault.is_none() {
                    let parsed = record.parse(bytes, "t");
                    parsed.unwrap_or_else(|bad| panic!("{variant}: {}", bad.why));
                }
            }
        }
    }
}
