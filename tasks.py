"""What is asked: a Task, and the task sets it comes from.

A task set is one generator function and its name in SETS; `load` puts its tasks into the seeded order and gives
the first n. `toy` is written out below, `code_contests` and `mbpp-bundle` come from a data hub, pinned and cached,
and a path to a .jsonl or .parquet file is a task set of your own (its rows: see `own`).

Left out here: how tests are compared and programs run (grader.py, sandbox.py), what a prompt says (swarm.py).
This file imports next to nothing of the project, so that everything else may import it.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import json
import math
import re
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import fields, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

from faults import TaskError
from grading import asserts
from tasksets.task import About, Options, Task, Test


# ── load ─────────────────────────────────────────────────────────────────────────────────────────────────────
def load(
    source: str,
    limit: int | None = None,
    seed: int = 0,
    spare: bool = False,
    *,
    bundle: int = 5,
    revision: str | None = None,
    keep_overlap: bool = False,
) -> Tasks:
    """The first `limit` tasks, in the seeded order, of a set in SETS or of your own .jsonl or .parquet file.

    The other parameters: see Options. Nothing is read before the first task is asked for, which may raise TaskError.
    """
    read = SETS.get(source) or partial(own, Path(source), SETS)
    return Tasks(source, read, Options(seed, spare, bundle, revision, keep_overlap), limit)


def load_again(identity: dict[str, Any], spare: bool = False) -> Tasks:
    """All the tasks of a run's set, as its identity names them."""
    return load(identity["tasks"], None, identity["seed"], spare, bundle=identity["bundle"],
                revision=identity["revision"], keep_overlap=identity["as_published"])  # fmt: skip


class Tasks(Iterator[Task]):
    """The first `limit` tasks that a set yields, in the seeded order; `about` is complete once the first has come.

    The order is that of a hash of seed and id: it depends on no other task, so a larger limit only adds tasks.
    Tasks wait in an unnamed temporary file, so memory holds one at a time however large the set is.
    """

    def __init__(self, source: str, read: Reader, options: Options, limit: int | None = None) -> None:
        self.about = About(source)
        self._walk = _in_order(self.about, read, options, limit)

    def __next__(self) -> Task:
        return next(self._walk)

    def close(self) -> None:
        """Give the temporary file back, where not all tasks were asked for."""
        self._walk.close()


def _in_order(about: About, read: Reader, options: Options, limit: int | None) -> Generator[Task, None, None]:
    if limit is not None and limit < 1:
        raise TaskError(f"--limit {limit}: give a number of tasks, 1 or more")
    with tempfile.TemporaryFile() as spool:
        places = _spool(read(options, about), spool, about.source)
        about.tasks = len(places)
        _add_notes(about)
        if not places:
            reasons = ", ".join(f"{number} {reason}" for reason, number in about.left_out.items())
            raise TaskError(f"{about.source} has no task that can be used: {reasons or 'it is empty'}")
        for task_id in sorted(places, key=lambda task_id: _order(options.seed, task_id))[:limit]:
            spool.seek(places[task_id])
            yield _from_spool(json.loads(spool.readline()))


def _spool(tasks: Iterable[Task], spool: IO[bytes], source: str) -> dict[str, int]:
    """Write tasks down, a line each; where each begins, by id."""
    places: dict[str, int] = {}
    for task in tasks:
        if task.id in places:
            raise TaskError(f"{source}: the id {task.id!r} is there twice; ids must differ")
        line = json.dumps({each.name: getattr(task, each.name) for each in fields(task)}).encode() + b"\n"
        try:
            places[task.id] = spool.tell()
            spool.write(line)
            spool.flush()
        except OSError as error:
            raise TaskError(
                f"cannot put tasks into {tempfile.gettempdir()} ({_one_line(error)}); set TMPDIR to a folder with room"
            ) from error
    return places


def _order(seed: int, name: str) -> bytes:
    """What to sort by for a seeded order that no other name and no version of Python changes."""
    return sha256(f"{seed}|{name}".encode()).digest()


def _from_spool(row: dict[str, Any]) -> Task:
    for side in ("visible", "hidden", "spare"):
        row[side] = tuple(Test(*test) for test in row[side])
    return Task(**row | {"functions": tuple(row["functions"])})


def _add_notes(about: About) -> None:
    if about.overlap["tests"]:
        about.notes.append(
            "dropped {tests} hidden tests of {tasks} tasks, since their input is also visible".format(**about.overlap)
        )
    if about.repaired_statements:
        about.notes.append(f"repaired {about.repaired_statements} statements that were decoded as cp1252")


