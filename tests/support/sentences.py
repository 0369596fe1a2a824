"""docs/sentences.md: every sentence that is said of results, when it is printed, and an example.

    python -m tests.support.sentences > docs/sentences.md

An entry has data at the edge of its condition, on both sides: `on` prints the sentence, `off` does not. The page is
made of what `on` prints, so no example in it is made up. tests/test_sentences.py holds the list against the source,
both ways: a new sentence fails until it has its entry here.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import report
from figures.foretold import so_far
from figures.hill import hill
from figures.plan import make_plan, plan_digest
from figures.said import kept_grades
from measure import measure
from telling import ahead, beside, short, words
from telling.curves import area
from telling.text import plan_text, text
from tests.support.lay_out import attempt, base, config, names, run

HEAD = """# What is said of results, and when

Made by `python -m tests.support.sentences > docs/sentences.md`, examples and all: each example was printed from data at
the edge of its condition, and just beyond that edge the sentence is not printed. A test does both for every line here,
and finds every sentence of the source in this list.
"""

Say = Callable[[], str]


class Entry(NamedTuple):
    says: str  # words that no other sentence has
    when: str
    on: list[Say]
    off: list[Say]


# ── runs to speak of ─────────────────────────────────────────────────────────────────────────────────────────────────

SMALL: dict[str, Any] = {"rounds": 1, "particles": 1, "base_samples": 1}


@cache
def _measured(
    n: int,
    control: int,
    star: int,
    both: int,
    passing: int,
    arms: int,
    planned: bool,
    owed: bool,
    noise: int,
    seeds: int,
    hinted: bool,
) -> dict[str, Any]:
    tasks = names(n)
    hit = {"resample": dict.fromkeys(tasks[:control], 0)}
    hit |= {"solo": hit["resample"], "ring": hit["resample"]} if arms == 4 else {}
    hit["star"] = dict.fromkeys([*tasks[:both], *tasks[control : control + star - both]], 0)
    attempts = [a for k in range(passing) for a in base(f"p{k:03}", 1, 2)]
    attempts += run(tasks, hit, [hit["resample"]] * noise, rounds=1, particles=1, group=2)
    conf = config(**SMALL | {"base_samples": 2}, arms=list(hit), noise_runs=noise)
    conf["plan"]["seeds"] = seeds
    conf["apart"] = {"star": {"needs": ["reference"]}} if hinted else {}
    plan = make_plan(conf, n + passing) | {"written": 1.0}
    conf["plan_digest"] = plan_digest(plan)
    return dict(measure(attempts[: len(attempts) - owed], conf, plan=plan if planned else None))


def case(
    n: int, control: int, star: int, both: int = 0, *, passing: int = 40, arms: int = 2, planned: bool = True,
    owed: bool = False, noise: int = 0, seeds: int = 1, hinted: bool = False,
) -> Callable[[], Any]:  # fmt: skip
    """A run with n all-fail tasks of which the control rescues so many, star so many, `both` of them the same ones, the
    other arms the control's; and `passing` tasks more, of whose two base attempts one passed."""
    return lambda: copy.deepcopy(_measured(n, control, star, both, passing, arms, planned, owed, noise, seeds, hinted))


def made(**changes: Any) -> Callable[[], Any]:
    """A quiet run with some values changed; a keyword names its keys, a__b__c."""

    def build() -> Any:
        results = case(40, 4, 4, 4)()
        for path, value in changes.items():
            *way, last = path.split("__")
            at = results
            for key in way:
                at = at[key]
            at[last] = value
        return results

    return build


def laid(attempts: Callable[[], list[Any]], **changes: Any) -> Callable[[], Any]:
    return lambda: measure(attempts(), config(**changes))


def quick(rescued: Mapping[str, Mapping[str, int]], n: int = 4, drop: int = 0, **changes: Any) -> Callable[[], Any]:
    """One attempt an arm on n tasks, of which the last `drop` attempts are not there."""

    def build() -> Any:
        attempts = run(names(n), rescued, rounds=1, particles=1, group=1)
        return measure(attempts[: len(attempts) - drop], config(**{**SMALL, "arms": list(rescued), **changes}))

    return build


TWO: dict[str, dict[str, int]] = {"resample": {}, "star": {}}
FOUND_ONE: dict[str, dict[str, int]] = {"resample": {}, "star": {"t0000": 0}}


def entry(how: Callable[[Any], Any], says: str, when: str, on: Sequence[Any], off: Sequence[Any]) -> Entry:
    """how: makes words of data. on, off: the data, or what builds it."""

    def say(data: Any) -> Say:
        return cache(lambda: said(how(data() if callable(data) else data)))

    return Entry(says, when, [say(data) for data in on], [say(data) for data in off])


def said(found: str | Iterable[str]) -> str:
    return found if isinstance(found, str) else "\n".join(found)


def verdict(r: Any) -> str:
    return str(r["verdict"]["sentence"])


def warned(r: Any) -> list[str]:
    return list(r["warnings"])


def why(r: Any) -> str:
    return "; ".join(r["verdict"]["exploratory"])


ALWAYS: list[Any] = []  # no data stands on the other side

# ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────────

of_run = [
    entry(words.kind_words, "DRY RUN: toy tasks", "toy tasks and the fake policy",
          [made(dry_run=True)], [made(dry_run=False)]),
    entry(words.kind_words, "the starred departures", "`--as-published`",
          [made(identity__as_published=True)], [made(identity__as_published=False)]),
    entry(words.kind_words, "The base group was not asked here", "`--rollouts`",
          [made(identity__rollouts="rollouts.jsonl")], [made(identity__rollouts=None)]),
    entry(words.kind_words, "every saved reply graded again", "a regrade's grades count",
          [made(grades="regrade-1")], [made(grades="attempts")]),
    entry(words.base_words, "nothing can be said so far", "no task has its whole base group",
          [made(p0_histogram=[0, 0])], [made(p0_histogram=[1, 0], all_fail=1)]),
    entry(words.base_words, "teaches nothing, and is dropped", "some task is all-fail",
          [made(all_fail=1)], [made(all_fail=0)]),
    entry(words.base_words, "the group throws nothing away", "no task is all-fail, and some has its whole base group",
          [made(all_fail=0)], [made(all_fail=1), made(p0_histogram=[0, 0], all_fail=0)]),
    entry(words.base_words, "whose base group is incomplete", "a base group lacks an attempt",
          [made(incomplete__base_tasks=1, incomplete__base_owed=1)], [made(incomplete__base_tasks=0)]),
    entry(words.base_words, "of which the server refuses a prompt", "a base attempt was refused for good",
          [made(incomplete__base_refused=1)], [made(incomplete__base_refused=0)]),
    entry(words.near_miss_words, "some base attempt passed a visible test",
          "on some all-fail task a base attempt passed a visible test",
          [made(near_miss__near_miss=1)], [made(near_miss__near_miss=0)]),
    entry(words.budget_words, "on each of", "always, where tasks were given to the arms", [made()], ALWAYS),
    entry(words.budget_words, "in the near-miss band", "`--band near-miss`",
          [made(band="near-miss")], [made(band="all")]),
    entry(words.budget_words, "With one round nothing is refined", "one round",
          [made(budget__R=1)], [made(budget__R=2)]),
    entry(words.budget_words, "Round 0 was drawn once", "`--share-round0`",
          [made(identity__share_round0=True)], [made(identity__share_round0=False)]),
    entry(words.tier_words, "what it stops, and what not", "programs were run", [made(tier="full")], [made(tier=None)]),
    entry(words.tier_words, "Not all attempts were graded alike", "more than one tier or set of rules",
          [made(graded_under=["tier full, 3", "tier strict, 3"])], [made(graded_under=["tier full, 3"])]),
]  # fmt: skip

