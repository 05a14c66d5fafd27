"""`not`, sets of relations, `between` and `not in`: what they mean, as text and as expressions."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrada.errors import FilterSyntaxError, InvalidValue
from contrada.forwarding.language.attr import attr
from contrada.forwarding.language.constraint import Constraint, Operator, relations_operator
from contrada.forwarding.language.filter import Filter, Predicate
from contrada.forwarding.language.negation import MAX_FILTERS
from contrada.forwarding.language.text.parse import parse
from contrada.spatial.geometry.point import Point
from contrada.spatial.geometry.region import Box
from contrada.spatial.relations.relation import ALL, Relation
from tests.forwarding import strategies as given_
from tests.naive import constraints as naive

if TYPE_CHECKING:
    from collections.abc import Mapping

BOX = Box(0, 0, 5, 5)
PATTERNS = (Operator.PREFIX, Operator.SUFFIX, Operator.CONTAINS)
negatable = given_.constraints().filter(lambda c: c.mask != ALL and not (c.op in PATTERNS and c.value == ""))


@given(negatable, given_.values)
def test_a_negated_constraint_holds_on_the_other_values_of_its_type(constraint: Constraint, value: object) -> None:
    negated = ~constraint
    for each in (value, *given_.neighbours(constraint.value)):
        assert negated.matches({constraint.name: each}) == naive.matches_none(
            [Filter(constraint)], {constraint.name: each}
        )
    assert negated.matches({}) == (constraint.op is Operator.EXISTS)
    assert parse(str(negated)) == negated
    assert parse(f"not {constraint}") == negated


Tree = tuple[str, "Tree | Constraint", "Tree | Constraint | None"]
trees = st.recursive(
    negatable.map(lambda c: ("is", c, None)),
    lambda inner: st.tuples(st.sampled_from(("and", "or", "not")), inner, inner),
    max_leaves=5,
)


def text_of(tree: Tree) -> str:
    word, left, right = tree
    if word == "is":
        return str(left)
    return f"not ({text_of(left)})" if word == "not" else f"({text_of(left)}) {word} ({text_of(right)})"


def evaluate(tree: Tree, notification: Mapping[str, object], negated: bool) -> bool:
    """The definition: `not` goes inwards, and a negated constraint is false of a value of its type."""
    word, left, right = tree
    if word == "is":
        one = [Filter(left)]
        return naive.matches_none(one, notification) if negated else naive.matches(one[0], notification)
    if word == "not":
        return evaluate(left, notification, not negated)
    both = (word == "and") != negated
    return (all if both else any)(evaluate(part, notification, negated) for part in (left, right))


@given(trees, given_.notifications())
def test_not_goes_inwards(tree: Tree, notification: dict[str, object]) -> None:
    parsed = parse(text_of(tree))
    assert parsed.matches(notification) == evaluate(tree, notification, False)
    assert parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("not x > 5", attr("x") <= 5),
        ("not not x > 5", attr("x") > 5),
        ("NOT (x > 5 or y = 1)", (attr("x") <= 5) & (attr("y") != 1)),
        ("not (x > 5 and y = 1)", (attr("x") <= 5) | (attr("y") != 1)),
        ("x not in [1, 2]", (attr("x") != 1) & (attr("x") != 2)),
        ('x not in [1, "a"]', (attr("x") != 1) | (attr("x") != "a")),
        ("x between 1 and 5 and y = 2", attr("x").between(1, 5) & (attr("y") == 2)),
        ("x not between 1 and 5", (attr("x") < 1) | (attr("x") > 5)),
        ('not s prefix "ab"', (attr("s") < "ab") | (attr("s") >= "ac")),
        ('not s prefix "a\U0010ffff"', (attr("s") < "a\U0010ffff") | (attr("s") >= "b")),
        ('not s prefix "\U0010ffff"', attr("s") < "\U0010ffff"),
        ('not s suffix "b" and not s contains "c"', ~attr("s").suffix("b") & ~attr("s").contains("c")),
        ('not post matches {"a"} within BOX(0 0, 5 5)', ~attr("post").matches(["a"], within=BOX)),
        ("x not exists", ~attr("x").exists()),
        ("not x not exists", attr("x").exists()),
        ("true", Filter(())),
        ("TRUE and x = 1", attr("x") == 1),
        ("x = 1 or not true", attr("x") == 1),
        ("true = 1 and (true)", attr("true") == 1),
        ("not a intersects BOX(0 0, 5 5)", attr("a").disjoint(BOX)),
        ("not a disjoint BOX(0 0, 5 5)", attr("a").intersects(BOX)),
        ("a inside or covered-by BOX(0 0, 5 5)", attr("a").relates("inside", Relation.COVERED_BY, to=BOX)),
        ("a covered-by OR inside or inside BOX(0 0, 5 5)", attr("a").relates("inside", "covered-by", to=BOX)),
        ("a contains or disjoint BOX(0 0, 5 5)", attr("a").relates("disjoint", "contains", to=BOX)),
    ],
)
def test_meaning(text: str, expected: Filter | Predicate) -> None:
    assert parse(text) == expected
    assert parse(str(expected)) == expected


def test_negation_as_expressions() -> None:
    assert ~(attr("x") > 5) == parse("x <= 5")
    assert ~((attr("x") > 5) | (attr("y") == 1)) == parse("not (x > 5 or y = 1)")
    assert attr("x").not_in([1, 2]) == parse("x not in [1, 2]")
    with pytest.raises(InvalidValue, match="no value is both"):
        attr("x").between(1, "b")
    assert not (~attr("area").inside(BOX)).matches({"area": Point(1, 1)})
    assert (~attr("area").inside(BOX)).matches({"area": Point(9, 9)})
    assert not (~attr("area").inside(BOX)).matches({"area": 3})


def test_true_matches_everything_and_not_true_nothing() -> None:
    true = parse("true")
    assert true.matches({})
    assert true.matches({"x": 1})
    assert str(true) == "true"
    assert true.covers(parse("x = 1"))
    assert not parse("x not exists").covers(true)
    assert (attr("x") == 1) & true == (attr("x") == 1)
    for nothing in ("not true", "x = 1 and not true", "not (x = 1 or true)"):
        with pytest.raises(FilterSyntaxError, match="nothing matches"):
            parse(nothing)
    with pytest.raises(InvalidValue, match="nothing matches"):
        ~true  # noqa: B018  # raises


def test_only_not_exists_holds_on_absence() -> None:
    absent = parse("not x exists")
    assert absent.matches({})
    assert absent.matches({"y": 1})
    assert not absent.matches({"x": 1})
    assert absent.conflicts(parse("x = 1"))
    assert absent.covers(parse("not x exists and y = 1"))
    assert not absent.covers(parse("y = 1"))


def test_negation_is_bounded() -> None:
    clause = "(a = 1 and b = 1 and c = 1 and d = 1)"
    text = " or ".join([clause] * 5)
    assert len(parse(f"not ({text})")) <= MAX_FILTERS
    with pytest.raises(FilterSyntaxError, match="fewer alternatives"):
        parse(f"not ({text} or {clause})")
    with pytest.raises(InvalidValue, match="fewer alternatives"):
        ~Predicate(Filter((*(attr("a") == n), *(attr("b") == n))) for n in range(11))


@pytest.mark.parametrize("relations", [(), ("near",), (3,)])
def test_relates_wants_relations(relations: tuple[object, ...]) -> None:
    with pytest.raises(InvalidValue):
        attr("area").relates(*relations, to=BOX)


def test_every_set_of_relations_has_one_operator() -> None:
    operators = [relations_operator(mask) for mask in range(1, ALL + 1)]
    assert len(set(operators)) == ALL
    for mask, op in enumerate(operators, 1):
        assert op.mask == mask
        assert Operator(op.value) is op
        f = Filter(Constraint("a", op, BOX))
        assert pickle.loads(pickle.dumps(f)) == f
        assert parse(str(f)) == f
