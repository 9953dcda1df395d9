"""Note the help and the completion of all commands, as typer makes them.

``uv run python -m tests.prepared`` writes ``n5zarr/cli/prepared.json`` again, where a change of an
option is visible as a difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer import rich_utils
from typer.main import get_command

import n5zarr
from n5zarr.cli.app import app
from n5zarr.cli.prepared import COLUMNS
from tests.command import CliRunner

FILE = Path(n5zarr.__file__).parent / "cli" / "prepared.json"


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words of each command and group, and the command."""
    yield words, command
    for name in getattr(command, "commands", ()):
        yield from commands(command.get_command(None, name), (*words, name))


def typers(shell: str, *words: str) -> str:
    """Return what typer answers to a shell, when TAB is pressed behind the last word."""
    wide = {"COLUMNS": "9999"}  # else typer folds what one line has to say
    asked = {"_N5ZARR_COMPLETE": f"complete_{shell}", **wide, **line_of(shell, *words)}
    done = CliRunner().invoke(app, [], prog_name="n5zarr", env=asked)
    return done.output.removesuffix("\n") if done.exit_code == 0 else f"exit {done.exit_code}"


def line_of(shell: str, *words: str) -> dict[str, str]:
    """Return the variables in which a shell tells the words."""
    line = " ".join(("n5zarr", *words))
    if shell == "bash":
        return {"COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    return {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}


def offered(*words: str) -> dict[str, dict[str, str]]:
    """Return the words that typer offers, each with what shells take that show its help."""
    found = typers("bash", *words).splitlines()
    zsh = typers("zsh", *words).removeprefix("_arguments '*: :((").removesuffix("))'").splitlines()
    if not found:
        return {}
    # as shells do; typer has the names of its own option for the help in any order
    lines = sorted(zip(found, zsh, typers("fish", *words).splitlines(), strict=True))
    return {word: {"zsh": of_zsh, "fish": of_fish} for word, of_zsh, of_fish in lines}


def helps(words: tuple[str, ...], command: Any) -> dict[str, list[str]]:
    """Return the lines of the help of a command, in colours."""
    known = {name for param in command.params for name in param.opts} | {"--help"}
    options = sorted({"--help", "--help-all"} & known)
    shown = (CliRunner().invoke(app, [*words, name], prog_name="n5zarr") for name in options)
    return {
        name: done.output.removesuffix("\n").split("\n")
        for name, done in zip(options, shown, strict=True)
    }


def words_after(words: tuple[str, ...], command: Any) -> dict[str, dict[str, dict[str, str]]]:
    """Return the commands, the options, and the values of each option that takes one."""
    taking = [p for p in command.params if not getattr(p, "is_flag", True) and not p.count]
    return {
        "": offered(*words, "") if hasattr(command, "commands") else {},
        "-": offered(*words, "-"),
        **{name: offered(*words, name, "") for param in taking for name in param.opts},
    }


def packages() -> dict[str, str]:
    """Return the versions of what words and draws the help."""
    return {name: version(name) for name in ("typer", "rich")}


def made() -> dict[str, Any]:
    known = dict(commands(get_command(app)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(COLUMNS))
        patch.setattr(rich_utils, "FORCE_TERMINAL", True)
        patch.setattr(rich_utils, "COLOR_SYSTEM", "standard")
        shown = {words: helps(words, command) for words, command in known.items()}
    found: dict[str, Any] = {
        " ".join(words): {**shown[words], "words": words_after(words, command)}
        for words, command in known.items()
    }
    found[""]["made with"] = packages()
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
