// Package config turns what an operator said (flags, environment, files) into
// typed settings, and mistakes into one line that says what, where and what to do.
//
// There is one table of keys (table.go). Everything else follows from it: what
// is accepted from each source, the typed Config, docs/configuration.md. So a key
// cannot be documented and not read, or read and not documented. A key of a
// feature that is still to come is in the table too: it is checked like the
// others, since a typing error in it should not wait for that feature, and is
// marked as not acted on.
//
// The table has Kafka's own names for what Kafka has, so that the broker's
// server.properties can be handed to kcoord as it is. Keys of that file which
// are the broker's alone are known by name (brokerkeys.txt) and left out with a
// note; any other key is an error, since a setting that silently does nothing is
// worse than a refusal to start.
//
// Flags win over the environment, that over the YAML file, that over the
// properties file, and that over the default.
package config
