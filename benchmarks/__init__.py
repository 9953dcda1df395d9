"""Measurements; run one with ``uv run python -m benchmarks.NAME``."""
