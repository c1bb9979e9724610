"""`python -m mote_anchor.train BUNDLE OUT`: trains the anchor of a bundle's embedding layer, in about half a minute on one core.

Two losses, both contrastive over softmax(-gamma ||e' - e_t||^2): queries of the split `trained` against all seen tools of MetaTool,
and the description of a tool against the name and parameters of 256 tools of one of the other catalogues. No query of those two
catalogues, no query of the splits `seen` and `unseen` and no word of an unseen tool is ever looked at.
"""

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy, embedding_bag, normalize

from .anchor import Anchor, Tokens
from .data import builtin, load
from .evaluate import embedding_rows

DIM = 256
BATCH = 256
EPOCHS = 20
RATE = 3e-3
WARMUP_STEPS = 20
DROPPED_OF_TOOL, DROPPED_OF_QUERY, DROPPED_OF_TASK = 0.2, 0.15, 0.3
SMOOTHING = 0.05
SHARE = 1.6
N_PROBES = 16


class Projection(torch.nn.Module):
    """Token weights and a projection of the embedding table, started from idf and from principal directions."""

    def __init__(self, rows: np.ndarray, idf: np.ndarray):
        super().__init__()
        table = torch.tensor(rows)
        self.row_scale = 1 / table.norm(dim=1).mean().item()
        self.table = table * self.row_scale
        mean = self.table.mean(0)
        sample = self.table[torch.randperm(len(table))[:8000]]
        directions = torch.linalg.svd(sample - mean, full_matrices=False)[2][:DIM]
        self.weights = torch.nn.Parameter(directions.T.contiguous())
        self.bias = torch.nn.Parameter(-0.7 * (mean @ directions.T))
        self.log_weight = torch.nn.Parameter(torch.tensor(np.log(idf / idf.mean()), dtype=torch.float32))
        self.log_sharpness = torch.nn.Parameter(torch.tensor(2.5))

    def forward(self, texts: list[list[int]]) -> torch.Tensor:
        """Unit vectors `[texts, DIM]`."""
        offsets = torch.tensor(np.cumsum([0] + [len(text) for text in texts[:-1]]))
        unique, inverse = torch.unique(torch.tensor([token for text in texts for token in text]), return_inverse=True)
        projected = self.table[unique] @ self.weights + self.bias
        weight = self.log_weight[unique].exp()[inverse]
        return normalize(embedding_bag(inverse, projected, offsets, mode="sum", per_sample_weights=weight), dim=1)

    def logits(self, queries: torch.Tensor, tools: torch.Tensor) -> torch.Tensor:
        """ln p up to a constant: vectors have length one, so -gamma ||a - b||^2 is 2 gamma cos less a constant."""
        return self.log_sharpness.exp() * queries @ tools.T


def inverse_document_frequency(texts: list[list[int]], vocab: int) -> np.ndarray:
    """How telling each token is."""
    n_with = np.zeros(vocab)
    for text in texts:
        n_with[list(set(text))] += 1
    return np.log(1 + (len(texts) + 0.5) / (n_with + 0.5))


