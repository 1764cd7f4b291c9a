"""How do the tests speak as a runner of Forgejo or Gitea? Through an independent client of the Connect protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connectrpc.client import ConnectClientSync
from connectrpc.compat import google_protobuf_binary_codec, google_protobuf_json_codec
from connectrpc.errors import ConnectError
from connectrpc.method import IdempotencyLevel, MethodInfo, StreamType
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from ci.interop.protocol import ping_pb2, runner_pb2
from ci.lifecycle import registration
from ci.models import Job, Runner, Scope
from tests.playground import Playground

RUNNER, PING = "runner.v1.RunnerService", "ping.v1.PingService"
START = 1_780_000_000  # of the runner's clock
SUCCESS, FAILURE, CANCELLED, SKIPPED = (
    runner_pb2.RESULT_SUCCESS,
    runner_pb2.RESULT_FAILURE,
    runner_pb2.RESULT_CANCELLED,
    runner_pb2.RESULT_SKIPPED,
)
_ANSWERS = {"Ping": (PING, ping_pb2.PingRequest, ping_pb2.PingResponse)} | {
    name: (RUNNER, getattr(runner_pb2, f"{name}Request"), getattr(runner_pb2, f"{name}Response"))
    for name in ("Register", "Declare", "FetchTask", "FetchSingleTask", "UpdateTask", "UpdateLog")
}


class Client:
    """Calls by name, with fields as keywords."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, json: bool = False) -> None:
        self.headers = dict(headers or {})
        codec = google_protobuf_json_codec() if json else google_protobuf_binary_codec()
        # As the runners send theirs: not packed.
        self._client = ConnectClientSync(f"{url}/api/actions", codec=codec, send_compression=None)

    def __call__(self, method: str, *, headers: Mapping[str, str] | None = None, **fields: Any) -> Any:
        return self.send(method, _ANSWERS[method][1](**fields), headers=headers)

    def send(self, method: str, request: Message, *, headers: Mapping[str, str] | None = None) -> Any:
        service, given, answered = _ANSWERS[method]
        info = MethodInfo(
            name=method,
            service_name=service,
            input=given,
            output=answered,
            idempotency_level=IdempotencyLevel.UNKNOWN,
            stream_type=StreamType.UNARY,
        )
        return self._client.execute_unary(
            request=request, method=info, headers={**self.headers, **(headers or {})}, timeout_ms=60_000
        )


class ForeignRunner:
    """A registered one."""

    def __init__(self, url: str, *, uuid: str, token: str, json: bool = False) -> None:
        self.client = Client(url, headers={"x-runner-uuid": uuid, "x-runner-token": token}, json=json)
        self.uuid = uuid

    @property
    def row(self) -> Runner:
        return Runner.objects.get(uuid=self.uuid)

    def fetch(self, *, key: str = "", version: int = 0, **headers: str) -> Any:
        """The task, None for none."""
        headers |= {"x-runner-request-key": key} if key else {}
        answer = self.client("FetchTask", headers=headers, tasks_version=version)
        assert answer.tasks_version >= 1
        return answer.task if answer.HasField("task") else None

    def task(self, **options: Any) -> Any:
        task = self.fetch(**options)
        assert task is not None, "there is no task for this runner"
        return task

    def state(
        self, task: Any, *, result: int = 0, steps: Sequence[Any] = (), outputs: Mapping[str, str] | None = None
    ) -> Any:
        state = runner_pb2.TaskState(id=task.id, result=result, steps=steps, started_at=at(0))
        if result:
            state.stopped_at.CopyFrom(at(60))
        return self.client("UpdateTask", state=state, outputs=outputs or {})

    def log(self, task: Any, *texts: str, index: int = 0, no_more: bool = False) -> int:
        rows = [row(text, number) for number, text in enumerate(texts)]
        return self.client("UpdateLog", task_id=task.id, index=index, rows=rows, no_more=no_more).ack_index

    def finish(self, task: Any, result: int = SUCCESS, **options: Any) -> Any:
        """As a Forgejo runner does: the end, then the end of the log."""
        answer = self.state(task, result=result, **options)
        self.log(task, no_more=True)
        return answer


def at(second: float) -> Timestamp:
    return Timestamp(seconds=START + int(second), nanos=int(second % 1 * 1e9))


def row(text: str, second: float = 0) -> Any:
    return runner_pb2.LogRow(time=at(second), content=text)


def step(number: int, *, first: int = 0, count: int = 0, result: int = 0, began: bool = True) -> Any:
    state = runner_pb2.StepState(id=number, result=result, log_index=first, log_length=count)
    if began:
        state.started_at.CopyFrom(at(1 + number))
    if result:
        state.stopped_at.CopyFrom(at(2 + number))
    return state


def registered(
    playground: Playground, url: str, *labels: str, scope: Scope | None = None, json: bool = False, **fields: Any
) -> ForeignRunner:
    """A runner that has registered by token."""
    _, token = registration.create_registration_token(scope=scope or Scope(), created_by=playground.operator)
    given = {"name": "foreign", "version": "v12.0.0", **fields}
    answer = Client(url)("Register", token=token, labels=labels or ["linux"], **given)
    return ForeignRunner(url, uuid=answer.runner.uuid, token=answer.runner.token, json=json)


def job_of(task: Any) -> Job:
    return Job.objects.get(pk=task.id // 10**6)


def code_of(call: Any, *arguments: Any, **options: Any) -> str:
    """The code of the error that the call ends with."""
    try:
        call(*arguments, **options)
    except ConnectError as error:
        return str(error.code.value)
    raise AssertionError("the call was answered")
