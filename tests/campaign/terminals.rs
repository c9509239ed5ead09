//! The program on a terminal that changes its size, gets signals, fails or goes away (T6, T7, U5 to U8).

use std::fs;
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::goals::combine;
use crate::pty::Pty;
use crate::sandbox::{Sandbox, find_strace_problem, grouped, has_panicked, text};
use crate::terminal::Terminal;
use crate::{Campaign, Measured, Scale};

/// The demo's first screen.
const FIRST: &str = "names-a-version";

/// JSON output on a terminal has escapes where a pipe has characters (T6).
pub(crate) fn measure_json_output(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(0, "judge: rules\n");
    let hidden: Vec<char> = ('\u{7f}'..='\u{9f}')
        .chain('\u{202a}'..='\u{202e}')
        .chain('\u{2066}'..='\u{2069}')
        .chain(['\u{200e}', '\u{200f}', '\u{61c}', '\u{2028}', '\u{2029}'])
        .collect();
    let lines = hidden.iter().enumerate().map(|(at, c)| {
        format!(
            "{{\"id\":\"t{at}{c}\",\"messages\":[{{\"role\":\"user\",\"content\":\"a{c}b\"}},{{\"role\":\"assistant\",\"content\":\"c{c}d\"}}]}}\n"
        )
    });
    sandbox.write("t.jsonl", &lines.collect::<String>());
    sandbox.dicta(&["run", "-q"]);
    let mut problems = Vec::new();
    let mut compared = 0;
    for args in [
        &["import", "t.jsonl"][..],
        &["show", "@", "--format", "jsonl"],
    ] {
        let piped = text(&sandbox.dicta(args).stdout);
        let mut pty = Pty::with(args, |command| {
            command.cwd(sandbox.path());
            command.env("DICTA_DATA_DIR", sandbox.data_dir());
        });
        pty.ended();
        let shown = String::from_utf8_lossy(&pty.written).into_owned();
        let parse = |output: &str| -> Vec<serde_json::Value> {
            output
                .lines()
                .filter_map(|line| serde_json::from_str(line.trim_end()).ok())
                .collect()
        };
        let name = args.join(" ");
        if parse(&piped).len() <= hidden.len() / 2 || parse(&piped) != parse(&shown) {
            problems.push(format!("`dicta {name}`: the outputs differ"));
        }
        for c in &hidden {
            compared += 1;
            if !piped.contains(*c) {
                problems.push(format!(
                    "`dicta {name}`: a pipe gets no {}",
                    c.escape_unicode()
                ));
            }
            if shown.contains(*c) {
                problems.push(format!(
                    "`dicta {name}`: a terminal gets {}",
                    c.escape_unicode()
                ));
            }
        }
    }
    conclude(
        &format!("{compared} characters of two commands compared"),
        &problems,
    )
}

/// The end of a workbench in [`measure_modes`].
enum End {
    Quit,
    Signal(Signal),
    /// The Nth write of the main thread fails: some of these writes wake a thread, and their failure is a panic.
    FailedWrite(usize),
}

/// The terminal has its modes after every end (T7).
pub(crate) fn measure_modes(campaign: &Campaign) -> Measured {
    let mut ends = vec![
        End::Quit,
        End::Signal(Signal::TERM),
        End::Signal(Signal::HUP),
    ];
    if campaign.scale == Scale::Full {
        ends.extend([Signal::INT, Signal::QUIT].map(End::Signal));
    }
    if find_strace_problem().is_none() {
        ends.extend((3..=campaign.count(2, 12)).map(End::FailedWrite));
    }
    measure_ends(campaign, &ends, 0)
}

/// The ends after which a measurement stops that has enough panics.
const ENOUGH_ENDS: usize = 38;

