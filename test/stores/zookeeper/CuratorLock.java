// A service in Java that takes a lock with Curator, says so, and gives it back when told: `java CuratorLock.java HOSTS PATH [SESSION_MS]`.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorLock {
  public static void main(String[] args) throws Exception {
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
    int sessionMs = args.length > 2 ? Integer.parseInt(args[2]) : 20_000;
    CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], sessionMs, 20_000, new RetryOneTime(100));
    client.start();
    InterProcessMutex lock = new InterProcessMutex(client, args[1]);
    System.out.println("waiting");
    lock.acquire();
    System.out.println("held");
    orders.readLine();
    lock.release();
    System.out.println("released");
    orders.readLine();
    client.close();
  }
}
