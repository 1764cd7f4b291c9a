"""What does the page of caches show, and who deletes one?"""

from __future__ import annotations

import pytest
from django.test import Client

from ci.lifecycle.storage_policies import set_policy
from ci.models import CacheEntry, Event, StoragePolicy
from tests.lifecycle.caching import on, save
from tests.playground import Playground
from tests.web.conftest import Browse

PAGE = "/alice/widgets/actions/caches/"
STORAGE = "/alice/widgets/settings/storage/"
MIB = 1024 * 1024


def text_of(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


@pytest.fixture
def saved(playground: Playground) -> list[CacheEntry]:
    job = on(playground)
    return [save(job, "pip-<b>1</b>", b"a" * 1024), save(job, "npm-2", b"b" * 1024)]


def test_an_empty_page_says_how_to_get_one(alice: Client, playground: Playground) -> None:
    assert playground.repository
    assert "No caches yet" in text_of(alice) and "hashFiles(" in text_of(alice)


def test_each_has_its_key_ref_size_and_use(alice: Client, saved: list[CacheEntry]) -> None:
    text = text_of(alice)
    assert "pip-&lt;b&gt;1&lt;/b&gt;" in text and "npm-2" in text and "refs/heads/main" in text
    assert "2 entries" in text and "2.0 KB of 10.0 GB in use" in text


def test_keys_are_filtered_by_how_they_begin(alice: Client, saved: list[CacheEntry]) -> None:
    assert "npm-2" not in text_of(alice, f"{PAGE}?key=pip-%3Cb")
    assert "No key begins with that" in text_of(alice, f"{PAGE}?key=%25")
    assert "No key begins with that" in text_of(alice, f"{PAGE}?key=%00")


def test_deleting_one_leaves_the_others_and_is_noted(
    alice: Client, playground: Playground, saved: list[CacheEntry]
) -> None:
    first, second = saved
    answer = alice.post(f"{PAGE}delete/", {"cache": first.pk}, follow=True)
    assert "is deleted" in answer.content.decode()
    assert list(CacheEntry.objects.all()) == [second]
    assert Event.objects.get(kind="cache_deleted").actor == playground.alice
    answer = alice.post(f"{PAGE}delete/", {"cache": first.pk}, follow=True)
    assert "deleted or evicted" in answer.content.decode()


def test_who_may(playground: Playground, browser: Browse, saved: list[CacheEntry]) -> None:
    for person, reads, deletes in ((playground.carol, 200, 403), (playground.mallory, 404, 404), (None, 404, 404)):
        assert browser(person).get(PAGE).status_code == reads
        assert browser(person).post(f"{PAGE}delete/", {"cache": saved[0].pk}).status_code == deletes
    assert CacheEntry.objects.count() == 2
    assert "delete/" not in text_of(browser(playground.carol))


def test_retention_and_quota_are_set_and_taken_back(alice: Client, playground: Playground) -> None:
    assert playground.repository
    alice.post(STORAGE, {"artifact_days": "5", "cache_mib": "100"})
    policy = StoragePolicy.objects.get()
    assert (policy.artifact_days, policy.cache_bytes) == (5, 100 * MIB)
    assert 'value="100"' in text_of(alice, STORAGE) and "of 100.0 MB" in text_of(alice)
    alice.post(STORAGE, {"artifact_days": "", "cache_mib": ""})
    policy.refresh_from_db()
    assert (policy.artifact_days, policy.cache_bytes) == (None, None)


@pytest.mark.parametrize(
    "form", [{"artifact_days": "401"}, {"artifact_days": "0"}, {"cache_mib": "-1"}, {"cache_mib": str(2**40)}]
)
def test_what_is_out_of_bounds_is_said_at_its_field(
    alice: Client, playground: Playground, form: dict[str, str]
) -> None:
    assert playground.repository
    answer = alice.post(STORAGE, form)
    assert answer.status_code == 422 and f'id="id_{next(iter(form))}_error"' in answer.content.decode()
    assert not StoragePolicy.objects.exists()


def test_only_administrators_see_the_settings(playground: Playground, browser: Browse) -> None:
    set_policy(repository=playground.repository, artifact_days=3, cache_bytes=None, actor=playground.alice)
    for person, status in ((playground.bob, 403), (playground.mallory, 404), (None, 404)):
        assert browser(person).get(STORAGE).status_code == status
