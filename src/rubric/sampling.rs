//! Which turns and sessions are sampled: PromptKit's hash, so that its packs sample the same ones here.

/// 0–9999: FNV-1a 64 of the session id followed by the decimal turn index, modulo 10,000. The turn is 0 for sessions.
pub fn sample_bucket(session: &str, turn: u64) -> u64 {
    let turn = turn.to_string();
    let hash = session
        .bytes()
        .chain(turn.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    hash % 10_000
}

/// Whether a turn (or a session, turn 0) is among `percent` of 100.
pub fn is_sampled(session: &str, turn: u64, percent: f64) -> bool {
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
