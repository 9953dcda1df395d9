"""Run zarr's own tests plainly, with n5zarr imported, and on its stores; write a page.

    uv run --with universal-pathlib --with tomlkit --with pytest-benchmark \\
        python -m tests.peers.zarr_suite zarr-3.4.2 [--modules tests/test_indexing.py ...]

The first argument is the unpacked source of the installed zarr, which has the tests:
``pip download --no-binary zarr --no-deps zarr==3.4.2``. Takes half an hour. Writes
``docs/zarr-tests.md``; ends with 1 if a test differs with n5zarr imported.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from importlib.metadata import version
from pathlib import Path

Outcomes = dict[str, list[str]]  # of each test: outcome, and message of a failure

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "zarr-tests.md"
MODULES = [
    "tests/test_array.py",
    "tests/test_array_stateful.py",
    "tests/test_attributes.py",
    "tests/test_indexing.py",
    "tests/test_group.py",
    "tests/test_codecs",
    "tests/test_codec_pipeline.py",
    "tests/test_codec_pipeline_suite.py",
    "tests/test_fused_pipeline.py",
    "tests/test_pipeline_parity.py",
    "tests/test_fastpath_equivalence.py",
    "tests/test_config.py",
    "tests/test_api.py",
    "tests/test_api/test_synchronous.py",
    "tests/test_v2.py",
    "tests/test_unified_chunk_grid.py",
    "tests/test_properties.py",
    "tests/test_resize.py",
    "tests/test_info.py",
    "tests/test_tree.py",
    "tests/test_metadata/test_consolidated.py",
    "tests/test_metadata/test_io.py",
    "tests/test_store/test_core.py",
]
# of zarr's own stores, and of parts of zarr without a store
ONLY_IMPORTED = [
    "tests/test_store/test_memory.py",
    "tests/test_store/test_local.py",
    "tests/test_store/test_wrapper.py",
    "tests/test_store/test_logging.py",
    "tests/test_store/test_stateful.py",
    "tests/test_store/test_zip.py",
    "tests/test_buffer.py",
    "tests/test_chunk_transform.py",
    "tests/test_experimental",
    "tests/test_registry.py",
    "tests/test_array_spec.py",
    "tests/test_sync.py",
    "tests/test_codec_entrypoints.py",
    "tests/test_metadata/test_v2.py",
    "tests/test_metadata/test_v3.py",
]

ASKED = ("test_array.py", "test_group", "test_api", "test_indexing", "test_codec")

# why tests fail on a store of N5: the first pattern found in the name of the test and its message
REASONS = {
    r"expected a regular grid": "N5 has no chunks of unequal sizes (rectilinear grids).",
    r"expected a Zarr (v[23] )?document or chunk.*holds no other|ambiguous|does_not_unpickle"
    r"|v2_and_v3_exist": (
        "A store shows a node in one version of Zarr, and holds only documents and chunks: a test"
        " writes documents of both versions, or other keys."
    ),
    r"ContainsGroupError|GroupNotFoundError|keyword argument 'shape'|open_with_mode": (
        "In N5 every directory is a group, also one that a test makes for something else."
    ),
    r"Hypothesis found": "A test of random arrays fails in several ways; not told apart here.",
    r"_store_dict": "The test looks into the dictionary of a `MemoryStore`.",
    r"expected a chunk of an array": "The test writes chunks without an array.",
    r"contains_": "The test writes documents that are not valid, around zarr.",
    r"shard is too short|_truncated_shard": "A shard that is cut is refused when it is written.",
    r"index_read|read_indexes|load_partial|partial_shard_read": (
        "The test replaces the store by a mock of its class, and counts calls of methods that"
        " n5zarr's pipeline does not use; with zarr's pipeline these tests pass."
    ),
    r"write_order": "A store writes the chunks of a shard in the order of its own codecs.",
    r"keeps_retained_chunk|cells_beyond": (
        "A store does not show blocks outside of a dataset, nor elements outside of it: blocks at"
        " its end are truncated."
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
    options = ["-q", "-n", "2", "-p", "no:cacheprovider", "-o", "addopts="]
    options += ["-p", "zarr_plugin", "-p", "outcomes_plugin"]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--import-mode=prepend", *modules],
        cwd=tests,
        env={
            # without the options and the worker of the tests that run this
            **{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
            "PYTHONPATH": str(HERE),
            "HYPOTHESIS_PROFILE": "ci",
            "N5ZARR_ZARR_WAY": way,
            "N5ZARR_OUTCOMES": str(report.resolve()),
        },
        check=False,
    )
    found: Outcomes = json.loads(report.read_text(encoding="utf-8"))
    return found


def is_wrong(outcome: str) -> bool:
    """Return whether a test has failed unexpectedly."""
    return outcome not in ("passed", "skipped", "xfailed")


def differences(plain: Outcomes, other: Outcomes) -> list[str]:
    """Return the tests with other results."""
    names = sorted(plain.keys() | other.keys())
    return [name for name in names if plain.get(name, [""])[0] != other.get(name, [""])[0]]


def reason(name: str, message: str) -> str:
    """Return why a test fails."""
    text = f"{name} {message}".replace("\n", " ")
    return next((why for pattern, why in REASONS.items() if re.search(pattern, text)), "Other.")


def module_of(name: str) -> str:
    """Return the module of a test, as the page names it."""
    return name.partition("::")[0].removeprefix("tests/")


def page(plain: Outcomes, imported: Outcomes, store: Outcomes) -> str:
    """Return the page for the results of all three ways."""
    other = differences(plain, imported)
    counts = Counter(outcome for outcome, _ in imported.values())
    wrong = [
        name
        for name in differences({k: v for k, v in plain.items() if k in store}, store)
        if is_wrong(store[name][0])
    ]
    by_module: dict[str, Counter[str]] = defaultdict(Counter)
    for name, (outcome, _) in store.items():
        by_module[module_of(name)]["wrong" if name in wrong else outcome] += 1
    by_reason: dict[str, list[str]] = defaultdict(list)
    for name in wrong:
        by_reason[reason(name, store[name][1])].append(name)
    lines = [
        "# zarr's own tests",
        "",
        f"This page shows the results of the tests of zarr {version('zarr')} with n5zarr.",
        "`python -m tests.peers.zarr_suite` runs the tests and writes this page.",
        "",
        "## With n5zarr imported",
        "",
        "n5zarr's pipeline is then zarr's default; arrays of other stores use zarr's pipeline.",
        f"Of {len(imported)} tests, {len(imported) - len(other)} have the same result as without",
        f"n5zarr: {counts['passed']} pass, {counts['skipped']} are skipped, most for shards in",
        f"Zarr v2 or for a GPU, {counts['xfailed']} fail as zarr expects.",
        *(f"- differs: `{name}`" for name in other),
        "",
        "## On stores of N5",
        "",
        "In these tests, an `N5Store` wraps each `MemoryStore` and `LocalStore`, and each store",
        "that zarr creates for a path or dictionary.",
        "",
        "| module | passed | failed | skipped |",
        "|---|---|---|---|",
    ]
    for module, found in sorted(by_module.items()):
        kept = found["skipped"] + found["xfailed"]
        lines.append(f"| `{module}` | {found['passed']} | {found['wrong'] or ''} | {kept or ''} |")
    asked = [name for name in store if module_of(name).startswith(ASKED)]
    n_failed = len(set(asked) & set(wrong))
    n_run = n_failed + sum(store[name][0] == "passed" for name in asked)
    lines += [
        "",
        f"Of the tests of arrays, groups, the API, indexing and codecs {n_run} run, and {n_failed}",
        f"fail: {100 * n_failed / n_run:.1f} %.",
    ]
    lines += ["", "Reasons for failures, by names and messages of tests, with their number:", ""]
    for why, names in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        tests = Counter(name.partition("[")[0].rpartition("::")[2] for name in names)
        shown = ", ".join(f"`{test}`" for test, _ in tests.most_common(4))
        lines.append(f"- {why} ({len(names)}; {shown}{', ...' if len(tests) > 4 else ''})")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the tests in all ways, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", type=Path, help="the unpacked source of zarr")
    parser.add_argument("--reports", type=Path, default=Path(), help="a folder for the outcomes")
    parser.add_argument("--modules", nargs="+", help="only these; the page is not written")
    parser.add_argument("--again", action="store_true", help="from the reports of a run before")
    options = parser.parse_args()
    everything = options.modules or MODULES + ONLY_IMPORTED
    ways = {"plain": everything, "imported": everything, "store": options.modules or MODULES}
    found = {}
    for way, modules in ways.items():
        report = options.reports / f"{way}.json"
        found[way] = (
            json.loads(report.read_text(encoding="utf-8"))
            if options.again
            else run(options.tests, way, report, modules)
        )
    text = page(found["plain"], found["imported"], found["store"])
    if options.modules:
        sys.stdout.write(text)
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 1 if differences(found["plain"], found["imported"]) else 0


if __name__ == "__main__":
    sys.exit(main())
