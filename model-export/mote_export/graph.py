"""The ONNX graph of a bundle: structure only, standard operators of opset 23 and those of the domain `mote`."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import __version__
from .architecture import Architecture

OPSET = 23
IR_VERSION = 11
DOMAIN = "mote"


def build(arch: Architecture, norms: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The graph for prefill and decode; `norms` holds every norm weight that is not a head's."""
    nodes: list[onnx.NodeProto] = []

    def standard(op: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))
        return output

    def mote(op: str, source: str, output: str, **attributes: object) -> str:
        return standard(op, [source], output, domain=DOMAIN, **attributes)

    def norm(source: str, name: str) -> str:
        return standard("RMSNormalization", [source, name], f"{name}.out", axis=-1, epsilon=arch.norm_eps)

    x = mote("Embed", "ids", "embed.out", weight="embed")
    for layer in range(arch.layers):
        n = f"l{layer}."
        head_norms = {"q_norm": n + "q_norm", "k_norm": n + "k_norm"} if arch.qk_norm else {}
        qkv = mote("QMatMul", norm(x, n + "attn_norm"), n + "qkv.out", weight=n + "qkv")
        attended = mote(
            "KvAttention",
            qkv,
            n + "attention.out",
            layer=layer,
            heads=arch.heads,
            kv_heads=arch.kv_heads,
            head_dim=arch.head_dim,
            rope_theta=arch.rope_theta,
            norm_eps=arch.norm_eps,
            **head_norms,
        )
        x = standard("Add", [x, mote("QMatMul", attended, n + "o.out", weight=n + "o")], n + "attended")
        gate_up = mote("QMatMul", norm(x, n + "ffn_norm"), n + "gate_up.out", weight=n + "gate_up")
        down = mote("QMatMul", mote("SwiGlu", gate_up, n + "swiglu.out"), n + "down.out", weight=n + "down")
        x = standard("Add", [x, down], n + "out")
    wanted = standard("Gather", [x, "rows"], "rows.out", axis=0)
    mote("QMatMul", norm(wanted, "final_norm"), "logits", weight="embed" if arch.tied_embeddings else "output")

    graph = helper.make_graph(
        nodes,
        f"mote-{arch.family}",
        [
            helper.make_tensor_value_info("ids", TensorProto.INT64, ["S"]),
            helper.make_tensor_value_info("rows", TensorProto.INT64, ["R"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["R", arch.vocab])],
        [numpy_helper.from_array(np.asarray(weight, np.float32), name) for name, weight in norms.items()],
    )
    return helper.make_model(
        graph,
        producer_name="mote-export",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(DOMAIN, 1)],
    )
