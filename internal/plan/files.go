package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// Digest returns the sha256 of the content in hex.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TextDigest returns the sha256 of the text with each CRLF replaced by LF, because different line ends are no
// difference of a configuration file.
func TextDigest(text []byte) string {
	return Digest(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")))
}

// differingFiles returns the files that must be written and have no unmet needs.
func (m *planner) differingFiles() []nodespec.File {
	var files []nodespec.File
	for _, file := range m.spec.Files {
		if !m.hasUnmetNeed(file.Needs) && m.fileReason(file) != "" {
			files = append(files, file)
		}
	}
	return files
}

func (m *planner) writeFiles() {
	for _, file := range m.files {
		m.addOperation(WriteFile{File: file}, "%s", m.fileReason(file))
	}
}

func (m *planner) fileReason(file nodespec.File) string {
	fact, there := m.facts.Files[file.Path]
	switch {
	case !there:
		return "file " + file.Path + " does not exist"
	case fact.LinkTarget != "" || fact.Directory:
		return file.Path + " is not a file"
	case fact.Text != TextDigest(file.Bytes()):
		return "the content of file " + file.Path + " differs"
	case !isSameAccess(fact.Access, FileAccess(file)):
		return accessReason("file", file.Path, FileAccess(file))
	}
	return ""
}

// FileAccess returns the access of a file. A secret is always limited to SYSTEM and administrators, regardless of
// the spec.
func FileAccess(file nodespec.File) host.Access {
	if file.Secret != "" {
		return host.AccessAdministrators
	}
	return normalAccess(file.Access)
}

// holdUnnoticedFiles removes the files that a running service reads on start if that service has an unmet need,
// because the service cannot be restarted now. If the need were met before the next plan, the file would no longer
// differ, and the service would continue with its former content. A file with different access only is not held.
func (m *planner) holdUnnoticedFiles() {
	waiting := m.waitingServices()
	m.files = slices.DeleteFunc(m.files, func(file nodespec.File) bool {
		if m.facts.Files[file.Path].Text == TextDigest(file.Bytes()) {
			return false
		}
		return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
			name := strings.ToLower(service.Name)
			_, runs := m.runningService(service.Name)
			_, stops := m.stops[name]
			return runs && waiting[name] && !stops && needsRestartFor(service, file)
		})
	})
	m.stops = m.servicesToStop()
}

// isFileWritten reports whether the plan writes the file.
func (m *planner) isFileWritten(path string) bool {
	return slices.ContainsFunc(m.files, func(file nodespec.File) bool { return nodespec.IsSamePath(file.Path, path) })
}

func (m *planner) makeLinks() {
	for _, link := range m.links {
		switch fact, there := m.facts.Files[link.Path]; {
		case !there:
			m.addOperation(MakeLink{Link: link}, "link %s does not exist", link.Path)
		case !nodespec.IsSamePath(fact.LinkTarget, link.Target):
			m.addOperation(MakeLink{Link: link}, "link %s does not point to %s", link.Path, link.Target)
		}
	}
}

// incompleteReleases returns the releases that are missing, damaged or incomplete on the host.
func (m *planner) incompleteReleases() []nodespec.Release {
	var releases []nodespec.Release
	for _, release := range m.spec.Releases {
		if m.releaseReason(release) != "" {
			releases = append(releases, release)
		}
	}
	return releases
}

func (m *planner) releaseReason(release nodespec.Release) string {
	what := release.Component + " " + release.Version
	if _, there := m.facts.Files[release.Directory]; !there {
		return what + " is not on the host"
	}
	for _, file := range release.Files {
		switch fact, there := m.facts.Files[release.Path(file)]; {
		case !there:
			return file.Name + " of " + what + " is not on the host"
		case fact.SHA256 != file.SHA256:
			return file.Name + " of " + what + " on the host is damaged"
		}
	}
	if _, complete := m.facts.Files[release.Manifest()]; !complete {
		return "the installation of " + what + " was interrupted"
	}
	return ""
}

func (m *planner) installReleases() {
	for _, release := range m.releases {
		// A running program cannot be replaced, so programs of a damaged release are stopped first.
		if m.isUsed(release) {
			m.stopServices()
		}
		m.addOperation(InstallRelease{Release: release}, "%s", m.releaseReason(release))
	}
}

// isUsed reports whether a service of the spec runs from a release.
func (m *planner) isUsed(release nodespec.Release) bool {
	return slices.ContainsFunc(m.spec.Services, func(service nodespec.Service) bool {
		fact, runs := m.runningService(service.Name)
		return runs && isRunFrom(fact, release.Directory)
	})
}

// isRunFrom reports whether a service runs from the directory.
func isRunFrom(service host.Service, directory string) bool {
	return HasProgramIn(service.CommandLine, directory) || HasProgramIn(service.RunningCommandLine, directory)
}

// HasProgramIn reports whether a command line contains a program in the directory.
func HasProgramIn(commandLine, directory string) bool {
	return strings.Contains(strings.ToLower(commandLine), strings.ToLower(directory)+`\`)
}
