package org.apache.curator.framework.recipes.locks;

/** Access to what Curator shows of a lock only to its own package. */
public final class Node {
    private Node() {}

    /** The path of the node of the calling thread. */
    public static String of(InterProcessMutex lock) {
        return lock.getLockPath();
    }
}
