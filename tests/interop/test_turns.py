"""Are few large messages held at once, each until its call has ended?"""

import asyncio

import pytest

from ci.interop import connect_bodies
from ci.interop.connect import PROTO, Method, serve
from ci.interop.protocol import ping_pb2

LARGE = b"\n\x80\x80\xc0\x01" + b"x" * 3 * 1024 * 1024


class Client:
    def __init__(self):
        self.sent = []
        self._messages = [{"type": "http.request", "body": LARGE}]

    async def receive(self):
        if self._messages:
            return self._messages.pop()
        await asyncio.sleep(3600)

    async def send(self, message):
        self.sent.append(message)


def calls(handler, count):
    headers = [(b"content-type", PROTO.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers}
    methods = {"Ping": Method(ping_pb2.PingRequest, handler, 64 * 1024 * 1024)}
    clients = [Client() for _ in range(count)]
    return clients, [serve(methods, "Ping", scope, client.receive, client.send) for client in clients]


@pytest.mark.parametrize("fails", [False, True])
def test_a_turn_lasts_until_the_handler_has_ended(fails):
    handling = most = 0

    async def handler(call, request):
        nonlocal handling, most
        handling += 1
        most = max(most, handling)
        await asyncio.sleep(0.05)
        handling -= 1
        if fails:
            raise ValueError("as told")
        return ping_pb2.PingResponse()

    async def run():
        clients, running = calls(handler, 6)
        async with asyncio.timeout(30):
            await asyncio.gather(*running)
        return [client.sent[0]["status"] for client in clients]

    assert asyncio.run(run()) == [500 if fails else 200] * 6
    assert most == connect_bodies._LARGE_AT_ONCE
