//! The start of a program whose file may still be open for writing.
//!
//! Responsible for the retries. Does not set up the program or wait for its end.

use std::io;

use crate::clock::block_for;
use crate::model::Millis;

/// The number of attempts to start a program.
const ATTEMPTS: u32 = 20;

/// The pause between two attempts.
const PAUSE: Millis = Millis(10);

/// Starts a program with `start`. Tries again for 0.2 s while the system reports that the program's file is busy.
///
/// A script that was just saved can be open in a child process: the child inherits the open file of another thread, and
/// closes it when it runs its own program (`ETXTBSY` in execve(2)).
pub fn start_when_free<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..ATTEMPTS {
        match start() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                block_for(PAUSE);
            }
            other => return other,
        }
    }
    start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_program_starts_when_its_file_is_closed() {
        let mut attempts = 0;
        let started = start_when_free(|| {
            attempts += 1;
            if attempts < 3 {
                Err(io::ErrorKind::ExecutableFileBusy.into())
            } else {
                Ok(attempts)
            }
        });
        assert_eq!(started.expect("the third attempt starts it"), 3);
    }

    #[test]
    fn other_failures_are_reported_at_once() {
        let mut attempts = 0;
        let failed: io::Result<()> = start_when_free(|| {
            attempts += 1;
            Err(io::ErrorKind::NotFound.into())
        });
        assert_eq!(
            failed.map_err(|error| error.kind()),
            Err(io::ErrorKind::NotFound)
        );
        assert_eq!(attempts, 1);
    }
}
