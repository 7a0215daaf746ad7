// Package admin is the gRPC API by which operators see and steer what kcoord
// coordinates. It asks the Node as Kafka clients do: with requests, answered when
// their answers are durable. It holds no state of its own.
package admin
