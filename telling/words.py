"""How results read: a fraction in points, a count in a narrow column, what noise and power mean in a sentence.

Both tellings, the text on the terminal (text.py) and the page (page.py), word their figures here, so that they never
say different things. A figure is a fraction until somebody reads it: points (percent) are made in this room, in the
words of a plan (plan.py) and on the axes of plots.py; in results.json the published keys hold them. What is not known
is a dash or a sentence, never nan.

Left out: the estimates (measure.py), where on the screen or the page a figure stands (tables.py, text.py, page.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from figures.hill import Area, Curve
from figures.numbers import alike, in_points, listed, of, plural, points, share
from figures.plan import CONTROL, EQUIVALENCE_LEVEL, LEVEL
from figures.results import Against, Power, Results
from figures.said import UNFINISHED

STAGES: tuple[tuple[Literal["base", "on_policy", "with_refined"], str], ...] = (
    ("base", "base group"),
    ("on_policy", "and fresh draws"),
    ("with_refined", "and refined ones"),
)
SHARES = (("none", "none"), ("under_20", "<20%"), ("20_to_80", "20-80%"), ("over_80", ">80%"), ("all", "all"))

MEANING = {
    "better": "finds more than resample",
    "worse": "finds less than resample",
    "equivalent": "shown to be as good, within the margin",
    "inconclusive": "neither a difference nor its absence is shown",
}


def within(pair: Sequence[float | None] | None, digits: int = 1, sign: bool = False) -> str:
    """An interval in points; empty where there is none."""
    if not pair or pair[0] is None or pair[1] is None:
        return ""
    return f"[{points(pair[0], digits, sign)}, {points(pair[1], digits, sign)}]"


def number(x: float | None, digits: int = 3) -> str:
    """A figure that is no share, an AUC or a score."""
    return "–" if x is None else f"{x:.{digits}f}"


def auc(found: Area) -> str:
    """With its interval where there is one."""
    lo, hi = found["interval"]
    return number(found["auc"]) + (f" [{number(lo)}, {number(hi)}]" if lo is not None else "")


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


def p_text(p: float | None) -> str:
    return "–" if p is None else "<.001" if p < 0.001 else f"{p:.3f}".lstrip("0") if p < 1 else "1"


def estimate(x: float | None, interval: Sequence[float | None] | None, digits: int = 1, sign: bool = False) -> str:
    """An estimate with its interval, aligned for a column."""
    return f"{points(x, digits, sign):>{3 + digits + sign}} {within(interval, digits, sign)}".rstrip()


CONFIDENCE = share(LEVEL, 0)  # of an interval, as it is printed beside one
SPARSE = (
    "The interval of a difference is a bootstrap over tasks, which is too narrow where few tasks hold a pass; no arm "
    "is called better or worse without its exact p."
)


def repeats_words(r: Results) -> str:
    """How many passes may be of a program that was shown; empty where no pass came after one of its task."""
    told = [
        f"{arm} {later:,} of {row['passes']:,} ({row['repeats']:,} the same program)"
        for arm, row in r["per_sample"].items()
        if (later := row.get("passes_after_first", 0))
    ]
    return f"Passes in a round after the first one with a pass of their task: {listed(told)}." if told else ""


# ── sentences, in the order of a report ──────────────────────────────────────────────────────────────────────────────


def title(r: Results) -> str:
    return f"{r['model'] or 'unnamed model'} on {r['family'] or 'unnamed tasks'}, seed {r['seed']}"


def kind_words(r: Results) -> list[str]:
    """What must be known of a run that is no ordinary one."""
    said = []
    if r["dry_run"]:
        said.append("DRY RUN: toy tasks and a fake policy. These figures say nothing about any model.")
    if r["identity"].get("as_published"):
        said.append("As published: the starred departures in docs/published.md are taken back.")
    if given := r["identity"].get("rollouts"):
        said.append(f"The base group was not asked here: rollouts from {given}.")
    if r["grades"] != "attempts":
        said.append(f"Grades: every saved reply graded again ({r['grades']}).")
    return said


def base_words(r: Results) -> list[str]:
    """What the group throws away, and which tasks are not counted yet."""
    whole, fail, group = sum(r["p0_histogram"]), r["all_fail"], r["budget"]["G"]
    if not whole:
        said = [f"No task has its {group} base attempts yet: nothing can be said so far."]
    elif fail:
        said = [
            f"All-fail: {of(fail, whole, 'task')} ({share(fail / whole)}). A group of {group} that fails as a whole "
            "teaches nothing, and is dropped."
        ]
    else:
        said = ["No task is all-fail: the group throws nothing away."]
    owing = r["incomplete"]
    if owing["base_tasks"]:
        said.append(
            f"Not counted: {plural(owing['base_tasks'], 'task')} whose base group is incomplete "
            f"({plural(owing['base_owed'], 'attempt')} owed)."
        )
    if refused := owing.get("base_refused"):  # older files have none
        said.append(f"Not counted: {plural(refused, 'task')} of which the server refuses a prompt.")
    return said


def audit_words(r: Results) -> list[str]:
    """How many of the all-fail tasks fail their own reference, and what follows."""
    if not (found := r["audit"]):
        return []
    failed, asked = found["all_fail"], found["tasks"]
    whole = sum(failed.values())
    reasons = ", ".join(f"{reason} {n}" for reason, n in found["reasons"].items())
    why = f" ({reasons}), so nothing can be expected to rescue {'it' if failed['disputed'] == 1 else 'them'}"
    said = [
        f"Audit: {of(failed['disputed'], whole, 'all-fail task')} fail{'s' * (failed['disputed'] == 1)} "
        f"{'its' if failed['disputed'] == 1 else 'their'} own reference, or cannot be passed as the tests stand"
        f"{why if reasons else ''}."
    ]
    if unknown := failed["unknown"] + failed["unaudited"]:
        said.append(f"Of {of(unknown, whole)} it is not known.")
    every = ", ".join(f"{number:,} {verdict}" for verdict, number in asked.items() if number)
    said.append(f"Of all tasks asked: {every}.")
    if passed := found["passed_all_the_same"]:
        said.append(f"On {plural(passed, 'disputed task')} some attempt passes all the same.")
    if found["only_passable"]:
        said.append(f"Only passable: the {failed['passable']:,} passable ones alone make the rates and the verdict.")
    return said


def near_miss_words(r: Results) -> str:
    """On how many all-fail tasks the fitness has a slope to offer; empty where on none."""
    near = r.get("near_miss")  # published files have none
    if not near or not near["near_miss"]:
        return ""
    return (
        f"Near-miss: on {near['near_miss']:,} of those {near['all_fail']:,} ({share(near['share'])}) some base attempt "
        f"passed a visible test. There the best one of a task passes {share(near['mean_best_fitness'])} of them on "
        f"average, and at least half on {plural(near['at_least_half'], 'task')} ({share(near['at_least_half_share'])})."
    )


def unrescued_words(r: Results) -> str:
    """How close the tasks came that nobody rescued; empty where there is none."""
    lost = r["unrescued"]
    if not lost["n"]:
        return ""
    return (
        f"On the {plural(lost['n'], 'task')} that no arm rescued, the best program of a task passes "
        f"{share(lost['mean_best_fitness'])} of its visible tests on average"
        + (f"; on {lost['at_zero']:,} ({share(lost['at_zero_share'])}) none passes any." if lost["at_zero"] else ".")
    )


def budget_words(r: Results) -> list[str]:
    """What each all-fail task was given, and what that does to the comparison."""
    budget, given = r["budget"], r["incomplete"]["given"]
    band = " in the near-miss band" if r["band"] == "near-miss" else ""
    said = [
        f"{plural(budget['B'], 'more attempt')} on each of {plural(given, 'all-fail task')}{band}: "
        f"{plural(budget['N'], 'particle')}, {plural(budget['R'], 'round')}"
    ]
    if budget["R"] == 1:
        said.append("With one round nothing is refined: every arm is so many fresh draws.")
    if r["identity"].get("share_round0"):
        said.append(
            "Round 0 was drawn once and counts in every arm: what the arms found there is the same, so they differ by "
            "their later rounds alone, and no two of them are independent."
        )
    return said


def hinted_words(r: Results) -> str:
    """What is to be known of arms that had a part of the answer."""
    told = []
    for arm, row in (r.get("hinted") or {}).items():  # older files have none
        told.append(
            f"{arm} is shown a program known to be right, or a part of one, which no search has: what the arms found "
            f"together leaves it out, and its rows are marked hinted. It alone rescued {plural(row['alone'], 'task')}."
        )
        if row["without_reference"]:
            out_of = of(row["without_reference"], r["incomplete"]["given"], "task")
            told.append(f"It leaves out {out_of}, for want of a reference.")
    return " ".join(told)


def plan_words(r: Results) -> str:
    """Whether the plan came first."""
    if r["verdict"]["planned"]:
        return "The plan was written before the first sample, and this is its rule."
    return f"Exploratory: {'; '.join(r['verdict']['exploratory'])}."


def comparisons(r: Results) -> dict[str, Against]:
    """Arm -> its comparison with the control by the primary metric, where a task counts in it."""
    rows: Mapping[str, Against | None] = r["paired"]
    if r["verdict"]["primary_metric"] == "per_sample":
        rows = {arm: row.get("paired") for arm, row in r["per_sample"].items()}
    elif r["verdict"].get("against_runs", 1) > 1:
        rows = {arm: row["vs_all_resample"] for arm, row in r["paired"].items()}
    return {arm: row for arm, row in rows.items() if row and row["n"]}


def runs_words(r: Results) -> str:
    """What the arms are compared with, where that is more than one run of the control."""
    several = r["verdict"].get("against_runs", 1)
    if several == 1:
        return ""
    return (
        f"{CONTROL}: the mean of its {several} runs, where a verdict is drawn; its own line, and who alone rescued a "
        "task, are of its first run."
    )


def effect_words(r: Results) -> str:
    """The difference as rescues, which is what a reader gets, and what the margin is of all that the control finds."""
    rows = comparisons(r)
    if not rows:
        return ""
    told: dict[str, str] = {}
    for arm, row in rows.items() if r["verdict"]["primary_metric"] == "rescue_rate" else ():
        lo, hi = row["interval"]
        if lo is not None and hi is not None:
            told[arm] = f"{_more(lo * row['n'])} to {_more(hi * row['n'])} of {row['n']:,}"
    several = r["verdict"].get("against_runs", 1)
    mean = f", against the mean of {several} runs of {CONTROL}" if several > 1 else ""
    effect = f"In rescues, {CONFIDENCE}{mean}: {alike(told)}." if told else ""
    return f"{effect} {_margin_words(r, next(iter(rows.values())))}".strip()


def _margin_words(r: Results, row: Against) -> str:
    """What the margin is of all that the control finds, and where it comes from."""
    rate, margin = row.get("control_rate"), in_points(row["margin"])
    asked, control = r["verdict"].get("margin_asked"), r["verdict"].get("control_foretold")  # not in older files
    if not row["margin"]:
        histogram = r.get("p0_histogram", [])
        if not any(histogram[1:]):
            why = f"No base attempt passed, which foretells nothing of {CONTROL}"
        elif len(histogram) == 2:
            why = f"Base groups of one do not show how chances spread over tasks, and foretell nothing of {CONTROL}"
        else:  # groups that pass as a whole or not at all: half of nothing is no margin
            why = f"The base group, all or nothing on most tasks, foretells next to no rescue by {CONTROL}"
        return f"{why}, so no arm can be called equivalent."
    if rate is None or _cannot(row):
        return ""
    from_base = ""
    if asked is not None and control is not None and row["margin"] < asked:
        from_base = f", half of the {share(control)} that the base group foretells of {CONTROL},"
    if rate <= row["margin"]:
        of_control = (
            f"more than {CONTROL} finds at all, so equivalent also takes a {CONFIDENCE} interval that leaves out an "
            "arm that finds nothing"
        )
    else:
        of_control = f"{share(row['margin'] / rate, 0)} of what {CONTROL} finds"
    return f"The margin of {margin}{from_base} is {of_control}."


def _cannot(row: Mapping[str, Any]) -> bool:
    """Whether so few tasks cannot show an arm equivalent, whatever comes out."""
    return row.get("equivalent_up_to", 0) is None


def _more(rescues: float) -> str:
    """A difference in rescues: -3.2 -> 3 fewer."""
    whole = round(rescues)
    return "none" if not whole else f"{abs(whole):,} {'more' if whole > 0 else 'fewer'}"


def equivalence_words(r: Results) -> str:
    """The interval that decides equivalence, for each arm that is neither better nor worse."""
    rows = {arm: row for arm, row in comparisons(r).items() if row["verdict"] in ("equivalent", "inconclusive")}
    rates = r["verdict"]["primary_metric"] == "per_sample"
    digits = 2 if rates else 1
    told = {arm: within(row["equivalence_interval"], digits, sign=True) for arm, row in rows.items()}
    told = {arm: interval for arm, interval in told.items() if interval}
    if not told:
        return ""
    margin, fewest = in_points(next(iter(rows.values()))["margin"]), min(rows.values(), key=lambda row: row["n"])
    if not rates and _cannot(fewest):
        return f"No outcome on {plural(fewest['n'], 'task')} could show an arm as good as {CONTROL} within {margin}."
    exact = f"a {share(EQUIVALENCE_LEVEL, 0)} interval" if rates else "the interval of an exact test"
    wider = " (made with two more tasks, one at either extreme, since most rates are 0)" if rates else ""
    several = r["verdict"].get("against_runs", 1)
    too = (
        f", and the {share(EQUIVALENCE_LEVEL, 0)} interval of the difference from the mean of {several} runs too; "
        f"against the first run of {CONTROL}"
        if several > 1
        else ":"
    )
    return (
        f"Equivalent needs {exact} within {margin} either way{wider}{too} "
        f"{alike(told)}.{'' if rates else _reach_words(fewest)}"
    )


def _reach_words(row: Mapping[str, Any]) -> str:
    """How much two arms may disagree on so many tasks and still be shown equivalent."""
    n, reach = row["n"], row["equivalent_up_to"]
    if reach == 0:
        return f" With {plural(n, 'task')} it takes two arms that rescue the very same ones."
    return (
        f" With {plural(n, 'task')} it is within reach while at most {reach:,} of them are rescued by only one of the "
        "two, as many by either."
    )


def prediction_words(r: Results) -> str:
    """What was predicted, and what its own interval says of it."""
    digits = 2 if r["verdict"]["primary_metric"] == "per_sample" else 1
    late = "so far" if UNFINISHED in r["verdict"]["exploratory"] else "found"
    ends = {True: ", ruled out", False: ", not ruled out", None: ""}
    told: dict[bool, list[str]] = {True: [], False: []}
    for arm, row in r.get("predictions", {}).items():  # older files have none
        found = f"{points(row['delta'], digits, sign=True)} {within(row['interval'], digits, sign=True)}".rstrip()
        said = f"{late} {found}{ends[row['ruled_out']]}"
        told[row["before"]].append(f"{arm} {100 * row['predicted']:+g} points ({said})")
    when = {True: "before the first sample", False: "after the first sample"}
    return " ".join(f"Predicted {when[before]}: {listed(arms)}." for before, arms in told.items() if arms)


def noise_words(r: Results) -> str:
    """How far two runs of one arm lie apart by their seeds alone, and which arm's difference is larger than that."""
    noise = r["noise"]
    unknown = "how far two runs differ by their seeds alone is not known"
    if not noise["runs"]:
        return f"Without the {CONTROL} arm, {unknown}."
    if noise["runs"] < 2:
        return f"{CONTROL} ran once, so {unknown}: --noise-runs 2 tells."
    if "n" not in noise:  # of a published file, told as it is
        return ""
    if not noise["n"]:
        return f"No task is finished in all {noise['runs']} runs of {CONTROL}, so {unknown}."
    widths = {"from the run means": noise["band_t"], "from each task's replicates": noise["band_within"]}
    # Runs alike by luck span no band, which is no evidence that there is none.
    bands = [f"{points(width)} points ({origin})" for origin, width in widths.items() if width and width < 1]
    words = (
        f"{CONTROL} ran {noise['runs']} times and rescued {listed([str(k) for k in noise['rescued']])} of {noise['n']}."
    )
    if not bands:
        few = (
            f"{noise['runs']} runs on {plural(noise['n'], 'task')}" if any(widths.values()) else "Runs this much alike"
        )
        return f"{words} {few} do not tell how far two may lie apart by their seeds alone."
    only = f", the spread itself being known from {noise['runs']} runs alone"
    words += f" Two more runs would lie within {' or '.join(bands)} of each other at {CONFIDENCE} confidence{only}."
    if clears := noise["clears"]:
        known = {arm: [each for each in row.values() if each is not None] for arm, row in clears.items()}
        clear = [arm for arm, each in known.items() if each and all(each)]
        said = listed(clear) or "no arm"
        it = "both" if len(bands) == 2 else "it"
        words += f" {said[0].upper()}{said[1:]} {'clear' if len(clear) > 1 else 'clears'} {it}, which is no test."
    if noise["q_p"] is not None and noise["q_p"] < 0.05:
        words += (
            f" The runs differ by more than their tasks explain (p {p_text(noise['q_p'])}): did the endpoint drift?"
        )
    return words


