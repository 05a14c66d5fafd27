"""What neighbours are told of a standing index, with fakes of both: by steps, and right whatever happens between."""

from __future__ import annotations

from contrada.broker.core.ports import Codec, EncodedFilter
from contrada.broker.core.standing_index import Loaded, StandingIndex
from contrada.broker.protocol.messages import Attach, Unsubscribe
from contrada.broker.protocol.wire import Policy
from contrada.forwarding.codec.msgpack import decode_filter, decode_notification, encode_filter
from contrada.forwarding.language.text.parse import parse
from tests.broker.core.test_subscriptions import Parts, done


class FakeIndex:
    """Filters of one name."""

    strict = False
    passed_over = 0
    damaged = ()

    def __init__(self, *texts):
        self.filters = dict(enumerate(map(parse, texts)))

    def __len__(self):
        return len(self.filters)

    def __contains__(self, id):
        return id in self.filters

    def interface_filters(self, _name, most=None):
        return [*self.filters][:most]

    def filter(self, id):
        return self.filters[id]


class Indexed(Parts):
    def __init__(self):
        super().__init__()
        codec = Codec(decode_notification, decode_filter)
        self.index = StandingIndex(
            codec, self.sessions, self.delivery, self.matching, self.subscriptions, self.interest, self.leftovers
        )

    def load(self, *texts):
        self.index.load(Loaded(FakeIndex(*texts), "path", "", "", len(texts)))

    def attach(self, session, id=1):
        done(self.index.attach(session, Attach(id, id, "harbour", Policy.BLOCK, 10)))

    def finish(self):
        while self.leftovers:
            self.leftovers.work()
        self.index._check()
        return sorted(self.interest.wanted.items())


def wanted(*texts):
    return sorted((EncodedFilter(f, encode_filter(f)).key, 1) for f in map(parse, texts))


def test_a_new_index_is_told_by_steps_and_what_both_have_is_always_wanted():
    parts = Indexed()
    before = [f"x = {number}" for number in range(50)]
    after = [f"x = {number}" for number in range(25, 75)]
    parts.load(*before)
    parts.attach(parts.open(b"one"))
    assert parts.finish() == wanted(*before)
    parts.load(*after)
    assert sorted(parts.interest.wanted.items()) == wanted(*before), "nothing was told within the load itself"
    parts.leftovers.most = 10
    both = dict(wanted(*before[25:])).keys()
    changed, steps = [], 0
    real = parts.interest.interest_changed
    parts.interest.interest_changed = lambda *change: (changed.append(1), real(*change))
    while parts.leftovers:
        changed.clear()
        parts.leftovers.work()
        assert len(changed) <= 10
        assert both <= parts.interest.wanted.keys()
        steps += 1
    assert steps >= 10
    assert parts.finish() == wanted(*after)


def test_who_leaves_while_a_new_index_is_told_leaves_nothing_wanted():
    parts = Indexed()
    session = parts.open(b"one")
    parts.load(*(f"x = {number}" for number in range(50)))
    parts.attach(session)
    parts.load(*(f"y = {number}" for number in range(50)))
    parts.leftovers.most = 10
    parts.leftovers.work()
    assert len(parts.interest.wanted) > 50
    parts.subscriptions.unsubscribe(session, Unsubscribe(9, 1))
    assert parts.finish() == []


def test_what_somebody_is_attached_to_durably_is_wanted_durably_until_the_last_of_them_ends():
    parts = Indexed()
    parts.load("x = 1", "x = 2")
    session = parts.open(b"one")
    parts.attach(session)
    assert parts.finish() == wanted("x = 1", "x = 2")
    assert not parts.interest.wanted_durably
    for interface in (901, 902):
        parts.index.attach_durably("harbour", interface)
        done(parts.index.tell_durable(interface))
        assert parts.finish() == wanted("x = 1", "x = 2")
        assert sorted(parts.interest.wanted_durably.items()) == wanted("x = 1", "x = 2")
    parts.load("x = 2", "x = 3")
    parts.finish()
    assert sorted(parts.interest.wanted_durably.items()) == wanted("x = 2", "x = 3")
    parts.index.detach_durably(901)
    parts.finish()
    assert sorted(parts.interest.wanted_durably.items()) == wanted("x = 2", "x = 3")
    parts.index.detach_durably(902)
    assert parts.finish() == wanted("x = 2", "x = 3")
    assert not parts.interest.wanted_durably
    done(parts.index.tell_durable(902))  # it has ended before it was its turn
    assert not parts.interest.wanted_durably


def test_a_filter_that_is_removed_while_the_index_is_told_is_passed_over():
    parts = Indexed()
    parts.attach(parts.open(b"one"))
    parts.load("x = 1", "x = 2", "x = 3")
    parts.leftovers.most = 1
    parts.leftovers.work()
    del parts.index.loaded.table.filters[1]
    assert parts.finish() == wanted("x = 1", "x = 3")


def test_two_indexes_one_after_the_other_end_with_the_second():
    parts = Indexed()
    parts.attach(parts.open(b"one"))
    parts.leftovers.most = 1
    parts.load("x = 1", "x = 2")
    parts.leftovers.work()
    parts.load("x = 2", "x = 3")
    assert parts.finish() == wanted("x = 2", "x = 3")
