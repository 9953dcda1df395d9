"""``n5zarr.convert`` keeps values, bytes and documents, and resumes interrupted runs.

What is written is read by tensorstore, and by zarr in a process that cannot import n5zarr.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import signal
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import h5py
import numpy as np
import pytest
import tensorstore as ts
import tifffile
import xarray as xr
import zarr
from PIL import Image
from zarr.codecs import BloscCodec, BytesCodec, GzipCodec, ZstdCodec

import n5zarr
from n5zarr.errors import (
    N5BlockError,
    N5Error,
    N5FormatError,
    N5UnrepresentableError,
    N5UnsupportedError,
    N5Warning,
)
from n5zarr.tools.convert.target import ZarrTarget
from tests.command import printed
from tests.contract.stored import by_tensorstore, contents, strict, write_by_tensorstore
from tests.programs import Programs

DATA = Path(__file__).parents[1] / "data"
JAVA = DATA / "java"
SAMPLE = Path(n5zarr.sample_path())
DATASETS = json.loads((JAVA / "manifest.json").read_text())["datasets"]
BY_ROOT: dict[str, list[dict[str, Any]]] = defaultdict(list)
for each in DATASETS:
    BY_ROOT[each["root"]].append(each)
HEADER = 4 + 4 * 3  # bytes before the payload of a 3-D block

# in processes of their own
WITHOUT_N5ZARR = """
import hashlib, json, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "n5zarr":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
import numpy as np, zarr
"""
# SHA-256 of all arrays below each root, big-endian, as in the manifest
READ = """
sums = {}
for root in sys.argv[1:]:
    top = zarr.open(root, mode="r")
    arrays = [("", top)] if isinstance(top, zarr.Array) else top.members(max_depth=None)
    for path, array in arrays:
        if isinstance(array, zarr.Array) and array.dtype.kind in "iufb":
            values = np.asarray(array[...])
            big = np.ascontiguousarray(values, values.dtype.newbyteorder(">"))
            sums[f"{root}:{path}"] = hashlib.sha256(big.tobytes()).hexdigest()