def ranged(ends: Sequence[float | None], part: bool = False) -> str:
    """A range from end to end, in percent where it is of parts: 41 to 72%."""
    low, high = (f"{100 * x:.0f}" if part else f"{x:,.0f}" for x in map(float, (end or 0.0 for end in ends)))
    return f"{low if low == high else f'{low} to {high}'}{'%' if part else ''}"


def power_words(r: Results) -> str:
    """What chance these tasks gave to see a difference as large as the margin; empty where one was seen."""
    rows = [row for row in r["power"].values() if row["n"] and isinstance(row["power_holm"], list)]  # older: a number
    if r["verdict"]["primary_metric"] != "rescue_rate" or not rows:
        return ""
    if all(word in ("better", "worse") for word in r["verdict"]["arms"].values()):
        return ""
    row = min(rows, key=lambda row: row["n"])
    words = (
        f"A true difference of {in_points(row['effect'])} would be seen here with a chance of "
        f"{ranged(row['power_holm'], True)}"
    )
    if needed := row["tasks_needed"]:
        words += f"; for 80%, one comparison alone needs {ranged(needed)} all-fail tasks"
    by = "base group" if row["foretold_by"] == "base group" else "arms' own disagreement here, which is luck too"
    ends = f"; the worse end is for an arm whose extra passes fall on tasks that {CONTROL} leaves"
    return f"{words}. That is by the {by}{ends if ' to ' in words else ''}."


