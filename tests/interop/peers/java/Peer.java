/** A peer in Java: CONNECT KIND PATH SESSION_MS REGISTER NAME [--rest=SECONDS]. */
final class Peer {
    private Peer() {}

    /** Takes turns until the contest is over. Rests between two turns, for that time at most. Otherwise somebody always waits. */
    static void run(String[] words, Turn turn) throws Exception {
        Line line = new Line(words[4], words[5]);
        double rest = words.length > 6 ? Double.parseDouble(words[6].substring("--rest=".length())) : 0;
        boolean goesOn = line.ask("hello");
        while (goesOn) {
            try {
                goesOn = turn.take(line);
                Thread.sleep((long) (rest * 1000 * Math.random()));
            } catch (java.io.IOException ended) {
                throw ended;
            } catch (Exception failed) {
                line.note(failed);
                Thread.sleep(50);
            }
        }
    }
}
