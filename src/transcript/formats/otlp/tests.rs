use std::path::Path;

use crate::transcript::TranscriptFile;

#[test]
fn dump() {
    let dir = Path::new("/tmp/peers7/otlp");
    let mut all: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    all.sort();
    for path in all {
        eprintln!("== {}", path.display());
        let mut file = TranscriptFile::open(&path).unwrap();
        while let Some(block) = file.next_block().unwrap() {
            for (record, bytes) in block.records() {
                eprintln!(
                    "{:?} {:?}\n{}",
                    record.span,
                    record.fault,
                    String::from_utf8_lossy(bytes)
                );
                if record.fault.is_none() {
                    assert_eq!(file.read(record.span).unwrap(), bytes);
                }
            }
        }
        eprintln!("{:?}", file.tally());
    }
}
