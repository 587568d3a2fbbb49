//! Where requests go.

use anyhow::{Context as _, Result, bail, ensure};
use hyper::Uri;
use infergate_core::machine::is_this_machine;

use crate::api::body::Api;

/// The address of an endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct Url {
    /// `https`.
    pub is_tls: bool,
    /// What the `Host` field says.
    pub authority: String,
    /// Host name or address, an IPv6 address without its brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path of the requests, with a query where one was given.
    pub path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`. A path that does not end as `api` wants it gets its end: `/v1/chat/completions` behind
    /// nothing, `/chat/completions` behind anything else, `/v1/messages` behind anything but `/v1`.
    ///
    /// # Errors
    /// Another scheme, no host, another API's path, credentials in it, which would be seen by every user of this machine.
    pub fn parse(text: &str, api: Api) -> Result<Self> {
        // What stands in the text may be a password: no error repeats it.
        let uri: Uri = text.parse().ok().context("this is no URL; write http://HOST:PORT")?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => bail!("a URL begins with http:// or https://"),
        };
        let authority = uri.authority().context("the URL has no host")?;
        ensure!(
            !authority.as_str().contains('@'),
            "the URL holds credentials; take them out (load takes a key by --api-key-env NAME)"
        );
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = match authority.as_str().strip_prefix(authority.host()).unwrap_or_default() {
            "" if is_tls => 443,
            "" => 80,
            _ => authority.port_u16().filter(|port| *port > 0).context("a port is a number from 1 to 65535")?,
        };
        let path = uri.path().trim_end_matches('/');
        // Chat comes first: its path ends with that of completions.
        let named = Api::ALL.into_iter().find(|(_, other)| path.ends_with(other.path()));
        if let Some((name, _)) = named.filter(|(_, other)| *other != api) {
            bail!("this is the path of {name}; use --api {name} (gate: --server-api {name})");
        }
        let end = api.path();
        let path = match path {
            path if path.ends_with(end) => path.to_owned(),
            // Addresses of Anthropic's API end before the version, those of OpenAI's behind it.
            path if path.is_empty() || (api == Api::Messages && !path.ends_with("/v1")) => format!("{path}/v1{end}"),
            path => format!("{path}{end}"),
        };
        let path = uri.query().map_or_else(|| path.clone(), |query| format!("{path}?{query}"));
        Ok(Self { is_tls, authority: authority.to_string(), host, port, path })
    }

    /// Whether everybody on the way can read what is sent there.
    pub fn is_read_on_the_way(&self) -> bool {
        !self.is_tls && !is_this_machine(&self.host)
    }

    /// For receipts and tables, without a query: it may hold a key.
    pub fn shown(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path.split('?').next().unwrap_or_default())
    }
}
