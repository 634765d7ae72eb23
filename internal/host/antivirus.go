package host

import (
	"slices"
	"strings"
)

// Exclusion is an exclusion from the scans of Microsoft Defender Antivirus.
type Exclusion struct {
	Kind ExclusionKind `json:"kind"`
	// Value is the absolute path of a program for ExcludeProcess, of a file or folder for ExcludePath.
	Value string `json:"value"`
}

// ExclusionKind is what an exclusion is about.
type ExclusionKind string

// Kinds of exclusions.
const (
	// ExcludeProcess leaves out the files that a program opens, but not the program itself.
	ExcludeProcess ExclusionKind = "Process"
	// ExcludePath leaves out a file or folder.
	ExcludePath ExclusionKind = "Path"
)

// Is reports whether two exclusions are the same to Windows.
func (e Exclusion) Is(other Exclusion) bool {
	return e.Kind == other.Kind && strings.EqualFold(e.Value, other.Value)
}

// Names of Microsoft Defender Antivirus. They are the same in all languages of Windows.
const (
	DefenderService = "WinDefend"
	DefenderProgram = "MsMpEng.exe"
)

// DefenderAtWork reports whether Microsoft Defender Antivirus is at work: its service runs, in its own program. Names
// that merely begin with "Windows Defender" belong to others too, such as the firewall, and the program alone may
// belong to a scan at the command line.
func DefenderAtWork(services []Service, processes []Process) bool {
	for _, service := range services {
		if strings.EqualFold(service.Name, DefenderService) && service.State == ServiceRunning && service.PID != 0 {
			return slices.ContainsFunc(processes, func(process Process) bool {
				return process.PID == service.PID && strings.EqualFold(process.Name, DefenderProgram)
			})
		}
	}
	return false
}