/// Panics of the main thread: a write that wakes another thread fails (U7).
pub(crate) fn measure_panics(campaign: &Campaign) -> Measured {
    if let Some(problem) = find_strace_problem() {
        return Measured::Skipped(problem);
    }
    // Which write fails depends on the time: the short form can miss a panic, and the whole campaign tries again.
    let writes = (3..=campaign.count(4, 40)).cycle();
    let ends: Vec<End> = writes
        .take(campaign.count(2, 190))
        .map(End::FailedWrite)
        .collect();
    let here = measure_ends(campaign, &ends, campaign.count(0, 3));
    combine(
        campaign,
        here,
        &[(
            "lib",
            &[
                "panicking_check_ends_as_check_error",
                "panicking_judge_ends_as_judge_error",
                "panic_details_go_to_the_log_and_not_to_the_model",
            ],
        )],
    )
}

fn measure_ends(campaign: &Campaign, ends: &[End], least_panics: usize) -> Measured {
    let mut problems = Vec::new();
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(3, "judge: rules\n");
    let (mut panics, mut tried) = (0, 0);
    for end in ends {
        if least_panics > 0 && panics >= least_panics && tried >= ENOUGH_ENDS {
            break;
        }
        tried += 1;
        let name = match end {
            End::Quit => "q".to_owned(),
            End::Signal(signal) => format!("signal {}", signal.as_raw()),
            End::FailedWrite(at) => format!("failed write {at}"),
        };
        // Unpacking the demo needs many writes before the first frame, so a failed write needs another workspace.
        let target = match end {
            End::FailedWrite(_) => sandbox.path().to_str().expect("Unicode"),
            _ => "--demo",
        };
        let mut pty = Pty::with(&["open", target], |command| {
            if let End::FailedWrite(at) = end {
                let words = [
                    "strace",
                    "-qq",
                    "-o",
                    "/dev/null",
                    "-e",
                    "trace=write",
                    "-e",
                    &format!("inject=write:error=EIO:when={at}"),
                    "--",
                ];
                command
                    .get_argv_mut()
                    .splice(0..0, words.map(std::ffi::OsString::from));
            }
        });
        let before = pty.first_modes().to_owned();
        match end {
            End::Quit => {
                pty.until_shown(FIRST).type_in("q");
            }
            End::Signal(signal) => {
                pty.until_shown(FIRST);
                kill_process(pty.id(), *signal).expect("sent");
            }
            End::FailedWrite(_) => {
                // A write that wakes no thread may fail without an end.
                pty.type_in("jkjkjkjkjkq");
            }
        }
        let ended = pty.ended();
        panics += usize::from(ended.code == 101);
        let has_expected_code = match end {
            End::Quit => ended.code == 0,
            End::Signal(signal) => i64::from(ended.code) == 128 + i64::from(signal.as_raw()),
            // A terminal that takes no output counts as closed. The codes of other signals are crashes.
            End::FailedWrite(_) => ended.code < 128 || ended.code == 129,
        };
        if !has_expected_code {
            problems.push(format!("{name}: exit code {}", ended.code));
        }
        if pty.alternate() || pty.cursor_hidden() || !pty.unbalanced().is_empty() {
            problems.push(format!("{name}: modes stay set: {:?}", pty.unbalanced()));
        }
        if pty.modes() != before {
            problems.push(format!("{name}: the terminal is not as before"));
        }
        let written = String::from_utf8_lossy(&pty.written).into_owned();
        if ended.code == 101 && !written.contains("a bug in dicta: ") {
            problems.push(format!("{name}: a panic without its message"));
        }
    }
    if panics < least_panics {
        problems.push(format!("only {panics} panics"));
    }
    conclude(
        &format!("{tried} ends of the workbench, {panics} of them panics with exit code 101"),
        &problems,
    )
}

/// Random sizes from 1×1 to 500×200 (U5).
pub(crate) fn measure_resizes(campaign: &Campaign) -> Measured {
    let count = campaign.count(60, 1000);
    let dir = tempfile::tempdir().expect("a folder");
    let mut terminal = Terminal::start(&["open", "--demo"], dir.path(), 120, 40);
    let is_whole = |screen: &str| {
        let rows: Vec<&str> = screen.trim_end().lines().collect();
        rows.len() == 40 && rows[0].starts_with(" dicta ") && rows[39].contains("? help")
    };
    let mut problems = Vec::new();
    wait_for(&terminal, "the first frame", &mut problems, |screen| {
        screen.contains(FIRST)
    });
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..count {
        terminal.resize(random.u16(1..=500), random.u16(1..=200));
        if random.u8(..) < 40 {
            terminal.press(["j", "\t", "+", "]", "6", "1"][random.usize(..6)]);
        }
    }
    terminal.resize(29, 7);
    wait_for(
        &terminal,
        "the notice below 30×8",
        &mut problems,
        |screen| screen.replace('\n', " ").contains("needs 30×8"),
    );
    terminal.resize(120, 40);
    wait_for(&terminal, "the last frame", &mut problems, is_whole);
    if !terminal.is_alive() {
        problems.push("the workbench ended".to_owned());
    }
    conclude(
        &format!("{} sizes from 1×1 to 500×200", grouped(count)),
        &problems,
    )
}

