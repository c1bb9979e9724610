//! How fast the kernels are beside the memory: `cargo run --release -p mote-kernels --example rate -- [SECTION]...`.
//!
//! Sections: `token` (all matrices of a 4B model for one token, beside a streaming read of the same bytes by the same
//! threads, with adapters, and beside a busy thread), `batch` (few tokens at once), `prefill`, `attention`, `pointwise`,
//! `small` (a 135M model). Each for one thread and for two. Weights are larger than any cache; the best repeat counts.
#![expect(clippy::print_stdout, reason = "it is a report")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mote_kernels::{
    Activations, Adapter, AttentionArgs, CacheKind, Error, Kind, Matrix, Pool, attention, dispatch, matmul,
    matrix_bytes, rms_norm, swiglu,
};

/// Matrices `[rows, cols]` of a layer of the 4B shape, its layers, and its output.
const LAYER: [[usize; 2]; 4] = [[6144, 2560], [2560, 4096], [19456, 2560], [2560, 9728]];
const LAYERS: usize = 36;
const OUTPUT: [usize; 2] = [151_936, 2560];

/// Rank of the adapters.
const RANK: usize = 16;

/// Time for one figure; the best of its repeats counts.
const TIME: Duration = Duration::from_millis(400);

/// Chunk of the streaming read.
const READ_CHUNK: usize = 128 * 1024;

fn main() -> Result<(), Error> {
    let sections: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |section: &str| sections.is_empty() || sections.iter().any(|s| s == section);
    println!("kernels: {}", dispatch().name());
    let bytes =
        if ["token", "batch", "small"].into_iter().any(wanted) { noise(token_bytes(Kind::Q4)) } else { Vec::new() };
    for threads in [1, 2] {
        let pool = Pool::new(threads)?;
        println!("\nT={threads}");
        if wanted("token") {
            token(&pool, &bytes)?;
        }
        if wanted("batch") {
            batch(&pool, &bytes)?;
        }
        if wanted("small") {
            small(&pool, &bytes)?;
        }
        if wanted("prefill") {
            for kind in [Kind::Q4, Kind::Q4m, Kind::Q8] {
                prefill(&pool, kind, [4096, 2560], 128)?;
            }
            for (shape, tokens) in [([2560, 9728], 128), ([4096, 2560], 512), ([4096, 2560], 32), ([1536, 576], 128)] {
                prefill(&pool, Kind::Q4, shape, tokens)?;
            }
        }
        if wanted("attention") {
            for cache in [CacheKind::F16, CacheKind::I8] {
                attend(&pool, cache, [2048, 1], [32, 8, 128], LAYERS)?;
                attend(&pool, cache, [2048, 1], [9, 3, 64], 30)?;
                attend(&pool, cache, [0, 512], [32, 8, 128], 1)?;
            }
        }
        if wanted("pointwise") {
            pointwise(&pool)?;
        }
    }
    Ok(())
}

fn token_bytes(kind: Kind) -> usize {
    let layer: usize = LAYER.into_iter().map(|[rows, cols]| matrix_bytes(kind, rows, cols)).sum();
    LAYERS * layer + matrix_bytes(kind, OUTPUT[0], OUTPUT[1])
}

/// Bytes with f16 scales of moderate size wherever they lie.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut out = vec![0u8; len];
    for word in out.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *word = (state >> 3 & 0x1f1f_1f1f_1f1f_1f1f | 0x1010_1010_1010_1010).to_le_bytes();
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

fn read(pool: &Pool, bytes: &[u8]) {
    pool.run(bytes.len() / READ_CHUNK, &|chunk, _| {
        let mut sums = [0u64; 32];
        for lanes in bytes[chunk * READ_CHUNK..][..READ_CHUNK].as_chunks::<8>().0.as_chunks::<32>().0 {
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                *sum |= u64::from_le_bytes(*lane);
            }
        }
        black_box(sums);
    });
}