print(json.dumps(sums))
"""


@pytest.fixture(scope="module")
def read_without_n5zarr() -> Iterator[Callable[..., dict[str, str]]]:
    def read(*roots: Path) -> dict[str, str]:
        done = programs.run(READ, *map(str, roots))
        assert done.returncode == 0, done.stderr
        sums: dict[str, str] = json.loads(done.stdout)
        return sums

    with Programs(WITHOUT_N5ZARR, "-W", "ignore") as programs:
        yield read


@pytest.mark.each_of(3)
@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
@pytest.mark.parametrize(
    ("to", "options"),
    [
        ("zarr", {}), ("zarr2", {}), ("zarr", {"shards": 24}),
        ("zarr", {"chunks": 5, "compression": "zstd"}),
        ("zarr2", {"chunks": 5, "shards": None, "compression": "gzip"}),
    ],
    ids=str,
)  # fmt: skip
def test_fixtures_become_zarr_that_zarr_alone_reads(
    to: Any,
    options: dict[str, Any],
    tmp_path: Path,
    read_without_n5zarr: Callable[..., dict[str, str]],
) -> None:
    roots = {root: tmp_path / f"{root}.zarr" for root in BY_ROOT if root != "compressions.n5"}
    for root, out in roots.items():
        n5zarr.convert(JAVA / root, out, to=to, **options)
    sums = read_without_n5zarr(*roots.values())
    wanted = {
        f"{roots[d['root']]}:{d['path']}": d["sha256"] for d in DATASETS if d["root"] in roots
    }
    assert {key: sums.get(key) for key in wanted} == wanted


def test_every_compression_becomes_one_that_zarr_alone_reads(
    tmp_path: Path, read_without_n5zarr: Callable[..., dict[str, str]]
) -> None:
    out = tmp_path / "out.zarr"
    done = n5zarr.convert(JAVA / "compressions.n5", out, select=["*/u8*", "*/i64*"])
    sums = read_without_n5zarr(out)
    found = [d for d in BY_ROOT["compressions.n5"] if f"{out}:{d['path']}" in sums]
    assert len(found) == len(done.arrays) >= 20
    assert {d["compression"]["type"] for d in found} == {
        "raw", "gzip", "bzip2", "xz", "lz4", "blosc", "zstd"
    }  # fmt: skip
    for dataset in found:
        assert sums[f"{out}:{dataset['path']}"] == dataset["sha256"], dataset["path"]


@pytest.mark.parametrize("options", [{}, {"compression": "zstd"}, {"chunks": (7, 11, 13)}], ids=str)
def test_n5_becomes_n5_that_tensorstore_reads(options: dict[str, Any], tmp_path: Path) -> None:
    done = n5zarr.convert(SAMPLE, tmp_path / "out.n5", verify=True, **options)
    for array in done.arrays:
        wanted = by_tensorstore(SAMPLE / array.path)
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "out.n5" / array.path), wanted)


def test_containers_are_copied_byte_for_byte(tmp_path: Path) -> None:
    for root in ("varlen.n5", "labels.n5", "strings.n5", "v0.n5", "sparse.n5", "zarr2.n5"):
        n5zarr.convert(JAVA / root, tmp_path / root, verify=True)
        for file in (f for f in (JAVA / root).rglob("*") if f.is_file()):
            copied = (tmp_path / root / file.relative_to(JAVA / root)).read_bytes()
            if file.name == "attributes.json":
                ours, theirs = json.loads(copied), json.loads(file.read_bytes() or b"{}")
                assert {"n5": "4.0.0", **theirs} == {"n5": "4.0.0", **ours}
            else:
                assert copied == file.read_bytes(), file


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_zarr_v2_gets_the_names_of_axes_as_xarray_keeps_them(
    tmp_path: Path, zarr_format: Any
) -> None:
    names = ["plane", "row", "column"]
    given: Any = {"attributes": {"_ARRAY_DIMENSIONS": names}}
    if zarr_format == 3:
        given = {"dimension_names": names}
    data = np.arange(3 * 5 * 7).reshape(3, 5, 7)
    source = tmp_path / "in.zarr"
    zarr.create_array(source, name="v", data=data, zarr_format=zarr_format, **given)
    n5zarr.convert(source, tmp_path / "out.zarr", to="zarr2", verify=True)
    with xr.open_zarr(tmp_path / "out.zarr", consolidated=False) as found:
        assert found["v"].dims == tuple(names)


@pytest.fixture
def volume(tmp_path: Path) -> tuple[Path, np.ndarray]:
    """Write a dataset of 17 x 23 x 31 in blocks of 5 x 7 x 11 with tensorstore: padded edges."""
    values = np.random.default_rng(5).integers(0, 60000, (17, 23, 31), "u2")
    path = tmp_path / "in.n5" / "v"
    write_by_tensorstore(path, values, (5, 7, 11), {"type": "gzip", "level": 3})
    return path, values


def test_payloads_are_passed_through_byte_for_byte(
    volume: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, _ = volume
    done = n5zarr.convert(path, tmp_path / "out.zarr")
    assert done.arrays[0].way == "chunks"
    assert done.arrays[0].n_written == 48
    for z, y, x in np.ndindex(4, 4, 3):
        block = (path / f"{x}/{y}/{z}").read_bytes()
        chunk = (tmp_path / f"out.zarr/c/{z}/{y}/{x}").read_bytes()
        assert chunk == block[HEADER:]  # tensorstore pads: all blocks are full


def test_payloads_are_joined_into_shards_byte_for_byte(
    volume: tuple[Path, np.ndarray], tmp_path: Path
) -> None:
    path, values = volume
    done = n5zarr.convert(path, tmp_path / "out.zarr", shards=(10, 14, 22))
    assert done.arrays[0].way == "shards"
    # codec sharding_indexed: offsets and sizes of 2 x 2 x 2 chunks, then a checksum of 4 bytes
    shard = (tmp_path / "out.zarr/c/0/1/0").read_bytes()
    index = np.frombuffer(shard[-4 - 8 * 16 : -4], "<u8").reshape(2, 2, 2, 2)
    for z, y, x in np.ndindex(2, 2, 2):
        offset, size = map(int, index[z, y, x])
        block = (path / f"{x}/{y + 2}/{z}").read_bytes()
        assert shard[offset : offset + size] == block[HEADER:]
    kvstore = {"driver": "file", "path": f"{tmp_path}/out.zarr/"}
    read = ts.open({"driver": "zarr3", "kvstore": kvstore}).result().read().result()
    np.testing.assert_array_equal(read, values)


@pytest.mark.parametrize(
    "codec", [GzipCodec(level=5), ZstdCodec(level=2), BloscCodec(cname="zstd", typesize=2)], ids=str
)
def test_chunks_of_zarr_are_passed_through_into_n5(codec: Any, tmp_path: Path) -> None:
    values = np.random.default_rng(6).integers(0, 60000, (10, 14, 33), "u2")
    zarr.create_array(
        tmp_path / "in.zarr", data=values, chunks=(5, 7, 11),
        serializer=BytesCodec(endian="big"), compressors=codec,
    )  # fmt: skip
    done = n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5/v")
    assert done.arrays[0].way == "chunks"
    chunk = (tmp_path / "in.zarr/c/1/1/2").read_bytes()
    assert (tmp_path / "out.n5/v/2/1/1").read_bytes()[HEADER:] == chunk
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "out.n5/v"), values)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize(
    "dtype", ["u1", "<i4", ">f8", "bool", "complex64", "f2", "M8[ns]", "U5", "V3"], ids=str
)
@pytest.mark.filterwarnings("ignore:The data type:zarr.errors.UnstableSpecificationWarning")
def test_data_types_of_zarr_come_back(dtype: str, zarr_format: Any, tmp_path: Path) -> None:
    raw = np.random.default_rng(7).integers(1, 100, (7, 11))
    values = raw.astype("S3").astype(dtype) if dtype == "V3" else raw.astype(dtype)
    source = zarr.create_array(
        tmp_path / "in.zarr", name="g/a", shape=values.shape, dtype=values.dtype, chunks=(3, 5),
        shards=(6, 10) if zarr_format == 3 else None, zarr_format=zarr_format,
        attributes={"note": ["é", 1.5]},
    )  # fmt: skip
    source[...] = values
    n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5", verify=True)
    n5zarr.convert(tmp_path / "out.n5", tmp_path / "back.zarr", verify=True)
    back: Any = zarr.open_array(tmp_path / "back.zarr", path="g/a", mode="r")
    assert back.chunks == (3, 5)
    assert back.dtype.newbyteorder("=") == values.dtype.newbyteorder("=")
    assert back.attrs.asdict() == {"note": ["é", 1.5]}
    assert back[...].tolist() == values.tolist()


def test_fill_values_and_empty_chunks_stay(tmp_path: Path) -> None:
    source = zarr.create_array(
        tmp_path / "in.zarr", shape=(20, 30), chunks=(4, 5), dtype="f4", fill_value=-1.5
    )
    source[4:8, 5:10] = 3
    source[12:16, 10:15] = -0.0
    with pytest.warns(N5Warning, match="N5 has no fill value"):
        n5zarr.convert(tmp_path / "in.zarr", tmp_path / "out.n5/v", verify=True)
    done = n5zarr.convert(tmp_path / "out.n5/v", tmp_path / "b.zarr", shards=(8, 10), verify=True)
    assert done.arrays[0].n_written == 2
    back: Any = zarr.open_array(tmp_path / "b.zarr", mode="r")
    assert back.fill_value == -1.5
    assert np.signbit(back[12, 10])


def test_a_selection_and_a_level(tmp_path: Path) -> None:
    done = n5zarr.convert(SAMPLE, tmp_path / "a.zarr", select="em/*", exclude="em/s0")
    assert [array.path for array in done.arrays] == ["em/s1", "em/s2"]
    done = n5zarr.convert(SAMPLE, tmp_path / "b.zarr", level=1)
    assert [array.path for array in done.arrays] == ["em/s1"]
    with pytest.raises(N5UnrepresentableError, match=r"expected arrays like nothing/\*"):
        n5zarr.convert(SAMPLE, tmp_path / "c.zarr", select="nothing/*")


def test_coordinates_come_along_for_xarray(tmp_path: Path) -> None:
    done = n5zarr.convert(SAMPLE, tmp_path / "out.zarr", coords=True, shards=96)
    ways = {array.path: array.way for array in done.arrays}
    assert ways["em/s1/s1"] == "shards"
    written = xr.open_zarr(tmp_path / "out.zarr", group="em/s1", consolidated=False)
    wanted = xr.open_dataset(SAMPLE, engine="n5", group="em/s1")
    np.testing.assert_array_equal(written["s1"], wanted["s1"])
    for axis in "zyx":
        np.testing.assert_array_equal(written[axis], wanted[axis])
        assert written[axis].attrs["units"] == "nm"
    with pytest.raises(N5UnrepresentableError, match="expected Zarr v3 as destination"):
        n5zarr.convert(SAMPLE, tmp_path / "out.n5", coords=True)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    done = n5zarr.convert(SAMPLE, tmp_path / "a.zarr", chunks=32, dry_run=True)
    assert done.dry_run
    assert [(a.path, a.way) for a in done.arrays][:2] == [("em/s0", "values"), ("em/s1", "values")]
    assert done.n_bytes == sum(
        np.prod(a.shape) * (8 if "lab" in a.path else 1) for a in done.arrays
    )
    assert list(tmp_path.iterdir()) == []


def test_an_existing_destination_is_only_replaced_with_overwrite(tmp_path: Path) -> None:
    out = tmp_path / "out.zarr"
    zarr.create_array(out, name="old", shape=(3,), dtype="u1")
    for dry_run in (False, True):
        with pytest.raises(N5UnrepresentableError, match=r"--overwrite\) removes it first"):
            n5zarr.convert(SAMPLE, out, dry_run=dry_run)
    with pytest.raises(N5UnrepresentableError, match="expected a number of elements"):
        n5zarr.convert(SAMPLE, out, chunks=0, overwrite=True)
    with pytest.raises(FileNotFoundError):
        n5zarr.convert(tmp_path / "none.n5", out, overwrite=True)
    assert zarr.open_group(out, mode="r")["old"].shape == (3,)  # type: ignore[union-attr]
    n5zarr.convert(SAMPLE / "em/s2", out, overwrite=True)
    assert zarr.open_array(out, mode="r").shape == (10, 24, 32)


def test_broken_nodes_and_blocks_are_named(tmp_path: Path) -> None:
    with pytest.raises(N5UnsupportedError, match="object") as caught:
        n5zarr.convert(JAVA / "varlen.n5", tmp_path / "a.zarr")
    assert "--exclude object" in caught.value.__notes__[0]
    n5zarr.convert(SAMPLE, tmp_path / "in.n5")
    (tmp_path / "in.n5/em/s1/0/0/0").write_bytes(b"\0\0\0\3")
    with pytest.raises(N5BlockError, match=r"em/s1: block 0/0/0") as broken:
        n5zarr.convert(tmp_path / "in.n5", tmp_path / "b.zarr")
    assert "--resume" in broken.value.__notes__[0]
    assert not (tmp_path / "b.zarr/zarr.json").exists()


@pytest.mark.parametrize("options", [{}, {"shards": (32, 80, 100)}, {"compression": "zstd"}])
def test_verify_tells_a_block_that_is_damaged_in_the_source(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    shutil.copytree(SAMPLE / "em/s0", tmp_path / "in.n5")
    block = tmp_path / "in.n5/1/1/1"
    data = bytearray(block.read_bytes())
    data[len(data) // 2] ^= 255  # in the compressed stream, which is passed through
    block.write_bytes(data)
    with pytest.raises(N5BlockError, match=r"in\.n5.*1/1/1"):
        n5zarr.convert(tmp_path / "in.n5", tmp_path / "a.zarr", verify=True, **options)


def test_verify_tells_values_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = ZarrTarget.put

    def cut(self: ZarrTarget, units: Any) -> int:
        return put(self, units[1:])  # lose a chunk

    monkeypatch.setattr(ZarrTarget, "put", cut)
    said = r"expected the values of .*em/s0, got others in \["
    with pytest.raises(N5Error, match=said) as caught:
        n5zarr.convert(SAMPLE, tmp_path / "a.zarr", select="em/s0", verify=True)
    assert caught.value.kind == "differs"


N_KILLS = int(os.environ.get("N5ZARR_KILLS", "1"))
# ends itself at the n-th step: a file of chunks that is opened or renamed, or a task that is done
CONVERT = """
import signal
source, out, options, left = sys.argv[1], sys.argv[2], eval(sys.argv[3]), int(sys.argv[4])
def step(*_):
    global left
    left -= 1
    if left <= 0:  # of several threads
        os.kill(os.getpid(), signal.SIGKILL)
