"""The tables of a report, built once from the results for both tellings: the text and the page.

    rescues(results)                        a Table: caption, head, rows, notes; None where there is no row to show
    Paper.table(told), page's _table(told)  the two renderers (text.py, page.py)

A column says of what kind its cells are, and what the text's narrower column is called. What the page alone has room
for is named in `page_only`. A column in which no row says anything is left out, in both tellings.

Left out: how wide a column gets and what it looks like (text.py, page.py), sentences and single figures (words.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, cast

from figures.hill import Area, Curve
from figures.plan import CONTROL, METRICS
from figures.pool import PooledArm
from figures.results import Against, AgainstAll, ArmBill, Bill, Climb, EqualTokens, MeanInterval, Results, StoppedRate
from grading.grade import LETTERS
from telling import beside, short, words
from telling.words import (
    CONFIDENCE,
    SHARES,
    STAGES,
    big,
    estimate,
    number,
    of,
    p_text,
    plural,
    points,
    ranged,
    share,
    within,
)


class Short(NamedTuple):
    """A cell that is said shorter where there is less room."""

    whole: str
    short: str


Cell = str | Short


class Column(NamedTuple):
    """Figures end at the right, all else begins at the left; estimates are padded for the text, verdicts coloured."""

    name: str
    kind: Literal["figure", "estimate", "verdict", "words"] = "figure"
    short: str = ""  # its name in the text, where that is another one


Head = Sequence[Column | str]


class Table(NamedTuple):
    caption: str
    head: Sequence[Column]
    rows: Sequence[Sequence[Cell]]  # the first cell of each names it
    notes: Sequence[str]
    page_only: Sequence[str]  # names of columns and of rows


def table(
    caption: str,
    head: Head,
    rows: Iterable[Sequence[object]],
    notes: Sequence[str] = (),
    page_only: Sequence[str] = (),
) -> Table | None:
    """A name alone heads a column of figures. A cell may be a count too, or None, a dash; a row may end early."""
    columns = [Column(name) if isinstance(name, str) else name for name in head]
    filled = [[*map(_said, row), *[""] * (len(columns) - len(row))] for row in rows]
    keep = [i for i in range(len(columns)) if not i or any(row[i] for row in filled)]
    if not filled:
        return None
    return Table(caption, [columns[i] for i in keep], [[row[i] for i in keep] for row in filled], notes, page_only)


def _said(cell: object) -> Cell:
    if isinstance(cell, str | Short):
        return cell
    return "–" if cell is None else f"{cell:,}"


def difference(found: Against | AgainstAll | EqualTokens | StoppedRate | PooledArm, digits: int = 1) -> str:
    return estimate(found["delta"], found["interval"], digits, sign=True)


def _counted(n: int, part: float | None) -> str:
    return f"{n:,} ({share(part)})"


# ── the arms ─────────────────────────────────────────────────────────────────────────────────────────────────────────

AGAINST = Column(f"minus {CONTROL}", "estimate", f"against {CONTROL}")
VERDICT = Column("verdict", "verdict")
ALONE = Column(f"it alone : {CONTROL} alone", short="alone")  # tasks that one of the two rescued


def rescues(r: Results) -> Table | None:
    """By the rate of rescued tasks; with verdicts where the plan draws them from it."""
    primary, rows = r["verdict"]["primary_metric"] == "rescue_rate", []
    judged = words.comparisons(r) if primary else {}
    for arm, row in r["intervals"].items():
        if not row["n"]:
            continue
        line: list[Cell] = [arm, of(row["rescued"], row["n"]), estimate(row["rate"], row["wilson"])]
        if (pair := r["paired"].get(arm)) and pair["n"]:
            mine, theirs = pair["n_arm_only"], pair["n_resample_only"]
            by = judged.get(arm) or pair  # against all runs of the control, where the plan says so
            line += [difference(by), Short(f"{mine} : {theirs}", f"{mine}:{theirs}")]
            line += [p_text(by["p_holm"]), by["verdict"] if primary else ""]
        rows.append(line)
    head: Head = ["arm", "rescued", Column("rate", "estimate"), AGAINST, ALONE, "Holm p", VERDICT]
    unfinished = words.listed([arm for arm, row in r["intervals"].items() if not row["n"]])
    notes = [f"No task is finished by {unfinished} yet."] if unfinished and rows else []
    return table(f"Rescue rate, points [{CONFIDENCE} interval]", head, rows, notes, ["Holm p"])


def audited(r: Results) -> Table | None:
    """Every rate with the disputed tasks and without them."""
    if not (found := r["audit"]) or not found["tasks"]["disputed"]:
        return None
    sides = found["with_disputed"], found["without_disputed"]
    rows: list[list[object]] = [
        [
            "all-fail",
            *(of(side["all_fail"], side["tasks"]) for side in sides),
            *(share(side["share"]) for side in sides),
        ],
        ["any arm", *(of(side["rescued"], side["given"]) for side in sides)],
    ]
    for arm in sides[0]["arms"]:
        arms = [side["arms"][arm] for side in sides]
        rows.append([arm, *(of(x["rescued"], x["n"]) for x in arms), *(estimate(x["rate"], x["wilson"]) for x in arms)])
        if arms[0]["delta"] is not None:
            against = (estimate(x["delta"], x["interval"], sign=True) for x in arms)
            rows.append([f"{arm} minus {CONTROL}", "", "", *against])
        if arms[0]["per_sample"] is not None:
            rows.append([f"{arm}, a sample", "", "", *(points(x["per_sample"], 2) for x in arms)])
    head: Head = ["", Column("tasks, all", short="all"), Column("tasks, without", short="without"),
                  Column("rate, all", "estimate"), Column("rate, without", "estimate")]  # fmt: skip
    named = ", ".join(f"{task} ({reason})" for task, reason in found["disputed"].items())
    note = [f"Disputed and all-fail: {named}."] if named else []
    return table("With and without the disputed tasks, points", head, rows, note)


def per_sample(r: Results) -> Table | None:
    """Passes over samples, where full budgets give such a rate: of every arm, unless the verdict is drawn from it."""
    primary, rows = r["verdict"]["primary_metric"] == "per_sample", []
    if not primary and any(row["reason"] for row in r["per_sample"].values()):
        return None
    for arm, row in r["per_sample"].items():
        if row["rate"] is None:
            rows += [[arm, row["reason"]]] if row["reason"] else []
            continue
        line = [arm, of(row["passes"], row["samples"]), estimate(row["rate"], row["interval"], 2)]
        if row["n"] and (pair := row.get("paired")):
            line += [difference(pair, 2), p_text(pair["p_holm"]), pair["verdict"] if primary else ""]
        rows.append(line)
    head: Head = ["arm", "passes", Column("a sample", "estimate"), AGAINST, "Holm p", VERDICT]
    notes = [note for note in (words.SPARSE, words.repeats_words(r)) if note]
    return table(f"Per-sample pass rate, points [{CONFIDENCE} interval]", head, rows, notes, ["Holm p"])


def first_passes(r: Results) -> Table | None:
    rows = [[arm, *row["first_pass_in_round"]] for arm, row in r["intervals"].items() if row["rescued"]]
    rounds = [Column(f"round {k}", short=f"r{k}") for k in range(r["budget"]["R"])]
    return table("Tasks first rescued in each round", [Column("arm", short="first rescued in"), *rounds], rows)


def owed(r: Results) -> Table | None:
    owing = r["incomplete"]
    named = [*owing["arms"].items(), *((f"{CONTROL}, re-run {k}", x) for k, x in enumerate(owing["noise_runs"], 1))]
    rows = [
        [name, row["tasks"], row["owed_at_most"], refused]
        for name, row in named
        if (refused := row.get("refused", 0)) or row["tasks"]
    ]
    return table("Still owed, or refused", ["", "tasks", "attempts at most", "tasks refused"], rows)


def verdicts(r: Results) -> Table | None:
    """All that the plan's rule looks at, by either metric."""
    by_sample = {arm: row.get("paired") for arm, row in r["per_sample"].items()}
    judged = words.comparisons(r) if r["verdict"]["primary_metric"] == "rescue_rate" else {}
    pairs: dict[str, Mapping[str, Against | None]] = {
        "rescue_rate": {**r["paired"], **judged},
        "per_sample": by_sample,
    }
    rows = []
    for metric, arms in pairs.items():
        for arm, pair in arms.items():
            if pair and pair["n"]:
                same = within(pair["equivalence_interval"], 2, sign=True)
                line = [f"{arm}, {METRICS[metric].split(':')[0]}", pair["n"], p_text(pair["p"]), p_text(pair["p_holm"])]
                rows.append([*line, same, points(pair["margin"])])
    first = ", against the first run" if r["verdict"].get("against_runs", 1) > 1 else ""
    head = ["", "tasks", "p", "Holm p", f"interval for equivalent{first}", "margin"]
    return table("What decides a verdict, points", head, rows)


