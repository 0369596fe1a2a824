"""The command line of run.py: its flags beside those of every command, and what they must be to each other.

    args = settings(parser, argv)      an Args, checked and filled in

Left out: the settings that decide what an attempt is (commands/settings.py), the parser itself (commands/flags.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from arms.known import read
from commands.audited import Audited
from commands.flags import Flags, text_file
from commands.predictions import predictions
from commands.rollouts import rollouts
from commands.settings import Asking, Identity, Plan, Spread, flag, setting
from commands.shards import Part
from commands.track import is_there
from figures.plan import wants_full_budget


@dataclass(kw_only=True)
class Args(Identity, Plan, Spread, Asking):
    """The flags: those of commands/settings.py, and where the run lies."""

    audit: Path | None = setting(None, "audit.json (default: the folder's, or beside the tasks)", Path, metavar="FILE")
    config: Path | None = setting(None, "the flags of another run, but for those given: its config.json", Path,
                                  metavar="FILE")  # fmt: skip
    out: Path = setting(None, "the run folder (default: out, or out-dry for a dry run)", Path)
    fresh: bool = setting(False, "move an old folder aside (out.1) and begin anew")
    reuse: bool = setting(False, "report from the folder, no calls")
    regrade: bool = setting(False, "grade every saved reply again, no calls, and report")
    dry_run: bool = setting(False, "toy tasks and a fake policy")
    plan: bool = setting(False, "print what would be asked (--json: as JSON), write nothing, stop")
    show: list[str] | None = setting(None, "print a task's attempts, or one of them with its prompt as it was sent (a "
                                     "slot is star/0/2/5: arm/re-run/round/particle), and stop", nargs="+",
                                     metavar=("TASK", "SLOT"))  # fmt: skip
    watch: bool = setting(False, "follow the run that goes on in the folder, without disturbing it")
    track: str | None = setting(None, "its figures for trackio, in a process beside it; off by default",
                                metavar="PROJECT")  # fmt: skip
    json: bool = setting(False, "print results.json instead of the report")
    verbose: bool = setting(False, "requests on stderr, never a header")

    @cached_property
    def audited(self) -> Audited:
        """Which tasks can be passed, where that is known."""
        return Audited.found(self.audit, self.out, self.tasks)

    @cached_property
    def part(self) -> Part:
        """Which of the tasks are asked here."""
        return Part(self.shard)


def settings(parser: Flags[Args], argv: list[str] | None) -> Args:
    """The flags, checked against each other and filled in."""
    args = parser.read(argv)
    args.arms = parser.told(read, args.arms, args.share_round0)
    if args.dry_run:
        if args.tasks != parser.get_default("tasks") or args.base_url or args.model:
            parser.error("--dry-run has its own tasks and policy: leave --tasks, --model and --base-url out")
        args.tasks, args.model = "toy", "fake"
    args.out = args.out or Path("out-dry" if args.dry_run else "out")
    if args.full_budget is None and not (args.reuse or args.regrade):
        args.full_budget = wants_full_budget(args.tasks, args.as_published)
    others = ("reuse", "regrade", "plan", "show", "watch")
    instead = [flag(name) for name in others if getattr(args, name)]  # of making the run
    chosen = [*instead, "--fresh"] if args.fresh else instead
    if instead and len(chosen) > 1:
        parser.error(f"{' and '.join(chosen)} exclude each other: give one")
    if args.track is not None:
        if other := next((way for way in instead if way != "--watch"), None):
            parser.error(f"{other} makes nothing to track: leave --track out")
        if not args.track.strip() or not is_there():
            parser.error("--track takes the name of a project, and trackio: pip install '.[track]'")
    if args.show and len(args.show) > 2:
        parser.error("--show takes a task and, if you like, one slot of it")
    if args.noise_runs and "resample" not in args.arms:
        parser.error("--noise-runs re-runs resample: put it into --arms")
    if "system" in parser.given:  # from --config it is the text itself
        args.system = parser.told(text_file, args.system)
    if "rollouts" in parser.given and not (args.reuse or args.regrade):
        args.rollouts = parser.told(rollouts, args.rollouts, args.base_samples, args.band, args.style)
    elif args.rollouts is not None and not (args.reuse or args.regrade):
        parser.error(f"--config is of a run from rollouts ({args.rollouts}): name their file with --rollouts")
    if "predict" in parser.given:
        args.predict = parser.told(predictions, args.predict, args.compared)
    return args
