"""The tables of the keys that a published results file has: all that there is to tell of one.

    rates(results), differences(results), noise(results)       Tables, None where there is no row to show

Points as they stand in the file, with its intervals by bootstrap. Left out: all that is measured besides (tables.py).
"""

from __future__ import annotations

from figures.results import Results
from telling.tables import Table, table
from telling.words import number, p_text, within


def rates(r: Results) -> Table | None:
    rows = []
    for arm, row in r["arms"].items():
        if not row["n"]:
            continue
        rate = number(row["rescue_rate"], 1) + (f" ± {row['ci']:.1f}" if row["ci"] is not None else "")
        interval = r["intervals"][arm]["bootstrap"] if arm in r["intervals"] else None
        drawn = [within(interval), row["n"], row["samples"], number(row["samples_per_task"], 1)]
        rows.append([arm, rate, *drawn, " ".join(number(x, 1) for x in row["by_round"])])
    head = ["arm", "rescue rate", "interval", "tasks", "samples", "a task", "by round"]
    return table("Rates, as published: points, intervals by bootstrap", head, rows)


def differences(r: Results) -> Table | None:
    rows = []
    for arm, row in r["deltas"].items():
        if row["n_paired"]:
            lo, hi = row["ci95"]
            points_ = f"{row['delta']:+.1f}" + (f" [{lo:+.1f}, {hi:+.1f}]" if lo is not None else "")
            word = row["verdict"].replace("_", " ")
            rows.append([f"{arm} minus {row['vs']}", points_, row["n_paired"], p_text(row["p_value"]), word])
    return table("Differences, as published", ["", "points", "tasks", "p", "verdict"], rows)


def noise(r: Results) -> Table | None:
    found = r["noise"]
    if not any(mean is not None for mean in found.get("means") or ()):
        return None
    spread = [None if x is None else f"{x:g}" for x in (found["run_std"], found["band"])]
    rows = [[found["runs"], " ".join(number(mean, 1) for mean in found["means"]), *spread]]
    return table("Noise, as published, points", ["runs", "rescue rates", "sd of a run", "band"], rows)
