"""Is every line there once, in order, whatever the caller repeats, skips or cuts off?"""

import threading

import pytest
from django.db import connection, transaction

from ci.models import Log, LogChunk
from ci.storage import logs
from tests.storage.rows import LIMITS, TIME, add, make_job, texts


def test_it_stores_lines_with_their_numbers_and_times(job_id):
    assert add(job_id, 0, "one", "two") == logs.Appended(next_offset=2, limit_reached=False, wrote=2)
    assert add(job_id, 2, "three").next_offset == 3
    assert logs.lines(job_id, 1, 5) == [logs.LogLine(1, TIME, "two"), logs.LogLine(2, TIME, "three")]
    assert logs.length(job_id) == 3


def test_a_repeat_changes_nothing_and_says_where_the_log_continues(job_id):
    add(job_id, 0, "one", "two")
    assert add(job_id, 0, "one", "two") == logs.Appended(2, False, 0)
    assert texts(job_id) == ["one", "two"]


def test_an_overlap_adds_only_what_is_new(job_id):
    add(job_id, 0, "one", "two")
    assert add(job_id, 1, "two", "three", "four") == logs.Appended(4, False, 2)
    assert texts(job_id) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("offset", [3, 2**31, 2**63, 10**30])
def test_it_refuses_a_hole_and_says_where_to_continue(job_id, offset):
    add(job_id, 0, "one", "two")
    with pytest.raises(logs.LogHole) as error:
        add(job_id, offset, "later")
    assert error.value.next_offset == 2
    assert texts(job_id) == ["one", "two"]


def test_it_refuses_a_negative_offset(job_id):
    with pytest.raises(ValueError, match="negative"):
        add(job_id, -1, "x")
    assert not LogChunk.objects.exists()


def test_no_lines_are_no_chunk(job_id):
    assert add(job_id, 0) == logs.Appended(0, False, 0)
    assert not LogChunk.objects.exists()


def test_at_the_line_limit_it_keeps_what_fits_and_says_so(job_id):
    assert add(job_id, 0, "one", "two", "three", max_lines=2) == logs.Appended(2, True, 2)
    assert add(job_id, 2, "three", max_lines=2) == logs.Appended(2, True, 0)
    assert texts(job_id) == ["one", "two"]


def test_at_the_byte_limit_it_keeps_what_fits_and_says_so(job_id):
    size = len(TIME) + len("\tone\n")
    assert add(job_id, 0, "one", "two", "six", max_bytes=2 * size) == logs.Appended(2, True, 2)
    assert Log.objects.get().size == 2 * size


def test_a_sealed_log_takes_no_line_but_knows_its_own(job_id):
    add(job_id, 0, "one")
    logs.seal(job_id)
    logs.seal(job_id)
    assert logs.is_sealed(job_id)
    assert add(job_id, 0, "one").next_offset == 1
    with pytest.raises(logs.LogSealed) as error:
        add(job_id, 1, "two")
    assert error.value.next_offset == 1
    with pytest.raises(logs.LogHole):
        add(job_id, 5, "two")
    assert texts(job_id) == ["one"]


def test_a_log_that_nobody_wrote_can_be_sealed_and_read(job_id):
    assert not logs.is_sealed(job_id)
    logs.seal(job_id)
    assert logs.is_sealed(job_id)
    assert logs.lines(job_id, 0, 10) == []
    assert b"".join(logs.raw(job_id)) == b""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("half \ud800 pair", "half ? pair"),
        ("two\nlines", "two\N{SYMBOL FOR LINE FEED}lines"),
        ("ends\r\n", "ends"),
        ("10%\r20%", "10%\r20%"),
        ("\x1b[31mred\x1b[0m\x85\u2028", "\x1b[31mred\x1b[0m\x85\u2028"),
        ("a\ttab", "a\ttab"),
        ("", ""),
    ],
)
def test_any_text_is_one_line_and_comes_back(job_id, given, kept):
    add(job_id, 0, given, "next")
    assert texts(job_id) == [kept, "next"]


@pytest.mark.parametrize("character", ["x", "é", "😀"])
def test_a_line_of_a_million_characters_is_cut_between_characters(job_id, character):
    add(job_id, 0, character * 1_000_000)
    (text,) = texts(job_id)
    assert text.endswith(character + " […]")
    assert 64 * 1024 - 4 < len(text.removesuffix(" […]").encode()) <= 64 * 1024


def test_a_line_of_exactly_the_limit_is_whole(job_id):
    add(job_id, 0, "x" * 65_536)
    assert texts(job_id) == ["x" * 65_536]


def test_a_time_cannot_smuggle_a_line(job_id):
    logs.append(job_id=job_id, offset=0, lines=[("12:00\n\tforged\0" + "9" * 100, "text")], **LIMITS)
    (line,) = logs.lines(job_id, 0, 10)
    assert line.text == "text"
    assert line.time.startswith("12:00  forged ")
    assert len(line.time) == 40


def test_reading_stays_within_its_bounds(job_id):
    add(job_id, 0, *map(str, range(50)))
    assert texts(job_id, -5, 2) == ["0", "1"]
    assert texts(job_id, 48, 100) == ["48", "49"]
    assert texts(job_id, 50, 10) == []
    assert texts(job_id, 0, -1) == []


def test_a_rolled_back_append_leaves_neither_lines_nor_a_moved_offset(job_id):
    add(job_id, 0, "one")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        add(job_id, 1, "two")
        raise ZeroDivisionError
    assert add(job_id, 1, "two again").next_offset == 2
    assert texts(job_id) == ["one", "two again"]


def test_postgresql_does_not_compress_chunks_again(job_id):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attstorage FROM pg_attribute WHERE attrelid = 'ci_logchunk'::regclass AND attname = 'data'"
        )
        assert cursor.fetchone() == ("e",)


@pytest.mark.django_db(transaction=True)
def test_eight_writers_of_the_same_lines_store_each_once(blobs):
    """Every writer sends all 200 lines in its own batch size, as a runner would that repeats after lost answers."""
    job_id = make_job().pk
    errors = []

    def write(size):
        try:
            offset = 0
            while offset < 200:
                try:
                    offset = add(job_id, offset, *map(str, range(offset, min(200, offset + size)))).next_offset
                except logs.LogHole as hole:
                    offset = hole.next_offset
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(size,)) for size in (1, 2, 3, 5, 7, 11, 13, 17)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert texts(job_id) == [str(number) for number in range(200)]
    assert sum(LogChunk.objects.values_list("line_count", flat=True)) == 200
