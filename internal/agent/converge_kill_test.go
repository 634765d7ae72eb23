package agent_test

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// changing contains the operations that change a machine. Kills between other operations have the same effect
// as a kill before the next of these.
var changing = map[string]bool{
	"Files.Write": true, "Files.Remove": true, "Tree.MakeDirectory": true, "Tree.Symlink": true, "Tree.Rename": true,
	"Services.Configure": true, "Services.Start": true, "Services.Stop": true, "Services.Delete": true,
	"Features.Enable": true, "Features.Disable": true, "System.SetHostName": true, "Power.Reboot": true,
	"Environment.Set": true, "Environment.Unset": true, "Firewall.SetRule": true, "Firewall.DeleteRule": true,
	"EventLog.AddSource": true, "EventLog.RemoveSource": true,
	"Networks.CreateEndpoint": true, "Networks.DeleteEndpoint": true, "Networks.DeleteNetwork": true, "Processes.Kill": true, "Sandboxes.End": true,
	"Antivirus.AddExclusion": true, "Antivirus.RemoveExclusion": true,
	"Roots.Add": true, "Roots.Remove": true, "Routes.Add": true, "Routes.Delete": true, "Logs.Rotate": true,
}

var errKilled = errors.New("killed by the test")

// killer kills the command before its n-th change and records the operation in at.
type killer struct {
	n, seen int
	at      string
}

func (k *killer) registerHook(r *rig) {
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service != "" || !strings.HasSuffix(o.Process.Path, nodespec.AgentProgram) || !changing[o.Interface+"."+o.Method] {
			return nil
		}
		k.seen++
		if k.seen != k.n {
			return nil
		}
		k.at = o.String()
		o.Process.Kill()
		return errKilled
	})
}

// killPoints returns the changes before which a test kills. With -short, used by the race detector, every
// eighth is sufficient: goroutines interact in the same patterns everywhere.
func killPoints(changes int) iter.Seq[int] {
	step := 1
	if testing.Short() {
		step = 8
	}
	return func(yield func(int) bool) {
		for n := 1; n <= changes && yield(n); n += step {
		}
	}
}

// withoutChance removes legitimate differences between two runs: keys, and the agent's own records.
func withoutChance(s fake.Snapshot) fake.Snapshot {
	for path, file := range s.Files {
		switch {
		case nodespec.IsWithin(path, nodespec.AgentRoot), strings.HasSuffix(path, `.INFO.wmco-tmp`): // the service may be writing
			delete(s.Files, path)
			continue
		case strings.HasPrefix(path, pki+`\kubelet-client-2`):
			delete(s.Files, path)
			path = pki + `\kubelet-client-(time).pem`
			file.SHA256, file.Size = "", 0
		case strings.HasSuffix(path, `.INFO`), strings.HasSuffix(path, nodespec.ReleaseManifest):
			file.SHA256, file.Size = "", 0
		}
		if strings.HasPrefix(file.LinkTarget, pki) {
			file.LinkTarget = pki
		}
		s.Files[path] = file
	}
	return s
}

// A test kills the agent at every step boundary of a first configuration. Every run ends configured, and no
// step that must not be repeated is done twice. R-057
func TestApply_ContinuesAfterKill(t *testing.T) {
	t.Parallel()
	reference := newRig(t).start()
	counting := &killer{}
	counting.registerHook(reference)
	reference.configureHost()
	reference.awaitServices()
	want := withoutChance(reference.Snapshot())
	if counting.seen < 60 {
		t.Fatalf("only %d changes: the test does not see the agent", counting.seen)
	}
	for n := range killPoints(counting.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t).start()
			k := &killer{n: n}
			k.registerHook(r)
			r.configureHost()
			r.awaitServices()
			if k.at == "" {
				t.Fatal("nothing was killed: this run has fewer changes")
			}
			t.Log("killed before " + k.at)
			compareSnapshots(t, want, withoutChance(r.Snapshot()))
			if n := r.Journal().Count(fake.KindReboot); n != 1 {
				t.Errorf("%d restarts", n)
			}
			if len(r.requests) != 1 || r.countEntries(fake.KindWrite, "kubelet-client-pending.pem") != 1 {
				t.Errorf("%d keys", r.countEntries(fake.KindWrite, "kubelet-client-pending.pem"))
			}
			for _, service := range r.fullSpec().Services {
				configured, started := r.countEntries(fake.KindService, "configure "+service.Name), r.countEntries(fake.KindService, service.Name+" runs")
				if configured != 1 || started != 1 {
					t.Errorf("service %s was configured %d times and started %d times", service.Name, configured, started)
				}
			}
			if p := r.runPlan(r.fullSpec()); len(p.Steps)+len(p.Needs) != 0 {
				t.Errorf("needs %v, steps\n%s", p.Needs, formatSteps(p))
			}
		})
	}
}

