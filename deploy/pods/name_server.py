"""Answers DNS for pods as the DNS of a cluster does for a headless Service.

A names of a table that may change while it runs; NXDOMAIN for every other name
of cluster.local and for the rest of the world, which no pod of ours asks for.
An answer lives five seconds. UDP only: our answers are short.
"""

import socket
import struct
import threading

A, AAAA, IN = 1, 28, 1
TTL_SECONDS = 5
NAME_ERROR = 3
IP_FREEBIND = 15  # of Linux: the bridge may come after the server


def question_of(query):
    """(name in lower case, type, where the question ends)."""
    labels, at = [], 12
    while query[at]:
        length = query[at]
        labels.append(query[at + 1:at + 1 + length].decode("ascii"))
        at += 1 + length
    kind, _ = struct.unpack_from("!HH", query, at + 1)
    return ".".join(labels).lower(), kind, at + 5


def answer_to(query, table):
    """The reply to a query, by {name: address}."""
    name, kind, end = question_of(query)
    address = table.get(name)
    records = b""
    if address is not None and kind == A:
        # The name is the one at byte 12, the question's.
        records = struct.pack("!HHHIH", 0xc00c, A, IN, TTL_SECONDS, 4)
        records += socket.inet_aton(address)
    # A name without a record of that type exists all the same.
    code = 0 if address is not None else NAME_ERROR
    wanted = struct.unpack_from("!H", query, 2)[0] & 0x0100
    flags = 0x8400 | wanted | (wanted >> 1) | code
    head = query[:2] + struct.pack("!HHHHH", flags, 1, 1 if records else 0, 0, 0)
    return head + query[12:end] + records


class NameServer:
    """Thread-safe. Serves from its construction until stop()."""

    def __init__(self, host, port=53):
        self._table, self._mutex = {}, threading.Lock()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        self._socket.bind((host, port))
        self._socket.settimeout(0.5)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self._socket.getsockname()[1]

    def set(self, name, address):
        """`address` None: there is no such name any more."""
        with self._mutex:
            self._table.pop(name.lower(), None)
            if address is not None:
                self._table[name.lower()] = address

    def _serve(self):
        while not self._stopped.is_set():
            try:
                query, sender = self._socket.recvfrom(512)
            except socket.timeout:
                continue
            with self._mutex:
                table = dict(self._table)
            try:
                reply = answer_to(query, table)
            except (IndexError, struct.error, UnicodeDecodeError):
                continue  # not a query
            self._socket.sendto(reply, sender)

    def stop(self):
        self._stopped.set()
        self._thread.join()
        self._socket.close()
