//! Compressed gRPC messages. A client that compresses its calls is answered compressed, as etcd
//! does; everybody else never comes here.

use std::io::{Read, Write};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::grpc::{Refused, code};

/// The plain form of a compressed message, unless it is larger than `bytes_max`.
pub fn expand(message: &[u8], bytes_max: usize) -> Result<Bytes, Refused> {
    let mut plain = Vec::new();
    // One byte more than allowed tells a bomb from a message that just fits.
    let mut decoder = MultiGzDecoder::new(message).take(bytes_max as u64 + 1);
    if let Err(error) = decoder.read_to_end(&mut plain) {
        let message = format!("grpc: failed to decompress the received message: {error}");
        return Err(Refused { code: code::INTERNAL, message });
    }
    if plain.len() > bytes_max {
        let message =
            format!("grpc: received message after decompression larger than max {bytes_max}");
        return Err(Refused { code: code::RESOURCE_EXHAUSTED, message });
    }
    Ok(plain.into())
}

/// The compressed form of a message given in parts.
pub fn compress(parts: &[Bytes]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    for part in parts {
        encoder.write_all(part).expect("writing to memory does not fail");
    }
    encoder.finish().expect("writing to memory does not fail").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_up_to_the_limit() {
        let parts = [Bytes::from(vec![b'x'; 500]), Bytes::from_static(b"end")];
        let plain = expand(&compress(&parts), 503).expect("it just fits");
        assert_eq!(plain, parts.concat());
        let refused = expand(&compress(&parts), 502).expect_err("a byte too large");
        assert_eq!(refused.code, code::RESOURCE_EXHAUSTED);
    }

    #[test]
    fn what_is_not_gzip_is_refused() {
        for junk in [&b""[..], b"abc", &[0x1f, 0x8b, 8, 0]] {
            assert_eq!(expand(junk, 100).expect_err("junk").code, code::INTERNAL);
        }
    }
}
