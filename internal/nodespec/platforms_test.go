package nodespec

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windows-machine-config/wmco/internal/host"
)

// The nodes of each platform, in a readable form.
//
func TestGoldenPlatforms(t *testing.T) {
	for _, platform := range []string{"None", "BareMetal", "VSphere", "Nutanix", "AWS", "Azure", "GCP"} {
		t.Run(platform, func(t *testing.T) {
			compareGolden(t, filepath.Join("testdata", "platforms", platform+".txt"), summarizeSpec(mustMake(t, platformInputs(platform))))
		})
	}
	t.Run("platforms without a cloud, and clouds without anything of their own, make equal nodes", func(t *testing.T) {
		for a, b := range map[string]string{"None": "BareMetal", "VSphere": "Nutanix"} {
			if diff := cmp.Diff(mustMake(t, platformInputs(a)), mustMake(t, platformInputs(b))); diff != "" {
				t.Errorf("%s (-) and %s (+):\n%s", a, b, diff)
			}
		}
	})
}

// summarizeSpec returns one line for each element of the node.
func summarizeSpec(spec NodeSpec) string {
	var b strings.Builder
	for _, identity := range spec.AllIdentities() {
		fmt.Fprintf(&b, "identity   %s of %s in %s\n", identity.CommonName, identity.Organization, identity.Directory)
	}
	for _, route := range spec.Routes {
		fmt.Fprintf(&b, "route      %s\n", route)
	}
	for _, file := range spec.Files {
		fmt.Fprintf(&b, "file       %s %v\n", file.Path, file.Needs)
	}
	for _, log := range spec.Logs {
		fmt.Fprintf(&b, "log        %s %d %s\n", log.Path, log.MaxBytes, log.MaxAge)
	}
	for _, check := range spec.Checks {
		fmt.Fprintf(&b, "check      %s %s %s advisory: %v\n", check.Name, check.Kind, check.Target, check.Advisory)
	}
	for _, service := range spec.Services {
		fmt.Fprintf(&b, "service    %s %s after %v needs %q\n", service.Name, service.StartType,
			service.Dependencies, service.Needs)
		for _, word := range host.SplitCommandLine(service.CommandLine) {
			fmt.Fprintf(&b, "           %s\n", word)
		}
	}
	return b.String()
}

// Windows Server 2019, 2022 and 2025 get the same files and services, because no input of a NodeSpec distinguishes
// them. The programs themselves detect the differences, and no build is rejected.
func TestMake_IndependentOfWindowsVersion(t *testing.T) {
	var fields []string
	for i := range reflect.TypeFor[Instance]().NumField() {
		fields = append(fields, reflect.TypeFor[Instance]().Field(i).Name)
	}
	if want := []string{"Name", "NodeName", "HostName", "NodeIP", "Registration", "BYOH"}; !slices.Equal(fields, want) {
		t.Errorf("the spec depends on %v of a host: a golden file for each version of Windows is due if one of them is its version", fields)
	}
	for _, service := range mustMake(t, platformInputs("VSphere")).Services {
		// The kubelet sets the labels for the operating system, the architecture and the build of Windows.
		for _, label := range []string{"kubernetes.io/os", "kubernetes.io/arch", "windows-build"} {
			if strings.Contains(service.CommandLine, label) {
				t.Errorf("%s sets %s", service.Name, label)
			}
		}
	}
}

// the agent starts with Windows and starts the other services.
func TestStartTypes(t *testing.T) {
	manual := []string{ServiceKubelet, ServiceHybridOverlay, ServiceKubeProxy, ServiceCloudNodeManager}
	services := mustMake(t, azureInputs()).Services
	for _, service := range services {
		want := host.StartAutomatic
		if slices.Contains(manual, service.Name) {
			want = host.StartManual
		}
		if service.StartType != want {
			t.Errorf("%s starts %s", service.Name, service.StartType)
		}
		if service.StartType == host.StartAutomatic && slices.ContainsFunc(service.Dependencies, func(d string) bool {
			return slices.Contains(manual, d)
		}) {
			t.Errorf("Windows starts what %s depends on, %v, before the pods' network is there", service.Name,
				service.Dependencies)
		}
	}
}

// Nodes of a cloud with external controllers wait for these controllers. The kubelet has no other cloud-specific
// settings.
func TestCloudProvider(t *testing.T) {
	for platform, want := range map[string]bool{"None": false, "BareMetal": false, "VSphere": true, "Nutanix": true,
		"AWS": true, "Azure": true, "GCP": true} {
		words := wordsOf(t, mustMake(t, platformInputs(platform)), ServiceKubelet)
		if has := slices.Contains(words, "--cloud-provider=external"); has != want {
			t.Errorf("on %s the kubelet has an external cloud provider: %v", platform, has)
		}
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "--cloud-config") }) {
			t.Errorf("on %s the kubelet has a cloud configuration", platform)
		}
	}
}

func TestCloudRoutes(t *testing.T) {
	for platform, want := range map[string][]string{"None": nil, "Azure": nil, "VSphere": nil,
		"AWS": {"169.254.169.123/32", "169.254.169.250/32", "169.254.169.251/32", "169.254.169.253/32",
			"169.254.169.254/32"}, "GCP": {"169.254.169.254/32"}} {
		if routes := mustMake(t, platformInputs(platform)).Routes; !slices.Equal(routes, want) {
			t.Errorf("on %s the routes are %v", platform, routes)
		}
	}
}

// the kubelet uses the operator's containerd, regardless of other programs on the host. The operator neither
// runs nor removes a service of Docker.
func TestMake_DockerUnmanaged(t *testing.T) {
	spec := mustMake(t, azureInputs())
	if kubeletConfigOf(t, azureInputs()).ContainerRuntimeEndpoint != ContainerdEndpoint {
		t.Error("the kubelet uses another runtime")
	}
	for _, service := range spec.Services {
		if strings.Contains(strings.ToLower(service.Name), "docker") {
			t.Error(service.Name)
		}
	}
}
