"""``validate`` counts the stored blocks of datasets, and reports gaps that look like lost files.

Numbers of blocks are those of the lists and files below, counted by hand.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore as ts

import n5zarr
from n5zarr import Finding
from n5zarr.tools.validate.gaps import Gaps, StoredGrid
from tests.command import printed
from tests.unit.tools.test_validate import Refusing


def grid_of(dimensions: Any, block_size: Any, positions: Iterable[tuple[int, ...]]) -> StoredGrid:
    grid = StoredGrid(dimensions, block_size)
    grid.add(list(positions))
    return grid


def notes(**grids: StoredGrid) -> dict[str, str]:
    """Return the notes about datasets of one group, without what all of them say."""
    found = Gaps({f"g/{name}": grid for name, grid in grids.items()}).notes()
    return {each.path: each.message.rpartition("; legal")[0] for each in found}


def gaps_in(root: Path, **options: Any) -> list[Finding]:
    result = n5zarr.validate(root, **options)
    return [each for each in result.findings if each.kind == "missing-blocks"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy the sample: `em/s0` of 3 x 3 x 3 blocks, `em/s1` of 2 x 2 x 2, `em/s2` of one."""
    return Path(shutil.copytree(n5zarr.sample_path(), tmp_path / "c.n5"))


WHOLE = [*product(range(5), range(7), range(3))]  # 105 blocks


@pytest.mark.parametrize(
    ("lost", "said"),
    [
        ([], {}),
        ([(2, 3, 1)], {"g/a": "missing among 104 that are stored: block 2/3/1"}),
        (
            [(0, 0, 0), (0, 0, 1), (4, 6, 2), (2, 5, 1), (1, 1, 1)],
            {"g/a": "missing among 100 that are stored: 5 blocks (0/0/0, 1/1/1, 2/5/1, ...)"},
        ),
        ([(0, 0, n) for n in range(3)] + [(3, n, 2) for n in range(3)], {}),  # 6 of 105
        ([p for p in WHOLE if p[0] == 4], {}),  # the box ends before
        (WHOLE, {}),
    ],
    ids=["none", "one", "5", "6, as of a mask", "a plane", "all"],
)
def test_a_few_gaps_among_stored_blocks_are_told(
    lost: list[tuple[int, ...]], said: dict[str, str]
) -> None:
    assert notes(a=grid_of((23, 71, 17), (5, 11, 7), set(WHOLE) - set(lost))) == said


def test_masks_of_which_the_foreground_is_stored_have_no_note() -> None:
    half = [p for p in WHOLE if sum(p) % 2]
    assert notes(a=grid_of((23, 71, 17), (5, 11, 7), half)) == {}


@pytest.mark.parametrize(
    ("dimensions", "positions", "n_blocks"),
    [((), [()], 1), ((), [], 1), ((0, 7), [], 0), ((7,), [(0,)], 3)],
)
def test_grids_without_axes_or_elements(
    dimensions: tuple[int, ...], positions: list[tuple[int, ...]], n_blocks: int
) -> None:
    gaps = Gaps({"a": grid_of(dimensions, (3,) * len(dimensions), positions)})
    (count,) = gaps.counts()
    assert (count.n_stored, count.n_blocks) == (len(positions), n_blocks)
    assert count.is_complete == (len(positions) == n_blocks)
    assert list(gaps.notes()) == []
    assert len(list(gaps.errors())) == int(not count.is_complete)


def test_levels_lack_what_their_neighbours_have() -> None:
    """Levels of 4 x 6, 2 x 3 and 1 x 2 blocks of 10 x 10; one side is rounded up."""
    fine = [*product(range(4), range(6))]
    half = [*product(range(2), range(3))]
    whole = {
        "s0": grid_of((40, 59), (10, 10), fine),
        "s1": grid_of((20, 30), (10, 10), half),
        "s2": grid_of((10, 15), (10, 10), [(0, 0), (0, 1)]),
    }
    assert notes(**whole) == {}
    # all of a level is lost
    lost = {**whole, "s1": grid_of((20, 30), (10, 10), [])}
    named = "missing where s0 has blocks: 6 blocks (0/0, 0/1, 0/2, ...)"
    more = "nothing is stored in place of 2 blocks (0/0, 0/1) of s2"
    assert notes(**lost) == {"g/s1": f"{named}; {more}"}
    # the last directories of s0: the box is smaller, and full
    cut = grid_of((40, 59), (10, 10), [p for p in fine if p[0] < 2])
    assert notes(**{**whole, "s0": cut}) == {
        "g/s0": "nothing is stored in place of 3 blocks (1/0, 1/1, 1/2) of s1"
    }


def test_a_writer_that_omits_the_fill_value_is_no_note_beside_one_that_stores_it() -> None:
    fine = [*product(range(14), range(14))]
    coarse = [(p, p) for p in range(7)]
    dense = grid_of((140, 140), (10, 10), fine)
    assert notes(s0=dense, s1=grid_of((70, 70), (10, 10), coarse)) == {}
    # here s0 is sparse, too, so that it holds something where s1 has nothing
    some = [(2 * p, 2 * p + 1) for p in range(7)]
    sparse = grid_of((140, 140), (10, 10), [*some, (0, 12)])
    assert notes(s0=sparse, s1=grid_of((70, 70), (10, 10), coarse)) == {
        "g/s1": "missing where s0 has blocks: block 0/6"
    }


def test_blocks_of_levels_that_do_not_lie_in_each_other_are_not_compared() -> None:
    fine = grid_of((60,), (7,), [(n,) for n in range(9)])
    assert notes(s0=fine, s1=grid_of((30,), (10,), [(0,), (1,)])) == {}
    assert notes(s0=fine, s1=grid_of((40,), (7,), [])) == {}  # no whole factor
    assert notes(s0=fine, raw=grid_of((30,), (14,), [])) == {}  # no level


