"""Each number in the README has its command here. A package only so that bench/report.py is not report.py."""
