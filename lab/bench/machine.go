package bench

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine describes the machine of the measurement. Times mean nothing without it.
type Machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	GoVersion string `json:"goVersion"`
	System    string `json:"system"` // linux/amd64
	// Load is the number of tasks that wanted to run at the start, averaged over a minute; empty where it is not known.
	Load string `json:"loadAtStart,omitempty"`
	Day  string `json:"day,omitempty"` // 2026-01-31
}

func (m Machine) String() string {
	return fmt.Sprintf("%s, %d cores, %s, %s, load at the start %s, %s", m.CPU, m.Cores, m.System, m.GoVersion, m.Load, m.Day)
}

func thisMachine() Machine {
	m := Machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), GoVersion: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Day: time.Now().Format(time.DateOnly)}
	if file, err := os.Open("/proc/cpuinfo"); err == nil {
		defer file.Close()
		if model := cpuModel(file); model != "" {
			m.CPU = model
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(load), " ")
	}
	return m
}

// cpuModel reads the form of /proc/cpuinfo; empty when it names no model.
func cpuModel(cpuinfo io.Reader) string {
	scanner := bufio.NewScanner(cpuinfo)
	for scanner.Scan() {
		name, value, _ := strings.Cut(scanner.Text(), ":")
		if strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
