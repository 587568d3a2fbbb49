//! [`Client`]: requests to the hub. Where it redirects to another server, that one does not get the token.

use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use infergate_core::machine::is_this_machine;
use serde::de::DeserializeOwned;
use ureq::config::RedirectAuthHeaders;
use ureq::http::Uri;
use ureq::http::header::AUTHORIZATION;
use ureq::{Agent, Body};

/// The longest wait for a connection, and for the next byte of an answer.
const CONNECT: Duration = Duration::from_secs(20);
const SILENCE: Duration = Duration::from_secs(30);

/// Why a request gave nothing.
#[derive(Debug)]
pub(super) enum Failure {
    /// Status 404.
    Missing,
    /// Anything else.
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    /// As an error to show, 404 in the words for a repository.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Missing => anyhow!("the hub has no such repository or revision; check its name"),
            Self::Other(error) => error,
        }
    }
}

/// Access to one endpoint.
pub(super) struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

impl Client {
    /// For `endpoint`, an http or https address.
    ///
    /// # Errors
    /// When the endpoint is no address, or the token cannot be sent, or not without being read on the way. Neither is shown: both may be secret.
    pub(super) fn new(endpoint: &str, token: Option<String>) -> Result<Self> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let address: Option<Uri> = endpoint.parse().ok();
        let scheme = address.as_ref().and_then(Uri::scheme_str);
        let secure = scheme == Some("https");
        ensure!(secure || scheme == Some("http"), "HF_ENDPOINT is no http or https address; mend or unset it");
        let plain = |token: &String| token.bytes().all(|b| b.is_ascii_graphic());
        ensure!(token.as_ref().is_none_or(plain), "the hub's token holds characters that no token has; mend HF_TOKEN");
        let is_here = address.as_ref().and_then(Uri::host).is_some_and(is_this_machine);
        ensure!(
            token.is_none() || secure || is_here,
            "HF_ENDPOINT is plain http, and everybody on the way could read the hub's token; name an https address, or send no token \
             (unset HF_TOKEN, and set HF_TOKEN_PATH=/dev/null)"
        );
        let config = Agent::config_builder()
            .https_only(secure)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .http_status_as_error(false)
            .user_agent(concat!("infergate/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .timeout_per_write(Some(SILENCE));
        Ok(Self { agent: Agent::new_with_config(config.build()), endpoint, token })
    }

    /// What is at `path`, which begins with `/`.
    pub(super) fn get(&self, path: &str) -> Result<Body, Failure> {
        let mut request = self.agent.get(format!("{}{path}", self.endpoint));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let answer = request.call().map_err(|error| match error {
            ureq::Error::TooManyRedirects => anyhow!("the hub redirects again and again; given up"),
            error => anyhow!("the hub cannot be asked ({error}); check the network, or set HF_HUB_OFFLINE=1 to use what is in the cache"),
        })?;
        Err(match answer.status().as_u16() {
            200 => return Ok(answer.into_body()),
            404 => Failure::Missing,
            401 | 403 => anyhow!(
                "the hub refused access: the model is gated or private, or does not exist; set HF_TOKEN to a token that may read it"
            )
            .into(),
            429 => anyhow!("the hub asks to slow down (status 429); try again later or set HF_TOKEN").into(),
            code => anyhow!("the hub answered with status {code}").into(),
        })
    }

    /// The JSON at `path`.
    pub(super) fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let text = self.get(path)?.read_to_vec().context("the hub's answer broke off")?;
        Ok(serde_json::from_slice(&text).map_err(|_| anyhow!("the hub's answer cannot be understood"))?)
    }
}
