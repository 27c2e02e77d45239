import io.airlift.slice.Slice;
import io.airlift.slice.Slices;
import io.airlift.units.DataSize;
import io.trino.Session;
import io.trino.metadata.InternalFunctionBundle;
import io.trino.operator.Driver;
import io.trino.operator.TaskContext;
import io.trino.plugin.memory.MemoryPlugin;
import io.trino.spi.Page;
import io.trino.spi.function.ScalarFunction;
import io.trino.spi.function.SqlType;
import io.trino.testing.LocalQueryRunner;
import io.trino.testing.PageConsumerOperator.PageConsumerOutputFactory;
import io.trino.testing.TestingSession;
import io.trino.testing.TestingTaskContext;
import java.util.List;
import java.util.Map;

import static io.trino.spi.type.BigintType.BIGINT;

/**
 * MATCH_RECOGNIZE of Trino: its planner and its operators in one thread, over a table of its memory connector.
 * Timed from the text of the query until the last answer has been taken.
 */
public final class Trino {
    private static final DataSize MEMORY = DataSize.of(4, DataSize.Unit.GIGABYTE);

    /** The columns of an event, as functions of SQL, by which the table is filled. */
    public static final class Columns {
        private Columns() {}

        @ScalarFunction("event_type")
        @SqlType("varchar")
        public static Slice type(@SqlType("bigint") long position) {
            return Slices.utf8Slice(Events.type((int) position));
        }

        @ScalarFunction("event_key")
        @SqlType("integer")
        public static long key(@SqlType("bigint") long position) {
            return Events.key((int) position);
        }

        @ScalarFunction("event_price")
        @SqlType("integer")
        public static long price(@SqlType("bigint") long position) {
            return Events.price((int) position);
        }
    }

    private static LocalQueryRunner started() {
        Session session = TestingSession.testSessionBuilder()
                .setCatalog("memory")
                .setSchema("default")
                .build();
        LocalQueryRunner runner = LocalQueryRunner.create(session);
        runner.installPlugin(new MemoryPlugin());
        runner.createCatalog("memory", "memory", Map.of("memory.max-data-per-node", "4GB"));
        runner.addFunctions(
                InternalFunctionBundle.builder().scalars(Columns.class).build());
        // a sequence has at most 10,000 items
        runner.execute("CREATE TABLE stream AS"
                + " SELECT id, event_type(id) AS type, event_key(id) AS key, event_price(id) AS price FROM ("
                + "SELECT high * 10000 + low AS id FROM UNNEST(sequence(0, " + Events.count() / 10_000 + ")) AS first(high)"
                + " CROSS JOIN UNNEST(sequence(0, 9999)) AS second(low)) WHERE id < " + Events.count());
        return runner;
    }

    private static void run(LocalQueryRunner runner, String text, int events) {
        Events.begin();
        String asked = "WITH events AS (SELECT * FROM stream WHERE id < " + events + ")\n" + text;
        drive(runner, asked);
        Events.end();
    }

    /** As `runner.execute`, which gives a query 256 MB, too little for ten million events. */
    private static void drive(LocalQueryRunner runner, String asked) {
        TaskContext task = TestingTaskContext.builder(
                        runner.getExecutor(), runner.getScheduler(), runner.getDefaultSession())
                .setQueryMaxMemory(MEMORY)
                .setMemoryPoolSize(MEMORY)
                .build();
        List<Driver> drivers =
                runner.createDrivers(asked, new PageConsumerOutputFactory(types -> Trino::take), task);
        for (boolean more = true; more; ) {
            more = false;
            for (Driver driver : drivers) {
                if (driver.isFinished()) continue;
                driver.processForNumberOfIterations(1);
                more = true;
            }
        }
        drivers.forEach(Driver::close);
    }

    private static void take(Page page) {
        long[] positions = new long[page.getChannelCount()];
        for (int row = 0; row < page.getPositionCount(); row++) {
            for (int place = 0; place < positions.length; place++) {
                positions[place] = BIGINT.getLong(page.getBlock(place), row);
            }
            Events.answer(positions);
        }
    }

    public static void main(String[] given) throws Exception {
        Events.load(given[0]);
        LocalQueryRunner runner = started();
        Events.serve(events -> run(runner, given[2], events));
    }
}
