"""The report of a run again, and several runs side by side.

    python report.py out                     the report of one run again
    python report.py out out-seed1           runs side by side, pooled by task
    python report.py out out-seed1 --html both.html      the same as a page too
    python report.py out-1 out-2 --merge out     two shards of a run (run.py --shard) put together, and its report

    side_by_side(runs)                       what several runs say together, under each one's own figures

A folder with attempts is measured anew; a results.json alone, the published ones too, is told as far as it goes. Shards
of a run are told as the run that they are parts of.

Left out: estimating anything (measure.py; of several runs figures/pool.py), the text of one run (text.py), the page
report.html (page.py).
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from commands.console import at_last, busy, complain, leave_off, point_at, say, wants_colour
from commands.flags import Flags
from commands.settings import setting
from faults import BAD_INPUT
from figures.numbers import listed, plural
from figures.pool import Pool, contradict, pool
from figures.results import Results
from figures.said import UNFINISHED
from telling.runs import arms, counts, differing, head, is_published, page_of_runs, run_lines, short_names
from telling.text import Paper, text
from telling.words import p_text

if TYPE_CHECKING:
    from records import Folder

# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────


def side_by_side(runs: Mapping[str, Results], width: int = 80, colour: bool = False) -> str:
    """Several runs in one table, an arm's runs below each other, and what they say together."""
    named = dict(zip(short_names(list(runs)), runs.values(), strict=True))
    paper, together = Paper(width, colour), pool(named)
    blocks = [[paper.head(head(named)), *paper.wrap(*run_lines(named))], paper.table(counts(named))]
    for told in arms(named, together):
        blocks.append([*paper.wrap(told.caption), *paper.table(told)])
    blocks.append(paper.wrap(*sentences(named, together)))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def sentences(named: Mapping[str, Results], together: Pool) -> list[str]:
    """What the runs say together, or why nothing is."""
    said = []
    if together["differ"]:
        said += differing(named, together["differ"])
    elif together["one_seed"]:
        said.append("Not pooled: two of these runs have the same seed, so they are no repetition of each other.")
    elif together["given_in_some"]:
        said.append(
            f"All-fail and given to the arms: {together['given_in_some']:,} tasks in some run, "
            f"{together['given_in_every']:,} in every one. At least one run rescued {together['rescued_in_some']:,}."
        )
        said.append(_together(together))
    elif old := [name for name, r in named.items() if is_published(r)]:
        holds = "holds" if len(old) == 1 else "hold"
        said.append(f"Not pooled: {listed(old)} {holds} published figures alone, not what each task brought.")
    else:
        said.append("No run has a task that was given to the arms, or the results are too old to be pooled by task.")
    for name, r in named.items():
        if UNFINISHED in r["verdict"]["exploratory"]:
            said.append(f"{name} is not finished: what it says is so far, and no verdict by its plan.")
    return said


def _together(pooled: Pool) -> str:
    """The verdicts of the pooled runs in words, and where the runs contradict each other."""
    said = []
    for word in ("better", "worse", "equivalent", "inconclusive"):
        arms = [arm for arm, row in pooled["arms"].items() if row["verdict"] == word]
        if arms:
            said.append(f"{word}: {listed(arms)}")
    words = f"Together, {'; '.join(said)}." if said else ""
    if words and not pooled["planned"]:
        words = f"Exploratory ({'; '.join(pooled['exploratory'])}). {words}"
    for arm, row in pooled["arms"].items():
        named = {
            word: listed([name for name, said in zip(pooled["runs"], row["by_run"], strict=True) if said == word])
            for word in ("better", "worse")
        }
        if contradict(row["by_run"]):
            words += (
                f" {arm} is better in {named['better']} and worse in {named['worse']}: these runs contradict each "
                "other, so nothing is said of them together."
            )
            continue
        for word, runs in named.items():
            if runs and row["verdict"] != word:
                words += f" {arm} is {word} in {runs} alone, so it is not called {word}."
    if pooled["planned"]:
        words += f" That is the verdict of the plan, which was to pool {len(pooled['runs'])} runs."
    else:
        words += " Better or worse is said only where every run says so by itself."
    return words + _apart_words(pooled)


def _apart_words(pooled: Pool) -> str:
    """Whether the runs differ by more than chance, and what they have in common."""
    known = {arm: row["q_p"] for arm, row in pooled["arms"].items() if row["q_p"] is not None}
    words = ""
    if known:
        told = [f"{arm} {p_text(p)}" for arm, p in known.items()]
        words = f" Do the runs differ in an arm's advantage by more than chance explains? p {listed(told)}"
        words += ", which is too large where runs share tasks." if pooled["given_in_every"] else "."
    if pooled["linked"]:
        words += (
            f" {plural(pooled['linked'], 'pair')} of tasks share a function, dealt out anew by another seed: the "
            "interval allows for it."
        )
    return words


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────


def read(path: str) -> tuple[Results, dict[str, Any] | None]:
    """Results and calibration of a run folder, or of a results file alone. A folder with attempts is measured anew."""
    from faults import RecordsError
    from records import Folder

    if not Path(path).is_file():
        return measured(Folder(path))
    at = Path(path)
    try:
        results = Folder(at.parent).read(at.name)
    except RecordsError:
        results = None
    if not isinstance(results, dict) or "p0_histogram" not in results:
        raise RecordsError(f"{path} is no results.json: name a run folder, or its results.json")
    return cast(Results, results), None


