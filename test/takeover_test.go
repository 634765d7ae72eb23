package test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/testenv"
)

//
func TestStoryAHostOfTheTimeBeforeWICDBecomesANodeByItself(t *testing.T) {
	r := newInstalledRig(t, testenv.Options{Hosts: []testenv.HostOptions{{
		Name: "instance-1", Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled},
	}, {Name: "instance-2"}}})
	m := r.Host("instance-1").Machine()
	seedHost(t, r, "instance-1", testenv.LegacyOptions{Kind: testenv.LegacyDocker, WithoutNode: true})
	docker, _ := m.Service("docker")
	run(t, r)
	list(t, r)
	waitUntilReady(t, r)
	was := getNode(t, r, "instance-1")
	fresh := getNode(t, r, "instance-2")

	t.Run("its node is as that of a new host", func(t *testing.T) {
		for _, n := range []*corev1.Node{was, fresh} {
			for label, want := range map[string]string{
				"node.openshift.io/os_id": "Windows", "node-role.kubernetes.io/worker": "", "windowsmachineconfig.openshift.io/byoh": "true", corev1.LabelOSStable: "windows",
			} {
				if got, ok := n.Labels[label]; !ok || got != want {
					t.Errorf("%s: label %s is %q (there: %t), want %q", n.Name, label, got, ok, want)
				}
			}
			if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
				return taint.Key == "os" && taint.Value == "Windows" && taint.Effect == corev1.TaintEffectNoSchedule
			}) {
				t.Errorf("%s: taints %v", n.Name, n.Spec.Taints)
			}
		}
		if a, b := slices.Sorted(maps.Keys(was.Labels)), slices.Sorted(maps.Keys(fresh.Labels)); !slices.Equal(a, b) {
			t.Errorf("labels %v, those of a new host are %v", a, b)
		}
		if was.Status.NodeInfo.ContainerRuntimeVersion != fresh.Status.NodeInfo.ContainerRuntimeVersion {
			t.Errorf("its runtime is %s", was.Status.NodeInfo.ContainerRuntimeVersion)
		}
	})
	t.Run("its services have the names that they had, and everything is as on a new host", func(t *testing.T) {
		want := r.Host("instance-2").Machine()
		for _, name := range []string{"kubelet", "hybrid-overlay-node", "kube-proxy", "containerd", "windows-instance-config-daemon"} {
			got, expected := serviceOf(t, m, name), serviceOf(t, want, name)
			got.CommandLine = strings.ReplaceAll(strings.ReplaceAll(got.CommandLine, "instance-1", "instance-2"), testenv.Address(1), testenv.Address(2))
			if got.CommandLine != expected.CommandLine || !slices.Equal(got.Dependencies, expected.Dependencies) || got.Description != expected.Description {
				t.Errorf("%s is\n%+v, want\n%+v", name, got, expected)
			}
		}
	})
	t.Run("its programs have the paths that they had", func(t *testing.T) {
		for _, path := range []string{`C:\k\kubelet.exe`, `C:\k\hybrid-overlay-node.exe`, `C:\k\kube-proxy.exe`, `C:\k\cni\win-overlay.exe`} {
			info, err := m.Host().Files.Stat(t.Context(), path)
			if err != nil || info.LinkTarget == "" {
				t.Errorf("%s is %+v, %v", path, info, err)
			}
		}
	})
	t.Run("Docker was left alone, and the host was not restarted", func(t *testing.T) {
		now, _ := m.Service("docker")
		if now.State != host.ServiceRunning || now.PID != docker.PID || now.CommandLine != docker.CommandLine {
			t.Errorf("%+v", now)
		}
		if n := m.Journal().Count(fake.KindReboot); n != 0 {
			t.Errorf("%d restarts", n)
		}
	})
	t.Run("it can be removed, and nothing of a node is left", func(t *testing.T) {
		list(t, r, "instance-2")
		waitUntilDeleted(t, r, "instance-1")
		for _, name := range []string{"kubelet", "hybrid-overlay-node", "kube-proxy"} {
			if service, exists := m.Service(name); exists {
				t.Errorf("service %s is left: %+v", name, service)
			}
		}
		if now, _ := m.Service("docker"); now.PID != docker.PID {
			t.Errorf("Docker is %+v", now)
		}
	})
}

func serviceOf(t *testing.T, m *fake.Machine, name string) host.Service {
	t.Helper()
	service, exists := m.Service(name)
	if !exists || service.State != host.ServiceRunning {
		t.Fatalf("service %s of %s is %+v (there: %t)", name, m.Name(), service, exists)
	}
	return service
}
