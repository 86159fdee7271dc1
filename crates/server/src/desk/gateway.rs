//! The JSON gateway, and the road to the other endpoints.
//!
//! The gateway turns JSON into the bytes of a gRPC request and the answer's bytes into JSON; in
//! between a call is a call, whoever made it.

use super::call::{Call, CallId, Lane};
use super::connection::{Protocol, Serves};
use super::dispatch::Metadata;
use super::http::{Current, GatewayCall, HttpLane, Link};
use super::run::{Desk, Limits};
use crate::http::{plainer_path, refused_host, split_target, text};
use crate::method::{Method, Shape};
use crate::office::{HttpRequest, HttpResponse};
use api::{Code, Error};
use bytes::Bytes;
use gateway::Splitter;
use httpcore::h1::{self, Event, Request};
use httpcore::ws;
use std::time::Duration;

impl Desk {
    pub(super) fn http_lane(&mut self, key: usize) -> Option<&mut HttpLane> {
        match &mut self.connections.get_mut(key)?.protocol {
            Protocol::Http(lane) => Some(lane),
            _ => None,
        }
    }

    pub(super) fn step_http(&mut self, key: usize) {
        loop {
            let Some(connection) = self.connections.get_mut(key) else { return };
            let Protocol::Http(lane) = &mut connection.protocol else { return };
            let Link::Http(link) = &mut lane.link else { return self.step_socket(key) };
            let mut events = Vec::new();
            let received = link.receive(&mut connection.input, &mut events);
            let idle = events.is_empty();
            for event in events {
                match event {
                    Event::Request(request) => self.on_http_request(key, &request),
                    Event::Body { data } => self.on_http_body(key, &data),
                    Event::End => self.on_http_end(key),
                }
            }
            if received.is_err()
                && let Some(connection) = self.connections.get_mut(key)
            {
                connection.closing = true;
            }
            self.mark_dirty(key);
            // A pipelined request may wait behind one that was answered at once.
            let busy = self.http_lane(key).is_none_or(|lane| lane.is_busy());
            if idle || received.is_err() || busy {
                return;
            }
        }
    }

    /// Each text message is one request of the call that the upgrade began.
    fn step_socket(&mut self, key: usize) {
        let Some(id) = self.gateway_id(key) else { return };
        let Some(connection) = self.connections.get_mut(key) else { return };
        let Protocol::Http(lane) = &mut connection.protocol else { return };
        let Link::Socket(link) = &mut lane.link else { return };
        let mut events = Vec::new();
        if link.receive(&mut connection.input, &mut events).is_err() {
            connection.closing = true;
        }
        let Current::Gateway(gateway) = &lane.current else { return self.mark_dirty(key) };
        let request = gateway.method.info().request;
        let takes_stream = gateway.splitter.is_some();
        for event in events {
            let json = match event {
                ws::Event::Text(json) | ws::Event::Binary(json) => json,
                _ => continue,
            };
            match self.shared.transcoder.request(request, &json) {
                Ok(message) => self.on_json_message(id, message.into()),
                // As in a body: what cannot be read acts like its end.
                Err(_) if takes_stream => self.on_half_close(id),
                Err(error) => self.fail(id, error.into()),
            }
        }
        self.mark_dirty(key);
    }

    /// The gateway of etcd sends what it has read over gRPC, so gRPC's limit holds for it too.
    fn on_json_message(&mut self, id: CallId, message: Bytes) {
        let allowed = self.shared.limits.message_bytes_max();
        if message.len() <= allowed {
            return self.on_message(id, message);
        }
        self.fail(id, too_large(message.len(), allowed));
    }

