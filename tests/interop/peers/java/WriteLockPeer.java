import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** A peer with ZooKeeper's own WriteLock. */
final class WriteLockPeer implements Watcher {
    private final String connect;
    private final String path;
    private final int session;
    private volatile boolean expired;
    private volatile boolean uncertain;
    private ZooKeeper client;

    WriteLockPeer(String connect, String path, int session) throws Exception {
        this.connect = connect;
        this.path = path;
        this.session = session;
        open();
    }

    @Override public void process(WatchedEvent event) {
        Event.KeeperState state = event.getState();
        if (state == Event.KeeperState.Expired) expired = true;
        if (state == Event.KeeperState.Expired || state == Event.KeeperState.Disconnected) uncertain = true;
    }

    boolean turn(Line line) throws Exception {
        if (expired) {
            client.close();
            open();
        }
        try {
            return lockAndUnlock(line);
        } catch (Exception failed) {
            // The library forgets a node that it could not delete, but the end of the session deletes it.
            expired = true;
            throw failed;
        }
    }

    private boolean lockAndUnlock(Line line) throws Exception {
        CountDownLatch granted = new CountDownLatch(1);
        // One object for each turn: if a lock were reused, its old watch would queue it without being asked.
        WriteLock lock = new WriteLock(client, path, ZooDefs.Ids.OPEN_ACL_UNSAFE, new LockListener() {
            @Override public void lockAcquired() { granted.countDown(); }
            @Override public void lockReleased() {}
        });
        try {
            lock.lock();
            // The library asks once. If its predecessor is gone by then, it watches a node that never comes back.
            while (!granted.await(1, TimeUnit.SECONDS)) {
                if (expired) return true;
                line.note("WriteLock is asked again: " + lock.lock());
            }
            uncertain = expired;
            line.enter("x", lock.getId());
            return uncertain ? line.lost("connection") : line.leave();
        } finally {
            synchronized (lock) { // So that no watch of its own comes in between.
                lock.unlock();
                lock.close();
            }
        }
    }

    void close() throws InterruptedException {
        client.close();
    }

    private void open() throws Exception {
        expired = false;
        CountDownLatch connected = new CountDownLatch(1);
        client = new ZooKeeper(connect, session, event -> {
            process(event);
            if (event.getState() == Event.KeeperState.SyncConnected) connected.countDown();
        });
        if (!connected.await(20, TimeUnit.SECONDS)) throw new IllegalStateException("no server");
    }
}
