package nodespec

import (
	"fmt"
	"strings"

	"github.com/distribution/reference"

	"github.com/windows-machine-config/wmco/internal/host"
)

// Paths of containerd.
const (
	containerdDirectory  = Root + `\containerd`
	containerdConfigFile = containerdDirectory + `\containerd_conf.toml`
	registriesDirectory  = containerdDirectory + `\registries`
	containerdRoot       = ContainerdData + `\root`
	containerdState      = ContainerdData + `\state`
)

// ContainerdData is the directory of images and containers.
const ContainerdData = `C:\ProgramData\containerd`

// LayersDirectory contains a directory for each layer of images and containers.
const LayersDirectory = containerdRoot + `\io.containerd.snapshotter.v1.windows\snapshots`

// ContainerdEndpoint is the endpoint of containerd's container runtime interface (CRI).
const ContainerdEndpoint = "npipe://./pipe/containerd-containerd"

func containerdService(in Inputs, p *programs) Service {
	level := "info"
	if in.Debug {
		level = "debug"
	}
	s := newService(ServiceContainerd, []string{
		p.executablePath("containerd.exe"), "--config", containerdConfigFile,
		"--log-file", LogPath("containerd"), "--run-service", "--log-level", level,
	})
	// containerd pulls the images.
	s.Environment = proxyEnvironment(in)
	s.RestartOn = []string{containerdConfigFile}
	// Shims keep containers alive, but probes, exec and new containers fail while containerd is stopped.
	s.DisruptsPods = true
	return s
}

// containerdFiles returns the configuration of containerd and the registry files of containerd and the kubelet.
func containerdFiles(in Inputs) []File {
	config := File{Path: containerdConfigFile, Content: containerdConfiguration(in), Access: host.AccessInherited}
	return append([]File{config}, registryFiles(in)...)
}

// containerdDirectories returns the directories of the registries, below registriesDirectory.
func containerdDirectories(in Inputs) []Directory { return registryDirectories(in) }

// DefaultPauseImage holds a pod's namespaces on every version of Windows Server since 2019. Source: the tags of
// oss/kubernetes/pause on mcr.microsoft.com. Disconnected clusters mirror this image or configure another image.
const DefaultPauseImage = "mcr.microsoft.com/oss/kubernetes/pause:3.9"

func pauseImage(in Inputs) string {
	if in.PauseImage == "" {
		return DefaultPauseImage
	}
	return in.PauseImage
}

// CheckPauseImage returns an error if the image name is not a full name with host, repository, and a tag or digest,
// as containerd requires.
func CheckPauseImage(image string) error {
	if named, err := reference.ParseNamed(image); err != nil || reference.IsNameOnly(named) {
		return fmt.Errorf("the pause image %q is not host/repository:tag or host/repository@digest, such as registry.example.com/pause:3.10", image)
	}
	return nil
}

// processIsolation returns the configuration of a runtime handler that runs containers in the kernel of the host.
// The values are containerd's defaults on Windows: annotations of containers are passed to the shim, and
// environment variables are removed from the shim's logs. Source: containerd,
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

// containerdConfiguration returns the configuration in the format of containerd 2.4: version 4. Unset fields keep
// containerd's defaults on Windows, with a named pipe and no metrics. Paths are TOML literal strings, which have no
// escapes.
func containerdConfiguration(in Inputs) string {
	lines := []string{
		`version = 4`,
		`root = '` + containerdRoot + `'`,
		`state = '` + containerdState + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images']`,
		// Layers of Windows images have gigabytes, and slow disks take long to unpack them.
		`image_pull_progress_timeout = '30m'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.registry]`,
		`config_path = '` + registriesDirectory + `'`,
		``,
		`[plugins.'io.containerd.cri.v1.images'.pinned_images]`,
		`sandbox = ` + tomlString(pauseImage(in)),
		``,
		// The transfer service pulls the images. The setting of the same name above would only disable the transfer
		// service.
		`[plugins.'io.containerd.transfer.v1.local']`,
		`max_concurrent_downloads = 3`,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.containerd]`,
		`default_runtime_name = 'runhcs-wcow-process'`,
	}
	lines = append(lines, processIsolation("runhcs-wcow-process")...)
	// RuntimeClasses of clusters that had Docker on Windows nodes use this handler.
	lines = append(lines, processIsolation("docker")...)
	lines = append(lines,
		``,
		`[plugins.'io.containerd.cri.v1.runtime'.cni]`,
		`bin_dirs = ['`+cniDirectory+`']`,
		`conf_dir = '`+cniConfigDirectory+`'`,
		``,
		// Plugins of the node resource interface (NRI) could change any container.
		`[plugins.'io.containerd.nri.v1.nri']`,
		`disable = true`,
		``,
	)
	return strings.Join(lines, "\n")
}
