package plan_test

import (
	"slices"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// A running kubelet with a temporarily unusable certificate is not restarted, and its configuration file is not
// changed. If the certificate becomes usable again without a new one, the next plan restarts the kubelet with the
// new file.
func TestMake_UnrestartableServiceKeepsFiles(t *testing.T) {
	const path = `C:\k\kubelet.conf`
	for name, c := range map[string]struct{ begin, end func(*model) }{
		"the clock of the host is ahead for a while": {
			func(m *model) { m.Time = now.Add(2 * time.Hour) },
			func(m *model) { m.Time = now },
		},
		"the certificate cannot be read for a while": {
			func(m *model) { m.unread, m.Identity.Current = m.Identity.Current, nil },
			func(m *model) { m.Identity.Current = m.unread },
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newModel(), smallSpec()
			convergeModel(t, m, spec, -1)
			spec.Files[0].Content = "kind: KubeletConfiguration\nmaxPods: 100\n"
			c.begin(m)
			first := plan.Make(m.Facts, spec)
			if written := slices.Contains(namesOfSteps(first.Steps), "WriteFile "+path); written {
				t.Errorf("the file is written, and the kubelet continues without it: %v", namesOfSteps(first.Steps))
			}
			for _, step := range first.Steps {
				m.applyStep(step)
			}
			if m.Services["kubelet"].RunningCommandLine == "" {
				t.Error("the kubelet was stopped")
			}
			c.end(m)
			next := namesOfSteps(plan.Make(m.Facts, spec).Steps)
			for _, step := range []string{"StopService kubelet", "WriteFile " + path, "StartService kubelet"} {
				if !slices.Contains(next, step) {
					t.Errorf("%v lacks %s", next, step)
				}
			}
		})
	}
}

// The access of a file is corrected immediately, even while its service cannot be restarted.
func TestMake_FileAccessCorrectedWithoutRestart(t *testing.T) {
	const path = `C:\k\kubelet.conf`
	m, spec := newModel(), smallSpec()
	convergeModel(t, m, spec, -1)
	fact := m.Files[path]
	fact.Access = host.AccessAdministrators
	m.Files[path] = fact
	m.Time = now.Add(2 * time.Hour)
	if steps := namesOfSteps(plan.Make(m.Facts, spec).Steps); !slices.Contains(steps, "WriteFile "+path) {
		t.Errorf("%v", steps)
	}
}
