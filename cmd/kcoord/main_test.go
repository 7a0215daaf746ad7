package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/storage"
	"github.com/kcoord/kcoord/storage/pebblelog"
)

var update = flag.Bool("update", false, "write what the scripts print into them")

func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"kcoord": main}) }

// TestScripts plays the command line as users type it. Beside testscript's own
// commands there are:
//
//	start ARGS…        runs kcoord ARGS… until the script ends; $KAFKA, $ADMIN and $HTTP say where
//	stop               sends it SIGTERM, and waits; its log is then the file "log"
//	commit GROUP TOPIC commits an offset for partition 0 of a new topic
//	get URL            prints what a GET answers
//	ready              asks /readyz until it is
//	hold FOLDER        opens the log in a data folder
//	hangup             sends it SIGHUP
//	await PATTERN      waits for a line of its log
//	systemd            listens at $NOTIFY_SOCKET
//	told TEXT          waits until systemd is told so
//	damage FOLDER ID   puts a record that cannot be read into a group
//	damage-txn FOLDER ID        gives a transactional id a record that cannot be read
func TestScripts(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { busy.Close() }) // scripts run after this function has returned
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Setenv("BUSY", busy.Addr().String())
			env.Setenv("ODD", "odd\x1b[31m\nname")
			free, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("FREE", free.Addr().String())
			env.Setenv("FREE_BY_NAME", fmt.Sprint("localhost:", free.Addr().(*net.TCPAddr).Port))
			return free.Close()
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": start, "stop": stop, "commit": commitOffset, "get": get, "ready": ready, "hold": hold, "damage": damage, "damage-txn": damageTxn,
			"topic": makeTopic, "offsets": commitOffsets, "member": joinGroup, "leave": leaveGroup, "broker": startBroker,
			"begin": beginTxn, "pending": pendingOffset, "takeover": takeOver,
			"hangup": hangup, "await": await, "systemd": systemd, "told": told,
		},
	})
}

// running is the kcoord of each script, and its consumer.
var running sync.Map // *testscript.TestScript → *child

type child struct {
	cmd  *exec.Cmd
	done chan error
	said chan struct{} // a line is in its log, or its log has ended
}

func start(ts *testscript.TestScript, _ bool, args []string) {
	exe, err := exec.LookPath("kcoord")
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if p := filepath.Join(dir, "kcoord"); err != nil {
			if _, statErr := os.Stat(p); statErr == nil {
				exe, err = p, nil
			}
		}
	}
	ts.Check(err)
	c := &child{exec.Command(exe, append(args, "--log-format", "json")...), make(chan error, 1), make(chan struct{}, 1)}
	c.cmd.Dir = ts.MkAbs(".")
	c.cmd.Env = append(os.Environ(), "TMPDIR="+ts.Getenv("TMPDIR"),
		"NOTIFY_SOCKET="+ts.Getenv("NOTIFY_SOCKET"), "WATCHDOG_USEC="+ts.Getenv("WATCHDOG_USEC"))
	out, err := c.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(c.cmd.Start())
	running.Store(ts, c)
	log, err := os.Create(ts.MkAbs("log"))
	ts.Check(err)
	started := make(chan map[string]any, 1)
	go func() {
		defer log.Close()
		for lines := bufio.NewScanner(out); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			nudge(c.said)
			var line map[string]any
			if json.Unmarshal(lines.Bytes(), &line) == nil && line["kafka"] != nil {
				started <- line
			}
		}
		close(started)
		nudge(c.said)
		c.done <- c.cmd.Wait()
	}()
	ts.Defer(func() { _ = c.cmd.Process.Kill() })
	line := <-started
	if line == nil {
		ts.Fatalf("kcoord did not start: %s", ts.ReadFile("log"))
	}
	for _, name := range []string{"kafka", "admin", "http"} {
		ts.Setenv(strings.ToUpper(name), fmt.Sprint(line[name]))
	}
}

func nudge(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// hangup sends SIGHUP.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	c, _ := running.Load(ts)
	ts.Check(c.(*child).cmd.Process.Signal(syscall.SIGHUP))
}

// await waits for a line of the log.
func await(ts *testscript.TestScript, _ bool, args []string) {
	v, _ := running.Load(ts)
	late := time.After(20 * time.Second)
	for {
		if regexp.MustCompile(args[0]).MatchString(ts.ReadFile("log")) {
			return
		}
		select {
		case <-v.(*child).said:
		case <-late:
			ts.Fatalf("%s is not in the log:\n%s", args[0], ts.ReadFile("log"))
		}
	}
}

func stop(ts *testscript.TestScript, _ bool, _ []string) {
	v, _ := running.LoadAndDelete(ts)
	c := v.(*child)
	ts.Check(c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-c.done:
		ts.Check(err)
	case <-time.After(20 * time.Second):
		ts.Fatalf("kcoord does not end")
	}
}

func commitOffset(ts *testscript.TestScript, _ bool, args []string) {
	client, err := kgo.NewClient(kgo.SeedBrokers(ts.Getenv("KAFKA")))
	ts.Check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	_, err = admin.CreateTopic(context.Background(), 1, 1, nil, args[1])
	ts.Check(err)
	offsets := kadm.Offsets{}
	offsets.AddOffset(args[1], 0, 7, -1)
	ts.Check(admin.CommitAllOffsets(context.Background(), args[0], offsets))
}

func get(ts *testscript.TestScript, neg bool, args []string) {
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	_, err = ts.Stdout().Write(body)
	ts.Check(err)
	if neg != (resp.StatusCode != http.StatusOK) {
		ts.Fatalf("%s answers %s", args[0], resp.Status)
	}
}

func ready(ts *testscript.TestScript, _ bool, _ []string) {
	for end := time.Now().Add(20 * time.Second); ; {
		resp, err := http.Get("http://" + ts.Getenv("HTTP") + "/readyz")
		ts.Check(err)
		body, err := io.ReadAll(resp.Body)
		ts.Check(errors.Join(err, resp.Body.Close()))
		if resp.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("not ready: %s", body)
		}
	}
}

func openLog(ts *testscript.TestScript, folder string) *pebblelog.Backend {
	ts.Check(claimShards(ts.MkAbs(folder), shardsFile, 50))
	b, err := pebblelog.Open(filepath.Join(ts.MkAbs(folder), "coordinator"), coordinator.Index, pebblelog.Options{})
	ts.Check(err)
	return b
}

func hold(ts *testscript.TestScript, _ bool, args []string) {
	b := openLog(ts, args[0])
	ts.Defer(func() { ts.Check(b.Close()) })
}

func damage(ts *testscript.TestScript, _ bool, args []string) {
	key := append([]byte{0, 2, 0, byte(len(args[1]))}, args[1]...) // GroupMetadata
	appendTo(ts, args[0], coordinator.ShardOf(args[1], 50), key, []byte{0, 3, 0})
}

func damageTxn(ts *testscript.TestScript, _ bool, args []string) {
	key := append([]byte{0, 0, 0, byte(len(args[1]))}, args[1]...) // TransactionLog
	appendTo(ts, args[0], coordinator.TxnShards+coordinator.ShardOf(args[1], 50), key, []byte{0, 1, 0})
}

func appendTo(ts *testscript.TestScript, folder string, shard storage.ShardID, key, value []byte) {
	b := openLog(ts, folder)
	log, err := b.Open(shard, func(storage.Offset, error) {})
	ts.Check(err)
	ts.Check(log.Append([]storage.Record{{Key: key, Value: value, Time: time.Now()}}))
	ts.Check(b.Close())
}
