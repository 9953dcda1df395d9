"""A copy of every key of an N5Store is plain Zarr, which other programs read without n5zarr."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.buffer import cpu

from n5zarr import N5Store
from tests.programs import Programs

JAVA = Path(__file__).parents[1] / "data" / "java"
DATASETS = json.loads((JAVA / "manifest.json").read_text())["datasets"]
ROOTS = ("compressions.n5", "dtypes.n5", "zarr2.n5", "tensorstore.n5", "blocks.n5", "v0.n5")

# Runs in a process of its own in which n5zarr cannot be imported.
IMPORTS = """
import hashlib, json, sys
sys.modules["n5zarr"] = None
import numpy as np, zarr
"""
READER = """
groups = {}
for root, path in json.loads(sys.argv[2]):
    if root not in groups:
        groups[root] = zarr.open_group(f"{sys.argv[1]}/{root}", mode="r")
    array = groups[root][path][...]
    big_endian = np.ascontiguousarray(array, array.dtype.newbyteorder(">"))
    print(hashlib.sha256(big_endian.tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs(IMPORTS) as started:
        yield started


def copy(store: N5Store, target: Path) -> None:
    async def keys() -> None:
        async for key in store.list():
            value = await store.get(key, cpu.buffer_prototype)
            assert value is not None
            (target / key).parent.mkdir(parents=True, exist_ok=True)
            (target / key).write_bytes(value.to_bytes())

    asyncio.run(keys())


@pytest.mark.each_of(4)
@pytest.mark.parametrize("zarr_format", [3, 2])
@pytest.mark.parametrize("codecs", ["zarr", "portable"])
def test_zarr_reads_a_copy_without_n5zarr(
    zarr_format: Any, codecs: Any, programs: Programs, tmp_path: Path
) -> None:
    for root in ROOTS:
        copy(N5Store(JAVA / root, zarr_format=zarr_format, codecs=codecs), tmp_path / root)
    wanted = {(d["root"], d["path"]): d["sha256"] for d in DATASETS if d["root"] in ROOTS}
    done = programs.run(READER, str(tmp_path), json.dumps([*wanted]))
    assert done.returncode == 0, done.stderr
    assert dict(zip(wanted, done.stdout.split(), strict=True)) == wanted


@pytest.mark.each_of(7)
@pytest.mark.parametrize("root", ROOTS)
@pytest.mark.parametrize("axis_order", ["C", "F"])
def test_tensorstore_reads_a_portable_copy(root: str, axis_order: Any, tmp_path: Path) -> None:
    tensorstore = pytest.importorskip("tensorstore", reason="peer: uv sync installs it")
    copy(N5Store(JAVA / root, codecs="portable", axis_order=axis_order), tmp_path)
    for dataset in (d for d in DATASETS if d["root"] == root):
        kvstore = {"driver": "file", "path": str(tmp_path / dataset["path"])}
        opened = tensorstore.open({"driver": "zarr3", "kvstore": kvstore}, read=True).result()
        values = opened.read().result()
        in_c = values if axis_order == "C" else values.transpose()
        big_endian = np.ascontiguousarray(in_c, in_c.dtype.newbyteorder(">"))
        assert hashlib.sha256(big_endian.tobytes()).hexdigest() == dataset["sha256"], dataset