THREE_RUNS: dict[str, Any] = {"arms": 4}


def shared(*arms: str) -> Callable[[], Any]:
    """Warnings of some arms that say the same."""
    alike = "replies repeat another one on the same task; does the server act on temperature and seed?"
    return made(warnings=[f"{arm}: 5 of 8 {alike}" for arm in arms])


def owing_too(*arms: str) -> Callable[[], Any]:
    rest = "which its rates leave out: they lean towards tasks rescued early, and so finished early."
    return made(warnings=[f"{arm} still owes attempts on 1 of 4 tasks, {rest}" for arm in arms])


def headlined(r: Any) -> str:
    found = short.headline(r)
    assert len(re.findall(r"[.] [A-Z]", found)) < 2, found  # two sentences at most
    return found


of_headline = [
    entry(headlined, "found more than resample (6 of 60 tasks against 0)", "better, and one run of resample",
          [case(60, 0, 6)], [case(60, 0, 5)]),
    entry(headlined, "found less than resample (0 of 60 tasks against 6)", "worse", [case(60, 6, 0)], [case(60, 5, 0)]),
    entry(headlined, "found as much as resample within", "equivalent", [case(120, 30, 30, 25)],
          [case(120, 30, 30, 24)]),
    entry(headlined, "resample rescued 0 and star 5", "of no arm is anything known", [case(60, 0, 5)],
          [case(60, 0, 6)]),
    entry(headlined, "no arm rescued any", "and nothing was rescued", [case(60, 0, 0)], [case(60, 0, 1)]),
    entry(headlined, "resample rescued 4, 4 and 4 in its 3 runs", "re-runs of resample take part in the verdict",
          [case(40, 4, 3, 3, noise=2)], [case(40, 4, 3, 3)]),
    entry(headlined, "is not known: these tasks do not show", "some arm is inconclusive", [case(60, 0, 5)],
          [case(60, 0, 6)]),
    entry(headlined, "Whether star differs from resample is not known", "the same", [case(60, 0, 5)], [case(60, 0, 6)]),
    entry(headlined, ", adjusted for the number of arms", "and its own 95% interval excludes 0",
          [case(60, 0, 6, arms=4)], [case(60, 0, 5, arms=4), case(60, 0, 5)]),
    entry(headlined, "worth acting on", "and there is a margin", [case(60, 0, 5, passing=1)],
          [case(60, 0, 5, passing=0)]),
    entry(headlined, "So far, and no verdict by the plan", "the base group or an arm owes an attempt",
          [case(60, 0, 6, owed=True)], [case(60, 0, 6)]),
    entry(headlined, "Exploratory: Star", "no plan came first, or it no longer says what is done",
          [case(60, 0, 6, planned=False)], [case(60, 0, 6)]),
    entry(headlined, "planned runs, and no verdict by itself", "`--seeds` of two or more",
          [case(60, 0, 6, seeds=2)], [case(60, 0, 6, seeds=1)]),
    entry(headlined, "(shown a right program, or a part of one)", "an arm that is shown references",
          [case(60, 0, 6, hinted=True)], [case(60, 0, 6)]),
    entry(short.barren, "No arm rescued any of", "in place of the table of arms: none rescued any of as many tasks",
          [case(60, 0, 0)], [case(60, 0, 1)]),
    entry(short.barren, "Verdict of star: inconclusive", "the same, where an arm is compared with resample",
          [case(60, 0, 0)], [case(60, 0, 1)]),
]  # fmt: skip
of_verdict = [
    entry(verdict, "found more than resample", "better: its own interval is above 0, and the Holm-adjusted p under .05",
          [case(60, 0, 6)], [case(60, 0, 5)]),
    entry(verdict, "found less than resample", "worse: its own interval is below 0, and the Holm-adjusted p under .05",
          [case(60, 6, 0)], [case(60, 5, 0)]),
    entry(verdict, "found as much as resample within", "equivalent: neither, the interval of the test of equivalence "
          "lies within the margin, the 95% one holds 0 and lies above an arm that finds nothing",
          [case(120, 30, 30, 25)], [case(120, 30, 30, 24), case(220, 6, 0, passing=400), case(220, 0, 0)]),
    entry(verdict, "inconclusive by rescue rate", "everything else", [case(60, 0, 5)], [case(60, 0, 6)]),
    entry(verdict, "adjusted for the number of arms", "inconclusive, and the arm's own 95% interval excludes 0",
          [case(60, 0, 6, arms=4)], [case(60, 0, 5, arms=4), case(60, 0, 6)]),
    entry(verdict, "nor that there is none worth acting on", "inconclusive, with a margin",
          [case(60, 0, 5, passing=1)], [case(60, 0, 5, passing=0)]),
    entry(verdict, "So far, and no verdict by the plan", "the base group or an arm owes an attempt",
          [case(60, 0, 6, owed=True)], [case(60, 0, 6)]),
    entry(verdict, "Exploratory: Star", "no plan came first, or it no longer says what is done (the reasons are below)",
          [case(60, 0, 6, planned=False)], [case(60, 0, 6)]),
    entry(verdict, "planned runs, and no verdict by itself", "`--seeds` of two or more",
          [case(60, 0, 6, seeds=2)], [case(60, 0, 6, seeds=1)]),
    entry(verdict, "was shown a program known to be right", "an arm that is shown references",
          [case(60, 0, 6, hinted=True)], [case(60, 0, 6)]),
    entry(words.hinted_words, "which no search has", "an arm that is shown references",
          [made(hinted={"star": {"alone": 1, "without_reference": 0}})], [made(hinted={})]),
    entry(words.hinted_words, "for want of a reference", "and a task has none",
          [made(hinted={"star": {"alone": 1, "without_reference": 1}})],
          [made(hinted={"star": {"alone": 1, "without_reference": 0}})]),
    entry(verdict, "so there is nothing to compare", "no task was given to the arms",
          [laid(lambda: list(base("a", 1, 1)), **SMALL)], [quick(TWO)]),
    entry(verdict, "arm there is nothing to compare with", "without resample",
          [quick({"star": {}})], [quick(TWO)]),
    entry(verdict, "Only resample was played", "no other arm", [quick({"resample": {}})], [quick(TWO)]),
    entry(verdict, "so nothing can be compared yet", "no task is finished by resample and by another arm",
          [quick(TWO, n=1, drop=1)], [quick(TWO, n=1)]),
    entry(words.plan_words, "this is its rule", "the plan came first and is what is done",
          [case(60, 0, 6)], [case(60, 0, 6, planned=False)]),
    entry(words.plan_words, "Exploratory: no plan", "it did not, or is not", [case(60, 0, 6, planned=False)],
          [case(60, 0, 6)]),
]  # fmt: skip


def planned(change: Callable[[Any, Any], None], **then: Any) -> Callable[[], Any]:
    """A run under a plan, of which something is changed: change(plan, config) before its digest is kept."""

    def build() -> Any:
        conf = config(**SMALL, arms=list(TWO))
        plan = make_plan(conf, 4) | {"written": 1000.0}  # the second of the first attempt
        change(plan, conf)
        conf["plan_digest"] = then.get("digest") or plan_digest(plan)
        conf["plan"] |= then.get("settings", {})
        attempts = run(names(4), TWO, rounds=1, particles=1, group=1)
        return measure(attempts, conf, plan=plan)

    return build


