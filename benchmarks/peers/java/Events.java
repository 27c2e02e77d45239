import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.Writer;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** The stream as columns in memory, the answers of a run, and the requests that `session.py` sends. */
final class Events {
    private static final String[] NAMES = {"A", "B", "C", "D", "E"};
    private static byte[] types;
    private static int[] keys;
    private static int[] prices;

    private static PrintStream replies;
    private static long answers;
    private static long sum;
    private static Writer file;

    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static volatile long[] begun;
    private static volatile long[] ended;

    private Events() {}

    /** The first event comes now. */
    static void begin() {
        begun = clocks();
    }

    /** The last answer has come. */
    static void end() {
        ended = clocks();
    }

    /** Nanoseconds of the wall, and of all threads of this process. */
    private static long[] clocks() {
        return new long[] {System.nanoTime(), SYSTEM.getProcessCpuTime()};
    }

    /** How many events there are. */
    static int count() {
        return types.length;
    }

    static String type(int position) {
        return NAMES[types[position]];
    }

    static int key(int position) {
        return keys[position];
    }

    static int price(int position) {
        return prices[position];
    }

    /** Takes an answer: the positions of its events. */
    static synchronized void answer(long... positions) {
        answers++;
        for (long position : positions) sum += position;
        if (file == null) return;
        try {
            for (long position : positions) file.write(position + " ");
            file.write("\n");
        } catch (IOException problem) {
            throw new IllegalStateException(problem);
        }
    }

    /** The text of a query, or of the file that `file:` names. */
    static String text(String given) throws IOException {
        return given.startsWith("file:") ? Files.readString(Path.of(given.substring(5))) : given;
    }

    /** Takes so many first events; calls `begin` and `end`. */
    interface Run {
        void take(int events) throws Exception;
    }

    /** Loads a folder; what engines print goes to standard error from now on. */
    static void load(String folder) throws IOException {
        replies = System.out;
        System.setOut(System.err);
        types = Files.readAllBytes(Path.of(folder, "type"));
        keys = integers(Path.of(folder, "key"));
        prices = integers(Path.of(folder, "price"));
    }

    private static int[] integers(Path path) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN);
        int[] numbers = new int[bytes.remaining() / 4];
        bytes.asIntBuffer().get(numbers);
        return numbers;
    }

    /** Answers requests until there are no more. */
    static void serve(Run run) throws Exception {
        replies.println("{\"version\": \"" + System.getProperty("peer") + "\"}");
        replies.flush();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            String[] words = line.split(" ", 2);
            answers = 0;
            sum = 0;
            file = words[1].equals("-") ? null : Files.newBufferedWriter(Path.of(words[1]));
            run.take(Integer.parseInt(words[0]));
            if (file != null) file.close();
            replies.printf(
                    Locale.ROOT,
                    "{\"wall\": %.6f, \"cpu\": %.6f, \"answers\": %d, \"sum\": %d}%n",
                    (ended[0] - begun[0]) / 1e9,
                    (ended[1] - begun[1]) / 1e9,
                    answers,
                    sum);
            replies.flush();
        }
        System.exit(0);
    }
}
