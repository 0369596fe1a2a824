"""What a query is worth: run it in the sandbox, find out what its gold query leaves open, compare the results outside.

    await score(grader, database, gold, predicted)      SqlGrade(exact_match, cell_f1, executes, flag)
    extract_sql(reply)                                  the query in a model's reply, or None

A query runs in the grader's sandbox, on a private copy of the database that is gone with the process, under SQLite's
authorizer: one statement that reads, and nothing that attaches, writes, loads or sets. A gold result never enters the
process of a prediction. A gold query is run again with every tie before a LIMIT decided one way and the other, and in a
dozen orders of the tables' rows with every tie decided by chance: where that gives other rows, or it asks the clock or
chance itself, it tells nothing; where it cannot be tried, that is said. What a dozen orders all give counts as given by
the data: so does the row that SQLite takes out of a sorted set of rows with equal keys, such as the arms of a UNION.

Left out: the program that runs inside (sql_inside.py); what a text says of order (sql_form.py); when results are the
same (sql_compare.py); where questions come from, prompts, runs, curves (sql_calibrate.py); databases but SQLite.
"""

from __future__ import annotations

import asyncio
import functools
import json
import marshal
import math
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from faults import GraderFault, TaskError
from grading.extract import extract_sql
from grading.grade import LETTERS
from grading.sql_compare import Answer, Cell, Row, cell_f1, matches, tied
from grading.sql_form import Form, is_query

if TYPE_CHECKING:
    from grading.sandbox import Limits, Output

FAILS, EMPTY, OPEN = "gold query fails", "empty gold result", "gold not determined by the data"
UNTRIED = "gold cannot be tried in other orders"  # too costly for it, or without an index that it names
VARY_LIMIT = 10  # times the CPU seconds of a query: for a gold query in all its orders
MOST = (1 << 20) + 64  # bytes that a prediction's answer has at most: sql_inside.CAP, and what stands around the rows
MAGIC = b"SQLite format 3\0"
KEPT_BYTES = 256 << 20  # of database files held in memory
KEPT_RESULTS = 4 << 20  # bytes, encoded, of results held in memory; decoded some ten times as many
SMALL_BYTES = 1 << 10  # encoded: a result of which the grader remembers as many as it likes


class Result(NamedTuple):
    """What a query came to. rows: None where it failed; outcome, error: why; of grading.grade.LETTERS."""

    rows: list[Row] | None
    outcome: str = "pass"
    error: str = ""
    cpu_seconds: float = 0.0


class Made(NamedTuple):
    """A database: the bytes of its file, and what names it (of a script, that of the script)."""

    data: bytes
    digest: str


class Gold(NamedTuple):
    """What a question's gold queries come to: answers of which each is right, and a flag where they tell nothing."""

    answers: list[Answer]
    flag: str | None
    error: str = ""


class Varied(NamedTuple):
    """A gold query in other orders. looks: how often it asks the clock or chance; up, down: with ties decided one way
    and the other. None: a query that failed."""

    looks: int
    up: list[Row] | None
    down: list[Row] | None
    others: list[list[Row] | None]


class SqlGrade(NamedTuple):
    """What a query is worth. None: not defined, since the gold query fails or is not determined by the data, or, for
    cell_f1, finds nothing."""

    exact_match: bool | None
    cell_f1: float | None
    executes: bool
    flag: str | None


Shown = tuple[str, list[list[Cell]]]  # a table: its CREATE statement; the names of its columns, its first rows

T = TypeVar("T")


