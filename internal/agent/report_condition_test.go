package agent_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/agent/report"
	"github.com/windows-machine-config/wmco/internal/agent/report/reporttest"
	"github.com/windows-machine-config/wmco/internal/agent/timeouts"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

func TestNodeCondition(t *testing.T) {
	t.Parallel()
	t.Run("says that the host matches its spec, with the kubelet's certificate, and leaves the kubelet's conditions alone", func(t *testing.T) {
		t.Parallel()
		r, n, spec := newPublishingRig(t)
		if _, patches := n.requestCounts(); patches != 1 {
			t.Errorf("%d patches", patches)
		}
		last, _ := n.requestCounts()
		sent := n.requestAt(last - 1)
		leaf := sent.as.Certificate.Leaf
		if sent.method != http.MethodPatch || sent.url != nodeURL+"/status" || string(sent.as.Authorities) != "authorities\n" || leaf == nil || leaf.Subject.CommonName != spec.Identity.CommonName {
			t.Errorf("%s %s, %q, %+v", sent.method, sent.url, sent.as.Authorities, leaf)
		}
		got := n.configCondition()
		if got.Reason != nodespec.ConfigurationInSync || !strings.Contains(got.Message, spec.Digest()) || !strings.Contains(got.Message, "agent 1.0.0") ||
			got.LastTransitionTime.IsZero() || !got.LastTransitionTime.Equal(&got.LastHeartbeatTime) {
			t.Errorf("%+v", got)
		}
		if n.conditionOf(corev1.NodeReady).Status != corev1.ConditionTrue {
			t.Errorf("%+v", n.node.Status.Conditions)
		}
		r.checkQuiet(n)
	})
	t.Run("is written again from time to time, as a sign of life", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		first := n.configCondition()
		r.passUntil("a sign of life", func() bool { return n.configCondition().LastHeartbeatTime.After(first.LastHeartbeatTime.Time) })
		got := n.configCondition()
		if age := got.LastHeartbeatTime.Sub(first.LastHeartbeatTime.Time); age < timeouts.ConditionInterval || age > timeouts.ConditionInterval+timeouts.DriftCheckInterval {
			t.Errorf("it came after %s", age)
		}
		if !got.LastTransitionTime.Equal(&first.LastTransitionTime) || got.Message != first.Message {
			t.Errorf("%+v, before %+v", got, first)
		}
	})
	t.Run("says what was repaired, with its reason, and that the host matches again", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.passUntil("the repair", func() bool { return n.configCondition().Status == corev1.ConditionFalse })
		const repair = "StartService kube-proxy (service kube-proxy does not run)"
		if got := n.configCondition(); got.Reason != nodespec.ConfigurationRepaired || !strings.HasPrefix(got.Message, "Drift was repaired, most recently at ") || !strings.HasSuffix(got.Message, "Z: "+repair+".") {
			t.Errorf("%+v", got)
		}
		r.passUntil("the end", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
		if got := n.configCondition(); !strings.Contains(got.Message, "Last repair ") || !strings.Contains(got.Message, repair) {
			t.Errorf("%+v", got)
		}
		r.checkQuiet(n)
	})
	t.Run("says what cannot be repaired once, and that it is over", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		restore := r.FailServiceStart("kube-proxy", 7)
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		r.passUntil("the trouble", func() bool { return n.configCondition().Reason == nodespec.ConfigurationDrifted })
		if got := n.configCondition(); got.Status != corev1.ConditionFalse || !strings.Contains(got.Message, "StartService kube-proxy") || !strings.Contains(got.Message, "exit code is 7") {
			t.Errorf("%+v", got)
		}
		r.checkQuiet(n)
		restore()
		r.passUntil("the end of the trouble", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
	})
	t.Run("says what is left to the operator", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		r.must(r.Drive().RemoveAll(versions{}.releaseOf("cni").Directory))
		r.passUntil("the condition", func() bool { return n.configCondition().Reason == nodespec.ConfigurationNeedsOperator })
		if got := n.configCondition(); !strings.Contains(got.Message, "left to the operator: bin\\win-overlay.exe of cni, which is not on the host") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("keeps the time of its last transition when the service starts again", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		first := n.configCondition()
		r.restartAgent(func() {})
		r.passUntil("a sign of life", func() bool { _, patches := n.requestCounts(); return patches == 2 })
		if got := n.configCondition(); !got.LastTransitionTime.Equal(&first.LastTransitionTime) || got.Message != first.Message {
			t.Errorf("%+v, before %+v", got, first)
		}
		r.checkQuiet(n)
	})
	t.Run("that the operator has set to Unknown says what is when the agent is back, and since then only", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		first := n.configCondition()
		n.setConditionUnknown()
		r.passUntil("a sign of life", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
		if got := n.configCondition(); got.Reason != nodespec.ConfigurationInSync || !got.LastTransitionTime.After(first.LastTransitionTime.Time) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("that changes all the time is written slower and slower, and says what is at the end", func(t *testing.T) {
		t.Parallel()
		r, n, _ := newPublishingRig(t)
		begin := r.ticking.Now()
		for r.ticking.Since(begin) < time.Hour { // a service that repeatedly fails and recovers
			restore := r.FailServiceStart("kube-proxy", 7)
			r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
			r.advanceTime(timeouts.DriftCheckInterval)
			restore()
			r.advanceTime(timeouts.DriftCheckInterval)
		}
		if _, patches := n.requestCounts(); patches > 17 {
			t.Errorf("%d patches in an hour", patches)
		}
		r.passUntil("the state at the end", func() bool { return n.configCondition().Status == corev1.ConditionTrue })
	})
}

// While another program stops a service after each start by the agent, the agent reports each repair: the
// operator's alert counts the reports.
func TestNodeCondition_ReportsRepeatedRepairs(t *testing.T) {
	t.Parallel()
	r, n, _ := newPublishingRig(t)
	messages := map[string]bool{}
	for begin := r.ticking.Now(); r.ticking.Since(begin) < time.Hour; r.advanceTime(timeouts.DriftCheckInterval) {
		r.must(r.Host().Services.Stop(r.ctx, "kube-proxy"))
		if got := n.configCondition(); got.Reason == nodespec.ConfigurationRepaired {
			messages[got.Message] = true
		}
	}
	if len(messages) < 5 {
		t.Errorf("within an hour %d repairs are reported", len(messages))
	}
	if _, patches := n.requestCounts(); patches > 17 {
		t.Errorf("%d patches in an hour", patches)
	}
}

// Neither the content of a secret file nor a service's environment is in the condition. Rule 9.
func TestNodeCondition_HasNoSecrets(t *testing.T) {
	t.Parallel()
	r, n, spec := newPublishingRig(t)
	const path = `C:\k\config.json`
	spec.Services = slices.Clone(spec.Services)
	for i := range spec.Services {
		if spec.Services[i].Name == "kube-proxy" {
			spec.Services[i].Environment = []string{"HTTPS_PROXY=http://user:canary@proxy.example:3128"}
		}
	}
	r.must(r.Drive().WriteFile(nodespec.SpecPath, mustEncode(t, spec)))
	r.must(r.Drive().WriteFile(path, []byte("former canary\n")))
	messages := func() string {
		var all strings.Builder
		requests, _ := n.requestCounts()
		for i := range requests {
			all.Write(n.requestAt(i).body)
		}
		return all.String()
	}
	r.passUntil("the repair", func() bool {
		return strings.Contains(messages(), `WriteFile C:\\k\\config.json`) && strings.Contains(messages(), "ConfigureService kube-proxy")
	})
	r.OnOperation(func(o fake.Operation) error {
		if o.Process.Service == nodespec.ServiceAgent && o.Interface == "Files" && o.Method == "Write" && o.Target == path {
			return errors.New("the disk does not let it")
		}
		return nil
	})
	r.must(r.Drive().WriteFile(path, []byte("another canary\n")))
	r.passUntil("the failure", func() bool { return n.configCondition().Reason == nodespec.ConfigurationDrifted })
	key, err := r.Drive().ReadFile(spec.Identity.Path(nodespec.CurrentCertificate))
	r.must(err)
	if all := messages(); strings.Contains(all, "canary") || strings.Contains(all, "PRIVATE KEY") || strings.Contains(all, string(key)) {
		t.Errorf("published: %s", all)
	}
}

// End to end: an API server accepts the kubelet's certificate only if it trusts the certificate's signer.
func TestNodeCondition_SentOverHTTPS(t *testing.T) {
	t.Parallel()
	server, requests := reporttest.NewServer(t, authority(), func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	r := newNodeRig(t, func(r *rig) { r.api, r.validity = report.HTTPS{}, 48*time.Hour })
	spec := withCondition(r.fullSpec())
	spec.Reporting.URL = server.URL + "/api/v1/nodes/node-a"
	spec.Files[len(spec.Files)-1].Content = string(reporttest.AuthoritiesOf(server))
	r.mustResult(r.apply(spec))
	r.passUntil("a condition", func() bool { return len(requests()) > 1 })
	got := requests()[1]
	if got.Method != http.MethodPatch || got.Path != "/api/v1/nodes/node-a/status" || got.Kind != "application/strategic-merge-patch+json" ||
		got.User != spec.Identity.CommonName || got.Group != spec.Identity.Organization || !strings.Contains(got.Body, `"type":"WindowsConfiguration","status":"True"`) {
		t.Errorf("%+v", got)
	}
}
