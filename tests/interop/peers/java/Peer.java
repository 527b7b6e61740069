/** A peer in Java: CONNECT KIND PATH SESSION_MS REGISTER NAME [curator|writelock]. */
public final class Peer {
    private Peer() {}

    public static void main(String[] words) throws Exception {
        String connect = words[0], kind = words[1], path = words[2];
        int session = Integer.parseInt(words[3]);
        Line line = new Line(words[4], words[5]);
        if (words.length > 6 && words[6].equals("writelock")) {
            WriteLockPeer peer = new WriteLockPeer(connect, path, session);
            run(line, peer::turn);
            peer.close();
        } else {
            CuratorPeer peer = new CuratorPeer(connect, path, session, words[5]);
            run(line, peer.turn(kind));
            peer.close();
        }
    }

    private static void run(Line line, Turn turn) throws Exception {
        boolean goesOn = line.hello();
        while (goesOn) {
            try {
                goesOn = turn.take(line);
            } catch (java.io.IOException ended) {
                throw ended;
            } catch (Exception failed) {
                line.note(failed);
                Thread.sleep(50);
            }
        }
    }
}
