import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;

/** A peer with a lock as programs have made it for themselves, in the layout of one tutorial or another. */
final class HomeMadePeer {
    private enum Layout {
        /** Several locks under one node: NAME_lock_0000000001. */
        NAMED,
        /** Readers and writers: HOST-R-0000000001, HOST-W-0000000002. */
        HOST,
        /** GUID-lock-0000000001, which is found by its GUID after a lost reply. */
        GUID,
        /** lock-0000000001, and every child is a contender. */
        PLAIN,
        /** lock-SESSION0000000001, and whoever queues looks for a node of its session first. */
        SESSION
    }

    // All programs of this host have the same, so it tells none of them apart.
    private static final String HOST = "web-1";

    private final Layout layout;
    private final String directory;
    private final String name;
    private Session session;

    HomeMadePeer(String layout, String connect, String path, int timeout) throws Exception {
        this.layout = Layout.valueOf(layout.toUpperCase());
        int slash = path.lastIndexOf('/');
        directory = this.layout == Layout.NAMED ? path.substring(0, slash) : path;
        name = path.substring(slash + 1);
        session = new Session(connect, timeout);
    }

    boolean turn(Line line) throws Exception {
        try {
            boolean reads = layout == Layout.HOST && ThreadLocalRandom.current().nextInt(4) > 0;
            String node = queue(reads);
            int before = await(node, reads);
            line.enter(reads ? "r" : "x", node);
            boolean goesOn = session.losses() == before ? line.leave() : line.lost("connection");
            session.client.delete(directory + "/" + node, -1);
            return goesOn;
        } catch (Exception failed) {
            session = session.renewed();
            throw failed;
        }
    }

    void close() throws InterruptedException {
        session.close();
    }

    /** Puts a node in the queue. Returns its name. */
    private String queue(boolean reads) throws Exception {
        String beginning = beginning(reads);
        boolean hasMark = layout == Layout.GUID || layout == Layout.SESSION;
        for (boolean look = layout == Layout.SESSION;; look = true) {
            try {
                if (look) {
                    for (String child : children()) {
                        if (child.startsWith(beginning)) return child;
                    }
                }
                String node = session.client.create(directory + "/" + beginning, new byte[0],
                        ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
                return node.substring(node.lastIndexOf('/') + 1);
            } catch (KeeperException.ConnectionLossException lost) {
                if (!hasMark) throw lost;
                Thread.sleep(50);
            }
        }
    }

    private String beginning(boolean reads) {
        switch (layout) {
            case NAMED: return name + "_lock_";
            case HOST: return HOST + (reads ? "-R-" : "-W-");
            case GUID: return UUID.randomUUID() + "-lock-";
            case SESSION: return "lock-" + session.client.getSessionId();
            default: return "lock-";
        }
    }

    /** Waits until nobody is ahead. Returns how often the connection had been lost before that was seen. */
    private int await(String node, boolean reads) throws Exception {
        while (true) {
            try {
                int before = session.losses();
                String ahead = ahead(node, reads);
                if (ahead == null) return before;
                CountDownLatch changed = new CountDownLatch(1);
                if (session.client.exists(directory + "/" + ahead, event -> changed.countDown()) != null) changed.await();
            } catch (KeeperException.ConnectionLossException lost) {
                Thread.sleep(50);
            }
        }
    }

    /** The nearest in the queue for whom this node waits. */
    private String ahead(String node, boolean reads) throws Exception {
        List<String> queue = children().stream().filter(this::contends).sorted(order()).collect(Collectors.toList());
        int place = queue.indexOf(node);
        if (place < 0) throw new IllegalStateException(node + " is gone");
        return queue.subList(0, place).stream().filter(other -> !reads || other.contains("-W-"))
                .reduce(null, (earlier, later) -> later);
    }

    private boolean contends(String child) {
        switch (layout) {
            case NAMED: return child.split("_lock_")[0].equals(name);
            case HOST: return child.contains("-R-") || child.contains("-W-");
            case GUID: return child.contains("-lock-");
            case SESSION: return child.startsWith("lock-");
            default: return true;
        }
    }

    private Comparator<String> order() {
        boolean whole = layout == Layout.NAMED || layout == Layout.PLAIN;
        return whole ? Comparator.naturalOrder() : Comparator.comparing(child -> child.substring(child.length() - 10));
    }

    private List<String> children() throws Exception {
        return session.client.getChildren(directory, false);
    }
}
