"""Show a report as a page of HTML that needs nothing else."""

from __future__ import annotations

import json
from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { max-width: 84rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-bottom: 1px solid #8884; }
th { font-weight: 600; overflow-wrap: normal; } tr > th:first-child { width: 8rem; }
td table :is(th, td) { border: 0; padding: 0 .6rem 0 0; font-weight: 400; }
td table th { opacity: .7; }
.ok { color: #18794e; } .failed, .problems { color: #c62828; } .running { color: #b26a00; }
@media (prefers-color-scheme: dark) {
  .ok { color: #5bd08e; } .failed, .problems { color: #ff8a80; } .running { color: #ffb74d; } }
@media (max-width: 50rem) {
  thead { display: none; } tr { display: block; padding: .3rem 0; border-bottom: 1px solid #8884; }
  th, td { display: block; border: 0; padding: 0; } td:empty { display: none; }
  td[data-of]::before { content: attr(data-of) ": "; opacity: .7; }
  td table { display: block; padding-left: 1rem; } td table tr { border: 0; padding: .1rem 0; }
  td table tr:has(> th) { display: flex; } td table tr > th:first-child { flex: 0 0 7rem; } }
"""


def page(report: Mapping[str, Any]) -> str:
    """Return a report as HTML, without scripts.

    Parameters
    ----------
    report : mapping
        The report as plain JSON.
    """
    runs, states = report["runs"], Counter(run["status"] for run in report["runs"])
    whole = {**report, "runs": ", ".join(f"{n} {status}" for status, n in states.items())}
    rows = "".join(
        f'<tr><th>{_html(run["status"], "status")}<td><a href="#{n}">{escape(_name(run))}</a>'
        f"<br>{escape(_reason(run))}"
        for n, run in enumerate(runs)
    )
    parts = [f"<h1>n5zarr report</h1>{_html(whole)}<table>{rows}</table>"]
    parts += [f'<h2 id="{n}">{escape(_name(r))}</h2>{_html(r)}' for n, r in enumerate(runs)]
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>n5zarr report</title><style>{_STYLE}</style>{''.join(parts)}</html>"
    )


def _name(run: Mapping[str, Any]) -> str:
    return f"{run['command']} {' → '.join(run['locations'].values())}"


def _reason(run: Mapping[str, Any]) -> str:
    """Return why a run is not as it should be: its error, or its first finding."""
    said = [run["error"], *run.get("findings", ()), *run.get("differences", ())]
    first: Mapping[str, Any] = next(filter(None, said), {})
    return "" if run["status"] == "ok" else str(first.get("message", ""))


def _html(value: Any, name: str = "") -> str:  # noqa: ANN401 - any JSON
    """Write objects and lists of them as tables, anything else as text."""
    if isinstance(value, dict):
        shown = {k: v for k, v in value.items() if v not in (None, "", False, [], {})}
        facts = (f"<tr><th>{escape(k)}<td>{_html(v, k)}" for k, v in shown.items())
        return f"<table>{''.join(facts)}</table>"
    if isinstance(value, list) and isinstance(next(iter(value), None), dict):
        names = dict.fromkeys(name for row in value for name, v in row.items() if v is not None)
        head = "".join(f"<th>{escape(name)}" for name in names)
        rows = (
            "".join(f'<td data-of="{escape(n)}">{_html(row.get(n), n)}' for n in names)
            for row in value
        )
        lines = "".join(f"<tr>{row}" for row in rows)
        return f"<table><thead><tr>{head}<tbody>{lines}</table>"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "" if value is None else escape(text)
    return f'<b class="{text}">{text}</b>' if name == "status" else text
