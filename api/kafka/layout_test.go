package kafka

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/kcoord/kcoord/coordinator/group"
)

// TestLayouts walks over a request of each API and version that has lists: a layout ends where the
// request does.
func TestLayouts(t *testing.T) {
	own := []int16{8, 9} // not decoded by kmsg
	for _, a := range served(2) {
		req := kmsg.RequestForKey(a.key)
		if a.handle == nil || slices.Contains(own, a.key) {
			continue
		}
		fields, has := layouts[a.key]
		if lists := fill(reflect.ValueOf(req).Elem()); lists != has {
			t.Errorf("API %d has lists or bytes: %v; a layout: %v", a.key, lists, has)
		}
		for v := a.min; v <= a.max; v++ {
			req.SetVersion(v)
			d := decoder{b: req.AppendTo(nil), flexible: req.IsFlexible()}
			d.walk(fields, v)
			d.tags()
			if has && (d.bad || len(d.b) > 0) {
				t.Errorf("API %d v%d: bad: %v, left: %d bytes", a.key, v, d.bad, len(d.b))
			}
		}
	}
}

// fill sets every field to something, and says whether there are lists or bytes.
func fill(v reflect.Value) (lists bool) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; name != "Version" && name != "UnknownTags" && fill(v.Field(i)) {
				lists = true
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		return true
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.String:
		v.SetString("some text")
	}
	return lists
}

// TestNullWhereNothingMayBeNull makes each list and all bytes of each request null, which kmsg takes as empty.
func TestNullWhereNothingMayBeNull(t *testing.T) {
	for key, fields := range layouts {
		req := kmsg.RequestForKey(key)
		fill(reflect.ValueOf(req).Elem())
		for v := int16(0); v <= req.MaxVersion(); v++ {
			req.SetVersion(v)
			body := req.AppendTo(nil)
			d, null := decoder{b: body, flexible: req.IsFlexible()}, []byte{0xff, 0xff, 0xff, 0xff}
			if d.flexible {
				null = []byte{0}
			}
			for _, is := range d.lists(fields, v, len(body)) {
				broken := slices.Concat(body[:is[0]], null, body[is[1]:])
				if again := kmsg.RequestForKey(key); readRequest(setVersion(again, v), broken) == nil {
					t.Errorf("API %d v%d: taken with null at %d", key, v, is[0])
				}
			}
			if again := kmsg.RequestForKey(key); readRequest(setVersion(again, v), body) != nil {
				t.Errorf("API %d v%d: not taken", key, v)
			}
		}
	}
}

func setVersion(req kmsg.Request, v int16) kmsg.Request {
	req.SetVersion(v)
	return req
}

// lists are where lists and bytes begin and end, in a body of n bytes.
func (d *decoder) lists(fields []field, version int16, n int) (all [][2]int) {
	for i := range fields {
		f, from := fields[i:i+1], n-len(d.b)
		if inside := *d; f[0].kind == '[' && version >= f[0].min && version <= f[0].max {
			for left := inside.length(1); left > 0; left-- {
				if all = append(all, inside.lists(f[0].of, version, n)...); len(f[0].of) > 1 {
					inside.tags()
				}
			}
		}
		if d.walk(f, version); n-len(d.b) > from && (f[0].kind == '[' || f[0].kind == 'b') {
			all = append(all, [2]int{from, n - len(d.b)})
		}
	}
	return all
}

// TestLostAssignments ends a connection with a SyncGroup whose assignments are null: the group would have been
// stable, and its members without partitions.
func TestLostAssignments(t *testing.T) {
	s := newStage(t, yes)
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID = "g", "m"
	lost := frame(1, req)
	copy(lost[len(lost)-4:], "\xff\xff\xff\xff")
	c := s.client()
	if _, err := c.nc.Write(lost); err != nil {
		t.Fatal(err)
	}
	if c.closed(); s.coord.count() != 0 {
		t.Error("the group was asked")
	}
}

// TestNegativeLengthsAreNull has a client id and an instance id of length -2, which are null for Kafka, too.
func TestNegativeLengthsAreNull(t *testing.T) {
	s := newStage(t, yes)
	req := beat("g")
	req.Version = 3
	b := frame(1, req)
	at := bytes.Index(b, []byte("\x00\x06tester"))
	b = slices.Concat(b[:at], []byte{0xff, 0xfe}, b[at+8:])
	copy(b[len(b)-2:], "\xff\xfe")
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	c := s.client()
	if _, err := c.nc.Write(b); err != nil {
		t.Fatal(err)
	}
	if got := recv[*kmsg.HeartbeatResponse](c, 1, req); got.ErrorCode != 0 || s.coord.last().(group.Heartbeat).InstanceID != nil {
		t.Errorf("%+v to %+v", got, s.coord.last())
	}
}
