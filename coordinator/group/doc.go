// Package group decides for the groups of one shard: who may join, sync, beat,
// commit and leave, what each is answered, and which records say so.
//
// It is a machine.Machine: it never writes what records rebuild (package state)
// but by Apply, never asks for the time, and never waits. A request that cannot be
// answered yet is a token in the soft state of its group. The clock of a group
// are values in one heap per shard.
package group