def watched(r: Results) -> Table | None:
    rows = []
    for arm, row in r["watched"]["arms"].items() if "watched" in r else ():
        if row["n"]:
            only = f"{row['n_arm_only']} : {row['n_resample_only']}"
            line = [arm, row["n"], row["waiting"], only, number(row["wealth"], 2), f"{row['bar']:g}", p_text(row["p"])]
            rows.append([*line, row["verdict"], "" if row["at"] is None else row["at"]])
    by_plan = "" if r.get("watched", {}).get("planned") else " (exploratory, as the verdict is)"
    caption = (
        f"However often it was looked at{by_plan}. counted: in the order of asking, up to the first task on which "
        "something is owed. worth: what bets of 1 have become; a verdict takes the bar once"
    )
    head: Head = ["", "counted", "waiting", ALONE, "worth", "bar", "p", VERDICT, "reached after"]
    return table(caption, head, rows)


def coverage(r: Results) -> Table | None:
    budget, taken = r["budget"]["B"], {"pass_at_k": "any of the draws", "by_round": "round after round"}
    at = [k for k in (1, 2, 4, 8, 12, 16, 24, 32, 48) if k < budget] + [budget]
    told = {arm: row for arm, row in r["coverage"].items() if row["n"]}
    rows = [[arm, *(points(row["share"][k - 1]) for k in at), taken[row["method"]]] for arm, row in told.items()]
    return table("Tasks with a pass after so many samples, points", ["arm", *map(str, at), "samples taken as"], rows)


