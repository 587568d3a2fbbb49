//! [`Client`]: requests to the hub, with limits. The token goes to the configured endpoint and to nobody else.

use std::io;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, anyhow, ensure};
use infergate_core::machine::is_this_machine;
use serde::de::DeserializeOwned;
use ureq::http::header::{ACCEPT_ENCODING, AUTHORIZATION, LOCATION, RANGE, USER_AGENT};
use ureq::http::{HeaderMap, Uri};
use ureq::{Agent, Body};

/// The longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(20);
/// Redirects followed for one request.
const REDIRECTS: usize = 5;
/// The largest answer about a repository.
const ANSWER_BYTES: u64 = 32 << 20;

/// Why a request gave nothing.
#[derive(Debug)]
pub enum Failure {
    /// Status 404.
    Missing,
    /// The connection broke or went silent: worth another attempt.
    Broken(Error),
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
    pub fn into_error(self) -> Error {
        match self {
            Self::Missing => anyhow!("the hub has no such repository or revision; check its name"),
            Self::Broken(error) | Self::Other(error) => error,
        }
    }
}

/// Fails with `why` unless `sound`.
pub fn require(sound: bool, why: &'static str) -> Result<(), Failure> {
    if sound { Ok(()) } else { Err(Failure::Other(anyhow!(why))) }
}

/// A successful answer.
pub struct Reply {
    /// 200, 206 for a part, or 416 for a part that the file does not have.
    pub status: u16,
    /// What the endpoint itself said, over all its redirects, before any other server was asked.
    pub from_endpoint: HeaderMap,
    /// The headers that came with the body, from whichever server has it.
    pub headers: HeaderMap,
    /// The body, unread.
    pub body: Body,
}

/// Access to one endpoint.
pub struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

impl Client {
    /// For `endpoint`, an http or https address, which may keep us waiting for the next byte for `silence`.
    ///
    /// # Errors
    /// When the endpoint is no address, or the token cannot be sent, or not without being read on the way. Neither is shown: both may be secret.
    pub fn new(endpoint: &str, token: Option<String>, silence: Duration) -> Result<Self> {
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let uri = endpoint.parse::<Uri>().ok().filter(|_| !endpoint.contains([' ', '?', '#']));
        let (is_secure, host, _) =
            uri.as_ref().and_then(origin).context("HF_ENDPOINT is no http or https address; fix or unset it")?;
        let plain = |token: &String| token.bytes().all(|b| b.is_ascii_graphic());
        ensure!(token.as_ref().is_none_or(plain), "the hub's token holds characters that no token has; fix HF_TOKEN");
        ensure!(
            token.is_none() || is_secure || is_this_machine(&host),
            "HF_ENDPOINT is plain http, and everybody on the way could read the hub's token; name an https address, or send no token \
             (unset HF_TOKEN, and set HF_TOKEN_PATH=/dev/null)"
        );
        let config = Agent::config_builder()
            // Redirects are followed below, where the token can be left out.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .timeout_per_write(Some(silence));
        Ok(Self { agent: Agent::new_with_config(config.build()), endpoint, token })
    }

    /// Asks for `path` (which begins with `/`), or for a part of it: `bytes=0-` for all from the first byte on.
    pub fn get(&self, path: &str, part: Option<&str>) -> Result<Reply, Failure> {
        let mut uri: Uri =
            format!("{}{path}", self.endpoint).parse().context("the hub's address cannot be asked for")?;
        let home = origin(&uri);
        let mut from_endpoint = HeaderMap::new();
        let mut at_home = true;
        for _ in 0..=REDIRECTS {
            let mut request = self.agent.get(&uri).header(ACCEPT_ENCODING, "identity");
            request = request.header(USER_AGENT, concat!("infergate/", env!("CARGO_PKG_VERSION")));
            if let Some(part) = part {
                request = request.header(RANGE, part);
            }
            if let Some(token) = self.token.as_ref().filter(|_| at_home) {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let (head, body) = request.call().map_err(failure)?.into_parts();
            if at_home {
                from_endpoint.extend(head.headers.clone());
            }
            let status = head.status.as_u16();
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                refused(status)?;
                return Ok(Reply { status, from_endpoint, headers: head.headers, body });
            }
            uri = follow(&uri, header(&head.headers, LOCATION.as_str()).unwrap_or_default())?;
            // Another server may send us back to any address of the endpoint: what that says is no longer about `path`.
            at_home = at_home && origin(&uri) == home;
        }
        Err(anyhow!("the hub redirects more than {REDIRECTS} times; given up").into())
    }

