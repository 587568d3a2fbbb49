//! Answers of ten tokens as servers and gateways send them, put together from what their issues and documents show.

use infergate_core::load::{FailureClass, RequestRecord};
use infergate_load::api::body::Api;
use infergate_load::api::completion::Completion;

/// One server's answer, and what is in it.
struct Dialect {
    api: Api,
    body: &'static str,
    /// Events with output of any kind.
    pieces: usize,
    prompt_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    outcome: Result<(), FailureClass>,
}

const fn chat(body: &'static str, pieces: usize, prompt_tokens: Option<u64>, cached_tokens: Option<u64>) -> Dialect {
    Dialect { api: Api::Chat, body, pieces, prompt_tokens, cached_tokens, outcome: Ok(()) }
}

/// By server.
static DIALECTS: [(&str, Dialect); 11] = [
    ("Azure", chat(include_str!("dialects/azure-openai.body"), 10, Some(1058), Some(1024))),
    ("text-generation-webui", chat(include_str!("dialects/text-generation-webui.body"), 4, Some(23), None)),
    ("OpenRouter", chat(include_str!("dialects/openrouter.body"), 6, Some(84), Some(64))),
    ("vLLM", chat(include_str!("dialects/vllm.body"), 5, Some(171), Some(160))),
    ("Groq", chat(include_str!("dialects/groq.body"), 5, Some(23), None)),
    ("TGI", chat(include_str!("dialects/tgi.body"), 10, None, None)),
    (
        "llama.cpp",
        Dialect {
            outcome: Err(FailureClass::Status5xx),
            ..chat(include_str!("dialects/llama-cpp.body"), 6, None, None)
        },
    ),
    // Anthropic counts what a cache had apart; the name of a tool is output, too.
    (
        "Anthropic",
        Dialect { api: Api::Messages, ..chat(include_str!("dialects/anthropic.body"), 6, Some(12 + 1536), Some(1536)) },
    ),
    (
        "OpenAI Responses",
        Dialect {
            api: Api::Responses,
            ..chat(include_str!("dialects/openai-responses.body"), 10, Some(1075), Some(1024))
        },
    ),
    // A vector is one piece, whatever its length.
    (
        "text-embeddings-inference",
        Dialect { api: Api::Embeddings, ..chat(include_str!("dialects/embeddings.body"), 1, Some(7), None) },
    ),
    (
        "text-embeddings-inference, an error",
        Dialect {
            api: Api::Embeddings,
            outcome: Err(FailureClass::MalformedStream),
            ..chat("{\"error\":\"Input validation error\",\"error_type\":\"Validation\"}", 0, None, None)
        },
    ),
];

#[test]
fn what_servers_send_is_read_whatever_a_network_makes_of_it() {
    for (server, dialect) in &DIALECTS {
        for size in [1, 7, 100, dialect.body.len()] {
            let (mut record, mut completion) = (RequestRecord::default(), Completion::new(dialect.api, 10));
            let mut parts = (1..).zip(dialect.body.as_bytes().chunks(size));
            let read = parts.try_for_each(|(now_ns, part)| completion.read(now_ns, part, &mut record).map(drop));
            let outcome = read.and_then(|()| completion.finish(u64::MAX, false, &mut record).map(drop));
            assert_eq!(outcome.map_err(|failure| failure.class), dialect.outcome, "{server}");
            assert_eq!(record.chunk_ns.len(), dialect.pieces, "{server}");
            if dialect.outcome.is_ok() {
                let prompt = (record.input_tokens, record.cached_tokens);
                let tokens = if dialect.api == Api::Embeddings { 1 } else { 10 };
                assert_eq!(
                    (record.tokens(), prompt),
                    (tokens, (dialect.prompt_tokens, dialect.cached_tokens)),
                    "{server}"
                );
            }
        }
    }
}