def nothing(plan: Any, conf: Any) -> None:
    pass


of_plan = [
    entry(why, "no plan was written before the first sample", "there is no plan.json",
          [case(4, 0, 0, planned=False)], [planned(nothing)]),
    entry(why, "the plan was written after the first sample", "its time is later than the first attempt's",
          [planned(lambda plan, conf: plan.update(written=1000.1))], [planned(nothing)]),
    entry(why, "the plan is not the one whose digest", "plan.json was edited",
          [planned(nothing, digest="0" * 64)], [planned(nothing)]),
    entry(why, "the primary metric was", "the plan names another one",
          [planned(lambda plan, conf: plan.update(primary_metric="per_sample"))], [planned(nothing)]),
    entry(why, "the margin was", "another `--margin` than the plan's",
          [planned(nothing, settings={"margin": 3.0})], [planned(nothing, settings={"margin": 5.0})]),
    entry(why, "changed since the plan was written", "a setting of the plan has grown or changed",
          [planned(nothing, settings={"limit": 3})], [planned(nothing)]),
    entry(why, "whose verdict is drawn from all together", "`--seeds` of two or more",
          [case(60, 0, 6, seeds=2)], [case(60, 0, 6, seeds=1)]),
    entry(why, "the run is not finished", "the base group or an arm owes an attempt, or a task is not begun",
          [case(60, 0, 6, owed=True), quick(TWO, data={"asked": 5})], [case(60, 0, 6), quick(TWO, data={"asked": 4})]),
]  # fmt: skip


def pair(**changes: Any) -> Callable[[], Any]:
    """A quiet run in which the one comparison, of star, has some values changed."""
    return made(**{f"paired__star__{key}": value for key, value in changes.items()})


def against_all() -> Any:
    return {**case(40, 4, 4, 4)()["paired"]["star"], **SEEN}


def seen(**arm: Any) -> Callable[[], Any]:
    """A grown run that was looked at on the way."""
    row = {"n": 40, "waiting": 0, "n_arm_only": 9, "n_resample_only": 0, "wealth": 99.0, "bar": 80.0, "p": 0.01,
           "verdict": "better", "at": 30}  # fmt: skip
    return made(verdict__planned=False, watched={"planned": True, "arms": {"star": {**row, **arm}}})


def noisy(**changes: Any) -> Callable[[], Any]:
    found = {"runs": 3, "n": 40, "rescued": [4, 5, 6], "band_t": 0.05, "band_within": 0.04, "clears": {}, "q_p": None}
    return made(noise={**found, **changes})


def cleared(**bands: Any) -> dict[str, Any]:
    return {"clears": {"star": bands}}


SEEN = {"equivalent_up_to": 1}  # so many tasks that arms could be shown equivalent
RE_RUNS: dict[str, Any] = {"verdict__against_runs": 3, "verdict__primary_metric": "per_sample"}
of_difference = [
    entry(words.effect_words, "In rescues, 95%", "the difference has an interval",
          [pair(interval=[-0.03, 0.05])], [pair(interval=[None, None])]),
    entry(words.effect_words, "against the mean of 3 runs", "re-runs of resample take part in the verdict",
          [made(verdict__against_runs=3, paired__star__vs_all_resample=against_all())],
          [made(verdict__against_runs=1)]),
    entry(words.runs_words, "where a verdict is drawn", "re-runs of resample take part in the verdict",
          [made(verdict__against_runs=2)], [made(verdict__against_runs=1)]),
    entry(words.effect_words, "of what resample finds", "resample finds more than the margin",
          [pair(margin=0.05, control_rate=0.0501, **SEEN)], [pair(margin=0.05, control_rate=0.05, **SEEN)]),
    entry(words.effect_words, "more than resample finds at all", "the margin is all that resample finds, or more",
          [pair(margin=0.05, control_rate=0.05, **SEEN)],
          [pair(margin=0.05, control_rate=0.0501, **SEEN),
           pair(margin=0.05, control_rate=0.05, equivalent_up_to=None)]),
    entry(words.effect_words, "that the base group foretells of resample", "half of that is less than the margin asked "
          "for", [pair(margin=0.0499, **SEEN)], [pair(margin=0.05, **SEEN)]),
    entry(words.effect_words, "No base attempt passed, which", "no base attempt passed",
          [made(paired__star__margin=0.0, p0_histogram=[40, 0, 0]),
           made(paired__star__margin=0.0, p0_histogram=[40, 0])], [made(paired__star__margin=0.0)]),
    entry(words.effect_words, "foretells next to no rescue", "half of what is foretold is no margin, although some "
          "base attempt passed",
          [made(paired__star__margin=0.0)],
          [made(paired__star__margin=0.0, p0_histogram=[40, 0, 0]),
           made(paired__star__margin=0.0, p0_histogram=[40, 40])]),
    entry(words.effect_words, "Base groups of one do not show", "the base group is one attempt, and some passed",
          [made(paired__star__margin=0.0, p0_histogram=[40, 40])],
          [made(paired__star__margin=0.0, p0_histogram=[40, 0]), made(paired__star__margin=0.0)]),
    entry(words.equivalence_words, "interval of the difference from the mean of", "the same, and re-runs of resample "
          "take part in the verdict",
          [made(verdict__against_runs=3, paired__star__vs_all_resample=against_all())],
          [made(verdict__against_runs=1)]),
    entry(words.equivalence_words, "Equivalent needs", "some arm is neither better nor worse, and has an interval",
          [pair(verdict="inconclusive", **SEEN), pair(verdict="equivalent", **SEEN)],
          [pair(verdict="better"), pair(equivalence_interval=[None, None])]),
    entry(words.equivalence_words, "made with two more tasks", "the same, by the rate of samples",
          [made(verdict__primary_metric="per_sample",
                per_sample__star={"paired": case(40, 4, 4, 4)()["paired"]["star"]}, per_sample__resample={})],
          [made()]),
    entry(words.equivalence_words, "No outcome on", "so few tasks that none would be enough",
          [pair(equivalent_up_to=None)], [pair(equivalent_up_to=0)]),
    entry(words.equivalence_words, "rescue the very same ones", "so few tasks that the two may not disagree",
          [pair(equivalent_up_to=0)], [pair(equivalent_up_to=1), pair(equivalent_up_to=None)]),
    entry(words.equivalence_words, "as many by either", "the most they may disagree and be equivalent",
          [pair(equivalent_up_to=1)], [pair(equivalent_up_to=0)]),
    entry(beside.watched_words, "finds more than resample, seen after", "the plan was sound but for a limit that grew "
          "or a run that goes on, and the bets have won: 2 x arms / .05 times the stake",
          [seen(at=30)], [seen(at=None), made()]),
    entry(beside.watched_words, "no difference is seen on", "they have not",
          [seen(at=None)], [seen(at=40)]),
    entry(beside.watched_words, "However often it was looked at", "either",
          [seen()], [made(verdict__planned=True), seen(n=0)]),
    entry(words.noise_words, "how far two runs differ by their seeds alone is not known", "no re-run of resample",
          [noisy(runs=0), noisy(runs=1)], [noisy(runs=2)]),
    entry(words.noise_words, "--noise-runs 2 tells", "resample ran once", [noisy(runs=1)],
          [noisy(runs=2), noisy(runs=0)]),
    entry(words.noise_words, "No task is finished in all", "re-runs, and no task that all of them finished",
          [noisy(n=0)], [noisy(n=1)]),
    entry(words.noise_words, "Runs this much alike", "re-runs without any spread",
          [noisy(band_t=0.0, band_within=0.0)], [noisy(band_t=0.0, band_within=0.001)]),
    entry(words.noise_words, "2 runs on 1 task do not tell", "so few that two more may differ by all rates there are",
          [noisy(runs=2, n=1, rescued=[0, 1], band_t=12.7, band_within=0.0)], [noisy(band_t=0.9, band_within=0.0)]),
    entry(words.noise_words, "Two more runs would lie within", "re-runs with a spread",
          [noisy(band_t=0.0, band_within=0.001), noisy(band_t=12.7, band_within=0.9)],
          [noisy(band_t=0.0, band_within=0.0), noisy(band_t=1.0, band_within=0.0)]),
    entry(words.noise_words, "the spread itself being known from", "the same",
          [noisy(), noisy(band_t=0.0)], [noisy(band_t=0.0, band_within=0.0)]),
    entry(words.noise_words, "Star clears both, which is no test", "the difference is larger than every band",
          [noisy(**cleared(band_t=True, band_within=True))], [noisy(**cleared(band_t=False, band_within=True))]),
    entry(words.noise_words, "No arm clears", "no difference is", [noisy(**cleared(band_t=False, band_within=True))],
          [noisy(**cleared(band_t=True, band_within=True))]),
    entry(words.noise_words, "did the endpoint drift", "Cochran's Q of the runs has p under .05",
          [noisy(q_p=0.0499)], [noisy(q_p=0.05)]),
]  # fmt: skip


