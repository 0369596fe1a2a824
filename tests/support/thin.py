"""Many cases of one kind: some in the quick suite, all of them in the slow one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(cases: Iterable[Any], every: int, several: bool = False) -> list[Any]:
    """Cases for `parametrize`, all but one of so many marked slow. several: a case is a tuple of arguments."""
    return [
        pytest.param(*(case if several else (case,)), marks=[pytest.mark.slow] if n % every else [])
        for n, case in enumerate(cases)
    ]


def chosen(session: pytest.Session, *names: str) -> list[dict[str, Any]]:
    """The parameters of the cases of some tests that this run has chosen."""
    return [item.callspec.params for item in session.items if getattr(item, "originalname", "") in names]
