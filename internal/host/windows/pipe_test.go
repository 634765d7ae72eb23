package windows

import "testing"

func TestPipeOf(t *testing.T) {
	const want = `\\.\pipe\containerd-containerd`
	for _, endpoint := range []string{`npipe://./pipe/containerd-containerd`, `npipe:////./pipe/containerd-containerd`,
		`npipe:\\.\pipe\containerd-containerd`} {
		if got, err := pipeOf(endpoint); got != want || err != nil {
			t.Errorf("%s: %s, %v", endpoint, got, err)
		}
	}
	for _, endpoint := range []string{"", "npipe:", "npipe://./pipe/", "npipe://server/pipe/x",
		"tcp://127.0.0.1:1", "unix:///run/x"} {
		if got, err := pipeOf(endpoint); err == nil {
			t.Errorf("%s: %s", endpoint, got)
		}
	}
}
