mod bounds;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::clock::{Clock, FakeClock};
use crate::diag::yaml::{self, DiagnosticCollector};
use crate::event::{Emitter, MemoryBlobs, Redactor};
use crate::model::{CellIx, RawJson, TurnIx};
use crate::net::{Resolver, SystemResolver};
use crate::schema::CompiledSchema;

/// Three releases and a picture.
const FILE: &str = "
    CREATE TABLE releases (project TEXT, version TEXT, stars INTEGER, score REAL, logo BLOB);
    INSERT INTO releases VALUES
        ('beam', '2.69.0', 7900, 2.0, x'89504e47'),
        ('flink', '2.1.0', 25000, 0.1, NULL),
        ('it''s', 'a \"b\"', -1, NULL, NULL);
    CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT);
    CREATE VIRTUAL TABLE found USING fts5(text);
    INSERT INTO found VALUES ('the newest release');
";

struct World {
    folder: tempfile::TempDir,
    clock: FakeClock,
    cancel: CancellationToken,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let db = rusqlite::Connection::open(folder.path().join("r.db")).unwrap();
    db.execute_batch(FILE).unwrap();
    World {
        folder,
        clock: FakeClock::new(),
        cancel: CancellationToken::new(),
    }
}

/// Reads a source from YAML and returns it with the reported problems.
fn source_of(folder: &Path, text: &str) -> (Option<Arc<dyn ToolSource>>, Vec<String>) {
    let doc = yaml::read_document(&Arc::from(text), Path::new("tools.yaml")).unwrap();
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let cx = SourceCx {
        name: "files",
        folder,
        resolver: &resolver,
        secrets: &[],
    };
    let source = read(&mut fields, &cx);
    fields.finish();
    let messages = problems.into_sorted();
    (source, messages.iter().map(ToString::to_string).collect())
}

