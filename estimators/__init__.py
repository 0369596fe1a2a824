"""What the estimators of stats.py are made of."""
