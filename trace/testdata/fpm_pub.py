#!/usr/bin/python3
"""A forward-pass-metrics publisher on real libzmq (Debian: python3-zmq, python3-msgpack).

  fpm_pub.py --base tcp://127.0.0.1:20380 --ranks 2 --rate 100 --seconds 5 [--worker w0]

Speaks the wire format of an engine's publisher thread: PUB socket per rank (tcp: port + rank,
ipc: path + "." + rank), frames ["", 8-byte big-endian sequence, MessagePack map], linger 0, default
high-water mark, an idle heartbeat each second. Prints one JSON line per rank at the end: what it
sent and the send times' span. It knows nothing of fpm: it is the independent peer for tests.

  --count N        stop after N messages per rank instead of --seconds
  --burst          as fast as the socket takes them (rate is ignored)
  --idle           heartbeats only
  --start N        first sequence number
  --warm SECONDS   wait before the first message (lets subscribers join)
  --bad KIND       every 10th message is bad: frames, sequence, garbage, array, version, negative, nan,
                   bool, truncated, trailing, binkey, huge
  --v0             payloads without version and counter_id
  --extra          payloads with unknown keys (timing_scope, a list inside scheduled_requests)
  --skip N         leave out N sequence numbers after every 100 messages (a publisher that dropped)
  --heartbeat MS   libzmq's own PING each MS milliseconds; a subscriber that does not answer is dropped
  --heartbeat-timeout MS  how long an answer may take (default as long as --heartbeat, as with libzmq)
  --await          wait for a line on standard input before the first message, then until libzmq knows
                   the subscriptions that had been sent by then; --warm is ignored
  --linger MS      how long the end waits for subscribers that still read (default 0, as engines do)
"""
import argparse
import fcntl
import glob
import json
import math
import random
import signal
import struct
import sys
import termios
import threading
import time

import msgpack
import zmq
from zmq.utils.monitor import recv_monitor_message

SCHEDULED = ("num_prefill_requests", "sum_prefill_tokens", "var_prefill_length", "sum_prefill_kv_tokens",
             "num_decode_requests", "sum_decode_kv_tokens", "var_decode_kv_tokens")
QUEUED = tuple(k for k in SCHEDULED if k != "sum_prefill_kv_tokens")


def zeros(keys):
    return {k: 0.0 if k.startswith("var_") else 0 for k in keys}


def payload(rng, worker, rank, seq, busy, a):
    scheduled, queued, wall = zeros(SCHEDULED), zeros(QUEUED), 0.0
    if busy:
        n = rng.randrange(1, 64)
        scheduled.update(num_decode_requests=n, sum_decode_kv_tokens=n * rng.randrange(64, 4096),
                         var_decode_kv_tokens=rng.random() * 1e6)
        if rng.random() < 0.2:
            p = rng.randrange(1, 4)
            scheduled.update(num_prefill_requests=p, sum_prefill_tokens=p * rng.randrange(16, 2048),
                             var_prefill_length=rng.random() * 1e4, sum_prefill_kv_tokens=p * 64)
        queued.update(num_prefill_requests=rng.randrange(0, 5))
        wall = 0.004 + rng.random() * 0.03
    m = {"version": 1, "worker_id": worker, "dp_rank": rank, "counter_id": seq, "wall_time": wall,
         "scheduled_requests": scheduled, "queued_requests": queued}
    if a.v0:
        del m["version"], m["counter_id"]
    if a.extra:
        m["timing_scope"] = "cuda_event"
        scheduled["per_request_tokens"] = [1, 2.5, None, "x"]
        m["big"] = 2**63 + 7
    return m


