package support

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSupportNode_BuildCheckedLikeNewHost(t *testing.T) {
	for name, c := range map[string]struct {
		kernel, platform, message string
	}{
		"the oldest accepted build":              {"10.0.20348.681", "AWS", ""},
		"one revision less":                      {"10.0.20348.680", "AWS", "Windows Server 2022 Datacenter, build 10.0.20348.680"},
		"the first build of the release":         {"10.0.20348.169", "AWS", "KB5012637"},
		"Windows Server 2019 of the first guide": {"10.0.17763.1457", "AWS", ""},
		"Windows Server 2019 on vSphere":         {"10.0.17763.1457", "VSphere", "not supported on platform VSphere"},
		"a semi-annual release":                  {"10.0.19042.1706", "AWS", "10.0.19042.1706"},
		// A text other than a build with a revision proves nothing.
		"no report":                              {"", "AWS", ""},
		"a build without its revision":           {"10.0.20348", "AWS", ""},
		"the form that Docker reports":           {"10.0 17763 (17763.1.amd64fre.rs5_release.180914-1434)", "AWS", ""},
		"a Linux kernel":                         {"5.14.0-284.30.1.el9_2.x86_64", "AWS", ""},
		"a negative revision":                    {"10.0.20348.-1", "AWS", ""},
		"a revision with a sign":                 {"10.0.20348.+1", "AWS", ""},
		"a revision that is larger than 31 bits": {"10.0.20348.99999999999999999999", "AWS", ""},
		"text from a hostile kubelet":            {strings.Repeat("9.", 10_000), "AWS", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := CurrentLine().SupportNode(corev1.NodeSystemInfo{KernelVersion: c.kernel, OSImage: "Windows Server 2022 Datacenter"},
				newSupportedCluster(c.platform))
			if got.Allowed != (c.message == "") || !strings.Contains(got.Message, c.message) {
				t.Errorf("%+v, want %q", got, c.message)
			}
		})
	}
}
