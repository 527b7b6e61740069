/** Acquires the lock, is inside, and releases it. */
interface Turn {
    /** Takes one turn. Returns whether to go on. */
    boolean take(Line line) throws Exception;
}
