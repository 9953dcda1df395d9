"""``n5_default``: ``zarr.json`` beside N5 blocks, as zarr-n5's ``n5tozarr`` writes it.

zarr-n5 registers a codec of this name, too; both are installed here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.errors import ZarrUserWarning
from zarr.storage import LocalStore, MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5UnrepresentableError

pytest.importorskip("zarr_n5", reason="peer: uv sync installs it")

OURS = "n5zarr.store.n5_default.N5DefaultCodec"
THEIRS = "zarr_n5.codec.default.N5DefaultCodec"
SHAPE, BLOCK = (7, 11, 13), (3, 4, 5)  # C order
COMPRESSIONS: dict[str, Any] = {
    "raw": None,
    "gzip": {"type": "gzip", "level": 4},
    "zstd": {"type": "zstd", "level": 2},
    "blosc": {"type": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 2, "blocksize": 0},
}
DTYPES = ["u1", "u2", "i4", "u8", "f4", "f8"]
BIG: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "big"}}
FULL: dict[str, Any] = {"name": "transpose", "configuration": {"order": [2, 1, 0]}}


def values(dtype: str) -> np.ndarray:
    return np.random.default_rng(5).integers(0, 200, SHAPE).astype(dtype)


@pytest.fixture(params=[OURS, THEIRS], ids=["ours", "theirs"])
def codec(request: pytest.FixtureRequest) -> Any:
    with zarr.config.set({"codecs.n5_default": request.param}):
        yield request.param


def created(store: Any, chain: list[Any], chunks: tuple[int, ...] = BLOCK, **options: Any) -> Any:
    """Create an array of 16-bit numbers in blocks of these codecs."""
    serializer: Any = {"name": "n5_default", "configuration": {"codecs": chain}}
    return zarr.create_array(
        store, shape=SHAPE, chunks=chunks, dtype="u2", serializer=serializer, compressors=None,
        **options,
    )  # fmt: skip


def converted(root: Path) -> Path:
    """Write ``zarr.json`` beside each ``attributes.json``, as a user of zarr-n5 does."""
    script = Path(sys.executable).with_name("n5tozarr")
    # `-I`: it would take files for groups
    subprocess.run([script, "-I", str(root)], check=True, capture_output=True)
    return root


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root: Path = tmp_path_factory.mktemp("n5_default") / "c.n5"
    for name, compression in COMPRESSIONS.items():
        for dtype in DTYPES:
            n5zarr.create_array(
                root, path=f"{name}/{dtype}", data=values(dtype), chunks=BLOCK,
                compression=compression,
            )  # fmt: skip
    return converted(root)


@pytest.mark.each_of(7)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_an_array_of_n5tozarr_is_read(root: Path, codec: str, dtype: str, compression: str) -> None:
    path = f"{compression}/{dtype}"
    document = json.loads((root / path / "zarr.json").read_text())
    assert [entry["name"] for entry in document["codecs"]] == ["n5_default"]
    array: Any = zarr.open_array(LocalStore(root), path=path, mode="r")
    np.testing.assert_array_equal(array[...], values(dtype).T)
    np.testing.assert_array_equal(array[10:, 3:5, ::2], values(dtype).T[10:, 3:5, ::2])
    assert zarr.config.get("codecs.n5_default") == codec
    # the store of N5 shows the dataset as before: the other document is none of N5's
    shown: Any = zarr.open_array(N5Store(root), path=path, mode="r")
    np.testing.assert_array_equal(shown[...], values(dtype))


def test_blocks_of_java(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "data" / "java" / "blocks.n5"
    shutil.copytree(source, tmp_path / "c.n5")
    expected = zarr.open_group(N5Store(source, axis_order="F"), mode="r")
    n_read = 0
    with zarr.config.set({"codecs.n5_default": OURS}):
        group = zarr.open_group(LocalStore(converted(tmp_path / "c.n5")), mode="r")
        for name, node in expected.members(max_depth=None):
            if (tmp_path / "c.n5" / name / "zarr.json").exists() and isinstance(node, zarr.Array):
                array: Any = group[name]
                np.testing.assert_array_equal(array[...], node[...])
                n_read += 1
    assert n_read > 3


@pytest.mark.parametrize("compressor", [None, "gzip", "zstd", "blosc", "numcodecs.bz2"])
def test_an_array_of_our_codec_is_read_back(codec: str, compressor: str | None) -> None:
    configurations: dict[str, Any] = {
        "gzip": {"level": 3},
        "zstd": {"level": 1, "checksum": False},
        "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
        "numcodecs.bz2": {"level": 9},
    }
    chain = [FULL, BIG]
    if compressor:
        chain.append({"name": compressor, "configuration": configurations[compressor]})
    store = MemoryStore()
    with zarr.config.set({"codecs.n5_default": OURS}):
        array = created(store, chain)
        array[...] = values("u2")
        array[1:5, 2, 3:] = 7
    expected = values("u2")
    expected[1:5, 2, 3:] = 7
    again: Any = zarr.open_array(store, mode="r")
    np.testing.assert_array_equal(again[...], expected)
    assert zarr.config.get("codecs.n5_default") == codec


def test_a_compressor_may_be_a_name_alone() -> None:
    with zarr.config.set({"codecs.n5_default": OURS}):
        array = created(MemoryStore(), [FULL, BIG, "gzip"], chunks=SHAPE)
        array[...] = values("u2")
    stored = array.store._store_dict["c/0/0/0"].to_bytes()
    compression = {"type": "gzip"}
    found = n5zarr.decode_block(stored, data_type="uint16", compression=compression, axis_order="F")
    np.testing.assert_array_equal(found, values("u2"))


def test_with_both_installed_zarr_takes_one_and_says_so() -> None:
    with pytest.warns(ZarrUserWarning, match="multiple|Codec 'n5_default'"):
        array = created(MemoryStore(), [FULL, BIG])
    array[...] = values("u2")
    np.testing.assert_array_equal(array[...], values("u2"))


def test_arrays_of_this_codec_go_into_containers(tmp_path: Path) -> None:
    chain = [FULL, BIG, {"name": "gzip", "configuration": {"level": 3}}]
    with zarr.config.set({"codecs.n5_default": OURS}):
        array = created(N5Store(tmp_path / "c.n5"), chain, name="a")
        array[...] = values("u2")
        again: Any = zarr.open_array(N5Store(tmp_path / "c.n5"), path="a", mode="r")
        np.testing.assert_array_equal(again[...], values("u2"))
        assert again.metadata.to_dict()["codecs"] == array.metadata.to_dict()["codecs"]
    document = json.loads((tmp_path / "c.n5/a/attributes.json").read_text())
    assert document["compression"] == {"type": "gzip", "useZlib": False, "level": 3}


ALONE: dict[str, Any] = {"name": "transpose", "configuration": {"order": [0, 1, 2]}}


@pytest.mark.parametrize(
    ("chain", "message"),
    [([BIG], "expected transpose, bytes"), ([ALONE, BIG], r"expected the order \[2, 1, 0\]")],
)
def test_zarr_makes_no_array_of_other_configurations(chain: Any, message: str) -> None:
    ours = zarr.config.set({"codecs.n5_default": OURS})
    with ours, pytest.raises(N5UnrepresentableError, match=message):
        created(MemoryStore(), chain)
