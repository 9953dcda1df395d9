"""Show a report as a page of HTML that needs nothing else."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

from n5zarr.store.info import bytes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 75rem; margin: 0 auto; padding: 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; margin: .4rem 0 1rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .8rem .25rem 0;
  border-bottom: 1px solid #8884; }
th { font-weight: 600; white-space: nowrap; } code { font-size: .85em; overflow-wrap: anywhere; }
h1, h2, p { overflow-wrap: anywhere; }
.ok { color: #18794e; } .failed, .problems { color: #c62828; } .running { color: #b26a00; }
@media (prefers-color-scheme: dark) {
  .ok { color: #5bd08e; } .failed, .problems { color: #ff8a80; } .running { color: #ffb74d; } }
@media (max-width: 50rem) {
  thead { display: none; } tr { display: block; padding: .4rem 0; border-bottom: 1px solid #8884; }
  td { display: block; border: 0; padding: .1rem 0; overflow-wrap: anywhere; }
  td[data-of]::before { content: attr(data-of) ": "; color: #888; } }
"""
_COLUMNS = (
    "path",
    "shape, C order",
    "dimensions, N5",
    "data type",
    "side",
    "blocks",
    "bytes",
    "SHA-256",
)
_LISTS = {  # members of a run that are lists of objects, with their columns
    "skipped": ("path", "reason"),
    "findings": ("severity", "kind", "path", "block", "file", "message"),
    "differences": ("path", "what", "key", "first", "second", "values"),
}


def page(report: Mapping[str, Any]) -> str:
    """Return a report as HTML, without scripts.

    Parameters
    ----------
    report : mapping
        The report as plain JSON.
    """
    runs = report["runs"]
    facts = {
        "status": report["status"],
        "started": report["started"],
        "ended": report["ended"] or "not yet",
        "seconds": report["seconds"],
        **report["program"],
    }
    parts = [f"<h1>n5zarr report: {_status(report['status'])}</h1>", _facts(facts)]
    if len(runs) > 1:
        rows = ([_status(run["status"]), escape(_name(run)), _said(run)] for run in runs)
        parts.append(_table(("status", "run", "result"), rows))
    for run in runs:
        parts += _run(run)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>n5zarr report</title><style>{_STYLE}</style>{''.join(parts)}</html>"
    )


def _run(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts of the page about a run."""
    yield f"<h2>{escape(_name(run))}: {_status(run['status'])}</h2>"
    if run["error"] is not None:
        error = run["error"]
        lines = [f"{error['type']}: {error['message']}", *error["notes"]]
        yield "".join(f'<p class="failed">{escape(line)}</p>' for line in lines)
    options = {
        name: value for name, value in run["options"].items() if value not in (False, [], "")
    }
    times = {name: run[name] for name in ("started", "ended", "seconds")}
    yield _facts({**run["locations"], **run.get("result", {}), **times, "options": options})
    if run["datasets"]:
        yield _table(_COLUMNS, _datasets(run))
    for warning in run["warnings"]:
        yield f"<p>warning: {escape(warning)}</p>"
    for name, columns in _LISTS.items():
        if run.get(name):
            rows = ([_text(each.get(column)) for column in columns] for each in run[name])
            yield f"<h3>{name}</h3>{_table(columns, rows)}"


def _datasets(run: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield a row for each side of each dataset."""
    for dataset in run["datasets"]:
        facts = [
            _text(dataset["path"] or "/"),
            *map(_text, (dataset["shape"], dataset["dimensions"])),
        ]
        for name in run["locations"]:
            side = dataset.get(name)
            if side is not None:
                n_bytes = side["bytes_stored"]
                blocks = f"{_text(side['blocks_stored'])} of {_text(side['blocks'])}"
                size = "" if n_bytes is None else bytes_text(n_bytes)
                digest = f"<code>{side['sha256']}</code> " if side["sha256"] else ""
                yield [
                    *facts, _text(side["data_type"]), name, blocks, size,
                    digest + _text(side.get("note")),
                ]  # fmt: skip


def _name(run: Mapping[str, Any]) -> str:
    return f"{run['command']} {' → '.join(run['locations'].values())}"


def _said(run: Mapping[str, Any]) -> str:
    if run["error"] is not None:
        return escape(run["error"]["message"])
    n = len(run["datasets"])
    return f"{n} dataset{'' if n == 1 else 's'}, {run['seconds']} s"


def _status(status: str) -> str:
    return f'<span class="{status}">{status}</span>'


def _text(value: object) -> str:
    if value is None:
        return ""
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _facts(facts: Mapping[str, object]) -> str:
    return _table((), ([f"<b>{escape(name)}</b>", _text(value)] for name, value in facts.items()))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of cells of HTML."""
    head = "".join(f"<th>{column}</th>" for column in columns)
    names = [f' data-of="{column}"' for column in columns] or ["", ""]
    body = (
        "".join(
            f"<td{name}>{cell}</td>" for name, cell in zip(names, row, strict=True) if cell or name
        )
        for row in rows
    )
    lines = "".join(f"<tr>{row}</tr>" for row in body)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
