"""A stand-in data hub on loopback: enough of the hub's HTTP interface for `huggingface_hub.snapshot_download`.

A data set is a name, a revision (the commit that it stands at) and files under their names in the repository:

    with serve({"deepmind/code_contests": Repo(PIN, {"data/test-00000-of-00001.parquet": path})}) as hub:
        ... HF_ENDPOINT=hub.url ...

By hand, with the revisions that are pinned (a folder stands for all files in it):

    python tests/support/hub.py deepmind/code_contests data/test-00000-of-00001.parquet=FILE \\
        google-research-datasets/mbpp full=FOLDER
    HF_ENDPOINT=http://127.0.0.1:8766 HF_HOME=$(mktemp -d) python run.py --tasks mbpp-bundle --plan

A slow one waits `pause` seconds before each answer, and sends a file at `speed` bytes a second.

It also takes what is pushed: a data set is created at its first push, and `pushed` holds its files. A hub with
`refuses` answers each push with that status.

Left out: branches other than `main`, large files, pages of a long listing; a token is noted and not checked.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Repo(NamedTuple):
    """One data set: its commit, and {name in the repository: local file}."""

    revision: str
    files: dict[str, Path]


class Hub(ThreadingHTTPServer):
    """The server; `requests` is what it was asked, as "METHOD path" in order of arrival."""

    daemon_threads = True

    def __init__(self, repos: dict[str, Repo], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.repos = repos
        self.requests: list[str] = []
        self.private: dict[str, bool] = {}  # data set -> whether it is
        self.pushed: dict[str, bytes] = {}  # file of a data set, "NAME/FILE" -> what it holds
        self.tokens: set[str | None] = set()  # that pushes came with
        self.refuses: int | None = None
        self.pause, self.speed = 0.0, 0  # seconds; bytes a second, 0: all at once
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def do_POST(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"POST {path}")
        self.server.tokens.add(self.headers.get("Authorization"))
        size = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(size) if size else self.chunked()
        if self.server.refuses:
            return self.send({"error": "no"}, True, self.server.refuses)
        if path == "/api/repos/create":
            asked = json.loads(content)
            name = "/".join(filter(None, [asked.get("organization") or "me", asked["name"]]))
            self.server.private.setdefault(name, asked.get("visibility") == "private" or asked.get("private") is True)
            return self.send({"url": f"{self.server.url}/datasets/{name}", "id": name, "name": name}, True)
        if path == "/api/validate-yaml":  # the head of a card
            return self.send({"errors": [], "warnings": []}, True)
        if "/preupload/" in path:
            files = json.loads(content)["files"]
            told = [{"path": file["path"], "uploadMode": "regular", "shouldIgnore": False} for file in files]
            return self.send({"files": told, "commitOid": "0" * 40}, True)
        name = path.split("/datasets/")[1].split("/commit/")[0]
        for line in content.splitlines():
            row = json.loads(line)
            if row["key"] == "file":
                self.server.pushed[f"{name}/{row['value']['path']}"] = base64.b64decode(row["value"]["content"])
            elif row["key"] == "deletedFile":
                del self.server.pushed[f"{name}/{row['value']['path']}"]
        at = f"{self.server.url}/datasets/{name}/commit/1"
        self.send({"commitUrl": at, "commitOid": "1" * 40, "pullRequestUrl": None}, True)

    def chunked(self) -> bytes:
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def pushed(self, path: str, body: bool) -> None:
        """What a push asks before it: which files there are."""
        name = next((each for each in self.server.private if f"/datasets/{each}/" in f"{path}/"), "")
        files = {file.removeprefix(f"{name}/"): data for file, data in self.server.pushed.items() if name in file}
        if "/tree/" in path:
            told = [{"type": "file", "path": file, "size": len(data), "oid": "0"} for file, data in files.items()]
            return self.send(told, body)
        siblings = [{"rfilename": file} for file in files]
        self.send(
            {"id": name, "sha": "1" * 40, "siblings": siblings, "tags": [], "private": self.server.private[name]}, body
        )

    def answer(self, body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.requests.append(f"{self.command} {path}")
        time.sleep(self.server.pause)
        name = next((name for name in self.server.repos if f"/datasets/{name}/" in f"{path}/"), None)
        if name is None and self.server.private:
            return self.pushed(path, body)
        if name is None:
            return self.refuse("RepoNotFound", "Repository not found", body)
        repo = self.server.repos[name]
        verb, revision, *rest = path.split(f"/datasets/{name}", 1)[1].strip("/").split("/", 2) + [""] * 2
        if not verb:
            verb, revision = "revision", "main"
        if revision not in (repo.revision, "main"):
            return self.refuse("RevisionNotFound", f"Invalid rev id: {revision}", body)
        if verb == "revision":
            siblings = [{"rfilename": file} for file in repo.files]
            return self.send({"id": name, "sha": repo.revision, "siblings": siblings, "tags": []}, body)
        if verb == "tree":
            return self.send([_entry(file, local) for file, local in repo.files.items()], body)
        if verb == "resolve" and rest[0] in repo.files:
            return self.send_file(repo, repo.files[rest[0]], body)
        return self.refuse("EntryNotFound", "Entry not found", body)

    def refuse(self, code: str, message: str, body: bool) -> None:
        self.send({"error": message}, body, 404, {"X-Error-Code": code, "X-Error-Message": message})

    def send(self, data: object, body: bool, status: int = 200, headers: dict[str, str] | None = None) -> None:
        content = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for key, value in (headers or {}).items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)

    def send_file(self, repo: Repo, local: Path, body: bool) -> None:
        content = local.read_bytes()
        asked = self.headers.get("Range", "")  # an interrupted download goes on where it stopped: "bytes=N-"
        start = int(asked.removeprefix("bytes=").split("-")[0] or 0) if asked else 0
        self.send_response(206 if start else 200)
        self.send_header("X-Repo-Commit", repo.revision)
        self.send_header("ETag", f'"{sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        step = self.server.speed // 10 or len(content) or 1
        for at in range(start, len(content), step) if body else ():
            self.wfile.write(content[at : at + step])
            time.sleep(0.1 * bool(self.server.speed))

    def log_message(self, format: str, *args: object) -> None:
        """Quiet: who wants to know reads `requests`."""


def _entry(file: str, local: Path) -> dict[str, object]:
    content = local.read_bytes()
    blob = sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"type": "file", "path": file, "size": len(content), "oid": blob}


@contextlib.contextmanager
def serve(repos: dict[str, Repo], port: int = 0) -> Iterator[Hub]:
    """A hub in a thread of its own, for as long as the block lasts. port 0: any free one."""
    with Hub(repos, port) as hub:
        thread = threading.Thread(target=hub.serve_forever, daemon=True)
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()


def files_of(name: str, local: Path) -> dict[str, Path]:
    """One file under its name, or all files of a folder under the folder's name."""
    if local.is_dir():
        return {f"{name}/{path.relative_to(local)}": path for path in sorted(local.rglob("*")) if path.is_file()}
    return {name: local}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("what", nargs="+", metavar="DATASET[@REVISION] NAME=PATH ...")
    args = parser.parse_args()

    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tasksets.code_contests import CODE_CONTESTS, CODE_CONTESTS_REVISION
    from tasksets.mbpp import MBPP, MBPP_REVISION

    pins = {CODE_CONTESTS: CODE_CONTESTS_REVISION, MBPP: MBPP_REVISION}
    repos: dict[str, Repo] = {}
    for word in args.what:
        if "=" not in word:
            name, _, revision = word.partition("@")
            repo = repos[name] = Repo(revision or pins.get(name, "0" * 40), {})
        else:
            file, _, local = word.partition("=")
            repo.files.update(files_of(file, Path(local)))
    with Hub(repos, args.port) as hub:
        print(f"HF_ENDPOINT={hub.url}", flush=True)
        for name, repo in repos.items():
            print(f"  {name} at {repo.revision}: {', '.join(repo.files)}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            hub.serve_forever()


if __name__ == "__main__":
    main()
