"""The one prompt of a text-to-SQL question: what every sample of it sees, and what a training row of it holds.

    asked(task)        the messages: the tables with their first rows, the question, what kind of answer
    question(seat)     the same as an arm: nothing is shown but the task

Pure. Left out: how a database is described (sql_calibrate.py), what a query is worth (grading/sql.py).
"""

from __future__ import annotations

from swarm import Prompt, Seat
from tasksets.task import Task

SYSTEM = "You write SQLite queries that answer questions about a database."
REQUEST = (
    "Write one SQLite query whose result answers the question: only the columns that it asks for, in its order. Put "
    "the query in a single ```sql block."
)


def asked(task: Task) -> Prompt:
    """The question and its database."""
    text = f"{task.statement.rstrip()}\n\n{REQUEST}"
    return Prompt([{"role": "system", "content": SYSTEM}, {"role": "user", "content": text}])


def question(seat: Seat) -> Prompt:
    """What every sample sees, whatever others have written."""
    return asked(seat.task)