def stopped(r: Results) -> Table | None:
    found, rows = r["per_draw_stopped"] or {}, []
    for arm, row in found.items():
        if not isinstance(row, str):  # the label
            against = [difference(row, 2), p_text(row["p"])] if "delta" in row else []
            rows.append([arm, points(row["rate"], 2), row["n"], row["stopped_tasks"], *against])
    caption = f"Passes per draw where arms stopped, as published ({found.get('label')})"
    return table(caption, ["arm", "rate", "tasks", "of them stopped", AGAINST, "p"], rows)


def all_resample(r: Results) -> Table | None:
    pairs = {arm: row for arm, pair in r["paired"].items() if (row := pair["vs_all_resample"])}
    rows = [
        [
            arm,
            row["runs"],
            row["n"],
            difference(row),
            p_text(row["p"]),
            p_text(row.get("p_holm")),
            row.get("verdict", ""),
        ]
        for arm, row in pairs.items()
    ]
    head: Head = ["arm", "runs", "tasks", Column("difference", "estimate"), "p", "Holm p", "verdict"]
    return table(f"Against the mean of every run of {CONTROL}, points", head, rows)


def noise(r: Results) -> Table | None:
    found = r["noise"]
    if found.get("band_t") is None:
        return None

    def cleared(band: Literal["band_t", "band_within"]) -> list[str]:
        arms = [arm for arm, row in found["clears"].items() if row[band]]
        width = found[band] or None
        return ["over 100" if width and width >= 1 else points(width), words.listed(arms) or "none"]

    rows = [
        ["run means", points(found["std_between"]), *cleared("band_t")],
        ["replicates of each task", points(found["std_within"]), *cleared("band_within")],
    ]
    q = "not estimable"
    if found["q_p"] is not None:
        q = f"Cochran's Q {found['q']:.2f} on {found['q_df']} degrees of freedom, p {p_text(found['q_p'])}"
    said = f"How far {found['runs']} runs of {CONTROL} lie apart, points. More than their tasks explain: {q}"
    return table(said, ["from", "sd of a run", "band", "cleared by"], rows)


