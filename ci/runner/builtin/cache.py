"""How do `actions/cache`, `actions/cache/restore` and `actions/cache/save` run without Node.js?"""

from __future__ import annotations

import os
from collections.abc import Callable

from ci.runner.builtin import step
from ci.runner.builtin.caches import Caches, Invalid, block_size, check, same_key
from ci.runner.builtin.step import Call, Failure

# As the real action names what its stages hand on to each other.
KEY, MATCHED = "CACHE_KEY", "CACHE_RESULT"


def run(call: Call) -> None:
    """`actions/cache`: restore in its main stage, save in its post stage. Raises Failure."""
    if call.stage == "post":
        _save(step.state(KEY) or step.text("key"), restored=step.state(MATCHED))
        return
    _restore(primary=lambda key: step.save_state(KEY, key), matched=lambda key: step.save_state(MATCHED, key))


def run_restore(call: Call) -> None:
    """`actions/cache/restore`. Raises Failure."""
    _restore(
        primary=lambda key: step.set_output("cache-primary-key", key),
        matched=lambda key: step.set_output("cache-matched-key", key),
    )


def run_save(call: Call) -> None:
    """`actions/cache/save`. Raises nothing: what is not saved is a warning."""
    if _save(step.text("key"), restored="") is False:
        step.warning("Cache save failed.")


def _available() -> bool:
    """Has this forge a cache, and this run a ref that entries can belong to?"""
    if not os.environ.get("ACTIONS_RESULTS_URL") or not os.environ.get("ACTIONS_RUNTIME_TOKEN"):
        step.info("[warning]The forge offers no cache to this job.")
        return False
    if not os.environ.get("GITHUB_REF"):
        event = os.environ.get("GITHUB_EVENT_NAME", "")
        step.info(
            f"[warning]Event Validation Error: The event type {event} is not supported because it's not tied to a "
            "branch or tag ref."
        )
        return False
    return True


def _true(name: str) -> bool:
    return step.text(name).lower() == "true"


def _restore(*, primary: Callable[[str], None], matched: Callable[[str], None]) -> None:
    if not _available():
        step.set_output("cache-hit", "false")
        return
    key = step.text("key", required=True)
    primary(key)
    keys = [key, *step.lines("restore-keys")]
    paths = step.lines("path", required=True)
    check(paths, keys)
    found = _find(keys, paths, lookup_only=_true("lookup-only"))
    if not found:
        if _true("fail-on-cache-miss"):
            raise Failure(f"Failed to restore cache entry. Exiting as fail-on-cache-miss is set. Input key: {key}")
        step.info(f"Cache not found for input keys: {', '.join(keys)}")
        return
    matched(found)
    step.set_output("cache-hit", "true" if same_key(key, found) else "false")
    way = "Cache found and can be restored" if _true("lookup-only") else "Cache restored"
    step.info(f"{way} from key: {found}")


def _find(keys: list[str], paths: list[str], *, lookup_only: bool) -> str:
    """The key of the restored entry, '' for none: a cache is optional, so that a fault is only a warning."""
    try:
        caches = Caches()
        hit = caches.find(paths, keys)
        if hit is None:
            return ""
        step.info(f"Cache hit for{'' if hit.key == keys[0] else ' restore-key'}: {hit.key}")
        if lookup_only:
            step.info("Lookup only - skipping download")
        else:
            caches.restore(hit, paths)
            step.info("Cache restored successfully")
        return hit.key
    except (Failure, OSError) as problem:
        step.warning(f"Failed to restore: {problem}")
        return ""


def _save(key: str, *, restored: str) -> bool | None:
    """True with a new entry, False without one, None where there was nothing to save."""
    try:
        if not _available():
            return None
        if not key:
            step.info("[warning]Key is not specified.")
            return None
        if same_key(key, restored):
            step.info(f"Cache hit occurred on the primary key {key}, not saving cache.")
            return None
        paths = step.lines("path", required=True)
        check(paths, [key])
        if not Caches().save(paths, key, block=block_size()):
            return False
        step.info(f"Cache saved with key: {key}")
        return True
    except Invalid as problem:
        step.info(f"[warning]{problem}")
    except (Failure, OSError) as problem:
        step.warning(f"Failed to save: {problem}")
    return False