def _on_hub_only(options: Options, source: str) -> None:
    if options.revision is not None:
        raise TaskError(f"--revision {options.revision} is for data sets on a hub and {source} is none; leave it out")


def _spelled(test: Test) -> str:
    program = None if test.output else _parse(test.input)
    return ast.dump(program) if program else test.input.strip()


def _apart(visible: tuple[Test, ...], hidden: tuple[Test, ...], options: Options, about: About) -> tuple[Test, ...]:
    """The hidden tests without those whose input is also visible: a prompt may show those with their answer.

    Blanks around an input and the spelling of an assert make no other test.
    """
    seen = {_spelled(test) for test in visible}
    apart = tuple(test for test in hidden if _spelled(test) not in seen)
    if options.keep_overlap or len(apart) == len(hidden):
        return hidden
    if apart:
        about.overlap["tests"] += len(hidden) - len(apart)
        about.overlap["tasks"] += 1
    return apart


# ── toy: three tasks whose tests tell right from nearly right ───────────────────────────────────────────────
def toy(options: Options, about: About) -> Iterator[Task]:
    """Three small tasks. Each has a first idea that passes some of the tests and is wrong."""
    _on_hub_only(options, "toy")
    about.licence = "Apache-2.0"

    def stdio(*pairs: tuple[str, str], source: str = "public") -> tuple[Test, ...]:
        return tuple(Test(stdin, stdout, source) for stdin, stdout in pairs)

    yield Task(
        id="toy-paint",
        title="Painted fence",
        kind="stdio",
        statement=(
            "A fence is painted in strokes. A stroke from a to b covers the fence between the points a and "
            "b; what lies under several strokes counts once.\n\n"
            "Input: the first line holds n, the number of strokes (0 <= n <= 1000). Each of the next n lines "
            "holds two integers a and b (-10^9 <= a, b <= 10^9), in either order.\n\n"
            "Output: one integer, the length of fence that is painted."
        ),
        visible=stdio(
            ("2\n0 3\n5 9\n", "7\n"),
            ("1\n4 4\n", "0\n"),
            ("2\n0 5\n3 8\n", "8\n"),
            ("3\n1 10\n2 3\n4 5\n", "9\n"),
            ("2\n9 2\n-4 3\n", "13\n"),
        ),
        hidden=stdio(
            ("0\n", "0\n"),
            ("3\n0 1\n1 2\n2 3\n", "3\n"),
            ("4\n7 1\n2 6\n8 9\n20 8\n", "18\n"),
            ("2\n-1000000000 1000000000\n5 -5\n", "2000000000\n"),
            ("3\n5 6\n0 10\n9 12\n", "12\n"),
            ("5\n3 1\n3 1\n-3 -1\n0 0\n10 11\n", "5\n"),
            source="private",
        ),
        reference=(
            "n = int(input())\n"
            "strokes = sorted(sorted(map(int, input().split())) for _ in range(n))\n"
            "total, end = 0, -10**10\n"
            "for a, b in strokes:\n"
            "    total += max(0, b - max(a, end))\n"
            "    end = max(end, b)\n"
            "print(total)\n"
        ),
    )
    yield Task(
        id="toy-brackets",
        title="First bad bracket",
        kind="stdio",
        statement=(
            "A line of text holds brackets of three kinds, (), [] and {}, among other characters. Read from "
            "the left and stop at the first closing bracket that does not close the bracket opened last.\n\n"
            "Input: one line of at most 1000 characters, possibly empty.\n\n"
            "Output: the position of that closing bracket, counting from 1. If there is none, print 0 when "
            "every bracket is closed, and -1 when some bracket is still open at the end of the line."
        ),
        visible=stdio(
            ("f(x[1], {y})\n", "0\n"),
            ("())(\n", "3\n"),
            ("(a[b)c]\n", "5\n"),
            ("{[()\n", "-1\n"),
        ),
        hidden=stdio(
            ("\n", "0\n"),
            ("]\n", "1\n"),
            ("([{}]){\n", "-1\n"),
            ("({)}\n", "3\n"),
            ("no brackets here\n", "0\n"),
            ("((([[[{{{}}}]]])))\n", "0\n"),
            ("(]\n", "2\n"),
            source="private",
        ),
        reference=(
            "line = input()\n"
            "partner = {')': '(', ']': '[', '}': '{'}\n"
            "stack = []\n"
            "answer = None\n"
            "for place, c in enumerate(line, 1):\n"
            "    if c in '([{':\n"
            "        stack.append(c)\n"
            "    elif c in partner and (not stack or stack.pop() != partner[c]):\n"
            "        answer = place\n"
            "        break\n"
            "if answer is None:\n"
            "    answer = -1 if stack else 0\n"
            "print(answer)\n"
        ),
    )
    yield Task(
        id="toy-lists",
        title="Two list functions",
        kind="assert",
        statement=(
            "Write two functions.\n\n"
            "1. rotate(items, k): a new list in which every item has moved k places to the right, round the "
            "end. A negative k moves them to the left, and k may be larger than the list.\n"
            "2. runs(text): the lengths of the runs of equal characters of a string, as a list of pairs "
            "(character, length) in the order of the string."
        ),
        visible=(
            Test("assert rotate([1, 2, 3, 4], 1) == [4, 1, 2, 3]"),
            Test("assert rotate([1, 2, 3], -4) == [2, 3, 1]"),
            Test('assert runs("aab") == [("a", 2), ("b", 1)]'),
            Test('assert runs("") == []'),
        ),
        hidden=(
            Test("assert rotate([], 3) == []", source="private"),
            Test("assert rotate([1, 2, 3], 7) == [3, 1, 2]", source="private"),
            Test("assert rotate(['x', 'y'], 0) == ['x', 'y']", source="private"),
            Test('assert runs("abba") == [("a", 1), ("b", 2), ("a", 1)]', source="private"),
            Test('assert runs("zzzz") == [("z", 4)]', source="private"),
        ),
        functions=("rotate", "runs"),
        reference=(
            "def rotate(items, k):\n"
            "    k = k % len(items) if items else 0\n"
            "    return items[len(items) - k:] + items[:len(items) - k]\n"
            "\n\n"
            "def runs(text):\n"
            "    pairs = []\n"
            "    for c in text:\n"
            "        if pairs and pairs[-1][0] == c:\n"
            "            pairs[-1] = (c, pairs[-1][1] + 1)\n"
            "        else:\n"
            "            pairs.append((c, 1))\n"
            "    return pairs\n"
        ),
    )


