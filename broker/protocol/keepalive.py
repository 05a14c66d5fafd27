"""How ZeroMQ finds out that the machine at the other end of a connection is gone: TCP does it.

ZeroMQ's own heartbeats are left out. Their timer aborts the process (`stream_engine_base.cpp`, an assertion in libzmq
4.3.5) when a connection breaks whose messages were not taken in for a while, because the loop was busy. They are not
needed: PING tells whether the program at the other end is alive, and TCP whether its machine is.
"""

from __future__ import annotations

from math import ceil
from typing import Final

import zmq

_PROBES: Final = 3


def keepalive(heartbeat: float, timeout: float) -> dict[int, int]:
    """Options of a socket: probe a connection that is silent for `timeout` seconds, and give it up if nobody answers.

    TCP probes only when it has nothing to send; what nobody acknowledges it sends again, for as long as the system is
    set to. A shorter time for that (`ZMQ_TCP_MAXRT`) would also cut off those who are merely slow to read.
    """
    return {
        zmq.TCP_KEEPALIVE: 1,
        zmq.TCP_KEEPALIVE_IDLE: max(1, ceil(timeout)),
        zmq.TCP_KEEPALIVE_INTVL: max(1, ceil(heartbeat)),
        zmq.TCP_KEEPALIVE_CNT: _PROBES,
    }
