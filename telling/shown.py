"""One task, or one attempt of it, as text for a terminal: what `run.py --show` prints.

    grid(card, attempts)                  the attempts of a task as particles by rounds, each with its address
    whole(card, attempt, prompt, paper)   the prompt as sent, the reply, the program, the tests

What models and data sets wrote reaches the terminal as letters: an escape sequence in it is shown, not obeyed.

Left out: finding them (commands/show.py), the same on the page (page.html).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grading.grade import LETTERS, OUTCOMES
from swarm import Attempt, Prompt, problem
from tasksets.task import Task
from telling.text import Paper
from telling.words import plural, share

PASS = "●"
PICTURES = {c: 0x2400 + c for c in range(32) if chr(c) not in "\n\t"} | dict.fromkeys(
    [*range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0x2421
)
NO_REASON = (
    "It cannot be rebuilt: what follows from the folder is not what was sent, by its digest. The folder holds no words "
    "of an arm of your own, and no reference that one was shown."
)


def mark(attempt: Attempt) -> str:
    """One sign for how an attempt ended."""
    return PASS if attempt.passed else LETTERS.get(attempt.outcome, "?")


def grid(card: Task, attempts: Sequence[Attempt], paper: Paper, command: str) -> str:
    """Rows of particles: an address is a row's name and a column's number."""
    rows: dict[str, dict[int, Attempt]] = {}
    order = [*dict.fromkeys((a.rerun, a.arm) for a in attempts)]
    for a in sorted(attempts, key=lambda a: (a.rerun, order.index((a.rerun, a.arm)), a.round)):
        rows.setdefault(f"{a.arm}/{a.rerun}/{a.round}/", {})[a.particle] = a
    most = max((a.particle for a in attempts), default=0)
    name = max(map(len, rows), default=0)
    lines = [paper.head(_title(card)), *_tags(card), "", *printable(problem(card)).split("\n"), ""]
    lines.append(" " * name + "".join(f"{i:>6}" for i in range(most + 1)))
    for label, row in rows.items():
        cells = [f"{100 * row[i].fitness:>4.0f}{mark(row[i])}" if i in row else "" for i in range(most + 1)]
        lines.append((f"{label:<{name}}" + "".join(f"{cell:>6}" for cell in cells)).rstrip())
    used = dict.fromkeys(mark(a) for a in attempts if not a.passed)
    key = [f"{PASS} pass", *(f"{letter} {_words(OUTCOMES.get(letter, 'other'))}" for letter in used)]
    lines += ["", *paper.wrap(f"Percent of the visible tests passed, and how it ended: {', '.join(key)}.")]
    if attempts:
        best = max(attempts, key=lambda a: (a.passed, a.fitness, a.round))
        lines += ["", f"one attempt:  {command} {best.slot.within_task()}"]
    return "\n".join(lines)


def whole(card: Task, attempt: Attempt, prompt: Prompt | None, paper: Paper) -> str:
    """An attempt from its prompt to its tests. What stands under a heading is as it was sent, not wrapped."""
    a = attempt
    said = [f"{_words(a.outcome)}{ended_by(a)}, {share(a.fitness)} of the visible tests"]
    if a.parent:
        said.append(f"shown its own best, {a.parent}")
    elif prompt is not None:  # else the arm had words of its own
        said.append("a fresh draw")
    said += [f"and another's, {a.social}"] if a.social else []
    lines = [paper.head(f"{_title(card)}  {a.slot.within_task()}"), *_tags(card), *paper.wrap(", ".join(said) + ".")]

    def part(heading: str, text: str | None, instead: str) -> None:
        lines.extend(["", paper.head(f"── {heading} " + "─" * max(0, 76 - len(heading)))])
        lines.extend(printable(text).rstrip("\n").split("\n") if text else paper.wrap(instead))

    if prompt is None:
        part("prompt", None, NO_REASON)
    else:
        lines += ["", f"Rebuilt, and its digest is that of the prompt sent: {a.prompt_sha[:16]}."]
        for message in prompt.messages:
            part(f"prompt, {message['role']}", message["content"], "(empty)")
    if a.reasoning:
        part("reasoning", a.reasoning, "")
    ended = f", ended by {a.finish_reason}" if a.finish_reason else ""
    counted = "" if a.completion_tokens is None else f", {plural(a.completion_tokens, 'token')}"
    part(f"reply{counted}{ended}", a.reply, "(empty)")
    part("program", a.code, "None was found in the reply.")
    part("tests", "\n".join(_tests(a)), "")
    if a.got and a.code is not None:
        test = first_failed(card, a)
        part("the first visible test it fails: input", test and test[0], "(empty)")
        if card.kind != "assert":
            part("expected", test and test[1], "(empty)")
        part("got", a.got, "")
    return "\n".join(lines)


def ended_by(a: Attempt) -> str:
    """The exception that ended an attempt, and its line, as what follows its outcome."""
    line = "" if a.error_line is None else f", line {a.error_line}"
    return f" ({printable(a.error + line)})" if a.error else ""


def first_failed(card: Task, attempt: Attempt) -> tuple[str, str] | None:
    """Input and expected output of the first visible test that a program failed."""
    failed = next((i for i, letter in enumerate(attempt.visible_tests) if letter != LETTERS["pass"]), None)
    return None if failed is None or failed >= len(card.visible) else card.visible[failed][:2]


def _tests(a: Attempt) -> Iterable[str]:
    for name, letters, total in (
        ("visible", a.visible_tests, a.visible_total),
        ("hidden", a.hidden_tests, a.hidden_total),
    ):
        if not letters:
            yield f"{name:<8} not run ({total})"
            continue
        missed = [f"{x} {_words(OUTCOMES.get(x, x))} {letters.count(x)}" for x in sorted(set(letters) - {"P"})]
        yield f"{name:<8} {letters.count('P')} of {len(letters)}  {letters}" + (
            f"  ({', '.join(missed)})" if missed else ""
        )


def printable(text: str) -> str:
    """With a picture in place of every control character but ends of lines and tabs."""
    return text.replace("\r\n", "\n").translate(PICTURES)


def _title(card: Task) -> str:
    return printable(card.id if card.title in ("", card.id) else f"{card.id} ({card.title})")


def _tags(card: Task) -> list[str]:
    return [printable(" · ".join(f"{name} {value}" for name, value in card.tags.items()))] if card.tags else []


def _words(outcome: str) -> str:
    return outcome.replace("_", " ")
