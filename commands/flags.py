"""The flags that every command which asks an endpoint shares, and how their values are read.

Each is of one class: identity (what a reply is), or free (how fast and how far). A bad value is one line and exit 2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from faults import BAD_INPUT

VERSION = "0.1.0"


def policy_flags(identity: Any, free: Any, max_tokens: int = 2048, temperature: float = 1.0) -> None:
    """What decides a reply goes to the identity flags, how it is fetched to the free ones."""
    identity.add_argument("--model", help="name of the model (default: the one the server serves)")
    identity.add_argument("--temperature", type=_number(0), default=temperature, help=f"(default: {temperature:g})")
    identity.add_argument("--top-p", type=_number(0, 1), default=1.0, help="always sent (default: 1)")
    identity.add_argument(
        "--max-tokens", type=count(1), default=max_tokens, help=f"tokens a reply (default: {max_tokens})"
    )
    identity.add_argument(
        "--thinking", choices=("off", "on", "server"), default="off", help="server: left to the server (default: off)"
    )
    identity.add_argument("--extra-body", type=_object, default=None, metavar="JSON", help="sent with every request")
    free.add_argument(
        "--base-url", action="append", metavar="URL", help="OpenAI-compatible; repeatable (default: OPENAI_BASE_URL)"
    )
    free.add_argument("--concurrency", type=count(1), default=64, help="requests in flight (default: 64)")
    free.add_argument("--workers", type=count(1), help="grader processes (default: one a core)")
    free.add_argument(
        "--request-timeout", type=_number(0.001), default=600.0, metavar="SECONDS", help="a request (default: 600)"
    )
    free.add_argument(
        "--give-up-after",
        type=_number(0.001),
        default=10.0,
        metavar="MINUTES",
        help="stop when nothing has succeeded for so long (default: 10)",
    )
    free.add_argument(
        "--stop-after",
        type=_limits,
        default={},
        metavar="LIMITS",
        help="calls=N,tokens=N,minutes=M,usd=U: stop there, saved; all but minutes hold across restarts",
    )
    free.add_argument("--price", type=_price, metavar="IN,OUT", help="usd a million tokens")


class Flags(argparse.ArgumentParser):
    """No abbreviations, and an error of one line."""

    def __init__(self, **how: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **how)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        a = super().parse_args(args, namespace)
        if "usd" in getattr(a, "stop_after", ()) and not a.price:
            self.error("--stop-after usd= needs --price IN,OUT")
        return a

    def error(self, message: str) -> Any:
        self.exit(BAD_INPUT, f"{self.prog}: {message} (python {self.prog} --help lists the flags)\n")


def count(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        if not text.isascii() or not text.lstrip("-").isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} up")
        return int(text)

    return whole


def _number(least: float, most: float = float("inf")) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not (least <= value <= most and value < float("inf")):
            upper = "up" if most == float("inf") else f"to {most:g}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least:g} {upper}")
        return value

    return number


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return value


def _limits(text: str) -> dict[str, float]:
    limits = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in ("calls", "tokens", "minutes", "usd"):
            raise argparse.ArgumentTypeError(f"{part!r} is none of calls=N, tokens=N, minutes=M, usd=U")
        limits[name] = _number(0)(value)
    return limits


def _price(text: str) -> tuple[float, float]:
    parts = text.split(",")
    if len(parts) != 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not IN,OUT (usd a million tokens)")
    return _number(0)(parts[0]), _number(0)(parts[1])
