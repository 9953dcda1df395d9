"""``build_pyramid`` of a dataset with any name, which is copied to ``s0`` of a group.

What it makes is compared with the pyramid after the dataset was moved by hand, and elements with
what tensorstore reads, also after a run that ended at any of its steps.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from zarr.storage import MemoryStore, ZipStore

import n5zarr
from tests.command import printed
from tests.contract.dying import KilledError, dying_at
from tests.contract.stored import by_tensorstore, contents
from tests.contract.viewers import n5_universe
from tests.multisets import random_voxels, voxels_of
from tests.programs import Programs

SHAPE, BLOCKS = (7, 13, 11), (5, 7, 11)  # 2 x 2 x 1 blocks
PLACED: dict[str, Any] = {
    "axes": "zyx", "units": ["nm"] * 3, "resolution": [40, 8, 8], "offset": [3, 5, 7],
}  # fmt: skip


def noise(shape: Sequence[int], dtype: str = "u2") -> np.ndarray:
    return np.random.default_rng(3).integers(1, 60000, shape).astype(dtype)


DATA = noise(SHAPE)


def volume(
    where: Path, data: np.ndarray = DATA, chunks: Sequence[int] = BLOCKS, **more: Any
) -> Path:
    n5zarr.create_array(where, data=data, chunks=chunks, attributes={"mine": {"a": 1}}, **more)
    return where


def by_hand(vol: Path, to: Path) -> Path:
    """Return the group after a dataset was moved to ``s0``."""
    shutil.copytree(vol, to / "s0")
    return to


@pytest.mark.each_of(4)
@pytest.mark.parametrize(
    ("shape", "chunks", "options"),
    [
        ((101,), (7,), {"compression": "raw"}),
        ((23, 37), (5, 11), {"compression": "zstd", "dtype": "f4"}),
        ((7, 29, 31), (3, 7, 11), PLACED),
        ((2, 5, 13, 17), (1, 3, 5, 7), {"dtype": "i8"}),
        ((2, 3, 5, 7, 11), (1, 2, 3, 4, 5), {"compression": "bzip2"}),
        ((2, 2, 3, 3, 5, 7), (1, 1, 2, 2, 3, 4), {"dtype": "bool", "compression": "zstd"}),
    ],
    ids=lambda value: f"{len(value)}-D" if isinstance(value, tuple) else "",
)
def test_it_is_the_pyramid_of_a_dataset_that_was_moved_by_hand(
    tmp_path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], options: Any
) -> None:
    options = dict(options)
    data = noise(shape).astype(options.pop("dtype", "u2"))
    vol = volume(tmp_path / "c.n5" / "em" / "vol", data, chunks, **options)
    before = contents(vol)
    inode = next(p for p in vol.rglob("*") if p.name.isdecimal() and p.is_file()).stat().st_ino
    # the name of the group is also that of its image
    group = tmp_path / "c.n5" / "g" / "vol"
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=2)
    made = n5zarr.build_pyramid(vol, levels=2, to="g/vol")
    assert contents(group) == contents(wanted)
    np.testing.assert_array_equal(by_tensorstore(group / "s0"), data)
    assert [level.path for level in made.levels] == ["g/vol/s1", "g/vol/s2"]
    assert made.source == vol.as_posix()
    inodes = {p.stat().st_ino for p in (group / "s0").rglob("*")}
    assert inode not in inodes  # a program that writes into the file would change both
    assert contents(vol) == before


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    vol = volume(root / "vol", **PLACED)
    before = contents(root)
    plan = n5zarr.build_pyramid(vol, levels=1, dry_run=True, to="g")
    assert contents(root) == before
    result = n5zarr.build_pyramid(vol, levels=1, to="g")
    (one,), (other,) = plan.levels, result.levels
    for name in ("path", "shape", "scale", "translation"):
        assert getattr(one, name) == getattr(other, name)
    for name in ("source", "path", "convention"):
        assert getattr(plan, name) == getattr(result, name)


def test_the_group_may_be_in_another_container_of_any_kind(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "em")
    n5zarr.build_pyramid(wanted, levels=1)
    n5zarr.build_pyramid(vol, levels=1, to=tmp_path / "new.n5" / "em")
    assert contents(tmp_path / "new.n5" / "em") == contents(wanted)
    assert json.loads((tmp_path / "new.n5" / "attributes.json").read_text()).keys() == {"n5"}
    store = n5zarr.N5Store(MemoryStore())
    n5zarr.build_pyramid(vol, levels=1, to=store)
    level: Any = n5zarr.open_array(store, path="s1")
    np.testing.assert_array_equal(level[...], by_tensorstore(wanted / "s1"))
    n5zarr.build_pyramid(store, "s1", levels=1, to="em/of s1")
    made: Any = n5zarr.open_array(store, path="em/of s1/s0")
    np.testing.assert_array_equal(made[...], by_tensorstore(wanted / "s1"))


def test_label_multisets_keep_all_their_labels(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    voxels = random_voxels(np.random.default_rng(5), (5, 7, 11))
    each = [voxels[p] for p in sorted(voxels)]
    labels = np.array([label for one in each for label in one], "u8")
    counts = [n for one in each for n in one.values()]
    rows = np.cumsum([0, *map(len, each)])
    multisets = n5zarr.LabelMultisets.from_csr(rows, labels, counts, (5, 7, 11))
    n5zarr.create_array(root / "vol", shape=(5, 7, 11), chunks=(2, 3, 4), label_multiset=True)
    n5zarr.write_label_multisets(root / "vol", multisets)
    n5zarr.build_pyramid(by_hand(root / "vol", root / "wanted"), levels=1)
    n5zarr.build_pyramid(root / "vol", levels=1, to="copied")
    s0, s1, wanted = (
        voxels_of(n5zarr.read_label_multisets(root / name))
        for name in ("copied/s0", "copied/s1", "wanted/s1")
    )
    assert s0 == voxels
    assert s1 == wanted


def _paintera(em: Path) -> None:
    attributes = {"resolution": [4, 4, 40], "offset": [1, 2, 3], "unit": "nm"}
    (em / "attributes.json").write_text(json.dumps(attributes))


def _ngff(em: Path) -> None:
    n5zarr.set_geometry(
        em / "s0", names=["z", "y", "x"], units=["nm"] * 3, scale=[40, 4, 4],
        translation=[3, 2, 1], convention="ngff",
    )  # fmt: skip


@pytest.mark.parametrize("describe", [_paintera, _ngff])
@pytest.mark.parametrize("convention", ["auto", "n5viewer", "ngff"])
def test_positions_of_groups_above_go_along(
    tmp_path: Path, describe: Callable[[Path], None], convention: Any
) -> None:
    root = tmp_path / "c.n5"
    volume(root / "em" / "s0")
    describe(root / "em")
    before = n5zarr.geometry(root, "em/s0")
    assert before.scale == (40.0, 4.0, 4.0)
    n5zarr.build_pyramid(root, "em/s0", to="new/em", levels=1, convention=convention)
    after = n5zarr.geometry(root, "new/em")
    if convention == "n5viewer":  # which has no offset
        assert after.scale == before.scale
        return
    assert (after.scale, after.translation) == (before.scale, before.translation)
    seen = n5_universe(root / "new" / "em")["s0"]
    assert (seen.scale, seen.translation) == ((4.0, 4.0, 40.0), (1.0, 2.0, 3.0))


def test_a_copy_that_ends_at_any_step_is_resumed(tmp_path: Path) -> None:
    origin = volume(tmp_path / "origin.n5" / "vol", **PLACED)
    wanted = by_hand(origin, tmp_path / "wanted.n5" / "g")
    n5zarr.build_pyramid(wanted, levels=1)
    is_done, step = False, 0
    while not is_done:
        vol = shutil.copytree(origin, tmp_path / f"{step}.n5" / "vol")
        group = vol.parent / "g"
        with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
            dying_at(step, patch)
            n5zarr.build_pyramid(vol, levels=1, to="g", n_workers=1)
            is_done = True
        assert contents(vol) == contents(origin)
        if (group / "s0" / "attributes.json").exists():
            np.testing.assert_array_equal(by_tensorstore(group / "s0"), DATA)
        if not is_done and any(group.rglob("*.json")):
            with pytest.raises(n5zarr.N5Error, match=r"resume=True|overwrite=True"):
                n5zarr.build_pyramid(vol, levels=1, to="g")
        n5zarr.build_pyramid(vol, levels=1, to="g", resume=True)
        assert contents(group) == contents(wanted)
        step += 1
    assert step > 16


KILLED = """
import os, signal, sys, n5zarr
def progress(stage, done, total):
    if stage == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
