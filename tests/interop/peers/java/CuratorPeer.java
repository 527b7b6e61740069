import java.util.ArrayList;
import java.util.Collection;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Node;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryOneTime;

/** A peer with Curator: its locks, and its leaders. */
final class CuratorPeer {
    private final CuratorFramework client;
    private final String path;
    private final String name;
    // How often the connection was suspended or lost. A holder cannot be certain of its lock after that.
    private final AtomicInteger losses = new AtomicInteger();

    CuratorPeer(String connect, String path, int session, String name) throws InterruptedException {
        this.path = path;
        this.name = name;
        client = CuratorFrameworkFactory.newClient(connect, session, 10_000, new RetryOneTime(100));
        client.getConnectionStateListenable().addListener((curator, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) losses.incrementAndGet();
        });
        client.start();
        client.blockUntilConnected();
    }

    Turn turn(String kind) {
        String[] words = kind.split(":");
        switch (words[0]) {
            case "mutex": return with("x", new InterProcessMutex(client, path));
            case "semaphore-mutex": return with("x", new InterProcessSemaphoreMutex(client, path));
            case "semaphore":
                return leases(new InterProcessSemaphoreV2(client, path, Integer.parseInt(words[1])),
                        words.length > 2 ? Integer.parseInt(words[2]) : 1);
            case "election": return this::leadByLatch;
            case "selector": return this::leadBySelector;
            default: break;
        }
        InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, path);
        Turn read = with("r", both.readLock());
        Turn write = with("x", both.writeLock());
        switch (words[0]) {
            case "rw": return line -> (ThreadLocalRandom.current().nextInt(4) == 0 ? write : read).take(line);
            case "downgrade":
                return line -> ThreadLocalRandom.current().nextBoolean() ? downgrade(line, both) : read.take(line);
            default: throw new IllegalArgumentException("no kind: " + kind);
        }
    }

    void close() {
        client.close();
    }

    private Turn with(String mode, InterProcessLock lock) {
        return line -> {
            lock.acquire();
            int before = losses.get();
            line.enter(mode, lock instanceof InterProcessMutex ? Node.of((InterProcessMutex) lock) : null);
            boolean goesOn = leave(line, before);
            lock.release();
            return goesOn;
        };
    }

    private boolean downgrade(Line line, InterProcessReadWriteLock both) throws Exception {
        both.writeLock().acquire();
        int before = losses.get();
        line.enter("x", Node.of(both.writeLock()));
        try {
            both.readLock().acquire();
        } catch (Exception failed) {
            boolean goesOn = line.lost(failed.toString());
            both.writeLock().release();
            return goesOn;
        }
        line.down(Node.of(both.readLock()));
        both.writeLock().release();
        boolean goesOn = leave(line, before);
        both.readLock().release();
        return goesOn;
    }

    private Turn leases(InterProcessSemaphoreV2 semaphore, int quantity) {
        return line -> {
            Collection<Lease> leases = new ArrayList<>(semaphore.acquire(quantity));
            int before = losses.get();
            line.enter("s:" + quantity, leases.iterator().next().getNodeName());
            boolean goesOn = leave(line, before);
            semaphore.returnAll(leases);
            return goesOn;
        };
    }

    private boolean leadByLatch(Line line) throws Exception {
        try (LeaderLatch latch = new LeaderLatch(client, path, name)) {
            latch.start();
            latch.await();
            int before = losses.get();
            line.enter("x", nodeOf(latch));
            return leave(line, before);
        }
    }

    /** The internal place of the node's name, which Curator 4.0 does not publish. */
    private static String nodeOf(LeaderLatch latch) throws ReflectiveOperationException {
        try {
            return (String) LeaderLatch.class.getMethod("getOurPath").invoke(latch);
        } catch (NoSuchMethodException untold) {
            return null;
        }
    }

    private boolean leadBySelector(Line line) throws Exception {
        boolean[] goesOn = {true};
        boolean[] led = {false};
        LeaderSelectorListenerAdapter leader = new LeaderSelectorListenerAdapter() {
            @Override public void takeLeadership(CuratorFramework curator) throws Exception {
                int before = losses.get();
                line.enter("x", null);
                goesOn[0] = leave(line, before);
                led[0] = true;
            }
        };
        // With one thread, the next task runs when the selector has left the queue. If it were closed before, it
        // would interrupt its own release.
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (LeaderSelector selector = new LeaderSelector(client, path, thread, leader)) {
            selector.start();
            while (true) {
                thread.submit(() -> {}).get();
                if (led[0]) return goesOn[0];
                selector.requeue();
            }
        } finally {
            thread.shutdown();
        }
    }

    private boolean leave(Line line, int before) throws Exception {
        return losses.get() == before ? line.leave() : line.lost("connection");
    }
}