/// Matrices one after the other from the bytes, as many as `layers` and the output have.
fn matrices(mut bytes: &[u8]) -> Result<Vec<Matrix<'_>>, Error> {
    let mut out = Vec::new();
    for [rows, cols] in [LAYER.as_slice(); LAYERS].concat().into_iter().chain([OUTPUT]) {
        let (matrix, rest) = bytes.split_at(matrix_bytes(Kind::Q4, rows, cols));
        out.push(Matrix::new(Kind::Q4, rows, cols, matrix)?);
        bytes = rest;
    }
    Ok(out)
}

/// All matmuls of a batch, each with its own quantization.
fn multiply(
    pool: &Pool,
    matrices: &[Matrix<'_>],
    a: &mut Activations,
    x: &[f32],
    tokens: usize,
    y: &mut [f32],
) -> Result<(), Error> {
    matrices.iter().try_for_each(|w| {
        a.quantize_for(pool, &x[..tokens * w.cols()], w)?;
        matmul(pool, w, a, &mut y[..tokens * w.rows()])
    })
}

fn token(pool: &Pool, bytes: &[u8]) -> Result<(), Error> {
    let plain = matrices(bytes)?;
    let (x, mut a, mut y) = (vec![0.5; 9728], Activations::new(), vec![0.0; OUTPUT[0]]);
    let halves = noise(plain.iter().map(|w| 2 * RANK * (w.rows() + w.cols())).sum());
    let mut rest = halves.as_slice();
    let mut adapted = Vec::new();
    for w in &plain {
        let (down, tail) = rest.split_at(2 * RANK * w.cols());
        let (up, tail) = tail.split_at(2 * RANK * w.rows());
        rest = tail;
        adapted.push(w.with_adapter(Adapter::new(RANK, [w.rows(), w.cols()], down, up, 1e-3)?)?);
    }
    let mut seconds = [f64::MAX; 3];
    for _ in 0..16 {
        let mut time = |which: usize, call: &mut dyn FnMut() -> Result<(), Error>| {
            let start = Instant::now();
            call()?;
            seconds[which] = seconds[which].min(start.elapsed().as_secs_f64());
            Ok::<(), Error>(())
        };
        time(0, &mut || {
            read(pool, bytes);
            Ok(())
        })?;
        time(1, &mut || multiply(pool, &plain, &mut a, &x, 1, &mut y))?;
        time(2, &mut || multiply(pool, &adapted, &mut a, &x, 1, &mut y))?;
    }
    let rate = |seconds: f64| bytes.len() as f64 / seconds / 1e9;
    println!("streaming read                     {:7.1} GB/s", rate(seconds[0]));
    println!(
        "token: {:.1} GB/s, {:.2} of the read, {:.1} tokens/s",
        rate(seconds[1]),
        seconds[0] / seconds[1],
        1.0 / seconds[1]
    );
    println!("with adapters of rank {RANK}: {:.1}% more time", 100.0 * (seconds[2] / seconds[1] - 1.0));
    for (shape, w) in LAYER.iter().chain([&OUTPUT]).zip([0, 1, 2, 3, plain.len() - 1]) {
        let each: Vec<&Matrix<'_>> = plain.iter().skip(w).step_by(4).take(if w > 3 { 1 } else { LAYERS }).collect();
        a.quantize(pool, &x[..shape[1]], shape[1])?;
        let seconds = best(|| each.iter().try_for_each(|w| matmul(pool, w, &a, &mut y[..w.rows()])))?;
        let bytes: usize = each.iter().map(|w| w.bytes().len()).sum();
        println!(
            "  {}x{}: {:.1} GB/s, {:.1} us each",
            shape[0],
            shape[1],
            bytes as f64 / seconds / 1e9,
            seconds / each.len() as f64 * 1e6
        );
    }
    let busy = with_busy_thread(|| best(|| multiply(pool, &plain, &mut a, &x, 1, &mut y)))?;
    println!("beside a busy thread: {:.2} of alone", seconds[1] / busy);
    Ok(())
}

fn with_busy_thread<T>(call: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let out = call();
        stop.store(true, Ordering::Relaxed);
        out
    })
}

