"""The program that runs inside the sandbox whenever SQLite is needed: it makes, shows, asks or varies a database.

Compiled and sent by sql.py; nothing of the project is at hand where it runs. The walls and the limits are the grader's;
the authorizer allows reading and nothing else, and stands before a query is parsed.

stdin: a line "verb bytes-of-database bytes-of-query", the database, the query. stdout: make: the database that the
script makes; show, ask, vary: a value in the strict encoding of the sandbox, (kind, rows or words). It comes of main,
not as the value of a module, since a database and a dozen results are more than such a value may hold.

vary: the query is the texts of Bench._vary, with a zero byte between each. What the data leave open shows in what
SQLite makes of tables whose rows stand in another order: no index but on single columns, and there only on tables too
large to do without, since a longer one brings an order of its own.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable

Cell = None | int | float | str | bytes  # what SQLite knows

CAP = 1 << 20  # bytes, encoded: the most that a result may take
SHOWN = 3  # rows of a table that a prompt shows
ORDERS = 12  # in which a gold query is run; fewer, and at least 3, where its tables have more rows than ROWS
ROWS = 20_000
SMALL = 1_000  # rows of a table that needs no index
CHANCE = {"random", "randomblob", "current_date", "current_time", "current_timestamp"}  # and what is always now
CLOCK = {"date", "time", "datetime", "julianday", "unixepoch", "strftime", "timediff"}


def sized(tag: bytes, payload: bytes) -> bytes:
    return tag + len(payload).to_bytes(4, "little") + payload


def cell(value: Cell) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, int):
        return sized(b"i", b"%x" % value if value >= 0 else b"-%x" % -value)
    if isinstance(value, float):
        return sized(b"f", repr(value).encode())
    if isinstance(value, str):
        return sized(b"s", value.encode("utf-8", "surrogatepass"))
    return sized(b"b", value)


def items(tag: bytes, parts: list[bytes]) -> bytes:
    return tag + len(parts).to_bytes(4, "little") + b"".join(parts)


def answer(kind: str, payload: bytes) -> None:
    """Say it, and end."""
    sys.stdout.buffer.write(items(b"t", [cell(kind), payload]))
    sys.stdout.buffer.flush()
    sys.exit()


def may(action: int, one: str | None, two: str | None, database: str | None, source: str | None) -> int:
    """What a query may do."""
    if action == sqlite3.SQLITE_FUNCTION:
        return sqlite3.SQLITE_DENY if str(two).lower() in ("load_extension", "fts3_tokenizer") else sqlite3.SQLITE_OK
    reading = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_OK if action in reading else sqlite3.SQLITE_DENY


def may_make(action: int, one: str | None, two: str | None, database: str | None, source: str | None) -> int:
    """What a script may do."""
    away = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)
    return sqlite3.SQLITE_DENY if action in away or (two or "").lower() == "load_extension" else sqlite3.SQLITE_OK


class Large(Exception):
    """A result takes more than CAP bytes."""


def fetch(db: sqlite3.Connection, query: str) -> list[bytes]:
    """The rows of a query, encoded."""
    cursor = db.execute(query)
    if cursor.description is None:
        answer("refused", cell("no query"))
    rows, size = list[bytes](), 0
    for row in cursor:
        rows.append(items(b"t", [cell(value) for value in row]))
        size += len(rows[-1])
        if size > CAP:
            raise Large
    return rows


def ask(db: sqlite3.Connection, query: str) -> None:
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


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def uses(db: sqlite3.Connection, query: str) -> tuple[set[str], set[str]]:
    """The tables and views that a query reads, and the functions that it calls, in small letters."""
    read, called = set[str](), set[str]()

    def watch(action: int, one: str | None, two: str | None, database: str | None, source: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            read.add(str(one).lower())
        elif action == sqlite3.SQLITE_FUNCTION:
            called.add(str(two).lower())
        return may(action, one, two, database, source)

    db.set_authorizer(watch)
    db.execute("EXPLAIN " + query).close()
    db.set_authorizer(None)
    return read, called


def watch_clock(db: sqlite3.Connection, names: set[str]) -> list[str]:
    """A list that fills as functions of these names look at the clock. A value may be now: it shows when it runs."""
    looks: list[str] = []

    def watched(name: str) -> Callable[..., Cell]:
        plain = sqlite3.connect(":memory:")

        def function(*values: Cell) -> Cell:
            times = values[name == "strftime" :][: 2 if name == "timediff" else 1]
            texts = [time.decode("latin1") if type(time) is bytes else str(time) for time in times]
            if not texts or any(text.lower() in ("now", "subsec", "subsecond") for text in texts):
                looks.append(name)
            (found,) = plain.execute(f"SELECT {name}({', '.join('?' * len(values))})", values).fetchone()
            return found

        return function

    for name in names:
        db.create_function(name, -1, watched(name), deterministic=True)
    return looks


class Table:
    """What it takes to build a table again without the keys and indices that give its rows an order."""

    def __init__(self, db: sqlite3.Connection, name: str, sql: str) -> None:
        about = db.execute("SELECT name, type, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1", (name,)).fetchall()
        self.name, self.columns = quoted(name), [column for column, *_ in about]
        self.rows = db.execute("SELECT count(*) FROM " + self.name).fetchone()[0]
        self.listed = ", ".join(map(quoted, self.columns))
        # Only an index tells the collations of columns.
        db.execute(f'CREATE INDEX "every column" ON {self.name}({self.listed}) WHERE 0')
        rules = db.execute("SELECT coll FROM pragma_index_xinfo('every column') WHERE key").fetchall()
        self.rules = [rule for (rule,) in rules]
        db.execute('DROP INDEX "every column"')
        strict = "strict" in sql.rpartition(")")[2].lower()
        kinds = [affinity(declared.upper(), strict) for _, declared, _ in about]
        parts = zip(map(quoted, self.columns), kinds, self.rules, strict=False)
        self.defined = ", ".join(f"{column} {kind} COLLATE {rule}" for column, kind, rule in parts)
        first = "SELECT i.name FROM pragma_index_list(?) l, pragma_index_xinfo(l.name) i WHERE i.seqno = 0"
        found = {column for (column,) in db.execute(first, (name,))} | {column for column, _, pk in about if pk == 1}
        self.indexed = sorted(found - {None}) if self.rows > SMALL else []

    def shuffle(self, db: sqlite3.Connection) -> None:
        db.execute(f'CREATE TABLE "another order"({self.defined})')
        db.execute(f'INSERT INTO "another order" SELECT {self.listed} FROM {self.name} ORDER BY tie()')
        db.execute("DROP TABLE " + self.name)
        db.execute('ALTER TABLE "another order" RENAME TO ' + self.name)
        for column in self.indexed:
            db.execute(f"CREATE INDEX {quoted(f'{column} {self.name}')} ON {self.name}({quoted(column)})")


def affinity(declared: str, strict: bool) -> str:
    if "INT" in declared:
        return "INTEGER"
    if any(word in declared for word in ("CHAR", "CLOB", "TEXT")):
        return "TEXT"
    if "BLOB" in declared or not declared or (strict and declared == "ANY"):
        return "BLOB"
    return "REAL" if any(word in declared for word in ("REAL", "FLOA", "DOUB")) else "NUMERIC"


def vary(db: sqlite3.Connection, query: str, up: str, down: str, known: str, *texts: str) -> None:
    """A gold query in other orders: whether it asks the clock or chance, what up and down give, what all others do."""
    state = 1

    def tie() -> int:
        """The random key that the texts sort ties by."""
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return state >> 33

    def run(text: str, reverse: int) -> bytes:
        db.execute(f"PRAGMA reverse_unordered_selects = {reverse}")
        db.set_authorizer(may)
        try:
            rows = fetch(db, text)
            return items(b"l", rows if "ordered" in known else sorted(rows))
        finally:
            db.set_authorizer(None)

    def tried(text: str, reverse: int) -> bytes:
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
    words = "".join(c if c.isalnum() or c == "_" else " " for c in " ".join([query, *views]).lower())
    numbers = {"rowid", "oid", "_rowid_"} & set(words.split())
    tables = [table for table in tables if not numbers - {column.lower() for column in table.columns}]
    forms = list(texts)
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


def show(db: sqlite3.Connection) -> None:
    """Every table and view: its CREATE statement, the names of its columns and its first rows."""
    found = []
    listed = "FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
    for name, sql in db.execute("SELECT name, sql " + listed):
        try:
            cursor = db.execute(f"SELECT * FROM {quoted(name)} LIMIT {SHOWN}")
            rows = [[column[0] for column in cursor.description], *cursor]
        except sqlite3.Error:  # a view on what is gone, a module that is not here
            rows = []
        short = [[value[:200] if type(value) in (str, bytes) else value for value in row] for row in rows]
        shown = [items(b"l", list(map(cell, row))) for row in short]
        found.append(items(b"t", [cell(sql or name), items(b"l", shown)]))
    answer("rows", items(b"l", found))


def main() -> None:
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


if __name__ == "__main__":
    main()
