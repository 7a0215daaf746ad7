package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"

	"github.com/twmb/franz-go/pkg/kadm"
)

// older is a release that cannot read what kcoord writes by default.
const (
	older     = "3.3"
	olderName = "3.3-IV3"
	newest    = "4.4-IV2"
	refused   = 3 // exit code
)

// downgrade has a downgrade refused with its reasons, forced, and taken back.
func (d *demo) downgrade(ctx context.Context) error {
	before, err := d.committed(ctx)
	if err != nil {
		return err
	}
	if err := d.refused(ctx); err != nil {
		return err
	}
	checkpoint, err := d.forced(ctx)
	if err != nil {
		return err
	}
	if err := d.unchanged(ctx, before); err != nil {
		return err
	}
	return d.restored(ctx, checkpoint, before)
}

func (d *demo) refused(ctx context.Context) error {
	d.say("\nAn older release: a downgrade refused, forced, and taken back.\n")
	d.title("Go back to what Kafka %s reads: kcoord downgrade --to %s.", older, older)
	out, code, err := d.server.run(ctx, "downgrade", "--to", older, "--admin", d.server.admin, "-o", "json")
	if err != nil {
		return err
	}
	var plan struct {
		Losses []struct {
			Type, What string
			Records    int64 `json:",string"`
		}
	}
	if err := json.Unmarshal(out, &plan); err != nil || code != refused || len(plan.Losses) == 0 {
		return fmt.Errorf("demo: the downgrade was not refused: exit code %d, %s", code, out)
	}
	d.detail("Refused, exit code %d. It would lose:", code)
	for _, l := range plan.Losses {
		d.detail("  %s of %d records (%s)", l.What, l.Records, l.Type)
	}
	return nil
}

func (d *demo) forced(ctx context.Context) (checkpoint string, err error) {
	d.title("Force it: a checkpoint first, then every record is rewritten.")
	out, code, err := d.server.run(ctx, "downgrade", "--to", older, "--force", "--admin", d.server.admin, "-o", "json")
	if err != nil {
		return "", err
	}
	var plan struct{}
	var started struct {
		Checkpoint string
		Bytes      int64 `json:"checkpoint_bytes,string"`
	}
	var rewrite struct {
		To                 string
		Rewritten, Deleted int64 `json:",string"`
	}
	all := json.NewDecoder(bytes.NewReader(out))
	if err := errors.Join(all.Decode(&plan), all.Decode(&started), all.Decode(&rewrite)); err != nil || code != 0 || rewrite.To != olderName {
		return "", fmt.Errorf("demo: the downgrade did not go ahead: exit code %d, %s", code, out)
	}
	d.detail("Checkpoint of %d KiB in", started.Bytes>>10)
	d.detail("  %s", started.Checkpoint)
	d.detail("At %s now: %d records rewritten, %d deleted. The group goes on.", rewrite.To, rewrite.Rewritten, rewrite.Deleted)
	return started.Checkpoint, nil
}

func (d *demo) restored(ctx context.Context, checkpoint string, before kadm.Offsets) error {
	d.title("Take it back: stop kcoord, kcoord downgrade restore CHECKPOINT, start it.")
	d.server.kill()
	if out, code, err := d.server.run(ctx, "downgrade", "restore", checkpoint); err != nil || code != 0 {
		return fmt.Errorf("demo: the checkpoint could not be restored: exit code %d, %s, %w", code, out, err)
	}
	if _, err := d.server.start(ctx); err != nil {
		return err
	}
	if err := d.connect(); err != nil {
		return err
	}
	out, code, err := d.server.run(ctx, "downgrade", "status", "--admin", d.server.admin, "-o", "json")
	if err != nil {
		return err
	}
	var status struct {
		Version string `json:"metadata_version"`
	}
	if err := json.Unmarshal(out, &status); err != nil || code != 0 || status.Version != newest {
		return fmt.Errorf("demo: after the restore: exit code %d, %s", code, out)
	}
	if err := d.unchanged(ctx, before); err != nil {
		return err
	}
	d.detail("At %s again, with the offsets of before.", status.Version)
	return nil
}

func (d *demo) committed(ctx context.Context) (kadm.Offsets, error) {
	committed, err := d.admin.FetchOffsets(ctx, group)
	if err != nil {
		return nil, fmt.Errorf("demo: fetching the offsets: %w", err)
	}
	return committed.Offsets(), nil
}

func (d *demo) unchanged(ctx context.Context, before kadm.Offsets) error {
	now, err := d.committed(ctx)
	if err != nil {
		return err
	}
	var changed error
	before.Each(func(was kadm.Offset) {
		if is, ok := now.Lookup(was.Topic, was.Partition); !ok || is.At != was.At {
			changed = fmt.Errorf("demo: %s-%d was at %d, and is at %d", was.Topic, was.Partition, was.At, is.At)
		}
	})
	return changed
}

// run runs another command of kcoord's.
func (s *server) run(ctx context.Context, args ...string) (out []byte, code int, err error) {
	cmd := exec.CommandContext(ctx, s.executable, args...)
	var bad bytes.Buffer
	cmd.Stderr = &bad
	out, err = cmd.Output()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) {
		code, err = ended.ExitCode(), nil
		if code != refused {
			out = append(out, bad.Bytes()...)
		}
	}
	return out, code, err
}
