//! Answers as text: two answers are the same if their texts are.

use crate::normalise::Names;
use crate::request::{Op, Request};
use ground::wire::codec::Reader;

/// The header of a reply, or of an event (id -1).
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    pub(crate) error: i32,
}

impl Header {
    /// The header and the rest of the frame.
    pub(crate) fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        let mut reader = Reader(frame);
        let header = Self { xid: reader.int()?, zxid: reader.long()?, error: reader.int()? };
        Some((header, reader.0))
    }
}

/// The reply to `request`.
pub(crate) fn reply(request: &Request, header: &Header, body: &[u8], names: &mut Names) -> String {
    let mut reader = Reader(body);
    let zxid = names.zxid(header.zxid);
    let outcome = match header.error {
        0 => format!("ok at {zxid}"),
        code => format!("error {code} at {zxid}"),
    };
    if header.error != 0 {
        // A real server may send a part of the answer after it. No client reads that.
        return outcome;
    }
    let fields = fields(request, &mut reader, names);
    let mut text = outcome + &fields.unwrap_or_else(|| format!(" cut short: {body:02x?}"));
    if !reader.0.is_empty() {
        text += &format!(" and {:02x?}", reader.0);
    }
    text
}

/// A watch that fired.
pub(crate) fn event(header: &Header, body: &[u8], names: &Names) -> String {
    let mut reader = Reader(body);
    let mut read = || Some((reader.int()?, reader.int()?, text(&mut reader)?));
    let Some((kind, state, path)) = read() else { return format!("event cut short: {body:02x?}") };
    let kind = match kind {
        1 => "created".to_owned(),
        2 => "deleted".to_owned(),
        3 => "data changed".to_owned(),
        4 => "children changed".to_owned(),
        other => format!("of kind {other}"),
    };
    // In an order that lets events be sorted by path.
    let mut text = format!("event: {} {kind}", names.path(&path));
    if (header.zxid, header.error, state) != (-1, 0, 3) {
        text += &format!(" (zxid {} error {} state {state})", names.zxid(header.zxid), header.error);
    }
    text
}

/// The fields of a reply without an error, each with a space before it.
fn fields(request: &Request, reader: &mut Reader<'_>, names: &mut Names) -> Option<String> {
    Some(match request {
        // The request had nothing to cut.
        Request::Truncated(request, _) => fields(request, reader, names)?,
        Request::Create { path, .. } => created(request.opcode(), path, reader, names)?,
        Request::SetData(path, ..) | Request::SetAcl(path, ..) => format!(" {}", names.stat(path, reader)?),
        Request::At(op, path, _) => match op {
            Op::Exists | Op::Check => format!(" {}", names.stat(path, reader)?),
            Op::GetData => data(path, reader, names)?,
            Op::GetChildren => children(path, reader, names)?,
            Op::GetChildren2 => children(path, reader, names)? + " " + &names.stat(path, reader)?,
            Op::GetAcl => {
                let entries = vector(reader, |reader| {
                    let permissions = reader.int()?;
                    Some(format!("{permissions}:{}:{}", text(reader)?, text(reader)?))
                })?;
                format!(" [{}] {}", entries.join(" "), names.stat(path, reader)?)
            }
            Op::Count => format!(" {}", names.count(path, reader.int()?)),
            Op::Ephemerals => {
                let mut paths = vector(reader, |reader| Some(names.path(&text(reader)?)))?;
                paths.sort();
                format!(" [{}]", paths.join(" "))
            }
            Op::Sync => format!(" {}", names.path(&text(reader)?)),
            Op::AddWatch => format!(" {}", reader.int()?),
            Op::Delete | Op::CheckWatches | Op::RemoveWatches => String::new(),
        },
        Request::WhoAmI => {
            let mut entries = vector(reader, |reader| Some(format!("{}:{}", text(reader)?, text(reader)?)))?;
            entries.sort();
            format!(" [{}]", entries.join(" "))
        }
        Request::Multi(parts) | Request::MultiRead(parts) => results(parts, reader, names)?,
        Request::Sasl => format!(" {}", text(reader)?),
        _ => String::new(),
    })
}

fn results(parts: &[Request], reader: &mut Reader<'_>, names: &mut Names) -> Option<String> {
    let mut text = String::new();
    for index in 0.. {
        let (kind, is_done, code) = (reader.int()?, reader.boolean()?, reader.int()?);
        if is_done {
            if (kind, code) != (-1, -1) {
                text += &format!(" | end {kind} {code}");
            }
            break;
        }
        // The flags decide which operation comes back, so only the reply says how to read it.
        let path = parts.get(index).and_then(Request::path).unwrap_or_default();
        text += &format!(" | {kind}");
        if code != 0 {
            text += &format!(" code {code}");
        }
        text += &match kind {
            -1 => format!(" error {}", reader.int()?),
            1 | 15 | 19 | 21 => created(kind, path, reader, names)?,
            2 | 13 => String::new(),
            4 => data(path, reader, names)?,
            5 => format!(" {}", names.stat(path, reader)?),
            8 => children(path, reader, names)?,
            _ => return None,
        };
    }
    Some(text)
}

fn created(shape: i32, path: &str, reader: &mut Reader<'_>, names: &mut Names) -> Option<String> {
    let mut text = format!(" {}", names.path(&text(reader)?));
    if shape != 1 {
        text += &format!(" {}", names.stat(path, reader)?);
    }
    Some(text)
}

fn data(path: &str, reader: &mut Reader<'_>, names: &mut Names) -> Option<String> {
    let data = match reader.nullable()? {
        None => "null".to_owned(),
        Some(bytes) if bytes.iter().all(|byte| *byte == bytes[0]) && !bytes.is_empty() => {
            format!("{} times {}", bytes.len(), bytes[0])
        }
        Some(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
    };
    Some(format!(" {data} {}", names.stat(path, reader)?))
}

fn children(path: &str, reader: &mut Reader<'_>, names: &Names) -> Option<String> {
    let list = vector(reader, text)?;
    Some(format!(" {}", names.children(path, list)))
}

fn vector<'a, T>(
    reader: &mut Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    // A null vector has no elements.
    (0..reader.int()?.max(0)).map(|_| read(reader)).collect()
}

fn text(reader: &mut Reader<'_>) -> Option<String> {
    Some(reader.nullable()?.map_or("<null>".to_owned(), |bytes| String::from_utf8_lossy(bytes).into_owned()))
}

impl Request {
    fn path(&self) -> Option<&str> {
        match self {
            Self::Create { path, .. } | Self::SetData(path, ..) | Self::At(_, path, _) => Some(path),
            _ => None,
        }
    }
}
