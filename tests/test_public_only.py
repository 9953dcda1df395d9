"""n5zarr works by public names of zarr alone, if asked to, or if zarr has changed.

With ``N5ZARR_PUBLIC_ONLY=1`` all tests of the core run in this mode; ``.ci/next-zarr`` has them.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
import zarr
from zarr.buffer import cpu
from zarr.storage import LocalStore, LoggingStore, MemoryStore

import n5zarr
from n5zarr import _zarr, _zarr_private, _zarr_public, _zarr_shared
from n5zarr.errors import N5UnrepresentableError
from tests.structure import REPOSITORY

ROUND_TRIP = """
import sys, warnings
import numpy as np, zarr
where, values = sys.argv[1], np.arange(5 * 7 * 11, dtype=sys.argv[2]).reshape(5, 7, 11)
import n5zarr
from n5zarr import N5Store
options = {"shape": (5, 7, 11), "chunks": (3, 4, 5), "dtype": values.dtype}
made = zarr.create_array(N5Store(where), name="a/plain", **options)
made[...] = values
made[1:3, 2:5] = values[1:3, 2:5] + 1  # parts of blocks
other = n5zarr.create_array(where, path="b", data=values, chunks=(3, 4, 5), compression="zstd")
assert type(n5zarr.open_array(where, path="b", mode="r")).__name__ == "N5Array"
assert np.array_equal(n5zarr.open(where)["b"][1:4, 3], values[1:4, 3])
n5zarr.convert(where + "/b", where.replace("c.n5", "out.zarr"))
private = sorted(name for name in sys.modules if name == "n5zarr._zarr_private")
print(private, zarr.config.get("codec_pipeline.path"), flush=True)
"""


def run(
    tmp_path: Path, dtype: str, before: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", before + ROUND_TRIP, str(tmp_path / "c.n5"), dtype],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def stored(path: Path) -> np.ndarray:
    spec = {"driver": "n5", "kvstore": {"driver": "file", "path": str(path)}}
    return np.asarray(tensorstore.open(spec, open=True).result().read().result()).transpose()


def check(tmp_path: Path, dtype: str) -> None:
    """Check by tensorstore what was written."""
    values = np.arange(5 * 7 * 11, dtype=dtype).reshape(5, 7, 11)
    np.testing.assert_array_equal(stored(tmp_path / "c.n5/b"), values)
    values[1:3, 2:5] += 1
    np.testing.assert_array_equal(stored(tmp_path / "c.n5/a/plain"), values)
    assert (tmp_path / "out.zarr/zarr.json").exists()


@pytest.mark.parametrize("dtype", ["uint16", "float64"])
def test_it_writes_and_reads_without_private_names(tmp_path: Path, dtype: str) -> None:
    done = run(tmp_path, dtype, N5ZARR_PUBLIC_ONLY="1")
    assert done.returncode == 0, done.stderr
    names, pipeline = done.stdout.split()
    assert names == "[]"
    assert pipeline == "n5zarr.arrays.pipeline.N5CodecPipeline"
    assert done.stderr == ""
    check(tmp_path, dtype)


@pytest.mark.parametrize("public_only", ["0", "1"])
def test_zarr_may_be_configured_for_our_pipeline_before_it_is_there(
    tmp_path: Path, public_only: str
) -> None:
    name = "n5zarr.arrays.pipeline.N5CodecPipeline"
    done = run(tmp_path, "uint16", ZARR_CODEC_PIPELINE__PATH=name, N5ZARR_PUBLIC_ONLY=public_only)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[-1] == name
    check(tmp_path, "uint16")


# Hides from n5zarr all modules and names of zarr that are private; zarr itself keeps them.
WITHOUT_PRIVATE = """
import builtins
imported = builtins.__import__
def is_private(name):
    parts = name.split(".")
    return parts[0] == "zarr" and (parts[1:2] == ["core"] or any(p.startswith("_") for p in parts))
def importing(name, scope=None, locals=None, names=(), level=0):
    if ((scope or {}).get("__name__") or "").split(".")[0] == "n5zarr":
        for each in (name, *(f"{name}.{n}" for n in names or ())):
            if is_private(each):
                raise ImportError(f"there is no {each}")
    return imported(name, scope, locals, names, level)
builtins.__import__ = importing
"""
# What zarr-python's pull request 4101 does to the configuration: the known keys only, with defaults
# in one mapping.
WITH_TYPED_CONFIG = """
import zarr
class Typed:
    kept = zarr.config
    defaults = kept.defaults[0]
    def get(self, key, default=...):
        given = () if default is ... else (default,)
        return self.kept.get(key, *given)
    def set(self, values=None, **more):
        for key in values or {}:
            self.kept.get(key)  # a KeyError if there is none
        return self.kept.set(values, **more)
