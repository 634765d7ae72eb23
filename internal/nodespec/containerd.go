package nodespec

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Places of containerd.
const (
	containerdDirectory  = Root + `\containerd`
	containerdConfigFile = containerdDirectory + `\containerd_conf.toml`
	registriesDirectory  = containerdDirectory + `\registries`
	containerdRoot       = ContainerdData + `\root`
	containerdState      = ContainerdData + `\state`
)

// ContainerdData is the folder of images and containers.
const ContainerdData = `C:\ProgramData\containerd`

// LayersDirectory holds a folder for each layer of images and containers.
const LayersDirectory = containerdRoot + `\io.containerd.snapshotter.v1.windows\snapshots`

// ContainerdEndpoint is where containerd serves the container runtime interface (CRI).
const ContainerdEndpoint = "npipe://./pipe/containerd-containerd"

func containerd(in Inputs, p *programs) Service {
	level := "info"
	if in.Debug {
		level = "debug"
	}
	s := service(ServiceContainerd, []string{
		p.path("containerd.exe"), "--config", containerdConfigFile,
		"--log-file", LogPath("containerd"), "--run-service", "--log-level", level,
	})
	// It pulls the images.
	s.Environment = proxyEnvironment(in)
	s.RestartOn = []string{containerdConfigFile}
	// Shims keep containers alive, but probes, exec and new containers fail while it is away.
	s.DisturbsPods = true
	return s
}

// containerdFiles are containerd's configuration and what it and the kubelet need to reach the registries.
func containerdFiles(in Inputs) []File {
	config := File{Path: containerdConfigFile, Content: containerdConfiguration(in), Access: host.AccessInherited}
	return append([]File{config}, registryFiles(in)...)
}

// containerdDirectories returns the folders of the registries, below registriesDirectory.
func containerdDirectories(in Inputs) []Directory { return registryDirectories(in) }

// DefaultPauseImage holds a pod's namespaces on every version of Windows Server since 2019. Source: the tags of
// oss/kubernetes/pause on mcr.microsoft.com. Clusters that cannot reach it mirror it, or name another.
const DefaultPauseImage = "mcr.microsoft.com/oss/kubernetes/pause:3.9"

func pauseImage(in Inputs) string {
	if in.PauseImage == "" {
		return DefaultPauseImage
	}
	return in.PauseImage
}

// CheckPauseImage returns an error that names the fault in the name of an image for pods' namespaces, or nil.
// containerd needs the full name, with host, repository, and a tag or digest.
func CheckPauseImage(image string) error {
	if named, err := reference.ParseNamed(image); err != nil || reference.IsNameOnly(named) {
		return fmt.Errorf("the pause image %q is not host/repository:tag or host/repository@digest, such as registry.example.com/pause:3.10", image)
	}
	return nil
}

// processIsolation runs containers in the kernel of the host. containerd's own values for it on Windows: annotations of
// containers are passed on, and variables of the environment do not get into the shim's logs. Source: containerd,
// internal/cri/config/config_windows.go.
func processIsolation(handler string) []string {
	const runtimes = `plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.`
	return []string{
		``,
		`[` + runtimes + handler + `]`,
		`runtime_type = 'io.containerd.runhcs.v1'`,
		`container_annotations = ['io.microsoft.container.*']`,
		``,
		`[` + runtimes + handler + `.options]`,
		`ScrubLogs = true`,
	}
}

// containerdConfiguration is in the format of containerd 2.4: version 4. What is not said is as containerd has it on
// Windows: it serves its named pipe, and no metrics. Paths are TOML literal strings, which know no escapes.
func containerdConfiguration(in Inputs) string {
	lines := []string{
		`version = 4`,
		`root = '` + containerdRoot + `'`,
		`state = '` + containerdState + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images']`,
		// The layers of Windows images are gigabytes, and slow disks unpack them for long.
		`image_pull_progress_timeout = '30m'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.registry]`,
		`config_path = '` + registriesDirectory + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.pinned_images]`,
		`sandbox = ` + tomlString(pauseImage(in)),
		``,
		// It pulls the images. The setting of the same name above would only turn it off.
		`[plugins.'io.containerd.transfer.v1.local']`,
		`max_concurrent_downloads = 3`,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.containerd]`,
		`default_runtime_name = 'runhcs-wcow-process'`,
	}
	lines = append(lines, processIsolation("runhcs-wcow-process")...)
	// The RuntimeClasses of clusters that had Docker on their Windows nodes name this handler.
	lines = append(lines, processIsolation("docker")...)
	lines = append(lines,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.cni]`,
		`bin_dirs = ['`+cniDirectory+`']`,
		`conf_dir = '`+cniConfigDirectory+`'`,
		``,
		// Plugins of the node resource interface could change any container.
		`[plugins.'io.containerd.nri.v1.nri']`,
		`disable = true`,
		``,
	)
	return strings.Join(lines, "\n")
}
