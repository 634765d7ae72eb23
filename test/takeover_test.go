package test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/host/fake"
	"github.com/windows-machine-config/wmco/lab/rig"
)

// What the operator of the time before WICD left on a host: the bootstrapper WMCB made the kubelet's service and the operator the
// others, all with programs directly in C:\k; pods ran in Docker.
var (
	bootstrapped = []host.ServiceConfig{
		{Name: "docker", DisplayName: "Docker Engine", CommandLine: `"C:\Program Files\Docker\dockerd.exe" --run-service`, StartType: host.StartAutomatic},
		{Name: "kubelet", Description: "OpenShift Kubelet", StartType: host.StartAutomatic, Dependencies: []string{"docker"},
			CommandLine: `C:\k\kubelet.exe --config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig ` +
				`--cert-dir=c:\var\lib\kubelet\pki\ --windows-service --logtostderr=false --log-file=C:\var\log\kubelet\kubelet.log ` +
				`--register-with-taints=os=Windows:NoSchedule --node-labels=node.openshift.io/os_id=Windows --container-runtime=docker ` +
				`--resolv-conf= --v=3`},
		{Name: "hybrid-overlay-node", StartType: host.StartAutomatic, Dependencies: []string{"kubelet"},
			CommandLine: `C:\k\hybrid-overlay-node.exe --node instance-1 --k8s-kubeconfig C:\k\kubeconfig --windows-service ` +
				`--logfile C:\var\log\hybrid-overlay\hybrid-overlay.log`},
		{Name: "kube-proxy", StartType: host.StartAutomatic, Dependencies: []string{"hybrid-overlay-node"},
			CommandLine: `C:\k\kube-proxy.exe --windows-service --v=4 --proxy-mode=kernelspace --feature-gates=WinOverlay=true ` +
				`--hostname-override=instance-1 --kubeconfig=C:\k\kubeconfig --cluster-cidr=10.132.9.0/24 --log-dir=C:\var\log\kube-proxy ` +
				`--logtostderr=false --network-name=OVNKubernetesHybridOverlayNetwork --source-vip=10.132.9.2 --enable-dsr=false`},
	}
	bootstrappedPrograms = []string{
		`C:\Program Files\Docker\dockerd.exe`, `C:\k\kubelet.exe`, `C:\k\hybrid-overlay-node.exe`, `C:\k\kube-proxy.exe`,
	}
	bootstrappedFiles = map[string]string{
		`C:\k\kubelet.conf`:              `{"kind":"KubeletConfiguration","apiVersion":"kubelet.config.k8s.io/v1beta1","cgroupsPerQOS":false}`,
		`C:\k\kubeconfig`:                "apiVersion: v1\nkind: Config\n",
		`C:\k\bootstrap-kubeconfig`:      "apiVersion: v1\nkind: Config\n",
		`C:\k\kubelet-ca.crt`:            "an authority of that time\n",
		`C:\k\wmcb.exe`:                  "MZ",
		`C:\k\cni\win-overlay.exe`:       strings.Repeat("MZ", 1<<20), // more than is kept of a file that was there before
		`C:\k\cni\config\cni.conf`:       `{"cniVersion":"0.2.0","type":"win-overlay"}`,
		`C:\var\log\kubelet\kubelet.log`: "I0101\n",
	}
)

// bootstrap makes of a host one that WMCB configured.
func bootstrap(t *testing.T, m *fake.Machine) {
	t.Helper()
	daemon, err := m.Drive().ReadFile(`C:\Windows\System32\svchost.exe`) // idles, as a service
	must(t, err)
	files := maps.Clone(bootstrappedFiles)
	for _, program := range bootstrappedPrograms {
		files[program] = string(daemon)
	}
	for path, content := range files {
		must(t, m.Drive().MkdirAll(path[:strings.LastIndexByte(path, '\\')]))
		must(t, m.Drive().WriteFile(path, []byte(content)))
	}
	console := m.Host()
	for _, config := range bootstrapped {
		must(t, console.Services.Configure(t.Context(), config))
	}
	must(t, console.Services.Start(t.Context(), "kube-proxy")) // and with it what it depends on
}

//
func TestAHostOfTheTimeBeforeWICDBecomesANodeByItself(t *testing.T) {
	r := installed(t, rig.Options{Hosts: []rig.HostOptions{{
		Name: "instance-1", Features: map[string]host.FeatureState{"Containers": host.FeatureEnabled},
	}, {Name: "instance-2"}}})
	m := r.Host("instance-1").Machine()
	bootstrap(t, m)
	docker, _ := m.Service("docker")
	run(t, r)
	list(t, r)
	ready(t, r)
	was := node(t, r, "instance-1")
	fresh := node(t, r, "instance-2")

	t.Run("its node is as that of a new host", func(t *testing.T) {
		for _, n := range []*corev1.Node{was, fresh} {
			for label, want := range map[string]string{
				v1alpha1.LabelOSID: "Windows", v1alpha1.LabelWorker: "", v1alpha1.LabelBYOH: "true", corev1.LabelOSStable: "windows",
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
	t.Run("its services have the names that they had, and all is that of a new host", func(t *testing.T) {
		want := r.Host("instance-2").Machine()
		for _, name := range []string{"kubelet", "hybrid-overlay-node", "kube-proxy", "containerd", "windows-instance-config-daemon"} {
			got, expected := serviceOf(t, m, name), serviceOf(t, want, name)
			got.CommandLine = strings.ReplaceAll(strings.ReplaceAll(got.CommandLine, "instance-1", "instance-2"), rig.Address(1), rig.Address(2))
			if got.CommandLine != expected.CommandLine || !slices.Equal(got.Dependencies, expected.Dependencies) || got.Description != expected.Description {
				t.Errorf("%s is\n%+v, want\n%+v", name, got, expected)
			}
		}
	})
	t.Run("its programs have the paths that they had", func(t *testing.T) {
		for _, path := range append(bootstrappedPrograms[1:], `C:\k\cni\win-overlay.exe`) {
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
		gone(t, r, "instance-1")
		for _, config := range bootstrapped[1:] {
			if service, there := m.Service(config.Name); there {
				t.Errorf("service %s is left: %+v", config.Name, service)
			}
		}
		if now, _ := m.Service("docker"); now.PID != docker.PID {
			t.Errorf("Docker is %+v", now)
		}
	})
}

func serviceOf(t *testing.T, m *fake.Machine, name string) host.Service {
	t.Helper()
	service, there := m.Service(name)
	if !there || service.State != host.ServiceRunning {
		t.Fatalf("service %s of %s is %+v (there: %t)", name, m.Name(), service, there)
	}
	return service
}
