//! `postgres-sql` against a real server: what comes back, what is refused, what is stopped.

mod asking;
mod server;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;

use dicta::model::CallIx;
use serde_json::{Value, json};

use asking::{ask, cx, one, prepared, read, source, tool};
use server::{Machine, Plan, Server, plan};

use crate::cli::{NAMES_A_RELEASE, TestDir, text};

#[test]
fn postgres_tests_report_the_reason_if_no_server_starts() {
    let bin = Some(PathBuf::from("/pg/bin"));
    let machine = Machine {
        bin: bin.clone(),
        is_root: true,
        setpriv: true,
        nobody: Some((65534, 65534)),
    };
    let whole = Plan {
        bin: "/pg/bin".into(),
        become_user: Some((65534, 65534)),
    };
    assert_eq!(plan(&machine), Ok(whole));
    let user = Machine {
        bin,
        ..Machine::default()
    };
    assert_eq!(plan(&user).map(|plan| plan.become_user), Ok(None));
    for (lacking, why) in [
        (
            Machine {
                bin: None,
                ..machine.clone()
            },
            "PostgreSQL is not installed (apt-get install postgresql)",
        ),
        (
            Machine {
                setpriv: false,
                ..machine.clone()
            },
            "we are root, and there is no setpriv to become another",
        ),
        (
            Machine {
                nobody: None,
                ..machine.clone()
            },
            "we are root, and there is no user postgres or nobody",
        ),
    ] {
        assert_eq!(plan(&lacking), Err(why.to_owned()));
    }
}

