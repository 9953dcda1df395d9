"""Make the calls of four programs with zarr-python 2, beside those with n5zarr.

``test_zarr2_lines.py`` has the same functions with n5zarr, and runs this file where zarr-python 2
is installed: ``python zarr2_lines.py write <folder> <server>``, ``... read <folder> ...``.
"""

from __future__ import annotations

import pickle
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

da: Any = import_module("dask.array")  # not typed
numcodecs: Any = import_module("numcodecs")

SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)
VALUES = np.arange(7 * 11 * 13, dtype="u2").reshape(SHAPE)
SCALE, OFFSET = (40, 8, 4), (80, 16, 12)  # z, y, x
POINTS: Any = [[0.5, 1.5, 2.5], [3.25, 4.25, 5.25], [6, 7, 8], [9, 10, 11], [-1, -2, -3]]
POINT_IDS = np.arange(len(POINTS), dtype="u8").reshape(-1, 1)
BEADS = "interestpoints.n5/tpId_0_viewSetupId_0/beads/interestpoints"
BLOCKS: list[tuple[str, tuple[int, ...], str]] = [  # data type, shape, compression
    ("u1", (5, 3, 2, 2), "gzip"),
    ("u8", (3, 4, 5), "gzip"),
    ("f4", (5, 3, 7), "zstd"),
    ("u2", (2, 3), "raw"),
]


def block_of(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype)


def s3_options(server: str) -> dict[str, Any]:
    return {"key": "a", "secret": "b", "endpoint_url": server}


def known(array: Any) -> dict[str, Any]:
    """Return the compared properties of an array."""
    return {
        "values": np.asarray(array[...]),
        "box": np.asarray(array[tuple(slice(1, n - 1) for n in array.shape)]),
        "shape": tuple(array.shape),
        "chunks": tuple(array.chunks),
        "dtype": np.dtype(array.dtype).str,
        "attrs": dict(array.attrs),
    }


# --------------------------------------------------- lines that are the same with either library


def fill_pybdv(group: Any) -> None:
    pyramid = {"setup0/timepoint0/s0": da.from_array(VALUES, chunks=BLOCK)}
    arrays = [
        group.zeros(
            name=name, shape=level.shape, dtype=level.dtype, chunks=BLOCK,
            compressor=numcodecs.GZip(), overwrite=False,
        )
        for name, level in pyramid.items()
    ]  # fmt: skip
    da.store(list(pyramid.values()), arrays, lock=None)
    group["setup0"].attrs["downsamplingFactors"] = [[1, 1, 1]]


def found_pybdv(group: Any) -> dict[str, Any]:
    key = "setup0/timepoint0/s0"
    factors = group["setup0"].attrs["downsamplingFactors"]
    return {"there": (key in group, "setup1" in group), "factors": factors, **known(group[key])}


def begin_rhapso(root: Any) -> None:
    root.attrs["n5"] = "4.0.0"
    if BEADS in root:
        del root[BEADS]
    group = root.create_group(BEADS)
    group.attrs["pointcloud"] = "1.0.0"
    group.attrs["type"] = "list"
    group.attrs["list version"] = "1.0.0"


def found_rhapso(root: Any, group: Any) -> dict[str, Any]:
    found: dict[str, Any] = {name: known(root[f"{BEADS}/{name}"]) for name in ("id", "loc")}
    found |= {"none": root[f"{BEADS}/none"].shape, "attrs": dict(root[BEADS].attrs), "nodes": {}}
    path, node = "", root
    while isinstance(node, group) and list(node):
        found["nodes"][path] = sorted(node)
        path = f"{path}/{found['nodes'][path][0]}".lstrip("/")
        node = root[path]
    return found


def fill_gunpowder(array: Any, *, reverses: bool) -> None:
    array.attrs["offset"] = OFFSET[::-1] if reverses else OFFSET
    array.attrs["resolution"] = SCALE[::-1] if reverses else SCALE
    array[2:7, :, 3:13] = VALUES[2:7, :, 3:13]


def placed(array: Any, *, reverses: bool) -> dict[str, Any]:
    order = -1 if reverses else 1
    scale, offset = (tuple(array.attrs[name][::order]) for name in ("resolution", "offset"))
    return {"scale": scale, "offset": offset, **known(array)}


# ---------------------------------------------------------------------- each writes and reads


def write_pybdv(zarr: Any, folder: Path) -> None:
    store = zarr.N5FSStore(str(folder / "pybdv.n5"), overwrite=False)
    with zarr.open(store, mode="a") as group:
        fill_pybdv(group)


def read_pybdv(zarr: Any, folder: Path) -> dict[str, Any]:
    return found_pybdv(zarr.open(zarr.N5FSStore(str(folder / "pybdv.n5")), mode="r"))


def write_rhapso(zarr: Any, folder: Path) -> None:
    root = zarr.group(zarr.N5Store(str(folder / "rhapso.n5")), overwrite=False)
    begin_rhapso(root)
    options = {"compressor": zarr.GZip()}
    root.create_dataset(f"{BEADS}/id", data=POINT_IDS, dtype="u8", chunks=(300000,), **options)
    root.create_dataset(f"{BEADS}/loc", data=POINTS, dtype="f8", chunks=(300000, 3), **options)
    root.create_dataset(f"{BEADS}/none", shape=(0,), dtype="f4", chunks=(1,), **options)


