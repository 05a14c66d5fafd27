"""Every invariant of a forwarding table's arrays, asserted: for tests, after any sequence of changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from contrada.forwarding.kernels.change.adding import I_COUNT, I_FIRST
from contrada.forwarding.kernels.memory import layout as at
from contrada.forwarding.kernels.memory.bits import COUNTED, INTERFACE
from contrada.forwarding.state.trie_check import check_tries

if TYPE_CHECKING:
    from collections.abc import Hashable

    from contrada.forwarding.state.memory import Memory
    from contrada.forwarding.state.numbering import Numbering

_LOW_HALF = (1 << 32) - 1
_FIELD_LISTS = {  # operators and accesses of the filters in each list of a field
    "wide": {(op, at.POSTED_WIDE) for op in (at.NE, at.IS, at.EXISTS, at.NOT, at.LIKE)},
    "below": {(op, at.POSTED_BELOW) for op in (at.LT, at.LE)},
    "above": {(op, at.POSTED_ABOVE) for op in (at.GT, at.GE)},
}


def check_table(memory: Memory, names: Numbering[str], interfaces: Numbering[Hashable]) -> None:
    """Assert that filters, operands, postings, thresholds, free lists and registers agree."""
    _Checker(memory).check(names, interfaces)


class _Checker:
    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.state = memory.state.tolist()
        self.operands = memory.index.operands[: self.state[at.S_OPERANDS]].tolist()
        self.filters = memory.index.filters[: self.state[at.S_FILTERS]].tolist()
        self.postings = memory.index.postings[: self.state[at.S_POSTINGS]].tolist()
        self.thresholds = memory.index.thresholds[: self.state[at.S_THRESHOLDS]].tolist()
        self.words = memory.index.words[: self.state[at.S_WORDS]].tolist()
        self.refs: Counter[int] = Counter()
        self.posted: Counter[tuple[str, int]] = Counter()  # (list, filter)
        self.places: defaultdict[int, list[tuple[int, int]]] = defaultdict(
            list
        )  # by filter: (operand or -field, place)
        self.orders: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)  # by filter: (operand, side)

    def check(self, names: Numbering[str], interfaces: Numbering[Hashable]) -> None:
        self._filters(interfaces)
        self._lists(names)
        self._operands()
        check_tries(self.memory)
        self._free_lists()

    def _codes(self, row: list[int], needed: bool = False) -> list[int]:
        """The operands of a filter's constraints, or of those alone that are looked at."""
        place, end = row[at.F_CODE], row[at.F_CODE]
        end += row[at.F_SIZE] & _LOW_HALF if needed else row[at.F_SIZE] >> 32
        found = []
        while place < end:
            word = self.words[place]
            if word & 15 == at.IN:
                members = self.words[place + 1 : place + 1 + (word >> 4)]
                assert members == sorted(set(members)), "the members of `in` are sorted"
                found += [member >> 4 for member in members]
                place += 1 + len(members)
            else:
                found.append(word >> 4)
                place += 1
        assert place == end
        return found

    def _operators(self, row: list[int]) -> list[int]:
        """The operators of a filter's constraints that are looked at."""
        place, end = row[at.F_CODE], row[at.F_CODE] + (row[at.F_SIZE] & _LOW_HALF)
        found = []
        while place < end:
            word = self.words[place]
            found.append(word & 15)
            place += 1 + (word >> 4) if word & 15 == at.IN else 1
        return found

    def _filters(self, interfaces: Numbering[Hashable]) -> None:
        states: Counter[int] = Counter()
        owned: Counter[int] = Counter()
        for f, row in enumerate(self.filters):
            state = row[at.F_STATE] & 255
            if f == 0 or state == at.FREE:
                continue
            states[state] += 1
            owned[row[at.F_INTERFACE]] += state != at.GHOST
            operands = self._codes(row)
            self.refs.update(operands)
            if at.ABSENT not in self._operators(row):
                for operand in self._codes(row, needed=True):
                    assert row[at.F_MASK] >> (self.operands[operand][at.O_TAG] >> 8 & 63) & 1, "a bit for each name"
            assert (row[at.F_ACCESS] & 255 != at.POSTED_NOWHERE) == (state in (at.ACTIVE, at.GHOST))
            assert (row[at.F_PARENT] != 0) == (state == at.COVERED)
            if state != at.ACTIVE:
                assert row[at.F_GROUP] == 0
            child, elder = row[at.F_CHILD], 0
            while child:
                other = self.filters[child]
                assert (other[at.F_PARENT], other[at.F_ELDER]) == (f, elder)
                assert other[at.F_INTERFACE] == row[at.F_INTERFACE]
                child, elder = other[at.F_YOUNGER], child
        assert sum(states.values()) - states[at.GHOST] == self.state[at.S_FILTER_COUNT]
        assert states[at.ACTIVE] == self.state[at.S_ACTIVE]
        assert states[at.COVERED] == self.state[at.S_COVERED]
        assert states[at.VOID] == self.state[at.S_VOID]
        assert states[at.GHOST] == self.state[at.S_GHOSTS]
        assert sum(count > 0 for count in owned.values()) == self.state[at.S_INTERFACES]
        table = self.memory.interfaces.array.tolist()
        for number in interfaces.numbers.values():
            count, f, previous = 0, table[number][I_FIRST], 0
            while f:
                assert (self.filters[f][at.F_PREVIOUS], self.filters[f][at.F_INTERFACE]) == (previous, number)
                count, previous, f = count + 1, f, self.filters[f][at.F_FOLLOWING]
            assert count == owned[number] == table[number][I_COUNT] > 0
        assert len(owned) == len(interfaces)
        assert all(interfaces.find(interfaces.objects[number]) == number for number in owned)

    def _entries(self, head: int) -> list[tuple[int, int, int]]:
        """Place, mask and payload of each entry of a posting list; the head alone may have room."""
        found: list[tuple[int, int, int]] = []
        first = True
        while head:
            size, count = self.postings[head][1] >> 32, self.postings[head][1] & _LOW_HALF
            full = (4 << 2 * size) - 1
            assert 0 < count <= full if first else count == full
            found += [(p, *self.postings[p]) for p in range(head + 1, head + 1 + count)]
            head, first = self.postings[head][0], False
        return found

    def _access(self, f: int, operand: int, field: int, order: str) -> None:
        """A filter is posted under its first constraint, which is one of those it has, in the list that this asks for.

        That is an operand's list (the operand is 0 elsewhere), or one of a field: the wide one, or one of the orders.
        """
        row = self.filters[f]
        word = self.words[row[at.F_CODE]]
        op = word & 15
        first = self.operands[self.words[row[at.F_CODE] + 1] >> 4 if op == at.IN else word >> 4]
        name, kind = first[at.O_TAG] >> 8, first[at.O_TAG] & 255
        kind = at.STRING if kind >= at.PATTERN_PREFIX else kind
        assert 0 < row[at.F_SIZE] & _LOW_HALF <= row[at.F_SIZE] >> 32
        access = row[at.F_ACCESS] & 255
        if access == at.POSTED_ALL:
            return
        if operand and access == at.POSTED_SEVERAL and op == at.IN:
            members = self.words[row[at.F_CODE] + 1 : row[at.F_CODE] + 1 + (word >> 4)]
            assert operand in [member >> 4 for member in members]
        elif operand and access == at.POSTED_SEVERAL:
            cell = self.operands[operand]
            assert op in (at.GT, at.GE)
            assert cell[at.O_TAG] == name << 8 | at.CELL
            assert cell[at.O_LOW] & 255 == kind
            assert cell[at.O_KEY] >= first[at.O_KEY] >> (cell[at.O_LOW] >> 8)
        elif operand:
            assert access == at.POSTED_OPERAND
            assert op in (at.EQ, at.PREFIX, at.SUFFIX, at.CONTAINS, at.PLUG)
            assert operand == word >> 4
        else:
            assert field == name * at.KINDS + kind
            assert (op, access) in _FIELD_LISTS[order]

    def _posting(self, place: int, mask: int, payload: int) -> None:
        f = payload >> 33
        row = self.filters[f]
        assert (row[at.F_MASK], row[at.F_INTERFACE]) == (mask, payload & INTERFACE)
        counted = row[at.F_ACCESS] & 255 == at.POSTED_ALL
        alone = row[at.F_ACCESS] >> 8 == row[at.F_SIZE] & _LOW_HALF and row[at.F_STATE] & 255 == at.ACTIVE
        assert bool(payload >> 32 & 1) == (alone and not counted)
        assert bool(payload >> COUNTED & 1) == counted
        if counted:
            return
        if row[at.F_ACCESS] & 255 == at.POSTED_SEVERAL:
            back = row[at.F_BACK]
            count = self.words[back]
            assert place in [self.words[back + 2 + 2 * i] for i in range(count)]
        elif place:
            assert row[at.F_BACK] == place
        self.posted["", f] += 1

    def _lists(self, names: Numbering[str]) -> None:
        total = 0
        for operand, row in enumerate(self.operands):
            if operand == 0 or not row[at.O_REFS] or row[at.O_TAG] & 255 == at.NODE:
                continue
            entries = self._entries(row[at.O_POSTED])
            total += len(entries)
            if row[at.O_TAG] & 255 == at.GROUP:
                assert not entries
                self._group(operand, row)
            else:
                for entry in entries:
                    self._posting(*entry)
                    self._access(entry[2] >> 33, operand, 0, "")
                    self.places[entry[2] >> 33].append((operand, entry[0]))
                if row[at.O_TAG] & 255 == at.CELL:
                    self.refs[operand] += len(entries)
        fields = self.memory.index.fields.tolist()
        crossed = 0
        for number in names.numbers.values():
            for kind in range(at.KINDS):
                field = fields[number * at.KINDS + kind]
                for entry in self._entries(field[at.N_WIDE]):
                    self._posting(*entry)
                    self._access(entry[2] >> 33, 0, number * at.KINDS + kind, "wide")
                    self.places[entry[2] >> 33].append((-(number * at.KINDS + kind), entry[0]))
                    total += 1
                for directory, order in ((field[at.N_BELOW], "below"), (field[at.N_ABOVE], "above")):
                    if directory:
                        crossed += self._directory(directory, number * at.KINDS + kind, order)
            assert fields[number * at.KINDS][at.N_USES] > 0
        for entry in self._entries(self.state[at.S_ALWAYS]):
            self._posting(*entry)
            assert all(op == at.ABSENT for op in self._operators(self.filters[entry[2] >> 33]))
            total += 1
        assert total == self.state[at.S_POSTING_COUNT]
        assert crossed == self.state[at.S_THRESHOLD_COUNT]
        counted = [row[at.F_ACCESS] & 255 == at.POSTED_ALL for row in self.filters if row[at.F_STATE] & 255 != at.FREE]
        assert sum(counted) == self.state[at.S_COUNTED]
        for f, row in enumerate(self.filters):
            if f and row[at.F_ACCESS] & 255 != at.POSTED_NOWHERE and row[at.F_STATE] & 255 != at.FREE:
                if row[at.F_ACCESS] & 255 == at.POSTED_ALL:
                    self._counted(f, row)
                    continue
                several = row[at.F_ACCESS] & 255 == at.POSTED_SEVERAL
                assert self.posted["", f] == (self.words[row[at.F_BACK]] if several else 1)

    def _counted(self, f: int, row: list[int]) -> None:
        """A filter that is counted has one posting for each of its words, and says where; but for thresholds."""
        code, back, size = row[at.F_CODE], row[at.F_BACK], row[at.F_SIZE] & _LOW_HALF
        lists, orders, constraints, i = [], [], 0, 0
        while i < size:
            word = self.words[code + i]
            span = 1 + (word >> 4) if word & 15 == at.IN else 1
            if span > 1:
                assert self.words[back + i] == 0
            constraints += word & 15 != at.ABSENT
            for j in range(i + (word & 15 == at.IN), i + span):
                op, operand = self.words[code + j] & 15, self.words[code + j] >> 4
                name, kind = self.operands[operand][at.O_TAG] >> 8, self.operands[operand][at.O_TAG] & 255
                field = name * at.KINDS + (at.STRING if kind >= at.PATTERN_PREFIX else kind)
                if op == at.ABSENT:
                    assert self.words[back + j] == 0
                elif at.LT <= op <= at.GE:
                    assert self.words[back + j] == 0
                    orders.append((operand, "below" if op <= at.LE else "above"))
                else:
                    owner = -field if op in (at.NE, at.IS, at.EXISTS, at.NOT, at.LIKE) else operand
                    lists.append((owner, self.words[back + j]))
            i += span
        assert (i, constraints) == (size, row[at.F_ACCESS] >> 8)
        assert constraints > 1
        assert sorted(lists) == sorted(self.places[f])
        assert sorted(orders) == sorted(self.orders[f])

    def _group(self, group: int, row: list[int]) -> None:
        f, previous, count = row[at.O_LEN], 0, 0
        while f:
            member = self.filters[f]
            assert (member[at.F_GROUP], member[at.F_GROUP_PREVIOUS]) == (group, previous)
            assert member[at.F_INTERFACE] == row[at.O_LOW]
            f, previous, count = member[at.F_GROUP_NEXT], f, count + 1
        assert count == row[at.O_REFS] > 0

    def _directory(self, place: int, field: int, order: str) -> int:
        blocks = self.words[place + 1]
        entries: list[list[int]] = []
        for block in self.words[place + 3 : place + 3 + blocks]:
            count = self.thresholds[block][0]
            assert 0 < count < 64
            entries += self.thresholds[block + 1 : block + 1 + count]
        keys = [self._threshold(entry) for entry in entries]
        assert keys == sorted(keys), "thresholds ascend"
        for entry in entries:
            self._posting(0, entry[1], entry[2])
            self._access(entry[2] >> 33, 0, field, order)
            self.orders[entry[2] >> 33].append((entry[3] >> 16, order))
        assert len(entries) == self.words[place + 2]
        return len(entries)

    def _threshold(self, entry: list[int]) -> tuple[Any, ...]:
        row = self.operands[entry[3] >> 16]
        assert row[at.O_KEY] == entry[0]
        text = b""
        if row[at.O_TAG] & 255 == at.STRING:
            text = bytes(self.memory.index.text[row[at.O_LOW] : row[at.O_LOW] + row[at.O_LEN]])
        return (entry[0], text, entry[3] & 0xFFFF, entry[2])

    def _operands(self) -> None:
        live = {o for o, row in enumerate(self.operands) if o and row[at.O_REFS]}
        for o in live:
            if self.operands[o][at.O_TAG] & 255 not in (at.GROUP, at.NODE):
                assert self.operands[o][at.O_REFS] == self.refs[o], "held as often as constraints say"
        chained = []
        mask, buckets = self.state[at.S_BUCKET_MASK], self.state[at.S_BUCKETS]
        for bucket, head in enumerate(self.memory.index.heads[:buckets].tolist()):
            o = head
            while o:
                home = self.operands[o][at.O_HASH] & mask
                assert bucket == (home if home < buckets else home & (mask >> 1))
                chained.append(o)
                o = self.operands[o][at.O_NEXT]
        assert sorted(chained) == sorted(live)
        assert len(live) == self.state[at.S_OPERAND_COUNT]

    def _free_lists(self) -> None:
        free, o = 0, self.state[at.S_OPERAND_FREE]
        while o:
            free, o = free + 1, self.operands[o][at.O_NEXT]
        assert free + self.state[at.S_OPERAND_COUNT] + 1 == self.state[at.S_OPERANDS]
        free, f = 0, self.state[at.S_FILTER_FREE]
        while f:
            free, f = free + 1, self.filters[f][at.F_FOLLOWING]
        used = self.state[at.S_FILTER_COUNT] + self.state[at.S_GHOSTS]
        assert free + used + 1 == self.state[at.S_FILTERS]
