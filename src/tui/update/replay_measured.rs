//! How long a large recording takes: figures, no assertions.

use std::time::Duration;

use super::*;

/// Figures for the report; `cargo test --release -- --ignored --nocapture measured`.
#[test]
#[ignore = "measures, asserts nothing"]
fn measured_rebuild_of_a_large_log() {
    let mut kinds = vec![Kind::RunStarted(Box::new(header()))];
    for n in 0..20_000 {
        kinds.extend([
            planned(n),
            settled(&[(2 * n, Outcome::Pass)]),
            started(2 * n + 1),
        ]);
        kinds.extend((0..6).map(|_| turn(2 * n + 1)));
        kinds.push(ended(2 * n + 1, Outcome::Fail));
    }
    let log = numbered(kinds);
    let clock = std::time::Instant::now();
    let mut model = model(Place::Recording);
    let run = RunId("x-k3f9".to_owned());
    model.opening.from = StartAt::End;
    read(&mut model, run, "/r".into(), Ok(log), Vec::new());
    eprintln!("opened and first bite: {:?}", clock.elapsed());
    for what in ["to the end", "one event back"] {
        let (clock, mut worst, mut wakes) = (std::time::Instant::now(), Duration::ZERO, 0);
        if what == "one event back" {
            command(&mut model, Command::StepBack);
            wakes += 1;
            worst = clock.elapsed();
        }
        while replay(&model).seeking() {
            let wake = std::time::Instant::now();
            time_passed(&mut model);
            worst = worst.max(wake.elapsed());
            wakes += 1;
        }
        eprintln!(
            "{what}: {:?} in {wakes} wakes, the longest {worst:?}",
            clock.elapsed()
        );
    }
}
