"""Training rows: which programs and tasks, in which columns, in which files (export.py)."""