def luck_words(r: Results) -> str:
    """Of an arm called better or worse: where the margin itself is seen less often than not, what is seen is the larger
    by luck. Empty where the chance is one in two or more, at its best."""
    if r["verdict"]["primary_metric"] != "rescue_rate":
        return ""
    seen = [arm for arm, word in r["verdict"]["arms"].items() if word in ("better", "worse")]
    chances = {arm: chance for arm in seen if (row := r["power"].get(arm)) and (chance := _at_best(row)) < EVEN}
    if not chances:
        return ""
    effect, chance = in_points(r["power"][next(iter(chances))]["effect"]), max(chances.values())
    return (
        f"A true difference of {effect} would be seen here with a chance of {share(chance, 0)} at best. What is seen "
        f"at such odds is picked for being large: {listed(list(chances))} "
        f"{'differs' if len(chances) == 1 else 'differ'} probably by less than is printed."
    )


EVEN = 0.5  # the chance to see the margin, under which a difference that is seen is mostly luck


def _at_best(row: Power) -> float:
    """The chance to see a difference of the margin, at Holm's first step; 1 where there is no margin or no task."""
    ends = row["power_holm"] if isinstance(row["power_holm"], list) else [row["power_holm"]]  # a number in older files
    known = [end for end in ends if end is not None]
    return max(known) if known and row["effect"] > 0 else 1.0


