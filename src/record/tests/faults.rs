//! Tests of recording on a file system that fails, at every call and with every kind of failure.
//!
//! Every event that was shown can be read. [`FaultyDisk`] keeps files in memory. It also knows the part of each file
//! that a loss of power would leave: only synced bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::samples::{end, ended, header, key, planned, settled, started};
use crate::clock::{Clock, FakeClock};
use crate::event::{EventKind, RunEvent};
use crate::model::{Blob, Digest, Millis, Outcome};
use crate::record::Recorder;
use crate::record::disk::{Disk, LockGuard, LogFile};
use crate::record::{EVENTS_FILE, RecordError, parse_log};

/// The fault at the Nth call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The call fails; the next calls would succeed.
    Once(ErrorKind),
    /// Half of the write succeeds, and from then on the disk is full.
    Full,
    /// Half of the write succeeds, and then the process ends.
    Killed,
}

#[derive(Debug, Default)]
struct Image {
    files: Vec<FileImage>,
    names: BTreeMap<PathBuf, usize>,
    dirs: BTreeSet<PathBuf>,
    /// The names that survive a loss of power.
    lasting: BTreeSet<PathBuf>,
    calls: usize,
    fault: Option<(usize, Fault)>,
    hit: bool,
    /// The calls on the log, each with its success.
    on_log: Vec<bool>,
    log_syncs: usize,
}

#[derive(Debug, Default, Clone)]
struct FileImage {
    bytes: Vec<u8>,
    synced: usize,
}

#[derive(Debug, Clone, Default)]
struct FaultyDisk(Arc<Mutex<Image>>);

impl FaultyDisk {
    fn failing(at: usize, fault: Fault) -> Self {
        let disk = Self::default();
        disk.image().fault = Some((at, fault));
        disk
    }

    fn image(&self) -> MutexGuard<'_, Image> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Image {
    /// Counts a call. Returns the number of its bytes that take effect, or the error.
    fn call(&mut self, bytes: usize) -> io::Result<usize> {
        self.calls += 1;
        let Some((at, fault)) = self.fault else {
            return Ok(bytes);
        };
        let full = || Err(ErrorKind::StorageFull.into());
        match self.calls.cmp(&at) {
            std::cmp::Ordering::Less => Ok(bytes),
            std::cmp::Ordering::Equal => {
                self.hit = true;
                match fault {
                    Fault::Once(kind) => Err(kind.into()),
                    Fault::Full | Fault::Killed if bytes > 1 => Ok(bytes / 2),
                    Fault::Full | Fault::Killed => full(),
                }
            }
            std::cmp::Ordering::Greater => match fault {
                Fault::Once(_) => Ok(bytes),
                Fault::Full | Fault::Killed => full(),
            },
        }
    }

    /// Returns the bytes that a reader finds, now or after a loss of power.
    fn bytes(&self, path: &Path, power_lost: bool) -> Option<&[u8]> {
        if power_lost && !self.lasting.contains(path) {
            return None;
        }
        let file = &self.files[*self.names.get(path)?];
        Some(
            &file.bytes[..if power_lost {
                file.synced
            } else {
                file.bytes.len()
            }],
        )
    }
}

impl Disk for FaultyDisk {
    fn ensure_dir(&self, _path: &Path) -> io::Result<()> {
        self.image().call(0).map(drop)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut image = self.image();
        image.call(0)?;
        image.dirs.insert(path.to_owned());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn LogFile>> {
        let mut image = self.image();
        image.call(0)?;
        let file = image.files.len();
        image.files.push(FileImage::default());
        image.names.insert(path.to_owned(), file);
        Ok(Box::new(FaultyFile {
            disk: self.clone(),
            file,
            is_log: path.ends_with(EVENTS_FILE),
        }))
    }

    fn lock(&self, _path: &Path, _pid: u32) -> io::Result<Box<dyn LockGuard>> {
        self.image().call(0)?;
        Ok(Box::new(NotHeld))
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let mut image = self.image();
        image.call(0)?;
        let image = &mut *image;
        if let Some(file) = image.names.get(path) {
            image.files[*file].synced = image.files[*file].bytes.len();
        } else {
            let inside = image.names.keys().filter(|n| n.parent() == Some(path));
            image.lasting.extend(inside.cloned());
        }
        Ok(())
    }

    fn remove_unused_dir(&self, path: &Path) {
        self.image().names.retain(|name, _| !name.starts_with(path));
    }
}

struct NotHeld;
impl LockGuard for NotHeld {}

struct FaultyFile {
    disk: FaultyDisk,
    file: usize,
    is_log: bool,
}

impl LogFile for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut image = self.disk.image();
        let written = image.call(bytes.len());
        if self.is_log {
            image.on_log.push(written.is_ok());
        }
        let written = written?;
        image.files[self.file]
            .bytes
            .extend_from_slice(&bytes[..written]);
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut image = self.disk.image();
        let synced = image.call(0);
        image.log_syncs += 1;
        if self.is_log {
            image.on_log.push(synced.is_ok());
        }
        synced?;
        let file = &mut image.files[self.file];
        file.synced = file.bytes.len();
        Ok(())
    }
}

