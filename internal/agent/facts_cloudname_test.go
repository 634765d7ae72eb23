package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

//
func TestFacts_ReportCloudNameFromMetadata(t *testing.T) {
	t.Parallel()
	onAWS := func(o *fake.Options) { o.Metadata = map[string]string{"AWS": "ip-10-0-0-4.ec2.internal"} }
	t.Run("and its answer is reported", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, onAWS).start()
		line, _ := r.run("facts", "--platform", "AWS")
		if name := line.Result.Facts.CloudName; name == nil || name.Name != "ip-10-0-0-4.ec2.internal" || name.Platform != "AWS" || name.Error != "" {
			t.Errorf("%+v", name)
		}
	})
	t.Run("but not where the operator does not want it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, onAWS).start()
		if line, _ := r.run("facts"); line.Result.Facts.CloudName != nil {
			t.Errorf("%+v", line.Result.Facts.CloudName)
		}
	})
	t.Run("and the rest is reported although there is none", func(t *testing.T) {
		t.Parallel()
		r := newRig(t).start()
		line, _ := r.run("facts", "--platform", "GCP")
		name := line.Result.Facts.CloudName
		if name == nil || name.Name != "" || !strings.Contains(name.Error, "no metadata service of GCP") || line.Result.Facts.System.HostName == "" {
			t.Errorf("%+v", name)
		}
	})
	t.Run("and the rest is reported although it refuses", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, onAWS).start()
		r.overrideHost(func(h *host.Host) { h.Metadata = deaf{} })
		line, _ := r.run("facts", "--platform", "AWS")
		if name := line.Result.Facts.CloudName; name == nil || name.Name != "" || !strings.Contains(name.Error, "401") {
			t.Errorf("%+v", name)
		}
	})
}

// deaf is a metadata service that refuses.
type deaf struct{}

func (deaf) HostName(context.Context, string) (string, error) {
	return "", errors.New("it answers 401 Unauthorized")
}

// Input sent after the facts may contain secrets.
func TestFacts_RestrictInboxToAdministrators(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	r.uploadAgent()
	if info, err := r.Drive().Stat(nodespec.InboxRoot); err != nil || info.Access == host.AccessAdministrators {
		t.Fatalf("SFTP makes folders for administrators only: %s %v", info.Access, err)
	}
	r.run("facts")
	for _, dir := range []string{nodespec.AgentRoot, nodespec.InboxRoot} {
		if info, err := r.Drive().Stat(dir); err != nil || info.Access != host.AccessAdministrators {
			t.Errorf("%s may be used by %s (%v)", dir, info.Access, err)
		}
	}
	r.must(r.Drive().RemoveAll(nodespec.InboxRoot))
	if line, _ := r.run("facts"); line.Result == nil {
		t.Errorf("without an inbox there are no facts: %v", line.Failure)
	}
}
