"""Are calls framed as Connect frames them, and is each that is not refused with its code, and nothing stored?"""

import gzip
import json
import time
import zlib

import httpx
import pytest

from ci.interop.protocol import runner_pb2
from ci.models import JobState, Runner
from ci.storage import logs
from tests.interop.blob_server import peak
from tests.interop.foreign import job_of, registered, row

PROTO, JSON = "application/proto", "application/json"
MIB = 1024 * 1024
RESOURCES = "resource_exhausted"


@pytest.fixture
def runner(world, forge):
    return registered(world, forge.url)


@pytest.fixture
def task(world, runner):
    world.run()
    return runner.task()


def post_to(server, procedure, content, kind, method, headers):
    service = "ping.v1.PingService" if procedure == "Ping" else "runner.v1.RunnerService"
    sent = {"content-type": kind, "connect-protocol-version": "1", **headers}
    url = f"{server.url}/api/actions/{procedure if '/' in procedure else f'{service}/{procedure}'}"
    return httpx.request(method, url, content=content, headers=sent, timeout=120)


@pytest.fixture
def post(forge, runner):
    """Posts bytes to a procedure, as the registered runner."""

    def call(procedure, content=b"", *, kind=PROTO, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return post_to(forge, procedure, content, kind, "POST", {**runner.client.headers, **named})

    return call


@pytest.fixture
def ping(forge):
    """Posts bytes, as nobody; what a call is framed in is looked at before anything else."""

    def call(content=b"", *, procedure="Ping", kind=PROTO, method="POST", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return post_to(forge, procedure, content, kind, method, named)

    return call


def refused(answer, status, code):
    assert answer.headers["content-type"] == JSON
    said = answer.json()
    assert (answer.status_code, said["code"]) == (status, code), said
    assert said["message"]
    return True


def test_an_empty_body_is_the_empty_message(post):
    answer = post("FetchTask")
    assert (answer.status_code, answer.headers["content-type"]) == (200, PROTO)
    assert runner_pb2.FetchTaskResponse.FromString(answer.content).tasks_version == 1


def test_protobuf_is_answered_with_protobuf_and_json_with_json(ping):
    answer = ping(b"\n\x03you")
    assert (answer.headers["content-type"], answer.content) == (PROTO, b"\n\x0bHello, you!")
    answer = ping(b'{"data":"you","unknown":1}', kind=JSON)
    assert (answer.headers["content-type"], answer.json()) == (JSON, {"data": "Hello, you!"})
    assert ping(kind=f"{JSON}; charset=utf-8").json() == {"data": "Hello, !"}


def test_json_has_numbers_of_64_bits_as_texts(post, world):
    world.run()
    task = post("FetchTask", b"{}", kind=JSON).json()["task"]
    assert task["id"] == str(job_of(runner_pb2.Task(id=int(task["id"]))).pk * 10**6 + 1)


def test_a_large_answer_is_packed_for_who_takes_it(post, world):
    world.run()
    plain = post("FetchTask", accept_encoding="identity", x_runner_request_key="k")
    assert "content-encoding" not in plain.headers
    packed = post("FetchTask", accept_encoding="gzip", x_runner_request_key="k")
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content)
    task = runner_pb2.FetchTaskResponse.FromString(packed.content).task  # httpx has unpacked it
    assert task.id == runner_pb2.FetchTaskResponse.FromString(plain.content).task.id


def test_a_small_answer_is_not_packed(ping):
    assert "content-encoding" not in ping(b"\n\x03you", accept_encoding="gzip").headers


def test_a_packed_request_is_unpacked(ping):
    answer = ping(gzip.compress(b"\n\x03you"), content_encoding="gzip")
    assert answer.content == b"\n\x0bHello, you!"


def test_the_protocol_header_may_be_missing_but_not_wrong(ping):
    assert ping(connect_protocol_version="").status_code == 200
    assert refused(ping(connect_protocol_version="2"), 400, "invalid_argument")


@pytest.mark.parametrize("kind", ["text/plain", "application/grpc", "application/x-protobuf", ""])
def test_another_content_type_is_refused(ping, kind):
    answer = ping(kind=kind)
    assert answer.status_code == 415
    assert answer.headers["accept-post"] == "application/json, application/proto"


def test_another_packing_is_unimplemented(ping):
    answer = ping(content_encoding="br")
    assert refused(answer, 501, "unimplemented")
    assert answer.headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    "procedure", ["UpdateJobSummary", "fetchtask", "ping.v1.PingService/Pong", "runner.v1.Other/X"]
)
def test_an_unknown_procedure_is_unimplemented(ping, procedure):
    assert refused(ping(procedure=procedure), 501, "unimplemented")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_only_post_is_taken(ping, method):
    answer = ping(method=method)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"\n\xffshort", PROTO),
        (b"\n\x02\xff\xfe", PROTO),
        (b"\xff\xff\xff", PROTO),
        (b'{"data":', JSON),
        (b'{"data":{}}', JSON),
        (b"[]", JSON),
        (b"null", JSON),
        (b"1", JSON),
        (b"\xff", JSON),
        (b'{"data":"\\ud800"}', JSON),
        (b'{"data":' + b"[" * 5000, JSON),
    ],
)
def test_a_message_that_is_damaged_is_an_invalid_argument(ping, content, kind):
    assert refused(ping(content, kind=kind), 400, "invalid_argument")


