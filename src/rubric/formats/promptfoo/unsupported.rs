//! The assertion types without an equivalent eval type: the reasons, and what to write instead.

use super::super::conversion::ConversionError;

const CODE: (&str, &str) = (
    "it is code of another program",
    "a `script` eval: JSON in on stdin, {passed, score, reason} out",
);
const OTHER_METRIC: (&str, &str) = (
    "dicta compares embeddings by their cosine alone",
    "`similar`, with a threshold for the cosine",
);
const OVERLAP: (&str, &str) = (
    "it scores the overlap of words with a reference",
    "`exact_match`, `contains` with the words that matter, or `llm_judge` with the expected answer",
);
const LOGPROBS: (&str, &str) = ("transcripts hold no log probabilities", "");
const TRACE: (&str, &str) = (
    "it looks at spans of a trace",
    "checks of calls: `tool_call_count`, `no_tool_errors`, `tool_call_latency`",
);
const CLASSIFIER: (&str, &str) = (
    "it asks a classifier",
    "`llm_judge` with the label as criteria",
);
const CONTEXT: (&str, &str) = (
    "it reads its context from promptfoo's variables",
    "`faithfulness`, `contextual_recall` or `contextual_relevancy` with contexts of the transcript, or `grounded`",
);
const MARKUP: (&str, &str) = (
    "no eval type of dicta parses that language",
    "`regex`, or a `script` eval",
);
const CALLS: (&str, &str) = (
    "it checks calls against the schemas of the provider's tools",
    "`tool_args` or `tool_calls_with_args` with the arguments expected",
);
const COMPARES: (&str, &str) = (
    "it compares the outputs of several providers",
    "dicta compare RUN RUN",
);

/// Explains why an assertion of this type does not carry over.
pub(super) fn explain_unsupported(base: &str) -> Option<ConversionError> {
    // Groups of types with the same reason.
    let (why, instead) = match base {
        "ruby" => CODE,
        "webhook" => ("it asks your server", "a `script` eval"),
        "similar:dot" | "similar:euclidean" => OTHER_METRIC,
        "rouge-n" | "rouge-s" | "rouge-l" | "bleu" | "gleu" | "meteor" | "levenshtein" => OVERLAP,
        "perplexity" | "perplexity-score" => LOGPROBS,
        "trace-span-count" | "trace-span-duration" | "trace-error-spans" => TRACE,
        "classifier" | "moderation" | "pi" | "guardrails" => CLASSIFIER,
        "is-refusal" => (
            "its list of phrases is promptfoo's own",
            "`content_excludes` with the phrases, or `llm_judge`",
        ),
        "context-faithfulness"
        | "context-recall"
        | "context-relevance"
        | "conversation-relevance" => CONTEXT,
        "is-xml" | "contains-xml" | "is-html" | "contains-html" | "is-sql" | "contains-sql" => {
            MARKUP
        }
        "is-valid-function-call"
        | "is-valid-openai-function-call"
        | "is-valid-openai-tools-call" => CALLS,
        "select-best" | "max-score" => COMPARES,
        "finish-reason" => ("transcripts need not say why a model stopped", ""),
        "skill-used" => (
            "only the harness distinguishes activated skills from tools",
            "if the transcript has a call for it: `tool_args` with the skill's name",
        ),
        "word-count" => (
            "no eval type of dicta counts words",
            "`min_length` and `max_length` count characters",
        ),
        "search-rubric" | "agent-rubric" => (
            "its grader searches with tools of promptfoo's",
            "`llm_judge` with a judge that has `tools: [fetch_url]`",
        ),
        "human" => (
            "it is a person's verdict",
            "labels: `labels.jsonl` of the workspace",
        ),
        kind if kind.starts_with("promptfoo:redteam:") => (
            "its grader is promptfoo's own",
            "`llm_judge` with what must not happen as criteria",
        ),
        _ => return None,
    };
    Some(ConversionError::new(why, instead))
}
