# `make test` is what README.md says; .ci/run is what has to pass.
.PHONY: test race lint fuzz conform kafka bench image

test:
	go test ./...

race:
	go test -race ./coordinator/... ./storage/... ./api/...

lint:
	golangci-lint run ./...

fuzz: # FUZZTIME=60s for each target
	scripts/fuzz.sh

conform:
	scripts/conform.sh

kafka: # a real Kafka, where Java, Maven and ../shared are
	scripts/kafka-test.sh

image:
	go run ./packaging/image -o kcoord.tar

bench:
	go test -run '^$$' -bench . -benchmem ./...
