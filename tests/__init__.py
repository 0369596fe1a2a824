"""The tests; what they share stands in tests/support."""
