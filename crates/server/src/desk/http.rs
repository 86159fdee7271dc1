//! One HTTP/1.1 connection: which request is under way, and how its answer is written.

use super::call::Call;
use super::connection::Serves;
use crate::http::Field;
use crate::method::{Method, Shape};
use crate::office::{HttpRequest, HttpResponse};
use api::{Code, Error};
use bytes::Bytes;
use gateway::{Splitter, Transcoder};
use httpcore::Output;
use httpcore::{h1, ws};

/// One HTTP/1 connection.
pub struct HttpLane {
    pub(super) link: Link,
    pub(super) serves: Serves,
    /// Counts the calls, so that an answer to an old one is known as such.
    pub(super) number: u32,
    pub(super) current: Current,
    /// CORS headers of the request under way.
    pub(super) fields: Vec<Field>,
}

/// HTTP, or what it was upgraded to.
pub enum Link {
    Http(h1::Server),
    Socket(ws::Server),
}

/// The request under way.
pub enum Current {
    None,
    /// Refused by its head; the rest of it is skipped.
    Refused,
    /// For the office, once it is complete.
    Endpoint(HttpRequest),
    AtOffice,
    Gateway(Box<GatewayCall>),
}

pub struct GatewayCall {
    pub call: Option<Call>,
    pub method: Method,
    /// The body of a unary call; streams are cut into values as they arrive.
    pub body: Vec<u8>,
    pub splitter: Option<Splitter>,
    /// The answer's head has been sent.
    pub started: bool,
}

impl HttpLane {
    /// `message_bytes_max` is what a message may have once it is decoded. As JSON it is a third
    /// longer, and some room is left for those who indent it.
    pub fn new(serves: Serves, message_bytes_max: usize) -> HttpLane {
        let body_bytes_max = 2 * message_bytes_max as u64;
        HttpLane {
            link: Link::Http(h1::Server::new(h1::Limits {
                body_bytes_max,
                ..h1::Limits::default()
            })),
            serves,
            number: 0,
            current: Current::None,
            fields: Vec::new(),
        }
    }

    pub fn output(&mut self) -> &mut Output {
        match &mut self.link {
            Link::Http(link) => link.output(),
            Link::Socket(link) => link.output(),
        }
    }

    pub fn is_busy(&self) -> bool {
        !matches!(self.current, Current::None)
    }

    pub fn is_over(&self) -> bool {
        match &self.link {
            Link::Http(link) => link.should_close(),
            // A socket carries one call and ends with it.
            Link::Socket(_) => !self.is_busy(),
        }
    }

    fn gateway_call(&mut self, number: u32) -> Option<&mut GatewayCall> {
        match &mut self.current {
            Current::Gateway(gateway) if self.number == number => Some(gateway),
            _ => None,
        }
    }

    pub fn call_mut(&mut self, number: u32) -> Option<&mut Call> {
        self.gateway_call(number)?.call.as_mut()
    }

    pub fn end_call(&mut self, number: u32) -> Option<Call> {
        self.gateway_call(number)?.call.take()
    }

    pub fn take_call(&mut self) -> Option<Call> {
        self.end_call(self.number)
    }

    pub fn insert_call(&mut self, number: u32, call: Call) {
        if let Some(gateway) = self.gateway_call(number) {
            gateway.call = Some(call);
        }
    }

    /// The answer of a unary call.
    pub fn respond(&mut self, transcoder: &Transcoder, method: Method, parts: &[Bytes]) {
        let mut json = Vec::new();
        match transcoder.response(method.info().response, &parts.concat(), &mut json) {
            Ok(()) => {
                self.write_whole(200, json, &[("Grpc-Metadata-Content-Type", "application/grpc")])
            }
            Err(error) => self.fail(method, &error.into()),
        }
    }

    /// An error: a plain body for a unary call, a line of the stream for the others.
    pub fn fail(&mut self, method: Method, error: &Error) {
        let streams = method.info().shape != Shape::Unary;
        if !streams {
            let challenge = [("WWW-Authenticate", &*error.message)];
            let extra: &[_] = if error.code == Code::Unauthenticated { &challenge } else { &[] };
            return self.write_whole(
                gateway::http_status(error.code),
                gateway::error_body(error),
                extra,
            );
        }
        let line = gateway::error_line(error);
        if self.has_started() {
            self.send_line(line);
            self.end_answer();
        } else {
            self.write_whole(gateway::http_status(error.code), line, &[]);
        }
    }

