//! The table of kernels of one instruction set, chosen once from what the CPU has.

use std::ops::Range;
use std::sync::OnceLock;

use crate::activations::{Activations, GroupScale, Tiling};
use crate::attention::{Partial, Tile};
use crate::disjoint::Disjoint;
use crate::format::Matrix;

/// The environment variable that forces a backend by [`Dispatch::name`]. One that the CPU lacks, or an unknown name, is
/// not taken; compare [`Dispatch::name`] where that matters.
pub const KERNELS_VARIABLE: &str = "MOTE_KERNELS";

type Quantize = unsafe fn(&[f32], &mut [i8], &mut [GroupScale]);
type Gemv = unsafe fn(&Matrix<'_>, &Activations, Range<usize>, &mut [f32]);
type Gemm = unsafe fn(&Matrix<'_>, &Activations, Range<usize>, &Disjoint<'_, f32>);
type Attend = unsafe fn(&Tile<'_>, &mut [Partial]);
type Swiglu = unsafe fn(&[f32], &[f32], &mut [f32]);
type AddHalves = unsafe fn(&[u8], &[f32], &mut [f32]);

/// The kernels of one backend.
///
/// The pointers are `unsafe` because they may need instructions that the CPU lacks: a table must only be reachable through
/// [`Dispatch::available`].
#[derive(Debug)]
pub struct Dispatch {
    pub(crate) name: &'static str,
    pub(crate) quantize: Quantize,
    pub(crate) gemv: Gemv,
    pub(crate) gemm: Gemm,
    pub(crate) attend: Attend,
    pub(crate) swiglu: Swiglu,
    pub(crate) add_halves: AddHalves,
    pub(crate) tiling: Option<Tiling>,
}

/// The backend in use: the first one that is available, or the one that `MOTE_KERNELS` names.
pub fn dispatch() -> &'static Dispatch {
    static CHOSEN: OnceLock<&'static Dispatch> = OnceLock::new();
    CHOSEN.get_or_init(|| Dispatch::choose(std::env::var(KERNELS_VARIABLE).ok().as_deref()))
}

impl Dispatch {
    /// The backends that this CPU can run, the fastest first, the scalar one last.
    pub fn available() -> impl Iterator<Item = &'static Self> {
        #[cfg(target_arch = "x86_64")]
        let fast = crate::avx512::detect().into_iter().chain(crate::avx2::detect());
        #[cfg(target_arch = "aarch64")]
        let fast = crate::neon::detect();
        #[cfg(all(target_arch = "arm", target_abi = "eabihf"))]
        let fast = crate::armv7::detect();
        #[cfg(not(any(
            target_arch = "x86_64",
            target_arch = "aarch64",
            all(target_arch = "arm", target_abi = "eabihf")
        )))]
        let fast = None;
        fast.into_iter().chain([&crate::scalar::TABLE])
    }

    pub(crate) fn choose(forced: Option<&str>) -> &'static Self {
        let named = Self::available().find(|table| Some(table.name) == forced);
        named.or_else(|| Self::available().next()).unwrap_or(&crate::scalar::TABLE)
    }

    /// The backend's name: `scalar`; `avx2`, `avxvnni`, `avx512vnni`; `neon`, `dotprod`, `i8mm`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Quantizes whole groups: `x` and `quants` have the same length, `scales` one element a group.
    pub(crate) fn quantize(&self, x: &[f32], quants: &mut [i8], scales: &mut [GroupScale]) {
        // SAFETY: the table came from `available`, so that the CPU has the instructions.
        unsafe { (self.quantize)(x, quants, scales) }
    }

    /// The rows of `panels` for the one token of `a`; `y` holds those rows.
    pub(crate) fn gemv(&self, w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
        // SAFETY: as in `quantize`.
        unsafe { (self.gemv)(w, a, panels, y) }
    }

    /// The rows of `panels` for all tokens of `a`; `y` is the whole output, token-major.
    ///
    /// # Safety
    /// No other thread writes the rows of the same panels.
    pub(crate) unsafe fn gemm(&self, w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
        // SAFETY: as in `quantize`; the caller keeps the panels apart.
        unsafe { (self.gemm)(w, a, panels, y) }
    }

    /// Computes a tile; the partials are new, and enough for its queries.
    pub(crate) fn attend(&self, tile: &Tile<'_>, partials: &mut [Partial]) {
        // SAFETY: as in `quantize`.
        unsafe { (self.attend)(tile, partials) }
    }

    /// Gates slices of the same length.
    pub(crate) fn swiglu(&self, gate: &[f32], up: &[f32], out: &mut [f32]) {
        // SAFETY: as in `quantize`.
        unsafe { (self.swiglu)(gate, up, out) }
    }

    /// Adds to each of `y` the product of its row of `w`, f16 as they lie in a file, with `x`, which is not empty.
    pub(crate) fn add_halves(&self, w: &[u8], x: &[f32], y: &mut [f32]) {
        // SAFETY: as in `quantize`.
        unsafe { (self.add_halves)(w, x, y) }
    }
}
