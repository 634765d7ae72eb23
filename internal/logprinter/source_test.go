package logprinter

import "testing"

func TestCurrentLog_SelectsActiveLog(t *testing.T) {
	for want, dir := range map[string]struct {
		service string
		names   []string
	}{
		"kubelet.log": {"kubelet", []string{"kubelet-20260301-143000.log", "kubelet.log", "kubelet.log.1"}},
		"windows-instance-config-daemon.exe.INFO": {"windows-instance-config-daemon", []string{"wicd-crash.log", "windows-instance-config-daemon.exe.INFO"}},
		"wicd-crash.log":     {"windows-instance-config-daemon", []string{"wicd-crash.log"}}, // crashed before logging
		"hybrid-overlay.log": {"hybrid-overlay-node", []string{"hybrid-overlay-2026-03-01T14-30-00.000.log", "hybrid-overlay.log"}},
		"other.log":          {"other-node", []string{"other.log", "other-20260301-143000.log"}},
		"":                   {"kubelet", []string{"readme.txt", "old/"}},
	} {
		if got := CurrentLog(dir.service, dir.names); got != want {
			t.Errorf("of %v it is %q, want %q", dir, got, want)
		}
	}
}

func TestServiceOf_MatchesLogDirectory(t *testing.T) {
	for service, dir := range map[string]string{
		"kubelet": "kubelet", "hybrid-overlay-node": "hybrid-overlay", "windows-instance-config-daemon": "wicd", "pods": "pods",
	} {
		if got, back := DirectoryName(service), ServiceOf(dir); got != dir || back != service {
			t.Errorf("the logs of %s are in %s, and those in %s are of %s", service, got, dir, back)
		}
	}
}
