"""What rescues cost, with intervals, and each arm against the control at equal tokens: equal samples are no equal cost.

    efficiency(table)["ring"]["per_million_tokens"]
    efficiency(table)["ring"]["equal_tokens"]["delta"]

Equal tokens: on each task as many as B fresh draws cost there, B times the mean of its base group. That budget is known
before an arm draws, so no arm's luck moves it. A rescue counts where the passing reply ended within it, replies being
taken round by round and in the order of their particles.

Left out: what was paid in all (counted.py), the verdict, which is at equal samples (compared.py).
"""

from __future__ import annotations

import math

import numpy as np

import stats
from estimators.ratios import per_unit
from figures.plan import CONTROL, LEVEL
from figures.results import Efficiency, EqualTokens
from figures.table import Bools, Floats, Play, Table, at


def efficiency(table: Table) -> dict[str, Efficiency]:
    """Rescues a million tokens and a dollar, on the tasks on which an arm owes nothing."""
    price = table.config.get("price")
    equal = _equal_tokens(table)
    out: dict[str, Efficiency] = {}
    for arm, play in table.plays.items():
        use = table.finished(arm)
        rescued = play.rescued[use].astype(float)
        given, made = (tokens[use].sum(axis=(1, 2)) for tokens in _tokens(table, play))
        rate, ends = _rate(rescued, (given + made) / 1e6)
        row: Efficiency = {
            "n": int(use.sum()),
            "per_million_tokens": rate,
            "interval": list(ends),
            "per_usd": math.nan,
            "usd_interval": [math.nan, math.nan],
            "equal_tokens": equal.get(arm),
        }
        if price:
            row["per_usd"], ends = _rate(rescued, (given * price[0] + made * price[1]) / 1e6)
            row["usd_interval"] = list(ends)
        out[arm] = row
    return out


def _rate(rescued: Floats, spent: Floats) -> tuple[float, stats.Interval]:
    """nan where the tokens of a reply are not known."""
    if not len(spent) or np.isnan(spent).any():
        return math.nan, stats.Interval(math.nan, math.nan)
    return per_unit(rescued, spent, level=LEVEL)


def _tokens(table: Table, play: Play) -> tuple[Floats, Floats]:
    """(tasks, rounds, particles) of prompts and of replies; none where there is no attempt."""
    c = table.columns
    return at(c.prompt_tokens, play.row, 0.0), at(c.completion_tokens, play.row, 0.0)


def _spent(table: Table, play: Play) -> Floats:
    given, made = _tokens(table, play)
    return given + made


def _equal_tokens(table: Table) -> dict[str, EqualTokens]:
    """Each arm against the control within the tokens of B fresh draws, Holm over the arms; without unknown tokens."""
    if not table.controlled:
        return {}
    budget = _spent(table, table.base).sum(axis=(1, 2)) / table.base_samples * table.particles * table.rounds

    def within(play: Play) -> Bools:
        """(tasks,) whether a passing reply ended within the budget."""
        spent = _spent(table, play)
        upto = np.cumsum(spent.reshape(len(spent), -1), axis=1)
        passed = at(table.columns.passed, play.row, False).reshape(upto.shape).astype(bool)
        return (passed & (upto <= budget[:, None] * (1 + 1e-9))).any(axis=1)

    known = {arm: _spent(table, play).sum(axis=(1, 2)) + budget for arm, play in table.plays.items()}
    out: dict[str, EqualTokens] = {}
    for arm in table.others:
        both = table.both(arm)
        if not both.any() or np.isnan(known[arm][both] + known[CONTROL][both]).any():
            continue
        control, own = (within(table.plays[name])[both].astype(float) for name in (CONTROL, arm))
        got = stats.compare_paired(control, own, level=LEVEL)
        out[arm] = {
            "n": got.n,
            "tokens": float(budget[both].mean()),
            "rescued": int(own.sum()),
            "rescued_resample": int(control.sum()),
            "n_arm_only": got.n_b_only,
            "n_resample_only": got.n_a_only,
            "delta": got.delta,
            "interval": [got.lo, got.hi],
            "p": got.p_value,
            "p_holm": math.nan,
        }
    for row, p in zip(out.values(), stats.holm([row["p"] or 0.0 for row in out.values()]), strict=True):
        row["p_holm"] = float(p)
    return out