def power(r: Results) -> Table | None:
    rows = []
    for arm, row in r["power"].items():
        if row["n"]:
            apart = f"{of(row['discordant'], row['n'])} ({share(row['discordance'])} {within(row['wilson'])})"
            assumed = f"{ranged(row['discordance_assumed'], True)}, by the {row['foretold_by']}"
            chances = [ranged(row["power"], True), ranged(row["power_holm"], True)]
            needed = ranged(row["tasks_needed"]) if row["tasks_needed"] else None
            equal = share(row["discordance_equal"])
            rows.append([arm, apart, equal, assumed, points(row["effect"]), *chances, needed])
    seen = ["power", "at Holm's first step", "tasks for 80%"]
    head = ["arm", "tasks that disagree", "of equal arms", "assumed", "difference", *seen]
    return table("What these tasks can show", head, rows)


def fresh(r: Results) -> Table | None:
    """The base group, what is expected of further fresh draws, and what each arm found, by draws."""
    found = r["fresh"]
    group, budget, rows = r["budget"]["G"], r["budget"]["B"], []
    first = [k for k in (1, 2, 4, 8, 16) if k < group] + [group]
    later = [k for k in (4, 8, 16, 24, 32, 48) if k < budget] + [budget]
    for k in first if found["n"] else ():
        rows.append(["all tasks, drawn", k, estimate(found["base"][k - 1], found["base_interval"][k - 1])])
    if found["rescue"][-1] is not None:
        for k in later:
            shown = estimate(found["beyond"][k - 1], found["beyond_interval"][k - 1])
            rows.append(["all tasks, expected", group + k, shown])
        for k in later:
            shown = estimate(found["rescue"][k - 1], found["rescue_interval"][k - 1])
            rows.append(["all-fail tasks, expected", k, shown])
    for arm, row in r["intervals"].items():
        if row["n"]:
            rows.append([f"all-fail tasks, {arm}", budget, estimate(row["rate"], row["wilson"])])
    notes = []
    if found["chances"][0] is not None and found["chances"][1] is not None:
        a, b = found["chances"]
        notes = [
            f"Expected: the tasks' chances as Beta({a:.3g}, {b:.3g}), fitted to {plural(found['n'], 'base group')}, "
            f"{found['all_fail']:,} of them all-fail; p {p_text(found['fits_p'])} that they are spread so."
        ]
    head: Head = ["", "draws", Column("with a pass", "estimate")]
    return table(f"Fresh draws, points [{CONFIDENCE} interval]", head, rows, notes)


# ── the climb ────────────────────────────────────────────────────────────────────────────────────────────────────────


def climbers(r: Results) -> dict[str, Climb]:
    """The arms that drew anything on a finished task."""
    return {arm: row for arm, row in r["climb"].items() if any(x["programs"] for x in row["rounds"])}


def leaves(r: Results) -> str:
    """Which tasks the figures of a round are of, where arms stop: without that, they fall by selection alone."""
    if not any(x["together"]["tasks"] < row["rounds"][0]["together"]["tasks"] for row in r["climb"].values()
               for x in row["rounds"]):  # fmt: skip
        return ""
    return (
        "Of tasks that no arm has solved in an earlier round: fewer and harder ones from round to round, for all arms "
        "alike, so compare arms within a round."
    )