def pooled_words(r: Results) -> str:
    """What the extra samples brought back, however they were structured; empty where there were none."""
    pool = r["pooled"]
    if not pool["n"] or not pool["runs"]:  # all arms were shown references
        return ""
    every, alone = pool["all_runs"], pool["arms_alone"]
    if not every["rescued"]:  # the headline has said so
        return ""
    words = (
        f"Rescued by at least one of {plural(pool['runs'], 'run')}: {of(every['rescued'], pool['n'])} "
        f"({share(every['share'])} {within(every['wilson'])})"
    )
    if alone["rescued"] != every["rescued"]:
        words += f"; by the arms alone {alone['rescued']:,} ({share(alone['share'])} {within(alone['wilson'])})"
    words += "."
    if pool["rows"]:
        words += f" Training rows: {plural(pool['rows'], 'passing program')} {rows_words(r)}."
    if pool["incomplete_tasks"]:
        words += f" On {plural(pool['incomplete_tasks'], 'task')} some run still owes attempts."
    return words


def rows_words(r: Results) -> str:
    """Where the training rows come from; re-runs count among what is kept apart, so it may be none of these."""
    apart = r["pooled"]["rows"] and (r["verified"].get("failed", 0) or r["verified"].get("marked", 0))
    return f"on {plural(r['pooled']['rows_tasks'], 'task')}{', less what of them is kept apart' * bool(apart)}"