/// Signals, a closed terminal, and a stop (U6).
pub(crate) fn measure_signals(campaign: &Campaign) -> Measured {
    let mut problems = Vec::new();
    let (mut slowest_signal, mut slowest_close) = (Duration::ZERO, Duration::ZERO);
    let signals = [
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::QUIT, 131),
    ];
    for (signal, code) in &signals[..campaign.count(1, 4)] {
        let mut pty = Pty::start(&[]);
        let before = pty.first_modes().to_owned();
        pty.until_shown(FIRST).until_shown(" live");
        kill_process(pty.id(), *signal).expect("sent");
        let ended = pty.ended();
        slowest_signal = slowest_signal.max(ended.after);
        let name = format!("signal {}", signal.as_raw());
        if ended.code != *code {
            problems.push(format!("{name}: exit code {}", ended.code));
        }
        if pty.alternate() || pty.modes() != before {
            problems.push(format!("{name}: the terminal is not restored"));
        }
        if !pty.contents().contains("is recorded in") {
            problems.push(format!("{name}: no recording: {}", pty.contents()));
        }
    }
    // The terminal goes away, also from a program that ignores the signal for that.
    let ways: &[&str] = &["true", "trap '' HUP"];
    for way in &ways[..campaign.count(1, 2)] {
        let mut pty = Pty::through(way);
        pty.until_shown(FIRST);
        pty.hang_up();
        let ended = pty.ended();
        slowest_close = slowest_close.max(ended.after);
        if ended.code != 129 {
            problems.push(format!("a closed terminal: exit code {}", ended.code));
        }
    }
    let mut figure = format!(
        "{} signals, the slowest end took {} ms; {} closed terminals, the slowest end took {} ms",
        campaign.count(1, 4),
        slowest_signal.as_millis(),
        campaign.count(1, 2),
        slowest_close.as_millis()
    );
    // A loaded machine delays the shell, so only the whole campaign stops the workbench.
    if campaign.scale == Scale::Full {
        figure.push_str("; a stop");
        // A stop returns the terminal to the shell, and `fg` draws again. Without a shell, nothing could continue it.
        let mut pty = Pty::with(&["open", "--demo"], |command| {
            let words = ["bash", "-c", "set -m; \"$@\"; fg > /dev/null", "bash"];
            command
                .get_argv_mut()
                .splice(0..0, words.map(std::ffi::OsString::from));
        });
        pty.until_shown(FIRST);
        let shell = pty.id().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        let child = children
            .ok()
            .and_then(|ids| ids.split_whitespace().next()?.parse().ok())
            .and_then(rustix::process::Pid::from_raw)
            .expect("the shell started it");
        kill_process(child, Signal::TSTP).expect("sent");
        pty.until("the screen again", |pty| {
            String::from_utf8_lossy(&pty.written)
                .matches("\x1b[?1049h")
                .count()
                == 2
        });
        pty.until_shown(FIRST).type_in("q");
        if pty.ended().code != 0 {
            problems.push("it doesn't work after a stop".to_owned());
        }
    }
    // Only the whole campaign looks at the time: the short form runs next to other tests.
    if campaign.scale == Scale::Full {
        if slowest_signal > Duration::from_secs(1) {
            problems.push("an end by a signal took longer than 1 s".to_owned());
        }
        if slowest_close > Duration::from_secs(2) {
            problems.push("the end of a closed terminal took longer than 2 s".to_owned());
        }
    }
    conclude(&figure, &problems)
}

