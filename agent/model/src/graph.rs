//! `model.onnx` to a tract graph.
//!
//! The file is decoded with tract's own ONNX types, and its nodes are wired as typed operators in one pass, each shape
//! checked on the way. Only the operators of `docs/bundle.md` are taken: there is no inference to run and no rewriting to
//! wait for, and a hostile graph has nothing to call. What is refused names the node.

use std::collections::HashMap;

use tract_core::internal::*;
use tract_core::ops::array::Gather;
use tract_core::ops::math::{add, mul};
use tract_core::ops::nn::RmsNorm;
use tract_onnx::Onnx;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, tensor_proto::DataType};
use tract_onnx::tract_hir::prelude::Framework;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Architecture, shorten};
use crate::ops::{Embed, KvAttention, MoteOp, QMatMul, SwiGlu};
use crate::weights::{Weight, Weights};

/// 512 layers of some 12 nodes.
const MAX_NODES: usize = 8192;
const MOTE_DOMAIN: &str = "mote";

/// Reads the graph and binds its weights.
pub(crate) fn read(bytes: &[u8], weights: &Weights, architecture: &Architecture) -> Result<TypedModel> {
    let proto = Onnx::default().proto_model_for_read(&mut &bytes[..]);
    let proto = proto.map_err(|e| error(format!("cannot be decoded: {e}")))?;
    let mut reader = Reader {
        weights,
        architecture,
        model: TypedModel::default(),
        outlets: HashMap::new(),
        layers_seen: vec![false; architecture.layers],
        logits: "",
    };
    reader.graph(&proto).map_err(|e| error(format!("{e:#}")))?;
    match reader.layers_seen.iter().position(|seen| !seen) {
        Some(layer) => Err(error(format!("no attention for layer: {layer}"))),
        None => Ok(reader.model),
    }
}

fn error(message: String) -> Error {
    Error::bundle(ErrorKind::Format, format!("model.onnx: {message}"))
}

struct Reader<'a> {
    weights: &'a Weights,
    architecture: &'a Architecture,
    model: TypedModel,
    outlets: HashMap<&'a str, OutletId>,
    layers_seen: Vec<bool>,
    /// Name of the graph's output.
    logits: &'a str,
}

impl<'a> Reader<'a> {
    fn graph(&mut self, proto: &'a ModelProto) -> TractResult<()> {
        let graph = proto.graph.as_ref().context("no graph")?;
        ensure!(graph.node.len() <= MAX_NODES, "more than {MAX_NODES} nodes: {}", graph.node.len());
        ensure!(
            graph.initializer.len() <= MAX_NODES,
            "more than {MAX_NODES} initializers: {}",
            graph.initializer.len()
        );
        self.inputs(graph)?;
        for tensor in &graph.initializer {
            let name = shorten(&tensor.name);
            let values = floats(tensor).with_context(|| format!("initializer {name}"))?;
            let outlet = self.model.add_const(name, values)?;
            self.name(&tensor.name, outlet)?;
        }
        let [logits] = graph.output.as_slice() else { bail!("not one output: {}", graph.output.len()) };
        self.logits = &logits.name;
        for node in &graph.node {
            let label = format!("node {} {}", shorten(&node.op_type), shorten(&node.name));
            let [output] = node.output.as_slice() else { bail!("{label}: not one output: {}", node.output.len()) };
            let inputs = self.node_inputs(node).context(label.clone())?;
            let outlet = self.node(node, &shorten(output), &inputs).context(label)?;
            self.name(output, outlet)?;
        }
        let logits = self.outlet(self.logits)?;
        self.model.select_output_outlets(&[logits])?;
        let expected = f32::fact([self.model.symbols.sym("R").to_dim(), self.architecture.vocab.to_dim()]);
        let found = self.model.outlet_fact(logits)?;
        ensure!(found.shape == expected.shape, "output should be {expected:?}: {found:?}");
        Ok(())
    }

