package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// D-3
func TestKubeletSettings_FollowWorkers(t *testing.T) {
	gate := ""
	for _, name := range []string{"NodeLogQuery", "SidecarContainers", "InPlacePodVerticalScaling", "ImageVolume",
		"RotateKubeletServerCertificate"} {
		if nodespec.IsSettableFeatureGate(name) {
			gate = name
			break
		}
	}
	if gate == "" {
		t.Fatal("no gate of the test is one of the Windows kubelet")
	}
	for name, test := range map[string]struct{ lines, want string }{
		"none where there are none": {"", ""},
		"sorted, whatever the order": {"maxPods: 100\nkubeAPIQPS: 7\nimageMinimumGCAge: 2m0s\n",
			`{"imageMinimumGCAge":"2m0s","kubeAPIQPS":7,"maxPods":100}`},
		"with nested ones sorted": {"evictionHard:\n  nodefs.available: 10%\n  imagefs.available: 15%\n",
			`{"evictionHard":{"imagefs.available":"15%","nodefs.available":"10%"}}`},
		"but none of Linux":          {"cgroupDriver: systemd\npodPidsLimit: 4096\nmaxPods: 5\n", `{"maxPods":5}`},
		"but no own ones":            {"clusterDomain: cluster.local\nauthentication: {anonymous: {enabled: true}}\nport: 1\n", ``},
		"but none without a value":   {"maxPods: null\nevictionHard:\n", ``},
		"but none that nobody knows": {"canary: 1\n", ``},
		"and gates that Windows has": {"featureGates:\n  OpenShiftOnly: true\n  " + gate + ": true\n",
			`{"featureGates":{"` + gate + `":true}}`},
		"and no gates where it has no": {"featureGates:\n  OpenShiftOnly: true\n", ``},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			content := kubeletConfig + test.lines
			if strings.Contains(test.lines, "clusterDomain") {
				content = strings.Replace(content, "clusterDomain: cluster.local\n", "", 1)
			}
			f.files[kubeletConfigPath] = file{content: content}
			facts, notices := f.readValid(t)
			if facts.Kubelet.Settings != test.want {
				t.Errorf("got %s, want %s", facts.Kubelet.Settings, test.want)
			}
			expectNotices(t, notices)
		})
	}
}

func TestKubeletSettings_InvalidTypeIsError(t *testing.T) {
	for name, lines := range map[string]string{
		"an invalid number":      "maxPods: many\n",
		"an invalid duration":    "imageMinimumGCAge: soon\n",
		"invalid gates":          "featureGates: [A]\n",
		"a gate that is no flag": "featureGates: {A: maybe}\n",
		"a number that is huge":  "maxPods: 99999999999999\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.files[kubeletConfigPath] = file{content: kubeletConfig + lines}
			_, err := f.read(t)
			var fault *Error
			if !errors.As(err, &fault) || !strings.Contains(fault.Field, kubeletConfigPath) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestRead_PodNetworkMTU(t *testing.T) {
	for size, want := range map[int]int32{0: 0, 1400: 1400, 8901: 8901} {
		f := newFixture(t)
		f.network.Status.ClusterNetworkMTU = size
		if facts, _ := f.readValid(t); facts.Network.MTU != want {
			t.Errorf("%d is %d", size, facts.Network.MTU)
		}
	}
	for _, size := range []int{-1, 65536, 1 << 40} {
		f := newFixture(t)
		f.network.Status.ClusterNetworkMTU = size
		if _, err := f.read(t); err == nil || !strings.Contains(err.Error(), "status.clusterNetworkMTU") {
			t.Errorf("%d: error is %v", size, err)
		}
	}
}
