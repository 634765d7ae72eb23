package cluster

import (
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	operatorv1alpha1 "github.com/openshift/api/operator/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func clusterPolicy(name string, scopes ...configv1.ImageScope) *configv1.ClusterImagePolicy {
	return &configv1.ClusterImagePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: configv1.ClusterImagePolicySpec{Scopes: scopes}}
}

func imagePolicy(namespace, name string, scopes ...configv1.ImageScope) *configv1.ImagePolicy {
	return &configv1.ImagePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: configv1.ImagePolicySpec{Scopes: scopes}}
}

func TestNotices_SignaturePoliciesReported(t *testing.T) {
	f := newFixture(t)
	f.optional = append(f.optional,
		clusterPolicy("openshift", "quay.io/openshift-release-dev/ocp-release"),
		clusterPolicy("signed", "registry.example.com", "*.example.org", "quay.io/team/app@sha256:0123", "docker.io/library/busybox:latest"),
		clusterPolicy("a-first", "localhost:5000"),
		imagePolicy("shop", "signed", "registry.example.com/shop"),
		imagePolicy("openshift-monitoring", "own", "quay.io/openshift"))
	_, told := f.readValid(t)
	const refused = "images that Linux nodes reject run in pods"
	expectNotices(t, told,
		"ClusterImagePolicy a-first, spec.scopes|"+refused+" on Windows nodes (localhost:5000)",
		"ClusterImagePolicy signed|"+refused+"|(registry.example.com, *.example.org, …@sha256:0123, 1 more)|spec.registrySources.blockedRegistries",
		"ImagePolicy shop/signed|"+refused+" of namespace shop on Windows nodes (registry.example.com/shop)")
}

func TestNotices_ImageContentSourcePolicyReported(t *testing.T) {
	f := newFixture(t)
	mirrors := []operatorv1alpha1.RepositoryDigestMirrors{{Source: "registry.example.com/team", Mirrors: []string{"mirror.example.com/team"}}}
	f.optional = append(f.optional,
		&operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "empty"}},
		&operatorv1alpha1.ImageContentSourcePolicy{ObjectMeta: metav1.ObjectMeta{Name: "mirrors"},
			Spec: operatorv1alpha1.ImageContentSourcePolicySpec{RepositoryDigestMirrors: mirrors}})
	facts, notices := f.readValid(t)
	expectNotices(t, notices, "ImageContentSourcePolicy mirrors, spec.repositoryDigestMirrors|oc adm migrate icsp")
	if len(facts.Registries.Hosts) > 0 {
		t.Errorf("they are used: %+v", facts.Registries.Hosts)
	}
}

func TestNotices_IPsecBetweenPodsReported(t *testing.T) {
	const notice = "Network.operator.openshift.io cluster, spec.defaultNetwork.ovnKubernetesConfig.ipsecConfig|does not encrypt"
	for name, c := range map[string]struct {
		ipsec *operatorv1.IPsecConfig
		want  []string
	}{
		"no configuration":                  {nil, nil},
		"turned off":                        {&operatorv1.IPsecConfig{Mode: operatorv1.IPsecModeDisabled}, nil},
		"between the cluster and its users": {&operatorv1.IPsecConfig{Mode: operatorv1.IPsecModeExternal}, nil},
		"between pods":                      {&operatorv1.IPsecConfig{Mode: operatorv1.IPsecModeFull}, []string{notice}},
		"turned on before there were modes": {&operatorv1.IPsecConfig{}, []string{notice}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.operatorNetwork.Spec.DefaultNetwork.OVNKubernetesConfig.IPsecConfig = c.ipsec
			facts, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
			if !facts.Network.HybridOverlay {
				t.Error("the hybrid overlay was not read")
			}
		})
	}
}

