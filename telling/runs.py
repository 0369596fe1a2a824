"""Several runs beside each other: what each one was, and its arms, one metric a table and a unit a column.

    run_lines(runs)                 each run's model, task set and seed
    counts(runs)                    a Table of tasks
    arms(runs, together)            a Table for each metric, an arm's runs below each other
    page_of_runs(...)               the same as a page, with a picture

runs: name -> results. Of a published file, which has neither our intervals nor our verdicts, its own figures are told.

Left out: what several runs say together (figures/pool.py), its sentences (report.py), one run (text.py, page.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from figures.plan import METRICS
from figures.pool import Pool
from figures.results import Against, Results
from telling import plots
from telling.page import simple_page
from telling.tables import AGAINST, VERDICT, Cell, Column, Head, Table, difference, table
from telling.words import CONFIDENCE, comparisons, estimate, listed, of, plural, runs_words, share, title

Runs = Mapping[str, Results]
RESCUED, PER_SAMPLE = METRICS


def short_names(names: Sequence[str]) -> list[str]:
    """Names of runs for a narrow column: their last parts where those tell them apart."""
    last = [name.rstrip("/").rsplit("/", 1)[-1] for name in names]
    return last if len(set(last)) == len(last) else list(names)


def is_published(r: Results) -> bool:
    """Whether a file holds the published figures alone."""
    return not r["intervals"] and bool(r["arms"])


def head(runs: Runs) -> str:
    """The model and the task set, where all runs have the same."""
    what = {title(r).rsplit(", ", 1)[0] for r in runs.values()}
    return f"{plural(len(runs), 'run')}{': ' + what.pop() if len(what) == 1 else ''}"


def run_lines(runs: Runs) -> list[str]:
    """Each run in a sentence: its model, and what an arm of it had to spend."""
    return [
        f"{name}: {title(r)}; {plural(r['budget']['B'], 'sample')} a task and arm"
        + ("; published figures alone" if is_published(r) else "")
        for name, r in runs.items()
    ]


def counts(runs: Runs) -> Table | None:
    rows = []
    for name, r in runs.items():
        whole, pooled = sum(r["p0_histogram"]), r["pooled"]
        rate = f" ({share(r['all_fail'] / whole)})" if whole else ""
        found = of(pooled["all_runs"]["rescued"], pooled["n"]) if pooled["n"] else "–"
        rows.append([name, str(r["seed"]), r["tasks"], f"{r['all_fail']:,}{rate}", found])
    return table("Tasks", ["run", "seed", "tasks", "all-fail", "rescued by some arm or re-run"], rows)


def arms(runs: Runs, together: Pool) -> list[Table]:
    """Rescue rates of every run; rates a sample where a run's verdicts are drawn from them."""
    made = [_rescues(runs, together), _per_sample(runs, together)]
    return [told for told in made if told]


def _metric(r: Results) -> str:
    return r["verdict"]["primary_metric"] or RESCUED  # none: a published file


def _judged(r: Results, arm: str) -> Against | None:
    """An arm's difference in rescues: where its verdict is drawn from all runs of the control, from those."""
    return (comparisons(r) if _metric(r) == RESCUED else {}).get(arm) or r["paired"].get(arm)


def _order(runs: Runs) -> Iterator[tuple[str, str, Results]]:
    """Arm by arm, the runs that played it."""
    for arm in dict.fromkeys(arm for r in runs.values() for arm in r["arms"]):
        for name, r in runs.items():
            if arm in r["arms"]:
                yield arm, name, r


def _rescues(runs: Runs, together: Pool) -> Table | None:
    rows: list[list[Cell]] = []
    for arm, name, r in _order(runs):
        if is_published(r):
            line = _published(r, arm)
        else:
            row, pair = r["intervals"][arm], _judged(r, arm)
            line = [of(row["rescued"], row["n"]), estimate(row["rate"], row["wilson"])]
            if pair and pair["n"]:
                line += [difference(pair), pair["verdict"] if _metric(r) == RESCUED else ""]
        rows.append([arm, name, *line])
    what = f"Rescue rate: tasks, and points [{CONFIDENCE} interval] on the same tasks"
    head: Head = ["arm", _RUN, Column("tasks rescued", short="rescued"), _RATE, AGAINST, VERDICT]
    means = [f"Minus {said}" for said in dict.fromkeys(map(runs_words, runs.values())) if said]
    return table(what, head, _grouped(rows, together, RESCUED, 1), means, [_RATE.name])