# ── data sets on a hub ───────────────────────────────────────────────────────────────────────────────────────
def fetch(repo: str, pinned: str, patterns: tuple[str, ...], options: Options, about: About) -> list[Path]:
    """Local paths of a data set's files, one pattern after the other: from the cache, else from the hub.

    HF_HOME, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE count as everywhere. Raises TaskError."""
    import huggingface_hub
    from huggingface_hub import errors
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    revision = pinned if options.revision is None else options.revision
    if not revision.strip():
        raise TaskError("--revision is empty; name a commit, branch or tag, or leave it out for the pinned one")
    where = huggingface_hub.constants.ENDPOINT
    quiet = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if quiet:
        disable_progress_bars()
    try:
        folder = huggingface_hub.snapshot_download(
            repo, repo_type="dataset", revision=revision, allow_patterns=list(patterns)
        )
    except errors.RevisionNotFoundError:
        raise TaskError(f"{where} has no revision {revision} of {repo}; name one that it has with --revision") from None
    except errors.RepositoryNotFoundError:
        raise TaskError(
            f"{where} has no data set {repo}, or does not show it to you; set HF_ENDPOINT to a hub that has it, "
            "or HF_TOKEN to a token that may read it"
        ) from None
    except errors.LocalEntryNotFoundError as error:
        if huggingface_hub.constants.HF_HUB_OFFLINE:
            raise TaskError(
                f"{repo} at {revision} is not whole in the cache and HF_HUB_OFFLINE is set; unset it for one run, "
                "or set HF_HOME to a cache that holds it"
            ) from None
        cause = _one_line(error.__cause__ or error)
        raise TaskError(
            f"{repo} at {revision} is not in the cache and {where} did not give it ({cause}); check the network, "
            "set HF_ENDPOINT to a mirror, or name another --revision"
        ) from None
    except (errors.HTTPError, OSError) as error:
        raise TaskError(f"cannot download {repo} from {where}: {_one_line(error)}; try again") from error
    finally:
        if quiet:
            enable_progress_bars()

    about.revision = Path(folder).name  # the commit, also where --revision names a branch
    paths: list[Path] = []
    for pattern in patterns:
        found = sorted(Path(folder).glob(pattern))
        shards = re.search(r"-of-(\d+)", found[0].name) if found else None
        if not found or (shards and len(found) != int(shards[1])):
            raise TaskError(
                f"{repo} at {revision} has {len(found)} files like {pattern}, not all it should; "
                "name another --revision, or empty the cache and download again"
            )
        paths += found
    return paths


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def parquet_cells(path: Path, columns: Iterable[str] | None, batch_rows: int) -> Iterator[dict[str, Any]]:
    """Rows of a parquet file as {column: arrow scalar}, so that what is not needed never becomes a Python object."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    try:
        # Otherwise whole column chunks are read at once, and one of those may be as large as the file.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            wanted = file.schema_arrow.names if columns is None else list(columns)
            missing = [name for name in wanted if name not in file.schema_arrow.names]
            if missing:
                raise TaskError(f"{path.name} has no column {', '.join(missing)}; name another --revision")
            for batch in file.iter_batches(batch_rows, columns=wanted, use_threads=False):
                for index in range(batch.num_rows):
                    yield {name: batch.column(name)[index] for name in wanted}
    except (arrow.ArrowException, OSError) as error:
        raise TaskError(f"cannot read {path}: {_one_line(error)}; is it a whole parquet file?") from error


# ── code_contests ────────────────────────────────────────────────────────────────────────────────────────────
CODE_CONTESTS = "deepmind/code_contests"
CODE_CONTESTS_REVISION = "802411c3010cb00d1b05bad57ca77365a3c699d6"
VISIBLE_GENERATED = 8  # generated tests shown beside the public ones
HIDDEN_GENERATED = 32  # further generated tests that decide a pass beside the private ones
PYTHON3 = 3  # the data set's number of a language

_INTERACTIVE = re.compile(
    r"(?<!non-)(?<!not )(?<!not an )(?<!n't an )\binteractive (?:problem|task)\b|\b(?:problem|task) is interactive\b"
    r"|^interaction$|\binteractor\b|\bflush(?:ing)? (?:the )?(?:standard )?(?:output|stdout)\b|\bfflush\(stdout\)",
    re.IGNORECASE | re.MULTILINE,
)
_STANDARD_STREAMS = {"", "stdin", "stdout", "standard input", "standard output"}


def code_contests(options: Options, about: About) -> Iterator[Task]:
    """Test and valid split of CodeContests (Li et al. 2022, Science 378, 1092): stdin in, stdout out.

    visible = public + the first 8 generated tests; hidden = private + the next 32; spare = the other generated.
    Left out and counted: what one run on standard input cannot judge. The data set's own time limits are not
    used: they are meant for its C++ programs.
    """
    about.licence = "CC BY 4.0"
    columns = ["name", "description", "public_tests", "private_tests", "generated_tests", "cf_rating"]
    columns += ["input_file", "output_file"] + (["solutions"] if options.spare else [])
    patterns = ("data/test-*", "data/valid-*")
    ratings, rows = [], 0
    for path in fetch(CODE_CONTESTS, CODE_CONTESTS_REVISION, patterns, options, about):
        split = path.name.split("-")[0]
        for cells in parquet_cells(path, columns, batch_rows=1):
            rows += 1
            task = _contest_task(cells, split, options, about)
            if isinstance(task, str):
                about.left_out[task] += 1
            else:
                ratings += [cells["cf_rating"].as_py()] if task.tags["rating"] != "unrated" else []
                yield task
    about.median_rating = statistics.median(ratings) if ratings else None
    about.notes.append(
        f"{rows - about.left_out.total()} of {rows} problems can be used; the published run used 275, which it "
        "got by dropping interactive ones"
    )


def _contest_task(cells: dict[str, Any], split: str, options: Options, about: About) -> Task | str:
    """The task of one row, or the reason to leave it out."""
    name = cells["name"].as_py() or ""
    statement = cells["description"].as_py() or ""
    numbered = re.fullmatch(r"(\d+_\w+)\. (.*)", name, re.DOTALL)
    task_id = f"cc-{split}-{numbered[1] if numbered else re.sub(r'[^0-9A-Za-z]+', '-', name)}"

    if _INTERACTIVE.search(statement):
        return "interactive"
    if {(cells[side].as_py() or "").strip().lower() for side in ("input_file", "output_file")} - _STANDARD_STREAMS:
        return "with a named input or output file"
    generated_wanted = None if options.spare else VISIBLE_GENERATED + HIDDEN_GENERATED
    public = _contest_tests(cells["public_tests"], "public")
    private = _contest_tests(cells["private_tests"], "private")
    generated = _contest_tests(cells["generated_tests"], "generated", generated_wanted)
    if public is None or private is None or generated is None:
        about.notes.append(f"{task_id} ({name}) has inputs and outputs of unequal number")
        return "with inputs and outputs of unequal number"
    visible = public + generated[:VISIBLE_GENERATED]
    hidden = private + generated[VISIBLE_GENERATED : VISIBLE_GENERATED + HIDDEN_GENERATED]
    hidden = _apart(visible, hidden, options, about)
    if not visible:
        return "without a visible test"
    if not hidden:
        return "without a hidden test"

    repaired = _repaired(statement)
    about.repaired_statements += repaired != statement
    return Task(
        id=task_id,
        title=_repaired(numbered[2] if numbered else name),
        statement=repaired,
        kind="stdio",
        visible=visible,
        hidden=hidden,
        spare=generated[VISIBLE_GENERATED + HIDDEN_GENERATED :],
        tags={"rating": _rating_band(cells["cf_rating"].as_py()), "split": split},
        reference=_first_python(cells["solutions"]) if options.spare else "",
    )


def _contest_tests(cell: Any, source: str, wanted: int | None = None) -> tuple[Test, ...] | None:
    """The first `wanted` tests of a column of {input: [text], output: [text]}; None where the two do not pair up."""
    sides = [cell[side].values if cell.is_valid and cell[side].is_valid else [] for side in ("input", "output")]
    if len(sides[0]) != len(sides[1]):
        return None
    texts = [[text.as_py() for text in side[:wanted]] for side in sides]
    if None in texts[0] or None in texts[1]:
        return None
    return tuple(Test(stdin, stdout, source) for stdin, stdout in zip(*texts, strict=True))


def _rating_band(rating: int | None) -> str:
    if not rating:  # 0 stands for unknown
        return "unrated"
    return "<1500" if rating < 1500 else "1500-2199" if rating < 2200 else "2200+"


def _first_python(solutions: Any) -> str:
    """The first stored accepted Python 3 program. Accepted by its judge: audits ask whether it passes these tests."""
    if not solutions.is_valid:
        return ""
    languages = solutions["language"].as_py() or []
    return solutions["solution"].values[languages.index(PYTHON3)].as_py() if PYTHON3 in languages else ""


def _repaired(text: str) -> str:
    """UTF-8 that was once decoded as cp1252 ("â‰¤"), decoded right; any other text as it is. For statements only.

    The whole text must make sense the other way: one character that cp1252 does not have, or one stray accent,
    and nothing is touched. cp1252 leaves five bytes undefined, which such decoders pass through."""
    if text.isascii():
        return text
    try:
        return b"".join(c.encode("cp1252") if c not in _UNDEFINED else bytes([ord(c)]) for c in text).decode()
    except UnicodeError:
        return text


_UNDEFINED = "\x81\x8d\x8f\x90\x9d"


# ── mbpp-bundle ──────────────────────────────────────────────────────────────────────────────────────────────
MBPP = "google-research-datasets/mbpp"
MBPP_REVISION = "4bb6404fdc6cacfda99d4ac4205087b89d32030c"


class _Function(NamedTuple):
    """One MBPP problem."""

    mbpp_id: int
    name: str  # that its reference defines and its asserts call
    text: str
    code: str
    asserts: list[str]
    setup: str
    classes: list[str]  # that its tests use and its reference defines
    binds: set[str]  # top-level names of its reference
    uses: set[str]  # builtins and imported names that its reference uses

    def claims(self, bound: set[str]) -> set[str]:
        """What no other function of its bundle may claim, if all of them bind `bound` between them: what it binds,
        and what it uses and somebody else binds (MBPP has a function named sum)."""
        return self.binds | self.uses & bound

    def test(self, index: int, source: str) -> Test:
        """An assert behind the function's own set-up code, which thus runs for this test alone."""
        return Test("\n".join(filter(None, [self.setup, self.asserts[index]])), source=source)

    def describe(self, number: int) -> str:
        lines = [f"{number}. {self.name}", " ".join(self.text.split())]
        if self.classes:
            lines.append(f"The tests also use the class {' and '.join(self.classes)}: define it as well.")
        if self.setup:
            lines.append("Run before each of its tests:\n" + "\n".join(x.rstrip() for x in self.setup.splitlines()))
        return "\n".join([*lines, f"Example: {self.asserts[0]}"])