func TestNotices_MTUMigrationReported(t *testing.T) {
	for name, c := range map[string]struct {
		migration *operatorv1.NetworkMigration
		want      []string
	}{
		"no migration":                     {nil, nil},
		"a migration of a former kind":     {&operatorv1.NetworkMigration{NetworkType: "OVNKubernetes"}, nil},
		"a migration of the cluster's MTU": {&operatorv1.NetworkMigration{MTU: &operatorv1.MTUMigration{}}, []string{"Network.operator.openshift.io cluster, spec.migration.mtu|status.clusterNetworkMTU|Drain"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.operatorNetwork.Spec.Migration = c.migration
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}

func TestNotices_LinuxDisruptionPolicyReported(t *testing.T) {
	type policy = operatorv1.NodeDisruptionPolicySpecFile
	actions := func(types ...operatorv1.NodeDisruptionPolicySpecActionType) (list []operatorv1.NodeDisruptionPolicySpecAction) {
		for _, of := range types {
			list = append(list, operatorv1.NodeDisruptionPolicySpecAction{Type: of})
		}
		return list
	}
	const none, drain, reboot, restart = operatorv1.NoneSpecAction, operatorv1.DrainSpecAction, operatorv1.RebootSpecAction, operatorv1.RestartSpecAction
	notice := func(path string) []string {
		return []string{"MachineConfiguration cluster, spec.nodeDisruptionPolicy.files|policy for " + path + ":|drained|WindowsDisruptionPolicy"}
	}
	for name, c := range map[string]struct {
		files []policy
		want  []string
	}{
		"no policy":                                {nil, nil},
		"a policy for files of Linux":              {[]policy{{Path: "/etc/chrony.conf", Actions: actions(none)}, {Path: "/etc/kubernetes/kubelet.conf.d", Actions: actions(none)}}, nil},
		"a policy that drains":                     {[]policy{{Path: kubeletConfigPath, Actions: actions(drain, restart)}}, nil},
		"a policy that restarts nodes":             {[]policy{{Path: kubeletConfigPath, Actions: actions(reboot)}}, nil},
		"a policy without a drain":                 {[]policy{{Path: kubeletConfigPath, Actions: actions(restart)}}, notice(kubeletConfigPath)},
		"a policy for a directory":                 {[]policy{{Path: "/etc/kubernetes/", Actions: actions(none)}}, notice("/etc/kubernetes/")},
		"a policy for the proxy":                   {[]policy{{Path: "/etc/mco/proxy.env", Actions: actions(none)}}, notice("/etc/mco/proxy.env")},
		"one policy for both":                      {[]policy{{Path: "/etc", Actions: actions(none)}}, notice("/etc")},
		"a policy for a directory, and a narrower": {[]policy{{Path: "/etc/kubernetes", Actions: actions(none)}, {Path: kubeletConfigPath, Actions: actions(drain)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.optional = append(f.optional, &operatorv1.MachineConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cluster"},
				Spec: operatorv1.MachineConfigurationSpec{NodeDisruptionPolicy: operatorv1.NodeDisruptionPolicyConfig{Files: c.files}}})
			_, notices := f.readValid(t)
			expectNotices(t, notices, c.want...)
		})
	}
}

func TestNotices_FIPSModeReported(t *testing.T) {
	f := newFixture(t)
	f.rendered.Spec.FIPS = true
	_, notices := f.readValid(t)
	expectNotices(t, notices, "MachineConfig rendered-worker-1, spec.fips|run in FIPS mode, and Windows nodes do not|group policy")
}

func TestClusterDNS_IPv4ServerRequired(t *testing.T) {
	with := func(dns string) *fixture {
		f := newFixture(t)
		f.files[kubeletConfigPath] = file{content: strings.Replace(kubeletConfig, "[172.30.0.10]", dns, 1)}
		return f
	}
	for dns, want := range map[string]string{
		"[172.30.0.10]": "172.30.0.10", `["fd02::a", 172.30.0.10]`: "172.30.0.10", `[172.30.0.10, "fd02::a"]`: "172.30.0.10",
	} {
		facts, notices := with(dns).readValid(t)
		expectNotices(t, notices)
		if got := strings.Join(facts.Kubelet.ClusterDNS, " "); got != want {
			t.Errorf("of %s pods get %q", dns, got)
		}
	}
	for _, dns := range []string{`["fd02::a"]`, `["fd02::a", "fd02::b"]`, `["::ffff:172.30.0.10"]`} {
		_, err := with(dns).read(t)
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(fault.Message, "contains only IPv6 addresses") || !strings.Contains(fault.Message, "could not resolve any names") {
			t.Errorf("of %s: %v", dns, err)
		}
	}
}