def chance(holm: Any, word: str = "better", **changes: Any) -> Callable[[], Any]:
    return made(verdict__arms__star=word, power__star__power_holm=holm, **changes)


def expected(**row: Any) -> Callable[[], Any]:
    """A quiet run whose base group foretells that fresh draws find a program on a tenth of the all-fail tasks."""
    found = {"n": 80, "all_fail": 40, "rescue": [0.1], "rescue_interval": [[0.05, 0.2]], "fits_p": 0.5}
    band = row.pop("band", "all")
    return made(fresh={**found, **row}, band=band)


of_power = [
    entry(words.power_words, "would be seen here with a chance of", "some arm is neither better nor worse",
          [made(verdict__arms__star="inconclusive")],
          [made(verdict__arms__star="better"), made(power__star__power_holm=0.3), made(power__star__n=0)]),
    entry(words.power_words, "That is by the base group", "how often arms disagree is taken from the base group",
          [made(power__star__foretold_by="base group")], [made(power__star__foretold_by="these tasks")]),
    entry(words.power_words, "which is luck too", "it is taken from these tasks: the near-miss band, or none foretold",
          [made(power__star__foretold_by="these tasks")], [made(power__star__foretold_by="base group")]),
    entry(words.power_words, "the worse end is for an arm whose extra", "a chance or a number of tasks is a range",
          [made(power__star__power_holm=[0.1, 0.2])],
          [made(power__star__power_holm=[0.1, 0.1], power__star__tasks_needed=[157, 157])]),
    entry(beside.fresh_words, "What an arm must beat", "the base group foretells something of its all-fail tasks",
          [expected(), expected(rescue_interval=[[0.0, 0.5]])],
          [expected(rescue=[None]), expected(all_fail=0), expected(band="near-miss"),
           expected(rescue_interval=[[0.0, 0.51]])]),
    entry(beside.fresh_words, "cannot be told from this base group", "or it foretells nothing, though some task passed",
          [expected(rescue=[None], all_fail=40, n=41)],
          [expected(rescue=[None], all_fail=40, n=40), expected(rescue=[0.1], all_fail=40, n=41)]),
    entry(beside.fresh_words, "found otherwise", "and resample's own interval lies beside it",
          [expected(rescue_interval=[[0.232, 0.5]]), expected(rescue_interval=[[0.0, 0.039]])],
          [expected(rescue_interval=[[0.229, 0.5]]), expected(rescue_interval=[[0.0, 0.041]])]),
    entry(beside.fresh_words, "so this is rough", "and the fit of the base group has p under .05",
          [expected(fits_p=0.0499)], [expected(fits_p=0.05), expected(fits_p=None)]),
    entry(words.luck_words, "picked for being large", "an arm is better or worse, and the chance to see the margin is "
          "under one in two at its best", [chance([0.2, 0.4999])],
          [chance([0.2, 0.5]), chance([0.2, 0.3], "equivalent"), chance([0.2, 0.3], power__star__effect=0.0)]),
]  # fmt: skip


def foretold(points: float, before: bool = True, **row: Any) -> Callable[[], Any]:
    found = {"predicted": points / 100, "before": before, "delta": 0.0, "interval": [-0.05, 0.05], "ruled_out": False}
    return made(predictions={"star": {**found, **row}})


of_predictions = [
    entry(words.prediction_words, "Predicted before the first sample", "`--predict`, in the plan as first written",
          [foretold(3)], [foretold(3, before=False), made(predictions={})]),
    entry(words.prediction_words, "Predicted after the first sample", "`--predict`, given or changed later",
          [foretold(3, before=False)], [foretold(3)]),
    entry(words.prediction_words, ", ruled out", "its own interval does not hold it, and the run is finished",
          [foretold(5.1, ruled_out=True)], [foretold(5), foretold(5.1, ruled_out=None)]),
    entry(words.prediction_words, "not ruled out", "its own interval holds it, and the run is finished",
          [foretold(5)], [foretold(5.1, ruled_out=True), foretold(5, ruled_out=None)]),
]  # fmt: skip


def brought(**changes: Any) -> Callable[[], Any]:
    return made(**{f"pooled__{key}": value for key, value in changes.items()})


def moved(shown: float, gap: float, passed: float | None, beyond: bool = False) -> Callable[[], Any]:
    """Star's lower limits: of the rise of the shown tests, of its gap to the hidden ones, of the rise of the passes."""
    lows = {"shown": shown, "gap": gap, "hidden": 0.01} | ({} if passed is None else {"passed": passed})
    part = {name: {"mean": low + 0.05, "interval": [low, low + 0.1]} for name, low in lows.items()}
    return made(climb={"star": {"moved": {"n": 40, **part}, "against_resample": part if beyond else None}})


def checks(**counts: int) -> Callable[[], Any]:
    found = {"programs": 3, "verified": 2, "without_spare_tests": 1, "failed": 0, "marked": 0, "disputed_tests": 0}
    return made(verified={**found, **counts})