fn batch(pool: &Pool, bytes: &[u8]) -> Result<(), Error> {
    let layers = &matrices(bytes)?[..4 * LAYERS];
    let (x, mut a, mut y) = (vec![0.5; 16 * 9728], Activations::new(), vec![0.0; 16 * 19456]);
    let mut one = 0.0;
    for tokens in [1, 2, 3, 4, 6, 8, 12, 16] {
        let seconds = best(|| multiply(pool, layers, &mut a, &x, tokens, &mut y))?;
        one = if tokens == 1 { seconds } else { one };
        println!("batch of {tokens}: {:.1} ms, {:.2} of one", seconds * 1e3, seconds / one);
    }
    Ok(())
}

/// All matrices of this shape that fit into the bytes, one after the other.
fn small(pool: &Pool, bytes: &[u8]) -> Result<(), Error> {
    for (kind, [rows, cols]) in [(Kind::Q4m, [3072, 576]), (Kind::Q8, [3072, 576]), (Kind::Q4m, [576, 576])] {
        let size = matrix_bytes(kind, rows, cols);
        let (mut a, mut y) = (Activations::new(), vec![0.0; rows]);
        a.quantize(pool, &vec![0.5; cols], cols)?;
        let n = (1 << 28) / size;
        let seconds = best(|| {
            let mut all = bytes.chunks_exact(size).take(n);
            all.try_for_each(|bytes| matmul(pool, &Matrix::new(kind, rows, cols, bytes)?, &a, &mut y))
        })?;
        let (rate, each) = ((n * size) as f64 / seconds / 1e9, seconds / n as f64 * 1e6);
        println!("decode  {kind:?} {rows}x{cols}: {rate:.1} GB/s, {each:.1} us each");
    }
    Ok(())
}

fn prefill(pool: &Pool, kind: Kind, [rows, cols]: [usize; 2], tokens: usize) -> Result<(), Error> {
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

/// As many caches as a model has layers, one after the other.
fn attend(
    pool: &Pool,
    cache: CacheKind,
    [position, tokens]: [usize; 2],
    [heads, kv_heads, head_dim]: [usize; 3],
    layers: usize,
) -> Result<(), Error> {
    let capacity = position + tokens;
    let cached = vec![0x2c; 2 * layers * kv_heads * capacity * cache.row_bytes(head_dim)];
    let q = vec![0.5; tokens * heads * head_dim];
    let mut out = vec![0.0; q.len()];
    let seconds = best(|| {
        cached.chunks_exact(cached.len() / layers).try_for_each(|cached| {
            let (k_cache, v_cache) = cached.split_at(cached.len() / 2);
            let args =
                AttentionArgs { q: &q, cache, k_cache, v_cache, position, tokens, heads, kv_heads, head_dim, capacity };
            attention(pool, &args, &mut out)
        })
    })?;
    let macs = 2 * layers * heads * head_dim * (tokens * position + tokens * (tokens + 1) / 2);
    let (us, rate) = (seconds / layers as f64 * 1e6, macs as f64 / seconds / 1e9);
    let bytes = cached.len() as f64 / seconds / 1e9;
    println!(
        "attention {cache:?} {heads}/{kv_heads}x{head_dim}, {position}+{tokens}: {us:.1} us, {rate:.1} GMAC/s, cache {bytes:.1} GB/s"
    );
    Ok(())
}

fn pointwise(pool: &Pool) -> Result<(), Error> {
    for (tokens, hidden, ffn) in [(1, 2560, 9728), (128, 2560, 9728), (1, 576, 1536)] {
        let gate_up = vec![0.3; 2 * tokens * ffn];
        let mut out = vec![0.0; tokens * ffn];
        let gate = best(|| swiglu(pool, &gate_up, ffn, &mut out))? * 1e6;
        let mut a = Activations::new();
        let quantize = best(|| a.quantize(pool, &out, ffn))? * 1e6;
        let (mut x, weight) = (vec![0.5; tokens * hidden], vec![1.0; hidden]);
        let norm = best(|| rms_norm(&mut x, &weight, 1e-6))? * 1e6;
        println!("{tokens}x{ffn}: swiglu {gate:.1} us, quantize {quantize:.1} us; norm of {hidden} {norm:.1} us");
    }
    Ok(())
}
