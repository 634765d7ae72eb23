package nodespec

import (
	"slices"
	"strings"
	"testing"
)

func configurationOf(t *testing.T, in Inputs) string {
	t.Helper()
	configuration, err := Configuration(in)
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

func TestConfiguration_SameForAllHosts(t *testing.T) {
	one := configurationOf(t, testInputs())
	other := testInputs()
	other.Instance = Instance{Name: "winworker-1", NodeName: "winworker-1", HostName: "winworker-1", NodeIP: "10.1.42.77",
		Registration: "5d8ac1f0"}
	other.PodSubnet = "10.132.7.0/24"
	if got := configurationOf(t, other); got != one {
		t.Errorf("two hosts of a cluster have\n%s and\n%s", one, got)
	}
	for _, service := range []string{"containerd", ServiceKubelet, ServiceHybridOverlay, ServiceKubeProxy} {
		if !strings.Contains(one, service+"=") {
			t.Errorf("service %s, whose restart pods feel, is not in %s", service, one)
		}
	}
}

func TestConfiguration_ChangesWithDisruptiveSettings(t *testing.T) {
	before := configurationOf(t, testInputs())
	for name, c := range map[string]struct {
		change func(*Inputs)
		want   []string
	}{
		"a setting of the kubelets": {func(in *Inputs) { in.Cluster.Kubelet.Settings = `{"maxPods":120}` },
			[]string{ServiceKubelet}},
		"the proxy, of which the kubelet and the container runtime have an environment": {
			func(in *Inputs) { in.Cluster.Proxy = Proxy{HTTPS: "https://proxy.example.com:3129"} },
			[]string{"containerd", ServiceKubelet}},
		"the port of the pods' network": {func(in *Inputs) { port := int32(9898); in.Cluster.Network.VXLANPort = &port },
			[]string{ServiceHybridOverlay}},
		"the authority of the API server": {
			func(in *Inputs) { in.Cluster.APIServerCA = strings.Replace(in.Cluster.APIServerCA, "QVBJ", "YXBp", 1) },
			[]string{ServiceKubelet, ServiceHybridOverlay, ServiceKubeProxy}},
		"the authority of the kubelets' clients, which they read again by themselves": {
			func(in *Inputs) { in.Cluster.KubeletClientCA = in.Cluster.APIServerCA }, nil},
		"an authority that the whole host trusts": {
			func(in *Inputs) { in.Cluster.TrustedCAs = []string{testCertificate} }, nil},
		"the version of the operator alone": {func(in *Inputs) { in.OperatorVersion = "1.2.4" }, nil},
		"nothing":                           {func(*Inputs) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := testInputs()
			c.change(&in)
			after := configurationOf(t, in)
			if got := ChangedServices(before, after); !slices.Equal(got, c.want) || (before == after) != (c.want == nil) {
				t.Errorf("changed are %q and not %q:\n%s\n%s", got, c.want, before, after)
			}
		})
	}
	if ChangedServices("", before) != nil || ChangedServices(before, "") != nil {
		t.Error("services changed of which nothing is known")
	}
}

func TestConfiguration_ErrorWithoutNodeSpec(t *testing.T) {
	in := testInputs()
	in.Payload = nil
	if configuration, err := Configuration(in); err == nil {
		t.Errorf("it is %q", configuration)
	}
}
