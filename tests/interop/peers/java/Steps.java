import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator, which does one thing. It prints its steps and their times, in nanoseconds of the machine's monotonic clock.
 *
 * <p>CONNECT double PATH MEMBERS ROUNDS: passes a double barrier ROUNDS times. CONNECT wait|set|remove PATH: at a barrier.
 * CONNECT hold PATH: holds a mutex until it is asked to release it. CONNECT ask PATH: asks the first in its queue for that.
 */
public final class Steps {
    private Steps() {}

    public static void main(String[] words) throws Exception {
        String path = words[2];
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(words[0], 10_000, 10_000, new RetryOneTime(100))) {
            client.start();
            client.blockUntilConnected();
            DistributedBarrier barrier = new DistributedBarrier(client, path);
            InterProcessMutex mutex = new InterProcessMutex(client, path);
            switch (words[1]) {
                case "double":
                    rounds(client, path, Integer.parseInt(words[3]), Integer.parseInt(words[4]));
                    break;
                case "set":
                    barrier.setBarrier();
                    break;
                case "remove":
                    barrier.removeBarrier();
                    break;
                case "wait":
                    say("waits");
                    barrier.waitOnBarrier();
                    say("passes");
                    break;
                case "hold":
                    CountDownLatch asked = new CountDownLatch(1);
                    mutex.makeRevocable(revoked -> asked.countDown());
                    mutex.acquire();
                    say("holds");
                    asked.await();
                    say("is asked");
                    mutex.release();
                    break;
                case "ask":
                    Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
                    say("has asked");
                    break;
                default:
                    throw new IllegalArgumentException(words[1]);
            }
        }
    }

    private static void rounds(CuratorFramework client, String path, int members, int rounds) throws Exception {
        for (int round = 0; round < rounds; round++) {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path + "/" + round, members);
            say("comes");
            barrier.enter();
            say("enters");
            say("goes");
            barrier.leave();
            say("leaves");
        }
    }

    private static void say(String what) {
        System.out.println(what + " " + System.nanoTime());
        System.out.flush();
    }
}
