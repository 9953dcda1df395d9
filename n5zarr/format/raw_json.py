"""Change members of a JSON document and keep the text of all others; values that JSON lacks.

Numbers that other programs wrote stay digit by digit: ``1.0E-12``, integers of any size. A member
of the top level that is not replaced keeps its text, and comments stay where they are: what has
been read leniently is read so again. The comments in a value that is not standard JSON otherwise,
such as one with NaN, are lost when the document is written.

Many programs refuse a document with NaN or infinities: tensorstore one of Zarr v3, browsers any. In
documents of Zarr, references and reports they are Java's texts; in N5 they are null, and the record
keeps them (:mod:`n5zarr.zarr_view.record`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from n5zarr.errors import option_error
from n5zarr.format.lenient_json import (
    BARE,
    JSON,
    SKIP,
    STRING,
    TOKEN,
    parse_json,
    spelled,
    unquoted,
)


class _MemberText(NamedTuple):
    """What stands in a document for a member of an object.

    Parameters
    ----------
    value : str or None
        The text of the value; None if it is not standard JSON, apart from comments.
    before, colon, after : str
        Comments before the name, the colon with comments around it, comments after the value.
    """

    value: str | None = None
    before: str = ""
    colon: str = ":"
    after: str = ""


class RawObject:
    """The members of an ``attributes.json``, with their text and comments.

    Parameters
    ----------
    values : dict
        The members, in the order of the document; they may be changed.
    """

    def __init__(self, values: dict[str, JSON]) -> None:
        self.values = values
        self.texts: dict[str, str] = {}
        self._around: dict[str, _MemberText] = {}
        self._head, self._tail = "", ""

    @classmethod
    def parse(cls, data: bytes | None) -> Self:
        """Parse a document; one that is not an object counts as empty, as in Java.

        Raises
        ------
        N5AttributesError
            The bytes are not JSON, even in lenient mode (``kind="json"``).

        Examples
        --------
        >>> document = RawObject.parse(b"{a: 1.0E-12, 'b': [1, NaN]} // by hand")
        >>> document.values, document.texts
        ({'a': 1e-12, 'b': [1, nan]}, {'a': '1.0E-12'})
        """
        document = None if data is None else parse_json(data)
        found = cls(document if isinstance(document, dict) else {})
        text = (data or b"").decode()
        if isinstance(document, dict):
            found._head, found._around, found._tail = _Members(text).spelled()
            of_values = {key: member.value for key, member in found._around.items()}
            found.texts = {key: value for key, value in of_values.items() if value is not None}
        elif document is None and not spelled(text).strip():
            found._head = _comments(text + "\n")
        return found

    def set(self, key: str, value: JSON) -> None:
        """Replace a member in its place, or add it at the end; comments around it stay."""
        self.values[key] = value
        self.texts.pop(key, None)

    def remove(self, key: str) -> None:
        """Remove a member, if present, with the comments around it."""
        self.values.pop(key, None)
        self.texts.pop(key, None)
        self._around.pop(key, None)

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
        members = ",".join(self._member(key, value) for key, value in self.values.items())
        return f"{self._head}{{{members}}}{self._tail}".encode()

    def _member(self, key: str, value: JSON) -> str:
        around = self._around.get(key, _MemberText())
        text = self.texts.get(key)
        if text is None:
            text = json.dumps(strict(value), allow_nan=False, separators=(",", ":"))
        return f"{around.before}{json.dumps(key)}{around.colon}{text}{around.after}"


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def strict(value: Any, by: Callable[[float], JSON] = _name_of) -> Any:  # noqa: ANN401 - any JSON
    """Replace NaN and infinities by texts, as Java does when it rewrites a document, or otherwise.

    Examples
    --------
    >>> strict({"a": [1, float("nan")], "b": float("-inf")})
    {'a': [1, 'NaN'], 'b': '-Infinity'}
    """
    if isinstance(value, Mapping):
        return {key: strict(member, by) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item, by) for item in value]
    return by(value) if isinstance(value, float) and not math.isfinite(value) else value


def nonfinite_in(value: JSON) -> dict[str, str]:
    """Return the texts of NaN and infinities, by JSON pointer.

    Examples
    --------
    >>> nonfinite_in({"a": [1, float("nan")]})
    {'/a/1': 'NaN'}
    """
    return {
        pointer: _name_of(found)
        for pointer, found in json_pointers(value)
        if isinstance(found, float) and not math.isfinite(found)
    }


def nonfinite_note(documents: Mapping[str, JSON]) -> str:
    """Say which members of documents, by path, are no JSON; empty if there are none.

    Examples
    --------
    >>> nonfinite_note({"em": {"fit": float("nan")}})
    'NaN and infinities, for which JSON has only text such as "NaN": em/fit'
    """
    found = [f"{path}{p}".lstrip("/") for path in documents for p in nonfinite_in(documents[path])]
    named = ", ".join(found[:8]) + f" and {len(found) - 8} more" * (len(found) > 8)
    return named and f'NaN and infinities, for which JSON has only text such as "NaN": {named}'


def json_pointers(value: JSON, pointer: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield JSON pointers (RFC 6901) to all values that are not lists or objects, with the values.

    Examples
    --------
    >>> list(json_pointers({"a/b": [1, None]}))
    [('/a~1b/0', 1), ('/a~1b/1', None)]
    """
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from json_pointers(
                member, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            )
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from json_pointers(item, f"{pointer}/{i}")
    else:
        yield pointer, value


