import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Sets of mutexes with Curator's InterProcessMultiLock: CONNECT ROOT SECONDS. Its standard input has a line for each
 * client: sets, as numbers with commas between, which the client acquires one after the other. If clients wait for each
 * other in a circle, it counts that, and interrupts one of them, because otherwise they would wait for ever.
 */
public final class MultiLockPlan {
    /** The holder of each path. The monitor of the class guards all of this. */
    private static final Map<String, Worker> holders = new HashMap<>();
    private static final AtomicLong sets = new AtomicLong();
    private static volatile boolean ended;

    private MultiLockPlan() {}

    public static void main(String[] words) throws Exception {
        List<Worker> workers = new ArrayList<>();
        BufferedReader plan = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = plan.readLine(); line != null; line = plan.readLine()) {
            workers.add(new Worker(words[0], words[1], line.trim().split(" ")));
        }
        long start = System.nanoTime();
        for (Worker worker : workers) worker.start();
        long end = start + TimeUnit.SECONDS.toNanos(Long.parseLong(words[2]));
        long deadlocks = 0, first = -1, largest = 0;
        while (System.nanoTime() < end) {
            Thread.sleep(50);
            for (List<Worker> circle = circle(workers); circle != null; circle = circle(workers)) {
                if (deadlocks++ == 0) first = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
                largest = Math.max(largest, circle.size());
                circle.get(0).giveUp();
            }
        }
        long done = sets.get();
        ended = true;
        System.out.println("sets=" + done + " deadlocks=" + deadlocks + " first_ms=" + first + " largest=" + largest);
        System.out.flush();
        // Threads that wait for each other would never end.
        Runtime.getRuntime().halt(0);
    }

    /** Clients, each of which waits for a lock that the next one holds. */
    private static synchronized List<Worker> circle(List<Worker> workers) {
        for (Worker first : workers) {
            List<Worker> way = new ArrayList<>();
            Worker next = first;
            while (next != null && !way.contains(next)) {
                way.add(next);
                next = next.waitsFor == null || next.givesUp ? null : holders.get(next.waitsFor);
            }
            if (next == first) return way;
        }
        return null;
    }

    private static synchronized void change(Runnable change) {
        change.run();
    }

    private static final class Worker extends Thread {
        private final CuratorFramework client;
        private final List<InterProcessMultiLock> plan = new ArrayList<>();
        private String waitsFor;
        private boolean givesUp;

        Worker(String connect, String root, String[] words) throws InterruptedException {
            client = CuratorFrameworkFactory.newClient(connect, 5_000, 10_000, new RetryOneTime(100));
            client.start();
            client.blockUntilConnected();
            for (String word : words) {
                List<InterProcessLock> locks = new ArrayList<>();
                for (String path : word.split(",")) locks.add(new Seen(this, root + "/" + path));
                plan.add(new InterProcessMultiLock(locks));
            }
        }

        @Override public void run() {
            for (int at = 0; !ended; at = (at + 1) % plan.size()) {
                try {
                    plan.get(at).acquire();
                    sets.incrementAndGet();
                    plan.get(at).release();
                } catch (Exception failed) {
                    boolean expected = givesUp;
                    change(() -> givesUp = false);
                    Thread.interrupted();
                    if (!expected && !ended) System.err.println(failed);
                }
            }
        }

        void giveUp() {
            change(() -> givesUp = true);
            interrupt();
        }
    }

    /** A mutex that records its waiters and its holder. */
    private static final class Seen implements InterProcessLock {
        private final Worker worker;
        private final String path;
        private final InterProcessMutex mutex;

        Seen(Worker worker, String path) {
            this.worker = worker;
            this.path = path;
            mutex = new InterProcessMutex(worker.client, path);
        }

        @Override public void acquire() throws Exception {
            acquire(-1, null);
        }

        @Override public boolean acquire(long time, TimeUnit unit) throws Exception {
            change(() -> worker.waitsFor = path);
            boolean acquired = false;
            try {
                acquired = mutex.acquire(time, unit);
                return acquired;
            } finally {
                boolean held = acquired;
                change(() -> {
                    worker.waitsFor = null;
                    if (held) holders.put(path, worker);
                });
            }
        }

        @Override public void release() throws Exception {
            // Record this before anybody else can hold it.
            change(() -> holders.remove(path));
            mutex.release();
        }

        @Override public boolean isAcquiredInThisProcess() {
            return mutex.isAcquiredInThisProcess();
        }
    }
}
