"""What stands in a log: bytes into values."""