    /// The JSON at `path`.
    pub fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let mut body = self.get(path, None)?.body;
        let bytes = body.with_config().limit(ANSWER_BYTES).read_to_vec().map_err(failure)?;
        serde_json::from_slice(&bytes).map_err(|_| anyhow!("the hub's answer cannot be understood").into())
    }
}

/// A header's text, if it is printable ASCII.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Scheme, host and port: what has to be equal for a token to be sent. `None`: no web address.
fn origin(uri: &Uri) -> Option<(bool, String, u16)> {
    let secure = match uri.scheme_str()? {
        "https" => true,
        "http" => false,
        _ => return None,
    };
    let host = uri.host().filter(|host| !host.is_empty())?.to_ascii_lowercase();
    Some((secure, host, uri.port_u16().unwrap_or(if secure { 443 } else { 80 })))
}

/// Where `location` leads from `uri`. From https it may not lead to http.
fn follow(uri: &Uri, location: &str) -> Result<Uri, Error> {
    const STRANGE: &str = "the hub redirects to an address that cannot be followed; given up";
    let next: Uri = location.parse().context(STRANGE)?;
    if location.starts_with('/') && !location.starts_with("//") {
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = next.into_parts().path_and_query;
        return Uri::from_parts(parts).context(STRANGE);
    }
    let (here, there) = (origin(uri), origin(&next));
    ensure!(there.is_some() && !next.authority().is_some_and(|a| a.as_str().contains('@')), STRANGE);
    let downgrade = here.is_some_and(|(secure, ..)| secure) && there.is_some_and(|(secure, ..)| !secure);
    ensure!(!downgrade, "the hub redirects from https to http; given up");
    Ok(next)
}

fn refused(status: u16) -> Result<(), Failure> {
    let why = match status {
        200 | 206 | 416 => return Ok(()),
        404 => return Err(Failure::Missing),
        401 | 403 => {
            "the hub refused access: the model is gated or private, or does not exist; set HF_TOKEN to a token that may read it".into()
        }
        429 => "the hub asks to slow down (status 429); try again later or set HF_TOKEN".into(),
        code => format!("the hub answered with status {code}"),
    };
    let error = anyhow!(why);
    Err(if status >= 500 { Failure::Broken(error) } else { Failure::Other(error) })
}

/// Why a request failed, without addresses: an endpoint may hold credentials.
fn failure(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::Io(io) if io.get_ref().is_none_or(|inner| !inner.is::<ureq::Error>()) => {
            Failure::Broken(anyhow!("the connection to the hub failed ({}); check the network", io.kind()))
        }
        ureq::Error::Timeout(ureq::Timeout::PerRead | ureq::Timeout::RecvResponse) => {
            Failure::Broken(anyhow!("the hub stopped sending; check the network"))
        }
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::Timeout(_) => {
            Failure::Broken(anyhow!(
                "the hub cannot be reached; check the network, or set HF_HUB_OFFLINE=1 to use what is in the cache"
            ))
        }
        _ => Failure::Other(anyhow!("the hub's answer cannot be understood")),
    }
}

/// Why a body ended early. ureq hides its own errors inside those of the reader.
pub fn broken(error: io::Error) -> Failure {
    match failure(error.into()) {
        Failure::Other(error) => Failure::Broken(error),
        other => other,
    }
}
