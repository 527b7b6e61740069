//! etcd's JSON gateway, as far as an operator of a test needs it: strings in flat objects. Numbers of 64 bits are strings there, too.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Posts a request, or gets a page if there is no request body, and returns the body of the answer.
pub(super) fn ask(
    address: SocketAddr,
    path: &str,
    request: Option<&str>,
    within: Duration,
) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, within)?;
    let (method, body) = request.map_or(("GET", ""), |body| ("POST", body));
    // With this old version of HTTP the answer comes in one piece, and then the connection ends.
    let text = format!("{method} {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(text.as_bytes())?;
    stream.set_read_timeout(Some(within))?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.split(' ').nth(1) == Some("200") {
        Ok(body.to_owned())
    } else {
        Err(io::Error::other(body.trim()))
    }
}

/// The strings that have this name, in their order.
pub(super) fn texts<'a>(json: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let name = format!("\"{name}\"");
    let ends: Vec<_> = json.match_indices(&name).map(|(at, _)| at + name.len()).collect();
    ends.into_iter().filter_map(move |end| {
        // Some releases put spaces between them.
        let value = json[end..].trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next()
    })
}

/// The text with this base64 encoding.
pub(super) fn decoded(text: &str) -> Option<String> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte)?;
        bits = bits << 6 | u32::try_from(digit).ok()?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_found_by_name_whatever_stands_between() {
        let json = r#"{"ID":"1","other":{"ID" : "2"},"IDs":"3","TTL":4,"text":"ID"}"#;
        assert_eq!(texts(json, "ID").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(texts(json, "TTL").next(), None);
    }

    #[test]
    fn base64_is_read_with_each_length_of_its_end() {
        for (encoded, text) in
            [("", ""), ("Lw==", "/"), ("L2E=", "/a"), ("L2Ev", "/a/"), ("L2EvNjk0ZA==", "/a/694d")]
        {
            assert_eq!(decoded(encoded).as_deref(), Some(text));
        }
        assert_eq!(decoded("L{=="), None);
    }
}
