package testenv

import (
	"bytes"
	"strings"
	"testing"
)

//
func TestPlatformWindows(t *testing.T) {
	l := newCloudLab(t, VMOptions{})
	describe := func(platform string) PlatformWindows {
		t.Helper()
		w, err := l.env.PlatformWindows(l.newWindowsVM(platform, "win-a"), "10.9.128.7")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	t.Run("an image of AWS lets nobody in before the user data has run", func(t *testing.T) {
		w := describe(platformAWS)
		if !strings.HasPrefix(w.ComputerName, "EC2AMAZ-") || w.Username != "Administrator" || len(w.ImageKeys) > 0 ||
			len(w.Script) == 0 {
			t.Errorf("got %+v", w)
		}
		if bytes.Contains(w.Script, []byte("<powershell>")) {
			t.Error("the script begins with what only marks its begin")
		}
		if len(w.Addresses) != 3 || w.Addresses[0].Address != "10.9.128.7" {
			t.Errorf("addresses %v", w.Addresses)
		}
	})
	t.Run("a template of vSphere holds the key, and runs nothing", func(t *testing.T) {
		w := describe(platformVSphere)
		if len(w.ImageKeys) != 1 || !bytes.Equal(w.ImageKeys[0].Marshal(), l.signer.PublicKey().Marshal()) ||
			w.Script != nil {
			t.Errorf("got %+v", w)
		}
	})
	t.Run("Azure refuses a name that is too long for Windows", func(t *testing.T) {
		if _, err := l.env.PlatformWindows(l.newWindowsVM(platformAzure, "windows-machine-a"), "10.9.128.7"); err == nil {
			t.Error("it is accepted")
		}
	})
}
