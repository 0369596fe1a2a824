"""The chunks of a page: their letters, and what may be packed once for several cuts."""

from __future__ import annotations

from base64 import b85encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasksets.task import Task, Test
from telling.browse import in_turn
from telling.packed import in_base85, measured
from telling.page import page
from tests.support.lay_out import attempt, base, config


@given(st.binary(max_size=50))
def test_base_85_is_that_of_the_standard_library(data: bytes):
    assert in_base85(data) == b85encode(data).decode()


def test_a_cut_that_touches_no_text_comes_to_the_same_chunk():
    task = Task("t", "T", "say " * 30, "stdio", (Test("1\n", "2\n"),), ())
    attempts = [attempt("t", "base", 0, n, code=f"print({n}" + " + 1" * 50 * n + ")") for n in range(3)]
    chunk, longest = measured(task, attempts, {}, 20_000)
    assert longest == max(len(a.code or "") for a in attempts)
    assert measured(task, attempts, {}, longest) == (chunk, longest)
    shorter, same = measured(task, attempts, {}, longest - 1)
    assert shorter != chunk and same == longest


@pytest.mark.slow
def test_a_page_is_the_same_in_whatever_order_attempts_were_made():
    import random

    from measure import measure

    made = [a for n in range(3) for a in base(f"t{n}", 0)]
    made += [
        attempt("t0", arm, 0, n, fitness=0.5, outcome=("timeout", "runtime_error")[n % 2])
        for arm in ("ring", "star")
        for n in range(4)
    ]
    conf = config()
    whole = page(measure(made, conf), made, [], conf)
    for seed in range(3):
        random.Random(seed).shuffle(made)
        assert page(measure(made, conf), made, [], conf) == whole
    assert [a.arm for a in sorted(made, key=in_turn)][:3] == ["base"] * 3
