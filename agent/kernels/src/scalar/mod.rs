//! The scalar backend: the plainest form of every kernel, the reference of the others, and what runs on any CPU.

mod attention;
mod halves;
mod matmul;
mod quantize;
mod swiglu;

pub(crate) static TABLE: crate::Dispatch = crate::Dispatch {
    name: "scalar",
    quantize: quantize::quantize,
    gemv: matmul::gemv,
    gemm: matmul::gemm,
    attend: attention::attend,
    swiglu: swiglu::swiglu,
    add_halves: halves::add_halves,
    tiling: None,
};