of_rescues = [
    entry(words.pooled_words, "Rescued by at least one of", "some run has rescued a task",
          [brought(all_runs__rescued=1)], [brought(all_runs__rescued=0), brought(n=0)]),
    entry(words.pooled_words, "Training rows", "some program passes", [brought(rows=1)], [brought(rows=0)]),
    entry(words.pooled_words, "less what of them is kept apart", "a rescued program is kept apart",
          [made(pooled__rows=1, verified__marked=1)], [brought(rows=1)]),
    entry(words.pooled_words, "; by the arms alone", "re-runs of resample rescued further tasks",
          [brought(arms_alone__rescued=3)], [made()]),
    entry(words.pooled_words, "some run still owes attempts", "on a task of these something is owed",
          [brought(incomplete_tasks=1)], [brought(incomplete_tasks=0)]),
    entry(words.verified_words, "pass every spare test of their task", "a rescued program was looked at that has one",
          [checks(programs=2)], [checks(programs=1), checks(programs=0, without_spare_tests=0)]),
    entry(words.verified_words, "have no spare test", "some has none", [checks(), checks(programs=1)],
          [checks(without_spare_tests=0)]),
    entry(words.verified_words, "Not verified: the tasks of", "none has one", [checks(programs=1)],
          [checks(programs=2)]),
    entry(words.verified_words, "fails a spare test", "one does", [checks(failed=1)], [checks(marked=1)]),
    entry(words.verified_words, "to know answers by heart", "one does", [checks(marked=1)], [checks(failed=1)]),
    entry(words.verified_words, "kept apart in rescued-unverified.jsonl", "either",
          [checks(failed=1), checks(marked=1)], [checks()]),
    entry(words.verified_words, "are rows all the same", "a marked one passes spare tests of new inputs",
          [checks(cleared=1)], [checks()]),
    entry(words.verified_words, "that the reference of the task fails as well", "some spare test",
          [checks(disputed_tests=1)], [checks()]),
    entry(words.contamination_words, "must not be measured there", "rows of a part of code_contests or MBPP that is "
          "not the one for training", [made(identity__splits=["test"]), made(identity__splits=["train", "test"])],
          [made(identity__splits=["train"]), made(family="mine.jsonl"), made(pooled__n=0), made(pooled__rows=0)]),
    entry(words.contamination_words, "whose other parts are a benchmark", "rows of the one for training",
          [made(identity__splits=["train"])], [made(identity__splits=["test"]), made(family="mine.jsonl")]),
    entry(words.selector_words, "whose first two base attempts disagree", "a task has two base attempts",
          [made(training_set__first_two_disagree={"n": 1, "count": 0, "share": 0.0, "wilson": [0.0, 0.8]})],
          [made(training_set__first_two_disagree={"n": 0})]),
    entry(words.unrescued_words, "that no arm rescued", "an all-fail task that every arm finished, and none rescued",
          [made(unrescued__n=1)], [made(unrescued__n=0)]),
    entry(words.unrescued_words, "none passes any", "and on one no program passes a visible test",
          [made(unrescued__n=2, unrescued__at_zero=1)], [made(unrescued__n=2, unrescued__at_zero=0)]),
    entry(words.repeats_words, "Passes in a round after the first one", "full budgets, and a pass after a task's first",
          [made(per_sample__star={"passes": 3, "passes_after_first": 1, "repeats": 0}, per_sample__resample={})],
          [made(per_sample__star={"passes": 3, "passes_after_first": 0, "repeats": 0}, per_sample__resample={})]),
    entry(short.climb_words, "climbs the shown tests and", "the share of programs that pass every shown test rises, "
          "and the hidden ones rise less, each by its own interval", [moved(0.001, 0.001, 0.0)],
          [moved(0.0, 0.001, 0.0), moved(0.001, 0.0, 0.0), moved(-0.03, 0.05, -0.1)]),
    entry(short.climb_words, "the hidden ones follow, not all the way", "and the share of programs that pass every "
          "test rises beyond resample's, by its own", [moved(0.001, 0.001, 0.001, beyond=True)],
          [moved(0.001, 0.001, 0.0, beyond=True), moved(0.001, 0.001, 0.001)]),
    entry(short.climb_words, "whether the hidden ones follow is not shown", "and that does not exclude 0, or resample "
          "is not there", [moved(0.001, 0.001, 0.0, beyond=True), moved(0.001, 0.001, 0.001)],
          [moved(0.001, 0.001, 0.001, beyond=True)]),
    entry(short.climb_words, "programs that pass every test +", "and the file tells of them",
          [moved(0.001, 0.001, 0.0)], [moved(0.001, 0.001, None)]),
    entry(short.climb_words, "beyond resample", "resample is there to compare with",
          [moved(0.001, 0.001, 0.0, beyond=True)], [moved(0.001, 0.001, 0.0)]),
]  # fmt: skip


def bill(**changes: Any) -> Callable[[], Any]:
    return made(**{f"cost__{key}": value for key, value in changes.items()})


def spent(**row: Any) -> Callable[[], Any]:
    """Star's rescues for what they cost."""
    equal = {"delta": 0.01, "interval": [-0.02, 0.04], "p_holm": 0.3}
    return made(efficiency={"star": {"n": 40, "per_million_tokens": 1.5, "interval": [0.4, 5.2], "equal_tokens": equal,
                                     **row}})  # fmt: skip


def owing() -> Any:
    """The same, while star owes attempts on a task."""
    results = spent()()
    results["incomplete"]["arms"]["star"]["tasks"] = 1
    return results


def fruitless() -> Any:
    """The same, where no arm has rescued a task."""
    results = spent()()
    for row in results["intervals"].values():
        row["rescued"] = 0
    return results


ASKED = {"sent": 5, "answered": 4, "retries": 1, "refused": 0, "possibly_billed": 1, "faults": 0}
IDLE = {"busy": 0.9, "retrying": 0.0, "grader": 0.04, "nothing_to_ask": 0.0}
of_cost = [
    entry(beside.efficiency_words, "Rescues a million tokens", "the tokens of an arm's attempts are known",
          [spent()], [spent(per_million_tokens=None), spent(n=0), owing, fruitless]),
    entry(beside.efficiency_words, "At equal tokens", "and those of resample, so that both can be cut at as many",
          [spent()], [spent(equal_tokens=None)]),
    entry(words.cost_words, "Wall time", "known", [bill(wall_seconds=90.0)], [bill(wall_seconds=None)]),
    entry(words.cost_words, "usd out a million tokens", "`--price`", [bill(price=[1, 2])], [bill(price=None)]),
    entry(words.cost_words, "failed and sent again", "there is an events.jsonl, and such a request in it",
          [bill(requests=ASKED)], [bill(requests={**ASKED, "retries": 0}), bill(requests=None)]),
    entry(words.cost_words, "possibly billed", "a request failed or was cut off after it may have been charged for",
          [bill(requests=ASKED)], [bill(requests={**ASKED, "possibly_billed": 0})]),
    entry(words.cost_words, "gradings were of a program graded before", "an equal program of the task had its verdict",
          [bill(gradings={"graded": 3, "repeated": 1})], [bill(gradings={"graded": 3, "repeated": 0})]),
    entry(words.cost_words, "The server gave no token counts", "for a reply",
          [bill(total__tokens_unknown=1)], [bill(total__tokens_unknown=0)]),
    entry(words.cost_words, "Slots busy", "a real run", [bill(slots=IDLE)],
          [bill(slots=None), made(cost__slots=IDLE, dry_run=True)]),
    entry(words.cost_words, "waiting for the grader", "at least .05% of the slots' time",
          [bill(slots={**IDLE, "grader": 0.0005})], [bill(slots={**IDLE, "grader": 0.0004})]),
    entry(words.cost_words, "with nothing to ask", "at least .05% of it",
          [bill(slots={**IDLE, "nothing_to_ask": 0.0005})], [bill(slots={**IDLE, "nothing_to_ask": 0.0004})]),
    entry(words.cost_words, "between the requests of a draw", "at least .05% of it",
          [bill(slots={**IDLE, "retrying": 0.0005})], [bill(slots={**IDLE, "retrying": 0.0004})]),
]  # fmt: skip


def group(n: int, **odd: Any) -> Callable[[], list[Any]]:
    """Ten tasks with one base attempt each, the first n of them odd."""
    return lambda: [attempt(task, **(odd if k < n else {})) for k, task in enumerate(names(10))]


