# A service in Python that counts under a lock of Kazoo's: `kazoo_counter.py HOSTS PATH FOLDER KIND TURNS`; as CuratorCounter.java, but it
# only writes, because Kazoo's readers wait for writers that came later, who wait for them.
import sys
import time
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock

hosts, path, folder, kind, turns = sys.argv[1:]


class CuratorMutex(Lock):
    """Curator takes nodes with Kazoo's own names for something else, so Kazoo has to write Curator's."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class CuratorWriter(Lock):
    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["-__WRIT__", "-__READ__"]


left, right = Path(folder, "left"), Path(folder, "right")
client = KazooClient(hosts=hosts, timeout=20)
client.start()
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(turns)):
    lock = (CuratorMutex if kind == "mutex" else CuratorWriter)(client, path)
    lock.acquire()
    value = int(left.read_text())
    if value != int(right.read_text()):
        sys.exit(f"seen half written: {value}")
    left.write_text(str(value + 1))
    time.sleep(0.001)
    right.write_text(str(value + 1))
    lock.release()
client.stop()
