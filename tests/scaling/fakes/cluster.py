"""What does the faked API server keep, and what does it refuse? Pods and Secrets of some namespaces."""

from __future__ import annotations

import base64
import copy
import itertools
import re
import threading
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kubernetes.client import V1Container, V1PodSpec

KINDS = {"pods": "Pod", "secrets": "Secret"}
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_POD_FIELDS = frozenset(V1PodSpec.attribute_map.values())
_CONTAINER_FIELDS = frozenset(V1Container.attribute_map.values())
Object = dict[str, Any]


class Failure(Exception):
    """The error the API server answers with, as a Status object tells it."""

    def __init__(self, code: int, reason: str, message: str, *, causes: list[str] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = ""
        self.body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"causes": [{"reason": cause} for cause in causes or []]},
            "code": code,
        }


class Store:
    """All objects, changed under one condition that is told of each change; `quota`: Pods a namespace may hold."""

    def __init__(self, namespaces: tuple[str, ...]) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.quota: int | None = None
        self.forbidden: set[tuple[str, str]] = set()
        self.tokens_expire = False
        self._namespaces = namespaces
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._versions = itertools.count(1000)

    def get(self, kind: str, namespace: str, name: str) -> Object:
        with self.changed:
            return copy.deepcopy(self._found(kind, namespace, name))

    def create(self, kind: str, namespace: str, body: Object, *, strict: bool) -> Object:
        with self.changed:
            self._allow("create", kind, namespace)
            made = copy.deepcopy(body)
            name = str(made.get("metadata", {}).get("name") or "")
            if kind == "pods":
                _check_pod(made, strict=strict)
            if not _NAME.fullmatch(name):
                raise _invalid(kind, name, f'metadata.name: Invalid value: "{name}": a lowercase RFC 1123 subdomain')
            if (kind, namespace, name) in self._objects:
                raise Failure(409, "AlreadyExists", f'{kind} "{name}" already exists')
            self._count(kind, namespace, name)
            made["metadata"] |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": _now()}
            if kind == "pods":
                made["spec"].setdefault("terminationGracePeriodSeconds", 30)
                made["status"] = {"phase": "Pending"}
            elif "stringData" in made:
                plain = made.pop("stringData")
                made["data"] = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
            self._put(kind, made)
            answer = copy.deepcopy(made)
            self._collect_garbage()
            return answer

    def list(
        self, kind: str, namespace: str, *, selector: str, limit: int, after: str
    ) -> tuple[list[Object], str | None]:
        """Some of the objects with these labels, and where to go on."""
        with self.changed:
            self._allow("list", kind, namespace)
            if after and self.tokens_expire:
                self.tokens_expire = False
                raise Failure(410, "Expired", "The provided continue parameter is too old to display a consistent list")
            wanted = dict(each.split("=", 1) for each in selector.split(",") if each)
            found = [
                copy.deepcopy(each)
                for key, each in sorted(self._objects.items())
                if key[:2] == (kind, namespace)
                and key[2] > after
                and wanted.items() <= each["metadata"].get("labels", {}).items()
            ]
        more = bool(limit) and len(found) > limit
        page = found[:limit] if limit else found
        return page, page[-1]["metadata"]["name"] if more else None

    def delete(self, kind: str, namespace: str, name: str, options: Mapping[str, Any]) -> Object:
        """A Pod that runs somewhere is only marked; its kubelet removes it once it has ended."""
        with self.changed:
            self._allow("delete", kind, namespace)
            found = self._found(kind, namespace, name)
            wanted = (options.get("preconditions") or {}).get("uid")
            if wanted and wanted != found["metadata"]["uid"]:
                raise Failure(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {KINDS[kind]} "{name}": the UID in the precondition ({wanted})'
                    f" does not match the UID in record ({found['metadata']['uid']}). The object might have been"
                    " deleted and then recreated",
                )
            grace = self._grace(kind, found, options)
            if grace == 0:
                self._remove(kind, found)
            else:
                self._mark(found, grace)
            return copy.deepcopy(found)

    def remove(self, kind: str, found: Object) -> None:
        """The very object, whatever runs in it: as a kubelet confirms."""
        with self.changed:
            metadata = found["metadata"]
            now = self._objects.get((kind, metadata["namespace"], metadata["name"]))
            if now is not None and now["metadata"]["uid"] == metadata["uid"]:
                self._remove(kind, now)

    def set_status(self, pod: Object, status: Object) -> None:
        """Merge into the status of the very Pod; nothing where it is gone."""
        with self.changed:
            metadata = pod["metadata"]
            now = self._objects.get(("pods", metadata["namespace"], metadata["name"]))
            if now is not None and now["metadata"]["uid"] == metadata["uid"]:
                now["status"] = {**now["status"], **copy.deepcopy(status)}
                self._put("pods", now)

    def bind(self, pod: Object, node: str) -> None:
        """Give the Pod to a node, as a scheduler does."""
        with self.changed:
            metadata = pod["metadata"]
            now = self._objects.get(("pods", metadata["namespace"], metadata["name"]))
            if now is not None and now["metadata"]["uid"] == metadata["uid"]:
                now["spec"]["nodeName"] = node
                self._put("pods", now)

    def all(self, kind: str) -> tuple[Object, ...]:
        with self.changed:
            return tuple(copy.deepcopy(each) for key, each in sorted(self._objects.items()) if key[0] == kind)

    # --- within the lock -------------------------------------------------------------------------------------------

    def _found(self, kind: str, namespace: str, name: str) -> Object:
        self._allow("get", kind, namespace)
        if (kind, namespace, name) not in self._objects:
            raise Failure(404, "NotFound", f'{kind} "{name}" not found')
        return self._objects[kind, namespace, name]

    def _allow(self, verb: str, kind: str, namespace: str) -> None:
        if (verb, kind) in self.forbidden:
            raise Failure(
                403,
                "Forbidden",
                f'{kind} is forbidden: User "system:serviceaccount:forge:scaler" cannot {verb} resource "{kind}" in API'
                f' group "" in the namespace "{namespace}"',
            )
        if verb == "create" and namespace not in self._namespaces:
            raise Failure(404, "NotFound", f'namespaces "{namespace}" not found')

    def _count(self, kind: str, namespace: str, name: str) -> None:
        used = sum(1 for key in self._objects if key[:2] == ("pods", namespace))
        if kind == "pods" and self.quota is not None and used >= self.quota:
            raise Failure(
                403,
                "Forbidden",
                f'pods "{name}" is forbidden: exceeded quota: runners, requested: pods=1, used: pods={used}, limited:'
                f" pods={self.quota}",
            )

    def _grace(self, kind: str, found: Object, options: Mapping[str, Any]) -> int:
        """Source: Kubernetes, the Pod strategy's check of a graceful deletion."""
        if kind != "pods":
            return 0
        grace = options.get("gracePeriodSeconds")
        if grace is None:
            grace = found["spec"]["terminationGracePeriodSeconds"]
        ended = found["status"].get("phase") in ("Succeeded", "Failed")
        return 0 if ended or not found["spec"].get("nodeName") else int(grace)

    def _mark(self, found: Object, grace: int) -> None:
        metadata = found["metadata"]
        before = metadata.get("deletionGracePeriodSeconds")
        if before is None or grace < before:  # a later wish may only shorten it
            metadata["deletionGracePeriodSeconds"] = grace
            metadata["deletionTimestamp"] = _now(grace)
            self._put("pods", found)

    def _put(self, kind: str, found: Object) -> None:
        metadata = found["metadata"]
        metadata["resourceVersion"] = str(next(self._versions))
        self._objects[kind, metadata["namespace"], metadata["name"]] = found
        self.changed.notify_all()

    def _remove(self, kind: str, found: Object) -> None:
        metadata = found["metadata"]
        del self._objects[kind, metadata["namespace"], metadata["name"]]
        self._collect_garbage()
        self.changed.notify_all()

    def _collect_garbage(self) -> None:
        """What has an owner goes when that one is gone."""
        uids = {each["metadata"]["uid"] for each in self._objects.values()}
        for key, each in list(self._objects.items()):
            owners = each["metadata"].get("ownerReferences") or []
            if owners and not any(owner["uid"] in uids for owner in owners):
                del self._objects[key]


