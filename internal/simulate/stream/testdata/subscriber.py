#!/usr/bin/python3
"""A subscriber on real libzmq: subscriber.py COUNT ADDRESS...

Receives COUNT messages from every address with a socket each, and prints them as JSON lines:
the number of the address, the sequence, and the payload. Sends heartbeats, as relays do.
"""
import json
import struct
import sys

import msgpack
import zmq

count, addresses = int(sys.argv[1]), sys.argv[2:]
context = zmq.Context()
sockets = []
for address in addresses:
    s = context.socket(zmq.SUB)
    s.setsockopt(zmq.RCVHWM, 0)
    s.setsockopt(zmq.HEARTBEAT_IVL, 20)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 200)
    s.setsockopt(zmq.RCVTIMEO, 20000)
    s.setsockopt(zmq.SUBSCRIBE, b"")
    s.connect(address)
    sockets.append(s)
for i, s in enumerate(sockets):
    for _ in range(count):
        topic, stamp, body = s.recv_multipart()
        assert topic == b"", topic
        print(json.dumps([i, struct.unpack(">Q", stamp)[0], msgpack.unpackb(body)]))