def alike(n: int) -> Callable[[], list[Any]]:
    """Eight base attempts on a task, of which n + 1 have one reply."""
    return lambda: [attempt("t", particle=k, reply="the same" if k <= n else f"other {k}") for k in range(8)]


def late(outcome: str) -> list[Any]:
    """Two rounds of one attempt on a task that nothing rescues; the second one has this outcome."""
    return [attempt("t"), attempt("t", "resample"), attempt("t", "resample", round=1, outcome=outcome)]


ONE: dict[str, Any] = {**SMALL, "arms": ["resample"]}
of_shared = [
    entry(short.warnings, "act on temperature and seed? (solo and star 5 of 8)", "two arms say the same of each",
          [shared("solo", "star")], [shared("solo"), owing_too("solo", "star")]),
    entry(short.warnings, "Attempts are still owed, which the rates leave out", "two arms or more owe some",
          [owing_too("solo", "star")], [owing_too("star")]),
]  # fmt: skip
of_warnings = [
    entry(warned, "There is no task in this run", "no attempt is there", [laid(list)], [quick(TWO)]),
    entry(warned, "which no figure counts", "a task of the plan has not even its card: a limit came first, or it "
          "is another shard's", [quick(TWO, data={"asked": 5})], [quick(TWO, data={"asked": 4})]),
    entry(warned, "no rate and no exported row counts", "a base group lacks an attempt",
          [laid(lambda: list(base("t"))[:7])], [laid(lambda: list(base("t")))]),
    entry(warned, "which its rates leave out", "an arm owes an attempt", [quick(TWO, drop=1)], [quick(TWO)]),
    entry(warned, "they lean towards tasks rescued early", "and arms stop at their first pass", [quick(TWO, drop=1)],
          [quick(TWO, drop=1, full_budget=True)]),
    entry(warned, "which the bands leave out", "a re-run of resample owes an attempt",
          [quick({"resample": {}}, noise_runs=1)], [quick({"resample": {}})]),
    entry(warned, "as a pass or as a failure", "an attempt of a first round was refused for good",
          [laid(group(1, outcome="refused"), **ONE)], [laid(group(0), **ONE)]),
    entry(warned, "The server refuses prompts of rounds after the first", "one in a later round was",
          [laid(lambda: late("refused"), **ONE | {"rounds": 2})],
          [laid(lambda: late("wrong_answer"), **ONE | {"rounds": 2})]),
    entry(warned, "audit.json is gone", "`--only-passable`, and there is no audit.json",
          [quick(TWO, only_passable=True)], [quick(TWO)]),
    entry(warned, "so there is nothing to rescue", "every whole base group has a pass",
          [laid(lambda: list(base("a", 1)))], [laid(lambda: [*base("a", 1), *base("b")])]),
    entry(warned, "so the arms were given nothing", "`--band near-miss`, and no all-fail task is near-miss",
          [laid(lambda: list(base("a")), band="near-miss")],
          [laid(lambda: list(base("a", near=True)), band="near-miss")]),
    entry(warned, "an interval is not meaningful with 1 task", "one task was given to the arms",
          [quick(TWO, n=1)], [quick(TWO, n=2)]),
    entry(warned, "did not fit the server's context", "one prompt",
          [laid(group(1, outcome="context_overflow"), **ONE)], [laid(group(0), **ONE)]),
    entry(warned, "replies repeat another one on the same task", "more than half of a group's replies",
          [laid(alike(5))], [laid(alike(4))]),
    entry(warned, "Replies were cut at max_tokens", "more than 10% of a group's replies",
          [laid(group(2, finish_reason="length"), **ONE)], [laid(group(1, finish_reason="length"), **ONE)]),
    entry(warned, "in the records twice", "a slot has two lines",
          [laid(lambda: [attempt("t"), attempt("t")], **ONE)], [laid(lambda: [attempt("t")], **ONE)]),
    entry(warned, "a spread of zero is no evidence", "all runs of resample rescued as many tasks",
          [case(4, 1, 1, noise=1)], [case(4, 1, 1)]),
    entry(partial(kept_grades, "regrade-1"), "which count with the grade of their time",
          "a regrade has no check of an attempt", [["t"]], ALWAYS),
]  # fmt: skip

FULL: dict[str, Any] = {"full_budget": True}


def reasons(r: Any) -> str:
    return "; ".join(str(row.get("reason")) for row in r["per_sample"].values())


def label(r: Any) -> str:
    return str((r["per_draw_stopped"] or {}).get("label"))


STOPPED: dict[str, dict[str, int]] = {"resample": {}, "star": {"t0000": 0}}


def two_rounds(rescued: Mapping[str, Mapping[str, int]], **changes: Any) -> Callable[[], Any]:
    attempts = partial(run, names(2), rescued, rounds=2, particles=1, group=1, stop=not changes)
    return laid(attempts, **{**SMALL, "rounds": 2, "arms": list(rescued), **changes})


of_rates = [
    entry(reasons, "the arm stopped at its first pass", "no rate of samples where an arm stopped on a task",
          [two_rounds(STOPPED)], [two_rounds(STOPPED, **FULL)]),
    entry(reasons, "the control stopped at its first pass", "no comparison where the control did",
          [two_rounds({"resample": {"t0000": 0}, "star": {}})], [two_rounds(STOPPED, **FULL)]),
    entry(label, "inflated: an arm that stops", "passes per draw as published, where an arm stopped",
          [two_rounds(STOPPED)], [two_rounds(STOPPED, **FULL)]),
]  # fmt: skip


def checked(**changes: Any) -> Callable[[], Any]:
    found = {"tasks": {"passable": 3, "disputed": 1}, "passed_all_the_same": 0, "only_passable": False, "reasons": {},
             "all_fail": {"passable": 2, "disputed": 1, "unknown": 0, "unaudited": 0}}  # fmt: skip
    return made(audit={**found, **changes})


def fails(**changes: int) -> dict[str, int]:
    return {"passable": 2, "disputed": 1, "unknown": 0, "unaudited": 0, **changes}


of_audit = [
    entry(words.audit_words, "or cannot be passed as the tests stand", "the set was audited",
          [checked()], [made(audit=None)]),
    entry(words.audit_words, "so nothing can be expected to rescue", "an all-fail task is disputed, with its reason",
          [checked(reasons={"wrong_answer": 1})], [checked()]),
    entry(words.audit_words, "it is not known", "an all-fail task has no reference, or was not audited",
          [checked(all_fail=fails(unknown=1))], [checked()]),
    entry(words.audit_words, "Of all tasks asked", "always, with an audit", [checked()], ALWAYS),
    entry(words.audit_words, "some attempt passes all the same", "of a disputed task",
          [checked(passed_all_the_same=1)], [checked()]),
    entry(words.audit_words, "passable ones alone make the rates", "`--only-passable`",
          [checked(only_passable=True)], [checked()]),
]  # fmt: skip


# ── hills ────────────────────────────────────────────────────────────────────────────────────────────────────────────

Rows = list[tuple[float, bool, str]]  # score, passed, task


def steep(n: int) -> Rows:
    """n programs between half and three quarters, a task each, none of which passes; twenty at the top, which do."""
    return [(0.6, False, f"m{k}") for k in range(n)] + [(1.0, True, f"t{k}") for k in range(20)]


def rising(n: int) -> Rows:
    """Twelve tasks of nine programs that fail, and a better one that passes on n of them."""
    rows = [(0.1 if k else 0.3, False, f"t{task}") for task in range(12) for k in range(9)]
    return rows + [(0.6, True, f"t{task}") for task in range(n)]


