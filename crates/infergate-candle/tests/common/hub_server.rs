//! A loopback server that speaks as much of the Hugging Face hub's protocol as a download needs.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The commit that `main` stands for.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The one repository.
pub const REPO: &str = "org/tiny";

/// What the server has and how it misbehaves.
#[derive(Default)]
pub struct State {
    /// Name to content.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The token that must be sent.
    pub token: Option<String>,
    /// Bodies end in the middle.
    pub interrupts: bool,
    /// Files are answered with a redirect to this server, which has them at the same path.
    pub redirects_to: Option<String>,
    /// The path of each request.
    pub log: Vec<String>,
    /// The `Authorization` header of each request.
    pub authorizations: Vec<Option<String>>,
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
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            files.insert(name, std::fs::read(&path).unwrap());
        }
        let state = Arc::new(Mutex::new(State { files, ..State::default() }));
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
    state.log.push(path.clone());
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
    let Some(content) = path.strip_prefix(&prefix).and_then(|name| state.files.get(name)) else {
        return respond(&mut stream, "404 Not Found", &[], b"");
    };
    if let Some(storage) = &state.redirects_to {
        return respond(&mut stream, "302 Found", &[format!("location: {storage}{path}")], b"");
    }
    if state.interrupts {
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", content.len())?;
        return stream.write_all(&content[..content.len() / 2]);
    }
    respond(&mut stream, "200 OK", &[], content)
}

fn respond(stream: &mut TcpStream, status: &str, headers: &[String], body: &[u8]) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len())?;
    headers.iter().try_for_each(|header| write!(stream, "{header}\r\n"))?;
    stream.write_all(b"\r\n")?;
    stream.write_all(body)
}
