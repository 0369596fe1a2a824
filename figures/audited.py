"""What known programs and the tests alone say of a task: can it be passed, and if not, why not.

    how(got, expected, statement)       why an output that its judge has accepted is not the expected one
    judge(task, right, wrong, ...)      an Audit: passable, disputed with its reason, or unknown
    contradictions(tests, kind)         pairs of tests that no program passes both of
    uncalled(task), same_answer(task)   functions that no test calls; tests that all expect one answer

A task is passable if some reference passes all its tests, disputed if it has references and none does, or if its tests
rule each other out, unknown if it has no reference in Python. The reason is a guess of the likeliest: an output that
differs in letter case, in how a number is written or in its order is one that a fairer comparison would have taken; one
of another content is one of several answers where the statement leaves a choice or where accepted programs differ among
themselves, and else a wrong test, or a wrong reference.

Pure. Left out: running anything (audit.py), which tasks are all-fail and what that means for a run (counted.py).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from commands.settings import Row
from grading.compare import outputs_match
from grading.grade import LETTERS, OUTCOMES
from tasksets.task import Task, Test, parse

PASSABLE, DISPUTED, UNKNOWN = VERDICTS = "passable", "disputed", "unknown"
UNAUDITED = "unaudited"  # not in the audit, or under other words or tests
CASE, FLOATS, ORDER, SEVERAL, WRONG = "letter case", "float format", "order", "several answers", "wrong test"
TIME, MEMORY, CRASH, SETUP, CONTRADICTION = "time", "memory", "crash", "set-up", "contradiction"
# From what a fairer comparison would forgive to what it would not; of a task the last that one of its tests has.
OF_OUTPUTS = (CASE, FLOATS, ORDER, SEVERAL, WRONG)
REASONS = (*OF_OUTPUTS, TIME, MEMORY, CRASH, SETUP, CONTRADICTION)
_OF_OUTCOMES = {"timeout": TIME, "not_run": TIME, "memory_limit": MEMORY}  # anything else that is no answer: a crash

# A statement that leaves a choice, in so many words.
_CHOICE = re.compile(
    r"\b(?:print|output|find|choose|return|write|give|report|display)\w*(?: out)? any\b"
    r"|\bany (?:one )?(?:of (?:them|these|those|the (?:\w+ )?\w+)|valid|suitable|correct|possible|acceptable|answers?"
    r"|solutions?|such|appropriate|order)\b"
    r"|\b(?<!how )(?:multiple|several|many|different|more than one|a few) (?:\w+ ){0,3}(?:answers?|solutions?|ways"
    r"|variants|sequences?|options|sets?|trees?|plans?|possibilit\w+|representations?|arrangements?|permutations?|pairs?|paths?)\b"
    r"|\barbitrary\b|\bconsidered correct if (?:your|the|it)\b(?![^.]{0,80}\b(?:error|difference|precision))"
    r"|\bnot (?:necessarily )?unique\b|\bdoes(?:n't| not) matter\b",
    re.IGNORECASE,
)
_ANY_ORDER = re.compile(
    r"\b(?:any|arbitrary) order\b|\border (?:\w+ ){0,6}(?:is not important|does(?:n't| not) matter)\b", re.IGNORECASE
)
# A statement that asks for a thing rather than for a number, so that there may be more than one.
_THING = re.compile(
    r"\bsuch (?:that|\w+ that|a way|an order)\b|\bso that\b|\bsatisf|\bas (?:small|large|few|many) as possible\b"
    r"|\bconstruct|\brestore\b|\breconstruct|\bcoordinates\b|\bnumbers? written on\b"
    r"|\bassign|\barrange|\bdescri(?:be|ption)",
    re.IGNORECASE,
)


class Failure(NamedTuple):
    """A test that a reference does not pass, as checks.jsonl holds it."""

    test: str  # "visible 2", "hidden 17"
    outcome: str
    reason: str
    why: str = ""
    got: str = ""  # clipped
    expected: str = ""  # clipped
    digest: str = ""  # of all that it printed: equal outputs, equal digest


class Ran(NamedTuple):
    """A known program on all the tests of its task."""

    letters: str
    failures: Sequence[Failure] = ()  # the first few
    remark: str = ""  # what is to be said of one that passes

    @property
    def passes(self) -> bool:
        return bool(self.letters) and set(self.letters) == {LETTERS["pass"]}

    @property
    def share(self) -> float:
        return self.letters.count(LETTERS["pass"]) / max(len(self.letters), 1)


class Audit(NamedTuple):
    """What is known of a task. passed of tried references pass; false_accepts: incorrect programs that pass."""

    task_id: str
    verdict: str  # of VERDICTS
    reason: str  # of REASONS, where it is disputed
    passed: int
    tried: int
    false_accepts: int
    incorrect: int = 0  # programs known to be wrong that were tried
    why: str = ""  # the reason, in a sentence
    notes: tuple[str, ...] = ()  # what can be seen of its tests besides
    failure: Failure | None = None  # the first test that the best reference does not pass
    title: str = ""
    digest: str = ""  # of the task, as tasks.jsonl has it
    where: str = ""  # the row, in a file of one's own: "line 3"


# ── why an output is not the expected one ────────────────────────────────────────────────────────────────────────────


def how(got: str, expected: str, statement: str) -> tuple[str, str]:
    """The likeliest reason why an accepted output is not the expected one, and what it rests on."""
    if outputs_match(got.lower(), expected.lower(), as_published=True):
        if outputs_match(got.lower(), expected.lower()):
            return CASE, "equal but for capital letters"
        return FLOATS, "equal as numbers within 1e-6"
    if _near(got, expected):
        return FLOATS, "equal as numbers within 1e-4"
    is_choice = bool(_CHOICE.search(statement))
    is_thing = bool(_THING.search(statement))
    if _reordered(got, expected) and (_ANY_ORDER.search(statement) or not (is_choice or is_thing)):
        return ORDER, "the same lines or words in another order"
    if is_choice:
        return SEVERAL, f'the statement says "{_around(_CHOICE, statement)}"'
    shape = len(expected.split()) > 1 and len(got.split()) > 1
    if shape and is_thing:
        return SEVERAL, f'of more than one word, and the statement asks for a thing ("{_around(_THING, statement)}")'
    return WRONG, "of another content, and the statement leaves no choice"


def _around(pattern: re.Pattern[str], statement: str) -> str:
    """The last place where it says so: what is asked for stands behind the story."""
    *_, found = pattern.finditer(statement)
    words = statement[found.start() : found.end() + 40].split("\n\n")[0].split()
    return " ".join(words[:7])


def _near(got: str, expected: str) -> bool:
    """Token by token equal, or both decimals and close: what a judge with a tolerance of its own may have taken."""
    ours, theirs = got.split(), expected.split()
    if len(ours) != len(theirs) or not any("." in token for token in (*ours, *theirs)):
        return False
    for mine, wanted in zip(ours, theirs, strict=True):
        if mine == wanted:
            continue
        if not all(re.fullmatch(r"[+-]?\d{1,30}(?:\.\d*)?(?:[eE][+-]?\d{1,3})?", token) for token in (mine, wanted)):
            return False
        if abs(float(mine) - float(wanted)) > 1e-4 * max(1.0, abs(float(wanted))):
            return False
    return True


def _reordered(got: str, expected: str) -> bool:
    """The same lines in another order, or the same words within each, or both."""
    ours, theirs = ([sorted(line.split()) for line in text.split("\n") if line.strip()] for text in (got, expected))
    return sorted(ours) == sorted(theirs)


def how_value(got: str, expected: str) -> tuple[str, str]:
    """The same of a value in an assert, both as Python writes them; of a text that is none it is a wrong test."""
    try:
        ours, theirs = ast.literal_eval(got), ast.literal_eval(expected)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return WRONG, "another value"
    if _alike(ours, theirs, 0.0, str.lower):
        return CASE, "equal but for capital letters"
    if _alike(ours, theirs, 1e-6, str):
        return FLOATS, "equal as numbers within 1e-6"
    many = isinstance(ours, list | tuple | set) and isinstance(theirs, list | tuple | set)
    if many and sorted(map(repr, ours)) == sorted(map(repr, theirs)):
        return ORDER, "the same items in another order, or in another kind of sequence"
    return WRONG, "another value"


def _alike(ours: object, theirs: object, tolerance: float, fold: object) -> bool:
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, str) and isinstance(theirs, str):
        return ours == theirs if fold is str else ours.lower() == theirs.lower()
    if isinstance(ours, int | float) and isinstance(theirs, int | float):
        return ours == theirs or abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(
            _alike(a, b, tolerance, fold) for a, b in zip(ours, theirs, strict=True)
        )
    return ours == theirs


def of_outcome(outcome: str) -> tuple[str, str]:
    """The reason of a test that ended without an answer."""
    reason = _OF_OUTCOMES.get(outcome, CRASH)
    return reason, outcome.replace("_", " ")


# ── a task ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def judge(
    task: Task,
    right: Sequence[Ran],
    wrong: Sequence[Ran],
    against: Sequence[Contradiction] = (),
    setup: str = "",
    notes: Sequence[str] = (),
) -> Audit:
    """right, wrong: its known programs on its tests. against: contradictions; setup: why set-up code cannot run."""
    passed = sum(ran.passes for ran in right)
    best = max(right, key=lambda ran: ran.share, default=None)
    failure = best.failures[0] if best and not passed and best.failures else None
    verdict, reason, why = UNKNOWN, "", ""
    notes = [*notes, *(each.said for each in against if passed)]  # of a test that does not count, being visible too
    if passed:
        verdict = PASSABLE
    elif setup:
        verdict, reason, why = DISPUTED, SETUP, setup
    elif against:
        verdict, reason, why = DISPUTED, against[0].reason, against[0].said
    elif best:
        verdict, (reason, why) = DISPUTED, _reason(right, best)
    said = [*notes, *(f"a reference passes, {ran.remark}" for ran in right if ran.passes and ran.remark)][:8]
    return Audit(
        task_id=task.id,
        verdict=verdict,
        reason=reason,
        passed=passed,
        tried=len(right),
        false_accepts=sum(ran.passes for ran in wrong),
        incorrect=len(wrong),
        why=why,
        notes=tuple(dict.fromkeys(said)),
        failure=failure,
        title=task.title,
        digest=task.digest,
    )


def _reason(right: Sequence[Ran], best: Ran) -> tuple[str, str]:
    """By the reference that passes most: the commonest kind of end and, of wrong answers, the hardest to forgive."""
    failed = [OUTCOMES[letter] for letter in best.letters if letter != LETTERS["pass"]]
    answers = [failure for failure in best.failures if failure.outcome == "wrong_answer"]
    others = [outcome for outcome in failed if outcome != "wrong_answer"]
    if not answers or len(others) > len(failed) - len(others):
        reasons = Counter(of_outcome(outcome)[0] for outcome in others)
        reason = reasons.most_common(1)[0][0] if reasons else CRASH
        ends = Counter(outcome.replace("_", " ") for outcome in others if outcome != "not_run")
        return reason, f"{len(failed)} of {len(best.letters)} tests: " + ", ".join(ends) if ends else reason
    last = max(answers, key=lambda failure: OF_OUTPUTS.index(failure.reason))
    reason, why = last.reason, last.why
    if reason in (SEVERAL, WRONG):
        every = [failure for ran in right for failure in ran.failures if failure.outcome == "wrong_answer"]
        writers = Counter(failure.test for failure in every)
        shared = [test for test, count in writers.items() if count > 1]
        said = {test: {failure.digest for failure in every if failure.test == test} for test in shared}
        if any(len(said[test]) > 1 for test in shared):
            reason, why = SEVERAL, "accepted programs differ among themselves"
        elif shared and reason == WRONG:
            why = f"{writers[shared[0]]} references agree on another answer"
    return reason, f"{len(failed)} of {len(best.letters)} tests: {why}"


# ── what the tests alone say ─────────────────────────────────────────────────────────────────────────────────────────


class Contradiction(NamedTuple):
    """Two tests that no program passes."""

    said: str
    reason: str  # what a fairer comparison would take for the same; else a contradiction


def contradictions(tests: Iterable[tuple[str, Test]], kind: str, statement: str = "") -> list[Contradiction]:
    """Tests of one input that expect different things. tests: (name, test)."""
    seen: dict[str, list[tuple[str, str]]] = {}
    found = []
    for name, test in tests:
        asked, expected = (test.input.strip(), test.output) if kind == "stdio" else _sides(test.input)
        if asked is None:
            continue
        for other, was in seen.setdefault(asked, []):
            if not (_same_value(expected, was) if kind == "assert" else _same_output(expected, was)):
                said = f"{other} and {name} ask the same and expect different answers"
                reason = how(expected, was, statement)[0] if kind == "stdio" else WRONG
                found.append(Contradiction(said, CONTRADICTION if reason == WRONG else reason))
                break
        seen[asked].append((name, expected))
    return found


def _same_output(one: str, other: str) -> bool:
    return outputs_match(one, other) or outputs_match(other, one)


def _same_value(one: str, other: str) -> bool:
    return one == other or ast.literal_eval(one) == ast.literal_eval(other)


def _sides(text: str) -> tuple[str | None, str]:
    """Of `set-up; assert CALL == LITERAL` the question and what is expected; None for an assert of another form."""
    program = parse(text)
    if program is None or not program.body or not isinstance(last := program.body[-1], ast.Assert):
        return None, ""
    test = last.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return None, ""
    sides = [test.left, test.comparators[0]]
    literal = [side for side in sides if _is_literal(side)]
    if len(literal) != 1:
        return None, ""
    asked = sides[1 - sides.index(literal[0])]
    before = [ast.dump(statement) for statement in program.body[:-1]]
    return "\n".join([*before, ast.dump(asked)]), repr(_value(literal[0]))


def _value(node: ast.AST) -> object:
    return ast.literal_eval(node)


def _is_literal(node: ast.AST) -> bool:
    try:
        _value(node)
    except (ValueError, TypeError, MemoryError, RecursionError, SyntaxError):
        return False
    return True


def expected_of(test: Test) -> str:
    """What an assert compares with, as text; all of it where it has another form."""
    program = parse(test.input)
    last = program.body[-1] if program and program.body else None
    if isinstance(last, ast.Assert) and isinstance(last.test, ast.Compare) and len(last.test.ops) == 1:
        return ast.unparse(last.test.comparators[0])
    return test.input


def called(task: Task) -> set[str]:
    """Names that the asserts of a task use."""
    tests = (*task.visible, *task.hidden, *task.spare)
    trees = [tree for test in tests if (tree := parse("\n".join((task.setup, test.input)))) is not None]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def uncalled(task: Task) -> list[str]:
    """Functions that the task demands and no assert calls, so that nothing tells right ones from wrong."""
    used = called(task) if task.functions else set()
    return [name for name in task.functions if name not in used]


def same_answer(task: Task) -> bool:
    """Whether every test expects one and the same, so that a program which ignores its input passes."""
    tests = (*task.visible, *task.hidden)
    if task.kind == "stdio":
        return all(outputs_match(tests[0].output, test.output) for test in tests[1:])
    sides = [_sides(test.input) for test in tests]
    # Of several functions each would have to be a constant of its own: those are looked at by running stubs.
    return len(task.functions) <= 1 and all(asked is not None for asked, _ in sides) and len({e for _, e in sides}) == 1


# ── as a file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def counts(audits: Iterable[Audit]) -> Row:
    """Of an audit.json: tasks by verdict and by reason, and the programs that were wrongly accepted."""
    audits = list(audits)
    verdicts = Counter(audit.verdict for audit in audits)
    reasons = Counter(audit.reason for audit in audits if audit.reason)
    return {
        "tasks": len(audits),
        **{verdict: verdicts[verdict] for verdict in VERDICTS},
        "reasons": {reason: reasons[reason] for reason in REASONS if reasons[reason]},
        "references_tried": sum(audit.tried for audit in audits),
        "incorrect_tried": sum(audit.incorrect for audit in audits),
        "false_accepts": sum(audit.false_accepts for audit in audits),
        "tasks_with_false_accepts": sum(audit.false_accepts > 0 for audit in audits),
        "tasks_with_notes": sum(bool(audit.notes) for audit in audits),
    }


def row_of(audit: Audit) -> Row:
    """A task in audit.json."""
    row = {**audit._asdict(), "notes": list(audit.notes), "failure": audit.failure and audit.failure._asdict()}
    del row["task_id"]
    return row


def audits_of(file: Mapping[str, Row]) -> list[Audit]:
    """The tasks of an audit.json."""
    made = []
    for task_id, row in file["by_task"].items():
        failure = Failure(**row["failure"]) if row["failure"] else None
        made.append(Audit(task_id=task_id, **{**row, "notes": tuple(row["notes"]), "failure": failure}))
    return made