zarr.config = Typed()
"""
CHANGES = {
    "a name is gone": "import zarr.core.array as a; del a._stores_share_data\n",
    "all private names are gone": WITHOUT_PRIVATE,
    "and the configuration has types": WITH_TYPED_CONFIG + WITHOUT_PRIVATE,
    "a function has other parameters": (
        "import zarr.core.chunk_utils as c; c.merge_and_encode_chunk = lambda stored, value: None\n"
    ),
    "a class has other members": (
        "import zarr; from zarr.core.codec_pipeline import FusedCodecPipeline as Own\n"
        "class Changed(Own): sync_transform = property()\n"
        "import zarr.core.codec_pipeline as c; c.FusedCodecPipeline = Changed\n"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_it_goes_on_with_public_names_if_zarr_has_changed(tmp_path: Path, change: str) -> None:
    done = run(tmp_path, "uint16", before=CHANGES[change], N5ZARR_PUBLIC_ONLY="")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("n5zarr works with public names of zarr only, more slowly") == 1
    check(tmp_path, "uint16")


def test_a_typed_configuration_is_no_change(tmp_path: Path) -> None:
    done = run(tmp_path, "uint16", before=WITH_TYPED_CONFIG, N5ZARR_PUBLIC_ONLY="")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[-1] == "n5zarr.arrays.pipeline.N5CodecPipeline"
    check(tmp_path, "uint16")


def private_names() -> list[tuple[str, str]]:
    """Return the modules and the names that the private form imports when it runs."""
    tree = ast.parse(Path(_zarr_private.__file__ or "").read_text())
    return [
        (each.module or "", alias.name)
        for each in tree.body
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("zarr")
        for alias in each.names
        if is_private(f"{each.module}.{alias.name}")
    ]


def is_private(name: str) -> bool:
    return name.startswith("zarr.core.") or "._" in name


@pytest.mark.parametrize(("module", "name"), private_names())
def test_each_private_name_may_go(monkeypatch: pytest.MonkeyPatch, module: str, name: str) -> None:
    imported = builtins.__import__

    def importing(asked: str, scope: Any = None, *rest: Any) -> Any:
        is_own = (scope or {}).get("__name__") == "n5zarr._zarr_private"
        if is_own and asked == module and name in rest[1]:
            raise ImportError(f"cannot import name {name!r} from {module!r}")
        return imported(asked, scope, *rest)

    monkeypatch.delitem(sys.modules, "n5zarr._zarr_private")
    monkeypatch.setattr(n5zarr, "_zarr_private", _zarr_private)  # is put back
    monkeypatch.setattr(builtins, "__import__", importing)
    with pytest.warns(n5zarr.N5Warning, match=f"has changed .*{name}"):
        assert _zarr.chosen(None) is _zarr_public


def test_what_would_replace_each_private_name_is_described() -> None:
    """In the names that n5zarr gives them, and in zarr's."""
    (page,) = (REPOSITORY / "docs/design").glob("*-what-zarr-could-make-public.md")
    described = set(re.findall(r"`(?:[\w.]+\.)?(\w+)`", page.read_text()))
    names = {*_zarr_private.__all__, *(name for _, name in private_names())}
    assert sorted(names - {*_zarr_shared.__all__} - described) == []


def test_the_private_names_are_the_right_ones() -> None:
    assert len(private_names()) > 10
    _zarr_private.check()
    assert _zarr.chosen("0").__name__ == "n5zarr._zarr_private"


def test_both_forms_have_the_same_names() -> None:
    assert sorted(_zarr_private.__all__) == sorted(_zarr_public.__all__)


def test_they_find_the_same_places(tmp_path: Path) -> None:
    one, other = LocalStore(tmp_path / "a-b"), LocalStore(tmp_path / "c")
    memory = MemoryStore({"a": cpu.Buffer.from_bytes(b"1")})
    pairs = [
        (one, one.with_read_only(read_only=True)), (one, other),
        (memory, memory.with_read_only(read_only=True)), (memory, MemoryStore()), (memory, one),
    ]  # fmt: skip
    for pair in pairs:
        assert _zarr_public.same_data(*pair) == _zarr_private.same_data(*pair)
    for store in (LoggingStore(one), LoggingStore(LoggingStore(one))):
        known = _zarr_private.wrapped(store)
        inner = known if known is one else _zarr_private.wrapped(known)  # type: ignore[arg-type]
        assert _zarr_public.wrapped(store) == inner == one


def test_they_spell_documents_alike() -> None:
    array = n5zarr.open_array(n5zarr.sample_path(), path="em/s0", mode="r")
    document = dict(array.metadata.to_dict()) | {"attributes": {"a": 1}}
    assert _zarr_public.spelled(document) == _zarr_private.spelled(document)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "blosc"])
