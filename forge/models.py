"""What does the forge remember? Repositories, who may use them, how they prove it, and what was pushed."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.urls import reverse
from django.utils import timezone

ZERO_SHA = "0" * 40

repository_name = RegexValidator(
    r"^(?!\.)(?!.*\.git$)(?!.*\.\.)[A-Za-z0-9._-]{1,100}\Z",
    "Use letters, digits, '-', '_' and '.'; at most 100 characters, not starting with '.' and not ending with '.git'.",
)


class Repository(models.Model):
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="repositories")
    name = models.CharField(max_length=100, validators=[repository_name])
    description = models.CharField(max_length=350, blank=True)
    private = models.BooleanField(default=True, help_text="Only the owner and members see a private repository.")
    default_branch = models.CharField(max_length=255, default="main")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    pushed_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name_plural = "repositories"
        ordering = ["owner__username", "name"]
        constraints = [
            models.UniqueConstraint("owner", Lower("name"), name="repository_name_once_an_owner"),
        ]

    def __str__(self) -> str:
        return f"{self.owner.username}/{self.name}"

    def get_absolute_url(self) -> str:
        return reverse("repository", args=[self.owner.username, self.name])

    @property
    def path(self) -> Path:
        """The bare repository's folder, named by id: a renamed repository does not move."""
        return Path(settings.DATA_DIR) / "git" / f"{self.pk}.git"

    @property
    def clone_url(self) -> str:
        return f"{settings.SERVER_URL}/{self.owner.username}/{self.name}.git"


class Member(models.Model):
    class Role(models.TextChoices):
        READ = "read", "Read"
        WRITE = "write", "Write"
        ADMIN = "admin", "Admin"

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=5, choices=Role.choices, default=Role.READ)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["user__username"]
        constraints = [
            models.UniqueConstraint(fields=["repository", "user"], name="member_once_a_repository"),
            models.CheckConstraint(condition=Q(role__in=["read", "write", "admin"]), name="member_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} ({self.role}) in {self.repository}"


class AccessToken(models.Model):
    """A personal access token, `frp_…`; only its SHA-256 is kept."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="access_tokens")
    name = models.CharField(max_length=100)
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    hint = models.CharField(max_length=12, editable=False, help_text="The first characters, to tell tokens apart.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} of {self.user}"

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()


class Push(models.Model):
    """One ref moved by one push: recorded before git moves it, settled after, repaired at the next start if neither."""

    class State(models.TextChoices):
        RECORDED = "recorded", "Recorded"
        SETTLED = "settled", "Settled"
        REFUSED = "refused", "Refused"

    repository = models.ForeignKey(Repository, on_delete=models.CASCADE, related_name="pushes")
    pusher = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="pushes"
    )
    pusher_name = models.CharField(max_length=150, blank=True)
    # Pushes made with a job's own token start no runs, or a workflow could start itself for ever.
    by_job = models.BooleanField(default=False)
    ref = models.CharField(max_length=1024)
    before = models.CharField(max_length=64)
    after = models.CharField(max_length=64)
    forced = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State.choices, default=State.RECORDED)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    settled_at = models.DateTimeField(null=True, blank=True)
    planned_at = models.DateTimeField(null=True, blank=True, help_text="When its workflows were planned.")

    class Meta:
        verbose_name_plural = "pushes"
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(condition=~Q(before=F("after")), name="push_moves_its_ref"),
            models.CheckConstraint(
                condition=Q(state="recorded", settled_at=None) | (~Q(state="recorded") & Q(settled_at__isnull=False)),
                name="push_settled_has_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="recorded"), name="push_unsettled"),
            models.Index(fields=["repository", "-id"], name="push_of_repository"),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.before[:7]}..{self.after[:7]}"

    @property
    def created(self) -> bool:
        return self.before == ZERO_SHA

    @property
    def deleted(self) -> bool:
        return self.after == ZERO_SHA
