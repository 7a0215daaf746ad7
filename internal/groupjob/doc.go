// Command groupjob is what scripts/clients-test.sh runs for the Go libraries, beside
// its programs for Python and Node: a job of a consumer group from end to end.
//
//	groupjob franz|sarama HOST:PORT NAME
//
// NAME is a topic and a group, both new. A thousand records go to four partitions;
// two members share these, read and commit; both leave. A hundred more records
// come, and one member that joins again reads these and no others. In the end the
// committed offsets add up to what was produced.
package main
