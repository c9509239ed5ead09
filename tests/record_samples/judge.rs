//! The scripted judge: a [`WireServer`] that knows its scenes.

use std::sync::Mutex;
use std::time::Duration;

use crate::script::{Recording, Scene, Step};
use crate::support::wire::{Dialect, Reply, Request, WireServer};

/// Between two pieces of a reply, so that a replay looks like somebody writing.
const PACE: Duration = Duration::from_millis(25);

/// Starts the judge of a recording.
pub(crate) fn serve(recording: &mut Recording) -> WireServer {
    let scenes = std::mem::take(&mut recording.scenes);
    let taken = Mutex::new(vec![0; scenes.len()]);
    WireServer::answering(Dialect::Openai, move |request| {
        let Some(at) = scenes.iter().position(|scene| fits(scene, request)) else {
            return Reply::status(418)
                .body(r#"{"error":{"message":"no scene was written for this request"}}"#);
        };
        let mut taken = taken.lock().expect("no scene panics");
        let steps = &scenes[at].steps;
        // The last step repeats: how often a cut stream is tried again is not the script's business.
        let step = &steps[taken[at].min(steps.len() - 1)];
        taken[at] += 1;
        reply(step)
    })
}

fn fits(scene: &Scene, request: &Request) -> bool {
    scene.when.iter().all(|text| request.mentions(text))
}

fn reply(step: &Step) -> Reply {
    let reply = match step {
        Step::Says(text) => Reply::text(*text),
        Step::Calls(calls) => calls
            .iter()
            .fold(Reply::text(""), |reply, (name, arguments)| {
                reply.and_raw_call(name, arguments.as_str())
            }),
        Step::Busy(seconds) => {
            return Reply::status(429).header("retry-after", seconds.to_string());
        }
        Step::Cut(verdict) => {
            let arguments = verdict.to_string();
            Reply::raw_call("submit_verdict", arguments)
                .split_every(200)
                .cut_at(CUT)
        }
    };
    reply.piece_len(14).usage(1800, 120).chunk_delay(PACE)
}

/// Bytes of the reply that still come: some way into the verdict's arguments.
const CUT: usize = 2400;
