//! How fast the kernels are beside the memory: `cargo run --release -p mote-kernels --example rate`.
//!
//! Prints a streaming read, decode (GEMV) in GB/s of weights and prefill (GEMM) in GMAC/s, for the shapes of a 4B and of a
//! 135M model, with one thread and with two. The weights of the 4B shapes are larger than any cache.
#![expect(clippy::print_stdout, reason = "it is a report")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use mote_kernels::{
    Activations, AttentionArgs, CacheKind, Error, Kind, Matrix, Pool, attention, dispatch, matmul, matrix_bytes, swiglu,
};

/// Bytes of the weights that a streaming read and a large decode go through.
const LARGE_BYTES: usize = 1 << 29;

/// Time for one figure; the best of its repeats counts.
const TIME: Duration = Duration::from_millis(250);

/// Chunk of the streaming read.
const READ_CHUNK: usize = 128 * 1024;

fn main() -> Result<(), Error> {
    println!("kernels: {}", dispatch().name());
    for threads in [1, 2] {
        let pool = Pool::new(threads)?;
        println!("\nT={threads}");
        stream(&pool);
        for kind in [Kind::Q4, Kind::Q4m, Kind::Q8] {
            let bytes = noise(LARGE_BYTES);
            decode(&pool, kind, "4B", 9728 * 2, 2560, &bytes)?;
            decode(&pool, kind, "4B", 2560, 9728, &bytes)?;
            decode(&pool, kind, "135M", 1536 * 2, 576, &bytes)?;
            decode(&pool, kind, "135M", 576, 576, &bytes[..5 << 20])?;
        }
        for kind in [Kind::Q4, Kind::Q4m, Kind::Q8] {
            for (rows, cols, tokens) in
                [(4096, 2560, 128), (2560, 9728, 128), (4096, 2560, 512), (1536, 576, 128), (4096, 2560, 4)]
            {
                prefill(&pool, kind, rows, cols, tokens)?;
            }
        }
        for (position, tokens) in [(2048, 1), (0, 512)] {
            for cache in [CacheKind::F16, CacheKind::I8] {
                attend(&pool, cache, [position, tokens], [32, 8, 128])?;
                attend(&pool, cache, [position, tokens], [9, 3, 64])?;
            }
        }
        pointwise(&pool)?;
    }
    Ok(())
}

/// Bytes with f16 scales of moderate size wherever they lie.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut out = vec![0u8; len];
    for byte in &mut out {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (state >> 59) as u8 | 0x10;
    }
    out
}

/// The shortest time of one call.
fn best(mut call: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    call()?;
    let (start, mut best) = (Instant::now(), f64::MAX);
    while start.elapsed() < TIME {
        let call_start = Instant::now();
        call()?;
        best = best.min(call_start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn stream(pool: &Pool) {
    let data = vec![1u64; LARGE_BYTES / 8];
    let words = READ_CHUNK / 8;
    let seconds = best(|| {
        pool.run(data.len() / words, &|chunk, _| {
            let mut sums = [0u64; 32];
            for lanes in data[chunk * words..][..words].as_chunks::<32>().0 {
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    *sum |= lane;
                }
            }
            black_box(sums);
        });
        Ok(())
    });
    println!("streaming read                     {:7.1} GB/s", LARGE_BYTES as f64 / seconds.unwrap_or(f64::NAN) / 1e9);
}

/// All matrices of this shape that fit into `bytes`, one after the other.
fn decode(pool: &Pool, kind: Kind, model: &str, rows: usize, cols: usize, bytes: &[u8]) -> Result<(), Error> {
    let size = matrix_bytes(kind, rows, cols);
    let mut a = Activations::new();
    a.quantize(pool, &vec![0.5; cols], cols)?;
    let mut y = vec![0.0; rows];
    let n = bytes.len() / size;
    let seconds = best(|| {
        bytes.chunks_exact(size).try_for_each(|bytes| matmul(pool, &Matrix::new(kind, rows, cols, bytes)?, &a, &mut y))
    })?;
    let (rate, each) = ((n * size) as f64 / seconds / 1e9, seconds / n as f64 * 1e6);
    println!("decode  {kind:?} {model} {rows}x{cols}: {rate:.1} GB/s, {each:.1} us each");
    Ok(())
}

fn prefill(pool: &Pool, kind: Kind, rows: usize, cols: usize, tokens: usize) -> Result<(), Error> {
    let bytes = noise(matrix_bytes(kind, rows, cols));
    let w = Matrix::new(kind, rows, cols, &bytes)?;
    let mut a = Activations::new();
    a.quantize(pool, &vec![0.5; tokens * cols], cols)?;
    let mut y = vec![0.0; rows * tokens];
    let seconds = best(|| matmul(pool, &w, &a, &mut y))?;
    let rate = (rows * cols * tokens) as f64 / seconds / 1e9;
    println!("prefill {kind:?} {rows}x{cols}, {tokens} tokens: {rate:.1} GMAC/s");
    Ok(())
}

fn attend(
    pool: &Pool,
    cache: CacheKind,
    [position, tokens]: [usize; 2],
    [heads, kv_heads, head_dim]: [usize; 3],
) -> Result<(), Error> {
    let capacity = position + tokens;
    let cached = vec![0x2c; kv_heads * capacity * cache.row_bytes(head_dim)];
    let q = vec![0.5; tokens * heads * head_dim];
    let mut out = vec![0.0; q.len()];
    let args = AttentionArgs {
        q: &q,
        cache,
        k_cache: &cached,
        v_cache: &cached,
        position,
        tokens,
        heads,
        kv_heads,
        head_dim,
        capacity,
    };
    let seconds = best(|| attention(pool, &args, &mut out))?;
    let macs = 2 * heads * head_dim * (tokens * position + tokens * (tokens + 1) / 2);
    let (us, rate) = (seconds * 1e6, macs as f64 / seconds / 1e9);
    let bytes = (2 * cached.len()) as f64 / seconds / 1e9;
    println!(
        "attention {cache:?} {heads}/{kv_heads}x{head_dim}, {position}+{tokens}: {us:.1} us, {rate:.1} GMAC/s, cache {bytes:.1} GB/s"
    );
    Ok(())
}

fn pointwise(pool: &Pool) -> Result<(), Error> {
    for (tokens, ffn) in [(1, 9728), (128, 9728), (1, 1536)] {
        let gate_up = vec![0.3; 2 * tokens * ffn];
        let mut out = vec![0.0; tokens * ffn];
        let gate = best(|| swiglu(pool, &gate_up, ffn, &mut out))? * 1e6;
        let mut a = Activations::new();
        let quantize = best(|| a.quantize(pool, &out, ffn))? * 1e6;
        println!("{tokens}x{ffn}: swiglu {gate:.1} us, quantize {quantize:.1} us");
    }
    Ok(())
}
