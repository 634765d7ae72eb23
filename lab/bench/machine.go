package bench

import (
	"fmt"
	"runtime"
	"time"

	"github.com/prometheus/procfs"
)

// Machine describes the machine of the measurement, without which times are meaningless.
type Machine struct {
	CPU       string `json:"cpu,omitempty"`
	Cores     int    `json:"cores"`
	GoVersion string `json:"goVersion"`
	System    string `json:"system"` // linux/amd64
	// Load is the number of runnable tasks at the start, averaged over a minute.
	Load float64 `json:"loadAtStart"`
	Day  string  `json:"day"` // 2026-01-31
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, load at the start %.1f, %s", m.CPU, m.Cores, m.System, m.GoVersion, m.Load, m.Day)
}

func thisMachine() (Machine, error) {
	m := Machine{Cores: runtime.NumCPU(), GoVersion: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, Day: time.Now().Format(time.DateOnly)}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return m, fmt.Errorf("describe this machine: %w", err)
	}
	load, err := proc.LoadAvg()
	if err != nil {
		return m, fmt.Errorf("describe this machine: %w", err)
	}
	m.Load = load.Load1
	if cpus, err := proc.CPUInfo(); err == nil && len(cpus) > 0 { // not every architecture reports a model
		m.CPU = cpus[0].ModelName
	}
	return m, nil
}