    fn inputs(&mut self, graph: &'a GraphProto) -> TractResult<()> {
        let names: Vec<&str> = graph.input.iter().map(|input| input.name.as_str()).collect();
        ensure!(names == ["ids", "rows"], "inputs should be ids and rows: {}", shorten(&names.join(" ")));
        // Known to hold a row, additions of rows take tract's fast path.
        self.model.symbols.add_assertion("S >= 1")?;
        for (name, symbol) in names.into_iter().zip(["S", "R"]) {
            let length = self.model.symbols.sym(symbol).to_dim();
            let outlet = self.model.add_source(name, i64::fact([length]))?;
            self.name(name, outlet)?;
        }
        Ok(())
    }

    fn name(&mut self, name: &'a str, outlet: OutletId) -> TractResult<()> {
        ensure!(self.outlets.insert(name, outlet).is_none(), "two values have the name: {}", shorten(name));
        Ok(())
    }

    fn outlet(&self, name: &str) -> TractResult<OutletId> {
        self.outlets.get(name).copied().with_context(|| format!("no value has the name: {}", shorten(name)))
    }

    fn node_inputs(&self, node: &NodeProto) -> TractResult<Vec<OutletId>> {
        let expected = match node.op_type.as_str() {
            "Add" | "Gather" | "RMSNormalization" => 2,
            _ => 1,
        };
        ensure!(node.input.len() == expected, "not {expected} inputs: {}", node.input.len());
        node.input.iter().map(|name| self.outlet(name)).collect()
    }

    fn node(&mut self, node: &NodeProto, name: &str, inputs: &[OutletId]) -> TractResult<OutletId> {
        let op = match (node.domain.as_str(), node.op_type.as_str()) {
            (MOTE_DOMAIN, "Embed") => MoteOp::new(Embed { weight: self.matrix(node)? }),
            (MOTE_DOMAIN, "QMatMul") => {
                let is_output = node.output.iter().any(|output| output == self.logits);
                MoteOp::new(QMatMul { weight: self.matrix(node)?, is_output })
            }
            (MOTE_DOMAIN, "SwiGlu") => MoteOp::new(SwiGlu { ffn: self.row_width(inputs[0])? / 2 }),
            (MOTE_DOMAIN, "KvAttention") => MoteOp::new(self.attention(node)?),
            ("" | "ai.onnx", standard) => return self.standard(node, standard, name, inputs),
            (domain, op) => bail!("unknown operator: {}.{}", shorten(domain), shorten(op)),
        };
        Ok(self.model.wire_node(name, op, inputs)?[0])
    }

    fn standard(&mut self, node: &NodeProto, op: &str, name: &str, inputs: &[OutletId]) -> TractResult<OutletId> {
        let (left, right) = (self.model.outlet_fact(inputs[0])?.clone(), self.model.outlet_fact(inputs[1])?.clone());
        let outlets = match op {
            "Add" => {
                ensure!(
                    left.datum_type == f32::datum_type() && left.shape == right.shape,
                    "cannot add {left:?} and {right:?}"
                );
                self.model.wire_node(name, add(), inputs)?
            }
            "Gather" => {
                let axis = node.get_attr_opt::<i64>("axis")?.unwrap_or(0);
                ensure!(axis == 0, "axis is not 0: {axis}");
                ensure!(
                    left.rank() == 2 && right.datum_type == i64::datum_type() && right.rank() == 1,
                    "cannot gather {right:?} of {left:?}"
                );
                self.model.wire_node(name, Gather::new(0), inputs)?
            }
            "RMSNormalization" => {
                let width = self.row_width(inputs[0])?;
                let axis = node.get_attr_opt::<i64>("axis")?.unwrap_or(-1);
                ensure!(axis == -1 || axis == 1, "axis is not the last: {axis}");
                let scale = right.konst.as_ref().context("its scale is not an initializer")?;
                ensure!(scale.shape() == [width], "its scale should be [{width}]: {:?}", scale.shape());
                let eps = node.get_attr_opt::<f32>("epsilon")?.unwrap_or(1e-5);
                ensure!(eps.is_finite() && eps >= 0.0, "epsilon is negative: {eps}");
                let normed = self.model.wire_node(
                    format!("{name}.norm"),
                    RmsNorm { axis: 1, eps: rctensor0(eps) },
                    &inputs[..1],
                )?;
                let scale = self
                    .model
                    .add_const(format!("{name}.scale"), scale.clone().into_tensor().into_shape(&[1, width])?)?;
                self.model.wire_node(name, mul(), &[normed[0], scale])?
            }
            other => bail!("unknown operator: {}", shorten(other)),
        };
        Ok(outlets[0])
    }

