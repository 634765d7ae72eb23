package agent_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/agent"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestNodeReport(t *testing.T) {
	t.Parallel()
	t.Run("a node tells once that it is what it should be, and is silent from then on", func(t *testing.T) { // rule 8
		t.Parallel()
		r, d, spec := reports(t)
		if attempts, _ := d.counts(); attempts != 1 {
			t.Errorf("%d attempts", attempts)
		}
		first := d.attempt(0)
		if leaf := first.Certificate.Certificate; first.URL != reportURL || string(first.Authorities) != "authorities\n" || len(leaf) != 1 {
			t.Errorf("%s, %q, %d certificates", first.URL, first.Authorities, len(leaf))
		}
		if got := d.last(); got.SpecDigest != spec.Digest() || got.AgentVersion != "1.0.0" || got.Message != "" || len(got.Drift) != 0 {
			t.Errorf("%+v", got)
		}
		r.quiet(d)
	})
	t.Run("what was repaired is told, with its reason", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.passUntil("the repair", func() bool { return len(d.last().Drift) > 0 })
		got := d.last()
		if drift := got.Drift[0]; drift.Step != "StartService kube-proxy" || drift.Reason != "service kube-proxy does not run" || !drift.Repaired || got.State != v1alpha1.NodeReportInSync {
			t.Errorf("%+v", got)
		}
		r.quiet(d)
	})
	t.Run("what cannot be repaired is told once, and that it is over", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		mend := r.ServiceFailsToStart("kube-proxy", 7)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.passUntil("the trouble", func() bool { return d.last().State == v1alpha1.NodeReportDrifted })
		if got := d.last(); !strings.Contains(got.Message, "exit code is 7") || got.Drift[0].Repaired || got.Drift[0].Step != "StartService kube-proxy" {
			t.Errorf("%+v", got)
		}
		r.passUntil("the record", func() bool { return r.onRecord(d) })
		r.quiet(d)
		mend()
		r.passUntil("the end of the trouble", func() bool { return d.last().State == v1alpha1.NodeReportInSync })
		if got := d.last(); got.Message != "" || !got.Drift[0].Repaired {
			t.Errorf("%+v", got)
		}
	})
	t.Run("what is left to the operator is told", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		r.must(r.Drive().RemoveAll(versions{}.release("cni").Directory))
		r.passUntil("the report", func() bool { return d.last().State == v1alpha1.NodeReportDrifted })
		if got := d.last(); !strings.Contains(got.Message, "left to the operator: bin\\win-overlay.exe of cni, which is not on the host") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a service that starts again has no news", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.passUntil("the repair", func() bool { return len(d.last().Drift) > 0 && r.onRecord(d) })
		r.restartAgent(func() {})
		r.quiet(d)
	})
	t.Run("nor has one that starts with the host", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		at := r.ticking.Now()
		r.bend(func(h *host.Host) { h.System = bootedAt{h.System, at} })
		n, boot := r.count("ready", nodespec.ServiceAgent), r.BootID()
		r.must(r.Host().Power.Reboot(r.ctx, "test"))
		r.awaitBoot(boot)
		r.must(r.WaitFor(r.ctx, func(*fake.Machine) bool { return r.count("ready", nodespec.ServiceAgent) > n }))
		r.quiet(d)
	})
	t.Run("a service that does not know what it has told tells it", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		r.restartAgent(func() { r.must(r.Drive().WriteFile(nodespec.ReportPath, []byte("{"))) })
		r.passUntil("a report", func() bool { _, taken := d.counts(); return taken == 2 })
		r.passUntil("the record", func() bool { return r.onRecord(d) })
		r.quiet(d)
	})
	t.Run("it tells the same again with each new certificate, for the report may be lost meanwhile", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		line, _ := r.run("renew", "--identity", reporterIdentity.Name)
		certificate := r.sign(line.Result.Facts.Identities[reporterIdentity.Name].Request)
		r.result(r.run("renew", "--identity", reporterIdentity.Name, "--identity-certificate", reporterIdentity.Name+":"+word(certificate)))
		r.passUntil("a report", func() bool { _, taken := d.counts(); return taken == 2 })
		if got := d.last(); got.State != v1alpha1.NodeReportInSync || len(got.Drift) != 0 {
			t.Errorf("%+v", got)
		}
		r.passUntil("the record", func() bool { return r.onRecord(d) })
		r.restartAgent(func() {})
		r.quiet(d)
	})
	t.Run("reports that follow each other come slower and slower, and the last one says all", func(t *testing.T) {
		t.Parallel()
		r, d, _ := reports(t)
		begin := r.ticking.Now()
		for r.ticking.Since(begin) < time.Hour { // a service that fails and is mended again, all the time
			mend := r.ServiceFailsToStart("kube-proxy", 7)
			r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
			r.pass(agent.DriftCheck)
			mend()
			r.pass(agent.DriftCheck)
		}
		if _, taken := d.counts(); taken > 14 {
			t.Errorf("%d reports in an hour", taken)
		}
		r.passUntil("the state at the end", func() bool { return d.last().State == v1alpha1.NodeReportInSync && d.last().Drift[0].Repaired })
	})
}