def mbpp_bundle(options: Options, about: About) -> Iterator[Task]:
    """The positive control: a task is `bundle` functions of MBPP (Austin et al. 2021, arXiv:2108.07732).

    Train, validation and test split, 964 functions with three asserts each. Of each function the first assert is
    shown and visible, the others are hidden, so the fitness counts functions that are done: a hill by construction.
    Which functions share a bundle is drawn by the seed; no two of them share a name.
    """
    about.licence = "CC BY 4.0"
    if options.bundle < 1:
        raise TaskError(f"--bundle {options.bundle}: give the number of functions a task, 1 or more")
    patterns = ("full/train-*", "full/validation-*", "full/test-*")
    functions = []
    for path in fetch(MBPP, MBPP_REVISION, patterns, options, about):
        columns = ("task_id", "text", "code", "test_list", "test_setup_code")
        for cells in parquet_cells(path, columns, batch_rows=100):
            function = _function({name: cell.as_py() for name, cell in cells.items()})
            if isinstance(function, str):
                about.left_out[function] += 1
            else:
                functions.append(function)

    # Families: functions tied by a common name. Laid one behind the other and dealt out like cards, the members of a
    # family come to lie in different bundles, whatever the seed, as long as no family is larger than a round.
    families = _families(sorted(functions, key=lambda function: _order(options.seed, str(function.mbpp_id))))
    order = [function for family in families for function in family]
    number = len(order) // options.bundle
    largest = max(map(len, families), default=0)
    if largest > number:
        most = len(order) // max(largest, 1)
        raise TaskError(
            f"--bundle {options.bundle}: {largest} of {len(order)} functions share names and {number} bundles cannot "
            f"keep them apart; the most is {most}"
        )
    if rest := len(order) - number * options.bundle:
        about.notes.append(f"{rest} functions are left over when {len(order)} are put in bundles of {options.bundle}")
    for k in range(number):
        task = _bundle(f"mbpp-{options.seed}-{k}", order[k::number][: options.bundle], options, about)
        if task.hidden:
            yield task
        else:  # some MBPP functions have one assert three times
            about.left_out["bundles without a hidden test"] += 1


