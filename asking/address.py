"""Base URLs: as people paste them, as servers serve them, and whether one leads out of the house.

Left out: asking what answers there (the probe in endpoint.py finds out).
"""

from __future__ import annotations

import ipaddress
import os
import re
from urllib.parse import urlsplit, urlunsplit


def default_base_urls() -> list[str]:
    """Where to go when --base-url is not given: OPENAI_BASE_URL. ValueError without: nobody is to pay a hosted endpoint
    for having forgotten a flag."""
    if not (url := os.environ.get("OPENAI_BASE_URL")):
        raise ValueError(
            "no endpoint is named: give --base-url (http://127.0.0.1:8000/v1 for a server on this machine, "
            "https://api.openai.com/v1 for a hosted one) or set OPENAI_BASE_URL"
        )
    return [url]


def base_url(text: str) -> str:
    """A base URL as people paste it, made whole. ValueError where it cannot be one."""
    text = text.strip()
    if "://" not in text:
        text = ("http://" if is_local(f"//{text}") else "https://") + text
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise ValueError("a --base-url is not a URL: give one like http://localhost:8000/v1")
    if parts.username is not None or parts.query or parts.fragment:  # not shown, since it may hold a key
        raise ValueError(f"the --base-url of {host} holds more than an address: put the key into OPENAI_API_KEY")
    return urlunsplit((parts.scheme, parts.netloc, re.sub(r"(/chat/completions|/models)?/*$", "", parts.path), "", ""))


def url_forms(url: str) -> list[str]:
    """What a pasted base URL may stand for, the likeliest first: with /v1, and without."""
    bare = url.removesuffix("/v1")
    return [f"{bare}/v1", bare] if bare != url or not urlsplit(url).path else [url, f"{url}/v1"]


def is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_local(url: str) -> bool:
    """This machine, a private address, or a name that no public server has: it may do without a key."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".localhost", ".local", ".internal", ".lan"))
