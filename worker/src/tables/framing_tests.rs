use std::sync::Arc;

use arrow_array::{Int64Array, NullArray, RecordBatch as Batch, StringArray};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use proptest::prelude::*;

use super::*;
use crate::tables::rows::Rows;

fn batch(rows: i64) -> Batch {
    let ids = Int64Array::from_iter_values((0..rows).map(|row| row % 7));
    let texts = StringArray::from_iter_values((0..rows).map(|row| format!("text {}", row % 5)));
    let words: arrow_array::DictionaryArray<arrow_array::types::Int32Type> = (0..rows)
        .map(|row| Some(["a", "b"][row as usize % 2]))
        .collect();
    Batch::try_from_iter([
        ("id", Arc::new(ids) as _),
        ("text", Arc::new(texts) as _),
        ("word", Arc::new(words) as _),
    ])
    .unwrap()
}

fn stream(batch: &Batch, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default()
        .try_with_compression(compression)
        .unwrap();
    let mut writer =
        StreamWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

const COMPRESSIONS: [Option<CompressionType>; 3] = [
    None,
    Some(CompressionType::ZSTD),
    Some(CompressionType::LZ4_FRAME),
];

#[test]
fn what_arrow_writes_is_sound_and_a_part_of_it_is_not() {
    for compression in COMPRESSIONS {
        for rows in [0, 1, 1000, 100_000] {
            let stream = stream(&batch(rows), compression);
            assert_eq!(check(&stream), Ok(()), "{compression:?} {rows}");
            // Without its end mark it is whole; inside of the last message it is not.
            assert_eq!(check(&stream[..stream.len() - 8]), Ok(()));
            let cut = check(&stream[..stream.len() - 9]).unwrap_err();
            assert_eq!(cut, "it ends inside of a message");
        }
    }
}

/// The place of the 8 bytes that say this number, which is there once.
fn place_of(stream: &[u8], number: i64) -> usize {
    let bytes = number.to_le_bytes();
    let mut found = stream.windows(8).enumerate().filter(|(_, w)| **w == bytes);
    let place = found.next().unwrap().0;
    assert!(found.next().is_none());
    place
}

#[test]
fn lengths_that_are_not_so() {
    // 8 bytes each: what the buffer of ids says that it unpacks to.
    for compression in [CompressionType::ZSTD, CompressionType::LZ4_FRAME] {
        let mut stream = stream(&batch(12_345), Some(compression));
        let place = place_of(&stream, 8 * 12_345);
        stream[place..place + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes());
        let error = check(&stream).unwrap_err();
        assert!(error.contains("when they are unpacked"), "{error}");
        stream[place..place + 8].copy_from_slice(&(-7_i64).to_le_bytes());
        assert_eq!(check(&stream).unwrap_err(), "it ends inside of a message");
    }
    let nulls = Batch::try_from_iter([("n", Arc::new(NullArray::new(12_345)) as _)]).unwrap();
    let mut stream = stream(&nulls, None);
    assert_eq!(check(&stream), Ok(()));
    let bytes = 12_345_i64.to_le_bytes();
    for place in 0..stream.len() - 8 {
        if stream[place..place + 8] == bytes {
            stream[place..place + 8].copy_from_slice(&i64::MAX.to_le_bytes());
        }
    }
    assert!(check(&stream).unwrap_err().contains("rows"));
}

#[test]
fn an_lz4_frame_is_measured_by_its_blocks() {
    // A frame of blocks of 4 MiB at the most, each of these sizes, the highest bit for one that is
    // stored as it is.
    let frame = |blocks: &[u32]| {
        let mut frame = LZ4_MAGIC.to_le_bytes().to_vec();
        frame.extend([0x40, 0x70, 0]);
        for block in blocks {
            frame.extend(block.to_le_bytes());
            frame.extend(vec![0; (block & 0x7fff_ffff) as usize]);
        }
        frame.extend([0; 4]);
        frame
    };
    let cases = [
        (frame(&[]), Some(0)),
        (frame(&[10]), Some(2550)),
        (frame(&[10, 10 | 1 << 31]), Some(2560)),
        (frame(&[100_000]), Some(4 << 20)),
        (frame(&[10])[..20].to_vec(), None),
        (b"no frame".to_vec(), None),
        (vec![], None),
    ];
    for (frame, most) in cases {
        assert_eq!(lz4_most(&frame).ok(), most);
    }
}

proptest! {
    /// Whatever is done to a stream, it ends with an error at worst.
    #[test]
    fn changed_streams_end(
        compression in 0..3_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut stream = stream(&batch(200), COMPRESSIONS[compression]);
        for (place, byte) in changes {
            let place = place.index(stream.len());
            stream[place] = byte;
        }
        if let Ok(rows) = Rows::read(stream.into()) {
            for batch in rows.take(1000) {
                if batch.is_err() {
                    break;
                }
            }
        }
    }
}
