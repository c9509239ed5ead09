//! Tokens signed by keys that are made here, against services read from YAML.

use std::path::Path;
use std::sync::Arc;

use indexmap::IndexMap;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PKCS1_SHA512, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use serde_json::{Value, json};

use super::*;
use crate::clock::FakeClock;
use crate::diag::yaml::{DiagnosticCollector, MappingDecoder, read_document as read_yaml};
use crate::model::Millis;
use crate::net::{Resolver, SystemResolver};

const KEY: &str = include_str!("../../../tests/fixtures/throwaway-rsa.b64");

fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut out = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().enumerate().fold(0_u32, |word, (at, byte)| {
            word | u32::from(*byte) << (16 - 8 * at)
        });
        for at in 0..=three.len() {
            out.push(char::from(
                ALPHABET[((word >> (18 - 6 * at)) & 63) as usize],
            ));
        }
    }
    out
}

fn unbase64(text: &str) -> Vec<u8> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut out, mut word, mut bits) = (Vec::new(), 0_u32, 0);
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != '=') {
        let six = ALPHABET.find(c).expect("base64");
        word = (word << 6) | u32::try_from(six).unwrap();
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push(u8::try_from((word >> bits) & 255).unwrap());
        }
    }
    out
}

fn rsa() -> RsaKeyPair {
    RsaKeyPair::from_pkcs8(&unbase64(KEY)).expect("the fixture is a key")
}

/// A signed token of these parts.
fn signed(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let text = format!(
        "{}.{}",
        base64url(header.to_string().as_bytes()),
        base64url(claims.to_string().as_bytes())
    );
    let signature = base64url(&sign(text.as_bytes()));
    format!("{text}.{signature}")
}

fn by_rsa(key: &RsaKeyPair, how: &'static dyn RsaEncoding) -> impl Fn(&[u8]) -> Vec<u8> {
    move |text| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(how, &SystemRandom::new(), text, &mut signature)
            .expect("signed");
        signature
    }
}

fn rsa_jwk(key: &RsaKeyPair) -> Value {
    let public = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
    let (n, e) = (base64url(&public.n), base64url(&public.e));
    json!({"kty": "RSA", "kid": "k1", "n": n, "e": e})
}

fn claims() -> Value {
    json!({"iss": "https://issuer.example", "aud": ["me", "others"], "sub": "ada", "exp": 1000})
}

/// Returns the verification result of a token at second 500, for a service with these keys.
fn outcome(token: &str, keys: &Value) -> Result<Map<String, Value>, String> {
    let keys: Vec<jsonwebtoken::jwk::Jwk> = keys
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|k| serde_json::from_value(k.clone()).ok())
        .collect();
    let issuers = ["https://issuer.example".to_owned()];
    token::verify_token_claims(
        token,
        &keys,
        &token::ExpectedClaims {
            issuers: &issuers,
            audience: "me",
            now: 500.0,
        },
    )
}

fn with_rsa(header: &Value, claims: &Value) -> Result<Map<String, Value>, String> {
    let key = rsa();
    outcome(
        &signed(header, claims, by_rsa(&key, &RSA_PKCS1_SHA256)),
        &json!([rsa_jwk(&key)]),
    )
}

#[test]
fn tokens_of_every_algorithm_family_are_verified() {
    let key = rsa();
    let keys = json!([{"kty": "oct", "k": "AAAA"}, {"kty": "new"}, rsa_jwk(&key)]);
    let pss = signed(
        &json!({"alg": "PS256"}),
        &claims(),
        by_rsa(&key, &RSA_PSS_SHA256),
    );
    let long = signed(
        &json!({"alg": "RS512", "kid": "k1"}),
        &claims(),
        by_rsa(&key, &RSA_PKCS1_SHA512),
    );
    assert_eq!(outcome(&pss, &keys).expect("PS256")["sub"], "ada");
    assert_eq!(outcome(&long, &keys).expect("RS512")["sub"], "ada");

    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
        .unwrap();
    let point = ec.public_key().as_ref();
    let jwk = json!([{"kty": "EC", "crv": "P-256", "x": base64url(&point[1..33]), "y": base64url(&point[33..])}]);
    let token = signed(&json!({"alg": "ES256"}), &claims(), |text| {
        ec.sign(&random, text).unwrap().as_ref().to_vec()
    });
    assert!(outcome(&token, &jwk).is_ok());

    let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let ed = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap();
    let jwk = json!([{"kty": "OKP", "crv": "Ed25519", "x": base64url(ed.public_key().as_ref())}]);
    let token = signed(&json!({"alg": "EdDSA"}), &claims(), |text| {
        ed.sign(text).as_ref().to_vec()
    });
    assert!(outcome(&token, &jwk).is_ok());
    assert_eq!(
        outcome(&token, &keys).unwrap_err(),
        "the service has no key for EdDSA"
    );
}

