"""The report of a run again, and several runs side by side.

    python report.py out                     the report of one run again
    python report.py out out-seed1           runs side by side, pooled by task

    pool(runs)                               what several runs say together
    side_by_side(runs)                       that as text, under a table of each run's own figures

A folder with attempts is measured anew; a results.json alone, the published ones too, is told as far as it goes.

Left out: estimating anything about one run (measure.py), the text of one run (text.py), the page report.html (page.py).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from commands.console import complain, say, wants_colour
from commands.flags import VERSION, Flags
from faults import BAD_INPUT
from figures.plan import CONTROL
from figures.results import Results
from telling.tables import AGAINST, VERDICT, Column, Table, table
from telling.text import Paper, text
from telling.words import comparisons, estimate, listed, of, plural, share, title

# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────

SAME = ("model", "family", "bundle", "thinking", "max_tokens", "no_comments", "band", "budget")  # beside the identity


def pool(runs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What several runs of one experiment say together. runs: name -> results.

    Pooled by task, since a task that two seeds share is one task: its value is the mean over the runs in which both the
    arm and the control finished it. An arm is called better or worse only where every run says so by itself and the
    pooled figures do too; equivalent, where the pooled interval lies inside the margin and the runs do not contradict
    each other, one saying better and one worse: the mean of a task over its runs hides how far they lie apart; else
    inconclusive. Runs that differ in more than their seed are not pooled, and `differ` names what they differ in; nor
    are runs of one seed, which asked the same requests and are no repetition.
    """
    import stats

    all_runs = list(runs.values())
    differ = [key for key in SAME if any(r.get(key) != all_runs[0].get(key) for r in all_runs)]
    identities = [r.get("identity") or {} for r in all_runs]
    settings = dict.fromkeys(
        key for identity in identities for key in identity if key not in ("seed", "tasks", *differ)
    )
    differ += [key for key in settings if any(other.get(key) != identities[0].get(key) for other in identities)]
    metrics = {(r.get("verdict") or {}).get("primary_metric") for r in all_runs}
    margins = {(r.get("verdict") or {}).get("margin") for r in all_runs}
    differ += [name for name, values in (("primary metric", metrics), ("margin", margins)) if len(values) > 1]
    given = [{task for task, row in (r.get("by_task") or {}).items() if row.get("arms")} for r in all_runs]
    some, every = set().union(*given), set.intersection(*given) if given else set()
    rescued = {
        task
        for r in all_runs
        for task, row in (r.get("by_task") or {}).items()
        if any(play["passes"] for play in [*(row.get("arms") or {}).values(), *(row.get("reruns") or [])])
    }
    out: dict[str, Any] = {
        "runs": list(runs),
        "differ": [key.replace("_", " ") for key in differ],
        "one_seed": len({r.get("seed") for r in all_runs}) < len(all_runs),
        "primary_metric": next(iter(metrics)) if len(metrics) == 1 else None,
        "margin": next(iter(margins)) if len(margins) == 1 else None,
        "given_in_some": len(some),
        "given_in_every": len(every),
        "rescued_in_some": len(rescued & some),
        "arms": {},
    }
    if out["differ"] or out["one_seed"]:
        return out
    per_sample = out["primary_metric"] == "per_sample"
    compared, same = {}, {}
    for arm in dict.fromkeys(arm for r in all_runs for arm in r.get("intervals") or {} if arm != CONTROL):
        a, b = _by_task(all_runs, arm, per_sample)
        compared[arm] = stats.compare_paired(a, b)
        same[arm] = stats.equivalent(a, b, out["margin"])
    tested = [arm for arm, got in compared.items() if got.p_value == got.p_value]
    adjusted = dict(zip(tested, stats.holm([compared[arm].p_value for arm in tested]), strict=True))
    for arm, got in compared.items():
        said = [(r.get("verdict") or {}).get("arms", {}).get(arm) for r in all_runs]
        word = stats.verdict(got, adjusted.get(arm, 1.0), same[arm])
        if _contradict(said) or (word in ("better", "worse") and any(other != word for other in said)):
            word = "inconclusive"
        out["arms"][arm] = {
            "n": got.n,
            "delta": _known(got.delta),
            "interval": [_known(got.lo), _known(got.hi)],
            "p": _known(got.p_value),
            "p_holm": _known(float(adjusted.get(arm, float("nan")))),
            "by_run": said,
            "verdict": word,
        }
    return out


