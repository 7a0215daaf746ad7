package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-multierror"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator"
	"github.com/kcoord/kcoord/coordinator/group"
	"github.com/kcoord/kcoord/metadataversion"
)

// Types of an update (KIP-778).
const (
	upgrade         = 1
	safeDowngrade   = 2
	unsafeDowngrade = 3
)

// updateFeatures, by version:
//
//	0  with "allow downgrade" (KIP-584), a safe one
//	1  upgrade types, and validating only (KIP-778)
//	2  no results for each feature (KIP-1022)
//
// All updates are made or none, as in Kafka. A safe downgrade is one that loses nothing
// of what is stored; Kafka has no unsafe one, and here it goes ahead after a checkpoint.
// The answer comes when the version has changed; records are rewritten after it.
func (k *call) updateFeatures(body []byte) error {
	req := kmsg.NewPtrUpdateFeaturesRequest()
	req.Version = k.version
	if err := readRequest(req, body); err != nil {
		return err
	}
	v := k.c.srv.o.Versions
	if v == nil {
		resp := kmsg.NewPtrUpdateFeaturesResponse()
		resp.ErrorCode = codeUnsupportedVersion
		k.done(resp)
		return nil
	}
	k.answer = shapeUpdated
	u := update{req: req, failed: map[string]string{}, code: kerr.InvalidUpdateVersion.Code}
	change, broken := u.change(v.Finalized(), k.c.announcement())
	if broken {
		k.complete(u, nil)
		return nil
	}
	ctx := k.c.context()
	go func() { // a plan reads all that is stored
		ctx, cancel := context.WithTimeout(ctx, max(time.Duration(req.TimeoutMillis)*time.Millisecond, time.Second))
		defer cancel()
		_, err := v.Change(ctx, change)
		k.complete(u.after(err), nil)
	}()
	return nil
}

// update is a request on its way to an answer.
type update struct {
	req    *kmsg.UpdateFeaturesRequest
	named  string            // the feature that a refusal is told of
	failed map[string]string // feature → why
	code   int16
}

func (u *update) fail(feature, format string, args ...any) {
	if _, already := u.failed[feature]; !already {
		u.failed[feature] = fmt.Sprintf(format, args...)
	}
}

// change turns the updates into a change, or finds out what is wrong with them.
func (u *update) change(now coordinator.Finalized, a *announcement) (c coordinator.Change, broken bool) {
	to := now
	named := map[string]bool{}
	c.DryRun = u.req.ValidateOnly
	for i := range u.req.FeatureUpdates {
		f := &u.req.FeatureUpdates[i]
		kind := f.UpgradeType
		if u.req.Version == 0 {
			kind = upgrade
			if f.AllowDowngrade {
				kind = safeDowngrade
			}
		}
		c.Force = c.Force || kind == unsafeDowngrade
		switch {
		case named[f.Feature]:
			u.fail(f.Feature, "The feature is named twice.")
		case kind < upgrade || kind > unsafeDowngrade:
			u.fail(f.Feature, "The controller does not support the given upgrade type.")
		case f.MaxVersionLevel < 0:
			u.fail(f.Feature, "A feature version cannot be less than 0.")
		default:
			u.one(f, kind, a, now, &to)
		}
		named[f.Feature] = true
	}
	for f, level := range to.Levels.Lowered(to.Version) { // what follows the version goes with it
		feature := metadataversion.Feature(f)
		if to.Version < now.Version && !named[feature.String()] || !a.own(feature) {
			to.Levels[f] = level
		}
	}
	c.To = to.Target()
	if err := to.Levels.Check(to.Version); err != nil {
		u.fail(u.named, "%s", oneLine(err))
	}
	return c, len(u.failed) > 0
}

