package nodespec

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/internal/host"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Every byte written to a host is compared. After an intended change, run go test ./internal/nodespec -update, and
// review the difference.
func TestGoldenNodeSpecs(t *testing.T) {
	for name, in := range map[string]Inputs{"none-byoh": testInputs(), "azure-machine": azureInputs(),
		"aws-machine": awsInputs()} {
		t.Run(name, func(t *testing.T) {
			spec := mustMake(t, in)
			got, err := spec.Encode()
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
			// The files again, in the form that an administrator finds on the host.
			for _, file := range spec.Files {
				if path := strings.ReplaceAll(strings.TrimPrefix(file.Path, Root+`\`), `\`, "/"); file.Secret == "" &&
					!strings.HasSuffix(path, ".crt") {
					compareGolden(t, filepath.Join("testdata", name, path), file.Content)
				}
			}
			decoded, err := Decode(got)
			if err != nil || !reflect.DeepEqual(decoded, spec) {
				t.Errorf("decoded it is another: %v", err)
			}
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; if that is meant, run `go test ./internal/nodespec -update` and read the difference (-want +got):\n%s", path, diff)
	}
}

func TestServices(t *testing.T) {
	for name, in := range map[string]Inputs{"without a platform": testInputs(), "on Azure": azureInputs(), "on AWS": awsInputs()} {
		t.Run("each service "+name+" comes after what it depends on", func(t *testing.T) {
			known := map[string]bool{}
			for _, service := range mustMake(t, in).Services {
				for _, dependency := range service.Dependencies {
					if !known[dependency] {
						t.Errorf("%s depends on %s, which does not come before it", service.Name, dependency)
					}
				}
				if known[service.Name] {
					t.Errorf("%s is listed twice", service.Name)
				}
				known[service.Name] = true
			}
		})
		t.Run("each service "+name+" comes back after a crash and is known as ours", func(t *testing.T) {
			for _, service := range mustMake(t, in).Services {
				if len(service.RestartDelays) == 0 || service.ResetPeriod == 0 ||
					!strings.HasPrefix(service.Description, DescriptionPrefix+" ") {
					t.Errorf("%+v", service.ServiceConfig)
				}
			}
		})
		t.Run("each service "+name+" runs a program of the payload or the agent, with flags and values only", func(t *testing.T) {
			spec := mustMake(t, in)
			programs := []string{AgentPath(in.Agent.SHA256)}
			for _, release := range spec.Releases {
				for _, file := range release.Files {
					programs = append(programs, release.Path(file))
				}
			}
			for _, service := range spec.Services {
				if words := host.SplitCommandLine(service.CommandLine); !slices.Contains(programs, words[0]) {
					t.Errorf("%s runs %s", service.Name, words[0])
				}
			}
		})
		t.Run("each service "+name+" is restarted only on files that it has", func(t *testing.T) {
			spec := mustMake(t, in)
			for _, service := range spec.Services {
				for _, path := range service.RestartOn {
					if !slices.ContainsFunc(spec.Files, func(f File) bool { return f.Path == path }) {
						t.Errorf("%s is restarted on %s, which is no file of the spec", service.Name, path)
					}
				}
			}
		})
	}
	t.Run("cloud-node-manager is for Azure only", func(t *testing.T) {
		for _, platform := range []string{"AWS", "Azure", "GCP", "VSphere", "Nutanix", "None", "BareMetal"} {
			in := platformInputs(platform)
			if platform != "Azure" { // The operator's payload contains the program on each platform.
				in.Payload = append(in.Payload, testComponent("azure-cloud-node-manager", "azure-cloud-node-manager.exe"))
			}
			has := slices.ContainsFunc(mustMake(t, in).Services, func(s Service) bool { return s.Name == "cloud-node-manager" })
			if has != (platform == "Azure") {
				t.Errorf("on %s: %t", platform, has)
			}
		}
	})
	t.Run("no program gets a bootstrap token", func(t *testing.T) {
		spec := mustMake(t, azureInputs())
		data, err := spec.Encode()
		if err != nil || strings.Contains(string(data), "token") {
			t.Errorf("the spec speaks of a token; error %v", err)
		}
	})
	t.Run("what needs the kubelet's certificate waits for it", func(t *testing.T) {
		for _, service := range mustMake(t, azureInputs()).Services {
			client := slices.Contains(service.RestartOn, kubeconfigFile)
			if client != slices.Contains(service.Needs, NeedCertificate) {
				t.Errorf("%s reads the kubeconfig: %v; needs %v", service.Name, client, service.Needs)
			}
		}
	})
}

// windowsPath is a legal absolute path: drive, backslashes, no character that Windows refuses, no part that ends in a
// dot or space.
var windowsPath = regexp.MustCompile(`^C:(\\[A-Za-z0-9_.-]*[A-Za-z0-9_-])+$`)

func TestMake_PathsValidOnWindows(t *testing.T) {
	spec := mustMake(t, azureInputs())
	var paths []string
	for _, identity := range spec.AllIdentities() {
		paths = append(paths, identity.Path(CurrentCertificate))
	}
	for _, log := range spec.Logs {
		paths = append(paths, log.Path)
	}
	folders := map[string]bool{`C:`: true, `C:\ProgramData`: true}
	for _, directory := range spec.Directories {
		parent := directory.Path[:strings.LastIndexByte(directory.Path, '\\')]
		if !folders[parent] {
			t.Errorf("folder %s comes before the folder above it", directory.Path)
		}
		if folders[directory.Path] {
			t.Errorf("folder %s is listed twice", directory.Path)
		}
		folders[directory.Path] = true
		paths = append(paths, directory.Path)
	}
	within := func(path string) {
		if parent := path[:strings.LastIndexByte(path, '\\')]; !folders[parent] {
			t.Errorf("%s lies in a folder that nobody makes", path)
		}
		paths = append(paths, path)
	}
	for _, file := range spec.Files {
		within(file.Path)
	}
	for _, link := range spec.Links {
		within(link.Path)
	}
	for _, release := range spec.Releases {
		within(release.Directory)
		for _, file := range release.Files {
			paths = append(paths, release.Path(file))
		}
	}
	for _, path := range paths {
		if !windowsPath.MatchString(path) {
			t.Errorf("%q is no legal path", path)
		}
	}
	for _, service := range spec.Services {
		for _, word := range host.SplitCommandLine(service.CommandLine) {
			if _, path, found := strings.Cut(word, `C:\var\log`); found && strings.HasSuffix(path, ".log") {
				if dir := LogRoot + path[:strings.LastIndexByte(path, '\\')]; !folders[dir] {
					t.Errorf("%s logs to %s, which nobody makes", service.Name, dir)
				}
			}
		}
	}
}

// Otherwise a user who created one of these directories, or was granted access, would keep that access.
func TestMake_RootDirectoriesForAdministratorsOnly(t *testing.T) {
	closed := 0
	for _, in := range []Inputs{testInputs(), azureInputs(), awsInputs()} {
		for _, directory := range mustMake(t, in).Directories {
			if !IsWithin(directory.Path, Root) {
				continue
			}
			closed++
			if directory.Access != host.AccessAdministrators {
				t.Errorf("%s may be used by %s", directory.Path, directory.Access)
			}
		}
	}
	if closed == 0 {
		t.Errorf("no folder lies in %s", Root)
	}
}

func TestMake_LinksForDocumentedPaths(t *testing.T) {
	links := map[string]string{}
	for _, link := range mustMake(t, azureInputs()).Links {
		links[link.Path] = link.Target
	}
	for _, path := range []string{
		`C:\k\kubelet.exe`, `C:\k\kube-proxy.exe`, `C:\k\kube-log-runner.exe`, `C:\k\csi-proxy.exe`,
		`C:\k\hybrid-overlay-node.exe`,
		`C:\k\windows_exporter.exe`, `C:\k\azure-cloud-node-manager.exe`, `C:\k\cni\win-overlay.exe`,
		`C:\k\cni\host-local.exe`,
		`C:\k\containerd\containerd.exe`, `C:\k\containerd\containerd-shim-runhcs-v1.exe`,
	} {
		if !strings.HasPrefix(links[path], ReleasesRoot+`\`) {
			t.Errorf("%s leads to %q", path, links[path])
		}
	}
}

func TestMake_OnlyChangedComponentChangesDirectory(t *testing.T) {
	before := mustMake(t, testInputs())
	in := testInputs()
	in.Payload[1].Files[0].SHA256 = testFile("another").SHA256
	in.Payload[1].Version = "v1.0.1"
	in.OperatorVersion = "1.2.4"
	after := mustMake(t, in)
	for i := range before.Releases {
		same := before.Releases[i].Directory == after.Releases[i].Directory
		if changed := before.Releases[i].Component == "kubelet"; same == changed {
			t.Errorf("%s: %s, then %s", before.Releases[i].Component, before.Releases[i].Directory, after.Releases[i].Directory)
		}
	}
}

func TestMake_InvalidInputsRejected(t *testing.T) {
	tests := map[string]struct {
		mutate func(*Inputs)
		want   string
	}{
		"a host without a name":          {func(in *Inputs) { in.Instance.NodeName = "" }, "node name"},
		"a node name that is an option":  {func(in *Inputs) { in.Instance.NodeName = "-a" }, "node name"},
		"a node name with a quote":       {func(in *Inputs) { in.Instance.NodeName = `a" --b` }, "node name"},
		"a node name in capitals":        {func(in *Inputs) { in.Instance.NodeName = "WIN" }, "node name"},
		"an instance without a name":     {func(in *Inputs) { in.Instance.Name = "" }, "instance has no name"},
		"a host without an address":      {func(in *Inputs) { in.Instance.NodeIP = "" }, "not an IPv4 address"},
		"an IPv6 address":                {func(in *Inputs) { in.Instance.NodeIP = "fd00::1" }, "not an IPv4 address"},
		"an invalid pod subnet":          {func(in *Inputs) { in.PodSubnet = "10.132.0.0" }, "pod subnet"},
		"a pod subnet with a quote":      {func(in *Inputs) { in.PodSubnet = `10.132.0.0/23"` }, "pod subnet"},
		"a cluster without an address":   {func(in *Inputs) { in.Cluster.APIServerInternalURL = "" }, "not an https URL"},
		"a cluster without its CA":       {func(in *Inputs) { in.Cluster.APIServerCA = "" }, "certificate authority"},
		"a cluster without a kubelet CA": {func(in *Inputs) { in.Cluster.KubeletClientCA = "" }, "kubelet's clients"},
		"a cluster without IPv4 services": {func(in *Inputs) {
			in.Cluster.ServiceCIDRs = []string{"fd02::/112"}
		}, "service network"},
		"a cluster without DNS":           {func(in *Inputs) { in.Cluster.Kubelet.ClusterDNS = nil }, "DNS"},
		"an agent without a digest":       {func(in *Inputs) { in.Agent.SHA256 = "" }, "agent"},
		"a payload file without a digest": {func(in *Inputs) { in.Payload[0].Files[0].SHA256 = "12" }, "containerd.exe"},
		"a payload without the kubelet": {func(in *Inputs) {
			in.Payload = slices.Delete(in.Payload, 1, 2)
		}, "lacks kubelet.exe"},
		"a payload without the log runner": {func(in *Inputs) {
			in.Payload = slices.Delete(in.Payload, 3, 4)
		}, "lacks kube-log-runner.exe:"},
		"a payload for Azure without cloud": {func(in *Inputs) {
			in.Cluster.Platform = "Azure"
		}, "azure-cloud-node-manager.exe"},
		"a payload for AWS without ECR": {func(in *Inputs) {
			in.Cluster.Platform = "AWS"
		}, "ecr-credential-provider.exe"},
		"an invalid VXLAN port": {func(in *Inputs) {
			in.Cluster.Network.VXLANPort = new(int32)
		}, "VXLAN port 0"},
		"a URL with a quote": {func(in *Inputs) {
			in.Cluster.APIServerInternalURL += `" --b`
		}, "not an https URL"},
		"an invalid service network": {func(in *Inputs) {
			in.Cluster.ServiceCIDRs = append(in.Cluster.ServiceCIDRs, "all")
		}, "network \"all\""},
		"an invalid pod network": {func(in *Inputs) {
			in.Cluster.Network.HybridClusterNetworks = []string{"10.132.0.0"}
		}, "network \"10.132.0.0\""},
		"a domain with a line break": {func(in *Inputs) { in.Cluster.Kubelet.ClusterDomain += "\n" }, "domain"},
		"a cloud provider with a space": {func(in *Inputs) {
			in.Cluster.Kubelet.CloudProvider = "external --b"
		}, "cloud provider"},
		"an invalid size of logs": {func(in *Inputs) { in.LogSettings.FileSize = "big" }, "size of log files"},
		"an invalid pause image":  {func(in *Inputs) { in.PauseImage = "a b" }, "pause image"},
		"settings of no kubelet":  {func(in *Inputs) { in.Cluster.Kubelet.Settings = "[]" }, "kubelet settings"},
		"a certificate authority of no form": {func(in *Inputs) {
			in.Cluster.TrustedCAs = []string{"CA"}
		}, "trusted certificate authority 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := testInputs()
			test.mutate(&in)
			if _, err := Make(in); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestDigest_DependsOnlyOnHostInputs(t *testing.T) {
	t.Run("equal inputs give equal specs, whatever the order of the payload", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			in := azureInputs()
			in.Payload = rapid.Permutation(in.Payload).Draw(r, "payload")
			first, err := Make(in)
			if err != nil {
				r.Fatal(err)
			}
			if want := mustMake(t, azureInputs()); !reflect.DeepEqual(first, want) || first.Digest() != want.Digest() {
				r.Fatal("specs differ")
			}
		})
	})
	t.Run("the operator's version and the present certificate change no digest", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			spec := mustMake(t, testInputs())
			digest := spec.Digest()
			spec.Version = rapid.String().Draw(r, "version")
			spec.Identity.Certificate = rapid.String().Draw(r, "certificate")
			if spec.Digest() != digest {
				r.Fatal("the digest is another")
			}
		})
	})
	t.Run("what changes the host changes the digest", func(t *testing.T) {
		changes := map[string]func(*Inputs){
			"pod subnet": func(in *Inputs) { in.PodSubnet = "10.132.2.0/23" },
			"address":    func(in *Inputs) { in.Instance.NodeIP = "10.1.42.2" },
			"host name":  func(in *Inputs) { in.Instance.HostName = "win-a" },
			"CA":         func(in *Inputs) { in.Cluster.KubeletClientCA += "\n" },
			"DNS":        func(in *Inputs) { in.Cluster.Kubelet.ClusterDNS = []string{"172.30.0.11"} },
			"agent":      func(in *Inputs) { in.Agent = testFile("another") },
			"payload":    func(in *Inputs) { in.Payload[0].Files[0] = testFile("containerd.exe2") },
			"debugging":  func(in *Inputs) { in.Debug = true },
		}
		before := mustMake(t, testInputs()).Digest()
		for name, change := range changes {
			in := testInputs()
			change(&in)
			if name == "payload" {
				in.Payload[0].Files[0].Name = "containerd.exe"
			}
			if mustMake(t, in).Digest() == before {
				t.Errorf("another %s gives the same digest", name)
			}
		}
	})
	t.Run("inputs are not changed", func(t *testing.T) {
		in := azureInputs()
		mustMake(t, in)
		if !reflect.DeepEqual(in, azureInputs()) {
			t.Error("they are")
		}
	})
}
