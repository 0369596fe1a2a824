"""Tasks that share a long run of words with a benchmark are left out of the rows, counted and named."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults import BadInput
from rows.found import Choice
from rows.overlap import WORDS, Benchmarks, words_of
from tasksets.task import Task

TEXT = "You are given a string of n letters; print how many of its parts read the same from both of its ends."


def test_a_run_of_thirteen_words_is_shared_whatever_stands_between_them():
    known = Benchmarks(["Unrelated words. " * 20, f"Intro, {TEXT} Outro"])
    assert known.texts == 2
    assert known.shared(TEXT) == " ".join(words_of(TEXT)[:WORDS])
    assert known.shared(TEXT.upper().replace(" ", "\n  -- "))
    words = words_of(TEXT)
    assert known.shared("x " + " ".join(words[3 : 3 + WORDS]) + " y") == " ".join(words[3 : 3 + WORDS])
    assert not known.shared("x " + " ".join(words[3 : 2 + WORDS]) + " y")  # twelve of them
    assert not known.shared(" ".join(reversed(words)))
    assert not known.shared("") and not Benchmarks([]).shared(TEXT)


def test_a_short_text_is_compared_as_a_whole():
    known = Benchmarks(["Write a function to find the shared elements from the given two lists."])
    assert known.shared("Write a function to find the shared elements from the given two lists.")
    known = Benchmarks(["Write a python function to identify non-prime numbers."])
    assert known.shared("Write a python function to identify non-prime numbers.")
    assert not known.shared("Write a python function to identify prime numbers.")
    assert known.shared(
        "mbpp 5\nFive functions. Write a python function to identify non-prime numbers. And four more of them."
    )
    assert not Benchmarks(["Add two numbers."]).shared("Add two numbers.")  # everybody says that


def test_every_text_of_a_file_counts_in_whatever_form(tmp_path):
    rows = [{"a": {"b": ["short", TEXT]}, "n": 1}, {"a": None}]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "x.json").write_text(json.dumps(rows))
    (tmp_path / "x.txt").write_text(f"# title\n{TEXT}\n")
    pq.write_table(pa.table({"q": ["no", TEXT], "l": [["a"], [TEXT]]}), tmp_path / "x.parquet")
    for name in ("x.jsonl", "x.json", "x.txt", "x.parquet"):
        assert Benchmarks.read([tmp_path / name]).shared(TEXT), name


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", "{"), ("b.json", "["), ("c.txt", "too short"), ("d.parquet", "no")]
)
def test_what_is_no_benchmark_is_one_line(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    for path in (tmp_path / name, tmp_path / "none.jsonl"):
        with pytest.raises((BadInput, ValueError)) as why:
            Benchmarks.read([path])
        assert "\n" not in str(why.value)


def test_tasks_that_share_one_are_noted_once_and_the_others_stay():
    tasks = [
        Task(name, name, text, "stdio", ()) for name, text in (("a", TEXT), ("b", "Something else."), ("c", TEXT + "!"))
    ]
    choice = Choice([], benchmarks=Benchmarks([TEXT]))
    assert [choice.is_clean(task) for task in tasks * 2] == [False, True, False] * 2
    assert set(choice.dropped) == {"a", "c"}
    assert all(Choice([]).is_clean(task) for task in tasks)
