// Package logtest is the one definition of what a storage.Backend and its Logs
// do. Every backend passes Run; what Run does not ask for is not promised, and
// what a caller counts on belongs here.
//
// The heart of it is a property: any sequence of appends, folds, cleanings,
// reopenings and crashes looks, through Load, Entities and Read, as the same
// sequence does on a plain slice of records (see model.go).
package logtest
