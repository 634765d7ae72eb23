package logview

import "testing"

func TestTheLogThatIsWrittenNowIsShown(t *testing.T) {
	for want, names := range map[string][]string{
		"kubelet.log": {"kubelet-20260301-143000.log", "kubelet.log", "kubelet.log.1"},
		"wicd.log":    {"wicd.log"},
		"":            {"readme.txt", "old/"},
	} {
		if got := Present(names); got != want {
			t.Errorf("of %v it is %q, want %q", names, got, want)
		}
	}
}