def level(n: int) -> Rows:
    """On each of n tasks a pass and a fail of every score."""
    return [(s, p, f"t{k}") for k in range(n) for s in (0.1, 0.3, 0.5, 0.7, 0.9) for p in (False, True)]


def hill_of(rows: Rows) -> str:
    curve = hill(*map(list, zip(*rows, strict=True)))
    return words.hill_line("fitness", curve)


of_hills = [
    entry(hill_of, "Is the fitness a hill? cliff", "from half to three quarters of the tests the upper 95% limit of "
          "the pass rate, by tasks, is under a fifth of the rate at the top", [steep(18)], [steep(17)]),
    entry(hill_of, "which count as", "and that rate is above the middle of its own interval", [steep(18)],
          [rising(10)]),
    entry(hill_of, "a pass outranks a fail of its own task", "hill: no cliff, and under three quarters 10 passes in 5 "
          "tasks, with a 99% interval of the within-task AUC above .5", [rising(10)], [rising(9)]),
    entry(hill_of, "Is the fitness a hill? noise", "neither, and the 99% interval of the within-task AUC holds .5 and "
          "lies in .4 to .6", [level(160)], [level(159)]),
    entry(hill_of, "Is the fitness a hill? inconclusive", "everything else", [level(159)], [level(160)]),
    entry(hill_of, "no task holds both a pass and a fail", "not estimable, and no cliff", [steep(17)], [steep(18)]),
]  # fmt: skip


def area_of(rows: Rows) -> str:
    return area(hill(*map(list, zip(*rows, strict=True)))["auc"]["pooled"])


of_hills += [
    entry(area_of, "not estimable (", "an AUC without both passes and fails", [rising(0)], [rising(1)]),
    entry(area_of, "(no interval)", "an AUC of so few that it has no interval", [[(0.1, False, "a"), (0.9, True, "a")]],
          [rising(2)]),
]  # fmt: skip


# ── lines of the report between its tables ───────────────────────────────────────────────────────────────────────────


def told(r: Any) -> str:
    """The text of a report, its lines joined, tables and all."""
    return re.sub(r"(█)█+|( ) +", r"\1\2", " ".join(text(r, width=10_000).split("\n")))


def published(results: Any) -> Any:
    return report.filled({key: results[key] for key in ("arms", "seed", "p0_histogram", "budget", "deltas", "noise",
                                                         "tasks", "all_fail", "model")})  # fmt: skip


def by_samples(metric: bool) -> Callable[[], Any]:
    return two_rounds(STOPPED, full_budget=True, tasks="mbpp-bundle", as_published=metric)


of_text = [
    entry(told, "Tasks by passes in their base group", "a task has its whole base group",
          [made()], [made(p0_histogram=[0, 0])]),
    entry(told, "secondary: no verdict is drawn from them", "the plan judges by samples", [by_samples(True)],
          [by_samples(False)]),
    entry(told, "alone: tasks that this arm rescued", "an arm is compared with resample, and some arm rescued a task",
          [quick(FOUND_ONE)], [quick({"resample": {"t0000": 0}}), quick(TWO)]),
    entry(told, "No program of the arms passes every visible test", "in place of the table of shown and hidden tests",
          [quick(TWO)], [quick(FOUND_ONE)]),
    entry(told, "Can a search climb this fitness", "no calibration, of a run folder",
          [made()], [made(dry_run=True), made(identity={}), lambda: published(case(40, 4, 4, 4)())]),
    entry(told, "Published figures alone", "a file that has no other", [lambda: published(case(40, 4, 4, 4)())],
          [made()]),
]  # fmt: skip


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def together(*runs: Callable[[], Any], seeds: Sequence[int] = (0, 1), **second: Any) -> Callable[[], Any]:
    """Runs side by side, each with its seed; `second` changes values of the second one."""

    def build() -> Any:
        made = [results() | {"seed": seed} for results, seed in zip(runs, seeds, strict=True)]
        made[1] |= second
        return {f"out{k}": results for k, results in enumerate(made)}

    return build


def pooled(runs: Any) -> str:
    return "\n".join(report.sentences(runs, report.pool(runs)))


def old() -> Any:
    return report.filled({key: case(60, 0, 6)()[key] for key in ("arms", "seed", "p0_histogram")})  # type: ignore


TWICE, THRICE = case(60, 0, 8, seeds=2), case(60, 0, 8, seeds=3)
BETTER, EQUAL, WORSE = case(60, 0, 8), case(60, 4, 4, 4), case(60, 8, 0)
of_several: list[Entry] = [
    entry(pooled, "Not pooled: these runs differ in", "in more than their seeds",
          [together(EQUAL, EQUAL, family="another")], [together(EQUAL, EQUAL)]),
    entry(pooled, "they are no repetition of each other", "two runs have the same seed",
          [together(EQUAL, EQUAL, seeds=(0, 0))], [together(EQUAL, EQUAL)]),
    entry(pooled, "All-fail and given to the arms", "otherwise", [together(EQUAL, EQUAL)],
          [together(EQUAL, EQUAL, seeds=(0, 0))]),
    entry(pooled, "Together, better: star", "better by the pooled figures and in every run",
          [together(BETTER, BETTER)], [together(BETTER, EQUAL), together(BETTER, WORSE)]),
    entry(pooled, "Exploratory (not planned as 2 runs", "they were not planned as so many, with `--seeds`",
          [together(BETTER, BETTER)], [together(TWICE, TWICE)]),
    entry(pooled, "Exploratory (2 of the 3 planned runs)", "they are fewer than were planned",
          [together(THRICE, THRICE)], [together(TWICE, TWICE)]),
    entry(pooled, "Exploratory (the plan names seeds", "they are as many as were planned, and of other seeds: a plan "
          "of 2 names 0 and 1, or 2 and 3", [together(TWICE, TWICE, seeds=(1, 2))],
          [together(TWICE, TWICE), together(TWICE, TWICE, seeds=(2, 3))]),
    entry(pooled, "That is the verdict of the plan", "they were", [together(TWICE, TWICE)], [together(BETTER, BETTER)]),
    entry(report._apart_words, "by more than chance explains", "tasks of two runs differ",
          [{"arms": {"star": {"q_p": 0.5}}, "given_in_every": 0, "linked": 0}],
          [{"arms": {"star": {"q_p": None}}, "given_in_every": 0, "linked": 0}]),
    entry(report._apart_words, "which is too large where runs share tasks", "and some task is in all runs",
          [{"arms": {"star": {"q_p": 0.5}}, "given_in_every": 1, "linked": 0}],
          [{"arms": {"star": {"q_p": 0.5}}, "given_in_every": 0, "linked": 0}]),
    entry(report._apart_words, "share a function, dealt out anew", "bundles of two runs have a function in common",
          [{"arms": {}, "given_in_every": 0, "linked": 1}], [{"arms": {}, "given_in_every": 0, "linked": 0}]),
    entry(pooled, "alone, so it is not called better", "better in some run and not in all", [together(BETTER, EQUAL)],
          [together(BETTER, BETTER)]),
    entry(pooled, "these runs contradict each other", "better in one run and worse in another",
          [together(BETTER, WORSE)], [together(BETTER, EQUAL)]),
    entry(pooled, "Better or worse is said only where", "runs are pooled that were not planned so",
          [together(EQUAL, EQUAL)], [together(TWICE, TWICE)]),
    entry(pooled, "not what each task brought", "files with the published figures alone",
          [together(old, old)], [together(EQUAL, EQUAL)]),
    entry(pooled, "No run has a task that was given to the arms", "no task was",
          [together(*[laid(list, **SMALL, arms=["resample", "star"])] * 2)], [together(EQUAL, EQUAL)]),
    entry(pooled, "what it says is so far", "a run is not finished",
          [together(EQUAL, case(60, 4, 4, 4, owed=True))], [together(EQUAL, EQUAL)]),
]  # fmt: skip


