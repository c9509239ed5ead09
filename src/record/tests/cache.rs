//! Tests of the file that names the cache keys of each log: it saves time, and never changes an answer.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::reader::reseal;
use super::samples::{end, ended, key, newest_entry, planned, record, started, store};
use crate::model::{Digest, Outcome};
use crate::record::cache_file::{CACHE_INDEX_FILE, IndexedLog, KeyHint, read_index, write_index};
use crate::record::{CacheIndex, EVENTS_FILE, RecordKey};

const FIRST: &str = "20260101T000000Z-aaaa";
const SECOND: &str = "20260102T000000Z-bbbb";

fn digest(key: &str) -> Digest {
    Digest::hash_bytes(key.as_bytes())
}

/// Records a run with one judged cell.
async fn judged(runs: &Path, id: &str, key: &str, outcome: Outcome) {
    let kinds = vec![planned("t", 0), started(1, key), ended(1, outcome), end()];
    record(runs, id, kinds).await;
}

/// Opens the cache and returns the outcome of each key.
fn look_up<const N: usize>(runs: &Path, keys: [&str; N]) -> [Option<Outcome>; N] {
    let (cache, problems) = CacheIndex::open(&store(runs));
    assert_eq!(problems, [""; 0]);
    keys.map(|key| newest_entry(&cache, &digest(key)).map(|entry| entry.result.outcome))
}

#[tokio::test]
async fn question_that_occurs_twice_keeps_the_verdict_of_each_cell() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    let find = |name: &str| {
        let (cache, _) = CacheIndex::open(&store(runs));
        let name = name.parse().expect("a name");
        let found = cache.find(&digest("a"), &name);
        found.map(|entry| entry.result.outcome)
    };
    let mut both = vec![planned("t", 0), planned("u", 2)];
    both.extend([started(1, "a"), started(3, "a")]);
    both.extend([ended(1, Outcome::Pass), ended(3, Outcome::Fail), end()]);
    record(runs, FIRST, both).await;
    assert_eq!(find("t/r/asked~j"), Some(Outcome::Pass));
    assert_eq!(find("u/r/asked~j"), Some(Outcome::Fail));
    assert_eq!(find("t/r/asked~renamed#1"), Some(Outcome::Pass));
    assert_eq!(find("v/r/asked~j"), Some(Outcome::Fail), "the newest");

    let again = vec![planned("u", 0), started(1, "a")];
    let ends = [ended(1, Outcome::NotApplicable), end()];
    record(runs, SECOND, again.into_iter().chain(ends).collect()).await;
    assert_eq!(find("t/r/asked~j"), Some(Outcome::Pass), "its own");
    assert_eq!(find("u/r/asked~j"), Some(Outcome::NotApplicable));
    assert_eq!(find("v/r/asked~j"), Some(Outcome::NotApplicable));
}

/// Writes a valid file whose logs have no keys. So an answer shows that a log was read again.
fn forget_keys(runs: &Path) {
    let mut logs = read_index(&store(runs), &key());
    assert!(!logs.is_empty());
    for log in &mut logs {
        log.keys.clear();
    }
    write_index(&store(runs), &key(), &logs).expect("written");
}

fn append(runs: &Path, id: &str, text: &str) {
    let log = fs::File::options()
        .append(true)
        .open(runs.join(id).join(EVENTS_FILE));
    let mut log = log.expect("a log");
    log.write_all(text.as_bytes()).expect("written");
}

#[tokio::test]
async fn start_reads_only_new_and_changed_logs() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Pass).await;
    judged(runs, SECOND, "b", Outcome::Fail).await;
    let all = [Some(Outcome::Pass), Some(Outcome::Fail), None];
    assert_eq!(look_up(runs, ["a", "b", "c"]), all);
    assert_eq!(look_up(runs, ["a", "b", "c"]), all, "with the file");

    forget_keys(runs);
    assert_eq!(look_up(runs, ["a", "b", "c"]), [None; 3]);
    append(runs, FIRST, "\n");
    judged(runs, "20260103T000000Z-cccc", "c", Outcome::Fail).await;
    let read = [Some(Outcome::Pass), None, Some(Outcome::Fail)];
    assert_eq!(look_up(runs, ["a", "b", "c"]), read);
    assert_eq!(look_up(runs, ["a", "b", "c"]), read, "with the file");
}

#[tokio::test]
async fn file_that_is_damaged_or_from_elsewhere_is_built_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Pass).await;
    look_up(runs, ["a"]);
    let path = runs.join(CACHE_INDEX_FILE);
    forget_keys(runs);
    let bytes = fs::read(&path).expect("a file");
    // A later version can find verdicts in a log in which this one finds none.
    let version = concat!("dicta cache 1 ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(bytes.starts_with(version.as_bytes()));
    for at in [0, 12, 20, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&path, &damaged).expect("written");
        assert_eq!(look_up(runs, ["a"]), [Some(Outcome::Pass)], "byte {at}");
    }
    for length in [0, 14, 46, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("written");
        assert_eq!(look_up(runs, ["a"]), [Some(Outcome::Pass)], "{length}");
    }
    // Only this installation can leave out a key.
    let other = RecordKey::derive(&[6; 32]);
    write_index(&store(runs), &other, &[]).expect("written");
    assert_eq!(look_up(runs, ["a"]), [Some(Outcome::Pass)]);
}

