//! The sampling of messages and transcripts. It uses PromptKit's hash, so that dicta samples the same ones for
//! PromptKit's packs.

/// Returns a number from 0 to 9999: FNV-1a 64 of the session id and the decimal turn index, modulo 10,000. The turn
/// is 0 for sessions.
pub fn sample_bucket(session: &str, turn: u64) -> u64 {
    let turn = turn.to_string();
    let hash = session
        .bytes()
        .chain(turn.bytes())
        // The offset basis and the prime of FNV-1a with 64 bits.
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash % 10_000
}

/// Returns true if a turn, or a session with turn 0, is in the sample of `percent` of 100.
pub fn is_sampled(session: &str, turn: u64, percent: f64) -> bool {
    // A bucket is 0.01 percent, so `percent` may have two decimals.
    (sample_bucket(session, turn) as f64) < (percent * 100.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_promptkits() {
        let golden = [
            ("session-1", 0, 7079),
            ("session-1", 1, 8868),
            ("session-1", 2, 3501),
            ("abc", 0, 6753),
        ];
        for (session, turn, bucket) in golden {
            assert_eq!(sample_bucket(session, turn), bucket, "{session} {turn}");
        }
        assert!(!is_sampled("session-1", 0, 70.0));
        assert!(is_sampled("session-1", 0, 71.0));
        assert!(!is_sampled("session-1", 0, 0.0), "0 is never");
        assert!(
            (0..500).all(|turn| is_sampled("s", turn, 100.0)),
            "100 is always"
        );
    }
}
