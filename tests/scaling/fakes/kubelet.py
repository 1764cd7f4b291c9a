"""Who runs the Pods of the faked cluster? One node, whose containers are real processes of this machine."""

from __future__ import annotations

import base64
import re
import signal
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.scaling.fakes.boxes import Box
from tests.scaling.fakes.cluster import Object, Store

NODE = "node-1"
MAX_MESSAGE = 2048  # Kubernetes docs, "Customizing the termination message": 2048 bytes of the log
_UNITS = {"": 1, "Ki": 1024, "Mi": 1024**2, "Gi": 1024**3}
_QUANTITY = re.compile(r"(\d+)(Ki|Mi|Gi)?")


class Kubelet:
    """Watches the store: starts what is new, ends what is marked, and tells of both in the Pods' status."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.images_missing: set[str] = set()
        self.is_full = False  # no Pod is given to the node
        self.hears = True  # whether it acts upon deletions, as a node that is cut off does not
        self._store = store
        self._folder = folder
        self._workers: dict[str, _Worker] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def boxes(self, uid: str) -> dict[str, Box]:
        worker = self._workers.get(uid)
        return dict(worker.boxes) if worker else {}

    def evict(self, pod: Object) -> None:
        """As a kubelet does under memory pressure: end the Pod, and say why in its status."""
        worker = self._workers[pod["metadata"]["uid"]]
        worker.failure = {"reason": "Evicted", "message": "The node was low on resource: memory."}
        for box in list(worker.boxes.values()):
            box.kill()

    def close(self) -> None:
        with self._store.changed:
            self._closed = True
            self._store.changed.notify_all()
        self._thread.join(60)
        for worker in self._workers.values():
            worker.over.set()
            for box in list(worker.boxes.values()):
                box.kill()

    def _run(self) -> None:
        while not self._closed:
            with self._store.changed:
                self._look()
                self._store.changed.wait(0.02)

    def _look(self) -> None:
        there = {pod["metadata"]["uid"]: pod for pod in self._store.all("pods")}
        for uid, pod in there.items():
            if uid not in self._workers:
                self._workers[uid] = _Worker(self, self._store, pod, self._folder / uid)
            if self.hears:
                self._workers[uid].mark(pod["metadata"])
        for uid, worker in self._workers.items():
            if uid not in there and self.hears:
                worker.mark({"deletionGracePeriodSeconds": 0})


class _Worker:
    """One Pod, in a thread of its own."""

    def __init__(self, kubelet: Kubelet, store: Store, pod: Object, folder: Path) -> None:
        self.boxes: dict[str, Box] = {}
        self.failure: dict[str, str] = {}
        self.over = threading.Event()
        self._kubelet = kubelet
        self._store = store
        self._pod = pod
        self._folder = folder
        self._told = False
        self._kill_at: float | None = None
        self._asked_at: float | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def mark(self, metadata: Mapping[str, Any]) -> None:
        """The Pod is to be deleted, within its grace."""
        grace = metadata.get("deletionGracePeriodSeconds")
        if grace is None:
            return
        self._asked_at = self._asked_at or time.monotonic()
        self._kill_at = self._asked_at + grace

    def _run(self) -> None:
        if self._until_scheduled() and self._until_made() and self._init():
            self._start_all()
        while not self._ended():
            self._end_what_is_due()
            if self.over.wait(0.01):
                return
        self._settle()
        while self._kill_at is None and not self.over.wait(0.01):
            pass  # what has ended stays until somebody deletes it
        self._store.remove("pods", self._pod)

    def _until_scheduled(self) -> bool:
        while self._kubelet.is_full:
            message = "0/1 nodes are available: 1 Insufficient cpu."
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            self._status(conditions=[condition])
            if self._wait():
                return False
        self._store.bind(self._pod, NODE)
        self._status(conditions=[{"type": "PodScheduled", "status": "True"}])
        return True

    def _until_made(self) -> bool:
        """Wait for images and secrets, as long as it takes."""
        while True:
            waiting = {each["name"]: self._lacks(each) for each in self._pod["spec"]["containers"]}
            if not any(waiting.values()):
                return True
            self._status(
                containerStatuses=[
                    _container_status(each, {"waiting": waiting[each["name"]] or {"reason": "ContainerCreating"}})
                    for each in self._pod["spec"]["containers"]
                ]
            )
            if self._wait():
                return False

    def _lacks(self, container: Object) -> dict[str, str] | None:
        image = container["image"]
        if image in self._kubelet.images_missing:
            return {"reason": "ErrImagePull", "message": f'rpc error: code = NotFound desc = failed to pull "{image}"'}
        for entry in container.get("env") or []:
            wanted = (entry.get("valueFrom") or {}).get("secretKeyRef")
            if wanted and self._secret(wanted["name"]) is None:
                return {"reason": "CreateContainerConfigError", "message": f'secret "{wanted["name"]}" not found'}
        return None

    def _init(self) -> bool:
        for container in self._pod["spec"].get("initContainers") or []:
            self._start(container)
            box = self.boxes[container["name"]]
            while box.exit_code is None:
                self._end_what_is_due()
                box.join(0.01)
            self._status(initContainerStatuses=[self._told_of(container)])
            if box.exit_code:
                return False
        return True

    def _start_all(self) -> None:
        for container in self._pod["spec"]["containers"]:
            self._start(container)
        self._status(phase="Running", containerStatuses=self._all_told())

    def _start(self, container: Object) -> None:
        name = container["name"]
        box = Box(f"{self._pod['metadata']['uid']}-{name}", self._folder / name, ended=self._box_ended)
        self.boxes[name] = box
        memory = _bytes((container.get("resources") or {}).get("limits", {}).get("memory", "0"))
        command = [*(container.get("command") or []), *(container.get("args") or [])]
        try:
            box.start(command, self._environment(container), memory=memory)
        except OSError:
            box.log.write_text(f'exec: "{command[0]}": executable file not found in $PATH: unknown\n')
            box.exit_code = 128

    def _environment(self, container: Object) -> dict[str, str]:
        variables = {}
        for entry in container.get("env") or []:
            wanted = (entry.get("valueFrom") or {}).get("secretKeyRef")
            if wanted:
                data = self._secret(wanted["name"]) or {}
                variables[entry["name"]] = base64.b64decode(data[wanted["key"]]).decode()
            else:
                variables[entry["name"]] = entry.get("value", "")
        return variables

    def _secret(self, name: str) -> dict[str, str] | None:
        namespace = self._pod["metadata"]["namespace"]
        for each in self._store.all("secrets"):
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
                return dict(each["data"])
        return None

    def _wait(self) -> bool:
        """Whether the Pod is to be deleted, after a moment."""
        return self.over.wait(0.01) or self._kill_at is not None

    def _box_ended(self, box: Box) -> None:
        with self._store.changed:
            if all(each in self.boxes for each in self._names()) and not self.failure:
                self._status(containerStatuses=self._all_told())

    def _ended(self) -> bool:
        return all(box.exit_code is not None for box in self.boxes.values())

    def _end_what_is_due(self) -> None:
        if self._kill_at is None:
            return
        late = time.monotonic() >= self._kill_at
        for box in list(self.boxes.values()):
            if late:
                box.kill()
            elif not self._told:
                box.signal(signal.SIGTERM)
        self._told = True

    def _settle(self) -> None:
        made = [self.boxes[name] for name in self._names() if name in self.boxes]
        if self._kill_at is not None and not made:
            return
        good = len(made) == len(self._names()) and all(box.exit_code == 0 for box in made)
        status: Object = {"phase": "Succeeded" if good and not self.failure else "Failed", **self.failure}
        if len(made) == len(self._names()):
            status["containerStatuses"] = self._all_told()
        self._status(**status)

    def _names(self) -> list[str]:
        return [each["name"] for each in self._pod["spec"]["containers"]]

    def _all_told(self) -> list[Object]:
        return [self._told_of(each) for each in self._pod["spec"]["containers"]]

    def _told_of(self, container: Object) -> Object:
        box = self.boxes[container["name"]]
        if box.exit_code is None:
            return _container_status(container, {"running": {"startedAt": _now()}})
        reason = "OOMKilled" if box.out_of_memory else "Completed" if box.exit_code == 0 else "Error"
        ended: Object = {"exitCode": box.exit_code, "reason": "StartError" if box.exit_code == 128 else reason}
        ended |= {"finishedAt": _now(), "startedAt": _now()}
        if box.exit_code and container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            ended["message"] = box.log.read_bytes()[-MAX_MESSAGE:].decode(errors="replace")
        return _container_status(container, {"terminated": ended})

    def _status(self, **status: Any) -> None:
        self._store.set_status(self._pod, status)


def _container_status(container: Object, state: Object) -> Object:
    """Source of the fields that must be there: core/v1 ContainerStatus."""
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _bytes(quantity: str) -> int:
    found = _QUANTITY.fullmatch(quantity)
    assert found, quantity
    return int(found[1]) * _UNITS[found[2] or ""]
