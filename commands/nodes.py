"""A Ray cluster as the commands meet it: the way in, its nodes, and the code that they run.

    nodes = joined("auto")            those that have a CPU, as Ray describes them; BadInput where there is no cluster
    raise as_fault(cause(why))        what a call raised at the other end

Left out: what is done there (cluster.py, graders.py).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from commands.console import note
from commands.player import Begun, as_fault
from commands.settings import Row
from faults import BadInput, Fault, GraderFault
from figures.numbers import plural

if TYPE_CHECKING:
    from ray import ObjectRef as Ref

PATIENCE = 10.0  # seconds that the others are waited for once one has begun
CONNECT = 5.0  # seconds that the head of a cluster has to answer
HERE = Path(__file__).parent.parent


def joined(address: str) -> list[Row]:
    """Connect, with the code of this program for the nodes: those that have a CPU, by name. The signals stay with those
    who have them."""
    try:
        import ray
    except ImportError:
        raise BadInput("--ray needs Ray: pip install -e '.[ray]' here and on the nodes") from None

    if address.startswith("ray://"):
        raise BadInput("--ray takes no ray:// address: start the command on a machine of the cluster, with auto")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    logging.getLogger("ray").setLevel(logging.CRITICAL)
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdigit():  # Ray itself would try for minutes
            socket.create_connection((host, int(port)), CONNECT).close()
        with tempfile.TemporaryDirectory() as folder:
            how = {"working_dir": str(packed(Path(folder)))}
            ray.init(address=address, runtime_env=how, log_to_driver=False, logging_level=logging.CRITICAL,
                     ignore_reinit_error=False, include_dashboard=False)  # fmt: skip
    except Exception as why:  # Ray raises what it likes where nobody answers, or another version does
        line = " ".join(str(why).split())[:200]
        raise BadInput(f"no cluster at --ray {address} ({line}): start one with `ray start --head`") from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
    if not nodes:
        raise GraderFault(f"no node of the cluster at {address} has a CPU to give: add one")
    return sorted(nodes, key=lambda node: str(node["NodeName"]))


async def begun_on(
    node: Row, workers: int | None, does: str, hire: Callable[[int], Ref]
) -> tuple[Ref, int, Begun] | Fault:
    """An actor that has begun on a node, its CPUs, and what its grader is; or why there is none, which is told.

    workers: the CPUs asked for, None for all; does: what it is for; hire: makes an actor of so many CPUs.
    """
    import ray

    has = int(node["Resources"]["CPU"])
    actor: Ref = None
    begun: Begun | Fault
    if workers and workers > has:
        begun = GraderFault(f"it has {plural(has, 'CPU')} and --workers asks for {workers}: give fewer")
    else:
        actor = hire(workers or has)
        try:
            begun = await actor.begin.remote()
        except ray.exceptions.RayError as why:
            begun = as_fault(cause(why))
    if isinstance(begun, Fault):
        if actor is not None:
            ray.kill(actor)
        note(f"warning: the node {node['NodeName']} does not {does}: {begun}")
        return begun
    return actor, workers or has, begun


async def first_of(
    beginning: set[asyncio.Task[Fault | None]], workers: int | None, has_one: Callable[[], bool]
) -> list[Fault]:
    """Wait for those that begin, for the slow ones not long once there is one; why others do not come."""
    waiting = beginning
    while waiting:
        _, waiting = await asyncio.wait(beginning, timeout=PATIENCE)
        if waiting and has_one():
            break
        if waiting:
            need = f"{workers} CPUs each" if workers else "all their CPUs"
            note(f"waiting for {plural(len(waiting), 'node')} to give {need}: --workers takes fewer")
    return [fault for one in beginning - waiting if (fault := one.result())]


def cause(why: Exception) -> BaseException:
    """What a call raised at the other end, out of Ray's wrapping."""
    inner = getattr(why, "cause", None)
    return inner if isinstance(inner, BaseException) else why


def packed(folder: Path) -> Path:
    """This program as a zip: what a node needs of it, and nothing that a run has written. No two are alike: Ray knows a
    package by its content, and one that a start has just left may be swept away under the next."""
    at = folder / "swarm-rescue.zip"
    with zipfile.ZipFile(at, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("start.txt", uuid4().hex)
        for path in sources():
            file.write(path, path.relative_to(HERE))
    return at


def sources() -> Iterator[Path]:
    yield from HERE.glob("*.py")
    for room in HERE.glob("*/__init__.py"):
        if room.parent.name not in ("tests", "bench"):
            yield from (path for path in room.parent.iterdir() if path.is_file())