const RUNS: &str = "/runs";
const ID: &str = "20260101T000000Z-kvqa";

/// Records a small run step by step. Returns the shown events and the result.
async fn a_run_on(disk: &FaultyDisk) -> (Vec<RunEvent>, Result<(), RecordError>, bool) {
    let clock = FakeClock::new();
    let on: Arc<dyn Clock> = Arc::new(clock.clone());
    let runs = Path::new(RUNS);
    let on_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let begun = Recorder::start_on_disk(
        &on_disk,
        runs,
        header(ID),
        &[],
        Arc::default(),
        on,
        Some(key()),
    );
    let begun = match begun {
        Ok(begun) => begun,
        Err(error) => return (Vec::new(), Err(error), true),
    };
    let (emitter, mut events) = (begun.emitter, begun.events);
    let mut shown = Vec::new();
    if let Some(batch) = events.recv().await {
        shown.extend(batch.iter().cloned());
    }
    for step in 0..12_u32 {
        let cell = 2 * step;
        let page = format!("page {step} ").repeat(700);
        let _kept = emitter.store_text(&page).await; // sends `BlobStored`, if it could be stored
        let kinds = [
            planned(&format!("t{step}"), cell),
            settled(cell, Outcome::Pass),
            started(cell + 1, "key"),
            ended(cell + 1, Outcome::Fail),
        ];
        for kind in kinds {
            emitter.send(kind).await;
        }
        clock.advance(Millis(450));
        while shown.len() < 1 + 5 * (step as usize + 1) {
            match events.recv().await {
                Some(batch) => shown.extend(batch.iter().cloned()),
                None => break,
            }
        }
    }
    emitter.send(end()).await;
    drop(emitter);
    while let Some(batch) = events.recv().await {
        shown.extend(batch.iter().cloned());
    }
    let ended = begun.recorder.finish().await;
    (shown, ended, begun.failed.is_cancelled())
}

fn named(events: &[RunEvent]) -> Vec<&Blob> {
    events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::BlobStored(blob) => Some(blob),
            _ => None,
        })
        .collect()
}

/// Checks every law that holds at any moment for a log and its blobs, as a reader finds them.
fn check(image: &Image, power_lost: bool, context: &str) -> Vec<RunEvent> {
    let dir = Path::new(RUNS).join(ID);
    let Some(bytes) = image.bytes(&dir.join(EVENTS_FILE), power_lost) else {
        return Vec::new();
    };
    let log = parse_log(io::Cursor::new(bytes.to_vec()), Path::new(EVENTS_FILE))
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    let torn = usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
    assert_eq!(log.warnings.len(), torn, "{context}: {:?}", log.warnings);
    for (at, event) in log.events.iter().enumerate() {
        assert_eq!(event.seq, at as u64, "{context}");
    }
    for blob in named(&log.events) {
        let path = dir.join("blobs").join(&blob.hash.0);
        let bytes = image
            .bytes(&path, power_lost)
            .unwrap_or_else(|| panic!("{context}: blob {} is named and not there", blob.hash));
        assert_eq!(Digest::hash_bytes(bytes), blob.hash, "{context}");
    }
    log.events
}

async fn at_every_call(fault: Fault) {
    for at in 1.. {
        let disk = FaultyDisk::failing(at, fault);
        let (shown, ended, failed) = a_run_on(&disk).await;
        let image = disk.image();
        let context = format!("{fault:?} at call {at}");
        let read = check(&image, false, &context);
        check(&image, true, &context);
        if !image.hit {
            ended.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert!(!failed, "{context}");
            assert_eq!(read, shown, "{context}");
            assert_eq!(
                check(&image, true, &context),
                shown,
                "{context}: all of it lasts"
            );
            // 5.4 s long: one at the start, one a second, one at the end.
            assert!(image.log_syncs <= 7, "{context}: {} syncs", image.log_syncs);
            assert!(at > 60, "a run of this size makes more calls than {at}");
            return;
        }
        assert!(ended.is_err(), "{context}: a failure is told");
        assert!(failed, "{context}: the run hears of it");
        assert!(
            read.len() >= shown.len(),
            "{context}: shown but not recorded"
        );
        assert_eq!(read[..shown.len()], shown[..], "{context}");
        let after = image.on_log.iter().skip_while(|ok| **ok).skip(1).count();
        assert_eq!(
            after, 0,
            "{context}: the log is left alone after a failure on it"
        );
    }
}

