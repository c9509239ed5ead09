//! Wall time, CPU time and peak memory of a whole process.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// The time and the memory of a process.
pub(crate) struct Measured {
    pub(crate) wall: Duration,
    /// User and system time; 10 ms is the system's own resolution.
    pub(crate) cpu: Duration,
    pub(crate) peak_mib: u64,
    pub(crate) code: Option<i32>,
}

impl Measured {
    pub(crate) fn print(&self, what: &str) {
        println!(
            "{what}: wall {:.3} s, cpu {:.2} s, peak {} MiB, exit {:?}",
            self.wall.as_secs_f64(),
            self.cpu.as_secs_f64(),
            self.peak_mib,
            self.code,
        );
    }
}

/// Runs the built program in a folder, with its data in a folder of its own.
pub(crate) fn dicta(args: &[&str], dir: &Path, stdout: Option<&Path>) -> Measured {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dicta"));
    command
        .args(args)
        .current_dir(dir)
        .env("DICTA_DATA_DIR", dir.join("data"))
        .stdin(Stdio::null());
    command.stderr(Stdio::null());
    match stdout {
        Some(path) => command.stdout(File::create(path).expect("an output file")),
        None => command.stdout(Stdio::null()),
    };
    let before = children_cpu();
    let start = Instant::now();
    let mut child = command.spawn().expect("the program starts");
    let status_file = format!("/proc/{}/status", child.id());
    let (ended, end) = std::sync::mpsc::channel::<()>();
    // Seldom, so that looking takes nothing from what is looked at; the peak only rises.
    let watch = std::thread::spawn(move || {
        let mut peak_mib = 0;
        while end.recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
            peak_mib = peak(&status_file).max(peak_mib);
        }
        peak_mib
    });
    let status = child.wait().expect("the program can be waited for");
    let wall = start.elapsed();
    drop(ended);
    let peak_mib = watch.join().expect("the watch ends");
    Measured {
        wall,
        cpu: children_cpu().saturating_sub(before),
        peak_mib,
        code: status.code(),
    }
}

fn peak(status_file: &str) -> u64 {
    let status = std::fs::read_to_string(status_file).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

/// The most memory that this process had so far, in MiB.
pub(crate) fn own_peak() -> u64 {
    peak("/proc/self/status")
}

/// CPU time of all children that ended: fields 16 and 17 of /proc/self/stat, in hundredths of a second.
fn children_cpu() -> Duration {
    ticks(&[15, 16])
}

/// CPU time of this process.
pub(crate) fn own_cpu() -> Duration {
    ticks(&[13, 14])
}

fn ticks(fields: &[usize]) -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name in brackets and may hold spaces.
    let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let numbers: Vec<&str> = after.split_whitespace().collect();
    let sum: u64 = fields
        .iter()
        .filter_map(|f| numbers.get(f - 2)?.parse::<u64>().ok())
        .sum();
    Duration::from_millis(sum * 10)
}

/// The machine's load, for the record.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}
