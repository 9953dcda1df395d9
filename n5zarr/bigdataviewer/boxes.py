"""Read which boxes of images are the views of a split project.

multiview-reconstruction 8.0 ``XmlIoSplitViewerImgLoader``, ``XmlIoSplitMultiResolutionImgLoader``
and ``XmlIoSplitImgLoader``: a loader around another one, the setups of the latter, and for each new
setup an old one and an interval in it, both ends included. All vectors are in the order x, y, z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from n5zarr.bigdataviewer.xml_text import whole_number

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SPLIT = ("split.viewerimgloader", "split.multiresolutionimgloader", "split.imgloader")
"""The formats of image loaders around others."""

_SHORT = 0.01  # what Java takes off the last element, so that a box ends inside of it


class SplitBox(NamedTuple):
    """A box of the images of a setup.

    Parameters
    ----------
    setup : int
        The setup.
    first, last : tuple of int
        The first and the last element at full resolution.
    """

    setup: int
    first: tuple[int, ...]
    last: tuple[int, ...]

    def at_level(
        self, number: int, factors: Sequence[float], dimensions: Sequence[int]
    ) -> tuple[range, ...] | None:
        """Return the elements of a level; None if it has none.

        As ``SplitViewerSetupImgLoader.setUpMultiRes`` and ``updateScaledIntervals``, but with at
        least one element along each axis, if the image has it.

        Examples
        --------
        >>> box = SplitBox(0, (12, 0, 5), (22, 12, 9))
        >>> box.at_level(0, (1, 1, 1), (23, 13, 10))
        (range(12, 23), range(0, 13), range(5, 10))
        >>> box.at_level(1, (2, 4, 1), (11, 3, 10))
        (range(6, 11), range(0, 3), range(5, 9))
        """
        if number == 0:
            own = [range(a, b + 1) for a, b in zip(self.first, self.last, strict=True)]
            fits = all(each.stop <= n for each, n in zip(own, dimensions, strict=True))
            return tuple(own) if fits else None
        found = []
        for a, b, by, n in zip(self.first, self.last, factors, dimensions, strict=True):
            start, last = math.floor(a / by), math.floor((b - _SHORT) / by)
            found.append(range(start, min(max(last, start) + 1, n)))
        return tuple(found) if all(found) else None


def boxes_in(loader: Element) -> dict[int, SplitBox] | str:
    """Read the box of each new setup; return a description of any problem."""
    found = {}
    for each in loader.iterfind("SetupIds/SetupIdDefinition"):
        texts = [each.findtext(name) or "" for name in ("NewId", "OldId", "min", "max")]
        new, old = map(whole_number, texts[:2])
        ends = [tuple(map(whole_number, text.split())) for text in texts[2:]]
        first, last = (tuple(n for n in end if n is not None) for end in ends)
        is_box = len(ends[0]) == len(ends[1]) == len(first) == len(last) == 3 and all(
            0 <= a <= b for a, b in zip(first, last, strict=True)
        )
        if new is None or old is None or not is_box:
            return (
                "a SetupIdDefinition without NewId, OldId, or a box, three whole numbers min and "
                f"max: {texts}"
            )
        found[new] = SplitBox(old, first, last)
    return found or "no SetupIdDefinition in SetupIds"
