"""The style of the pages, and the few lines of script that run in them."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --back: #ffffff; --soft: #f4f6f8; --line: #d5d9de; --dim: #5b6470; --link: #0a58b8;
  --bad: #b3261e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --back: #14181c; --soft: #20252b; --line: #3a414a; --dim: #9aa5b1; --link: #7db7ff;
    --bad: #ff8a80;
  }
  body { color: #e4e8ec }
}
* { box-sizing: border-box }
body {
  background: var(--back); font: 15px/1.45 system-ui, sans-serif;
  margin: 0 auto; max-width: 82rem; padding: 1rem 1.25rem 3rem;
}
h1, h2, h3, p, td, dd, pre, code { overflow-wrap: anywhere }
h1 { font-size: 1.5rem; margin: 0 }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem }
a { color: var(--link) }
.dim, .path, dt, th { color: var(--dim) }
.path { margin: .2rem 0 }
code, pre, .mono { font: .87em/1.45 ui-monospace, monospace }
dl { display: grid; gap: .15rem 1rem; grid-template-columns: max-content 1fr; margin: .8rem 0 }
dd { margin: 0; min-width: 0 }
.images {
  display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fill, minmax(min(18.5rem, 100%), 1fr));
}
.card { border: 1px solid var(--line); border-radius: .5rem; min-width: 0; padding: .8rem }
.card h3 { font-size: 1rem; margin: 0 }
.card p { margin: .2rem 0 }
.card img {
  aspect-ratio: 3 / 2; background: var(--soft); border-radius: .25rem; display: block;
  margin-bottom: .6rem; object-fit: contain; width: 100%;
}
.view {
  background: var(--link); border-radius: .3rem; color: var(--back); display: inline-block;
  margin: .3rem 0; padding: .15rem .8rem; text-decoration: none;
}
summary { cursor: pointer }
.code { background: var(--soft); border-radius: .3rem; margin: .5rem 0; padding: .5rem .6rem }
.code pre { margin: .3rem 0 0; overflow-x: auto; overflow-wrap: normal }
.code b { font-weight: 600 }
button { float: right; font: inherit; font-size: .85em }
table { border-collapse: collapse; width: 100% }
th { font-weight: 500; text-align: left }
td, th { padding: .25rem .9rem .25rem 0; vertical-align: top }
tr { border-bottom: 1px solid var(--line) }
td:first-child { padding-left: calc(var(--level, 0) * 1.2rem) }
.l1 { --level: 1 }
.l2 { --level: 2 }
.group td:first-child { font-weight: 600 }
.error { color: var(--bad) }
@media (max-width: 52rem) {
  thead { display: none }
  tr, td { display: block }
  tr { padding: .4rem 0 .4rem calc(var(--level, 0) * 1.2rem) }
  td, td:first-child { padding: 0 }
  td:empty { display: none }
  td[data-name]::before { color: var(--dim); content: attr(data-name) " " }
}
@media (max-width: 32rem) {
  dl { display: block }
  dd { margin-bottom: .4rem }
}
"""

SCRIPT = """
for (const button of document.querySelectorAll("button")) {
  const code = button.parentNode.querySelector("pre");
  button.hidden = false;
  button.onclick = async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch {  // browsers allow it to pages of this machine and of https
      button.textContent = "selected";
    }
  };
}
"""
