/** To get the lock, be inside, and give it up again. */
interface Turn {
    /** Whether to go on. */
    boolean take(Line line) throws Exception;
}
