import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Method;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

/**
 * A worker with Curator (see ../README.md). With --listens, any state of its listener other than "connected" ends a hold.
 * Otherwise it believes that it holds until it releases.
 */
final class CuratorWorker {
    private static final long PATIENCE_MS = 10_000;

    private final CuratorFramework client;
    private final Socket socket;
    private final OutputStream out;
    private final Random chance;
    /** How long a lock is held at most, and now and then, and how often that is said, in microseconds. */
    private final int[] times;
    private final boolean listens;
    // How often the listener was told of another state than "connected".
    private final AtomicInteger troubles = new AtomicInteger();
    private volatile boolean isOver;
    private long turn;
    // Of the latest hold.
    private String node = "-";

    /** A lock: acquires it within a time, and returns how to release it, or null. */
    private interface Taking {
        Release within(long millis) throws Exception;
    }

    private interface Release {
        void run() throws Exception;
    }

    private CuratorWorker(String[] words, boolean listens) throws IOException {
        times = Arrays.stream(words[5].split(",")).mapToInt(Integer::parseInt).toArray();
        this.listens = listens;
        int colon = words[2].lastIndexOf(':');
        socket = new Socket(words[2].substring(0, colon), Integer.parseInt(words[2].substring(colon + 1)));
        socket.setTcpNoDelay(true);
        out = socket.getOutputStream();
        chance = new Random(new java.math.BigInteger(words[4]).longValue());
        client = CuratorFrameworkFactory.newClient(words[0], Integer.parseInt(words[1]), 10_000, new RetryForever(100));
        client.getConnectionStateListenable().addListener((curator, state) -> {
            if (state != ConnectionState.CONNECTED && state != ConnectionState.RECONNECTED) troubles.incrementAndGet();
        });
    }

    private void say(Object... words) throws IOException {
        StringBuilder line = new StringBuilder();
        for (Object word : words) line.append(line.length() == 0 ? "" : " ").append(word);
        out.write(line.append('\n').toString().getBytes(StandardCharsets.UTF_8));
    }

    private void run(String name, String[] locks) throws IOException, InterruptedException {
        say("hello", name, ProcessHandle.current().pid());
        Thread end = new Thread(this::awaitEnd);
        end.setDaemon(true);
        end.start();
        client.start();
        while (!isOver) {
            turn++;
            takeTurn(locks[chance.nextInt(locks.length)]);
            if (chance.nextInt(3) == 0) Thread.sleep(chance.nextInt(21));
        }
    }

    /** A wait inside Curator does not notice the end of the register, so the process ends, a little later. */
    private void awaitEnd() {
        try {
            while (socket.getInputStream().read() >= 0) { }
        } catch (IOException broken) {
            // The same.
        }
        isOver = true;
        try {
            Thread.sleep(2_000);
            client.close();
            Thread.sleep(2_000);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }

    private void takeTurn(String lock) throws IOException, InterruptedException {
        boolean tries = chance.nextInt(5) == 0;
        say("want", turn, lock, System.nanoTime());
        // Counted from before the acquire, so that trouble while it returns is noticed.
        int before = troubles.get();
        Release release;
        try {
            release = taking(lock).within(tries ? 0 : PATIENCE_MS);
        } catch (Exception failed) {
            say("gave", turn, System.nanoTime(), failed.getClass().getSimpleName());
            Thread.sleep(100);
            return;
        }
        if (release == null) {
            say("gave", turn, System.nanoTime(), tries ? "busy" : "timeout");
            return;
        }
        hold(before);
        try {
            release.run();
        } catch (Exception failed) {
            // Curator goes on deleting the node in the background.
        }
        say("free", turn, System.nanoTime());
    }

    private void hold(int before) throws IOException, InterruptedException {
        if (isLost(before)) {
            say("lost", turn, System.nanoTime(), "listener");
            return;
        }
        say("have", turn, 0, node, System.nanoTime());
        int longest = times[chance.nextInt(10) == 0 ? 1 : 0];
        long end = System.nanoTime() + chance.nextInt(longest + 1) * 1000L;
        while (true) {
            // The time is read before the flag is checked, so that the claim is not longer than the hold.
            long now = System.nanoTime();
            if (isLost(before)) {
                say("lost", turn, System.nanoTime(), "listener");
                return;
            }
            boolean isLast = now >= end || isOver;
            say(isLast ? "done" : "still", turn, now);
            if (isLast) return;
            TimeUnit.MICROSECONDS.sleep(times[2]);
        }
    }

    private boolean isLost(int before) {
        return listens && troubles.get() != before;
    }

    private Taking taking(String lock) {
        String kind = lock.substring(0, lock.indexOf(':'));
        String path = lock.substring(lock.indexOf(':') + 1);
        switch (kind.split("=")[0]) {
            case "mutex": case "lingering": return simply(new InterProcessMutex(client, path));
            case "read": return simply(new InterProcessReadWriteLock(client, path).readLock());
            case "write": return simply(new InterProcessReadWriteLock(client, path).writeLock());
            case "semaphore": {
                InterProcessSemaphoreV2 permits = new InterProcessSemaphoreV2(client, path, Integer.parseInt(kind.split("=")[1]));
                return millis -> {
                    Lease lease = permits.acquire(millis, TimeUnit.MILLISECONDS);
                    if (lease == null) return null;
                    node = path + "/leases/" + lease.getNodeName();
                    return () -> permits.returnLease(lease);
                };
            }
            default: throw new IllegalArgumentException(kind);
        }
    }

    private Taking simply(InterProcessMutex lock) {
        return millis -> {
            if (!lock.acquire(millis, TimeUnit.MILLISECONDS)) return null;
            // Only subclasses may ask for it.
            Method getLockPath = InterProcessMutex.class.getDeclaredMethod("getLockPath");
            getLockPath.setAccessible(true);
            node = (String) getLockPath.invoke(lock);
            return lock::release;
        };
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        boolean listens = words[words.length - 1].equals("--listens");
        String[] rest = listens ? Arrays.copyOf(words, words.length - 1) : words;
        new CuratorWorker(rest, listens).run(rest[3], Arrays.copyOfRange(rest, 6, rest.length));
        // Curator's threads would keep the process alive.
        System.exit(0);
    }
}
