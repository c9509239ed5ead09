use serde_json::{Value, json};

use super::GoogleCredentials;
use super::token_request::encode_base64url;

const KEY: &str = include_str!("../../../tests/fixtures/throwaway-rsa.b64");

fn pem(of: &str) -> String {
    format!("-----BEGIN {of} KEY-----\n{KEY}-----END {of} KEY-----\n")
}

fn account() -> Value {
    json!({"type": "service_account", "project_id": "p", "private_key": pem("PRIVATE"),
        "client_email": "a@b", "token_uri": "https://oauth2.googleapis.com/token"})
}

fn parsed(file: &Value) -> Result<GoogleCredentials, String> {
    GoogleCredentials::parse(&file.to_string(), "f.json").map_err(|error| error.to_string())
}

#[test]
fn token_encoding_uses_the_url_alphabet_without_padding() {
    let rows: [(&[u8], &str); 6] = [
        (b"", ""),
        (b"f", "Zg"),
        (b"fo", "Zm8"),
        (b"foo", "Zm9v"),
        (b"foob", "Zm9vYg"),
        (&[0xfb, 0xff, 0xfe], "-__-"),
    ];
    for (bytes, text) in rows {
        assert_eq!(encode_base64url(bytes), text);
    }
}

#[test]
fn credentials_file_is_read_by_its_type() {
    let account = parsed(&account()).expect("an account");
    assert_eq!(
        (account.project(), account.quota_project()),
        (Some("p"), None)
    );
    assert!(account.secrets().len() > 20, "a key is known by its lines");
    assert!(!format!("{account:?}").contains(account.secrets()[0]));
    let user = json!({"type": "authorized_user", "client_id": "c", "client_secret": "secret-1",
        "refresh_token": "refresh-1", "quota_project_id": "q"});
    let user = parsed(&user).expect("a user");
    assert_eq!((user.project(), user.quota_project()), (None, Some("q")));
    assert_eq!(user.secrets(), ["refresh-1", "secret-1"]);
    assert_eq!(
        user.with_quota_project(Some("other")).quota_project(),
        Some("other")
    );
}

#[test]
fn credentials_error_never_quotes_the_file() {
    let with = |key: &str, value: Value| {
        let mut file = account();
        file[key] = value;
        file
    };
    let rows = [
        (
            with("type", json!("external_account")),
            "are of the kind `external_account`, which dicta does not read",
        ),
        (
            with("type", json!("impersonated_service_account")),
            "are of the kind `impersonated_service_account`",
        ),
        (with("type", json!("hunter2-kind")), "have an unknown type"),
        (with("type", Value::Null), "have an unknown type"),
        (with("client_email", json!("")), "lack `client_email`"),
        (
            with("private_key", json!("hunter2")),
            "not a PKCS#8 key in PEM form",
        ),
        (
            with("private_key", json!(pem("RSA PRIVATE"))),
            "not a PKCS#8 key in PEM form",
        ),
        (
            with(
                "private_key",
                json!("-----BEGIN PRIVATE KEY-----\naHVudGVyMg==\n-----END PRIVATE KEY-----\n"),
            ),
            "not an RSA key",
        ),
        (with("private_key", json!({"hunter2": 1})), "cannot be read"),
        (
            with("token_uri", json!("http://hunter2.example/token")),
            "a token_uri that is not https",
        ),
        (
            with("token_uri", json!("ftp://127.0.0.1/hunter2")),
            "a token_uri that is not https",
        ),
        (json!(["hunter2"]), "cannot be read"),
    ];
    for (file, why) in rows {
        let error = parsed(&file).expect_err(why);
        assert!(
            error.starts_with("the Google credentials in f.json "),
            "{error}"
        );
        assert!(error.contains(why), "{error}");
        assert!(
            !error.contains("hunter2") && !error.contains("aHVud"),
            "{error}"
        );
    }
    for fine in [
        "http://127.0.0.1:1/token",
        "http://[::1]/t",
        "http://localhost/t",
        "https://x.example/t",
    ] {
        assert!(parsed(&with("token_uri", json!(fine))).is_ok(), "{fine}");
    }
    let error =
        GoogleCredentials::parse("{\"refresh_token\": hunter2", "f.json").expect_err("no JSON");
    assert!(!error.to_string().contains("hunter2"));
}
