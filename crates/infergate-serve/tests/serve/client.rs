//! HTTP/1.1 by hand, so that every byte that arrives is seen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// A test that waits for ever would tell nobody anything.
const LIMIT: Duration = Duration::from_secs(120);

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// `error.message`, of an answer that must be a refusal in OpenAI's form.
    #[track_caller]
    pub fn refusal(&self) -> String {
        let error = &self.json()["error"];
        assert!(error["type"].is_string() && error.get("param").is_some() && error.get("code").is_some(), "{error}");
        error["message"].as_str().expect("a message").to_owned()
    }
}

/// An answer whose body is still coming.
pub struct Coming {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    body: BufReader<Chunked>,
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

pub fn get(address: SocketAddr, path: &str) -> Answer {
    whole(send(address, "GET", path, ""))
}

pub fn post(address: SocketAddr, path: &str, body: &str) -> Answer {
    whole(send(address, "POST", path, body))
}

fn whole(mut coming: Coming) -> Answer {
    let mut body = String::new();
    coming.body.read_to_string(&mut body).expect("a whole body");
    Answer { status: coming.status, headers: coming.headers, body }
}

/// Sends a request and reads the answer's head.
pub fn send(address: SocketAddr, method: &str, path: &str, body: &str) -> Coming {
    read_head(ask(address, method, path, body))
}

/// Sends a request, and leaves the answer to whoever wants it.
pub fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("the head goes out");
    // A server may refuse a long body before it has read it.
    let _ = stream.write_all(body.as_bytes());
    stream
}

fn read_head(stream: TcpStream) -> Coming {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line of the head");
        line.trim_end().to_owned()
    };
    let status = line().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let mut headers = Vec::new();
    loop {
        let header = line();
        let Some((name, value)) = header.split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let chunked = find(&headers, "transfer-encoding") == Some("chunked");
    let left = if chunked { 0 } else { find(&headers, "content-length").and_then(|n| n.parse().ok()).unwrap_or(0) };
    let body = BufReader::new(Chunked { reader, chunked, left, ended: false });
    Coming { status, headers, body }
}

impl Coming {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The data of the next event; `None` at the end. Waits for no byte behind it.
    pub fn event(&mut self) -> Option<String> {
        let mut data = None;
        loop {
            let mut line = String::new();
            if self.body.read_line(&mut line).expect("a line of the stream") == 0 {
                return None;
            }
            match line.strip_prefix("data: ") {
                Some(text) => data = Some(text.trim_end().to_owned()),
                None => return data,
            }
        }
    }

    /// Every event that is left.
    pub fn events(mut self) -> Vec<String> {
        std::iter::from_fn(|| self.event()).collect()
    }
}

/// Takes the chunks of a body apart.
struct Chunked {
    reader: BufReader<TcpStream>,
    chunked: bool,
    /// Bytes of the current chunk.
    left: usize,
    ended: bool,
}

impl Read for Chunked {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.chunked && self.left == 0 && !self.ended {
            let mut size = String::new();
            self.reader.read_line(&mut size)?;
            if size == "\r\n" {
                size.clear();
                self.reader.read_line(&mut size)?;
            }
            // A connection that is cut has no last chunk of size 0.
            self.left = usize::from_str_radix(size.trim_end(), 16).unwrap_or(0);
            self.ended = self.left == 0;
        }
        let wanted = self.left.min(buffer.len());
        let read = self.reader.read(&mut buffer[..wanted])?;
        self.left -= read;
        Ok(read)
    }
}
