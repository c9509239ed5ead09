//! Tables of dicta in CSV: a spreadsheet calculates nothing in them, and dicta reads them back unchanged.

use serde_json::json;

use crate::cli::{TestDir, text};

#[test]
fn formulas_have_a_mark_that_an_import_removes() {
    let test_dir = TestDir::new();
    test_dir.workspace(
        "labels: labels.csv\n",
        "  - { id: e, type: contains, params: { patterns: [good] } }\n",
    );
    let ids = ["=1+1", "-5", "'=quoted", "@x,y", "plain"];
    let record = |id: &&str| {
        json!({"id": id, "messages": [{"role": "assistant", "content": "good"}]}).to_string() + "\n"
    };
    test_dir.write("t.jsonl", &ids.iter().map(record).collect::<String>());
    test_dir.write("labels.csv", "transcript,eval,passed\n");
    let run = test_dir.dicta(&["run", "-q", "-o", "results.csv"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let exported = test_dir.dicta(&["export", "@", "-o", "decisions.csv"]);
    assert_eq!(
        exported.status.code(),
        Some(0),
        "{}",
        text(&exported.stderr)
    );
    for table in ["results.csv", "decisions.csv"] {
        let written = std::fs::read_to_string(test_dir.path().join(table)).expect("written");
        for cell in ["'=1+1,", "-5,", "''=quoted,", "\"'@x,y\",", "plain,"] {
            assert!(written.contains(cell), "{table}, {cell}: {written}");
        }
        assert!(!written.contains("'-5,"), "{table}: {written}");
        let map = "id: transcript, input: eval, output: outcome";
        let imported = test_dir.dicta(&["import", table, "--map", map]);
        let read: Vec<String> = text(&imported.stdout)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"))
            .map(|transcript| transcript["id"].as_str().expect("an id").to_owned())
            .collect();
        assert_eq!(read, ids, "{table}: {}", text(&imported.stderr));
        // A person fills in the labels of the same table.
        let mut rows = csv::Reader::from_reader(written.as_bytes());
        let header = rows.headers().expect("a header").clone();
        let column = |name: &str| header.iter().position(|column| column == name);
        let (transcript, passed) = (column("transcript"), column("passed"));
        let mut labels = csv::Writer::from_writer(Vec::new());
        let kept = ["transcript", "eval_type", "flags", "eval", "passed"];
        labels.write_record(kept).expect("written");
        for row in rows.records() {
            let row = row.expect("a row");
            let cell =
                |at: Option<usize>| row.get(at.expect("a column")).expect("a cell").to_owned();
            let cells = [
                cell(transcript),
                String::new(),
                String::new(),
                "e".to_owned(),
                cell(passed),
            ];
            labels.write_record(cells).expect("written");
        }
        let labels = labels.into_inner().expect("written");
        test_dir.write("labels.csv", &String::from_utf8(labels).expect("text"));
        let agree = test_dir.dicta(&["run", "-q", "--format", "jsonl"]);
        let labelled = crate::cli::rows(&agree);
        let labelled = labelled.iter().filter(|row| row["label"] == true).count();
        assert_eq!(labelled, ids.len(), "{table}: {}", text(&agree.stderr));
    }
}
