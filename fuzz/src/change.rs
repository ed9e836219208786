//! Changes to a request that somebody else signed.

use arbitrary::Arbitrary;

use crate::message::Message;

const PARTS: [Part; 6] = [
    Part::Path,
    Part::Query,
    Part::Name,
    Part::Value,
    Part::Body,
    Part::Method,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Path,
    Query,
    Name,
    Value,
    Body,
    Method,
}

const EDITS: [Edit; 9] = [
    Edit::None,
    Edit::Set,
    Edit::Insert,
    Edit::Remove,
    Edit::Escape,
    Edit::Unescape,
    Edit::Swap,
    Edit::Repeat,
    Edit::Cut,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    None,
    Set,
    Insert,
    Remove,
    /// A byte as `%XX`: one that is neither a letter nor a digit, at even places.
    Escape,
    /// `%XX` as the byte.
    Unescape,
    /// A byte, or in a query a pair, with the one behind it.
    Swap,
    /// A byte, a pair of a query or a header line twice.
    Repeat,
    /// Everything behind, or in a query all pairs behind, is cut off.
    Cut,
}

/// One change. Numbers are counted around, so that every byte of an input does something.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Change {
    part: u8,
    edit: u8,
    byte: u8,
    at: u16,
}

impl Change {
    /// The changed request, or none if it would not be text where it has to be.
    pub fn apply(&self, mut message: Message) -> Option<Message> {
        let at = usize::from(self.at);
        let (part, kind) = (self.part(), self.edit());
        match part {
            Part::Method => message.method = self.text(message.method, at)?,
            Part::Path => message.path = self.text(message.path, at)?,
            Part::Query => {
                let query = message.query.unwrap_or_default();
                message.query = Some(match kind {
                    Edit::Swap | Edit::Repeat | Edit::Cut => {
                        let pairs = query.split('&').map(str::to_owned).collect();
                        edit(pairs, kind, at, String::new()).join("&")
                    }
                    _ => self.text(query, at)?,
                });
            }
            Part::Name | Part::Value => {
                let lines = message.headers.len();
                if matches!(
                    (part, kind),
                    (Part::Name, Edit::Swap | Edit::Repeat | Edit::Cut)
                ) {
                    message.headers = edit(message.headers, kind, at, Default::default());
                } else if let Some(line) = message.headers.get_mut(at.checked_rem(lines)?) {
                    let (name, value) = std::mem::take(line);
                    *line = match part {
                        Part::Name => (self.text(name, at / lines)?, value),
                        _ => (name, self.bytes(value, at / lines)),
                    };
                }
            }
            Part::Body => message.body = self.bytes(message.body, at),
        }
        Some(message)
    }

    fn part(&self) -> Part {
        PARTS[usize::from(self.part) % PARTS.len()]
    }

    fn edit(&self) -> Edit {
        EDITS[usize::from(self.edit) % EDITS.len()]
    }

    fn text(&self, text: String, at: usize) -> Option<String> {
        String::from_utf8(self.bytes(text.into_bytes(), at)).ok()
    }

    fn bytes(&self, mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
        let at_any = at % 2 == 1;
        match self.edit() {
            Edit::Escape => {
                let special: Vec<usize> = (0..bytes.len())
                    .filter(|at| at_any || !bytes[*at].is_ascii_alphanumeric())
                    .collect();
                if let Some(place) = (at / 2).checked_rem(special.len()).map(|at| special[at]) {
                    let byte = bytes[place];
                    let digits = match self.byte % 2 {
                        0 => format!("%{byte:02X}"),
                        _ => format!("%{byte:02x}"),
                    };
                    bytes.splice(place..=place, digits.into_bytes());
                }
            }
            Edit::Unescape => {
                let escapes: Vec<usize> =
                    (0..bytes.len()).filter(|at| bytes[*at] == b'%').collect();
                if let Some(start) = at.checked_rem(escapes.len()).map(|at| escapes[at]) {
                    let decoded: Vec<u8> = bytes
                        .get(start..start + 3)
                        .map(|escape| percent_encoding::percent_decode(escape).collect())
                        .unwrap_or_default();
                    if let [byte] = decoded.as_slice() {
                        bytes.splice(start..start + 3, [*byte]);
                    }
                }
            }
            other => return edit(bytes, other, at, self.byte),
        }
        bytes
    }
}

fn edit<T: Clone>(mut list: Vec<T>, edit: Edit, at: usize, new: T) -> Vec<T> {
    let length = list.len();
    let at_or_end = at % (length + 1);
    let Some(place) = at.checked_rem(length) else {
        if let Edit::Insert | Edit::Set = edit {
            list.push(new);
        }
        return list;
    };
    match edit {
        Edit::Set => list[place] = new,
        Edit::Insert => list.insert(at_or_end, new),
        Edit::Remove => drop(list.remove(place)),
        Edit::Swap => list.swap(place, (place + 1) % length),
        Edit::Repeat => list.insert(place, list[place].clone()),
        Edit::Cut => list.truncate(place),
        Edit::None | Edit::Escape | Edit::Unescape => {}
    }
    list
}
