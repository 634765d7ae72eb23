package test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

// Windows would disconnect this host at the first restart, and again when the pod network is created. The SSH
// server was started manually, the SSH rule applies to private networks, and the address is static. R-065
func TestJoin_HostAtRiskOfDisconnectionBecomesNode(t *testing.T) {
	system := fake.WindowsServer2025()
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{
		{System: &system, SSHStart: host.StartManual, StaticAddress: true, HNSStoppedAtBoot: true},
		{Address: testenv.Address(2)},
	}})
	machine := r.Host("instance-1").Machine()
	before := machine.Snapshot()
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	list(t, r, "instance-2")
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, machine.Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// A group policy excludes local firewall rules, and its SSH rule applies to private networks. The pod network is
// public.
func TestJoin_DisconnectingGroupPolicyLeavesHostUnchanged(t *testing.T) {
	policy := fake.GroupPolicy{Void: host.Profiles(), Rules: []host.FirewallRule{
		{Name: "SSH", Protocol: "TCP", LocalPort: 22, Enabled: true, Allow: true, Profiles: host.ProfilePrivate},
	}}
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{GroupPolicy: policy}, {Address: testenv.Address(2)}}})
	h := r.Host("instance-1")
	before := h.Machine().Snapshot()
	run(t, r)
	list(t, r)
	refused := func(i *v1alpha1.WindowsInstance) bool {
		return i != nil && i.Status.Summary == v1alpha1.ReasonFirewallPolicyUnsupported
	}
	if err := r.WaitForInstance(t.Context(), h, "be refused for its group policy", refused); err != nil {
		t.Fatal(err)
	}
	waitUntilReady(t, r, "instance-2")
	if !h.Machine().IsPortAllowed(22) {
		t.Error("the host is cut off")
	}
	list(t, r, "instance-2")
	waitUntilDeleted(t, r, "instance-1")
	if diff := cmp.Diff(before, h.Machine().Snapshot()); diff != "" {
		t.Errorf("the host is not as it was (-before +after):\n%s", diff)
	}
}

// Windows Server 2022 between two updates of 2024 becomes a node, and the instance reports the known fault.
func TestJoin_KnownBuildFaultReportedButNodeReady(t *testing.T) {
	system := fake.WindowsServer2022()
	system.Revision = 2600
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{System: &system}}})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	instance, err := r.Instance(ctx, "instance-1")
	if err != nil {
		t.Fatal(err)
	}
	for _, condition := range instance.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady && !strings.Contains(condition.Message, "build 10.0.20348.2762 (KB5044281) or later fixes this") {
			t.Errorf("Ready says %q", condition.Message)
		}
	}
}

// The administrators of the host have configured a proxy, and the cluster has none. The proxy cannot resolve the
// internal name of the API server.
func TestJoin_HostWithOwnProxyBecomesNode(t *testing.T) {
	const nobody = "http://127.0.0.1:1"
	named := asOpenShift
	named.APIIntURL = "" // No client uses a proxy for a local address: the cluster has the API server's real name.
	r := newInstalledRig(t, testenv.Options{Cluster: parallelClusterWith(t, named), Hosts: []testenv.HostOptions{{
		Environment: map[string]string{"http_proxy": nobody, "Https_Proxy": nobody},
	}}})
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
}
