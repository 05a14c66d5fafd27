"""Filters and predicates: canonical form, combination, and evaluation."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import ContradaError, InvalidValue
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator
from contrada.forwarding.language.filter import MAX_FILTERS, Filter, Predicate, as_filters
from contrada.forwarding.language.text.parse import parse
from contrada.spatial.geometry.region import Box
from tests.forwarding import strategies as given_
from tests.naive.constraints import matches

X, Y, Z = (attr(name) > 1 for name in "xyz")


@given(given_.filters(), given_.notifications())
def test_matching_agrees_with_the_naive_reading(f: Filter, notification: dict[str, object]) -> None:
    assert f.matches(notification) == matches(f, notification)


@given(given_.predicates(), given_.notifications())
def test_a_predicate_matches_when_a_filter_does(p: Predicate, notification: dict[str, object]) -> None:
    assert p.matches(notification) == any(matches(f, notification) for f in p.filters)


def test_an_absent_attribute_satisfies_nothing() -> None:
    for f in (attr("x") != 1, attr("x").disjoint(Box(0, 0, 1, 1)), attr("x").exists(), attr("x") == ""):
        assert not f.matches({"y": 1})
        assert not f.matches({})


@given(st.lists(given_.constraints(similar=True), min_size=1, max_size=5), st.randoms())
def test_order_and_repeats_do_not_matter(constraints: list[Constraint], random: object) -> None:
    shuffled = [*constraints, constraints[0]]
    random.shuffle(shuffled)
    f, g = Filter(constraints), Filter(shuffled)
    assert f == g
    assert hash(f) == hash(g)
    assert str(f) == str(g)
    assert pickle.loads(pickle.dumps(f)) == f


def test_bools_and_numbers_differ_in_filters() -> None:
    assert Filter(Constraint("x", "=", 1)) != Filter(Constraint("x", "=", True))
    assert len(Filter([Constraint("x", "=", 1), Constraint("x", "=", True), Constraint("x", "=", 1.0)])) == 2


def test_combination() -> None:
    assert Filter([*X, *Y]) == X & Y
    assert X & X == X
    assert (X | Y).filters == (X, Y)
    assert X | Y == Y | X
    assert hash(X | Y) == hash(Y | X)
    assert (X | Y) & Z == (X & Z) | (Y & Z)
    assert Z & (X | Y) == (X | Y) & Z
    assert Predicate([X, Y, Z]) == (X | Y) | (Y | Z)
    assert Constraint("x", ">", 1) & Constraint("y", ">", 1) == X & Y
    assert Constraint("x", ">", 1) | Y == X | Y
    assert X.names == {"x"}
    assert pickle.loads(pickle.dumps(X | Y)) == X | Y


def test_a_predicate_of_one_filter_equals_the_filter() -> None:
    assert X | X == X
    assert Predicate([X]) == X
    assert hash(Predicate([X])) == hash(X)
    assert Predicate([X]) != Y
    assert X != 3
    assert Predicate([X]) != 3


def test_distribution_is_bounded() -> None:
    two = [(attr(f"a{i}") > 1) | (attr(f"b{i}") > 1) for i in range(11)]
    product = two[0]
    for factor in two[1:10]:
        product = product & factor
    assert len(product) == MAX_FILTERS
    with pytest.raises(InvalidValue, match="more than 1024"):
        product & two[10]


def test_what_is_no_filter_is_refused() -> None:
    for wrong in (["x > 1"], [X], [Constraint("x", ">", 1), X], [3, 4]):
        with pytest.raises(InvalidValue):
            Filter(wrong)
    for wrong in ([], [3]):
        with pytest.raises(InvalidValue):
            Predicate(wrong)
    with pytest.raises(InvalidValue):
        X & 3
    with pytest.raises(InvalidValue):
        as_filters(3)
    assert as_filters("x > 1 or y > 1") == (X, Y)


def test_python_traps_raise_instead_of_meaning_something_else() -> None:
    with pytest.raises(ContradaError, match="truth value"):
        1 < attr("x") < 5  # noqa: B015  # it refuses to be compared twice
    with pytest.raises(ContradaError, match="truth value"):
        X and Y  # noqa: B018  # it refuses to be a bool
    with pytest.raises(ContradaError, match="truth value"):
        bool(X | Y)
    with pytest.raises(ContradaError, match="truth value"):
        bool(attr("x"))
    with pytest.raises(ContradaError):
        attr("x") == attr("y")  # noqa: B015  # it refuses attributes
    with pytest.raises(AttributeError):
        X.constraints = ()
    with pytest.raises(AttributeError):
        (X | Y).filters = ()


def test_attr_has_every_operator() -> None:
    box = Box(0, 0, 1, 1)
    x = attr("x")
    made = [
        *(x == 1, x != 1, x < 1, x <= 1, x > 1, x >= 1, x.exists(), x.in_([1]), x.prefix("a"), x.suffix("a")),
        *(x.contains("a"), x.contains(box), x.disjoint(box), x.meets(box), x.overlaps(box), x.equals(box)),
        *(x.within(5, of=box), x.beyond(5, of=(1, 2))),
        *(x.inside(box), x.covered_by(box), x.covers(box), x.intersects(box), x.matches("a", within=box)),
        *(x.has("a"), x.like("a%b"), x.equals_folded("A")),
        x.similar(["a"], at=(1, 2), alpha=0.4, tau=0.7),
    ]
    made += [~f for f in (x.exists(), x.suffix("a"), x.contains("a"), *made[-5:])]
    assert {f.constraints[0].op for f in made} == set(Operator)
    assert all(parse(str(f)) == f for f in made)
    assert attr("x").inside("BOX(0 0, 1 1)") == attr("x").inside(box)