class Runs(Protocol):
    """grader.Grader: what this needs of it."""

    limits: Limits

    async def once(self, key: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T: ...

    async def execute(self, program: str, stdin: bytes, limits: Limits) -> Output: ...


@functools.cache
def _program() -> str:
    """sql_inside.py, compiled once and not for every query, which would often take longer than the query: what runs it
    is the Python that runs this."""
    path = Path(__file__).with_name("sql_inside.py")
    code = compile(path.read_bytes(), path.name, "exec", dont_inherit=True, optimize=2)
    return f"import marshal\nexec(marshal.loads({marshal.dumps(code)!r}))"


_files: OrderedDict[tuple[str, int, int], Made] = OrderedDict()  # by path, size and time of change
_large: deque[tuple[list[Result], int]] = deque()  # results of some size, with their bytes, the oldest first


def _remember(kept: list[Result], size: int) -> None:
    """Of results of some size only the newest are held in memory: who asks for another one waits for its query."""
    if size > SMALL_BYTES:
        _large.append((kept, size))
    while sum(size for _, size in _large) > KEPT_RESULTS:
        _large.popleft()[0].clear()


class Bench:
    """Databases and queries behind a grader: whatever is equal is read, made and run once."""

    def __init__(self, grader: Runs) -> None:
        self.grader = grader

    async def database(self, database: str) -> Made | Result:
        """A SQLite file's bytes, or those of the file that a script makes; a Result where it makes none."""
        if is_file(database):
            file = await asyncio.to_thread(self._read, database)
            if file.data.startswith(MAGIC) or not file.data:
                return file
            script = file.data
        else:
            script = database.encode("utf-8", "replace")
        digest = sha256(script).hexdigest()
        return await self.grader.once(("make", digest), lambda: self._make(script, digest))

    def _read(self, path: str) -> Made:
        try:
            about = os.stat(path)
            key = path, about.st_size, about.st_mtime_ns
            if key in _files:
                return _files[key]
            if os.path.isfile(path + "-wal") and os.stat(path + "-wal").st_size:
                raise TaskError(
                    f"{path} has unsaved pages in {path}-wal: close it or run PRAGMA wal_checkpoint(TRUNCATE)"
                )
            data = Path(path).read_bytes()
        except OSError as why:
            raise TaskError(f"the database {path} cannot be read ({why.strerror}): check its permissions") from None
        if data[18:20] == b"\2\2":  # journal mode WAL, which a database in memory cannot have
            data = data[:18] + b"\1\1" + data[20:]
        _files[key] = made = Made(data, sha256(data).hexdigest())
        while sum(len(file.data) for file in list(_files.values())) > KEPT_BYTES and len(_files) > 1:
            _files.popitem(last=False)
        return made

    async def _make(self, script: bytes, digest: str) -> Made | Result:
        output = await self._execute(b"make", script, b"")
        if output.outcome == "ended" and (output.stdout.startswith(MAGIC) or not output.stdout):
            return Made(output.stdout, digest)
        return self._told(output)

    async def _execute(self, verb: bytes, data: bytes, query: bytes, limits: Limits | None = None) -> Output:
        # The database lies in memory beside what the query may use: as it came, as SQLite holds it, and in two orders.
        limits = limits or self.grader.limits
        limits = limits._replace(memory_bytes=limits.memory_bytes + (4 if verb == b"vary" else 2) * len(data))
        head = b"%s %d %d\n" % (verb, len(data), len(query))
        return await self.grader.execute(_program(), head + data + query, limits)

    def _told(self, output: Output, most: float = math.inf) -> Result:
        """What the fixed program said, or how it ended. most: bytes; it may have been taken over."""
        from grading.plain import decode

        outcome, cpu = output.outcome, output.cpu_seconds
        if outcome != "ended":
            return Result(None, outcome if outcome in LETTERS else "runtime_error", outcome.replace("_", " "), cpu)
        if len(output.stdout) > most:
            return Result(None, "output_limit", "more than 1 MiB of rows", cpu)
        try:
            kind, said = decode(output.stdout, plain_only=True)
        except (ValueError, TypeError):
            return Result(None, "runtime_error", "no answer", cpu)
        if kind == "rows":
            return Result(said, cpu_seconds=cpu)
        return Result(None, {"refused": "forbidden", "large": "output_limit"}.get(kind, "runtime_error"), said, cpu)

    async def ask(self, database: str, query: str) -> Result:
        """A query's rows."""
        query = query.rstrip("; \t\r\n")
        if is_query(query) is False:
            return Result(None, "forbidden", "not one query")
        made = await self.database(database)
        if isinstance(made, Result):
            return made
        text, data = query.encode("utf-8", "replace"), made.data

        async def run() -> list[Result]:
            output = await self._execute(b"ask", data, text)
            result = self._told(output, MOST)
            if result.rows is not None and not _is_table(result.rows):
                result = Result(None, "runtime_error", "no rows")
            kept = [result]
            _remember(kept, len(output.stdout))
            return kept

        kept = await self.grader.once((b"ask", made.digest, text), run)
        return kept[0] if kept else (await run())[0]

    async def show(self, database: str) -> list[Shown]:
        """Every table and view; none where that cannot be had."""
        made = await self.database(database)
        if isinstance(made, Result):
            return []
        said: Any = self._told(await self._execute(b"show", made.data, b"")).rows
        return said or []

    async def check(self) -> None:
        """GraderFault where the sandbox's Python cannot do what the fixed program needs."""
        script = "CREATE TABLE t(x); INSERT INTO t VALUES (-1), (NULL), ('1'), (x'31'), (2.5);"
        result = await self.ask(script, "SELECT x FROM t")
        if result.rows != [(-1,), (None,), ("1",), (b"1",), (2.5,)]:
            raise GraderFault(f"SQLite does not work in the sandbox ({result.error}): use a Python whose sqlite3 has "
                              "deserialize (SQLite 3.36 or newer)")  # fmt: skip

    async def gold(self, database: str, queries: Sequence[str]) -> Gold:
        """The answers of the gold queries, worked out once."""
        key = ("gold", sha256(json.dumps([database, *queries]).encode()).digest())
        return await self.grader.once(key, lambda: self._gold(database, queries))

    async def _gold(self, database: str, queries: Sequence[str]) -> Gold:
        results = [await self.ask(database, query) for query in queries]
        ran = [(query, result.rows) for query, result in zip(queries, results, strict=True) if result.rows is not None]
        if not ran:
            return Gold([], FAILS, results[0].error)
        full = [(query, rows) for query, rows in ran if rows]
        if not full:
            return Gold([Answer(rows, None, query) for query, rows in ran], EMPTY)
        answers = [await self._answer(database, query, rows) for query, rows in full]
        flags = {answer for answer in answers if isinstance(answer, str)}
        known = [answer for answer in answers if isinstance(answer, Answer)]
        return Gold(known, next((flag for flag in (OPEN, UNTRIED) if flag in flags), None))

    async def _answer(self, database: str, query: str, rows: list[Row]) -> Answer | str:
        """The rows with what of their order counts; a flag where other rows would be as right, or may be."""
        form = Form(query.rstrip("; \t\r\n"), len(rows[0]))
        varied = await self._vary(database, form)
        if varied is None:
            return UNTRIED
        if varied.looks:
            return OPEN
        blocks = [(i, i + 1) for i in range(len(rows))] if form.ordered else None
        if form.ordered and varied.up is not None and varied.down is not None:
            blocks = tied(varied.up, varied.down)
        answer = Answer(rows, blocks, query)
        others = [other for other in (varied.up, varied.down, *varied.others) if other is not None]
        settled = await asyncio.to_thread(lambda: all(matches(answer, other) for other in others))
        return answer if settled else OPEN

    async def _vary(self, database: str, form: Form) -> Varied | None:
        """What a gold query gives in other orders; None where that cannot be tried."""
        made = await self.database(database)
        if isinstance(made, Result):
            return None
        ways = [form.with_ties(way) if form.ordered or form.limited else "" for way in ("ASC", "DESC")]
        known = " ".join(word for word in ("ordered", "settled") if getattr(form, word))
        text = "\0".join([form.query, *ways, known, *form.with_chance()]).encode("utf-8", "replace")
        limits = self.grader.limits._replace(cpu_seconds=VARY_LIMIT * self.grader.limits.cpu_seconds)
        said: Any = self._told(await self._execute(b"vary", made.data, text, limits)).rows
        if type(said) is not tuple or len(said) != len(Varied._fields):
            return None
        varied = Varied(*said)
        if type(varied.looks) is not int or type(varied.others) is not list:
            return None
        results = (varied.up, varied.down, *varied.others)
        return varied if all(rows is None or _is_table(rows) for rows in results) else None


def _is_table(rows: object) -> bool:
    """Whether a value is rows of one width of what SQLite knows: SQLite itself may have been taken over."""

    def is_cell(value: object) -> bool:
        if type(value) is int:
            return -(2**63) <= value < 2**63
        return value is None or (type(value) in (float, str, bytes) and value == value)

    return type(rows) is list and all(
        type(row) is tuple and len(row) == len(rows[0]) and all(map(is_cell, row)) for row in rows
    )


def is_file(database: str) -> bool:
    return len(database) < 4096 and os.path.isfile(database)


async def score(grader: Runs, database: str | os.PathLike[str], gold: str | Sequence[str], predicted: str) -> SqlGrade:
    """What a predicted query is worth against a gold query, or against several of which each is right.

    grader: an entered Grader. database: the path of a SQLite file, else a script that makes a database. predicted: a
    query, or a reply that holds one. A fault of the machinery raises GraderFault and is no grade.
    """
    bench, database = Bench(grader), os.fspath(database)
    answers = await bench.gold(database, [gold] if isinstance(gold, str) else list(gold))
    query = extract_sql(predicted)
    result = Result(None, "no_code") if query is None else await bench.ask(database, query)
    return worth(answers, result)


def worth(gold: Gold, result: Result) -> SqlGrade:
    """A query's result against the gold answers; with several the best of each figure."""
    executes, flag = result.rows is not None, gold.flag
    if flag in (FAILS, OPEN, UNTRIED):
        return SqlGrade(None, None, executes, flag)
    rows = result.rows
    exact = rows is not None and any(matches(answer, rows) for answer in gold.answers)
    if flag == EMPTY:
        return SqlGrade(exact, None, executes, flag)
    f1 = 0.0 if rows is None else max(cell_f1(answer.rows, rows) for answer in gold.answers)
    return SqlGrade(exact, f1, executes, flag)
