"""The command ``rm-empty``."""

from __future__ import annotations

from dataclasses import asdict

import typer

import n5zarr
from n5zarr.cli.common import (
    AsJson,
    Debug,
    DryRun,
    Library,
    Node,
    Options,
    Scheduler,
    Workers,
    complain_of_each,
    errors_in_one_line,
    print_json,
    say,
    storage_options,
)
from n5zarr.cli.progress import progress_bar
from n5zarr.store.info import bytes_text

__all__ = ["rm_empty"]


def rm_empty(
    location: Node,
    dry_run: DryRun = False,
    as_json: AsJson = False,
    scheduler: Scheduler = None,
    workers: Workers = None,
    option: Options = None,
    backend: Library = "fsspec",
    debug: Debug = False,
) -> None:
    """Remove stored blocks that hold only the fill value.

    Datasets read as before, because missing blocks read as zero. For a group, check all datasets
    below it. Other programs may write local blocks at the same time. If blocks are damaged, they
    stay, and the exit status is 2.
    """
    with errors_in_one_line(debug=debug):
        options = storage_options(option)
        with progress_bar() as show:
            done = n5zarr.remove_empty_blocks(
                location,
                dry_run=dry_run,
                storage_options=options,
                backend=backend,
                scheduler=scheduler,
                n_workers=workers,
                progress=show,
            )
        problems = [str(problem) for problem in done.problems]
        if as_json:
            print_json({**asdict(done), "problems": problems})
        else:
            would = "would be removed" if dry_run else "removed"
            pruned = f", and {done.n_directories} empty directories" if done.n_directories else ""
            say(
                f"{done.n_removed} of {done.n_blocks} blocks {would}, {bytes_text(done.n_bytes)}, "
                f"of {done.n_datasets} datasets{pruned}"
            )
    complain_of_each(problems)
    if problems:
        raise typer.Exit(2)
