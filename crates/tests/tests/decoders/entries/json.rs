//! The gateway's two directions.

use gateway::{Splitter, Transcoder};
use std::sync::LazyLock;

static TRANSCODER: LazyLock<(Transcoder, Vec<String>)> = LazyLock::new(|| {
    let transcoder = Transcoder::new();
    let mut names: Vec<String> = transcoder.messages().map(String::from).collect();
    names.sort();
    (transcoder, names)
});

/// A line with the name of a message, and what is said to be that message.
fn named(data: &[u8]) -> Option<(&Transcoder, &str, &[u8])> {
    let (transcoder, names) = &*TRANSCODER;
    let end = data.iter().position(|byte| *byte == b'\n')?;
    let name = names.iter().find(|name| name.as_bytes() == &data[..end]);
    // A name that was damaged stands for some other message.
    let name = name
        .unwrap_or_else(|| &names[data.iter().map(|b| *b as usize).sum::<usize>() % names.len()]);
    Some((transcoder, name, &data[end + 1..]))
}

/// JSON that could be read can be shown, and is then read as the same message.
pub fn json_request(data: &[u8]) -> bool {
    let Some((transcoder, name, json)) = named(data) else { return false };
    let Ok(proto) = transcoder.request(name, json) else { return false };
    let mut shown = Vec::new();
    transcoder.response(name, &proto, &mut shown).expect("our own encoding");
    let again = transcoder.request(name, &shown).expect("our own JSON");
    let mut shown_again = Vec::new();
    transcoder.response(name, &again, &mut shown_again).expect("our own encoding");
    assert_eq!(shown, shown_again);
    true
}

/// A message that could be shown is JSON.
pub fn json_response(data: &[u8]) -> bool {
    let Some((transcoder, name, proto)) = named(data) else { return false };
    let mut shown = Vec::new();
    if transcoder.response(name, proto, &mut shown).is_err() {
        return false;
    }
    serde_json::from_slice::<serde_json::Value>(&shown).expect("it is JSON");
    true
}

/// However the text of a stream is cut, its values are the same.
pub fn json_splitter(data: &[u8]) -> bool {
    let (&cut, text) = data.split_first().unwrap_or((&1, data));
    let split = |piece: usize| {
        let mut splitter = Splitter::new(1000);
        let mut values = Vec::new();
        for piece in text.chunks(piece.max(1)) {
            splitter.feed(piece);
            loop {
                match splitter.next_value() {
                    Ok(Some(value)) => values.push(value),
                    Ok(None) => break,
                    Err(_) => return (values, true),
                }
            }
        }
        match splitter.finish() {
            Ok(value) => values.extend(value),
            Err(_) => return (values, true),
        }
        (values, false)
    };
    let whole = split(text.len());
    assert_eq!(split(usize::from(cut)), whole);
    !whole.0.is_empty()
}
