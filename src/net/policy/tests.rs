//! Policies decided on texts and parts.

use super::*;

fn rule(text: &str) -> Option<GuardRule> {
    AddressPolicy::default()
        .check_url(text)
        .err()
        .map(|r| r.rule)
}

#[test]
fn refusal_names_the_first_matching_rule() {
    let cases = [
        ("https://a b.example.org/", GuardRule::RawText),
        ("https:\\\\example.org/", GuardRule::RawText),
        ("https:example.org", GuardRule::RawText),
        ("HTTPS:///example.org", GuardRule::RawText),
        ("http:/example.org", GuardRule::RawText),
        ("https://exam\u{ad}ple.org/", GuardRule::RawText),
        ("beam.apache.org", GuardRule::Parse),
        ("https://", GuardRule::Parse),
        ("https://[::1/", GuardRule::Parse),
        ("https://example.org:99999/", GuardRule::Parse),
        ("http://user@localhost:80/", GuardRule::Scheme),
        ("file:///etc/passwd", GuardRule::Scheme),
        ("ftp://example.org/", GuardRule::Scheme),
        ("data:text/plain,x", GuardRule::Scheme),
        ("https://user:pw@localhost/", GuardRule::Userinfo),
        ("https://@example.org/", GuardRule::Userinfo),
        ("https://:@example.org/", GuardRule::Userinfo),
        ("https://localhost:8443/", GuardRule::Name),
        ("https://localhost./", GuardRule::Name),
        ("https://a.LOCALHOST/", GuardRule::Name),
        ("https://printer.local/", GuardRule::Name),
        ("https://metadata.google.internal/", GuardRule::Name),
        ("https://metadata/", GuardRule::Name),
        ("https://metadata.goog./", GuardRule::Name),
        ("https://router/", GuardRule::Name),
        ("https://x.home.arpa/", GuardRule::Name),
        ("https://example.org:8443/", GuardRule::Port),
        ("https://10.0.0.1:80/", GuardRule::Port),
        ("https://example.org:0/", GuardRule::Port),
    ];
    for (text, expected) in cases {
        assert_eq!(rule(text), Some(expected), "{text}");
    }
    for text in [
        "https://beam.apache.org/x?y=a@b#z",
        "https://example.org:443/",
        "HTTPS://Example.ORG./",
        "https://10.0.0.1/",
    ] {
        assert_eq!(rule(text), None, "{text}");
    }
}

#[test]
fn allowed_host_opens_only_its_port() {
    let policy = AddressPolicy {
        allow: [
            "127.0.0.1:8443",
            "localhost:9000",
            "wiki.corp",
            "[::1]:8443",
        ]
        .map(|t| HostRule::parse(t).unwrap())
        .into(),
        deny: vec![],
        origins: vec![],
    };
    for open in [
        "https://127.0.0.1:8443/",
        "https://LOCALHOST.:9000/",
        "https://wiki.corp/",
        "https://0x7f000001:8443/",
        "https://[::1]:8443/",
    ] {
        assert!(policy.check_url(open).is_ok_and(|t| t.exempt), "{open}");
    }
    for shut in [
        "https://127.0.0.1:8444/",
        "https://localhost/",
        "https://wiki.corp:8443/",
        "https://a.wiki.corp/",
        "http://wiki.corp/",
    ] {
        assert!(policy.check_url(shut).is_err(), "{shut}");
    }
    let plain = policy
        .check_url("https://127.0.0.1/")
        .expect("a literal passes until its address is judged");
    let refusal = policy
        .check_address(&plain, plain.literal.unwrap())
        .unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "address: 127.0.0.1 is loopback (127.0.0.0/8)"
    );
}

#[test]
fn denied_host_covers_subdomains_and_addresses() {
    let policy = AddressPolicy {
        allow: vec![HostRule::parse("evil.example").unwrap()],
        deny: ["evil.example", "93.184.216.34"]
            .map(|t| HostRule::parse(t).unwrap())
            .into(),
        origins: vec![],
    };
    for text in ["https://evil.example/", "https://a.evil.example/"] {
        assert_eq!(
            policy.check_url(text).unwrap_err().rule,
            GuardRule::Name,
            "{text}"
        );
    }
    let fine = policy
        .check_url("https://notevil.example/")
        .expect("another name");
    for ip in ["93.184.216.34", "::ffff:93.184.216.34"] {
        assert!(
            policy.check_address(&fine, ip.parse().unwrap()).is_err(),
            "{ip}"
        );
    }
}