def _per_sample(runs: Runs, together: Pool) -> Table | None:
    rows: list[list[Cell]] = []
    for arm, name, r in _order(runs):
        if _metric(r) != PER_SAMPLE or arm not in r["per_sample"]:
            continue
        row = r["per_sample"][arm]
        if row["rate"] is None and row["reason"]:
            rows.append([arm, name, row["reason"]])
            continue
        line: list[Cell] = [of(row["passes"], row["samples"]), estimate(row["rate"], row["interval"], 2)]
        if row["n"] and (pair := row.get("paired")):
            line += [difference(pair, 2), pair["verdict"]]
        rows.append([arm, name, *line])
    what = f"Per-sample pass rate: samples, and points [{CONFIDENCE} interval] on the same tasks"
    head: Head = ["arm", _RUN, Column("samples that pass", short="passes"), _RATE, AGAINST, VERDICT]
    return table(what, head, _grouped(rows, together, PER_SAMPLE, 2), page_only=[_RATE.name])


_RUN, _RATE = Column("run", "words"), Column("rate", "estimate")


def _grouped(rows: list[list[Cell]], together: Pool, metric: str, digits: int) -> Iterator[list[Cell]]:
    """An arm's rows under its name, which stands once, and under them what its runs say together."""
    for at, (arm, *rest) in enumerate(rows):
        first = not at or rows[at - 1][0] != arm
        yield [arm if first else "", *rest]
        last = at == len(rows) - 1 or rows[at + 1][0] != arm
        pooled = together["arms"].get(str(arm)) if together["primary_metric"] == metric else None
        if last and pooled:
            yield ["", "together", plural(pooled["n"], "task"), "", difference(pooled, digits), pooled["verdict"]]


def _published(r: Results, arm: str) -> list[Cell]:
    """Of a published file: rates and differences in points, as they stand there."""
    row, delta = r["arms"][arm], r["deltas"].get(arm)
    if not row["n"] or row["rescue_rate"] is None:
        return [of(0, 0)]
    half = row["ci"] / 100 if row["ci"] is not None else None
    rate = row["rescue_rate"] / 100
    line: list[Cell] = [of(round(rate * row["n"]), row["n"])]
    line.append(estimate(rate, None if half is None else [max(rate - half, 0), min(rate + half, 1)]))
    if delta and delta["delta"] is not None:
        ends = [None if end is None else end / 100 for end in delta["ci95"]]
        line.append(estimate(delta["delta"] / 100, ends, sign=True))
    return line


def differing(runs: Runs, differ: Sequence[str]) -> list[str]:
    """What the runs differ in, and which of them has which value."""
    said = [f"Not pooled: these runs differ in {listed(differ)}."]
    for name in differ:
        by_value: dict[str, list[str]] = {}
        for run, r in runs.items():
            by_value.setdefault(_value(r, name.replace(" ", "_")), []).append(run)
        said.append(f"{name}: {'; '.join(f'{value} in {listed(named)}' for value, named in by_value.items())}")
    return said


def _value(r: Results, key: str) -> str:
    """Short, since a system prompt may be a page."""
    value = {**r, **r["identity"], **r["verdict"]}.get(key)
    if value is None or isinstance(value, bool):
        return {None: "not said", True: "yes", False: "no"}[value]
    if isinstance(value, dict):
        return ", ".join(f"{name} {each}" for name, each in value.items())
    said = " ".join(str(value).split())
    return said if len(said) <= 40 else said[:39] + "…"


# ── a page ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def page_of_runs(runs: Runs, together: Pool, said: Sequence[str]) -> str:
    """All of it as one page that needs nothing else; said: the sentences; the verdict is the answer."""
    drawn = []
    for metric in dict.fromkeys(map(_metric, runs.values())):
        drawn.append(plots.several(_differences(runs, together, metric), METRICS[metric].split(":")[0]))
    told = sorted(said, key=lambda line: not line.startswith(("Together", "Exploratory"))) if together["arms"] else said
    return simple_page(head(runs), told, run_lines(runs), drawn, [counts(runs), *arms(runs, together)])


Difference = tuple[str, str, float, float | None, float | None]  # arm, run, points and the ends of its interval


def _differences(runs: Runs, together: Pool, metric: str) -> list[Difference]:
    """Each arm's difference in each run by a metric, and together, in points."""
    out: list[Difference] = []
    for arm, name, r in _order(runs):
        if _metric(r) != metric:
            continue
        if is_published(r):
            delta = r["deltas"].get(arm)
            if delta and delta["delta"] is not None:
                lo, hi = delta["ci95"]
                out.append((arm, name, delta["delta"], lo, hi))
            continue
        pair = _judged(r, arm) if metric == RESCUED else r["per_sample"][arm].get("paired")
        if pair and pair["n"]:
            out.append((arm, name, *_points(pair["delta"], pair["interval"])))
    if together["primary_metric"] == metric:
        for arm, row in together["arms"].items():
            out.append((arm, "together", *_points(row["delta"], row["interval"])))
    return sorted(out, key=lambda row: [row[0] for row in out].index(row[0]))


def _points(delta: float | None, interval: Sequence[float | None]) -> tuple[float, float | None, float | None]:
    lo, hi = (None if end is None else 100 * end for end in interval)
    return 100 * (delta or 0), lo, hi
