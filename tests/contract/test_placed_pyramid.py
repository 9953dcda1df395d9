"""``build_pyramid`` of a dataset with any name: copied to a group, or moved to ``s0`` in place.

What it makes is compared with the pyramid after the dataset was moved by hand, and elements with
what tensorstore reads, also after a run that ended at any of its steps.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorstore
from zarr.storage import LocalStore, MemoryStore, ZipStore

import n5zarr
from n5zarr.cli.app import app
from n5zarr.storage import removing
from n5zarr.storage.local import LocalFiles
from n5zarr.storage.requests import Ends, Exists, Get, List, Stamp, Warn
from tests.command import CliRunner
from tests.contract.viewers import n5_universe
from tests.multisets import random_voxels, voxels_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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


def by_tensorstore(path: Path) -> np.ndarray:
    """Read a dataset with tensorstore, in C order."""
    kvstore = {"driver": "file", "path": str(path)}
    opened = tensorstore.open({"driver": "n5", "kvstore": kvstore}, read=True).result()
    return np.asarray(opened.read().result()).T


def content(group: Path) -> dict[str, bytes]:
    return {
        p.relative_to(group).as_posix(): p.read_bytes() for p in group.rglob("*") if p.is_file()
    }


def by_hand(vol: Path, to: Path) -> Path:
    """Return the group after a dataset was moved to ``s0``."""
    shutil.copytree(vol, to / "s0")
    return to


# ------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "to"])
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
    tmp_path: Path, shape: tuple[int, ...], chunks: tuple[int, ...], options: Any, in_place: bool
) -> None:
    options = dict(options)
    data = noise(shape).astype(options.pop("dtype", "u2"))
    vol = volume(tmp_path / "c.n5" / "em" / "vol", data, chunks, **options)
    before = content(vol)
    inode = next(p for p in vol.rglob("*") if p.name.isdecimal() and p.is_file()).stat().st_ino
    # the name of the group is also that of its image
    group = vol if in_place else tmp_path / "c.n5" / "g" / "vol"
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=2)
    where: dict[str, Any] = {"in_place": True} if in_place else {"to": "g/vol"}
    made = n5zarr.build_pyramid(vol, levels=2, **where)
    assert content(group) == content(wanted)
    np.testing.assert_array_equal(by_tensorstore(group / "s0"), data)
    assert [level.path for level in made.levels] == [
        f"{group.relative_to(tmp_path / 'c.n5').as_posix()}/s{k}" for k in (1, 2)
    ]
    assert made.source == vol.as_posix()
    inodes = {p.stat().st_ino for p in (group / "s0").rglob("*")}
    # a link where the other name goes; else a program that writes in place would change both
    assert (inode in inodes) == in_place
    assert in_place or content(vol) == before


def test_a_dry_run_says_the_same_and_writes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    vol = volume(root / "vol", **PLACED)
    before = content(root)
    planned = [
        n5zarr.build_pyramid(vol, levels=1, dry_run=True, **where)
        for where in ({"to": "g"}, {"in_place": True})
    ]
    assert content(root) == before
    made = (
        n5zarr.build_pyramid(vol, levels=1, to="g"),
        n5zarr.build_pyramid(vol, levels=1, in_place=True),
    )
    for plan, result in zip(planned, made, strict=True):
        (one,), (other,) = plan.levels, result.levels
        assert (one.path, one.shape, one.scale, one.translation) == (
            other.path, other.shape, other.scale, other.translation,
        )  # fmt: skip
        assert (plan.source, plan.path, plan.convention) == (
            result.source, result.path, result.convention,
        )  # fmt: skip


@pytest.mark.parametrize("version", ['"4.0.0"', '"2.5.1"', None])
def test_a_dataset_that_is_the_root_leaves_the_version_there(
    tmp_path: Path, version: str | None
) -> None:
    root = tmp_path / "single.n5"
    volume(root)
    document = json.loads((root / "attributes.json").read_text())
    document.pop("n5", None)
    document |= {} if version is None else {"n5": json.loads(version)}
    (root / "attributes.json").write_text(json.dumps(document))
    n5zarr.build_pyramid(root, levels=1, in_place=True)
    np.testing.assert_array_equal(by_tensorstore(root / "s0"), DATA)
    of_root, of_s0 = (json.loads((p / "attributes.json").read_text()) for p in (root, root / "s0"))
    assert of_root.get("n5") == (None if version is None else json.loads(version))
    assert "n5" not in of_s0
    assert of_s0["mine"] == {"a": 1}
    assert sorted(p.name for p in root.iterdir()) == ["attributes.json", "s0", "s1"]


def test_the_group_may_be_in_another_container_of_any_kind(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "em")
    n5zarr.build_pyramid(wanted, levels=1)
    n5zarr.build_pyramid(vol, levels=1, to=tmp_path / "new.n5" / "em")
    assert content(tmp_path / "new.n5" / "em") == content(wanted)
    assert json.loads((tmp_path / "new.n5" / "attributes.json").read_text()).keys() == {"n5"}
    store = n5zarr.N5Store(MemoryStore())
    n5zarr.build_pyramid(vol, levels=1, to=store)
    level: Any = n5zarr.open_array(store, path="s1")
    np.testing.assert_array_equal(level[...], by_tensorstore(wanted / "s1"))
    n5zarr.build_pyramid(store, "s1", levels=1, to="em/of s1")
    made: Any = n5zarr.open_array(store, path="em/of s1/s0")
    np.testing.assert_array_equal(made[...], by_tensorstore(wanted / "s1"))


def test_files_that_are_no_blocks_stay_and_blocks_outside_the_grid_go_along(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    (vol / "README.txt").write_text("mine")
    (vol / "0" / "note").write_text("beside blocks")
    (vol / "7" / "0").mkdir(parents=True)
    (vol / "7" / "0" / "0").write_bytes(b"of a larger volume")
    before = content(vol)
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    after = content(vol)
    moved = {f"s0/{name}": data for name, data in before.items() if name != "README.txt"}
    assert after["README.txt"] == b"mine"
    assert {name: after[name] for name in moved} == moved
    assert not any(name[0].isdecimal() for name in after)


def test_label_multisets_keep_all_their_labels(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    voxels = random_voxels(np.random.default_rng(5), (5, 7, 11))
    each = [voxels[p] for p in sorted(voxels)]
    multisets = n5zarr.LabelMultisets.from_csr(
        np.cumsum([0, *map(len, each)]),
        np.array([label for one in each for label in one], "u8"),
        [n for one in each for n in one.values()],
        (5, 7, 11),
    )
    n5zarr.create_array(root / "vol", shape=(5, 7, 11), chunks=(2, 3, 4), label_multiset=True)
    n5zarr.write_label_multisets(root / "vol", multisets)
    n5zarr.build_pyramid(by_hand(root / "vol", root / "wanted"), levels=1)
    for where in ({"to": "copied"}, {"in_place": True}):
        n5zarr.build_pyramid(root / "vol", levels=1, **where)
    for name in ("copied", "vol"):
        assert voxels_of(n5zarr.read_label_multisets(root / name / "s0")) == voxels
        assert voxels_of(n5zarr.read_label_multisets(root / name / "s1")) == voxels_of(
            n5zarr.read_label_multisets(root / "wanted" / "s1")
        )


# ----------------------------------------------------------------------------------- positions


def _paintera(em: Path) -> None:
    (em / "attributes.json").write_text(
        json.dumps({"resolution": [4, 4, 40], "offset": [1, 2, 3], "unit": "nm"})
    )


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


def test_positions_of_groups_above_stay_in_place(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    volume(root / "em" / "vol")
    of_all = {"axes": ["x", "y", "z"], "units": ["nm"] * 3, "resolution": [4, 4, 40]}
    (root / "em" / "attributes.json").write_text(json.dumps(of_all))
    before = n5zarr.geometry(root, "em/vol")
    assert before.scale == (40.0, 4.0, 4.0)
    n5zarr.build_pyramid(root, "em/vol", in_place=True, levels=1)
    after = n5zarr.geometry(root, "em/vol")
    assert (after.names, after.units, after.scale) == (before.names, before.units, before.scale)
    assert after.levels[1].scale == (40.0, 8.0, 8.0)


# -------------------------------------------------------------------------------- interruption


class KilledError(BaseException):
    """No handler of errors sees it, as none sees a signal that kills."""


READS = (Get, List, Stamp, Ends, Exists, Warn)


def dying_at(step: int, patch: pytest.MonkeyPatch, *, links: bool = True) -> None:
    """Raise at a step that changes something: a request, a link, or the removal of a directory."""
    steps = count()

    def die_before(owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def do(*given: Any, **named: Any) -> Any:
            is_change = not any(isinstance(each, READS) for each in given)
            if is_change and next(steps) == step:
                raise KilledError
            return method(*given, **named)

        patch.setattr(owner, name, do)

    if not links:
        patch.setattr(Path, "hardlink_to", _has_none)
    for owner, name in (
        (LocalFiles, "answer"), (LocalStore, "set"), (LocalStore, "delete"), (Path, "hardlink_to"),
        (MemoryStore, "set"), (MemoryStore, "set_sync"), (MemoryStore, "delete"),
        (MemoryStore, "delete_sync"), (MemoryStore, "delete_dir"),
        (removing, "_remove_hidden"),
    ):  # fmt: skip
        die_before(owner, name)


def _has_none(*_: object) -> None:
    raise PermissionError(1, "this file system has no links")


def each_step(
    links: bool = True, at_least: int = 15
) -> Iterator[Callable[[Callable[[], object]], bool]]:
    """Yield functions that call another one and let it die at its first step, second step, ..."""
    ended = False

    def run(do: Callable[[], object], step: int) -> bool:
        nonlocal ended
        with pytest.MonkeyPatch.context() as patch:
            dying_at(step, patch, links=links)
            try:
                do()
            except KilledError:
                return False
        ended = True
        return True

    for step in count():
        yield lambda do, step=step: run(do, step)  # type: ignore[misc]
        if ended:
            assert step > at_least
            return


def readable(vol: Path) -> np.ndarray:
    """Read a dataset by tensorstore where its document is, and check that n5zarr reads the same."""
    document = json.loads((vol / "attributes.json").read_text())
    where = vol if "dimensions" in document else vol / "s0"
    values = by_tensorstore(where)
    found: Any = n5zarr.open_array(where)
    np.testing.assert_array_equal(found[...], values)
    return values


@pytest.mark.parametrize("links", [True, False], ids=["links", "copies"])
@pytest.mark.parametrize("resume", [True, False], ids=["resume", "again"])
def test_a_run_in_place_that_ends_at_any_step_loses_nothing(
    tmp_path: Path, links: bool, resume: bool
) -> None:
    origin = volume(tmp_path / "origin.n5" / "vol", **PLACED)
    wanted = by_hand(origin, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=1)
    for number, dies in enumerate(each_step(links=links)):
        vol = shutil.copytree(origin, tmp_path / f"{number}.n5" / "vol")
        dies(lambda vol=vol: n5zarr.build_pyramid(vol, levels=1, in_place=True, n_workers=1))  # type: ignore[misc]
        np.testing.assert_array_equal(readable(vol), DATA)
        n5zarr.build_pyramid(vol, levels=1, in_place=True, resume=resume)
        assert content(vol) == content(wanted)


def test_a_run_in_place_that_ends_again_and_again_loses_nothing(tmp_path: Path) -> None:
    """Each run dies one step later than the one before, on what that left."""
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=1)
    for dies in each_step(at_least=5):
        dies(lambda: n5zarr.build_pyramid(vol, levels=1, in_place=True, n_workers=1))
        np.testing.assert_array_equal(readable(vol), DATA)
    assert content(vol) == content(wanted)


def test_a_run_in_place_in_a_store_without_files_loses_nothing() -> None:
    def made() -> n5zarr.N5Store:
        store = n5zarr.N5Store(MemoryStore())
        n5zarr.create_array(store, path="vol", data=DATA, chunks=BLOCKS, **PLACED)
        return store

    def keys(store: n5zarr.N5Store) -> dict[str, bytes]:
        return {key: value.to_bytes() for key, value in store.store._store_dict.items()}  # type: ignore[attr-defined]

    wanted = made()
    n5zarr.build_pyramid(wanted, "vol", levels=1, in_place=True)
    assert {key for key in keys(wanted) if key.startswith("vol/s0/")} == {
        f"vol/s0/{name}" for name in ("attributes.json", "0/0/0", "0/0/1", "0/1/0", "0/1/1")
    }
    for dies in each_step():
        store = made()
        dies(lambda store=store: n5zarr.build_pyramid(store, "vol", levels=1, in_place=True))  # type: ignore[misc]
        again = n5zarr.N5Store(store.store)
        node: Any = n5zarr.open(again, path="vol")
        found: Any = node if hasattr(node, "shape") else node["s0"]
        np.testing.assert_array_equal(found[...], DATA)
        n5zarr.build_pyramid(again, "vol", levels=1, in_place=True)
        assert keys(again) == keys(wanted)


def test_a_copy_that_ends_at_any_step_is_resumed(tmp_path: Path) -> None:
    origin = volume(tmp_path / "origin.n5" / "vol", **PLACED)
    wanted = by_hand(origin, tmp_path / "wanted.n5" / "g")
    n5zarr.build_pyramid(wanted, levels=1)
    for number, dies in enumerate(each_step()):
        vol = shutil.copytree(origin, tmp_path / f"{number}.n5" / "vol")
        group = vol.parent / "g"
        is_done = dies(lambda vol=vol: n5zarr.build_pyramid(vol, levels=1, to="g", n_workers=1))  # type: ignore[misc]
        assert content(vol) == content(origin)
        if (group / "s0" / "attributes.json").exists():
            np.testing.assert_array_equal(by_tensorstore(group / "s0"), DATA)
        if not is_done and any(group.rglob("*.json")):
            with pytest.raises(n5zarr.N5Error, match=r"resume=True|overwrite=True"):
                n5zarr.build_pyramid(vol, levels=1, to="g")
        n5zarr.build_pyramid(vol, levels=1, to="g", resume=True)
        assert content(group) == content(wanted)


KILLED = """
import os, signal, sys, n5zarr
def progress(stage, done, total):
    if stage == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)