#[tokio::test]
async fn values_are_bound_by_parameter_type_and_returned_exactly() {
    let Some(server) = Server::start() else {
        return;
    };
    let source = source(&server, &json!({}));
    for (statement, values, expected) in [
        ("$1::int + 1", "{\"a\": 41}", "42"),
        (
            "$1::bigint",
            "{\"a\": 9223372036854775807}",
            "9223372036854775807",
        ),
        (
            "$1::int",
            "{\"a\": 9223372036854775807}",
            "Error: 22003 value \"9223372036854775807\" is out of range for type integer",
        ),
        (
            "$1::int",
            "{\"a\": \"x\"}",
            "Error: 22P02 invalid input syntax for type integer: \"x\"",
        ),
        ("$1::smallint", "{\"a\": -7}", "-7"),
        (
            "$1::numeric",
            "{\"a\": 12345678901234567890123.4500}",
            "12345678901234567890123.4500",
        ),
        ("$1::numeric", "{\"a\": -0.00001234}", "-0.00001234"),
        ("$1::numeric * 10000", "{\"a\": 10000}", "100000000"),
        ("'NaN'::numeric", "{}", "\"NaN\""),
        ("$1::float8", "{\"a\": 0.1}", "0.1"),
        ("$1::float4", "{\"a\": 2}", "2.0"),
        ("'Infinity'::float8", "{}", "\"Infinity\""),
        ("$1::bool", "{\"a\": true}", "true"),
        (
            "$1",
            "{\"a\": \"it's; DROP TABLE x; -- é\"}",
            "\"it's; DROP TABLE x; -- é\"",
        ),
        ("$1::text", "{\"a\": null}", "null"),
        (
            "$2::text || $1::text",
            "{\"a\": \"1\", \"b\": \"2\"}",
            "\"21\"",
        ),
        ("$1::varchar(2)", "{\"a\": \"abc\"}", "\"ab\""),
        (
            "$1::jsonb",
            "{\"a\": {\"b\": [1.50, null], \"a\": \"x\"}}",
            "{\"a\": \"x\", \"b\": [1.50, null]}",
        ),
        (
            "$1::json",
            "{\"a\": {\"b\":1, \"a\": 12345678901234567890123}}",
            "{\"b\": 1, \"a\": 12345678901234567890123}",
        ),
        ("$1::jsonb ->> 'k'", "{\"a\": {\"k\": \"v\"}}", "\"v\""),
        ("2 = ANY($1::int[])", "{\"a\": [1, 2]}", "true"),
        (
            "$1::text[]",
            "{\"a\": [\"a,b\", \"c\\\"}\\\\\", null, \"NULL\", \"\"]}",
            "[\"a,b\", \"c\\\"}\\\\\", null, \"NULL\", \"\"]",
        ),
        (
            "$1::int[][]",
            "{\"a\": [[1, 2], [3, 4]]}",
            "[[1, 2], [3, 4]]",
        ),
        ("$1::int[]", "{\"a\": []}", "[]"),
        (
            "$1::uuid",
            "{\"a\": \"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11\"}",
            "\"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11\"",
        ),
        ("$1::date", "{\"a\": \"2026-02-28\"}", "\"2026-02-28\""),
        ("'infinity'::date", "{}", "\"infinity\""),
        (
            "$1::date",
            "{\"a\": \"2026-02-30\"}",
            "Error: 22008 date/time field value out of range: \"2026-02-30\"",
        ),
        (
            "$1::timestamp",
            "{\"a\": \"1999-12-31 23:59:59.5\"}",
            "\"1999-12-31T23:59:59.5\"",
        ),
        (
            "$1::timestamptz",
            "{\"a\": \"2026-01-01T02:00:00+02:00\"}",
            "\"2026-01-01T00:00:00Z\"",
        ),
        ("$1::time", "{\"a\": \"24:00\"}", "\"24:00:00\""),
        ("'04:05:06-03:30'::timetz", "{}", "\"04:05:06-03:30\""),
        (
            "interval '1 year 2 months -3 days 04:05:06.7'",
            "{}",
            "\"P1Y2M-3DT4H5M6.7S\"",
        ),
        ("interval '0'", "{}", "\"PT0S\""),
        ("$1::bytea", "{\"a\": \"\\\\x00ff\"}", "\"2 bytes: 00ff\""),
        ("'10.0.0.1'::inet", "{}", "\"10.0.0.1\""),
        ("'fe80::/10'::cidr", "{}", "\"fe80::/10\""),
        ("B'10110'", "{}", "\"10110\""),
        ("int4range(1, 10)", "{}", "\"[1,10)\""),
        ("daterange('2026-01-01', NULL)", "{}", "\"[2026-01-01,)\""),
        ("ROW(1, 'a', NULL)", "{}", "[1, \"a\", null]"),
        ("'<a/>'::xml", "{}", "\"<a/>\""),
        (
            "point(1, 2)",
            "{}",
            "\"16 bytes: 3ff00000000000004000000000000000 (of type point: cast it to text in the statement)\"",
        ),
        (
            "$1::int + $2::int + $3::int",
            "{\"a\": 1, \"b\": 2}",
            "Error: the statement uses `$3`; the tool has 2 parameters",
        ),
    ] {
        let back = one(&source, &format!("SELECT {statement} AS x"), values).await;
        assert_eq!(back, expected, "{statement} {values}");
    }
    let empty = ask(&source, "SELECT 1 AS a WHERE false", "{}").await;
    assert_eq!(empty.text, "[]\n0 rows");
    let twice = ask(&source, "SELECT 1 AS a, 2 AS a", "{}").await;
    assert_eq!(twice.text, "[\n  {\"a\": 1, \"a_2\": 2}\n]");
}

