package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/windows-machine-config/wmco/internal/payload"
	"github.com/windows-machine-config/wmco/internal/policy/support"
)

// Report lists the parts of a payload and how they were checked.
type Report struct {
	Go          string `json:"go"` // Go version of the builds: another version gives other bytes
	Executables []Line `json:"executables"`
	// OtherFiles contains the agent, which is built with the operator, and external components.
	OtherFiles []Line           `json:"others"`
	Absent     []payload.Absent `json:"absent,omitempty"`
	Patches    []PatchLine      `json:"patches,omitempty"`
	// Sizes in bytes: of all files, including the agent; in the store; and, by minor version of Kubernetes, of the
	// transfer to a host without any files.
	RawBytes  int64            `json:"rawBytes"`
	Stored    int64            `json:"storedBytes"`
	WireBytes map[string]int64 `json:"wireBytes"`
}

// Line is one file.
type Line struct {
	Component    string        `json:"component"`
	File         string        `json:"file"`
	Module       string        `json:"module,omitempty"`
	Sum          string        `json:"sum,omitempty"` // of the module
	Go           string        `json:"go,omitempty"`  // Go version of the build: another version gives other bytes
	Version      string        `json:"version"`
	Size         int64         `json:"size"`
	SHA256       string        `json:"sha256"`
	VersionCheck *VersionCheck `json:"proof,omitempty"`
	How          string        `json:"how,omitempty"` // how an external component was obtained
}

// PatchLine is one patch.
type PatchLine struct {
	File    string  `json:"file"`
	From    string  `json:"from"`
	Size    int64   `json:"size"`
	Percent float64 `json:"percentOfFile"`
}

func newReport(p *payload.Payload, all []Built, build payload.Build, externals externalsByName) (Report, error) {
	report := Report{Absent: build.Absent}
	for _, c := range p.Manifest().Components {
		for _, f := range c.Files {
			line := Line{Component: c.String(), File: f.Path, Version: c.Version, Size: f.Size, SHA256: f.SHA256}
			report.RawBytes += f.Size
			i := slices.IndexFunc(all, func(b Built) bool { return b.Output == f.Path && b.Component == c.String() })
			if i < 0 {
				line.Module, line.How = c.Source, externals.findOrigin(c)
				report.OtherFiles = append(report.OtherFiles, line)
				continue
			}
			built := all[i]
			if built.SHA256 != f.SHA256 {
				return Report{}, fmt.Errorf("%s has changed since it was checked: run the build again, and only once at a time",
					f.Path)
			}
			line.Module, line.Sum, line.Version, line.VersionCheck = built.From.Path, built.From.Sum,
				built.From.Version.Version, &built.VersionCheck
			line.Go = built.Go
			report.Executables = append(report.Executables, line)
		}
	}
	for _, patch := range p.Manifest().Patches {
		report.Patches = append(report.Patches, patchLine(p.Manifest(), patch))
	}
	var err error
	if report.Stored, err = p.StoredBytes(); err != nil {
		return Report{}, err
	}
	report.WireBytes, err = measureTransfers(p)
	return report, err
}

// measureTransfers returns the bytes sent to a host without any files, by minor version of Kubernetes. Versions without
// a kubelet are omitted.
func measureTransfers(p *payload.Payload) (map[string]int64, error) {
	bytes := map[string]int64{}
	for _, minor := range support.CurrentLine().KubernetesMinors() {
		if p.Missing("kubelet", minor) != nil {
			continue
		}
		var sums []string
		for _, c := range p.Manifest().Components {
			for _, f := range c.Files {
				switch {
				case c.Name == payload.ComponentAgent:
					bytes[minor] += f.Size // sent before, uncompressed
				case c.IsForKubernetes(minor):
					sums = append(sums, f.SHA256)
				}
			}
		}
		archive, err := p.Archive(sums)
		if err != nil {
			return nil, err
		}
		bytes[minor] += archive.Size
		if err := archive.Close(); err != nil {
			return nil, err
		}
	}
	return bytes, nil
}

// findOrigin returns the description of how the files of an external component were obtained.
func (e externalsByName) findOrigin(c payload.Component) string {
	for _, external := range e[c.Name] {
		if slices.Equal(external.Minors, c.Minors) {
			return external.how
		}
	}
	return ""
}

func patchLine(m payload.Manifest, patch payload.Patch) PatchLine {
	line := PatchLine{From: patch.From, Size: patch.Size}
	for _, c := range m.Components {
		for _, f := range c.Files {
			if f.SHA256 == patch.To {
				line.File, line.Percent = f.Path, percentOf(patch.Size, f.Size)
			}
		}
	}
	return line
}

func percentOf(part, total int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(part*1000/total) / 10
}

// write writes report.txt and report.json.
func (r Report) write(dir string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "report.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "report.txt"), []byte(r.formatReport()), 0o644))
}

const mib = 1 << 20

func (r Report) formatReport() string {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "FILE\tVERSION\tMODULE\tGO\tMiB\tHOW THE VERSION WAS SHOWN")
	for _, line := range r.Executables {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\t%s: %s\n", line.File, line.Version, line.Module, line.Go,
			float64(line.Size)/mib, line.VersionCheck.Method, line.VersionCheck.Detail)
	}
	for _, line := range r.OtherFiles {
		how := line.How
		if line.Component == payload.ComponentAgent {
			how = "built with the operator"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t\t%.1f\t%s\n", line.File, line.Version, line.Module, float64(line.Size)/mib, how)
	}
	table.Flush()
	b.WriteString("\nThe build information of each executable was compared with go.sum: its own module and all others in it.\n")
	for _, line := range r.Executables {
		if line.VersionCheck.NotRunReason != "" {
			fmt.Fprintf(&b, "%s was not asked for its version: %s.\n", line.File, line.VersionCheck.NotRunReason)
		}
	}
	for _, absent := range r.Absent {
		fmt.Fprintf(&b, "MISSING: %s: %s.\n", absent.Name, absent.Reason)
	}
	for _, patch := range r.Patches {
		fmt.Fprintf(&b, "Patch to %s from the one with sha256 %.12s...: %.2f MiB, %.1f %% of the file.\n", patch.File,
			patch.From, float64(patch.Size)/mib, patch.Percent)
	}
	fmt.Fprintf(&b, "\n%d files, %.1f MiB; in the store %.1f MiB.\n", len(r.Executables)+len(r.OtherFiles), float64(r.RawBytes)/mib,
		float64(r.Stored)/mib)
	for _, minor := range slices.Sorted(maps.Keys(r.WireBytes)) {
		fmt.Fprintf(&b, "A host without any of the files is sent %.1f MiB for Kubernetes %s.\n", float64(r.WireBytes[minor])/mib, minor)
	}
	return b.String()
}