def climb_in_short(r: Results) -> Table | None:
    """Shown tests against hidden ones, an arm a row: first and last rounds, for the width of a terminal."""
    rows = []
    if any("together" not in x for row in r["climb"].values() for x in row["rounds"]):
        return None  # an older file: its shares are each of the tasks that an arm was still at
    last = max((x["round"] for row in r["climb"].values() for x in row["rounds"] if x["together"]["tasks"]), default=0)
    rounds = list(range(last + 1)) if last < 4 else [0, 1, last - 1, last]
    for arm, row in climbers(r).items():
        at = [row["rounds"][k]["together"] for k in rounds]
        if not at[0]["tasks"]:
            return None  # no task is finished by every arm
        shown, hidden = ([points(x[key]) for x in at] for key in ("all_visible_share", "passed_share"))
        rows.append([arm, *shown, *hidden])
    if rows:
        tasks = [f"{row['rounds'][k]['together']['tasks']:,}" for k in rounds]  # the same for every arm
        rows.append(["tasks", *tasks, *tasks])
    head = ["% of programs", *(f"shown r{k}" for k in rounds), *(f"hidden r{k}" for k in rounds)]
    note = "shown: passes every visible test. hidden: and every hidden one. r0: round 0."
    return table("Do the hidden tests follow the shown ones", head, rows, [note, leaves(r)])


def signal(r: Results) -> Table | None:
    rows = []
    for arm, row in r["signal"].items():
        if row["refine_prompts"]:
            better = _counted(row["neighbour_better"], row["neighbour_better_share"]) if row["with_neighbour"] else ""
            zero = _counted(row["own_zero"], row["own_zero_share"])
            rows.append([arm, row["refine_prompts"], zero, row["with_neighbour"], better])
    head = ["arm", "refine prompts", "own best at 0", "with a neighbour", "neighbour better"]
    return table("What the prompts had to offer", head, rows)


def active(r: Results) -> Table | None:
    """Each arm beside the control, by round, on the tasks that neither has stopped on."""
    rows = []
    for arm, row in climbers(r).items():
        for x in row["rounds"]:
            there = x["active"]
            for name, found in ((arm, there["arm"]), (f"{CONTROL} there", there["resample"])):
                if found and there["tasks"]:
                    shown = [points(found["best_fitness"]), points(found["shown"]), found["shown_programs"]]
                    hidden = [points(found["hidden"]), points(found["hidden_among_shown"])]
                    rows.append([f"{name}, round {x['round']}", there["tasks"], *shown, *hidden])
    caption = (
        "Where neither side has stopped, %. best: of the visible tests, best so far. shown: programs that pass every "
        "visible test, and how many. hidden: hidden tests passed, by all programs and by those."
    )
    return table(caption, ["", "tasks", "best", "shown", "programs", "hidden", "of those"], rows)


def anchoring(r: Results) -> Table | None:
    rows = []
    for arm, by_round in r["anchoring"].items():
        for x in by_round:
            if x["programs"]:
                line = [f"{arm}, round {x['round']}", x["tasks"], x["programs"], points(x["to_own_first"])]
                line += [_counted(x["exact_repeats"], x["exact_repeats_share"]), points(x["diversity"])]
                rows.append([*line, number(x["distinct_programs"], 1), number(x["distinct_signatures"], 1)])
    caption = (
        "Anchoring. like own first: % of lines as in the particle's first program. repeats: of an earlier program. "
        "diversity: % of lines that two programs of a round do not share. distinct, results: distinct programs and "
        "results on the visible tests, a task."
    )
    head = ["", "tasks", "programs", "like own first", "repeats", "diversity", "distinct", "results"]
    return table(caption, head, rows)


def programs(r: Results) -> Table | None:
    rows = []
    for arm, row in climbers(r).items():
        for x in row["rounds"]:
            if x["programs"]:
                same = x["together"]
                shown = [x["programs"], x["all_visible"], share(x["all_visible_share"]), x["passed"]]
                there = [same["tasks"], share(same["all_visible_share"]), share(same["passed_share"])]
                rows.append([f"{arm}, round {x['round']}", *shown, *there])
    mine = ["programs", "pass all visible", "share", "and all hidden"]
    same_tasks = ["tasks that no arm solved before", "pass all visible there", "and all hidden there"]
    caption = "Programs by round, on every task that the arm is still at (rescued ones leave), and on the same tasks"
    return table(caption, ["", *mine, *same_tasks], rows)


