"""What a query is worth: run it in the sandbox, find out what its gold query leaves open, compare the results outside.

    await score(grader, database, gold, predicted)      SqlGrade(exact_match, cell_f1, executes, flag)

A query runs in the grader's sandbox, on a private copy of the database that is gone with the process, under SQLite's
authorizer: one statement that reads, and nothing that attaches, writes, loads or sets. A gold result never enters the
process of a prediction. A gold query is run again with every tie before a LIMIT decided one way and the other, and in a
dozen orders of the tables' rows with every tie decided by chance: where that gives other rows, or it asks the clock or
chance itself, it tells nothing; where it cannot be tried, that is said. What a dozen orders all give counts as given by
the data: so does the row that SQLite takes out of a sorted set of rows with equal keys, such as the arms of a UNION.

Left out: where questions come from, prompts, runs and curves (sql_calibrate.py); other databases than SQLite.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from faults import TaskError
from grading.extract import extract_sql
from grading.grade import LETTERS
from records import dumps

if TYPE_CHECKING:
    from grader import Grader

FAILS, EMPTY, OPEN = "gold query fails", "empty gold result", "gold not determined by the data"
UNTRIED = "gold cannot be tried in other orders"  # too costly for it, or without an index that it names
TOLERANCE = 1e-6  # between two numbers that are not both integers
ROUNDING = 1e-12  # relative: what the order of a sum may change in a large float
VARY_LIMIT = 10  # times the CPU seconds of a query: for a gold query in all its orders
CHOICES = 32  # rows that a row may be paired with, on average, where the best pairing is looked for


# ── the sandbox's side: one fixed program ────────────────────────────────────────────────────────────────────────────
# stdin: a line "verb bytes-of-database bytes-of-query", the database, the query. stdout: make: the database that the
# script makes; others: a value in the strict encoding of plain.encode, (kind, rows or words). The walls and the
# limits are the grader's; the authorizer allows reading and nothing else, and stands before the query is parsed.
#
# vary: the texts of Bench._vary, with a zero byte between each. What the data leave open shows in what SQLite makes of
# tables whose rows stand in another order: no index but on single columns, and there only on tables too large to do
# without, since a longer one brings an order of its own. tie() is the random key that the texts sort ties by.

PROGRAM = r"""
import sqlite3
import sys

CAP = 1 << 20  # bytes, encoded: the most that a result may take
SHOWN = 3  # rows of a table that a prompt shows
ORDERS = 12  # in which a gold query is run; fewer, and at least 3, where its tables have more rows than ROWS
ROWS = 20_000
SMALL = 1_000  # rows of a table that needs no index
CHANCE = {"random", "randomblob", "current_date", "current_time", "current_timestamp"}  # and what is always now
CLOCK = {"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"}


def sized(tag, payload):
    return tag + len(payload).to_bytes(4, "little") + payload


def cell(value):
    kind = type(value)
    if value is None:
        return b"N"
    if kind is int:
        return sized(b"i", b"%x" % value if value >= 0 else b"-%x" % -value)
    if kind is float:
        return sized(b"f", repr(value).encode())
    if kind is str:
        return sized(b"s", value.encode("utf-8", "surrogatepass"))
    return sized(b"b", value)


def items(tag, parts):
    return tag + len(parts).to_bytes(4, "little") + b"".join(parts)


def answer(kind, payload):
    sys.stdout.buffer.write(items(b"t", [cell(kind), payload]))
    sys.stdout.buffer.flush()
    sys.exit()


def may(action, one, two, database, source):
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if two.lower() in ("load_extension", "fts3_tokenizer") else sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


def may_make(action, one, two, database, source):
    away = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if action in away or (two or "").lower() == "load_extension" else sqlite3.SQLITE_OK


class Large(Exception):
    pass


def fetch(db, query):
    cursor = db.execute(query)
    if cursor.description is None:
        answer("refused", cell("no query"))
    rows, size = [], 0
    for row in cursor:
        rows.append(items(b"t", [cell(value) for value in row]))
        size += len(rows[-1])
        if size > CAP:
            raise Large
    return rows


def ask(db, query):
    db.execute("PRAGMA query_only = ON")
    db.set_authorizer(may)
    try:
        rows = fetch(db, query)
    except Large:
        answer("large", cell("more than 1 MiB of rows"))
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as why:
        words = str(why)
        refused = "not authorized" in words or "prohibited" in words or "one statement" in words
        answer("refused" if refused else "error", cell(words[:300]))
    answer("rows", items(b"l", rows))


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