    fn on_http_request(&mut self, key: usize, request: &Request) {
        let shared = self.shared.clone();
        let Some(lane) = self.http_lane(key) else { return };
        lane.number = lane.number.wrapping_add(1);
        lane.fields.clear();
        let target = String::from_utf8_lossy(&request.target).into_owned();
        let connects = request.method.as_ref() == b"CONNECT";
        let split = if connects { Some((target.clone(), "")) } else { split_target(&target) };
        let Some((path, query)) = split else {
            lane.current = Current::Refused;
            let body = Bytes::from_static(b"400 Bad Request");
            return lane.write_plain(400, "text/plain; charset=utf-8", body, &[]);
        };
        let serves = lane.serves;
        if matches!(serves, Serves::Everything | Serves::Http) {
            let host = text(&request.headers, "host");
            if !shared.http.allows_host(host) {
                config::warn!(shared.logger,
                    "rejecting HTTP request to prevent DNS rebinding attacks",
                    "host" => host.unwrap_or(""));
                let body = refused_host(host.unwrap_or(""));
                lane.current = Current::Refused;
                return lane.write_plain(421, "text/plain; charset=utf-8", body.into(), &[]);
            }
            // `OPTIONS *` asks about the server as a whole, which no origin calls.
            if target != "*" {
                lane.fields = shared.http.cors_fields(text(&request.headers, "origin"));
            }
            if request.method.as_ref() == b"OPTIONS" {
                lane.current = Current::Refused;
                return lane.write_plain(200, "", Bytes::new(), &[]);
            }
            if let Some(plain) = plainer_path(&path).filter(|_| !connects) {
                lane.current = Current::Refused;
                return lane.write_redirect(request.method.as_ref(), &plain, query);
            }
            let path = path.replacen("/v3beta/", "/v3/", 1);
            if shared.http.gateway && path.starts_with("/v3/") {
                return self.begin_gateway_call(key, &path, request);
            }
        }
        lane.current = Current::Endpoint(HttpRequest {
            method: String::from_utf8_lossy(&request.method).into_owned(),
            path,
            query: query.to_owned(),
            serves,
        });
    }

    fn begin_gateway_call(&mut self, key: usize, path: &str, request: &Request) {
        let method = Method::at_gateway(path);
        let metadata = gateway_metadata(request);
        let Some(connection) = self.connections.get_mut(key) else { return };
        let generation = connection.generation;
        let Protocol::Http(lane) = &mut connection.protocol else { return };
        let is_post = request.method.as_ref() == b"POST" || request.wants_websocket;
        let refused = match (method, &metadata) {
            (None, _) => Some((404, Error::new(Code::NotFound, "Not Found"))),
            (_, _) if !is_post => {
                Some((501, Error::new(Code::Unimplemented, "Method Not Allowed")))
            }
            (_, Err(error)) => Some((400, error.clone())),
            _ => None,
        };
        let (Some(method), Ok(metadata), None) = (method, metadata, &refused) else {
            let (status, error) = refused.expect("a call that does not begin was refused");
            lane.current = Current::Refused;
            let body = gateway::error_body(&error).into();
            return lane.write_plain(status, "application/json", body, &[]);
        };
        let takes_stream = method.info().shape == Shape::BidiStream;
        if request.wants_websocket && !upgrade(lane, request, &self.shared.limits) {
            lane.current = Current::Refused;
            return;
        }
        let splitter = takes_stream.then(|| Splitter::new(4 << 20));
        lane.current = Current::Gateway(Box::new(GatewayCall {
            call: None,
            method,
            body: Vec::new(),
            splitter,
            started: false,
        }));
        let id = CallId { connection: key, generation, lane: Lane::Http(lane.number) };
        self.begin_call(id, method, &metadata);
    }

    fn on_http_body(&mut self, key: usize, data: &Bytes) {
        let Some(lane) = self.http_lane(key) else { return };
        let Current::Gateway(gateway) = &mut lane.current else { return };
        if let Some(splitter) = &mut gateway.splitter {
            splitter.feed(data);
            self.feed_gateway_stream(key);
        } else {
            gateway.body.extend_from_slice(data);
        }
    }

    /// Hands over the requests of a stream that have arrived whole. What cannot be read acts like
    /// the end of the body.
    fn feed_gateway_stream(&mut self, key: usize) {
        loop {
            let Some(id) = self.gateway_id(key) else { return };
            let shared = self.shared.clone();
            let Some(lane) = self.http_lane(key) else { return };
            let Current::Gateway(gateway) = &mut lane.current else { return };
            let Some(splitter) = &mut gateway.splitter else { return };
            let Ok(Some(json)) = splitter.next_value() else { return };
            match shared.transcoder.request(gateway.method.info().request, &json) {
                Ok(message) => self.on_message(id, message.into()),
                Err(_) => return self.on_half_close(id),
            }
        }
    }

    fn gateway_id(&mut self, key: usize) -> Option<CallId> {
        let connection = self.connections.get_mut(key)?;
        let generation = connection.generation;
        let Protocol::Http(lane) = &connection.protocol else { return None };
        Some(CallId { connection: key, generation, lane: Lane::Http(lane.number) })
    }