def read_rhapso(zarr: Any, folder: Path) -> dict[str, Any]:
    root = zarr.open(zarr.N5Store(str(folder / "rhapso.n5")), mode="r")
    return found_rhapso(root, zarr.hierarchy.Group)


def write_gunpowder(zarr: Any, folder: Path) -> None:
    file = zarr.open(zarr.N5Store(str(folder / "gunpowder.n5")), mode="a")
    array = file.create_dataset(name="em/raw", shape=SHAPE, compression="gzip", dtype="u2")
    fill_gunpowder(array, reverses=isinstance(file.chunk_store, (zarr.N5Store, zarr.N5FSStore)))


def read_gunpowder(zarr: Any, folder: Path) -> dict[str, Any]:
    file = zarr.open(zarr.N5Store(str(folder / "gunpowder.n5")), mode="r")
    reverses = isinstance(file.chunk_store, (zarr.N5Store, zarr.N5FSStore))
    return {**placed(file["em/raw"], reverses=reverses), "chunks": ()}  # each chooses its own


def write_cellmap_flow(zarr: Any, folder: Path) -> None:
    """Write the array that cellmap-flow reads, as bigstream and fibsem-tools do."""
    root = zarr.open(zarr.N5FSStore(str(folder / "cellmap.n5")), mode="a")
    options = {"chunks": BLOCK, "dtype": "u2", "compressor": zarr.GZip(6)}
    array = root.require_dataset("em/s0", shape=(5, 11, 13), **options)
    array[:] = VALUES[:5]
    again = root.require_dataset("em/s0", shape=(5, 11, 13), **options)
    again.resize(*SHAPE)
    again[5:] = VALUES[5:]
    again.attrs.update(resolution=SCALE[::-1], offset=OFFSET[::-1], units=["nm"] * 3)
    root["em"].attrs["of"] = "a test"


def read_cellmap_flow(zarr: Any, folder: Path) -> dict[str, Any]:
    array = zarr.open(zarr.N5FSStore(str(folder / "cellmap.n5")), mode="r")["em/s0"]
    store = array.store
    protocol = store.fs.protocol if isinstance(store.fs.protocol, str) else store.fs.protocol[0]
    url = f"{protocol}://{store.path.split('://')[-1]}"
    parent = zarr.open(store=zarr.N5FSStore(url), path=array.path.rsplit("/", 1)[0], mode="r")
    assert parent.attrs.get("multiscales", None) is None
    assert isinstance(array, zarr.core.Array)
    reverses = isinstance(array.store, (zarr.n5.N5Store, zarr.n5.N5FSStore))
    names = {"path": array.path, "parent": (parent.path, dict(parent.attrs))}
    return {**placed(array, reverses=reverses), **names}


def write_s3(zarr: Any, url: str, server: str) -> None:
    root = zarr.open(zarr.N5FSStore(url, mode="a", **s3_options(server)), mode="a")
    options = {"chunks": BLOCK, "dtype": "u2", "compressor": zarr.GZip()}
    root.create_dataset("em/s0", shape=SHAPE, **options)[:] = VALUES
    root["em/s0"].attrs["resolution"] = SCALE[::-1]


def read_s3(zarr: Any, url: str, server: str) -> dict[str, Any]:
    root = zarr.open(zarr.N5FSStore(url, mode="r", **s3_options(server)), mode="r")
    return known(root["em/s0"])


def codec_of(n5: Any, dtype: str, shape: tuple[int, ...], name: str) -> Any:
    codecs = {"gzip": numcodecs.GZip(), "zstd": numcodecs.Zstd(), "raw": None}
    return n5.N5ChunkWrapper(np.dtype(dtype), shape, compressor=codecs[name])


def encode_blocks(n5: Any, path: Path) -> None:
    pairs = ((codec_of(n5, *each), block_of(*each[:2])) for each in BLOCKS)
    path.write_bytes(pickle.dumps([bytes(codec.encode(block)) for codec, block in pairs]))


def decode_blocks(n5: Any, path: Path) -> list[np.ndarray]:
    return [
        np.frombuffer(codec_of(n5, *each).decode(block), each[0]).reshape(each[1])
        for each, block in zip(BLOCKS, pickle.loads(path.read_bytes()), strict=True)
    ]


def main(task: str, server: str, *folders: str) -> None:
    zarr, n5 = import_module("zarr"), import_module("zarr.n5")
    assert zarr.__version__.startswith("2.18"), zarr.__version__
    for folder in map(Path, folders):
        url = f"s3://lab/{folder.name}/s3.n5"
        if task == "write":
            for write in (write_pybdv, write_rhapso, write_gunpowder, write_cellmap_flow):
                write(zarr, folder)
            write_s3(zarr, url, server)
            encode_blocks(n5, folder / "blocks.pickle")
            continue
        readers = (read_pybdv, read_rhapso, read_gunpowder, read_cellmap_flow)
        found: dict[str, Any] = {r.__name__.removeprefix("read_"): r(zarr, folder) for r in readers}
        found["s3"] = read_s3(zarr, url, server)
        found["blocks"] = decode_blocks(n5, folder / "blocks.pickle")
        (folder / "found.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
