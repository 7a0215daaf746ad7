// Package kafkatest has the tests that need a real Apache Kafka: build tag "kafka",
// run by scripts/kafka-test.sh, which fetches and starts it where Java and Maven are.
package kafkatest