    fn on_http_end(&mut self, key: usize) {
        let Some(id) = self.gateway_id(key) else { return };
        let shared = self.shared.clone();
        let number = self.number;
        let Some(lane) = self.http_lane(key) else { return };
        if matches!(lane.link, Link::Socket(_)) {
            // The end of the upgrade's head; requests come as messages.
            return;
        }
        match std::mem::replace(&mut lane.current, Current::None) {
            Current::Endpoint(request) => {
                lane.current = Current::AtOffice;
                shared.office.take_http(number, id, request);
            }
            Current::Gateway(mut gateway) => {
                let method = gateway.method;
                let body = std::mem::take(&mut gateway.body);
                let streams = gateway.splitter.is_some();
                lane.current = Current::Gateway(gateway);
                if streams {
                    return self.on_half_close(id);
                }
                match shared.transcoder.request(method.info().request, &body) {
                    Ok(message) => self.on_json_message(id, message.into()),
                    Err(error) => self.fail(id, error.into()),
                }
            }
            // Answered by its head already.
            Current::None | Current::Refused => {}
            Current::AtOffice => lane.current = Current::AtOffice,
        }
    }

    pub(super) fn insert_call(&mut self, id: CallId, call: Call) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        match (&mut connection.protocol, id.lane) {
            (Protocol::Grpc { calls, .. }, Lane::Grpc(stream)) => {
                calls.insert(stream, call);
            }
            (Protocol::Http(lane), Lane::Http(number)) => lane.insert_call(number, call),
            _ => {}
        }
    }

    pub(super) fn answer_http(&mut self, id: CallId, response: HttpResponse) {
        let Some(connection) = self.connections.get_mut(id.connection) else { return };
        let is_current = connection.generation == id.generation;
        if let (Protocol::Http(lane), Lane::Http(number)) = (&mut connection.protocol, id.lane)
            && is_current
            && lane.number == number
        {
            lane.write_endpoint(response);
            self.mark_dirty(id.connection);
            self.step_http(id.connection);
        }
    }
}

/// What gRPC says of a message beyond its limit, which holds behind the gateway too.
fn too_large(bytes: usize, bytes_max: usize) -> Error {
    let text = format!("grpc: received message larger than max ({bytes} vs. {bytes_max})");
    Error::with_text(Code::ResourceExhausted, text)
}

/// Changes to WebSocket, or refuses to.
fn upgrade(lane: &mut HttpLane, request: &Request, limits: &Limits) -> bool {
    let accept = match ws::handshake(&request.headers) {
        Ok(accept) => accept,
        Err(_) => {
            let fields = [("Sec-Websocket-Version", "13"), ("X-Content-Type-Options", "nosniff")];
            lane.write_plain(400, "text/plain; charset=utf-8", "Bad Request\n".into(), &fields);
            return false;
        }
    };
    let mut fields = vec![
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Accept", accept.as_str()),
    ];
    if text(&request.headers, "sec-websocket-protocol").is_some_and(|p| p.starts_with("Bearer")) {
        fields.push(("Sec-WebSocket-Protocol", "Bearer"));
    }
    let unused = Link::Http(h1::Server::new(h1::Limits::default()));
    lane.link = match std::mem::replace(&mut lane.link, unused) {
        Link::Http(mut link) => {
            link.upgrade(&fields);
            let message_bytes_max = limits.message_bytes_max();
            Link::Socket(ws::Server::new(ws::Limits { message_bytes_max }, link.into_output()))
        }
        socket => socket,
    };
    true
}

/// What the headers of a gateway request say beside it.
fn gateway_metadata(request: &Request) -> Result<Metadata, Error> {
    let mut metadata = Metadata::default();
    let value = |name| text(&request.headers, name);
    metadata.needs_leader = value("grpc-metadata-hasleader") == Some("true");
    metadata.api_version = value("grpc-metadata-client-api-version").map(str::to_owned);
    if let Some(timeout) = value("grpc-timeout") {
        let parsed = parse_timeout(timeout).ok_or_else(|| {
            Error::with_text(Code::InvalidArgument, format!("invalid grpc-timeout: {timeout}"))
        })?;
        metadata.timeout = Some(parsed);
    }
    Ok(metadata)
}

/// gRPC's timeouts: digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let amount: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    match unit {
        'H' => amount.checked_mul(3600).map(Duration::from_secs),
        'M' => amount.checked_mul(60).map(Duration::from_secs),
        'S' => Some(Duration::from_secs(amount)),
        'm' => Some(Duration::from_millis(amount)),
        'u' => Some(Duration::from_micros(amount)),
        'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}
