"""Who executes the tasks? django-q's cluster, which ends as a whole when one of its processes was killed."""

from __future__ import annotations

import logging
import multiprocessing
import os
from multiprocessing.process import BaseProcess
from typing import Any

from django.core.management.base import CommandError
from django_q import cluster
from django_q.management.commands.qcluster import Command as Cluster

from forge.session_names import name_sessions

logger = logging.getLogger(__name__)

_END_SECONDS = 10.0


class Sentinel(cluster.Sentinel):
    """Restarts what ended by itself or was too slow. What was killed may have held a lock of the queues that all
    share, as an idle worker always does: nobody can release it, and the cluster would look alive and do nothing."""

    def reincarnate(self, process: BaseProcess) -> None:
        if process.exitcode is None or process.exitcode >= 0:
            super().reincarnate(process)
            return
        logger.critical("%s was ended by signal %s: all tasks start anew", process.name, -process.exitcode)
        others = [child for child in (*self.pool, self.monitor, self.pusher) if child is not None]
        for child in others:
            child.kill()
        for child in others:
            child.join(_END_SECONDS)
        # Not sys.exit: on its way out this process would wait for a queue that nobody reads any more.
        os._exit(1)


class Command(Cluster):
    def handle(self, *args: Any, **options: Any) -> None:
        name_sessions("tasks")
        # django-q has no setting for it.
        cluster.Sentinel = Sentinel
        super().handle(*args, **options)
        for child in multiprocessing.active_children():
            child.join()
            if child.exitcode:
                raise CommandError("One of the task processes was killed. Start qcluster again: no task is lost.")
