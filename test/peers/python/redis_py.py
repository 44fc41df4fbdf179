# Locks of redis-py, driven over standard input: see test/peers/peer.ts for the lines. `redis_py.py PORT`.
import sys
import threading
import time
from pathlib import Path
from queue import Queue

import redis

client = redis.Redis(port=int(sys.argv[1]))
printing = threading.Lock()
locks = {}


def say(*words):
    with printing:
        print(*words, flush=True)


def lock(_kind, name, lease_ms):
    held = client.lock(name, timeout=int(lease_ms) / 1000, sleep=0.02, thread_local=False)
    held.acquire()
    locks[name] = held
    return "held"


def unlock(_kind, name):
    locks.pop(name).release()
    return "released"


def count(_kind, name, lease_ms, folder, turns):
    left, right = Path(folder, "left"), Path(folder, "right")
    for _ in range(int(turns)):
        with client.lock(name, timeout=int(lease_ms) / 1000, sleep=0.02):
            value = int(left.read_text())
            if value != int(right.read_text()):
                raise RuntimeError(f"seen half written: {value}")
            left.write_text(str(value + 1))
            time.sleep(0.001)
            right.write_text(str(value + 1))
    return "counted"


COMMANDS = {"lock": lock, "unlock": unlock, "count": count}


def work(lines):
    while True:
        number, command, *args = lines.get()
        try:
            say(number, "ok", COMMANDS[command](*args))
        except Exception as error:
            say(number, "error", type(error).__name__, error)


tasks = {}
say("0 ok ready")
for line in sys.stdin:
    number, task, *rest = line.split()
    if task not in tasks:
        tasks[task] = Queue()
        threading.Thread(target=work, args=(tasks[task],), daemon=True).start()
    tasks[task].put([number, *rest])