    /// One message of a stream.
    pub fn send_message(&mut self, transcoder: &Transcoder, method: Method, parts: &[Bytes]) {
        let (mut line, message) = (Vec::new(), parts.concat());
        let response = method.info().response;
        let written =
            gateway::result_line(&mut line, |out| transcoder.response(response, &message, out));
        if let Err(error) = written {
            return self.fail(method, &error.into());
        }
        self.start_stream();
        self.send_line(line);
    }

    pub fn finish_stream(&mut self) {
        if !self.has_started() {
            // There is nothing whose type could be told.
            return self.write_empty();
        }
        self.end_answer();
    }

    /// The answer of a stream that ended without a message.
    fn write_empty(&mut self) {
        let fields = self.all_fields("", &[]);
        if let Link::Http(link) = &mut self.link {
            link.respond(200, &borrow(&fields), Bytes::new());
            self.current = Current::None;
        } else {
            self.end_answer();
        }
    }

    fn has_started(&mut self) -> bool {
        let number = self.number;
        self.gateway_call(number).is_some_and(|gateway| gateway.started)
    }

    fn start_stream(&mut self) {
        if self.has_started() {
            return;
        }
        let number = self.number;
        let fields = self
            .all_fields("application/json", &[("Grpc-Metadata-Content-Type", "application/grpc")]);
        if let Some(gateway) = self.gateway_call(number) {
            gateway.started = true;
        }
        if let Link::Http(link) = &mut self.link {
            link.start(200, &borrow(&fields));
        }
    }

    fn send_line(&mut self, mut line: Vec<u8>) {
        match &mut self.link {
            Link::Http(link) => link.send(line.into()),
            Link::Socket(link) => {
                if line.last() == Some(&b'\n') {
                    line.pop();
                }
                link.send_text(&line.into());
            }
        }
    }

    fn write_whole(&mut self, status: u16, body: Vec<u8>, extra: &[(&str, &str)]) {
        let fields = self.all_fields("application/json", extra);
        if let Link::Http(link) = &mut self.link {
            link.respond(status, &borrow(&fields), body.into());
            self.current = Current::None;
        } else {
            self.send_line(body);
            self.end_answer();
        }
    }

    fn end_answer(&mut self) {
        match &mut self.link {
            Link::Http(link) => link.finish(),
            Link::Socket(link) => link.close(1000, ""),
        }
        self.current = Current::None;
    }

    /// A whole answer to a request that is no call.
    pub fn write_plain(
        &mut self,
        status: u16,
        content_type: &str,
        body: Bytes,
        extra: &[(&str, &str)],
    ) {
        let fields = self.all_fields(content_type, extra);
        if let Link::Http(link) = &mut self.link {
            link.respond(status, &borrow(&fields), body);
        }
    }

    /// Sends the caller to another path with the same request.
    pub fn write_redirect(&mut self, method: &[u8], path: &str, query: &str) {
        let mark = if query.is_empty() { "" } else { "?" };
        let location = format!("{path}{mark}{query}");
        // Only who asked for a page gets one to read.
        let (content_type, body) = match method {
            b"GET" | b"HEAD" => {
                let shown =
                    location.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&#34;");
                let page = format!("<a href=\"{shown}\">Temporary Redirect</a>.\n\n");
                ("text/html; charset=utf-8", page)
            }
            _ => ("", String::new()),
        };
        self.write_plain(307, content_type, body.into(), &[("Location", &location)]);
    }

    pub fn write_endpoint(&mut self, response: HttpResponse) {
        let extra: Vec<(&str, &str)> =
            response.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.write_plain(response.status, response.content_type, response.body, &extra);
        self.current = Current::None;
    }

    fn all_fields(&self, content_type: &str, extra: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut fields: Vec<(String, String)> = Vec::new();
        fields.extend(self.fields.iter().map(|(name, value)| (name.to_string(), value.clone())));
        if !content_type.is_empty() {
            fields.push(("Content-Type".into(), content_type.into()));
        }
        fields.extend(extra.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        fields.push(("Date".into(), httpdate::fmt_http_date(std::time::SystemTime::now())));
        fields
    }
}

fn borrow(fields: &[(String, String)]) -> Vec<(&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}
