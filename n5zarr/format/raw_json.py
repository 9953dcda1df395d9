"""Documents that are changed in a few places and otherwise kept as they were spelled.

Other programs' numbers are kept digit by digit: ``1.0E-12`` stays, and integers of any size. The
members of the top level are the unit: one that is not replaced keeps its text.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Self

from n5zarr.format.lenient_json import parse_json

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON

__all__ = ["RawObject"]

_SPACE = re.compile(r"[ \t\n\r]*")


class RawObject:
    """An ``attributes.json`` while it is changed.

    Parameters
    ----------
    values : dict
        The members.
    texts : dict
        How those that are kept were spelled.
    """

    def __init__(self, values: dict[str, JSON], texts: dict[str, str]) -> None:
        self.values = values
        self.texts = texts

    @classmethod
    def parse(cls, data: bytes | None) -> Self:
        """Read a document; what is no object counts as an empty one, as in Java.

        Raises
        ------
        N5AttributesError
            The document is no JSON.
        """
        document = None if data is None else parse_json(data)
        if not isinstance(document, dict):
            return cls({}, {})
        return cls(dict(document), _texts(data or b""))

    def set(self, key: str, value: JSON) -> None:
        """Replace a member, or add it at the end."""
        self.values[key] = value
        self.texts.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove a member if it is there."""
        self.values.pop(key, None)
        self.texts.pop(key, None)

    def to_bytes(self) -> bytes:
        """Write the document: one line of strict JSON.

        Raises
        ------
        ValueError
            A new value holds NaN or an infinity, which JSON has no word for.

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
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _skip(text: str, pos: int) -> int:
    found = _SPACE.match(text, pos)
    return found.end() if found else pos


def _texts(data: bytes) -> dict[str, str]:
    """Find how each member is spelled; nothing where the document is not of the strict grammar."""
    text = data.decode("utf-8-sig")
    decoder = json.JSONDecoder(parse_constant=_refuse)
    texts: dict[str, str] = {}
    pos = _skip(text, text.index("{") + 1)
    try:
        while text[pos] != "}":
            key, pos = decoder.raw_decode(text, pos)
            pos = _skip(text, pos) + 1  # the colon
            start = _skip(text, pos)
            try:
                _, pos = decoder.raw_decode(text, start)
                texts[key] = text[start:pos]
            except _NonFiniteError:
                _, pos = json.JSONDecoder().raw_decode(text, start)
                texts.pop(key, None)
            pos = _skip(text, pos)
            if text[pos] == ",":
                pos = _skip(text, pos + 1)
    except (json.JSONDecodeError, IndexError):
        return {}
    return texts


class _NonFiniteError(Exception):
    """NaN or an infinity, which must not be kept as it is."""


def _refuse(token: str) -> JSON:
    raise _NonFiniteError(token)
