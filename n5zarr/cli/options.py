"""Make options of commands from the signature and the docstring of the function that they call."""

from __future__ import annotations

import inspect
import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from inspect import Parameter, signature
from typing import Annotated, Any, Literal

import typer
from rich.logging import RichHandler

from n5zarr.cli.messages import console, is_quiet

ACCESS = ("storage_options", "backend")
"""The parameters of functions that open a URL."""

Progress = Callable[[str, int, int], None]
"""Shows the progress of a command; no option."""

# ---------------------------------------------------------------------- values


def json_or_text(text: str) -> Any:
    """Parse JSON; anything else is text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _name_and_value(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"expected NAME=VALUE, got {text!r}")
    return name, json_or_text(value.lower() if value in ("True", "False") else value)


def _parser(parse: Callable[[str], Any], expected: str, *words: str) -> Callable[[str], Any]:
    """Make the parser of a type, or of one of some words."""

    def value(text: str) -> Any:
        try:
            return text if text in words else parse(text)
        except ValueError:
            raise typer.BadParameter(f"expected {expected}, got {text!r}") from None

    return value


def _whole_numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _box(text: str) -> list[slice]:
    """Parse ``0:10,:,5:20``."""
    parts = [re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", part) for part in text.split(",")]
    if None in parts:
        raise typer.BadParameter(f"expected z0:z1,y0:y1,x0:x1 in elements, got {text!r}")
    ends = [[int(end) if end else None for end in part.groups()] for part in parts if part]
    return [slice(start, stop) for start, stop in ends]


def _as_bytes(mebibytes: int) -> int:
    return mebibytes * 2**20


# ---------------------------------------------------------------------- verbosity

_VERBOSITY = f"{__name__}.verbosity"  # in `ctx.meta`, which all contexts of a run share


def _set_verbosity(ctx: typer.Context, value: int) -> None:
    """Show the log of n5zarr while the command runs."""
    if not value or ctx.resilient_parsing:
        return
    logger = logging.getLogger("n5zarr")
    if _VERBOSITY not in ctx.meta:
        handler, before = _handler(), logger.level
        logger.addHandler(handler)
        ctx.find_root().call_on_close(lambda: logger.removeHandler(handler))
        ctx.find_root().call_on_close(lambda: logger.setLevel(before))
    ctx.meta[_VERBOSITY] = ctx.meta.get(_VERBOSITY, 0) + value
    logger.setLevel(logging.INFO if ctx.meta[_VERBOSITY] == 1 else logging.DEBUG)


def _handler() -> logging.Handler:
    screen = console(stderr=True)
    if screen.is_terminal:
        return RichHandler(console=screen, show_path=False, log_time_format="%X")
    handler = logging.StreamHandler(screen.file)  # rich fills lines up to their width
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    return handler


def _set_quiet(ctx: typer.Context, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        token = is_quiet.set(True)
        ctx.call_on_close(lambda: is_quiet.reset(token))


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        callback=_set_verbosity,
        metavar="",
        show_default=False,
        help="Log each step; -vv: each request.",
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        callback=_set_quiet,
        help="Hide progress bars and warnings.",
    ),
]


# ---------------------------------------------------------------------- options

Location = Annotated[
    str,
    typer.Argument(metavar="LOCATION", help="Container, node in one, or BigDataViewer's XML."),
]
Node = Annotated[str, typer.Argument(metavar="LOCATION", help="Container, group or dataset.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Host = Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 lets other machines read.")]
Port = Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="Port; 0: any free port.")]


_RARE = {"hidden": True, "rich_help_panel": "More options"}


def _show_all(ctx: typer.Context, value: bool) -> None:
    """Show the help with the options that it hides."""
    if value and not ctx.resilient_parsing:
        hidden: list[Any] = [p for p in ctx.command.params if getattr(p, "hidden", False)]
        for param in hidden:
            param.hidden = False
        typer.echo(ctx.get_help())
        for param in hidden:  # the command may run again in this process
            param.hidden = True
        raise typer.Exit


_HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        callback=_show_all,
        help="Show all options and exit.",
    ),
]


_PAIRS = {"type": list[Any] | None, "parser": _name_and_value, "metavar": "NAME=VALUE"}
# What typer takes for parameters that many functions have, or that users give in another way ...
_BY_NAME: Mapping[str, Mapping[str, Any]] = {
    "storage_options": {
        **_PAIRS,
        "names": ["--storage-option", "-o"],
        "help": "For a URL: an option of its library, such as anon=true.",
    },
    "destination_options": {**_PAIRS, "names": ["--destination-option"]},
    "backend": {
        "type": Literal["fsspec", "obstore"] | None,
        "metavar": "NAME",
        "help": "Library that reads and writes a URL: fsspec or obstore. "
        "Default: obstore if it understands all options.",
    },
    "scheduler": {
        "metavar": "NAME",
        "help": "Run on threads, processes, or a dask scheduler such as tcp://host:8786. "
        "Default: threads.",
    },
    "n_workers": {
        "type": int | None,
        "min": 1,
        "metavar": "N",
        "help": "Number of threads or processes. Default: one for each core.",
    },
    "max_memory": {
        "min": 1,
        "metavar": "MIB",
        "callback": _as_bytes,
        "default": 1024,
        "help": "Memory of all workers together, in MiB.",
    },
    "part": {
        "metavar": "I/N",
        "help": "Do only one of several parts, such as 3/100: a job of a cluster for each; "
        "--finish follows.",
    },
    "finish": {"help": "End the work of all parts: one job, after all others."},
    "report": {
        "type": str | None,
        "metavar": "FILE",
        "help": "Write a report, *.json: datasets, blocks, SHA-256, options, errors.",
    },
    "dry_run": {"help": "Print what would be done; change nothing."},
    "compression": {"help": "raw, gzip, zstd, blosc, ..., or JSON. Default: as it is."},
}
# ... and for others, by the beginning of their type in the docstring.
_NUMBERS = {
    "type": Any,
    "parser": _parser(_whole_numbers, "whole numbers such as 2,2,2"),
    "metavar": "Z,Y,X",
}
_BY_TYPE: Mapping[str, Mapping[str, Any]] = {
    "bool": {"type": bool},
    'int or "auto"': {
        "type": Any,
        "parser": _parser(int, "a number or auto", "auto"),
        "metavar": "N|auto",
    },
    'sequence of int or "auto"': {
        "type": Any,
        "parser": _parser(_whole_numbers, "whole numbers such as 2,2,2", "auto"),
        "metavar": "Z,Y,X|auto",
    },
    "int or sequence of int": _NUMBERS,
    "sequence of int": _NUMBERS,
    "int": {"type": int | None, "metavar": "N"},
    "{3, 2}": {"type": int | None, "metavar": "3|2"},
    "float": {"type": float | None, "metavar": "X"},
    "str or sequence of str": {"type": list[str] | None, "metavar": "GLOB"},
    "sequence of str": {"type": list[str] | None},
    "sequence of slice": {"type": Any, "parser": _box, "metavar": "Z0:Z1,Y0:Y1,X0:X1"},
    "mapping or str": {"type": Any, "parser": json_or_text, "metavar": "NAME"},
    "": {"type": str | None},
}


def options_of(
    called: Callable[..., Any],
    *,
    omit: Collection[str] = (),
    only: Collection[str] = (),
    rare: Collection[str] = (),
    **changed: Mapping[str, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the parameters of the function that it calls, as arguments and options.

    Their types, values and help come from the docstring, in numpy's style: the help is the first
    paragraph about a parameter. The command takes them as ``**given``, without those that the user
    has not given. It may declare others before them.

    Parameters
    ----------
    called : callable
        The function.
    omit : collection of str, optional
        Parameters that are no options, beside ``path``: a location includes it.
    only : collection of str, optional
        Parameters that are options; all others are none.
    rare : collection of str, optional
        Options that only ``--help-all`` shows.
    **changed : mapping
        For parameters of these names, what typer takes, if not what follows from the docstring.
    """
    found = signature(called).parameters
    documented = _documented(called)
    added = {
        name: _parameter(
            name,
            found,
            *documented.get(name, ("", "")),
            {**changed.get(name, {}), **(_RARE if name in rare else {})},
        )
        for name in only or [name for name in found if name not in (*omit, "path")]
    }
    if rare:
        added["help_all"] = Parameter(
            "help_all", Parameter.KEYWORD_ONLY, default=False, annotation=_HelpAll
        )

    def extend(function: Callable[..., Any]) -> Callable[..., Any]:
        declared: Any = signature(function, eval_str=True)
        own = {
            name: parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for name, parameter in declared.parameters.items()
            if parameter.kind is not Parameter.VAR_KEYWORD
        }
        extended: Any = function
        extended.__signature__ = declared.replace(parameters=[*{**own, **added}.values()])
        return function

    return extend


