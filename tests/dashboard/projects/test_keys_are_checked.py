"""A key works until it expires or is revoked; only its hash is stored, and its last use is recorded
to the minute."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.projects import key_auth
from dashboard.projects.key_auth import VerifiedKey, clear_key_cache, key_check
from dashboard.projects.key_format import (
    KEY_SEARCH_PATTERN,
    key_digest,
    key_text_generate,
    key_text_parse,
)
from dashboard.projects.models import Key, Project
from dashboard.projects.services import key_create, key_record_exposure, key_revoke

pytestmark = pytest.mark.django_db


def test_the_text_of_a_key_has_a_fixed_shape_and_a_checksum() -> None:
    for kind in ("ing", "api", "dep"):
        made = key_text_generate(kind)
        assert re.fullmatch(rf"cw_{kind}_[0-9A-Za-z]{{8}}_[0-9A-Za-z]{{49}}", made.text)
        assert key_text_parse(made.text) == made and KEY_SEARCH_PATTERN.search(
            f"?key={made.text}&x"
        )
        for place in (3, 9, 30, len(made.text) - 1):
            mistyped = (
                made.text[:place]
                + ("x" if made.text[place] != "x" else "y")
                + made.text[place + 1 :]
            )
            assert key_text_parse(mistyped) is None
    assert key_text_parse("") is None and key_text_parse(made.text + "\n") is None


def test_only_a_hash_is_stored_and_it_needs_the_pepper(project: Project) -> None:
    key, text = key_create(project=project)
    row = Key.objects.get(pk=key.pk)
    assert (
        bytes(row.digest)
        == key_digest(text, settings.KEY_PEPPER)
        != key_digest(text, "another pepper")
    )
    assert text[16:] not in repr(row.__dict__)


def test_a_key_identifies_its_project(project: Project, other_project: Project) -> None:
    for owner in (project, other_project):
        known = key_check(key_create(project=owner, kind="api")[1])
        assert known is not None and (known.project_id, known.kind) == (owner.pk, "api")


def test_a_right_lookup_with_a_wrong_secret_is_unknown(project: Project) -> None:
    key, _ = key_create(project=project)
    other = key_text_generate("ing")
    Key.objects.filter(pk=key.pk).update(lookup=other.lookup)
    assert key_check(other.text) is None


def test_one_of_many_threads_without_a_cache_entry_queries_the_database(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, asked = key_text_generate("ing"), list[str]()

    def find(lookup: str, kind: str, digest: bytes) -> VerifiedKey:
        asked.append(lookup)
        time.sleep(0.2)
        return VerifiedKey(1, kind, 1, {}, None)

    monkeypatch.setattr(key_auth, "_query_key", find)
    for name in ("REFRESH_WAIT_S", "CACHE_FRESH_S", "CACHE_USABLE_DURING_REFRESH_S"):
        monkeypatch.setattr(key_auth, name, 60.0)  # on a slow machine as well
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(key_check, [made.text] * 16))
    assert asked == [made.lookup]
    assert all(known is not None and known.project_id == 1 for known in found)


def test_a_cached_key_expires_immediately(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, text = key_create(project=project, expires_at=clock.now() + timedelta(hours=1))
    assert key_check(text) is not None
    later = clock.now() + timedelta(hours=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert key_check(text) is None


def test_a_revocation_takes_effect_when_the_cache_entry_is_half_a_second_old(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, text = key_create(project=project)
    assert key_check(text) is not None
    key_revoke(key=key, actor_name="tests")
    later = time.monotonic() + key_auth.CACHE_FRESH_S + 0.1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert key_auth.CACHE_FRESH_S < 1.0 and key_check(text) is None


def test_a_second_check_needs_no_query_and_use_is_recorded_once_a_minute(project: Project) -> None:
    key, text = key_create(project=project)
    key_check(text)
    noted = Key.objects.get(pk=key.pk).last_used_at
    assert noted is not None and noted.second == noted.microsecond == 0
    with CaptureQueriesContext(
        connection,
    ) as queries:
        key_check(text)
    assert not queries.captured_queries
    Key.objects.filter(pk=key.pk).update(last_used_at=noted + timedelta(minutes=1))
    clear_key_cache()
    with CaptureQueriesContext(connection) as queries:
        key_check(text)
    assert [query["sql"].split()[0] for query in queries.captured_queries] == ["SELECT"]


def test_two_keys_work_during_a_rotation(project: Project) -> None:
    (old, old_text), (_, new_text) = key_create(project=project), key_create(project=project)
    assert key_check(old_text) and key_check(new_text)
    key_revoke(key=old)
    clear_key_cache()
    assert key_check(old_text) is None and key_check(new_text)


def test_exposure_is_recorded_once_a_minute(project: Project) -> None:
    from dashboard.accounts.models import AuditEntry

    key, _ = key_create(project=project)
    for _ in range(3):
        key_record_exposure(key_id=key.pk, where="URL", address="192.0.2.1")
    assert AuditEntry.objects.filter(action="key.exposed").count() == 1


def test_a_flood_of_invalid_keys_evicts_no_valid_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_auth, "MAX_CACHED_KEYS", 8)
    monkeypatch.setattr(key_auth, "CACHE_FRESH_S", 60.0)  # the flood takes long on a busy machine
    _, text = key_create(project=project)
    assert key_check(text) is not None
    for _ in range(20):
        assert key_check(key_text_generate("ing").text) is None
    with CaptureQueriesContext(connection) as caught:
        assert key_check(text) is not None
    assert len(caught) == 0 and len(key_auth._invalid_cache) <= 8


def test_a_key_that_is_created_after_its_refusal_works(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, text = key_create(project=project)
    Key.objects.filter(pk=key.pk).update(revoked_at=clock.now())
    assert key_check(text) is None
    Key.objects.filter(pk=key.pk).update(revoked_at=None)
    monkeypatch.setattr(key_auth, "CACHE_FRESH_S", -1.0)
    assert key_check(text) is not None
    Key.objects.filter(pk=key.pk).update(revoked_at=clock.now())
    assert key_check(text) is None