def gaps(r: Results) -> Table | None:
    rows = []
    for arm, row in climbers(r).items():
        moved = row["moved"]
        for name, found in (("of its own", moved), (f"beyond {CONTROL}", row["against_resample"])):
            if moved and found:
                unknown: MeanInterval = {"mean": None, "interval": [None, None]}  # of older files
                parts = (found["shown"], found["hidden"], found["gap"], found.get("passed", unknown))
                cells = [estimate(part["mean"], part["interval"], sign=True) for part in parts]
                rows.append([f"{arm}, {name}", f"{moved['from_round']} to {moved['to_round']}", moved["n"], *cells])
    head: Head = [
        "",
        "rounds",
        "tasks",
        *(Column(name, "estimate") for name in ("shown", "hidden", "gap", "all passed")),
    ]
    return table(f"How far shares moved, points [{CONFIDENCE} interval]", head, rows)


# ── all tasks, and what they cost ────────────────────────────────────────────────────────────────────────────────────


def base(r: Results) -> Table | None:
    rows = [[name, n, share(n / sum(r["p0_histogram"]))] for name, n in short.histogram(r)]
    return table(f"Tasks by passes among {r['budget']['G']} base attempts", ["passes", "tasks", "share"], rows)


def training_set(r: Results) -> Table | None:
    rows: list[list[object]] = []
    for key, name in STAGES:
        counts = [r["training_set"][key][k] for k, _ in SHARES]
        rows += [[name, *counts]] if not rows or counts != rows[-1][1:] else []  # what moves nothing is no row
    head: Head = [Column("", short="tasks by pass share"), *(name for _, name in SHARES)]
    return table("Tasks by pass share", head, rows)


def by_tag(r: Results) -> list[Table | None]:
    """One a tag."""
    made = []
    for tag, values in r["by_tag"].items():
        rows = []
        for value, row in values.items():
            found = [of(arm["rescued"], arm["n"]) for arm in row["arms"].values()]
            rows.append([value, row["tasks"], row["all_fail"], row["given"], *found])
        made.append(table(f"Rescues by {tag}", [tag, "tasks", "all-fail", "given", *r["intervals"]], rows))
    return made


def buckets(curve: Curve, noun: str = "program") -> Table | None:
    """A calibration's curve. noun: what has the score."""
    rows = [
        [row["bucket"], row["n"], row["passed"], estimate(row["rate"], [row["lo"], row["hi"]])]
        for row in curve["table"]
        if row["n"]
    ]
    head: Head = ["bucket", f"{noun}s", "passes", Column("rate", "estimate")]
    empty = [row["bucket"] for row in curve["table"] if not row["n"]]
    return table(f"Pass rate, points [{CONFIDENCE} interval]", head, rows, short.nothing_in(empty, noun))


def areas(curve: Curve) -> Table | None:
    """The AUCs of a calibration's curve."""
    rows = [
        [label.replace("_", ", "), words.auc(found), found["n_pos"], found["n_neg"], found["n_groups"]]
        for label, found in cast(Mapping[str, Area], curve["auc"]).items()
        if found["auc"] is not None
    ]
    return table("Rank of passes above fails", ["", f"AUC [{CONFIDENCE}]", "passes", "fails", "tasks"], rows)


def group(name: str) -> str:
    """Whose attempts they are, in words."""
    return "base group" if name == "base" else name


def outcomes(r: Results) -> Table | None:
    told = {group(name): row for name, row in r["outcomes"].items() if row["n"]}
    names = [name for name in LETTERS if any(name in row["counts"] for row in told.values())]
    names += sorted({name for row in told.values() for name in row["counts"]} - set(LETTERS))
    rows = [[arm, *(row["counts"].get(name, 0) for name in names), row["n"]] for arm, row in told.items()]
    return table("By first failed test", ["", *(name.replace("_", " ") for name in names), "attempts"], rows)


