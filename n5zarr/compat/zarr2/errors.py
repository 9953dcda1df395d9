"""The errors of zarr 2 by their names there, and those of names that are absent."""

from collections.abc import Mapping

from zarr.errors import (
    ArrayNotFoundError,
    BoundsCheckError,
    ContainsArrayError,
    ContainsGroupError,
    GroupNotFoundError,
    MetadataValidationError,
    NodeNotFoundError,
)

__all__ = [
    "ArrayNotFoundError",
    "BadCompressorError",
    "BoundsCheckError",
    "ContainsArrayError",
    "ContainsGroupError",
    "CopyError",
    "GroupNotFoundError",
    "MetadataError",
    "PathNotFoundError",
    "ReadOnlyError",
]

MetadataError = MetadataValidationError
PathNotFoundError = NodeNotFoundError  # a ValueError, as in zarr 2
BadCompressorError = ReadOnlyError = ValueError  # zarr 3 raises no other


class CopyError(RuntimeError):
    """What is to be copied exists at the destination."""


def absent(
    where: str, name: str, ways: Mapping[str, str], known: type[Exception] = AttributeError
) -> Exception:
    """Make the error of a name that is not here.

    Parameters
    ----------
    where : str
        What lacks the name.
    name : str
        The name.
    ways : mapping
        What to write instead, by names of zarr 2.
    known : type, optional
        The error for these: of a module an ImportError, whose message ``from`` keeps.
    """
    if name in ways:
        return known(f"{where} has no {name!r}; write {ways[name]}")
    return AttributeError(f"{where} has no attribute {name!r}", name=name)
