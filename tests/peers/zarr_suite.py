"""Run zarr's own tests plainly, with n5zarr imported, and on its stores; write part of a page.

    uv run --with universal-pathlib --with tomlkit --with pytest-benchmark \\
        python -m tests.peers.zarr_suite zarr-3.4.2 [--modules tests/test_indexing.py ...]

The first argument is the unpacked source of the installed zarr, which has the tests:
``pip download --no-binary zarr --no-deps zarr==3.4.2``. Takes half an hour. Writes
its part of ``docs/design/results.md``; ends with 1 if a test differs with n5zarr imported.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from tests.docs.migration.pages import with_tables
from tests.peers.suites import HERE, PAGE, Outcomes, failures, outcomes_of, reason

MARK = "<!-- made by `python -m tests.peers.zarr_suite` -->"
FEW = 15  # fewer failures for one reason are not told apart
MODULES = [
    "tests/test_array.py", "tests/test_array_stateful.py", "tests/test_attributes.py",
    "tests/test_indexing.py", "tests/test_group.py", "tests/test_codecs",
    "tests/test_codec_pipeline.py", "tests/test_codec_pipeline_suite.py",
    "tests/test_fused_pipeline.py", "tests/test_pipeline_parity.py",
    "tests/test_fastpath_equivalence.py", "tests/test_config.py", "tests/test_api.py",
    "tests/test_api/test_synchronous.py", "tests/test_v2.py", "tests/test_unified_chunk_grid.py",
    "tests/test_properties.py", "tests/test_resize.py", "tests/test_info.py", "tests/test_tree.py",
    "tests/test_metadata/test_consolidated.py", "tests/test_metadata/test_io.py",
    "tests/test_store/test_core.py",
]  # fmt: skip
# of zarr's own stores, and of parts of zarr without a store
ONLY_IMPORTED = [
    "tests/test_store/test_memory.py", "tests/test_store/test_local.py",
    "tests/test_store/test_wrapper.py", "tests/test_store/test_logging.py",
    "tests/test_store/test_stateful.py", "tests/test_store/test_zip.py", "tests/test_buffer.py",
    "tests/test_chunk_transform.py", "tests/test_experimental", "tests/test_registry.py",
    "tests/test_array_spec.py", "tests/test_sync.py", "tests/test_codec_entrypoints.py",
    "tests/test_metadata/test_v2.py", "tests/test_metadata/test_v3.py",
]  # fmt: skip

ASKED = ("test_array.py", "test_group", "test_api", "test_indexing", "test_codec")

# why tests fail on a store of N5: the first pattern found in the name of the test and its message
REASONS = {
    r"expected a regular grid": "N5 has no chunks of unequal sizes (rectilinear grids).",
    r"expected a Zarr (v[23] )?document or chunk.*holds no other|ambiguous|does_not_unpickle"
    r"|v2_and_v3_exist": (
        "A store shows a node in one version of Zarr; the test writes documents of both, or other"
        " keys."
    ),
    r"ContainsGroupError|GroupNotFoundError|keyword argument 'shape'|open_with_mode": (
        "In N5 every directory is a group."
    ),
    r"Hypothesis found": "A test of random arrays fails in several ways; not told apart here.",
    r"_store_dict": "The test looks into the dictionary of a `MemoryStore`.",
    r"expected a chunk of an array": "The test writes chunks without an array.",
    r"contains_": "The test writes invalid documents, around zarr.",
    r"shard is too short|_truncated_shard": "A cut shard is refused when it is written.",
    r"index_read|read_indexes|load_partial|partial_shard_read": (
        "The test replaces the store by a mock of its class, and counts calls of methods that"
        " n5zarr's pipeline does not use; with zarr's pipeline these tests pass."
    ),
    r"write_order": "A store writes the chunks of a shard in the order of its own codecs.",
    r"keeps_retained_chunk|cells_beyond": (
        "A store shows no blocks or elements outside of a dataset."
    ),
    r"overwrite_without_deletes|creates_parents|test_info|nbytes_stored|nan_fill_value": (
        "The bytes of documents and chunks are N5's, or their number is."
    ),
    r"scale_offset": "What a codec cannot decode is refused when it is written.",
    r"is not available": "The codec is not registered when the store decodes the chunk.",
    r"disables partial reads": "zarr warns when the store reads the document, too.",
    r"consolidated": "Changed documents are not hidden by old consolidated metadata.",
    r"config_codec_implementation|invalid_metadata_create": (
        "The test waits for a call or a warning of zarr's pipeline; n5zarr's is another."
    ),
    r"orthogonal_set_total": "The store reads the document of an array before it writes a chunk.",
    r"pickle": "zarr decodes pickles only where it is told to; the store decodes chunks, too.",
    r"isinstance": "The test asks for the class of the store.",
}


def run(tests: Path, way: str, report: Path, modules: list[str]) -> Outcomes:
    """Run modules of tests in one of the ways of ``zarr_plugin.py``."""
    options = ["-n", "2", "-o", "addopts=", "-p", "zarr_plugin", "--import-mode=prepend", *modules]
    variables = {"PYTHONPATH": str(HERE), "HYPOTHESIS_PROFILE": "ci", "N5ZARR_ZARR_WAY": way}
    return outcomes_of(options, tests, report, **variables)


def differences(plain: Outcomes, other: Outcomes) -> list[str]:
    """Return the tests with other results."""
    names = sorted(plain.keys() | other.keys())
    return [name for name in names if plain.get(name, [""])[0] != other.get(name, [""])[0]]


def part(plain: Outcomes, imported: Outcomes, store: Outcomes) -> str:
    """Return the part of the page for the results of all three ways."""
    other = differences(plain, imported)
    failed = failures(store)
    same_names = {k: v for k, v in plain.items() if k in store}
    wrong = [name for name in differences(same_names, store) if name in failed]
    reasons = Counter(reason(REASONS, name, failed[name]) for name in wrong)
    passed = {name for name, (outcome, _) in store.items() if outcome == "passed"}
    asked = [name for name in store if name.removeprefix("tests/").startswith(ASKED)]
    n_kept = sum(outcome in ("skipped", "xfailed") for outcome, _ in store.values())
    n_failed = len(set(asked) & set(wrong))
    n_run = n_failed + len(passed & set(asked))
    n_equal, zarr = len(imported) - len(other), f"zarr {version('zarr')}"
    results = f"{len(passed)} pass, {len(wrong)} fail, and {n_kept} are skipped"
    rate = f"{100 * n_failed / n_run:.1f} % fail"
    of_asked = f"of those of arrays, groups, the API, indexing and codecs {rate}"
    lines = [
        f"Of {len(imported)} tests of {zarr}, {n_equal} have the same result with n5zarr imported.",
        *(f"- differs: `{name}`" for name in other),
        "",
        f"On stores of N5, {results}; {of_asked}. Why they fail:",
        "",
    ]
    lines += [f"- {why} ({n})" for why, n in reasons.most_common() if n >= FEW]
    rest = sum(n for n in reasons.values() if n < FEW)
    lines += [f"- Other reasons, each of fewer than {FEW} tests. ({rest})"] if rest else []
    return "\n".join([*lines, ""])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", type=Path, help="the unpacked source of zarr")
    parser.add_argument("--reports", type=Path, default=Path(), help="a folder for the outcomes")
    parser.add_argument("--modules", nargs="+", help="only these; nothing is written")
    parser.add_argument("--again", action="store_true", help="from the reports of a run before")
    options = parser.parse_args()
    everything = options.modules or MODULES + ONLY_IMPORTED
    ways = {"plain": everything, "imported": everything, "store": options.modules or MODULES}
    found = {}
    for way, modules in ways.items():
        report = options.reports / f"{way}.json"
        if not options.again:
            run(options.tests, way, report, modules)
        found[way] = json.loads(report.read_text(encoding="utf-8"))
    text = part(found["plain"], found["imported"], found["store"])
    if options.modules:
        sys.stdout.write(text)
    else:
        page = with_tables(PAGE.read_text(encoding="utf-8"), text, MARK)
        PAGE.write_text(page, encoding="utf-8")
    return 1 if differences(found["plain"], found["imported"]) else 0


if __name__ == "__main__":
    sys.exit(main())