def look(event, args):
    is_write = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)
    if (is_write or event in ("os.rename", "os.link")) and not isinstance(args[0], int):
        name = os.fsdecode(args[0])
        if out in name and "json" not in name:
            step()
sys.addaudithook(look)
n5zarr.convert(source, out, progress=step, **options)
"""


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the chunks in a folder by name, with what changes when one is written again."""
    found = {}
    for file in folder.rglob("*"):
        name = file.relative_to(folder).as_posix()
        is_document = name.endswith((".json", ".partial", ".bin"))  # a ledger, too
        if file.is_file() and not is_document:
            found[name] = (file.stat().st_ino, file.stat().st_mtime_ns)
    return found


def states(folder: Path) -> dict[Path, tuple[int, int]]:
    """Return, for each file, what changes when it is written again."""
    return {f: (f.stat().st_ino, f.stat().st_mtime_ns) for f in folder.rglob("*")}


@pytest.mark.each_of(8)
@pytest.mark.parametrize(
    ("suffix", "options"),
    [
        ("zarr", {}), ("zarr", {"shards": (32, 64, 64)}), ("zarr", {"chunks": (8, 32, 64)}),
        ("n5", {}), ("n5", {"chunks": (8, 32, 64)}),
    ],
    ids=str,
)  # fmt: skip
def test_a_killed_run_goes_on_where_it_stopped(
    suffix: str,
    options: dict[str, Any],
    programs: Programs,
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    source = tmp_path / "in.n5"
    values = np.random.default_rng(3).integers(0, 60000, (53, 67, 83), "u2")
    n5zarr.create_array(source, path="v", data=values, chunks=(16, 32, 32), compression="zstd")
    wanted = tmp_path / f"wanted.{suffix}"
    tasks: list[object] = []
    n5zarr.convert(source, wanted, progress=lambda *_: tasks.append(0), **options)
    # the kernel writes unseen, in as many tasks as chunks
    n_steps = len(tasks) if options and suffix == "n5" else len(files_of(wanted))
    numbers = random.Random(11)  # noqa: S311 - moments to kill at
    for k in range(N_KILLS):
        out = tmp_path / f"out{k}.{suffix}"
        arguments = [str(source), str(out), repr(options), str(numbers.randrange(1, n_steps))]
        killed = programs.run(CONVERT, *arguments)
        assert killed.returncode == -signal.SIGKILL
        before = files_of(out)
        # which is the first file, and may itself have been cut
        assert (out / "n5zarr-incomplete.json").exists() or not before
        assert not (out / "zarr.json").exists()
        assert not (out / "v/attributes.json").exists()
        n5zarr.convert(source, out, resume=True, **options)
        assert {n: s for n, s in files_of(out).items() if n in before} == before
        assert contents(out) == contents(wanted)  # without unfinished files
    record_property("kills of conversions", {"kills": N_KILLS, "resumed": N_KILLS})


@pytest.mark.each_of(3)
@pytest.mark.parametrize(
    ("source", "name", "options"),
    [
        ("sample", "a.zarr", {}), ("sample", "c.zarr", {"to": "zarr2"}),
        ("sample", "b.zarr", {"chunks": 16, "shards": 32, "compression": "gzip"}),
        ("sample", "d.zarr", {"ome": True}), ("sample", "e.zarr", {"coords": True}),
        ("sample", "d04.zarr", {"ome": True, "ome_version": "0.4"}), ("sample", "f.n5", {}),
        ("sample", "g.n5/some/where", {"select": "em/*"}), ("zarr", "h.n5", {}),
        ("object", "i.n5", {}),
    ],
    ids=str,
)  # fmt: skip
def test_a_finished_run_is_resumed_without_writing(
    source: str, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    places = {"sample": SAMPLE, "zarr": tmp_path / "in.zarr", "object": JAVA / "varlen.n5"}
    zarr.create_array(places["zarr"], name="v", data=np.arange(24).reshape(4, 6), chunks=(2, 3))
    out = tmp_path / name
    first = n5zarr.convert(places[source], out, **options)
    before = states(out)
    again = n5zarr.convert(places[source], out, resume=True, **options)
    assert states(out) == before
    assert again.verified
    assert [array.path for array in again.arrays] == [array.path for array in first.arrays]
    assert again.n_bytes_written == 0
    with pytest.raises(N5UnrepresentableError, match="expected a destination that does not exist"):
        n5zarr.convert(places[source], out, **options)
    with pytest.raises(N5UnrepresentableError, match="expected the finished copy that this call"):
        n5zarr.convert(places[source], out, resume=True, **{**options, "chunks": 7})


@pytest.mark.parametrize("name", ["a.zarr", "a.n5"])
def test_the_result_of_another_source_is_not_resumed(name: str, tmp_path: Path) -> None:
    for k in (1, 2):
        data = np.arange(k, k + 35, dtype="u2").reshape(5, 7)
        n5zarr.create_array(tmp_path / f"{k}.n5", path="v", data=data, chunks=(2, 3))
    n5zarr.convert(tmp_path / "1.n5", tmp_path / name)
    before = states(tmp_path / name)
    with pytest.raises(N5Error, match=r"1.n5|2.n5") as caught:
        n5zarr.convert(tmp_path / "2.n5", tmp_path / name, resume=True)
    assert caught.value.kind == "differs"
    assert "no copy of the source" in caught.value.__notes__[0]
    assert states(tmp_path / name) == before
    n5zarr.open_array(tmp_path / "1.n5/v", "r+")[:2, :3] = 0
    n5zarr.remove_empty_blocks(tmp_path / "1.n5")
    assert not (tmp_path / "1.n5/v/0/0").exists()
    with pytest.raises(N5Error, match=r"expected the values of .*1.n5"):
        n5zarr.convert(tmp_path / "1.n5", tmp_path / name, resume=True)


def test_opaque_blocks_of_another_source_are_not_resumed(tmp_path: Path) -> None:
    shutil.copytree(JAVA / "varlen.n5", tmp_path / "in.n5")
    n5zarr.convert(tmp_path / "in.n5", tmp_path / "out.n5")
    block = next(f for f in (tmp_path / "in.n5/object").rglob("*") if f.name.isdecimal())
    block.write_bytes(block.read_bytes() + b"1")
    with pytest.raises(N5Error, match="got other bytes"):
        n5zarr.convert(tmp_path / "in.n5", tmp_path / "out.n5", resume=True)


@pytest.mark.parametrize("name", ["a.n5", "a.zarr", "part.n5"])
def test_a_run_that_was_killed_in_its_first_file_is_begun_again(tmp_path: Path, name: str) -> None:
    run: Any = n5zarr.download if name == "part.n5" else n5zarr.convert
    (tmp_path / name).mkdir()
    left = tmp_path / name / "n5zarr-incomplete.0123456789abcdef0123456789abcdef.partial"
    left.touch()
    other = tmp_path / name / "notes.txt"
    other.touch()
    with pytest.raises(N5UnrepresentableError, match="expected a"):
        run(SAMPLE, tmp_path / name)
    other.unlink()
    run(SAMPLE, tmp_path / name)
    assert not list((tmp_path / name).glob("n5zarr-incomplete.*"))
    location = tmp_path / name if name == "a.zarr" else n5zarr.N5Store(tmp_path / name)
    assert zarr.open_array(location, path="em/s0", mode="r").ndim == 3


UNFINISHED = "0.0123456789abcdef0123456789abcdef.partial"


@pytest.mark.parametrize("name", ["a.n5", "a.zarr", "a.n5/sub"])
def test_a_resumed_run_removes_what_the_killed_one_was_writing(tmp_path: Path, name: str) -> None:
    def write_some(*_: object) -> None:
        for file in ("em/s0/0", "em/s0/1/x", f"em/{UNFINISHED}/7/zarr.json"):
            left = out / file / UNFINISHED
            left.parent.mkdir(parents=True, exist_ok=True)
            left.touch()
        raise KeyboardInterrupt

    out = tmp_path / name
    with pytest.raises(KeyboardInterrupt):
        n5zarr.convert(SAMPLE, out, progress=write_some)
    if name != "a.zarr":
        said = r"with --resume.* to finish it and remove its unfinished files"
        with pytest.raises(N5Error, match=said):
            n5zarr.validate(out)
    beside = out / "em" / UNFINISHED.replace("0", "1")  # of another program, since then
    n5zarr.convert(SAMPLE, out, resume=True, progress=lambda *_: beside.touch())
    assert list(out.rglob("*.partial")) == [beside]


def test_an_incomplete_destination_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "out.n5"
    with pytest.raises(KeyboardInterrupt):
        n5zarr.convert(SAMPLE, out, progress=interrupt)
    with pytest.raises(N5Error, match="incomplete result of an interrupted run"):
        n5zarr.open(out)
    with pytest.raises(N5UnrepresentableError, match="holds the incomplete result"):
        n5zarr.convert(SAMPLE, out)
    with pytest.raises(N5UnrepresentableError, match="got others for chunks"):
        n5zarr.convert(SAMPLE, out, chunks=7, resume=True)
    n5zarr.convert(SAMPLE, out, resume=True)
    assert n5zarr.open_array(out, path="em/s2").shape == (10, 24, 32)


def test_blocks_are_passed_through_only_if_their_bytes_stay(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "a.n5/v", data=np.arange(77, dtype="u2").reshape(7, 11))
    block = (tmp_path / "a.n5/v/0/0").read_bytes()
    for k, (compression, way) in enumerate(
        {None: "blocks", "gzip": "blocks", "zstd": "values"}.items()
    ):
        done = n5zarr.convert(tmp_path / "a.n5", tmp_path / f"{k}.n5", compression=compression)
        assert done.arrays[0].way == way
        assert ((tmp_path / f"{k}.n5/v/0/0").read_bytes() == block) == (way == "blocks")


def test_zarr_without_compression_becomes_raw_blocks(tmp_path: Path) -> None:
    """Chunks of the fill value 3 are not stored there; N5 has no such value."""
    values = np.full((7, 5), 3, "<u2")
    values[4:, 3:] = 9
    array = zarr.create_array(
        tmp_path / "a.zarr", data=values, chunks=(3, 2), compressors=None, fill_value=3
    )
    assert array.nchunks_initialized < 9
    with pytest.warns(N5Warning, match="fill value other than 0"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "a.n5/v", verify=True)
    copy: Any = n5zarr.open(tmp_path / "a.n5/v")
    np.testing.assert_array_equal(copy[...], values)
    document = json.loads((tmp_path / "a.n5/v/attributes.json").read_bytes())
    assert document["compression"] == {"type": "raw"}


def test_chunks_of_a_fill_value_are_left_out_of_zarr(tmp_path: Path) -> None:
    """Blocks become larger chunks; those with nothing but the fill value are not written."""
    values = np.full((7, 11), 5, "u2")
    values[5, 9] = 6
    how: Any = {"path": "a", "data": values, "chunks": (2, 3), "fill_value": 5}
    n5zarr.create_array(tmp_path / "a.n5", **how)
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "a.zarr", chunks=(4, 6), verify=True)
    copy: Any = zarr.open_array(tmp_path / "a.zarr", path="a", mode="r")
    np.testing.assert_array_equal(copy[...], values)
    assert copy.fill_value == 5
    assert {*contents(tmp_path / "a.zarr/a/c")} == {"1/1"}


def test_blocks_of_jpeg_become_gzip_where_they_change(tmp_path: Path) -> None:
    """Elsewhere they are copied as they are: jpeg would lose data once more."""
    values = np.arange(7 * 5, dtype="u1").reshape(7, 5)
    n5zarr.create_array(tmp_path / "a.n5", path="a", data=values, chunks=(7, 5))
    encoded = io.BytesIO()
    Image.fromarray(values).save(encoded, "jpeg", quality=100)
    block = struct.pack(">HHII", 0, 2, 5, 7) + encoded.getvalue()
    (tmp_path / "a.n5/a/0/0").write_bytes(block)
    file = tmp_path / "a.n5/a/attributes.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"compression": {"type": "jpeg"}}))
    decoded = np.asarray(Image.open(encoded))
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "same.n5", verify=True)
    assert (tmp_path / "same.n5/a/0/0").read_bytes() == block
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.n5", chunks=(3, 2), verify=True)
    document = json.loads((tmp_path / "b.n5/a/attributes.json").read_bytes())
    assert document["compression"]["type"] == "gzip"
    assert document["blockSize"] == [2, 3]
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "b.n5/a"), decoded)


