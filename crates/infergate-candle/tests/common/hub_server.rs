//! A loopback server that speaks as much of the Hugging Face hub's protocol as a download needs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use infergate_core::sha256::{self, hex};
use sha1::{Digest as _, Sha1};

/// The commit that `main` stands for.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The one repository.
pub const REPO: &str = "org/tiny";

/// What the server has and how it misbehaves.
#[derive(Default)]
pub struct State {
    /// Name to content and ETag.
    pub files: BTreeMap<String, (Vec<u8>, String)>,
    /// The token that must be sent.
    pub token: Option<String>,
    /// So many bodies end in the middle.
    pub interruptions: usize,
    /// Range headers are ignored, as some mirrors do.
    pub ignores_ranges: bool,
    /// Files are answered with a redirect to this server, which has them at the same path.
    pub redirects_to: Option<String>,
    /// Serves files to whoever asks for a path that ends in their name, and says nothing else: storage behind a hub.
    pub only_storage: bool,
    /// Bodies stop in the middle and the connection stays open.
    pub stalls: bool,
    /// So many bytes more than announced are sent with a file.
    pub surplus_bytes: usize,
    /// `METHOD PATH RANGE` of each request.
    pub log: Vec<String>,
    /// The `Authorization` header of each request.
    pub authorizations: Vec<Option<String>>,
    /// Connections that are kept open.
    held: Vec<TcpStream>,
}

impl State {
    /// Adds a file under the ETag that the hub gives it: git's hash of a small one, the SHA-256 of a large one.
    pub fn put(&mut self, name: &str, content: Vec<u8>) {
        let etag = if name.ends_with(".json") {
            let blob = [format!("blob {}\0", content.len()).as_bytes(), &content].concat();
            hex(&Sha1::digest(blob))
        } else {
            sha256::of(&content)
        };
        self.files.insert(name.to_owned(), (content, etag));
    }
}

pub struct HubServer {
    pub endpoint: String,
    state: Arc<Mutex<State>>,
}

impl HubServer {
    /// Starts a server with the files of `folder`.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let mut state = State::default();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            state.put(path.file_name().unwrap().to_str().unwrap(), std::fs::read(&path).unwrap());
        }
        let state = Arc::new(Mutex::new(state));
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that hangs up is a case under test.
                let _ = answer(stream, &mut shared.lock().unwrap());
            }
        });
        Self { endpoint, state }
    }

    /// Looks at or changes the state.
    pub fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap())
    }
}

fn answer(mut stream: TcpStream, state: &mut State) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let mut headers = BTreeMap::new();
    while let Some(line) = lines.next().transpose()?.filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let range = headers.get("range").cloned();
    state.log.push(format!("{path} {}", range.as_deref().unwrap_or("-")));
    state.authorizations.push(headers.get("authorization").cloned());
    let allowed = state.token.as_ref().is_none_or(|t| headers.get("authorization") == Some(&format!("Bearer {t}")));
    if !allowed {
        return respond(&mut stream, "401 Unauthorized", &[], b"");
    }
    if path == format!("/api/models/{REPO}/revision/main") {
        let body = format!("{{\"sha\":\"{COMMIT}\",\"siblings\":[]}}");
        return respond(&mut stream, "200 OK", &[], body.as_bytes());
    }
    let prefix = format!("/{REPO}/resolve/{COMMIT}/");
    let Some((content, etag)) = path.strip_prefix(&prefix).and_then(|name| state.files.get(name)) else {
        return respond(&mut stream, "404 Not Found", &[], b"");
    };
    let mut common = vec![format!("x-repo-commit: {COMMIT}"), format!("etag: \"other\"\r\nx-linked-etag: \"{etag}\"")];
    if let Some(storage) = &state.redirects_to {
        common.push(format!("location: {storage}{path}"));
        return respond(&mut stream, "302 Found", &common, b"");
    }
    if state.only_storage {
        // What storage says of commit and ETag must not be believed.
        common = vec!["x-repo-commit: main\r\nx-linked-etag: \"../../escaped\"".to_owned()];
    }
    let (from, to) = match range.as_deref().and_then(|r| r.strip_prefix("bytes=")).and_then(|r| r.split_once('-')) {
        Some((from, to)) => (from.parse().unwrap_or(0), to.parse().map_or(content.len(), |to: usize| to + 1)),
        None => (0, content.len()),
    };
    if from >= content.len() {
        common.push(format!("content-range: bytes */{}", content.len()));
        return respond(&mut stream, "416 Range Not Satisfiable", &common, b"");
    }
    let only_asks = to == 1;
    let part = format!("content-range: bytes {from}-{}/{}", to - 1, content.len());
    let body = &content[from..to];
    if state.interruptions > 0 && !only_asks {
        state.interruptions -= 1;
        write!(stream, "HTTP/1.1 206 Partial Content\r\n{part}\r\ncontent-length: {}\r\n\r\n", body.len())?;
        return stream.write_all(&body[..body.len() / 2]);
    }
    if state.stalls && !only_asks {
        write!(stream, "HTTP/1.1 206 Partial Content\r\n{part}\r\ncontent-length: {}\r\n\r\n", body.len())?;
        stream.write_all(&body[..body.len() / 2])?;
        state.held.push(stream);
        return Ok(());
    }
    if state.surplus_bytes > 0 && !only_asks {
        let body = [body, &vec![b'x'; state.surplus_bytes]].concat();
        return respond(&mut stream, "206 Partial Content", &[part], &body);
    }
    if state.ignores_ranges && !only_asks {
        return respond(&mut stream, "200 OK", &common, content);
    }
    respond(&mut stream, "206 Partial Content", &[common.as_slice(), &[part]].concat(), body)
}

fn respond(stream: &mut TcpStream, status: &str, headers: &[String], body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len())?;
    headers.iter().try_for_each(|header| write!(stream, "{header}\r\n"))?;
    stream.write_all(b"\r\n")?;
    stream.write_all(body)
}
