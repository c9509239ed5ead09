//! The cost of an Inspect log: 10,000 samples listed by the log's directory, one of them read, all of them read.
//!
//! The log is made here in Inspect's layout (summaries that hold a sample's input, as Inspect writes them), or is the one
//! that `DICTA_BENCH_EVAL` names.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dicta::transcript::TranscriptFile;
use serde_json::{Value, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::data;
use crate::measure::own_peak;

const SAMPLES: usize = 10_000;

pub(crate) fn inspect(dir: &Path) {
    let log = std::env::var_os("DICTA_BENCH_EVAL").map(PathBuf::from);
    let log = log.unwrap_or_else(|| made(&dir.join("log.eval")));
    let bytes = std::fs::metadata(&log).expect("a log").len();
    let start = Instant::now();
    let mut file = TranscriptFile::open(&log).expect("opened");
    let entries = file.read_index().expect("read").expect("a directory");
    let listed = start.elapsed().as_secs_f64();
    let (count, megabytes) = (entries.len(), bytes / 1_000_000);
    let peak = own_peak();
    println!("{count} samples of {megabytes} MB listed: wall {listed:.3} s, peak {peak} MiB");

    let start = Instant::now();
    let middle = &entries[count / 2];
    let read = file.read_native(middle.span).expect("read").len();
    let took = start.elapsed().as_secs_f64();
    println!("  one of them by its place ({read} bytes): wall {took:.4} s");

    let start = Instant::now();
    let mut file = TranscriptFile::open(&log).expect("opened");
    let mut samples = 0;
    while let Some(block) = file.next_block().expect("read") {
        if samples == 0 {
            let took = start.elapsed().as_secs_f64();
            println!(
                "  opened and the first {} read: wall {took:.3} s",
                block.records.len()
            );
        }
        samples += block.records.len();
    }
    let (took, peak) = (start.elapsed().as_secs_f64(), own_peak());
    println!("  all {samples} read: wall {took:.2} s, peak {peak} MiB");
}

/// A log of about 100 MB: samples as they are, summaries packed.
fn made(path: &Path) -> PathBuf {
    let mut zip = ZipWriter::new(File::create(path).expect("a file"));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let packed = SimpleFileOptions::default().compression_method(CompressionMethod::Zstd);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut summaries = Vec::with_capacity(SAMPLES);
    for i in 0..SAMPLES {
        let made = data::transcript(&mut rng, i);
        let input: Vec<Value> = made["messages"]
            .as_array()
            .into_iter()
            .flatten()
            .map(message)
            .collect();
        let scores = json!({"match": {"value": "C", "explanation": "it is there", "history": []}});
        let summary =
            json!({"id": made["id"], "epoch": 1, "input": input, "target": "x", "scores": scores});
        let mut sample = summary.clone();
        sample["messages"] = Value::Array(input);
        sample["input"] = "x".into();
        sample["store"] = json!({ "notes": "kept ".repeat(400) });
        let name = format!(
            "samples/{}_epoch_1.json",
            made["id"].as_str().unwrap_or_default()
        );
        zip.start_file(name, stored).expect("begun");
        zip.write_all(sample.to_string().as_bytes())
            .expect("written");
        summaries.push(summary);
    }
    let header = json!({"version": 2, "status": "success", "eval": {"task": "bench", "model": "m", "config": {"epochs": 1}}});
    for (name, value) in [
        ("summaries.json", Value::Array(summaries)),
        ("header.json", header),
    ] {
        zip.start_file(name, packed).expect("begun");
        zip.write_all(value.to_string().as_bytes())
            .expect("written");
    }
    zip.finish().expect("a log");
    path.to_owned()
}

/// A message in Inspect's shape.
fn message(ours: &Value) -> Value {
    let calls = ours["tool_calls"].as_array().map(|calls| {
        let call = |call: &Value| {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            json!({"id": call["id"], "function": call["function"]["name"], "arguments": arguments, "type": "function"})
        };
        calls.iter().map(call).collect::<Vec<_>>()
    });
    let mut theirs = ours.clone();
    theirs["content"] = ours["content"].as_str().unwrap_or_default().into();
    if let Some(calls) = calls {
        theirs["tool_calls"] = calls.into();
    }
    theirs
}
