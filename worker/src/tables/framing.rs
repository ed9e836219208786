//! Whether an Arrow IPC stream is as long as it says, packed and unpacked.
//!
//! Arrow's decoder takes the lengths that a stream states for what they are, and asks for that much
//! memory before it reads. A few bytes that state a petabyte would end the worker, not the request:
//! memory that can't be had aborts the process. So the lengths are looked at first.
//!
//! The form of a stream is that of the [Arrow columnar format], that of an LZ4 frame its
//! [frame format].
//!
//! [Arrow columnar format]: https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format
//! [frame format]: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md

use arrow_ipc::{CompressionType, RecordBatch, root_as_message};

/// How many bytes the compressed buffers of a stream may unpack to.
const UNPACKED_LIMIT: u64 = 2 * 1024 * 1024 * 1024;
/// How many rows a stream may have: a column of nulls takes no bytes.
const ROWS_LIMIT: u64 = 1 << 31;
/// Stands before a message's length.
const CONTINUATION: u32 = u32::MAX;
/// Stands before a compressed buffer that is not compressed.
const NOT_COMPRESSED: i64 = -1;
const LZ4_MAGIC: u32 = 0x184D_2204;
/// A byte of LZ4 stands for this many at the most.
const LZ4_RATIO: u64 = 255;

/// What is found so far.
#[derive(Default)]
struct Sums {
    unpacked: u64,
    rows: u64,
}

/// Checks every message of a stream; the error says what is wrong.
pub fn check(stream: &[u8]) -> Result<(), String> {
    let mut rest = stream;
    let mut sums = Sums::default();
    loop {
        // A stream may end without a mark, but not inside of a message.
        let Some(mut length) = take_u32(&mut rest) else {
            return Ok(());
        };
        if length == CONTINUATION {
            length = take_u32(&mut rest).ok_or_else(cut)?;
        }
        if length == 0 {
            return Ok(());
        }
        let message = take(&mut rest, u64::from(length)).ok_or_else(cut)?;
        let message = root_as_message(message)
            .map_err(|_| "a message begins with something else".to_owned())?;
        let length = u64::try_from(message.bodyLength()).map_err(|_| cut())?;
        let body = take(&mut rest, length).ok_or_else(cut)?;
        let batch = message.header_as_record_batch().or_else(|| {
            message
                .header_as_dictionary_batch()
                .and_then(|dictionary| dictionary.data())
        });
        if let Some(batch) = batch {
            check_batch(&batch, body, &mut sums)?;
        }
    }
}

fn check_batch(batch: &RecordBatch<'_>, body: &[u8], sums: &mut Sums) -> Result<(), String> {
    let nodes = batch.nodes().into_iter().flatten();
    for rows in nodes.map(|node| node.length()).chain([batch.length()]) {
        if u64::try_from(rows).is_ok_and(|rows| rows > ROWS_LIMIT) {
            return Err(too_many_rows());
        }
    }
    sums.rows += u64::try_from(batch.length()).unwrap_or(0);
    if sums.rows > ROWS_LIMIT {
        return Err(too_many_rows());
    }
    let Some(compression) = batch.compression() else {
        return Ok(());
    };
    for buffer in batch.buffers().into_iter().flatten() {
        let mut packed = part(body, buffer.offset(), buffer.length())
            .ok_or_else(|| "a buffer lies outside of its message".to_owned())?;
        if packed.is_empty() {
            continue;
        }
        let stated = take(&mut packed, 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(i64::from_le_bytes)
            .ok_or_else(cut)?;
        if stated == NOT_COMPRESSED || stated == 0 {
            continue;
        }
        let stated = u64::try_from(stated).map_err(|_| cut())?;
        sums.unpacked = sums.unpacked.saturating_add(stated);
        // Zstandard unpacks into what was stated; LZ4 goes on to its end.
        let most = match compression.codec() {
            CompressionType::LZ4_FRAME => lz4_most(packed)?,
            _ => stated,
        };
        if sums.unpacked.max(most) > UNPACKED_LIMIT {
            return Err(format!(
                "its compressed buffers are more than {UNPACKED_LIMIT} bytes when they are unpacked"
            ));
        }
    }
    Ok(())
}

/// How many bytes an LZ4 frame unpacks to at the most.
fn lz4_most(mut frame: &[u8]) -> Result<u64, String> {
    let bad = || "a buffer is no LZ4 frame".to_owned();
    if take_u32(&mut frame) != Some(LZ4_MAGIC) {
        return Err(bad());
    }
    let &[flags, sizes] = take(&mut frame, 2).ok_or_else(bad)? else {
        return Err(bad());
    };
    let has = |bit: u8| u64::from(flags >> bit & 1);
    let block_most = match sizes >> 4 & 7 {
        size @ 4..=7 => 1_u64 << (2 * size + 8),
        _ => return Err(bad()),
    };
    // The content's size, the dictionary's id, the header's checksum.
    take(&mut frame, 8 * has(3) + 4 * has(0) + 1).ok_or_else(bad)?;
    let mut most = 0;
    loop {
        let size = take_u32(&mut frame).ok_or_else(bad)?;
        if size == 0 {
            return Ok(most);
        }
        let (size, packed) = (u64::from(size & 0x7fff_ffff), size >> 31 == 0);
        take(&mut frame, size + 4 * has(4)).ok_or_else(bad)?;
        most += match packed {
            true => block_most.min(size * LZ4_RATIO),
            false => size,
        };
    }
}

fn take<'a>(rest: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *rest = left;
    Some(taken)
}

fn take_u32(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(take(rest, 4)?.try_into().ok()?))
}

fn part(body: &[u8], offset: i64, length: i64) -> Option<&[u8]> {
    let from = usize::try_from(offset).ok()?;
    let to = from.checked_add(usize::try_from(length).ok()?)?;
    body.get(from..to)
}

fn cut() -> String {
    "it ends inside of a message".to_owned()
}

fn too_many_rows() -> String {
    format!("it has more than {ROWS_LIMIT} rows")
}

#[cfg(test)]
#[path = "framing_tests.rs"]
mod tests;
