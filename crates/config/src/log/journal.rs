//! systemd's journal, by its own datagram protocol: `FIELD=value` lines in one packet.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;

use super::output::reason;
use super::{Entry, Level, caller};

const SOCKET: &str = "/run/systemd/journal/socket";

pub(super) struct Journal {
    socket: UnixDatagram,
    identifier: String,
}

impl Journal {
    pub fn connect() -> Result<Self, String> {
        let connected = UnixDatagram::unbound().and_then(|socket| {
            socket.connect(SOCKET)?;
            Ok(socket)
        });
        let socket = connected.map_err(|error| {
            format!("can't find journal (dial unixgram {SOCKET}: connect: {})", reason(&error))
        })?;
        let program = std::env::args().next().unwrap_or_default();
        let identifier = program.rsplit('/').next().unwrap_or_default().to_string();
        Ok(Self { socket, identifier })
    }

    /// Sends one line; what the journal does not take goes to stderr instead of nowhere.
    pub fn send(&self, entry: &Entry, line: &str) -> io::Result<()> {
        let packet = packet(entry, line.trim_end_matches('\n'), &self.identifier);
        match self.socket.send(&packet) {
            Ok(_) => Ok(()),
            Err(_) => io::stderr().lock().write_all(line.as_bytes()),
        }
    }
}

fn packet(entry: &Entry, message: &str, identifier: &str) -> Vec<u8> {
    let mut packet = Vec::new();
    let mut field = |name: &str, value: &str| {
        packet.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            // A value of several lines is told by its length.
            packet.push(b'\n');
            packet.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            packet.push(b'=');
        }
        packet.extend_from_slice(value.as_bytes());
        packet.push(b'\n');
    };
    field("PRIORITY", priority(entry.level));
    field("MESSAGE", message);
    field("PACKAGE", &caller::package(entry.file));
    field("SYSLOG_IDENTIFIER", identifier);
    packet
}

fn priority(level: Level) -> &'static str {
    match level {
        Level::Debug => "7",
        Level::Info => "6",
        Level::Warn => "4",
        Level::Error => "3",
        Level::Dpanic | Level::Panic | Level::Fatal => "2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_names_priority_message_package_and_program() {
        let entry = crate::entry!(Level::Warn, "hello");
        let sent = packet(&entry, "{\"msg\":\"hello\"}", "etcd");
        let text = String::from_utf8(sent).unwrap();
        assert_eq!(
            text,
            "PRIORITY=4\nMESSAGE={\"msg\":\"hello\"}\nPACKAGE=log\nSYSLOG_IDENTIFIER=etcd\n"
        );
    }

    #[test]
    fn a_message_of_two_lines_is_sent_by_length() {
        let entry = crate::entry!(Level::Info, "x");
        let sent = packet(&entry, "a\nb", "etcd");
        let wanted = b"MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\n";
        assert!(sent.windows(wanted.len()).any(|window| window == wanted));
    }
}