/// A tool with these properties, in this order.
fn tool_of(source: Arc<dyn ToolSource>, statement: &str, names: &[&str]) -> Arc<dyn ToolExecutor> {
    let properties: serde_json::Map<String, Value> =
        names.iter().map(|n| ((*n).to_owned(), json!({}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let file = json!({"name": "t", "statement": statement, "maxRows": 3, "inputSchema": schema});
    let text = file.to_string();
    let doc = yaml::read_document(&Arc::from(text.as_str()), Path::new("tools.yaml")).unwrap();
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let input = ToolInput::Schema(CompiledSchema::compile(&schema).unwrap());
    source
        .read_tool("t", &mut fields, &input)
        .expect("a good tool")
}

impl World {
    fn cx(&self) -> CallCx {
        let (to, _) = mpsc::channel(64);
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        CallCx {
            out: Emitter::new(
                to,
                Arc::new(MemoryBlobs::default()),
                Arc::new(Redactor::default()),
            ),
            clock,
            cancel: self.cancel.clone(),
            cell: CellIx(0),
            turn: TurnIx(0),
        }
    }

    fn source(&self, keys: &str) -> Arc<dyn ToolSource> {
        let (source, messages) = source_of(self.folder.path(), &format!("database: r.db\n{keys}"));
        assert_eq!(messages, Vec::<String>::new());
        source.unwrap()
    }

    async fn call(&self, keys: &str, statement: &str, values: &Value) -> ToolResponse {
        self.raw(keys, statement, &values.to_string()).await
    }

    async fn raw(&self, keys: &str, statement: &str, values: &str) -> ToolResponse {
        // Not as `Value`, which has no `1e400`.
        type Object = indexmap::IndexMap<String, Box<serde_json::value::RawValue>>;
        let values = RawJson::parse(values).unwrap();
        let object: Object = serde_json::from_str(values.get()).unwrap();
        let names: Vec<&str> = object.keys().map(String::as_str).collect();
        let tool = tool_of(self.source(keys), statement, &names);
        let prepared = ValidatedCall {
            tool: "t".into(),
            canonical: values.clone(),
            values,
            coerced: vec![],
        };
        tool.call(&prepared, CallIx(0), &self.cx()).await
    }

    async fn text(&self, statement: &str, values: &Value) -> String {
        self.call("", statement, values).await.text
    }

    /// The one value that a statement yields.
    async fn one(&self, statement: &str, values: &str) -> String {
        let text = self.raw("", statement, values).await.text;
        let inner = text
            .strip_prefix("[\n  {\"x\": ")
            .and_then(|t| t.strip_suffix("}\n]"));
        inner.unwrap_or(&text).to_owned()
    }
}

#[tokio::test]
async fn rows_have_column_order_and_exact_values() {
    let all = "SELECT * FROM releases WHERE stars > $1 ORDER BY stars";
    assert_eq!(
        world().text(all, &json!({"least": -5})).await,
        "[\n  {\"project\": \"it's\", \"version\": \"a \\\"b\\\"\", \"stars\": -1, \"score\": null, \"logo\": null},\n  \
         {\"project\": \"beam\", \"version\": \"2.69.0\", \"stars\": 7900, \"score\": 2.0, \"logo\": \"4 bytes: 89504e47\"},\n  \
         {\"project\": \"flink\", \"version\": \"2.1.0\", \"stars\": 25000, \"score\": 0.1, \"logo\": null}\n]"
    );
}

#[tokio::test]
async fn values_are_bound_and_never_written_into_the_statement() {
    let world = world();
    for (given, kind, back) in [
        (
            "\"it's; DROP TABLE notes; --\"",
            "text",
            "\"it's; DROP TABLE notes; --\"",
        ),
        ("\"\"", "text", "\"\""),
        ("\"a\\u0000b\"", "text", "\"a\\u0000b\""),
        ("9223372036854775807", "integer", "9223372036854775807"),
        ("-9223372036854775808", "integer", "-9223372036854775808"),
        ("2.0", "real", "2.0"),
        ("1e3", "real", "1000.0"),
        ("true", "integer", "1"),
        ("false", "integer", "0"),
        ("null", "null", "null"),
        ("[1, \"b\"]", "text", "\"[1,\\\"b\\\"]\""),
        (
            "{\"b\": 1, \"a\": 2}",
            "text",
            "\"{\\\"b\\\":1,\\\"a\\\":2}\"",
        ),
    ] {
        let values = format!("{{\"v\": {given}}}");
        assert_eq!(world.one("SELECT ? AS x", &values).await, back, "{given}");
        let typed = world.one("SELECT typeof($1) AS x", &values).await;
        assert_eq!(typed, format!("\"{kind}\""), "{given}");
    }
    let large = world
        .one("SELECT ? AS x", "{\"v\": 9223372036854775808}")
        .await;
    assert_eq!(
        large,
        "Error: parameter `v`: a whole number has at most 64 bits here"
    );
    let large = world.one("SELECT ? AS x", "{\"v\": 1e400}").await;
    assert_eq!(large, "Error: parameter `v`: the number is out of range");
}

#[tokio::test]
async fn parameters_are_found_by_number_order_and_name() {
    let world = world();
    let values = "{\"a\": 1, \"b\": 2}";
    for (statement, expected) in [
        ("SELECT $2 || $1 || $2 AS x", "\"212\""),
        ("SELECT ?2 || ?1 AS x", "\"21\""),
        ("SELECT ? || ? AS x", "\"12\""),
        ("SELECT :b || @a || $b AS x", "\"212\""),
        ("SELECT ?2 AS x", "2"),
        ("SELECT 7 AS x", "7"),
        (
            "SELECT $3 AS x",
            "Error: the statement uses `$3`; the tool has 2 parameters",
        ),
        (
            "SELECT :c AS x",
            "Error: the statement uses `:c`; the tool has 2 parameters",
        ),
        (
            "SELECT ?,?,? AS x",
            "Error: the statement uses parameter 3; the tool has 2 parameters",
        ),
        (
            "SELECT $0 AS x",
            "Error: the statement uses `$0`; the tool has 2 parameters",
        ),
    ] {
        assert_eq!(world.one(statement, values).await, expected, "{statement}");
    }
}

#[tokio::test]
async fn list_value_works_with_json_each() {
    let several =
        "SELECT version AS x FROM releases WHERE project IN (SELECT value FROM json_each($1))";
    let found = world()
        .one(several, "{\"projects\": [\"beam\", \"nifi\"]}")
        .await;
    assert_eq!(found, "\"2.69.0\"");
}

#[tokio::test]
async fn read_only_source_allows_views_windows_full_text_and_reading_pragmas() {
    let world = world();
    for statement in [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n",
        "SELECT text FROM found WHERE found MATCH 'newest'",
        "SELECT name FROM pragma_table_info('notes')",
        "PRAGMA table_info(notes)",
        "PRAGMA user_version",
        "EXPLAIN QUERY PLAN SELECT * FROM notes",
        "SELECT rank() OVER (ORDER BY stars) FROM releases",
        "SELECT name FROM sqlite_schema LIMIT 1",
    ] {
        let answer = world.call("", statement, &json!({})).await;
        assert!(
            !answer.is_error && answer.text.starts_with("[\n  {"),
            "{statement}: {}",
            answer.text
        );
    }
}

#[tokio::test]
async fn statement_error_does_not_repeat_the_statement() {
    let world = world();
    for (statement, why) in [
        ("SELECT missing FROM releases", "no such column: missing"),
        ("SELEC 1", "near \"SELEC\": syntax error"),
        ("SELECT \"beam\" FROM releases", "no such column: \"beam\""),
        ("-- nothing", ""),
    ] {
        let answer = world.call("", statement, &json!({})).await;
        assert!(answer.text.contains(why), "{statement}: {}", answer.text);
    }
}

#[tokio::test]
async fn probe_reports_tables_and_invalid_statements() {
    let world = world();
    let source = world.source("");
    let version = rusqlite::version();
    let good = tool_of(Arc::clone(&source), "SELECT $1 FROM releases", &["a"]);
    // The full-text table is one table, and five that carry it.
    assert_eq!(
        source.probe(&world.cx()).await,
        Ok(format!("SQLite {version}, 8 tables, read-only"))
    );
    let bad = tool_of(Arc::clone(&source), "SELECT $2 FROM release", &["a"]);
    let failure = source.probe(&world.cx()).await.unwrap_err().to_string();
    assert!(
        failure.ends_with("tool `t`: no such table: release"),
        "{failure}"
    );
    drop((good, bad));
    fs::write(
        world.folder.path().join("r.db"),
        "no database at all, but long enough",
    )
    .unwrap();
    let failure = source.probe(&world.cx()).await.unwrap_err().to_string();
    assert_eq!(failure, "file is not a database");
    fs::remove_file(world.folder.path().join("r.db")).unwrap();
    let failure = source.probe(&world.cx()).await.unwrap_err().to_string();
    assert_eq!(failure, "cannot open r.db: there is no such file");
}

#[test]
fn a_source_is_read_strictly() {
    let world = world();
    let folder = world.folder.path();
    let missing = folder.join("gone.db").display().to_string();
    for (text, expected) in [
        (
            "database: r.db\ntimeout: 1m30s\nwritable: false",
            String::new(),
        ),
        ("database: ':memory:'\ntimeout: 0.5", String::new()),
        (
            "timeout: 3",
            "a sqlite source needs `database`, a file".into(),
        ),
        (
            "database: gone.db",
            format!("there is no file {missing} yet"),
        ),
        (
            "database: file:r.db?mode=rw",
            "database must be the path of a file".into(),
        ),
        (
            "database: r.db\ntimeout: soon",
            "timeout must be a time up to 10 minutes, as in `10s` (got the text \"soon\")".into(),
        ),
        (
            "database: r.db\nwriteable: true",
            "unknown key `writeable`; did you mean `writable`?".into(),
        ),
    ] {
        let messages = source_of(folder, text).1.join("\n");
        assert!(
            messages.contains(&expected) && messages.is_empty() == expected.is_empty(),
            "{text}: {messages}"
        );
    }
}

#[tokio::test]
async fn in_memory_database_evaluates_expressions() {
    let world = world();
    let (source, _) = source_of(world.folder.path(), "database: ':memory:'");
    let tool = tool_of(source.unwrap(), "SELECT $1 + $2 AS sum", &["a", "b"]);
    let values = RawJson::parse("{\"a\": 20, \"b\": 22}").unwrap();
    let prepared = ValidatedCall {
        tool: "t".into(),
        canonical: values.clone(),
        values,
        coerced: vec![],
    };
    let answer = tool.call(&prepared, CallIx(0), &world.cx()).await;
    assert_eq!(answer.text, "[\n  {\"sum\": 42}\n]");
}

#[tokio::test]
async fn response_has_the_version_of_the_file_until_the_file_changes() {
    let world = world();
    let path = world.folder.path().join("r.db");
    let tool = tool_of(world.source(""), "SELECT count(*) FROM releases", &[]);
    let answer = world
        .call("", "SELECT count(*) FROM releases", &json!({}))
        .await;
    let before = answer.data_version.expect("a file has a version");
    assert_eq!(tool.data_version(), Some(before.clone()));
    // The size stays the same, so only the time of the change differs.
    let file = fs::File::options().write(true).open(&path).unwrap();
    let later = file.metadata().unwrap().modified().unwrap() + std::time::Duration::from_nanos(1);
    file.set_modified(later).unwrap();
    let touched = tool.data_version();
    assert_ne!(touched, Some(before));
    // Changes may be in the write-ahead log only.
    fs::write(world.folder.path().join("r.db-wal"), "").unwrap();
    assert_eq!(tool.data_version(), touched, "an empty log has no changes");
    fs::write(world.folder.path().join("r.db-wal"), "changes").unwrap();
    assert_ne!(tool.data_version(), touched);
    fs::remove_file(&path).unwrap();
    assert_eq!(tool.data_version(), None);
    let (source, _) = source_of(world.folder.path(), "database: ':memory:'");
    assert_eq!(
        tool_of(source.unwrap(), "SELECT 1", &[]).data_version(),
        None
    );
}

#[test]
fn digest_depends_on_statement_and_file_but_not_folder() {
    let (one, two) = (world(), world());
    let digest =
        |world: &World, keys, statement| tool_of(world.source(keys), statement, &[]).digest();
    let first = digest(&one, "", "SELECT 1");
    assert_eq!(first, digest(&two, "timeout: 3", "SELECT 1"));
    assert_ne!(first, digest(&one, "", "SELECT 2"));
}
