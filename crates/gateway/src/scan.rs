//! Finds where a JSON value ends, byte by byte, and what is wrong with it if it never can.
//!
//! The scanner keeps its place between bytes, so a body may arrive in any pieces. It keeps the
//! open brackets in a list, not on the stack. The texts of its errors are those etcd's gateway
//! gives for the same fault.

use crate::BadJson;

/// Where a value stands after one more byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Only white space so far.
    NotBegun,
    Within,
    /// This byte is the value's last.
    Ended,
    /// The byte before was the value's last: only a number ends so.
    EndedBefore,
}

/// More open brackets than this are refused.
const DEPTH_MAX: usize = 10_000;

pub(crate) struct Scanner {
    state: State,
    open: Vec<Bracket>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Object,
    Array,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the value.
    Start,
    Value,
    /// Just after `[`.
    FirstElement,
    /// Just after `{`.
    FirstKey,
    Key,
    AfterKey,
    AfterValue,
    Text {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Hex {
        key: bool,
        left: u8,
    },
    Literal {
        word: &'static str,
        read: usize,
    },
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl Scanner {
    pub(crate) fn new() -> Scanner {
        Scanner { state: State::Start, open: Vec::new() }
    }

    /// Takes one byte. After `Ended` or `EndedBefore` the scanner stands before the next value,
    /// and in the latter case has not taken the byte.
    pub(crate) fn step(&mut self, byte: u8) -> Result<Step, BadJson> {
        let space = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.state {
            State::Start if space => return Ok(Step::NotBegun),
            State::Value
            | State::FirstElement
            | State::FirstKey
            | State::Key
            | State::AfterKey
            | State::AfterValue
                if space => {}
            State::Start | State::Value => self.value(byte)?,
            State::FirstElement if byte == b']' => return Ok(self.close()),
            State::FirstElement => self.value(byte)?,
            State::FirstKey if byte == b'}' => return Ok(self.close()),
            State::FirstKey | State::Key if byte == b'"' => self.state = State::Text { key: true },
            State::FirstKey | State::Key => {
                return Err(invalid(byte, "looking for beginning of object key string"));
            }
            State::AfterKey if byte == b':' => self.state = State::Value,
            State::AfterKey => return Err(invalid(byte, "after object key")),
            State::AfterValue => return self.after_value(byte),
            State::Text { key } => match byte {
                b'"' if key => self.state = State::AfterKey,
                b'"' => return Ok(self.value_ended()),
                b'\\' => self.state = State::Escape { key },
                0..0x20 => return Err(invalid(byte, "in string literal")),
                _ => {}
            },
            State::Escape { key } => match byte {
                b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {
                    self.state = State::Text { key };
                }
                b'u' => self.state = State::Hex { key, left: 4 },
                _ => return Err(invalid(byte, "in string escape code")),
            },
            State::Hex { key, left } if byte.is_ascii_hexdigit() => {
                self.state = match left {
                    1 => State::Text { key },
                    _ => State::Hex { key, left: left - 1 },
                };
            }
            State::Hex { .. } => return Err(invalid(byte, "in \\u hexadecimal character escape")),
            State::Literal { word, read } => {
                let expected = word.as_bytes()[read];
                if byte != expected {
                    let place = format!("in literal {word} (expecting '{}')", char::from(expected));
                    return Err(invalid(byte, &place));
                }
                if read + 1 == word.len() {
                    return Ok(self.value_ended());
                }
                self.state = State::Literal { word, read: read + 1 };
            }
            _ => return self.number(byte),
        }
        Ok(Step::Within)
    }

    /// How many of the coming bytes are the plain inside of a string. They need not be stepped
    /// through: nothing changes before the byte after them.
    pub(crate) fn plain(&self, coming: &[u8]) -> usize {
        match self.state {
            State::Text { .. } => coming
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
                .unwrap_or(coming.len()),
            _ => 0,
        }
    }

    /// Nothing follows. Whether a value ended here; an error if one was cut short.
    pub(crate) fn finish(&mut self) -> Result<bool, BadJson> {
        match self.state {
            State::Start => Ok(false),
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits
                if self.open.is_empty() =>
            {
                self.state = State::Start;
                Ok(true)
            }
            _ => Err(BadJson("unexpected EOF".into())),
        }
    }

    fn value(&mut self, byte: u8) -> Result<(), BadJson> {
        self.state = match byte {
            b'{' => self.opened(byte, Bracket::Object)?,
            b'[' => self.opened(byte, Bracket::Array)?,
            b'"' => State::Text { key: false },
            b't' => State::Literal { word: "true", read: 1 },
            b'f' => State::Literal { word: "false", read: 1 },
            b'n' => State::Literal { word: "null", read: 1 },
            b'-' => State::Minus,
            b'0' => State::Zero,
            b'1'..=b'9' => State::Digits,
            _ => return Err(invalid(byte, "looking for beginning of value")),
        };
        Ok(())
    }

    fn opened(&mut self, byte: u8, bracket: Bracket) -> Result<State, BadJson> {
        if self.open.len() == DEPTH_MAX {
            return Err(invalid(byte, "exceeded max depth"));
        }
        self.open.push(bracket);
        Ok(match bracket {
            Bracket::Object => State::FirstKey,
            Bracket::Array => State::FirstElement,
        })
    }

    fn close(&mut self) -> Step {
        self.open.pop();
        self.value_ended()
    }

    fn value_ended(&mut self) -> Step {
        if self.open.is_empty() {
            self.state = State::Start;
            Step::Ended
        } else {
            self.state = State::AfterValue;
            Step::Within
        }
    }

    fn after_value(&mut self, byte: u8) -> Result<Step, BadJson> {
        match (self.open.last(), byte) {
            (Some(Bracket::Object), b'}') | (Some(Bracket::Array), b']') => Ok(self.close()),
            (Some(Bracket::Object), b',') => {
                self.state = State::Key;
                Ok(Step::Within)
            }
            (Some(Bracket::Array), b',') => {
                self.state = State::Value;
                Ok(Step::Within)
            }
            (Some(Bracket::Object), _) => Err(invalid(byte, "after object key:value pair")),
            _ => Err(invalid(byte, "after array element")),
        }
    }

    fn number(&mut self, byte: u8) -> Result<Step, BadJson> {
        self.state = match (self.state, byte) {
            (State::Minus, b'0') => State::Zero,
            (State::Minus, b'1'..=b'9') => State::Digits,
            (State::Minus, _) => return Err(invalid(byte, "in numeric literal")),
            (State::Digits, b'0'..=b'9') => State::Digits,
            (State::Zero | State::Digits, b'.') => State::Point,
            (State::Point | State::Fraction, b'0'..=b'9') => State::Fraction,
            (State::Point, _) => {
                return Err(invalid(byte, "after decimal point in numeric literal"));
            }
            (State::Zero | State::Digits | State::Fraction, b'e' | b'E') => State::Exponent,
            (State::Exponent, b'+' | b'-') => State::ExponentSign,
            (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
                State::ExponentDigits
            }
            (State::Exponent | State::ExponentSign, _) => {
                return Err(invalid(byte, "in exponent of numeric literal"));
            }
            // The number ended before this byte, which belongs to what holds the number.
            _ => {
                return match self.value_ended() {
                    Step::Ended => Ok(Step::EndedBefore),
                    _ => self.step(byte),
                };
            }
        };
        Ok(Step::Within)
    }
}

fn invalid(byte: u8, place: &str) -> BadJson {
    BadJson(format!("invalid character {} {place}", quoted(byte)))
}

/// The byte as a character between single quotes.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".into(),
        b'"' => "'\"'".into(),
        b'\\' => "'\\\\'".into(),
        b'\n' => "'\\n'".into(),
        b'\r' => "'\\r'".into(),
        b'\t' => "'\\t'".into(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}
