"""Servers as they are: what each says, and what becomes of the attempts, in a table a kind.

The server is tests/support/odd_endpoint.py. A draw ends in one of four ways and every row names its own: answered
(after so many tries), final for its prompt, owed, or the end of the run with its reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import endpoint
import run as recipe
from asking import server as connections
from asking.body import body_of
from asking.events import told_apart
from asking.failed import judged, reset_after
from asking.reply import BROKEN, CUT, WHOLE, WITHHELD, read
from commands import sampling
from commands.sampling import aloud
from endpoint import Policy, Reply
from faults import EndpointFault
from records import Folder
from swarm import ARMS, Attempt, swarm
from tasksets.task import Task, Test
from tests.support import odd_endpoint
from tests.support.odd_endpoint import (
    Odd,
    OddEndpoint,
    Room,
    after,
    always,
    error,
    finish,
    first,
    on,
    standing,
    streamed,
)
from tests.support.thin import thinned
from tests.test_endpoint import (
    ask,
    draws,
    events,
    every_try_is_accounted_for,
    faulting,
    heard,
    run,
    short_waits,  # noqa: F401
)

PROGRAM = "```python\nprint(int(input()) + 1)\n```"
HALF = "```python\nprint(int(inp"


@pytest.fixture(scope="module")
def server() -> Iterator[OddEndpoint]:
    with standing() as odd:
        yield odd


def asked(room: Room | list[Room], *texts: str, probe: bool = True, **how: Any) -> list[str]:
    """Each text drawn in turn: the reply's text, its finish_reason where it has none, or the fault's kind."""

    async def act(policy: Policy) -> list[str]:
        said = []
        for k, text in enumerate(texts):
            try:
                reply = await policy.draw(ask(text), k)
                said.append(reply.text or reply.finish_reason)
            except EndpointFault as fault:
                said.append(fault.kind)
        return said

    rooms = room if isinstance(room, list) else [room]
    return run("", act, probe, base_urls=[each.url for each in rooms], **how)


def probed(room: Room | list[Room], **how: Any) -> endpoint.Probe:
    rooms = room if isinstance(room, list) else [room]
    return run("", lambda policy: policy.probe(), False, base_urls=[each.url for each in rooms], **how)


# ── a request that hangs ─────────────────────────────────────────────────────────────────────────────────────────────


def lonely_hang(server: OddEndpoint, n: int, seconds: float) -> Room:
    """n prompts, of which one hangs the first time, under the proportions of the default flags."""
    room = server.room(Odd(how="hang"), when=lambda k, prompt: k == n // 2)
    replies = run(room.url, draws(n), concurrency=8, request_timeout=seconds, give_up_after=seconds)
    assert len(replies) == n == room.good and len(room.prompts) == n + 1
    (row,) = events("retry")
    assert row["possibly_billed"] and "no complete answer" in row["error"]
    every_try_is_accounted_for()
    return room


@pytest.mark.slow
def test_one_request_that_hangs_ends_no_run(server: OddEndpoint):
    lonely_hang(server, 40, 2.0)


@pytest.mark.slow
def test_one_hung_request_in_two_thousand(server: OddEndpoint):
    lonely_hang(server, 2000, 3.0)


@pytest.mark.slow
def test_the_last_request_may_hang_too(server: OddEndpoint):
    """Nothing else is asked meanwhile, so nothing is answered either."""
    room = server.room(Odd(how="hang"), when=lambda k, prompt: k == 2)
    assert asked(room, "a", "b", "c", request_timeout=1, give_up_after=1) == ["a", "b", "c"]


@pytest.mark.slow
def test_many_that_hang_end_no_run_while_others_are_answered(server: OddEndpoint):
    seen: set[str] = set()

    def once(n: int, prompt: str) -> bool:
        return prompt.startswith("p") and prompt not in seen and not seen.add(prompt)  # type: ignore[func-returns-value]

    room = server.room(Odd(how="hang"), when=once)

    async def act(policy: Policy) -> list[str]:
        async def others() -> None:
            for k in range(10**6):
                await policy.draw(ask("other"), k)
                await asyncio.sleep(0.02)

        beside = [asyncio.create_task(others()) for _ in range(3)]
        try:
            return [reply.text for reply in await asyncio.gather(*(policy.draw(ask(f"p{k}"), k) for k in range(12)))]
        finally:
            for task in beside:
                task.cancel()

    said = run(room.url, act, concurrency=16, request_timeout=1, give_up_after=1)
    assert said == [f"p{k}" for k in range(12)]


def test_a_server_on_which_everything_hangs_ends_the_run(server: OddEndpoint):
    room = server.room(Odd(how="hang"), when=after(3))
    fault = faulting(room.url, draws(20), concurrency=3, request_timeout=0.7, give_up_after=0.7)
    assert fault.kind == "gave_up" and "nothing answered" in str(fault) and room.good == 3


# ── words that end an answer ─────────────────────────────────────────────────────────────────────────────────────────


def choice(word: Any, text: str = PROGRAM) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": word}]}


def test_the_words_of_a_whole_answer_and_of_a_cut_one():
    for word in ("stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence", "tool_calls", "COMPLETE",
                 "FinishReason.STOP"):  # fmt: skip
        assert read(choice(word)).finish_reason == word and word.lower().rpartition(".")[2] in WHOLE
    for word in ("length", "max_tokens", "MAX_TOKENS", "model_length", "model_context_window_exceeded"):
        assert read(choice(word)).finish_reason == "length" and word.lower() in CUT
    assert not (WHOLE | CUT) & (WITHHELD | BROKEN) and not WHOLE & CUT and not WITHHELD & BROKEN


@pytest.mark.parametrize("word", ["network_error", "engine_overloaded", "timeout", "cancelled", "unknown", "abort",
                                  "error", "insufficient_system_resource", "brand_new", "", None])  # fmt: skip
def test_a_word_that_says_nothing_good_is_tried_again(word: str | None, server: OddEndpoint):
    room = server.room(finish(word, HALF), when=first(2))
    assert asked(room, PROGRAM) == [PROGRAM] and len(room.prompts) == 3
    assert all(repr(word or None) in row["error"] and row["possibly_billed"] for row in events("retry"))


@pytest.mark.slow
def test_a_word_that_stays_bad_leaves_its_attempt_owed_by_name(server: OddEndpoint):
    room = server.room(finish("network_error", HALF), when=on("poison"))

    async def act(policy: Policy) -> str:
        async def others() -> None:
            for k in range(10**6):
                await policy.draw(ask("fine"), k)

        beside = asyncio.create_task(others())
        try:
            with pytest.raises(EndpointFault) as caught:
                await policy.draw(ask("poison"), 1)
            return f"{caught.value.kind} {caught.value}"
        finally:
            beside.cancel()

    assert run(room.url, act).startswith("attempt ")
    (row,) = events("fault")
    assert "finish_reason 'network_error'" in row["error"]


@pytest.mark.parametrize("text", ["", HALF, PROGRAM])
def test_an_error_beside_a_choice_is_no_answer(text: str, server: OddEndpoint):
    def beside(good: dict[str, Any]) -> dict[str, Any]:
        message = {"message": {"content": text}, "finish_reason": "stop"}
        return {**good, "choices": [{**message, "error": {"code": 502, "message": "upstream lost"}}]}

    room = server.room(Odd(body=beside), when=first(2))
    assert asked(room, PROGRAM) == [PROGRAM]
    assert [(row["status"], "upstream lost" in row["error"]) for row in events("retry")] == [(502, True)] * 2


@pytest.mark.parametrize("word", ["content_filter", "sensitive", "SAFETY", "content_filter: RECITATION", "refusal"])
def test_what_is_withheld_is_refused_and_never_half_an_answer(word: str, server: OddEndpoint):
    room = server.room(finish(word, HALF), when=on("poison"))
    assert asked(room, "fine", "poison", "fine") == ["fine", "refused", "fine"]
    assert room.prompts.count("poison") == endpoint.REFUSALS and word in events("fault")[0]["error"]
    assert asked(server.room(finish(word, HALF), when=first(1)), PROGRAM) == [PROGRAM]  # of this sample, not the prompt


def test_a_server_without_finish_reason_is_taken_with_one_warning(server: OddEndpoint):
    for word in (None, "", "new_word_for_stop"):
        room = server.room(finish(word), when=always)
        room.odd, room.when = finish(word), lambda n, prompt: True
        assert asked(room, "one", "two", model="odd-model") == ["one", "two"] and not events("retry")
        (warning,) = probed(room, model="odd-model").warnings
        assert "finish_reason" in warning and "cut" in warning
    room = server.room(finish("network_error"), when=lambda n, prompt: True)
    assert faulting(room.url, draws(1), give_up_after=0.2).kind == "unreachable"

    def gone(good: dict[str, Any]) -> dict[str, Any]:
        return {**good, "choices": [{"message": good["choices"][0]["message"]}]}

    assert asked(server.room(Odd(body=gone), when=lambda n, prompt: True), "one") == ["one"]


def test_where_no_word_tells_a_cut_the_tokens_do():
    usage = {"usage": {"prompt_tokens": 5, "completion_tokens": 99}}
    assert read(choice(None) | usage, taken={None}, most=99).finish_reason == "length"
    assert read(choice(None) | usage, taken={None}, most=100).finish_reason == "unknown"


# ── too long, or only too much ───────────────────────────────────────────────────────────────────────────────────────

TPM = (
    "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message"
)


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (error(413, TPM, "rate_limit_exceeded"), "refused"),
        (error(429, TPM, "rate_limit_exceeded"), "refused"),
        (Odd(413, "<html><h1>413 Request Entity Too Large</h1></html>", "text/html"), "refused"),
        (error(413, "The prompt is too long", "x"), "context_overflow"),
        (error(400, "no", "context_length_exceeded"), "context_overflow"),
        (
            error(422, "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000"),
            "context_overflow",
        ),
    ],
)
def test_a_413_is_an_overflow_only_where_its_words_say_so(odd: Odd, said: str, server: OddEndpoint):
    assert asked(server.room(odd, when=on("long")), "a", "long", "b") == ["a", said, "b"]


# ── one prompt, or the key ───────────────────────────────────────────────────────────────────────────────────────────

FORBIDDING = {
    "moderation": error(403, "Your input was flagged", 403, metadata={"reasons": ["violence"]}),
    "policy": error(403, "content policy", "content_policy_violation"),
    "provider": error(403, "Provider returned error", 403),
    "firewall": Odd(403, "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>", "text/html"),
    "inside": Odd(200, {"error": {"message": "flagged", "code": 403}}),
    "filter": error(400, "The response was filtered", "content_filter"),
    "patterns": error(400, "repetitive patterns in the prompt"),
    "legal": error(451, "unavailable for legal reasons"),
}


@pytest.mark.parametrize("before", [0, 2])
@pytest.mark.parametrize("name", FORBIDDING)
def test_what_is_refused_is_one_prompt_once_the_key_was_good(name: str, before: int, server: OddEndpoint):
    room = server.room(FORBIDDING[name], when=on("poison"))
    said = asked(room, *["fine"] * before, "poison", "fine")
    assert said == ["fine"] * before + ["refused", "fine"] and room.prompts.count("poison") == endpoint.REFUSALS
    assert "key" not in events("fault")[0]["error"]
    every_try_is_accounted_for()


def test_a_403_before_anything_was_answered_is_the_keys(server: OddEndpoint):
    room = server.room(error(403, "no access"), when=lambda n, prompt: True)
    assert "OPENAI_API_KEY" in str(faulting(room.url, draws(1), model="odd-model"))
    many = server.room(error(403, "key revoked"), when=after(2))
    said = asked(many, *(f"p{k}" for k in range(2 + endpoint.REFUSALS_IN_A_ROW)))
    assert said[:2] == ["p0", "p1"] and said[2:] == ["refused"] * (endpoint.REFUSALS_IN_A_ROW - 1) + ["key"]


@pytest.mark.parametrize("status", [421, 424, 498, 499, 400, 404])
def test_a_refusal_that_passes_is_waited_out(status: int, server: OddEndpoint):
    room = server.room(error(status, "Provider returned error"), when=first(2))
    assert asked(room, "a") == ["a"] and len(room.prompts) == 3


# ── an empty purse ───────────────────────────────────────────────────────────────────────────────────────────────────

QUOTED = 'litellm.RateLimitError: {"error": {"message": "no", "code": "insufficient_quota"}}'
PURSES = {
    "openai": error(429, "You exceeded your current quota", "insufficient_quota"),
    "quoted": error(429, QUOTED, "429"),
    "litellm": Odd(400, {"error": {"message": "Budget has been exceeded! Current cost: 2", "type": "budget_exceeded"}}),
    "litellm429": Odd(
        429, {"error": {"message": "Budget has been exceeded!", "type": "budget_exceeded", "code": "429"}}
    ),
    "zhipu": error(429, "余额不足或无可用资源包,请充值。", "1113"),
    "dashscope": Odd(400, {"code": "Arrearage", "message": "Access denied, your account is not in good standing."}),
    "anthropic": error(400, "Your credit balance is too low to access the API."),
    "fireworks": error(412, "Account me is suspended, possibly due to reaching the monthly spending limit"),
    "siliconflow": error(403, "Sorry, your account balance is insufficient", 30001),
    "deepseek": error(402, "Insufficient Balance"),
}


@pytest.mark.parametrize("name", PURSES)
def test_an_empty_purse_ends_the_run_and_is_named(name: str, server: OddEndpoint):
    room = server.room(PURSES[name], when=after(1))
    fault = faulting(room.url, draws(5), concurrency=1)
    assert fault.kind == "quota" and "quota" in str(fault) and len(room.prompts) == 2


def test_a_rate_limit_that_speaks_of_quota_is_waited_out(server: OddEndpoint):
    words = "You exceeded your current quota, please check your plan. Please retry in 0.2s."
    delay = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"}]
    room = server.room(error(429, words, 429, details=delay), when=first(1))
    started = time.monotonic()
    assert asked(room, "a") == ["a"] and time.monotonic() - started >= 0.2
    assert events("retry")[0]["wait_seconds"] == 0.2


def test_a_reset_is_read_in_seconds_and_milliseconds_from_now_and_since_1970():
    def reset(text: str) -> float | None:
        return reset_after({"x-ratelimit-reset": text})

    assert reset("7") == 7 and reset("1.5") == 1.5
    now = time.time()
    assert 29 < (reset(f"{now + 30:.0f}") or 0) < 32 and 29 < (reset(f"{1000 * (now + 30):.0f}") or 0) < 32
    assert reset("1") == 1 and reset("6m0s") is reset("") is None


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────────────────────

WAYS = {
    "stream": lambda good: streamed(good),
    "stream with comments": lambda good: streamed(good, comment=True),
    "stream with crlf": lambda good: streamed(good).replace("\n", "\r\n"),
    "one event": lambda good: f"data: {json.dumps(good)}\n\ndata: [DONE]\n\n",
    "end mark glued on": lambda good: f"{json.dumps(good)}\ndata: [DONE]\n\n",
    "comments before": lambda good: f"\n: PROCESSING\n\n: PROCESSING\n\n{json.dumps(good, indent=1)}",
    "blank lines and a mark": lambda good: f"\ufeff\n\n{json.dumps(good)}".encode(),
    "utf-16": lambda good: json.dumps(good, ensure_ascii=False).encode("utf-16"),
    "other choices first": lambda good: {**good, "choices": [choice("stop", "no")["choices"][0] | {"index": 1},
                                                             *good["choices"]]},
    "empty error": lambda good: {**good, "error": {"message": "", "code": None}},
    "usage in quotes": lambda good: {**good, "usage": {"prompt_tokens": "7", "completion_tokens": 5.0}},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_is_read_in_whatever_coat(way: str, server: OddEndpoint):
    text = "```python\nprint('\u2028 {\"data: [DONE]\": 1} :\U0001f600')\n```\n: no comment\n"
    room = server.room(Odd(body=WAYS[way]), when=lambda n, prompt: True)
    (reply,) = run(room.url, draws(1, text))
    assert reply.text == text and (reply.prompt_tokens, reply.completion_tokens) == (7, 5) and reply.tries == 1
    assert room.bodies[-1]["stream"] is False


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda good: streamed(good, finish=None, done=False), "cut off"),
        (lambda good: streamed(good, finish=None), "finish_reason None"),
        (lambda good: streamed(good, finish="error"), "finish_reason 'error'"),
        (lambda good: streamed(good)[:150], "not a JSON object"),
        (lambda good: 'data: {"error": {"message": "lost it", "code": 503}}\n\n', "HTTP 503: lost it"),
        (lambda good: {"choices": None, "base_resp": {"status_code": 1002, "status_msg": "too busy"}}, "too busy"),
        (lambda good: "<html>hm</html>", "<html>hm"),
        (lambda good: "", "empty"),
        (lambda good: f"{json.dumps(good)} and more", "not a JSON object"),
        (lambda good: "[" * 100_000, "not a JSON object"),
    ],
)
def test_half_a_stream_and_what_is_no_answer_is_tried_again_in_its_own_words(
    body: Any, words: str, server: OddEndpoint
):
    room = server.room(Odd(body=body), when=first(1))
    assert asked(room, PROGRAM) == [PROGRAM]
    (row,) = events("retry")
    assert words in row["error"] and len(row["error"]) < 320


def test_reasoning_in_pieces_is_kept_apart():
    pieces = [{"reasoning_content": "h"}, {"reasoning_content": "m"}, {"content": "a"}, {"content": "b"}]
    rows = [{"choices": [{"delta": delta}]} for delta in pieces] + [
        {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    ]
    reply = read(body_of("".join(f"data: {json.dumps(row)}\n\n" for row in rows).encode(), "text/event-stream"))
    assert (reply.text, reply.reasoning) == ("ab", "hm")


def test_a_body_without_end_is_dropped(server: OddEndpoint, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(connections, "MOST_BYTES", 2**20)
    for status in (200, 500):
        room = server.room(Odd(status, how="endless"), when=first(1))
        assert asked(room, "a", request_timeout=60) == ["a"]
        (row,) = events("retry")
        assert ("1 MB" if status == 200 else "HTTP 500") in row["error"]


# ── the first line on the screen ─────────────────────────────────────────────────────────────────────────────────────


def test_a_web_page_is_not_waited_for(server: OddEndpoint):
    page = Odd(200, "<!doctype html><title>A user interface</title>", "text/html; charset=utf-8")
    room = server.room(page, when=always)
    for model in (None, "m"):
        fault = faulting(room.url, draws(1), model=model, give_up_after=600)  # and not for ten minutes
        assert fault.kind == "unreachable" and "text/html" in str(fault) and "--base-url" in str(fault)
        assert "start the server" not in str(fault)


@pytest.mark.slow
@pytest.mark.parametrize("odd", [error(503, "Loading model"), Odd(how="hang")])
def test_something_is_said_within_a_second_and_then_once_a_minute(odd: Odd, server: OddEndpoint, capsys: Any):
    room = server.room(odd, when=always)
    faulting(room.url, draws(1), give_up_after=1.4, request_timeout=1.4, log=aloud(heard.append))
    lines = [line for line in capsys.readouterr().err.splitlines() if "waiting for" in line]
    assert len(lines) == 1 and room.url in lines[0] and ("Loading" in lines[0] or "no answer yet" in lines[0])
    assert events("waiting")


# ── a context that is cut without a word ─────────────────────────────────────────────────────────────────────────────


def warned() -> list[str]:
    return [row["error"] for row in events("warned")]


def test_counts_that_differ_or_are_too_few_are_a_warning(server: OddEndpoint):
    counts = iter([900, 512, 400])
    odd = Odd()
    room = server.room(odd, when=lambda n, prompt: False, usage=lambda prompt: {"prompt_tokens": 7})
    room.usage = lambda prompt: {"prompt_tokens": 7 if prompt == odd_endpoint.PROBE else next(counts)}
    asked(room, "the same", "the same", "the same")
    (words,) = warned()
    assert "900" in words and "512" in words and room.url in words
    room.usage = lambda prompt: {"prompt_tokens": 600 if "word" in prompt else 7}
    asked(room, "word " * 2000, "word " * 3000, "short")
    (words,) = warned()
    assert "600 tokens of a prompt of 2,002 words" in words
    room.usage = lambda prompt: {"prompt_tokens": len(prompt) // 4, "completion_tokens": 2}
    asked(room, "word " * 2000, "word " * 2000, "short")
    assert warned() == []


def test_a_context_too_short_for_prompt_and_reply_is_a_warning(server: OddEndpoint):
    room = server.room(Odd(), when=lambda n, prompt: False, more={"max_model_len": 4096})
    room.usage = lambda prompt: {"prompt_tokens": 3000 if prompt == "long" else 10, "completion_tokens": 9}
    asked(room, "short", "long", "long", max_tokens=2048)
    (words,) = warned()
    assert "4,096" in words and "3,000" in words and "2,048" in words
    assert any("4,096" in words for words in probed(room, max_tokens=4090).warnings)
    full = server.room(finish("length"), usage=lambda prompt: {"prompt_tokens": 10, "completion_tokens": 90})
    asked(full, "a", "b", max_tokens=200)
    (words,) = warned()
    assert "after 90 tokens" in words
    asked(full, "a", max_tokens=90)
    assert warned() == []


# ── several servers ──────────────────────────────────────────────────────────────────────────────────────────────────


def pair(server: OddEndpoint, odd: Odd, when: Any, n: int = 120, **how: Any) -> tuple[Room, Room, list[Reply]]:
    """A sound server and an odd one, which the draws are spread over."""
    good, bad = server.room(Odd(), when=lambda k, prompt: False), server.room(odd, when=when)
    replies = run("", draws(n), base_urls=[good.url, bad.url], concurrency=8, **how)
    assert len(replies) == n == good.good + bad.good
    every_try_is_accounted_for()
    return good, bad, replies


ODD_ONES = {
    "429": (Odd(429, "slow down"), None),
    "429 for a while": (Odd(429, "slow down", headers={"Retry-After": "30"}), None),
    "429 for a day": (Odd(429, "slow down", headers={"Retry-After": "86400"}), "quota"),
    "401": (error(401, "bad key"), "refuses the key"),
    "402": (error(402, "no money"), "quota"),
    "404": (error(404, "The model `m` does not exist", "model_not_found"), "no model"),
    "500": (error(500, "broken"), None),
    "503 for a while": (Odd(503, "busy", headers={"Retry-After": "20"}), None),
    "dead": (Odd(how="dead"), None),
    "word": (finish("network_error"), None),
}


@pytest.mark.parametrize("name", thinned(ODD_ONES, 5))
def test_a_second_server_that_fails_stops_and_slows_nothing(name: str, server: OddEndpoint):
    odd, retired = ODD_ONES[name]
    good, bad, _ = pair(server, odd, after(10), give_up_after=60)
    assert len(bad.prompts) < 40  # it is tried now and then, and no more
    if retired:
        (words,) = warned()
        assert retired in words and bad.url in words and good.url not in words
        assert len(bad.prompts) <= 10 + 8
    else:
        assert warned() == []


@pytest.mark.slow
def test_a_second_server_that_hangs_holds_only_what_it_was_given(server: OddEndpoint):
    _, bad, _ = pair(server, Odd(how="hang"), after(4), request_timeout=1, give_up_after=1)
    assert len(bad.prompts) <= 4 + 8 + 4


@pytest.mark.slow
@pytest.mark.parametrize("name", ["refused", "hang", "503", "401", "html"])
def test_a_second_server_that_is_down_at_the_probe_is_left_out_with_a_warning(
    name: str, server: OddEndpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(endpoint, "LATE", 0.5)
    good = server.room(Odd(), when=lambda n, prompt: False)
    odd = {"hang": Odd(how="hang"), "503": error(503, "Loading"), "401": error(401, "bad key"),
           "html": Odd(200, "<html>", "text/html")}.get(name, Odd())  # fmt: skip
    bad = server.room(odd, when=always)
    if name == "refused":
        bad.url = "http://127.0.0.1:9/v1"
    for rooms in ([good, bad], [bad, good]):
        about = probed(rooms)
        assert about.urls == [good.url] and about.model == "odd-model"
        (warning,) = about.warnings
        assert bad.url.removesuffix("/v1") in warning and good.url not in warning
        assert asked(rooms, "a", "b", "c") == ["a", "b", "c"]
    assert bad.prompts == []


def test_the_last_server_that_is_retired_ends_the_run_in_its_own_name(server: OddEndpoint):
    one, two = (server.room(error(401, f"bad key {k}"), when=after(3)) for k in range(2))
    with pytest.raises(EndpointFault) as caught:
        run("", draws(50), base_urls=[one.url, two.url], concurrency=2)
    assert caught.value.kind == "key" and (one.url in str(caught.value)) != (two.url in str(caught.value))
    assert len(warned()) == 1
    all_down = [server.room(error(401, "bad key"), when=always) for _ in range(2)]
    with pytest.raises(EndpointFault, match="refuses the key"):
        probed(all_down)


def test_servers_of_different_models_need_no_race(server: OddEndpoint):
    one, two = (server.room(Odd(), when=lambda n, prompt: False, model=name) for name in ("first", "second"))
    assert {probed([one, two]).model for _ in range(3)} == {"first"}


def test_the_second_server_knows_the_probe():
    assert odd_endpoint.PROBE == endpoint.PROBE


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────

FIRST = "Write one Python 3 program"  # of a bare prompt; a refined one asks for an improved program
SMALL = ["--base-samples", "2", "--particles", "2", "--rounds", "2", "--concurrency", "4", "--workers", "1",
         "--noise-runs", "0", "--arms", "resample,solo"]  # fmt: skip


def task_row(name: str) -> dict[str, Any]:
    shown, hidden = ([[f"{n}\n", f"{n}\n"] for n in numbers] for numbers in ((1, 2), (3,)))
    return {"id": name, "statement": f"Task {name}: print n.", "kind": "stdio", "visible": shown, "hidden": hidden}


Go = Callable[..., tuple[int, str, str]]


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Go:
    """run.py in this process, always on the same tasks and folder: (exit code, stdout, stderr)."""
    tasks = tmp_path / "three.jsonl"
    tasks.write_text("".join(json.dumps(task_row(name)) + "\n" for name in ("one", "two", "three")))
    monkeypatch.setattr(recipe, "page", lambda *parts: "")

    def command(room: Room, *more: str) -> tuple[int, str, str]:
        argv = ["--tasks", str(tasks), "--out", str(tmp_path / "out"), "--base-url", room.url, *SMALL, *more]
        monkeypatch.setattr(sys, "argv", ["run.py", *argv])
        capsys.readouterr()
        code = recipe.main(argv)
        said = capsys.readouterr()
        return code, said.out, said.err

    return command


def wrong(prompt: str) -> str:
    return "```python\nprint('no')\n```"


@pytest.mark.slow
def test_a_prompt_that_is_always_refused_ends_with_the_second_start(go: Go, server: OddEndpoint, tmp_path: Path):
    room = server.room(error(403, "Your input was flagged", 403), when=on("Task two"), say=wrong)
    code, _, err = go(room)
    assert code == 4 and "1 task is incomplete; two: one prompt was refused 3 times (HTTP 403" in err, err
    assert "key" not in err and "filed as refused" in err
    before = len(room.prompts)
    code, out, err = go(room)
    assert code == 0, err
    assert len(room.prompts) - before == 2 * endpoint.REFUSALS  # the two base attempts again, and the arms got nothing
    folder = Folder(tmp_path / "out")
    refused = [attempt for attempt in folder.attempts() if attempt.outcome == "refused"]
    assert [attempt.slot.arm for attempt in refused] == ["base"] * 2 and {a.visible_tests for a in refused} == {"XX"}
    assert "2 refused" in out and "the base group on 1 of 3 tasks" in " ".join(out.split())
    results = folder.read("results.json") or {}
    assert results["all_fail"] == 2 and results["incomplete"]["base_refused"] == 1
    assert "the run is not finished" not in results["verdict"]["exploratory"]
    before = len(room.prompts)
    code, _, err = go(room)
    assert code == 0 and "nothing is left to ask" in err and len(room.prompts) == before


@pytest.mark.slow
def test_a_run_of_which_only_refused_prompts_are_left_comes_to_its_end(go: Go, server: OddEndpoint, tmp_path: Path):
    """More of them than would pass for a fault of the request, with nothing answered in between."""
    names = [f"more-{k}" for k in range(10)]
    with (tmp_path / "three.jsonl").open("a") as file:
        file.writelines(json.dumps(task_row(name)) + "\n" for name in names)
    refused = {f"Task {name}:" for name in ("two", *names)}
    room = server.room(
        error(403, "flagged"), when=lambda n, prompt: prompt[: prompt.find(":") + 1] in refused, say=wrong
    )
    codes = [go(room, "--concurrency", "1")[0]]
    while codes[-1] and len(codes) < 8:  # more than three where the refused ones happened to come last of all
        codes.append(go(room, "--concurrency", "1")[0])
    assert codes[0] == 4 and codes[-1] == 0
    results = Folder(tmp_path / "out").read("results.json") or {}
    assert results["incomplete"]["base_refused"] == len(refused) > endpoint.REFUSALS_IN_A_ROW


@pytest.mark.slow
def test_where_every_prompt_is_refused_none_is_ever_filed(go: Go, server: OddEndpoint, tmp_path: Path):
    room = server.room(error(400, "words nobody knows"), say=wrong)
    assert [go(room)[0] for _ in range(3)] == [4, 4, 4] and not list(Folder(tmp_path / "out").attempts())


@pytest.mark.slow
def test_a_refusal_at_one_start_is_not_final(go: Go, server: OddEndpoint, tmp_path: Path):
    room = server.room(error(400, "content_filter", "content_filter"), when=on("Task two"), say=wrong)
    assert go(room)[0] == 4
    room.when = lambda n, prompt: False
    assert go(room)[0] == 0
    assert {attempt.outcome for attempt in Folder(tmp_path / "out").attempts()} == {"wrong_answer"}


@pytest.mark.slow
def test_a_refused_refinement_is_shown_to_nobody_and_its_arm_goes_on(go: Go, server: OddEndpoint, tmp_path: Path):
    room = server.room(
        error(403, "flagged"), when=lambda n, prompt: "Task two" in prompt and FIRST not in prompt, say=wrong
    )
    assert go(room)[0] == 4
    code, out, err = go(room)
    assert code == 0, err
    folder = Folder(tmp_path / "out")
    refused = [attempt for attempt in folder.attempts() if attempt.outcome == "refused"]
    assert [(a.arm, a.round) for a in refused] == [("solo", 1)] * 2
    results = folder.read("results.json") or {}
    assert results["incomplete"]["arms"]["solo"] == {"tasks": 0, "owed_at_most": 0, "refused": 0}
    assert results["arms"]["solo"]["n"] == results["arms"]["resample"]["n"] == 3  # a refused refinement has failed


def test_a_refused_attempt_leaves_its_particle_as_it_was():
    task = Task("t", "", "Print n.", "stdio", (Test("1\n", "1\n"),))
    flow = swarm(task, ARMS["star"], "star", 2, 3)

    def attempts(asks: Any, *outcomes: str) -> list[Attempt]:
        return [
            Attempt(*slot, code=None if outcome == "refused" else f"print({k})", outcome=outcome,
                    visible_tests="X" if outcome == "refused" else "W", got="0")
            for k, ((slot, _), outcome) in enumerate(zip(asks, outcomes, strict=True))
        ]  # fmt: skip

    asks = flow.send(attempts(next(flow), "refused", "wrong_answer"))
    assert asks[0][1].parent is None and "print(1)" in asks[1][1].messages[-1]["content"]
    before = asks[1][1]
    asks = flow.send(attempts(asks, "refused", "refused"))
    assert asks[1][1] == before and all("refused" not in str(prompt.messages) for _, prompt in asks)


def test_a_page_that_answers_is_told_in_seconds_by_the_command(go: Go, server: OddEndpoint):
    room = server.room(Odd(200, "<html>A user interface</html>", "text/html"), when=always)
    code, _, err = go(room, "--plan")
    assert code == 4 and f"waiting for {room.url}" in err and "text/html" in err and "--base-url" in err


def test_what_was_counted_is_on_disk_before_the_end(go: Go, server: OddEndpoint, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setattr(sampling, "TOLL", 0.002)
    room = server.room(Odd(), when=lambda n, prompt: False, say=wrong)
    assert go(room)[0] == 0
    rows = list(Folder(tmp_path / "out").events())
    tolls = [row for row in rows if row["event"] == "slots"]
    counts = [row for row in rows if row["event"] == "grader"]
    assert len(tolls) > 2 and len(counts) == len(tolls)
    results = Folder(tmp_path / "out").read("results.json") or {}
    attempts = len(list(Folder(tmp_path / "out").attempts()))
    graded = results["cost"]["gradings"]
    assert graded["graded"] + graded["repeated"] == attempts
    assert sum(results["cost"]["slots"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_a_body_is_read_in_time_linear_in_its_size():
    """CPU of n and of 4n, over shapes that invite a reader to begin again and again."""
    row = json.dumps({"choices": [{"delta": {"content": "some words "}}]})
    shapes: dict[str, Callable[[int], str]] = {
        "pieces": lambda n: f"data: {row}\n\n" * (n // 20),
        "comments": lambda n: ": keep alive\n\n" * n,
        "blanks": lambda n: "\n \t" * n + "x",
        "open braces": lambda n: '{"a":' * n,
        "data lines": lambda n: "data: x\n" * n,
        "colons": lambda n: ":" * (8 * n),
    }

    def seconds(raw: bytes) -> float:
        began = time.process_time()
        with contextlib.suppress(ValueError):
            body_of(raw, "text/event-stream")
        return time.process_time() - began

    for name, shape in shapes.items():
        once, four = (min(seconds(shape(n).encode()) for _ in range(3)) for n in (20_000, 80_000))
        assert four < 10 * once + 0.02, name


def event(name: str, sha: str = "") -> Any:
    return {"event": name, "prompt_sha": sha} if sha else {"event": name}


def test_what_an_outage_refuses_is_no_refused_prompt():
    outage = [event("start"), event("answered"), *(event("declined", f"p{k}") for k in range(7)), event("start")]
    assert told_apart(outage) == set()
    assert told_apart([*outage, *(event("declined", f"p{k}") for k in range(7))]) == set()
    one = [
        event("start"),
        event("declined", "flagged"),
        event("answered"),
        *(event("declined", f"p{k}") for k in range(7)),
    ]
    assert told_apart(one) == {"flagged"}
    assert told_apart([event("start"), event("answered"), event("declined", "last")]) == {"last"}
    many = [event("start"), *(event("declined", f"p{k}") for k in range(5))]
    assert told_apart(many * 2) == set() and told_apart(many * 3) == {f"p{k}" for k in range(5)}


def test_one_of_two_servers_that_refuses_all_but_the_probe_does_not_decide_for_both(server: OddEndpoint):
    sound = server.room(Odd(), when=lambda n, prompt: False)
    moderated = server.room(error(403, "flagged"), when=lambda n, prompt: n > 0)
    prompts = [f"p{k}" for k in range(12)]
    assert asked([sound, moderated], *prompts) == prompts


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"detail": [{"type": "string_type", "loc": ["body", "messages", 0, "content"], "msg": "should be a string",
                      "input": "the maximum context length is exceeded"}]}, "refused"),
        ({"detail": [{"type": "x", "loc": ["body", "seed"], "msg": "too many", "input": "y" * 9000 + "is too long"},
                     {"type": "x", "loc": ["body"], "msg": "not known"}]}, "refused"),
        ({"detail": [{"msg": "the prompt is too long", "loc": ["body"]}]}, "overflow"),
        ({"detail": "This model's maximum context length is 4096 tokens"}, "overflow"),
        ({"error": {"message": "exceeds the context window", "type": "x"}}, "overflow"),
        ({"error": {"message": "bad field", "type": "x"}, "request": "messages are too long"}, "refused"),
        ("the prompt is too long", "overflow"),
    ],
)  # fmt: skip
def test_a_prompt_that_an_error_echoes_is_not_what_it_says(body: object, kind: str):
    text = body if isinstance(body, str) else json.dumps(body)
    assert judged(422, {}, text, lambda said: said, 60).kind == kind