n5zarr.build_pyramid(sys.argv[1], levels=1, to="g", progress=progress)
"""


@pytest.mark.each_of(2)
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("stage", ["copy", "s1"])
def test_a_killed_process_loses_nothing(programs: Programs, tmp_path: Path, stage: str) -> None:
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "g")
    n5zarr.build_pyramid(wanted, levels=1)
    killed = programs.run(KILLED, str(vol), stage)
    assert killed.returncode == -signal.SIGKILL
    n5zarr.build_pyramid(vol, levels=1, to="g", resume=True)
    assert contents(vol.parent / "g") == contents(wanted)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("several") / "c.n5"
    volume(root / "vol")
    for name, shape in {
        "em/s0": (3, 5, 7), "lone/s0": (3, 5, 7), "em/s1": (2, 3, 4), "listed/s1": (4, 7, 6),
    }.items():  # fmt: skip
        n5zarr.create_array(root / name, data=noise(shape))
    n5zarr.create_array(root / "text", data=np.array(["a", "bc"], object), dtype="string")
    return root


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("vol", {"to": "/"}, "got the root of the file system; '.' is this directory"),
        ("vol", {"to": ""}, "expected a group or a location, got an empty name"),
        ("vol", {"to": "vol"}, "expected another group, got vol, which is the dataset or has it"),
        ("em/s0", {"to": "em"}, "expected another group, got em"),
        ("vol", {"to": "lone"}, r"lone/s0: expected a destination that does not exist"),
        ("vol", {"to": "lone", "resume": True}, "expected a copy of .*vol, got another dataset"),
        ("vol", {"to": "listed", "levels": 1}, "listed: expected no levels beside"),
        ("vol", {"to": "em/s0/x"}, "got a dataset at /em/s0"),
        ("vol", {"to": "vol/x"}, "expected a location outside the source"),
        ("vol", {"to": "x.zarr"}, r"expected a group of N5, got x.zarr; n5zarr convert"),
        ("vol", {"to": "g", "overwrite": True, "resume": True}, "expected either overwrite"),
        ("em", {"to": "g"}, "expected a dataset to copy, got a group"),
        ("no", {"to": "g"}, "/no: expected a dataset, got nothing"),
        ("text", {"to": "g"}, "expected a writable array of numbers"),
        ("vol", {"to": "g", "factors": (2, 2)}, "factors: expected 3"),
        ("vol", {"to": "g", "convention": "x"}, "convention: expected auto"),
        ("em/s1", {}, "got s1: give s0, or its group"),
        ("listed/s1", {}, r"got s1: to='listed/s1-pyramid' \(--to\)"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_written(
    several: Path, path: str, options: Any, message: str
) -> None:
    before = contents(several)
    with pytest.raises((n5zarr.N5Error, FileNotFoundError), match=message):
        n5zarr.build_pyramid(several, path, **options)
    assert contents(several) == before


def test_stores_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    read_only = n5zarr.N5Store(tmp_path / "c.n5", read_only=True)
    with ZipStore(tmp_path / "c.zip", mode="w") as archive:
        n5zarr.create_array(archive, path="vol", data=DATA, chunks=BLOCKS)
        for store in (read_only, archive):
            with pytest.raises(n5zarr.N5Error, match=r"expected a (writable )?store") as caught:
                n5zarr.build_pyramid(store, "vol", levels=1, to="g")
            assert caught.value.kind == "read-only"
            n5zarr.build_pyramid(store, "vol", levels=1, to=tmp_path / "new.n5", overwrite=True)
            np.testing.assert_array_equal(by_tensorstore(tmp_path / "new.n5" / "s0"), DATA)
    assert sorted(p.name for p in vol.iterdir()) == ["0", "attributes.json"]


def test_images_of_ome_zarr_have_their_own_way(tmp_path: Path) -> None:
    image = tmp_path / "image.zarr"
    n5zarr.convert(n5zarr.sample_path(), image, ome=True, select="em/s0")
    said = r"only reading of OME-Zarr as N5; n5zarr\.convert copies"
    with pytest.raises(n5zarr.N5Error, match=said):
        n5zarr.build_pyramid(image / "em" / "s0", levels=1, to="g")
    with pytest.raises(n5zarr.N5Error, match="expected a dataset to copy, got a group"):
        n5zarr.build_pyramid(image / "em", levels=1, to=tmp_path / "new.n5" / "em")
    n5zarr.build_pyramid(image / "em" / "s0", levels=1, to=tmp_path / "new.n5" / "em")
    expected = n5zarr.open_array(n5zarr.sample_path(), path="em/s0")[:]
    np.testing.assert_array_equal(by_tensorstore(tmp_path / "new.n5" / "em" / "s0"), expected)


def test_overwrite_replaces_the_whole_group(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    old, new = volume(root / "old", noise((13, 17, 19))), volume(root / "new")
    n5zarr.build_pyramid(old, to="g", levels=2)
    made = n5zarr.build_pyramid(new, to="g", levels=1, overwrite=True)
    assert made.removed == ("s1", "s2")
    wanted = by_hand(new, tmp_path / "wanted.n5" / "g")
    n5zarr.build_pyramid(wanted, levels=1)
    assert contents(root / "g") == contents(wanted)


@pytest.mark.parametrize("path", ["g/s0/x", "g/s1/x", "g/s2"])
def test_overwrite_does_not_remove_the_source(tmp_path: Path, path: str) -> None:
    root = tmp_path / "c.n5"
    volume(root / path)
    before = contents(root)
    for to in ("g", root / "g"):
        with pytest.raises(n5zarr.N5Error, match="expected a location outside the source"):
            n5zarr.build_pyramid(root, path, to=to, levels=1, overwrite=True)
    assert contents(root) == before


def test_a_finished_run_is_compared_with_its_source(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    n5zarr.build_pyramid(vol, to="g", levels=1)
    before = contents(tmp_path / "c.n5" / "g")
    n5zarr.build_pyramid(vol, to="g", levels=1, resume=True)
    assert contents(tmp_path / "c.n5" / "g") == before
    n5zarr.open_array(vol, "r+")[0, 0, 0] = 3
    with pytest.raises(n5zarr.N5Error, match=r"expected the values of .*vol") as caught:
        n5zarr.build_pyramid(vol, to="g", levels=1, resume=True)
    assert caught.value.kind == "differs"


PATHS = ["vol", "em/a b", "", ".hidden/vol", "x.n5/vol", "~vol", "s3"]


def commands_for(given: str, *options: str) -> tuple[str, list[str]]:
    """Return the commands that the error of a dataset with another name than ``s0`` prints.

    The first copies the dataset; the others, if any, do without a copy.
    """
    lines = printed("pyramid", given, *options, status=2).splitlines()
    copy, *more = [line.strip() for line in lines if line.startswith("  ")]
    assert not more or more.pop(0) == "or, without a copy:"
    return copy, more


def do_pyramid(command: str) -> None:
    name, *arguments = shlex.split(command)
    assert name == "n5zarr"
    assert "\ns1  (" in printed(*arguments)


@pytest.mark.each_of(3)
@pytest.mark.parametrize("path", PATHS)
def test_the_command_in_the_message_copies(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vol = volume(tmp_path / "c.n5" / path, noise((67, 71, 73)), (16, 16, 16))
    before = contents(vol)
    given = f"c.n5/{path}".rstrip("/")
    copy, moves = commands_for(given)
    assert shlex.split(copy)[2] == given
    programs = ["mkdir", "mv", "mv", "n5zarr"] if path else []
    assert [shlex.split(each)[0] for each in moves] == programs
    do_pyramid(copy)
    assert contents(vol) == before


@pytest.mark.each_of(3)
@pytest.mark.skipif(sys.platform == "win32", reason="its shells quote otherwise")
@pytest.mark.parametrize("path", [path for path in PATHS if path not in ("", "s3")])
def test_the_commands_in_the_message_move(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    vol = volume(tmp_path / "c.n5" / path, noise((67, 71, 73)), (16, 16, 16), **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / vol.name)
    n5zarr.build_pyramid(wanted)
    _, (*moves, pyramid) = commands_for(f"c.n5/{path}")
    subprocess.run(["/bin/sh", "-ec", "\n".join(moves)], check=True)
    do_pyramid(pyramid)
    assert contents(vol) == contents(wanted)
    assert not vol.with_name(f"{vol.name}-group").exists()
    np.testing.assert_array_equal(by_tensorstore(vol / "s0"), noise((67, 71, 73)))


def test_the_commands_in_the_message_keep_the_options(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    options = ["--levels", "2", "--method", "mode", "--factors", "1,2,2", "--chunks", "4,4,4"]
    options += ["--compression", '{"type": "gzip", "level": 2}', "--convention", "n5viewer"]
    copy, (*_, pyramid) = commands_for(str(vol), *options, "--overwrite")
    for command in (copy, pyramid):
        kept = shlex.split(command)[3:]
        kept = kept[2:] if "--to" in kept else kept
        pairs = list(zip(options[::2], options[1::2], strict=True))
        assert sorted(zip(kept[::2], kept[1::2], strict=True)) == sorted(pairs)
    do_pyramid(copy)
    with pytest.raises(n5zarr.N5Error) as caught:
        n5zarr.build_pyramid(vol, levels=2, method="mode")
    assert caught.value.__notes__[0].endswith(" --levels 2 --method mode")
    assert caught.value.__notes__[1] == "or, without a copy:"
    assert caught.value.__notes__[-1] == f"n5zarr pyramid {vol} --levels 2 --method mode"


LISTED = json.dumps({"multiscales": [{"datasets": [{"path": "vol", "transform": {}}]}]})


@pytest.mark.parametrize(
    "change",
    [
        lambda vol: vol.symlink_to(vol.rename(vol.with_name("elsewhere"))),
        lambda vol: shutil.copytree(vol, vol / "s0"),
        lambda vol: (vol.parent / "attributes.json").write_text(LISTED),
        lambda vol: (vol / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}'),
        lambda vol: vol.with_name("vol-group").mkdir(),
    ],
    ids=["link", "with s0", "listed", "Zarr", "name in use"],
)
def test_no_commands_move_what_others_know_by_its_path(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    vol = volume(tmp_path / "c.n5" / "em" / "vol")
    assert commands_for(str(vol))[1]
    change(vol)
    copy, moves = commands_for(str(vol))
    assert "--to" in copy
    assert not moves


@pytest.mark.filterwarnings("ignore:.*downsamplingFactors. expected them, or s0, got neither")
@pytest.mark.parametrize(
    ("name", "attributes", "by"),
    [("s2", {"resolution": [4, 4, 40]}, 4), ("vol", {"voxel_size": [40, 4, 4]}, 1)],
)
def test_no_commands_move_a_dataset_that_the_group_above_places(
    tmp_path: Path, name: str, attributes: dict[str, Any], by: int
) -> None:
    vol = volume(tmp_path / "c.n5" / "em" / name)
    (vol.parent / "attributes.json").write_text(json.dumps(attributes))
    scale = n5zarr.geometry(tmp_path / "c.n5", f"em/{name}").scale
    assert scale == (by * 40.0, by * 4.0, by * 4.0)
    copy, moves = commands_for(str(vol))
    assert not moves
    printed(*shlex.split(copy)[1:], "--levels", "1")
    assert n5zarr.geometry(tmp_path / "c.n5", f"em/{name}-pyramid").scale == scale
