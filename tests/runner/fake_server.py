"""A runner API v1 in memory, so that the runner's tests need no Django and can misbehave on purpose."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.ports import reserve_port
from tests.runner.fake_results import FakeResults

PREFIX = "/api/runner/v1/"
REGISTRATION = "frg_test"
LINE_LIMIT = 64 * 1024


@dataclass
class FakeJob:
    """A job as the server sees it."""

    id: int
    payload: dict[str, Any]
    token: str
    grace: float = 300.0
    state: str = "queued"
    poll_id: str | None = None
    conclusion: str | None = None
    environment_url: str = ""
    cancel: str | None = None
    force_at: datetime | None = None
    outputs: dict[str, str] = field(default_factory=dict)
    steps: dict[int, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[str, str]] = field(default_factory=list)
    log_limit: int | None = None
    log_posts: list[tuple[int, int]] = field(default_factory=list)
    heartbeats: int = 0
    completions: int = 0

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.log)

    def lines_of(self, name: str) -> list[str]:
        """The log lines of the step with that name."""
        step = self.step(name)
        first = step["first_line"]
        return [line for _, line in self.log[first : first + step["line_count"]]]

    def step(self, name: str) -> dict[str, Any]:
        found = [step for step in self.steps.values() if step["name"] == name]
        assert found, f"no step {name!r} among {[step['name'] for step in self.steps.values()]}"
        return found[0]

    def conclusions(self) -> dict[str, str]:
        return {self.steps[n]["name"]: self.steps[n].get("conclusion", "") for n in sorted(self.steps)}


class Refusal(Exception):
    def __init__(self, status: int, code: str, detail: str = "", **more: Any) -> None:
        super().__init__(code)
        self.status = status
        self.body = {"code": code, "detail": detail, **more}


class FakeServer:
    """Start with `start()`; `stop()` and `start()` again keep address and state, as a restart does."""

    def __init__(self, repositories: Path | None = None) -> None:
        self.repositories = repositories
        self.public: set[str] = set()
        self.jobs: dict[int, FakeJob] = {}
        self.runners: dict[str, dict[str, Any]] = {}
        self.calls: list[tuple[str, str]] = []
        self.polls: list[str] = []
        self.faults: list[tuple[str, int | None]] = []  # (part of the path, status or None: drop after acting)
        self.git_tokens: list[str] = []
        self.changed = threading.Condition()
        self.stopping = False
        self._port = reserve_port()
        self._http: ThreadingHTTPServer | None = None
        self.results = FakeResults(self.url)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        server = self

        class Handler(_Handler):
            fake = server

        self.stopping = False
        self._http = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self.stopping = True
        with self.changed:
            self.changed.notify_all()
        if self._http:
            self._http.shutdown()
            self._http.server_close()
            self._http = None

    def add(
        self,
        steps: list[dict[str, Any]],
        *,
        grace: float = 300.0,
        github: dict[str, Any] | None = None,
        secrets: dict[str, str] | None = None,
        contexts: dict[str, Any] | None = None,
        workflow: dict[str, Any] | None = None,
        sources: list[str] | None = None,
        masks: list[str] | None = None,
        name: str = "build (3.11)",
        key: str = "build",
        definition: dict[str, Any] | None = None,
        **keywords: Any,
    ) -> FakeJob:
        """Queue a job with these steps; further keywords are keys of its definition (_ for -)."""
        with self.changed:
            number = len(self.jobs) + 7
            token = f"frj_{number}_s3cr3tjobtoken"
            keys = {**(definition or {}), **{word.replace("_", "-"): value for word, value in keywords.items()}}
            secrets = {"GITHUB_TOKEN": token, **(secrets or {})}
            payload = {
                "job": {
                    "id": number, "assignment": 1, "token": token, "name": name, "key": key, "run_id": 3,
                    "attempt": 1, "timeout_minutes": 360, "cancel_grace_seconds": grace, "log_offset": 0,
                },
                "workflow": {
                    "name": "CI", "path": ".github/workflows/ci.yml", "env": {}, "defaults": {}, **(workflow or {}),
                },
                "definition": {"needs": [], "runs-on": "ubuntu-latest", "steps": steps, **keys},
                "contexts": {
                    "github": self._github(token) | (github or {}),
                    "needs": {}, "matrix": {}, "vars": {}, "inputs": {}, "secrets": secrets,
                    "strategy": {"fail-fast": True, "job-index": 0, "job-total": 1, "max-parallel": 1},
                    **(contexts or {}),
                },
                "actions_sources": sources or [],
                "runtime": self.results.runtime(),
                "masks": [*secrets.values(), *(masks or [])],
            }  # fmt: skip
            job = FakeJob(number, payload, token, grace)
            self.jobs[number] = job
            self.changed.notify_all()
        return job

    def _github(self, token: str) -> dict[str, Any]:
        return {
            "actor": "mona", "actor_id": "1", "api_url": f"{self.url}/api", "base_ref": "",
            "event": {"ref": "refs/heads/main"},
            "event_name": "push", "graphql_url": "", "head_ref": "", "ref": "refs/heads/main", "ref_name": "main",
            "ref_protected": False, "ref_type": "branch", "repository": "octo/hello", "repository_id": "5",
            "repository_owner": "octo", "repository_owner_id": "2", "repositoryUrl": "git://x/octo/hello.git",
            "retention_days": "90", "run_attempt": "1", "run_id": "3", "run_number": "12", "secret_source": "Actions",
            "server_url": self.url, "sha": "a" * 40, "token": token, "triggering_actor": "mona", "workflow": "CI",
            "workflow_ref": "octo/hello/.github/workflows/ci.yml@refs/heads/main", "workflow_sha": "a" * 40,
        }  # fmt: skip

    def cancel(self, job: FakeJob, reason: str = "owner") -> None:
        with self.changed:
            job.cancel = reason
            job.force_at = datetime.now(UTC) + timedelta(seconds=job.grace)
            self.changed.notify_all()

    def end(self, job: FakeJob, conclusion: str = "failure") -> None:
        """The server ends the job by itself (lost, forced)."""
        with self.changed:
            job.state, job.conclusion = "ended", conclusion
            self.changed.notify_all()

    def wait(self, condition: Any, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        with self.changed:
            while not condition():
                left = deadline - time.monotonic()
                assert left > 0, "the awaited state did not come"
                self.changed.wait(min(left, 0.5))

    # --- the calls -------------------------------------------------------------------------------------------

    def answer(self, method: str, path: str, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        parts = path.removeprefix(PREFIX).strip("/").split("/")
        if parts == ["runners"] and method == "POST":
            return self._register(token, body)
        if parts == ["runners", "self"]:
            runner = self._runner(token)
            if method == "PATCH":
                runner.update({key: value for key, value in body.items() if key != "token"})
            return 200, {key: value for key, value in runner.items() if key != "token"}
        if parts == ["jobs", "fetch"]:
            self._runner(token)
            return self._fetch(body)
        if parts[0] == "jobs" and len(parts) == 3:
            return getattr(self, f"_{parts[2]}")(self._job(int(parts[1]), token), body)
        raise Refusal(404, "not_found")

    def _register(self, token: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if token != REGISTRATION:
            raise Refusal(401, "unauthenticated", "unknown registration token")
        number = len(self.runners) + 1
        runner = {"id": number, "name": body["name"], "labels": body["labels"], "ephemeral": body["ephemeral"]}
        self.runners[f"frr_{number}"] = dict(runner)
        return 201, {**runner, "token": f"frr_{number}"}

    def _runner(self, token: str) -> dict[str, Any]:
        if token not in self.runners:
            raise Refusal(401, "unauthenticated")
        return self.runners[token]

    def _job(self, number: int, token: str) -> FakeJob:
        if number not in self.jobs:
            raise Refusal(404, "not_found")
        if token != self.jobs[number].token:
            raise Refusal(401, "unauthenticated")
        return self.jobs[number]

    def _fetch(self, body: dict[str, Any]) -> tuple[int, dict[str, Any] | None]:
        assert 1 <= len(body["poll_id"]) <= 64 and 0 <= body["wait"] <= 50
        deadline = time.monotonic() + body["wait"]
        with self.changed:
            self.polls.append(body["poll_id"])
            while not self.stopping:
                for job in self.jobs.values():
                    if job.state == "assigned" and job.poll_id == body["poll_id"]:
                        return 200, job.payload
                for job in self.jobs.values():
                    if job.state == "queued":
                        job.state, job.poll_id = "assigned", body["poll_id"]
                        self.changed.notify_all()
                        return 200, job.payload
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
        return 204, None

    def _alive(self, job: FakeJob) -> None:
        if job.state == "ended":
            raise Refusal(409, "job_ended", conclusion=job.conclusion, reason="over")

    def _heartbeat(self, job: FakeJob, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        deadline = time.monotonic() + body["wait"]
        with self.changed:
            self._alive(job)
            job.state, job.poll_id = "running", None
            job.heartbeats += 1
            self.changed.notify_all()
            while not self.stopping and not job.cancel and job.state != "ended":
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self.changed.wait(left)
            self._alive(job)
            force_at = job.force_at.isoformat() if job.force_at else None
            return 200, {"cancel": job.cancel, "deadline": None, "force_at": force_at}

    def _steps(self, job: FakeJob, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        with self.changed:
            self._alive(job)
            self._take_steps(job, body["steps"])
            self.changed.notify_all()
        return 200, {}

    def _take_steps(self, job: FakeJob, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            assert step["number"] >= 1 and step["name"] and step["state"] in ("pending", "running", "ended")
            assert (step["state"] == "ended") == ("conclusion" in step)
            if job.steps.get(step["number"], {}).get("state") != "ended":
                job.steps[step["number"]] = step

    def _log(self, job: FakeJob, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        offset, lines = body["offset"], body["lines"]
        assert len(lines) <= 10_000
        with self.changed:
            job.log_posts.append((offset, len(lines)))
            if offset > len(job.log):
                raise Refusal(409, "log_offset", next_offset=len(job.log))
            for when, text in lines[len(job.log) - offset :]:
                if job.log_limit is not None and len(job.log) >= job.log_limit:
                    job.cancel = job.cancel or "log_limit"
                    self.changed.notify_all()
                    raise Refusal(413, "log_limit", next_offset=len(job.log))
                assert "\0" not in text and "\n" not in text and len(text.encode()) <= LINE_LIMIT
                datetime.fromisoformat(when)
                job.log.append((when, text))
            self.changed.notify_all()
            return 200, {"next_offset": len(job.log)}

    def _complete(self, job: FakeJob, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        assert body["conclusion"] in ("success", "failure", "cancelled")
        with self.changed:
            job.completions += 1
            if job.state != "ended":
                self._take_steps(job, body["steps"])
                job.state, job.conclusion, job.outputs = "ended", body["conclusion"], body["outputs"]
                job.environment_url = body.get("environment_url", "")
            self.changed.notify_all()
        return 200, {"conclusion": job.conclusion, "reason": None}


class _Handler(BaseHTTPRequestHandler):
    fake: FakeServer
    protocol_version = "HTTP/1.1"
    # Head and body leave in two writes; Nagle's wait between them would be the only delay of a local call.
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _handle(self) -> None:
        path = urlsplit(self.path).path
        body = self._body()
        if self.fake.results.serves(path):
            self._results(body)
            return
        if not path.startswith(PREFIX):
            self._git(path, body)
            return
        self.fake.calls.append((self.command, path.removeprefix(PREFIX)))
        fault = next((fault for fault in self.fake.faults if fault[0] in path), None)
        if fault:
            self.fake.faults.remove(fault)
            if fault[1]:
                self._send(fault[1], {"code": "unavailable", "detail": ""})
                return
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        try:
            status, answer = self.fake.answer(self.command, path, token, json.loads(body or b"{}"))
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body
        if fault:
            self.close_connection = True  # acted, but the answer is lost
            return
        self._send(status, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, status: int, answer: dict[str, Any] | None) -> None:
        content = b"" if answer is None else json.dumps(answer).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True

    def _results(self, body: bytes) -> None:
        status, headers, content = self.fake.results.answer(self.command, self.path, self.headers, body)
        length = headers.pop("Content-Length", str(len(content)))
        try:
            self.send_response(status)
            for key, value in {**headers, "Content-Length": length}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            self.close_connection = True
        if int(length) > len(content):
            self.close_connection = True

    def _git(self, path: str, body: bytes) -> None:
        """git's own CGI program, behind the job's token."""
        fake, parts = self.fake, path.strip("/").split("/")
        name = "/".join(parts[:2]).removesuffix(".git")
        scheme, _, given = self.headers.get("Authorization", "").partition(" ")
        # The scheme has no case: actions/checkout writes "basic".
        token = base64.b64decode(given).decode() if scheme.lower() == "basic" else ""
        fake.git_tokens.append(token)
        allowed = name in fake.public or token.removeprefix("x-access-token:") in {j.token for j in fake.jobs.values()}
        if fake.repositories is None or not (fake.repositories / f"{name}.git").exists():
            self._send(404, {"code": "not_found"})
            return
        if not allowed:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(fake.repositories), "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": self.command,
            "PATH_INFO": unquote(f"/{name}.git/" + "/".join(parts[2:])), "QUERY_STRING": urlsplit(self.path).query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "uploadpack.allowAnySHA1InWant", "GIT_CONFIG_VALUE_0": "true",
        }  # fmt: skip
        done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, timeout=60)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
