import java.util.concurrent.CountDownLatch;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator on either side of a request to release a mutex. It prints its steps.
 *
 * <p>CONNECT hold PATH: holds it until it is asked to release it. CONNECT ask PATH: asks the first in the queue.
 */
public final class Revocation {
    private Revocation() {}

    public static void main(String[] words) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(words[0], 10_000, 10_000, new RetryOneTime(100))) {
            client.start();
            client.blockUntilConnected();
            InterProcessMutex mutex = new InterProcessMutex(client, words[2]);
            switch (words[1]) {
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

    private static void say(String what) {
        System.out.println(what);
        System.out.flush();
    }
}
