"""Lives of a journal on a simulated disk, and an auditor who believes nothing but what `commit` returned.

    promised     numbers that a `commit`, or the journal when it was opened, said are on disk: they must stay there
    possible     what was ever appended under a number and may still be there; anything else is a phantom
    optional     what was appended and refused: it may or may not turn up after a crash

What is served must be in order, hold everything promised, nothing that was never appended, and, behind what is
promised, nothing without all that was appended before it. Nothing is reported as damaged unless something was damaged.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from contrada.errors import CorruptFile, JournalFailed
from contrada.forwarding.journal.blocks import HEAD, HEADER_BYTES, MARK, Block, encode_block
from contrada.forwarding.journal.journal import Journal
from contrada.forwarding.journal.scan import scan
from tests.forwarding.journal.simulated_disk import Crash, SimulatedDisk

if TYPE_CHECKING:
    from contrada.forwarding.journal.blocks import Entry
    from tests.forwarding.journal.simulated_disk import Inode

DIRECTORY = Path("/data/journal")


class Lost(AssertionError):
    """The auditor found what must not be; the message says in which run."""


def scan_bytes(data: bytes) -> list[Block]:
    """The whole blocks of a file."""
    disk = SimulatedDisk(Random(0))
    file = disk.create(Path("/file"))
    disk.write(file, 0, data)
    return [each for each in scan(disk, file, salt=None) if isinstance(each, Block)]


class _Ended(Exception):
    """There is nothing more to see."""


class Auditor:
    """One disk, and a journal that lives and dies on it until `crashes` have happened."""

    def __init__(self, seed: int, crashes: int, *, damage: bool = False) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.disk = SimulatedDisk(self.random)
        self.crashes = crashes
        self.flips = 1 if damage else 0
        self.promised: dict[int, bytes] = {}
        self.possible: dict[int, set[bytes]] = {}
        self.order: list[int] = []  # numbers of this life that are not promised yet, in order
        self.optional: set[bytes] = set()
        self.restated: set[bytes] = set()
        self.floor = 1  # what is below may have been dropped
        self.count = 0
        self.journal: Journal | None = None
        self.hurt = False  # whether anything was damaged

    def run(self) -> int:
        """Live until enough crashes have happened; how many operations the disk saw."""
        with suppress(_Ended):
            self.go_on()
        return self.disk.operations

    def go_on(self) -> None:
        while self.crashes > 0:
            self.disk.crash_in = self.random.choice((self.random.randrange(12), self.random.randrange(60)))
            if self.random.random() < 0.1:
                self.disk.write_error = errno.ENOSPC
            with suppress(Crash):
                self.live()
            self.crashes -= 1
            self.journal = None
            if self.random.random() < 0.35:
                self.disk.kill()
            else:
                self.disk.cut_power()
            if self.flips and self.random.random() < 0.3:
                self.flip()
        self.disk.kill()
        self.disk.crash_in = None
        self.opened().close()

    # -- a life ---------------------------------------------------------------------------------------------

    def live(self) -> None:
        """Open, and do this and that until the disk ends it."""
        random = self.random
        restates = random.random() < 0.3
        try:
            journal = self.opened(random.choice((150, 400, 2000)), restates)
        except JournalFailed as failure:
            self.check(failure.full, "it could not be opened on a disk that does not fail")
            return
        for _ in range(40):
            choice = random.random()
            if choice < 0.45:
                self.append(journal)
            elif choice < 0.75:
                self.commit(journal)
            elif choice < 0.81:
                self.write(journal)
            elif choice < 0.85 and journal.first < journal.on_disk:
                self.floor = max(self.floor, random.randint(journal.first, journal.on_disk))
                with suppress(JournalFailed):
                    journal.drop_before(self.floor)
            elif choice < 0.89 and restates:
                self.begin_file(journal)
            elif choice < 0.92:
                self.disk.write_error = random.choice((0, errno.ENOSPC, errno.ENOSPC, errno.EIO))
            elif choice < 0.935:
                self.disk.sync_error = random.choice((errno.EIO, errno.ENOSPC))
            elif choice < 0.96:
                self.disk.write_error = self.disk.sync_error = 0
            elif choice < 0.98:
                self.audit(journal)
            elif choice < 0.99 and journal.failure is None:
                self.close(journal)
                return
        raise Crash

    def opened(self, file_bytes: int = 1000, restates: bool = False) -> Journal:
        """Open the journal, and believe from here on what it says is on disk."""
        options = {"disk": self.disk, "file_bytes": file_bytes, "restates": restates, "clock": lambda: 10**9}
        try:
            journal = Journal.open(DIRECTORY, **options)
        except CorruptFile as error:
            self.check(self.hurt, f"refused, though nothing is damaged: {error}")
            raise _Ended from error  # header and first block of the only file are damaged: it is left alone
        self.journal = journal
        if not self.hurt:
            self.check(journal.recovery.damaged == [], f"damage where there is none: {journal.recovery.damaged}")
        served = self.audit(journal)
        last = served[-1] if served else None
        end = last.sequence + last.numbers if last is not None else journal.first
        if not self.hurt:
            self.check(journal.on_disk >= end - 1, f"{journal.on_disk} on disk, {end - 1} served")
        self.check(journal.last == journal.on_disk, "numbers go on behind what is on disk")
        # Whoever opened it may rely on what it shows; what it does not show will never be.
        self.promised = {entry.sequence: entry.payload for entry in served if entry.numbers}
        self.possible = {number: {payload} for number, payload in self.promised.items()}
        self.order, self.optional = [], set()
        return journal

    def append(self, journal: Journal) -> None:
        for _ in range(self.random.choice((1, 1, 2, 5))):
            self.count += 1
            size = self.random.choice((0, 10, 100, 300, 40_000 if self.random.random() < 0.05 else 30))
            payload = b"%d " % self.count + bytes(size)
            numbers = self.random.choice((1, 1, 1, 3))
            before = journal.last
            number = journal.append(self.random.randrange(5), payload, numbers)
            self.check(number == before + 1, f"{number} follows {before}")
            self.possible.setdefault(number, set()).add(payload)
            self.order.append(number)

    def begin_file(self, journal: Journal) -> None:
        if journal.failure is not None:
            journal.discard()
            self.refuse(journal, list(self.order))
        self.count += 1
        payload = b"restated %d" % self.count
        self.restated.add(payload)
        journal.begin_file([(7, payload)])

    def commit(self, journal: Journal) -> None:
        before = list(self.order)
        if self.random.random() < 0.3:
            self.disk.during_sync = lambda: self.append(journal)  # a slow sync, and others go on
        try:
            on_disk = journal.commit()
        except JournalFailed:
            self.refuse(journal, before)
        else:
            self.check(on_disk == journal.on_disk, "what commit returns is on disk")
            late = [number for number in self.order if number > on_disk]
            self.check(not set(late) & set(before), "a commit covers all that was appended before it")
            self.promise(on_disk)
        self.disk.during_sync = None

    def write(self, journal: Journal) -> None:
        before = list(self.order)
        try:
            journal.write()
        except JournalFailed:
            self.refuse(journal, before)
        else:
            self.promise(journal.on_disk)

    def promise(self, on_disk: int) -> None:
        for number in self.order:
            if number <= on_disk:
                (self.promised[number],) = self.possible[number] - self.optional
        self.order = [number for number in self.order if number > on_disk]

    def refuse(self, journal: Journal, before: list[int]) -> None:
        """What was appended before the call and is not on disk was dropped."""
        self.promise(journal.on_disk)
        dropped = {number for number in before if number > journal.on_disk}
        written = self.written_before(journal, dropped)
        for number in dropped - written:
            self.optional |= self.possible[number]
        self.order = [number for number in self.order if number not in dropped or number in written]

    def written_before(self, journal: Journal, dropped: set[int]) -> set[int]:
        """Numbers that an earlier `write` had handed to the system, which a failed write does not take back."""
        held = journal._tail.last_written
        return {number for number in dropped if number <= held}

    def close(self, journal: Journal) -> None:
        before = list(self.order)
        try:
            journal.close()
        except JournalFailed:
            self.refuse(journal, before)
        else:
            self.promise(journal.on_disk)
            self.check(not self.order, "closing commits")

    def flip(self) -> None:
        """Hurt something that is on disk and was promised, and said to be by the clean end behind it."""
        self.flips -= 1
        self.opened().close()
        files = [node for name, node in self.disk.files(DIRECTORY).items() if name.endswith(".rec")]
        if not files:
            return
        node = self.random.choice(files)
        end = len(node.seen)
        if node is files[-1]:
            end = node.seen.rindex(MARK)
            if len(node.seen) - end > HEAD.size + 1:  # nothing is behind its last records
                return
        if self.random.random() < 0.3:
            self.replace(node)
        else:
            beginning = min(end, HEADER_BYTES + HEAD.size) if self.random.random() < 0.4 else end
            self.change(node, self.random.randrange(beginning), 1 << self.random.randrange(8))
        self.hurt = True
        if self.random.random() < 0.5:
            self.disk.cut_power()

    def replace(self, node: Inode) -> None:
        """Put another whole block in the place of one: its last byte and its checksum are other ones."""
        blocks = [each for each in scan_bytes(bytes(node.seen)) if len(each.payload) > 1]
        followed = [each for each in blocks if node.seen.startswith(MARK, each.end_offset)]
        if followed:
            block = self.random.choice(followed)
            payload = block.payload[:-1] + bytes([block.payload[-1] ^ 1])
            encoded, _ = encode_block(payload, *block[3:10])
            for at, (old, new) in enumerate(zip(node.seen[block.offset : block.end_offset], encoded, strict=True)):
                self.change(node, block.offset + at, old ^ new)

    def change(self, node: Inode, at: int, bits: int) -> None:
        node.seen[at] ^= bits
        if at < len(node.stored):
            node.stored[at] ^= bits

    # -- the audit ------------------------------------------------------------------------------------------

    def audit(self, journal: Journal) -> list[Entry]:
        """Compare what is served with what was promised."""
        served = list(journal.read())
        numbers = [entry.sequence for entry in served if entry.numbers]
        self.check(numbers == sorted(set(numbers)), f"order: {numbers}")
        for entry in served:
            known = self.restated if not entry.numbers else self.possible.get(entry.sequence, set())
            self.check(entry.payload in known, f"phantom: {entry.sequence} {entry.payload[:20]!r}")
        present = dict.fromkeys(numbers)
        told = [(each.first, each.last) for each in journal.recovery.damaged]
        missing = [
            number
            for number in self.promised
            if number not in present and (number >= self.floor or (numbers and number >= numbers[0]))
        ]
        if self.hurt:
            missing = [number for number in missing if not any(low <= number <= high for low, high in told)]
        self.check(not missing, f"lost: {missing} of {len(self.promised)}; told {told}")
        if not self.hurt:
            behind = [n for n in self.order if n in present and not self.refused(served, n)]
            self.check(behind == self.order[: len(behind)], f"{behind} of {self.order}: something is missing between")
        return served

    def refused(self, served: list[Entry], number: int) -> bool:
        """Whether what is served under a number is something that was refused."""
        return any(entry.sequence == number and entry.payload in self.optional for entry in served if entry.numbers)

    def check(self, holds: bool, reason: str) -> None:
        if not holds:
            raise Lost(f"seed {self.seed}, {self.crashes} crashes to go: {reason}")


def audit_lenient(seed: int, crashes: int) -> None:
    """Lives of a journal that promises only what it commits, and writes much without: power cuts leave what it did."""
    random = Random(seed)
    disk = SimulatedDisk(random)
    promised: dict[int, bytes] = {}
    for life in range(crashes):
        journal = Journal.open(DIRECTORY, disk=disk, file_bytes=300, lenient=True, clock=lambda: 10**9)
        served = {entry.sequence: entry.payload for entry in journal.read()}
        lost = [number for number, payload in promised.items() if served.get(number) != payload]
        if lost:
            raise Lost(f"seed {seed}, life {life}: {lost} of {len(promised)}")
        written: dict[int, bytes] = {}
        for _ in range(random.randrange(30)):
            payload = b"%d" % random.getrandbits(60)
            written[journal.append(1, payload)] = payload
            if random.random() < 0.5:
                journal.write()
            elif random.random() < 0.2:
                on_disk = journal.commit()
                promised |= {number: payload for number, payload in written.items() if number <= on_disk}
        disk.kill() if random.random() < 0.3 else disk.cut_power()
