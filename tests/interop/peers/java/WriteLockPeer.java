import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.recipes.lock.LockListener;
import org.apache.zookeeper.recipes.lock.WriteLock;

/** A peer with ZooKeeper's own WriteLock. */
final class WriteLockPeer {
    private final String path;
    private Session session;

    WriteLockPeer(String connect, String path, int timeout) throws Exception {
        this.path = path;
        session = new Session(connect, timeout);
    }

    boolean turn(Line line) throws Exception {
        if (session.isExpired()) session = session.renewed();
        try {
            return lockAndUnlock(line);
        } catch (Exception failed) {
            // The library forgets a node that it could not delete, but the end of the session deletes it.
            session = session.renewed();
            throw failed;
        }
    }

    private boolean lockAndUnlock(Line line) throws Exception {
        CountDownLatch granted = new CountDownLatch(1);
        // One object for each turn: if a lock were reused, its old watch would queue it without being asked.
        WriteLock lock = new WriteLock(session.client, path, ZooDefs.Ids.OPEN_ACL_UNSAFE, new LockListener() {
            @Override public void lockAcquired() { granted.countDown(); }
            @Override public void lockReleased() {}
        });
        try {
            lock.lock();
            // The library asks once. If its predecessor is gone by then, it watches a node that never comes back.
            while (!granted.await(1, TimeUnit.SECONDS)) {
                if (session.isExpired()) return true;
                line.note("WriteLock is asked again: " + lock.lock());
            }
            int before = session.losses();
            line.enter("x", lock.getId());
            return session.isExpired() || session.losses() != before ? line.lost("connection") : line.leave();
        } finally {
            synchronized (lock) { // So that no watch of its own comes in between.
                lock.unlock();
                lock.close();
            }
        }
    }

    void close() throws InterruptedException {
        session.close();
    }
}
