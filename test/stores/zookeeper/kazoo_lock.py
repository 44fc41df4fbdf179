# A service in Python that takes a lock with Kazoo, says so, and gives it back when told: `kazoo_lock.py HOSTS PATH [SESSION_MS]`.
import sys
from kazoo.client import KazooClient

session_ms = int(sys.argv[3]) if len(sys.argv) > 3 else 20_000
client = KazooClient(hosts=sys.argv[1], timeout=session_ms / 1000)
client.start()
lock = client.Lock(sys.argv[2], "kazoo", extra_lock_patterns=["-lock-"])
print("waiting", flush=True)
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
client.stop()