def verified_words(r: Results) -> str:
    """What rescued programs do on tests that decided nothing; empty where none was looked at."""
    seen = r["verified"]
    if not seen["programs"]:
        return ""
    without = seen["without_spare_tests"]
    if without == seen["programs"]:
        said = f"Not verified: the tasks of {plural(without, 'rescued program')} of arms and re-runs have no spare test"
    else:
        said = (
            f"Verified: {of(seen['verified'], seen['programs'], 'rescued program')} of arms and re-runs pass every "
            "spare test of their task"
        )
        said += f"; the tasks of {without:,} have no spare test" if without else ""
    apart = [f"{seen['failed']:,} fail{'s' * (seen['failed'] == 1)} a spare test"] * bool(seen["failed"])
    apart += [f"{seen['marked']:,} seem{'s' * (seen['marked'] == 1)} to know answers by heart"] * bool(seen["marked"])
    if apart:
        said += f"; {listed(apart)}: kept apart in rescued-unverified.jsonl"
    if cleared := seen.get("cleared", 0):
        said += (
            f"; {cleared:,} look so and are rows all the same, since they pass spare tests that no program could know"
        )
    if disputed := seen["disputed_tests"]:
        said += f". Not counted: {plural(disputed, 'spare test')} that the reference of the task fails as well"
    return said + "."