#[test]
fn rule_with_a_port_denies_only_that_port() {
    let rules = |texts: &[&str]| {
        let parsed = texts.iter().map(|text| HostRule::parse(text).unwrap());
        parsed.collect::<Vec<_>>()
    };
    let policy = AddressPolicy {
        allow: rules(&["evil.example:8443", "93.184.216.34:8443"]),
        deny: rules(&["evil.example:443", "93.184.216.34:443"]),
        origins: vec![],
    };
    for (url, rule) in [
        ("https://evil.example/", Some(GuardRule::Name)),
        ("https://evil.example:8443/", None),
        ("https://93.184.216.34/", Some(GuardRule::Name)),
        ("https://93.184.216.34:8443/", None),
    ] {
        let refused = policy.find_refusal(url).map(|refusal| refusal.rule);
        assert_eq!(refused, rule, "{url}");
    }
    for (url, is_denied) in [
        ("https://example.org/", true),
        ("https://evil.example:8443/", false),
    ] {
        let target = policy.check_url(url).expect("its name is open");
        let refused = policy.check_address(&target, "93.184.216.34".parse().unwrap());
        assert_eq!(refused.is_err(), is_denied, "{url}");
    }
    // Another address than the denied one.
    let target = policy.check_url("https://example.org/").expect("open");
    let other = policy.check_address(&target, "93.184.216.35".parse().unwrap());
    assert_eq!(other, Ok(()));
}

#[test]
fn limits_of_urls_and_names_are_exact() {
    let start = "https://example.org/";
    let of_length = |length: usize| format!("{start}{}", "a".repeat(length - start.len()));
    assert_eq!(rule(&of_length(MAX_URL)), None);
    for over in [1, 2] {
        assert_eq!(rule(&of_length(MAX_URL + over)), Some(GuardRule::RawText));
    }
    let label = "a".repeat(63);
    let name = |last: usize| {
        let last = "b".repeat(last);
        format!("https://{label}.{label}.{label}.{last}/")
    };
    assert_eq!(rule(&name(61)), None, "253 characters");
    for over in [62, 63] {
        assert_eq!(rule(&name(over)), Some(GuardRule::Name));
    }
    for text in [
        format!("https://{label}a.example/"),
        format!("https://{label}ab.example/"),
        "https://a..example/".to_owned(),
    ] {
        assert_eq!(rule(&text), Some(GuardRule::Name), "{text}");
    }
}

#[test]
fn userinfo_is_found_only_in_the_authority() {
    for (text, found) in [
        ("//a@b/c", true),
        ("https://a@b", true),
        ("//a/b@c", false),
        ("https://a/?b@c", false),
        ("/path?to=x://a@b", false),
        ("x/y://a@b", false),
        ("x#y://a@b", false),
        ("a@b", false),
    ] {
        assert_eq!(has_userinfo(text), found, "{text}");
    }
}

#[test]
fn label_of_a_host_has_its_port_unless_it_is_443() {
    let policy = AddressPolicy {
        allow: ["a.example:8443", "[::1]:8443"]
            .map(|text| HostRule::parse(text).unwrap())
            .into(),
        ..AddressPolicy::default()
    };
    for (url, label) in [
        ("https://a.example/x", "a.example"),
        ("https://a.example:8443/x", "a.example:8443"),
        ("https://[::1]:8443/x", "[::1]:8443"),
        ("https://[2606:4700::1111]/x", "2606:4700::1111"),
    ] {
        let checked = policy.check_url(url).expect("open");
        assert_eq!(checked.host_label(), label);
        assert!(checked.is_origin_of(url) && !checked.is_origin_of("https://b.example/"));
        assert!(!checked.is_origin_of("no URL"));
    }
}

#[test]
fn refusal_of_a_lookup_has_no_reason_behind_it() {
    let text = |rule| HopRefusal::new(rule, "why").to_string();
    assert_eq!(text(GuardRule::Resolve), "unresolvable");
    assert_eq!(text(GuardRule::Address), "address: why");
}