#[tokio::test]
async fn read_only_source_reads_and_writable_source_commits() {
    let Some(server) = Server::start() else {
        return;
    };
    let writable = source(&server, &json!({"writable": true}));
    assert!(writable.is_writable() && writable.badge().is_some());
    for (statement, expected) in [
        ("CREATE TYPE mood AS ENUM ('glad', 'sad')", "0 rows changed"),
        (
            "CREATE TABLE notes (id serial, text text, mood mood)",
            "0 rows changed",
        ),
        (
            "INSERT INTO notes (text, mood) VALUES ('a', 'glad'), ('b', 'sad')",
            "2 rows changed",
        ),
        (
            "INSERT INTO notes (text) VALUES ('c') RETURNING id",
            "[\n  {\"id\": 3}\n]",
        ),
        (
            "COMMIT",
            "Error: at load: tools.yaml:1:25: COMMIT is not allowed in a tool's statement",
        ),
    ] {
        assert_eq!(
            ask(&writable, statement, "{}").await.text,
            expected,
            "{statement}"
        );
    }
    let source = source(&server, &json!({}));
    assert_eq!(
        one(&source, "SELECT max(mood) AS x FROM notes", "{}").await,
        "\"sad\""
    );
    assert_eq!(
        one(
            &source,
            "SELECT n AS x FROM notes n WHERE mood = $1",
            "{\"m\": \"glad\"}"
        )
        .await,
        "{\"id\": 1, \"text\": \"a\", \"mood\": \"glad\"}"
    );
    for statement in [
        "WITH d AS (DELETE FROM notes RETURNING *) SELECT * FROM d",
        "SELECT nextval('notes_id_seq')",
        "EXPLAIN ANALYZE DELETE FROM notes",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SELECT * FROM notes FOR UPDATE",
        "SELECT 1; DELETE FROM notes",
    ] {
        let answer = ask(&source, statement, "{}").await;
        assert!(
            answer.is_error && !answer.transient,
            "{statement}: {}",
            answer.text
        );
        assert!(
            !answer.text.contains("at load"),
            "the server refused: {}",
            answer.text
        );
    }
    for statement in [
        "DELETE FROM notes",
        "INSERT INTO notes (text) VALUES ('x')",
        "DO $$ BEGIN DELETE FROM notes; END $$",
        "COPY notes TO PROGRAM 'cat'",
        "COPY notes TO STDOUT",
        "SET TRANSACTION READ WRITE",
        "BEGIN READ WRITE",
        "ROLLBACK",
    ] {
        let answer = ask(&source, statement, "{}").await;
        assert!(
            answer.text.starts_with("Error: at load: "),
            "{statement}: {}",
            answer.text
        );
    }
    // Versions before 16 let a read-only transaction make a large object: it is undone.
    ask(&source, "SELECT lo_create(0)", "{}").await;
    let left = "SELECT count(*) AS x FROM pg_largeobject_metadata";
    assert_eq!(one(&source, left, "{}").await, "0");
    // Whatever a statement set is gone with its transaction.
    let set = "SELECT set_config('statement_timeout', '1', false)";
    ask(&source, set, "{}").await;
    assert_eq!(
        one(&source, "SELECT count(*) AS x FROM notes", "{}").await,
        "3"
    );
    let hint = ask(&source, "SELECT textt FROM notes", "{}").await;
    assert!(
        hint.text
            .starts_with("Error: 42703 column \"textt\" does not exist (Perhaps"),
        "{}",
        hint.text
    );
}

