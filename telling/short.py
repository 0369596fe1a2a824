"""What is said first, and what is alike said once, so that a small run has a short report.

    headline(results)                   what was found, then what is not known, in at most two sentences
    warnings(results)                   those that several arms share in one line
    climb_words(results)                arms whose hidden tests do not follow the shown ones
    barren(results)                     one line in place of a table of zeros; empty where there is something to show
    histogram(results), nothing_in(...) rows and buckets without anything in one

results.json keeps each of these sentences whole (figures/said.py); no verdict is drawn or changed here.
Left out: all else that is said (words.py, beside.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import groupby

from figures.numbers import alike, in_points, listed, of, plural, points
from figures.plan import CONTROL
from figures.results import Against, Results
from figures.said import seen_alone
from telling.words import comparisons, estimate, within

# How the verdict begins that is none by the plan.
BEGINS = re.compile(
    r"(So far, and no verdict by the plan|One of \d+ planned runs, and no verdict by itself|Exploratory): "
)
FOUND = {"better": "found more than", "worse": "found less than", "equivalent": "found as much as"}


def headline(r: Results) -> str:
    """The verdict, with what it rests on: the arms of which it says something, then those of which it does not."""
    verdict, rows = r["verdict"], comparisons(r)
    if not verdict["arms"] or not rows:
        return verdict["sentence"]
    began = BEGINS.match(verdict["sentence"])
    told = []
    for word, found in FOUND.items():
        if arms := [arm for arm, row in rows.items() if row["verdict"] == word]:
            margin = f" within {in_points(verdict['margin'])}" if word == "equivalent" else ""
            told.append(f"{listed(_named(r, arms))} {found} {CONTROL}{margin}{_against(r, arms, rows)}")
    said = "; ".join(told) or _counts(r, [CONTROL, *rows])
    said = f"{began[0] if began else ''}{said[0].upper()}{said[1:]}."
    if open_ := {arm: row for arm, row in rows.items() if row["verdict"] == "inconclusive"}:
        adjusted = ", adjusted for the number of arms" if seen_alone(rows) else ""
        worth = f" worth acting on ({in_points(verdict['margin'])})" if verdict["margin"] > 0 else ""
        said += (
            f" Whether {listed(_named(r, list(open_)))} differ{'s' * (len(open_) == 1)} from {CONTROL} is not known: "
            f"these tasks do not show a difference{adjusted}, nor that there is none{worth}."
        )
    return said


def _named(r: Results, arms: Sequence[str]) -> list[str]:
    """Arms by name; of one that is shown references the name alone would say too much of its search."""
    hinted = r.get("hinted") or {}  # older files have none
    return [f"{arm} (shown a right program, or a part of one)" if arm in hinted else arm for arm in arms]


def _successes(r: Results, arm: str) -> tuple[int, int]:
    """What an arm found by the primary metric, and out of how many."""
    if r["verdict"]["primary_metric"] == "per_sample":
        return r["per_sample"][arm]["passes"], r["per_sample"][arm]["samples"]
    return r["intervals"][arm]["rescued"], r["intervals"][arm]["n"]


def _noun(r: Results) -> str:
    return "sample" if r["verdict"]["primary_metric"] == "per_sample" else "task"


def _against(r: Results, arms: Sequence[str], rows: Mapping[str, Against]) -> str:
    """In brackets: 34 and 30 of 225 tasks against 20."""
    (control, whole), mine = _successes(r, CONTROL), [_successes(r, arm) for arm in arms]
    if runs := _runs(r):
        return f" ({listed([of(*counts) for counts in mine])} against {runs})"
    if {n for _, n in mine} != {whole}:
        return f" ({listed([of(*counts) for counts in mine])} against {of(control, whole)})"
    return f" ({listed([f'{k:,}' for k, _ in mine])} of {plural(whole, _noun(r))} against {control:,})"


def _counts(r: Results, arms: Sequence[str]) -> str:
    """Of 7 tasks resample rescued 1, and solo and ring 2 each."""
    found = {arm: _successes(r, arm) for arm in arms}
    verb, sizes = "passed" if _noun(r) == "sample" else "rescued", {n for _, n in found.values()}
    of_all = f"of {plural(min(sizes), _noun(r))} " if len(sizes) == 1 else ""
    if of_all and not any(k for k, _ in found.values()):
        return f"{of_all}no arm {verb} any"
    groups: dict[str, list[str]] = {}
    for arm, (k, n) in found.items():
        groups.setdefault(f"{k:,}" if of_all else of(k, n), []).append(arm)
    if CONTROL in found and (runs := _runs(r)):
        groups = {runs: [CONTROL], **_without(groups, CONTROL)}
    told = [f"{listed(names)} {'' if nth else f'{verb} '}{count}{' each' * (len(names) > 1)}"
            for nth, (count, names) in enumerate(groups.items())]  # fmt: skip
    several = len(told) > 1 and any(len(names) > 1 for names in groups.values())
    return of_all + (f"{', '.join(told[:-1])}, and {told[-1]}" if several else listed(told))


def _runs(r: Results) -> str:
    """What the control found run by run, where the arms are held against the mean of its runs: 16, 20 and 24 in its 3
    runs."""
    if r["verdict"].get("against_runs", 1) < 2:
        return ""
    every = [f"{k:,}" for k in r["noise"]["rescued"]]
    return f"{listed(every)} in its {len(every)} runs"


def _without(groups: Mapping[str, Sequence[str]], name: str) -> dict[str, list[str]]:
    left = {said: [other for other in names if other != name] for said, names in groups.items()}
    return {said: names for said, names in left.items() if names}


# ── warnings ─────────────────────────────────────────────────────────────────────────────────────────────────────────

# Warnings of one arm that others may share: whose it is, how many, and what is said of all.
SHARED = (
    re.compile(r"(?P<who>[^:]+): (?P<many>[\d,]+ of [\d,]+) (?P<what>.+)"),
    re.compile(r"(?P<who>.+) still owes (?P<what>attempts) (?P<many>on .+? tasks?), (?P<rest>which .+)"),
)


def warnings(r: Results) -> list[str]:
    """What a reader must know before any figure; what several arms share, once, with the number of each."""
    groups: dict[tuple[str, ...], list[tuple[str, re.Match[str] | None]]] = {}
    for said in r["warnings"]:
        match = next(filter(None, (pattern.fullmatch(said) for pattern in SHARED)), None)
        key = (said,) if match is None else tuple(match.groupdict()[name] for name in ("what", "rest")
                                                  if name in match.groupdict())  # fmt: skip
        groups.setdefault(key, []).append((said, match))
    return [_folded(key, group) for key, group in groups.items()]


def _folded(key: Sequence[str], group: Sequence[tuple[str, re.Match[str] | None]]) -> str:
    matches = [match for _, match in group if match]
    if len(matches) < 2:
        return group[0][0]
    told = alike({match["who"]: match["many"] for match in matches})
    what, *rest = key
    if rest:
        return f"{what.capitalize()} are still owed, {rest[0].replace('its rates', 'the rates')} ({told})"
    return f"{what[0].upper()}{what[1:]} ({told})"


# ── climbs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def climb_words(r: Results) -> list[str]:
    """The arms whose hidden tests do not follow all the way: those whose shown tests rise and whose gap excludes 0,
    each by its own interval. Fresh draws cannot climb. That they follow takes programs that pass every test, more than
    the control has: who passes the shown tests passes some hidden ones whatever it does, and an arm that stops begins
    without a pass. What holds of several arms is said once."""
    groups: dict[tuple[bool, bool], dict[str, list[str]]] = {}
    for arm, row in r["climb"].items():
        moved, beyond = row["moved"], row["against_resample"]
        if arm == CONTROL or not moved:
            continue
        found = beyond or moved
        (lo, hi), (rise, _) = found["gap"]["interval"], found["shown"]["interval"]
        if lo is None or lo <= 0 or rise is None or rise <= 0:  # a gap where the shown tests fall too is no climb
            continue
        passed = found.get("passed")  # older files have none
        least = passed["interval"][0] if passed and beyond else None
        figures = [points(part["mean"], sign=True) for part in (found["shown"], found["hidden"])]
        figures.append(f"{points(found['gap']['mean'])} {within([lo, hi])}")
        figures += [points(passed["mean"], sign=True)] if passed else []
        groups.setdefault(((least or 0) > 0, bool(beyond)), {})[arm] = [*figures, plural(moved["n"], "task")]
    return [_climbing(is_shown, beyond, told) for (is_shown, beyond), told in groups.items()]


def _climbing(is_shown: bool, beyond: bool, told: Mapping[str, Sequence[str]]) -> str:
    """Of arms with the same to say of them. told: shown, hidden, gap, perhaps passed, tasks; named for the first."""
    follow = "the hidden ones follow, not all the way" if is_shown else "whether the hidden ones follow is not shown"
    each, arms = [], listed(list(told))
    for nth, (arm, (shown, hidden, gap, *passed, tasks)) in enumerate(told.items()):
        figures = [shown, hidden, gap, *passed] if nth else [
            f"programs that pass every shown test {shown}", f"hidden tests passed {hidden}", f"the gap {gap}",
            *(f"programs that pass every test {x}" for x in passed)]  # fmt: skip
        each.append(f"{arm} on {tasks}: {', '.join(figures)}")
    return (
        f"{arms[0].upper()}{arms[1:]} climb{'s' * (len(told) == 1)} the shown tests and {follow}. In points from the "
        f"first to the last round{f', beyond {CONTROL}' if beyond else ''}, {'; '.join(each)}."
    )


# ── tables of zeros ──────────────────────────────────────────────────────────────────────────────────────────────────


def barren(r: Results) -> str:
    """In place of a table of rescues in which every arm has none of as many tasks."""
    rows = [row for row in r["intervals"].values() if row["n"]]
    if not rows:  # the verdict says that nothing can be compared yet
        return ""
    if any(row["rescued"] for row in rows) or len({row["n"] for row in rows}) > 1 or len(rows) < len(r["intervals"]):
        return ""
    rate = estimate(rows[0]["rate"], rows[0]["wilson"]).strip()
    said = f"No arm rescued any of {plural(rows[0]['n'], 'task')}: {rate} each."
    by_verdict: dict[str, list[str]] = {}
    for arm, row in comparisons(r).items() if r["verdict"]["primary_metric"] == "rescue_rate" else ():
        by_verdict.setdefault(row["verdict"], []).append(arm)
    told = [f"{listed(arms)}: {verdict}" for verdict, arms in by_verdict.items()]
    return f"{said} Verdict of {'; '.join(told)}." if told else said


def histogram(r: Results) -> list[tuple[str, int]]:
    """Tasks by passes in their base group; numbers of passes that no task has, behind each other, are one row."""
    counts, rows = r["p0_histogram"], list[tuple[str, int]]()
    for found, group in groupby(range(len(counts)), key=lambda k: counts[k] > 0):
        passes = list(group)
        if found or len(passes) == 1:
            rows += [(str(k), counts[k]) for k in passes]
        else:
            rows.append((f"{passes[0]}-{passes[-1]}", 0))
    return rows


def nothing_in(buckets: Sequence[str], noun: str = "program") -> list[str]:
    """Buckets without anything, in one line."""
    return [f"no {noun} here: {', '.join(buckets)}"] if buckets else []
