import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.ZooKeeper;

/** A session of ZooKeeper's own client, and what a holder must know of it. */
final class Session {
    final ZooKeeper client;
    private final String connect;
    private final int timeout;
    private final AtomicInteger losses = new AtomicInteger();
    private volatile boolean expired;

    Session(String connect, int timeout) throws Exception {
        this.connect = connect;
        this.timeout = timeout;
        CountDownLatch connected = new CountDownLatch(1);
        client = new ZooKeeper(connect, timeout, event -> {
            switch (event.getState()) {
                case SyncConnected: connected.countDown(); break;
                case Expired: expired = true; losses.incrementAndGet(); break;
                case Disconnected: losses.incrementAndGet(); break;
                default: break;
            }
        });
        if (!connected.await(20, TimeUnit.SECONDS)) throw new IllegalStateException("no server");
    }

    /** Ends this session, and with it whatever it has left in a queue. Returns another one. */
    Session renewed() throws Exception {
        client.close();
        return new Session(connect, timeout);
    }

    boolean isExpired() {
        return expired;
    }

    /** How often the connection was lost. A holder cannot be certain of its lock after that. */
    int losses() {
        return losses.get();
    }

    void close() throws InterruptedException {
        client.close();
    }
}