def train(tokens: Tokens, rows: np.ndarray) -> Projection:
    """The trained projection."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    space = load("metatool")
    seen = sorted({space.gold[idx][0] for idx, split in enumerate(space.splits) if split == "trained"})
    label = {tool: idx for idx, tool in enumerate(seen)}
    train_queries = [(tokens.ids(space.queries[idx]), label[space.gold[idx][0]]) for idx, split in enumerate(space.splits)
                     if split == "trained"]  # fmt: skip
    train_queries = [pair for pair in train_queries if pair[0]]
    share = Counter(target for _, target in train_queries)
    chance = np.array([share[target] ** -0.5 for _, target in train_queries])
    seen_texts = [tokens.of_tool(space.tools[tool]) for tool in seen]
    others = [load(name).tools for name in ("sealtools", "stabletoolbench")]
    pairs = [[(tokens.of_tool(tool, ("description",)), tokens.of_tool(tool, ("name",)), tokens.of_tool(tool, ("parameter",)))
              for tool in tools] for tools in others]  # fmt: skip
    known = seen_texts + [tokens.of_tool(tool) for tools in others for tool in tools] + [text for text, _ in train_queries]
    packs = builtin()
    pack_texts = [tokens.of_tool(tool) for tool in packs]
    pack_tasks = [(tokens.ids(task), idx) for idx, tool in enumerate(packs) for task in tool["tasks"]]
    known += pack_texts + [text for text, _ in pack_tasks]
    model = Projection(rows, inverse_document_frequency(known, len(rows)))

    def thinned(text: list[int], rate: float) -> list[int]:
        return [token for token in text if random.random() > rate] or text

    groups = [([model.weights, model.bias], 1.0), ([model.log_weight, model.log_sharpness], 5.0)]
    optimizer = torch.optim.Adam([{"params": params, "lr": RATE * factor} for params, factor in groups])
    n_steps = EPOCHS * len(train_queries) // BATCH
    for step in range(n_steps):
        for group, (_, factor) in zip(optimizer.param_groups, groups, strict=True):
            group["lr"] = RATE * factor * min(1, (step + 1) / WARMUP_STEPS) * (1 - step / n_steps)
        batch = random.choice(len(train_queries), BATCH, p=chance / chance.sum())
        queries = model([thinned(train_queries[idx][0], DROPPED_OF_QUERY) for idx in batch])
        tools = model([thinned(text, DROPPED_OF_TOOL) for text in seen_texts])
        wanted = torch.tensor([train_queries[idx][1] for idx in batch])
        loss = cross_entropy(model.logits(queries, tools), wanted, label_smoothing=SMOOTHING)
        catalogue = pairs[step % len(pairs)]
        drawn = [catalogue[idx] for idx in random.choice(len(catalogue), BATCH, replace=False)]
        drawn = [
            (text, name + (parameters if random.random() < 0.5 else [])) for text, name, parameters in drawn if text and name
        ]
        texts = model([thinned(text, DROPPED_OF_QUERY) for text, _ in drawn])
        names = model([thinned(name, DROPPED_OF_QUERY) for _, name in drawn])
        logits, diagonal = model.logits(texts, names), torch.arange(len(drawn))
        loss = loss + cross_entropy(logits, diagonal) + cross_entropy(logits.T, diagonal)
        tasks = model([thinned(text, DROPPED_OF_TASK) for text, _ in pack_tasks])
        tools = model([thinned(text, DROPPED_OF_TOOL) for text in pack_texts])
        wanted = torch.tensor([idx for _, idx in pack_tasks])
        loss = loss + cross_entropy(model.logits(tasks, tools), wanted, label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{n_steps} steps, loss {loss.item():.3f}", flush=True)
    return model


def packed(model: Projection, rows: np.ndarray) -> Anchor:
    """The projection in eight bits a weight."""
    weights = model.weights.detach().numpy().T
    scales = np.abs(weights).max(axis=1) / 127
    log_weight = model.log_weight.detach().numpy()
    token_scale = np.abs(log_weight).max() / 127
    probes = np.linspace(100, len(rows) - 1, N_PROBES).astype(int)
    return Anchor(
        row_scale=model.row_scale,
        gamma=model.log_sharpness.exp().item() / 2,
        share=SHARE,
        token_scale=float(token_scale),
        probes=[(int(row), float(np.linalg.norm(rows[row]))) for row in probes],
        bias=model.bias.detach().numpy(),
        scales=scales,
        weights=np.rint(weights / scales[:, None]).astype(np.int8),
        tokens=np.rint(log_weight / token_scale).astype(np.int8),
    )


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="python -m mote_anchor.train", description=__doc__)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    rows = embedding_rows(options.bundle)
    model = train(Tokens(options.bundle / "tokenizer.json"), rows)
    packed(model, rows).write(options.out)
    print(f"{options.out}: {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
