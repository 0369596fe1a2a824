"""Text-to-SQL by hand: every gold query against itself, and recorded predictions against their recorded match.

    python bench/sql.py FOLDER [--seconds]

FOLDER holds databases/*.sqlite, pairs.jsonl ({id, db_id, gold_sql: [query, ...]}), and predictions as .jsonl
({pair_id, sql, bird_ex}), bird_ex being whether the two sets of rows were equal. It prints what is flagged, every gold
query that does not match itself, the differences by reason, and the curve of the predictions: a real calibration for
no calls. --seconds: what a query costs, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from grader import Grader
from grading.extract import extract_sql
from grading.sql import Bench, Gold, Result, SqlGrade, worth
from grading.sql_compare import same_rows
from sql_calibrate import BUCKETS, correlation
from telling.curves import areas, bucket_table, curve
from telling.words import hill_line


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reason(said: bool, found: bool, text: str, gold: Gold, result: Result) -> str:
    """Why a recorded comparison of sets and ours differ."""
    if said == found:
        return ""
    if extract_sql(text) != text.strip().rstrip("; \n"):
        return "the query stands in a fence"
    rows = result.rows or []
    for answer in gold.answers:
        if set(answer.rows) == set(rows):
            return "another order" if same_rows(answer.rows, rows) else "as often as in the gold: multiset"
        if found and same_rows(answer.rows, rows):
            return "numbers within 1e-6"
    return "unexplained"


async def compare(folder: Path, seconds: bool) -> None:
    pairs = {pair["id"]: pair for pair in lines(folder / "pairs.jsonl")}
    golds: dict[str, Gold] = {}
    at_once = asyncio.Semaphore(8)

    def database(pair: dict[str, Any]) -> str:
        return str(folder / "databases" / f"{pair['db_id']}.sqlite")

    async def one_gold(bench: Bench, pair: dict[str, Any]) -> list[str]:
        async with at_once:
            gold = golds[pair["id"]] = await bench.gold(database(pair), pair["gold_sql"])
            if gold.flag:
                return []
            found = [(query, worth(gold, await bench.ask(database(pair), query))) for query in pair["gold_sql"]]
            # Of several gold queries, one that finds nothing is no answer.
            return [query for query, grade in found if grade[:2] != (True, 1.0)]

    async def one_prediction(bench: Bench, row: dict[str, Any]) -> tuple[str, SqlGrade, str]:
        async with at_once:
            gold, query = golds[row["pair_id"]], extract_sql(row["sql"] or "")
            result = (
                Result(None, "no_code") if query is None else await bench.ask(database(pairs[row["pair_id"]]), query)
            )
            grade = worth(gold, result)
            why = "" if grade.flag else reason(row["bird_ex"] == 1, grade.exact_match is True, row["sql"], gold, result)
            return row["pair_id"], grade, why

    async with Grader() as grader:
        bench = Bench(grader)
        began = time.monotonic()
        wrong = await asyncio.gather(*(one_gold(bench, pair) for pair in pairs.values()))
        queries = sum(len(pair["gold_sql"]) for pair in pairs.values())
        took = time.monotonic() - began
        print(f"{len(pairs):,} questions, {queries:,} gold queries in {took:.0f} s, tier {grader.tier}")
        print("flags:", dict(Counter(gold.flag for gold in golds.values())))
        print("gold queries that do not match themselves:", [query for some in wrong for query in some] or "none")
        rows = [row for path in sorted(folder.glob("*predictions*.jsonl")) for row in lines(path)]
        began = time.monotonic()
        graded = await asyncio.gather(*(one_prediction(bench, row) for row in rows))
        print(f"{len(rows):,} predictions in {time.monotonic() - began:.0f} s")
        kept = [(grade.cell_f1 or 0.0, grade.exact_match is True, pair) for pair, grade, _ in graded if not grade.flag]
        print(f"{len(kept):,} of them on questions without a flag; differences:")
        for why, n in Counter(why for *_, why in graded if why).most_common():
            print(f"  {n:4}  {why}")
        made = curve(kept, BUCKETS)
        print("\n".join(["", *bucket_table("cell F1", made, "predictions that match", "prediction"), "", *areas(made)]))
        print(hill_line("fitness", made))
        both = {pair for _, _, pair in kept if len({exact for _, exact, other in kept if other == pair}) == 2}
        print(
            "\n".join(
                bucket_table(f"{len(both)} tasks with both", curve([one for one in kept if one[2] in both], BUCKETS))
            )
        )
        print("mean F1 of a question's wrong predictions against its pass rate:", correlation(kept))
        if seconds:
            for name in ("superhero", "toxicology"):
                began = time.monotonic()
                for i in range(50):
                    await bench.ask(str(folder / "databases" / f"{name}.sqlite"), f"SELECT {i}")
                print(f"{name}: {(time.monotonic() - began) / 50 * 1000:.1f} ms a query, one after the other")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", action="store_true")
    a = parser.parse_args()
    asyncio.run(compare(a.folder, a.seconds))
