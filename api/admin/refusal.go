package admin

import (
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kcoord/kcoord/api/admin/adminpb"
)

// coded is a status for one of Kafka's codes about a group; nil for 0.
func coded(code int16, id string) error {
	e := kerr.TypedErrorForCode(code)
	switch e {
	case nil:
		return nil
	case kerr.InvalidGroupID, kerr.OffsetMetadataTooLarge:
		return status.Errorf(codes.InvalidArgument, "group %q: %s", id, e.Message)
	case kerr.GroupIDNotFound:
		return status.Errorf(codes.NotFound, "there is no group %q", id)
	case kerr.CoordinatorLoadInProgress:
		return status.Errorf(codes.Unavailable, "group %q has records that cannot be read (kcoord groups quarantined)", id)
	}
	return status.Errorf(codes.FailedPrecondition, "group %q: %s", id, e.Message)
}

// inUse refuses to change what members work with, and says which topics they read where that is why.
func inUse(id, state string, members []kmsg.DescribeGroupsResponseGroupMember, read []string) error {
	detail := &adminpb.GroupInUse{Group: id, State: state}
	for _, m := range members {
		detail.Members = append(detail.Members, member(m, false))
	}
	s := status.New(codes.FailedPrecondition, InUse(id, state, detail.Members, read...))
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}

// InUse says in a line by whom a group is in use: who plans is told in the words in which it would be refused.
func InUse(id, state string, members []*adminpb.Member, read ...string) string {
	reads := ""
	if len(read) > 0 {
		reads = " and reads " + strings.Join(read, ", ")
	}
	return fmt.Sprintf("group %q is in use (%s)%s: %s", id, state, reads, named(members))
}

// named names members for a line, the first of many.
func named(members []*adminpb.Member) string {
	const most = 5
	var names []string
	for i, m := range members {
		if i == most {
			names = append(names, fmt.Sprintf("and %d more", len(members)-most))
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", m.GetMemberId(), m.GetClientHost()))
	}
	if names == nil {
		return "a member is about to join"
	}
	return strings.Join(names, ", ")
}

// differing refuses a plan that is out of date.
func differing(detail *adminpb.OffsetsDiffer) error {
	const most = 3
	var words []string
	for i, d := range detail.Differences {
		if i == most {
			words = append(words, fmt.Sprintf("and %d more", len(detail.Differences)-most))
			break
		}
		words = append(words, fmt.Sprintf("%s-%d is at %s, not %s", d.Topic, d.Partition, orNone(d.Current), orNone(d.Expected)))
	}
	s := status.Newf(codes.FailedPrecondition, "group %q has changed since the plan was made: %s", detail.Group, strings.Join(words, ", "))
	if with, err := s.WithDetails(detail); err == nil {
		s = with
	}
	return s.Err()
}

func orNone(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
