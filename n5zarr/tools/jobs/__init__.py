"""Run long jobs over many blocks: workers, progress, interruption.

Knows tasks and destinations, no formats. May import all packages below `tools`. Must not know what
a task does.
"""
