package payload

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windows-machine-config/wmco/internal/payload"
)

func TestExecutable(t *testing.T) {
	e := Executable{Component: "kubelet", File: "kubelet.exe", Version: "v1.36.3", Size: 1 << 20}
	t.Run("a stand-in is recognized", func(t *testing.T) {
		got, err := ReadExecutable(e.Content())
		if err != nil || got != e {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
	t.Run("the smallest one has its header", func(t *testing.T) {
		small := e
		small.Size = len(executableMagic) +
			len(`{"component":"kubelet","file":"kubelet.exe","version":"v1.36.3","size":87}`) + 1
		if len(small.Content()) != small.Size {
			t.Fatalf("got %d bytes, want %d", len(small.Content()), small.Size)
		}
	})
	t.Run("a part of one is not", func(t *testing.T) {
		for _, n := range []int{0, 2, 10, 25, 1000, 1<<20 - 1} {
			if _, err := ReadExecutable(e.Content()[:n]); err == nil {
				t.Errorf("%d bytes were recognized", n)
			}
		}
	})
	t.Run("a patch release has most in common with the one before", func(t *testing.T) {
		next := e
		next.Version = "v1.36.4"
		a, b := e.Content(), next.Content()
		differing := 0
		for i := 0; i < len(a); i += 64 {
			if !bytes.Equal(a[i:i+64], b[i:i+64]) {
				differing++
			}
		}
		if share := float64(differing) / float64(len(a)/64); share == 0 || share > 0.15 {
			t.Errorf("%.2f of it differs", share)
		}
	})
}

func TestGenerate(t *testing.T) {
	directory := t.TempDir()
	start := time.Now()
	p, err := Generate(directory, "", "v10.0.0", Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("generated in %v", time.Since(start))

	t.Run("a host of any platform gets what every Windows node runs", func(t *testing.T) {
		var names []string
		for _, c := range p.Components(payload.Target{Platform: "None", Kubernetes: Kubernetes}) {
			names = append(names, c.Name)
			if !c.StandIn {
				t.Errorf("%s is not marked as a stand-in", c.Name)
			}
		}
		want := "wicd containerd kubelet kube-proxy kube-log-runner cni hybrid-overlay-node windows_exporter csi-proxy"
		if got := strings.Join(names, " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("only hosts on Azure get the cloud node manager", func(t *testing.T) {
		if got, want := len(p.Components(payload.Target{Platform: "Azure", Kubernetes: Kubernetes})), len(p.Components(payload.Target{Platform: "None", Kubernetes: Kubernetes}))+1; got != want {
			t.Errorf("got %d components, want %d", got, want)
		}
	})
	t.Run("it compresses as executables do", func(t *testing.T) {
		var sums []string
		var size int64
		for _, c := range p.Components(payload.Target{Platform: "None", Kubernetes: Kubernetes}) {
			for _, f := range c.Files {
				if c.Name == payload.ComponentAgent {
					continue
				}
				sums = append(sums, f.SHA256)
				size += f.Size
			}
		}
		archive, err := p.Archive(sums)
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		packed := archive.Size
		if ratio := float64(packed) / float64(size); ratio < 0.17 || ratio > 0.21 {
			t.Errorf("ratio %.2f", ratio)
		}
		if size < 15<<20 || size > 25<<20 {
			t.Errorf("%d bytes", size)
		}
	})
	t.Run("another version of one component leaves the others as they are", func(t *testing.T) {
		next, err := Generate(t.TempDir(), "", "v10.0.0", Options{Versions: map[string]string{"kubelet": "v1.36.4"}})
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range next.Manifest().Components {
			same := slices.Equal(c.Files, p.Manifest().Components[i].Files)
			if same == (c.Name == "kubelet") {
				t.Errorf("%s: the same files: %v", c.Name, same)
			}
		}
	})
	t.Run("sizes can be scaled", func(t *testing.T) {
		small, err := Generate(t.TempDir(), "", "v10.0.0", Options{SizePercent: 1})
		if err != nil {
			t.Fatal(err)
		}
		c, _ := small.Manifest().Component("kubelet")
		if c.Files[0].Size != 40*kib {
			t.Errorf("kubelet has %d bytes", c.Files[0].Size)
		}
	})
}

func TestGenerate_WrongAgentRejected(t *testing.T) {
	t.Run("a file that is no program", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "wicd.exe")
		if err := os.WriteFile(path, []byte("MZ"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(t.TempDir(), path, "v10.0.0", Options{}); err == nil ||
			!strings.Contains(err.Error(), "GOOS=windows") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("another Go program", func(t *testing.T) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Generate(t.TempDir(), self, "v10.0.0", Options{}); err == nil || !strings.Contains(err.Error(),
			"and not the agent") {
			t.Errorf("got error %v", err)
		}
	})
}
