//! A plain read of memory: what a kernel bound by memory is compared with.

use std::hint::black_box;

use crate::Pool;

/// Bytes that a thread reads before it asks for more, as in a large decode.
const CHUNK_BYTES: usize = 128 * 1024;

/// Bytes taken together: few enough to stay in registers.
const LANES: usize = 128;

/// How far ahead memory is asked for: beyond the page at which the hardware stops looking ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD_BYTES: usize = 4096;

/// Reads all bytes once, with every thread of the pool, as fast as the memory gives them.
pub fn read(pool: &Pool, parts: &[&[u8]]) {
    let chunks: Vec<&[u8]> = parts.iter().flat_map(|part| part.chunks(CHUNK_BYTES)).collect();
    pool.run(chunks.len(), &|chunk, _| read_chunk(chunks[chunk]));
}

fn read_chunk(bytes: &[u8]) {
    let mut lanes = [0u8; LANES];
    for line in bytes.as_chunks::<LANES>().0 {
        ask_ahead(line);
        for (lane, byte) in lanes.iter_mut().zip(line) {
            *lane |= byte;
        }
    }
    black_box(lanes);
}

#[cfg(target_arch = "x86_64")]
fn ask_ahead(line: &[u8; LANES]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    for offset in (0..LANES).step_by(64) {
        let ahead = line.as_ptr().wrapping_add(AHEAD_BYTES + offset);
        // SAFETY: a prefetch is in every x86-64 and reads nothing that a program sees; its address need not be mapped.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(ahead.cast()) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn ask_ahead(_line: &[u8; LANES]) {}
