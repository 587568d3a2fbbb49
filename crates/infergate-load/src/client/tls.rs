//! TLS over a connection, by rustls with the web's certificate authorities.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use infergate_core::load::{Failure, FailureClass};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::api::failures::failure;
use crate::client::stream::Stream;

/// What a connection to one host needs.
pub struct Tls {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl Tls {
    /// For `host`.
    pub fn new(host: &str) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .context("TLS cannot be set up")?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(host.to_owned());
        let host = name.with_context(|| format!("{host}: no certificate can name this host"))?;
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), host })
    }

    /// The session over `connection`.
    ///
    /// # Errors
    /// As a failed request of the class `tls`.
    pub async fn over(&self, connection: Box<dyn Stream>) -> Result<Box<dyn Stream>, Failure> {
        match self.connector.connect(self.host.clone(), connection).await {
            Ok(session) => Ok(Box::new(session)),
            // rustls names certificates and alerts here, nothing of the user's.
            Err(error) => Err(failure(
                FailureClass::Tls,
                format!("no TLS session: {error}; check whether the URL begins with https://, and the certificate"),
            )),
        }
    }
}
