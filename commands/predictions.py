"""--predict: what somebody expects of the arms, told before the run, so that the result can be held against it.

    predictions("ring=3,star=5", arms)      {"ring": 3.0, "star": 5.0}, in points
    predictions("expected.json", arms)      the same from a file: a JSON object

A prediction is the difference from the control by the primary metric. What is wrong with one is said by a ValueError.

Left out: the flag itself (settings.py), what became of a prediction (figures/predicted.py).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from commands.flags import nearest
from commands.settings import CONTROL


def predictions(text: str, arms: Sequence[str]) -> dict[str, float]:
    """Points by arm. arms: that are compared with the control in this run."""
    pairs = _from_file(Path(text)) if Path(text).is_file() else _from_pairs(text)
    if not arms:
        raise ValueError(f"--predict: nothing is compared with {CONTROL} here: leave it out")
    out: dict[str, float] = {}
    for arm, value in pairs:
        if arm not in arms:
            there = f"there are {', '.join(arms)}{nearest(arm, arms)}"
            raise ValueError(f"--predict: {arm!r} is not compared with {CONTROL} here; {there}")
        if arm in out:
            raise ValueError(f"--predict: {arm} is there twice: say once how many points")
        out[arm] = _points(arm, value)
    if not out:
        raise ValueError(f"--predict {text}: no arm is in it: give arm=points, or leave it out")
    return out


def _from_file(path: Path) -> list[tuple[str, object]]:
    """Pairs rather than a dict, so that what stands twice is seen."""
    try:
        found = json.loads(path.read_bytes(), object_pairs_hook=list)
    except OSError as why:
        raise ValueError(f"--predict {path} cannot be read ({why.strerror}): name another file") from None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(pair, tuple) for pair in found):
        raise ValueError(f'--predict {path} is not a JSON object: write {{"ring": 3, "star": 5}}, points by arm')
    return found


def _from_pairs(text: str) -> list[tuple[str, object]]:
    if "=" not in text:
        raise ValueError(f"--predict: there is no file {text!r}; name one, or say arm=points,arm=points")
    parts = [part.partition("=") for part in text.split(",")]
    return [(arm.strip(), points.strip()) for arm, _, points in parts]


def _points(arm: str, value: object) -> float:
    try:
        points = float("nan") if isinstance(value, bool) or not isinstance(value, str | int | float) else float(value)
    except (ValueError, OverflowError):
        points = float("nan")
    if not -100 <= points <= 100:
        raise ValueError(f"--predict: {arm} {value!r:.40} is no number of points from -100 to 100: say how many points")
    return points
