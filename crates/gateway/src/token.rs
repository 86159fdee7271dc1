//! Walks over JSON that is known to be whole, token by token.

use crate::BadJson;
use std::borrow::Cow;

/// What is not an object or an array.
pub(crate) enum Token<'a> {
    Null,
    True,
    False,
    Number(&'a str),
    Text(Cow<'a, str>),
    /// `{` or `[` where a scalar was wanted. It has not been walked into.
    Opens,
}

/// A place in a JSON text.
pub(crate) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    /// `text` is exactly one JSON value, as the scanner finds it.
    pub(crate) fn new(text: &'a [u8]) -> Tokens<'a> {
        Tokens { text, at: 0 }
    }

    /// Steps into an object or an array.
    pub(crate) fn open(&mut self, bracket: u8) -> Result<(), BadJson> {
        if self.peek() == bracket {
            self.at += 1;
            return Ok(());
        }
        let start = self.at;
        self.scalar()?;
        let (line, column) = self.position(start);
        let raw = self.raw(start);
        Err(BadJson(format!("proto: syntax error (line {line}:{column}): unexpected token {raw}")))
    }

    /// The next key of an object and where it begins, past its colon; `None` steps out.
    pub(crate) fn key(&mut self) -> Result<Option<(usize, Cow<'a, str>)>, BadJson> {
        if self.peek() == b',' {
            self.at += 1;
        }
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(None);
        }
        let start = self.at;
        let key = self.string()?;
        self.peek();
        self.at += 1;
        Ok(Some((start, key)))
    }

    /// Whether an array has a next element; otherwise steps out.
    pub(crate) fn element(&mut self) -> bool {
        if self.peek() == b',' {
            self.at += 1;
        }
        let ends = self.peek() == b']';
        if ends {
            self.at += 1;
        }
        !ends
    }

    /// Steps over `null` if it is next.
    pub(crate) fn null(&mut self) -> bool {
        let null = self.peek() == b'n';
        if null {
            self.at += 4;
        }
        null
    }

    /// The next value and where it begins.
    pub(crate) fn scalar(&mut self) -> Result<(usize, Token<'a>), BadJson> {
        let next = self.peek();
        let start = self.at;
        let token = match next {
            b'{' | b'[' => Token::Opens,
            b'"' => Token::Text(self.string()?),
            b'n' => self.literal(4, Token::Null),
            b't' => self.literal(4, Token::True),
            b'f' => self.literal(5, Token::False),
            _ => {
                let length = number_length(&self.text[start..]);
                self.at += length;
                let digits = str::from_utf8(&self.text[start..self.at]);
                Token::Number(digits.unwrap_or_default())
            }
        };
        Ok((start, token))
    }

    /// Steps over a value of any shape, without a stack however deep it is.
    pub(crate) fn skip_value(&mut self) -> Result<(), BadJson> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                _ => {
                    self.scalar()?;
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// The token at `start` as it is written; a bracket stands for all it holds.
    pub(crate) fn raw(&self, start: usize) -> String {
        let rest = &self.text[start..];
        let length = match rest.first() {
            Some(b'"') => string_length(rest),
            Some(b'n' | b't') => 4,
            Some(b'f') => 5,
            Some(b'{' | b'[') => 1,
            _ => number_length(rest),
        };
        String::from_utf8_lossy(&rest[..length.min(rest.len())]).into_owned()
    }

    /// An error about the token at `start`.
    pub(crate) fn wrong(&self, start: usize, text: &str) -> BadJson {
        let (line, column) = self.position(start);
        BadJson(format!("proto: (line {line}:{column}): {text}"))
    }

    fn literal(&mut self, length: usize, token: Token<'a>) -> Token<'a> {
        self.at += length;
        token
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> u8 {
        while let Some(byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                return *byte;
            }
            self.at += 1;
        }
        unreachable!("the scanner found a whole value, and it is walked only to its end")
    }

    fn string(&mut self) -> Result<Cow<'a, str>, BadJson> {
        let start = self.at;
        let length = string_length(&self.text[start..]);
        self.at += length;
        let inside = &self.text[start + 1..start + length - 1];
        let Ok(text) = str::from_utf8(inside) else {
            return Err(self.broken(start, "invalid UTF-8 in string"));
        };
        if !text.contains('\\') {
            return Ok(Cow::Borrowed(text));
        }
        match unescaped(text) {
            Ok(text) => Ok(Cow::Owned(text)),
            Err(escape) => {
                Err(self.broken(start, &format!("invalid escape code {escape:?} in string")))
            }
        }
    }

    fn broken(&self, start: usize, text: &str) -> BadJson {
        let (line, column) = self.position(start);
        BadJson(format!("proto: syntax error (line {line}:{column}): {text}"))
    }

    /// Line and column, both from one, the latter in characters.
    fn position(&self, place: usize) -> (usize, usize) {
        let before = &self.text[..place];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
    }
}

/// The length of the string that `text` begins with, both quotes included.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    unreachable!("the scanner found the end of every string")
}

fn number_length(text: &[u8]) -> usize {
    let part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    text.iter().position(|byte| !part(byte)).unwrap_or(text.len())
}

/// The text with its escapes resolved, or the escape that stands for no character.
fn unescaped(text: &str) -> Result<String, &str> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(slash) = rest.find('\\') {
        out.push_str(&rest[..slash]);
        rest = &rest[slash..];
        let length = match rest.as_bytes().get(1) {
            Some(b'u') => {
                let (unit, length) = unicode_escape(rest)?;
                out.push(unit);
                length
            }
            escape => {
                out.push(match escape {
                    Some(b'b') => '\u{8}',
                    Some(b'f') => '\u{c}',
                    Some(b'n') => '\n',
                    Some(b'r') => '\r',
                    Some(b't') => '\t',
                    Some(other) => char::from(*other),
                    None => unreachable!("the scanner checked every escape"),
                });
                2
            }
        };
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The character of `\uXXXX`, or of the two that together make one, and their length.
fn unicode_escape(text: &str) -> Result<(char, usize), &str> {
    let unit = |place: usize| {
        let digits = text.get(place..place + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(0).expect("the scanner checked every escape");
    if let Some(letter) = char::from_u32(first) {
        return Ok((letter, 6));
    }
    let pair = unit(6).filter(|second| (0xdc00..0xe000).contains(second) && first < 0xdc00);
    pair.and_then(|second| char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)))
        .map(|letter| (letter, 12))
        .ok_or(&text[..6])
}
