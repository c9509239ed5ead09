//! The cost of recording: 200,000 small events through the emitter, the sequencer and the disk.

use std::path::Path;
use std::sync::Arc;

use dicta::clock::SystemClock;
use dicta::event::{EventKind, Redactor};
use dicta::model::CellIx;
use dicta::record::{RecordKey, Recorder, StartedRecording};

use crate::data;
use crate::measure::own_cpu;

const EVENTS: u32 = 200_000;

pub(crate) fn recording(dir: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let header = data::header();
    let redactor = Arc::new(Redactor::new(["sk-a-key-that-is-looked-for"]));
    let (cpu, start) = (own_cpu(), std::time::Instant::now());
    runtime.block_on(async {
        let StartedRecording {
            recorder,
            emitter,
            mut events,
            ..
        } = Recorder::start_with_texts(
            &dir.join("runs"),
            header,
            &[],
            redactor,
            Arc::new(SystemClock::new()),
            Some(RecordKey::derive(&[7; 32])),
        )
        .expect("a run");
        let reader = tokio::spawn(async move {
            let mut seen = 0;
            while let Some(batch) = events.recv().await {
                seen += batch.len();
            }
            seen
        });
        for cell in 0..EVENTS {
            emitter
                .send(EventKind::CellStarted {
                    cell: CellIx(cell),
                    key: None,
                })
                .await;
        }
        drop(emitter);
        let seen = reader.await.expect("the reader ends");
        recorder.finish().await.expect("recorded");
        assert!(seen >= EVENTS as usize, "every event is handed on");
    });
    let (wall, cpu) = (start.elapsed(), own_cpu().saturating_sub(cpu));
    println!(
        "{EVENTS} events: wall {:.3} s, cpu {:.2} s",
        wall.as_secs_f64(),
        cpu.as_secs_f64()
    );
}
