// A service in Java that counts under a lock of Curator's: `java CuratorCounter.java HOSTS PATH FOLDER KIND TURNS`. The kind is `mutex`, or
// `read-write`: then every second turn only reads. The two files of the folder hold one count; only the lock keeps them equal.
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

public class CuratorCounter {
  private static final int SESSION_TIMEOUT_MS = 20_000;
  private final Path left;
  private final Path right;

  CuratorCounter(String folder) {
    left = Path.of(folder, "left");
    right = Path.of(folder, "right");
  }

  public static void main(String[] args) throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(args[0], SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    boolean isMutex = args[3].equals("mutex");
    InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, args[1]);
    InterProcessLock writing = isMutex ? new InterProcessMutex(client, args[1]) : both.writeLock();
    CuratorCounter counter = new CuratorCounter(args[2]);
    System.out.println("ready");
    System.in.read();
    for (int turn = 0; turn < Integer.parseInt(args[4]); turn++) {
      boolean isReader = !isMutex && turn % 2 == 1;
      InterProcessLock lock = isReader ? both.readLock() : writing;
      lock.acquire();
      if (isReader) counter.read();
      else counter.write();
      lock.release();
    }
    client.close();
  }

  private void write() throws Exception {
    int value = look();
    Files.writeString(left, String.valueOf(value + 1));
    Thread.sleep(1);
    Files.writeString(right, String.valueOf(value + 1));
  }

  private void read() throws Exception {
    int before = look();
    Thread.sleep(1);
    if (look() != before) throw new IllegalStateException("written while it was read");
  }

  private int look() throws Exception {
    String first = Files.readString(left);
    String second = Files.readString(right);
    if (!first.equals(second)) throw new IllegalStateException("seen half written: " + first + " and " + second);
    return Integer.parseInt(first);
  }
}
