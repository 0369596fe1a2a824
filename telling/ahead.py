"""What lies ahead, in words: of the plan, how long it will take and what it can show, by what is known so far.

    power_line(plan, held)              by the folder's base group, else by what the plan assumes
    time_line(config, plan, held)       by the waits of the attempts so far, else a least by the probe

held: what the folder's attempts say (figures/foretold.py), None before the first. Left out: calls, tokens and price
(text.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from figures.foretold import Chances, SoFar
from figures.numbers import in_points, of, points
from telling import words
from telling.beside import TELLS_NOTHING


def power_line(plan: Mapping[str, Any], held: SoFar | None) -> str:
    """The chance to see a difference of the margin."""
    if held and held.found and held.chances:
        found = held.found
        low, high = found.rescue_interval[:, -1].tolist()
        if high - low <= TELLS_NOTHING:
            rescue, ends = words.share(float(found.rescue[-1])), words.within([low, high])
            return (
                f"power, by the base group so far ({of(found.failed, found.n, 'task')} all-fail; {len(found.rescue)} "
                f"more fresh draws are expected to find a program on {rescue} {ends} of those): "
                f"{_seen(held, held.chances)}"
            )
    powers = " / ".join(words.share(plan["power"][key]["power_holm"]) for key in ("all", "half", "quarter"))
    effect, assumed, *_ = plan["power_assumes"].split("; ")
    return f"power to see {effect}, assuming {assumed}, if all / half / a quarter of the tasks are all-fail: {powers}"


def _seen(held: SoFar, got: Chances) -> str:
    needed = f"; for 80% alone {words.ranged(got.needed)}" if got.needed else ""
    chance = f"a chance of {words.ranged(got.power_holm, True)} on {held.all_fail:,} all-fail tasks"
    return f"a true difference of {in_points(held.effect)} is seen with {chance}{needed}"


def time_line(config: Mapping[str, Any], plan: Mapping[str, Any], held: SoFar | None) -> str:
    """How long the whole run takes, from what a reply took; without any, what would tell."""
    at_once, calls = config["free"].get("concurrency") or 1, plan["calls"]
    if held and held.attempts and not math.isnan(held.seconds):
        share = held.all_fail / max(plan["population"]["tasks"], 1)
        due = calls["base"] + share * (calls["largest"] - calls["base"]) - held.attempts
        if due < 1:
            return "time: nothing is left to ask, or next to nothing"
        return (
            f"time: about {words.span(due * held.seconds / at_once)} for {round(due):,} more calls, by the "
            f"{held.attempts:,} so far: {held.seconds:.1f} s a reply, {at_once} at once, {points(share, 0)}% all-fail"
        )
    word = config["server"].get("seconds")
    least = (
        f"at least {words.span(calls['largest'] * word / at_once)} for all calls, if each took {word:.2g} s as the "
        "probe's one word did; "
        if word
        else ""
    )
    return f"time: {least}how long real replies take is not known: --limit 5 without --plan, then --plan tells"
