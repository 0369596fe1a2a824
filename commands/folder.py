"""The run folder as a command goes through it: opened, settled, written down, told from.

    held(folder, config, asked)                 what its attempts say of those to come
    with opened(out, fresh) as log:             for writing, mended; an old one moved aside
        changed = log.settle(identity, plan)    the same settings as before, or what has grown
        write_down(log, config, plan, changed)  config.json and plan.json, before the first sample
    if is_telling(code, out): ...               the report, from what is on disk
    show_report(folder, results, rows, ...)     where it lies, and how an unfinished run goes on

Left out: what the files hold (records.py), sampling (commands/shared.py), the report (each command's own).
"""

from __future__ import annotations

import contextlib
import itertools
import shlex
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import cast

from arms.known import about
from commands.console import at_last, busy, note, point_at, without_login
from commands.flags import VERSION
from commands.settings import Asking, Config, Data, Free, Row, Server, flag, values_of
from endpoint import Probe
from faults import DONE, ENDPOINT, LIMIT, RecordsError
from figures.foretold import SoFar, so_far
from figures.numbers import plural
from figures.plan import plan_digest
from figures.regraded import graded
from figures.results import Results
from records import ATTEMPTS, CONFIG, EVENTS, PLAN, Folder, Log


@contextlib.contextmanager
def opened(out: Path, fresh: bool) -> Iterator[Log]:
    """The folder for writing; with --fresh an empty one. What had to be mended is told."""
    if fresh:
        move_aside(out)
    with contextlib.ExitStack() as held:
        with busy(f"reading {out}"):
            log = held.enter_context(Log(out))
        for line in log.mended:
            note(line)
        yield log


def move_aside(out: Path) -> None:
    """--fresh: an old folder gets another name; nothing is ever deleted."""
    if not out.exists():
        return
    within = [Folder(path) for path in sorted(out.iterdir()) if path.is_dir() and Folder(path).is_run]
    with contextlib.ExitStack() as locks:  # nobody else is writing to it, and it is a run's or empty
        for folder in (Folder(out), *within):
            locks.enter_context(folder.locked())
        here = out.resolve()
        aside = next(path for k in itertools.count(1) if not (path := here.with_name(f"{here.name}.{k}")).exists())
        try:
            here.rename(aside)
        except OSError as why:
            raise RecordsError(f"{out} cannot be moved aside ({why.strerror}): use another --out") from None
    note(f"the old folder is {aside} now" + "".join(f", with {folder.path.name} in it" for folder in within))


def config_of(
    args: Asking,
    command: str,
    identity: Row,
    plan: Row,
    data: Data,
    server: Probe,
    dry_run: bool = False,
) -> Config:
    """config.json: the flags in their three classes, and all else that a number may depend on."""
    free = {**values_of(args, Free), "base_url": [without_login(url) for url in args.base_url or ()]}
    return {
        "identity": identity,
        "plan": plan,
        "free": free,
        "versions": versions(),
        "data": data,
        "apart": about(plan.get("arms", ()), data),
        "server": cast(Server, asdict(server)),
        "grades": "attempts",
        "price": args.price,
        "command": command,
        "dry_run": dry_run,
        "started": time.time(),
        "ended": None,
    }


def write_down(log: Log, config: Config, plan: Row, changed: list[str], cure: str) -> None:
    """config.json and plan.json, before the first sample; later what has grown, as an amendment.

    config: with the tier and the rules of the grader. cure: what becomes of attempts that were graded under others.
    """
    old = log.config if log.begun else None
    now = f"tier {config['tier']}, {config['rules']}"
    config["graded_under"] = [now]
    if old:
        config["grades"], config["started"] = old["grades"], old["started"]
        config["graded_under"] = list(dict.fromkeys([*old.get("graded_under", []), now]))
    if len(config["graded_under"]) > 1:
        note(f"warning: earlier attempts were graded under {config['graded_under'][0]}, now it is {now}: {cure}")
    plan["written"] = time.time()
    first = (log.plan if old else None) or plan
    if first is not plan and changed:
        amendment = {"time": plan["written"], "after_attempts": len(log), "changed": changed, "plan": plan}
        first["amendments"].append(amendment)
    log.keep(PLAN, first)
    log.keep(CONFIG, {**config, "plan_digest": plan_digest(first)})


def held(folder: Folder, config: Config, asked: int) -> SoFar | None:
    """What the folder's attempts say of those that a plan would ask; None where it has none of this experiment."""
    if not folder.is_settled:
        return None
    old, now = folder.config, config["identity"]
    if other := [flag(key) for key in {**old["identity"], **now} if old["identity"].get(key) != now.get(key)]:
        note(f"{folder.path} holds another experiment ({', '.join(other)}): its attempts say nothing of this one")
        return None
    return so_far(graded(folder.attempts(), folder.checks(), old), config, asked)