// one takes in one feature's update.
func (u *update) one(f *kmsg.UpdateFeaturesRequestFeatureUpdate, kind int8, a *announcement, now coordinator.Finalized, to *coordinator.Finalized) {
	feature, known := metadataversion.FeatureByName(f.Feature)
	var is int16
	switch {
	case f.Feature == metadataversion.FeatureName:
		v, exists := metadataversion.FromLevel(f.MaxVersionLevel)
		if !exists {
			u.fail(f.Feature, "There is no such level: valid ones are from %d to %d.", metadataversion.LowestLevel.Level(), metadataversion.Latest.Level())
			return
		}
		is, to.Version = now.Version.Level(), v
	case known && a.own(feature):
		if f.MaxVersionLevel > feature.Highest() {
			u.fail(f.Feature, "There is no such level: valid ones are from 0 to %d.", feature.Highest())
			return
		}
		is, to.Levels[feature] = now.Levels[feature], f.MaxVersionLevel
	case a.broker[f.Feature]:
		if a.brokerLevel(f.Feature) != f.MaxVersionLevel {
			u.fail(f.Feature, "It is KRaft's, not kcoord's: change it with --bootstrap-controller.")
		}
		return
	default:
		u.fail(f.Feature, "There is no such feature.")
		return
	}
	if u.named == "" || f.Feature == metadataversion.FeatureName {
		u.named = f.Feature
	}
	switch {
	case f.MaxVersionLevel < is && kind == upgrade:
		u.fail(f.Feature, "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade.")
	case f.MaxVersionLevel > is && kind != upgrade:
		u.fail(f.Feature, "Can't downgrade to a newer version.")
	}
}

func (a *announcement) brokerLevel(name string) int16 {
	for _, f := range a.of.FinalizedFeatures {
		if f.Name == name {
			return f.MaxVersionLevel
		}
	}
	return 0
}

// after is the update after the change was tried.
func (u update) after(err error) update {
	var lossy *coordinator.Lossy
	switch {
	case err == nil:
	case errors.As(err, &lossy):
		var reasons []string
		for _, r := range lossy.Plan.Reasons() {
			reasons = append(reasons, r.Error())
		}
		u.fail(u.named, "Refusing to perform the requested downgrade because it would lose what is stored: %s.", strings.Join(reasons, "; "))
	default:
		if errors.Is(err, context.DeadlineExceeded) {
			u.code = kerr.RequestTimedOut.Code
		} else if !errors.Is(err, coordinator.ErrRewriting) {
			u.code = kerr.FeatureUpdateFailed.Code
		}
		u.fail(u.named, "%s", oneLine(err))
	}
	return u
}

// shapeUpdated tells of one feature's failure, and of the others that they failed with it.
func shapeUpdated(k *call, resp group.Response, err error) kmsg.Response {
	out := kmsg.NewPtrUpdateFeaturesResponse()
	if err != nil {
		out.ErrorCode = code(err)
		k.failed(out.ErrorCode)
		return out
	}
	u := resp.(update)
	first := ""
	for i := range u.req.FeatureUpdates {
		f := &u.req.FeatureUpdates[i]
		why, failed := u.failed[f.Feature]
		if failed && first == "" {
			first = fmt.Sprintf("Invalid update version %d for feature %s. %s", f.MaxVersionLevel, f.Feature, why)
			k.failed(u.code)
		}
	}
	if first == "" {
		out.ErrorMessage = new(string)
	} else if first = "The update failed for all features since the following feature had an error: " + first; k.version >= 2 {
		out.ErrorCode, out.ErrorMessage = u.code, &first
	}
	for i := range u.req.FeatureUpdates {
		r := kmsg.NewUpdateFeaturesResponseResult()
		r.Feature, r.ErrorMessage = u.req.FeatureUpdates[i].Feature, new(string)
		if first != "" {
			r.ErrorCode, r.ErrorMessage = u.code, &first
		}
		out.Results = append(out.Results, r)
	}
	return out
}

// oneLine is an error's text, of several errors all.
func oneLine(err error) string {
	var all *multierror.Error
	if errors.As(err, &all) {
		var texts []string
		for _, e := range all.Errors {
			texts = append(texts, e.Error())
		}
		return strings.Join(texts, "; ")
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
