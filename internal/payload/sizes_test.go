package payload

import (
	"math"
	"os"
	"testing"
)

func TestArchiveSize_KnownWithoutReading(t *testing.T) {
	_, p := writeTest(t)
	var all []string
	for _, f := range p.Manifest().distinctFiles() {
		if agent, err := p.Agent(); err == nil && agent.SHA256 != f.SHA256 {
			all = append(all, f.SHA256)
		}
	}
	if len(p.Manifest().Packs) == 0 || len(all) < 3 {
		t.Fatalf("the payload has %d packs and %d files", len(p.Manifest().Packs), len(all))
	}
	for name, sums := range map[string][]string{"of all files": all, "of a part of a pack": all[:1], "of one twice": {all[0], all[0]}, "of nothing": nil} {
		t.Run(name, func(t *testing.T) {
			archive, err := p.Archive(sums)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = archive.Close() }()
			size, err := p.ArchiveSize(sums)
			const frames = 100 // maximum frame overhead in bytes, for the archive and for each file
			if apart := math.Abs(float64(size - archive.Size)); err != nil || apart > float64(frames*(1+len(sums))) {
				t.Errorf("it is %d, want about %d, %v", size, archive.Size, err)
			}
		})
	}
	t.Run("also when the content is damaged, which is found before it is sent", func(t *testing.T) {
		for _, pack := range p.Manifest().Packs {
			damaged := make([]byte, pack.Size)
			if err := os.WriteFile(p.packPath(pack), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		damaged, err := Load(p.Directory())
		if err != nil {
			t.Fatal(err)
		}
		if size, err := damaged.ArchiveSize(all); err != nil || size == 0 {
			t.Errorf("it is %d, %v", size, err)
		}
		if _, err := damaged.Archive(all); err == nil {
			t.Error("it could be sent")
		}
	})
	if _, err := p.ArchiveSize([]string{"nosuch"}); err == nil {
		t.Error("a file that is not there has a size")
	}
}