def test_what_only_n5_or_local_files_have_is_refused_elsewhere(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "a.zarr", data=np.ones((7, 5), "u2"))
    with pytest.raises(N5UnrepresentableError, match="expected N5, or a group of OME-Zarr"):
        n5zarr.convert(tmp_path / "a.zarr", tmp_path / "b.zarr", ome=True)
    with pytest.raises(N5UnrepresentableError, match="chunks: expected a number of elements"):
        n5zarr.convert(SAMPLE, tmp_path / "b.n5", chunks=[2.5, 3])  # type: ignore[list-item]
    assert not (tmp_path / "b.zarr").exists()
    url = f"memory://{uuid4().hex}/c.n5"
    n5zarr.create_array(url, path="a", data=np.ones((7, 5), "u1"))
    with pytest.raises(N5UnsupportedError, match="expected local files, where a dataset is"):
        n5zarr.rechunk(f"{url}/a", chunks=3)


def test_hdf5_becomes_n5(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 9999, (17, 19, 23)).astype(">u2")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        raw = file.create_dataset("g/raw", data=values, chunks=(5, 6, 7))
        raw.attrs["resolution"] = (40.0, 4.0, 4.0)
        file["g/names"] = np.array(["ä", "b"], object)
        file["g/flags"] = np.array([True, False, True])
    n5zarr.convert(tmp_path / "in.h5/g/raw", tmp_path / "a.n5/em/s0", verify=True)
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5/em/s0"), values)
    document = json.loads((tmp_path / "a.n5/em/s0/attributes.json").read_bytes())
    assert document["resolution"] == [40.0, 4.0, 4.0]
    assert document["blockSize"] == [7, 6, 5]
    n5zarr.convert(tmp_path / "in.h5", tmp_path / "b.n5", verify=True)
    group = n5zarr.open_group(tmp_path / "b.n5", path="g")
    assert group["names"][...].tolist() == ["ä", "b"]  # type: ignore[index,union-attr]
    assert group["flags"][...].tolist() == [True, False, True]  # type: ignore[index,union-attr]


