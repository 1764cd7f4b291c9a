"""A real S3 server of the tests: moto's, in a process of its own, with one bucket."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from tests.ports import reserve_port

BUCKET = "forge-blobs"
KEYS = {"access_key": "test-key", "secret_key": "test-secret"}
REGION = "eu-central-1"
_PATIENCE = 60.0


class S3Server:
    """Listens from `start` to `stop`; its buckets are gone with it."""

    def __init__(self, folder: Path) -> None:
        self.port = reserve_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "s3.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> S3Server:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._await_answer()
        self.client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id=KEYS["access_key"],
            aws_secret_access_key=KEYS["secret_key"],
            config=Config(s3={"addressing_style": "path"}),
        )

    def stored(self) -> dict[str, bytes]:
        found = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {one["Key"]: self.client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}

    def empty(self) -> None:
        for key in self.stored():
            self.client.delete_object(Bucket=BUCKET, Key=key)

    @property
    def options(self) -> dict[str, str]:
        return {"bucket_name": BUCKET, "endpoint_url": self.url, "region_name": REGION, **KEYS}

    @property
    def environment(self) -> dict[str, str]:
        return {
            "FORGE_S3_BUCKET": BUCKET,
            "FORGE_S3_ENDPOINT": self.url,
            "FORGE_S3_REGION": REGION,
            "FORGE_S3_ACCESS_KEY": KEYS["access_key"],
            "FORGE_S3_SECRET_KEY": KEYS["secret_key"],
        }

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process is not None and self._process.poll() is None, self._log.read_text()
            try:
                urllib.request.urlopen(self.url, timeout=10)
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError(self._log.read_text())