#[tokio::test]
async fn file_that_others_can_read_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Pass).await;
    look_up(runs, ["a"]);
    forget_keys(runs);
    // On a file system without modes, each file looks so.
    let mode = fs::Permissions::from_mode(0o666);
    fs::set_permissions(runs.join(CACHE_INDEX_FILE), mode).expect("set");
    assert_eq!(look_up(runs, ["a"]), [None], "no log was read");
}

#[tokio::test]
async fn file_with_wrong_keys_never_gives_the_verdict_of_another_question() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Pass).await;
    judged(runs, SECOND, "b", Outcome::Fail).await;
    look_up(runs, []);
    let mut logs = read_index(&store(runs), &key());
    let every_key = ["a", "b", "c"].map(|key| KeyHint::of(&digest(key)));
    for IndexedLog { keys, .. } in &mut logs {
        *keys = every_key.to_vec();
    }
    write_index(&store(runs), &key(), &logs).expect("written");
    let expected = [Some(Outcome::Pass), Some(Outcome::Fail), None];
    assert_eq!(look_up(runs, ["a", "b", "c"]), expected);
}

#[tokio::test]
async fn log_that_changes_after_the_opening_is_checked_at_the_look_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Fail).await;
    let (cache, _) = CacheIndex::open(&store(runs));
    let log = runs.join(FIRST).join(EVENTS_FILE);
    let text = fs::read_to_string(&log).expect("a log");
    let forged = reseal(&text.replace(r#""outcome":"fail""#, r#""outcome":"pass""#));
    assert_eq!(forged.len(), text.len());
    fs::write(&log, forged).expect("written");
    assert_eq!(newest_entry(&cache, &digest("a")), None);
    assert_eq!(look_up(runs, ["a"]), [None]);
}

#[tokio::test]
async fn log_that_cannot_be_read_for_a_moment_loses_only_that_look_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    judged(runs, FIRST, "a", Outcome::Pass).await;
    judged(runs, SECOND, "a", Outcome::Fail).await;
    let (cache, _) = CacheIndex::open(&store(runs));
    let outcome = |cache: &CacheIndex| {
        let found = newest_entry(cache, &digest("a"));
        found.map(|entry| entry.result.outcome)
    };
    let (log, kept) = (runs.join(SECOND).join(EVENTS_FILE), runs.join("kept"));
    fs::rename(&log, &kept).expect("moved");
    // A link to itself cannot be opened, as no file can if the process has too many open files.
    std::os::unix::fs::symlink(EVENTS_FILE, &log).expect("linked");
    assert_eq!(outcome(&cache), None, "the older verdict is not the newest");
    fs::remove_file(&log).expect("removed");
    fs::rename(&kept, &log).expect("moved back");
    assert_eq!(outcome(&cache), Some(Outcome::Fail));

    let (cache, _) = CacheIndex::open(&store(runs));
    fs::remove_dir_all(runs.join(SECOND)).expect("removed");
    assert_eq!(
        outcome(&cache),
        Some(Outcome::Pass),
        "of the run that is left"
    );
}

#[tokio::test]
async fn cache_with_the_file_answers_as_without_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let runs = folder.path();
    let keys = ["a", "b", "c", "d"];
    let mut random = fastrand::Rng::with_seed(7);
    for step in 0..80 {
        let id = format!("202601{:02}T000000Z-aaaa", random.u8(1..=12));
        let dir = runs.join(&id);
        match random.u8(..4) {
            0 if dir.exists() => append(runs, &id, "\n"),
            1 if dir.exists() => fs::remove_dir_all(&dir).expect("removed"),
            2 if dir.exists() => {
                let log = dir.join(EVENTS_FILE);
                let text = fs::read_to_string(&log).expect("a log");
                // Another length, so that the change shows also within one tick of the clock.
                let changed = text.replace("said the judge", "said the other judge");
                fs::write(&log, changed).expect("written");
            }
            _ if dir.exists() => {}
            _ => {
                let outcome = [Outcome::Pass, Outcome::Fail, Outcome::JudgeError];
                let outcome = outcome[random.usize(..3)];
                judged(runs, &id, keys[random.usize(..4)], outcome).await;
            }
        }
        let with_file = look_up(runs, keys);
        let (file, kept) = (runs.join(CACHE_INDEX_FILE), runs.join(".kept"));
        // The file of many steps, and not a new one, is the one to test.
        let has_file = fs::rename(&file, &kept).is_ok();
        assert_eq!(with_file, look_up(runs, keys), "after step {step}");
        if has_file {
            fs::rename(&kept, &file).expect("moved back");
        }
    }
}
