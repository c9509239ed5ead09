//! The soak: one workbench, thousands of saves, sizes, keys and runs, and the memory that it has after each part.
//!
//! Doesn't measure speed: `benches/screen` does.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::terminal::Terminal;
use crate::terminals::wait_for;
use crate::{Campaign, Measured, Scale};

/// The time over which the whole campaign spreads the saves.
const DURATION: Duration = Duration::from_mins(20);

/// The screens between which the soak changes, in columns and rows; the smallest only shows a notice.
const SIZES: [(u16, u16); 6] = [(80, 24), (120, 40), (200, 60), (81, 25), (19, 5), (140, 50)];

/// Keys that open and close overlays, move, zoom, filter and judge again.
const KEYS: [&str; 8] = ["j", "?\u{1b}", "+", "+", "/names\r", "/\r", "R", "G"];

/// The most growth of the memory between the second quarter and the last one, in MiB. The first quarter fills caches.
const MAX_GROWTH: u64 = 16;

/// Edits a rubric, resizes the terminal and judges again, and compares the memory of the quarters.
pub(crate) fn memory_stays_flat(campaign: &Campaign) -> Measured {
    if !Path::new("/proc/self/status").exists() {
        return Measured::Skipped(
            "this system has no /proc, where the soak reads the memory".to_owned(),
        );
    }
    let saves = campaign.count(12, 10_000);
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_workspace(folder.path());
    let mut terminal = Terminal::start(&[], folder.path(), 120, 40);
    let mut problems = Vec::new();
    wait_for(&terminal, "the first frame", &mut problems, |screen| {
        screen.contains("names")
    });
    terminal.press("R");
    wait_for(&terminal, "the first run", &mut problems, |screen| {
        screen.contains("✓ 8")
    });
    if let Some(problem) = problems.pop() {
        return Measured::Missed(problem);
    }
    let (_silent, waiting) = std::sync::mpsc::channel::<()>();
    let begin = Instant::now();
    let mut quarters: [Vec<u64>; 4] = [const { Vec::new() }; 4];
    for save in 0..saves {
        let passes = save % 2 == 1;
        write_rubric(folder.path(), passes);
        let (columns, rows) = SIZES[save % SIZES.len()];
        terminal.resize(columns, rows);
        terminal.press(KEYS[save % KEYS.len()]);
        if save % 10 == 9 {
            // At a readable size, the decisions of the newest save must appear: the workbench still works.
            terminal.resize(120, 40);
            terminal.press("\u{1b}");
            let wanted = if passes { "✓ 8" } else { "✗ 8" };
            if terminal.until(|screen| screen.contains(wanted)) >= Duration::from_secs(59) {
                return Measured::Missed(format!(
                    "after {save} saves, the screen doesn't show `{wanted}`"
                ));
            }
        }
        if !terminal.is_alive() {
            return Measured::Missed(format!("the workbench ended after {save} saves"));
        }
        quarters[save * 4 / saves].push(terminal.took().1);
        if campaign.scale == Scale::Full {
            let due = DURATION.mul_f64((save + 1) as f64 / saves as f64);
            // The saves are spread over the time; nothing is sent, so this waits.
            let _timeout = waiting.recv_timeout(due.saturating_sub(begin.elapsed()));
        }
    }
    let medians = quarters.map(|mut quarter| {
        quarter.sort_unstable();
        quarter.get(quarter.len() / 2).copied().unwrap_or(0)
    });
    let runs = std::fs::read_dir(folder.path().join("runs")).map_or(0, Iterator::count);
    let mut figure = format!(
        "{saves} saves and sizes, {runs} runs, {:.0} s; median memory of the quarters",
        begin.elapsed().as_secs_f64()
    );
    for median in medians {
        write!(figure, " {median}").expect("a string");
    }
    figure.push_str(" MiB");
    if medians.contains(&0) || runs == 0 {
        return Measured::Missed(figure);
    }
    // A dozen saves still fill caches, so the short form only checks that the workbench answers.
    if campaign.scale == Scale::Full && medians[3] > medians[1] + MAX_GROWTH {
        Measured::Missed(figure)
    } else {
        Measured::Reached(figure)
    }
}

/// Writes a workspace of eight transcripts and one rubric.
fn write_workspace(folder: &Path) {
    let mut transcripts = String::new();
    for record in 0..8 {
        writeln!(
            transcripts,
            r#"{{"id":"t{record}","messages":[{{"role":"user","content":"which?"}},{{"role":"assistant","content":"Use 2.69."}}]}}"#
        )
        .expect("a string");
    }
    std::fs::write(folder.join("t.jsonl"), transcripts).expect("the transcripts are written");
    std::fs::write(
        folder.join("dicta.yaml"),
        "transcripts: [t.jsonl]\nrubrics: [r.yaml]\nruns: runs\n",
    )
    .expect("the workspace is written");
    write_rubric(folder, true);
}

/// Saves the rubric as an editor does: a new file that replaces the old one.
fn write_rubric(folder: &Path, passes: bool) {
    let pattern = if passes { "2[.]69" } else { "2[.]70" };
    let rubric = format!(
        "id: r\nevals:\n  - id: names\n    type: regex\n    params: {{ pattern: '{pattern}' }}\n"
    );
    std::fs::write(folder.join("r.new"), rubric).expect("the rubric is written");
    std::fs::rename(folder.join("r.new"), folder.join("r.yaml")).expect("the rubric is replaced");
}
