"""The policy against a server that misbehaves: real sockets on loopback, every fault a server has.

Each test attacks one property. The waits are shortened by patching BACKOFF; nothing asserts how fast the machine is,
only orders and lower bounds that the policy must keep.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import endpoint
from asking.address import base_url, is_local
from asking.failed import named_wait, scrubber
from asking.fields import OURS, Fields
from asking.reply import split_reasoning
from endpoint import Policy, Probe, Reply
from faults import EndpointFault
from tasksets.toy import TOYS, FakePolicy
from tests.support import mock_endpoint
from tests.support.mock_endpoint import (
    EVERY_FAULT,
    Fault,
    MockEndpoint,
    Request,
    always,
    at_random,
    echo,
    in_turn,
    serving,
)

HERE = Path(__file__).parent
KEY = "sk-canary-5f1d0c9b7a3e2468"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BACKOFF", (0.01, 0.05))
    monkeypatch.setattr(endpoint, "CONNECT_PATIENCE", 0.2)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)  # most of a test's time


def ask(text: str = "hello") -> list[dict[str, str]]:
    return [{"role": "system", "content": "be brief"}, {"role": "user", "content": text}]


def right(text: str, seed: int) -> str:
    """What the mock says to ask(text) when nothing goes wrong."""
    return echo(Request(0, 0.0, "", "", {}, {"messages": ask(text), "seed": seed}))


heard: list[dict[str, Any]] = []
FIELDS = inspect.signature(Fields).parameters


def run(mock: MockEndpoint | str, act: Callable[[Policy], Awaitable[Any]], probe: bool = True, **how: Any) -> Any:
    """Probe and act in a policy at the mock: what act returns. Its events are in `heard`."""
    heard.clear()

    async def main() -> Any:
        url = mock if isinstance(mock, str) else mock.url
        settings = {"model": None, "give_up_after": 5.0, "log": heard.append, **how}
        fields = {name: settings.pop(name) for name in FIELDS if name in settings}
        urls, model = settings.pop("base_urls", [url]), settings.pop("model")
        async with Policy(urls, model, Fields(**fields), **settings) as policy:
            if probe:
                await policy.probe()
            return await act(policy)

    return asyncio.run(main())


def draws(n: int, text: str = "hello") -> Callable[[Policy], Awaitable[list[Reply]]]:
    async def act(policy: Policy) -> list[Reply]:
        return await asyncio.gather(*(policy.draw(ask(text), seed) for seed in range(n)))

    return act


def faulting(mock: MockEndpoint | str, act: Callable[[Policy], Awaitable[Any]], **how: Any) -> EndpointFault:
    with pytest.raises(EndpointFault) as caught:
        run(mock, act, **how)
    text = str(caught.value)
    assert "\n" not in text and len(text) < 900
    return caught.value


def events(name: str) -> list[dict[str, Any]]:
    return [row for row in heard if row["event"] == name]


def every_try_is_accounted_for() -> None:
    """Each `sent` is followed by exactly one row that says what became of it."""
    sent = Counter((row["request"], row["tries"]) for row in events("sent"))
    ended = Counter(
        (row["request"], row["tries"]) for name in ("answered", "retry", "refused", "fault") for row in events(name)
    )
    assert sent == ended and set(sent.values()) == {1}


# ── what is sent ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_request_says_all_that_decides_a_sample():
    with serving() as mock:
        run(mock, draws(1), temperature=0.7, max_tokens=99, extra_body={"top_k": 5, "chat_template_kwargs": {"a": 1}})
        body = mock.chats[0].body
    assert body == {
        "model": "mock-model", "messages": ask(), "temperature": 0.7, "top_p": 1.0, "max_tokens": 99, "seed": 0,
        "stream": False,
        "top_k": 5, "chat_template_kwargs": {"enable_thinking": False, "a": 1},
    }  # fmt: skip


@pytest.mark.parametrize(("thinking", "sent"), [("off", False), ("on", True), ("server", None)])
def test_thinking_is_switched_through_the_template(thinking: str, sent: bool | None):
    with serving() as mock:
        run(mock, draws(1), thinking=thinking, top_p=None)
        body = mock.chats[0].body
    assert body.get("chat_template_kwargs") == (None if sent is None else {"enable_thinking": sent})
    assert "top_p" not in body


def test_the_probe_sends_what_a_draw_sends():
    with serving() as mock:
        run(mock, draws(1))
        probe, draw = (request.body for request in mock.requests if request.path.endswith("completions"))
    assert {**probe, "messages": 0} == {**draw, "messages": 0} and probe["messages"][0][
        "content"
    ] == mock_endpoint.PROBE


def test_what_has_no_utf8_form_is_sent_replaced_and_received_as_it_is():
    strange = "a\u2028b\u0085c\x0cd \ud83d\ude00 \ud800 e"
    with serving(lambda request: strange) as mock:
        reply = run(mock, lambda policy: policy.draw([{"role": "user", "content": strange}], 1))
        assert mock.chats[0].messages[0]["content"] == "a\u2028b\u0085c\x0cd 😀 \ufffd e"
    assert reply.text == "a\u2028b\u0085c\x0cd 😀 \ud800 e"


# ── where it is sent ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_ep13_every_form_of_the_base_url_works():
    served = {
        "/v1": ["", "/", "/v1", "/v1/", "/v1/chat/completions"],
        "": ["", "/v1/"],
        "/api/v1": ["/api", "/api/v1/"],
    }
    for prefix, forms in {**served, "/v1beta/openai": ["/v1beta/openai/"]}.items():
        with serving(prefix=prefix) as mock:
            for k, form in enumerate(forms):
                mock.lists_models = k % 2 == 0
                (reply,) = run(f"http://127.0.0.1:{mock.port}{form}", draws(1), model="mock-model")
                assert reply.text == right("hello", 0)
            assert len(mock.answered) == len(forms)


def test_ep13_a_url_without_completions_names_what_was_tried():
    with serving(prefix="/other") as mock:
        fault = faulting(f"http://127.0.0.1:{mock.port}/v1/", draws(1), model="m")
        assert fault.kind == "unreachable"
        for url in (f"http://127.0.0.1:{mock.port}/v1", f"http://127.0.0.1:{mock.port}"):
            assert url in str(fault)


def test_a_url_needs_no_scheme_and_holds_no_secret():
    assert base_url(" localhost:8000 ") == "http://localhost:8000"
    assert base_url("gpu-7:8000/v1/") == "http://gpu-7:8000/v1"
    assert base_url("api.example.com/v1") == "https://api.example.com/v1"
    for wrong in ("", "ftp://host/v1", "http://", "http://host:port/v1", "http://[::1/v1"):
        with pytest.raises(ValueError, match="like http://localhost"):
            base_url(wrong)
    for secret in ("http://me:sesame@host/v1", "https://host/v1?key=sesame", "https://host/v1#sesame"):
        with pytest.raises(ValueError, match="OPENAI_API_KEY") as caught:
            base_url(secret)
        assert "sesame" not in str(caught.value)


def test_bad_arguments_are_refused_in_one_line():
    with pytest.raises(ValueError, match="--base-url"):
        Policy([], None)
    for name in OURS.split():
        with pytest.raises(ValueError, match=f"--extra-body may not set {name}"):
            Fields(extra_body={name: 1})


def test_requests_are_spread_over_servers_and_leave_a_dead_one():
    with serving(latency=lambda request: 0.01) as one, serving(latency=lambda request: 0.01) as two:
        run("", draws(40), base_urls=[one.url, two.url], concurrency=8)
        assert len(one.answered) + len(two.answered) == 40 and abs(len(one.answered) - 20) <= 4
        one.faults = always(Fault("reset"))
        replies = run("", draws(40), base_urls=[one.url, two.url], concurrency=8)
        assert [reply.text for reply in replies] == [right("hello", seed) for seed in range(40)]
        assert len(one.answered) + len(two.answered) == 80 and len(one.chats) < 50


def test_no_more_requests_than_slots_and_connections_are_kept():
    with serving(latency=lambda request: 0.02) as mock:
        run(mock, draws(100), concurrency=7)
        assert 3 < max(busy for _, busy in mock.changes) <= 7
        assert mock.opened <= 9


# ── faults of a try: another try, and never an answer ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fault", EVERY_FAULT, ids=lambda fault: f"{fault.kind}-{fault.status}-{fault.code}")
def test_a_fault_is_tried_again_and_never_an_answer(fault: Fault):
    with serving(faults=in_turn(fault, fault)) as mock:
        (reply,) = run(mock, draws(1))
        harmless = fault.kind in ("late", "last")
        assert reply.text == right("hello", 0) and reply.tries == (1 if harmless else 3)
        assert len(mock.answered) == 1 and len(mock.chats) == reply.tries
        assert {request.seed for request in mock.chats} == {0}
    every_try_is_accounted_for()
    billed = fault.kind not in ("status", "error_in_200", *("late", "last")) or fault.status in (408, 502, 504)
    if fault.kind != "error_in_200":
        assert {row["possibly_billed"] for row in events("retry")} <= {billed}


def test_ep05_an_error_inside_a_200_counts_as_the_code_it_carries():
    turns = (
        Fault("error_in_200", code=429),
        Fault("error_in_200", code=502),
        Fault("empty_choices"),
        Fault("error_in_200", code="503"),
        Fault("error_in_200", code="rate_limited"),
    )
    with serving(faults=in_turn(*turns)) as mock:
        replies = run(mock, draws(3), concurrency=1)
        assert [reply.text for reply in replies] == [right("hello", seed) for seed in range(3)]
        assert len(mock.chats) == 8
    assert [row["status"] for row in events("retry")] == [429, 502, 200, 503, 502]
    with serving(faults=in_turn(Fault("error_in_200", code=402))) as mock:
        assert faulting(mock, draws(1)).kind == "quota" and len(mock.chats) == 1


def test_ep09_a_reply_that_is_cut_is_not_an_answer():
    for fault in (Fault("cut"), Fault("cut_chunks"), Fault("no_finish"), Fault("finish_error"), Fault("garbage")):
        with serving(faults=in_turn(fault)) as mock:
            (reply,) = run(mock, draws(1))
            assert reply.text == right("hello", 0) and reply.tries == 2
        assert [row["possibly_billed"] for row in events("retry")] == [True]


@pytest.mark.slow
def test_thirty_percent_of_faults_lose_and_double_nothing():
    with serving(faults=at_random(0.3)) as mock:
        replies = run(mock, draws(200), concurrency=32)
        assert [reply.text for reply in replies] == [right("hello", seed) for seed in range(200)]
        assert sorted(request.seed for request in mock.answered) == list(range(200))
    every_try_is_accounted_for()
    assert len(events("answered")) == 200


@pytest.mark.slow
def test_a_reply_that_takes_too_long_is_dropped_and_its_slot_freed():
    stuck = [Fault("hang"), Fault("drip", seconds=0.02)] * 2
    with serving(faults=in_turn(*stuck)) as mock:
        # Long enough for an answer on a machine that does ten other things.
        replies = run(mock, draws(30), concurrency=4, request_timeout=1, give_up_after=30)
        assert [reply.text for reply in replies] == [right("hello", seed) for seed in range(30)]
        timeouts = events("retry")
        assert len(mock.chats) == 30 + len(timeouts) and len(timeouts) >= 4
    assert all(row["possibly_billed"] and "within 1 s" in row["error"] for row in timeouts)
    every_try_is_accounted_for()


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_ep01_retry_after_is_a_lower_bound_in_all_its_forms():
    sent: list[float] = []

    def busy(request: Request) -> Fault | None:
        if request.probe or len(sent) >= 4:
            return None
        sent.append(time.monotonic())
        now = time.time()
        dates = {"Retry-After": formatdate(now + 1, usegmt=True), "Date": formatdate(now, usegmt=True)}
        headers = [{"Retry-After": "0.2"}, {"retry-after-ms": "300"}, {"Retry-After": "0.1"}, dates]
        return Fault(status=429, headers=headers[len(sent) - 1])

    with serving(faults=busy) as mock:
        replies = run(mock, draws(4), concurrency=1)
        assert len(replies) == len(mock.answered) == 4 and len(mock.chats) == 8
        for k, least in enumerate((0.2, 0.3, 0.1, 1.0)):
            assert mock.chats[k + 1].time - sent[k] >= least
    assert len(events("retry")) == 4 and len(events("answered")) == 4


def test_after_a_429_all_wait_at_one_gate():
    with serving(faults=in_turn(Fault(status=429, headers={"Retry-After": "0.3"}))) as mock:
        run(mock, draws(20), concurrency=1)
        assert mock.chats[1].time - mock.chats[0].time >= 0.3  # the second draw had not been refused itself
        assert len(mock.chats) == 21


def test_many_429s_at_once_are_one_event():
    async def act(policy: Policy) -> float:
        await draws(16)(policy)
        return policy._servers[0].throttled

    with serving(faults=in_turn(*[Fault(status=429)] * 16), latency=lambda request: 0.05) as mock:
        run(mock, act, concurrency=16)
        assert len(mock.chats) == 32
    waits = [row["wait_seconds"] for row in events("retry")]
    assert (
        len(waits) == 16 and len(mock.chats) == 32
    )  # on a busy machine they come in two handfuls, and wait for longer


@pytest.mark.parametrize("value", ["", "soon", "-5", "nan", "1e9", "Wed, 99 Foo 2020", "0x10", "١"])
def test_a_retry_after_that_says_nothing_is_no_wait(value: str):
    assert named_wait({"retry-after": value}) is None


def test_a_date_is_read_by_the_clock_of_the_server():
    headers = {"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}
    assert named_wait(headers) == 30
    assert named_wait({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}) == 0
    assert named_wait({"retry-after": "7", "retry-after-ms": "1500"}) == 1.5


# ── where trying again cannot help ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [(401, None, "key"), (402, None, "quota"), (404, "model_not_found", "model"),
     (429, "insufficient_quota", "quota"), (400, "insufficient_quota", "quota")],
)  # fmt: skip
def test_a_final_answer_ends_the_run_at_once(status: int, code: str | None, kind: str):
    with serving(faults=always(Fault(status=status, code=code, message="in the server's own words"), after=2)) as mock:
        fault = faulting(mock, draws(50), concurrency=1)
        assert fault.kind == kind and "in the server's own words" in str(fault) and "repeat the command" in str(fault)
        assert len(mock.chats) == 3
    assert len(events("answered")) == 2
    every_try_is_accounted_for()


def test_ep02_a_used_up_quota_stops_and_is_named():
    for fault in (Fault(status=429, code="insufficient_quota"), Fault(status=429, headers={"Retry-After": "86400"})):
        with serving(faults=always(fault, after=2)) as mock:
            caught = faulting(mock, draws(20), concurrency=1, give_up_after=60)
            assert caught.kind == "quota" and "quota" in str(caught)
            assert len(mock.chats) == 3
        assert len(events("answered")) == 2


def test_a_prompt_that_is_too_long_is_final_for_itself_alone():
    async def act(policy: Policy) -> list[Reply]:
        return [await policy.draw(ask(text), 1) for text in ("short", "long " * 1000, "short")]

    with serving(context=1000) as mock:
        short, long, again = run(mock, act, max_tokens=100)
        assert long == Reply("", "context_overflow", None, None, "", 1, long.latency_seconds)
        assert short.text == again.text == right("short", 1)
        assert len(mock.chats) == 3
    assert [row["status"] for row in events("refused")] == [400]
    every_try_is_accounted_for()


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "request exceeds it"}}),
        (400, {"message": "This model's maximum context length is 4096 tokens. However, you requested 5000."}),
        (400, {"error": {"message": "The input (5000 tokens) is longer than the model's context length (4096)."}}),
        (400, {"error": {"message": "Please reduce your prompt; the prompt is too long: 5000 tokens"}}),
        (422, {"error": {"message": "`inputs` must have less; too many tokens"}}),
        (413, {"error": {"message": "inputs must have less than 4096 tokens, and has 5000"}}),
        (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
        (
            400,
            {"error": {"message": "The input token count (5000) exceeds the maximum number of tokens allowed."}},
        ),
        (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 5000 + 2048 > 4096"}}),
        (400, {"error": "Trying to keep the first 5000 tokens when context the overflows. Load a larger one."}),
    ],
)
def test_the_words_for_too_long(status: int, body: dict[str, Any]):
    with serving(faults=in_turn(Fault(status=status, body=body))) as mock:
        assert run(mock, draws(1))[0].finish_reason == "context_overflow"


def test_one_refused_prompt_is_a_fault_of_its_own_and_many_are_the_requests():
    async def act(policy: Policy) -> list[str]:
        kinds = []
        for text in ["poison"] * 20 + ["fine"] + [f"prompt {k}" for k in range(endpoint.REFUSALS_IN_A_ROW)]:
            try:
                await policy.draw(ask(text), 1)
                kinds.append("answered")
            except EndpointFault as fault:
                kinds.append(fault.kind)
        return kinds

    refusal = Fault(status=400, message="this text cannot be parsed")
    before, after = (n * endpoint.REFUSALS for n in (20, endpoint.REFUSALS_IN_A_ROW))
    with serving(faults=in_turn(*[refusal] * before, None, *[refusal] * after)) as mock:
        kinds = run(mock, act)
        assert kinds == ["refused"] * 20 + ["answered"] + ["refused"] * (endpoint.REFUSALS_IN_A_ROW - 1) + ["fields"]
        assert len(mock.chats) == endpoint.REFUSALS * (len(kinds) - 2) + 2  # a prompt a few times, and no more


@pytest.mark.slow
def test_a_prompt_that_fails_while_others_are_answered_is_given_up_alone():
    async def act(policy: Policy) -> str:
        others = asyncio.create_task(keep_asking(policy))
        try:
            await policy.draw(ask("poison"), 1)
        except EndpointFault as fault:
            return f"{fault.kind}: {fault}"
        finally:
            others.cancel()
        return ""

    async def keep_asking(policy: Policy) -> None:
        for seed in range(10**6):
            await policy.draw(ask("fine"), seed)

    with serving(faults=lambda request: Fault() if "poison" in request.prompt else None) as mock:
        said = run(mock, act, give_up_after=60)
        assert said.startswith("attempt: ") and "stays owed" in said and "HTTP 500: mock fault" in said
        poisoned = [request for request in mock.chats if "poison" in request.prompt]
        assert len(poisoned) >= endpoint.MAX_STRIKES


# ── giving up ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hang", "drip", "status", "reset"])
def test_an_endpoint_that_stays_broken_ends_the_run(kind: str, monkeypatch: pytest.MonkeyPatch):
    clock = iter(range(10**9, 0, -100))
    monkeypatch.setattr(time, "time", lambda: next(clock))  # the wall clock runs backwards in leaps
    with serving(faults=always(Fault(kind, status=503, seconds=0.02), after=5)) as mock:
        start = time.monotonic()
        timeout = 1 if kind in ("hang", "drip") else 9
        fault = faulting(mock, draws(40), concurrency=4, request_timeout=timeout, give_up_after=0.4)
        assert time.monotonic() - start >= 0.4
    last = {"hang": "no complete answer within 1 s", "drip": "within 1 s", "status": "HTTP 503: mock fault"}
    assert fault.kind == "gave_up" and last.get(kind, "Error") in str(fault) and "repeat the command" in str(fault)
    assert len(events("answered")) == 5


def test_a_server_that_dies_ends_the_run():
    with serving() as mock:

        async def act(policy: Policy) -> None:
            await policy.draw(ask(), 1)
            mock.die()
            await policy.draw(ask(), 2)

        fault = faulting(mock, act, give_up_after=0.3)
    assert fault.kind == "gave_up" and "Connect" in str(fault)


def test_after_the_end_nothing_more_is_sent():
    async def act(policy: Policy) -> None:
        for seed in range(5):
            with pytest.raises(EndpointFault, match="quota"):
                await policy.draw(ask(), seed)

    with serving(faults=always(Fault(status=402))) as mock:
        run(mock, act)
        assert len(mock.chats) == 1


def test_a_log_that_raises_stops_the_request_before_it_is_made():
    class Enough(Exception):
        pass

    def log(row: dict[str, Any]) -> None:
        if row["event"] == "sent" and row["seed"] == 2:
            raise Enough

    with serving() as mock:
        with pytest.raises(Enough):
            run(mock, draws(3), concurrency=1, log=log)
        assert [request.seed for request in mock.chats] == [0, 1]


@pytest.mark.slow
def test_answers_in_between_keep_a_bad_server_alive():
    turn = iter(range(10**9))
    with serving(faults=lambda request: None if request.probe or next(turn) % 3 == 2 else Fault()) as mock:
        replies = run(mock, draws(60), concurrency=3, give_up_after=0.5)
        assert len(replies) == 60 and len(mock.chats) > 170


# ── the probe ────────────────────────────────────────────────────────────────────────────────────────────────────────


def probing(mock: MockEndpoint | str, **how: Any) -> Probe:
    return run(mock, lambda policy: policy.probe(), probe=False, **how)


def test_the_probe_finds_the_model_and_says_what_it_saw():
    with serving() as mock:
        seen = probing(mock)
        want = Probe("mock-model", ["mock-model"], "mock", urls=[mock.url], facts=[], warnings=[], seconds=seen.seconds)
        assert seen == want and seen.seconds is not None
        assert mock.chats == []
    assert [row["event"] for row in events("probe")] == ["probe"] and not events("sent")


def test_several_models_need_a_choice():
    with serving(models=("a", "b")) as mock:
        fault = faulting(mock, lambda policy: policy.probe(), probe=False)
        assert fault.kind == "model" and "a, b" in str(fault) and "--model" in str(fault)
        assert probing(mock, model="b").model == "b"
    with serving(lists_models=False) as mock:
        assert "--model" in str(faulting(mock, lambda policy: policy.probe(), probe=False))


def test_an_unknown_model_is_told_in_the_servers_words():
    with serving() as mock:
        fault = faulting(mock, draws(1), model="mock-modle")
        assert fault.kind == "model" and "The model `mock-modle` does not exist." in str(fault)
        assert "it serves mock-model" in str(fault) and mock.chats == []
    with serving(any_model=True) as mock:
        (warning,) = probing(mock, model="mock-modle").warnings
        assert "not mock-modle" in warning and "answers all the same" in warning


def test_a_wrong_or_missing_key_ends_before_anything_is_spent():
    with serving(key=KEY) as mock:
        fault = faulting(mock, draws(1), api_key="sk-wrong-0123456789")
        assert fault.kind == "key" and "OPENAI_API_KEY" in str(fault) and "Incorrect API key" in str(fault)
        assert "sk-wrong" not in str(fault)
        assert run(mock, draws(1), api_key=KEY)[0].text == right("hello", 0)
    fault = faulting("https://api.example.com/v1", draws(1))
    assert fault.kind == "key" and "OPENAI_API_KEY" in str(fault) and "--base-url" in str(fault)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    with serving(key=KEY) as mock:
        assert run(mock, draws(1))[0].text == right("hello", 0)


def test_a_local_server_needs_no_key_and_no_proxy(monkeypatch: pytest.MonkeyPatch):
    for url in ("http://localhost:1", "http://127.0.0.9:1", "http://[::1]:1", "http://10.1.2.3", "http://gpu-7:8000",
                "http://192.168.1.5", "http://box.local", "http://a.internal", "http://[fd00::1]"):  # fmt: skip
        assert is_local(url), url
    for url in ("https://api.openai.com/v1", "http://8.8.8.8", "http://localhost.example.com", "http://[2600::1]"):
        assert not is_local(url), url
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving() as mock:
        assert run(mock, draws(1))[0].text == right("hello", 0)
        assert mock.chats[0].headers["authorization"] == "Bearer none"


def test_nobody_listens():
    with serving() as mock:
        url = mock.url
    fault = faulting(url, draws(1))
    assert fault.kind == "unreachable" and url in str(fault) and "--base-url" in str(fault)
    fault = faulting("http://no-such-host.invalid/v1", draws(1), api_key=KEY)
    assert fault.kind == "unreachable" and "no-such-host.invalid" in str(fault)


def test_a_server_that_loads_is_waited_for():
    with serving(loading=0.2) as mock:
        assert run(mock, draws(1))[0].text == right("hello", 0)
    assert events("waiting") and "Loading model" in events("waiting")[0]["error"]
    with serving(loading=60) as mock:
        fault = faulting(mock, draws(1), give_up_after=0.2)
        assert fault.kind == "unreachable" and "Loading model" in str(fault)


def test_fields_that_a_server_refuses_are_left_out_with_a_warning():
    with serving(refuses=("max_tokens", "chat_template_kwargs", "seed", "top_p", "temperature", "stream")) as mock:
        about = probing(mock)
        run(mock, draws(1))
        body = mock.chats[0].body
    assert set(body) == {"model", "messages", "max_completion_tokens"}
    assert about.facts == ["the server takes max_completion_tokens in place of max_tokens"]
    assert len(about.warnings) == 5 and "--thinking is up to the server" in " ".join(about.warnings)


def test_a_refused_field_that_was_asked_for_ends_the_run():
    with serving(refuses=("temperature",)) as mock:
        fault = faulting(mock, draws(1), temperature=0.3)
        assert fault.kind == "fields" and "Unrecognized request argument supplied: temperature" in str(fault)
    with serving(refuses=("chat_template_kwargs",)) as mock:
        assert "--thinking" in str(faulting(mock, draws(1), thinking="on"))
        assert run(mock, draws(1), thinking="server")[0].text == right("hello", 0)
    with serving(refuses=("top_k",)) as mock:
        assert "top_k" in str(faulting(mock, draws(1), extra_body={"top_k": 3}))
    with serving(context=100) as mock:
        fault = faulting(mock, draws(1), max_tokens=2048)
        assert fault.kind == "fields" and "--max-tokens" in str(fault)


def test_refusals_of_another_make():
    forbidden = {
        "detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]
    }

    def strict(request: Request) -> Fault | None:
        return Fault(status=422, body=forbidden) if "seed" in request.body else None

    with serving(faults=strict) as mock:
        assert run(mock, draws(2))[0].text
        assert all("seed" not in request.body for request in mock.chats)


def test_thinking_in_spite_of_off_is_a_warning():
    with serving(lambda request: {"message": {"content": "ready", "reasoning_content": "hm"}}) as mock:
        mock.says_ready = False
        (warning,) = probing(mock).warnings
        assert "in spite of --thinking off" in warning
        assert probing(mock, thinking="server").warnings == []


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────

PROGRAM = "```python\nprint('</think>')\n```"


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "hi"}, "hi", ""),
        ({"content": None}, "", ""),
        ({}, "", ""),
        ({"content": "hi", "reasoning_content": "hm"}, "hi", "hm"),
        ({"content": "hi", "reasoning": "hm"}, "hi", "hm"),
        ({"content": None, "reasoning_content": "cut"}, "", "cut"),
        ({"content": "hi", "reasoning_content": None, "reasoning": ""}, "hi", ""),
        ({"content": "<think>hm</think>\n\nhi"}, "hi", "hm"),
        ({"content": "\n<think>\nhm\n</think>hi"}, "hi", "hm"),
        ({"content": "<think></think>hi"}, "hi", ""),
        ({"content": "hm\n</think>\nhi"}, "hi", "hm"),
        ({"content": "<think>hm, and then it was cut"}, "", "hm, and then it was cut"),
        ({"content": "<think>print('</think>') or so</think>\nhi"}, "hi", "print('</think>') or so"),
        ({"content": PROGRAM}, PROGRAM, ""),
        ({"content": f"hm</think>{PROGRAM}"}, PROGRAM, "hm"),
        ({"content": "see the <think>…</think> tags"}, "see the <think>…</think> tags", ""),
        ({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}, "hi", ""),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                      {"type": "text", "text": "hi"}]}, "hi", "hm"),
        ({"content": 5}, "", ""),
    ],
)  # fmt: skip
def test_reasoning_is_kept_apart_in_every_shape(message: dict[str, Any], text: str, reasoning: str):
    assert split_reasoning(message) == (text, reasoning)
    with serving(lambda request: {"message": message}) as mock:
        (reply,) = run(mock, draws(1))
        assert (reply.text, reply.reasoning) == (text, reasoning)


def test_a_reply_cut_while_thinking_has_no_text_where_the_template_opens_the_tag():
    def reply(request: Request) -> dict[str, Any]:
        if request.probe or request.seed == 0:
            return {"message": {"content": "hm\n</think>\nready"}}
        return {"message": {"content": "hm ```python\nprint(1)\n```"}, "finish_reason": "length"}

    with serving(reply) as mock:
        mock.says_ready = False
        whole, cut = run(mock, draws(2), concurrency=1)
    assert (whole.text, whole.reasoning) == ("ready", "hm")
    assert (cut.text, cut.reasoning, cut.finish_reason) == ("", "hm ```python\nprint(1)\n```", "length")


@pytest.mark.parametrize(("usage", "counted"), [("full", (3, 5)), ("partly", (3, None)), ("none", (None, None))])
def test_tokens_that_a_server_does_not_count_are_unknown(usage: str, counted: tuple[int | None, int | None]):
    with serving(lambda request: "x" * 20, usage=usage) as mock:
        (reply,) = run(mock, draws(1))
        assert (reply.prompt_tokens, reply.completion_tokens) == counted
        assert bool(probing(mock).facts) == (usage != "full")


def test_finish_reasons_come_through():
    with serving(lambda request: {"message": {"content": "x"}, "finish_reason": "length"}) as mock:
        assert run(mock, draws(1))[0].finish_reason == "length"


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def chain(error: BaseException | None) -> list[BaseException]:
    seen: list[BaseException] = []
    todo = [error]
    while todo:
        if (one := todo.pop()) is not None and one not in seen:
            seen.append(one)
            todo += [one.__cause__, one.__context__]
    return seen


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422, 429, 500])
def test_the_key_is_nowhere(status: int, caplog: pytest.LogCaptureFixture, capfd: Any, monkeypatch: pytest.MonkeyPatch):
    """With every log on, and a server that echoes the headers it got in headers, bodies and replies."""
    monkeypatch.setenv("OPENAI_LOG", "debug")
    caplog.set_level(logging.DEBUG)
    message = f"wrong key {KEY}, that is {KEY[:10]}***{KEY[-4:]}, Bearer {KEY}; {{'authorization': 'Bearer {KEY}'}}"
    fault = Fault(status=status, code="insufficient_quota" if status == 429 else None, message=message)
    with serving(lambda request: str(request.headers), faults=always(fault, after=1), key=KEY) as mock:

        async def act(policy: Policy) -> None:
            kept.append(await policy.draw(ask(), 0))
            kept.append(policy.state)
            for seed in range(1, 10):
                try:
                    await policy.draw(ask(), seed)
                except EndpointFault as error:
                    kept.append(error)

        kept: list[Any] = []
        run(mock, act, api_key=KEY, give_up_after=0.05)
        assert mock.chats[0].headers["authorization"] == f"Bearer {KEY}"
    errors = [error for error in kept if isinstance(error, EndpointFault)]
    assert errors and "[key]" in str(errors[0]) and "Bearer [key]" in kept[0].text
    links = [link for error in errors for link in chain(error)]
    assert all(type(link).__module__ in ("endpoint", "faults") for link in links)  # nothing that holds the request
    written = json.dumps(heard) + repr(kept) + repr(links) + caplog.text + "".join(capfd.readouterr())
    assert KEY[:8] not in written and KEY[-8:] not in written


@given(st.text(min_size=8, max_size=40).filter(lambda key: not any(c.isspace() for c in key)), st.text(), st.text())
def test_no_piece_of_a_key_survives(key: str, before: str, after: str):
    for echoed in (key, key[:8] + "***", f"Bearer {key}"):
        scrubbed = scrubber(key)(f"{before} {echoed} {after}")
        assert key[:8] not in scrubbed.replace("[key]", "\0")


def test_short_keys_do_not_maul_the_words_around_them():
    scrub = scrubber("none")
    assert scrub("none of the nonewords, Bearer none") == "[key] of the nonewords, Bearer [key]"
    assert scrubber("")("as it is") == "as it is"
    with serving(lambda request: "the password is none: testtest", key="testtest") as mock:
        assert run(mock, draws(1), api_key="testtest")[0].text == "the password is none: testtest"


def test_a_key_in_a_proxy_page_is_scrubbed_from_the_events():
    page = {"error": f"<html>\n\x1b[31m authorization: Bearer {KEY}\n" + "x" * 5000}
    with serving(faults=in_turn(Fault(status=502, body=page)), key=KEY) as mock:
        run(mock, draws(1), api_key=KEY)
    (row,) = events("retry")
    assert KEY[:8] not in json.dumps(heard) and len(row["error"]) < 320 and row["error"].isprintable()


# ── imports, and the fake policy ─────────────────────────────────────────────────────────────────────────────────────


def test_the_client_library_is_imported_only_where_a_server_is_asked():
    code = "import sys, asyncio, endpoint\nfrom tasksets.toy import FakePolicy\n"
    code += "async def f():\n    async with FakePolicy() as p:\n        "
    code += (
        "await p.draw([{'role': 'user', 'content': 'x'}], 1)\nasyncio.run(f())\nendpoint.Policy(['localhost:1'], None)"
    )
    code += "\nassert not {'openai', 'httpx2', 'httpx', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=HERE.parent)


def test_the_fake_policy_is_a_function_of_prompt_and_seed_and_learns_from_what_it_sees():
    from swarm import PLAIN, Attempt, bare, refine
    from tasks import load

    async def draw(prompt: Any, seeds: range) -> list[str]:
        async with FakePolicy() as policy:
            return [(await policy.draw(prompt.messages, seed)).text for seed in seeds]

    for task in load("toy"):
        attempt = Attempt(task.id, "solo", 0, 0, 0, code="print(1)", visible_tests="W" * 4, outcome="wrong_answer")
        prompts = [
            bare(task.shown(), PLAIN),
            refine(task.shown(), attempt, None, PLAIN),
            refine(task.shown(), attempt, attempt, PLAIN),
        ]
        right = next(toy.program for toy in TOYS if toy.task.id == task.id)
        rates = []
        for prompt in prompts:
            texts = asyncio.run(draw(prompt, range(400)))
            assert texts == asyncio.run(draw(prompt, range(400))) and len(set(texts)) > 390
            rates.append(sum(any(right.replace("RESULT", word) in text for word in FAKE_WORDS) for text in texts) / 400)
        assert rates[0] < rates[1] < rates[2] and rates[0] < 0.5


FAKE_WORDS = ("answer", "result", "found", "total", "value")


def test_the_fake_policy_logs_its_calls():
    rows: list[dict[str, Any]] = []

    async def main() -> Probe:
        async with FakePolicy(log=rows.append) as policy:
            await policy.draw(ask(), 7)
            return await policy.probe()

    assert "say nothing about any model" in asyncio.run(main()).facts[0]
    assert [row["event"] for row in rows] == ["sent", "answered"] and rows[0]["seed"] == 7


def test_the_mock_knows_the_probe_and_every_case_has_a_test():
    assert mock_endpoint.PROBE == endpoint.PROBE
    cases = [json.loads(line) for line in (HERE / "data/cases_endpoint.jsonl").read_text().splitlines()]
    for case in cases:
        assert any(name.startswith(f"test_{case['id'].lower()}_") for name in globals()), case["id"]
