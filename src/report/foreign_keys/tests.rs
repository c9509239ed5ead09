//! Tests of [`super`]. The examples are put together from parts, so that no scanner takes this file for a leak.

use super::*;

/// Returns an example of each form.
fn examples() -> Vec<(&'static str, String)> {
    let word = |length: usize| "aB3dE5fG7h".repeat(20)[..length].to_owned();
    let hex = |length: usize| "0a1b2c3d4e".repeat(20)[..length].to_owned();
    vec![
        ("Anthropic", format!("sk-{}api03-{}", "ant-", word(40))),
        ("AWS", format!("AK{}{}", "IA", "ABCDEFGH12345678")),
        ("Azure storage", format!("Account{}{}==", "Key=", word(86))),
        ("DigitalOcean", format!("dop_{}{}", "v1_", hex(64))),
        ("GitHub", format!("gh{}{}", "p_", word(36))),
        ("GitHub", format!("github_{}{}", "pat_", word(60))),
        ("GitLab", format!("gl{}{}", "pat-", word(20))),
        ("Google API", format!("AI{}{}", "za", word(35))),
        ("Google OAuth", format!("ya{}{}", "29.", word(60))),
        ("Groq", format!("gs{}{}", "k_", word(52))),
        ("Hugging Face", format!("h{}{}", "f_", word(34))),
        (
            "JSON Web Token",
            format!(
                "ey{}.eyJ{}.{}",
                format_args!("J{}", word(20)),
                word(30),
                word(43)
            ),
        ),
        ("npm", format!("np{}{}", "m_", word(36))),
        ("OpenAI", format!("s{}{}", "k-", word(48))),
        ("OpenAI", format!("s{}proj-{}", "k-", word(60))),
        ("Perplexity", format!("pp{}{}", "lx-", word(48))),
        (
            "private key",
            format!("-----BEGIN RSA PRIVATE {}-----", "KEY"),
        ),
        ("private key", format!("-----BEGIN PRIVATE {}-----", "KEY")),
        ("PyPI", format!("py{}{}", "pi-AgE", word(60))),
        ("Replicate", format!("r{}{}", "8_", word(37))),
        ("SendGrid", format!("S{}{}.{}", "G.", word(22), word(43))),
        ("Shopify", format!("shp{}{}", "at_", hex(32))),
        (
            "Slack",
            format!("xo{}{}", "xb-", "123456789012-abcdefABCDEF"),
        ),
        (
            "Slack webhook",
            format!(
                "https://hooks.slack.{}/services/T12345678/B12345678/{}",
                "com",
                word(24)
            ),
        ),
        ("Stripe", format!("s{}live_{}", "k_", word(24))),
        ("Telegram", format!("123456789:{}{}", "AA", word(33))),
        (
            "URL with a password",
            format!("postgres://app:{}@db.internal", "hunter22"),
        ),
        ("xAI", format!("xa{}{}", "i-", word(80))),
    ]
}

fn find(pieces: &[&[u8]]) -> (Vec<u8>, BTreeMap<&'static str, u64>) {
    let mut written = Vec::new();
    let mut finder = KeyFinder::new(&mut written);
    for piece in pieces {
        finder.write_all(piece).expect("memory");
    }
    let found = finder.finish();
    (written, found)
}

#[test]
fn keys_of_every_form_are_found_and_the_text_stays() {
    let mut issuers: Vec<&str> = examples().iter().map(|(issuer, _)| *issuer).collect();
    issuers.dedup();
    let listed: Vec<&str> = FORMS.iter().map(|(issuer, _)| *issuer).collect();
    assert_eq!(issuers, listed, "each form has an example");
    assert!(listed.len() >= 20);
    for (issuer, key) in examples() {
        for text in [
            key.clone(),
            format!("{{\"content\":\"my key is {key}\"}}"),
            format!("a,b\n{key}\n"),
        ] {
            let (written, found) = find(&[text.as_bytes()]);
            assert_eq!(written, text.as_bytes());
            assert_eq!(found, BTreeMap::from([(issuer, 1)]), "{text}");
        }
    }
}

#[test]
fn key_is_found_once_however_the_text_is_split() {
    let (_, key) = examples().swap_remove(4);
    let text = format!("{} {key} {}", "x".repeat(2000), "y ".repeat(1500));
    for at in (1990..2060).step_by(3) {
        let (before, after) = text.as_bytes().split_at(at);
        assert_eq!(find(&[before, after]).1, BTreeMap::from([("GitHub", 1)]));
    }
    // A text of many parts, with a key at each border of two parts.
    let filler = "word ".repeat(PART_BYTES / 5 - 4);
    let long = format!("{filler}{key} ").repeat(8);
    for size in [1000, 4096, PART_BYTES, 3 * PART_BYTES] {
        let pieces: Vec<&[u8]> = long.as_bytes().chunks(size).collect();
        let (written, found) = find(&pieces);
        assert_eq!(written, long.as_bytes());
        assert_eq!(found, BTreeMap::from([("GitHub", 8)]), "{size}");
    }
}

#[test]
fn ordinary_text_has_no_keys() {
    for text in [
        "The task-force met; sk-learn, sk-1 and risk-free words are none.",
        "https://user@example.com/a:b@c and https://example.com:8080/x@y",
        "AKIA is a prefix, ghp_short too, and -----BEGIN CERTIFICATE----- is public",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "eyJhbGciOiJub25lIn0 alone is a header",
    ] {
        assert_eq!(find(&[text.as_bytes()]).1, BTreeMap::new(), "{text}");
    }
    assert_eq!(describe_keys(&BTreeMap::new()), None);
    assert_eq!(
        describe_keys(&BTreeMap::from([("AWS", 2), ("Slack", 1)])).as_deref(),
        Some("contains texts that look like keys: AWS (2), Slack (1)")
    );
}
