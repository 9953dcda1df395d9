"""Make commands of functions: expand shared options, print results, turn errors into statuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from inspect import Parameter, Signature, signature
from typing import Any

import typer
from rich.console import RenderableType

from n5zarr.cli.messages import complain, is_quiet, print_json, print_text
from n5zarr.cli.options import AsJson, Debug, Quiet, Verbose
from n5zarr.cli.progress import progress_bar
from n5zarr.errors import N5Error, N5Warning


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a command found or did.

    Parameters
    ----------
    value : dataclass or dict
        Printed with ``--json``.
    text : iterable of renderables
        Printed without it.
    problems : sequence, optional
        What could not be done: a line of each on standard error; the exit status is then 2.
    warnings : sequence, optional
        A line of each on standard error.
    status : int, optional
        The exit status without problems.
    """

    value: Any
    text: Iterable[RenderableType]
    problems: Sequence[object] = ()
    warnings: Sequence[object] = ()
    status: int = 0

    def show(self, *, as_json: bool) -> None:
        """Print the value or the text, then problems and warnings; exit unless the status is 0."""
        if as_json:
            print_json(self.value if isinstance(self.value, dict) else asdict(self.value))
        else:
            print_text(*self.text)
        for word, lines in (("error", self.problems), ("warning", self.warnings)):
            for line in lines:
                complain(word, line)
        if status := 2 if self.problems else self.status:
            raise typer.Exit(status)


def command(function: Callable[..., Result | None]) -> Callable[..., None]:
    """Make the command of a function, as typer takes it.

    The command has ``--debug``, ``-v`` and ``-q``, and ``--json`` if the function returns a
    :class:`Result`. The parameter ``progress`` is no option: its value is a function that shows the
    progress. Options that are not given keep the defaults of the function.

    Parameters
    ----------
    function : callable
        Takes the values of arguments and options by name. Its docstring is the help.
    """
    declared = signature(function, eval_str=True)
    parameters = {**declared.parameters}
    has_progress = parameters.pop("progress", None) is not None
    wants_json = parameters.pop("as_json", None) is not None

    def run(
        *,
        as_json: AsJson = False,
        debug: Debug = False,
        verbose: Verbose = 0,
        quiet: Quiet = False,
        **given: Any,
    ) -> None:
        with errors_in_one_line(debug=debug):
            given = {
                name: dict(value) if name.endswith("_options") else value
                for name, value in given.items()
                if value not in (None, []) and name != "help_all"
            }
            if wants_json:
                given["as_json"] = as_json
            with progress_bar() if has_progress else nullcontext() as show:
                result = function(**given, **({"progress": show} if has_progress else {}))
            if result is not None:
                result.show(as_json=as_json)

    options = [*signature(run, eval_str=True).parameters.values()][:-1]
    if not (wants_json or declared.return_annotation is Result):
        del options[0]
    made: Any = run
    made.__name__, made.__doc__ = function.__name__, function.__doc__
    made.__signature__ = Signature(
        [p.replace(kind=Parameter.KEYWORD_ONLY) for p in (*parameters.values(), *options)]
    )
    return run


@contextmanager
def errors_in_one_line(*, debug: bool) -> Iterator[None]:
    """Print errors and warnings as one line on standard error.

    Exit with status 1 for a difference between files or lost blocks, with 2 for any other error.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: complain("warning", message)
            if is_quiet.get():
                warnings.simplefilter("ignore")
            else:
                warnings.simplefilter("always", N5Warning)
            yield
    # the reader has stopped, as in `n5zarr tree LOCATION | head`: typer ends silently
    except (BrokenPipeError, typer.Exit, typer.BadParameter):
        raise
    except Exception as err:
        if debug:
            raise
        if isinstance(err, (N5Error, OSError)):
            complain("error", err)
        else:  # mostly from the library that reads a URL: a wrong address, name or key
            complain("error", f"{type(err).__name__}: {err} (--debug shows where)")
        print_text(*(f"  {note}" for note in getattr(err, "__notes__", ())), stderr=True)
        raise typer.Exit(1 if getattr(err, "kind", "") == "differs" else 2) from None
