//! `dicta tool fetch_url`: the same guard from the command line, and what it says of what was opened.

use serde_json::Value;

use crate::cli::TestDir;
use crate::support::tls::{Response, TlsServer};

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON on standard output")
}

/// A workspace whose judge `open` may fetch from `host` on the server's port.
fn test_dir(server: &TlsServer, host: &str) -> TestDir {
    let test_dir = TestDir::new();
    let judge = format!(
        "judges:\n  open:\n    provider: openai\n    base_url: http://127.0.0.1:9/v1\n    model: m\n    tools: [{{ fetch_url: \
         {{ allow_hosts: [\"{host}:{}\"], ca_file: {} }} }}]\n",
        server.port(),
        server.ca_file().display()
    );
    test_dir.workspace(
        &judge,
        "  - { id: a, type: contains, params: { patterns: [x] } }\n",
    );
    test_dir
}

#[test]
fn allowed_private_host_is_fetched_with_a_warning_and_no_proxy() {
    let server = TlsServer::serving(
        &["xn--bcher-kva.test"],
        vec![("/", Response::page("text/plain", "found"))],
    );
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
    proxy.set_nonblocking(true).expect("a plain socket");
    let proxy_url = format!("http://{}", proxy.local_addr().expect("bound"));
    let test_dir = test_dir(&server, "Bücher.test");
    let port = server.port();
    let url = format!(r#"{{"url":"https:\/\/bücher.test:{port}\/"}}"#);
    let resolve = format!("BÜCHER.test.:{port}:127.0.0.1");
    let run = |proxies: &[(&str, &str)]| {
        let mut command = test_dir.command(&[
            "tool",
            "fetch_url",
            &url,
            "--judge",
            "open",
            "--resolve",
            &resolve,
            "--format",
            "json",
        ]);
        command.envs(proxies.iter().copied());
        command.output().expect("it runs")
    };
    let names = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ];
    let socks = proxy_url.replace("http:", "socks5h:");
    let mut matrix: Vec<Vec<(&str, &str)>> = names
        .iter()
        .map(|name| vec![(*name, proxy_url.as_str())])
        .collect();
    matrix.push(vec![("ALL_PROXY", &socks), ("https_proxy", &socks)]);
    for proxies in &matrix {
        assert_eq!(json(&run(proxies).stdout)["text"], "found", "{proxies:?}");
    }
    let output = run(&names.map(|name| (name, proxy_url.as_str())));
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = json(&output.stdout);
    assert_eq!(report["text"], "found", "{report} {warning}");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        warning.trim(),
        format!(
            "warning: fetch_url: xn--bcher-kva.test:{port} may be private; trusts your certificate file"
        )
    );
    assert!(proxy.accept().is_err(), "the proxy was asked");
}

#[test]
fn addresses_on_the_command_line_pass_the_same_guard() {
    let test_dir = TestDir::new();
    let call = |url: &str, resolve: &[&str]| {
        let json_url = format!(r#"{{"url":"{url}"}}"#);
        let mut args = vec!["tool", "fetch_url", &json_url, "--format", "json"];
        for entry in resolve {
            args.extend(["--resolve", entry]);
        }
        let output = test_dir.dicta(&args);
        assert_eq!(output.status.code(), Some(1), "{resolve:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        let report = json(&output.stdout);
        assert_eq!(report["outcome"], "error", "{report}");
        report["hops"][0].clone()
    };
    for (host, resolve, address) in [
        ("a.test", &["a.test:443:10.0.0.1"][..], "10.0.0.1"),
        ("a.test", &["A.TEST.:443:[::1]"], "::1"),
        (
            "bücher.test",
            &["xn--bcher-kva.test:443:127.0.0.1"],
            "127.0.0.1",
        ),
        (
            "xn--bcher-kva.test",
            &["BÜCHER.test:443:127.0.0.1"],
            "127.0.0.1",
        ),
        // They accumulate: the second entry does not take the first one's place.
        (
            "a.test",
            &["a.test:443:169.254.169.254", "a.test:443:93.184.216.34"],
            "169.254.169.254",
        ),
        (
            "a.test",
            &["a.test:443:93.184.216.34", "a.test:443:169.254.169.254"],
            "169.254.169.254",
        ),
        ("a.test", &["a.test:443:93.184.216.34,10.9.8.7"], "10.9.8.7"),
    ] {
        let hop = call(&format!("https://{host}/"), resolve);
        assert_eq!(hop["address"], address, "{resolve:?}: {hop}");
        let refused = hop["refused"].as_str().unwrap_or_default();
        assert!(refused.starts_with("address: "), "{hop}");
    }
    let bad = test_dir.dicta(&["tool", "fetch_url", "{}", "--resolve", "a.test:10.0.0.1"]);
    assert_eq!(bad.status.code(), Some(2));
}
