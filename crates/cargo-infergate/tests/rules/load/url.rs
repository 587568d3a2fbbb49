//! Where requests go, and what is never shown of it.

use infergate_load::api::body::Api;
use infergate_load::client::url::Url;

#[test]
fn the_end_of_the_path_is_added_where_it_is_missing() {
    for (text, path) in [
        ("http://h:1", "/v1/chat/completions"),
        ("http://h:1/", "/v1/chat/completions"),
        ("http://h:1/v1", "/v1/chat/completions"),
        ("http://h:1/api/v3/", "/api/v3/chat/completions"),
        ("http://h:1/v1/chat/completions", "/v1/chat/completions"),
        ("http://h:1/v1?version=2", "/v1/chat/completions?version=2"),
    ] {
        assert_eq!(Url::parse(text, Api::Chat).expect(text).path, path, "{text}");
    }
    assert_eq!(Url::parse("http://h", Api::Completions).expect("a URL").path, "/v1/completions");
    for (base, path) in [("", "/v1/messages"), ("/v1/", "/v1/messages"), ("/anthropic", "/anthropic/v1/messages")] {
        assert_eq!(Url::parse(&format!("http://h{base}"), Api::Messages).expect("a URL").path, path);
    }
}

#[test]
fn the_path_of_another_api_is_refused() {
    for (path, api, own) in [("chat/completions", Api::Completions, "chat"), ("messages", Api::Chat, "messages")] {
        let error = Url::parse(&format!("http://h/v1/{path}"), api).expect_err(path).to_string();
        assert!(error.contains(&format!("use --api {own}")), "{error}");
    }
}

#[test]
fn hosts_and_ports() {
    let parse = |text| Url::parse(text, Api::Chat).expect("a URL");
    assert_eq!((parse("https://h").port, parse("http://h").port, parse("http://h:81").port), (443, 80, 81));
    let six = parse("http://[::1]:8000");
    assert_eq!((&*six.host, &*six.authority), ("::1", "[::1]:8000"));
    assert_eq!(parse("https://h").authority, "h");
    for text in ["http://h:0", "http://h:65536", "http://h:", "http://[::1]:99999"] {
        let error = Url::parse(text, Api::Chat).expect_err(text).to_string();
        assert_eq!(error, "a port is a number from 1 to 65535", "{text}");
    }
}

#[test]
fn what_stays_on_this_machine_is_read_by_nobody_on_the_way() {
    let is_read = |text: &str| Url::parse(text, Api::Chat).expect(text).is_read_on_the_way();
    for host in [
        "127.0.0.1:8000",
        "127.9.9.9",
        "[::1]:1",
        "[::ffff:127.0.0.1]",
        "localhost",
        "LOCALHOST:1",
        "a.localhost",
        "0.0.0.0:1",
    ] {
        assert!(!is_read(&format!("http://{host}")), "{host}");
    }
    for host in
        ["10.0.0.1", "h", "localhost.evil.example", "127.0.0.1.evil.example", "[2001:db8::1]", "[::ffff:10.0.0.1]"]
    {
        assert!(is_read(&format!("http://{host}")), "{host}");
        assert!(!is_read(&format!("https://{host}")), "{host}");
    }
}

#[test]
fn credentials_and_queries_are_never_shown() {
    let url = Url::parse("http://h:1/v1?key=SECRET", Api::Chat).expect("a URL");
    assert_eq!(url.shown(), "http://h:1/v1/chat/completions");
    for text in ["http://SECRET:x@h", "SECRET", "ftp://SECRET", "http://", "http://SEC RET/", "/SECRET", ""] {
        let error = format!("{:#}", Url::parse(text, Api::Chat).expect_err(text));
        assert!(!error.contains("SECRET"), "{error}");
    }
}
