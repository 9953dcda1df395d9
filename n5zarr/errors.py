"""Define every error and warning that n5zarr raises.

::

    N5Error(Exception)
    ├── N5FormatError (+ ValueError)          the stored data violate the N5 format
    │   ├── N5AttributesError                 attributes.json; .problems lists all
    │   └── N5BlockError                      header or payload of one block
    ├── N5UnsupportedError (+ NotImplementedError)   valid N5, not supported here
    ├── N5UnrepresentableError (+ ValueError)        valid Zarr, cannot be N5
    └── N5MissingDependencyError (+ ImportError)     an optional package is needed

Each branch stands for one way out: repair the data, use another tool, change the request, install
a package. A missing key is ``None``, never an error. Errors of local files pass through untouched;
those of servers become an ``OSError`` that names the key: ``PermissionError``, ``ConnectionError``
or ``TimeoutError`` where it is one.

A message reads ``<where>: <what>: expected ..., got ...``. The pure packages describe the
problem. The store knows the place, and sets :attr:`N5Error.where` as the error passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Literal, Self, get_args

__all__ = [  # without what only the modules of the package use
    "KINDS",
    "Kind",
    "N5AttributesError",
    "N5BlockError",
    "N5Error",
    "N5FormatError",
    "N5MissingDependencyError",
    "N5UnrepresentableError",
    "N5UnsupportedError",
    "N5Warning",
    "Problem",
]

type Kind = Literal[
    "json",  # attributes.json cannot be parsed
    "member",  # a member of attributes.json is missing or has a wrong value
    "version",  # the container was written by an incompatible version of N5
    "compression",  # unknown compression, or wrong parameters
    "data-type",  # unknown dataType, or one that the operation does not support
    "header",  # a block header does not fit the dataset or the data
    "payload",  # the compressed payload of a block is damaged or too short
    "varlength",  # a block whose number of elements differs from its extent
    "path",  # a node or attribute path that N5 cannot hold or that escapes the container
    "not-found",  # a container, node or block that does not exist
    "option",  # an argument whose value is not allowed
    "read-only",  # an attempt to write where only reading is possible
    "dependency",  # an optional package is not installed
    "listing",  # a server that does not list directories
    "changed",  # an array was replaced or removed while it was open
    "differs",  # a copy is not equal to its source, or a source lacks blocks that are expected
    "foreign",  # the location holds another format than N5
    "file",  # a link that leads nowhere, a pipe or a device where a file should be
    "shard",  # a file of several blocks in the place of one, as Java N5 4 can write it
    "fork",  # a library whose threads a forked process does not have
]

KINDS: tuple[str, ...] = get_args(Kind.__value__)


class N5Error(Exception):
    """Base of every error that n5zarr raises.

    Parameters
    ----------
    message : str
        The field, the expected value, the actual value, and what to do.
    kind : Kind
        Stable machine-readable category; messages may be reworded, kinds may not.
    where : str, optional
        Container, path and block. Usually added by the store as the error passes.
    """

    def __init__(self, message: str, *, kind: Kind, where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.kind: Kind = kind
        self.where = where

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.__dict__.copy())

    def located(self, where: str) -> Self:
        """Set where the error happened, unless it is already known.

        Parameters
        ----------
        where : str
            Container, path and block, as far as the caller knows them.

        Returns
        -------
        N5Error
            The same object, so that ``raise err.located(...)`` reads well.
        """
        self.where = self.where or where
        return self


def _rebuild(cls: type[N5Error], state: dict[str, object]) -> N5Error:
    error = cls.__new__(cls)
    error.__dict__.update(state)
    error.args = (state["message"],)
    return error


class ErrorsAt:
    """A context that adds to each N5Error in it where it happened; see :meth:`N5Error.located`.

    Parameters
    ----------
    where : str or callable
        Container, path and block, or a function that returns them, called only for an error.

    Examples
    --------
    >>> with ErrorsAt("em/s0"):
    ...     raise N5UnsupportedError("expected numbers", kind="data-type")
    Traceback (most recent call last):
    n5zarr.errors.N5UnsupportedError: em/s0: expected numbers
    """

    __slots__ = ("_where",)

    def __init__(self, where: str | Callable[[], str]) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _: type[BaseException] | None, err: BaseException | None, __: TracebackType | None
    ) -> None:
        if isinstance(err, N5Error):
            err.located(self._where if isinstance(self._where, str) else self._where())


class N5FormatError(N5Error, ValueError):
    """The stored data violate the N5 format."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One error in an ``attributes.json``.

    Parameters
    ----------
    loc : tuple of str and int
        Path into the document, such as ``("blockSize", 2)``.
    message : str
        The expected value and the actual one.
    kind : Kind
        Category, as on the error that carries the problem.
    """

    loc: tuple[str | int, ...]
    message: str
    kind: Kind = "member"

    def __str__(self) -> str:
        loc = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in self.loc)
        return f"{loc.removeprefix('.')}: {self.message}" if loc else self.message


class N5AttributesError(N5FormatError):
    """An ``attributes.json`` that cannot be parsed, or whose members are missing or wrong.

    Parameters
    ----------
    problems : sequence of Problem
        All problems of the document, at least one. The kind of the first is that of the error.
    where : str, optional
        Container and path.
    """

    def __init__(self, problems: Sequence[Problem], *, where: str = "") -> None:
        super().__init__("; ".join(map(str, problems)), kind=problems[0].kind, where=where)
        self.problems = tuple(problems)


class N5BlockError(N5FormatError):
    """A block whose header or payload does not fit."""


class N5UnsupportedError(N5Error, NotImplementedError):
    """Valid N5, or a valid request, that this version of n5zarr does not support."""


class N5UnrepresentableError(N5Error, ValueError):
    """A request that N5 cannot express."""


def option_error(message: str, *, where: str = "") -> N5UnrepresentableError:
    """Make the error of an argument whose value is not allowed (``kind="option"``)."""
    return N5UnrepresentableError(message, kind="option", where=where)


class N5MissingDependencyError(N5Error, ImportError):
    """An optional package is needed; the message says what to install.

    Parameters
    ----------
    package : str
        Name of the missing package.
    purpose : str
        The feature that needs the package.
    extra : str
        The extra of n5zarr that installs the package; empty if none does.
    """

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        wanted = f"'n5zarr[{extra}]'" if extra else package
        message = f"{purpose} needs the package {package!r}: pip install {wanted}"
        super().__init__(message, kind="dependency")


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
        The package cannot be imported.
    """
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError as err:
        raise N5MissingDependencyError(package, purpose, extra) from err


READ_ONLY = (  # as zarr's stores say it
    "store was opened in read-only mode and does not support writing; mode='r+' opens it to write"
)


class N5Warning(UserWarning):
    """The result is correct, but may be unexpected."""
