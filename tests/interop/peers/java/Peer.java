/** A peer in Java: CONNECT KIND PATH SESSION_MS REGISTER NAME [writelock|home-made LAYOUT] [--rest=SECONDS]. */
public final class Peer {
    private Peer() {}

    public static void main(String[] words) throws Exception {
        String connect = words[0], kind = words[1], path = words[2];
        int session = Integer.parseInt(words[3]);
        Line line = new Line(words[4], words[5]);
        double rest = 0;
        for (String word : words) {
            if (word.startsWith("--rest=")) {
                rest = Double.parseDouble(word.substring("--rest=".length()));
            }
        }
        String library = words.length > 6 ? words[6] : "";
        if (library.equals("writelock")) {
            WriteLockPeer peer = new WriteLockPeer(connect, path, session);
            run(line, peer::turn, rest);
            peer.close();
        } else if (library.equals("home-made")) {
            HomeMadePeer peer = new HomeMadePeer(words[7], connect, path, session);
            run(line, peer::turn, rest);
            peer.close();
        } else {
            CuratorPeer peer = new CuratorPeer(connect, path, session, words[5]);
            run(line, peer.turn(kind), rest);
            peer.close();
        }
    }

    /** Rests between two turns, for that many seconds at most. Otherwise somebody always waits. */
    private static void run(Line line, Turn turn, double rest) throws Exception {
        boolean goesOn = line.hello();
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
