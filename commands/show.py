"""run.py --show TASK [SLOT]: one task of a run folder, or one attempt of it, as text.

    show(folder, ["mbpp-0-144", "star/0/2/5"])      a slot: arm/re-run/round/particle

Reads the folder and takes no lock, so it may be asked while a run goes on. The prompts of an arm of your own that has
words of its own are rebuilt where --arms names its file, as when it was run. BadInput says what there is in place of
what is not. Left out: how it looks (telling/shown.py), the prompts (figures/replayed.py).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from arms.known import OWN
from commands.console import busy, say, wants_colour
from commands.flags import nearest
from commands.settings import Settings
from faults import BadInput
from figures.numbers import plural
from figures.regraded import graded
from figures.replayed import Arms, rebuilt
from records import Folder
from swarm import ARMS
from telling.shown import grid, whole
from telling.text import Paper


def show(folder: Folder, words: Sequence[str]) -> None:
    """Print the task that the first word names, or its attempt in the slot that the second names."""
    task_id, slot = words[0], words[1] if len(words) > 1 else None
    config = folder.config_of("run.py")
    cards = {card.id: card for card in folder.cards()}
    if task_id not in cards:
        few = (
            f"there are {', '.join(list(cards)[:5])}" + (" and more" if len(cards) > 5 else "")
            if cards
            else "it has none"
        )
        raise BadInput(f"{folder.path} holds no task {task_id!r}: {few}{nearest(task_id, cards)}")
    with busy(f"reading {folder.path}"):
        sent = [attempt for attempt in folder.attempts() if attempt.task_id == task_id]
    there = {a.slot.within_task(): a for a in graded(sent, folder.checks(), config)}
    paper = Paper(80, wants_colour())
    if slot is None:
        command = f"python run.py --out {shlex.quote(str(folder.path))} --show {shlex.quote(task_id)}"
        say(grid(cards[task_id], list(there.values()), paper, command))
        return
    if slot not in there:
        arms = dict.fromkeys(f"{a.arm}/{a.rerun}/" for a in sent)
        raise BadInput(
            f"{task_id} has no attempt {slot!r}: a slot is arm/re-run/round/particle, and there are "
            f"{plural(len(there), 'attempt')} ({', '.join(arms) or 'none'}){nearest(slot, there)}"
        )
    own: Arms = {name: arm.function for name, arm in OWN.items()}
    prompts = rebuilt(cards[task_id], sent, Settings.of(config), {**ARMS, **own})
    say(whole(cards[task_id], there[slot], prompts.get(there[slot].slot), paper))
