package admin

import (
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/kcoord/kcoord/api/admin/adminpb"
	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/metadataversion"
)

func planOf(p *metadataversion.Plan) *adminpb.DowngradePlan {
	var text strings.Builder
	_, _ = p.WriteTo(&text) // to memory
	out := &adminpb.DowngradePlan{
		From: p.From.String(), To: p.To.String(), Tolerates: p.To.Release.Tolerates(), Steps: p.Steps(),
		Records: p.Records, Rewritten: p.Rewritten, Deleted: p.Deleted, FatalClients: p.FatalClients, Text: text.String(),
		Losses: lossesOf(p.Losses, p.To), Ignored: lossesOf(p.Ignored, p.To),
	}
	for _, f := range metadataversion.Features() {
		if from, to := p.From.Levels[f], p.To.Levels[f]; from != to {
			out.Features = append(out.Features, &adminpb.FeatureChange{Feature: f.String(), From: int32(from), To: int32(to)})
		}
	}
	for _, v := range p.Between {
		out.Between = append(out.Between, &adminpb.IncompatibleVersion{Version: v.String(), Why: v.WhyNotCompatible()})
	}
	for _, f := range p.Fatal {
		out.Fatal = append(out.Fatal, &adminpb.FatalClient{Entity: valid(f.Entity), MemberId: valid(f.Member), ProducerId: f.ProducerID, InTransaction: f.InTransaction})
	}
	return out
}

// valid is a name that protobuf takes: names are bytes to Kafka's records.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func lossesOf(losses []metadataversion.Loss, to metadataversion.Target) []*adminpb.DowngradeLoss {
	var all []*adminpb.DowngradeLoss
	for _, l := range losses {
		out := &adminpb.DowngradeLoss{
			Log: l.Log.String(), Type: l.TypeName(), What: strings.Join(l.What.Names(), ", "), Records: l.Records,
			Entities: int32(l.Entities), AtLeast: l.MoreEntities, Reason: valid((&metadataversion.Reason{Loss: l, To: to}).Error()),
		}
		for _, t := range l.Top {
			out.Top = append(out.Top, &adminpb.EntityRecords{Entity: valid(t.Entity), Records: t.Records})
		}
		for _, e := range l.Examples {
			out.Examples = append(out.Examples, &adminpb.LossExample{
				Entity: valid(e.Entity), Partition: e.Shard, Key: valid(e.Key), Version: int32(e.Version), Problem: valid(e.Problem),
			})
		}
		all = append(all, out)
	}
	return all
}

// What a refusal says goes in headers, of which some clients take 8 KB in all.
const (
	maxDetails = 3500
	maxMessage = 700
	maxExample = 512
)

// refusedDowngrade has every reason, as far as there is room with an example and a text.
func refusedDowngrade(p *metadataversion.Plan) error {
	detail := &adminpb.DowngradeRefused{From: p.From.String(), To: p.To.String(), Losses: lossesOf(p.Losses, p.To)}
	var reasons []string
	size := 0
	for _, l := range detail.Losses {
		l.Top, l.Examples = nil, l.Examples[:min(len(l.Examples), 1)]
		if proto.Size(l) > maxExample {
			l.Examples = nil
		}
		if size += len(l.Reason); size <= maxMessage {
			reasons = append(reasons, l.Reason)
		}
	}
	if more := len(detail.Losses) - len(reasons); more > 0 {
		reasons = append(reasons, fmt.Sprintf("and %d more", more))
	}
	for _, shorter := range []func(*adminpb.DowngradeLoss){
		func(l *adminpb.DowngradeLoss) { l.Examples = nil },
		func(l *adminpb.DowngradeLoss) { l.Reason = "" },
	} {
		if proto.Size(detail) <= maxDetails {
			break
		}
		for _, l := range detail.Losses {
			shorter(l)
		}
	}
	s := status.New(codes.FailedPrecondition, fmt.Sprintf("the downgrade to %s would lose what is stored: %s", p.To, strings.Join(reasons, "; ")))
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}

func rewriteOf(s coordinator.RewriteStatus, under bool) *adminpb.Rewrite {
	return &adminpb.Rewrite{
		UnderWay: under, From: s.From, To: s.To, Began: s.Began.UnixMilli(), Forced: s.Forced, Checkpoint: s.Checkpoint, Report: s.Report,
		ShardsDone: int32(s.Shards), Shards: int32(s.Of), Rewritten: s.Rewritten, Deleted: s.Deleted, Lost: s.Lost,
		Waiting: int32(s.Waiting), Problem: s.Problem, Planned: s.Planned, CheckpointBytes: s.CheckpointBytes,
	}
}
