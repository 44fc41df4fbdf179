# A service in Python that takes a lock with Kazoo, says so, and gives it back when told: `kazoo_lock.py HOSTS PATH`.
import sys
from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1], timeout=20)
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
