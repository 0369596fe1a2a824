"""What the text of a query says: whether it is one statement that reads, and where the order of its rows is left open.

    is_query(text)      whether it is one query; None where its tokens do not tell
    Form(query, width)  what a gold query says about its order, and its text with every tie decided one way or another

Tokens, levels of brackets, and texts put in between; a tree (sqlglot's) is only asked whether no order can matter.

Left out: running any of it (sql.py, sql_inside.py); the query in a reply.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokens import Token


def _tokens(text: str) -> list[Token] | None:
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


def _word(token: Token) -> str:
    """A token in capitals; a quoted one says nothing, whatever stands in the quotes."""
    kind = token.token_type.name
    return "" if "STRING" in kind or kind == "IDENTIFIER" else " ".join(token.text.upper().split())


_SETS = {"UNION", "EXCEPT", "INTERSECT"}
_ENDS_COLUMNS = {"FROM", "WHERE", "GROUP BY", "HAVING", "WINDOW", "ORDER BY", "LIMIT", *_SETS}
_FRAMES = {"ROWS", "RANGE", "GROUPS"}
_PLACES = {"ROW_NUMBER", "NTILE", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"}  # rows that tie do not get one value
_BY_ORDER = {"LIMIT", "ORDER BY", "OVER", "COLLATE", "GROUP_CONCAT", "STRING_AGG", "JSON_GROUP_ARRAY",
             "JSON_GROUP_OBJECT", "JSONB_GROUP_ARRAY", "JSONB_GROUP_OBJECT"}  # fmt: skip


def _is_grouped(select: exp.Select) -> bool:
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


def _takes_no_row(select: exp.Select) -> bool:
    """Whether a SELECT is no single value, or a sum over all its rows, of which there is one."""
    from sqlglot import exp

    value: exp.Expression = select
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
                # Edits only put in, so the name of the window stays, in a comment behind what it stands for.
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
