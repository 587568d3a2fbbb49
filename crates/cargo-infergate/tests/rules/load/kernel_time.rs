//! What the system says of when it received what a client read, over loopback.

use infergate_load::api::body::Api;
use infergate_load::client::dial::{Dial as _, Network};
use infergate_load::client::url::Url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

#[tokio::test]
async fn every_read_has_the_time_of_its_receipt() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let url = Url::parse(&format!("http://127.0.0.1:{port}"), Api::Completions).expect("a URL");
    let network = Network::new(&url).expect("a network");
    let mut stream = network.dial().await.expect("a connection");
    let (mut server, _) = listener.accept().await.expect("a client");
    let delays = network.receive_delays().expect("a system");
    // The kernel begins to stamp a moment after the first socket of the system has asked for it.
    for _ in 0..100_000 {
        server.write_all(b"a").await.expect("written");
        stream.read_exact(&mut [0]).await.expect("read");
        if !delays.take().is_empty() {
            break;
        }
    }
    for said in [&b"one"[..], b"and two"] {
        server.write_all(said).await.expect("written");
        let mut heard = vec![0; said.len()];
        stream.read_exact(&mut heard).await.expect("read");
        assert_eq!(heard, said);
        assert_eq!(delays.take().len(), 1, "one read, one time");
    }
    stream.write_all(b"an answer").await.expect("written");
    let mut heard = [0; 9];
    server.read_exact(&mut heard).await.expect("read");
    assert_eq!(&heard, b"an answer");
    drop(server);
    assert_eq!(stream.read(&mut heard).await.expect("the end"), 0);
    assert!(delays.take().is_empty(), "the end is no read");
}
