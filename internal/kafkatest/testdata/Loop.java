import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;

/**
 * A consume-transform-produce loop as Kafka's documentation has it: Loop BOOTSTRAP copies
 * records to invoices until it is killed, and takes new clients when a transaction fails.
 * It prints a line for each transaction.
 */
public class Loop {
    static String bootstrap;

    public static void main(String[] args) {
        bootstrap = args[0];
        while (true) {
            try (KafkaProducer<String, String> producer = producer(); KafkaConsumer<String, String> consumer = consumer()) {
                producer.initTransactions();
                consumer.subscribe(List.of("records"));
                while (true) {
                    copy(consumer, producer);
                }
            } catch (KafkaException e) {
                System.out.println("new clients: " + e);
            }
        }
    }

    static void copy(KafkaConsumer<String, String> consumer, KafkaProducer<String, String> producer) {
        ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(500));
        if (records.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        producer.beginTransaction();
        for (ConsumerRecord<String, String> r : records) {
            producer.send(new ProducerRecord<>("invoices", r.partition() + "/" + r.offset()));
            offsets.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        producer.commitTransaction();
        System.out.println("committed " + records.count());
    }

    static Properties common() {
        Properties p = new Properties();
        p.put("bootstrap.servers", bootstrap);
        p.put("retry.backoff.ms", "20");
        p.put("reconnect.backoff.ms", "20");
        return p;
    }

    static KafkaProducer<String, String> producer() {
        Properties p = common();
        p.put("transactional.id", "loop");
        p.put("transaction.timeout.ms", "20000");
        p.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        p.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        return new KafkaProducer<>(p);
    }

    static KafkaConsumer<String, String> consumer() {
        Properties p = common();
        p.put("group.id", "loop");
        p.put("auto.offset.reset", "earliest");
        p.put("enable.auto.commit", "false");
        p.put("session.timeout.ms", "6000");
        p.put("isolation.level", "read_committed");
        p.put("max.poll.records", "5");
        p.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        p.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(p);
    }
}