def _contradict(said: Sequence[str | None]) -> bool:
    """Whether one run calls an arm better and another one worse."""
    return {"better", "worse"} <= set(said)


def _by_task(runs: Sequence[Mapping[str, Any]], arm: str, per_sample: bool) -> tuple[list[float], list[float]]:
    """The control's value and the arm's on each task: the mean over the runs in which both finished it."""
    values: dict[str, list[tuple[float, float]]] = {}
    for r in runs:
        for task, row in (r.get("by_task") or {}).items():
            plays = row.get("arms") or {}
            pair = [plays[name] for name in (CONTROL, arm) if name in plays and plays[name]["done"]]
            if len(pair) == 2:
                a, b = (play["passes"] / play["drawn"] if per_sample else float(play["passes"] > 0) for play in pair)
                values.setdefault(task, []).append((a, b))
    means = [[sum(side) / len(side) for side in zip(*of_task, strict=True)] for _, of_task in sorted(values.items())]
    return [a for a, _ in means], [b for _, b in means]


def _known(x: float) -> float | None:
    return x if x == x else None


def side_by_side(runs: Mapping[str, Results], width: int = 80, colour: bool = False) -> str:
    """Several runs in one table, an arm's runs below each other, and what they say together."""
    paper, together = Paper(width, colour), pool(runs)
    named = dict(zip(_short(list(runs)), runs.values(), strict=True))
    rows = []
    for name, r in named.items():
        whole, pooled = sum(r["p0_histogram"]), r["pooled"]
        rate = f" ({share(r['all_fail'] / whole)})" if whole else ""
        found = of(pooled["all_runs"]["rescued"], pooled["n"]) if pooled["n"] else "–"
        rows.append([name, str(r["seed"]), f"{r['tasks']:,}", f"{r['all_fail']:,}{rate}", found])
    blocks = [[paper.head(f"{plural(len(runs), 'run')}: {title(next(iter(runs.values()))).rsplit(', ', 1)[0]}")]]
    blocks.append(paper.table(table("", ["run", "seed", "tasks", "all-fail", "rescued by some arm or re-run"], rows)))
    blocks.append(paper.table(_arms_of_runs(named, together)))
    said = []
    if together["differ"]:
        said.append(f"Not pooled: these runs differ in {listed(together['differ'])}.")
    elif together["one_seed"]:
        said.append("Not pooled: two of these runs have the same seed, so they are no repetition of each other.")
    elif together["given_in_some"]:
        said.append(
            f"All-fail and given to the arms: {together['given_in_some']:,} tasks in some run, "
            f"{together['given_in_every']:,} in every one. At least one run rescued {together['rescued_in_some']:,}."
        )
        said.append(_together(together))
    else:
        said.append("No run has a task that was given to the arms, or the results are too old to be pooled by task.")
    for name, r in named.items():
        if "the run is not finished" in r["verdict"]["exploratory"]:
            said.append(f"{name} is not finished: what it says is so far, and no verdict by its plan.")
    blocks.append(paper.wrap(*said))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _arms_of_runs(runs: Mapping[str, Results], together: Mapping[str, Any]) -> Table | None:
    rows = []
    digits = 2 if together["primary_metric"] == "per_sample" else 1
    for arm in dict.fromkeys(arm for r in runs.values() for arm in r["intervals"]):
        first = arm
        for name, r in runs.items():
            if arm not in r["intervals"]:
                continue
            row, pair = r["intervals"][arm], comparisons(r).get(arm)
            against = estimate(pair["delta"], pair["interval"], digits, sign=True) if pair else ""
            rows.append([first, name, of(row["rescued"], row["n"]), against, r["verdict"]["arms"].get(arm, "")])
            first = ""
        if pooled := together["arms"].get(arm):
            against = estimate(pooled["delta"], pooled["interval"], digits, sign=True)
            rows.append(["", "together", plural(pooled["n"], "task"), against, pooled["verdict"]])
    return table("", ["arm", Column("run", "words"), "rescued", AGAINST, VERDICT], rows)


