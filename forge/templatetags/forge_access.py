"""What may the reader of this page do? Lets templates ask forge.access, so that no page offers what it would refuse."""

from __future__ import annotations

from django import template

from forge import access
from forge.access import Actor
from forge.models import Repository

register = template.Library()


@register.filter
def can_write(actor: Actor, repository: Repository) -> bool:
    """`{% if request.user|can_write:repository %}`"""
    return access.can_write(actor, repository)


@register.filter
def can_administer(actor: Actor, repository: Repository) -> bool:
    """`{% if request.user|can_administer:repository %}`"""
    return access.can_administer(actor, repository)