n5zarr.build_pyramid(sys.argv[1], levels=1, in_place=True, progress=progress)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("stage", ["copy", "s1"])
def test_a_killed_process_loses_nothing(tmp_path: Path, stage: str) -> None:
    vol = volume(tmp_path / "c.n5" / "vol", **PLACED)
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=1)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(vol), stage], check=False)
    assert killed.returncode == -signal.SIGKILL
    np.testing.assert_array_equal(readable(vol), DATA)
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    assert content(vol) == content(wanted)


def test_what_others_write_meanwhile_goes_along(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    changed = DATA.copy()
    changed[:5, 7:] = 9

    def write(stage: str, *_: object) -> None:
        if stage == "copy" and "dimensions" in (vol / "attributes.json").read_text():
            array: Any = n5zarr.open_array(vol, "r+")
            array[:5, 7:] = 9  # a new file, which replaces the one that has two names

    n5zarr.build_pyramid(vol, levels=1, in_place=True, progress=write)
    np.testing.assert_array_equal(by_tensorstore(vol / "s0"), changed)


@pytest.mark.parametrize("is_local", [True, False], ids=["files", "store"])
def test_blocks_that_others_remove_meanwhile_do_not_come_back(
    tmp_path: Path, is_local: bool
) -> None:
    store = n5zarr.N5Store(tmp_path / "c.n5" if is_local else MemoryStore())
    n5zarr.create_array(store, path="vol", data=DATA, chunks=BLOCKS)
    changed = DATA.copy()
    changed[:5, 7:] = 0

    def write(*_: object) -> None:
        array: Any = n5zarr.open_array(store, path="vol", mode="r+")
        array[:5, 7:] = 0  # removes the block
        raise InterruptedError

    with pytest.raises(InterruptedError):
        n5zarr.build_pyramid(store, "vol", levels=1, in_place=True, progress=write)
    n5zarr.build_pyramid(store, "vol", levels=1, in_place=True)
    np.testing.assert_array_equal(n5zarr.open_array(store, path="vol/s0")[...], changed)


def test_a_writer_that_does_not_stop_ends_the_run(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    numbers = count(1)

    def write(*_: object) -> None:
        array: Any = n5zarr.open_array(vol, "r+")
        array[:5, :7] = next(numbers)

    with pytest.raises(n5zarr.N5Error, match="another program writes them") as caught:
        n5zarr.build_pyramid(vol, levels=1, in_place=True, progress=write)
    assert caught.value.kind == "changed"
    assert (readable(vol)[:5, :7] == next(numbers) - 1).all()
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    np.testing.assert_array_equal(by_tensorstore(vol / "s0")[5:], DATA[5:])


def test_attributes_that_others_change_meanwhile_end_the_run(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")

    def write(stage: str, *_: object) -> None:
        if stage == "copy":
            n5zarr.set_attribute(vol, "", "new", 5)

    with pytest.raises(n5zarr.N5Error, match="another program has changed them") as caught:
        n5zarr.build_pyramid(vol, levels=1, in_place=True, progress=write)
    assert caught.value.kind == "changed"
    np.testing.assert_array_equal(readable(vol), DATA)
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    assert json.loads((vol / "s0" / "attributes.json").read_text())["new"] == 5


def test_two_runs_in_place_end_in_one_pyramid(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    wanted = by_hand(vol, tmp_path / "wanted.n5" / "vol")
    n5zarr.build_pyramid(wanted, levels=1)
    others = iter([True])

    def another(*_: object) -> None:
        if next(others, False):
            n5zarr.build_pyramid(vol, levels=1, in_place=True)

    with pytest.raises(n5zarr.N5Error, match="one run at a time"):
        n5zarr.build_pyramid(vol, levels=1, in_place=True, progress=another)
    np.testing.assert_array_equal(readable(vol), DATA)
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    assert content(vol) == content(wanted)


# ------------------------------------------------------------------------------ links, mistakes


def test_blocks_behind_links_are_copied_and_stay_where_they_are(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    elsewhere = shutil.move(vol / "0", tmp_path / "elsewhere")
    (vol / "0").symlink_to(elsewhere)
    before = content(Path(elsewhere))
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    np.testing.assert_array_equal(by_tensorstore(vol / "s0"), DATA)
    assert content(Path(elsewhere)) == before
    assert {p.stat().st_nlink for p in Path(elsewhere).rglob("*") if p.is_file()} == {1}
    assert not (vol / "0").is_symlink()


def test_a_dataset_that_is_a_link_is_refused(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    (tmp_path / "c.n5" / "link").symlink_to(vol)
    before = content(vol)
    with pytest.raises(n5zarr.N5Error, match=re.escape(f"got a link to {vol}; give that")):
        n5zarr.build_pyramid(tmp_path / "c.n5" / "link", levels=1, in_place=True)
    assert content(vol) == before


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("vol", {"to": "g", "in_place": True}, "expected either to"),
        ("vol", {"to": "/"}, "got the root of the file system; '.' is this directory"),
        ("vol", {"to": "vol"}, r"expected another group, got vol: in_place \(--in-place\)"),
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
        ("no", {"in_place": True}, "/no: expected a dataset, got nothing"),
        ("text", {"to": "g"}, "expected a writable array of numbers"),
        ("text", {"in_place": True}, "expected a writable array of numbers"),
        ("vol", {"to": "g", "factors": (2, 2)}, "factors: expected 3"),
        ("vol", {"in_place": True, "factors": (2, 2)}, "factors: expected 3"),
        ("vol", {"in_place": True, "convention": "x"}, "convention: expected auto"),
        ("em/s1", {"in_place": True}, "got s1: give s0, or its group"),
        ("em/s1", {}, "got s1: give s0, or its group"),
        ("listed/s1", {}, r"got s1: to='listed/s1-pyramid' \(--to\)"),
        ("full", {"in_place": True}, "expected nothing at full/s0, got files; to"),
        ("listed/vol", {"in_place": True}, "that no group above it lists, got one in multiscales"),
        ("beside", {"in_place": True}, "no documents of Zarr.* got zarr.json; n5zarr sidecar"),
    ],
)  # fmt: skip
def test_mistakes_are_told_before_anything_is_written(
    tmp_path: Path, path: str, options: Any, message: str
) -> None:
    root = tmp_path / "c.n5"
    for name in ("vol", "full", "listed/vol", "beside"):
        volume(root / name)
    n5zarr.create_array(root / "em" / "s0", data=noise((3, 5, 7)))
    n5zarr.create_array(root / "lone" / "s0", data=noise((3, 5, 7)))
    n5zarr.create_array(root / "em" / "s1", data=noise((2, 3, 4)))
    n5zarr.create_array(root / "listed" / "s1", data=noise((4, 7, 6)))
    n5zarr.create_array(root / "text", data=np.array(["a", "bc"], object), dtype="string")
    shutil.copytree(root / "vol", root / "full" / "s0")
    image = {"datasets": [{"path": "vol", "transform": {}}]}
    (root / "listed" / "attributes.json").write_text(json.dumps({"multiscales": [image]}))
    n5zarr.sidecar(root / "beside")
    before = content(root)
    with pytest.raises((n5zarr.N5Error, FileNotFoundError), match=message):
        n5zarr.build_pyramid(root, path, **options)
    assert content(root) == before


def test_stores_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    read_only = n5zarr.N5Store(tmp_path / "c.n5", read_only=True)
    with ZipStore(tmp_path / "c.zip", mode="w") as archive:
        n5zarr.create_array(archive, path="vol", data=DATA, chunks=BLOCKS)
        for store in (read_only, archive):
            for where in ({"to": "g"}, {"in_place": True}):
                with pytest.raises(n5zarr.N5Error, match=r"expected a (writable )?store") as caught:
                    n5zarr.build_pyramid(store, "vol", levels=1, **where)
                assert caught.value.kind == "read-only"
            n5zarr.build_pyramid(store, "vol", levels=1, to=tmp_path / "new.n5", overwrite=True)
            np.testing.assert_array_equal(by_tensorstore(tmp_path / "new.n5" / "s0"), DATA)
    assert sorted(p.name for p in vol.iterdir()) == ["0", "attributes.json"]


def test_images_of_ome_zarr_have_their_own_way(tmp_path: Path) -> None:
    image = tmp_path / "image.zarr"
    n5zarr.convert(n5zarr.sample_path(), image, ome=True, select="em/s0")
    for where in ({"to": "g"}, {"in_place": True}):
        with pytest.raises(n5zarr.N5Error, match="expected a dataset of N5, got OME-Zarr"):
            n5zarr.build_pyramid(image / "em", levels=1, **where)


def test_overwrite_replaces_the_whole_group(tmp_path: Path) -> None:
    root = tmp_path / "c.n5"
    old, new = volume(root / "old", noise((13, 17, 19))), volume(root / "new")
    n5zarr.build_pyramid(old, to="g", levels=2)
    made = n5zarr.build_pyramid(new, to="g", levels=1, overwrite=True)
    assert made.removed == ("s1", "s2")
    wanted = by_hand(new, tmp_path / "wanted.n5" / "g")
    n5zarr.build_pyramid(wanted, levels=1)
    assert content(root / "g") == content(wanted)


@pytest.mark.parametrize("path", ["g/s0/x", "g/s1/x", "g/s2"])
def test_overwrite_does_not_remove_the_source(tmp_path: Path, path: str) -> None:
    root = tmp_path / "c.n5"
    volume(root / path)
    before = content(root)
    for to in ("g", root / "g"):
        with pytest.raises(n5zarr.N5Error, match="expected a location outside the source"):
            n5zarr.build_pyramid(root, path, to=to, levels=1, overwrite=True)
    assert content(root) == before


def test_a_finished_run_is_compared_with_its_source(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    n5zarr.build_pyramid(vol, to="g", levels=1)
    before = content(tmp_path / "c.n5" / "g")
    n5zarr.build_pyramid(vol, to="g", levels=1, resume=True)
    assert content(tmp_path / "c.n5" / "g") == before
    n5zarr.open_array(vol, "r+")[0, 0, 0] = 3
    with pytest.raises(n5zarr.N5Error, match=r"expected the values of .*vol") as caught:
        n5zarr.build_pyramid(vol, to="g", levels=1, resume=True)
    assert caught.value.kind == "differs"


def test_an_unfinished_move_is_told(tmp_path: Path) -> None:
    vol = volume(tmp_path / "c.n5" / "vol")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(removing, "_remove_hidden", _has_none)
        with pytest.raises(PermissionError, match="no links"):
            n5zarr.build_pyramid(vol, levels=1, in_place=True)
    with pytest.raises(n5zarr.N5Error, match=r"a run of in_place \(--in-place\) has not ended"):
        n5zarr.build_pyramid(vol, levels=1)
    n5zarr.build_pyramid(vol, levels=1, in_place=True)
    assert sorted(p.name for p in vol.iterdir()) == ["attributes.json", "s0", "s1"]


# --------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("path", ["vol", "em/a b", "", ".hidden/vol", "x.n5/vol", "~vol", "s3"])
def test_the_commands_in_the_message_work(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    volume(tmp_path / "c.n5" / path, noise((67, 71, 73)), (16, 16, 16))
    given = f"c.n5/{path}".rstrip("/")
    result = CliRunner().invoke(app, ["pyramid", given])
    assert result.exit_code == 2
    commands = [line.strip() for line in result.output.splitlines() if line.startswith("  ")]
    assert len(commands) == 2
    for command in commands:
        name, verb, *arguments = shlex.split(command)
        assert (name, verb, arguments[0]) == ("n5zarr", "pyramid", given)
        done = CliRunner().invoke(app, [verb, *arguments])
        assert done.exit_code == 0, done.output
        assert "s1  (34, 36, 37)" in done.output
    np.testing.assert_array_equal(
        by_tensorstore(tmp_path / "c.n5" / path / "s0"), noise((67, 71, 73))
    )
