//! Quantized block formats, SIMD kernels and the thread pool of mote.
//!
//! The weights of a model stay in the packed form of `docs/bundle.md` and are multiplied from there, whatever their
//! alignment and content: a hostile file gives wrong numbers, never a panic or an access out of bounds. Every function
//! here is safe; `unsafe` stands inside only. The scalar backend is the reference which every other one is tested against.
//!
//! ```
//! use mote_kernels::{Activations, Kind, Matrix, Pool, matmul, pack};
//!
//! let pool = Pool::new(2)?;
//! let bytes = pack(Kind::Q8, 8, 32, &[0.5; 8 * 32])?;
//! let weights = Matrix::new(Kind::Q8, 8, 32, &bytes)?;
//! let mut activations = Activations::new();
//! activations.quantize(&pool, &[1.0; 32], 32)?;
//! let mut y = [0.0; 8];
//! matmul(&pool, &weights, &activations, &mut y)?;
//! assert!(y.iter().all(|y| (y - 16.0).abs() < 0.01));
//! # Ok::<(), mote_kernels::Error>(())
//! ```
//!
//! What it does not do: it reads no files, knows no graph, keeps no KV cache (the caller owns the buffers), and offers no
//! float matrices, because a 4-bit model needs none.

mod activations;
mod adapter;
mod attention;
mod cache;
mod cores;
mod dispatch;
mod error;
mod format;
mod half_floats;
mod matmul;
mod norm;
mod pack;
mod pool;
mod prefetch;
mod rope;
mod stream;
mod swiglu;

mod disjoint;

#[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
mod armv7;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

#[cfg(test)]
mod tests;

pub use activations::Activations;
pub use adapter::{Adapter, MAX_RANK};
pub use attention::{AttentionArgs, attention};
pub use cache::{CacheKind, MAX_HEAD_DIM};
pub use dispatch::{Dispatch, KERNELS_VARIABLE, dispatch};
pub use error::{Error, ErrorKind};
pub use format::{GROUP, Kind, Matrix, PANEL, checked_matrix_bytes, matrix_bytes};
pub use half_floats::{f16_to_f32, f32_to_f16};
pub use matmul::{matmul, matmul_rows};
pub use norm::rms_norm;
pub use pack::pack;
pub use pool::{MAX_CHUNKS, MAX_THREADS, Pool};
pub use rope::{rope, rope_table};
pub use stream::read;
pub use swiglu::swiglu;
