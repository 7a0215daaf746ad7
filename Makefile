# `make test` is what README.md says; .ci/run is what has to pass.
.PHONY: test race lint fuzz conform bench

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

bench:
	go test -run '^$$' -bench . -benchmem ./...
