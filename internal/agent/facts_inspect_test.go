package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/agentapi"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestInspect_ChangesNothing(t *testing.T) {
	t.Parallel()
	network := outside{names: map[string][]string{"api-int.lab.example.com": {"10.0.0.2"}}}
	r := newRig(t, func(o *fake.Options) { o.Network = network }).start()
	path := r.uploadAgent()
	before := r.Snapshot()
	line, _ := r.runFrom(path, "inspect", "--api-server", apiServerURL)
	if line.Type != agentapi.TypeResult {
		t.Fatalf("%+v", line)
	}
	facts := line.Result.Facts
	if facts.System.HostName == "" || facts.Features[nodespec.FeatureContainers] != host.FeatureDisabled ||
		facts.APIServer == nil || facts.APIServer.Error != "" {
		t.Errorf("it has found %+v", facts)
	}
	if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
		t.Errorf("the host is another (-before +after):\n%s", diff)
	}
}

func TestInspect_ReportsIfAgentDirectoryIsRestricted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *rig)
		closed bool
	}{
		"as facts has left it": {func(*rig) {}, true},
		"the inbox is gone":    {func(r *rig) { r.must(r.Drive().RemoveAll(nodespec.InboxRoot)) }, false},
		"a user has made C:\\k again": {func(r *rig) {
			r.must(r.Drive().RemoveAll(nodespec.Root))
			r.plantFile(nodespec.InboxRoot+`\notes.txt`, "mine")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			if line := r.runLanded("facts"); line.Result == nil {
				t.Fatalf("%+v", line.Failure)
			}
			c.change(r)
			line := r.runLanded("inspect")
			if line.Result == nil || line.Result.Facts.Closed != c.closed {
				t.Errorf("it says %+v, want %t", line, c.closed)
			}
		})
	}
}

func TestInspect_NeedsNoLock(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	r.writeLock("sshd.exe")
	if line, _ := r.run("inspect"); line.Type != agentapi.TypeResult {
		t.Errorf("%+v", line)
	}
}

func TestCollect_UnjoinedHostReportedAndUnchanged(t *testing.T) {
	t.Parallel()
	r := newRig(t).start()
	path := r.uploadAgent()
	r.must(r.Host().EventLog.Report(t.Context(), host.Event{Source: nodespec.ServiceAgent, Level: host.EventError, ID: 3, Message: "containerd does not start"}))
	r.must(r.Host().EventLog.Report(t.Context(), host.Event{Source: "Some Database", Level: host.EventError, ID: 3, Message: "of no concern"}))
	before := r.Snapshot()
	line, _ := r.runFrom(path, "collect")
	if line.Type != agentapi.TypeResult {
		t.Fatalf("%+v", line)
	}
	facts, found := line.Result.Facts, line.Result.Collected
	if facts.System.HostName == "" || facts.Features[nodespec.FeatureContainers] != host.FeatureDisabled {
		t.Errorf("its facts are %+v", facts)
	}
	if len(found.Services) == 0 || len(found.Events) != 1 || found.Events[0].Log != "Application" || found.Events[0].Message != "containerd does not start" {
		t.Errorf("it has found %+v", found)
	}
	if diff := cmp.Diff(before, r.Snapshot()); diff != "" {
		t.Errorf("the host is another (-before +after):\n%s", diff)
	}
}

func TestCollect_ContinuesAfterFailedQueries(t *testing.T) {
	t.Parallel()
	r := newConfiguredRig(t)
	defer r.OnOperation(func(o fake.Operation) error {
		if o.Interface == "EventLog" || o.Interface == "Features" {
			return errors.New("it does not answer")
		}
		return nil
	})()
	line, _ := r.run("collect")
	if line.Type != agentapi.TypeResult {
		t.Fatalf("%+v", line)
	}
	found := line.Result.Collected
	for _, part := range []string{"events", "facts"} {
		if !strings.Contains(found.Unknown[part], "it does not answer") {
			t.Errorf("of %s it says %q", part, found.Unknown[part])
		}
	}
	if len(found.Services) == 0 || len(found.Networks) == 0 || line.Result.Facts.System.HostName == "" {
		t.Errorf("it has found %+v", line.Result)
	}
}
