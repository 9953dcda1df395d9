"""``open_array``, ``open_group``, ``create_array(data=)``, ``fill_missing`` and ``geometry``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import zarr
from zarr.errors import ChunkNotFoundError
from zarr.storage import MemoryStore

import n5zarr
from n5zarr import N5Store
from n5zarr.errors import N5Error, N5UnrepresentableError

if TYPE_CHECKING:
    from pathlib import Path

VALUES = np.arange(35, dtype="u2").reshape(5, 7)


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return MemoryStore() if request.param == "memory" else tmp_path / "c.n5"


# ---------------------------------------------------------------------- arrays and groups


def test_an_array_of_data(place: Any) -> None:
    array = n5zarr.create_array(place, path="g/x", data=VALUES, chunks=(2, 3), compression="zstd")
    assert (array.shape, array.dtype) == ((5, 7), np.dtype("u2"))
    found = n5zarr.open_array(place, path="g/x", shape=(5, 7), compression={"type": "zstd"})
    np.testing.assert_array_equal(found[...], VALUES)
    wider = n5zarr.create_array(place, path="g/y", data=VALUES.tolist(), dtype="f4", shape=(5, 7))
    np.testing.assert_array_equal(wider[...], VALUES.astype("f4"))
    scalar = n5zarr.create_array(place, path="g/z", data=3.5)
    assert (scalar.shape, float(scalar[...])) == ((), 3.5)  # type: ignore[arg-type]
    raw = n5zarr.create_array(place, path="g/w", data=VALUES, compression=None)
    assert raw.compressors == ()


def test_data_that_contradict_are_refused(place: Any) -> None:
    for wrong in (
        {"data": VALUES, "shape": (7, 5)},
        {"shape": (5, 7)},
        {"dtype": "u2"},
        {"data": VALUES, "compression": "zap"},
    ):
        options: dict[str, Any] = wrong
        with pytest.raises(N5Error):
            n5zarr.create_array(place, path="x", **options)
    with pytest.raises(FileNotFoundError):
        n5zarr.open(place, path="x")


def test_opening_what_is_of_the_other_kind(place: Any) -> None:
    n5zarr.create_array(place, path="g/x", data=VALUES)
    assert sorted(n5zarr.open_group(place, path="g")) == ["x"]
    assert n5zarr.open_group(place, "a", path="new").store_path.path == "new"
    with pytest.raises(N5UnrepresentableError, match="expected an array, got a group"):
        n5zarr.open_array(place, path="g")
    with pytest.raises(N5UnrepresentableError, match="expected a group, got an array"):
        n5zarr.open_group(place, path="g/x")
    for opening in (n5zarr.open_array, n5zarr.open_group):
        with pytest.raises(FileNotFoundError):
            opening(place, path="nothing")


def test_missing_blocks_can_be_errors(place: Any) -> None:
    array = n5zarr.create_array(place, path="x", shape=(5, 7), chunks=(2, 3), dtype="u2")
    array[2:4, 3:6] = 7
    careful = n5zarr.open_array(place, path="x", fill_missing=False)
    assert (careful[2:4, 3:6] == 7).all()  # type: ignore[union-attr]
    boxes: list[Any] = [(slice(None), slice(None)), (0, 0), (slice(1, 3), slice(3, 6))]
    for box in boxes:
        with pytest.raises(ChunkNotFoundError):
            careful[box]
    assert n5zarr.open_array(place, path="x")[0, 0] == 0
    with pytest.raises(N5UnrepresentableError, match="fill_missing: expected only with an array"):
        n5zarr.open(place, fill_missing=False)


# ---------------------------------------------------------------------- geometry


def test_the_geometry_of_an_array(place: Any) -> None:
    array = n5zarr.create_array(
        place, path="em/s0", shape=(5, 7, 11), dtype="u1", axes="zyx", units=["um", "nm", "nm"],
        resolution=[40, 8, 4], offset=[400, 80, 0],
    )  # fmt: skip
    found = n5zarr.geometry(array)
    assert (found.path, found.shape, found.names) == ("em/s0", (5, 7, 11), ("z", "y", "x"))
    assert found.units == ("um", "nm", "nm")
    assert (found.scale, found.translation) == ((40.0, 8.0, 4.0), (400.0, 80.0, 0.0))
    assert n5zarr.geometry(place, "em/s0") == found
    assert n5zarr.geometry(zarr.open_group(N5Store(place), path="em"), "s0") == found
    swapped = n5zarr.geometry(place, "em/s0", axis_order="F")
    assert (swapped.shape, swapped.names) == ((11, 7, 5), ("x", "y", "z"))
    assert (swapped.scale, swapped.translation) == ((4.0, 8.0, 40.0), (0.0, 80.0, 400.0))


def test_the_geometry_of_what_says_nothing(place: Any) -> None:
    n5zarr.create_array(place, path="x", shape=(5, 7), dtype="u1")
    found = n5zarr.geometry(place, "x")
    assert (found.names, found.units) == (("dim_0", "dim_1"), (None, None))
    assert (found.scale, found.translation, found.convention) == ((1, 1), (0, 0), None)


def test_the_geometry_of_the_levels_of_others(tmp_path: Path) -> None:
    """COSEM's, in C order, as OpenOrganelle's containers have them; n5-viewer's, in N5 order."""
    root = tmp_path / "c.n5"
    for k in (1, 0, 2):
        scale = [5.24 * 2**k, 4.0 * 2**k, 4.0 * 2**k]
        offset = [s / 2 - f / 2 for s, f in zip(scale, [5.24, 4, 4], strict=True)]
        transform: Any = {
            "axes": ["z", "y", "x"], "units": ["nm"] * 3, "scale": scale, "translate": offset,
        }  # fmt: skip
        n5zarr.create_array(
            root, path=f"em/s{k}", shape=(20 >> k, 28 >> k, 44 >> k), dtype="u1",
            attributes={"transform": transform},
        )  # fmt: skip
    found = n5zarr.geometry(root, "em")
    assert found.convention == "cosem"
    assert [level.path for level in found.levels] == ["em/s0", "em/s1", "em/s2"]
    assert [level.scale for level in found.levels] == [
        (5.24, 4, 4), (10.48, 8, 8), (20.96, 16, 16),
    ]  # fmt: skip
    assert found.levels[2].translation == pytest.approx((7.86, 6, 6))
    assert (found.path, found.scale) == ("em/s0", (5.24, 4, 4))

    (root / "bdv" / "s0").mkdir(parents=True)
    (root / "bdv" / "s0" / "attributes.json").write_text(
        json.dumps({
            "dataType": "uint8", "dimensions": [11, 7, 5], "blockSize": [11, 7, 5],
            "compression": {"type": "raw"},
            "pixelResolution": {"unit": "um", "dimensions": [0.1, 0.2, 0.5]},
        })
    )  # fmt: skip
    viewer = n5zarr.geometry(root / "bdv", "s0")
    assert (viewer.names, viewer.scale) == (("z", "y", "x"), (0.5, 0.2, 0.1))
    assert viewer.units == ("um",) * 3


def test_what_has_no_geometry_is_refused(tmp_path: Path) -> None:
    n5zarr.create_array(tmp_path / "c.n5", path="a/x", shape=(5, 7), dtype="u1")
    with pytest.raises(FileNotFoundError):
        n5zarr.geometry(tmp_path / "c.n5", "nothing")
    with pytest.raises(N5UnrepresentableError, match="expected datasets that are levels"):
        n5zarr.geometry(tmp_path / "c.n5")
    plain = zarr.create_array(MemoryStore(), shape=(3,), dtype="u1")
    with pytest.raises(N5UnrepresentableError, match="expected an array or a group of an N5Store"):
        n5zarr.geometry(plain)
