package agent_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/verb"
)

const (
	reportURL = "https://api-int.example.com:6443/apis/windowsmachineconfig.openshift.io/v1alpha1/namespaces/wmco/windowsnodereports/node-a/status"
	caFile    = `C:\k\bootstrap-ca.crt`
)

// reporterIdentity is the agent's.
var reporterIdentity = nodespec.Identity{
	Name: nodespec.ServiceAgent, Directory: `C:\k\agent\pki`,
	CommonName: "windowsmachineconfig.openshift.io:agent:node-a", Organization: "windowsmachineconfig.openshift.io:agents",
}

// withReport is the spec of a node that reports.
func withReport(spec nodespec.NodeSpec) nodespec.NodeSpec {
	spec.Identities = append(slices.Clone(spec.Identities), reporterIdentity)
	spec.Reporting = &nodespec.Reporting{URL: reportURL, CAFile: caFile, Identity: reporterIdentity.Name}
	spec.Files = append(slices.Clone(spec.Files), nodespec.File{Path: caFile, Content: "authorities\n"})
	spec.Directories = append(slices.Clone(spec.Directories),
		nodespec.Directory{Path: `C:\k\agent`, Access: host.AccessAdministrators},
		nodespec.Directory{Path: reporterIdentity.Directory, Access: host.AccessAdministrators})
	return spec
}

// desk takes reports as an API server does.
type desk struct {
	mu       sync.Mutex
	busy     int
	attempts []agent.Patch
	taken    []v1alpha1.WindowsNodeReportStatus
	// answer is what becomes of an attempt; nil takes it.
	answer func(ctx context.Context) (int, error)
}

func (d *desk) Patch(ctx context.Context, patch agent.Patch) (int, []byte, error) {
	d.mu.Lock()
	d.attempts = append(d.attempts, patch)
	d.busy++
	answer := d.answer
	d.mu.Unlock()
	defer func() { d.mu.Lock(); defer d.mu.Unlock(); d.busy-- }()
	if answer != nil {
		if code, err := answer(ctx); err != nil || code != http.StatusOK {
			return code, []byte(`{"kind":"Status","message":"the desk is closed"}`), err
		}
	}
	var report v1alpha1.WindowsNodeReport
	if err := yaml.UnmarshalStrict(patch.Body, &report); err != nil {
		return http.StatusUnprocessableEntity, nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.taken = append(d.taken, report.Status)
	return http.StatusOK, []byte("{}"), nil
}

func (d *desk) set(answer func(ctx context.Context) (int, error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answer = answer
}

func (d *desk) counts() (attempts, taken int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.attempts), len(d.taken)
}

func (d *desk) isBusy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.busy > 0
}

// attempt is one that was made.
func (d *desk) attempt(i int) agent.Patch {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.attempts[i]
}

// last is the report that was taken last.
func (d *desk) last() v1alpha1.WindowsNodeReportStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.taken) == 0 {
		return v1alpha1.WindowsNodeReportStatus{}
	}
	return d.taken[len(d.taken)-1]
}

// asks is a node whose agent is to report and waits for its certificate.
func asks(t *testing.T) (*rig, *desk, nodespec.NodeSpec, string) {
	t.Helper()
	d := &desk{}
	r := node(t, func(r *rig) { r.reports, r.validity = d, 30*24*time.Hour })
	spec := withReport(r.full())
	result, _ := r.result(r.apply(spec))
	if !slices.Equal(result.Plan.Needs, []nodespec.Need{nodespec.NeedCertificateOf(reporterIdentity.Name)}) {
		t.Fatalf("needs %q", result.Plan.Needs)
	}
	return r, d, spec, result.Facts.Identities[reporterIdentity.Name].Request
}

// reports is a node whose agent has made its first report.
func reports(t *testing.T) (*rig, *desk, nodespec.NodeSpec) {
	t.Helper()
	r, d, spec, request := asks(t)
	r.certify(spec, request)
	r.passUntil("a first report", func() bool { return d.last().State == v1alpha1.NodeReportInSync && r.onRecord(d) })
	return r, d, spec
}

// certify brings the agent its certificate, as the operator does.
func (r *rig) certify(spec nodespec.NodeSpec, request string) {
	r.Helper()
	r.validity = 48 * time.Hour
	line, _ := r.apply(spec.WithCertificate(reporterIdentity.Name, r.sign(request)))
	if line.Type != verb.TypeResult || len(line.Result.Plan.Needs) > 0 {
		r.Fatalf("%s %v", line.Type, line.Failure)
	}
}

// passAnswered lets time pass when the attempt that is under way has its answer, which takes the time of the tests and not of the host.
func (r *rig) passAnswered(by time.Duration) {
	r.Helper()
	if d, is := r.reports.(*desk); is {
		for d.isBusy() && r.ctx.Err() == nil {
			runtime.Gosched()
		}
	}
	r.pass(by)
}

// passUntil lets time pass for the agent's service until the condition holds.
func (r *rig) passUntil(what string, condition func() bool) {
	r.Helper()
	for !condition() {
		if r.ctx.Err() != nil {
			r.Fatalf("waited in vain for %s; the log: %s", what, r.log())
		}
		r.passAnswered(agent.DriftPoll)
	}
}

// onRecord tells whether the host knows what the desk has taken last.
func (r *rig) onRecord(d *desk) bool {
	data, err := r.Drive().ReadFile(nodespec.ReportPath)
	var record struct {
		Report v1alpha1.WindowsNodeReportStatus
	}
	if err != nil || json.Unmarshal(data, &record) != nil {
		return false
	}
	want, got := d.last(), record.Report
	return got.Time.Time.Equal(want.Time.Time) && got.State == want.State
}

// quiet lets time pass in which no report is to be sent.
func (r *rig) quiet(d *desk) {
	r.Helper()
	before, _ := d.counts()
	for range 5 {
		r.passAnswered(agent.DriftCheck)
	}
	if after, _ := d.counts(); after != before {
		r.Errorf("%d reports more: %+v", after-before, d.last())
	}
}

// bootedAt is a system whose last boot was then, by the clock of the agent's service.
type bootedAt struct {
	host.System
	at time.Time
}

func (s bootedAt) Info(ctx context.Context) (host.SystemInfo, error) {
	info, err := s.System.Info(ctx)
	info.BootTime = s.at
	return info, err
}

// ahead is the time of later.
type ahead struct {
	clock.RealClock
	by time.Duration
}

func (a ahead) Now() time.Time { return a.RealClock.Now().Add(a.by) }

func (a ahead) Since(t time.Time) time.Duration { return a.Now().Sub(t) }

// pemBody is a certificate as it stands in PEM.
func pemBody(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
