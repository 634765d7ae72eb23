package nodeidentity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/windows-machine-config/wmco/api/v1alpha1"
)

const (
	oneFingerprint     = "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDzBb1xFnjqvGSjHoc"
	anotherFingerprint = "SHA256:nThbg6kXUpJWGl7E1IGOCspRomTxdCARLviKw6E5SY8"
)

func TestExpectedHostKeys(t *testing.T) {
	for name, c := range map[string]struct {
		annotations []string
		want        []string
		problem     string
	}{
		"no annotation expects nothing": {[]string{"", ""}, nil, ""},
		"one fingerprint":               {[]string{oneFingerprint}, []string{oneFingerprint}, ""},
		"several, with blanks": {[]string{" " + oneFingerprint + ",\n" +
			anotherFingerprint + ","}, []string{oneFingerprint, anotherFingerprint}, ""},
		"those of the instance and of its Machine": {[]string{oneFingerprint,
			anotherFingerprint + "," + oneFingerprint}, []string{oneFingerprint, anotherFingerprint}, ""},
		"one with padding, as some tools print it": {[]string{oneFingerprint + "="},
			[]string{oneFingerprint}, ""},
		"an MD5 fingerprint": {[]string{"MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48"}, nil, "MD5:16"},
		"one that is cut":    {[]string{oneFingerprint[:30]}, nil, oneFingerprint[:30]},
		"a key in place of its fingerprint": {[]string{"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGG"},
			nil, "ssh-ed25519"},
		"a good and a bad one: nothing may be taken":             {[]string{oneFingerprint + ",x"}, nil, `"x"`},
		"an annotation with nothing in it: nothing may be taken": {[]string{" , "}, nil, "contains no fingerprint"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ExpectedHostKeys(c.annotations...)
			switch {
			case c.problem == "" && (err != nil || !slices.Equal(got, c.want)):
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			case c.problem != "" && (err == nil || got != nil || !strings.Contains(err.Error(), c.problem) ||
				!strings.Contains(err.Error(), "expected-host-key")):
				t.Errorf("got %q, %v; want an error about %q", got, err, c.problem)
			}
		})
	}
}

func FuzzExpectedHostKeys(f *testing.F) {
	f.Add(oneFingerprint, "")
	f.Add(oneFingerprint+","+anotherFingerprint, "x")
	f.Fuzz(func(t *testing.T, a, b string) {
		got, err := ExpectedHostKeys(a, b)
		if err != nil {
			if got != nil || len(err.Error()) > 500 {
				t.Errorf("%q and an error of %d bytes", got, len(err.Error()))
			}
			return
		}
		if got == nil && (a != "" || b != "") || len(got) > maxFingerprints || slices.ContainsFunc(got, func(f string) bool {
			return !fingerprintForm.MatchString(f)
		}) {
			t.Errorf("%q and %q expect %q", a, b, got)
		}
	})
}

// newReachedInstance returns an instance after its host presented a key and reported a machine ID.
func newReachedInstance(name, hostKey, machineID string) v1alpha1.WindowsInstance {
	instance := newClaimant(name, "node-of-"+name, hostKey, 0)
	instance.Status.Host.MachineID, instance.Status.NodeRef.Confirmed = machineID, true
	return instance
}

func TestHostKeyReuse(t *testing.T) {
	instance := newReachedInstance("win-1", "key", "id-1")
	clone := newReachedInstance("win-2", "key", "id-2")
	same := newReachedInstance("win-1-by-name", "key", "id-1")
	same.Status.NodeRef.Name = instance.Status.NodeRef.Name
	fullClone := newReachedInstance("win-3", "key", "id-1")
	fullClone.Status.Host.Addresses = []string{"10.0.0.9"}
	unread := newReachedInstance("win-4", "key", "")
	unseen := newReachedInstance("win-5", "key", "id-5")
	unseen.Status.HostKey = nil
	for name, c := range map[string]struct {
		otherInstances []v1alpha1.WindowsInstance
		named          []string
	}{
		"nobody else":             {[]v1alpha1.WindowsInstance{instance}, nil},
		"a host with its own key": {[]v1alpha1.WindowsInstance{newReachedInstance("win-9", "other", "id-9")}, nil},
		"a clone":                 {[]v1alpha1.WindowsInstance{instance, clone}, []string{"win-2"}},
		"a clone, machine ID and all, that has become a node": {[]v1alpha1.WindowsInstance{fullClone}, []string{"win-3"}},
		"the same host under another address":                 {[]v1alpha1.WindowsInstance{same}, nil},
		"hosts of which nothing is known yet":                 {[]v1alpha1.WindowsInstance{unread, unseen}, nil},
		"several, in the order of their names": {[]v1alpha1.WindowsInstance{fullClone, clone},
			[]string{"win-2 (win-2.example.com), WindowsInstance win-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			message := HostKeyReuse(&instance, c.otherInstances)
			if (message == "") != (len(c.named) == 0) {
				t.Fatalf("told is %q", message)
			}
			for _, other := range c.named {
				if !strings.Contains(message, other) || !strings.Contains(message, "ssh-keygen -A") {
					t.Errorf("told is %q", message)
				}
			}
		})
	}
	t.Run("names a few of many", func(t *testing.T) {
		var otherInstances []v1alpha1.WindowsInstance
		for i := range 1000 {
			otherInstances = append(otherInstances, newReachedInstance(fmt.Sprintf("win-%04d", i), "key", fmt.Sprintf("id-of-%d", i)))
		}
		if message := HostKeyReuse(&instance, otherInstances); len(message) > 1000 || !strings.Contains(message, "win-0002") ||
			!strings.Contains(message, "and 997 more") {
			t.Errorf("%d bytes: %s", len(message), message)
		}
	})
}

func TestHostKeyReuse_ReplacesPreviousText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		instance := newReachedInstance("win", "key", "id")
		message := rapid.StringMatching(`[A-Z][a-z ]{0,40}\.`).Draw(t, "message")
		text := message
		for range rapid.IntRange(0, 4).Draw(t, "passes") {
			var otherInstances []v1alpha1.WindowsInstance
			for i := range rapid.IntRange(0, 3).Draw(t, "clones") {
				otherInstances = append(otherInstances, newReachedInstance(fmt.Sprintf("win-%d", i), "key", fmt.Sprint(i)))
			}
			reuse := HostKeyReuse(&instance, otherInstances)
			if text = WithReuse(text, reuse); text != message+reuse {
				t.Fatalf("%q", text)
			}
		}
	})
}

func TestExpectedHostKeys_SixteenAtMost(t *testing.T) {
	var fingerprints []string
	for i := range maxFingerprints + 1 {
		fingerprints = append(fingerprints, "SHA256:"+fmt.Sprintf("%043d", i))
	}
	if got, err := ExpectedHostKeys(strings.Join(fingerprints[:16], ",")); err != nil || len(got) != 16 {
		t.Errorf("sixteen: %d, %v", len(got), err)
	}
	if got, err := ExpectedHostKeys(strings.Join(fingerprints, ",")); err == nil || got != nil {
		t.Errorf("seventeen: %d, %v", len(got), err)
	}
}
