package main

import (
	"strings"
	"testing"
)

// L-03: a cluster without a way to the Internet names a pause image of its own.
func TestThePauseImageComesFromTheEnvironment(t *testing.T) {
	for name, test := range map[string]struct {
		set     string
		refused bool
	}{
		"unset leaves the usual one":                  {"", false},
		"a registry with a port and a tag":            {"registry.example.com:5000/windows/pause:3.10", false},
		"a digest":                                    {"registry.example.com/pause@sha256:" + strings.Repeat("a", 64), false},
		"what would end a string in a file":           {"pause'\nevil = 'x", true},
		"no registry, which no mirror is for":         {"pause:3.10", true},
		"no tag, which would be another one tomorrow": {"registry.example.com/pause", true},
		"a scheme":                            {"https://registry.example.com/pause", true},
		"blanks are no image, and not unset":  {" ", true},
		"upper case, which no registry takes": {"registry.example.com/Pause:1", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(pauseImageVariable, test.set)
			image, err := pauseImage()
			if (err != nil) != test.refused {
				t.Fatalf("got %q, error %v", image, err)
			}
			if err != nil && !strings.Contains(err.Error(), pauseImageVariable) {
				t.Errorf("the error does not name the variable: %v", err)
			}
			if err == nil && image != test.set {
				t.Errorf("got %q", image)
			}
		})
	}
}