#[test]
fn token_cannot_choose_its_verification_algorithm() {
    let key = rsa();
    let modulus = RsaPublicKeyComponents::<Vec<u8>>::from(key.public()).n;
    // The old trick: sign symmetrically with what everybody knows.
    let hmac = signed(&json!({"alg": "HS256"}), &claims(), |text| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &modulus);
        ring::hmac::sign(&key, text).as_ref().to_vec()
    });
    let why = outcome(
        &hmac,
        &json!([rsa_jwk(&key), {"kty": "oct", "k": base64url(&modulus)}]),
    )
    .unwrap_err();
    assert!(why.starts_with("HS256 is not supported"), "{why}");
    for none in ["none", "None", "nOnE"] {
        let token = signed(&json!({"alg": none}), &claims(), |_| Vec::new());
        let why = outcome(&token, &json!([rsa_jwk(&key)])).unwrap_err();
        assert!(why.contains("names no algorithm that is taken"), "{why}");
    }
    let mut only_512 = rsa_jwk(&key);
    only_512["alg"] = json!("RS512");
    let token = signed(
        &json!({"alg": "RS256"}),
        &claims(),
        by_rsa(&key, &RSA_PKCS1_SHA256),
    );
    assert_eq!(
        outcome(&token, &json!([only_512])).unwrap_err(),
        "the service has no key for RS256"
    );
}

#[test]
fn refusal_states_the_reason_without_the_token() {
    let header = json!({"alg": "RS256", "kid": "k1"});
    let mut cases = vec![
        (
            json!({"iss": "https://evil.example"}),
            "`iss` names another issuer",
        ),
        (json!({"aud": "you"}), "`aud` names another audience"),
        (json!({"exp": 500}), "it has expired"),
        (json!({"exp": "x"}), "it has no `exp`"),
        (json!({"exp": null}), "it has no `exp`"),
        (json!({"nbf": 561}), "it is not valid yet"),
        (json!({"nbf": "x"}), "it is not valid yet"),
        (json!({"aud": null}), "it has no `aud`"),
    ];
    cases.push((json!({"iss": null}), "it has no `iss`"));
    for (change, why) in cases {
        let mut claims = claims();
        for (key, value) in change.as_object().unwrap() {
            claims[key] = value.clone();
        }
        assert_eq!(with_rsa(&header, &claims).unwrap_err(), why, "{change}");
    }
    let mut soon = claims();
    soon["nbf"] = json!(559);
    assert!(with_rsa(&header, &soon).is_ok());
    assert_eq!(
        with_rsa(&json!({"alg": "RS256", "kid": "k2"}), &claims()).unwrap_err(),
        "the service's keys hold none of the token's `kid`"
    );
    assert!(
        with_rsa(&json!({"alg": "RS256", "crit": ["b64"]}), &claims())
            .unwrap_err()
            .contains("crit")
    );
    let key = rsa();
    let good = signed(&header, &claims(), by_rsa(&key, &RSA_PKCS1_SHA256));
    let (head, _) = good.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", base64url(&[7; 256]));
    assert_eq!(
        outcome(&forged, &json!([rsa_jwk(&key)])).unwrap_err(),
        "its signature is not the service's"
    );
    for broken in ["", "a", "a.b", "a.b.c.d", "..", "é.é.é"] {
        assert!(
            outcome(broken, &json!([rsa_jwk(&key)])).is_err(),
            "{broken}"
        );
    }
    assert!(
        outcome(&"a".repeat(20_000), &json!([rsa_jwk(&key)]))
            .unwrap_err()
            .contains("longer")
    );
}

fn service(yaml: &str, kind: &str, folder: &Path) -> (Option<AuthService>, Vec<String>) {
    let doc = read_yaml(&Arc::from(yaml), Path::new("tools.yaml")).expect("YAML");
    let problems = DiagnosticCollector::from_doc(&doc);
    let mut fields = MappingDecoder::new(&doc, "", &problems);
    let env = |name: &str| (name == "MY_AUTH_TOKEN").then(|| " secret-token \n".to_owned());
    let read = AuthService::read("my-auth", kind, &mut fields, &AuthCx { folder, env: &env });
    fields.finish();
    (
        read,
        problems
            .into_sorted()
            .into_iter()
            .map(|d| d.message)
            .collect(),
    )
}

