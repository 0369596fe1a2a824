"""Rows for a trainer, from one run or several: in the columns that it reads, with a card, onto a hub if asked.

    python export.py --out out                                        prompt and completion for TRL's SFTTrainer
    python export.py --out out --out out-seed1 --format verl-sft      two runs together, equal programs once
    python export.py --out out --format grpo --population mixed       tasks and tests for a reward
    python export.py --out out --per-task 4 --also base,reruns        at most four programs a task; more passes
    python export.py --out out/sql                                    the queries of sql_calibrate.py that match
    python export.py --out out --push NAME                            and onto a hub, private

Formats: rows trl messages pairs verl-sft (a row a program) difficulty grpo verl-rl (a row a task). docs/rows.md names
each column. The files and their README.md go to OUT/export/FORMAT, or to --to. No call is made and nothing is graded.

Left out: training, and the loaders of the trainers themselves.
"""

from __future__ import annotations

if __name__ == "__main__":
    from commands import interrupt

    interrupt.at_once()  # Ctrl-C is one line from here on: the imports below take a second

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from commands.console import complain, leave_off, note, point_at, say
from commands.flags import Flags
from commands.settings import count, names, number, setting
from commands.shards import note_missing, together
from faults import DONE, Fault
from figures.numbers import plural
from rows.card import card, cleaned, contamination, unverified
from rows.files import placed, suffix, write
from rows.formats import FORMATS, of_tasks, rewarded
from rows.found import ALSO, POPULATIONS, Choice
from rows.overlap import Benchmarks
from rows.queries import read, refuse_tests


def also(text: str) -> tuple[str, ...]:
    for name in names(text):
        if name not in ALSO:
            raise ValueError(f"{name!r} is none of {', '.join(ALSO)}")
    return tuple(names(text))


@dataclass(kw_only=True)
class Args:
    out: list[Path] | None = setting(None, "the folder of a run; repeatable (default: out)", Path, action="append",
                                     metavar="FOLDER")  # fmt: skip
    format: str = setting("trl", "default: trl", choices=tuple(FORMATS), metavar="NAME")
    to: Path | None = setting(None, "where the files go (default: OUT/export/FORMAT of the first run)", Path,
                              metavar="FOLDER")  # fmt: skip
    per_task: int | None = setting(None, "programs a task, on-policy ones first (default: all)", count(1), metavar="N")
    also: tuple[str, ...] = setting((), "passes that are no rescues: base, reruns", also, metavar="LIST")
    population: str = setting("all", "tasks of a row a task: all, all-fail, rescued, mixed (some of the base group "
                              "passed; default: all)", choices=tuple(POPULATIONS), metavar="NAME")  # fmt: skip
    held_back: float = setting(0.0, "of the tasks, into a test part, by their id (default: 0)", number(0, 99),
                               metavar="PERCENT")  # fmt: skip
    tasks: str | None = setting(None, "the run's own tasks, where the file lies now: for grpo and verl-rl, whose tests "
                                "the folder does not hold", metavar="FILE")  # fmt: skip
    decontaminate: list[Path] = setting([], "leave out tasks that share 13 words in a row with a benchmark's files "
                                        "(.jsonl, .json, .parquet, text)", Path, nargs="+", metavar="FILE")  # fmt: skip
    push: str | None = setting(None, "a data set on the hub, private unless --public", metavar="NAME")
    public: bool = setting(False, "for --push: everybody may read it")


def flags() -> Flags[Args]:
    return Flags("export.py", __doc__, Args, rest="flags")


def settings(parser: Flags[Args], argv: Sequence[str] | None) -> Args:
    """The flags, checked against each other."""
    args = parser.read(argv)
    paths = [path.resolve() for path in args.out or [Path("out")]]
    if len(set(paths)) < len(paths):
        parser.error("a run is named twice: name each --out once")
    for name, given, fits in (
        ("--per-task", args.per_task, not of_tasks(args.format)),
        ("--also", args.also, not of_tasks(args.format)),
        ("--population", args.population != "all", of_tasks(args.format)),
        ("--tasks", args.tasks, rewarded(args.format)),
        ("--public", args.public, args.push),
    ):
        if given and not fits:
            what = "--push" if name == "--public" else f"another format than {args.format}"
            parser.error(f"{name} is for {what}: leave it out")
    return args


def export(args: Args) -> int:
    out = args.out or [Path("out")]
    folders = together(out)
    note_missing(folders)
    runs = [read(folder) for folder in folders]
    if of_tasks(args.format):
        refuse_tests(runs, args.format)
    choice = Choice(runs, args.also, args.per_task, args.population, args.held_back / 100,
                    args.tasks, Benchmarks.read(args.decontaminate) if args.decontaminate else None)  # fmt: skip
    choice.once()
    to = args.to or out[0] / "export" / args.format
    with placed(to) as new:
        counts = write(new, args.format, choice)
        (new / "README.md").write_text(card(args.format, choice, counts), encoding="utf-8")
    say(told(args, choice, counts, to))
    if not of_tasks(args.format) and (unseen := unverified(choice)):
        note(f"warning: {unseen}")
    if args.push:
        from rows.push import push

        note(f"{push(to, args.push, args.public)} holds it now")
    for part, rows in counts.items():
        point_at(to / f"{part}.{suffix(args.format)}", plural(rows, "row"))
    point_at(to / "README.md", "the card")
    return DONE


def told(args: Args, choice: Choice, counts: dict[str, int], to: Path) -> str:
    """What was written, and how it is read."""
    kind = suffix(args.format)
    files = ", ".join(f"{to / part}.{kind} ({plural(number, 'row')})" for part, number in counts.items())
    lines = [files or "no row: nothing of these runs is what this format takes"]
    if not of_tasks(args.format):
        on = sum(program.on_policy for program in choice.programs)
        kept = f"{len(choice.programs):,} distinct ones kept, {on:,} of them on-policy"
        lines.append(f"{len(choice.found):,} passing programs; {kept}")
    if counts and args.held_back and not counts.get("test"):
        lines.append(f"No task is held back: none of them falls under {args.held_back:g}% by its id.")
    lines += [contamination(choice)] * bool(counts) + cleaned(choice)
    if counts:
        loader = "json" if kind == "jsonl" else "parquet"
        lines += ["", f'datasets.load_dataset("{loader}", data_files="{to}/train.{kind}", split="train")']
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """0; 2 where a folder, a flag or a task set cannot be used; 5 where the disk is full."""
    parser = flags()
    args = settings(parser, argv)
    try:
        return export(args)
    except Fault as why:
        return complain(why, why.code)
    finally:
        leave_off()


if __name__ == "__main__":
    interrupt.leave(main)