/// Every command without a terminal: closed, full and missing streams (U8).
pub(crate) fn measure_pipes(campaign: &Campaign) -> Measured {
    let sandbox = Sandbox::new(campaign);
    sandbox.workspace(3, "judge: rules\n");
    sandbox.dicta(&["run", "-q"]);
    // Only an edit adds a state that can be compared.
    let rubric = text(&sandbox.read("r.yaml").expect("a rubric"));
    sandbox.write("r.yaml", &rubric.replace("id: names", "id: digits"));
    sandbox.dicta(&["run", "-q"]);
    let commands: &[&[&str]] = &[
        &["run", "-q", "--format", "jsonl"],
        &["runs"],
        &[],
        &["open"],
        &["show", "@"],
        &["show", "@", "--format", "jsonl"],
        &["replay", "@", "--print", "--speed", "0"],
        &["compare", "@2", "@"],
        &["check"],
        &["judges"],
        &["tools", "--format", "json"],
        &["schema", "rubric"],
        &["import", "t.jsonl"],
        &["prompt", "t0/r/polite"],
        &["run", "--dry-run"],
        &["eval-types"],
        &["keys"],
        &["themes"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
        &["--version"],
    ];
    let mut problems = Vec::new();
    let mut cases = 0;
    for args in &commands[..campaign.count(2, commands.len())] {
        let name = args.join(" ");
        let normal = sandbox.dicta(args);
        // The workbench needs a terminal, and the other commands print something.
        let is_workbench = matches!(args, [] | ["open"]);
        if normal.stdout.is_empty() != is_workbench {
            problems.push(format!("`dicta {name}`: {}", text(&normal.stderr)));
        }
        let mut judge = |what: &str, output: &Output, code: Option<i32>| {
            cases += 1;
            let has_escapes = [&output.stdout, &output.stderr].map(|text| text.contains(&0x1b));
            if has_panicked(output) || has_escapes.contains(&true) {
                problems.push(format!("`dicta {name}`, {what}: {}", text(&output.stderr)));
            }
            if code.is_some() && output.status.code() != code {
                problems.push(format!(
                    "`dicta {name}`, {what}: exit code {:?}",
                    output.status.code()
                ));
            }
        };
        judge("a pipe", &normal, None);
        let mut closed_input =
            sandbox.command_through(&["sh", "-c", "exec \"$@\" <&-", "sh"], args);
        judge(
            "closed input",
            &run(&mut closed_input),
            normal.status.code(),
        );
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        if let Ok(full) = full
            && !normal.stdout.is_empty()
        {
            let mut command = sandbox.command(args);
            command.stdout(full);
            judge("full output", &run(&mut command), Some(74));
        }
        let mut command = sandbox.command(args);
        command.stdout(closed_pipe());
        judge("closed pipe", &run(&mut command), normal.status.code());
    }
    conclude(
        &format!(
            "{cases} cases of {} commands",
            campaign.count(2, commands.len())
        ),
        &problems,
    )
}

fn run(command: &mut std::process::Command) -> Output {
    command.output().expect("the program runs")
}

/// The writing end of a pipe that nothing reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    Stdio::from(writer)
}

/// Waits until the screen is as wanted, and returns the time. A screen that is not so after a minute is a problem.
pub(crate) fn wait_for(
    terminal: &Terminal,
    name: &str,
    problems: &mut Vec<String>,
    wanted: impl Fn(&str) -> bool,
) -> Duration {
    let took = terminal.until(wanted);
    if took >= Duration::from_mins(1) {
        problems.push(format!("{name} does not appear: {}", terminal.contents()));
    }
    took
}

/// The figure with the number of problems and the first ones.
pub(crate) fn conclude(figure: &str, problems: &[String]) -> Measured {
    if problems.is_empty() {
        return Measured::Reached(format!("{figure}: 0 problems"));
    }
    let first: Vec<String> = problems
        .iter()
        .take(3)
        .map(|problem| problem.replace('\n', " "))
        .collect();
    Measured::Missed(format!(
        "{figure}: {} problems; the first: {}",
        problems.len(),
        first.join("; ")
    ))
}