#[test]
fn auth_services_report_invalid_keys() {
    let folder = Path::new("/w");
    let (google, messages) = service("{clientId: c}", "google", folder);
    let google = google.expect("read");
    assert_eq!(messages, Vec::<String>::new());
    assert_eq!((google.audience.as_str(), google.issuers.len()), ("c", 2));
    assert_eq!(
        google.keys,
        JwksSource::Url("https://www.googleapis.com/oauth2/v3/certs".to_owned())
    );
    assert_eq!(google.secrets(), ["secret-token"]);
    assert!(!format!("{google:?}").contains("secret"));
    let (generic, _) = service(
        "{audience: a, authorizationServer: 'https://as.example/'}",
        "generic",
        folder,
    );
    let generic = generic.expect("read");
    assert_eq!(
        generic.keys,
        JwksSource::Discover("https://as.example".to_owned())
    );
    assert_eq!(
        generic.issuers,
        ["https://as.example", "https://as.example/"]
    );
    let (filed, _) = service(
        "{audience: a, issuer: i, jwks: keys.json, tokenFile: t}",
        "generic",
        folder,
    );
    assert_eq!(
        filed.expect("read").keys,
        JwksSource::File("/w/keys.json".into())
    );
    for (yaml, kind, part) in [
        ("{}", "google", "clientId is missing"),
        ("{clientId: c}", "gogle", "did you mean `google`?"),
        (
            "{clientID: c}",
            "google",
            "unknown key `clientID`; did you mean `clientId`?",
        ),
        (
            "{clientId: c, mcpEnabled: true}",
            "google",
            "mcpEnabled is not supported",
        ),
        (
            "{audience: a}",
            "generic",
            "needs issuer or authorizationServer",
        ),
        ("{audience: a, issuer: i}", "generic", "needs jwks"),
        (
            "{audience: a, issuer: i, jwks: 'http://x/y'}",
            "generic",
            "https://",
        ),
        (
            "{audience: a, authorizationServer: 'http://x'}",
            "generic",
            "must begin with https://",
        ),
        (
            "{clientId: c, tokenEnv: A, tokenFile: b}",
            "google",
            "not both",
        ),
        (
            "{clientId: c, tokenEnv: eyJh.eyJz.c2ln}",
            "google",
            "must be the name of an environment variable",
        ),
    ] {
        let (_, messages) = service(yaml, kind, folder);
        assert!(
            messages.iter().any(|t| t.contains(part)),
            "{yaml}: {messages:?}"
        );
    }
}

#[tokio::test]
async fn file_tokens_are_verified_and_expire() {
    let folder = tempfile::tempdir().unwrap();
    let key = rsa();
    let keys = json!({"keys": [rsa_jwk(&key)]}).to_string();
    std::fs::write(folder.path().join("keys.json"), keys).unwrap();
    let token = signed(
        &json!({"alg": "RS256"}),
        &claims(),
        by_rsa(&key, &RSA_PKCS1_SHA256),
    );
    std::fs::write(folder.path().join("good"), format!("{token}\n")).unwrap();
    std::fs::write(folder.path().join("bad"), "no.to.ken").unwrap();
    std::fs::write(folder.path().join("none"), "\n").unwrap();
    let mut services = IndexMap::new();
    for file in ["good", "bad", "none", "absent"] {
        let yaml = format!(
            "{{audience: me, issuer: 'https://issuer.example', jwks: keys.json, tokenFile: {file}}}"
        );
        let (read, messages) = service(&yaml, "generic", folder.path());
        assert_eq!(messages, Vec::<String>::new());
        services.insert(
            file.to_owned(),
            Arc::new(AuthService {
                name: file.to_owned(),
                ..read.unwrap()
            }),
        );
    }
    // Keys are fetched through the guard, which refuses what is private.
    for (name, keys) in [
        ("near", "jwks: 'https://127.0.0.1/keys', issuer: i"),
        ("found", "authorizationServer: 'https://10.0.0.1'"),
    ] {
        let yaml = format!("{{audience: me, {keys}}}");
        let (read, _) = service(&yaml, "generic", folder.path());
        let named = AuthService {
            name: name.to_owned(),
            ..read.unwrap()
        };
        services.insert(name.to_owned(), Arc::new(named));
    }
    let fake = FakeClock::new();
    fake.advance(Millis::from_secs(999));
    let clock: Arc<dyn Clock> = Arc::new(fake.clone());
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let (claims, problems) = verify_auth_services(&services, &clock, &resolver).await;
    assert_eq!(claims.by_service.keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(
        claims.get("good").and_then(|c| c["sub"].as_str()),
        Some("ada")
    );
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(
        problems[2].starts_with(
            "auth service `near`: its keys cannot be fetched: https://127.0.0.1/keys: "
        ) && problems[2].contains("loopback"),
        "{problems:?}"
    );
    assert!(
        problems[3].contains("https://10.0.0.1/.well-known/openid-configuration")
            && problems[3].contains("private"),
        "{problems:?}"
    );
    assert!(
        problems[0].starts_with("auth service `bad`: the token from ")
            && problems[0].contains("was refused: ")
    );
    assert!(
        problems[1].contains("`absent`: its token cannot be read"),
        "{problems:?}"
    );
    assert!(
        problems
            .iter()
            .all(|p| !p.contains("no.to.ken") && !p.contains("secret-token"))
    );
    fake.advance(Millis::from_secs(1));
    assert_eq!(claims.get("good"), None);
    assert!(claims.for_services(&["good"]).get("good").is_none());
    assert!(claims.authorize_tool("t", &["good".to_owned()]).is_err());
}
