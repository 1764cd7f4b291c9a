"""Does the operator delete artifacts and caches, row by row and with their bytes?"""

from ci.lifecycle.artifacts import delete_artifact
from ci.models import Artifact, Blob, CacheEntry, Event
from tests.lifecycle.artifact_making import keep, on
from tests.lifecycle.caching import save


def test_artifacts_are_deleted_and_one_that_went_meanwhile_is_named(playground, operator):
    job = on(playground)
    first, second = keep(job, "first"), keep(job, "second")
    page = operator.listed(Artifact)
    delete_artifact(artifact_id=first.pk, actor=playground.alice)
    assert operator.act("delete_artifacts", second, page=page) == ["second: deleted."]
    assert not Artifact.objects.exists() and not Blob.objects.exists()
    assert Event.objects.filter(kind="artifact_deleted", actor=playground.operator).count() == 1


def test_caches_are_deleted(playground, operator):
    entry = save(on(playground), "deps-1")
    assert operator.act("delete_caches", entry) == ["deps-1: deleted."]
    assert not CacheEntry.objects.exists() and not Blob.objects.exists()