def ended(log: Log) -> None:
    """The last sample of this start has been filed."""
    log.keep(CONFIG, {**log.config, "ended": time.time()})


def is_telling(code: int, out: Path) -> bool:
    """Whether a report follows: at the end, and where a limit or the endpoint has ended a run that holds something."""
    return code in (DONE, LIMIT) or (code == ENDPOINT and (out / ATTEMPTS).exists())


def note_remarks(remarks: list[str]) -> None:
    """What is different about grading on this machine."""
    for line in remarks:
        note(f"warning: {line}")


def note_unreadable(folder: Folder) -> None:
    """What a report had to pass over, after it."""
    for name, lines in Counter(name for name, _ in folder.unreadable).items():
        note(f"{lines} lines of {name} cannot be read; the next run moves them aside and asks again")
    for name in folder.restored:
        note(f"{name} is torn or gone: read from {EVENTS}; the next run writes it again")
    if shard := folder.config.get("shard"):
        others = f"python report.py {shlex.quote(str(folder.path))} SHARD ... --merge FOLDER"
        note(f"this is shard {shard['number']}/{shard['of']} of a run: {others} puts them together")


def show_report(folder: Folder, results: Results, rows: str, apart: str, stopped: bool) -> None:
    """Say where the report of a run is and its rows, and how an unfinished one goes on. rows, apart: what was written
    of them; stopped: something ended it just now, and said how."""
    point_at(folder.path / "report.html", "the report as a page")
    point_at(folder.path / "report.txt", "the report as it stands above")
    point_at(folder.path / "rescued.jsonl", plural(rows.count("\n"), "training row"))
    if apart:
        kept = f"{plural(apart.count(chr(10)), 'rescued program')} kept apart, not verified"
        point_at(folder.path / "rescued-unverified.jsonl", kept)
    config, owing = folder.config, results["incomplete"]
    owes = owing["base_tasks"] or any(row["tasks"] for row in (*owing["arms"].values(), *owing["noise_runs"]))
    shard = config.get("shard")
    due = shard["tasks"] if shard else config["data"].get("asked", 0)
    if not stopped and (owes or results["tasks"] < due):
        at_last(f"to continue, since it is not finished: {_again(folder, config, results)}")


def _again(folder: Folder, config: Config, results: Results) -> str:
    """The command that goes on with a run, from its folder alone. A limit that was reached is twice as high in it."""
    if config["dry_run"] or config["identity"].get("rollouts"):  # --config is not enough for those
        return "the command that made it goes on"
    words = ["python", "run.py", "--config", str(folder.path / CONFIG), "--out", str(folder.path)]
    tokens = results["tokens"]["prompt"] + results["tokens"]["completion"]
    spent = {"calls": results["calls"], "tokens": tokens, "usd": results["cost"]["total"]["usd"] or 0}
    limits = {name: (most, spent.get(name, 0) >= most) for name, most in config["free"].get("stop_after", {}).items()}
    if any(reached for _, reached in limits.values()):
        told = (f"{name}={most * (1 + reached):.15g}" for name, (most, reached) in limits.items())
        words += ["--stop-after", ",".join(told)]
    return shlex.join(words)


def show_curves(folder: Folder, pictures: dict[str, bytes], told: str, is_report: bool = False) -> None:
    """Keep the pictures of a calibration, by name, and its text; say where they and its figures are.

    is_report: the text is all that the folder has for a report; a run's has its own, which shows the curves too.
    """
    for name, picture in pictures.items():
        at = folder.path / name
        at.unlink(missing_ok=True)  # never through a link to somebody else's
        at.write_bytes(picture)
        point_at(at, "the curves as a picture")
    folder.write("report.txt" if is_report else "calibration.txt", told + "\n")
    if not is_report:
        point_at(folder.path / "calibration.txt", "the tables as they stand above")
    point_at(folder.path / "calibration.json", "every figure of them")
    page = folder.path / "report.html"
    if not is_report and page.exists():
        point_at(page, f"shows them after python run.py --reuse --out {shlex.quote(str(folder.path))}")


def versions() -> dict[str, str | None]:
    """What made the numbers: this program, its commit, Python, and the libraries it stands on."""
    import platform
    import subprocess
    from importlib.metadata import PackageNotFoundError, version

    here = Path(__file__).resolve().parent.parent
    git = ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=12", "--match="]
    try:
        commit = subprocess.run(git, capture_output=True, text=True, timeout=10).stdout.strip() or None
    except (OSError, subprocess.TimeoutExpired):
        commit = None
    found: dict[str, str | None] = {"swarm-rescue": VERSION, "commit": commit, "python": platform.python_version()}
    for name in ("openai", "pyarrow", "numpy", "scipy", "sqlglot"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
