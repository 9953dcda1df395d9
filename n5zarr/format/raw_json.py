"""Change members of a JSON document and keep the text of all others.

Numbers that other programs wrote stay digit by digit: ``1.0E-12``, integers of any size. A member
of the top level that is not replaced keeps its text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

from n5zarr.format.lenient_json import parse_members

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON

__all__ = ["RawObject", "as_java"]


class RawObject:
    """The members of an ``attributes.json``, with their text.

    Parameters
    ----------
    values : dict
        The members.
    texts : dict
        The text of each member that has not been replaced.
    """

    def __init__(self, values: dict[str, JSON], texts: dict[str, str]) -> None:
        self.values = values
        self.texts = texts

    @classmethod
    def parse(cls, data: bytes | None) -> Self:
        """Parse a document; one that is not an object counts as empty, as in Java.

        Raises
        ------
        N5AttributesError
            The document is not JSON.
        """
        members = {} if data is None else parse_members(data)
        texts = {name: text for name, (_, text) in members.items() if text is not None}
        return cls({name: value for name, (value, _) in members.items()}, texts)

    def set(self, key: str, value: JSON) -> None:
        """Replace a member in its place, or add it at the end."""
        self.values[key] = value
        self.texts.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove a member, if present."""
        self.values.pop(key, None)
        self.texts.pop(key, None)

    def to_bytes(self) -> bytes:
        """Write the document as strict JSON on one line; kept texts may have line ends.

        Examples
        --------
        >>> document = RawObject.parse(b'{"a": 1.0E-12, "b": [1, 2]}')
        >>> document.set("c", 3)
        >>> document.to_bytes()
        b'{"a":1.0E-12,"b":[1, 2],"c":3}'
        """
        members = (
            f"{json.dumps(key)}:{self.texts[key] if key in self.texts else _dump(value)}"
            for key, value in self.values.items()
        )
        return f"{{{','.join(members)}}}".encode()


def _dump(value: JSON) -> str:
    return json.dumps(as_java(value), allow_nan=False, separators=(",", ":"))


def as_java(value: JSON) -> JSON:
    """Replace NaN and infinities by strings, as Java does when it rewrites a document."""
    if isinstance(value, Mapping):
        return {key: as_java(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_java(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
