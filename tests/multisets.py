"""Label multisets in the plainest form: a list of entries for each voxel, voxel by voxel.

These helpers share nothing with the package: they follow the source of imglib2-label-multisets
0.15.1 (``LabelUtils``, ``LabelMultisetTypeDownscaler``, ``LabelMultisetEntryList``).
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["downscaled", "parsed", "random_voxels", "serialized", "signed", "voxels_of"]

type Voxels = dict[tuple[int, ...], dict[int, int]]
"""The counts of the labels of each voxel, by position (z, y, x)."""


def signed(label: int) -> int:
    """Return a label as Java's long, by which lists are sorted."""
    return label - 2**64 if label >= 2**63 else label


def parsed(payload: bytes, shape: Sequence[int]) -> Voxels:
    """Parse a payload as ``LabelUtils.fromBytes``."""
    (n_arg_max,) = struct.unpack_from(">i", payload)
    positions = list(itertools.product(*map(range, shape)))
    begin = 4 + 8 * n_arg_max
    lists = begin + 4 * len(positions)
    voxels: Voxels = {}
    for number, position in enumerate(positions):
        at = lists + struct.unpack_from(">i", payload, begin + 4 * number)[0]
        (n_entries,) = struct.unpack_from("<i", payload, at)
        entries = (struct.unpack_from("<Qi", payload, at + 4 + 12 * k) for k in range(n_entries))
        voxels[position] = dict(entries)
    return voxels


def serialized(voxels: Mapping[tuple[int, ...], Mapping[int, int]]) -> bytes:
    """Serialize voxels as ``LabelUtils.serializeLabelMultisetTypes``; C order is that of N5."""
    offsets, lists = b"", b""
    known: dict[tuple[tuple[int, int], ...], int] = {}
    for position in sorted(voxels):
        entries = tuple(sorted(voxels[position].items(), key=lambda e: signed(e[0])))
        if entries not in known:
            known[entries] = len(lists)
            lists += struct.pack("<i", len(entries))
            lists += b"".join(struct.pack("<Qi", *entry) for entry in entries)
        offsets += struct.pack(">i", known[entries])
    return bytes(4) + offsets + lists


def downscaled(
    voxels: Mapping[tuple[int, ...], Mapping[int, int]], factors: Sequence[int], limit: int = -1
) -> Voxels:
    """Combine voxels as ``LabelMultisetTypeDownscaler.createDownscaledCell``.

    Counts are summed; a cell without entries gets label 0 with count 0. The limit keeps the most
    frequent entries, as in 0.12.1 (``list.sort((e1, e2) -> Long.compare(e2.getCount(),
    e1.getCount()))``, then ``limitSize``); 0.13.0 to 0.15.1 sort in ascending order before.
    """
    cells: Voxels = {}
    for position, entries in voxels.items():
        cell = tuple(p // f for p, f in zip(position, factors, strict=True))
        sums = cells.setdefault(cell, {})
        for label, count in entries.items():
            sums[label] = sums.get(label, 0) + count
    for cell, sums in cells.items():
        ranked = sorted(sums.items(), key=lambda e: (-e[1], signed(e[0])))
        cells[cell] = dict(ranked[:limit] if limit > 0 else ranked) or {0: 0}
    return cells


def random_voxels(rng: np.random.Generator, shape: Sequence[int]) -> Voxels:
    """Make multisets with large, reserved and no labels; some voxels share their list."""
    labels = [0, 1, 7, 2**40 + 3, 2**63 - 1, 2**63, 2**64 - 4, 2**64 - 1]
    pool = [
        {labels[k]: int(rng.integers(1, 9)) for k in rng.permutation(8)[: rng.integers(0, 6)]}
        for _ in range(11)
    ]
    return {p: pool[rng.integers(11)] for p in itertools.product(*map(range, shape))}


def voxels_of(multisets: object) -> Voxels:
    """Take the entries of each voxel, one by one."""
    shape = multisets.shape  # type: ignore[attr-defined]
    return {p: multisets[p] for p in itertools.product(*map(range, shape))}  # type: ignore[index]
