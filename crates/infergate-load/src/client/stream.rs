//! What a connection is made of: bytes in both directions, and a version of HTTP.

use tokio::io::{AsyncRead, AsyncWrite};

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}

/// The version of HTTP that is spoken. It is asked for, not found out: one run speaks one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http {
    /// HTTP/1.1.
    #[default]
    One,
    /// HTTP/2, a connection a user as well, so that users share no flow control. Without TLS it is spoken from the first byte.
    Two,
}

impl Http {
    /// Its name in receipts.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "HTTP/1.1",
            Self::Two => "HTTP/2",
        }
    }

    /// Its name in a TLS handshake.
    pub fn alpn(self) -> &'static [u8] {
        match self {
            Self::One => b"http/1.1",
            Self::Two => b"h2",
        }
    }
}
