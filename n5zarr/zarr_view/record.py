"""Read and write the ``"zarr"`` record: the attribute for properties that N5's keys cannot express.

The record has only members that cannot be derived from N5's keys, and is absent if it is empty:

======================  ==========================================================================
``data_type``           Zarr's data type, if N5 has none of that name (v3 form)
``shape``               ``[]`` for an array without dimensions, which is kept as ``[1]``
``fill_value``          the fill value if it is not zero (v3 form)
``codecs``              the codecs of a v3 array, if they do not follow from ``compression``
``v2``                  ``compressor``, ``filters`` and ``order`` of a v2 array, likewise; its
                        ``dtype`` if its byte order is not the stored one
``axis_order``          ``"F"`` if these codecs are for axes in N5 order
``dimension_names``     names that ``axes`` cannot hold, N5 order; ``[]`` for an array without
                        names that has an attribute which looks like names
``attributes``          users' attributes with the names of N5's own keys, and those with which
                        tensorstore would refuse the dataset: ``axes``, ``units`` and
                        ``resolution`` that are not one string or number for each axis
``nonfinite``           JSON pointers to NaN and infinities, for which the document has null
``nulls``               JSON pointers to nulls, which Java drops when it rewrites a document
``consolidated``        true on a group whose metadata Zarr consolidated; they are made again for
                        each request
``extra``               other members of a ``zarr.json`` that readers need not understand
``zarr_format``         the format in which the node was last written: 2, or 3 below a node of
                        format 2
======================  ==========================================================================

N5's keys take precedence: if another program has since changed ``dataType`` or the rank, readers
ignore the members that describe elements (:meth:`Record.without_elements`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self, cast

from n5zarr.errors import N5AttributesError, Problem
from n5zarr.format.attributes import ZARR_KEY
from n5zarr.format.lenient_json import JSON
from n5zarr.zarr_view.keys import ZarrFormat

_TOKENS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


@dataclass(frozen=True, kw_only=True)
class Record:
    """The members of the record, see the module; None or empty if not recorded."""

    data_type: JSON = None
    shape: Sequence[int] | None = None
    fill_value: JSON = None
    codecs: Sequence[JSON] | None = None
    v2: Mapping[str, JSON] | None = None
    axis_order: str = "C"
    dimension_names: Sequence[str | None] | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    nonfinite: Mapping[str, str] = field(default_factory=dict)
    nulls: Sequence[str] = field(default_factory=list)
    consolidated: bool = False
    extra: Mapping[str, JSON] = field(default_factory=dict)
    zarr_format: ZarrFormat | None = None

    @classmethod
    def from_json(cls, value: JSON) -> Self:
        """Parse the record of an ``attributes.json``.

        Parameters
        ----------
        value : JSON
            The value of ``"zarr"``, None if absent. Unknown members are ignored.

        Raises
        ------
        N5AttributesError
            A member has a wrong type. All problems are reported together.
        """
        if value is None:
            return cls()
        if not isinstance(value, Mapping):
            message = f"expected an object, got {value!r:.80}"
            raise N5AttributesError([Problem((ZARR_KEY,), message)])
        known = {f.name: value[f.name] for f in fields(cls) if f.name in value}
        problems = [
            Problem((ZARR_KEY, name), f"expected {_EXPECTED[name][0]}, got {member!r:.80}")
            for name, member in known.items()
            if name in _EXPECTED and not _EXPECTED[name][1](member)
        ]
        if problems:
            raise N5AttributesError(problems)
        # the members have just been checked
        return cast("Callable[..., Self]", cls)(**known)

    def to_json(self) -> dict[str, JSON]:
        """Return the record as JSON, without empty members; the inverse of :meth:`from_json`."""
        empty = type(self)()
        members = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in members.items() if value != getattr(empty, name)}

    def without_elements(self) -> Self:
        """Return the record without the members that describe elements and chunks."""
        return replace(
            self, data_type=None, shape=None, fill_value=None, codecs=None, v2=None, extra={}
        )


def _is_object(value: JSON) -> bool:
    return isinstance(value, Mapping)


def _is_list_of(*types: type) -> Callable[[JSON], bool]:
    def check(value: JSON) -> bool:
        return isinstance(value, list) and all(isinstance(item, types) for item in value)

    return check


def _is_nonfinite(value: JSON) -> bool:
    return (
        isinstance(value, Mapping)
        and all(isinstance(v, str) and v in _TOKENS for v in value.values())
        and _are_pointers([*value])
    )


def _are_pointers(value: JSON) -> bool:
    return _is_list_of(str)(value) and all(p[:1] == "/" for p in cast("list[str]", value))


_EXPECTED: dict[str, tuple[str, Callable[[JSON], bool]]] = {
    "data_type": ("a data type of Zarr v3", lambda v: isinstance(v, str | Mapping)),
    "shape": ("[]", lambda v: v == []),
    "codecs": ("a list of codecs", _is_list_of(str, Mapping)),
    "v2": ("an object", _is_object),
    "axis_order": ("'C' or 'F'", lambda v: v in ("C", "F")),
    "dimension_names": ("a list of names and nulls", _is_list_of(str, type(None))),
    "attributes": ("an object", _is_object),
    "nonfinite": ("JSON pointers with NaN, Infinity or -Infinity", _is_nonfinite),
    "nulls": ("a list of JSON pointers", _are_pointers),
    "consolidated": ("true or false", lambda v: isinstance(v, bool)),
    "extra": ("an object", _is_object),
    "zarr_format": ("2 or 3", lambda v: type(v) is int and v in (2, 3)),
}


def restore_attributes(attributes: Mapping[str, JSON], record: Record) -> dict[str, JSON]:
    """Return the users' attributes as they were written through Zarr.

    Parameters
    ----------
    attributes : mapping
        The document without N5's own keys.
    record : Record
        From the same document.

    Returns
    -------
    dict
        The attributes with recorded ones, NaN, infinities and nulls put back. A value that another
        program has set since then stays.

    Examples
    --------
    >>> restore_attributes({"a": [1, None]}, Record(nonfinite={"/a/1": "NaN"}))
    {'a': [1, nan]}
    """
    # an attribute of the document is newer than the recorded one
    hidden = {key: value for key, value in record.attributes.items() if key not in attributes}
    complete: dict[str, JSON] = {**attributes, **hidden}
    if record.nonfinite or record.nulls:
        complete = copy.deepcopy(complete)
        for pointer in record.nulls:
            _put_back(complete, pointer, None)
        for pointer, token in record.nonfinite.items():
            _put_back(complete, pointer, _TOKENS[token])
    return complete


def _put_back(document: JSON, pointer: str, value: JSON) -> None:
    """Set the value at a pointer, unless another program has set it since."""
    *parents, last = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    for name in parents:
        document = _member(document, name)
    if isinstance(document, dict) and document.get(last) is None:
        document[last] = value
    elif isinstance(document, list) and _member(document, last, default=False) is None:
        document[int(last)] = value


def _member(value: JSON, name: str, *, default: JSON = None) -> JSON:
    member: JSON = default
    if isinstance(value, Mapping):
        member = value.get(name, default)
    elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
        member = value[int(name)]
    return member
