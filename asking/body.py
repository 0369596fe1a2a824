"""The JSON object in the bytes of an answer, as servers really send it.

    bare           {...}
    in a coat      keep-alive comments before it (": PROCESSING"), the end mark of a stream glued to it
    as a stream    server-sent events, although none was asked for: the pieces put together

What is none of these is named by its type and its first bytes. Left out: what the object says (reply.py, failed.py).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

Body = dict[str, Any]  # a JSON object as it came: nothing in it is sure to be what it should
DONE = "[DONE]"  # ends a stream


def body_of(raw: bytes, kind: str) -> Body:
    """The object in the bytes. ValueError, in words, where there is none. kind: the content type."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if isinstance(body, dict):
        return body
    try:
        text = raw.decode(json.detect_encoding(raw)).lstrip("\ufeff")
    except ValueError:
        text = raw.decode("latin-1")
    bare = re.sub(r"\A(?:\s|:[^\r\n]*[\r\n])+", "", text)  # lines that begin with a colon are comments
    data = re.findall(r"^data:[ \t]*([^\r\n]*)", text, re.M)
    try:
        if bare.startswith("{"):
            body, end = json.JSONDecoder().raw_decode(bare)
            if bare[end:].strip() in ("", f"data: {DONE}", f"data:{DONE}"):
                return dict(body)
        elif data:
            body = joined([json.loads(piece) for piece in data if piece not in ("", DONE)])
            if DONE not in data and not body.get("error") and not body["choices"][0].get("finish_reason"):
                raise ValueError("the stream was cut off")
            return body
    except (RecursionError, TypeError, AttributeError, LookupError, json.JSONDecodeError):
        pass
    if not raw.strip():
        raise ValueError("the body is empty")
    what = kind.partition(";")[0].strip() or "of no type"
    raise ValueError(f"the body is not a JSON object ({what}, it begins {text[:60]!r})")


def joined(pieces: Iterable[Body]) -> Body:
    """One answer from the pieces of a stream. Text adds up, of all else the last word counts."""
    whole: Body = {}
    texts: defaultdict[str, list[str]] = defaultdict(list)
    message: Body = {}
    choice: Body = {"message": message}
    for piece in pieces:
        choices = piece.get("choices")
        whole |= {name: value for name, value in piece.items() if value is not None and name != "choices"}
        for part in choices if isinstance(choices, list) else ():
            if not isinstance(part, dict) or part.get("index", 0) not in (0, None):
                continue
            whole["choices"] = [choice]
            choice |= {name: part[name] for name in ("finish_reason", "error") if part.get(name) is not None}
            for name, value in (part.get("delta") or part.get("message") or {}).items():
                if name != "role" and isinstance(value, str):
                    texts[name].append(value)
                elif value is not None:
                    message[name] = value
    message |= {name: "".join(parts) for name, parts in texts.items()}
    return whole
