import java.io.Serializable;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/**
 * FlinkCEP, and MATCH_RECOGNIZE of Flink SQL if the query has a text: a job on a mini-cluster in this process.
 * Timed from the first event that is generated until the operator behind the answers is closed.
 */
public class Flink {
    /** What streams through the job. */
    public static final class Event {
        public long id;
        public String type;
        public int key;
        public int price;

        static Event at(long position) {
            if (position == 0) Events.begin();
            Event event = new Event();
            event.id = position;
            event.type = Events.type((int) position);
            event.key = Events.key((int) position);
            event.price = Events.price((int) position);
            return event;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Event && ((Event) other).id == id;
        }

        @Override
        public int hashCode() {
            return Long.hashCode(id);
        }
    }

    static SimpleCondition<Event> is(String type) {
        return SimpleCondition.of(event -> event.type.equals(type));
    }

    interface One extends Serializable {
        boolean test(Event event);
    }

    interface Two extends Serializable {
        boolean test(Event earlier, Event event);
    }

    static SimpleCondition<Event> holds(One test) {
        return SimpleCondition.of(test::test);
    }

    /** Holds of an event and the one that the pattern of that name has taken. */
    static IterativeCondition<Event> after(String name, Two test) {
        return new IterativeCondition<Event>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                for (Event earlier : context.getEventsForPattern(name)) {
                    if (!test.test(earlier, event)) return false;
                }
                return true;
            }
        };
    }

    /**
     * A watermark for every few events, which come in order. The usual one for every 200 ms lets CEP buffer all
     * events of that time, and it looks through the whole buffer for each of them.
     */
    static final class Watermarks implements WatermarkGenerator<Event> {
        private static final int EVENTS = 16;

        @Override
        public void onEvent(Event event, long at, WatermarkOutput output) {
            if (event.id % EVENTS == 0) output.emitWatermark(new Watermark(at));
        }

        @Override
        public void onPeriodicEmit(WatermarkOutput output) {}
    }

    static final class Matches extends PatternProcessFunction<Event, Integer> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<Integer> out) {
            int count = 0;
            for (List<Event> events : match.values()) count += events.size();
            long[] positions = new long[count];
            for (List<Event> events : match.values()) {
                for (Event event : events) positions[--count] = event.id;
            }
            Events.answer(positions);
        }

        @Override
        public void close() {
            Events.end();
        }
    }

    static final class Rows extends ProcessFunction<Row, Integer> {
        @Override
        public void processElement(Row row, Context context, Collector<Integer> out) {
            long[] positions = new long[row.getArity()];
            for (int place = 0; place < positions.length; place++) positions[place] = (Long) row.getField(place);
            Events.answer(positions);
        }

        @Override
        public void close() {
            Events.end();
        }
    }

    private static void run(String query, String text, int events) throws Exception {
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(1);
        environment.getConfig().enableObjectReuse();
        DataGeneratorSource<Event> source =
                new DataGeneratorSource<>(Event::at, events, TypeInformation.of(Event.class));
        DataStream<Event> stream = environment.fromSource(
                source,
                WatermarkStrategy.<Event>forGenerator(context -> new Watermarks())
                        .withTimestampAssigner((event, at) -> event.id),
                "events");
        DataStream<Integer> found = text.isEmpty() ? byPattern(query, stream) : bySql(text, stream, environment);
        found.sinkTo(new DiscardingSink<>());
        environment.execute(query);
    }

    private static DataStream<Integer> byPattern(String query, DataStream<Event> stream) {
        DataStream<Event> input = query.equals("keys") ? stream.keyBy(event -> event.key) : stream;
        Pattern<Event, ?> pattern = FlinkPatterns.of(query);
        return CEP.pattern(input, pattern).process(new Matches());
    }

    private static DataStream<Integer> bySql(
            String text, DataStream<Event> stream, StreamExecutionEnvironment environment) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        Schema schema = Schema.newBuilder()
                .column("id", DataTypes.BIGINT().notNull())
                .column("type", DataTypes.STRING())
                .column("key", DataTypes.INT().notNull())
                .column("price", DataTypes.INT().notNull())
                .columnByMetadata("ts", DataTypes.TIMESTAMP_LTZ(3), "rowtime")
                .watermark("ts", "SOURCE_WATERMARK()")
                .build();
        tables.createTemporaryView("events", stream, schema);
        return tables.toDataStream(tables.sqlQuery(text)).process(new Rows());
    }

    public static void main(String[] given) throws Exception {
        Events.load(given[0]);
        String text = given[2];
        Events.serve(events -> run(given[1], text, events));
    }
}
