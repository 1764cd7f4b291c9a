"""GitHub's services for artifacts and caches in memory, for the runner's built-in actions; they can misbehave too."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

RUN, JOB = "3", "7"
_CLAIMS = base64.urlsafe_b64encode(json.dumps({"scp": f"x Actions.Results:{RUN}:{JOB}"}).encode()).decode().rstrip("=")
TOKEN = f"head.{_CLAIMS}.signature"
FOLDERS = f"/api/actions_pipeline/_apis/pipelines/workflows/{RUN}/artifacts"
SIGNATURE = "sig-0123456789abcdef"

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Blob:
    blocks: dict[str, bytes] = field(default_factory=dict)
    content: bytes = b""
    content_type: str = ""


@dataclass
class Artifact:
    id: int
    name: str
    blob: str
    run: str = RUN
    size: int = 0
    digest: str = ""
    finalized: bool = False
    asked: dict[str, Any] = field(default_factory=dict)


@dataclass
class Cache:
    key: str
    version: str
    blob: str
    finalized: bool = False


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class FakeResults:
    """`faults`: parts of addresses, each with the status that its next call gets instead (None: half the answer)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.artifacts: list[Artifact] = []
        self.caches: list[Cache] = []
        self.blobs: dict[str, Blob] = {}
        self.folders: dict[str, dict[str, str]] = {}  # by name: the blob of each path
        self.faults: list[tuple[str, int | None]] = []
        self.calls: list[str] = []
        self.ranges: list[str] = []
        self.api_tokens: list[str] = []

    def runtime(self) -> dict[str, str]:
        """As the payload of a job has it."""
        return {
            "token": TOKEN,
            "runtime_url": f"{self.url}/api/actions_pipeline/",
            "results_url": f"{self.url}/",
            "cache_url": f"{self.url}/api/actions_cache/",
        }

    @staticmethod
    def serves(path: str) -> bool:
        return path.startswith(("/twirp/", "/_blobs/", "/api/repos/", FOLDERS))

    def bytes_of(self, name: str) -> bytes:
        """The artifact of that name, whole."""
        found = [one for one in self.artifacts if one.name == name and one.finalized]
        assert found, f"no artifact {name!r} among {[one.name for one in self.artifacts]}"
        return self.blobs[found[-1].blob].content

    def keep(self, name: str, content: bytes, *, run: str = RUN, digest: str = "") -> int:
        """A zip that another job uploaded; its id."""
        blob = self._blob(content, "application/zip")
        one = Artifact(len(self.artifacts) + 1, name, blob, run=run, size=len(content))
        one.digest = digest or f"sha256:{hashlib.sha256(content).hexdigest()}"
        one.finalized = True
        self.artifacts.append(one)
        return one.id

    def cache(self, key: str, version: str, content: bytes) -> None:
        self.caches.append(Cache(key, version, self._blob(content, ""), finalized=True))

    def _blob(self, content: bytes = b"", content_type: str = "") -> str:
        name = f"blob{len(self.blobs) + 1}"
        self.blobs[name] = Blob(content=content, content_type=content_type)
        return name

    def answer(self, method: str, address: str, headers: Mapping[str, str], body: bytes) -> Answer:
        parts = urlsplit(address)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.calls.append(f"{method} {parts.path}{'?' + query['comp'] if 'comp' in query else ''}")
        fault = next((fault for fault in self.faults if fault[0] in address), None)
        if fault:
            self.faults.remove(fault)
            if fault[1] is not None:
                return _json({"code": "unavailable", "msg": "try later"}, fault[1])
        try:
            if parts.path.startswith("/twirp/"):
                return self._twirp(parts.path, headers, json.loads(body))
            if parts.path.startswith(FOLDERS):
                return self._folders(method, parts.path, query, headers, body)
            if parts.path.startswith("/api/repos/"):
                return self._api(parts.path, query, headers)
            status, found, content = self._blobs(method, parts.path, query, headers, body)
            return status, found, content[: len(content) // 2] if fault else content
        except Refused as refusal:
            return _json({"code": "refused", "msg": str(refusal)}, refusal.status)

    def _twirp(self, path: str, headers: Mapping[str, str], given: dict[str, Any]) -> Answer:
        assert headers["Authorization"] == f"Bearer {TOKEN}", "the runtime token is the proof"
        service, _, method = path.rpartition(".")[2].partition("/")
        if service == "ArtifactService":
            assert (given["workflow_run_backend_id"], given["workflow_job_run_backend_id"]) == (RUN, JOB)
        return _json(getattr(self, f"_{method}")(given))

    def _CreateArtifact(self, given: dict[str, Any]) -> dict[str, Any]:
        if any(one.name == given["name"] and one.finalized for one in self.artifacts):
            raise Refused(409, "an artifact with this name already exists on the workflow run")
        one = Artifact(len(self.artifacts) + 1, given["name"], self._blob(), asked=given)
        self.artifacts.append(one)
        return {"ok": True, "signedUploadUrl": self._signed("upload", one.blob)}

    def _FinalizeArtifact(self, given: dict[str, Any]) -> dict[str, Any]:
        one = next(one for one in self.artifacts if one.name == given["name"] and not one.finalized)
        content = self.blobs[one.blob].content
        assert given["size"] == str(len(content)) and given["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
        one.size, one.digest, one.finalized = len(content), given["hash"], True
        return {"ok": True, "artifactId": str(one.id)}

    def _ListArtifacts(self, given: dict[str, Any]) -> dict[str, Any]:
        found = [one for one in self.artifacts if one.finalized and one.run == RUN]
        return {
            "artifacts": [
                {
                    "workflow_run_backend_id": RUN,
                    "workflow_job_run_backend_id": JOB,
                    "database_id": str(one.id),
                    "name": one.name,
                    "size": str(one.size),
                    "digest": one.digest,
                }
                for one in found
                if given.get("name_filter") in (None, one.name)
            ]
        }

    def _GetSignedArtifactURL(self, given: dict[str, Any]) -> dict[str, Any]:
        one = next(one for one in reversed(self.artifacts) if one.name == given["name"] and one.finalized)
        return {"signed_url": self._signed("download", one.blob, f"{one.name}.zip")}

    def _DeleteArtifact(self, given: dict[str, Any]) -> dict[str, Any]:
        one = next(one for one in self.artifacts if one.name == given["name"] and one.finalized)
        self.artifacts.remove(one)
        return {"ok": True, "artifact_id": str(one.id)}

    def _CreateCacheEntry(self, given: dict[str, Any]) -> dict[str, Any]:
        if any((one.key, one.version) == (given["key"], given["version"]) for one in self.caches):
            raise Refused(409, "cache entry already exists")
        one = Cache(given["key"], given["version"], self._blob())
        self.caches.append(one)
        return {"ok": True, "signed_upload_url": self._signed("upload", one.blob)}

    def _FinalizeCacheEntryUpload(self, given: dict[str, Any]) -> dict[str, Any]:
        one = next(one for one in self.caches if (one.key, one.version) == (given["key"], given["version"]))
        assert given["size_bytes"] == str(len(self.blobs[one.blob].content))
        one.finalized = True
        return {"ok": True, "entryId": "1"}

    def _GetCacheEntryDownloadURL(self, given: dict[str, Any]) -> dict[str, Any]:
        of_version = [one for one in reversed(self.caches) if one.finalized and one.version == given["version"]]
        for key in (given["key"], *given["restore_keys"]):
            for one in sorted(of_version, key=lambda one: one.key != key):
                if one.key.startswith(key):
                    url = self._signed("download", one.blob, "cache")
                    return {"ok": True, "signed_download_url": url, "matched_key": one.key}
        return {"ok": False}

    def _signed(self, purpose: str, blob: str, name: str = "") -> str:
        ending = f"/{quote(name, safe='')}" if name else ""
        return f"{self.url}/_blobs/{purpose}/{blob}{ending}?se=1&sig={SIGNATURE}"

    def _blobs(self, method: str, path: str, query: dict[str, str], headers: Mapping[str, str], body: bytes) -> Answer:
        if query.get("sig") != SIGNATURE or "Authorization" in headers:
            raise Refused(403, "this address is not signed")
        _, _, purpose, key, *name = path.split("/")
        blob = self.blobs[key]
        if purpose == "download":
            return self._download(blob, headers, name=name[0])
        if query.get("comp") == "block":
            blob.blocks[query["blockid"]] = body
        elif query.get("comp") == "blocklist":
            blob.content = b"".join(blob.blocks[one] for one in re.findall("<Latest>(.+?)</Latest>", body.decode()))
            blob.content_type = headers["x-ms-blob-content-type"]
        else:
            assert headers["x-ms-blob-type"] == "BlockBlob"
            blob.content = body
        return 201, {}, b""

    def _download(self, blob: Blob, headers: Mapping[str, str], *, name: str) -> Answer:
        start = int((re.match(r"bytes=(\d+)-", headers.get("Range") or "") or [0, 0])[1])
        if start:
            self.ranges.append(headers["Range"])
        found = {"Content-Type": blob.content_type, "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
        content = blob.content[start:]
        return 206 if start else 200, {**found, "Content-Length": str(len(content))}, content

    def _folders(self, method: str, path: str, query: dict[str, str], headers: Any, body: bytes) -> Answer:
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        name, _, file = query.get("itemPath", "").partition("/")
        if method == "POST":
            self.folders.setdefault(json.loads(body)["Name"], {})
            return _json({"fileContainerResourceUrl": f"{self.url}{FOLDERS}/1/files"}, 201)
        if method == "PUT":
            if headers["Content-Range"].startswith("bytes 0-"):
                self.folders[name][file] = self._blob()
            self.blobs[self.folders[name][file]].content += body
            return _json({"message": "success"}, 201)
        if method == "PATCH":
            return _json({"size": json.loads(body)["Size"]})
        if path == FOLDERS:
            listed = [{"name": one, "fileContainerResourceUrl": f"{self.url}{FOLDERS}/1/files"} for one in self.folders]
            return _json({"count": len(listed), "value": listed})
        files = [
            {"itemType": "file", "path": f"{name}/{one}", "contentLocation": self._signed("download", blob, "file")}
            for one, blob in self.folders[name].items()
        ]
        return _json({"count": len(files), "value": files})

    def _api(self, path: str, query: dict[str, str], headers: Mapping[str, str]) -> Answer:
        self.api_tokens.append(headers.get("Authorization", "").removeprefix("Bearer "))
        if found := re.fullmatch(r"/api/repos/(.+)/actions/runs/(\d+)/artifacts", path):
            some = [one for one in self.artifacts if one.run == found[2] and query.get("name") in (None, one.name)]
            listed = [{"id": one.id, "name": one.name, "size_in_bytes": one.size, "digest": one.digest} for one in some]
            return _json({"total_count": len(listed), "artifacts": listed})
        if found := re.fullmatch(r"/api/repos/(.+)/actions/artifacts/(\d+)/zip", path):
            one = next(one for one in self.artifacts if one.id == int(found[2]))
            return 302, {"Location": self._signed("download", one.blob, unquote(f"{one.name}.zip"))}, b""
        raise Refused(404, "there is nothing here")


def _json(said: dict[str, Any], status: int = 200) -> Answer:
    return status, {"Content-Type": "application/json"}, json.dumps(said).encode()