def test_listed_levels_are_levels() -> None:
    grids = {"g/full": grid_of((12,), (3,), [(0,), (1,), (2,), (3,)]),
             "g/half": grid_of((6,), (3,), [(0,)])}  # fmt: skip
    image = {"datasets": [{"path": "full"}, {"path": "half"}]}
    (note,) = Gaps(grids, {"g": {"multiscales": [image]}}).notes()
    assert note.path == "g/half"
    assert note.message.startswith("missing where full has blocks: block 1;")


def test_huge_grids_cost_as_much_as_their_blocks() -> None:
    """Grids of 10^12 and of 10^48 positions, which no number of the processor counts."""
    for size, n_axes in ((10**4, 3), (10**12, 4)):
        rows = [(n,) * n_axes for n in range(4)]
        gaps = Gaps({"g/s0": grid_of((7 * size,) * n_axes, (7,) * n_axes, rows)})
        gaps.grids["g/s1"] = grid_of((7 * size // 2,) * n_axes, (7,) * n_axes, [(0,) * n_axes])
        first, second = gaps.errors()
        n_missing, zeros = size**n_axes - 4, "0/" * (n_axes - 1)
        one = "1/" * (n_axes - 1) + "2"
        assert f"{n_missing} blocks ({zeros}1, {one}, " in first.message
        n_more = (size // 2) ** n_axes - 1
        assert f"got 1, without {n_more} blocks ({zeros}1, ...)" in second.message
        (note,) = gaps.notes()
        assert f"missing where s0 has blocks: block {'1/' * (n_axes - 1)}1;" in note.message


def test_lost_files_are_notes_and_counted(root: Path) -> None:
    (root / "em/s0/1/2/0").unlink()
    (root / "em/s1/0/1/0").unlink()
    result = n5zarr.validate(root)
    assert result.ok
    counts = {each.path: (each.n_stored, each.n_blocks) for each in result.block_counts}
    assert counts == {"em/s0": (26, 27), "em/s1": (7, 8), "em/s2": (1, 1), "labels/s0": (27, 27)}
    said = {each.path: (each.severity, each.message) for each in gaps_in(root)}
    end = "legal if they hold only the fill value, else files were lost"
    assert said == {
        "em/s0": ("note", f"missing among 26 that are stored: block 1/2/0; {end}"),
        "em/s1": ("note", f"missing where s0 has blocks: block 0/1/0; {end}"),
    }
    assert set(gaps_in(root)) <= set(n5zarr.find_problems(root))


def test_all_blocks_can_be_expected(root: Path) -> None:
    assert n5zarr.validate(root, expect_complete=True).ok
    shutil.rmtree(root / "em/s0/2")
    (root / "em/s2/0/0/0").unlink()
    found = gaps_in(root, expect_complete=True)
    assert {each.path: (each.severity, each.message) for each in found} == {
        "em/s0": ("error", "expected 27 blocks, got 18, without 9 blocks (2/0/0, ...)"),
        "em/s2": ("error", "expected 1 block, got 0, without block 0/0/0"),
    }
    assert not n5zarr.validate(root, expect_complete=True).ok


def test_what_tensorstore_omits_is_a_gap(tmp_path: Path) -> None:
    """It writes no blocks that hold only 0."""
    metadata = {"dimensions": [15, 14], "blockSize": [3, 2], "dataType": "uint8"}
    spec = {
        "driver": "n5", "kvstore": f"file://{tmp_path}/c.n5/d/",
        "metadata": {**metadata, "compression": {"type": "raw"}},
    }  # fmt: skip
    array = ts.open(spec, create=True).result()
    values = np.ones((15, 14), np.uint8)
    values[6:9, 4:6] = 0
    array.write(values).result()
    assert not (tmp_path / "c.n5/d/2/2").exists()
    (note,) = gaps_in(tmp_path / "c.n5")
    assert note.message.startswith("missing among 34 that are stored: block 2/2;")


def test_datasets_of_unknown_blocks_are_not_counted(root: Path) -> None:
    store = Refusing(root, {"em/s0/2/1"}, PermissionError(13, "no"))
    result = n5zarr.validate(store, expect_complete=True)
    assert result.by_kind == {"unreadable": 1}
    assert [each.path for each in result.block_counts] == ["em/s1", "em/s2", "labels/s0"]


def test_the_command_counts_blocks(root: Path, tmp_path: Path) -> None:
    (root / "em/s0/1/2/0").unlink()
    lines = printed("validate", root).splitlines()
    assert lines[-4:-2] == ["  em/s0: 26 of 27 blocks stored", "  em/s1: 8 of 8 blocks stored"]
    assert "error" in printed("validate", root, "--expect-complete", status=1)
    found = json.loads(printed("validate", root, "--json"))
    assert found["block_counts"][0] == {"path": "em/s0", "n_stored": 26, "n_blocks": 27}
    for n in range(37):
        how: Any = {"shape": (7,), "chunks": (3,), "dtype": "u1"}
        array = n5zarr.create_array(tmp_path / "m.n5", path=f"a{n:02}", **how)
        array[: 6 if n % 3 else 7] = 1
    # 13 of the 37 have all three blocks
    lines = printed("validate", tmp_path / "m.n5").splitlines()
    assert lines[-12:] == [
        *(f"  a{n:02}: 2 of 3 blocks stored" for n in (1, 2, 4, 5, 7, 8, 10, 11, 13, 14)),
        "  ... and 14 more that lack blocks (--json names all)",
        "  all blocks of 13 other datasets are stored",
    ]
