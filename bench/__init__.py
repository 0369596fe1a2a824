"""Measurements, each a command: its docstring says which."""
