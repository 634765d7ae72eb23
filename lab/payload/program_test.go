package payload

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestProgram(t *testing.T) {
	program := bytes.Repeat([]byte("MZ program "), 1000)
	for name, size := range map[string]int{"with filler": 1 << 20, "without room for filler": 100,
		"with little room": len(program) + 300} {
		t.Run("a program "+name+" is recognized and begins as it was", func(t *testing.T) {
			e := Executable{Component: "kubelet", File: "kubelet.exe", Version: "v1.36.3", Size: size}
			content, err := e.Program(program)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(content, program) || size > len(program) && len(content) != size {
				t.Errorf("%d bytes, want %d", len(content), size)
			}
			path := filepath.Join(t.TempDir(), "kubelet.exe")
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := ReadProgram(path); err != nil || got != e {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
	t.Run("another program is not", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.exe")
		if err := os.WriteFile(path, program, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadProgram(path); err == nil {
			t.Error("it was recognized")
		}
	})
}
