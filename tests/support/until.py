"""A test that waits says for what and for how long, so that none waits for ever.

    until(lambda: path.exists())        within two minutes, or the test fails

Left out: what waits by itself (a queue, a process) has a timeout of its own.
"""

import time
from collections.abc import Callable


def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Look again and again, ten times a second."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"still not so after {seconds:g} s"
        time.sleep(0.1)
