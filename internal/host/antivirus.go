package host

import (
	"slices"
	"strings"
)

// Exclusion is an exclusion from the scans of Microsoft Defender Antivirus.
type Exclusion struct {
	Kind ExclusionKind `json:"kind"`
	// Value is the absolute path of a program for ExcludeProcess, or of a file or directory for ExcludePath.
	Value string `json:"value"`
}

// ExclusionKind is the subject of an exclusion.
type ExclusionKind string

// Kinds of exclusions.
const (
	// ExcludeProcess excludes the files that a program opens, but not the program itself.
	ExcludeProcess ExclusionKind = "Process"
	// ExcludePath excludes a file or directory.
	ExcludePath ExclusionKind = "Path"
)

// Is reports whether Windows treats the two exclusions as equal.
func (e Exclusion) Is(other Exclusion) bool {
	return e.Kind == other.Kind && strings.EqualFold(e.Value, other.Value)
}

// Names of Microsoft Defender Antivirus, the same in all languages of Windows.
const (
	DefenderService = "WinDefend"
	DefenderProgram = "MsMpEng.exe"
)

// IsDefenderActive reports whether Microsoft Defender Antivirus is active: the service WinDefend runs in a process of
// the program MsMpEng.exe. The prefix "Windows Defender" is not sufficient because other components, such as the
// firewall, have the same prefix. MsMpEng.exe without the service may belong to a command-line scan.
func IsDefenderActive(services []Service, processes []Process) bool {
	for _, service := range services {
		if strings.EqualFold(service.Name, DefenderService) && service.State == ServiceRunning && service.PID != 0 {
			return slices.ContainsFunc(processes, func(process Process) bool {
				return process.PID == service.PID && strings.EqualFold(process.Name, DefenderProgram)
			})
		}
	}
	return false
}
