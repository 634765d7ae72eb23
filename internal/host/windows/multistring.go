package windows

import (
	"errors"
	"strings"
	"unicode/utf16"
)

// errNulInString means that Windows cannot store a text because a NUL character would end it.
var errNulInString = errors.New("a text with a NUL character cannot be stored")

// encodeMultiString encodes a list as REG_MULTI_SZ, the format of the registry and of service dependencies: each
// string ends with a NUL, and the list ends with another NUL. An empty list is two NULs, which removes previous
// values.
func encodeMultiString(list []string) ([]uint16, error) {
	var units []uint16
	for _, text := range list {
		if strings.IndexByte(text, 0) >= 0 {
			return nil, errNulInString
		}
		if text == "" {
			continue // an empty string would end the list
		}
		units = append(units, utf16.Encode([]rune(text))...)
		units = append(units, 0)
	}
	if len(units) == 0 {
		units = append(units, 0)
	}
	return append(units, 0), nil
}
