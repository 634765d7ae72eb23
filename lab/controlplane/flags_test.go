package main

import (
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no directory":        {nil, "--dir is required"},
		"an unknown profile":  {[]string{"--dir=x", "--profile=vanilla"}, `"vanilla" is neither plain nor openshift`},
		"an unknown platform": {[]string{"--dir=x", "--platform=Mainframe"}, "is not one of None"},
	} {
		t.Run(name+" is refused", func(t *testing.T) {
			if err := new(flags).parse(test.args); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestParent(t *testing.T) {
	t.Run("a parent that is not the one expected has ended", func(t *testing.T) {
		if err := dieWithParent(1 << 30); err == nil || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("got %v", err)
		}
	})
}
