//! A record in its row: compressed, with a checksum over its place and its bytes.
//!
//! The key is the trajectory's number and the record's position in it, so that one trajectory is one range of keys.

use mote_trajectory::{MAX_RECORD_BYTES, Record};

/// The most records of one trajectory.
pub(super) const MAX_RECORDS: i64 = 1 << 20;
/// The most bytes of a compressed record: zstd adds little to what does not compress.
pub(super) const MAX_PAYLOAD_BYTES: usize = MAX_RECORD_BYTES + MAX_RECORD_BYTES / 64;
/// Fast enough for a board; the gain of higher levels on records of a few kilobytes is small.
const LEVEL: i32 = 3;

/// The first and the last key of trajectory `n`.
pub(super) fn keys(n: i64) -> (i64, i64) {
    (key(n, 0), key(n, MAX_RECORDS - 1))
}

/// The key of the record at `position` in trajectory `n`.
pub(super) fn key(n: i64, position: i64) -> i64 {
    n * MAX_RECORDS + position
}

/// The position of the record with `key` in its trajectory.
pub(super) fn position(key: i64) -> i64 {
    key % MAX_RECORDS
}

/// What is stored for a record's `bytes` under `key`: checksum and payload.
pub(super) fn pack(key: i64, bytes: &[u8]) -> std::io::Result<(u32, Vec<u8>)> {
    let payload = zstd::bulk::compress(bytes, LEVEL)?;
    Ok((checksum(key, &payload), payload))
}

/// The record's bytes; `None` if they are damaged.
pub(super) fn unpack(key: i64, crc: i64, payload: &[u8]) -> Option<Vec<u8>> {
    let sound = payload.len() <= MAX_PAYLOAD_BYTES && i64::from(checksum(key, payload)) == crc;
    sound.then(|| zstd::bulk::decompress(payload, MAX_RECORD_BYTES).ok())?
}

/// The record; `None` if its bytes are damaged.
pub(super) fn read(key: i64, crc: i64, payload: Option<&[u8]>) -> Option<Record> {
    mote_trajectory::decode(&unpack(key, crc, payload?)?).ok()
}

fn checksum(key: i64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}
