// Java 25: java --enable-native-access=ALL-UNNAMED Report.java HOSTS PATH SECONDS WORKERS [OPTION=VALUE ...]
import static java.lang.foreign.ValueLayout.*;

static final SymbolLookup ZKLOCK = SymbolLookup.libraryLookup("libzklock.so.0.1", Arena.global());
static volatile int exitCode = 0;

/** Calls a function of zklock.h, with longs for its numbers. A library would keep the handle of each function. */
static Object call(MemoryLayout result, String name, Object... args) {
    var all = Stream.of(args).map(v -> v instanceof String s ? Arena.ofAuto().allocateFrom(s) : v).toList();
    var types = all.stream().map(v -> v instanceof Long ? JAVA_LONG : ADDRESS).toArray(ValueLayout[]::new);
    var type = result == null ? FunctionDescriptor.ofVoid(types) : FunctionDescriptor.of(result, types);
    var function = Linker.nativeLinker().downcallHandle(ZKLOCK.findOrThrow(name), type);
    try { return function.invokeWithArguments(all); } catch (Throwable e) { throw new AssertionError(e); }
}

static class ZklockException extends RuntimeException {
    final int status;
    ZklockException(int status, String message) { super(message); this.status = status; }
}
static void check(String name, Object... arguments) { // A message stays with its OS thread.
    var status = (int) call(JAVA_INT, name, arguments);
    var message = (MemorySegment) call(ADDRESS, "zklock_last_error");
    if (status != 0) throw new ZklockException(status, message.reinterpret(Long.MAX_VALUE).getString(0));
}
static MemorySegment make(String name, Object... arguments) { // gives the handle in the last parameter
    var handle = Arena.ofAuto().allocate(ADDRESS);
    check(name, Stream.concat(Stream.of(arguments), Stream.of(handle)).toArray());
    return handle.get(ADDRESS, 0);
}

/** Holds a lock until the end of a try block, which throws if it was lost. `lost` completes at the loss. */
record Hold(MemorySegment id, CompletableFuture<?> lost) implements AutoCloseable {
    static Hold acquire(MemorySegment lock, long timeout) {
        var id = make("zklock_acquire", lock, timeout); // The release ends the thread that waits for a loss.
        return new Hold(id, CompletableFuture.runAsync(() -> check("zklock_hold_wait_lost", id, -1L,
            MemorySegment.NULL), Thread.ofPlatform().daemon()::start));
    }
    long token() { return (long) call(JAVA_LONG, "zklock_hold_token", id); }
    long validFor() { return (long) call(JAVA_LONG, "zklock_hold_valid_for", id); }
    public void close() { try { check("zklock_release", id); } finally {call(null, "zklock_hold_free", id);} }
}
static void work(MemorySegment lock, double seconds) {
    try (var hold = Hold.acquire(lock, 3000)) {
        IO.println("acquired: token " + hold.token() + ", valid for " + hold.validFor() + " ms");
        hold.lost.copy().completeOnTimeout(null, (long) (seconds * 1000), TimeUnit.MILLISECONDS).join();
    }
    IO.println("released");
}

static void attempt(Runnable action) {
    try { action.run(); } catch (Exception e) { IO.println("failed: " + e.getMessage()); exitCode = 1; }
}

void main(String[] words) {
    try (var workers = Executors.newCachedThreadPool()) { attempt(() -> { // Its end waits for the workers.
        if ((int) call(JAVA_INT, "zklock_abi") != 1) throw new RuntimeException("libzklock is not of 0.1");
        var options = make("zklock_options_new"); // Like the client and the lock, they live to the end.
        for (var word : List.of(words).subList(4, words.length))
            check("zklock_options_set", options, word.split("=", 2)[0], word.replaceFirst("^[^=]*=?", ""));
        var client = make("zklock_client_new", words[0], options); // Ctrl-C, SIGTERM and exit close it.
        Runtime.getRuntime().addShutdownHook(new Thread(() -> call(JAVA_INT, "zklock_client_close", client)));
        var lock = make("zklock_mutex_new", client, words[1], MemorySegment.NULL);
        for (int n = Integer.parseInt(words[3]); n > 0; n--)
            workers.execute(() -> attempt(() -> work(lock, Double.parseDouble(words[2]))));
    }); }
    System.exit(exitCode);
}