# The tables and views that a query reads, and the functions that it calls, in small letters.
def uses(db, query):
    read, called = set(), set()

    def watch(action, one, two, database, source):
        if action == sqlite3.SQLITE_READ:
            read.add(one.lower())
        elif action == sqlite3.SQLITE_FUNCTION:
            called.add(two.lower())
        return may(action, one, two, database, source)

    db.set_authorizer(watch)
    db.execute("EXPLAIN " + query).close()
    db.set_authorizer(None)
    return read, called


# A list that fills as functions of these names look at the clock. A value may be now, and it shows when it runs.
def watch_clock(db, names):
    looks = []

    def watched(name):
        plain = sqlite3.connect(":memory:")

        def function(*values):
            times = values[name == "strftime" :][: 2 if name == "timediff" else 1]
            texts = [time.decode("latin1") if type(time) is bytes else str(time) for time in times]
            if not texts or any(text.lower() in ("now", "subsec", "subsecond") for text in texts):
                looks.append(name)
            return plain.execute("SELECT %s(%s)" % (name, ", ".join("?" * len(values))), values).fetchone()[0]

        return function

    for name in names:
        db.create_function(name, -1, watched(name), deterministic=True)
    return looks


# What it takes to build a table again without the keys and indices that give its rows an order.
class Table:
    def __init__(self, db, name, sql):
        about = db.execute("SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1", (name,)).fetchall()
        self.name, self.columns = quoted(name), [column for column, *_ in about]
        self.rows = db.execute("SELECT count(*) FROM " + self.name).fetchone()[0]
        self.listed = ", ".join(map(quoted, self.columns))
        # Only an index tells the collations of columns.
        db.execute('CREATE INDEX "every column" ON %s(%s) WHERE 0' % (self.name, self.listed))
        rules = db.execute("SELECT coll FROM pragma_index_xinfo('every column') WHERE key").fetchall()
        self.rules = [rule for (rule,) in rules]
        db.execute('DROP INDEX "every column"')
        strict = "strict" in sql.rpartition(")")[2].lower()
        kinds = [affinity(declared.upper(), strict) for _, declared, _ in about]
        self.defined = ", ".join(map("%s %s COLLATE %s".__mod__, zip(map(quoted, self.columns), kinds, self.rules)))
        first = "SELECT i.name FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) i WHERE i.seqno = 0"
        found = {column for (column,) in db.execute(first, (name,))} | {column for column, _, pk in about if pk == 1}
        self.indexed = sorted(found - {None}) if self.rows > SMALL else []

    def shuffle(self, db):
        db.execute('CREATE TABLE "another order"(%s)' % self.defined)
        db.execute('INSERT INTO "another order" SELECT %s FROM %s ORDER BY tie()' % (self.listed, self.name))
        db.execute("DROP TABLE " + self.name)
        db.execute('ALTER TABLE "another order" RENAME TO ' + self.name)
        for column in self.indexed:
            db.execute("CREATE INDEX %s ON %s(%s)" % (quoted("%s %s" % (column, self.name)), self.name, quoted(column)))


