"""Where the reader is: file and 64-bit position, from headers that hold the low 32 bits alone."""

from __future__ import annotations

from contract.sequence import file_number
from streamer.protocol import refusals
from streamer.protocol.events import POSITION, SIZE
from streamer.protocol.lengths import lenenc
from streamer.protocol.packets import Header

WRAP = 1 << 32
FIRST = 4  # behind a file's magic number
HEARTBEAT_END, HEARTBEAT_FILE, HEARTBEAT_POSITION = 0, 1, 2


class Position:
    """`start` and `pos`: the current event's first byte and the byte behind it; `number`: of the file. `behind`: a file
    and a 64-bit position before which nothing comes that is read, though the server passes by it to get there.
    `sums`: whether events without a position stand in the file all the same, as MariaDB's inside a transaction do."""

    __slots__ = ("_high", "_low", "_unplaced", "behind", "file", "number", "pos", "start", "sums")

    def __init__(self) -> None:
        self.behind: tuple[str, int] | None = None
        self.sums = False
        self.rotate("", 0, FIRST)

    def rotate(self, file: str, number: int, pos: int) -> None:
        self.file, self.number = file, number
        self._jump(pos)

    def _jump(self, pos: int) -> None:
        self.start = self.pos = pos
        self._low = pos % WRAP
        self._high = pos - self._low
        self._unplaced = 0  # bytes of events since then that had no position

    def move(self, header: Header) -> None:
        """To the end of an event. Events that the server makes up on the way, and those inside a compressed
        transaction, have the position 0; a file beyond 4 GiB starts again at 0 within one event's size, or within those
        that had none."""
        low = header[POSITION]
        if low:
            if low < self._low:
                self._high += WRAP
            if self._unplaced:
                self._pass_by(low)
            self._low = low
            self.pos = self._high + low
            self.start = self.pos - header[SIZE]
        elif self.sums:
            self._unplaced += header[SIZE]

    def _pass_by(self, low: int) -> None:
        """As often as the events without a position passed 4 GiB: to the place that is nearest to where they end, for
        not each small one is told of, nor does each stand in the file."""
        while self._high + low + WRAP // 2 < self.pos + self._unplaced:
            self._high += WRAP
        self._unplaced = 0

    def rotated(self, d: bytes, o: int, end: int) -> None:
        """A ROTATE event's body. Raises ValueError for a file without a number, BegunAnewError for one that was read:
        where MariaDB's binlog is reset, its dumps go on."""
        file = d[o + 8 : end].decode()
        pos = int.from_bytes(d[o : o + 8], "little")
        number = file_number(file)
        if (number, pos) < (self.number, self.pos):
            raise refusals.begun_anew(f"it gives {file}:{pos}, though {self.file}:{self.pos} was read")
        if self.behind is not None and self.behind[0] == file:
            pos, self.behind = max(pos, self.behind[1]), None
        self.rotate(file, number, pos)

    def short_heartbeat(self, header: Header) -> None:
        """One of a place that the server passes by does not go back."""
        if header[POSITION] >= self._low:
            self.move(header)

    def heartbeat(self, d: bytes, o: int, end: int) -> None:
        """The second form of a heartbeat tells the whole position: fields of kind, size, value."""
        while o < end and d[o] != HEARTBEAT_END:
            kind = d[o]
            size, o = lenenc(d, o + 1)
            if kind == HEARTBEAT_POSITION:
                self._jump(max(self.pos, lenenc(d, o)[0]))
            o += size
