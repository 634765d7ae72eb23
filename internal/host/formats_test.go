package host_test

import (
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
)

func TestFingerprint(t *testing.T) {
	good := strings.Repeat("0a", 32)
	if err := host.CheckFingerprint(good); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", good[:62], good + "0a", strings.ToUpper(good), strings.Repeat("g", 64),
		strings.Repeat("x", 1<<20)} {
		if err := host.CheckFingerprint(bad); err == nil || len(err.Error()) > 300 {
			t.Errorf("%.70q: %.300v", bad, err)
		}
	}
}

func TestDestination(t *testing.T) {
	for _, good := range []string{"169.254.169.254/32", "10.0.0.0/8", "128.0.0.0/1"} {
		if prefix, err := host.ParseDestination(good); err != nil || prefix.String() != good {
			t.Errorf("%s: %s, %v", good, prefix, err)
		}
	}
	for _, bad := range []string{"", "169.254.169.254", "10.0.0.1/8", "10.0.0.0/33", "0.0.0.0/0", "::/0", "fe80::/64",
		"::ffff:10.0.0.0/104", "10.0.0.0/8 "} {
		if prefix, err := host.ParseDestination(bad); err == nil {
			t.Errorf("%q: %s", bad, prefix)
		}
	}
}
