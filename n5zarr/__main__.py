"""Entry point of the command line."""

from __future__ import annotations

import sys

from n5zarr.cli.version import version_line


def main() -> None:
    """Run the command line, or say what to install."""
    try:
        from n5zarr.cli.app import app  # noqa: PLC0415 - the extra may be missing
    except ImportError as err:
        if err.name not in ("typer", "rich"):
            raise
        if sys.argv[1:] == ["--version"]:
            sys.stdout.write(f"{version_line()}\n")
            return
        sys.exit("n5zarr: the command line needs typer and rich: pip install 'n5zarr[cli]'")
    except KeyboardInterrupt:  # imports take a second
        sys.exit(130)
    if sys.flags.optimize > 1:
        sys.exit("n5zarr: the command line reads docstrings, which python -OO removes; use -O")
    app()


if __name__ == "__main__":
    main()
