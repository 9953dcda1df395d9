"""Entry point of the command line."""

from __future__ import annotations

import gc
import os
import sys

from n5zarr.cli.prepared import completion, help_of
from n5zarr.cli.version import version_line


def main() -> None:
    """Run the command line, or say what to install."""
    words, is_shell = sys.argv[1:], "_N5ZARR_COMPLETE" in os.environ
    is_version = words == ["--version"]
    told = completion() if is_shell else version_line() if is_version else help_of(words)
    if told is not None:
        try:
            sys.stdout.write(f"{told}\n")
            sys.stdout.flush()
        except OSError as err:  # a full disk, or a pipe that nobody reads
            sys.stdout = None
            sys.exit(f"n5zarr: {err}")
        sys.exit(0 if words or is_shell else 2)
    gc.disable()  # looking for garbage takes a tenth of the time of imports
    try:
        from n5zarr.cli.app import app  # noqa: PLC0415 - the extra may be missing
    except ImportError as err:
        if err.name not in ("typer", "rich"):
            raise
        sys.exit("n5zarr: the command line needs typer and rich: pip install 'n5zarr[cli]'")
    except KeyboardInterrupt:  # imports take a second
        sys.exit(130)
    if sys.flags.optimize > 1:
        sys.exit("n5zarr: the command line reads docstrings, which python -OO removes; use -O")
    app()


if __name__ == "__main__":
    main()
