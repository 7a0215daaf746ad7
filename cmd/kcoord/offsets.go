package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kcoord/kcoord/api/admin/adminpb"
)

type offsetsCommand struct {
	adminFlags

	List   offsetsListCommand   `cmd:"" help:"List a group's committed offsets, and how far the logs are ahead."`
	Reset  offsetsResetCommand  `cmd:"" help:"Set a group's offsets to somewhere in the logs."`
	Set    offsetsSetCommand    `cmd:"" help:"Set offsets of single partitions."`
	Delete offsetsDeleteCommand `cmd:"" help:"Delete committed offsets."`
	Apply  offsetsApplyCommand  `cmd:"" help:"Apply a plan that was printed with -o json."`
	Import offsetsImportCommand `cmd:"" help:"Take over the offsets of a broker's own coordinator."`
	Export offsetsExportCommand `cmd:"" help:"Give offsets back to a broker's own coordinator."`
}

// topicFlags choose partitions, as Kafka's tools do.
type topicFlags struct {
	Topic     []string `sep:"none" placeholder:"TOPIC[:P,P]" help:"A topic, or some of its partitions. May be repeated."`
	AllTopics bool     `help:"All topics that the group has offsets of."`
}

// partitions are the chosen ones; nil: all.
func (f *topicFlags) partitions() ([]*adminpb.TopicPartitions, error) {
	if (len(f.Topic) == 0) != f.AllTopics {
		return nil, mistake{fmt.Errorf("which topics? Say --topic TOPIC, --topic TOPIC:0,1 or --all-topics")}
	}
	var all []*adminpb.TopicPartitions
	for _, word := range f.Topic {
		topic, list, some := strings.Cut(word, ":")
		tp := &adminpb.TopicPartitions{Topic: topic}
		for n := range strings.SplitSeq(list, ",") {
			if !some {
				break
			}
			p, err := strconv.ParseInt(n, 10, 32)
			if err != nil || p < 0 {
				return nil, mistake{fmt.Errorf("--topic %s: say it as TOPIC or TOPIC:0,1", word)}
			}
			tp.Partitions = append(tp.Partitions, int32(p))
		}
		all = append(all, tp)
	}
	return all, nil
}

type offsetsListCommand struct {
	Group string   `arg:"" help:"Id of a group."`
	Topic []string `placeholder:"TOPIC" help:"Only these topics."`
}

// Run lists a group's offsets.
func (l *offsetsListCommand) Run(ctx context.Context, a *adminFlags) error {
	req := &adminpb.ListOffsetsRequest{Group: l.Group}
	for _, t := range l.Topic {
		req.Partitions = append(req.Partitions, &adminpb.TopicPartitions{Topic: t})
	}
	return a.ask(ctx, func(ctx context.Context, api api) error {
		resp, err := api.ListOffsets(ctx, req)
		if err != nil {
			return err
		}
		if err := a.print(resp, a.offsetTable(resp.GetOffsets(), nil), "no offsets are committed"); err != nil || a.Output == "json" {
			return err
		}
		return a.endsUnknown(resp.GetEndsUnknown())
	})
}

type offsetsResetCommand struct {
	Group string `arg:"" help:"Id of a group."`
	topicFlags
	ToEarliest bool           `xor:"target" help:"To where the logs begin."`
	ToLatest   bool           `xor:"target" help:"To where the logs end."`
	ToOffset   *int64         `xor:"target" placeholder:"N" help:"To an offset."`
	ToDatetime string         `xor:"target" placeholder:"TIME" help:"To the first record from a time on, such as 2026-09-01T12:00:00Z."`
	ByDuration *time.Duration `xor:"target" placeholder:"TIME" help:"To the first record from so long ago on, such as 2h30m."`
	ShiftBy    *int64         `xor:"target" placeholder:"N" help:"N records on; back, where N is negative (--shift-by=-5)."`
	Yes        bool           `help:"Do it; else it is only shown what would change."`
}

