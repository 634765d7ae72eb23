package wine_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/lab/wine"
)

// containersEnabled is the feature Containers in the format of the simulated DISM: legacy hosts have it enabled.
const containersEnabled = `[Software\\wmco-lab\\features\\Containers]
"DisplayName"="Containers"
"State"=dword:00000004
"Restart"=dword:00000001
`

// bootstrapped lists the services of a host from before WICD, in start order. Each depends on the previous one.
var bootstrapped = []struct{ name, program, arguments string }{
	{"docker", `C:\Program Files\Docker\dockerd.exe`, "--run-service"},
	{"kubelet", `C:\k\kubelet.exe`,
		`--config=C:\k\kubelet.conf --bootstrap-kubeconfig=C:\k\bootstrap-kubeconfig --kubeconfig=C:\k\kubeconfig --windows-service --container-runtime=docker`},
	{"hybrid-overlay-node", `C:\k\hybrid-overlay-node.exe`,
		`--node win-six --k8s-kubeconfig C:\k\kubeconfig --windows-service`},
	{"kube-proxy", `C:\k\kube-proxy.exe`, `--windows-service --proxy-mode=kernelspace --kubeconfig=C:\k\kubeconfig`},
}

// the programs installed by WMCB run, so they cannot be replaced before they are stopped.
func TestLegacyHost_WithoutWICDBecomesNode(t *testing.T) {
	options := wine.Options{Name: "WIN-SIX", Registry: []string{containersEnabled}, Files: map[string]string{}}
	for _, s := range bootstrapped {
		options.Files[s.program] = "" // an idle program
	}
	old := t.TempDir() + "/old"
	requireNoError(t, os.WriteFile(old, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	for _, path := range []string{`C:\k\kubeconfig`, `C:\k\bootstrap-kubeconfig`, `C:\k\kubelet.conf`, `C:\k\cni\config\cni.conf`, `C:\k\wmcb.exe`} {
		options.Files[path] = old
	}
	l := newLabOf(t, options)
	h := l.hosts[0]
	for i, s := range bootstrapped {
		words := []string{administratorPath, "create", s.name, host.CommandLine(s.program) + " " + s.arguments}
		if i > 0 {
			words = append(words, bootstrapped[i-1].name)
		}
		for _, line := range []string{host.CommandLine(words...), administratorPath + " start " + s.name} {
			result, err := h.Exec(t.Context(), line)
			requireNoError(t, err)
			if result.ExitCode != 0 {
				t.Fatalf("%s: %+v", line, result)
			}
		}
		waitUntil(t, s.name+" runs", func() bool { return processID(t, h, s.name) != "" })
	}
	docker := processID(t, h, "docker")

	l.run()
	l.list(h)
	l.awaitReady(h)
	t.Run("its services have the names that they had, and run the node's programs", func(t *testing.T) {
		for _, s := range bootstrapped[1:] {
			if line := commandLine(t, h, s.name); line == "" || processID(t, h, s.name) == "" || !strings.HasPrefix(line, nodespec.ReleasesRoot) {
				t.Errorf("%s runs %s", s.name, line)
			}
		}
	})
	t.Run("its node is as any", func(t *testing.T) {
		n := l.nodeOf(h)
		for label, want := range map[string]string{"node.openshift.io/os_id": "Windows", "node-role.kubernetes.io/worker": "", "windowsmachineconfig.openshift.io/byoh": "true"} {
			if got, ok := n.Labels[label]; !ok || got != want {
				t.Errorf("label %s is %q (there: %t), want %q", label, got, ok, want)
			}
		}
		if !slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "os" && taint.Value == "Windows" }) {
			t.Errorf("taints %v", n.Spec.Taints)
		}
	})
	t.Run("Docker was left alone, and the host was not restarted", func(t *testing.T) {
		if now := processID(t, h, "docker"); now != docker || h.Boots() != 1 {
			t.Errorf("Docker was process %s and is %s; %d boots", docker, now, h.Boots())
		}
	})
	t.Run("it can be removed, and nothing of a node is left", func(t *testing.T) {
		l.list()
		l.awaitGone(h)
		for _, s := range bootstrapped[1:] {
			if line := commandLine(t, h, s.name); line != "" || hasFile(t, h, s.program) {
				t.Errorf("%s is left: %s", s.name, line)
			}
		}
		if now := processID(t, h, "docker"); now != docker {
			t.Errorf("Docker was process %s and is %s", docker, now)
		}
	})
}