def _documented(function: Callable[..., Any]) -> dict[str, tuple[str, str]]:
    """Return type and first paragraph of each parameter in a docstring."""
    text = inspect.cleandoc(function.__doc__ or "").partition("\nParameters\n----------\n")[2]
    section = re.split(r"\n\n(?=\S)", text)[0]
    entries = re.findall(r"^(\w[\w, ]*) : (.*)\n((?:    .*\n?)+)", section, re.MULTILINE)
    return {
        name: (of_type.removesuffix("optional").rstrip(", "), " ".join(lines.split()))
        for names, of_type, lines in entries
        for name in names.split(", ")
    }


def _parameter(
    name: str,
    found: Mapping[str, Parameter],
    of_type: str,
    text: str,
    changed: Mapping[str, Any],
) -> Parameter:
    """Make an argument or option of one of the parameters of a function."""
    if name == "progress":
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Progress)
    known = {**_of_type(of_type), **_BY_NAME.get(name, {}), **changed}
    settings = {"help": _plain(text, found), **known}
    of_values: Any = settings.pop("type")
    names, default = settings.pop("names", ()), found[name].default
    if default is Parameter.empty:
        argument = typer.Argument(**{"metavar": name.upper(), **settings})
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[str, argument])
    if str(of_values).startswith("list"):
        settings["help"] += " May be repeated."
    if default is False:  # else typer adds a second option for it
        names = [_option_name(name)]
    default = settings.pop("default", default if isinstance(default, int | float | str) else None)
    annotation = Annotated[of_values, typer.Option(*names, **settings)]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _option_name(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _of_type(text: str) -> Mapping[str, Any]:
    """Return what typer takes for values of a type, as docstrings name it."""
    if text.startswith('{"'):
        return {"type": Literal[*json.loads(f"[{text[1:].partition('}')[0]}]")] | None}
    return next(settings for start, settings in _BY_TYPE.items() if text.startswith(start))


def _plain(text: str, parameters: Mapping[str, Parameter]) -> str:
    """Return text of a docstring for a terminal: parameters as options, and no markup."""

    def shown(found: re.Match[str]) -> str:
        code = found[1]
        if code in parameters:
            is_argument = parameters[code].default is Parameter.empty
            return code.upper() if is_argument else _option_name(code)
        inner = code.strip('"')
        return code if '"' in inner else f"'{inner}'" if re.search(r"[*?]", inner) else inner

    text = re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"\1", text)
    text = re.sub(r"``(.*?)``", shown, text)
    return re.sub(r"^Whether to (\w)", lambda found: found[1].upper(), text)
