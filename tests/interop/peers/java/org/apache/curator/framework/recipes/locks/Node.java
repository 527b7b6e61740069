package org.apache.curator.framework.recipes.locks;

/** What Curator shows of a lock to its own package only. */
public final class Node {
    private Node() {}

    /** The path of the node of the calling thread. */
    public static String of(InterProcessMutex lock) {
        return lock.getLockPath();
    }
}
