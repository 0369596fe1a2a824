"""Graders on the nodes of a Ray cluster, in the place of one: for commands that grade and ask nothing.

    async with grader_for(args.ray, args.workers, as_published) as grader:    one here, or with --ray one on each node
        results = await grader.run(code, tests)

What is to be graded goes to the node that has least to do for its cores; the tests of a task travel once a node. Where
a node dies, what it had is graded elsewhere: a grade asks nobody and changes nothing.

Left out: playing tasks (cluster.py); nodes that join later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, cast

from commands.console import busy, note
from commands.nodes import begun_on, cause, first_of, joined
from commands.player import Begun, as_fault
from commands.settings import Row
from faults import Fault, GraderFault, gravest
from figures.numbers import plural
from grader import Grader
from grading.grade import TestResult
from tasksets.task import Test

if TYPE_CHECKING:
    from ray import ObjectRef as Ref

    from grader import _Job as Job
    from grading.sandbox import Limits, Output

PATIENCE = 10.0  # seconds that a grader has to end
KEPT = 64  # tests of tasks that lie ready for all nodes


def grader_for(ray: str | None, workers: int | None, as_published: bool) -> Grader:
    """To be entered. workers: processes, on each node where there are nodes; None for one a core."""
    return Graders(ray, workers, as_published) if ray else Grader(workers, as_published)


@dataclass(eq=False)
class _Node:
    name: str
    actor: Ref
    cores: int
    tasks: int = 0  # that it has
    is_alive: bool = True


class NodeGrader(Grader):
    """The grader of a node, as an actor of Ray."""

    async def begin(self) -> Begun | Fault:
        try:
            await self.__aenter__()
        except Exception as why:
            return as_fault(why)
        return Begun(self.tier, self.rules, self.remarks)

    async def do(self, what: str, *given: object) -> object:
        """What that comes to, or the fault that it raised."""
        try:
            return await getattr(self, what)(*given)
        except Exception as why:
            return as_fault(why)

    async def stop(self) -> None:
        await self.__aexit__()


class Graders(Grader):
    """Stands where a grader does. Raises BadInput where there is no cluster, GraderFault where no node can grade."""

    def __init__(self, address: str, workers: int | None, as_published: bool) -> None:
        super().__init__(workers, as_published)
        self.address, self._asked = address, workers
        self._nodes: list[_Node] = []
        self._beginning: set[asyncio.Task[Fault | None]] = set()
        self._ready: dict[Hashable, Ref] = {}
        self._rules = ""
        self._remarks: list[str] = []

    @property
    def remarks(self) -> list[str]:
        return self._remarks

    @property
    def rules(self) -> str:
        return self._rules

    async def __aenter__(self) -> Self:
        with busy(f"joining the cluster at {self.address}"):
            there = joined(self.address)
            self._beginning = {asyncio.create_task(self._begin(node)) for node in there}
            faults = await first_of(self._beginning, self._asked, lambda: bool(self._nodes))
        if not self._nodes:
            await self.__aexit__()
            raise gravest(faults)
        self.workers = sum(node.cores for node in self._nodes)
        some = f"{len(self._nodes)} of " if len(self._nodes) < len(there) else ""
        note(f"{some}{plural(len(there), 'node')} grade, with {plural(self.workers, 'worker')}")
        return self

    async def _begin(self, row: Row) -> Fault | None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        name, here = str(row["NodeName"]), NodeAffinitySchedulingStrategy(row["NodeID"], soft=False)

        def hire(cores: int) -> Ref:
            made = ray.remote(NodeGrader).options(num_cpus=cores, scheduling_strategy=here, max_concurrency=100_000)
            return made.remote(cores, self.as_published)

        there = await begun_on(row, self._asked, "grade", hire)
        if isinstance(there, Fault):
            return there
        actor, cores, begun = there
        if self.tier and (begun.tier, begun.rules) != (self.tier, self.rules):
            note(f"warning: the node {name} grades under tier {begun.tier}, {begun.rules}; others under {self.tier}")
        self.tier, self._rules = self.tier or begun.tier, self._rules or begun.rules
        self._remarks = list(dict.fromkeys([*self._remarks, *begun.remarks]))
        self._nodes.append(_Node(name, actor, cores))
        return None

    async def __aexit__(self, *raised: object) -> None:
        import ray

        self._closed = True
        for beginning in self._beginning:
            beginning.cancel()
        await asyncio.gather(*self._beginning, return_exceptions=True)
        ends = [asyncio.ensure_future(_ended(node.actor)) for node in self._nodes if node.is_alive]
        if ends:
            await asyncio.wait(ends, timeout=PATIENCE)
        for end in ends:
            end.cancel()
        with contextlib.suppress(Exception):  # whatever it finds wrong now, all is on disk
            for node in self._nodes:
                ray.kill(node.actor)
            ray.shutdown()

    # ── what a grader does on a worker of its own ────────────────────────────────────────────────────────────────────

    async def _run(self, job: Job, groups: Sequence[Sequence[Test]]) -> list[TestResult]:
        return cast("list[TestResult]", await self._done("_run", job, self._put(groups)))

    async def _outputs(self, program: str, inputs: list[bytes], limits: Limits, retry: bool = True) -> list[Output]:
        return cast("list[Output]", await self._done("_outputs", program, inputs, limits, retry))

    def _put(self, groups: Sequence[Sequence[Test]]) -> Ref:
        """Where every node finds it."""
        import ray

        key = tuple(map(tuple, groups))
        if key not in self._ready:
            if len(self._ready) == KEPT:
                del self._ready[next(iter(self._ready))]  # calls under way hold theirs
            self._ready[key] = ray.put(groups)
        return self._ready[key]

    async def _done(self, verb: str, *given: object) -> object:
        import ray

        while True:
            alive = [node for node in self._nodes if node.is_alive]
            if not alive:
                raise GraderFault("no node of the cluster is left: the same command goes on, from what is on disk")
            node = min(alive, key=lambda node: node.tasks / node.cores)
            node.tasks += 1
            try:
                done: object = await node.actor.do.remote(verb, *given)
            except ray.exceptions.RayTaskError as why:
                raise as_fault(cause(why)) from None
            except ray.exceptions.RayError:
                if node.is_alive:
                    node.is_alive = False
                    note(f"warning: the node {node.name} is gone: what it had is graded elsewhere")
                continue
            finally:
                node.tasks -= 1
            if isinstance(done, Fault):
                raise done
            return done


async def _ended(actor: Ref) -> None:
    with contextlib.suppress(Exception):  # it is killed then
        await actor.stop.remote()
