//! What a gateway client reads when a call ends badly, and how streams are framed.

use crate::text::write_string;
use api::{Code, Error};

/// The HTTP status that stands for a gRPC code.
pub fn http_status(code: Code) -> u16 {
    match code {
        Code::Ok => 200,
        Code::Canceled => 499,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::DeadlineExceeded => 504,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::PermissionDenied => 403,
        Code::Unauthenticated => 401,
        Code::ResourceExhausted => 429,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::Unknown | Code::Internal | Code::DataLoss => 500,
    }
}

/// The body of a failed unary call: `{"code":5,"message":"..."}`.
pub fn error_body(error: &Error) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + error.message.len());
    out.extend_from_slice(b"{\"code\":");
    out.extend_from_slice((error.code as u8).to_string().as_bytes());
    out.extend_from_slice(b",\"message\":");
    write_string(&error.message, &mut out);
    out.push(b'}');
    out
}

/// The line of a failed stream: `{"error":{"code":5,"message":"..."}}` and a newline. A stream
/// that fails before its first message sends this line too, under the error's HTTP status.
pub fn error_line(error: &Error) -> Vec<u8> {
    let mut out = b"{\"error\":".to_vec();
    out.extend_from_slice(&error_body(error));
    out.extend_from_slice(b"}\n");
    out
}

/// The line that carries one message of a stream: `{"result":{...}}` and a newline. `write` adds
/// the message itself; when it fails, `out` is as it was.
pub fn result_line<E>(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(b"{\"result\":");
    match write(out) {
        Ok(()) => {
            out.extend_from_slice(b"}\n");
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).expect("errors are text")
    }

    #[test]
    fn errors_are_a_code_and_a_message() {
        let error = Error::with_text(Code::NotFound, "no \"such\"\nthing \u{1}".into());
        let body = r#"{"code":5,"message":"no \"such\"\nthing \u0001"}"#;
        assert_eq!(text(error_body(&error)), body);
        assert_eq!(text(error_line(&error)), format!("{{\"error\":{body}}}\n"));
    }

    #[test]
    fn a_message_that_cannot_be_written_leaves_no_half_line() {
        let mut out = b"before".to_vec();
        let failed = result_line(&mut out, |out| {
            out.push(b'{');
            Err("no")
        });
        assert_eq!(failed, Err("no"));
        assert_eq!(out, b"before");
        result_line::<()>(&mut out, |out| {
            out.extend_from_slice(b"{}");
            Ok(())
        })
        .expect("written");
        assert_eq!(text(out), "before{\"result\":{}}\n");
    }

    #[test]
    fn every_code_has_its_status() {
        let table = [
            (Code::Ok, 200),
            (Code::Canceled, 499),
            (Code::Unknown, 500),
            (Code::InvalidArgument, 400),
            (Code::DeadlineExceeded, 504),
            (Code::NotFound, 404),
            (Code::AlreadyExists, 409),
            (Code::PermissionDenied, 403),
            (Code::ResourceExhausted, 429),
            (Code::FailedPrecondition, 400),
            (Code::Aborted, 409),
            (Code::OutOfRange, 400),
            (Code::Unimplemented, 501),
            (Code::Internal, 500),
            (Code::Unavailable, 503),
            (Code::DataLoss, 500),
            (Code::Unauthenticated, 401),
        ];
        for (code, status) in table {
            assert_eq!(http_status(code), status, "{code:?}");
        }
    }
}