#[tokio::test]
async fn full_disk_at_any_call_ends_the_run_and_loses_no_sent_event() {
    at_every_call(Fault::Full).await;
}

#[tokio::test]
async fn disk_error_at_any_call_is_final() {
    at_every_call(Fault::Once(ErrorKind::Other)).await;
}

#[tokio::test]
async fn kill_loses_no_sent_event_and_power_loss_no_synced_event() {
    at_every_call(Fault::Killed).await;
}

/// Returns a disk after a loss of power: of each file the synced bytes and a part of the later ones; of the names the
/// lasting ones and some of the others.
fn lose_power(image: &Image, random: &mut fastrand::Rng) -> Image {
    let files = image.files.iter().map(|file| {
        let later = &file.bytes[file.synced..];
        let kept = random.usize(..=later.len());
        let bytes = [&file.bytes[..file.synced], &later[..kept]].concat();
        FileImage {
            synced: bytes.len(),
            bytes,
        }
    });
    let files = files.collect();
    let names = image.names.iter();
    let survives =
        |name: &PathBuf, random: &mut fastrand::Rng| image.lasting.contains(name) || random.bool();
    let names: BTreeMap<PathBuf, usize> = names
        .filter(|(name, _)| survives(name, random))
        .map(|(name, file)| (name.clone(), *file))
        .collect();
    Image {
        files,
        lasting: names.keys().cloned().collect(),
        names,
        ..Image::default()
    }
}

#[tokio::test]
async fn images_of_the_disk_after_power_losses_have_every_synced_event() {
    // The campaign sets the variable for its count.
    let wanted = match std::env::var_os("DICTA_CAMPAIGN") {
        Some(_) => 10_000,
        None => 500,
    };
    let mut disks = Vec::new();
    for at in 1.. {
        let disk = FaultyDisk::failing(at, Fault::Killed);
        let _killed = a_run_on(&disk).await;
        if !disk.image().hit {
            break;
        }
        disks.push(disk);
    }
    let mut random = fastrand::Rng::with_seed(15);
    let log = Path::new(RUNS).join(ID).join(EVENTS_FILE);
    for number in 0..wanted {
        let at = number % disks.len();
        let image = disks[at].image();
        let synced = check(&image, true, "the synced part").len();
        let lost = lose_power(&image, &mut random);
        let context = format!("image {number}, power lost at call {}", at + 1);
        let Some(bytes) = lost.bytes(&log, false) else {
            assert_eq!(synced, 0, "{context}: the log is gone");
            continue;
        };
        let read = parse_log(io::Cursor::new(bytes.to_vec()), Path::new(EVENTS_FILE))
            .unwrap_or_else(|error| panic!("{context}: {error}"));
        // A record that lacks only its line break is whole.
        let tail = bytes
            .rsplit(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let is_whole = serde_json::from_slice::<RunEvent>(tail).is_ok();
        let torn = usize::from(!tail.is_empty() && !is_whole);
        assert_eq!(read.warnings.len(), torn, "{context}: {:?}", read.warnings);
        assert!(
            read.events.len() >= synced,
            "{context}: a synced event is gone"
        );
        // The contents that synced events name are complete.
        for blob in named(&read.events[..synced]) {
            let path = Path::new(RUNS).join(ID).join("blobs").join(&blob.hash.0);
            let bytes = lost.bytes(&path, false).unwrap_or_default();
            assert_eq!(Digest::hash_bytes(bytes), blob.hash, "{context}");
        }
    }
}

#[tokio::test]
async fn power_loss_loses_at_most_one_second() {
    let disk = FaultyDisk::default();
    let clock = FakeClock::new();
    let on: Arc<dyn Clock> = Arc::new(clock.clone());
    let on_disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let begun = Recorder::start_on_disk(
        &on_disk,
        Path::new(RUNS),
        header(ID),
        &[],
        Arc::default(),
        on,
        Some(key()),
    );
    let mut begun = begun.expect("a sound disk");
    begun.events.recv().await.expect("the header");
    begun.emitter.send(planned("t", 0)).await;
    begun.emitter.send(settled(0, Outcome::Pass)).await;
    let mut shown = 1;
    while shown < 3 {
        shown += begun.events.recv().await.expect("recorded").len();
    }
    // Nothing else happens in the run; the sync comes by itself.
    let synced = || check(&disk.image(), true, "idle").len();
    while clock.next_wake().is_none() && synced() < 3 {
        tokio::task::yield_now().await;
    }
    clock.advance(Millis::from_secs(1));
    while synced() < 3 {
        tokio::task::yield_now().await;
    }
    drop(begun.emitter);
    begun.recorder.finish().await.expect("recorded");
}