def frames(rng, m, seq, bad):
    topic, stamp, body = b"", struct.pack(">Q", seq), msgpack.packb(m)
    if bad == "frames":
        return rng.choice([[body], [topic, body], [topic, stamp, body, b"x"]])
    if bad == "sequence":
        return [topic, stamp[:4], body]
    if bad == "garbage":
        return [topic, stamp, bytes(rng.randrange(256) for _ in range(64))]
    if bad == "array":
        return [topic, stamp, msgpack.packb(list(m.values()))]
    if bad == "version":
        return [topic, stamp, msgpack.packb({**m, "version": 2})]
    if bad == "negative":
        return [topic, stamp, msgpack.packb({**m, "counter_id": -1})]
    if bad == "nan":
        return [topic, stamp, msgpack.packb({**m, "wall_time": math.nan})]
    if bad == "bool":
        return [topic, stamp, msgpack.packb({**m, "dp_rank": True})]
    if bad == "truncated":
        return [topic, stamp, body[: len(body) // 2]]
    if bad == "trailing":
        return [topic, stamp, body + b"\xc0"]
    if bad == "binkey":
        return [topic, stamp, msgpack.packb({**m, b"k": 1}, use_bin_type=True)]
    if bad == "huge":
        return [topic, stamp, b"\xdd\xff\xff\xff\xff" + body]
    return [topic, stamp, body]


def accepted(monitor):
    """The descriptors of the connections that a socket has accepted."""
    found = []
    while monitor.poll(0):
        found.append(recv_monitor_message(monitor)["value"])
    return found


def unread(fd):
    """How many bytes the kernel has for a connection that libzmq has not read; none if it has closed it."""
    try:
        return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0]
    except OSError:
        return 0


def others_sleep():
    """Whether every thread but this one waits: libzmq's have dealt with all that they have read."""
    for path in glob.glob("/proc/self/task/*/stat"):
        if int(path.split("/")[4]) != threading.get_native_id():
            with open(path) as f:
                if f.read().rpartition(")")[2].split()[0] != "S":
                    return False
    return True


def settle(socks, monitors):
    """Returns when the sockets know each subscription that is in the kernel. A PUB socket does not tell of
    them, and drops what it sends before without a word, so its threads are looked at (on Linux)."""
    fds = [fd for m in monitors for fd in accepted(m)]
    if not sys.platform.startswith("linux"):
        time.sleep(2)
    while any(map(unread, fds)) or not others_sleep():
        time.sleep(0.001)
    for s in socks:
        s.getsockopt(zmq.EVENTS)  # takes what libzmq's threads have for the socket


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--base", default="tcp://127.0.0.1:20380")
    ap.add_argument("--ranks", type=int, default=1)
    ap.add_argument("--first-rank", type=int, default=0)
    ap.add_argument("--worker", default="7587890123456789")
    ap.add_argument("--rate", type=float, default=50.0)
    ap.add_argument("--seconds", type=float, default=5.0)
    ap.add_argument("--count", type=int)
    ap.add_argument("--burst", action="store_true")
    ap.add_argument("--idle", action="store_true")
    ap.add_argument("--start", type=int, default=0)
    ap.add_argument("--warm", type=float, default=0.3)
    ap.add_argument("--bad")
    ap.add_argument("--v0", action="store_true")
    ap.add_argument("--extra", action="store_true")
    ap.add_argument("--skip", type=int, default=0)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--heartbeat", type=int, default=0)
    ap.add_argument("--heartbeat-timeout", type=int)
    ap.add_argument("--await", dest="wait", action="store_true")
    ap.add_argument("--linger", type=int, default=0)
    a = ap.parse_args()
    ctx = zmq.Context()
    socks, monitors, seqs, sent, bad = [], [], [], [], []
    for i in range(a.ranks):
        rank = a.first_rank + i
        s = ctx.socket(zmq.PUB)
        s.setsockopt(zmq.LINGER, a.linger)
        if a.heartbeat:
            s.setsockopt(zmq.HEARTBEAT_IVL, a.heartbeat)
            s.setsockopt(zmq.HEARTBEAT_TIMEOUT, a.heartbeat_timeout or a.heartbeat)
        if a.wait:
            monitors.append(s.get_monitor_socket(zmq.EVENT_ACCEPTED))
        if a.base.startswith("tcp://"):
            host, port = a.base[6:].rsplit(":", 1)
            s.bind(f"tcp://{host}:{int(port) + rank}")
        else:
            s.bind(f"{a.base}.{rank}")
        socks.append(s)
        seqs.append(a.start)
        sent.append(0)
        bad.append(0)
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    signal.signal(signal.SIGINT, lambda *_: stop.append(1))
    print("ready", file=sys.stderr, flush=True)
    if a.wait:
        if not sys.stdin.readline():
            return  # the test is over
        settle(socks, monitors)
    else:
        time.sleep(a.warm)
    rng = random.Random(a.seed)
    begin = time.monotonic()
    interval = 1.0 if a.idle else 1.0 / a.rate
    step = 0
    while not stop:
        if a.count is not None and sent[0] + bad[0] >= a.count:
            break
        if a.count is None and time.monotonic() - begin >= a.seconds:
            break
        for i, s in enumerate(socks):
            if a.skip and sent[i] and sent[i] % 100 == 0:
                seqs[i] += a.skip
            seq = seqs[i]
            seqs[i] += 1
            m = payload(rng, a.worker, a.first_rank + i, seq, not a.idle, a)
            kind = a.bad if a.bad and seq % 10 == 9 else None
            try:
                s.send_multipart(frames(rng, m, seq, kind), zmq.NOBLOCK)
            except zmq.Again:
                continue
            if kind:
                bad[i] += 1
            else:
                sent[i] += 1
        step += 1
        if not a.burst:
            delay = begin + step * interval - time.monotonic()
            if delay > 0:
                time.sleep(delay)
    span = time.monotonic() - begin
    if not a.linger:
        time.sleep(0.2)
    for i, s in enumerate(socks):
        print(json.dumps({"rank": a.first_rank + i, "worker": a.worker, "sent": sent[i], "bad": bad[i],
                          "next": seqs[i], "seconds": round(span, 3)}))
        s.close()
    for m in monitors:
        m.close()
    ctx.term()


if __name__ == "__main__":
    main()
