"""Answer ``--help`` and the completion of a shell from texts that were prepared.

To make them, typer imports all commands and zarr, which takes most of a second. ``prepared.json``
has what ``python -m tests.prepared`` has noted of it: for each command its help, in a terminal of
80 columns, and the words that can follow, as the completion of each shell takes them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLUMNS, _HELP = 80, ("-h", "--help", "--help-all")


def load() -> dict[str, Any]:
    """Read what is prepared, by the words of each command."""
    return json.loads(Path(__file__).with_name("prepared.json").read_bytes())  # type: ignore[no-any-return]


def help_of(words: Sequence[str]) -> str | None:
    """Return the help that words ask for; None if typer has to make it, or none is asked for."""
    *command, option = words or ("--help",)
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    is_wide = shutil.get_terminal_size((COLUMNS, 0)).columns >= COLUMNS
    if not (option in _HELP and is_wide and "│".encode(encoding, "ignore")):
        return None
    prepared = load().get(" ".join(command), {})
    text = "\n".join(prepared.get("--help" if option == "-h" else option, ()))
    has_colours = os.name == "posix" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return (text if has_colours else re.sub(r"\x1b\[[\d;]*m", "", text)) or None


def completion() -> str | None:
    """Return what a shell asks for, in variables; None if typer has to tell.

    Options that were given are offered again.
    """
    shell = os.environ.get("_N5ZARR_COMPLETE", "").removeprefix("complete_")
    line = os.environ.get("COMP_WORDS", os.environ.get("_TYPER_COMPLETE_ARGS", ""))
    if shell not in ("bash", "zsh", "fish") or re.search(r"[\\'\"=]", line):
        return None
    words = re.split("[ \n]", line)  # bash has each word in a line
    *given, last = words[1 : int(os.environ.get("COMP_CWORD", len(line))) + 1] or [""]
    known, command = load(), ""
    for word in given:
        command = below if (below := f"{command} {word}".strip()) in known else command
    after = known[command]["words"]
    kind = given[-1] if given and given[-1] in after else "-" if last[:1] == "-" else ""
    found = [forms.get(shell, word) for word, forms in after[kind].items() if word.startswith(last)]
    if os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args":
        sys.exit(not found)
    text = "\n".join(found)
    return text if shell != "zsh" else f"_arguments '*: :(({text}))'" if found else "_files"