def measured(folder: Folder) -> tuple[Results, dict[str, Any] | None]:
    """Of a folder: from its attempts; without any from its results.json, as far as that goes."""
    from faults import RecordsError
    from measure import measure
    from records import ATTEMPTS, AUDIT

    calibration = folder.read("calibration.json")
    if (folder.path / ATTEMPTS).exists():
        config, cards = folder.config_of("run.py"), folder.cards()
        with busy(f"reading {folder.path}"):
            attempts = folder.stored(config).gathered
            return measure(
                attempts, config, cards, folder.checks(), folder.events(), folder.plan, folder.read(AUDIT)
            ), calibration
    results = folder.read("results.json")
    if results is None:
        raise RecordsError(f"{folder.path} holds no run: name the folder that run.py wrote (--out)")
    return cast(Results, results), calibration


def found(args: Args) -> dict[str, tuple[Results, dict[str, Any] | None]]:
    """Results and calibration of what was named: shards of a run are one, by the name of the first."""
    from commands.shards import Shards, merge, note_missing, together
    from faults import BadInput

    folders = together(Path(run) for run in args.runs if not Path(run).is_file())
    shards = next((folder for folder in folders if isinstance(folder, Shards)), None)
    if args.merge and not shards:
        raise BadInput(f"--merge is for the shards of a run, and {args.runs[0]} is none: leave it out")
    if not shards:
        return {run: read(run) for run in args.runs}
    if args.html or len(shards.parts) < len(args.runs):
        what = "--html is the page of several runs" if args.html else "a results.json is not told beside shards"
        raise BadInput(f"{what}: put these shards together first (--merge FOLDER)")
    note_missing(folders)
    told = {args.runs[0]: measured(shards)}
    if args.merge:
        merge(shards, args.merge)
        point_at(args.merge, f"{plural(len(shards.parts), 'shard')} as one run")
        at_last(f"for its page and its training rows: python run.py --reuse --out {shlex.quote(str(args.merge))}")
    return told


# What is told of a results file that has not all of its keys, such as the published ones: nothing.
UNKNOWN: dict[str, Any] = {
    "verdict": {
        "primary_metric": None, "margin": None, "planned": False, "exploratory": [], "arms": {},
        "sentence": "Published figures alone: there is no verdict by a plan.",
    },
    "incomplete": {"given": 0, "base_tasks": 0}, "intervals": {}, "paired": {}, "per_sample": {}, "climb": {},
    "pooled": {"n": 0}, "training_set": {"n": 0}, "by_task": {}, "outcomes": {}, "cost": {"total": {"calls": 0}},
    "warnings": [], "audit": None,
    "verified": {"programs": 0}, "identity": {}, "family": None, "band": "all", "grades": "attempts", "tier": None,
    "graded_under": None, "dry_run": False,
}  # fmt: skip


def filled(results: Results) -> Results:
    given = max((arm["n"] for arm in results["arms"].values()), default=0)
    return cast(Results, {**UNKNOWN, "incomplete": {**UNKNOWN["incomplete"], "given": given}, **results})


def write_page(at: Path, runs: Mapping[str, Results]) -> None:
    named = dict(zip(short_names(list(runs)), map(filled, runs.values()), strict=True))
    with busy("making the page"):
        together = pool(named)
        at.write_text(page_of_runs(named, together, sentences(named, together)), encoding="utf-8")


@dataclass(kw_only=True)
class Args:
    runs: list[str] = setting([], "a run folder, or a results.json", positional=True, nargs="+", metavar="RUN")
    html: Path | None = setting(None, "of several runs also a page", Path, metavar="FILE")
    merge: Path | None = setting(None, "of shards (run.py --shard): where to put them together as one run", Path,
                                 metavar="FOLDER")  # fmt: skip
    json: bool = setting(False, "print the figures as JSON: results, or the pooled figures")


def flags() -> Flags[Args]:
    what = "The report of a run again; of several runs side by side, pooled by task."
    return Flags("report.py", what, Args, rest="flags", usage=" RUN [RUN ...]")


def main(argv: Sequence[str] | None = None) -> int:
    """0; 2 where a folder cannot be read, 5 where one cannot be written."""
    from faults import Fault
    from records import dumps

    parser = flags()
    args = parser.read(argv)
    paths = [Path(run).resolve() for run in args.runs]
    twice = [run for n, run in enumerate(args.runs) if paths[n] in paths[:n]]
    if twice:
        parser.error(f"{twice[0]} is named twice: name each run once")
    if args.html and len(paths) < 2:
        parser.error(f"--html is the page of several runs; run.py --reuse --out {args.runs[0]} makes that of one")
    try:
        named = found(args)
    except Fault as why:
        return complain(why, why.code)
    runs = {path: results for path, (results, _) in named.items()}
    if args.html:
        try:
            write_page(args.html, runs)
        except OSError as why:
            return complain(f"{args.html} cannot be written ({why.strerror}): name another --html", BAD_INPUT)
    if args.json:
        say(dumps(pool(runs) if len(runs) > 1 else runs.popitem()[1], indent=1))
    elif len(runs) > 1:
        say(side_by_side({path: filled(results) for path, results in runs.items()}, colour=wants_colour()))
    else:
        (((results, calibration),), run) = named.values(), str(args.merge or args.runs[0])
        folder = shlex.quote(run) if Path(run).is_dir() else ""
        say(text(filled(results), colour=wants_colour(), calibration=calibration, folder=folder))
    if args.html:
        point_at(args.html, "the same as a page")
    leave_off()
    return 0


if __name__ == "__main__":
    interrupt.leave(main)