//
func TestRemove_ContinuesAfterKill(t *testing.T) {
	t.Parallel()
	reference := newRig(t, withForeignObjects).start()
	reference.configureHost()
	counting := &killer{}
	counting.registerHook(reference)
	reference.removeNode()
	compareSnapshots(t, reference.before, reference.Snapshot())
	if counting.seen < 20 {
		t.Fatalf("only %d changes: the test does not see the agent", counting.seen)
	}
	for n := range killPoints(counting.seen) {
		t.Run(fmt.Sprintf("before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, withForeignObjects).start()
			r.configureHost()
			k := &killer{n: n}
			k.registerHook(r)
			r.removeNode()
			t.Log("killed before " + k.at)
			compareSnapshots(t, r.before, r.Snapshot())
			if n := r.Journal().Count(fake.KindReboot); n != 2 {
				t.Errorf("%d restarts, one to join and one to leave", n)
			}
		})
	}
}

// A configuration interrupted anywhere can be removed without being completed first. R-064
func TestRemove_RestoresAfterInterruptedConfiguration(t *testing.T) {
	t.Parallel()
	for n := 5; n <= 60; n += 5 {
		t.Run(fmt.Sprintf("killed before change %d", n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, withForeignObjects).start()
			k := &killer{n: n}
			k.registerHook(r)
			r.configureUntil(func() bool { return k.at != "" })
			r.removeNode()
			t.Log("killed before " + k.at)
			compareSnapshots(t, r.before, r.Snapshot())
		})
	}
}

// withForeignObjects changes a host to contain foreign objects at the paths of the node.
func withForeignObjects(o *fake.Options) {
	o.Services = []host.ServiceConfig{
		{
			Name: "kube-proxy", DisplayName: "Somebody's", CommandLine: `C:\Windows\System32\svchost.exe -k proxy`, StartType: host.StartAutomatic,
			ResetPeriod: time.Hour, Recovery: &host.Recovery{
				Actions: []host.RecoveryAction{
					{Kind: host.RecoveryRestart, Delay: time.Minute}, {Kind: host.RecoveryCommand}, {Kind: host.RecoveryReboot, Delay: time.Second},
				},
				Command: `C:\Windows\System32\cmd.exe /c exit`, RebootMessage: "it crashed",
			},
		},
		{Name: "backup", CommandLine: `C:\Windows\System32\svchost.exe -k backup`, StartType: host.StartAutomatic},
	}
}

func compareSnapshots(t *testing.T, want, got fake.Snapshot) {
	t.Helper()
	if reflect.DeepEqual(want, got) {
		return
	}
	for path, file := range want.Files {
		if other, exists := got.Files[path]; !exists {
			t.Errorf("%s is not there", path)
		} else if other != file {
			t.Errorf("%s is %+v, should be %+v", path, other, file)
		}
	}
	for path, file := range got.Files {
		if _, exists := want.Files[path]; !exists {
			t.Errorf("%s should not be there: %+v", path, file)
		}
	}
	want.Files, got.Files = nil, nil
	if !reflect.DeepEqual(want, got) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
