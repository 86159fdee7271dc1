use crate::client::assert_serves;
use crate::process::{Process, free_address};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use testkit::{http, http_bytes};

const WAIT: Duration = Duration::from_secs(10);

fn status_of(endpoint: &str, target: &str) -> u16 {
    http(endpoint, "GET", target, &[], b"", WAIT).status
}

#[test]
fn one_port_serves_everything_unless_told_otherwise() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let server = Process::start(&dir.path().join("data"), &[]);
    assert_serves(&server.endpoint);
    for target in ["/health", "/metrics", "/version", "/livez", "/readyz"] {
        assert_eq!(status_of(&server.endpoint, target), 200, "{target}");
    }
    let key = br#"{"key":"YQ=="}"#;
    let reply = http(&server.endpoint, "POST", "/v3/kv/range", &[], key, WAIT);
    assert_eq!(reply.status, 200);
}

#[test]
fn http_can_have_a_port_of_its_own() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let http_address = free_address();
    let apart = format!("--listen-client-http-urls=http://{http_address}");
    let server = Process::start(&dir.path().join("data"), &[&apart]);
    assert_serves(&server.endpoint);
    for target in ["/health", "/metrics", "/version", "/livez", "/readyz"] {
        assert_eq!(status_of(&http_address, target), 200, "{target}");
    }
    let reply = http(&http_address, "POST", "/v3/kv/range", &[], br#"{"key":"YQ=="}"#, WAIT);
    assert_eq!(reply.status, 200);
    // The other port understands only HTTP/2 now.
    let request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let raw = http_bytes(&server.endpoint, request, Duration::from_secs(2));
    assert!(!raw.starts_with(b"HTTP/1"), "{:?}", String::from_utf8_lossy(&raw));
}

#[test]
fn metrics_can_be_served_on_more_ports() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let metrics = free_address();
    let flag = format!("--listen-metrics-urls=http://{metrics}");
    let server = Process::start(&dir.path().join("data"), &[&flag]);
    for target in ["/health", "/metrics", "/livez", "/readyz"] {
        assert_eq!(status_of(&metrics, target), 200, "{target}");
        assert_eq!(status_of(&server.endpoint, target), 200, "{target}");
    }
    let body = br#"{"key":"YQ=="}"#;
    assert_eq!(http(&metrics, "POST", "/v3/kv/range", &[], body, WAIT).status, 404);
    assert_eq!(status_of(&metrics, "/version"), 404);
}

#[test]
fn a_unix_socket_serves_clients() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let tcp = free_address();
    // In etcd's URLs the name of the socket has the form of a host, in the working directory; a
    // path is taken whole.
    let socket = dir.path().join("client.sock:1");
    let urls = format!("--listen-client-urls=http://{tcp},unix://{}", socket.display());
    let mut server = Process::start(&dir.path().join("data"), &[&urls]);
    server.endpoint = tcp;
    assert_serves(&server.endpoint);
    let mut stream = UnixStream::connect(&socket).expect("the socket is there");
    stream.set_read_timeout(Some(WAIT)).expect("the timeout is not zero");
    let request = b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    // Killed, it leaves the socket behind; the next one takes it over.
    server.kill();
    let server = Process::start(&dir.path().join("data"), &[&urls]);
    drop(UnixStream::connect(&socket).expect("the socket is served again"));
    drop(server);
}
