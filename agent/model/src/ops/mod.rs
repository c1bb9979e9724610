//! The operators of the domain `mote`, as tract sees them.
//!
//! All of them take one tensor of rows and give one tensor of f32 rows, so one tract operator, [`MoteOp`], carries them.
//! They read weights from the map and scratch, threads and cache from a [`Workspace`], which is not tract's: the evaluation
//! closure of a conversation lends it to them ([`eval`]). So there is no shared or hidden state: tract's plan stays pure.

mod attention;
mod embed;
mod matmul;
mod spare;
mod swiglu;

use std::fmt::Debug;
use std::sync::Arc;

use mote_kernels::{Activations, Pool};
use tract_core::internal::*;

use crate::adapter::Adapter;
use crate::cache::KvCache;

pub(crate) use attention::KvAttention;
pub(crate) use embed::Embed;
pub(crate) use matmul::QMatMul;
pub(crate) use spare::Spare;
pub(crate) use swiglu::SwiGlu;

/// What the operators of one conversation work with.
pub(crate) struct Workspace {
    pub(crate) pool: Arc<Pool>,
    /// Cosines and sines of every position, `[capacity, head_dim]`.
    pub(crate) rope_table: Arc<[f32]>,
    pub(crate) cache: KvCache,
    pub(crate) adapter: Option<Adapter>,
    pub(crate) activations: Activations,
    /// Rotated queries of the layer at work.
    pub(crate) queries: Vec<f32>,
    /// Buffers of earlier operators.
    pub(crate) spare: Spare,
    /// The rows of the output matrix that are wanted, ascending, where it is not all of them.
    pub(crate) output_rows: Option<Vec<u32>>,
}

/// An operator that maps rows to rows of f32.
pub(crate) trait RowOp: Debug + Send + Sync {
    fn name(&self) -> &'static str;
    /// Elements of an input row; none if the input is a vector of token ids.
    fn input_width(&self) -> Option<usize>;
    /// Elements of an output row.
    fn width(&self) -> usize;
    /// Elements of a row that are wanted now.
    fn wanted_width(&self, _workspace: &Workspace) -> usize {
        self.width()
    }
    /// Writes every element of the output, whatever is in it before.
    fn eval(&self, workspace: &mut Workspace, input: &Tensor, output: &mut [f32]) -> TractResult<()>;
    /// Whether it is the first of its layer: there the work may be broken off.
    fn begins_layer(&self) -> bool {
        false
    }
}

/// A [`RowOp`] in a tract graph.
#[derive(Clone, Debug)]
pub(crate) struct MoteOp(Arc<dyn RowOp>);

impl MoteOp {
    pub(crate) fn new(op: impl RowOp + 'static) -> MoteOp {
        MoteOp(Arc::new(op))
    }

    pub(crate) fn begins_layer(&self) -> bool {
        self.0.begins_layer()
    }
}

impl PartialEq for MoteOp {
    fn eq(&self, other: &MoteOp) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for MoteOp {}

impl Op for MoteOp {
    fn name(&self) -> StaticName {
        self.0.name().into()
    }

    op_as_typed_op!();
}

impl EvalOp for MoteOp {
    not_out_of_plan!();
}

impl TypedOp for MoteOp {
    as_op!();

    fn output_facts(&self, inputs: &[&TypedFact]) -> TractResult<TVec<TypedFact>> {
        let [input] = inputs else { bail!("{} takes one input: {}", self.0.name(), inputs.len()) };
        let expected = match self.0.input_width() {
            Some(width) => f32::fact([input.shape[0].clone(), width.to_dim()]),
            None => i64::fact([input.shape[0].clone()]),
        };
        let fits = input.datum_type == expected.datum_type && input.shape == expected.shape;
        ensure!(fits, "{} takes {expected:?}: {input:?}", self.0.name());
        Ok(tvec!(f32::fact([input.shape[0].clone(), self.0.width().to_dim()])))
    }
}

/// Evaluates a node: ours with the workspace, tract's by tract.
pub(crate) fn eval(
    workspace: &mut Workspace,
    context: &EvalContext<'_>,
    state: Option<&mut (dyn OpState + 'static)>,
    node: &TypedNode,
    mut inputs: TVec<TValue>,
) -> TractResult<TVec<TValue>> {
    match (node.op_as::<MoteOp>(), inputs.len()) {
        (Some(op), 1) => {
            let input = inputs.remove(0);
            let mut output = workspace.spare.take(&[input.shape()[0], op.0.wanted_width(workspace)])?;
            let mut rows = output.try_as_plain_ram_mut()?;
            op.0.eval(workspace, &input, rows.as_slice_mut()?).with_context(|| format!("evaluating {node}"))?;
            workspace.spare.put(input);
            Ok(tvec!(output.into_tvalue()))
        }
        _ => tract_core::plan::eval(context, state, node, inputs),
    }
}
