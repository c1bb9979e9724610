"""Reading a bundle for the reference: manifest and weights.bin, written from docs/bundle.md alone."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .errors import bad_input, unsupported

CACHED_AS_F32 = 400_000_000
"""Up to so many weights the unpacked integers are kept as f32, which the matmuls want; beyond it as i8."""

AGAIN = "export the bundle again"


@dataclass(frozen=True)
class Packed:
    """An unpacked matrix [rows, cols]: integers [groups, 32, rows], scales and minimums f32 [groups, rows]."""

    rows: int
    values: np.ndarray
    scales: np.ndarray
    mins: np.ndarray | None

    def dequantize(self) -> np.ndarray:
        """The f32 matrix [rows, cols]."""
        return self.take(np.arange(self.rows))

    def take(self, wanted: np.ndarray) -> np.ndarray:
        """Some rows of the matrix as f32."""
        found = self.values[:, :, wanted].astype(np.float32) * self.scales[:, None, wanted]
        if self.mins is not None:
            found += self.mins[:, None, wanted]
        return found.reshape(-1, len(wanted)).T


class WeightsReader:
    """weights.bin, mapped; a matrix is unpacked when first asked for, and kept."""

    def __init__(self, path: Path):
        try:
            self.data = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError) as cause:
            raise bad_input(f"weights cannot be opened: {path} ({cause})", AGAIN) from cause
        if len(self.data) < 4096 or bytes(self.data[:8]) != b"MOTEWTS\0":
            raise bad_input(f"not a weights file: {path}", AGAIN)
        version, count, index_at, index_bytes, total = struct.unpack("<IIQQQ", self.data[8:40].tobytes())
        if version != 1:
            raise unsupported(f"weights file of an unknown version: {version}", "use the mote_export that wrote it")
        if total != len(self.data) or index_at + index_bytes > total:
            raise bad_input(f"weights file is cut short: {len(self.data)}, its header says {total}", AGAIN)
        self.index = {entry["name"]: entry for entry in json.loads(self.data[index_at : index_at + index_bytes].tobytes())}
        if len(self.index) != count:
            raise bad_input(f"weights file has another number of tensors: {len(self.index)}, its header says {count}", AGAIN)
        weights = sum(entry["rows"] * entry["cols"] for entry in self.index.values())
        self.kept_as = np.float32 if weights <= CACHED_AS_F32 else np.int8
        self.kept: dict[str, Packed] = {}

    def vector(self, name: str) -> np.ndarray:
        """An f32 vector."""
        return self._bytes(name).view("<f4")

    def matrix(self, name: str) -> Packed:
        """A matrix of kind q4, q4m or q8."""
        if name not in self.kept:
            self.kept[name] = self._unpack(self.index[name], self._bytes(name))
        return self.kept[name]

    def _bytes(self, name: str) -> np.ndarray:
        entry = self.index[name]
        return self.data[entry["offset"] : entry["offset"] + entry["bytes"]]

    def _unpack(self, entry: dict, data: np.ndarray) -> Packed:
        kind, rows, n_groups = entry["kind"], entry["rows"], entry["cols"] // 32
        n_panels = (rows + 7) // 8
        header = 32 if kind == "q4m" else 16
        groups = data.reshape(n_panels, n_groups, -1)

        def by_row(first: int) -> np.ndarray:
            halves = np.ascontiguousarray(groups[:, :, first : first + 16]).view("<f2")
            return halves.astype(np.float32).transpose(1, 0, 2).reshape(n_groups, -1)[:, :rows]

        values = np.empty((n_groups, 32, n_panels, 8), self.kept_as)
        row = np.arange(8)
        for column in range(32):
            if kind == "q8":
                integers = groups[:, :, header + 32 * (column // 4) + 4 * row + column % 4].view(np.int8)
            else:
                byte = groups[:, :, header + 32 * (column // 8) + 4 * row + column % 4]
                nibble = byte >> 4 if column % 8 >= 4 else byte & 15
                integers = nibble.astype(np.int8) - (8 if kind == "q4" else 0)
            values[:, column] = integers.transpose(1, 0, 2)
        values = np.ascontiguousarray(values.reshape(n_groups, 32, -1)[:, :, :rows])
        return Packed(rows, values, by_row(0), by_row(16) if kind == "q4m" else None)


def read_manifest(folder: Path) -> dict:
    """The manifest of the bundle in `folder`."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise bad_input(f"not a bundle: {folder} ({cause})", "give a folder that mote_export wrote") from cause
    if manifest.get("format") != "mote-bundle" or manifest.get("format_version") != 1:
        raise unsupported(f"bundle of an unknown format: {manifest.get('format_version')}", "use the mote_export that wrote it")
    return manifest