def contamination_words(r: Results) -> str:
    """What a model must not be measured on that was trained on the rows; empty where there are none."""
    usual = {"code_contests": ["test", "valid"], "mbpp-bundle": ["train", "validation", "test"]}.get(r["family"] or "")
    if not r["pooled"]["n"] or not r["pooled"]["rows"] or usual is None:
        return ""
    splits = r["identity"].get("splits") or usual
    return (
        f"The rows come from the {listed(splits)} part{'s' * (len(splits) > 1)} of a benchmark: a model trained on "
        "them must not be measured there. --splits train samples the part for training."
        if set(splits) != {"train"}
        else "The rows come from the train part of a data set whose other parts are a benchmark."
    )


def selector_words(r: Results) -> str:
    """What a selector that looks at few samples sees; empty where there are no two."""
    two = r["training_set"]["first_two_disagree"]
    if not two["n"]:
        return ""
    return (
        "A selector of prompts keeps those with a pass share of 20 to 80%; one that looks at two samples alone, those "
        f"whose first two base attempts disagree: {of(two['count'], two['n'], 'task')} ({share(two['share'])} "
        f"{within(two['wilson'])})."
    )


def tier_words(r: Results) -> list[str]:
    """Behind which walls the programs ran; nothing where none were run."""
    said = [f"Graded in tier {r['tier']}: what it stops, and what not, stands in docs/grader.md."] if r["tier"] else []
    if len(under := r["graded_under"] or []) > 1:
        said.append(f"Not all attempts were graded alike: {'; then '.join(under)}. --regrade brings all under one.")
    return said


