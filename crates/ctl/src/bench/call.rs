//! One unary call, waited for: what a measurement asks of a server beside the load.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use httpcore::h2::{Client, ClientEvent, Limits, Settings};
use prost::Message;

use super::Error;

/// Calls `path` on a connection of its own and decodes the answer. `patience` bounds each wait for
/// the socket.
pub fn unary<A: Message + Default>(
    endpoint: SocketAddr,
    path: &'static str,
    request: &impl Message,
    patience: Duration,
) -> Result<A, Error> {
    let refused = |source| Error::Refused { endpoint, source };
    let lost = |reason: String| Error::Lost { endpoint, reason };
    let mut socket = TcpStream::connect_timeout(&endpoint, patience).map_err(refused)?;
    socket.set_nodelay(true).map_err(refused)?;
    socket.set_read_timeout(Some(patience)).map_err(refused)?;
    let limits = Limits { message_bytes_max: 1 << 30, ..Limits::default() };
    let mut client = Client::new(Settings::default(), limits, &endpoint.to_string());
    client.request(path, &[], &[Bytes::from(request.encode_to_vec())]);

    let mut scratch = vec![0; 16 << 10];
    let (mut input, mut events) = (BytesMut::new(), Vec::new());
    let mut answer = None;
    loop {
        while !client.output().is_empty() {
            let n = socket.write(client.output().chunk()).map_err(|e| lost(e.to_string()))?;
            client.output().advance(n);
        }
        match socket.read(&mut scratch).map_err(|error| lost(error.to_string()))? {
            0 => return Err(lost("the server closed it".to_string())),
            n => input.extend_from_slice(&scratch[..n]),
        }
        client.receive(&mut input, 0, &mut events).map_err(|error| lost(error.to_string()))?;
        for event in events.drain(..) {
            match event {
                ClientEvent::Message { data, .. } => answer = Some(data),
                ClientEvent::Trailers { code: 0, .. } => {
                    let data = answer.unwrap_or_default();
                    return A::decode(data).map_err(|error| lost(error.to_string()));
                }
                ClientEvent::Trailers { code, message, .. } => {
                    return Err(Error::Failed { endpoint, path, code, message });
                }
                ClientEvent::Reset { code, .. } => {
                    return Err(lost(format!("stream reset with code {code}")));
                }
                _ => {}
            }
        }
    }
}
