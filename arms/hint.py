"""The rival that stands beside the search: a question with the first part of its answer in it, and more of it by round.

    hint(seat)      the problem, and the first 25, 50, 75% of a program known to be right

After Li et al. (2025), QuestA, arXiv:2507.13266, where hints bring questions back that a group throws away. What it
finds was not searched for: so the arm is off unless `--arms` names it, says by `needs` that it is shown a reference,
and is told apart in the plan, in the report and on every row. Pure. Left out: where references come from (tasksets/).
"""

from __future__ import annotations

from collections.abc import Callable

from swarm import Prompt, Seat, bare, fenced

STEP, MOST = 0.25, 0.75  # of the reference's characters: by round, and in any round


def part_of(reference: str, share: float) -> str:
    """The first part of a program: whole lines where the part holds any, else so many characters."""
    program = reference.strip("\n") + "\n"
    part = program[: int(len(program) * share)]
    lines = part[: part.rfind("\n") + 1]
    return lines if lines.strip() else part


def hint(seat: Seat) -> Prompt:
    """The first part of a program that is right: a quarter of it more each round, and never the last quarter."""
    fresh = bare(seat.task, seat.style)
    part = part_of(seat.task.reference, min(STEP * (seat.slot.round + 1), MOST))
    asked = fresh.messages[-1]["content"]
    shown = f"{asked}\n\nA program that is right begins like this:\n{fenced(part, 'python')}"
    return Prompt([*fresh.messages[:-1], {"role": "user", "content": shown}])


hint.needs = {"reference"}  # type: ignore[attr-defined]
APART: dict[str, Callable[[Seat], Prompt]] = {hint.__name__: hint}  # arms that are off unless they are named
