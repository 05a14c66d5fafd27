"""The client's socket where no test of processes can bring it about at will."""

from __future__ import annotations

from random import Random
from unittest.mock import Mock

import zmq

from contrada.client.options import Options
from contrada.client.transport import Transport


def test_what_nobody_takes_after_a_refused_handshake_is_left_to_the_monitor() -> None:
    """ZeroMQ has no connection to queue it for then; why is what `Transport.report` is asked for."""
    transport = Transport("tcp://127.0.0.1:7400", Options.of({}), Random(1))
    transport.socket = Mock()
    transport.socket.send_multipart.side_effect = zmq.Again
    transport.send([b"hello"])
    transport.socket.send_multipart.assert_called_once()
