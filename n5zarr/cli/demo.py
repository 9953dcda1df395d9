"""``n5zarr demo``: read the sample container, draw it, and write a small one, as a user would."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr

import n5zarr
from n5zarr.errors import N5UnrepresentableError
from n5zarr.store.n5_store import N5Store

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["draw_levels", "report", "write"]

PICTURE = "n5zarr-demo.png"


def report(path: str, picture: str | Path = PICTURE) -> Iterator[str]:
    """Read a container like the sample, and report each step.

    Parameters
    ----------
    path : str
        A container with the pyramid ``em`` and the labels ``labels/s0``.
    picture : path, optional
        The picture to write.

    Yields
    ------
    str
        Lines of text.
    """
    root = zarr.open_group(N5Store(path), mode="r")
    array = _array(root["em/s0"])
    yield f'>>> root = zarr.open(n5zarr.N5Store("{path}"), mode="r")'
    yield '>>> array = root["em/s0"]; array'
    yield str(array)
    yield ">>> array.metadata.dimension_names, array.attrs['resolution'], array.attrs['units']"
    names = array.metadata.to_dict()["dimension_names"]
    yield f"{names}, {array.attrs['resolution']}, {array.attrs['units']}"
    yield ">>> array[20, 40:44, 60:68]"
    yield str(np.asarray(array[20, 40:44, 60:68]))
    yield ">>> box = array[10:30, 20:80, 30:110]; box.min(), box.mean(), box.max()"
    box = np.asarray(array[10:30, 20:80, 30:110])
    yield f"({box.min()}, {box.mean():.2f}, {box.max()})"
    yield '>>> np.unique(n5zarr.open(path, path="labels/s0")[20])'
    labels = _array(n5zarr.open(path, path="labels/s0"))
    yield str(np.unique(np.asarray(labels[20])))
    yield ""
    try:
        draw_levels(path, picture)
    except ValueError as err:
        message = f"output: {err}"
        raise N5UnrepresentableError(message, kind="option") from err
    except ImportError:
        yield "No picture: matplotlib is not installed (pip install 'n5zarr[plot]')."
    else:
        yield f"Wrote {Path(picture).resolve()}: the middle slice of each level of the pyramid."


def write(path: str) -> Iterator[str]:
    """Write a part of the sample into a new container, and report each step.

    Parameters
    ----------
    path : str
        The container to read from, with the dataset ``em/s0``.

    Yields
    ------
    str
        Lines of text.
    """
    source = _array(n5zarr.open(path, path="em/s0"))
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "new.n5"
        half = np.asarray(source[::2, ::2, ::2])
        yield ">>> half = array[::2, ::2, ::2]; half.shape"
        yield str(half.shape)
        yield '>>> new = n5zarr.create_array("new.n5/em/half", shape=half.shape, dtype="uint8",'
        yield '...     chunks=(16, 20, 25), axes="zyx", units=["nm"] * 3, resolution=[40, 16, 16])'
        made = n5zarr.create_array(
            new / "em" / "half",
            shape=half.shape,
            dtype="uint8",
            chunks=(16, 20, 25),
            axes="zyx",
            units=["nm"] * 3,
            resolution=[40, 16, 16],
        )
        yield ">>> new[:] = half"
        made[:] = half
        read = zarr.open_array(N5Store(new), path="em/half", mode="r")
        yield '>>> (zarr.open(n5zarr.N5Store("new.n5"), mode="r")["em/half"][:] == half).all()'
        yield str(bool((np.asarray(read[:]) == half).all()))
        yield '>>> print(open("new.n5/em/half/attributes.json").read())'
        yield (new / "em" / "half" / "attributes.json").read_text()


def _array(node: zarr.Array[Any] | zarr.Group) -> zarr.Array[Any]:
    if not isinstance(node, zarr.Array):
        message = f"{node.store}: {node.path}: expected a dataset, got a group"
        raise N5UnrepresentableError(message, kind="option")
    return node


def draw_levels(path: str, picture: str | Path) -> None:
    """Draw the middle slice of each level of ``em`` at its physical extent.

    Parameters
    ----------
    path : str
        A container with the pyramid ``em``, of levels ``s0``, ``s1``...
    picture : path
        A PNG to write.

    Raises
    ------
    ImportError
        matplotlib is not installed.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
    from matplotlib.figure import Figure  # noqa: PLC0415 - optional

    group = zarr.open_group(N5Store(path), path="em", mode="r")
    levels = [(name, _array(group[name])) for name in sorted(group.array_keys())]
    figure = Figure(figsize=(3.6 * len(levels), 3.3), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, level) in zip(figure.subplots(1, len(levels)), levels, strict=True):
        # resolution is x first, transform z first; nanometres to micrometres
        dx, dy = np.array(level.attrs["resolution"], float)[:2] / 1000
        _, y, x = np.array(level.attrs["transform"]["translate"], float) / 1000  # type: ignore[index, call-overload]
        _, height, width = level.shape
        # translation is the centre of the first pixel; imshow wants its corner
        left, top = x - dx / 2, y - dy / 2
        axes.imshow(
            np.asarray(level[level.shape[0] // 2]),
            cmap="gray",
            vmin=0,
            vmax=255,
            extent=(left, left + width * dx, top + height * dy, top),
        )
        axes.set(title=f"em/{name}  {level.shape}", xlabel="x / µm", ylabel="y / µm")
    figure.savefig(picture, dpi=120)
