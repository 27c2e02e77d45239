import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** Esper, told what time it is: timed from the first event that is sent until the last one has been taken. */
public final class Esper {
    /** What is sent. */
    public static final class Event {
        private final int position;

        Event(int position) {
            this.position = position;
        }

        public long getId() {
            return position;
        }

        public String getType() {
            return Events.type(position);
        }

        public int getKey() {
            return Events.key(position);
        }

        public int getPrice() {
            return Events.price(position);
        }
    }

    private static void take(EventBean answer, String[] names) {
        List<Long> positions = new ArrayList<>();
        for (String name : names) {
            Object value = answer.get(name);
            if (value instanceof Collection) {
                for (Object position : (Collection<?>) value) positions.add((Long) position);
            } else {
                positions.add((Long) value);
            }
        }
        Events.answer(positions.stream().mapToLong(Long::longValue).toArray());
    }

    private static void run(EPCompiled compiled, Configuration configuration, int events) throws Exception {
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        runtime.initialize();
        EPEventService service = runtime.getEventService();
        service.clockExternal();
        service.advanceTime(0);
        for (EPStatement statement : runtime.getDeploymentService().deploy(compiled).getStatements()) {
            String[] names = statement.getEventType().getPropertyNames();
            statement.addListener((fresh, old, source, where) -> {
                if (fresh != null) for (EventBean answer : fresh) take(answer, names);
            });
        }
        Events.begin();
        for (int position = 0; position < events; position++) {
            service.advanceTime(position);
            service.sendEventBean(new Event(position), "S");
        }
        Events.end();
        runtime.destroy();
    }

    public static void main(String[] given) throws Exception {
        Events.load(given[0]);
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("S", Event.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPCompiled compiled =
                EPCompilerProvider.getCompiler().compile(Events.text(given[2]), new CompilerArguments(configuration));
        Events.serve(events -> run(compiled, configuration, events));
    }
}
