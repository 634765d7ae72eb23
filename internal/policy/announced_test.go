package policy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestSixteenHostKeysMayBeAnnouncedAndNoMore(t *testing.T) {
	var fingerprints []string
	for i := range mostFingerprints + 1 {
		fingerprints = append(fingerprints, "SHA256:"+fmt.Sprintf("%043d", i))
	}
	if got, err := ExpectedHostKeys(strings.Join(fingerprints[:16], ",")); err != nil || len(got) != 16 {
		t.Errorf("sixteen: %d, %v", len(got), err)
	}
	if got, err := ExpectedHostKeys(strings.Join(fingerprints, ",")); err == nil || got != nil {
		t.Errorf("seventeen: %d, %v", len(got), err)
	}
}

func TestAnAPIServerWithANameOfItsOwnIsNamed(t *testing.T) {
	cluster := nodespec.Cluster{APIServerInternalURL: "https://kube.example.com:6443"}
	if !NamesAPIServer("KUBE.example.com", cluster) || NamesAPIServer("api.example.com", cluster) {
		t.Error("it is taken for another")
	}
}
