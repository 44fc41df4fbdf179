// Locks of Redisson, driven over standard input: see test/peers/peer.ts for the lines. `java RedissonPeer PORT`.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class RedissonPeer {
  private static final String TASK = "task ";
  private static RedissonClient redisson;

  public static void main(String[] args) throws Exception {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + args[0]).setConnectionMinimumIdleSize(1);
    redisson = Redisson.create(config);
    Map<String, ExecutorService> tasks = new ConcurrentHashMap<>();
    System.out.println("0 ok ready");
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      // One thread for each task: Redisson's locks belong to threads.
      ExecutorService task = tasks.computeIfAbsent(words[1],
          name -> Executors.newSingleThreadExecutor(run -> new Thread(run, TASK + name)));
      task.execute(() -> answer(words));
    }
    Runtime.getRuntime().halt(0);
  }

  private static void answer(String[] words) {
    String outcome;
    try {
      outcome = "ok " + run(words[2], Arrays.copyOfRange(words, 3, words.length));
    } catch (Exception error) {
      outcome = "error " + error;
    }
    synchronized (System.out) {
      System.out.println(words[0] + " " + outcome);
    }
  }

  private static Object run(String command, String[] args) throws Exception {
    switch (command) {
      case "lock": return take(lock(args[0], args[1]), Long.parseLong(args[2]));
      case "try": return lock(args[0], args[1]).tryLock();
      case "tryFor": return lock(args[0], args[1]).tryLock(Long.parseLong(args[2]), TimeUnit.MILLISECONDS);
      case "unlock": lock(args[0], args[1]).unlock(); return "released";
      case "force": return lock(args[0], args[1]).forceUnlock();
      case "holds": return lock(args[0], args[1]).getHoldCount();
      case "token": return redisson.getFencedLock(args[0]).lockAndGetToken();
      case "count": return count(args);
      case "setPermits": return redisson.getSemaphore(args[0]).trySetPermits(Integer.parseInt(args[1]));
      case "acquire": redisson.getSemaphore(args[0]).acquire(Integer.parseInt(args[1])); return "acquired";
      case "release": redisson.getSemaphore(args[0]).release(Integer.parseInt(args[1])); return "released";
      case "permits": return redisson.getSemaphore(args[0]).availablePermits();
      case "setCount": return redisson.getCountDownLatch(args[0]).trySetCount(Integer.parseInt(args[1]));
      case "countDown": redisson.getCountDownLatch(args[0]).countDown(); return "counted";
      case "waits": return waits(args[0]);
      case "await": redisson.getCountDownLatch(args[0]).await(); return "open";
      default: throw new IllegalArgumentException(command);
    }
  }

  private static RLock lock(String kind, String name) {
    switch (kind) {
      case "mutex": return redisson.getLock(name);
      case "fair": return redisson.getFairLock(name);
      case "fenced": return redisson.getFencedLock(name);
      case "read": return redisson.getReadWriteLock(name).readLock();
      case "write": return redisson.getReadWriteLock(name).writeLock();
      default: throw new IllegalArgumentException(kind);
    }
  }

  /** Whether the task has come to wait for a message. */
  private static boolean waits(String task) {
    return Thread.getAllStackTraces().entrySet().stream()
        .filter(each -> each.getKey().getName().equals(TASK + task))
        .filter(each -> each.getKey().getState().toString().endsWith("WAITING"))
        .flatMap(each -> Arrays.stream(each.getValue()))
        .anyMatch(frame -> frame.getClassName().equals("java.util.concurrent.Semaphore"));
  }

  /** A lease of 0 leaves the lock to the watchdog. */
  private static String take(RLock lock, long leaseMs) {
    if (leaseMs == 0) lock.lock();
    else lock.lock(leaseMs, TimeUnit.MILLISECONDS);
    return "held";
  }

  private static String count(String[] args) throws Exception {
    for (int turn = 0; turn < Integer.parseInt(args[4]); turn++) {
      RLock lock = lock(args[0], args[1]);
      take(lock, Long.parseLong(args[2]));
      try {
        bump(args[3]);
      } finally {
        lock.unlock();
      }
    }
    return "counted";
  }

  private static void bump(String folder) throws Exception {
    Path left = Path.of(folder, "left");
    Path right = Path.of(folder, "right");
    String value = Files.readString(left);
    if (!value.equals(Files.readString(right))) throw new IllegalStateException("seen half written: " + value);
    String next = String.valueOf(Integer.parseInt(value) + 1);
    Files.writeString(left, next);
    Thread.sleep(1);
    Files.writeString(right, next);
  }
}
