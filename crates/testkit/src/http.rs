//! An HTTP/1.1 client for one request per connection, as plain as `curl` without options.

use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A whole answer.
#[derive(Clone, Debug)]
pub struct HttpReply {
    pub status: u16,
    /// Names in lower case, in the order of the answer.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON, if it is that.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }
}

/// One request; the answer is read to its end, or for `wait` if it is a stream that goes on.
pub fn http(
    endpoint: &str,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
    wait: Duration,
) -> HttpReply {
    let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        request += &format!("Host: {endpoint}\r\n");
    }
    if !body.is_empty() || method == "POST" {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    let mut bytes = request.into_bytes();
    bytes.extend_from_slice(body);
    let raw = http_bytes(endpoint, &bytes, wait);
    parse(&raw).unwrap_or_else(|| {
        panic!("{method} {target}: no HTTP answer: {:?}", String::from_utf8_lossy(&raw))
    })
}

/// Sends bytes as they are and reads until the server closes, or nothing comes for `wait`.
pub fn http_bytes(endpoint: &str, request: &[u8], wait: Duration) -> Vec<u8> {
    let mut socket = TcpStream::connect(endpoint).expect("the server accepts connections");
    socket.set_read_timeout(Some(wait)).expect("the timeout is not zero");
    // A server may refuse before it has read all.
    let _ = socket.write_all(request);
    let mut raw = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => raw.extend_from_slice(&buffer[..n]),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    raw
}

fn parse(raw: &[u8]) -> Option<HttpReply> {
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_string()))
        .collect();
    let rest = &raw[end + 4..];
    let chunked = headers.iter().any(|(n, v)| n == "transfer-encoding" && v == "chunked");
    let body = if chunked { join_chunks(rest) } else { rest.to_vec() };
    Some(HttpReply { status, headers, body })
}

/// A body that was cut off by the end of our patience is returned as far as it came.
fn join_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap_or("");
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let from = end + 2;
        if size == 0 || rest.len() < from + size + 2 {
            break;
        }
        body.extend_from_slice(&rest[from..from + size]);
        rest = &rest[from + size + 2..];
    }
    body
}