def test_tiff_becomes_n5_with_its_pixel_sizes(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(0, 255, (7, 3, 101, 67), "u1")
    sizes = {"PhysicalSizeX": 0.1, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 500.0}
    units = {"PhysicalSizeXUnit": "µm", "PhysicalSizeYUnit": "µm", "PhysicalSizeZUnit": "nm"}
    tifffile.imwrite(tmp_path / "a.ome.tif", values, metadata={"axes": "ZCYX", **sizes, **units})
    n5zarr.convert(tmp_path / "a.ome.tif", tmp_path / "a.n5/v", verify=True)
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5/v"), values)
    geometry = n5zarr.geometry(tmp_path / "a.n5/v")
    assert geometry.names == ("z", "c", "y", "x")
    assert n5zarr.open_array(tmp_path / "a.n5/v").chunks == (7, 1, 101, 67)  # one channel each
    assert (geometry.units, geometry.scale) == (("nm", None, "µm", "µm"), (500.0, 1.0, 0.2, 0.1))
    (tmp_path / "stack").mkdir()
    for z in range(5):
        tifffile.imwrite(tmp_path / f"stack/{z:03}.tif", values[z, 0])
    n5zarr.convert(tmp_path / "stack/*.tif", tmp_path / "b.n5/v")
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "b.n5/v"), values[:5, 0])


