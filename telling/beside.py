"""Sentences that stand beside the verdict: what holds at any look, what an arm must beat, what its rescues cost.

    watched_words(results)              the verdict of a run under way, or of one that grew
    fresh_words(results)                what fresh draws are expected to give
    efficiency_words(results)           rescues a million tokens, and the difference at equal tokens

Empty where there is nothing to say; older files have none of it. Left out: the verdict and all else (words.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from figures.numbers import alike, listed, plural, points, share
from figures.plan import CONTROL
from figures.results import Results
from telling.words import CONFIDENCE, p_text, within

TELLS_NOTHING = 0.5  # width of an interval of a share, above which the share is not told


def watched_words(r: Results) -> str:
    """What holds however often a run was looked at on the way; empty where the fixed verdict does, or the plan does not
    allow for it."""
    found = r.get("watched")  # older files have none
    rows = {arm: row for arm, row in found["arms"].items() if row["n"]} if found else {}
    if not found or not rows or not found["planned"] or r["verdict"]["planned"]:
        return ""
    told = []
    for arm, row in rows.items():
        if row["at"] is not None:
            more = "more" if row["verdict"] == "better" else "less"
            after = f"after {row['at']:,} of {plural(row['n'], 'task')} counted"
            told.append(f"{arm} finds {more} than {CONTROL}, seen {after} (p {p_text(row['p'])})")
    if quiet := [arm for arm, row in rows.items() if row["at"] is None]:
        counted = {row["n"] for arm, row in rows.items() if arm in quiet}
        tasks = " to ".join(f"{n:,}" for n in sorted({min(counted), max(counted)}))
        told.append(f"of {listed(quiet)} no difference is seen on {tasks} {'task' if tasks == '1' else 'tasks'}")
    family = plural(len(found["arms"]), "arm")
    return (
        f"However often it was looked at ({family} allowed for; bets on the tasks that one of two alone rescued, in "
        f"the order of asking): {'; '.join(told)}. This way a difference can be shown, and never that there is none."
    )


def fresh_words(r: Results) -> str:
    """What fresh draws are expected to give by the base group alone: what an arm must beat. Empty where nothing is
    foretold, or so little that any share would fit, and for a band that base passes say nothing of."""
    found = r.get("fresh")  # older files have none
    if not found or r["band"] != "all" or not found["all_fail"]:
        return ""
    if found["rescue"][-1] is None:
        some = found["all_fail"] < found["n"]  # a base group without any pass says so by itself
        draws = plural(r["budget"]["B"], "more fresh draw")
        return f"What {draws} would find cannot be told from this base group." if some else ""
    n, (lo, hi) = found["all_fail"], found["rescue_interval"][-1]
    if (hi or 0) - (lo or 0) > TELLS_NOTHING:
        return ""
    doubt = (
        f" The base group is not spread as is assumed (p {p_text(found['fits_p'])}), so this is rough."
        if found["fits_p"] is not None and found["fits_p"] < 0.05
        else ""
    )
    counts = f"{found['rescue'][-1] * n:,.0f} [{(lo or 0) * n:,.0f}, {(hi or 0) * n:,.0f}] of {n:,}"
    return (
        f"What an arm must beat, by the base group alone: {plural(r['budget']['B'], 'more fresh draw')} are expected "
        f"to find a program on {share(found['rescue'][-1])} {within([lo, hi])} of the all-fail tasks ({counts}).{doubt}"
        + (f" {CONTROL} found otherwise: the base group is no good guide here." if _missed(r, lo, hi) else "")
    )


def _missed(r: Results, lo: float | None, hi: float | None) -> bool:
    """Whether what the control found lies, its whole interval, beside what was foretold; once it is done."""
    found = r["intervals"].get(CONTROL)
    if not found or r["incomplete"]["arms"][CONTROL]["tasks"]:
        return False
    least, most = found["wilson"]
    return None not in (lo, hi, least, most) and ((most or 0) < (lo or 0) or (least or 0) > (hi or 0))


def efficiency_words(r: Results) -> str:
    """Rescues a million tokens, and each arm against the control at equal tokens; empty where tokens are unknown, and
    while an arm owes attempts: what is finished first are tasks rescued early. Nothing is said of no rescue at all."""
    found = r.get("efficiency") or {}  # older files have none
    if any(row["tasks"] for row in r["incomplete"]["arms"].values()):
        return ""
    if not any(row["rescued"] for row in r["intervals"].values()):  # what nothing costs
        return ""
    told = {
        arm: span_of(row["per_million_tokens"], row["interval"])
        for arm, row in found.items()
        if row["n"] and row["per_million_tokens"] is not None
    }
    if not told:
        return ""
    said = f"Rescues a million tokens, {CONFIDENCE}: {alike(told)}."
    same = {arm: row["equal_tokens"] for arm, row in found.items()}
    equal = {
        arm: f"{' '.join(filter(None, (points(row['delta'], sign=True), within(row['interval'], sign=True))))} "
        f"(Holm p {p_text(row['p_holm'])})"
        for arm, row in same.items()
        if row
    }
    if equal:
        said += (
            f" At equal tokens, those of {plural(r['budget']['B'], 'fresh draw')} on each task, points minus "
            f"{CONTROL}: {alike(equal)}; no verdict is drawn from it."
        )
    return said


def span_of(x: float | None, interval: Sequence[float | None]) -> str:
    """A rate that is no share, with its interval: 1.46 [0.4, 5.21]."""
    ends = [f"{end:.3g}" for end in interval if end is not None]
    return f"{x:.3g}" + (f" [{', '.join(ends)}]" if len(ends) == 2 else "") if x is not None else "–"
