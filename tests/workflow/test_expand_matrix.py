"""Which combinations does a matrix make?"""

from typing import Any

import pytest

from ci.workflow.matrix import MatrixError, check, combinations, expand


def test_the_first_key_is_the_slowest() -> None:
    assert expand({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]


@pytest.mark.parametrize("matrix", [None, {}])
def test_no_matrix_makes_no_combination(matrix: dict[str, Any] | None) -> None:
    assert expand(matrix) == []


def test_an_exclude_may_name_a_part() -> None:
    assert expand({"os": ["l", "w"], "v": [1, 2], "exclude": [{"os": "L"}, {"v": "2"}]}) == [{"os": "w", "v": 1}]


def test_null_excludes_zero_empty_and_false() -> None:
    assert expand({"v": [0, "", False, None, 1], "exclude": [{"v": None}]}) == [{"v": 1}]


def test_the_example_of_githubs_documentation() -> None:
    include = [
        {"color": "green"},
        {"color": "pink", "animal": "cat"},
        {"fruit": "apple", "shape": "circle"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]
    assert expand({"fruit": ["apple", "pear"], "animal": ["cat", "dog"], "include": include}) == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_include_alone_makes_one_combination_an_item() -> None:
    assert expand({"include": [{"a": 1}, {"a": 2, "b": 3}]}) == [{"a": 1}, {"a": 2, "b": 3}]


def test_a_name_shows_vectors_and_of_an_appended_item_everything() -> None:
    found = combinations({"a": [1], "include": [{"a": 1, "extra": "no"}, {"a": 2, "extra": "yes"}]})
    assert [combination.shown for combination in found] == [[1], [2, "yes"]]


@pytest.mark.parametrize(
    ("matrix", "message", "where"),
    [
        ({"a": []}, "Matrix vector 'a' does not contain any values", ("a",)),
        ({"a": "x"}, "Matrix vector 'a' must be a list", ("a",)),
        ({"a": [1], "exclude": [{}]}, "Matrix exclude filter must not be empty", ("exclude", 0)),
        ({"a": [1], "exclude": [{"b": 1}]}, "Matrix exclude key 'b' does not match", ("exclude", 0, "b")),
        ({"a": [1], "include": [{}]}, "Matrix include mapping does not contain any values", ("include", 0)),
        ({"a": [1], "include": ["x"]}, "Matrix include must be a list of mappings", ("include", 0)),
        ({"a": list(range(257))}, "The matrix makes 257 jobs", ()),
        ({"include": [{"a": n} for n in range(257)]}, "The matrix makes 257 jobs", ()),
        ({f"k{n}": [1, 2] for n in range(5000)}, "The matrix makes", ()),
    ],
)
def test_it_refuses(matrix: dict[str, Any], message: str, where: tuple[str | int, ...]) -> None:
    with pytest.raises(MatrixError) as refused:
        expand(matrix)
    assert str(refused.value).startswith(message)
    assert refused.value.where == where
    with pytest.raises(MatrixError) as judged:
        check(matrix)
    assert (str(judged.value), judged.value.where) == (str(refused.value), where)


def test_256_combinations_are_allowed_also_when_more_are_excluded() -> None:
    assert len(expand({"a": list(range(16)), "b": list(range(16))})) == 256
    assert len(expand({"a": list(range(300)), "exclude": [{"a": n} for n in range(44)]})) == 256
