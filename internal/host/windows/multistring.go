package windows

import (
	"errors"
	"strings"
	"unicode/utf16"
)

// errNulInString means that a text cannot be given to Windows, where the character ends it.
var errNulInString = errors.New("a text with a NUL character cannot be stored")

// encodeMultiString returns a list in the form that the registry calls REG_MULTI_SZ and the service control manager
// takes dependencies in: each string ended by a NUL, the list ended by one more. An empty list is two NULs, which takes
// away what was there.
func encodeMultiString(list []string) ([]uint16, error) {
	var units []uint16
	for _, text := range list {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, errNulInString
		}
		if text == "" {
			continue // it would end the list
		}
		units = append(units, utf16.Encode([]rune(text))...)
		units = append(units, 0)
	}
	if len(units) == 0 {
		units = append(units, 0)
	}
	return append(units, 0), nil
}
