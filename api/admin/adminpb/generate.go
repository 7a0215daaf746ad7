// Package adminpb is the admin API's definition, and what protoc makes of it.
package adminpb

// The generators are protoc-gen-go v1.36.12 and protoc-gen-go-grpc v1.6.2, which
// `go install` puts on the path; protoc itself is of the system.
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative admin.proto admin_txns.proto admin_versions.proto
