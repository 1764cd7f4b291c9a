"""Which runner sets serve a repository, a person or the instance, and how are they changed, deleted and recovered?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, errors, pages
from ci.api.owners.base import ScopedView
from ci.api.owners.runner_set_shapes import (
    NewRunnerSet,
    RunnerSetChange,
    RunnerSetDeletion,
    RunnerSetShape,
    SetRunnerShape,
)
from ci.api.owners.serializers import Expected
from ci.lifecycle.errors import InvalidInput
from ci.lifecycle.runner_sets import save_runner_set
from ci.lifecycle.set_counts import counted
from ci.lifecycle.transitions import delete_set, recover_set
from ci.models import Runner, RunnerSet
from forge.access import readable_repositories
from forge.models import Repository

_GONE = "There is no such runner set here; it may have been deleted."


class _SetsView(ScopedView):
    def shown(self, **rows: Any) -> Any:
        """The sets of this scope as RunnerSetShape needs them. Raises Http404, PermissionDenied."""
        found = counted(RunnerSet.objects.filter(**self.rows(), **rows))
        return found.prefetch_related("repositories__owner").order_by("name", "id")

    def runner_set(self) -> RunnerSet:
        """Raises Http404, PermissionDenied."""
        found: RunnerSet | None = self.shown(pk=self.kwargs["set_id"]).first()
        if found is None:
            raise Http404(_GONE)
        return found

    def answer(self, status: int = 200) -> Response:
        return Response(RunnerSetShape(self.runner_set()).data, status=status)

    def fields(self, given: dict[str, Any]) -> dict[str, Any]:
        """What save_runner_set takes. Raises InvalidInput for a repository that this person cannot see."""
        if "repositories" not in given:
            return given
        return {**given, "repositories": self._repositories(given["repositories"])}

    def _repositories(self, names: Sequence[str]) -> list[Repository]:
        wanted = {tuple(name.lower().partition("/")[::2]) for name in names}
        query = Q(pk__in=[])
        for owner, name in wanted:
            query |= Q(owner__username__iexact=owner, name__iexact=name)
        found = list(readable_repositories(self.person).filter(query))
        known = {(one.owner.username.lower(), one.name.lower()) for one in found}
        missing = sorted("/".join(name) for name in wanted - known)
        if missing:
            raise InvalidInput({"repositories": f"Unknown, or not yours to see: {', '.join(missing)[:500]}."})
        return found


class RunnerSetsView(_SetsView):
    @extend_schema(summary="List runner sets", tags=["runner sets"], **pages(RunnerSetShape, 403, 404))
    def get(self, request: Request, **names: Any) -> Response:
        return self.page(self.shown(), RunnerSetShape)

    @extend_schema(
        summary="Create a runner set",
        description="Its runners come and go with the jobs of this scope: each is started for one job.",
        tags=["runner sets"],
        request=NewRunnerSet,
        responses={201: RunnerSetShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def post(self, request: Request, **names: Any) -> Response:
        rows = self.rows()
        fields = {**self.fields(self.given(NewRunnerSet)), **rows}
        made = save_runner_set(runner_set_id=None, fields=fields, version=None, actor=request.user)
        self.kwargs["set_id"] = made.pk
        return self.answer(201)


class RunnerSetView(_SetsView):
    @extend_schema(
        summary="Show a runner set",
        tags=["runner sets"],
        responses={200: RunnerSetShape, **errors(401, 403, 404, 429)},
    )
    def get(self, request: Request, set_id: int, **names: Any) -> Response:
        return self.answer()

    @extend_schema(
        summary="Change a runner set",
        description="After a change of labels, launcher or template idle runners are replaced, busy ones finish. Of a "
        "parked set a new launcher or template is also its recovery.",
        tags=["runner sets"],
        request=RunnerSetChange,
        responses={200: RunnerSetShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def patch(self, request: Request, set_id: int, **names: Any) -> Response:
        runner_set = self.runner_set()
        given = self.given(RunnerSetChange)
        version = given.pop("version", None)
        save_runner_set(runner_set_id=runner_set.pk, fields=self.fields(given), version=version, actor=request.user)
        return self.answer()

    @extend_schema(
        summary="Delete a runner set",
        description="It takes no job any more; its idle runners go, the busy ones when their jobs have ended, then the "
        "set itself. With `force` their jobs are lost at once, also where the deletion has begun before.",
        tags=["runner sets"],
        parameters=[RunnerSetDeletion],
        responses={202: RunnerSetShape, **errors(400, 401, 403, 404, 409, 429)},
    )
    def delete(self, request: Request, set_id: int, **names: Any) -> Response:
        runner_set = self.runner_set()
        asked = RunnerSetDeletion(data=request.query_params)
        asked.is_valid(raise_exception=True)
        before = RunnerSetShape(runner_set).data
        delete_set(set_id=runner_set.pk, actor=request.user, **asked.validated_data)
        now = self.shown(pk=set_id).first()
        # Without runners it may be gone already.
        last = {**before, "phase": RunnerSet.Phase.DELETING.value}
        return Response(last if now is None else RunnerSetShape(now).data, status=202)


class RunnerSetRecoverView(_SetsView):
    @extend_schema(
        summary="Recover a parked runner set",
        description="Its runners were outdated, and have been renewed: it starts some again.",
        tags=["runner sets"],
        request=Expected,
        responses={200: RunnerSetShape, **errors(*BODY, 401, 403, 404, 409, 429)},
    )
    def post(self, request: Request, set_id: int, **names: Any) -> Response:
        recover_set(set_id=self.runner_set().pk, actor=request.user, **self.given(Expected))
        return self.answer()


class RunnerSetRunnersView(_SetsView):
    @extend_schema(
        summary="List the runners of a runner set",
        description="The newest first, with each attempt to start them; those that are gone are kept for a day.",
        tags=["runner sets"],
        **pages(SetRunnerShape, 403, 404),
    )
    def get(self, request: Request, set_id: int, **names: Any) -> Response:
        rows = Runner.objects.filter(runner_set=self.runner_set()).prefetch_related("launch_attempts")
        return self.page(rows.order_by("-id"), SetRunnerShape)