def _check_pod(pod: Object, *, strict: bool) -> None:
    spec = pod.get("spec", {})
    containers = spec.get("containers") or []
    unknown = [f'unknown field "spec.{name}"' for name in sorted(spec.keys() - _POD_FIELDS)]
    for number, each in enumerate(containers):
        unknown += [
            f'unknown field "spec.containers[{number}].{name}"' for name in sorted(each.keys() - _CONTAINER_FIELDS)
        ]
    if strict and unknown:
        raise Failure(
            400,
            "BadRequest",
            f'Pod in version "v1" cannot be handled as a Pod: strict decoding error: {", ".join(unknown)}',
        )
    name = str(pod.get("metadata", {}).get("name"))
    if not containers:
        raise _invalid("pods", name, "spec.containers: Required value")
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    for number, each in enumerate(containers):
        where = f"spec.containers[{number}]"
        if not each.get("image"):
            raise _invalid("pods", name, f"{where}.image: Required value")
        for place, mount in enumerate(each.get("volumeMounts") or []):
            if mount.get("name") not in volumes:
                raise _invalid("pods", name, f'{where}.volumeMounts[{place}].name: Not found: "{mount.get("name")}"')


def _invalid(kind: str, name: str, what: str) -> Failure:
    return Failure(422, "Invalid", f'{KINDS[kind]} "{name}" is invalid: {what}')


def _now(later: int = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later)).strftime("%Y-%m-%dT%H:%M:%SZ")
