"""Which tests run a line, how long each takes, and how processes share the tests."""
