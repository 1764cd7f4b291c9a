"""Which container does a set's template describe?"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from ci.scaling.launchers import fields, marks
from ci.scaling.launchers.protocol import TOKEN_FILE_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, Launch
from ci.scaling.launchers.trust import needs_trust, templates_are_trusted

# Not below /run, which images and templates like to cover with a tmpfs.
TOKEN_FOLDER = "/forge-runner"  # noqa: S105 (a path)
TOKEN_FILE = f"{TOKEN_FOLDER}/token"
COMMAND = ["python", "-m", "ci.runner", "once"]
PULLS = ("missing", "always", "never")  # docker run --pull
LEAST_MEMORY = 6 * 1024 * 1024  # Docker docs, "Runtime options with Memory": at least 6m
_SIZE = re.compile(r"([0-9]{1,15})([bkmg]?)", re.IGNORECASE)
_FACTORS = {"": 1, "b": 1, "k": 1024, "m": 1024**2, "g": 1024**3}
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
_NETWORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_OPEN_NETWORKS = ("default", "bridge", "none")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?")
_MOUNT_FIELDS = frozenset({"type", "source", "target", "read_only", "size"})
GATEWAY = "host-gateway"


def check_template(template: Mapping[str, Any]) -> list[str]:
    """What is wrong with a template, a sentence each."""
    return fields.problems(template, checks=_CHECKS, required=("image",))


def container(launch: Launch) -> dict[str, Any]:
    """The body of the engine's call that creates the container; without the token, which everybody could read there.

    Source of the names: Docker Engine API, "Create a container".
    """
    template = launch.template
    variables = {**template.get("environment", {}), **launch.environment()}
    del variables[TOKEN_VARIABLE]
    variables[TOKEN_FILE_VARIABLE] = TOKEN_FILE
    variables[URL_VARIABLE] = template.get("url", launch.url)
    body: dict[str, Any] = {
        "Image": template["image"],
        "Cmd": template.get("command", COMMAND),
        "Env": [f"{name}={value}" for name, value in variables.items()],
        "Labels": marks.labels(launch),
        "HostConfig": _host(template),
    }
    if "entrypoint" in template:
        body["Entrypoint"] = template["entrypoint"]
    if "user" in template:
        body["User"] = template["user"]
    if "working_directory" in template:
        body["WorkingDir"] = template["working_directory"]
    return body


def _host(template: Mapping[str, Any]) -> dict[str, Any]:
    # The engine must neither start it again nor take it away: its exit code is still to be read.
    host: dict[str, Any] = {"RestartPolicy": {"Name": "no"}, "AutoRemove": False}
    if "memory" in template:
        # Both alike: else as much again may be swapped.
        host["Memory"] = host["MemorySwap"] = _bytes(template["memory"])
    if "cpus" in template:
        host["NanoCpus"] = int(template["cpus"] * 1_000_000_000)
    if "network" in template:
        host["NetworkMode"] = template["network"]
    if "extra_hosts" in template:
        host["ExtraHosts"] = [f"{name}:{address}" for name, address in template["extra_hosts"].items()]
    if template.get("privileged"):
        host["Privileged"] = True
    if template.get("init"):
        host["Init"] = True
    if "mounts" in template:
        host["Mounts"] = [_mount(mount) for mount in template["mounts"]]
    return host


def _mount(mount: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"Type": mount["type"], "Target": mount["target"]}
    if mount["type"] == "tmpfs":
        if "size" in mount:
            body["TmpfsOptions"] = {"SizeBytes": _bytes(mount["size"])}
        return body
    return body | {"Source": mount["source"], "ReadOnly": mount.get("read_only", False)}


def _bytes(value: Any) -> int:
    """Bytes of a number or of a text such as 512m. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError(value)
    return int(found[1]) * _FACTORS[found[2].lower()]


def _size(value: Any) -> list[str]:
    try:
        enough = LEAST_MEMORY <= _bytes(value) < 2**60
    except ValueError:
        enough = False
    return [] if enough else ["a size of at least 6m is wanted, such as 512m or 2g."]


def _cpus(value: Any) -> list[str]:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.01 <= value <= 4096:
        return []
    return ["a number of processors is wanted, such as 1.5."]


def _network(value: Any) -> list[str]:
    if not isinstance(value, str) or not _NETWORK.fullmatch(value):
        return ["a network's name is wanted."]
    if value in _OPEN_NETWORKS or templates_are_trusted():
        return []
    return [needs_trust(f"The network '{value}'")]


def _extra_hosts(value: Any) -> list[str]:
    if not isinstance(value, Mapping) or len(value) > fields.MAX_ITEMS:
        return ['an object of names and addresses is wanted, such as {"forge": "host-gateway"}.']
    found = []
    for name, address in value.items():
        if not isinstance(name, str) or not _HOST.fullmatch(name):
            found.append(f"'{name}' is no host's name.")
        elif not _is_address(address):
            found.append(f"{name}: an IP address or {GATEWAY} is wanted.")
    return found


def _is_address(value: Any) -> bool:
    if value == GATEWAY:
        return True
    try:
        return isinstance(value, str) and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _mounts(value: Any) -> list[str]:
    if not isinstance(value, list) or len(value) > fields.MAX_ITEMS:
        return ['a list is wanted, such as [{"type": "tmpfs", "target": "/scratch"}].']
    return [f"number {number}: {problem}" for number, mount in enumerate(value, 1) for problem in _one_mount(mount)]


def _one_mount(mount: Any) -> list[str]:
    if not isinstance(mount, Mapping) or not mount.keys() <= _MOUNT_FIELDS:
        return [f"an object with {', '.join(sorted(_MOUNT_FIELDS))} is wanted."]
    kind = mount.get("type")
    target = mount.get("target")
    if kind not in ("bind", "volume", "tmpfs"):
        return ["its type is bind, volume or tmpfs."]
    if fields.path(target):
        return ["its target is an absolute path in the container."]
    if f"{target}/".startswith(f"{TOKEN_FOLDER}/") or target == "/":
        return [f"{TOKEN_FOLDER} is the forge's own, and / cannot be covered."]
    if kind == "tmpfs":
        return _size(mount["size"]) if "size" in mount else []
    if not templates_are_trusted():
        return [needs_trust(f"A mount of type {kind}")]
    if fields.path(mount.get("source")) if kind == "bind" else fields.text(mount.get("source")):
        return ["its source is a folder of the host (bind) or a volume's name."]
    return fields.flag(mount.get("read_only", False))


def _user(value: Any) -> list[str]:
    return [] if isinstance(value, str) and _USER.fullmatch(value) else ["a user is wanted, such as 1000:1000."]


def _privileged(value: Any) -> list[str]:
    if value is True and not templates_are_trusted():
        return [needs_trust("A privileged container")]
    return fields.flag(value)


_CHECKS: dict[str, fields.Check] = {
    "image": fields.image,
    "pull": fields.one_of(*PULLS),
    "command": fields.words,
    "entrypoint": fields.words,
    "environment": fields.environment,
    "url": fields.url,
    "user": _user,
    "working_directory": fields.path,
    "network": _network,
    "extra_hosts": _extra_hosts,
    "memory": _size,
    "cpus": _cpus,
    "mounts": _mounts,
    "init": fields.flag,
    "privileged": _privileged,
}