# ── before the first sample ──────────────────────────────────────────────────────────────────────────────────────────


def rule(**changes: Any) -> Callable[[], Any]:
    return lambda: make_plan(config(**changes), 100)["rule"]


def rule_text(found: Any) -> str:
    return f"{found['test']}; {found['interval']}; {found['equivalence']}\n{found['text']}"


def ahead_of(**changes: Any) -> Callable[[], Any]:
    """A plan of 100 tasks, and what is known of it: nothing yet, or by so many attempts of 2 s."""

    def build() -> Any:
        conf = config(free={"concurrency": 10}, server={"seconds": changes.get("word")})
        conf["plan"]["arms"] = changes.get("arms", conf["plan"]["arms"])
        base_group = [a for k in range(changes.get("tasks", 0)) for a in base(f"t{k:03}", k % 2)]
        held = so_far(base_group, conf, 100) if base_group else None
        return conf, make_plan(conf, 100), held

    return build


def time_line(found: Any) -> str:
    return ahead.time_line(*found)


def power_line(found: Any) -> str:
    return ahead.power_line(found[1], found[2])


TWO_ARMS = ["resample", "star"]


def plan_lines(**changes: Any) -> Callable[[], Any]:
    def build() -> Any:
        conf = config(**{key: value for key, value in changes.items() if key not in ("apart", "audit", "price")})
        conf |= {"apart": changes.get("apart", {}), "price": changes.get("price")}
        conf["server"] = {"model": "a/model", "facts": [], "warnings": []}
        conf["data"] = {"asked": 4, "tasks": 9, "source": "mine", "revision": None, "median_rating": None,
                        "left_out": {}, "notes": [], "prompt_characters": 600}  # fmt: skip
        conf["data"]["audit"] = changes.get("audit")
        return conf, make_plan(conf, 4)

    return build


def plan_said(found: Any) -> str:
    return plan_text(*found)


def given(rollouts: str | None) -> Callable[[], Any]:
    def build() -> Any:
        conf, plan = plan_lines()()
        return {**conf, "identity": {**conf["identity"], "rollouts": rollouts}}, plan

    return build


def of_shard(own: int | None) -> Callable[[], Any]:
    def build() -> Any:
        conf, plan = plan_lines()()
        return conf | ({"shard": {"number": 1, "of": 2, "tasks": own, "order": ""}} if own else {}), plan

    return build


SHOWN = {"hint": {"file": None, "sha256": "", "needs": ["reference"]}}
of_a_plan = [
    entry(plan_said, "calls: at most", "always", [plan_lines()], ALWAYS),
    entry(plan_said, "what is not sent", "always", [plan_lines()], ALWAYS),
    entry(plan_said, " usd", "`--price`", [plan_lines(price=[1.0, 2.0])], [plan_lines()]),
    entry(plan_said, "predicted, in points against resample", "`--predict`",
          [plan_lines(predict={"ring": 3.0})], [plan_lines()]),
    entry(plan_said, "are asked here; what follows", "`--shard`", [of_shard(2)], [of_shard(None)]),
    entry(plan_said, "the arms are given passable ones alone", "an audit, and `--only-passable`",
          [plan_lines(audit={"passable": 3}, only_passable=True)], [plan_lines(audit={"passable": 3})]),
    entry(plan_said, "told apart, its rows are marked hinted", "an arm that is shown references",
          [plan_lines(apart=SHOWN)], [plan_lines(apart={"mine": {**SHOWN["hint"], "needs": []}})]),
    entry(plan_said, "none is asked for", "`--rollouts`", [given("rollouts.jsonl")], [given(None)]),
    entry(plan_said, "the departures that change a number", "`--as-published`",
          [plan_lines(as_published=True)], [plan_lines()]),
    entry(rule_text, "The verdict is drawn from 2 runs", "`--seeds` of two or more", [rule(seeds=2)], [rule(seeds=1)]),
    entry(rule_text, "interval of the difference over all of them", "the same", [rule(seeds=2)], [rule(seeds=1)]),
    entry(rule_text, "Holm-adjusted over", "an arm and resample are played", [rule(arms=TWO_ARMS)],
          [rule(arms=["resample"]), rule(arms=["star"])]),
    entry(rule_text, "Nothing is compared: that takes", "they are not", [rule(arms=["star"])], [rule(arms=TWO_ARMS)]),
    entry(rule_text, "against resample on the tasks that both finished", "one run of resample",
          [rule(noise_runs=0)], [rule(noise_runs=1)]),
    entry(rule_text, "against the mean of 2 runs of resample", "re-runs of resample were planned",
          [rule(noise_runs=1)], [rule(noise_runs=0)]),
    entry(time_line, "how long real replies take is not known", "nothing was asked yet", [ahead_of(word=0.5)],
          [ahead_of(tasks=10)]),
    entry(time_line, "if each took", "and the probe's one word was timed", [ahead_of(word=0.5)], [ahead_of()]),
    entry(time_line, "more calls, by the", "attempts are there", [ahead_of(tasks=10)], [ahead_of()]),
    entry(power_line, "assuming the two arms disagreeing", "no base group is whole, or too few to foretell anything",
          [ahead_of(), ahead_of(tasks=10)], [ahead_of(tasks=11)]),
    entry(time_line, "nothing is left to ask, or next to", "less than one call is due", [ahead_of(tasks=100, arms=[])],
          [ahead_of(tasks=99, arms=[])]),
    entry(power_line, "power, by the base group so far", "enough are: the interval of what fresh draws find is no "
          "wider than half of all", [ahead_of(tasks=11)], [ahead_of(), ahead_of(tasks=10)]),
]  # fmt: skip

LIST: dict[str, list[Entry]] = {
    "The plan": of_a_plan,
    "The run and its base group": of_run,
    "The headline": of_headline,
    "The verdict, as results.json holds it": of_verdict,
    "Why a verdict is exploratory": of_plan,
    "The difference, and what chance does": of_difference,
    "What could be seen": of_power,
    "Predictions": of_predictions,
    "What the samples brought": of_rescues,
    "Rates a sample": of_rates,
    "Between the tables": of_text,
    "Warnings": of_warnings,
    "Warnings that several arms share": of_shared,
    "The audit": of_audit,
    "What it cost": of_cost,
    "Calibration": of_hills,
    "Several runs": of_several,
}


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def example(entry_: Entry) -> str:
    """The sentence as `on` prints it, without its neighbours."""
    (text, *_) = [line for line in entry_.on[0]().split("\n") if entry_.says in line]
    at = text.index(entry_.says)
    ends = [match.end() for match in re.finditer(r"[.?](?= [A-Z]|$)|(?<=\d)[.](?= [A-Z])", text)]
    start = max([end for end in ends if end <= at], default=0)
    end = min([end for end in ends if end > at + len(entry_.says) - 1], default=len(text))
    return text[start:end].strip()


def page() -> str:
    parts = [HEAD]
    for title, entries in LIST.items():
        parts.append(f"## {title}\n\n| printed when | for example |\n|---|---|")
        parts += [f"| {one.when} | {example(one).replace('|', 'or')} |" for one in entries]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
