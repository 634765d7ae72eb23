package plan_test

import (
	"slices"
	"time"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// smallSpec returns a small node with all kinds of objects that a plan supports.
func smallSpec() nodespec.NodeSpec {
	spec := nodespec.NodeSpec{
		Schema: 1, Instance: "a", HostName: "a", NodeName: "a", Features: []string{"Containers"},
		Directories: []nodespec.Directory{
			{Path: nodespec.Root, Access: host.AccessAdministrators},
			{Path: `C:\k\cni`, Access: host.AccessInherited},
			{Path: `C:\var`, Access: host.AccessInherited},
			{Path: `C:\var\log`, Access: host.AccessInherited},
		},
		Files: []nodespec.File{
			{Path: `C:\k\kubelet.conf`, Content: "kind: KubeletConfiguration\n"},
			{Path: `C:\k\cni\cni.conf`, Content: "${POD_SUBNET}\n", Needs: []nodespec.Need{nodespec.NeedPodSubnet,
				nodespec.NeedHNSNetwork}},
			{Path: `C:\k\config.json`, Secret: "credentials\n"},
			{Path: `C:\k\kube-proxy.conf`, Content: "${SOURCE_VIP}\n", Needs: []nodespec.Need{nodespec.NeedPodSubnet,
				nodespec.NeedSourceVIP}},
		},
		TrustedCertificates: []nodespec.TrustedCertificate{{Fingerprint: "aa01", Subject: "CN=Example CA",
			DER: []byte("der")}},
		Routes:      []string{"169.254.169.254/32"},
		Environment: map[string]string{"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": ".svc"},
		Firewall: []host.FirewallRule{
			{Name: "Logs", DisplayName: "Logs", Protocol: "TCP", LocalPort: 10250, Enabled: true, Allow: true},
		},
		Identity: nodespec.Identity{Directory: `C:\var\pki`, CommonName: "system:node:a", Organization: "system:nodes"},
		Network:  nodespec.Network{HNSNetwork: "OVN", OwnedNetworks: []string{"OVN"}, SourceVIPEndpoint: "VIP"},
	}
	for _, component := range []string{"containerd", "kubelet", "overlay", "kube-proxy"} {
		addRelease(&spec, component, "v1")
	}
	addService(&spec, "containerd", true, nil)
	addService(&spec, "kubelet", false, []nodespec.Need{nodespec.NeedCertificate}, "containerd")
	addService(&spec, "overlay", true, []nodespec.Need{nodespec.NeedCertificate}, "kubelet")
	addService(&spec, "kube-proxy", true, []nodespec.Need{nodespec.NeedPodSubnet, nodespec.NeedSourceVIP}, "overlay")
	spec.Services[1].RestartOn = []string{`C:\k\kubelet.conf`}
	spec.Services[3].RestartOn = []string{`C:\k\kube-proxy.conf`}
	spec.Services = append(spec.Services, nodespec.Service{ServiceConfig: host.ServiceConfig{
		Name: nodespec.ServiceAgent, CommandLine: `C:\k\wicd\0123456789ab\wicd.exe service`, StartType: host.StartAutomatic,
	}})
	return spec
}

// addMirrors adds the mirrors of a registry: a directory with a file.
func addMirrors(spec *nodespec.NodeSpec, registry, mirror string) {
	for _, path := range []string{`C:\k\registries`, `C:\k\registries\` + registry} {
		if !slices.ContainsFunc(spec.Directories, func(d nodespec.Directory) bool { return d.Path == path }) {
			spec.Directories = append(spec.Directories, nodespec.Directory{Path: path, Access: host.AccessInherited})
		}
	}
	spec.Files = append(spec.Files, nodespec.File{Path: `C:\k\registries\` + registry + `\hosts.toml`,
		Secret: nodespec.Secret(mirror + "\n")})
}

// addRelease adds a component with one program, or replaces its release by another version.
func addRelease(spec *nodespec.NodeSpec, component, version string) {
	release := nodespec.Release{
		Component: component, Version: version, Directory: nodespec.ReleasesRoot + `\` + component + "-" + version,
		Files: []nodespec.PayloadFile{{Name: component + ".exe", SHA256: "sum of " + component + " " + version}},
	}
	link := nodespec.Link{Path: `C:\k\` + component + ".exe", Target: release.Path(release.Files[0])}
	if component == "containerd" {
		spec.Exclusions = []host.Exclusion{{Kind: host.ExcludeProcess, Value: link.Target}}
	}
	for i := range spec.Releases {
		if spec.Releases[i].Component == component {
			spec.Releases[i], spec.Links[i] = release, link
			spec.Services[i].CommandLine = link.Target
			return
		}
	}
	spec.Releases, spec.Links = append(spec.Releases, release), append(spec.Links, link)
}

func addService(spec *nodespec.NodeSpec, name string, disturbs bool, needs []nodespec.Need, dependencies ...string) {
	// After a boot, only the agent starts the services that wait for the network.
	start := host.StartManual
	if name == "containerd" {
		start = host.StartAutomatic
	}
	service := nodespec.Service{Needs: needs, DisruptsPods: disturbs, ServiceConfig: host.ServiceConfig{
		Name: name, Description: nodespec.DescriptionPrefix + " " + name, StartType: start,
		CommandLine: spec.Releases[len(spec.Services)].Directory + `\` + name + ".exe", Dependencies: dependencies,
		RestartDelays: []time.Duration{time.Second}, ResetPeriod: time.Minute,
	}}
	spec.Services = append(spec.Services, service)
}
