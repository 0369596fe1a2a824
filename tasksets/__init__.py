"""The task sets, one a file, and what a task is."""
