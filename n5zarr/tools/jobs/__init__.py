"""Long runs over many blocks: workers, progress, interruption, boxes that fit in memory.

Knows tasks and destinations, no formats. May import all packages above `tools`. Must not know what
a task does.
"""
