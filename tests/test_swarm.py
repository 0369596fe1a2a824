"""The arms by hand-worked traces, and that nothing hidden reaches a prompt."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm import ARMS, PLAIN, Attempt, Slot, Style, bare, refine, same_program, swarm
from tasksets.task import Task, Test

TASK = Task(
    "t",
    "Title",
    "Add the numbers.",
    "stdio",
    visible=tuple(Test(f"{i} 1\n", f"{i + 1}\n") for i in range(5)),
    hidden=(Test("HIDDEN-IN 7\n", "HIDDEN-OUT 8\n", "private"),),
)


def attempt(slot: Slot, score: int | None, prompt=None, of: int = 5, **more) -> Attempt:
    letters = "N" * of if score is None else "P" * score + "W" * (of - score)
    return Attempt(
        *slot,
        parent=prompt and prompt.parent and prompt.parent.within_task(),
        social=prompt and prompt.social and prompt.social.within_task(),
        code=None if score is None else f"print({slot.round}, {slot.particle})\n",
        fitness=(score or 0) / of,
        visible_passed=score or 0,
        visible_total=of,
        visible_tests=letters,
        got="no_code" if score is None else "17\n",
        **more,
    )


def trace(arm: str, *scores: list[int | None], task: Task = TASK, seed: int = 0):
    """Play scripted scores; (prompts, parent, social) by round, slots as (round, particle)."""
    flow = swarm(task.shown(), ARMS[arm], arm, len(scores[0]), len(scores) + 1, seed=seed)
    asks, rounds = next(flow), []
    for row in (*scores, [0] * len(scores[0])):
        rounds.append([prompt for _, prompt in asks])
        try:
            asks = flow.send([attempt(slot, n, prompt) for (slot, prompt), n in zip(asks, row, strict=True)])
        except StopIteration:
            break
    at = lambda slot: slot and (slot.round, slot.particle)  # noqa: E731
    return (
        rounds,
        [[at(p.parent) for p in prompts] for prompts in rounds],
        [[at(p.social) for p in prompts] for prompts in rounds],
    )


FIRST, SECOND = [2, 1, 0, 3, 2, 0, 1, 4], [2, 0, 1, 1, 0, 0, 0, 2]
NOBODY = [None] * 8
OWN_AFTER_0 = [(0, i) for i in range(8)]
# after round 1 the own best is new for 0 (a tie), 2 and 5 (a tie)
OWN_AFTER_1 = [(1, 0), (0, 1), (1, 2), (0, 3), (0, 4), (1, 5), (0, 6), (0, 7)]


def seen(particles: list[int], own: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [own[i] for i in particles]


@pytest.mark.parametrize(
    ("arm", "parents", "socials"),
    [
        ("resample", [NOBODY] * 3, [NOBODY] * 3),
        ("solo", [NOBODY, OWN_AFTER_0, OWN_AFTER_1], [NOBODY] * 3),
        (
            "ring",
            [NOBODY, OWN_AFTER_0, OWN_AFTER_1],
            [NOBODY, seen([7, 0, 3, 4, 3, 4, 7, 0], OWN_AFTER_0), seen([7, 0, 3, 4, 3, 4, 7, 0], OWN_AFTER_1)],
        ),
        (
            "star",
            [NOBODY, OWN_AFTER_0, OWN_AFTER_1],
            [NOBODY, seen([7] * 7 + [3], OWN_AFTER_0), seen([7] * 7 + [3], OWN_AFTER_1)],
        ),
    ],
)
def test_golden_trace(arm, parents, socials):
    prompts, parent, social = trace(arm, FIRST, SECOND)
    assert parent == parents
    assert social == socials
    plain = bare(TASK.shown(), PLAIN).messages
    fresh = prompts[0] if arm != "resample" else [p for row in prompts for p in row]
    assert all(prompt.messages == plain for prompt in fresh)


def test_ties_fall_by_a_seeded_lot():
    scores = [0, 2, 2, 1, 0, 0, 3, 0]
    ring, star = set(), set()
    for k in range(60):
        task = replace(TASK, id=f"t{k}")
        _, _, social = trace("ring", scores, task=task)
        assert social == trace("ring", scores, task=task)[2]
        assert [s[1] for s in social[1][:6]] == [1, 2, 1, 2, 3, 6]
        ring.add(social[1][6][1])
        _, _, social = trace("star", scores, task=task)
        assert [s[1] for i, s in enumerate(social[1]) if i != 6] == [6] * 7
        star.add(social[1][6][1])
    assert ring == {5, 7}
    assert star == {1, 2}


@pytest.mark.parametrize("arm", ["ring", "star"])
def test_small_swarms(arm):
    _, parent, social = trace(arm, [3])
    assert parent[1] == [(0, 0)] and social[1] == [None]
    assert trace(arm, [1, 2])[2][1] == [(0, 1), (0, 0)]
    assert trace(arm, [1, 2, 3])[2][1] == [(0, 2), (0, 2), (0, 1)]


@pytest.mark.parametrize("arm", ["solo", "ring", "star"])
def test_an_attempt_without_a_program_is_said_so(arm):
    prompts, parent, _ = trace(arm, [None, 0, 0])
    text = prompts[1][0].messages[-1]["content"]
    assert "Your best program so far: no program found." in text
    assert parent[1] == [(0, 0), (0, 1), (0, 2)]


def test_all_zero_goes_on():
    _, parent, social = trace("star", [0] * 8, [0] * 8)
    assert parent[2] == [(1, i) for i in range(8)]  # a tie goes to the newer
    assert all(slot[1] != i for i, slot in enumerate(social[2]))


def test_an_arm_stops_after_the_round_of_its_first_pass():
    for stop, rounds in ((True, 2), (False, 4)):
        flow = swarm(TASK.shown(), ARMS["solo"], "solo", 2, 4, stop=stop)
        asks, played = next(flow), 1
        with pytest.raises(StopIteration):
            while True:
                asks = flow.send(
                    [attempt(slot, 5, passed=slot.round == 1 and i == 1) for i, (slot, _) in enumerate(asks)]
                )
                played += 1
        assert played == rounds


def test_round_0_may_be_shared():
    flow = swarm(TASK.shown(), ARMS["star"], "star", 2, 2, first="round0")
    assert {slot.arm for slot, _ in next(flow)} == {"round0"}
    asks = flow.send([attempt(Slot("t", "round0", 0, 0, i), i) for i in range(2)])
    assert [slot.arm for slot, _ in asks] == ["star"] * 2
    assert asks[0][1].social == Slot("t", "round0", 0, 0, 1)


def test_seeds_are_apart():
    """One and the same prompt is asked under 8 + 24 + 2 x 24 different seeds, the same in every repeat."""
    slots = [Slot("t", "base", 0, 0, i) for i in range(8)]
    slots += [Slot("t", "resample", k, r, i) for k in range(3) for r in range(3) for i in range(8)]
    seeds = [slot.seed(0) for slot in slots]
    assert len(set(seeds)) == 80
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert Slot("t", "base", 0, 0, 0).seed(0) != Slot("t", "base", 0, 0, 0).seed(1)


def test_no_comments_adds_one_line_and_changes_no_other_byte():
    own = attempt(Slot("t", "solo", 0, 0, 0), 2)
    for plain, more in (
        (bare(TASK, PLAIN), bare(TASK, Style(no_comments=True))),
        (refine(TASK, own, None, PLAIN), refine(TASK, own, None, Style(no_comments=True))),
    ):
        one, two = (prompt.messages[-1]["content"].split("\n") for prompt in (plain, more))
        assert two == [*one, "Write no comments in the code."]
        assert plain.messages[0] == more.messages[0]


def test_the_system_prompt_can_be_replaced_and_left_out():
    assert bare(TASK, Style(system="Be brief.")).messages[0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in bare(TASK, Style(system="")).messages] == ["user"]


def test_a_full_visible_score_is_said_and_no_hidden_failure():
    own = attempt(Slot("t", "solo", 0, 0, 0), 5)
    text = refine(TASK, own, own, PLAIN).messages[-1]["content"]
    assert text.count("passes every shown test") == 2
    assert "inputs not shown" in text
    assert "hidden" not in text.lower()


def test_the_clip_is_shown_around_the_first_difference():
    visible = (Test("1\n", "x" * 1000 + "RIGHT"),)
    task = replace(TASK, visible=visible)
    own = replace(attempt(Slot("t", "solo", 0, 0, 0), 0, of=1), got="…" + "x" * 150 + "WRONG", got_start=850)
    text = refine(task, own, None, PLAIN).messages[-1]["content"]
    assert "…" + "x" * 150 + "RIGHT\n" in text
    assert "…" + "x" * 150 + "WRONG\n" in text


def test_an_outcome_stands_in_the_place_of_an_answer():
    own = replace(attempt(Slot("t", "solo", 0, 0, 0), 0), visible_tests="TPPPP", got="timeout")
    assert "It ended without an answer: timeout." in refine(TASK, own, None, PLAIN).messages[-1]["content"]


def test_a_program_with_backticks_stays_in_its_fence():
    own = replace(attempt(Slot("t", "solo", 0, 0, 0), 1), code='print("""```\n""")')
    text = refine(TASK, own, None, PLAIN).messages[-1]["content"]
    assert '````python\nprint("""```\n""")\n````\n' in text


@given(
    scores=st.lists(st.lists(st.integers(0, 5), min_size=4, max_size=4), min_size=2, max_size=2),
    arm=st.sampled_from(list(ARMS)),
    hidden=st.text(max_size=5),
    passed=st.lists(st.booleans(), min_size=12, max_size=12),
    letters=st.text("PWRT", max_size=3),
)
def test_nothing_hidden_changes_a_byte_of_any_prompt(scores, arm, hidden, passed, letters):
    def prompts(task: Task, **grades) -> list[str]:
        flow = swarm(task.shown(), ARMS[arm], arm, 4, 3, stop=False)
        asks, out, flags = next(flow), [], iter(grades.pop("passed", [False] * 12))
        for row in (*scores, [0] * 4):
            out += [prompt.sha() for _, prompt in asks]
            try:
                asks = flow.send(
                    [attempt(slot, n, passed=next(flags), **grades) for (slot, _), n in zip(asks, row, strict=True)]
                )
            except StopIteration:
                break
        return out

    other = replace(TASK, hidden=(Test(hidden, hidden, "private"),))
    seen = prompts(TASK)
    assert seen == prompts(other, passed=passed, hidden_tests=letters, hidden_passed=len(letters), hidden_total=9)
    assert len(seen) == 12


def test_no_prompt_holds_a_hidden_test():
    prompts, _, _ = trace("star", FIRST, SECOND)
    assert not any("HIDDEN" in message["content"] for row in prompts for p in row for message in p.messages)
    assert TASK.shown().hidden == ()


def test_equal_programs_up_to_blanks_and_line_ends():
    program = "def f():\n    return 1\n\nprint(f())\n"
    same = ["def f():  \r\n    return 1\r\n\r\nprint(f())", "def f():\n\n    return 1\n   \nprint(f())\n\n\n"]
    assert {same_program(text) for text in [program, *same]} == {same_program(program)}
    assert same_program(program.replace("()", "() # one")) != same_program(program)
    assert same_program("if a:\n  b\n") != same_program("if a:\nb\n")
