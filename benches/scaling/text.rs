//! Texts for generated transcripts.

const WORDS: [&str; 16] = [
    "order",
    "refund",
    "invoice",
    "customer",
    "address",
    "payment",
    "delivery",
    "ticket",
    "policy",
    "request",
    "window",
    "total",
    "carrier",
    "café",
    "warehouse",
    "limit",
];

/// Returns about 150 bytes that differ for each `n`.
pub(crate) fn text(n: usize) -> String {
    let mut text = format!("Message {n}:");
    let mut state = n.wrapping_mul(0x9E37_79B9).wrapping_add(7);
    for _ in 0..18 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push(' ');
        text.push_str(WORDS[(state >> 33) % WORDS.len()]);
    }
    text
}
