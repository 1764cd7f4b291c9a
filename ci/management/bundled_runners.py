"""How do the runners of `manage.py up` get their registration, and keep it from start to start?"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings

from ci.lifecycle.registration import create_registration_token, revoke_registration_token
from ci.management.data_folder import DataFolder
from ci.management.environment import runner_environment
from ci.management.start_errors import CannotStart
from ci.models import Scope

_REGISTER_SECONDS = 60


def runner_name(number: int) -> str:
    return f"runner-{number}"


def prepare_runners(folder: DataFolder, count: int, *, url: str, admin: Any) -> list[Path]:
    """The configuration files of `count` runners, registered at `url` where they are not yet. Raises CannotStart."""
    configs = [folder.runners / str(number) / "runner.json" for number in range(1, count + 1)]
    missing = {number: config for number, config in enumerate(configs, 1) if not _is_registered(config, url)}
    if missing:
        token, plaintext = create_registration_token(scope=Scope(), created_by=admin)
        try:
            for number, config in missing.items():
                _register(config, runner_name(number), url, plaintext)
        finally:
            revoke_registration_token(token_id=token.pk, actor=admin)
    return configs


def _is_registered(config: Path, url: str) -> bool:
    """Whether the file's token is still a runner's; the address in the file follows a changed port."""
    try:
        known = json.loads(config.read_text())
        token = known["token"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return False
    headers = {"Authorization": f"Bearer {token}"}
    try:
        answer = httpx.get(f"{url}/api/runner/v1/runners/self", headers=headers, timeout=20, trust_env=False)
    except httpx.HTTPError as error:
        raise CannotStart(f"web does not answer the runners: {error}.") from error
    if answer.status_code != 200:
        return False
    if known.get("url") != url:
        draft = config.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps({**known, "url": url}))
        draft.replace(config)
    return True


def _register(config: Path, name: str, url: str, token: str) -> None:
    config.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    config.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ci.runner", "register", "--url", url, "--name", name, "--config", str(config)]
    done = subprocess.run(
        command,
        # By the environment: other users of the machine read command lines.
        env={**runner_environment(), "FORGE_REGISTRATION_TOKEN": token},
        cwd=settings.BASE_DIR,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_REGISTER_SECONDS,
        start_new_session=True,
    )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise CannotStart(f"{name} cannot be registered: {last}")
