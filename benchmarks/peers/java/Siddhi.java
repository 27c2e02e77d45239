import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.event.Event;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;

/** Siddhi in playback: timed from the first event that is sent until the last one has been taken. */
public final class Siddhi {
    private static void run(SiddhiManager manager, String text, int events) throws Exception {
        SiddhiAppRuntime runtime = manager.createSiddhiAppRuntime(text);
        runtime.addCallback("Found", new StreamCallback() {
            @Override
            public void receive(Event[] answers) {
                for (Event answer : answers) {
                    Object[] data = answer.getData();
                    long[] positions = new long[data.length];
                    for (int place = 0; place < data.length; place++) positions[place] = (Long) data[place];
                    Events.answer(positions);
                }
            }
        });
        runtime.start();
        InputHandler input = runtime.getInputHandler("S");
        Events.begin();
        for (int position = 0; position < events; position++) {
            Object[] event = {(long) position, Events.type(position), Events.key(position), Events.price(position)};
            input.send(1 + position, event);
        }
        Events.end();
        runtime.shutdown();
    }

    public static void main(String[] given) throws Exception {
        Events.load(given[0]);
        SiddhiManager manager = new SiddhiManager();
        String text = Events.text(given[2]);
        Events.serve(events -> run(manager, text, events));
    }
}