def cost_words(r: Results) -> str:
    """What stands beside a bill: time, requests that came to nothing, gradings saved, tokens nobody counted."""
    cost = r["cost"]
    said = [f"Wall time {span(cost['wall_seconds'])}."] if cost["wall_seconds"] else []
    if price := cost["price"]:
        said.append(f"At {price[0]:g} usd in and {price[1]:g} usd out a million tokens.")
    if asked := cost["requests"]:
        ends = {"answered": asked["answered"], "failed and sent again": asked["retries"], "refused": asked["refused"]}
        ends["given up"] = asked["faults"]
        ends["cut off"] = asked["sent"] - sum(ends.values())
        told = ", ".join(f"{n:,} {name}" for name, n in ends.items() if n > 0)
        billed = f" ({asked['possibly_billed']:,} possibly billed)" if asked["possibly_billed"] else ""
        said.append(f"Requests: {told or 'none'}{billed}.")
    if (gradings := cost["gradings"]) and gradings["repeated"]:
        whole = gradings["graded"] + gradings["repeated"]
        said.append(f"{of(gradings['repeated'], whole)} gradings were of a program graded before.")
    if unknown := cost["total"]["tokens_unknown"]:
        said.append(f"The server gave no token counts for {plural(unknown, 'reply', 'replies')}.")
    if (slots := cost["slots"]) and not r["dry_run"]:  # the fake policy answers at once: its slots are idle
        idle = {
            "with nothing to ask": slots["nothing_to_ask"],
            "waiting for the grader": slots["grader"],
            "between the requests of a draw": slots["retrying"],
        }
        while_idle = ", ".join(f"{share(part)} {why}" for why, part in idle.items() if part >= 0.0005)
        said.append(f"Slots busy {share(slots['busy'])} of the time{f' ({while_idle})' if while_idle else ''}.")
    return " ".join(said)


# The curves of a calibration that are told, in this order, and what each is called.
CURVES = {"fitness": "Is the fitness a hill", "by_parent": "By its parent's fitness", "judge": "Is the judge a hill"}


def hill_curves(calibration: Mapping[str, Any] | None) -> dict[str, Curve]:
    """Name -> curve of everything in calibration.json that has a verdict."""
    return {name: (calibration or {})[name] for name in CURVES if (calibration or {}).get(name, {}).get("verdict")}


def hill_line(name: str, curve: Curve) -> str:
    """The verdict of one curve, and why."""
    return f"{CURVES[name]}? {_hill(curve)}"


def hill_lines(curves: Mapping[str, Curve]) -> list[str]:
    """Those of several, once where they say the same."""
    asked: dict[str, list[str]] = {}
    for name, curve in curves.items():
        asked.setdefault(_hill(curve), []).append(f"{CURVES[name]}?")
    return [f"{' '.join(questions)} {said}" for said, questions in asked.items()]


def _hill(curve: Curve) -> str:
    return f"{curve['verdict'].replace('_', ' ')}: {curve['why']}."
