"""Read and change the registrations of views in BigDataViewer's XML.

spimdata ``XmlIoViewRegistrations``, ``XmlIoViewTransform``: a view has a list of affine transforms,
of which the last one is applied first. Together they map elements of full resolution to the world.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple
from xml.etree import ElementTree

import numpy as np

from n5zarr.bigdataviewer.xml_text import (
    Span,
    elements_at,
    indented,
    numbers_in,
    numbers_text,
    replaced,
    whole_number,
    with_children,
)
from n5zarr.errors import option_error

if TYPE_CHECKING:
    import numpy.typing as npt


type View = tuple[int, int]
"""Numbers of a setup and a time point."""

_REGISTRATIONS = "SpimData/ViewRegistrations"
_REGISTRATION = f"{_REGISTRATIONS}/ViewRegistration"


class ViewTransform(NamedTuple):
    """One of the affine transforms of a view.

    Parameters
    ----------
    name : str
        Its name.
    rows : tuple of float
        The three rows of the matrix that maps ``[x, y, z, 1]``, one after the other; empty if the
        XML has no such matrix.
    """

    name: str
    rows: tuple[float, ...]

    @property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The rows as an array of the shape (3, 4)."""
        return np.reshape(self.rows, (3, 4))


def view_in(attributes: Mapping[str, str]) -> View | None:
    """Parse the numbers of setup and time point in the attributes of an element."""
    setup, timepoint = map(whole_number, (attributes.get("setup"), attributes.get("timepoint")))
    return None if setup is None or timepoint is None else (setup, timepoint)


def read_transforms(root: ElementTree.Element) -> dict[View, tuple[ViewTransform, ...]]:
    """Parse the transforms of each view below the root of the XML, in the order of the XML."""
    found = {view_in(e.attrib): _transforms(e) for e in root.iterfind(".//ViewRegistration")}
    return {view: transforms for view, transforms in found.items() if view is not None}


def _transforms(element: ElementTree.Element) -> tuple[ViewTransform, ...]:
    found = []
    for transform in element.iterfind("ViewTransform"):
        rows = numbers_in(transform.findtext("affine") or "")
        is_affine = len(rows) == 12 and all(map(math.isfinite, rows))
        found.append(ViewTransform(transform.findtext("Name") or "", rows if is_affine else ()))
    return tuple(found)


def model_of(transforms: Iterable[ViewTransform]) -> tuple[float, ...]:
    """Multiply transforms, the one applied first last; empty if one of them is empty."""
    matrices = []
    for _, rows in transforms:
        if not rows:
            return ()
        matrices.append(np.vstack([np.reshape(rows, (3, 4)), (0, 0, 0, 1)]))
    model = reduce(np.matmul, matrices, np.eye(4))
    return tuple(model[:3].ravel().tolist())


def with_registrations(
    xml: bytes, views: Mapping[View, Sequence[ViewTransform]], *, replace: bool
) -> bytes:
    """Return XML with other transforms of views, the one applied first last; keep all other text.

    Parameters
    ----------
    xml : bytes
        The XML.
    views : mapping of (int, int) to sequence of ViewTransform
        The transforms of each view.
    replace : bool
        Whether they replace those of the XML. Otherwise they are added before them, and the text of
        those, which may say more than n5zarr reads, stays.

    Raises
    ------
    N5UnrepresentableError
        A view has several registrations (``kind="option"``).
    """
    changes, there = [], set()
    for span in elements_at(xml, _REGISTRATION):
        view = view_in(span.attributes)
        if view is None or view not in views:
            continue
        if view in there:
            raise option_error(
                f"expected one registration of setup {view[0]} at time point {view[1]}, got more"
            )
        there.add(view)
        if replace or span.is_empty_tag:
            element = registration_element(view, views[view])
            changes.append((span.start, span.end, indented(element, 2)))
        else:
            changes.append((span.body, span.body, _first_children(xml, span, views[view])))
    changed = replaced(xml, changes)
    new = [registration_element(v, each) for v, each in views.items() if v not in there]
    if not new:
        return changed
    return with_children(changed, _REGISTRATIONS, [indented(each, 2) for each in new])


def _first_children(xml: bytes, span: Span, transforms: Iterable[ViewTransform]) -> str:
    """Return the text of transforms before the children of an element, with their indent."""
    body = xml[span.body : span.body_end]
    before = body[: len(body) - len(body.lstrip())].decode("ascii")
    return "".join(before + indented(_transform_element(each), 3) for each in transforms)


def registration_element(view: View, transforms: Iterable[ViewTransform]) -> ElementTree.Element:
    """Make the element of the registration of a view."""
    setup, timepoint = map(str, view)
    element = ElementTree.Element("ViewRegistration", timepoint=timepoint, setup=setup)
    element.extend(map(_transform_element, transforms))
    return element


def _transform_element(transform: ViewTransform) -> ElementTree.Element:
    element = ElementTree.Element("ViewTransform", type="affine")
    ElementTree.SubElement(element, "Name").text = transform.name
    ElementTree.SubElement(element, "affine").text = numbers_text(transform.rows)
    return element