    fn attention(&mut self, node: &NodeProto) -> TractResult<KvAttention> {
        let a = self.architecture;
        let sizes = [("heads", a.heads), ("kv_heads", a.kv_heads), ("head_dim", a.head_dim)];
        for (attribute, expected) in sizes {
            let found: usize = node.get_attr(attribute)?;
            ensure!(found == expected, "{attribute} is not the manifest's {expected}: {found}");
        }
        let theta: f32 = node.get_attr("rope_theta")?;
        ensure!(theta == a.rope_theta, "rope_theta is not the manifest's {}: {theta}", a.rope_theta);
        let layer: usize = node.get_attr("layer")?;
        let seen =
            self.layers_seen.get_mut(layer).with_context(|| format!("layer is not below {}: {layer}", a.layers))?;
        ensure!(!std::mem::replace(seen, true), "layer is there twice: {layer}");
        let norm = |attribute: &str| -> TractResult<Option<Vec<f32>>> {
            let Some(weight) = node.get_attr_opt::<String>(attribute)? else { return Ok(None) };
            let values = self.weights.get(&weight).and_then(Weight::vector).map_err(without_hint)?;
            ensure!(values.len() == a.head_dim, "{attribute} is not as long as a head: {}", values.len());
            Ok(Some(values))
        };
        Ok(KvAttention {
            layer,
            heads: a.heads,
            kv_heads: a.kv_heads,
            head_dim: a.head_dim,
            norm_eps: node.get_attr("norm_eps")?,
            q_norm: norm("q_norm")?,
            k_norm: norm("k_norm")?,
        })
    }

    /// The packed matrix that the node names.
    fn matrix(&self, node: &NodeProto) -> TractResult<Weight> {
        let weight = self.weights.get(&node.get_attr::<String>("weight")?).map_err(without_hint)?;
        weight.matrix().map_err(without_hint)?;
        Ok(weight.clone())
    }

    /// Elements of a row of a matrix of f32.
    fn row_width(&self, outlet: OutletId) -> TractResult<usize> {
        let fact = self.model.outlet_fact(outlet)?;
        ensure!(fact.datum_type == f32::datum_type() && fact.rank() == 2, "not a matrix of f32: {fact:?}");
        Ok(fact.shape[1].to_usize()?)
    }
}

/// The reader's own error carries the hint.
fn without_hint(e: Error) -> TractError {
    format_err!("{}", e.message())
}

/// A vector of finite floats that is stored in the file itself.
fn floats(tensor: &TensorProto) -> TractResult<Tensor> {
    ensure!(tensor.data_type == DataType::Float as i32, "not of type float: {}", tensor.data_type);
    ensure!(tensor.external_data.is_empty() && tensor.data_location.unwrap_or(0) == 0, "its data is not in the file");
    let values: Vec<f32> = match tensor.raw_data.is_empty() {
        true => tensor.float_data.clone(),
        false => {
            let (values, rest) = tensor.raw_data.as_chunks::<4>();
            ensure!(rest.is_empty(), "its data is not a multiple of 4 bytes: {}", tensor.raw_data.len());
            values.iter().map(|b| f32::from_le_bytes(*b)).collect()
        }
    };
    ensure!(tensor.dims == [values.len() as i64], "its shape should be [{}]: {:?}", values.len(), tensor.dims);
    ensure!(values.iter().all(|v| v.is_finite()), "a value is not finite");
    Ok(tensor1(&values))
}
