"""Change members of a JSON document and keep the text of all others.

Numbers that other programs wrote stay digit by digit: ``1.0E-12``, integers of any size. A member
of the top level that is not replaced keeps its text, and comments stay where they are: what has
been read leniently is read so again. The comments in a value that is not standard JSON otherwise,
such as one with NaN, are lost when the document is written.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Self

from n5zarr.format.lenient_json import JSON, DocumentText, MemberText, parse_members

__all__ = ["RawObject", "as_java"]


class RawObject:
    """The members of an ``attributes.json``, with their text.

    Parameters
    ----------
    document : DocumentText
        The document; its parts may be changed.
    """

    def __init__(self, document: DocumentText) -> None:
        self._document = document
        self.values = document.values
        self.texts = {k: t.value for k, t in document.texts.items() if t.value is not None}

    @classmethod
    def parse(cls, data: bytes | None) -> Self:
        """Parse a document; one that is not an object counts as empty, as in Java.

        Raises
        ------
        N5AttributesError
            The document is not JSON.
        """
        return cls(DocumentText({}, {}) if data is None else parse_members(data))

    def set(self, key: str, value: JSON) -> None:
        """Replace a member in its place, or add it at the end; comments around it stay."""
        self.values[key] = value
        self.texts.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove a member, if present, with the comments around it."""
        self.values.pop(key, None)
        self.texts.pop(key, None)
        self._document.texts.pop(key, None)

    def to_bytes(self) -> bytes:
        """Write the document as strict JSON on one line; kept texts may have line ends.

        Comments that were there stay.

        Examples
        --------
        >>> document = RawObject.parse(b'/* by hand */ {"a": 1.0E-12, "b": [1, 2]}')
        >>> document.set("c", 3)
        >>> document.to_bytes()
        b'/* by hand */ {"a":1.0E-12,"b":[1, 2],"c":3}'
        """
        head, tail = self._document.head, self._document.tail
        members = ",".join(self._member(key, value) for key, value in self.values.items())
        return f"{head}{{{members}}}{tail}".encode()

    def _member(self, key: str, value: JSON) -> str:
        around = self._document.texts.get(key, MemberText())
        text = self.texts.get(key)
        if text is None:
            text = json.dumps(as_java(value), allow_nan=False, separators=(",", ":"))
        return f"{around.before}{json.dumps(key)}{around.colon}{text}{around.after}"


def as_java(value: JSON) -> JSON:
    """Replace NaN and infinities by strings, as Java does when it rewrites a document."""
    if isinstance(value, Mapping):
        return {key: as_java(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_java(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