def affinity(declared, strict):
    if "INT" in declared:
        return "INTEGER"
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in declared or not declared or (strict and declared == "ANY"):
        return "BLOB"
    return "REAL" if any(word in declared for word in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def vary(db, query, up, down, known, *forms):
    state = [1]

    def tie():
        state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
        return state[0] >> 33

    def run(text, reverse):
        db.execute("PRAGMA reverse_unordered_selects = %d" % reverse)
        db.set_authorizer(may)
        try:
            rows = fetch(db, text)
            return items(b"l", rows if "ordered" in known else sorted(rows))
        finally:
            db.set_authorizer(None)

    def tried(text, reverse):
        try:
            return run(text, reverse) if text else b"N"
        except (sqlite3.Error, Large):
            return b"N"

    db.create_function("tie", 0, tie)
    db.execute("PRAGMA legacy_alter_table = ON")  # views stay as they are
    read, called = uses(db, query)
    looks = watch_clock(db, called & CLOCK)
    looks += called & CHANCE
    ways = [tried(up, 0), tried(down, 0)]
    others = {tried(query, 1)}
    made = db.execute("SELECT name, type, coalesce(sql, '') FROM sqlite_master").fetchall()
    made = [(name, kind, sql) for name, kind, sql in made if name.lower() in read]
    views = [sql for _, kind, sql in made if kind == "view"]
    plain = [(name, sql) for name, kind, sql in made if kind == "table" and sql.startswith("CREATE TABLE")]
    tables = [Table(db, name, sql) for name, sql in plain]
    turns = max(3, ORDERS * ROWS // max(ROWS, sum(table.rows for table in tables)))
    one_rule = all(rule.upper() == "BINARY" for table in tables for rule in table.rules)
    if looks or ("settled" in known and not views and one_rule):
        turns = 0
    # The number of a row is data, where it is asked for.
    text = "".join(c if c.isalnum() or c == "_" else " " for c in " ".join([query, *views]).lower())
    numbers = {"rowid", "oid", "_rowid_"} & set(text.split())
    tables = [table for table in tables if not numbers - {column.lower() for column in table.columns}]
    forms = list(forms)
    for turn in range(turns):
        for table in tables:
            table.shuffle(db)
        while True:
            try:
                others.add(run(forms[0], turn % 2))
                break
            except sqlite3.Error as why:
                if len(forms) == 1:
                    answer("error", cell(str(why)[:300]))
                del forms[0]
            except Large:
                answer("large", cell("more than 1 MiB of rows"))
    answer("rows", items(b"t", [cell(len(looks)), *ways, items(b"l", sorted(others))]))


def show(db):
    found = []
    listed = "FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    for name, sql in db.execute("SELECT name, sql " + listed):
        try:
            cursor = db.execute('SELECT * FROM "%s" LIMIT %d' % (name.replace('"', '""'), SHOWN))
            rows = [[column[0] for column in cursor.description], *cursor]
        except sqlite3.Error:  # a view on what is gone, a module that is not here
            rows = []
        short = [[value[:200] if type(value) in (str, bytes) else value for value in row] for row in rows]
        shown = [items(b"l", list(map(cell, row))) for row in short]
        found.append(items(b"t", [cell(sql or name), items(b"l", shown)]))
    answer("rows", items(b"l", found))


verb, size, length = sys.stdin.buffer.readline().split()
data = sys.stdin.buffer.read(int(size))
query = sys.stdin.buffer.read(int(length)).decode("utf-8", "replace")
db = sqlite3.connect(":memory:", isolation_level=None)
db.text_factory = lambda text: text.decode("utf-8", "surrogateescape")
db.execute("PRAGMA temp_store = MEMORY")
if verb == b"make":
    db.set_authorizer(may_make)
    try:
        db.executescript(data.decode("utf-8", "replace"))
    except (sqlite3.Error, sqlite3.Warning, ValueError) as why:
        answer("error", cell(str(why)[:300]))
    if db.in_transaction:
        db.commit()
    db.set_authorizer(None)
    if db.execute("PRAGMA page_count").fetchone()[0]:  # a database without a page has no bytes
        sys.stdout.buffer.write(db.serialize())
else:
    if data:
        db.deserialize(data)
    try:
        db.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.Error as why:
        answer("error", cell(str(why)[:300]))
    if verb == b"show":
        show(db)
    elif verb == b"ask":
        ask(db, query)
    else:
        vary(db, *query.split("\0"))
"""
MOST = (1 << 20) + 64  # bytes that a prediction's answer has at most: CAP, and what stands around the rows
MAGIC = b"SQLite format 3\0"
KEPT_BYTES = 256 << 20  # of database files held in memory
KEPT_RESULTS = 4 << 20  # bytes, encoded, of results held in memory; decoded some ten times as many
SMALL_BYTES = 1 << 10  # encoded: a result of which the grader remembers as many as it likes


class Result(NamedTuple):
    """What a query came to. rows: None where it failed; outcome, error: why; of grading.grade.LETTERS."""

    rows: list[tuple[Any, ...]] | None
    outcome: str = "pass"
    error: str = ""
    cpu_seconds: float = 0.0


class Made(NamedTuple):
    """A database: the bytes of its file, and what names it (of a script, that of the script)."""

    data: bytes
    digest: str


class Answer(NamedTuple):
    """The result of one gold query. blocks: where the order counts, the stretches (start, end) of rows that tie."""

    rows: list[tuple[Any, ...]]
    blocks: list[tuple[int, int]] | None


class Gold(NamedTuple):
    """What a question's gold queries come to: answers of which each is right, and a flag where they tell nothing."""

    answers: list[Answer]
    flag: str | None
    error: str = ""


class Varied(NamedTuple):
    """A gold query in other orders. looks: how often it asks the clock or chance; up, down: with ties decided one way
    and the other. None: a query that failed."""

    looks: int
    up: list[tuple[Any, ...]] | None
    down: list[tuple[Any, ...]] | None
    others: list[list[tuple[Any, ...]] | None]


class SqlGrade(NamedTuple):
    """What a query is worth. None: not defined, since the gold query fails or is not determined by the data, or, for
    cell_f1, finds nothing."""

    exact_match: bool | None
    cell_f1: float | None
    executes: bool
    flag: str | None


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

    def __init__(self, grader: Grader) -> None:
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
        made: Made | Result = await self.grader.once(("make", digest), lambda: self._make(script, digest))
        return made

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

    async def _execute(self, verb: bytes, data: bytes, query: bytes, limits: Any = None) -> Any:
        # The database lies in memory beside what the query may use: as it came, as SQLite holds it, and in two orders.
        limits = limits or self.grader.limits
        limits = limits._replace(memory_bytes=limits.memory_bytes + (4 if verb == b"vary" else 2) * len(data))
        head = b"%s %d %d\n" % (verb, len(data), len(query))
        return await self.grader.execute(PROGRAM, head + data + query, limits)

    def _told(self, output: Any, most: float = math.inf) -> Result:
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

        kept: list[Result] = await self.grader.once((b"ask", made.digest, text), run)
        return kept[0] if kept else (await run())[0]

    async def show(self, database: str) -> Result:
        """(CREATE statement, [column names, first rows ...]) of every table and view."""
        made = await self.database(database)
        return made if isinstance(made, Result) else self._told(await self._execute(b"show", made.data, b""))

    async def check(self) -> None:
        """GraderFault where the sandbox's Python cannot do what the fixed program needs."""
        from faults import GraderFault

        script = "CREATE TABLE t(x); INSERT INTO t VALUES (-1), (NULL), ('1'), (x'31'), (2.5);"
        result = await self.ask(script, "SELECT x FROM t")
        if result.rows != [(-1,), (None,), ("1",), (b"1",), (2.5,)]:
            raise GraderFault(f"SQLite does not work in the sandbox ({result.error}): use a Python whose sqlite3 has "
                              "deserialize (SQLite 3.36 or newer)")  # fmt: skip

    async def gold(self, database: str, queries: Sequence[str]) -> Gold:
        """The answers of the gold queries, worked out once."""
        key = ("gold", sha256(dumps([database, list(queries)]).encode()).digest())
        gold: Gold = await self.grader.once(key, lambda: self._gold(database, queries))
        return gold

    async def _gold(self, database: str, queries: Sequence[str]) -> Gold:
        results = [await self.ask(database, query) for query in queries]
        ran = [(query, result.rows) for query, result in zip(queries, results, strict=True) if result.rows is not None]
        if not ran:
            return Gold([], FAILS, results[0].error)
        full = [(query, rows) for query, rows in ran if rows]
        if not full:
            return Gold([Answer(rows, None) for _, rows in ran], EMPTY)
        answers = [await self._answer(database, query, rows) for query, rows in full]
        flags = {answer for answer in answers if isinstance(answer, str)}
        known = [answer for answer in answers if isinstance(answer, Answer)]
        return Gold(known, next((flag for flag in (OPEN, UNTRIED) if flag in flags), None))

    async def _answer(self, database: str, query: str, rows: list[tuple[Any, ...]]) -> Answer | str:
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
        answer = Answer(rows, blocks)
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


def _is_table(rows: Any) -> bool:
    """Whether a value is rows of one width of what SQLite knows: SQLite itself may have been taken over."""

    def is_cell(value: Any) -> bool:
        if type(value) is int:
            return -(2**63) <= value < 2**63
        return value is None or (type(value) in (float, str, bytes) and value == value)

    return type(rows) is list and all(
        type(row) is tuple and len(row) == len(rows[0]) and all(map(is_cell, row)) for row in rows
    )


def is_file(database: str) -> bool:
    return len(database) < 4096 and os.path.isfile(database)


async def score(
    grader: Grader, database: str | os.PathLike[str], gold: str | Sequence[str], predicted: str
) -> SqlGrade:
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


# ── reading SQL: what a query is, and where its order is left open ───────────────────────────────────────────────────


def _tokens(text: str) -> list[Any] | None:
    """sqlglot's tokens; None where it finds none. Time linear in the text, which is not parsed."""
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    if len(text) > 100_000:
        return None
    try:
        return list(tokenize(text, read="sqlite"))
    except SqlglotError:
        return None


def is_query(text: str) -> bool | None:
    """Whether a text is one statement, and that a query. None: the tokens do not tell; SQLite will."""
    tokens = _tokens(text)
    if tokens is None:
        return None
    words, depth = [], 0
    for word in map(_word, tokens):
        depth -= word == ")"
        if depth <= 0:
            words.append(word)
        depth += word == "("
    while words and words[-1] == ";":
        words.pop()
    if not words or ";" in words:
        return False
    if words[0] == "WITH":
        words = [word for word in words if word in ("SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE")]
    return bool(words) and words[0] in ("SELECT", "VALUES")


def _word(token: Any) -> str:
    """A token in capitals; a quoted one says nothing, whatever stands in the quotes."""
    kind = token.token_type.name
    return "" if "STRING" in kind or kind == "IDENTIFIER" else " ".join(token.text.upper().split())


_SETS = {"UNION", "EXCEPT", "INTERSECT"}
_ENDS_COLUMNS = {"FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "LIMIT", *_SETS}
_FRAMES = {"ROWS", "RANGE", "GROUPS"}
_PLACES = {"ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"}  # rows that tie do not get one value
_BY_ORDER = {"LIMIT", "ORDER BY", "OVER", "COLLATE", "GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY",
             "JSON_GROUP_OBJECT", "JSONB_GROUP_ARRAY", "JSONB_GROUP_OBJECT"}  # fmt: skip


def _is_grouped(select: Any) -> bool:
    """Whether every column beside a sum, or in a group, is one that the rows are grouped by."""
    from sqlglot import exp

    shown = [*select.expressions, *([select.args["having"]] if select.args.get("having") else [])]
    group = select.args.get("group")
    if group is None and not any(part.find(exp.AggFunc) for part in shown):
        return True
    keys = {key.sql().lower() for key in group.expressions} if group else set()
    bare = (node for part in shown for node in part.find_all(exp.Column, exp.Star))
    return all(
        node.sql().lower() in keys or isinstance(node.find_ancestor(exp.AggFunc, exp.Select), exp.AggFunc)
        for node in bare
    )


def _takes_no_row(select: Any) -> bool:
    """Whether a SELECT is no single value, or a sum over all its rows, of which there is one."""
    from sqlglot import exp

    value = select
    while isinstance(value.parent, exp.Subquery | exp.SetOperation):
        value = value.parent
    tables = {exp.In: "query", exp.Exists: "this", exp.From: "this", exp.Join: "this", exp.CTE: "this"}
    if value.parent is None or tables.get(type(value.parent)) == value.arg_key:
        return True
    return not select.args.get("group") and any(part.find(exp.AggFunc) for part in select.expressions)


class Level(NamedTuple):
    """What stands in one pair of brackets, or in none: the places of its tokens, without those of brackets in it."""

    start: int  # the place of its opening bracket; -1: none
    inside: list[int]
    end: int  # the offset behind it in the text


class Form:
    """What the text of a gold query says about the order of its rows. width: its columns, as it ran."""

    def __init__(self, query: str, width: int) -> None:
        self.query, self.width = query, width
        self.tokens = _tokens(query) or []
        while self.tokens and self.tokens[-1].text == ";":
            self.tokens.pop()
        self.words = list(map(_word, self.tokens))
        self.levels = self._levels()
        whole = self._words(self.levels[-1])
        self.ordered = "ORDER BY" in whole
        self.limited = "LIMIT" in self.words

    def _levels(self) -> list[Level]:
        """Inner ones before outer ones."""
        found, open_ones = [], [Level(-1, [], self.tokens[-1].end + 1 if self.tokens else 0)]
        self.closes: dict[int, int] = {}  # the place of a closing bracket -> that of its opening one
        for at, word in enumerate(self.words):
            if word == "(":
                open_ones.append(Level(at, [], 0))
            elif word == ")" and len(open_ones) > 1:
                level = open_ones.pop()
                found.append(level._replace(end=self.tokens[at].start))
                self.closes[at] = level.start
            else:
                open_ones[-1].inside.append(at)
        return [*found, open_ones[0]]

    def _words(self, level: Level) -> list[str]:
        return [self.words[i] for i in level.inside]

    @property
    def settled(self) -> bool:
        """Whether the text tells that no order of the tables' rows can matter: nothing is sorted, cut, or strung
        together, no row is taken out of several, and whatever stands beside a sum is what it is grouped by.

        It does not tell of what stands in views, and of values that a column's collation takes for one.
        """
        from sqlglot import exp, parse_one
        from sqlglot.errors import SqlglotError

        if _BY_ORDER & set(self.words):
            return False
        try:
            tree = parse_one(self.query, read="sqlite")
        except (SqlglotError, RecursionError):
            return False
        if tree.find(exp.Anonymous) or not isinstance(tree, exp.Select | exp.SetOperation):
            return False
        return all(_is_grouped(select) and _takes_no_row(select) for select in tree.find_all(exp.Select))

    @staticmethod
    def _columns(words: list[str]) -> int:
        """How many columns the SELECT before a LIMIT has; 0 where its text does not tell."""
        if "SELECT" not in words:
            return 0
        start = len(words) - 1 - words[::-1].index("SELECT")
        columns = list(itertools.takewhile(lambda word: word not in _ENDS_COLUMNS, words[start + 1 :]))
        stars = [i for i, word in enumerate(columns) if word == "*"]
        if any(i == 0 or columns[i - 1] in (",", ".", "DISTINCT", "ALL") for i in stars):
            return 0
        return 1 + columns.count(",")

    def with_ties(self, way: str) -> str:
        """The query with every tie before a LIMIT, and in the order of its rows, decided by the columns themselves:
        ASC or DESC."""
        edits = []
        for level in self.levels:
            words = self._words(level)
            limited, whole = "LIMIT" in words, level.start < 0
            if limited or (whole and self.ordered):
                columns = self.width if whole else self._columns(words[: words.index("LIMIT")])
                terms = ", ".join(f"{i} COLLATE BINARY {way}" for i in range(1, columns + 1))
                joint = ", " if "ORDER BY" in words else " ORDER BY "
                edits += [(self._last(level), f"{joint}{terms} ")] if columns else []
        return self._edited(edits)

    def with_chance(self) -> list[str]:
        """The query with every tie decided by tie(), a random key; as much of that as SQLite takes, the most first.

        The first text does it to sets of queries too, which can be sorted by their columns alone and so become a
        table, and to windows; the second to plain queries; the last to nothing.
        """
        plain: list[tuple[int, str]] = []
        more: list[tuple[int, str]] = []
        for level in self.levels:
            words, before = self._words(level), self.words[level.start - 1] if level.start > 0 else ""
            limited, ordered = "LIMIT" in words, "ORDER BY" in words
            key = ", tie() " if ordered else " ORDER BY tie() "
            if "SELECT" not in words:
                if ordered and "PARTITION BY" not in words and before not in ("OVER", "AS"):
                    more.append((level.end, key))  # group_concat(name ORDER BY kind)
            elif not (limited or ordered) and (level.start < 0 or before in ("IN", "EXISTS")):
                continue
            elif not _SETS & set(words):
                (plain if limited or ordered else more).append((self._last(level), key))
            elif limited or ordered or "RECURSIVE" not in self.words:
                starts = {word: self.tokens[i].start for i, word in zip(level.inside, words, strict=True)}
                first = next(i for i in level.inside if self.words[i] in ("SELECT", "VALUES"))
                more.append((self.tokens[first].start, "SELECT * FROM ("))
                more.append((starts.get("ORDER BY", self._last(level)), ") "))
                more.append((self._last(level), key))
        texts = [self._edited([*plain, *more, *self._windows()]), self._edited(plain), self.query]
        return list(dict.fromkeys(texts))

    def _windows(self) -> list[tuple[int, str]]:
        """The edits that decide ties in windows; where rows that tie get one value, it stays one."""
        edits: list[tuple[int, str]] = []
        by_start = {level.start: level for level in self.levels}
        for at, word in enumerate(self.words):
            if word != "OVER":
                continue
            start = at + 1
            name = self.tokens[start].text.lower()
            if self.words[start] != "(":  # a window that is defined below
                start = next((i + 2 for i in range(start + 1, len(self.words) - 2) if self.words[i + 1] == "AS"
                              and self.words[i + 2] == "(" and self.tokens[i].text.lower() == name), -1)  # fmt: skip
            level = by_start.get(start)
            if level is None or level.start < 0:
                continue
            words = self._words(level)
            frame = next((i for i in level.inside if self.words[i] in _FRAMES), None)
            by_rows = frame is not None and self.words[frame] == "ROWS"
            if not by_rows and (frame is not None or self._function(at) not in _PLACES):
                continue
            end = level.end if frame is None else self.tokens[frame].start
            key = ", tie() " if "ORDER BY" in words else " ORDER BY tie() "
            if start == at + 1:
                edits.append((end, key))
            else:
                text = self.query[self.tokens[start].end + 1 : end] + key + self.query[end : level.end]
                edits.append((self.tokens[at + 1].start, f"({text}) /* "))
                edits.append((self.tokens[at + 1].end + 1, " */"))
        return edits

    def _function(self, over: int) -> str:
        """The name of the function before an OVER."""
        start = self.closes.get(over - 1, 0)
        if start and self.words[start - 1] == "FILTER":
            start = self.closes.get(start - 2, 0)
        return self.words[start - 1] if start else ""

    def _last(self, level: Level) -> int:
        """The offset where the ORDER BY of a level ends, or would."""
        return next((self.tokens[i].start for i in level.inside if self.words[i] == "LIMIT"), level.end)

    def _edited(self, edits: list[tuple[int, str]]) -> str:
        """The query with texts put in at offsets, those of one offset in their order."""
        parts, start = [], 0
        for place, text in sorted(edits, key=lambda edit: edit[0]):
            parts += [self.query[start:place], text]
            start = place
        return "".join([*parts, self.query[start:]])


def tied(up: list[tuple[Any, ...]], down: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """The stretches of rows that tie, from the same rows with ties decided one way and the other.

    A stretch ends wherever both have shown the same rows so far: within a tie of rows that differ, the first few one
    way are never the first few the other way.
    """
    blocks, start = [], 0
    lead: Counter[Any] = Counter()
    for i, (one, other) in enumerate(zip(up, down, strict=False)):
        for row, step in ((one, 1), (other, -1)):
            lead[row] += step
            if not lead[row]:
                del lead[row]
        if not lead:
            blocks.append((start, i + 1))
            start = i + 1
    return blocks if not lead else [*blocks, (start, len(up))]


# ── comparing results ────────────────────────────────────────────────────────────────────────────────────────────────


def close(a: float, b: float) -> bool:
    """Whether two numbers are one: integers exactly, others within 1e-6, or what rounding does to a large sum."""
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return _is_near(a, b)


def _is_near(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= max(TOLERANCE, ROUNDING * max(abs(a), abs(b))) < math.inf


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)


def _numbered(values: Iterable[Any]) -> dict[Any, int]:
    """A name for every number among the values: numbers that are close, or that a chain of close ones links, share it.

    Integers equal themselves alone, and only what is no integer can link them.
    """
    numbers = [value for value in values if _is_number(value)]
    broken = {value for value in numbers if isinstance(value, float)}
    names: dict[Any, int] = {}
    stretch: list[Any] = []

    def end() -> None:
        one_each = broken.isdisjoint(stretch)
        start = len(names)
        names.update((value, start + i * one_each) for i, value in enumerate(stretch))

    for value in sorted(set(numbers)):
        if stretch and not _is_near(stretch[-1], value):
            end()
            stretch = []
        stretch.append(value)
    end()
    return names


def _are_one(numbers: Sequence[Any]) -> bool:
    """Whether each of some numbers is close to each."""
    return _is_near(min(numbers), max(numbers)) and not _integers_differ(numbers)


def _integers_differ(numbers: Iterable[Any]) -> bool:
    return len({number for number in numbers if isinstance(number, int)}) > 1


def same_rows(gold: Sequence[tuple[Any, ...]], rows: Sequence[tuple[Any, ...]]) -> bool:
    """Whether two results hold the same rows, in whatever order: every row has a partner of its own that is close.

    Exact, in about the time of sorting them, wherever being close is passed on from one number to the next, or is not
    in one column alone. Where numbers that are linked and not close stand in several columns of like rows, these rows
    are first paired in sorted order; where that is not it, the best pairing decides, if a row has 32 rows to choose
    from on average (as it has among 32 rows), and else they are not the same.
    """
    if len(gold) != len(rows) or (gold and len(gold[0]) != len(rows[0])):
        return False
    if not gold or not gold[0]:
        return True
    sides: list[list[list[Any]]] = [[], []]
    for one, other in zip(zip(*gold, strict=True), zip(*rows, strict=True), strict=True):
        names = _numbered(itertools.chain(one, other))
        for side, column in zip(sides, (one, other), strict=True):
            side.append([("#", names[value]) if _is_number(value) else value for value in column])
    like: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for i, (columns, group) in enumerate(zip(sides, (gold, rows), strict=True)):
        for name, row in zip(zip(*columns, strict=True), group, strict=True):
            like[name][i].append(row)
    if any(len(ours) != len(theirs) for ours, theirs in like.values()):
        return False
    return _pair_up(list(like.values()))


def _pair_up(groups: list[tuple[list[Any], list[Any]]]) -> bool:
    """Whether the rows of every group, as many on both sides, pair up. Rows of a group differ by numbers alone."""
    open_rows: tuple[list[Any], list[Any]] = [], []  # of the groups that sorting does not settle
    for k, (ours, theirs) in enumerate(groups):
        both = [*ours, *theirs]
        loose = [
            at for at, value in enumerate(both[0]) if _is_number(value) and not _are_one([row[at] for row in both])
        ]
        sides = [sorted([row[at] for at in loose] for row in side) for side in (ours, theirs)]
        if all(close(a, b) for one, other in zip(*sides, strict=True) for a, b in zip(one, other, strict=True)):
            continue
        if len(loose) == 1 and not _integers_differ(row[loose[0]] for row in both):
            return False  # on a line no pairing is better than the sorted one
        for side, found in zip((ours, theirs), open_rows, strict=True):
            found += [(k, *(value if _is_number(value) else 0 for value in row)) for row in side]
    return not open_rows[0] or _most_pairs(*open_rows) == len(open_rows[0])


def _most_pairs(ours: list[tuple[float, ...]], theirs: list[tuple[float, ...]]) -> int | None:
    """How many rows of numbers pair up at best, close in every column. None where that is too much to try."""
    import numpy as np
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_bipartite_matching

    ids: dict[int, int] = {}  # of integers: as floats large ones are not exact
    columns = []
    for column in zip(zip(*ours, strict=True), zip(*theirs, strict=True), strict=True):
        one, other = (np.array(side, dtype=float) for side in column)
        whole = [np.array([ids.setdefault(v, len(ids)) if isinstance(v, int) else -1 for v in side]) for side in column]
        columns.append((one, other, *whole))
    windows = []  # of a column: its order, and where in it the candidates of each row begin and end
    for one, other, *_ in columns:
        order = np.argsort(other, kind="stable")
        reach = 1.001 * np.maximum(TOLERANCE, ROUNDING * np.where(np.isinf(one), 0, np.abs(one)))
        low, high = (
            np.searchsorted(other[order], one - reach, "left"),
            np.searchsorted(other[order], one + reach, "right"),
        )
        windows.append((int((high - low).sum()), order, low, high - low))
    total, order, low, many = min(windows, key=lambda window: window[0])
    if total > CHOICES * len(ours):
        return None
    at = np.repeat(np.arange(len(ours)), many)
    to = order[np.arange(total) - np.repeat(np.cumsum(many) - many - low, many)]
    for one, other, *whole in columns:
        a, b, i, j = one[at], other[to], whole[0][at], whole[1][to]
        bound = np.maximum(TOLERANCE, ROUNDING * np.maximum(np.abs(a), np.abs(b)))
        with np.errstate(invalid="ignore"):  # of two infinities
            near = (a == b) | ((np.abs(a - b) <= bound) & np.isfinite(bound))
        keep = np.where((i >= 0) & (j >= 0), i == j, near)
        at, to = at[keep], to[keep]
    graph = csr_matrix((np.ones(len(at)), (at, to)), shape=(len(ours), len(theirs)))
    return int((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def matches(answer: Answer, rows: list[tuple[Any, ...]]) -> bool:
    """Exact match: the same rows; where the gold query orders them, tie by tie in the same places."""
    if answer.blocks is None:
        return same_rows(answer.rows, rows)
    if len(rows) != len(answer.rows):
        return False
    places = [k for k, (start, end) in enumerate(answer.blocks) for _ in range(start, end)]
    ours, theirs = ([(k, *row) for k, row in zip(places, side, strict=True)] for side in (answer.rows, rows))
    return same_rows(ours, theirs)


def cell_f1(gold: Sequence[tuple[Any, ...]], rows: Sequence[tuple[Any, ...]]) -> float:
    """2 x shared / (gold cells + predicted cells), over the multisets of cell values, wherever they stand."""
    sides = [[value for row in side for value in row] for side in (gold, rows)]
    if not sides[0] and not sides[1]:
        return 1.0
    numbers = [[value for value in side if _is_number(value)] for side in sides]
    others = [Counter(value for value in side if not _is_number(value)) for side in sides]
    shared = (others[0] & others[1]).total() + _paired(*numbers)
    return 2 * shared / (len(sides[0]) + len(sides[1]))


def _paired(ours: list[float], theirs: list[float]) -> int:
    """How many of two lists of numbers pair up at best; where large integers are linked by too many numbers that are
    none, how many do in sorted order."""
    names = _numbered(itertools.chain(ours, theirs))
    like: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for i, side in enumerate((ours, theirs)):
        for value in sorted(side):
            like[names[value]][i].append(value)
    pairs = 0
    left: tuple[list[float], list[float]] = [], []
    for one, other in like.values():
        if one and other and _integers_differ((*one, *other)):
            left[0].extend(one)
            left[1].extend(other)
        else:
            pairs += _paired_in_order(one, other)
    best = _most_pairs([(value,) for value in left[0]], [(value,) for value in left[1]]) if left[0] else 0
    return pairs + (_paired_in_order(*map(sorted, left)) if best is None else best)


def _paired_in_order(ours: list[float], theirs: list[float]) -> int:
    """How many of two sorted lists pair up: on a line, taking the first that is close is best."""
    i = j = pairs = 0
    while i < len(ours) and j < len(theirs):
        if close(ours[i], theirs[j]):
            i, j, pairs = i + 1, j + 1, pairs + 1
        elif ours[i] < theirs[j]:
            i += 1
        else:
            j += 1
    return pairs