def test_they_encode_chunks_alike(codec: str) -> None:
    configuration = {
        "gzip": {"level": 5}, "zstd": {"level": 1, "checksum": False},
        "blosc": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 2, "blocksize": 0},
    }[codec]  # fmt: skip
    document = {
        "zarr_format": 3, "node_type": "array", "shape": [5, 7], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 7]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0, "attributes": {},
        "codecs": [
            {"name": "transpose", "configuration": {"order": [1, 0]}},
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": codec, "configuration": configuration},
        ],
    }  # fmt: skip
    for values in (np.arange(35, dtype="u2").reshape(5, 7), np.zeros((5, 7), "u2")):
        chunk = _zarr_private.ChunkCodecs(document).encode(values)
        assert _zarr_public.ChunkCodecs(document).encode(values) == chunk
        np.testing.assert_array_equal(_zarr_public.ChunkCodecs(document).decode(chunk), values)


@pytest.mark.parametrize("write_empty", [False, True])
@pytest.mark.parametrize("stored", [None, 5])
@pytest.mark.parametrize(
    ("value", "selection", "out", "is_complete", "drop_axes"),
    [
        (np.arange(6, dtype="u2").reshape(2, 3), np.s_[1:3, 2:5], np.s_[0:2, 0:3], False, ()),
        (np.arange(15, dtype="u2").reshape(3, 5), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.full((3, 5), 7, "u2"), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.array(9, "u2"), np.s_[0:2, 0:5], np.s_[0:2, 0:5], False, ()),
        (np.array(7, "u2"), np.s_[0:3, 0:5], np.s_[0:3, 0:5], True, ()),
        (np.arange(3, dtype="u2"), np.s_[0:3, 1:2], np.s_[0:3], False, (1,)),
        (np.arange(4, dtype="u2"), ([0, 0, 2, 1], [1, 4, 0, 2]), np.s_[0:4], False, ()),
    ],
)
def test_they_replace_parts_of_chunks_alike(
    value: np.ndarray, selection: Any, out: Any, *, is_complete: bool, drop_axes: tuple[int, ...],
    stored: int | None, write_empty: bool,
) -> None:  # fmt: skip
    array: Any = zarr.create_array(
        MemoryStore(), shape=(7, 11), chunks=(3, 5), dtype="u2", fill_value=7,
        config={"write_empty_chunks": write_empty},
    )  # fmt: skip
    old = None if stored is None else cpu.Buffer.from_bytes(np.full(15, stored, "u2").tobytes())

    def decode(data: Any, spec: Any) -> Any:
        elements = np.frombuffer(data.to_bytes(), "u2").reshape(spec.shape)
        return spec.prototype.nd_buffer.from_numpy_array(elements)

    def encode(chunk: Any, _: Any) -> Any:
        return cpu.Buffer.from_bytes(chunk.as_numpy_array().tobytes())

    results = [
        form.merge_and_encode_chunk(
            old, cpu.NDBuffer(value), chunk_spec=form.chunk_spec(array), chunk_selection=selection,
            out_selection=out, is_complete=is_complete, drop_axes=drop_axes, decode=decode,
            encode=encode,
        )
        for form in (_zarr_private, _zarr_public)
    ]  # fmt: skip
    one, other = (None if each is None else each.to_bytes() for each in results)
    assert one == other


def v3_document(codecs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "zarr_format": 3, "node_type": "array", "shape": [5, 7], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [5, 7]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0, "attributes": {},
        "codecs": codecs,
    }  # fmt: skip


BIG: dict[str, Any] = {"name": "bytes", "configuration": {"endian": "big"}}
DELTA: dict[str, Any] = {"name": "numcodecs.delta", "configuration": {"dtype": "<u2"}}


def sharded(codecs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    index = [{"name": "bytes", "configuration": {"endian": "little"}}]
    members = {"chunk_shape": [5, 7], "codecs": codecs, "index_codecs": index}
    return [{"name": "sharding_indexed", "configuration": members}]


def test_compressors_of_numcodecs_have_no_byte_order() -> None:
    codecs = [BIG, {"name": "numcodecs.zlib", "configuration": {"level": 2}}]
    values = np.arange(35, dtype="u2").reshape(5, 7) * 300
    for each in (codecs, sharded(codecs)):
        chunks = [f.ChunkCodecs(v3_document(each)) for f in (_zarr_private, _zarr_public)]
        one, other = (codec.encode(values) for codec in chunks)
        assert one == other
        np.testing.assert_array_equal(chunks[1].decode(one), values)


@pytest.mark.parametrize("codecs", [[DELTA, BIG], sharded([DELTA, BIG])])
def test_big_endian_filters_are_refused(codecs: list[dict[str, Any]]) -> None:
    with pytest.raises(N5UnrepresentableError, match="expected little-endian elements"):
        _zarr_public.ChunkCodecs(v3_document(codecs))