def test_a_truncated_report_changes_nothing(post, task):
    whole = runner_pb2.UpdateTaskRequest(state=runner_pb2.TaskState(id=task.id, result=1)).SerializeToString()
    assert refused(post("UpdateTask", whole[:-1]), 400, "invalid_argument")
    assert job_of(task).state == JobState.ASSIGNED


def test_a_damaged_packing_is_an_invalid_argument(ping):
    assert refused(ping(b"no gzip", content_encoding="gzip"), 400, "invalid_argument")
    assert refused(ping(gzip.compress(b"\n\x03you")[:-9], content_encoding="gzip"), 400, "invalid_argument")


def test_a_log_batch_of_65_mib_is_refused_and_nothing_of_it_stored(post, task):
    request = runner_pb2.UpdateLogRequest(task_id=task.id, rows=[row("x" * 63 * 1024) for _ in range(1057)])
    content = request.SerializeToString()
    assert len(content) > 65 * MIB
    assert refused(post("UpdateLog", content), 429, "resource_exhausted")
    assert logs.length(job_of(task).pk) == 0
    assert job_of(task).state == JobState.ASSIGNED


def test_a_packed_message_is_bounded_by_what_it_unpacks_to(post, task):
    request = runner_pb2.UpdateLogRequest(task_id=task.id, rows=[row("x" * MIB)]).SerializeToString()
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(request) for _ in range(80)) + packer.flush()
    assert len(bomb) < MIB
    assert refused(post("UpdateLog", bomb, content_encoding="gzip"), 429, "resource_exhausted")
    assert logs.length(job_of(task).pk) == 0


def test_a_batch_of_more_lines_than_a_log_has_is_refused_before_it_is_parsed(post, task, forge):
    post("UpdateLog", runner_pb2.UpdateLogRequest(task_id=task.id, rows=[row("x" * MIB)] * 8).SerializeToString())
    before = peak(forge)
    assert refused(post("UpdateLog", gzip.compress(b"\x1a\0" * 4 * MIB), content_encoding="gzip"), 429, RESOURCES)
    assert peak(forge) - before < 64 * MIB, "each of the four million lines would take a hundred bytes"


@pytest.mark.parametrize("report", [b"*\0" * 60_000, b"*\0" * 30_000 + b"\x0a\x02*\0" * 30_000])
def test_a_report_of_more_steps_than_a_job_can_have_is_refused_before_it_is_parsed(post, task, report):
    length = len(report)
    varint = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
    assert refused(post("UpdateTask", b"\x0a" + varint + report), 429, RESOURCES)


def test_a_message_in_json_has_a_smaller_limit_for_it_takes_long_to_read(post, task):
    content = b'{"rows":[' + b"{}," * 200_000 + b"{}]}"
    began = time.monotonic()
    assert refused(post("UpdateLog", content, kind=JSON), 429, RESOURCES)
    assert time.monotonic() - began < 10
    assert "larger than 524288 bytes" in post("UpdateLog", content, kind=JSON).json()["message"]


def test_small_messages_have_a_small_limit(ping):
    assert refused(ping(b"\n\x80\x80\x08" + b"x" * 131072), 429, "resource_exhausted")


def test_the_server_goes_on_after_what_it_refused(post, task):
    post("UpdateLog", b"\xff" * 1000)
    answer = post("UpdateLog", runner_pb2.UpdateLogRequest(task_id=task.id, rows=[row("x")]).SerializeToString())
    assert runner_pb2.UpdateLogResponse.FromString(answer.content).ack_index == 1


def test_who_calls_is_asked_before_the_message_is_read(post):
    headers = {"x_runner_token": "frr_wrong"}
    assert refused(post("UpdateLog", b"\xff" * 100, **headers), 401, "unauthenticated")
    assert Runner.objects.count() == 1


@pytest.mark.parametrize("timeout", ["x", "-1", "12345678901", "1.5"])
def test_a_deadline_that_is_no_number_is_refused(post, timeout):
    assert refused(post("FetchTask", connect_timeout_ms=timeout), 400, "invalid_argument")


def test_an_answer_in_json_says_what_is_wrong_in_a_sentence(post):
    answer = post("FetchTask", x_runner_uuid="x", x_runner_token="y")
    assert json.loads(answer.content) == {"code": "unauthenticated", "message": "unregistered runner"}
