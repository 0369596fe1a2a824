"""What the commands share: flags, the folder of a run, limits, how they stop."""
