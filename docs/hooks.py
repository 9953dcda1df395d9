"""What the site shows beside the pages of this folder: files from outside it, and notebooks.

Pages link to files as they lie in the repository, so that links work there and on the site.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import griffe
from mkdocs.structure.files import File, InclusionLevel
from nbconvert import MarkdownExporter

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
_INTO_DOCS = re.compile(r"(?<=\]\()(?:\.\./)?docs/")  # of a link outside this folder
_NOTEBOOK = re.compile(r"(?<=\]\()([\w./-]+)\.ipynb(?=\))")
_CELL = re.compile(r"<td[ >].*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>([^<]*)</code>")
_PART = re.compile(r"[/_:,(]+(?=\w)(?!code>)")
_HEAD = re.compile(r"<th[ >].*?</th>", re.DOTALL)
_SYLLABLE = re.compile(
    r"(?<=tensor)(?=store)|(?<=Neuro)(?=glancer)|(?<=Big)(?=Data)|(?<=Data)(?=Viewer)"
)
LONGEST_NAME = 20  # letters that stay on one line in a table
LONGEST_WORD = 11  # also on a phone
_RECORDS = ("design/", "../CHANGELOG.md", "../CONTRIBUTING.md")
WORDS = {  # that readers type and titles do not say: the pages that answer them come first
    "axis-order.md": "transposed transpose swapped order fortran",
    "bigstitcher.md": "split tiles xml",
    "blocks.md": "fill fill_value nan endian",
    "cookbook.md": "append compare hdf5 tiff",
    "machine-learning.md": "crops patches gpu cuda torch training loader augmentation",
    "migration/zarr-2.md": "module",
    "performance.md": "slow speed faster",
    "pyramids.md": "downsample downsampling",
    "remote.md": "s3 gcs anonymous bucket NoCredentialsError AccessDenied Forbidden",
    "safety.md": "parallel concurrent processes overwrite durability security untrusted power",
    "suites.md": "numbers",
    "support.md": "compression lz4 dtype",
    "validate.md": "corrupt corrupted damaged broken repair",
    "view.md": "napari serve picture thumbnail",
    "virtual.md": "copying references kerchunk",
    "what-n5-cannot-say.md": "fill fill_value bool",
    "xarray.md": "resolution voxel units coordinates offset dask",
    "zarr.md": "delete remove rename",
}
_ROLE = re.compile(r":\w+:`~?\.?([^`]+)`")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies outside this folder, under the paths that links have: ``../CHANGELOG.md``."""

    def add(name: str, place: str, content: str | bytes) -> None:
        kept = InclusionLevel.INCLUDED  # although names that begin with a dot are left out
        file = File.generated(config, f"../{name}", content=content, inclusion=kept)
        file.dest_uri = place
        files.append(file)

    for path in [*sorted(ROOT.glob("*.md")), ROOT / "LICENSE", ROOT / "CITATION.cff"]:
        place = "index.html" if path.stem == "README" else f"project/{path.stem.lower()}/index.html"
        is_page = path.suffix == ".md"
        add(path.name, place if is_page else path.name, path.read_text(encoding="utf-8"))
    for path in sorted(ROOT.glob("tests/peers/stuck/patches/*.patch")):
        add(path.relative_to(ROOT).as_posix(), f"patches/{path.name}", path.read_text("utf-8"))
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        folder = f"notebooks/{path.stem}"
        text, others = MarkdownExporter().from_filename(str(path), {"unique_key": path.stem})
        add(f"{folder}.md", f"{folder}/index.html", text)
        for name, content in others["outputs"].items():
            add(f"notebooks/{name}", f"notebooks/{name}", content)
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Make links lead to the pages of the site; let search find records of design last."""
    if page.file.src_uri.startswith(_RECORDS):
        page.meta["search"] = {"boost": 1e-4}  # a word in a title counts 1000 times as much
    if page.file.src_uri in WORDS:
        page.meta["tags"] = WORDS[page.file.src_uri].split()  # only the search knows them
    if page.file.src_uri.startswith("../"):
        markdown = _INTO_DOCS.sub("/", markdown)
    return _NOTEBOOK.sub(r"\1.md", markdown)


def on_page_content(html: str, *, page: Page, **_: object) -> str:
    """Let long names in tables break; name the pages that site.css lays out."""
    html = _CELL.sub(lambda cell: _CODE.sub(_breakable, cell[0]), html)
    html = _HEAD.sub(lambda cell: _CODE.sub(_breakable, _SYLLABLE.sub("<wbr>", cell[0])), html)
    name = page.file.src_uri.partition("/")[0].removesuffix(".md")
    return f'<div class="{name}">{html}</div>' if name in ("migration", "cheat-sheet") else html


def _breakable(code: re.Match[str]) -> str:
    if len(code[1]) <= LONGEST_WORD:
        return code[0].replace("<code>", '<code class="word">')
    return _PART.sub(r"\g<0><wbr>", code[0]) if len(code[1]) > LONGEST_NAME else code[0]


class Roles(griffe.Extension):
    """Sphinx's roles in docstrings, as links where the site has the name."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Replace the roles of a docstring."""
        if obj.docstring:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