def _bundle(task_id: str, functions: list[_Function], options: Options, about: About) -> Task:
    names = tuple(function.name for function in functions)
    visible = tuple(function.test(0, "public") for function in functions)
    hidden = tuple(f.test(i, "private") for f in functions for i in range(1, len(f.asserts)))
    many = len(functions) > 1
    head = (
        f"Write {'these functions' if many else 'this function'}, {'all in one program' if many else 'as a program'}."
    )
    return Task(
        id=task_id,
        title="MBPP " + ", ".join(str(function.mbpp_id) for function in functions),
        statement="\n\n".join([head] + [function.describe(n) for n, function in enumerate(functions, 1)]),
        kind="assert",
        visible=visible,
        hidden=_apart(visible, hidden, options, about),
        functions=names,
        reference="\n\n".join(function.code for function in functions) + "\n",
    )


def _function(row: dict[str, Any]) -> _Function | str:
    """One row of MBPP, or the reason to leave it out."""
    asserts, setup = row["test_list"] or [], row["test_setup_code"] or ""
    if len(asserts) < 2:
        return "functions with fewer than two asserts"
    reference = _parse(row["code"])
    tests = [_parse(text) for text in (setup, *asserts)]
    if reference is None or None in tests:
        return "functions that do not parse"
    used = [{node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} for tree in tests if tree]
    defined = [node.name for node in reference.body if isinstance(node, ast.FunctionDef)]
    called = [name for name in dict.fromkeys(defined) if all(name in names for names in used[1:])]
    if len(called) != 1:
        return "functions whose name is not plain"
    classes = [node.name for node in reference.body if isinstance(node, ast.ClassDef)]
    return _Function(
        mbpp_id=row["task_id"],
        name=called[0],
        text=row["text"],
        code=row["code"],
        asserts=asserts,
        setup=setup,
        classes=[name for name in classes if any(name in names for names in used)],
        binds=_bound(reference),
        uses=_used(reference),
    )