def replies(r: Results) -> Table | None:
    rows = []
    for name, row in r["outcomes"].items():
        if row["n"]:
            cut = [_counted(row["truncated"], row["truncated_share"]), row["cut_while_thinking"]]
            rows.append([group(name), *cut, row["empty"], row["identical"]])
    return table("Replies", ["", "cut at max_tokens", "cut while thinking", "empty", "repeats another"], rows)


def cost(r: Results) -> Table | None:
    """By stage and arm. Token counts that lack some reply are marked as the least that it can have been."""
    found = r["cost"]
    priced, unknown = found["total"]["usd"] is not None, found["total"]["tokens_unknown"] > 0
    quick = found["total"]["cpu_seconds"] < 60

    def tokens(b: Bill, n: int) -> Cell | None:
        mark = "≥" if b["tokens_unknown"] else ""
        return Short(f"{mark}{n:,}", f"{mark}{big(n)}") if b["tokens_unknown"] < b["calls"] else None

    def bill(name: str, b: Bill, yields: Sequence[object] = ()) -> list[object]:
        asked = [b["calls"], tokens(b, b["prompt_tokens"]), tokens(b, b["completion_tokens"])]
        times = [f"{b['latency_seconds'] / b['calls']:.1f} s", "" if quick else words.span(b["cpu_seconds"])]
        usd = f"{b['usd']:,.2f}" if priced else ""
        return [name, *asked, b["tokens_unknown"] if unknown else "", *times, usd, *yields]

    def bill_of_arm(arm: str, b: ArmBill) -> list[object]:
        return bill(arm, b, [b["rescued"], number(b["rescues_per_million_tokens"], 2)])

    stages = found["stages"]
    more = {"arms together": stages["arms"], "noise runs": stages["noise_runs"], "in all": found["total"]}
    rows = [bill("base group", stages["base"])] if stages["base"]["calls"] else []
    rows += [bill_of_arm(arm, b) for arm, b in found["arms"].items() if b["calls"]]
    rows += [bill(name, b) for name, b in more.items() if b["calls"]]
    out, per = Column("tokens out", short="out"), Column("per M tokens", short="rescues per M tokens")
    head: Head = [Column("", short="cost"), "calls", "tokens in", out, "without counts", "mean wait", "grading CPU",
                  "usd", "rescues", per]  # fmt: skip
    page_only = ["without counts", "mean wait", "rescues", "arms together"]
    page_only += ["per M tokens"] if r.get("efficiency") else []  # older files have no sentence with intervals
    return table("By stage and arm", head, rows, page_only=page_only)


def efficiency(r: Results) -> Table | None:
    """Rescues for tokens and dollars, and each arm against the control at equal tokens."""
    rows = []
    for arm, row in r["efficiency"].items():
        if row["n"] and row["per_million_tokens"] is not None:
            line = [arm, row["n"], beside.span_of(row["per_million_tokens"], row["interval"])]
            line.append(beside.span_of(row["per_usd"], row["usd_interval"]) if row["per_usd"] is not None else "")
            if same := row["equal_tokens"]:
                only = f"{same['n_arm_only']} : {same['n_resample_only']}"
                line += [f"{same['rescued']:,} : {same['rescued_resample']:,} of {same['n']:,}", difference(same)]
                line += [only, p_text(same["p"]), p_text(same["p_holm"]), big(same["tokens"])]
            rows.append(line)
    at_equal: list[Column | str] = [
        f"at equal tokens: it : {CONTROL}",
        AGAINST,
        ALONE,
        "p",
        "Holm p",
        "tokens a task",
    ]
    head: Head = ["arm", "tasks", "rescues per M tokens", "per usd", *at_equal]
    owed = any(row["tasks"] for row in r["incomplete"]["arms"].values())
    lean = "; of the tasks finished so far, which lean towards tasks rescued early" if owed else ""
    return table(f"Rescues for what they cost [{CONFIDENCE} interval]; no verdict is drawn from it{lean}", head, rows)
