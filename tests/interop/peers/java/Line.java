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

    /** Tells something, and returns whether to go on. */
    synchronized boolean ask(String word, String... rest) throws IOException {
        tell(word, String.join(" ", rest));
        String answer = in.readLine();
        if (answer == null) {
            System.err.println("the register has ended");
            Runtime.getRuntime().halt(1);
        }
        return "go".equals(answer);
    }

    void enter(String mode, String node) throws IOException {
        ask("enter", mode, nameOf(node), "0");
    }

    /** Says that the lock was held until now, or that this is not certain. */
    boolean leave(boolean isCertain) throws IOException {
        return isCertain ? ask("leave") : ask("lost", "connection");
    }

    synchronized void note(Object text) throws IOException {
        tell("note", String.valueOf(text));
    }

    private void tell(String word, String rest) throws IOException {
        String line = String.join(" ", word, name, rest).replaceAll("\\s+", " ") + "\n";
        out.write(line.getBytes(StandardCharsets.UTF_8));
        out.flush();
    }

    static String nameOf(String node) {
        return node == null ? "-" : node.substring(node.lastIndexOf('/') + 1);
    }
}