def test_levels_of_an_ome_tiff_line_up(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(0, 65000, (4, 512, 256), "u2")
    sizes = {"PhysicalSizeX": 0.1, "PhysicalSizeY": 0.2, "PhysicalSizeZ": 1.0}
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        file.write(values, subifds=1, metadata={"axes": "ZYX", **sizes}, tile=(64, 64))
        file.write(values[:, ::2, ::2], subfiletype=1, tile=(64, 64))
    n5zarr.convert(tmp_path / "a.ome.tif", tmp_path / "a.n5/v", verify=True)
    level = n5zarr.geometry(tmp_path / "a.n5", "v/s1")
    assert level.scale == (1.0, 0.4, 0.2)
    assert level.translation == (0.0, 0.1, 0.05)


def test_a_stack_of_imagej_keeps_its_unit_and_spacing(tmp_path: Path) -> None:
    """ImageJ writes pixels a unit, and the distance of slices."""
    values = np.arange(3 * 5 * 7, dtype="u2").reshape(3, 5, 7)
    tifffile.imwrite(
        tmp_path / "a.tif", values, imagej=True, resolution=(4.0, 2.0),
        metadata={"axes": "ZYX", "unit": "micron", "spacing": 1.5},
    )  # fmt: skip
    n5zarr.convert(tmp_path / "a.tif", tmp_path / "a.n5/v", verify=True)
    geometry = n5zarr.geometry(tmp_path / "a.n5/v")
    assert (geometry.names, geometry.scale) == (("z", "y", "x"), (1.5, 0.5, 0.25))
    assert geometry.units == ("µm", "µm", "µm")
    tifffile.imwrite(tmp_path / "b.tif", values, imagej=True, metadata={"axes": "ZYX"})
    n5zarr.convert(tmp_path / "b.tif", tmp_path / "b.n5/v")  # without a unit, no sizes
    assert n5zarr.geometry(tmp_path / "b.n5/v").scale == (1.0, 1.0, 1.0)


def test_images_of_one_tiff_keep_apart(tmp_path: Path) -> None:
    """Images with the same name, or without one, get their number."""
    images = [np.full((5, 3 + number), number, "u1") for number in range(4)]
    with tifffile.TiffWriter(tmp_path / "a.ome.tif") as file:
        for image, name in zip(images, ("a b", "a b", "+", "a b"), strict=True):
            file.write(image, metadata={"axes": "YX", "Name": name}, photometric="minisblack")
    n5zarr.convert(tmp_path / "a.ome.tif", tmp_path / "a.n5", verify=True)
    for name, image in zip(("a_b", "a_b_1", "image2", "a_b_3"), images, strict=True):
        np.testing.assert_array_equal(by_tensorstore(tmp_path / "a.n5" / name), image)


def test_what_is_no_tiff_is_refused(tmp_path: Path) -> None:
    """A file of another format, and a pattern that matches no file."""
    (tmp_path / "a.tif").write_bytes(b"GIF89a, which is no TIFF")
    with pytest.raises(N5FormatError, match=r"a\.tif: expected a TIFF file, got ") as err:
        n5zarr.convert(tmp_path / "a.tif", tmp_path / "a.n5/v")
    assert err.value.kind == "foreign"
    with pytest.raises(FileNotFoundError, match=r"b\*\.tif: expected files that match"):
        n5zarr.convert(tmp_path / "b*.tif", tmp_path / "a.n5/v")
    assert not (tmp_path / "a.n5").exists()


def test_what_of_hdf5_has_no_form_in_n5_is_named(tmp_path: Path) -> None:
    """References and empty datasets are refused; HDF5's own attributes are not copied."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["g/a"] = np.arange(7, dtype="u2")
        file["g/a"].attrs["mine"] = 3
        file["scale"] = np.arange(7.0)
        file["scale"].make_scale("x")
        file["g/a"].dims[0].attach_scale(file["scale"])
        file["g/b"] = h5py.Empty("f4")
        file["g/c"] = np.array([file["g"].ref], h5py.ref_dtype)
        file["g/type"] = np.dtype("u2")
    with pytest.raises(N5UnsupportedError, match="expected numbers or text, got no elements"):
        n5zarr.convert(tmp_path / "in.h5/g/b", tmp_path / "a.n5/v")
    with pytest.raises(N5UnsupportedError, match="expected numbers or text, got elements of"):
        n5zarr.convert(tmp_path / "in.h5/g/c", tmp_path / "a.n5/v")
    with pytest.raises(FileNotFoundError, match=r"no dataset or group 'h/a'; there are g, scale"):
        n5zarr.convert(tmp_path / "in.h5/h/a", tmp_path / "a.n5/v")
    with pytest.raises(N5UnsupportedError, match="g/b"):
        n5zarr.convert(tmp_path / "in.h5", tmp_path / "a.n5")
    assert not (tmp_path / "a.n5").exists()
    n5zarr.convert(tmp_path / "in.h5", tmp_path / "a.n5", exclude=["g/b", "g/c"], verify=True)
    document = json.loads((tmp_path / "a.n5/g/a/attributes.json").read_bytes())
    assert document["mine"] == 3
    assert not {"DIMENSION_LIST", "CLASS"} & document.keys()
    assert not (tmp_path / "a.n5/g/type").exists()
    scale = json.loads((tmp_path / "a.n5/scale/attributes.json").read_bytes())
    assert not {"CLASS", "NAME", "REFERENCE_LIST"} & scale.keys()


def test_the_command_tells_what_it_did(tmp_path: Path) -> None:
    out = tmp_path / "out.zarr"
    said = printed("convert", SAMPLE, out, "--shards", 48)
    for part in ("em/s1", "chunks joined into shards", "4 arrays, 4.3 MiB"):
        assert part in said
    assert "--overwrite" in printed("convert", SAMPLE, out, status=2)
    assert "--to" in printed("convert", SAMPLE, tmp_path / "x", status=2)


def test_datasets_get_other_blocks_in_place(mine: Path) -> None:
    before = contents(mine)
    done = n5zarr.rechunk(mine, "em", chunks=(7, 11, 13), compression="zstd")
    assert [array.path for array in done.arrays] == ["s0", "s1", "s2"]
    for name in ("em/s0", "em/s1", "em/s2"):
        document = json.loads((mine / name / "attributes.json").read_bytes())
        assert document["blockSize"] == [
            min(n, s) for n, s in zip((13, 11, 7), document["dimensions"], strict=True)
        ]
        assert document["compression"]["type"] == "zstd"
        np.testing.assert_array_equal(by_tensorstore(mine / name), by_tensorstore(SAMPLE / name))
    others, kept = (
        {n: s for n, s in files.items() if not n.startswith("em/s")}
        for files in (contents(mine), before)
    )
    assert others == kept
    assert [f.name for f in mine.parent.iterdir()] == ["mine.n5"]


def test_positions_of_cosem_stay_there_and_back(tmp_path: Path) -> None:
    where = tmp_path / "a.n5/em/s0"
    n5zarr.create_array(
        where, shape=(5, 7, 11), dtype="u2", axes="zyx", units=["nm"] * 3,
        resolution=[40, 5, 4], offset=[3, 2, 1],
    )  # fmt: skip
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.zarr")
    n5zarr.convert(tmp_path / "b.zarr", tmp_path / "c.n5")
    for name in ("em/attributes.json", "em/s0/attributes.json"):
        one, other = (json.loads((tmp_path / c / name).read_text()) for c in ("a.n5", "c.n5"))
        assert one == other


@pytest.mark.each_of(4)
@pytest.mark.parametrize("options", [{"chunks": 2}, {"compression": "zstd"}, {}])
@pytest.mark.parametrize("spelling", ["// by hand\n{0}", "\ufeff{0}", "{{'n': NaN, {1}"])
def test_a_document_in_lenient_json_is_copied(
    tmp_path: Path, spelling: str, options: dict[str, Any]
) -> None:
    values = np.arange(1, 3 * 5 * 7 + 1, dtype="u1").reshape(3, 5, 7)
    n5zarr.create_array(tmp_path / "a.n5/v", data=values, chunks=(2, 3, 5), compression="gzip")
    document = tmp_path / "a.n5/v/attributes.json"
    text = document.read_text()
    document.write_text(spelling.format(text, text.lstrip().removeprefix("{")), encoding="utf-8")
    n5zarr.convert(tmp_path / "a.n5", tmp_path / "b.n5", **options)
    np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "b.n5/v")[...], values)
    if options:
        n5zarr.rechunk(tmp_path / "a.n5/v", **options)
        np.testing.assert_array_equal(n5zarr.open_array(tmp_path / "a.n5/v")[...], values)


@pytest.mark.parametrize(
    "options",
    [{}, {"to": "zarr2"}, {"coords": True}, {"ome": True}, {"ome": True, "ome_version": "0.4"}],
    ids=str,
)
def test_documents_of_zarr_are_json_for_all_programs(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """NaN and infinities, which Java and Python write, become Java's texts, with one warning."""
    source, out = tmp_path / "a.n5", tmp_path / "b.zarr"
    array = n5zarr.create_array(
        source, path="em/s0", data=np.ones((3, 5, 7), "f4"), axes="zyx", resolution=[40, 4, 4],
        fill_value=np.nan, units=["nm"] * 3,
    )  # fmt: skip
    array.attrs["of n5zarr"] = {"a": [1, -np.inf]}
    for path, more in (("em", '"fit": NaN'), ("em/s0", '"ends": [{"b": Infinity}, 1]')):
        file = source / path / "attributes.json"
        file.write_text(file.read_text().replace("{", f"{{{more}, ", 1))
    with pytest.warns(N5Warning, match="NaN and infinities, for which JSON has only") as caught:
        n5zarr.convert(source, out, verify=True, **options)
    assert len(caught) == 1
    said = str(caught[0].message)
    assert all(key in said for key in ("em/fit", "s0/ends/0/b", "/of n5zarr/a/1"))
    names = ("zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata")
    files = {f.relative_to(out).as_posix(): f for f in out.rglob("*") if f.name in names}
    documents = {name: strict(file.read_text()) for name, file in files.items()}
    attributes = [d.get("attributes", d) for n, d in documents.items() if not n.endswith(".zarray")]
    assert [a["fit"] for a in attributes if "fit" in a] == ["NaN"]
    assert [a["ends"] for a in attributes if "ends" in a] == [[{"b": "Infinity"}, 1]]
    assert [a["of n5zarr"] for a in attributes if "of n5zarr" in a] == [{"a": [1, "-Infinity"]}]
    path = "em/s0/s0" if "coords" in options else "em/s0"
    assert np.isnan(zarr.open_array(out / path, mode="r").fill_value)
    driver = "zarr3" if (out / path / "zarr.json").exists() else "zarr"
    spec = {"driver": driver, "kvstore": {"driver": "file", "path": str(out / path)}}
    assert ts.open(spec, read=True).result().shape == (3, 5, 7)
    if "ome" in options:
        assert n5zarr.validate(out).findings == ()
    elif "coords" not in options:
        assert n5zarr.compare(source, out).is_equal
    # a store that is open, and N5, have the number
    assert zarr.open_group(n5zarr.N5Store(source), mode="r")["em"].attrs["fit"] != "NaN"


@pytest.mark.parametrize("to", ["zarr", "zarr2", "n5"])
def test_nan_in_documents_of_zarr_is_no_reason_to_refuse_them(tmp_path: Path, to: Any) -> None:
    """zarr-python writes bare NaN."""
    group = zarr.create_group(tmp_path / "a.zarr", attributes={"g": [np.nan]})
    group.create_array("a", data=np.arange(5), attributes={"b": {"c": np.inf}})
    out = tmp_path / "out"
    if to == "n5":
        n5zarr.convert(tmp_path / "a.zarr", out, to=to)
        assert strict((out / "a/attributes.json").read_text())["b"] == {"c": None}
        assert zarr.open_array(n5zarr.N5Store(out), path="a").attrs["b"] == {"c": np.inf}
        return
    with pytest.warns(N5Warning, match="such as .NaN.: g/0, a/b/c$"):
        n5zarr.convert(tmp_path / "a.zarr", out, to=to)
    for file in [*out.rglob("zarr.json"), *out.rglob(".z*")]:
        strict(file.read_text())