#[tokio::test]
async fn statement_stops_at_timeout_cancellation_and_size_limit() {
    let Some(server) = Server::start() else {
        return;
    };
    let source = source(&server, &json!({"timeout": "200ms"}));
    let answer = ask(&source, "SELECT pg_sleep(60)", "{}").await;
    assert_eq!(
        answer.text,
        "Error: 57014 canceling statement due to statement timeout"
    );
    assert!(answer.transient);

    let many = ask(&source, "SELECT i FROM generate_series(1, 100000) i", "{}").await;
    assert!(
        many.truncated
            && many
                .text
                .ends_with("{\"i\": 150}\n]\n\n[truncated at 150 rows]")
    );
    let long = ask(
        &source,
        "SELECT repeat('x', 1000) AS x FROM generate_series(1, 149)",
        "{}",
    )
    .await;
    assert!(
        long.truncated
            && long
                .text
                .ends_with("[truncated at 50000 bytes, after 49 rows]"),
        "{}",
        long.bytes
    );

    let patient = self::source(&server, &json!({"timeout": 60}));
    let huge = "SELECT repeat('x', 100000000) AS x";
    assert_eq!(
        ask(&patient, huge, "{}").await.text,
        "Error: the rows are too large: ask for less"
    );
    assert_eq!(
        one(&patient, "SELECT 1 AS x", "{}").await,
        "1",
        "on a new connection"
    );

    // Cancelled: dicta cancels the query at the server, and its backend is idle or gone.
    let sleeping = "SELECT pg_sleep(50)";
    let (prepared, names) = prepared("{}");
    let tool = tool(&patient, sleeping, &names).expect("a tool");
    let cx = cx();
    let running =
        "SELECT count(*) AS x FROM pg_stat_activity WHERE query = $1 AND state = 'active'";
    let arguments = format!("{{\"q\": \"{sleeping}\"}}");
    let watch = self::source(&server, &json!({}));
    let watching = async {
        while one(&watch, running, &arguments).await != "1" {}
        cx.cancel.cancel();
    };
    let (answer, ()) = tokio::join!(tool.call(&prepared, CallIx(0), &cx), watching);
    assert_eq!(answer.text, "Error: the call was cancelled");
    while one(&watch, running, &arguments).await != "0" {}
}

#[tokio::test]
async fn failed_login_shows_no_secret() {
    let Some(server) = Server::start() else {
        return;
    };
    let source = source(&server, &json!({}));
    assert_eq!(source.secrets(), ["s3cret-pw"]);
    let there = source.probe(&cx()).await.expect("there");
    assert!(
        there.starts_with("PostgreSQL ")
            && there.ends_with(", database postgres as owner, a superuser, read-only"),
        "{there}"
    );
    let wrong_tool = tool(&source, "SELECT * FROM nowhere", &[]).expect("reads");
    let failure = source
        .probe(&cx())
        .await
        .expect_err("a bad statement")
        .to_string();
    assert!(
        failure.ends_with("tool `t`: 42P01 relation \"nowhere\" does not exist"),
        "{failure}"
    );
    drop(wrong_tool);

    // (queryParams, the difference, the message)
    let tcp = |host: &str, params: Value| json!({"host": host, "queryParams": params});
    for (keys, expected) in [
        (tcp("127.0.0.1", json!({"sslmode": "disable"})), Ok("false")),
        (tcp("127.0.0.1", json!({})), Ok("true")),
        (
            tcp(
                "db.test",
                json!({"sslmode": "require", "application_name": "x", "search_path": "app, public"}),
            ),
            Ok("true"),
        ),
        (
            tcp(
                "db.test",
                json!({"sslmode": "verify-full", "sslrootcert": server.ca_file()}),
            ),
            Ok("true"),
        ),
        (
            tcp(
                "127.0.0.1",
                json!({"sslmode": "verify-full", "sslrootcert": server.ca_file()}),
            ),
            Err("certificate"),
        ),
        (
            tcp("db.test", json!({"sslmode": "verify-full"})),
            Err("certificate"),
        ),
        // A remote host without `sslmode` is verified.
        (
            tcp("db.test", json!({"sslrootcert": server.ca_file()})),
            Ok("true"),
        ),
        (tcp("db.test", json!({})), Err("or set `sslmode`")),
    ] {
        let source = self::source(&server, &keys);
        let encrypted = "SELECT ssl AS x FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        let answer = one(&source, encrypted, "{}").await;
        match expected {
            Ok(expected) => assert_eq!(answer, expected, "{keys}"),
            Err(why) => {
                assert_eq!(answer, "Error: cannot connect to the database", "{keys}");
                let failure = source.probe(&cx()).await.expect_err("refused").to_string();
                assert!(failure.to_lowercase().contains(why), "{failure}");
            }
        }
    }
    for (keys, model, person) in [
        (
            json!({"password": "wr0ng"}),
            "28P01 the database refused the connection",
            "28P01 password authentication failed for user \"owner\"",
        ),
        (
            json!({"database": "none"}),
            "3D000 the database refused the connection",
            "3D000 database \"none\" does not exist",
        ),
        (
            json!({"port": 1}),
            "cannot connect to the database",
            "/.s.PGSQL.1",
        ),
    ] {
        let source = self::source(&server, &keys);
        let answer = ask(&source, "SELECT 1", "{}").await;
        assert_eq!(answer.text, format!("Error: {model}"));
        assert_eq!(answer.transient, keys.get("port").is_some());
        let failure = source.probe(&cx()).await.expect_err("refused").to_string();
        assert!(
            failure.contains(person) && !failure.contains("wr0ng"),
            "{failure}"
        );
    }
}

