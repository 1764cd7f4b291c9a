"""A real S3 server of the tests: SeaweedFS, as a process of its own, with one bucket."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import obstore
from obstore.store import S3Store

from tests.ports import reserve_port

BUCKET = "forge-blobs"
REGION = "eu-central-1"
KEYS = {"access_key": "test-key", "secret_key": "test-secret"}
# Whoever may everything makes the bucket; the forge gets no more than its documentation says that it needs.
_ADMIN = {"access_key": "admin-key", "secret_key": "admin-secret"}
_RIGHTS = ("Read", "Write", "List")
_PATIENCE = 60.0
_WEED = Path(sys.executable).with_name("weed")


class S3Server:
    """Listens from `start` to `stop`; its bucket is gone with the folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._ports: list[int] = []
        self.url = ""

    def start(self) -> S3Server:
        port = self._reserve()
        self.url = f"http://127.0.0.1:{port}"
        with (self._folder / "log").open("wb") as output:
            self._process = subprocess.Popen(self._command(port), stdout=output, stderr=subprocess.STDOUT)
        self._await_answer()
        # An administrator's first object makes the bucket.
        admin = self._store(_ADMIN)
        obstore.put(admin, "first", b"")
        obstore.delete(admin, "first")
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for port in self._ports:  # its parts meet at sockets that it leaves behind
            for left in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)

    def stored(self) -> dict[str, bytes]:
        store = self._store(_ADMIN)
        return {
            one["path"]: bytes(obstore.get(store, one["path"]).bytes())
            for batch in obstore.list(store)
            for one in batch
        }

    def empty(self) -> None:
        if names := list(self.stored()):
            obstore.delete(self._store(_ADMIN), names)

    @property
    def options(self) -> dict[str, str]:
        return {"bucket": BUCKET, "endpoint": self.url, "region": REGION, **KEYS}

    @property
    def environment(self) -> dict[str, str]:
        return {f"FORGE_S3_{name.upper()}": value for name, value in self.options.items()}

    def _store(self, keys: dict[str, str]) -> S3Store:
        return S3Store(
            BUCKET,
            endpoint=self.url,
            region=REGION,
            access_key_id=keys["access_key"],
            secret_access_key=keys["secret_key"],
            client_options={"allow_http": True},
        )

    def _command(self, port: int) -> list[str]:
        settings = self._folder / "s3.json"
        rights = {"admin": (_ADMIN, ["Admin"]), "forge": (KEYS, [f"{right}:{BUCKET}" for right in _RIGHTS])}
        identities = [
            {
                "name": name,
                "credentials": [{"accessKey": keys["access_key"], "secretKey": keys["secret_key"]}],
                "actions": actions,
            }
            for name, (keys, actions) in rights.items()
        ]
        settings.write_text(json.dumps({"identities": identities}))
        data = self._folder / "data"
        data.mkdir()
        words = [str(_WEED), "server", f"-dir={data}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"]
        words += [f"-s3.port={port}", f"-s3.config={settings}", "-s3.port.iceberg=0", "-s3.port.lance=0"]
        for part in ("master", "volume", "filer"):
            words += [f"-{part}.port={self._reserve()}", f"-{part}.port.grpc={self._reserve()}"]
        words += [f"-s3.port.grpc={self._reserve()}", "-master.volumeSizeLimitMB=64", "-volume.max=20"]
        return [*words, "-master.telemetry=false"]

    def _reserve(self) -> int:
        self._ports.append(reserve_port())
        return self._ports[-1]

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process is not None and self._process.poll() is None, (self._folder / "log").read_text()
            try:
                urllib.request.urlopen(self.url, timeout=10)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError((self._folder / "log").read_text())
