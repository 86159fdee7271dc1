//! What etcd's gateway says to odd requests, recorded from a real one.
//!
//! Each line of a fixture is a message, a JSON text and what comes of it, with a tab between them.

use gateway::Transcoder;

fn lines(
    fixture: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    fixture.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(|line| {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().unwrap_or_else(|| panic!("three parts in {line}"));
        (part(), part(), part())
    })
}

#[test]
fn refusals_read_as_etcds() {
    let transcoder = Transcoder::new();
    let mut wrong = Vec::new();
    for (message, json, text) in lines(include_str!("fixtures/refused.txt")) {
        let json = json.replace("<newline>", "\n").replace("<tab>", "\t");
        match transcoder.request(&format!("etcdserverpb.{message}"), json.as_bytes()) {
            Ok(proto) => wrong.push(format!("{json}: accepted as {proto:?}")),
            Err(bad) if bad.0 != text => wrong.push(format!("{json}: {bad}\n    not {text}")),
            Err(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What was understood is written as JSON again.
#[test]
fn everything_etcd_understands_is_understood() {
    let transcoder = Transcoder::new();
    let mut wrong = Vec::new();
    for (message, json, understood) in lines(include_str!("fixtures/understood.txt")) {
        let message = format!("etcdserverpb.{message}");
        let mut again = Vec::new();
        let result = transcoder.request(&message, json.as_bytes());
        let result = result.map(|proto| transcoder.response(&message, &proto, &mut again));
        let again = String::from_utf8(again).expect("JSON is text");
        if result != Ok(Ok(())) || again != understood {
            wrong.push(format!("{json}: {result:?} {again}\n    not {understood}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn strings_that_are_no_text_are_refused() {
    let transcoder = Transcoder::new();
    let refused = |json: &[u8]| {
        transcoder.request("etcdserverpb.AuthUserAddRequest", json).expect_err("refused").0
    };
    assert_eq!(
        refused(b"{\"name\":\"\xff\xfe\"}"),
        "proto: syntax error (line 1:9): invalid UTF-8 in string"
    );
    assert_eq!(
        refused(b"{\"n\xffame\":\"x\"}"),
        "proto: syntax error (line 1:2): invalid UTF-8 in string"
    );
    assert_eq!(
        refused(b"{\"unknown\":[{\"\xff\":1}]}"),
        "proto: syntax error (line 1:14): invalid UTF-8 in string"
    );
    // Half a surrogate pair is no character, whatever follows it.
    for half in
        ["\\ud83d", "\\ud83dx", "\\ud83d\\n", "\\ud83d\\ud83d", "\\ud83d\\u0041", "\\udc00\\udc00"]
    {
        assert_eq!(
            refused(format!("{{\"name\":\"{half}\"}}").as_bytes()),
            format!(
                "proto: syntax error (line 1:9): invalid escape code \"\\{}\" in string",
                &half[..6]
            )
        );
    }
    assert_eq!(
        refused(b"\xef\xbb\xbf{}"),
        "invalid character '\u{ef}' looking for beginning of value"
    );
}

/// Brackets are counted, not recursed into; messages go as deep as the decoder behind us.
#[test]
fn depth_is_bounded() {
    let transcoder = Transcoder::new();
    let unknown = |depth: usize| {
        let json = format!("{{\"u\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        transcoder.request("etcdserverpb.PutRequest", json.as_bytes())
    };
    assert_eq!(unknown(9999), Ok(Vec::new()));
    let bad = unknown(10_000).expect_err("too deep");
    assert_eq!(bad.0, "invalid character '[' exceeded max depth");

    let nested = |transactions: usize| {
        let json = "{\"success\":[{\"request_txn\":".repeat(transactions)
            + "{}"
            + &"}]}".repeat(transactions);
        transcoder.request("etcdserverpb.TxnRequest", json.as_bytes())
    };
    use prost::Message;
    let deepest = nested(50).expect("a hundred levels");
    api::etcdserverpb::TxnRequest::decode(&deepest[..]).expect("the decoder goes as deep");
    let mut json = Vec::new();
    transcoder.response("etcdserverpb.TxnRequest", &deepest, &mut json).expect("written");
    let bad = nested(51).expect_err("too deep");
    assert_eq!(bad.0, "proto: exceeded max recursion depth");
    let mut deeper = Vec::new();
    for _ in 0..60 {
        let mut around = Vec::new();
        prost::encoding::bytes::encode(4, &deeper, &mut around);
        deeper.clear();
        prost::encoding::bytes::encode(2, &around, &mut deeper);
    }
    let before = json.clone();
    transcoder.response("etcdserverpb.TxnRequest", &deeper, &mut json).expect_err("too deep");
    assert_eq!(json, before);
}
