// Curator's part in the benchmark: `java CuratorWorker.java HOSTS`. Each line of its input, "SESSIONS LOCKS TASKS MS", is a round: so many
// threads take and give back one of so many locks for so long. It answers with the pairs of each thread.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorWorker {
  private static final int SESSION_TIMEOUT_MS = 10_000;
  private final List<CuratorFramework> sessions = new ArrayList<>();
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final String hosts;

  CuratorWorker(String hosts) {
    this.hosts = hosts;
  }

  public static void main(String[] args) throws Exception {
    CuratorWorker worker = new CuratorWorker(args[0]);
    BufferedReader rounds = new BufferedReader(new InputStreamReader(System.in));
    for (String round; (round = rounds.readLine()) != null;) {
      Scanner numbers = new Scanner(round);
      System.out.println(worker.round(numbers.nextInt(), numbers.nextInt(), numbers.nextInt(), numbers.nextInt()));
    }
    System.exit(0);
  }

  private String round(int sessionCount, int locks, int tasks, int ms) throws Exception {
    while (sessions.size() < sessionCount) sessions.add(open());
    long end = System.nanoTime() + ms * 1_000_000L;
    List<Future<Integer>> counts = new ArrayList<>();
    for (int task = 0; task < tasks; task++) {
      CuratorFramework session = sessions.get(task % sessionCount);
      InterProcessMutex mutex = new InterProcessMutex(session, "/curator/lock-" + task % locks);
      counts.add(threads.submit(() -> pairs(mutex, end)));
    }
    List<String> answers = new ArrayList<>();
    for (Future<Integer> count : counts) answers.add(String.valueOf(count.get()));
    return answers.stream().collect(Collectors.joining(" "));
  }

  private static int pairs(InterProcessMutex mutex, long end) throws Exception {
    int count = 0;
    for (; System.nanoTime() < end; count++) {
      mutex.acquire();
      mutex.release();
    }
    return count;
  }

  private CuratorFramework open() throws Exception {
    CuratorFramework client =
        CuratorFrameworkFactory.newClient(hosts, SESSION_TIMEOUT_MS, SESSION_TIMEOUT_MS, new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    return client;
  }
}
