"""A program for zarr 2: run with the folder to write to, and the module to import as zarr."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numcodecs as typed_numcodecs
import numpy as np

numcodecs: Any = typed_numcodecs
VALUES = np.random.default_rng(5).integers(0, 60000, (7, 11, 13)).astype("uint16")
OPTIONS: dict[str, dict[str, Any]] = {
    "default": {}, "raw": {"compressor": None}, "gzip": {"compressor": numcodecs.GZip(3)},
    "zlib": {"compressor": numcodecs.Zlib(2)}, "bz2": {"compressor": numcodecs.BZ2(4)},
    "lzma": {"compressor": numcodecs.LZMA(preset=3)},
    "blosc": {"compressor": numcodecs.Blosc("zstd", 3, 2)},
    "named": {"compression": "gzip", "compression_opts": 2}, "int8": {"dtype": "int8"},
    "float64": {"dtype": ">f8", "chunks": 5}, "chosen": {"chunks": True},
    "whole": {"chunks": False}, "short": {"chunks": (3,)},
}  # fmt: skip


def write(zarr: Any, folder: Path) -> None:
    """Write arrays in several ways."""
    root = zarr.open(str(folder / "a.n5"), "w")
    for name, options in OPTIONS.items():
        given = {"chunks": (2, 3, 5), **options}
        root.create_dataset(f"made/{name}", data=VALUES, **given)
    empty = root.zeros("empty", shape=(4, 5), chunks=(2, 3), dtype="f4")
    empty[...] = 0  # is stored
    sparse = root.zeros("sparse", shape=(4, 5), chunks=(2, 3), write_empty_chunks=False)
    sparse[...] = 0
    same = root.zeros_like("like", root["made/bz2"])
    same[1:6, 2, ::3] = 7
    again = root.require_dataset("made/gzip", shape=VALUES.shape, dtype="u2", data=VALUES * 0)
    again.attrs.update(a=1, b=[1, 2.5])
    again.attrs["c"] = "text"
    resized = root.array("resized", VALUES, chunks=4, compressor=numcodecs.GZip())
    resized.resize(5, 4, 13)
    resized.append(np.ones((3, 4, 13), "u2"))
    with zarr.group(zarr.N5FSStore(str(folder / "b.n5")), overwrite=True) as group:
        group.create_group("x/y").attrs.put({"z": [1]})
        group["x/plain"] = VALUES[0]
    zarr.save(str(folder / "c.n5"), first=VALUES, second=VALUES[1])
    made = zarr.create((5, 6), chunks=(2, 3), dtype="i4", store=zarr.N5Store(folder / "d.n5"))
    made[:, 1] = np.arange(5)


def read(zarr: Any, folder: Path) -> dict[str, Any]:
    """Read what was written, and say what the program sees."""
    found: dict[str, Any] = {}
    for name in "abc":
        root = zarr.open(str(folder / f"{name}.n5"), "r")
        root.visititems(lambda path, node, name=name: found.update({f"{name}/{path}": seen(node)}))
        keys = sorted(root.group_keys()), sorted(root.array_keys())
        below = sorted(key for key, _ in root.arrays(recurse=True))
        found[name] = [len(root), sorted(root), *keys, below]
    found["d"] = seen(zarr.Array(zarr.N5Store(folder / "d.n5"), read_only=True))
    return found


def seen(node: Any) -> list[Any]:
    """Return what a node shows."""
    if type(node).__name__.endswith("Group"):
        return []
    values = node[...].tolist(), node[0].tolist()
    counts = node.nchunks, node.nchunks_initialized, len(node)
    what = node.shape, node.chunks, np.dtype(node.dtype).name, node.path, int(node.fill_value)
    own = node.compressor.codec_id, node.compressor.get_config(), node.attrs.asdict()
    return [*values, *counts, *what, *own]


if __name__ == "__main__":
    program, where = import_module(sys.argv[1]), Path(sys.argv[2])
    if not where.exists():
        write(program, where)
    Path(sys.argv[3]).write_text(json.dumps(read(program, where)))
