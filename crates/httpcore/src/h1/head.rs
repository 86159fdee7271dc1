//! From the bytes of a request's head to what they ask for.

use bytes::{Bytes, BytesMut};

use super::{Closed, Limits};
use crate::h2::Headers;
use crate::hpack::Field;

/// A request's head, and how its body is delimited.
#[derive(Debug)]
pub struct Head {
    pub headers: Headers,
    pub method: Bytes,
    pub target: Bytes,
    /// HTTP/1.1; otherwise 1.0.
    pub modern: bool,
    pub keep_alive: bool,
    pub expects_continue: bool,
    pub length: Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Fixed(u64),
    Chunked,
}

/// Takes a whole head off `input`; `None` if it is not whole yet.
pub fn take(input: &mut BytesMut, limits: &Limits) -> Result<Option<Head>, Closed> {
    let mut places = vec![httparse::EMPTY_HEADER; limits.fields_max];
    let mut parsed = httparse::Request::new(&mut places);
    let visible = &input[..input.len().min(limits.head_bytes_max)];
    let length = match parsed.parse(visible) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() < limits.head_bytes_max => return Ok(None),
        Ok(httparse::Status::Partial) => return refuse(431, "the request's head is too long"),
        Err(httparse::Error::TooManyHeaders) => return refuse(431, "too many header fields"),
        Err(httparse::Error::Version) => return refuse(505, "neither HTTP/1.0 nor HTTP/1.1"),
        Err(_) => return refuse(400, "the request's head is malformed"),
    };
    let own = |text: Option<&str>| Bytes::copy_from_slice(text.unwrap_or_default().as_bytes());
    let method = own(parsed.method);
    let target = own(parsed.path);
    let modern = parsed.version == Some(1);
    let field = |header: &httparse::Header<'_>| Field {
        name: header.name.to_ascii_lowercase().into(),
        value: Bytes::copy_from_slice(header.value),
    };
    let fields: Vec<Field> = parsed.headers.iter().map(field).collect();
    let length_of_body = body_length(&fields, modern)?;
    let headers = Headers::from_parts(method.clone(), target.clone(), fields);
    let hosts = headers.get_all("host").count();
    if hosts > 1 || (modern && hosts == 0) {
        return refuse(400, "the request has no Host, or more than one");
    }
    let keep_alive = if modern {
        !names(&headers, "connection", "close")
    } else {
        names(&headers, "connection", "keep-alive")
    };
    let expects_continue = modern && names(&headers, "expect", "100-continue");
    let head = Head {
        headers,
        method,
        target,
        modern,
        keep_alive,
        expects_continue,
        length: length_of_body,
    };
    let _ = input.split_to(length);
    Ok(Some(head))
}

/// Whether a comma-separated header names `token`.
pub fn names(headers: &Headers, header: &str, token: &str) -> bool {
    headers
        .get_all(header)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .any(|part| part.trim_ascii().eq_ignore_ascii_case(token.as_bytes()))
}

fn body_length(fields: &[Field], modern: bool) -> Result<Length, Closed> {
    let values = |name: &'static str| {
        fields.iter().filter(move |field| field.name == name).map(|field| &field.value)
    };
    let mut fixed = None;
    for value in values("content-length") {
        let text = std::str::from_utf8(value).unwrap_or_default();
        // `parse` would take a plus sign.
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(length) = digits.then(|| text.parse::<u64>().ok()).flatten() else {
            return refuse(400, "the Content-Length is not a number");
        };
        if fixed.is_some_and(|other| other != length) {
            return refuse(400, "two different Content-Lengths");
        }
        fixed = Some(length);
    }
    let mut codings = values("transfer-encoding");
    let Some(coding) = codings.next() else { return Ok(Length::Fixed(fixed.unwrap_or(0))) };
    if fixed.is_some() || codings.next().is_some() || !modern {
        return refuse(400, "the length of the body is given in two ways");
    }
    if !coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
        return refuse(501, "the only transfer coding understood is chunked");
    }
    Ok(Length::Chunked)
}

fn refuse<T>(status: u16, reason: &'static str) -> Result<T, Closed> {
    Err(Closed { status, reason })
}
