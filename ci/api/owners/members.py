"""Who else may use a repository, and how?"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from ci.api.documentation import BODY, NOTHING, errors, pages
from ci.api.owners.base import OwnersView, SignedIn
from ci.api.owners.serializers import MemberShape, RoleGiven
from forge.access import can_administer
from forge.models import Member


class MembersView(OwnersView):
    permission_classes = [SignedIn]

    @extend_schema(summary="List members", tags=["members"], **pages(MemberShape, 403, 404))
    def get(self, request: Request, owner: str, repository: str) -> Response:
        found = self.repository(need=can_administer)
        return self.page(found.members.select_related("user").order_by("user__username"), MemberShape)


class MemberView(OwnersView):
    permission_classes = [SignedIn]

    @extend_schema(
        summary="Add a member, or change a role",
        tags=["members"],
        request=RoleGiven,
        responses={200: MemberShape, **errors(*BODY, 401, 403, 404, 429)},
    )
    def put(self, request: Request, owner: str, repository: str, username: str) -> Response:
        found = self.repository(need=can_administer)
        role = self.given(RoleGiven)["role"]
        person = User.objects.filter(username__iexact=username, is_active=True).first()
        if person is None:
            raise Http404(f"There is nobody called {username} here.")
        if person.pk == found.owner_id:
            raise ValidationError({"role": [f"{person.username} owns the repository and has every role already."]})
        member, _ = Member.objects.update_or_create(repository=found, user=person, defaults={"role": role})
        return Response(MemberShape(member).data)

    @extend_schema(
        summary="Remove a member",
        tags=["members"],
        responses={204: NOTHING, **errors(401, 403, 404, 429)},
    )
    def delete(self, request: Request, owner: str, repository: str, username: str) -> Response:
        found = self.repository(need=can_administer)
        deleted, _ = found.members.filter(user__username__iexact=username).delete()
        if not deleted:
            raise Http404(f"{username} is no member of {found}.")
        return Response(status=204)