// Neither the content of a secret file nor a service's environment is in what a node reports. Rule 9.
func TestNodeReportHasNoSecrets(t *testing.T) {
	t.Parallel()
	r, d, spec := reports(t)
	const path = `C:\k\config.json`
	spec.Services = slices.Clone(spec.Services)
	for i := range spec.Services {
		if spec.Services[i].Name == "kube-proxy" {
			spec.Services[i].Environment = []string{"HTTPS_PROXY=http://user:canary@proxy.example:3128"}
		}
	}
	r.must(r.Drive().WriteFile(nodespec.SpecPath, mustEncode(t, spec)))
	r.must(r.Drive().WriteFile(path, []byte("former canary\n")))
	r.passUntil("the repair", func() bool {
		drift := d.last().Drift
		return slices.ContainsFunc(drift, func(n v1alpha1.NodeDrift) bool { return n.Step == "WriteFile "+path }) &&
			slices.ContainsFunc(drift, func(n v1alpha1.NodeDrift) bool { return n.Step == "ConfigureService kube-proxy" })
	})
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Write" && o.Target == path {
			return errors.New("the disk does not let it")
		}
		return nil
	})
	r.must(r.Drive().WriteFile(path, []byte("another canary\n")))
	r.passUntil("the failure", func() bool { return d.last().State == v1alpha1.NodeReportDrifted })
	key, err := r.Drive().ReadFile(reporterIdentity.Path(nodespec.CurrentCertificate))
	r.must(err)
	attempts, _ := d.counts()
	for i := range attempts {
		if body := string(d.attempt(i).Body); strings.Contains(body, "canary") || strings.Contains(body, "PRIVATE KEY") || strings.Contains(body, string(key)) {
			t.Errorf("told: %s", body)
		}
	}
	record, err := r.Drive().Stat(nodespec.ReportPath)
	if err != nil || record.Access != host.AccessAdministrators {
		t.Errorf("%s may be read by %s (%v)", nodespec.ReportPath, record.Access, err)
	}
}

// The whole way: the certificate that the operator has brought opens the door of an API server that trusts its signer, and no other's.
func TestNodeReportOverHTTPS(t *testing.T) {
	t.Parallel()
	server, requests := newAPIServer(t, nil)
	r := node(t, func(r *rig) { r.reports, r.validity = agent.HTTPS{}, 48*time.Hour })
	spec := withReport(r.full())
	spec.Reporting.URL = server.URL + "/apis/windowsmachineconfig.openshift.io/v1alpha1/namespaces/wmco/windowsnodereports/node-a/status"
	spec.Files[len(spec.Files)-1].Content = string(authoritiesOf(server))
	result, _ := r.result(r.apply(spec))
	r.certify(spec, result.Facts.Identities[reporterIdentity.Name].Request)
	r.passUntil("a report", func() bool { return len(requests()) > 0 })
	got := requests()[0]
	if got.method != http.MethodPatch || !strings.HasSuffix(got.path, "/windowsnodereports/node-a/status") || got.kind != "application/merge-patch+json" ||
		got.user != reporterIdentity.CommonName || got.group != reporterIdentity.Organization {
		t.Errorf("%+v", got)
	}
	var report v1alpha1.WindowsNodeReport
	if err := yaml.UnmarshalStrict([]byte(got.body), &report); err != nil || report.Status.State != v1alpha1.NodeReportInSync {
		t.Errorf("%s (%v)", got.body, err)
	}
}
