package agent_test

import (
	"encoding/pem"
	"slices"
	"testing"

	"github.com/windows-machine-config/wmco/internal/nodespec"
)

// legacyBundle returns a certificate bundle in the format of a legacy operator.
func legacyBundle(certificates ...nodespec.TrustedCertificate) []byte {
	var data []byte
	for _, certificate := range certificates {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.DER})...)
	}
	return append(data, "# garbage\n"...)
}

// addLegacySettings creates the cluster settings of a legacy operator on a host, among foreign objects.
func addLegacySettings(r *rig) {
	for _, name := range []string{"Example CA", "Old CA", "Gone CA"} {
		if name != "Gone CA" {
			r.must(r.Host().Roots.Add(r.ctx, newAuthority(name).DER))
		}
	}
	r.must(r.Drive().WriteFile(`C:\k\imported-certs.pem`, legacyBundle(newAuthority("Example CA"), newAuthority("Old CA"), newAuthority("Gone CA"))))
	for _, registry := range []string{"a.example.com", "old.example.com", "kept.example.com"} {
		r.must(r.Drive().MkdirAll(registries + `\` + registry))
		r.must(r.Drive().WriteFile(registries+`\`+registry+`\hosts.toml`, []byte("of the older operator")))
	}
	r.must(r.Drive().WriteFile(registries+`\kept.example.com\mine.crt`, []byte("somebody's")))
	r.must(r.Host().Roots.Add(r.ctx, newAuthority("Somebody's CA").DER))
}

//
func TestAdopt_RemovesStaleLegacySettings(t *testing.T) {
	t.Parallel()
	r := newLegacyHost(t, addLegacySettings)
	r.configureHost()
	r.mustApply(withMirror(r.fullSpec(), "a.example.com", "ours"))
	t.Run("of the authorities only those of the cluster and of others are left", func(t *testing.T) {
		for name, stays := range map[string]bool{"Example CA": true, "Old CA": false, "Gone CA": false, "Somebody's CA": true} {
			if slices.Contains(r.TrustedRoots(), newAuthority(name).Fingerprint) != stays {
				t.Errorf("%s: stays is to be %t", name, stays)
			}
		}
	})
	t.Run("of the mirrors only those of the cluster and of others are left", func(t *testing.T) {
		for path, stays := range map[string]bool{
			`a.example.com\hosts.toml`: true, `old.example.com`: false, `kept.example.com\hosts.toml`: false, `kept.example.com\mine.crt`: true,
		} {
			if r.hasPaths(registries+`\`+path) != stays {
				t.Errorf("%s: stays is to be %t", path, stays)
			}
		}
		if data, _ := r.Drive().ReadFile(registries + `\a.example.com\hosts.toml`); string(data) != "ours" {
			t.Errorf("got %q", data)
		}
	})
	t.Run("nothing is left to do", func(t *testing.T) {
		if p := r.runPlan(withMirror(r.fullSpec(), "a.example.com", "ours")); len(p.Steps)+len(p.Needs) > 0 {
			t.Error(formatSteps(p))
		}
	})
	t.Run("a host that leaves has none of it", func(t *testing.T) {
		for _, leave := range []*rig{r, newLegacyHost(t, addLegacySettings)} {
			leave.removeNode()
			for _, name := range []string{"Example CA", "Old CA"} {
				if slices.Contains(leave.TrustedRoots(), newAuthority(name).Fingerprint) {
					t.Errorf("%s is still trusted", name)
				}
			}
			if !slices.Contains(leave.TrustedRoots(), newAuthority("Somebody's CA").Fingerprint) || leave.hasPaths(registries) {
				t.Errorf("%s is there: %t", registries, leave.hasPaths(registries))
			}
		}
	})
}