def _together(pooled: Mapping[str, Any]) -> str:
    """The verdicts of the pooled runs in words, and where the runs contradict each other."""
    said = []
    for word in ("better", "worse", "equivalent", "inconclusive"):
        arms = [arm for arm, row in pooled["arms"].items() if row["verdict"] == word]
        if arms:
            said.append(f"{word}: {listed(arms)}")
    words = f"Together, {'; '.join(said)}." if said else ""
    for arm, row in pooled["arms"].items():
        named = {
            word: listed([name for name, said in zip(pooled["runs"], row["by_run"], strict=True) if said == word])
            for word in ("better", "worse")
        }
        if _contradict(row["by_run"]):
            words += (
                f" {arm} is better in {named['better']} and worse in {named['worse']}: these runs contradict each "
                "other, so nothing is said of them together."
            )
            continue
        for word, runs in named.items():
            if runs and row["verdict"] != word:
                words += f" {arm} is {word} in {runs} alone, so it is not called {word}."
    return words + " Better or worse is said only where every run says so by itself."


def _short(names: Sequence[str]) -> list[str]:
    """Names of runs for a narrow column: their last parts where those tell them apart."""
    last = [name.rstrip("/").rsplit("/", 1)[-1] for name in names]
    return last if len(set(last)) == len(last) else list(names)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────


def read(path: str) -> tuple[Results, dict[str, Any] | None]:
    """Results and calibration of a run folder, or of a results file alone. A folder with attempts is measured anew."""
    from faults import RecordsError
    from measure import measure
    from records import ATTEMPTS, Folder

    if Path(path).is_file():
        at = Path(path)
        results = Folder(at.parent).read(at.name)
        if not isinstance(results, dict) or "p0_histogram" not in results:
            raise RecordsError(f"{path} is no results.json: name a run folder, or its results.json")
        return cast(Results, results), None
    folder = Folder(path)
    calibration = folder.read("calibration.json")
    if (folder.path / ATTEMPTS).exists():
        config, cards = folder.config_of("run.py"), folder.cards()
        return measure(folder.attempts(), config, cards, folder.checks(), folder.events(), folder.plan), calibration
    results = folder.read("results.json")
    if results is None:
        raise RecordsError(f"{path} holds no run: name the folder that run.py wrote (--out)")
    return cast(Results, results), calibration


# What is told of a results file that has not all of its keys, such as the published ones: nothing.
UNKNOWN: dict[str, Any] = {
    "verdict": {
        "primary_metric": None, "margin": None, "planned": False, "exploratory": [], "arms": {},
        "sentence": "No task was given to the arms.",
    },
    "incomplete": {"given": 0, "base_tasks": 0}, "intervals": {}, "climb": {}, "pooled": {"n": 0},
    "training_set": {"n": 0}, "by_task": {}, "outcomes": {}, "cost": {"total": {"calls": 0}}, "warnings": [],
    "identity": {}, "family": None, "grades": "attempts", "tier": None, "graded_under": None, "dry_run": False,
}  # fmt: skip


def whole(results: Results) -> Results:
    return cast(Results, {**UNKNOWN, **results})


def flags() -> Flags:
    parser = Flags(
        prog="report.py",
        usage="python report.py RUN [RUN ...] [flags]",
        description="The report of a run again; of several runs side by side, pooled by task.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run folder, or a results.json")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON: results, or the pooled figures")
    parser.add_argument("--version", action="version", version=f"swarm-rescue {VERSION}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """0, or 2 where a folder cannot be read."""
    from faults import RecordsError
    from records import dumps

    parser = flags()
    a = parser.parse_args(argv)
    twice = [run for n, run in enumerate(a.runs) if Path(run).resolve() in {Path(r).resolve() for r in a.runs[:n]}]
    if twice:
        parser.error(f"{twice[0]} is named twice: name each run once")
    try:
        found = {path: read(path) for path in a.runs}
    except RecordsError as why:
        return complain(why, BAD_INPUT)
    if len(found) == 1:
        (results, calibration), *_ = found.values()
        say(
            dumps(results, indent=1) if a.json else text(whole(results), colour=wants_colour(), calibration=calibration)
        )
    else:
        runs = {path: whole(results) for path, (results, _) in found.items()}
        say(dumps(pool(runs), indent=1) if a.json else side_by_side(runs, colour=wants_colour()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
