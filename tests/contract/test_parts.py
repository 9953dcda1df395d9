"""Jobs in parts: several processes do one each, without a scheduler, and a last run ends them."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import n5zarr
from n5zarr.errors import N5Error, N5FormatError, N5UnrepresentableError
from n5zarr.tools.jobs.parts import Part
from tests.command import printed
from tests.contract.stored import by_zarr, contents, write_by_tensorstore
from tests.processes import CONTEXT
from tests.waiting import PATIENCE

SHAPE, BLOCKS = (41, 53, 61), (11, 13, 16)  # C order
N = 5
OPTIONS: list[dict[str, Any]] = [
    {"to": "zarr"}, {"to": "zarr2", "chunks": (20, 21, 22)},
    {"to": "zarr", "shards": (22, 26, 32)},
    {"to": "n5"}, {"to": "n5", "compression": "zstd"}, {"to": "n5", "chunks": (20, 21, 22)},
]  # fmt: skip


def values(seed: int = 0) -> np.ndarray:
    made = np.random.default_rng(seed).integers(0, 60000, SHAPE).astype("u2")
    made[20:40] = 0  # blocks that conversions leave out
    return made


def write(path: Path, data: np.ndarray, compression: str = "gzip") -> None:
    write_by_tensorstore(path, data, BLOCKS, compression)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("template")
    write(made / "a/v", values())
    write(made / "w", values(1)[:7], "raw")
    opaque = {
        "dimensions": [3], "blockSize": [1], "dataType": "object", "compression": {"type": "raw"},
    }  # fmt: skip
    folder = made / "of-java"
    folder.mkdir()
    (folder / "attributes.json").write_text(json.dumps(opaque))
    for number in range(3):
        block = bytes([0, 2, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, number, 1, 2])
        (folder / str(number)).write_bytes(block)
    return made


@pytest.fixture
def source(template: Path, tmp_path: Path) -> Path:
    return shutil.copytree(template, tmp_path / "in.n5")


@given(st.text(), st.integers(1, 200))
def test_each_key_belongs_to_one_part(key: str, of: int) -> None:
    assert sum(Part(number, of).owns(key) for number in range(1, of + 1)) == 1


def test_parts_are_about_equal() -> None:
    keys = [f"em/s0/{x}/{y}/{z}" for x in range(20) for y in range(20) for z in range(25)]
    sizes = [sum(Part(number, 10).owns(key) for key in keys) for number in range(1, 11)]
    assert sum(sizes) == len(keys)
    assert 900 < min(sizes) < max(sizes) < 1100  # three standard deviations


@pytest.mark.each_of(5)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_parts_make_the_files_of_one_run(options: dict[str, Any], source: Path) -> None:
    whole, out = source.parent / "whole", source.parent / "out"
    select: dict[str, Any] = {} if options == {"to": "n5"} else {"exclude": "of-java"}
    n5zarr.convert(source, whole, **select, **options)
    order = random.Random(3).sample(range(1, N + 1), N)  # noqa: S311 - any order
    written: list[set[str]] = []
    for number in order:
        before = {*contents(out)} if out.exists() else set()
        n5zarr.convert(source, out, part=(number, N), verify=True, **select, **options)
        written.append({*contents(out)} - before)
        assert not (out / "zarr.json").exists()
        assert not (out / "a/v/attributes.json").exists()
    assert sum(map(len, written)) == len(contents(out))  # no file is written by two of them
    done = n5zarr.convert(source, out, finish=True, **select, **options)
    assert contents(out) == contents(whole)
    assert done.destination == str(out)
    if options["to"] != "n5":
        np.testing.assert_array_equal(by_zarr(out, "a/v"), values())


def test_a_part_of_values_reads_its_own_share(source: Path) -> None:
    out, options = source.parent / "out.zarr", dict[str, Any](chunks=(5, 7, 9))
    parts = [n5zarr.convert(source / "a/v", out, part=(n, 3), **options) for n in (1, 2, 3)]
    n5zarr.convert(source / "a/v", out, finish=True, **options)
    assert sum(done.arrays[0].n_written for done in parts) == 9 * 8 * 7  # of the grid, each once


def test_nobody_opens_a_destination_before_it_is_finished(source: Path) -> None:
    n5 = source.parent / "out.n5"
    shutil.rmtree(source / "of-java")
    for number in (1, 2):
        n5zarr.convert(source, n5, part=f"{number}/2", chunks=(9, 9, 9))
        with pytest.raises(N5FormatError, match="--part"):
            n5zarr.open(n5)
    n5zarr.convert(source, n5, finish=True, chunks=(9, 9, 9))
    np.testing.assert_array_equal(by_zarr(n5, "a/v"), values())
    assert n5zarr.validate(n5).ok


MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"part": "0/4"}, "part: expected a number from 1 to 4, got 0 in '0/4'; the first part is 1/4"),
    ({"part": "5/4"}, "part: expected a number from 1 to 4, got 5"),
    ({"part": "3"}, "part: expected one such as '3/100', got '3'"),
    ({"part": "1/0"}, "part: expected a number from 1 to 1, got 1 in '1/0'"),
    ({"part": "1/4", "finish": True}, "got both; finish when all parts have ended"),
    ({"part": "1/4", "overwrite": True}, "each part would remove what others have written"),
    ({"finish": True}, r"expected 3 parts that have ended, got 1; run part \(--part\) 1, 3 of 3"),
    ({"part": "1/4"}, r"got others for parts: \[3\] then, \[4\] now"),
    ({"part": "1/3", "chunks": (9, 9, 9)}, "got others for chunks"),
    ({"part": "1/3", "max_memory": 2**20},
     r"for max_memory: .* all parts need the same: max_memory=1073741824 \(--max-memory 1024\)$"),
    ({"resume": True}, "expected no run in parts, got one of 3; part=... .--part. does one"),
    ({}, "expected no run in parts, got one of 3"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), MISTAKES, ids=lambda each: str(each)[:40])
def test_mistakes_change_nothing(options: dict[str, Any], message: str, source: Path) -> None:
    out = source.parent / "out.zarr"
    n5zarr.convert(source / "a/v", out, part="2/3")
    before = contents(out)
    with pytest.raises(N5UnrepresentableError, match=message) as caught:
        n5zarr.convert(source / "a/v", out, **options)
    assert caught.value.kind == "option"
    assert contents(out) == before


def test_a_run_that_no_part_has_begun_is_not_finished(source: Path) -> None:
    out = source.parent / "out.zarr"
    with pytest.raises(N5UnrepresentableError, match="expected parts to finish, got none"):
        n5zarr.convert(source / "a/v", out, finish=True)
    assert contents(out) == {}


def test_a_finished_copy_takes_no_more_parts(source: Path) -> None:
    out = source.parent / "out.zarr"
    n5zarr.convert(source / "a/v", out, part="1/1")
    n5zarr.convert(source / "a/v", out, finish=True)
    before = contents(out)
    with pytest.raises(N5UnrepresentableError, match="got a finished one"):
        n5zarr.convert(source / "a/v", out, part="1/1")
    n5zarr.convert(source / "a/v", out, finish=True)  # as a job that is started again does
    assert contents(out) == before


def test_a_run_of_all_starts_again_if_asked(source: Path) -> None:
    out, whole = source.parent / "out.zarr", source.parent / "whole.zarr"
    n5zarr.convert(source / "a/v", out, part="2/3", chunks=(9, 9, 9))
    n5zarr.convert(source / "a/v", out, overwrite=True)
    n5zarr.convert(source / "a/v", whole)
    assert contents(out) == contents(whole)


def test_a_part_that_another_run_replaces_stops(source: Path) -> None:
    out = source.parent / "out.zarr"

    def begin_again(*_: object) -> None:
        if not (source.parent / "begun").exists():
            (source.parent / "begun").touch()
            n5zarr.convert(source / "w", out, overwrite=True)

    with pytest.raises(N5UnrepresentableError, match="another one has begun"):
        n5zarr.convert(source / "w", out, part="1/2", progress=begin_again, n_workers=1)


def test_verify_of_a_part_tells_values_that_differ(source: Path) -> None:
    out, options = source.parent / "out.zarr", dict[str, Any](chunks=(9, 9, 9), part="1/1")
    n5zarr.convert(source / "a/v", out, **options)
    chunk = next(f for f in out.rglob("c/*/*/*"))
    other = next(f for f in out.rglob("c/*/*/*") if f.read_bytes() != chunk.read_bytes())
    chunk.write_bytes(other.read_bytes())
    with pytest.raises(N5Error, match="expected the values of") as caught:
        n5zarr.convert(source / "a/v", out, verify=True, **options)
    assert caught.value.kind == "differs"


def work(
    name: str, arguments: tuple[str, ...], options: dict[str, Any], left: int, out: str
) -> None:
    """Run a function of n5zarr, and end at its n-th step, if that is not 0."""

    def step(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def look(event: str, args: tuple[Any, ...]) -> None:
        is_write = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)
        is_change = is_write or event in ("os.rename", "os.link", "os.remove", "os.mkdir")
        if is_change and not isinstance(args[0], int) and out in os.fsdecode(args[0]):
            step()

    if left:
        sys.addaudithook(look)
        options["progress"] = step  # the kernel writes unseen
    getattr(n5zarr, name)(*arguments, **options)


def start(
    name: str, *arguments: str, killed_at: int = 0, below: Path | str = "", **options: Any
) -> Any:
    process = CONTEXT.Process(target=work, args=(name, arguments, options, killed_at, str(below)))
    process.start()
    return process


def ended(processes: Iterable[Any]) -> list[int]:
    """Wait for processes; return their exit codes."""
    for each in processes:
        each.join(PATIENCE)
    return [each.exitcode for each in processes]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.each_of(2)
@pytest.mark.parametrize("options", [{"to": "n5"}, {"to": "zarr", "chunks": (20, 21, 22)}], ids=str)
def test_processes_of_which_some_are_killed(options: dict[str, Any], source: Path) -> None:
    whole, out = source.parent / "whole", source.parent / "out"
    n5zarr.convert(source / "a", whole, **options)
    job = partial(start, "convert", str(source / "a"), str(out), below=out, **options)
    numbers = random.Random(7)  # noqa: S311 - moments to kill at
    killed_at = {number: numbers.randrange(1, 12) for number in (2, 3, 5)}
    codes = ended([job(part=(n, N), killed_at=killed_at.get(n, 0)) for n in range(1, N + 1)])
    assert -signal.SIGKILL in codes
    failed = [n for n, code in enumerate(codes, 1) if code]
    assert {*failed} <= {*killed_at}
    with pytest.raises(N5UnrepresentableError, match=f"got {N - len(failed)}; run part"):
        n5zarr.convert(source / "a", out, finish=True, **options)
    again = [*failed, 1]
    assert ended([job(part=(n, N)) for n in again]) == [0] * len(again)
    n5zarr.convert(source / "a", out, finish=True, **options)
    assert contents(out) == contents(whole)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.each_of(3)
@pytest.mark.parametrize("step", range(1, 17))
def test_a_killed_finish_is_repeated(step: int, source: Path) -> None:
    whole, out = source.parent / "whole.zarr", source.parent / "out.zarr"
    n5zarr.convert(source / "w", whole, chunks=9)
    for number in (1, 2):
        n5zarr.convert(source / "w", out, chunks=9, part=(number, 2))
    places = str(source / "w"), str(out)
    (code,) = ended([start("convert", *places, chunks=9, finish=True, killed_at=step, below=out)])
    if code:
        assert code == -signal.SIGKILL
        n5zarr.convert(source / "w", out, chunks=9, finish=True)
    assert contents(out) == contents(whole)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("method", ["mean", "gaussian", "mode"])
def test_parts_of_a_pyramid_make_the_files_of_one_run(method: Any, source: Path) -> None:
    options: Any = {"method": method, "chunks": (5, 6, 7), "levels": 4, "factors": (2, 2, 2)}
    group, whole = source / "a", source.parent / "whole.n5"
    (group / "v").rename(group / "s0")
    shutil.copytree(source, whole)
    n5zarr.build_pyramid(whole, "a", **options)
    for number in range(1, N + 1):
        n5zarr.build_pyramid(source, "a", part=(number, N), **options)
        assert not (group / "s1/attributes.json").exists()
    with pytest.raises(N5UnrepresentableError, match=r"got one of 5; part=\.\.\."):
        n5zarr.build_pyramid(source, "a", resume=True, **options)
    n5zarr.build_pyramid(source, "a", finish=True, **options)
    assert contents(source) == contents(whole)
    n5zarr.build_pyramid(source, "a", finish=True, **options)
    with pytest.raises(N5UnrepresentableError, match="got finished ones"):
        n5zarr.build_pyramid(source, "a", part="1/5", **options)
    assert contents(source) == contents(whole)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_parts_of_a_pyramid_in_processes(source: Path) -> None:
    options: dict[str, Any] = {"levels": 2, "chunks": (5, 6, 7)}  # 48 regions
    (source / "a/v").rename(source / "a/s0")
    whole = source.parent / "whole.n5"
    shutil.copytree(source, whole)
    n5zarr.build_pyramid(whole, "a", **options)
    below = "no file: after a task"
    job = partial(start, "build_pyramid", str(source), "a", below=below, **options)
    codes = ended([job(part=(n, N), killed_at=n == 4) for n in range(1, N + 1)])
    assert codes == [0, 0, 0, -signal.SIGKILL, 0]
    with pytest.raises(N5UnrepresentableError, match=r"got 4; run part \(--part\) 4 of 5"):
        n5zarr.build_pyramid(source, "a", finish=True, **options)
    assert ended([job(part=(4, N))]) == [0]
    n5zarr.build_pyramid(source, "a", finish=True, **options)
    assert contents(source) == contents(whole)


@pytest.mark.each_of(2)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_parts_of_a_pyramid_of_ome_zarr(version: Any, source: Path) -> None:
    (source / "a/v").rename(source / "a/s0")
    image, whole = source.parent / "image.zarr", source.parent / "whole.zarr"
    n5zarr.convert(source / "a", image, ome=True, ome_version=version)
    shutil.copytree(image, whole)
    n5zarr.build_pyramid(whole, levels=2)
    for number in (3, 1, 2):
        n5zarr.build_pyramid(image, levels=2, part=(number, 3))
    n5zarr.build_pyramid(image, levels=2, finish=True)
    assert contents(image) == contents(whole)


@pytest.mark.long
def test_parts_of_a_pyramid_of_label_multisets(tmp_path: Path) -> None:
    labels = np.random.default_rng(5).integers(0, 9, SHAPE).astype("u8")
    where = tmp_path / "mine.n5/labels"
    n5zarr.create_array(
        where / "s0", data=labels, chunks=BLOCKS, label_multiset=True, attributes={"maxId": 8}
    )
    whole = tmp_path / "whole.n5"
    shutil.copytree(tmp_path / "mine.n5", whole)
    n5zarr.build_pyramid(whole, "labels", levels=2)
    for number in (1, 2, 3):
        n5zarr.build_pyramid(where, levels=2, part=(number, 3))
    n5zarr.build_pyramid(where, levels=2, finish=True)
    assert contents(tmp_path / "mine.n5") == contents(whole)


def test_parts_of_rechunk_replace_datasets_at_the_end(source: Path) -> None:
    shutil.rmtree(source / "of-java")
    whole = source.parent / "whole.n5"
    shutil.copytree(source, whole)
    n5zarr.rechunk(whole, chunks=(9, 10, 11))
    old = contents(source)
    for number in (1, 2, 3):
        n5zarr.rechunk(source, chunks=(9, 10, 11), part=(number, 4))
    with pytest.raises(N5UnrepresentableError, match="expected no run in parts"):
        n5zarr.rechunk(source, chunks=(9, 10, 11))
    with pytest.raises(N5UnrepresentableError, match=r"got 3; run part \(--part\) 4 of 4"):
        n5zarr.rechunk(source, chunks=(9, 10, 11), finish=True)
    n5zarr.rechunk(source, chunks=(9, 10, 11), part="4/4")
    assert contents(source) == old
    done = n5zarr.rechunk(source, chunks=(9, 10, 11), finish=True)
    assert done.verified
    assert contents(source) == contents(whole)
    np.testing.assert_array_equal(by_zarr(source, "a/v"), values())
    assert [each.name for each in source.parent.iterdir() if "rechunk" in each.name] == []


def test_a_run_of_rechunk_keeps_the_parts_of_another_one(tmp_path: Path) -> None:
    for name in ("one", "other", "third"):
        write(tmp_path / "c.n5" / name, values())
    root = tmp_path / "c.n5"
    n5zarr.rechunk(root, "one", chunks=9, part="1/2")
    n5zarr.rechunk(root, "other", chunks=9, part="1/1")
    n5zarr.rechunk(root, "other", chunks=9, finish=True)
    n5zarr.rechunk(root, "third", chunks=9)
    n5zarr.rechunk(root, "one", chunks=9, part="2/2")
    n5zarr.rechunk(root, "one", chunks=9, finish=True)
    for name in ("one", "other", "third"):
        np.testing.assert_array_equal(by_zarr(root, name), values())
    assert [p.name for p in tmp_path.iterdir()] == ["c.n5"]


@pytest.mark.each_of(2)
@pytest.mark.parametrize("deep", [False, True])
def test_parts_of_validate_find_what_one_run_finds(
    deep: bool, source: Path, tmp_path: Path
) -> None:
    write(source / "many", np.random.default_rng(2).integers(0, 9, (41, 43, 47)).astype("u1"))
    for name in ("a/v/0/0/0", "a/v/3/2/1", "w/1/0/0", "many/1/1/1"):
        block = source / name
        block.write_bytes(block.read_bytes()[:-5])
    (source / "a/v/junk").write_bytes(b"")
    state = tmp_path / "check.state"
    whole = n5zarr.validate(source, deep=deep)
    n_blocks = 0
    for number in range(1, 6):
        each = n5zarr.validate(source, deep=deep, state=state, part=(number, 5))
        again = n5zarr.validate(source, deep=deep, state=state, part=(number, 5))
        assert (again.findings, again.n_blocks) == (each.findings, each.n_blocks)
        n_blocks += each.n_blocks
    assert n_blocks == whole.n_blocks  # each block is checked once
    done = n5zarr.validate(source, deep=deep, state=state, finish=True)
    assert done.findings == whole.findings
    assert (done.n_blocks, done.n_bytes) == (whole.n_blocks, whole.n_bytes)
    assert [file.name for file in tmp_path.iterdir()] == ["in.n5"]


def test_a_check_ends_when_all_parts_have_ended(source: Path, tmp_path: Path) -> None:
    state = tmp_path / "check.state"
    with pytest.raises(N5UnrepresentableError, match="expected a file that remembers"):
        n5zarr.validate(source, part="1/2")
    with pytest.raises(N5UnrepresentableError, match="expected all parts of one job, got none"):
        n5zarr.validate(source, state=state, finish=True)
    with pytest.raises(N5UnrepresentableError, match="expected a directory that exists"):
        n5zarr.validate(source, state=tmp_path / "none/check.state", part="2/3")
    n5zarr.validate(source, state=state, part="2/3")
    with (tmp_path / "check.state.part1of3").open("w") as cut:  # of a part that was killed
        cut.write((tmp_path / "check.state.part2of3").read_text().replace("2/3", "1/3")[:-9])
    with pytest.raises(N5UnrepresentableError, match=r"got 1; run part \(--part\) 1, 3 of 3"):
        n5zarr.validate(source, state=state, finish=True)
    with pytest.raises(N5UnrepresentableError, match="expected the state of this check"):
        n5zarr.validate(source, state=state, part="2/3", deep=True)
    for number in (1, 3):
        n5zarr.validate(source, state=state, part=(number, 3))
    (source / "w/0/0/0").write_bytes(b"x")  # after part of it was checked
    found = [n5zarr.validate(source, state=state, part=(n, 3)).findings for n in (1, 2, 3)]
    assert any(each.kind == "header" for findings in found for each in findings)
    with pytest.raises(N5UnrepresentableError, match=r"expected one of 3 parts, .* got 3/4; do p"):
        n5zarr.validate(source, state=state, part="3/4")
    (tmp_path / "check.state.part1of4").write_text(
        (tmp_path / "check.state.part1of3").read_text().replace("1/3", "1/4")
    )
    with pytest.raises(N5UnrepresentableError, match="got parts of 3 and parts of 4"):
        n5zarr.validate(source, state=state, finish=True)
    with pytest.raises(N5UnrepresentableError, match="remove the files of the others"):
        n5zarr.validate(source, state=state, finish=True)
    (tmp_path / "check.state.part1of4").unlink()
    assert n5zarr.validate(source, state=state, finish=True).n_blocks == 3 * 5 * 4 + 1 * 5 * 4 + 3


def test_the_commands_say_what_comes_next(source: Path) -> None:
    out = source.parent / "out.zarr"
    for number in (1, 2):
        said = printed("convert", source / "a/v", out, "--part", f"{number}/2")
        assert f"part {number}/2 has ended; when all have, the same command with --finish" in said
    assert "1 array" in printed("convert", source / "a/v", out, "--finish")
    np.testing.assert_array_equal(by_zarr(out), values())
