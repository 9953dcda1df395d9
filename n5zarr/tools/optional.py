"""Import optional packages: the error says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from n5zarr.errors import N5MissingDependencyError

__all__ = ["import_optional"]


def import_optional(module: str, purpose: str, extra: str) -> Any:  # noqa: ANN401 - a module
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
        Name of the module; that of the package is its first part.
    purpose, extra : str
        The feature that needs the package, and the extra that installs it.

    Raises
    ------
    N5MissingDependencyError
        It cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as err:
        raise N5MissingDependencyError(module.partition(".")[0], purpose, extra) from err
