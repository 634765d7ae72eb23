package windows

import (
	"errors"
	"slices"
	"testing"
)

func TestMultiString(t *testing.T) {
	for name, c := range map[string]struct {
		list []string
		want []uint16
	}{
		"an empty list is two NULs, which take away what was there": {nil, []uint16{0, 0}},
		"each string ends with a NUL and the list with one more": {[]string{"ab", "c"},
			[]uint16{'a', 'b', 0, 'c', 0, 0}},
		"a character beyond 16 bits is a surrogate pair":         {[]string{"😀"}, []uint16{0xd83d, 0xde00, 0, 0}},
		"an empty string is left out, for it would end the list": {[]string{"", "a"}, []uint16{'a', 0, 0}},
		"a list of empty strings is an empty list":               {[]string{"", ""}, []uint16{0, 0}},
		"an environment entry with an equals sign is a string like any": {[]string{"A=b=c"},
			[]uint16{'A', '=', 'b', '=', 'c', 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := encodeMultiString(c.list)
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %v, %v, want %v", got, err, c.want)
			}
		})
	}
	t.Run("a NUL within a string is refused", func(t *testing.T) {
		if _, err := encodeMultiString([]string{"a\x00b"}); !errors.Is(err, errNulInString) {
			t.Errorf("got %v", err)
		}
	})
}
