"""How results read: a fraction in points, a count in a narrow column, what noise and power mean in a sentence.

Both tellings, the text on the terminal (report.py) and the page (page.py), word their figures here, so that they never
say different things. Points (percent) exist in these rooms alone. What is not known is a dash or a sentence, never nan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]

CONTROL = "resample"
STAGES = (("base", "base group"), ("on_policy", "and fresh draws"), ("with_refined", "and refined ones"))
SHARES = (("none", "none"), ("under_20", "<20%"), ("20_to_80", "20-80%"), ("over_80", ">80%"), ("all", "all"))

MEANING = {
    "better": "finds more than resample",
    "worse": "finds less than resample",
    "equivalent": "shown to be as good, within the margin",
    "inconclusive": "neither a difference nor its absence is shown",
}


def points(x: float | None, digits: int = 1, sign: bool = False) -> str:
    """A fraction in points: 0.0269 -> 2.7. Unknown is a dash."""
    if x is None:
        return "–"
    rounded = round(100 * x, digits) + 0.0  # + 0.0 turns -0.0 into 0.0
    return f"{rounded:{'+' if sign and rounded else ''}.{digits}f}"


def within(pair: Sequence[float | None] | None, digits: int = 1, sign: bool = False) -> str:
    """An interval in points; empty where there is none."""
    if not pair or pair[0] is None or pair[1] is None:
        return ""
    return f"[{points(pair[0], digits, sign)}, {points(pair[1], digits, sign)}]"


def share(x: float | None, digits: int = 1) -> str:
    return "–" if x is None else f"{points(x, digits)}%"


def of(k: int, n: int) -> str:
    return f"{k:,} of {n:,}"


def big(x: float | None) -> str:
    """A count for a narrow column: 15,750,198 -> 15.8M."""
    if x is None:
        return "–"
    for least, size, unit in ((1e9, 1e9, "G"), (999_950, 1e6, "M"), (1e4, 1e3, "k")):
        if x >= least:
            return f"{x / size:.1f}{unit}"
    return f"{x:,.0f}"


def span(seconds: float | None) -> str:
    """A time for a person: 5705 -> 1.6 h."""
    if seconds is None:
        return "–"
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (unit == "h" and seconds >= size):
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def plural(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def listed(names: Sequence[str]) -> str:
    names = list(names)
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def p_text(p: float | None) -> str:
    return "–" if p is None else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def estimate(x: float | None, interval: Sequence[float | None] | None, digits: int = 1, sign: bool = False) -> str:
    """An estimate with its interval, aligned for a column."""
    return f"{points(x, digits, sign):>{3 + digits + sign}} {within(interval, digits, sign)}".rstrip()


def title(r: Results) -> str:
    model, family = r.get("model") or "unnamed model", r.get("family") or "unnamed tasks"
    return f"{model} on {family}, seed {r.get('seed')}"


def noise_words(r: Results) -> str:
    """How far two runs of one arm lie apart by their seeds alone, and which arm's difference is larger than that."""
    noise = r.get("noise")
    unknown = "how far two runs differ by their seeds alone is not known"
    if not noise or not noise["runs"]:
        return f"Without the {CONTROL} arm, {unknown}."
    if noise["runs"] < 2:
        return f"{CONTROL} ran once, so {unknown}: --noise-runs 2 tells."
    if not noise.get("n"):
        return f"No task is finished in all {noise['runs']} runs of {CONTROL}, so {unknown}."
    bands = [
        f"{points(noise[key])} points ({origin})"
        for key, origin in (("band_t", "from the run means"), ("band_within", "from each task's replicates"))
        if noise.get(key)  # runs alike by luck span no band, which is no evidence that there is none
    ]
    words = (
        f"{CONTROL} ran {noise['runs']} times and rescued {listed([str(k) for k in noise['rescued']])} of {noise['n']}."
    )
    if not bands:
        return f"{words} Runs this much alike do not tell how far two may lie apart by their seeds alone."
    words += f" By their seeds alone 19 of 20 pairs of runs lie within {' or '.join(bands)}."
    clears = noise.get("clears") or {}
    clear = [arm for arm, row in clears.items() if all(known for known in row.values() if known is not None)]
    clear = [arm for arm in clear if any(known is not None for known in clears[arm].values())]
    if clears:
        said = listed(clear) or "no arm"
        it = "both" if len(bands) == 2 else "it"
        words += f" {said[0].upper()}{said[1:]} {'clear' if len(clear) > 1 else 'clears'} {it}."
    if noise.get("q_p") is not None and noise["q_p"] < 0.05:
        words += (
            f" The runs differ by more than their tasks explain (p {p_text(noise['q_p'])}): did the endpoint drift?"
        )
    return words


def power_words(r: Results) -> str:
    """What chance these tasks gave to see a difference as large as the margin; empty where one was seen."""
    if (r.get("verdict") or {}).get("primary_metric") != "rescue_rate":
        return ""
    rows = [row for row in (r.get("power") or {}).values() if row.get("n") and row.get("power_holm") is not None]
    if not rows or all(row == "better" or row == "worse" for row in r["verdict"]["arms"].values()):
        return ""
    chances = sorted(row["power_holm"] for row in rows)
    needed = sorted(row["tasks_needed"] for row in rows if row.get("tasks_needed"))
    ends = [f"{100 * chance:.0f}%" for chance in (chances[0], chances[-1])]
    words = (
        f"A true difference of {points(rows[0]['effect'], 0)} points would be seen here with a chance of "
        f"{ends[0] if ends[0] == ends[1] else ' to '.join(ends)}"
    )
    if needed:
        words += f"; for 80%, one comparison alone needs {needed[-1]:,} all-fail tasks"
    return words + "."


# The curves of a calibration that are told, in this order, and what each is called.
CURVES = {"fitness": "Is the fitness a hill", "by_parent": "By its parent's fitness", "judge": "Is the judge a hill"}


def hill_curves(calibration: Mapping[str, Any] | None) -> dict[str, Mapping[str, Any]]:
    """Name -> curve (as `measure.hill` makes it) of everything in calibration.json that has a verdict."""
    return {name: (calibration or {})[name] for name in CURVES if (calibration or {}).get(name, {}).get("verdict")}


def hill_line(name: str, curve: Mapping[str, Any]) -> str:
    """The verdict of one curve, and why."""
    return f"{CURVES[name]}? {str(curve['verdict']).replace('_', ' ')}: {curve.get('why')}."