// Run plans a reset and, with --yes, applies it.
func (r *offsetsResetCommand) Run(ctx context.Context, a *adminFlags) error {
	of, err := r.partitions()
	if err != nil {
		return err
	}
	req := &adminpb.PlanOffsetsRequest{Group: r.Group, Partitions: of}
	if err := r.target(req, time.Now()); err != nil {
		return err
	}
	return a.change(ctx, req, r.Yes)
}

func (r *offsetsResetCommand) target(req *adminpb.PlanOffsetsRequest, now time.Time) error {
	switch {
	case r.ToEarliest:
		req.Target = &adminpb.PlanOffsetsRequest_Earliest{Earliest: true}
	case r.ToLatest:
		req.Target = &adminpb.PlanOffsetsRequest_Latest{Latest: true}
	case r.ToOffset != nil:
		req.Target = &adminpb.PlanOffsetsRequest_Offset{Offset: *r.ToOffset}
	case r.ByDuration != nil:
		req.Target = &adminpb.PlanOffsetsRequest_Timestamp{Timestamp: max(now.Add(-*r.ByDuration).UnixMilli(), 0)}
	case r.ShiftBy != nil:
		req.Target = &adminpb.PlanOffsetsRequest_ShiftBy{ShiftBy: *r.ShiftBy}
	case r.ToDatetime != "":
		at, err := moment(r.ToDatetime)
		if err != nil {
			return mistake{fmt.Errorf("--to-datetime %s: say it as 2026-09-01T12:00:00Z", r.ToDatetime)}
		}
		req.Target = &adminpb.PlanOffsetsRequest_Timestamp{Timestamp: at.UnixMilli()}
	default:
		return mistake{fmt.Errorf("to where? Say --to-earliest, --to-latest, --to-offset, --to-datetime, --by-duration or --shift-by")}
	}
	return nil
}

// moment reads a time; without a zone it is UTC, as in Kafka's tool.
func moment(s string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return at, nil
	}
	return time.Parse("2006-01-02T15:04:05.999999999", s)
}

type offsetsSetCommand struct {
	Group    string   `arg:"" help:"Id of a group."`
	Offsets  []string `arg:"" sep:"none" placeholder:"TOPIC:PARTITION=OFFSET" help:"TOPIC:PARTITION=OFFSET."`
	Metadata string   `help:"What is committed with them."`
	Yes      bool     `help:"Do it; else it is only shown what would change."`
}

// Run plans what was said and, with --yes, applies it.
func (s *offsetsSetCommand) Run(ctx context.Context, a *adminFlags) error {
	set := &adminpb.OffsetsToSet{}
	for _, word := range s.Offsets {
		place, offset, ok := strings.Cut(word, "=")
		i := strings.LastIndexByte(place, ':')
		if !ok || i < 1 {
			return mistake{fmt.Errorf("%s: say it as TOPIC:PARTITION=OFFSET", word)}
		}
		p, err := strconv.ParseInt(place[i+1:], 10, 32)
		n, err2 := strconv.ParseInt(offset, 10, 64)
		if err != nil || err2 != nil || p < 0 || n < 0 {
			return mistake{fmt.Errorf("%s: say it as TOPIC:PARTITION=OFFSET", word)}
		}
		set.Offsets = append(set.Offsets, &adminpb.OffsetToSet{Topic: place[:i], Partition: int32(p), Offset: n, Metadata: s.Metadata})
	}
	return a.change(ctx, &adminpb.PlanOffsetsRequest{Group: s.Group, Target: &adminpb.PlanOffsetsRequest_Set{Set: set}}, s.Yes)
}

type offsetsDeleteCommand struct {
	Group string `arg:"" help:"Id of a group."`
	topicFlags
	Yes bool `help:"Do it; else it is only shown what would change."`
}

// Run plans the deletion and, with --yes, applies it.
func (d *offsetsDeleteCommand) Run(ctx context.Context, a *adminFlags) error {
	of, err := d.partitions()
	if err != nil {
		return err
	}
	return a.change(ctx, &adminpb.PlanOffsetsRequest{Group: d.Group, Partitions: of, Target: &adminpb.PlanOffsetsRequest_Delete{Delete: true}}, d.Yes)
}