def _parse(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a "\d" in somebody's code is not our warning
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _bound(program: ast.Module) -> set[str]:
    """Names that a program binds at top level, imports aside: those mean the same to everybody."""
    names = set()
    for statement in program.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            stores = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            names |= {node.id for node in stores if isinstance(node.ctx, ast.Store)}
    return names


def _used(program: ast.Module) -> set[str]:
    """Builtins and imported names that a program uses."""
    nodes = list(ast.walk(program))
    imported = (alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names)
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names & set(dir(builtins)) | {(alias.asname or alias.name).split(".")[0] for alias in imported}


def _families(functions: list[_Function]) -> list[list[_Function]]:
    """Functions tied by a common name, directly or through others; families and members in the given order."""
    bound = set().union(*(function.binds for function in functions))
    family_of: dict[str, list[_Function]] = {}
    for function in functions:
        claims = function.claims(bound)
        tied = {id(family): family for name in claims if (family := family_of.get(name))}
        merged = [*(member for family in tied.values() for member in family), function]
        for name in set().union(*(member.claims(bound) for member in merged)):
            family_of[name] = merged
    place = {function.mbpp_id: place for place, function in enumerate(functions)}
    families = {id(family): sorted(family, key=lambda f: place[f.mbpp_id]) for family in family_of.values()}
    return sorted(families.values(), key=lambda family: place[family[0].mbpp_id])


# ── your own file ────────────────────────────────────────────────────────────────────────────────────────────
REQUIRED = ("id", "statement", "kind", "visible", "hidden")
FIELDS = (*REQUIRED, "title", "setup", "tags", "functions", "reference", "spare", "timeout")


def own(path: Path, sets: Iterable[str], options: Options, about: About) -> Iterator[Task]:
    """Tasks of your own: a .jsonl file with one object a line, or a .parquet file with the same columns.

    field       required  what
    id          yes       text, different in every row
    statement   yes       the problem as the model reads it
    kind        yes       "stdio": a program that reads stdin and writes stdout; "assert": functions
    visible     yes       tests whose results may be shown; at least one
    hidden      yes       tests that decide a pass and are never shown; at least one. One whose input is also visible
                          is dropped and counted
    title                 short name, otherwise the id
    functions             kind assert: names the program must define
    setup                 kind assert: code run after the program and before each assert
    spare                 further tests, for calibrate.py
    reference             a program known to be right; never shown
    tags                  object of text to text, by which the report can be broken down
    timeout               CPU seconds a test, instead of the rule's 6

    A test of kind stdio is [input, output] or {"input": ..., "output": ...}. A test of kind assert is a text that
    ends with its one assert statement; what stands before it is set-up for that test alone. Texts are used
    character for character. null is the same as leaving a field out; a field of another name is an error. sets: the
    names that the path may have been meant for.
    """
    _on_hub_only(options, str(path))
    readers = {".jsonl": jsonl_rows, ".parquet": parquet_rows}
    if path.suffix not in readers:
        near = difflib.get_close_matches(str(path), sets, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose {', '.join(sets)} or a .jsonl or .parquet file"
        raise TaskError(f"there is no task set {path}; {hint}")
    if not path.is_file():
        raise TaskError(f"there is no file {path}; give the path of a .jsonl or .parquet file of tasks")
    seen: dict[str, str] = {}
    for where, row in readers[path.suffix](path):
        task = _own_task(row, f"{path}, {where}", options)
        if task.id in seen:
            raise TaskError(f"{path}, {where}: id: {task.id!r} is also {seen[task.id]}; ids must differ")
        seen[task.id] = where
        hidden = _apart(task.visible, task.hidden, options, about)
        if hidden:
            yield replace(task, hidden=hidden)
        else:
            about.left_out["whose every hidden test is also visible"] += 1


def jsonl_rows(path: Path) -> Iterator[tuple[str, Any]]:
    def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            twice = next(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
            raise ValueError(f"{twice!r} is there twice")
        return dict(pairs)

    try:
        lines = path.open("rb")  # bytes: lines end at \n alone, whatever else a statement holds
    except OSError as error:
        raise TaskError(f"cannot read {path}: {_one_line(error)}; check its permissions") from error
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                yield f"line {number}", json.loads(text, object_pairs_hook=object_of)
            except (ValueError, RecursionError) as error:
                raise TaskError(f"{path}, line {number}: not JSON in UTF-8 ({_one_line(error)})") from None


def parquet_rows(path: Path) -> Iterator[tuple[str, Any]]:
    for number, cells in enumerate(parquet_cells(path, None, batch_rows=16), 1):
        try:
            yield f"row {number}", {name: cell.as_py() for name, cell in cells.items()}
        except UnicodeDecodeError as error:
            raise TaskError(f"{path}, row {number}: not UTF-8: {_one_line(error)}; write the file again") from None


def _own_task(row: Any, where: str, options: Options) -> Task:
    """One row, checked field by field. `where` says which row it is."""

    def wrong(field: str, what: str) -> NoReturn:
        raise TaskError(f"{where}: {field}: {what}")

    if not isinstance(row, dict):
        raise TaskError(f"{where}: a row is an object with the fields {', '.join(REQUIRED)}, not {_shown(row)}")
    row = {name: value for name, value in row.items() if value is not None}
    for name in row:
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            wrong(
                name,
                f"no such field; did you mean {near[0]}?" if near else f"no such field; there are {', '.join(FIELDS)}",
            )
    for name in REQUIRED:
        if name not in row:
            wrong(name, "is missing; every row needs it")

    def text(name: str) -> str:
        value = row.get(name, "")
        if not isinstance(value, str):
            wrong(name, f"must be text, not {_shown(value)}")
        if name in REQUIRED and not value.strip():
            wrong(name, "is empty; every row needs it")
        return value

    if isinstance(row["id"], int) and not isinstance(row["id"], bool):
        row["id"] = str(row["id"])
    if not text("id").isprintable():
        wrong("id", f"must be printable, not {_shown(row['id'])}")
    kind = text("kind")
    if kind not in ("stdio", "assert"):
        wrong("kind", f'must be "stdio" or "assert", not {_shown(kind)}')
    functions = row.get("functions", [])
    if not isinstance(functions, list) or not all(isinstance(f, str) and f.isidentifier() for f in functions):
        wrong("functions", f"must be a list of function names, not {_shown(functions)}")
    for name in ("functions", "setup"):
        if kind == "stdio" and row.get(name):
            wrong(name, 'is for kind "assert" alone; leave it out')
    if _parse(text("setup")) is None:
        wrong("setup", "is not Python; mend it or leave it out")
    tags = row.get("tags", {})
    if not isinstance(tags, dict) or not all(isinstance(value, str | None) for value in tags.values()):
        wrong("tags", f"must be an object of text to text, not {_shown(tags)}")
    timeout = row.get("timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0.01 <= timeout < math.inf
    ):
        wrong("timeout", f"must be CPU seconds, 0.01 or more, not {_shown(timeout)}")

    def tests(name: str, source: str) -> tuple[Test, ...]:
        value = row.get(name, [])
        if not isinstance(value, list):
            wrong(name, f"must be a list of tests, not {_shown(value)}")
        if name in REQUIRED and not value:
            wrong(name, "holds no test; a task needs at least one visible and one hidden test")
        made = []
        for number, one in enumerate(value, 1):
            test = _own_test(one, kind, source)
            if isinstance(test, str):
                wrong(name, f"test {number}: {test}")
            if kind == "assert":
                try:
                    apart = asserts.take_apart(test.input, text("setup"), frozenset(functions))
                except asserts.NotATest as why:
                    wrong(name, f"test {number}: {why}")
                if not apart.leaves:
                    wrong(name, f"test {number}: asks nothing of the program (a function named like a built-in one is "
                                "to stand in `functions`)")  # fmt: skip
            made.append(test)
        return tuple(made)

    return Task(
        id=text("id"),
        title=text("title") or text("id"),
        statement=text("statement"),
        kind=kind,
        visible=tests("visible", "public"),
        hidden=tests("hidden", "private"),
        spare=tests("spare", "generated") if options.spare else (),
        setup=text("setup"),
        tags={name: value for name, value in tags.items() if value is not None},  # parquet has all or none
        functions=tuple(functions),
        reference=text("reference"),
        timeout=None if timeout is None else float(timeout),
    )


def _own_test(value: Any, kind: str, source: str) -> Test | str:
    """A test, or what is wrong with it."""
    if kind == "assert":
        if isinstance(value, dict) and set(value) <= {"input", "output"} and not value.get("output"):
            value = value.get("input")  # a parquet column has one shape, whatever the kinds of its rows
        if not isinstance(value, str):
            return f'must be a text like "assert f(2) == 4", not {_shown(value)}'
        program = _parse(value)
        if program is None:
            return f"is not Python: {_shown(value)}"
        asserts = sum(isinstance(statement, ast.Assert) for statement in program.body)
        if asserts != 1 or not isinstance(program.body[-1], ast.Assert):
            return f"must end with its one assert statement: {_shown(value)}"
        return Test(value, source=source)
    if isinstance(value, dict) and set(value) == {"input", "output"}:
        value = [value["input"], value["output"]]
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(side, str) for side in value):
        return f'must be [input, output] or {{"input": ..., "output": ...}}, both text, not {_shown(value)}'
    return Test(value[0], value[1], source)


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


Reader = Callable[[Options, About], Iterator[Task]]
SETS: dict[str, Reader] = {
    "toy": toy,
    "code_contests": code_contests,
    "mbpp-bundle": mbpp_bundle,
}  # yours: one function, one name
