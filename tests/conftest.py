"""What all tests share: graders that do not test themselves."""

from __future__ import annotations

import contextlib
import gc
import os
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

import grader

# A busy machine is no fault of a property; and who checks all looks longer than who has changed a line.
settings.register_profile("unhurried", deadline=None, max_examples=100 if os.environ.get("CI") else 30)
settings.load_profile("unhurried")

# Files that take minutes in the slow suite. They go first, so that no worker is left alone with one at the end.
LONG = {"test_attacks", "test_beside", "test_chaos", "test_linear", "test_run", "test_tasks", "test_underway"}

TESTS_IT = {"tests.test_grader", "test_grader"}


@pytest.fixture(autouse=True)
def graders_start_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The self-test has tests of its own, in test_grader.py; elsewhere it costs each grader a third of a second."""
    if request.module.__name__ not in TESTS_IT:
        monkeypatch.setattr(grader, "SELF_TEST", ())


def pytest_sessionstart(session: pytest.Session) -> None:
    """Every second worker begins with the last file: in a fresh clone each then compiles half of them, and takes what
    the other one has compiled. A file that cannot be imported is told where it is collected."""
    odd = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2
    if odd and session.config.args == session.config.getini("testpaths"):
        for path in sorted(Path(__file__).parent.glob("test_*.py"), reverse=True):
            with contextlib.suppress(Exception):
                import_module(f"tests.{path.stem}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.stem not in LONG)


def pytest_collection_finish() -> None:
    """What collecting left stays: 3,000 tests later every full collection would still walk over it."""
    gc.collect()
    gc.freeze()
