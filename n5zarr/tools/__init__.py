"""Whole containers: convert them, build pyramids, check them, refer to their blocks.

Knows what becomes of many blocks, on how many workers, and how an interrupted run goes on. May
import all packages above it. Must not parse N5 or print anything: results are values.
"""
