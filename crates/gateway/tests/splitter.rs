//! Bodies that arrive in pieces.

use gateway::{BadJson, Splitter};

/// Everything the splitter makes of a body that arrives in pieces of a size.
fn split(body: &str, piece: usize, value_bytes_max: usize) -> (Vec<String>, Result<(), BadJson>) {
    let mut splitter = Splitter::new(value_bytes_max);
    let mut values = Vec::new();
    let mut keep = |value: Vec<u8>| values.push(String::from_utf8(value).expect("text"));
    for piece in body.as_bytes().chunks(piece) {
        splitter.feed(piece);
        loop {
            match splitter.next_value() {
                Ok(Some(value)) => keep(value),
                Ok(None) => break,
                Err(bad) => return (values, Err(bad)),
            }
        }
    }
    let end = splitter.finish().map(|last| last.into_iter().for_each(&mut keep));
    (values, end)
}

#[test]
fn values_are_cut_wherever_the_pieces_end() {
    let body = " {\"a\":\"}\\\"{\"}{}\n[1,[2]]\t\"x\\\\\"null true 12 -3.5e+7{} 0";
    let values = [
        "{\"a\":\"}\\\"{\"}",
        "{}",
        "[1,[2]]",
        "\"x\\\\\"",
        "null",
        "true",
        "12",
        "-3.5e+7",
        "{}",
        "0",
    ];
    for piece in 1..=body.len() {
        assert_eq!(split(body, piece, 100), (values.map(String::from).to_vec(), Ok(())), "{piece}");
    }
}

#[test]
fn a_value_without_its_end_is_reported() {
    let (values, end) = split("{}{\"a\":", 3, 100);
    assert_eq!(values, ["{}"]);
    assert_eq!(end, Err(BadJson("unexpected EOF".into())));
}

#[test]
fn an_error_ends_the_body() {
    let mut splitter = Splitter::new(100);
    splitter.feed(b"{}]{}");
    assert_eq!(splitter.next_value(), Ok(Some(b"{}".to_vec())));
    let bad = BadJson("invalid character ']' looking for beginning of value".into());
    assert_eq!(splitter.next_value(), Err(bad.clone()));
    splitter.feed(b"{}");
    assert_eq!(splitter.next_value(), Err(bad.clone()));
    assert_eq!(splitter.finish(), Err(bad));
}

#[test]
fn a_value_may_be_as_long_as_allowed_and_no_longer() {
    let fits = format!("\"{}\"", "x".repeat(8));
    let long = format!("\"{}\"", "x".repeat(9));
    let body = format!("{}{fits}  {fits}{long}", " ".repeat(50));
    for piece in [1, 3, 1000] {
        let (values, end) = split(&body, piece, 10);
        assert_eq!(values, [fits.clone(), fits.clone()]);
        assert_eq!(end, Err(BadJson("a message is larger than 10 bytes".into())));
    }
}
