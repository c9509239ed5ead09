//! Claude on Vertex AI.

use dicta::provider::google_auth::GoogleCredentials;

use super::{VertexHarness, bearer, cloud, token, user};
use crate::support::wire::Reply;

#[tokio::test]
async fn claude_on_vertex_uses_the_anthropic_dialect() {
    let reply = r#"{"type":"message","role":"assistant","content":[{"type":"text","text":"I am Claude."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":4}}"#;
    let server = cloud(move |_, _| Reply::raw(reply));
    let credentials = GoogleCredentials::parse(&user(&server), "adc.json").expect("a user's file");
    let harness = VertexHarness::with(server, credentials, |config| {
        "claude-sonnet-4-5@20250929".clone_into(&mut config.model);
        config.stream = false;
    });
    let finished = harness.send().await.expect("a reply");
    assert_eq!(finished.reply.text, "I am Claude.");
    let request = &harness.requests("rawPredict")[0];
    assert_eq!(
        request.path,
        "/v1/projects/p-1/locations/europe-west4/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"
    );
    assert_eq!(bearer(request), format!("Bearer {}", token(1)));
    assert_eq!(request.header("anthropic-version"), None);
    let body = request.json();
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(body.get("model"), None);
}
