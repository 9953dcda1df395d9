"""Values in attributes that JSON does not have: NaN and infinities, and numbers of numpy.

JSON has no NaN and no infinities, and many programs refuse a document with such words: tensorstore
one of Zarr v3, browsers any. In documents of Zarr, references and reports they are texts, those of
Java; in N5 they are null, and the record keeps them (:mod:`n5zarr.zarr_view.record`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from n5zarr.errors import option_error

if TYPE_CHECKING:
    from n5zarr.format.lenient_json import JSON

__all__ = [
    "from_numpy",
    "json_pointers",
    "nonfinite_in",
    "nonfinite_note",
    "replace_nonfinite",
    "strict",
]

_NAMED = 8  # members that a note names
_PLAIN = "biufUTO"  # kinds of numpy: bool, numbers, text, objects of Python


def strict(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Replace NaN and infinities by texts, as Java does when it rewrites a document.

    Examples
    --------
    >>> strict({"a": [1, float("nan")], "b": float("-inf")})
    {'a': [1, 'NaN'], 'b': '-Infinity'}
    """
    return replace_nonfinite(value, _name_of)


def _name_of(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def replace_nonfinite(value: JSON, by: Callable[[float], JSON]) -> JSON:
    """Replace NaN and infinities, in lists and objects too."""
    if isinstance(value, Mapping):
        return {key: replace_nonfinite(member, by) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [replace_nonfinite(item, by) for item in value]
    return by(value) if isinstance(value, float) and not math.isfinite(value) else value


def nonfinite_in(value: JSON) -> dict[str, str]:
    """Return the texts of NaN and infinities, by JSON pointer.

    Examples
    --------
    >>> nonfinite_in({"a": [1, float("nan")]})
    {'/a/1': 'NaN'}
    """
    found = json_pointers(value)
    return {p: _name_of(v) for p, v in found if isinstance(v, float) and not math.isfinite(v)}


def nonfinite_note(documents: Mapping[str, JSON]) -> str:
    """Say which members of documents, by path, become text; empty if none does.

    Examples
    --------
    >>> nonfinite_note({"em": {"fit": float("nan")}})
    'NaN and infinities become text, since JSON lacks them: em/fit'
    """
    found = [f"{path}{p}".lstrip("/") for path in documents for p in nonfinite_in(documents[path])]
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    named = ", ".join(found[:_NAMED])
    return named and f"NaN and infinities become text, since JSON lacks them: {named}{more}"


def json_pointers(value: JSON, pointer: str = "") -> Iterator[tuple[str, JSON]]:
    """Yield JSON pointers (RFC 6901) to all values that are not lists or objects, with the values.

    Examples
    --------
    >>> list(json_pointers({"a/b": [1, None]}))
    [('/a~1b/0', 1), ('/a~1b/1', None)]
    """
    if isinstance(value, Mapping):
        for key, member in value.items():
            name = key.replace("~", "~0").replace("/", "~1")
            yield from json_pointers(member, f"{pointer}/{name}")
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from json_pointers(item, f"{pointer}/{i}")
    else:
        yield pointer, value


def from_numpy(value: Any, key: str = "") -> Any:  # noqa: ANN401 - what a user gives
    """Return the value of an attribute as JSON, where it has numbers, texts or arrays of numpy.

    Parameters
    ----------
    value : object
        What a user gives.
    key : str, optional
        Its path, as of :func:`n5zarr.get_attribute`; ``""`` for all attributes.

    Raises
    ------
    N5UnrepresentableError
        JSON cannot hold it (``kind="option"``).

    Examples
    --------
    >>> from_numpy({"offset": [np.int64(1)], "max": np.float32(2.5), "fits": np.arange(2) > 0})
    {'offset': [1], 'max': 2.5, 'fits': [False, True]}
    """
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in _PLAIN:
        value = value.tolist()
    if isinstance(value, Mapping):
        above = f"{key}/" if key else ""
        return {_name(k, key): from_numpy(member, f"{above}{k}") for k, member in value.items()}
    if isinstance(value, list | tuple):
        return [from_numpy(item, f"{key}[{i}]") for i, item in enumerate(value)]
    if value is None or isinstance(value, str | int | float):
        return value
    raise option_error(
        f"attribute {key!r}: expected what JSON holds: numbers, text, true, false, null, lists and "
        f"objects of these, got {value!r:.60}; write it as text or numbers"
    )


def _name(name: object, key: str) -> object:
    """Return the name of a member, which json spells as text."""
    plain = name.item() if isinstance(name, np.generic) else name
    if plain is None or isinstance(plain, str | int | float):
        return plain
    raise option_error(f"attribute {key!r}: expected names that are text, got {name!r:.60}")
