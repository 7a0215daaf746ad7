// Package gatewaytest runs kcoord as the gateway of a real Apache Kafka of three
// brokers. It is all tests, behind the build tag kafka; scripts/kafka-cluster-test.sh
// fetches what they need and runs them. They are told by the environment:
//
//	KCOORD      the binary
//	KAFKA_SH    ../shared/kafka/kafka.sh
//	KAFKA_HOME  a folder of the run's own, with Kafka's jars in libs-4.4.0
//
// Node 1 is a broker and the one controller; it is never killed. Topics have three
// replicas, so that the leaders of a broker that is killed move to the others.
package gatewaytest
