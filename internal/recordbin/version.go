package recordbin

import "fmt"

// NewKeyReader reads a key after checking that it is of the type want.
func NewKeyReader(pkg, record string, b []byte, want int16) (Reader, error) {
	got, err := Prefix(pkg, record, b)
	if err != nil {
		return Reader{}, err
	}
	if got != want {
		return Reader{}, &DecodeError{Package: pkg, Record: record, Version: want,
			Problem: fmt.Sprintf("record type is %d", got)}
	}
	return NewReader(b, false, false), nil
}

// ValuePrefix reads a value's version and says in which version's layout the rest is to be read.
func ValuePrefix(pkg, record string, b []byte, highest int16, frozen bool) (version, layout int16, err error) {
	if version, err = Prefix(pkg, record, b); err != nil {
		return 0, 0, err
	}
	layout, err = Layout(pkg, record, version, highest, frozen)
	return version, layout, err
}

// Layout is the version itself where it is known, and the highest known one for any other (KIP-915). Negative versions,
// which no Kafka writes, count as unknown like the rest. A frozen record type has no later versions, so that there an
// unknown one is an error, which wraps [ErrUnknownVersion].
func Layout(pkg, record string, version, highest int16, frozen bool) (int16, error) {
	if frozen && Nearest(version, highest) != version {
		return highest, fmt.Errorf("%s: %s: %w %d, the only ones are 0 to %d", pkg, record, ErrUnknownVersion, version, highest)
	}
	return Nearest(version, highest), nil
}

// Nearest is the version itself where it is known, else the highest.
func Nearest(version, highest int16) int16 {
	if version < 0 || version > highest {
		return highest
	}
	return version
}