def from_numpy(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes as JSON, where users give numbers, texts and arrays of numpy.

    Raises
    ------
    N5UnrepresentableError
        JSON cannot hold an attribute (``kind="option"``).

    Examples
    --------
    >>> from_numpy({"offset": [np.int64(1)], "max": np.float32(2.5), "fits": np.arange(2) > 0})
    {'offset': [1], 'max': 2.5, 'fits': [False, True]}
    """
    found = {}
    for key, value in attributes.items():
        try:
            found[key] = json.loads(_ENCODER.encode(value))
        except (TypeError, ValueError) as err:
            raise option_error(
                f"attribute {key!r}: expected what JSON holds: numbers, text, true, false, null, "
                f"lists and objects of these, got {value!r:.80}; write it as text or numbers: {err}"
            ) from err
    return found


def _plain(value: Any) -> Any:  # noqa: ANN401 - of numpy, else refused
    if isinstance(value, np.generic | np.ndarray) and value.dtype.char in "?bBhHiIlLqQefdUTO":
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON")


_ENCODER = json.JSONEncoder(default=_plain)


def _refuse(token: str) -> JSON:
    raise ValueError(f"{token} is not standard JSON")


_STRICT = json.JSONDecoder(parse_constant=_refuse)


def _comments(space: str) -> str:
    """Return what stands between tokens, unless it is only space."""
    return space if space.strip() else ""


class _Members:
    """Finds the members of a document that is an object; ``pos`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def spelled(self) -> tuple[str, dict[str, _MemberText], str]:
        """Return the text before the object, that of each member, and the text after it."""
        texts: dict[str, _MemberText] = {}
        head = self.gap()
        self.take("{")
        before = self.gap()
        while not self.take("}"):
            name = self.name()
            colon = self.gap()
            self.take(":", "=>", "=")
            colon += ":" + self.gap()
            value = self.strict()
            texts[name] = _MemberText(value, before, colon, self.gap())
            before = self.gap() if self.take(",", ";") else ""
        # the comments in an empty object come before it
        return head + before, texts, _comments(self.text[self.pos :])

    def gap(self) -> str:
        """Skip space and comments; return them if there are comments."""
        start = self.pos
        self.peek()
        return _comments(self.text[start : self.pos])

    def peek(self) -> str:
        """Skip space and comments; return the next character."""
        skipped = SKIP.match(self.text, self.pos)
        self.pos = skipped.end() if skipped else self.pos
        return self.text[self.pos]

    def take(self, *options: str) -> bool:
        """Consume the first option that the text continues with; return whether there is one."""
        self.peek()
        for option in options:
            if self.text.startswith(option, self.pos):
                self.pos += len(option)
                return True
        return False

    def name(self) -> str:
        quote, start = self.peek(), self.pos
        if quote in STRING:
            self.pos = _end(STRING[quote].match(self.text, start + 1))
            return unquoted(self.text[start : self.pos])
        self.pos = _end(BARE.match(self.text, start))
        return self.text[start : self.pos]

    def strict(self) -> str | None:
        """Consume a value; return its text if that is standard JSON apart from comments."""
        start = self.pos
        try:
            _, end = _STRICT.raw_decode(self.text, start)
        except ValueError:
            pass
        else:
            self.pos = end
            if self.peek() in (",", ";", "}"):
                self.pos = end
                return self.text[start:end]
            self.pos = start  # `12` of the unquoted string `12abc`
        self.skip()
        text = self.text[start : self.pos]
        try:
            _STRICT.decode(TOKEN.sub(lambda t: " " if t.lastgroup == "space" else t.group(), text))
        except ValueError:
            return None
        return text

    def skip(self) -> None:
        """Consume a value."""
        depth, end = 0, self.pos
        while True:
            character = self.peek()
            if depth == 0 and character in (",", ";", "}"):
                self.pos = end
                return
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(character, 0)
            if character in STRING or BARE.match(character):
                self.name()
            else:
                self.pos += 1
            end = self.pos


def _end(found: re.Match[str] | None) -> int:
    assert found is not None  # noqa: S101 - the document has been parsed
    return found.end()
