"""How a number is written, for everything that has one to say: in points, as a count of many, in a list, as JSON.

    share(0.0269)            2.7%
    of(2, 5, "task")         2 of 5 tasks
    plain(value)             plain Python for JSON, nan as null

A fraction becomes points (percent) here and where it is printed; inside the house it stays a fraction.
Left out: whole sentences (said.py, telling/words.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def points(x: float | None, digits: int = 1, sign: bool = False) -> str:
    """A fraction in points: 0.0269 -> 2.7. Unknown is a dash."""
    if x is None:
        return "–"
    rounded = round(100 * x, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f}"


def share(x: float | None, digits: int = 1) -> str:
    return "–" if x is None else f"{points(x, digits)}%"


def in_points(fraction: float) -> str:
    """A margin in words: .05 -> "5 points"."""
    said = f"{100 * fraction:.6g}"
    return f"{said} point{'' if said == '1' else 's'}"


def of(k: int, n: int, one: str = "") -> str:
    """2 of 5; with a noun, which n decides: 1 of 1 task, 0 of 2 tasks."""
    return f"{k:,} of {plural(n, one) if one else f'{n:,}'}"


def plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    names = list(names)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def alike(told: Mapping[str, str]) -> str:
    """What is said of each name, once for those of which the same is said: solo and ring 1 of 2; star 0 of 2."""
    groups: dict[str, list[str]] = {}
    for name, said in told.items():
        groups.setdefault(said, []).append(name)
    each = [f"{listed(names)} {said}" for said, names in groups.items()]
    return listed(each) if len(each) == len(told) else "; ".join(each)


def ratio(count: float, whole: float) -> float:
    """Their quotient; nan, which becomes null, of nothing."""
    return count / whole if whole else math.nan


def mean(values: Sequence[float] | NDArray[Any]) -> float:
    return float(np.mean(values)) if len(values) else math.nan


def rounded(fraction: float, digits: int = 1) -> float | None:
    """In points, as the published files hold it."""
    return None if math.isnan(fraction) else round(100 * fraction, digits)


def plain(value: object) -> object:
    """Plain Python for JSON: numpy scalars unwrapped, nan and infinities null."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
