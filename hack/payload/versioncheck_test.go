package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVerifyVersion(t *testing.T) {
	v, err := parseVersion("v2.4.2")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tool.exe")
	e := newTool()
	writeFile(t, file, "MZ...xv2.4.2\x00...v2.4.2\x00...\tv2.4.2\x00@v2.4.2\x00")

	t.Run("the right answer is the best proof", func(t *testing.T) {
		proof, err := verifyVersion(t.Context(), oracle{answer: "hello\ntool version v2.4.2 of today\n"}, nil, file, e, v)
		if err != nil || proof.Method != methodAnswer || proof.Detail != "tool version v2.4.2 of today" || proof.NotRunReason != "" {
			t.Errorf("got %+v, error %v", proof, err)
		}
	})
	t.Run("a plugin that ends with an error after the right answer has answered", func(t *testing.T) {
		proof, err := verifyVersion(t.Context(), oracle{answer: "tool version v2.4.2\n", err: errors.New("exit status 1")}, nil, file,
			e, v)
		if err != nil || proof.Method != methodAnswer {
			t.Errorf("got %+v, error %v", proof, err)
		}
	})
	for _, answer := range []string{"tool version 2.4.2+unknown", "tool version v2.4.20", "tool version v2.4.2+dirty",
		"tool version v2.4.2-rc.1", "tool version"} {
		t.Run("the answer "+answer+" fails the build", func(t *testing.T) {
			if proof, err := verifyVersion(t.Context(), oracle{answer: answer}, nil, file, e, v); err == nil ||
				!strings.Contains(err.Error(), answer) {
				t.Errorf("got %+v, error %v", proof, err)
			}
		})
	}
	t.Run("of a program that does not start, the executable is looked into, and the report says so", func(t *testing.T) {
		proof, err := verifyVersion(t.Context(), oracle{answer: "booting\nmissing DLL\n", err: errors.New("exit status 3")}, nil,
			file, e, v)
		if err != nil || proof.Method != methodVariables || !strings.Contains(proof.NotRunReason, "exit status 3: missing DLL") {
			t.Errorf("got %+v, error %v", proof, err)
		}
	})
	t.Run("a program that says nothing at all was not asked", func(t *testing.T) {
		proof, err := verifyVersion(t.Context(), oracle{}, nil, file, e, v)
		if err != nil || proof.Method != methodVariables || proof.NotRunReason == "" {
			t.Errorf("got %+v, error %v", proof, err)
		}
	})
	t.Run("the right answer does not hide that a variable was not set", func(t *testing.T) {
		e := newTool()
		e.Variables["example.org/tool/version.Third"] = "{{.Version}}"
		if _, err := verifyVersion(t.Context(), oracle{answer: "tool version v2.4.2"}, nil, file, e, v); err == nil ||
			!strings.Contains(err.Error(), "3 variables") {
			t.Errorf("got error %v", err)
		}
	})
}

func TestWine(t *testing.T) {
	script := func(content string) string {
		path := filepath.Join(t.TempDir(), "wine-run")
		writeFile(t, path, "#!/bin/sh\n"+content)
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("where there is no Wine, the reason is passed on", func(t *testing.T) {
		if _, err := newWine(t.Context(), script("echo 'no Wine here: it needs root' >&2\nexit 69\n")); err == nil ||
			!strings.Contains(err.Error(), "it needs root") {
			t.Errorf("got error %v", err)
		}
	})
	t.Run("a program gets its arguments, and both outputs are read", func(t *testing.T) {
		w, err := newWine(t.Context(), script("if [ $# = 0 ]; then exit; fi\nprintf 'out %s\\r\\n' \"$*\"\necho err >&2\n"))
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := w.RunProgram(t.Context(), "tool.exe", []string{"--version"}); err != nil ||
			answer != "out tool.exe --version\nerr\n" {
			t.Errorf("got %q, error %v", answer, err)
		}
	})
}
