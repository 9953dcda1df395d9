"""``n5zarr.register``: change the registrations of views in BigDataViewer's XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from n5zarr.bigdataviewer.description import Description, parse_xml
from n5zarr.bigdataviewer.project import XmlFile, described
from n5zarr.bigdataviewer.registrations import (
    View,
    ViewTransform,
    read_transforms,
    with_registrations,
)
from n5zarr.bigdataviewer.xml_text import parsed_xml
from n5zarr.container.options import require
from n5zarr.errors import ErrorsAt, option_error
from n5zarr.storage.place import Backend, Location, place_of
from n5zarr.store.info import ranges

type Given = npt.ArrayLike | Sequence[tuple[str, npt.ArrayLike]]
type Registrations = Mapping[Any, Given]
"""Transforms of views, by setup, or by setup and time point: matrices, or names with matrices."""


def read_registrations(
    location: Location,
    *,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> dict[View, tuple[ViewTransform, ...]]:
    """Read the registrations of views, as BigDataViewer's XML lists them.

    Parameters
    ----------
    location : path or URL
        The XML.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Returns
    -------
    dict
        The transforms of each view, by the numbers of setup and time point. The last one is applied
        first. Together they map elements of full resolution, ``[x, y, z, 1]``, to the world. The
        unit of the world is that of the voxel size, or of BigStitcher: the finest voxel size.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    N5UnrepresentableError
        The XML is not BigDataViewer's (``kind="option"``).

    Examples
    --------
    >>> import n5zarr
    >>> found = n5zarr.read_registrations("dataset.xml")  # doctest: +SKIP
    >>> [transform.name for transform in found[0, 0]]  # doctest: +SKIP
    ['stitching', 'calibration']
    """
    file = XmlFile.at(place_of(location, storage_options, backend))
    xml = file.read()
    described(file, xml, any_loader=True)  # raises for any other XML
    return _transforms(xml)


def register(
    location: Location,
    registrations: Registrations,
    *,
    name: str = "n5zarr",
    replace: bool = False,
    storage_options: Mapping[str, object] | None = None,
    backend: Backend | None = None,
) -> None:
    """Register views: add transforms to BigDataViewer's XML, or replace them.

    Other text of the file stays as it is. The file is locked, and replaced as a whole.

    Parameters
    ----------
    location : path or URL
        The XML.
    registrations : mapping
        Affine transforms by the numbers of setup and time point, or by the number of a setup for
        all its other time points: a matrix of the shape (3, 4) or (4, 4) that maps
        ``[x, y, z, 1]``, or a sequence of names and matrices, of which the last one is applied
        first. The unit is that of :func:`read_registrations`.
    name : str, optional
        Name of transforms without a name.
    replace : bool, optional
        Whether they replace the transforms of these views. Otherwise they are applied after them.
    storage_options, backend : optional
        Options for a URL, and the library that reads it: as for :class:`~n5zarr.N5Store`.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    N5UnrepresentableError
        The XML has no such view, a matrix cannot be inverted, or the file is not BigDataViewer's
        (``kind="option"``); nothing is changed.

    Examples
    --------
    >>> import n5zarr, numpy as np
    >>> moved = np.array([[1, 0, 0, 12.5], [0, 1, 0, -3], [0, 0, 1, 0]])
    >>> n5zarr.register("dataset.xml", {(0, 0): moved}, name="stitching")  # doctest: +SKIP
    """
    file = XmlFile.at(place_of(location, storage_options, backend))
    xml = file.read()
    described(file, xml, any_loader=True)
    with ErrorsAt(str(file)):
        by_key = general_first(registrations)
        given = {key: transforms_of(value, name) for key, value in by_key.items()}
        _changed(xml, given, replace=replace)  # may raise: call it before any writing
    file.update(lambda xml: xml and _changed(xml, given, replace=replace))


def general_first(registrations: object) -> Registrations:
    """Return the registrations of a user, those of setups before those of a view, which count.

    Raises
    ------
    N5UnrepresentableError
        The registrations are no mapping (``kind="option"``).
    """
    if not isinstance(registrations, Mapping):
        raise option_error(
            "registrations: expected a mapping of setups, or of (setup, time point), to matrices, "
            f"got {type(registrations).__name__}"
        )
    return dict(sorted(registrations.items(), key=lambda item: isinstance(item[0], tuple)))


def transforms_of(given: Any, name: str) -> tuple[ViewTransform, ...]:  # noqa: ANN401 - of a user
    """Return the transforms of a view: a matrix, or names with matrices.

    Raises
    ------
    N5UnrepresentableError
        A transform has another form (``kind="option"``).
    """
    named = isinstance(given, list | tuple) and all(
        isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str) for each in given
    )
    pairs = given if named else [(name, given)]
    return tuple(ViewTransform(each, _rows(matrix)) for each, matrix in pairs)


def _rows(given: npt.ArrayLike) -> tuple[float, ...]:
    """Return the rows of a matrix."""
    try:
        matrix = np.asarray(given, float)
    except (TypeError, ValueError) as err:
        raise option_error(f"registrations: expected a matrix of numbers, got {given!r}") from err
    if matrix.shape == (12,):
        matrix = matrix.reshape(3, 4)
    is_affine = matrix.shape == (3, 4) or (
        matrix.shape == (4, 4) and matrix[3].tolist() == [0, 0, 0, 1]
    )
    require(
        is_affine,
        "registrations: expected a matrix of the shape (3, 4), or (4, 4) with the last row "
        f"0, 0, 0, 1, got the shape {matrix.shape}",
    )
    require(
        np.isfinite(matrix).all() and np.linalg.matrix_rank(matrix[:3, :3]) == 3,
        f"registrations: expected a matrix that can be inverted, got {matrix.tolist()}",
    )
    return tuple(matrix[:3].ravel().tolist())


def _transforms(xml: bytes) -> dict[View, tuple[ViewTransform, ...]]:
    root = parsed_xml(xml)
    return {} if isinstance(root, str) else read_transforms(root)


def _changed(
    xml: bytes, given: Mapping[int | View, Sequence[ViewTransform]], *, replace: bool
) -> bytes:
    """Return the XML with other registrations."""
    description = parse_xml(xml, any_loader=True)
    if description is None:
        raise option_error("expected BigDataViewer's XML, got other text; another program wrote it")
    now = _transforms(xml)
    times = frozenset(description.timepoints or ())
    added: dict[View, tuple[ViewTransform, ...]] = {}
    for key, transforms in given.items():
        added |= dict.fromkeys(_views(description, times, key), (*transforms,))
    kept = {} if replace else now
    expected = {view: (*transforms, *kept.get(view, ())) for view, transforms in added.items()}
    changed = with_registrations(xml, added, replace=replace)
    if _transforms(changed) != now | expected:
        raise option_error("expected a name of characters that XML can hold, got others")
    return changed


def _views(description: Description, times: frozenset[int], key: Any) -> list[View]:  # noqa: ANN401 - of a user
    """Return the views that a key names."""
    named = [key] if isinstance(key, tuple) and len(key) == 2 else [(key, t) for t in sorted(times)]
    views = [view for view in named if view not in description.missing or view == key]
    is_known = all(s in description.setups and t in times for s, t in views)
    require(
        views and is_known,
        f"registrations: expected the number of a setup, of {ranges(description.setups)}, alone or "
        f"with a time point, of {ranges(sorted(times)) or 'none'}, got {key!r}",
    )
    return views