#[test]
fn host_rules_accept_every_spelling_of_a_host() {
    let parsed = |t: &str| HostRule::parse(t).map(|r| (r.host, r.port));
    assert_eq!(
        parsed("Beam.Apache.org."),
        Ok(("beam.apache.org".into(), None))
    );
    assert_eq!(
        parsed("bücher.example:8443"),
        Ok(("xn--bcher-kva.example".into(), Some(8443)))
    );
    assert_eq!(parsed("[::1]:8443"), Ok(("::1".into(), Some(8443))));
    assert_eq!(parsed("::1"), Ok(("::1".into(), None)));
    assert_eq!(parsed("[::1]"), Ok(("::1".into(), None)));
    assert_eq!(parsed("127.1:80"), Ok(("127.0.0.1".into(), Some(80))));
    for text in ["a.example", "a.example:8443", "[::1]:8443", "::1"] {
        assert_eq!(HostRule::parse(text).unwrap().to_string(), text);
    }
    for bad in [
        "",
        "https://a.b",
        "*.a.b",
        "a.b/c",
        "a.b:0",
        "a.b:x",
        "u@a.b",
    ] {
        assert!(HostRule::parse(bad).is_err(), "{bad}");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_asked_for_only_https_on_443_passes(
        text in r"(https?:)?[/\\]{0,3}[a-z0-9.@:%\[\]x\u{ad}\u{ff0e}-]{0,24}[/?#]?\PC{0,8}"
    ) {
        if let Ok(target) = AddressPolicy::default().check_url(&text) {
            proptest::prop_assert_eq!((target.url.scheme(), target.port), ("https", 443));
            proptest::prop_assert!(target.url.username().is_empty() && !target.exempt);
            proptest::prop_assert!(target.literal.is_some() || target.name.contains('.'));
        }
    }
}

#[test]
fn refusal_names_the_host_the_address_and_whether_the_user_could_allow_it() {
    let policy = AddressPolicy {
        deny: ["evil.example", "93.184.216.34"]
            .map(|text| HostRule::parse(text).unwrap())
            .into(),
        ..AddressPolicy::default()
    };
    let cases = [
        (
            "http://Wiki.example:80/",
            "scheme: only https URLs are allowed (got scheme 'http')",
            Some("wiki.example"),
            None,
            false,
        ),
        (
            "https://user@wiki.example:8443/",
            "userinfo: user names and passwords in URLs are refused",
            Some("wiki.example:8443"),
            None,
            false,
        ),
        (
            "https://a.evil.example/",
            "name: `evil.example` is in deny_hosts",
            Some("a.evil.example"),
            None,
            false,
        ),
        (
            "https://printer.local/",
            "name: `local` names are local",
            Some("printer.local"),
            None,
            true,
        ),
        (
            "https://metadata.goog/",
            "name: a cloud's metadata service",
            Some("metadata.goog"),
            None,
            true,
        ),
        (
            "https://router/",
            "name: single labels are local",
            Some("router"),
            None,
            true,
        ),
        (
            "https://wiki.example:8443/",
            "port: 8443 is not 443",
            Some("wiki.example:8443"),
            None,
            true,
        ),
        (
            "https://10.0.0.1/",
            "address: 10.0.0.1 is private (10.0.0.0/8)",
            Some("10.0.0.1"),
            Some("10.0.0.1"),
            true,
        ),
        (
            "https://[::ffff:93.184.216.34]/",
            "address: ::ffff:93.184.216.34 is in deny_hosts",
            Some("::ffff:93.184.216.34"),
            Some("::ffff:93.184.216.34"),
            false,
        ),
        (
            "wiki.example",
            "parse: relative URL without a base",
            None,
            None,
            false,
        ),
    ];
    for (url, text, host, address, allowable) in cases {
        let refusal = policy.find_refusal(url).expect(url);
        let found = (
            refusal.to_string(),
            refusal.host.as_deref(),
            refusal.address.map(|ip| ip.to_string()),
            refusal.allowable,
        );
        let expected = (text.to_owned(), host, address.map(str::to_owned), allowable);
        assert_eq!(found, expected, "{url}");
    }
}

#[test]
fn refusal_of_a_raw_text_names_the_character() {
    for (text, why) in [
        ("https://a.example/\u{7}", "control character U+0007"),
        ("https://a.example/ b", "white space U+0020"),
        ("https://a.example/\u{3000}", "white space U+3000"),
        ("https://a.example\\b", "backslash"),
        ("https://a\u{ad}.example/", "invisible character U+00AD"),
        ("Https:a.example", "`Https:` without `//`"),
        ("http:///a.example", "`http:///`"),
    ] {
        let refusal = check_raw_text(text).expect_err(text);
        assert_eq!((refusal.rule, &*refusal.why), (GuardRule::RawText, why));
    }
    let long = "a".repeat(MAX_URL + 1);
    let refusal = check_raw_text(&long).expect_err("too long");
    assert_eq!(refusal.why, "longer than 2048 bytes");
}

#[test]
fn host_rule_rejects_a_text_for_its_own_reason() {
    let error = |text: &str| HostRule::parse(text).expect_err(text);
    for text in ["a.b/c", "u@a.b", "*.a.b", "a.b?", "a.b#c", "a b", "a.b\t"] {
        let text = text.to_owned();
        assert_eq!(error(&text), HostSyntaxError::NotOnlyHost { text });
    }
    for text in ["a.b:0", "a.b:x", "a.b:65536", "a.b:"] {
        let text = text.to_owned();
        assert_eq!(error(&text), HostSyntaxError::BadPort { text });
    }
    for text in ["", "[::1", "a%b"] {
        let error = error(text);
        assert!(matches!(error, HostSyntaxError::BadHost { .. }), "{error}");
    }
}
