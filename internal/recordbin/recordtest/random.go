package recordtest

import (
	"reflect"
	"strings"

	"github.com/kcoord/kcoord/internal/recordbin"
	"pgregory.net/rapid"
)

var (
	unknownTags = reflect.TypeFor[recordbin.UnknownTags]()
	nullString  = reflect.TypeFor[recordbin.NullString]()
	uuid        = reflect.TypeFor[recordbin.UUID]()
)

// Draw fills the struct that v points to with random content in the form that decoding gives it: empty slices are nil,
// null arrays empty, strings valid UTF-8, unknown tags in order and above the known ones.
func Draw(t *rapid.T, v any, withUnknownTags bool) {
	draw(t, reflect.ValueOf(v).Elem(), withUnknownTags)
}

func draw(t *rapid.T, v reflect.Value, unknown bool) {
	switch {
	case v.Type() == unknownTags:
		if unknown {
			v.SetString(string(drawTags(t)))
		}
	case v.Type() == nullString:
		if rapid.Bool().Draw(t, "valid") {
			v.Set(reflect.ValueOf(recordbin.Some(text(t))))
		}
	case v.Type() == uuid:
		reflect.Copy(v, reflect.ValueOf(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "uuid")))
	case v.CanInt():
		v.SetInt(rapid.OneOf(rapid.Int64(), rapid.SampledFrom([]int64{0, -1, 1})).Draw(t, "int"))
	case v.CanUint():
		v.SetUint(rapid.Uint64().Draw(t, "uint"))
	case v.Kind() == reflect.String:
		v.SetString(text(t))
	case v.Kind() == reflect.Slice:
		drawSlice(t, v, unknown)
	case v.Kind() == reflect.Pointer:
		v.SetZero()
		if rapid.Bool().Draw(t, "present") {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem(), unknown)
		}
	case v.Kind() == reflect.Struct:
		drawStruct(t, v, unknown)
	}
}

func drawStruct(t *rapid.T, v reflect.Value, unknown bool) {
	for i := range v.NumField() {
		draw(t, v.Field(i), unknown)
		if name, ok := strings.CutSuffix(v.Type().Field(i).Name, "Null"); ok && rapid.Bool().Draw(t, "null") {
			v.Field(i).SetBool(true)
			v.FieldByName(name).SetZero()
		}
	}
}

func drawSlice(t *rapid.T, v reflect.Value, unknown bool) {
	v.SetZero()
	n := rapid.IntRange(0, 3).Draw(t, "len")
	if n == 0 {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		draw(t, v.Index(i), unknown)
	}
}

func text(t *rapid.T) string { return rapid.StringN(0, 20, -1).Draw(t, "text") }

func drawTags(t *rapid.T) recordbin.UnknownTags {
	var u recordbin.UnknownTags
	tag := uint32(9)
	for range rapid.IntRange(0, 3).Draw(t, "tags") {
		tag += rapid.Uint32Range(1, 1<<20).Draw(t, "tag")
		u = u.Append(tag, rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "content"))
	}
	return u
}

// Footprint is the memory in bytes that v points to, directly or not: what decoding has allocated for it.
func Footprint(v any) int { return footprint(reflect.ValueOf(v)) }

func footprint(v reflect.Value) int {
	n := 0
	switch v.Kind() {
	case reflect.String:
		n = v.Len()
	case reflect.Pointer:
		if !v.IsNil() {
			n = int(v.Type().Elem().Size()) + footprint(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := range v.Len() {
			n += footprint(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += footprint(v.Field(i))
		}
	}
	return n
}
