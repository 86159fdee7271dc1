//! Control frames: settings, windows, pings, goodbyes.

use bytes::Bytes;

use super::super::frame::{self, Head, setting};
use super::super::{Closed, error};
use super::{Connection, Incoming};

impl Connection {
    pub(super) fn rst_stream(&mut self, head: Head, payload: &[u8]) -> Result<Incoming, Closed> {
        let Ok(code) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a RST_STREAM has a wrong length"));
        };
        if head.id == 0 || head.id > self.last_id {
            return Err(self.fail(error::PROTOCOL_ERROR, "a reset of a stream never opened"));
        }
        Ok(Incoming::Reset { id: head.id, code })
    }

    pub(super) fn settings(
        &mut self,
        head: Head,
        payload: &[u8],
    ) -> Result<Option<Incoming>, Closed> {
        if head.id != 0 {
            return Err(self.fail(error::PROTOCOL_ERROR, "SETTINGS on a stream"));
        }
        if head.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(self.fail(error::FRAME_SIZE_ERROR, "a SETTINGS ack has a payload"));
            }
            self.nuisance()?;
            self.settings_acknowledged();
            return Ok(None);
        }
        let (entries, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a SETTINGS frame has a wrong length"));
        }
        self.nuisance()?;
        for &[a, b, c, d, e, f] in entries {
            self.setting(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))?;
        }
        self.link.settings_ack();
        Ok(None)
    }

    /// From here on the peer counts with our windows; streams already open move along.
    fn settings_acknowledged(&mut self) {
        let difference = i64::from(self.settings.initial_window) - self.stream_window;
        if difference != 0 {
            self.stream_window += difference;
            for stream in self.streams.values_mut() {
                stream.receive_window += difference;
            }
        }
    }

    fn setting(&mut self, name: u16, value: u32) -> Result<(), Closed> {
        match name {
            setting::HEADER_TABLE_SIZE => self.link.encoder.resize(value as usize),
            setting::ENABLE_PUSH if value > 1 => {
                return Err(self.fail(error::PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1"));
            }
            setting::MAX_CONCURRENT_STREAMS => self.peer_max_concurrent = value,
            setting::INITIAL_WINDOW_SIZE => self.initial_window(value)?,
            setting::MAX_FRAME_SIZE => {
                if !(16384..1 << 24).contains(&value) {
                    return Err(self.fail(error::PROTOCOL_ERROR, "MAX_FRAME_SIZE is out of range"));
                }
                self.link.peer_max_frame = value as usize;
            }
            _ => {}
        }
        Ok(())
    }

    /// The peer's initial window counts for open streams too: each moves by the difference.
    fn initial_window(&mut self, value: u32) -> Result<(), Closed> {
        const TOO_LARGE: &str = "a window grows beyond 2^31-1";
        if value > i32::MAX as u32 {
            return Err(self.fail(error::FLOW_CONTROL_ERROR, TOO_LARGE));
        }
        let difference = i64::from(value) - i64::from(self.peer_initial_window);
        self.peer_initial_window = value;
        if difference == 0 {
            return Ok(());
        }
        let mut ids: Vec<u32> = Vec::new();
        let mut too_large = false;
        for (&id, stream) in &mut self.streams {
            stream.send_window += difference;
            too_large |= stream.send_window > i64::from(i32::MAX);
            if stream.queued > 0 {
                ids.push(id);
            }
        }
        if too_large {
            return Err(self.fail(error::FLOW_CONTROL_ERROR, TOO_LARGE));
        }
        if difference > 0 {
            // In the order of their numbers: the order of a hash map must not be seen.
            ids.sort_unstable();
            for id in ids {
                self.pump(id, usize::MAX);
            }
        }
        Ok(())
    }

    pub(super) fn ping(&mut self, head: Head, payload: &[u8]) -> Result<Option<Incoming>, Closed> {
        let Ok(data) = <[u8; 8]>::try_from(payload) else {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a PING has a wrong length"));
        };
        if head.id != 0 {
            return Err(self.fail(error::PROTOCOL_ERROR, "a PING on a stream"));
        }
        self.nuisance()?;
        if head.has(frame::ACK) {
            return Ok(Some(Incoming::PingAck { data }));
        }
        self.link.ping(&data, true);
        Ok(Some(Incoming::Ping))
    }

    pub(super) fn go_away(
        &mut self,
        head: Head,
        bytes: &Bytes,
        payload: std::ops::Range<usize>,
    ) -> Result<Incoming, Closed> {
        let Some((&[a, b, c, d, e, f, g, h], _)) = bytes[payload.clone()].split_first_chunk()
        else {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a GOAWAY is too short"));
        };
        if head.id != 0 {
            return Err(self.fail(error::PROTOCOL_ERROR, "a GOAWAY on a stream"));
        }
        self.nuisance()?;
        Ok(Incoming::GoAway {
            last: u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff,
            code: u32::from_be_bytes([e, f, g, h]),
            debug: bytes.slice(payload.start + 8..payload.end),
        })
    }

    pub(super) fn window_update(
        &mut self,
        head: Head,
        payload: &[u8],
    ) -> Result<Option<Incoming>, Closed> {
        let Ok(increment) = payload.try_into().map(u32::from_be_bytes) else {
            return Err(self.fail(error::FRAME_SIZE_ERROR, "a WINDOW_UPDATE has a wrong length"));
        };
        let increment = i64::from(increment & 0x7fff_ffff);
        let most = i64::from(i32::MAX);
        if head.id == 0 {
            self.link.window += increment;
            if increment == 0 {
                return Err(self.fail(error::PROTOCOL_ERROR, "a WINDOW_UPDATE of nothing"));
            }
            if self.link.window > most {
                return Err(self.fail(error::FLOW_CONTROL_ERROR, "a window grows beyond 2^31-1"));
            }
            self.continue_waiting();
            return Ok(None);
        }
        if head.id > self.last_id {
            return Err(self.fail(error::PROTOCOL_ERROR, "a window of a stream never opened"));
        }
        let Some(stream) = self.streams.get_mut(&head.id) else { return Ok(None) };
        if increment == 0 {
            return Ok(Some(self.fail_stream(head.id, error::PROTOCOL_ERROR)));
        }
        stream.send_window += increment;
        if stream.send_window > most {
            return Ok(Some(self.fail_stream(head.id, error::FLOW_CONTROL_ERROR)));
        }
        self.pump(head.id, usize::MAX);
        Ok(None)
    }

    pub(super) fn priority(&mut self, head: Head) -> Result<Option<Incoming>, Closed> {
        if head.id == 0 {
            return Err(self.fail(error::PROTOCOL_ERROR, "a PRIORITY on stream 0"));
        }
        self.nuisance()?;
        if head.length != 5 && self.streams.contains_key(&head.id) {
            return Ok(Some(self.fail_stream(head.id, error::FRAME_SIZE_ERROR)));
        }
        Ok(None)
    }
}
