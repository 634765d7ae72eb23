package payload

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// copyParts copies the parts of a payload to a new directory.
func copyParts(t *testing.T, p *Payload) string {
	t.Helper()
	parts, err := p.Parts()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Concat([]string{parts.Manifest}, parts.Patches, parts.Packs)
	for _, files := range parts.Components {
		names = append(names, files...)
	}
	dir := t.TempDir()
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(p.Directory(), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestParts_AreCompletePayload(t *testing.T) {
	for name, p := range map[string]func() *Payload{
		"alone": func() *Payload { _, p := writeTest(t); return p },
		"with patches": func() *Payload {
			_, first := writeRelease(t, 1)
			_, second := writeRelease(t, 2, first)
			return second
		},
	} {
		t.Run(name, func(t *testing.T) {
			full := p()
			copied, err := Load(copyParts(t, full))
			if err != nil {
				t.Fatal(err)
			}
			if err := copied.Verify(); err != nil || len(copied.Gaps()) > 0 {
				t.Errorf("gaps %v, error %v", copied.Gaps(), err)
			}
			for _, patch := range full.Manifest().Patches {
				if !slices.Contains(copied.Patches(patch.To), patch) {
					t.Errorf("there is no patch from %s", patch.From)
				}
			}
		})
	}
}

func TestVerify_FindsDamage(t *testing.T) {
	for name, path := range map[string]func(p *Payload) string{
		"of a file":    func(p *Payload) string { return p.storePath(p.Manifest().Components[1].Files[0].SHA256) + zstdSuffix },
		"of the agent": func(p *Payload) string { return p.storePath(sumOf(agent)) },
		"of a patch":   func(p *Payload) string { return p.storePath(p.Manifest().Patches[0].SHA256) + zstdSuffix },
		"of a pack":    func(p *Payload) string { return p.packPath(p.Manifest().Packs[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			_, first := writeRelease(t, 1)
			dir, second := writeRelease(t, 2, first)
			data, err := os.ReadFile(path(second))
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-1] ^= 1
			if err := os.WriteFile(path(second), data, 0o644); err != nil {
				t.Fatal(err)
			}
			p, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "build the payload again") {
				t.Errorf("got error %v", err)
			}
		})
	}
}