#[test]
fn source_settings_are_checked_strictly() {
    let base = json!({"host": "db.test", "user": "u", "database": "d"});
    for (more, expected) in [
        (
            json!({"port": "5433", "password": "", "queryParams": {"sslmode": "verify-full", "connect_timeout": 5}}),
            "",
        ),
        (
            json!({"port": 70000}),
            "port must be 1 to 65535 (got 70000)",
        ),
        (
            json!({"queryParams": {"sslmode": "verify-ca"}}),
            "this sslmode is not supported; disable, prefer, require and verify-full are",
        ),
        (
            json!({"queryParams": {"sslmode": "no"}}),
            "sslmode must be one of disable, prefer",
        ),
        (
            json!({"queryParams": {"sslmode": "require", "sslrootcert": "a.pem"}}),
            "sslrootcert is looked at with `sslmode: verify-full` alone",
        ),
        (
            json!({"queryParams": {"statement_timeout": 5}}),
            "the time of a statement is the source's `timeout`",
        ),
        (
            json!({"queryParams": {"pool_max_conns": 5}}),
            "unknown key `pool_max_conns`",
        ),
        (
            json!({"pasword": "x"}),
            "unknown key `pasword`; did you mean `password`?",
        ),
        (json!({"user": null}), "user must be text (got nothing)"),
    ] {
        let mut keys = base.clone();
        for (key, value) in more.as_object().expect("keys") {
            keys[key] = value.clone();
        }
        let (source, error_text) = read(&keys);
        assert!(
            error_text.contains(expected) && error_text.is_empty() == expected.is_empty(),
            "{keys}: {error_text}"
        );
        assert!(source.is_some() || !error_text.is_empty());
    }
}

#[test]
fn tool_command_explains_a_failed_connection_as_check_does() {
    // A server without TLS: it replies `N` to the request for it.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 8];
            let answered = stream
                .read_exact(&mut request)
                .and_then(|()| stream.write_all(b"N"));
            drop(answered);
        }
    });
    let test_dir = TestDir::new();
    let tools = json!({
        "sources": {"pg": {"kind": "postgres", "host": "db.test", "port": port, "database": "d", "user": "u"}},
        "tools": {"orders": {"kind": "postgres-sql", "source": "pg", "description": "Orders.", "statement": "SELECT 1"}},
    });
    test_dir.write("tools.yaml", &tools.to_string());
    test_dir.workspace("tools: [tools.yaml]\n", NAMES_A_RELEASE);
    let resolve = format!("db.test:{port}:127.0.0.1");
    let called = test_dir.dicta(&["tool", "orders", "{}", "--resolve", &resolve]);
    let note = text(&called.stderr);
    assert_eq!(called.status.code(), Some(1), "{note}");
    assert!(
        note.contains("note: no connection to the database: ") && note.contains("or set `sslmode`"),
        "{note}"
    );
    // The judge's text has no address and no setting.
    let response = text(&called.stdout);
    assert!(
        response.contains("cannot connect to the database") && !response.contains("sslmode"),
        "{response}"
    );
}
