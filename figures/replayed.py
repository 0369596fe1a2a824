"""The prompts of a task as they were sent, rebuilt from its card and its attempts: nothing keeps them whole.

    sent = rebuilt(card, attempts, settings)      slot -> Prompt
    sent.get(slot)                                None: what can be rebuilt is not what was sent

An attempt's line names the attempts it was shown, so most prompts follow from the line alone, whatever has become of
their arm since; an arm with words of its own is played again, answered from the folder. Only a prompt with the digest
that the line holds is given out. The attempts are to be those of the file, under the grades of their time.

Left out: who sees whom (swarm.py), how a prompt is shown (telling/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from commands.settings import Settings
from swarm import ARMS, Attempt, Prompt, Seat, Slot, bare, refine, swarm
from tasksets.task import Task

Arms = Mapping[str, Callable[[Seat], Prompt]]


def rebuilt(task: Task, attempts: Iterable[Attempt], due: Settings, arms: Arms = ARMS) -> dict[Slot, Prompt]:
    """The prompt of each attempt of the task whose digest agrees with the one on its line."""
    there = {attempt.slot: attempt for attempt in attempts}
    by_name = {slot.within_task(): attempt for slot, attempt in there.items()}
    fresh = bare(task, due.style)
    digest = fresh.sha()
    sent = {slot: fresh for slot, attempt in there.items() if attempt.prompt_sha == digest}

    def keep(asks: Iterable[tuple[Slot, Prompt]]) -> None:
        for slot, prompt in asks:
            if slot in there and slot not in sent and there[slot].prompt_sha == prompt.sha():
                sent[slot] = prompt

    for slot, attempt in there.items():
        own, other = (by_name.get(name) if name else None for name in (attempt.parent, attempt.social))
        if own:
            keep([(slot, refine(task, own, other, due.style))])
    for arm, rerun in dict.fromkeys((slot.arm, slot.rerun) for slot in there if slot not in sent):
        if arm in arms:
            keep(_played(task, arm, rerun, there, due, arms))
    return sent


def _played(
    task: Task, arm: str, rerun: int, there: Mapping[Slot, Attempt], due: Settings, arms: Arms
) -> Iterator[tuple[Slot, Prompt]]:
    """By the arm itself, as far as there are attempts to answer it."""
    shares = due.share_round0 and not rerun
    flow = swarm(task, arms[arm], arm, due.particles, due.rounds, seed=due.seed, rerun=rerun, stop=False,
                 first="round0" if shares else "", style=due.style)  # fmt: skip
    try:
        asks = next(flow)
        while True:
            yield from asks
            answers = [there.get(slot) for slot, _ in asks]
            known = [attempt for attempt in answers if attempt]
            if len(known) < len(asks):
                return
            asks = flow.send(known)
    except StopIteration:
        return
