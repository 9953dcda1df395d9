"""The container in the package is small, and has the bytes that Java writes."""

from __future__ import annotations

import importlib.util
import itertools
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr

import n5zarr

DATA = Path(__file__).parent / "data"
SAMPLE = Path(n5zarr.sample_path())

spec = importlib.util.spec_from_file_location("make_sample", DATA / "make_sample.py")
assert spec is not None
assert spec.loader is not None
make_sample: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_sample)

# Some builds of Python compress with zlib-ng, whose streams are other ones.
same_zlib = pytest.mark.skipif(
    "ng" in zlib.ZLIB_RUNTIME_VERSION, reason="this Python's zlib is not the zlib of Java"
)


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_the_sample_is_small() -> None:
    assert sum(map(len, files(SAMPLE).values())) < 300_000


@same_zlib
def test_the_writer_of_the_sample_makes_the_bytes_of_java() -> None:
    n_blocks = 0
    for path in (DATA / "java" / "dtypes.n5").rglob("[0-9]*"):
        data = path.read_bytes() if path.is_file() else b""
        payload = data[4 + 4 * data[3] :] if data else b""
        if payload.startswith(b"\x1f\x8b"):
            assert make_sample.java_gzip(zlib.decompress(payload, 31)) == payload
            n_blocks += 1
    assert n_blocks == 250


@same_zlib
def test_the_sample_is_what_its_writer_makes_of_its_values(tmp_path: Path) -> None:
    root = zarr.open_group(n5zarr.N5Store(SAMPLE))
    make_sample.picture = lambda: tuple(
        np.asarray(root[path][...])  # type: ignore[index]
        for path in ("em/s0", "labels/s0")
    )
    make_sample.main(tmp_path / "sample.n5")
    assert files(tmp_path / "sample.n5") == files(SAMPLE)


def test_the_levels_are_halved() -> None:
    root = zarr.open_group(n5zarr.N5Store(SAMPLE))
    levels = [np.asarray(root[f"em/s{k}"][...]) for k in range(3)]  # type: ignore[index]
    assert [level.shape for level in levels] == [(40, 96, 128), (20, 48, 64), (10, 24, 32)]
    for fine, coarse in itertools.pairwise(levels):
        means = fine.reshape(*np.array([coarse.shape, (2, 2, 2)]).T.ravel()).mean(axis=(1, 3, 5))
        assert np.abs(means - coarse).max() <= 0.5
