import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.retry.RetryOneTime;

/**
 * Readers behind writers, with Curator's InterProcessReadWriteLock: CONNECT PATH WRITERS READERS. For each line on the
 * standard input a holder releases. The last line of the output has the number of grants since the start.
 */
public final class ReadersWoken {
    private ReadersWoken() {}

    public static void main(String[] words) throws Exception {
        int writers = Integer.parseInt(words[2]), readers = Integer.parseInt(words[3]);
        Semaphore release = new Semaphore(0);
        Semaphore granted = new Semaphore(0);
        List<Thread> threads = new ArrayList<>();
        CuratorFramework looker = client(words[0]);
        for (int number = 0; number < writers + readers; number++) {
            InterProcessReadWriteLock both = new InterProcessReadWriteLock(client(words[0]), words[1]);
            InterProcessMutex lock = number < writers ? both.writeLock() : both.readLock();
            Thread thread = new Thread(null, () -> hold(lock, granted, release), "contender", 256 * 1024);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
            // The writers queue first, one after the other.
            if (number < writers) await(looker, words[1], number + 1);
        }
        await(looker, words[1], writers + readers);
        int held = 0;
        granted.acquire();
        held++;
        System.out.println("queued");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (orders.readLine() != null) {
            release.release();
            granted.acquire();
            held++;
            System.out.println("granted " + held);
        }
        Runtime.getRuntime().halt(0);
    }

    private static CuratorFramework client(String connect) throws InterruptedException {
        CuratorFramework client = CuratorFrameworkFactory.newClient(connect, 20_000, 10_000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        return client;
    }

    private static void await(CuratorFramework looker, String path, int count) throws Exception {
        while (looker.checkExists().forPath(path) == null || looker.getChildren().forPath(path).size() != count) {
            Thread.sleep(10);
        }
    }

    private static void hold(InterProcessMutex lock, Semaphore granted, Semaphore release) {
        try {
            lock.acquire();
            granted.release();
            release.acquire();
            lock.release();
        } catch (Exception failed) {
            System.err.println(failed);
        }
    }
}
