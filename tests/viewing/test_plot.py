"""Figures of images have axes in physical units, and values at the right places."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

import n5zarr
from n5zarr.errors import N5MissingDependencyError
from tests.contract.stored import by_tensorstore

SAMPLE = Path(n5zarr.sample_path())


@pytest.fixture(autouse=True)
def _headless() -> Iterator[None]:
    before = mpl.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


def test_slices_are_at_their_places() -> None:
    stored = by_tensorstore(SAMPLE / "em/s1").T  # x, y, z
    figure = n5zarr.plot(SAMPLE, level=1, position=(20, 48, 64))
    xy, zy, xz, bar = figure.axes
    # position 400, 384, 512 nm is element 9.75, 23.75, 31.75
    np.testing.assert_array_equal(xy.images[0].get_array(), stored[:, :, 10].T)
    np.testing.assert_array_equal(zy.images[0].get_array(), stored[32])
    np.testing.assert_array_equal(xz.images[0].get_array(), stored[:, 24].T)
    x, y, z = (-0.004, 1.02), (-0.004, 0.764), (-0.01, 0.79)
    for axes, across, down in ((xy, x, y), (zy, z, y), (xz, x, z)):
        np.testing.assert_allclose(axes.get_xlim(), across)
        np.testing.assert_allclose(axes.get_ylim(), down[::-1])
        assert axes.get_aspect() == 1
    labels = [(a.get_xlabel(), a.get_ylabel(), a.get_title()) for a in (xy, zy, xz)]
    assert labels == [
        ("x / µm", "y / µm", "z = 0.41 µm"),
        ("z / µm", "y / µm", "x = 0.516 µm"),
        ("x / µm", "z / µm", "y = 0.388 µm"),
    ]
    assert bar.get_ylim() == (0, 255)
    assert figure.number in plt.get_fignums()


@pytest.mark.parametrize("what", ["labels", "channels", "bool", "flat"])
def test_all_kinds_are_drawn_without_a_warning(what: str, tmp_path: Path) -> None:
    values: Any = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7) % 4
    names = {"labels": "tzyx", "channels": "czyx", "bool": "tzyx", "flat": "yx"}[what]
    data = (values[0, :, :, 0] if what == "flat" else values).astype(
        "?" if what == "bool" else "u2"
    )
    array: Any = n5zarr.create_array(tmp_path / "c.n5/a", data=data, axes=names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = n5zarr.plot(array, labels=["*"] if what == "labels" else ())
        figure.savefig(tmp_path / "a.png")
    legend = [text.get_text() for each in figure.legends for text in each.get_texts()]
    expected = {"labels": ["0", "1", "2", "3"], "channels": ["channel 0", "channel 1"]}
    assert legend == expected.get(what, [])


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(N5MissingDependencyError, match=r"n5zarr\[plot\]"):
        n5zarr.plot(SAMPLE)


def test_a_legend_has_a_dozen_labels_and_no_more(tmp_path: Path) -> None:
    for n in (12, 13):
        labels = np.arange(35, dtype="u2").reshape(7, 5) % n
        n5zarr.create_array(tmp_path / f"{n}.n5", path="a", data=labels, axes="yx")
    twelve, thirteen = (n5zarr.plot(tmp_path / f"{n}.n5", labels=["*"]) for n in (12, 13))
    texts = [text.get_text() for each in twelve.legends for text in each.get_texts()]
    assert texts == [str(n) for n in range(12)]
    assert not thirteen.legends


def test_a_figure_that_a_cell_returns_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inline backend shows open figures, too: so it is closed, and IPython shows the value."""
    figure: Any = n5zarr.plot(SAMPLE)
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()
    assert figure.number in plt.get_fignums()  # another backend
    monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    with pytest.raises(NotImplementedError):
        figure._ipython_display_()
    assert figure.number not in plt.get_fignums()
