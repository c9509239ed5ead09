//! The recorded digests of tools, and what they leave to the keyed digest.

use super::*;

#[test]
fn value_of_the_environment_is_outside_the_digest_in_any_argument_and_variable() {
    let of = |value: &str| {
        let settings =
            json!({"command": "server", "args": [format!("-p{value}")], "env": {"PLAIN": value}});
        let source = source_with_secrets(&settings, &[value.to_owned()]);
        let source = source.ok().unwrap();
        let doc = yaml::read_document(&Arc::from("tool: read"), Path::new("tools.yaml")).unwrap();
        let problems = DiagnosticCollector::from_doc(&doc);
        let mut fields = MappingDecoder::new(&doc, "", &problems);
        let work = source.read_tool("read", &mut fields, &ToolInput::default());
        let work = work.unwrap();
        (work.digest(), work.secrets_outside_digest())
    };
    let (digest, omitted) = of("hush-4711-hush");
    let (other_digest, other_omitted) = of("hush-4712-hush");
    // Anyone who reads a recording could test guesses against the digest.
    assert_eq!(digest, other_digest);
    // The cache key has the values under the secret of the installation.
    assert!(
        omitted
            .iter()
            .any(|(_, value)| value == "server -phush-4711-hush")
    );
    assert_ne!(omitted, other_omitted);
}
