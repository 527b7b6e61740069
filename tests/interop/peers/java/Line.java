import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** A peer's connection to the register (see ../../register.py). The peer ends when the register does. */
final class Line {
    private final String name;
    private final OutputStream out;
    private final BufferedReader in;

    Line(String address, String name) throws IOException {
        int colon = address.lastIndexOf(':');
        Socket socket = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
        socket.setTcpNoDelay(true);
        this.name = name;
        out = socket.getOutputStream();
        in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }

    boolean hello() throws IOException {
        return ask("hello", "");
    }

    boolean enter(String mode, String node) throws IOException {
        return ask("enter", " " + mode + " " + nameOf(node) + " 0");
    }

    boolean down(String node) throws IOException {
        return ask("down", " " + nameOf(node));
    }

    boolean leave() throws IOException {
        return ask("leave", "");
    }

    boolean lost(String why) throws IOException {
        return ask("lost", " " + oneLine(why));
    }

    synchronized void note(Object text) throws IOException {
        tell("note", " " + oneLine(text));
    }

    private synchronized boolean ask(String word, String rest) throws IOException {
        tell(word, rest);
        String answer = in.readLine();
        if (answer == null) {
            System.err.println("the register has ended");
            Runtime.getRuntime().halt(1);
        }
        return "go".equals(answer);
    }

    private void tell(String word, String rest) throws IOException {
        out.write((word + " " + name + rest + "\n").getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    private static String nameOf(String node) {
        return node == null ? "-" : node.substring(node.lastIndexOf('/') + 1);
    }

    private static String oneLine(Object text) {
        return String.valueOf(text).replaceAll("\\s+", " ");
    }
}
