//! The worked examples of RFC 7541 appendix C, which fix the meaning of every bit.

use super::{Block, Decoder};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let pair = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).expect("hex digits");
        u8::from_str_radix(text, 16).expect("hex digits")
    };
    digits.chunks(2).map(pair).collect()
}

fn show(block: &Block) -> String {
    let line = |field: &super::Field| {
        format!(
            "{}: {}",
            String::from_utf8_lossy(&field.name),
            String::from_utf8_lossy(&field.value)
        )
    };
    block.fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(decoder: &mut Decoder, hex: &str, expected: &str) {
    let block = decoder.decode(&bytes(hex), 1 << 16).expect("an example of the RFC");
    assert_eq!(show(&block), expected);
}

const FIRST: &str = ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com";
const SECOND: &str =
    ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache";
const THIRD: &str = ":method: GET\n:scheme: https\n:path: /index.html\n\
    :authority: www.example.com\ncustom-key: custom-value";

#[test]
fn c2_single_fields() {
    let custom = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    check(&mut Decoder::default(), custom, "custom-key: custom-header");
    let path = "040c 2f73 616d 706c 652f 7061 7468";
    check(&mut Decoder::default(), path, ":path: /sample/path");
    let never = "1008 7061 7373 776f 7264 0673 6563 7265 74";
    check(&mut Decoder::default(), never, "password: secret");
    check(&mut Decoder::default(), "82", ":method: GET");
}

#[test]
fn c3_requests() {
    let mut decoder = Decoder::default();
    check(&mut decoder, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", FIRST);
    check(&mut decoder, "8286 84be 5808 6e6f 2d63 6163 6865", SECOND);
    check(
        &mut decoder,
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        THIRD,
    );
}

#[test]
fn c4_requests_with_huffman() {
    let mut decoder = Decoder::default();
    check(&mut decoder, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", FIRST);
    check(&mut decoder, "8286 84be 5886 a8eb 1064 9cbf", SECOND);
    check(&mut decoder, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", THIRD);
}

/// C.5 and C.6 use a table of 256 bytes, so that entries are evicted on the way.
fn small_table() -> Decoder {
    let mut decoder = Decoder::default();
    decoder.decode(&[0x3f, 0xe1, 0x01], 1 << 16).expect("a size update to 256");
    decoder
}

const MONDAY: &str = ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
    location: https://www.example.com";
const MOVED: &str = ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
    location: https://www.example.com";
const COOKIE: &str = ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\n\
    location: https://www.example.com\ncontent-encoding: gzip\n\
    set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

#[test]
fn c5_responses_with_eviction() {
    let mut decoder = small_table();
    check(
        &mut decoder,
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
         2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
         6c65 2e63 6f6d",
        MONDAY,
    );
    check(&mut decoder, "4803 3330 37c1 c0bf", MOVED);
    check(
        &mut decoder,
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
         54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
         5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
         3d31",
        COOKIE,
    );
}

#[test]
fn c6_responses_with_huffman_and_eviction() {
    let mut decoder = small_table();
    check(
        &mut decoder,
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
         2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        MONDAY,
    );
    check(&mut decoder, "4883 640e ffc1 c0bf", MOVED);
    check(
        &mut decoder,
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
         77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
         9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        COOKIE,
    );
}
