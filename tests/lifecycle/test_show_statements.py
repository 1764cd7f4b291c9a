"""Is a statement shown without the values in it, wherever it was cut off?"""

from __future__ import annotations

import pytest

from ci.lifecycle.shown_statements import MOST_CHARACTERS, shown

SECRET = "hush"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("SELECT 1", "SELECT ?"),
        ("SELECT\n  a,\n  b2 FROM t1", "SELECT a, b2 FROM t1"),
        ("UPDATE t SET a = 'hush' WHERE b = 1.5e-7", "UPDATE t SET a = ? WHERE b = ?"),
        ("SELECT 'it''s hush', 'x'", "SELECT ?, ?"),
        ("SELECT 'hush", "SELECT ?"),
        ("SELECT 'a''hush", "SELECT ?"),
        (r"SELECT 'a\', 'hush'", "SELECT ?, ?"),
        (r"SELECT E'a\'hush', b", "SELECT ?, b"),
        (r"SELECT  E'\\', 'hush'", "SELECT ?, ?"),
        ("SELECT e'hush\\", "SELECT ?"),
        ("SELECT date'2026-01-01'", "SELECT date?"),
        ("SELECT U&'hush', b'01', x'ff'", "SELECT U&?, b?, x?"),
        ("SELECT $1, $22", "SELECT $1, $22"),
        ("DO $$ hush $$", "DO ?"),
        ("SELECT $q$hush 'x' $q$, 2", "SELECT ?, ?"),
        ("SELECT $q$hush $other$ more", "SELECT ?"),
        ('SELECT "it\'s", \'hush\' FROM "t""\'1"', 'SELECT "it\'s", ? FROM "t""\'1"'),
        ("SELECT 1 -- don't say hush\n, 'hush'", "SELECT ? , ?"),
        ("/* it's hush */ SELECT 'hush'", "SELECT ?"),
        ("SELECT /* a /* it's */ hush */ 'hush'", "SELECT"),
        ("/* a */ SELECT 'x */ hush' /* b */", "SELECT ?"),
        ("SELECT /* hush", "SELECT"),
        ("SELECT 0xFF, 1_000, .5, -3", "SELECT ?, ?, ?, -?"),
        ("", ""),
    ],
)
def test_names_stay_and_values_go(statement, said):
    assert shown(statement) == said
    assert SECRET not in shown(statement)


def test_a_long_statement_is_cut():
    found = shown("SELECT " + "a, " * 500)
    assert len(found) == MOST_CHARACTERS
    assert found.endswith("…")


@pytest.mark.parametrize("end", range(8, 60))
def test_no_cut_of_the_database_lets_a_value_through(end):
    whole = r"SELECT 'hush', E'\'hush', $a$hush$a$ -- hush" + "\n, 'hush''hush'"
    assert SECRET not in shown(whole[:end])
